// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes format.c: superblock, journal and table blocks that somebody made up.
 * Whatever the bytes, nothing out of range may come out.
 *
 * Input: a superblock's first FUZZ_SUPER_BYTES and FUZZ_MODE_* in front of it,
 * then blocks: struct fuzz_block and its records. Blocks are sealed unless they
 * ask not to be, so that the fuzzer gets past the checksums; the fields which
 * then must be right for that (magic, location) are made right.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "format.h"

#define FUZZ_SUPER_BYTES	368u
#define FUZZ_BLOCKS_MAX		24u

/* First byte: what is done to the superblock. */
#define FUZZ_SEAL_SUPER		1u	/* magic, checksum, location made right */
#define FUZZ_KNOWN_VERSION	2u	/* version and features too */
#define FUZZ_BIG_RING		4u	/* up to 100 blocks; else 32 to 63 */

struct fuzz_block {
	u8	how;
	u8	copy;		/* bit 0; bit 1: both */
	u8	place;		/* relative to the journal's tail */
	u8	seq;		/* likewise, where it is not the place */
	u8	first;		/* before seq */
	u8	count;		/* what the header says */
	u8	nr_records;	/* that follow, modulo 8 */
	u8	last;
} __packed;

#define FUZZ_SEAL		1u
#define FUZZ_OWN_SEQ		2u	/* seq is not that of the place */
#define FUZZ_HIGH_SEQ		4u	/* seq is far away */
#define FUZZ_RECORDS_USED	8u	/* line and maps brought into range */
#define FUZZ_IS_TABLE		16u

#define CHECK(condition) do {	\
	if (!(condition))	\
		abort();	\
} while (0)

struct stored {
	u64 place;
	unsigned int copy;
	struct disk_records_block block;
};

struct ring {
	const struct super *super;
	unsigned int nr;
	struct stored stored[FUZZ_BLOCKS_MAX];
	u64 last_seq;
	u64 delivered;
	u32 digest;
};

struct input {
	const u8 *data;
	size_t left;
};

/* Zeroes when there is nothing left. */
static void take(struct input *input, void *to, size_t bytes)
{
	size_t have = min(bytes, input->left);

	memset(to, 0, bytes);
	memcpy(to, input->data, have);
	input->data += have;
	input->left -= have;
}

static void seal(u32 seed, void *block)
{
	struct disk_header *header = block;
	u32 crc = crc32c(seed, block, 8);

	crc = crc32c(crc, (u8 *)block + 12, BLOCK_SIZE_BYTES - 12);
	header->crc = cpu_to_le32(crc);
}

static void check_record(const struct super *super, const struct record *record)
{
	struct disk_record disk;
	struct record copy, back;
	u64 blocks;

	CHECK(slot_nr(record->slot) < super_nr_slots(super));
	CHECK(!(record->flags & ~RECORD_FLAGS_KNOWN));
	CHECK(slot_to_table_index(super, record->slot) <
	      super_nr_table_blocks(super));
	CHECK(slot_to_sector(super, record->slot) + super->line_sectors <=
	      super->ssd_sectors);
	if (record->flags & RECORD_USED) {
		CHECK(line_nr(record->line) < super_nr_lines(super));
		CHECK(line_nr(record->line) >> LINE_NR_BITS == 0);
		blocks = super_line_blocks(super, record->line);
		CHECK(blocks);
		CHECK(!(record->valid & ~blocks));
		CHECK(!(record->dirty & ~record->valid));
		CHECK(!(record->flags & RECORD_OPEN_DIRTY) ||
		      !(record->flags & RECORD_OPEN_DROP));
	} else {
		CHECK(record->line == NO_LINE && !record->flags);
		CHECK(!record->valid && !record->dirty);
	}
	record_encode(record, &disk);
	CHECK(record_decode(super, &disk, &back) == FORMAT_OK);
	CHECK(back.slot == record->slot && back.line == record->line &&
	      back.valid == record->valid && back.dirty == record->dirty &&
	      back.flags == record->flags && back.hint == record->hint);
	copy = *record;
	record_recover(&copy);
	CHECK(!(copy.dirty & ~copy.valid) && !(copy.valid & ~record->valid));
	CHECK(!(record->dirty & ~copy.dirty));
	CHECK(!(copy.flags & ~RECORD_USED));
}

