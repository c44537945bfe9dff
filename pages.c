// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous I/O between a device and pages of ours, for fills and the
 * destager. Owns a bio_set; no lock; pages_submit() may sleep in an allocation
 * that other I/O of the same kind will end.
 */
#include "dm-ssdcache.h"

#define PAGE_BIOS_MIN	16u

struct pages_bio {
	pages_done_fn done;
	void *context;
	struct bio bio;
};

static void pages_end_bio(struct bio *bio)
{
	struct pages_bio *pages_bio = container_of(bio, struct pages_bio, bio);
	pages_done_fn done = pages_bio->done;
	void *context = pages_bio->context;
	blk_status_t status = bio->bi_status;

	bio_put(bio);
	done(context, status);
}

/**
 * pages_submit() - reads or writes a run of blocks of one line
 * @cache: the cache
 * @bdev: device
 * @opf: operation and flags
 * @sector: first sector, of the device
 * @sectors: number of sectors; the last block may be short
 * @pages: a page for each block; they stay the caller's
 * @done: called in any context when the I/O has ended
 * @context: handed to @done
 */
void pages_submit(struct cache *cache, struct block_device *bdev, blk_opf_t opf,
		  sector_t sector, sector_t sectors, struct page **pages,
		  pages_done_fn done, void *context)
{
	unsigned int nr = DIV_ROUND_UP_ULL(sectors, BLOCK_SECTORS);
	struct bio *bio = bio_alloc_bioset(bdev, nr, opf, GFP_NOIO,
					   &cache->page_bios);
	struct pages_bio *pages_bio = container_of(bio, struct pages_bio, bio);
	unsigned int i, bytes;

	pages_bio->done = done;
	pages_bio->context = context;
	bio->bi_iter.bi_sector = sector;
	bio->bi_end_io = pages_end_bio;
	for (i = 0; i < nr; i++, sectors -= bytes >> SECTOR_SHIFT) {
		bytes = min_t(sector_t, sectors, BLOCK_SECTORS) << SECTOR_SHIFT;
		__bio_add_page(bio, pages[i], bytes, 0);
	}
	submit_bio_noacct(bio);
}

/**
 * pages_init() - prepares for pages_submit()
 * @cache: pages_exit() ends it, after an error too
 *
 * Return: 0 or a negative error.
 */
int pages_init(struct cache *cache)
{
	return bioset_init(&cache->page_bios, PAGE_BIOS_MIN,
			   offsetof(struct pages_bio, bio), BIOSET_NEED_BVECS);
}

/**
 * pages_exit() - frees what pages_init() allocated
 * @cache: no I/O of pages_submit() is in flight
 */
void pages_exit(struct cache *cache)
{
	bioset_exit(&cache->page_bios);
}
