// SPDX-License-Identifier: GPL-2.0
/*
 * Read fills of dm-ssdcache: what a miss brought from the array is written to the
 * SSD behind the user's back.
 *
 * Owns a bounded pool of fills, guarded by fills_lock (a leaf), and their pages.
 * A fill is begun in map under the stripe's lock, the rest is done by a work item
 * that may sleep. R7: its conflict on the stripe's list is spoiled by any write
 * of its blocks, and makes writes wait for blocks on their way to the SSD.
 */
#include <linux/highmem.h>

#include "dm-ssdcache.h"

#define NR_FILLS	32u
#define FILL_PAGES	(LINE_SECTORS_MAX / BLOCK_SECTORS)

struct fill {
	struct cache *cache;
	struct list_head node;
	struct conflict conflict;	/* on the stripe's list */
	struct cache_line *l;
	struct cache_io *io;		/* the user's read */
	u64 blocks;			/* that have a page */
	struct work_struct work;
	struct page *pages[FILL_PAGES];

	/* Of the run under way. */
	atomic_t pending;
	struct completion done;
	blk_status_t status;
};

static void fill_free_pages(struct fill *fill)
{
	u64 blocks;

	for (blocks = fill->blocks; blocks; blocks &= blocks - 1)
		__free_page(fill->pages[__ffs64(blocks)]);
	fill->blocks = 0;
}

/**
 * fill_get() - a fill for some blocks of a line
 * @cache: the cache
 * @blocks: their mask
 *
 * Context: any. Return: NULL if there are enough already or memory is short.
 */
struct fill *fill_get(struct cache *cache, u64 blocks)
{
	struct fill *fill;
	unsigned long flags;

	spin_lock_irqsave(&cache->fills_lock, flags);
	fill = list_first_entry_or_null(&cache->fills_free, struct fill, node);
	if (fill) {
		list_del(&fill->node);
		cache->fills_busy++;
	}
	spin_unlock_irqrestore(&cache->fills_lock, flags);
	if (!fill)
		return NULL;
	for (; blocks; blocks &= blocks - 1) {
		unsigned int block = __ffs64(blocks);

		fill->pages[block] = alloc_page(GFP_NOWAIT | __GFP_NOWARN);
		if (!fill->pages[block]) {
			fill_put(fill);
			return NULL;
		}
		fill->blocks |= BIT_ULL(block);
	}
	return fill;
}

/**
 * fill_put() - gives a fill back
 * @fill: from fill_get(), on no stripe's list
 *
 * Context: any.
 */
void fill_put(struct fill *fill)
{
	struct cache *cache = fill->cache;
	unsigned long flags;

	fill_free_pages(fill);
	spin_lock_irqsave(&cache->fills_lock, flags);
	list_add(&fill->node, &cache->fills_free);
	cache->fills_busy--;
	spin_unlock_irqrestore(&cache->fills_lock, flags);
	wake_up(&cache->fills_wait);
}

/**
 * fill_begin() - lets others know of a fill
 * @fill: from fill_get()
 * @stripe: the line's, locked
 * @l: where the data goes
 * @line: of the array
 *
 * fill_read_done() must follow.
 */
void fill_begin(struct fill *fill, struct stripe *stripe, struct cache_line *l,
		line_t line)
{
	fill->l = l;
	line_set(l, LINE_FILLING);
	conflict_add(stripe, &fill->conflict, CONFLICT_FILL, line, fill->blocks);
}

static void fill_run_done(void *context, blk_status_t status)
{
	struct fill *fill = context;

	if (status)
		WRITE_ONCE(fill->status, status);
	if (atomic_dec_and_test(&fill->pending))
		complete(&fill->done);
}

/* Reads or writes blocks of the line, all runs at once, and waits. */
static blk_status_t fill_io(struct fill *fill, struct block_device *bdev,
			    blk_opf_t opf, sector_t line_start, sector_t limit,
			    u64 blocks)
{
	struct cache *cache = fill->cache;

	fill->status = BLK_STS_OK;
	atomic_set(&fill->pending, 1);
	reinit_completion(&fill->done);
	while (blocks) {
		unsigned int first = __ffs64(blocks);
		unsigned int count = blocks_run(blocks >> first);
		sector_t from = first * BLOCK_SECTORS;
		sector_t sectors = min_t(sector_t, count * BLOCK_SECTORS,
					 limit - from);

		blocks &= ~blocks_mask(first, count);
		atomic_inc(&fill->pending);
		pages_submit(cache, bdev, opf, line_start + from, sectors,
			     &fill->pages[first], fill_run_done, fill);
	}
	fill_run_done(fill, BLK_STS_OK);
	wait_for_completion_io(&fill->done);
	return fill->status;
}