static void check_table_block(const struct super *super, u64 index)
{
	u32 first, count, again, more;
	u64 place = table_block_place(super, index, 0, &first, &count);
	u64 other = table_block_place(super, index, 1, &again, &more);

	CHECK(first == again && count == more);
	CHECK(count >= 1 && count <= RECORDS_PER_BLOCK);
	CHECK((u64)first + count <= super_nr_slots(super));
	CHECK(place >= journal_place(super, super->journal_blocks - 1, 1) + 1);
	CHECK(place < other && (other + 1) * BLOCK_SECTORS <= super->ssd_sectors);
	CHECK(slot_to_table_index(super, to_slot(first)) == index);
	CHECK(slot_to_table_index(super, to_slot(first + count - 1)) == index);
}

static void check_slot(const struct super *super, u64 nr)
{
	u64 sector = slot_to_sector(super, to_slot(nr));

	CHECK(sector >= journal_place(super, super->journal_blocks - 1, 1) *
	      BLOCK_SECTORS + BLOCK_SECTORS);
	CHECK(sector + super->line_sectors <= super->ssd_sectors);
	CHECK(sector % BLOCK_SECTORS == 0);
}

static void check_super(const struct super *super, u64 more)
{
	u64 slots = super_nr_slots(super), lines = super_nr_lines(super);
	u64 blocks = super_nr_table_blocks(super), end = 0;
	struct disk_super disk;
	struct super back, grown = *super;
	u32 i;

	CHECK(slots >= 1 && slots <= MAX_SLOTS);
	CHECK(lines >= 1 && lines >> LINE_NR_BITS == 0);
	CHECK(blocks >= 1 && super->high_water <= blocks);
	CHECK(super->mode < NR_MODES);
	CHECK(super_line_blocks(super, to_line(lines - 1)));
	for (i = 0; i < super->nr_segments; i++) {
		const struct segment *segment = &super->segments[i];

		CHECK(segment->table_block * BLOCK_SECTORS >= end);
		end = slot_to_sector(super, to_slot(segment->first_slot +
						    segment->nr_slots - 1)) +
		      super->line_sectors;
		check_slot(super, segment->first_slot);
		check_slot(super, segment->first_slot + segment->nr_slots - 1);
	}
	CHECK(end <= super->ssd_sectors);
	check_table_block(super, 0);
	check_table_block(super, blocks - 1);
	check_table_block(super, more % blocks);
	check_slot(super, more % slots);

	super_encode(super, super_place(0), &disk);
	CHECK(super_decode(&disk, super_place(0), &back) == FORMAT_OK);
	for (i = super->nr_segments; i < MAX_SEGMENTS; i++)
		memset(&grown.segments[i], 0, sizeof(grown.segments[i]));
	CHECK(!memcmp(back.segments, grown.segments, sizeof(back.segments)));
	CHECK(back.seq == super->seq && back.journal_tail == super->journal_tail &&
	      back.flags == super->flags && back.high_water == super->high_water);

	/* By at most 8 GiB: larger steps take long, and tell nothing new. */
	if (super_grow(&grown, super->ssd_sectors + (more >> 40))) {
		super_encode(&grown, super_place(1), &disk);
		CHECK(super_decode(&disk, super_place(1), &back) == FORMAT_OK ||
		      grown.ssd_sectors > 1ULL << 54);
	}
}

