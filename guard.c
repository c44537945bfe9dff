// SPDX-License-Identifier: GPL-2.0
/*
 * Guards of dm-ssdcache against an array that was changed behind its back.
 *
 * Owns nothing. Runs in preresume and postsuspend, when no I/O is in flight;
 * sleeps.
 */
#include <linux/crc32c.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "dm-ssdcache.h"

/* Where file systems keep their counters: start, somewhere between, end. */
#define HEAD_SECTORS	256u
#define TAIL_SECTORS	128u
#define BETWEEN_SECTORS	128u
#define SAMPLE_BLOCKS	256u

static int checksum(struct cache *cache, sector_t from, sector_t count,
		    void *buffer, u32 *crc)
{
	int r;

	from = min(from, cache->nr_sectors);
	count = min(count, cache->nr_sectors - from);
	*crc = ~0u;
	if (!count)
		return 0;
	r = sync_io(cache->md.io, cache->array->bdev, REQ_OP_READ, from, count,
		    buffer);
	if (!r)
		*crc = crc32c(*crc, buffer, count << SECTOR_SHIFT);
	return r;
}

/**
 * guard_fingerprint() - checksums of places of the array that change with it
 * @cache: the cache
 * @fingerprint: out: three of them
 *
 * Return: 0 or a negative error.
 */
int guard_fingerprint(struct cache *cache, u32 *fingerprint)
{
	sector_t end = cache->nr_sectors;
	sector_t tail = end > TAIL_SECTORS ? end - TAIL_SECTORS : 0;
	void *buffer = vmalloc(HEAD_SECTORS << SECTOR_SHIFT);
	int r;

	if (!buffer)
		return -ENOMEM;
	r = checksum(cache, 0, HEAD_SECTORS, buffer, &fingerprint[0]);
	if (!r)
		r = checksum(cache, round_down(end / 2, BLOCK_SECTORS),
			     BETWEEN_SECTORS, buffer, &fingerprint[1]);
	if (!r)
		r = checksum(cache, round_down(tail, BLOCK_SECTORS),
			     TAIL_SECTORS + BLOCK_SECTORS, buffer,
			     &fingerprint[2]);
	vfree(buffer);
	return r;
}

/* 1 if the block differs, 0 if not, negative if it could not be read. */
static int compare_block(struct cache *cache, const struct cache_line *l,
			 unsigned int block, void *buffers)
{
	sector_t offset = block * BLOCK_SECTORS;
	sector_t sector = (line_nr(line_of(l)) << cache->line_shift) + offset;
	sector_t count = min_t(sector_t, BLOCK_SECTORS, cache->nr_sectors - sector);
	void *other = buffers + BLOCK_SIZE_BYTES;
	int r;

	r = sync_io(cache->md.io, cache->array->bdev, REQ_OP_READ, sector, count,
		    buffers);
	if (!r)
		r = sync_io(cache->md.io, cache->ssd->bdev, REQ_OP_READ,
			    slot_to_sector(&cache->md.super,
					   line_slot(&cache->lines, l)) + offset,
			    count, other);
	if (r)
		return r;
	return !!memcmp(buffers, other, count << SECTOR_SHIFT);
}

/* A clean block of a line: block 0 if it is one, since file systems begin there. */
static int clean_block(const struct cache_line *l)
{
	u64 clean = l->valid & ~l->dirty;

	if (!line_is(l, LINE_USED) || line_is(l, LINE_PENDING) || !clean)
		return -1;
	return __ffs64(clean);
}

static bool sample_one(struct cache *cache, u64 nr, void *buffers, u64 *checked,
		       u64 *differ)
{
	const struct cache_line *l = &cache->lines.lines[nr];
	int r, block = clean_block(l);

	if (block < 0)
		return false;
	r = compare_block(cache, l, block, buffers);
	/* One that can not be read says nothing. */
	if (r < 0)
		return false;
	++*checked;
	*differ += r;
	return true;
}

/**
 * guard_sample() - compares clean blocks of the SSD with the array
 * @cache: metadata is in memory, lines that were open are pending
 * @checked: out: number of blocks compared
 * @differ: out: number of those that differ
 *
 * The lines at the array's start, the most used, and a random spread.
 *
 * Return: 0 or a negative error.
 */
int guard_sample(struct cache *cache, u64 *checked, u64 *differ)
{
	u64 i, nr_slots = super_nr_slots(&cache->md.super);
	void *buffers = vmalloc(2 * BLOCK_SIZE_BYTES);
	const struct cache_line *l;
	u64 nr, tries;

	*checked = 0;
	*differ = 0;
	if (!buffers)
		return -ENOMEM;
	for (i = 0; i < 4; i++) {
		l = line_find(&cache->lines, to_line(i));
		if (l)
			sample_one(cache, l - cache->lines.lines, buffers,
				   checked, differ);
	}
	for (i = 0; i < nr_slots && *checked < SAMPLE_BLOCKS / 2; i++)
		if (policy_hint(&cache->policy, to_slot(i)) ==
		    POLICY_FREQUENCY_MAX)
			sample_one(cache, i, buffers, checked, differ);
	for (tries = 0; tries < 8 * SAMPLE_BLOCKS && *checked < SAMPLE_BLOCKS;
	     tries++) {
		nr = get_random_u64();
		sample_one(cache, ((nr >> 32) * nr_slots) >> 32, buffers, checked,
			   differ);
	}
	vfree(buffers);
	return 0;
}