/* Takes what the user's read brought. Returns the blocks that are whole. */
static u64 fill_copy(struct fill *fill)
{
	struct cache_io *io = fill->io;
	unsigned int line_bytes = 1u << (fill->cache->line_shift + SECTOR_SHIFT);
	unsigned int at = ((u64)io->iter.bi_sector << SECTOR_SHIFT) &
			  (line_bytes - 1);
	struct bvec_iter iter;
	struct bio_vec bvec;

	__bio_for_each_segment(bvec, io->bio, iter, io->iter) {
		void *from = bvec_kmap_local(&bvec);
		unsigned int done = 0;

		while (done < bvec.bv_len) {
			unsigned int block = at / BLOCK_SIZE_BYTES;
			unsigned int offset = at % BLOCK_SIZE_BYTES;
			unsigned int n = min(bvec.bv_len - done,
					     BLOCK_SIZE_BYTES - offset);

			if (fill->blocks & BIT_ULL(block))
				memcpy_to_page(fill->pages[block], offset,
					       from + done, n);
			done += n;
			at += n;
		}
		kunmap_local(from);
	}
	return fill->blocks & io->whole;
}

static void fill_end(struct fill *fill, u64 filled)
{
	struct cache *cache = fill->cache;
	struct bio_list waiting = BIO_EMPTY_LIST;
	struct conflict *destage;
	struct cache_line *l = fill->l;
	struct stripe *stripe;
	unsigned long flags;

	stripe = lines_lock(&cache->lines, fill->conflict.line, &flags);
	filled &= ~fill->conflict.spoiled;
	if (filled) {
		/*
		 * What the array has only in its write cache may be gone after
		 * a power cut: until it was flushed the line must not count as
		 * closed.
		 */
		if (atomic64_read(&cache->array_writes) !=
		    atomic64_read(&cache->array_flushed)) {
			line_open(&cache->lines, l);
			destage = conflict_find(stripe, fill->conflict.line,
						CONFLICT_DESTAGE);
			if (destage)
				destage->spoiled |= filled;
		}
		line_add_valid(&cache->lines, l, filled);
	}
	line_clear(l, LINE_FILLING);
	conflict_del(stripe, &fill->conflict, &waiting);
	lines_unlock(stripe, flags);

	if (filled) {
		stat_inc(cache, fills);
		stat_add(cache, filled_blocks, hweight64(filled));
	}
	io_route_later(cache, &waiting);
	fill_put(fill);
}

static void fill_work(struct work_struct *work)
{
	struct fill *fill = container_of(work, struct fill, work);
	struct cache *cache = fill->cache;
	line_t line = fill->conflict.line;
	sector_t array_start = line_nr(line) << cache->line_shift;
	sector_t line_sectors = 1u << cache->line_shift;
	sector_t limit = min(line_sectors, cache->nr_sectors - array_start);
	struct cache_line *l = fill->l;
	struct stripe *stripe;
	unsigned long flags;
	blk_status_t status = fill->io->status;
	u64 have = 0, rest, writing;

	if (!status)
		have = fill_copy(fill);
	io_finish(fill->io, status);
	fill->io = NULL;
	rest = status ? 0 : fill->blocks & ~have;
	if (rest && !fill_io(fill, cache->array->bdev, REQ_OP_READ | REQ_RAHEAD,
			     array_start, limit, rest))
		have |= rest;

	stripe = lines_lock(&cache->lines, line, &flags);
	writing = have & ~fill->conflict.spoiled & ~l->valid;
	fill->conflict.writing = writing;
	lines_unlock(stripe, flags);

	if (writing &&
	    fill_io(fill, cache->ssd->bdev, REQ_OP_WRITE,
		    slot_to_sector(&cache->md.super, line_slot(&cache->lines, l)),
		    line_sectors, writing)) {
		stat_inc(cache, ssd_write_errors);
		writing = 0;
	}
	fill_end(fill, writing);
}

/**
 * fill_read_done() - the user's read of a miss has ended
 * @io: has a fill, and io->status; it is ended when its data was taken
 *
 * Context: any.
 */
void fill_read_done(struct cache_io *io)
{
	struct fill *fill = io->fill;

	fill->io = io;
	queue_work(fill->cache->fill_wq, &fill->work);
}

/**
 * fills_drain() - waits until no fill is under way
 * @cache: is being suspended, so none begins
 */
void fills_drain(struct cache *cache)
{
	wait_event(cache->fills_wait, !READ_ONCE(cache->fills_busy));
}

/**
 * fills_init() - allocates the pool of fills
 * @cache: fills_exit() ends it, after an error too
 *
 * Return: 0 or -ENOMEM.
 */
int fills_init(struct cache *cache)
{
	unsigned int i;

	spin_lock_init(&cache->fills_lock);
	INIT_LIST_HEAD(&cache->fills_free);
	init_waitqueue_head(&cache->fills_wait);
	cache->fill_wq = alloc_workqueue("ssdcache-fill",
					 WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	cache->fills = kvcalloc(NR_FILLS, sizeof(*cache->fills), GFP_KERNEL);
	if (!cache->fill_wq || !cache->fills)
		return -ENOMEM;
	for (i = 0; i < NR_FILLS; i++) {
		struct fill *fill = &cache->fills[i];

		fill->cache = cache;
		INIT_WORK(&fill->work, fill_work);
		init_completion(&fill->done);
		list_add_tail(&fill->node, &cache->fills_free);
	}
	return 0;
}

/**
 * fills_exit() - frees what fills_init() allocated
 * @cache: no fill is under way
 */
void fills_exit(struct cache *cache)
{
	if (cache->fill_wq)
		destroy_workqueue(cache->fill_wq);
	kvfree(cache->fills);
}