/* The superblock of the input, or one that is right if that is not. */
static void make_super(struct input *input, u8 how, struct super *super)
{
	static struct disk_super disk;
	enum format_error error;

	memset(&disk, 0, sizeof(disk));
	take(input, &disk, FUZZ_SUPER_BYTES);
	if (how & FUZZ_KNOWN_VERSION) {
		disk.version = cpu_to_le32(FORMAT_VERSION);
		disk.ro_compat = 0;
		disk.incompat = 0;
	}
	if (how & FUZZ_SEAL_SUPER) {
		memcpy(disk.header.magic, MAGIC_SUPER, 8);
		disk.header.location = 0;
		seal(~0u, &disk);
	}
	error = super_decode(&disk, 0, super);
	CHECK(error <= FORMAT_INCONSISTENT && format_error_text(error));
	if (error) {
		memset(super, 0, sizeof(*super));
		super->seq = 1;
		super->line_sectors = 128u << disk.uuid[0] % 3;
		super->array_sectors = 1ULL + le32_to_cpu(disk.line_sectors);
		super->journal_tail = le64_to_cpu(disk.journal_tail) >> 2;
		CHECK(!super_layout(super, 4096 + disk.uuid[1] * 1000));
		super_grow(super, 1000000 + disk.uuid[2] * 1000);
	}
	/* A smaller ring is right too, and quicker. */
	super->journal_blocks = min_t(u64, super->journal_blocks,
				      how & FUZZ_BIG_RING ? 100 :
				      32 + disk.uuid[3] % 32);
}

static void make_records(struct input *input, const struct super *super,
			 const struct fuzz_block *from,
			 struct disk_records_block *block)
{
	unsigned int i;

	for (i = 0; i < from->nr_records % 8; i++) {
		struct disk_record *disk = &block->records[i];
		u64 line;

		take(input, disk, sizeof(*disk));
		if (!(from->how & FUZZ_RECORDS_USED))
			continue;
		line = le64_to_cpu(disk->line) % super_nr_lines(super);
		disk->flags |= RECORD_USED;
		disk->reserved = 0;
		disk->slot = cpu_to_le32(le32_to_cpu(disk->slot) %
					 super_nr_slots(super));
		disk->line = cpu_to_le64(line);
		disk->valid &= cpu_to_le64(super_line_blocks(super, to_line(line)));
		disk->dirty &= disk->valid;
	}
}

static void try_table_block(const struct super *super,
			    const struct fuzz_block *from,
			    struct disk_records_block *block)
{
	u64 index = (from->place << 8 | from->seq) % super_nr_table_blocks(super);
	unsigned int place = from->copy & 1, i;
	u32 first, count;
	struct record record;
	u64 seq;

	memcpy(block->header.magic, MAGIC_TABLE, 8);
	block->header.first = cpu_to_le64(index + (from->first & 1));
	block->header.location = cpu_to_le64(table_block_place(super, index, place,
							       &first, &count));
	if (from->how & FUZZ_SEAL)
		seal(cache_seed(super), block);
	if (table_check(super, block, index, place, &seq))
		return;
	CHECK(seq >> 62 == 0);
	for (i = 0; i < RECORDS_PER_BLOCK; i++)
		if (!record_decode(super, &block->records[i], &record))
			check_record(super, &record);
	/* What it was sealed with comes back. */
	table_seal(super, block, index, seq, place);
	CHECK(table_check(super, block, index, place, &seq) == FORMAT_OK);
}

static void try_block(struct input *input, struct ring *ring)
{
	const struct super *super = ring->super;
	struct stored *stored = &ring->stored[ring->nr];
	struct disk_records_block *block = &stored->block;
	u64 tail = super->journal_tail, at, seq;
	struct fuzz_block from;

	take(input, &from, sizeof(from));
	memset(block, 0, sizeof(*block));
	make_records(input, super, &from, block);
	if (from.how & FUZZ_IS_TABLE) {
		block->header.seq = cpu_to_le64((u64)from.count <<
					       8 * (from.last % 8));
		try_table_block(super, &from, block);
		return;
	}
	at = tail + from.place % super->journal_blocks;
	seq = at;
	if (from.how & FUZZ_OWN_SEQ)
		seq = tail + (s8)from.seq;
	if (from.how & FUZZ_HIGH_SEQ)
		seq += super->journal_blocks << from.seq % 64;
	memcpy(block->header.magic, MAGIC_JOURNAL, 8);
	block->header.count = cpu_to_le16(from.count);
	block->header.flags = cpu_to_le16(from.last);
	block->header.seq = cpu_to_le64(seq);
	block->header.first = cpu_to_le64(seq - (s8)from.first);
	block->header.location = cpu_to_le64(journal_place(super, seq, 0));
	if (from.how & FUZZ_SEAL)
		seal(cache_seed(super), block);
	stored->place = journal_place(super, at, 0);
	stored->copy = from.copy & 1;
	ring->nr++;
	if (from.copy & 2 && ring->nr < FUZZ_BLOCKS_MAX) {
		ring->stored[ring->nr] = *stored;
		ring->stored[ring->nr++].copy ^= 1;
	}
}

static int ring_read(void *context, u64 seq, unsigned int copy,
		     struct disk_records_block *block)
{
	const struct ring *ring = context;
	u64 place = journal_place(ring->super, seq, 0);
	unsigned int i = ring->nr;

	CHECK(copy < 2);
	CHECK(seq >= ring->super->journal_tail);
	CHECK(seq - ring->super->journal_tail < ring->super->journal_blocks);
	while (i--) {
		if (ring->stored[i].place == place &&
		    ring->stored[i].copy == copy) {
			*block = ring->stored[i].block;
			return 0;
		}
	}
	return -EIO;
}

static int ring_apply(void *context, u64 seq, const struct record *record)
{
	struct ring *ring = context;

	CHECK(seq >= ring->last_seq);
	CHECK(seq - ring->super->journal_tail < ring->super->journal_blocks);
	ring->last_seq = seq;
	ring->delivered++;
	check_record(ring->super, record);
	ring->digest = crc32c(ring->digest, &record->slot, sizeof(record->slot));
	ring->digest = crc32c(ring->digest, &record->valid, sizeof(u64));
	return 0;
}

static int run_replay(struct ring *ring, struct replay *replay)
{
	static struct disk_records_block scratch;
	int r;

	ring->last_seq = ring->super->journal_tail;
	ring->delivered = 0;
	ring->digest = 0;
	memset(replay, 0, sizeof(*replay));
	replay->read = ring_read;
	replay->apply = ring_apply;
	replay->context = ring;
	r = journal_replay(ring->super, replay, &scratch);
	CHECK(r == 0 || r == -EUCLEAN || r == -EILSEQ);
	return r;
}

static void check_replay(struct ring *ring)
{
	u64 tail = ring->super->journal_tail;
	struct replay replay;
	u64 delivered;
	u32 digest;
	int r = run_replay(ring, &replay);

	CHECK(replay.next_seq >= tail);
	CHECK(replay.next_seq - tail <= ring->super->journal_blocks);
	CHECK(replay.highest >= replay.next_seq);
	CHECK(replay.highest - tail <= ring->super->journal_blocks);
	CHECK(replay.repaired <= replay.next_seq - tail);
	if (r == -EUCLEAN)
		CHECK(!ring->delivered);
	if (ring->delivered)
		CHECK(ring->last_seq < replay.next_seq);
	delivered = ring->delivered;
	digest = ring->digest;
	CHECK(run_replay(ring, &replay) == r);
	CHECK(ring->delivered == delivered && ring->digest == digest);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct ring ring;
	struct input input = { data, size };
	struct super super;
	u64 more;
	u8 how;

	take(&input, &how, sizeof(how));
	take(&input, &more, sizeof(more));
	make_super(&input, how, &super);
	check_super(&super, more);
	ring.super = &super;
	ring.nr = 0;
	while (input.left && ring.nr < FUZZ_BLOCKS_MAX)
		try_block(&input, &ring);
	check_replay(&ring);
	return 0;
}
