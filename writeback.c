// SPDX-License-Identifier: GPL-2.0
/*
 * The destager of dm-ssdcache: brings dirty blocks to the array, in its order,
 * and closes lines that are written no more.
 *
 * Owns one thread a cache with a fixed set of pages, and nobody else's state but
 * through lines.h. What is asked of the thread (drains, pressure, pauses) is
 * guarded by its own lock, a leaf. Documentation/design.rst tells the life of a
 * destage.
 */
#include <linux/kthread.h>

#include "dm-ssdcache.h"

#define BATCH_LINES	64u
#define BATCH_PAGES	1024u
/* A line written so lately is not closed (C8), in the modes without dirty data. */
#define CLOSE_INTERVAL	(2 * HZ)
/* In write-back mode: lines that were not written for one to two of these. */
#define YOUNG_INTERVAL	(30 * HZ)
#define IDLE_INTERVAL	HZ
/* Share of dirty blocks over which all lines are destaged, in percent. */
#define DIRTY_LOW	20u
#define PAUSE_MIN	(HZ / 10)
#define PAUSE_MAX	(10 * HZ)

/* One line of a batch. */
struct destage {
	struct conflict conflict;
	struct cache_line *l;
	line_t line;
	u64 blocks;		/* being copied */
	u64 failed;
	unsigned int page;	/* of its first block; they follow */
};

/* One run of blocks on its way, either direction. */
struct destage_run {
	struct writeback *wb;
	struct destage *destage;
	u64 blocks;
};

struct writeback {
	struct cache *cache;
	struct task_struct *thread;
	wait_queue_head_t wait;		/* of the thread */
	wait_queue_head_t idle;		/* of those who wait for the thread */
	bool running;			/* may touch lines */
	bool busy;			/* does */
	bool pressed;			/* few slots are free */

	spinlock_t lock;		/* guards what follows, and busy */
	u64 drains_asked;
	u64 drains_done;
	int drain_error;
	bool drain_cancel;

	struct destage batch[BATCH_LINES];
	unsigned int nr;
	unsigned int nr_pages;
	struct page *pages[BATCH_PAGES];
	struct destage_run runs[BATCH_PAGES];
	unsigned int nr_runs;
	atomic_t pending;
	struct completion done;
};

/*---- One batch ----*/

static bool wants_destage(const struct cache_line *l)
{
	return l && !line_is(l, LINE_RELEASING) &&
	       (l->dirty || line_is(l, LINE_OPEN));
}

/*
 * Adds a line to the batch if it is dirty or open. False if it was left out
 * since it is young; its region is marked again then.
 */
static void batch_add(struct writeback *wb, line_t line, bool young_too)
{
	struct cache *cache = wb->cache;
	struct destage *destage = &wb->batch[wb->nr];
	struct cache_line *l;
	struct stripe *stripe;
	unsigned long flags;

	stripe = lines_lock(&cache->lines, line, &flags);
	l = line_find(&cache->lines, line);
	if (!wants_destage(l))
		goto out;
	if (line_is(l, LINE_RECENT) && !young_too) {
		line_clear(l, LINE_RECENT);
		line_mark_region(&cache->lines, line);
		goto out;
	}
	/* The other epoch's writers are gone: the last destage saw to it. */
	line_clear(l, LINE_RECENT);
	line_set(l, LINE_DESTAGING);
	line_flip_epoch(l);
	conflict_add(stripe, &destage->conflict, CONFLICT_DESTAGE, line, l->valid);
	destage->l = l;
	destage->line = line;
	destage->failed = 0;
	wb->nr++;
out:
	lines_unlock(stripe, flags);
}

static bool batch_is_full(const struct writeback *wb)
{
	unsigned int line_blocks = 1u << (wb->cache->line_shift - BLOCK_SECTOR_SHIFT);

	return wb->nr == BATCH_LINES || (wb->nr + 1) * line_blocks > BATCH_PAGES;
}

static bool destage_drained(struct cache *cache, struct destage *destage)
{
	struct stripe *stripe;
	unsigned long flags;
	bool drained;

	stripe = lines_lock(&cache->lines, destage->line, &flags);
	drained = !line_writers(destage->l, !line_epoch(destage->l));
	lines_unlock(stripe, flags);
	return drained;
}

/* What is to be copied, now that nobody who is not known writes it. */
static void destage_choose(struct writeback *wb, struct destage *destage)
{
	struct cache *cache = wb->cache;
	struct cache_line *l = destage->l;
	struct stripe *stripe;
	unsigned long flags;

	stripe = lines_lock(&cache->lines, destage->line, &flags);
	destage->blocks = l->dirty & ~destage->conflict.spoiled &
			  ~conflict_bypassed(stripe, destage->line);
	if (io_discarding(cache, destage->line))
		destage->blocks = 0;
	/* Others need not wait for blocks that are not copied. */
	destage->conflict.blocks = destage->blocks;
	lines_unlock(stripe, flags);
	destage->page = wb->nr_pages;
	wb->nr_pages += hweight64(destage->blocks);
}

static void run_done(void *context, blk_status_t status)
{
	struct destage_run *run = context;
	struct writeback *wb = run->wb;

	if (!status)
		run->blocks = 0;
	if (atomic_dec_and_test(&wb->pending))
		complete(&wb->done);
}

/* Copies the runs of one line in one direction. */
static void destage_submit(struct writeback *wb, struct destage *destage,
			   bool read)
{
	struct cache *cache = wb->cache;
	sector_t array_start = line_nr(destage->line) << cache->line_shift;
	sector_t limit = min_t(sector_t, 1u << cache->line_shift,
			       cache->nr_sectors - array_start);
	sector_t ssd_start = slot_to_sector(&cache->md.super,
					    line_slot(&cache->lines, destage->l));
	u64 blocks = destage->blocks & ~destage->failed;

	while (blocks) {
		struct destage_run *run = &wb->runs[wb->nr_runs++];
		unsigned int first = __ffs64(blocks);
		unsigned int count = blocks_run(blocks >> first);
		sector_t from = first * BLOCK_SECTORS;
		sector_t sectors = count * BLOCK_SECTORS;
		unsigned int page = destage->page + hweight64(destage->blocks &
							      (BIT_ULL(first) - 1));

		run->wb = wb;
		run->destage = destage;
		run->blocks = blocks_mask(first, count);
		blocks &= ~run->blocks;
		atomic_inc(&wb->pending);
		if (read)
			pages_submit(cache, cache->ssd->bdev, REQ_OP_READ,
				     ssd_start + from, sectors, &wb->pages[page],
				     run_done, run);
		else
			pages_submit(cache, cache->array->bdev, REQ_OP_WRITE,
				     array_start + from,
				     min(sectors, limit - from),
				     &wb->pages[page], run_done, run);
	}
}

static void batch_copy(struct writeback *wb, bool read)
{
	struct cache *cache = wb->cache;
	struct blk_plug plug;
	unsigned int i;

	wb->nr_runs = 0;
	atomic_set(&wb->pending, 1);
	reinit_completion(&wb->done);
	blk_start_plug(&plug);
	for (i = 0; i < wb->nr; i++)
		destage_submit(wb, &wb->batch[i], read);
	blk_finish_plug(&plug);
	if (!atomic_dec_and_test(&wb->pending))
		wait_for_completion_io(&wb->done);

	for (i = 0; i < wb->nr_runs; i++) {
		struct destage_run *run = &wb->runs[i];

		if (!run->blocks)
			continue;
		run->destage->failed |= run->blocks;
		if (read)
			stat_inc(cache, ssd_read_errors);
		else
			stat_inc(cache, array_errors);
	}
	if (!read && wb->nr_runs)
		array_written(cache);
}

/* The line as it is now; true if it needs another visit. */
static bool destage_finish(struct writeback *wb, struct destage *destage,
			   bool flushed)
{
	struct cache *cache = wb->cache;
	struct bio_list waiting = BIO_EMPTY_LIST;
	struct cache_line *l = destage->l;
	struct stripe *stripe;
	unsigned long flags;
	bool again;
	u64 clean;

	stripe = lines_lock(&cache->lines, destage->line, &flags);
	clean = flushed ? destage->blocks & ~destage->failed &
			  ~destage->conflict.spoiled : 0;
	clean &= l->dirty;
	line_del_dirty(&cache->lines, l, clean);
	if (flushed && !l->dirty && !destage->conflict.spoiled)
		line_close(&cache->lines, l);
	again = wants_destage(l);
	line_clear(l, LINE_DESTAGING);
	conflict_del(stripe, &destage->conflict, &waiting);
	if (again)
		line_mark_region(&cache->lines, destage->line);
	lines_unlock(stripe, flags);
	io_route_later(cache, &waiting);
	stat_add(cache, destaged, hweight64(clean));
	return again;
}

/* Returns the number of lines with an error. */
static unsigned int batch_run(struct writeback *wb)
{
	struct cache *cache = wb->cache;
	unsigned int i, failed = 0;
	bool flushed;

	wb->nr_pages = 0;
	for (i = 0; i < wb->nr; i++) {
		struct destage *destage = &wb->batch[i];

		/* Bounded: they are on the SSD. */
		wait_event(wb->wait, destage_drained(cache, destage));
		destage_choose(wb, destage);
	}
	batch_copy(wb, true);
	batch_copy(wb, false);
	flushed = !array_flush(cache);
	for (i = 0; i < wb->nr; i++) {
		if (wb->batch[i].failed || !flushed)
			failed++;
		destage_finish(wb, &wb->batch[i], flushed);
	}
	wb->nr = 0;
	return failed;
}

/*---- Passes over the open regions ----*/

static bool must_stop(struct writeback *wb)
{
	return !READ_ONCE(wb->running) || kthread_should_stop();
}

static bool dirty_over(struct cache *cache, unsigned int percent)
{
	u64 valid, dirty, blocks;

	lines_count(&cache->lines, &valid, &dirty);
	blocks = super_nr_slots(&cache->md.super) <<
		 (cache->line_shift - BLOCK_SECTOR_SHIFT);
	return dirty * 100 > blocks * percent;
}

/*
 * Visits each region that had an open line once, in the array's order. Ends early
 * when @enough says so, or when the thread must stop. Returns the number of lines
 * with an error.
 */
static unsigned int pass(struct writeback *wb, bool young_too,
			 bool (*enough)(struct writeback *wb))
{
	struct cache *cache = wb->cache;
	struct line_table *table = &cache->lines;
	u64 nr, end, region = 0, nr_lines = super_nr_lines(&cache->md.super);
	unsigned int failed = 0;

	while ((region = bittree_next(&table->open_regions, region)) !=
	       BITTREE_NONE) {
		/* Cleared first: what becomes open from now on marks it again. */
		bittree_clear(&table->open_regions, region);
		/* Pairs with the locks under which lines become open. */
		smp_mb__after_atomic();
		nr = region << table->region_shift;
		end = min(nr + (1ULL << table->region_shift), nr_lines);
		for (; nr < end; nr++) {
			batch_add(wb, to_line(nr), young_too);
			if (batch_is_full(wb))
				failed += batch_run(wb);
		}
		region++;
		if (must_stop(wb) || (enough && enough(wb)))
			break;
		cond_resched();
	}
	if (wb->nr)
		failed += batch_run(wb);
	return failed;
}

static bool enough_destaged(struct writeback *wb)
{
	/* A drain does not wait for the rest of this pass. */
	return READ_ONCE(wb->drains_asked) != READ_ONCE(wb->drains_done) ||
	       !dirty_over(wb->cache, DIRTY_LOW);
}

static bool drain_cancelled(struct writeback *wb)
{
	return READ_ONCE(wb->drain_cancel);
}

static void drain_pass(struct writeback *wb)
{
	unsigned int failed;
	bool cut;
	u64 asked;

	spin_lock(&wb->lock);
	asked = wb->drains_asked;
	spin_unlock(&wb->lock);
	failed = pass(wb, true, drain_cancelled);
	cut = drain_cancelled(wb) || must_stop(wb);
	spin_lock(&wb->lock);
	wb->drains_done = asked;
	wb->drain_error = cut ? -EINTR : failed ? -EIO : 0;
	spin_unlock(&wb->lock);
	wake_up_all(&wb->idle);
}

static bool drain_asked(struct writeback *wb)
{
	return READ_ONCE(wb->drains_asked) != READ_ONCE(wb->drains_done);
}

static bool work_due(struct writeback *wb, unsigned long next_young)
{
	return drain_asked(wb) || READ_ONCE(wb->pressed) ||
	       time_after_eq(jiffies, next_young) ||
	       dirty_over(wb->cache, DIRTY_LOW);
}

static unsigned int do_work(struct writeback *wb, unsigned long *next_young)
{
	struct cache *cache = wb->cache;

	if (drain_asked(wb)) {
		drain_pass(wb);
		return 0;
	}
	if (READ_ONCE(wb->pressed)) {
		WRITE_ONCE(wb->pressed, false);
		return pass(wb, true, enough_destaged);
	}
	if (dirty_over(cache, DIRTY_LOW))
		return pass(wb, true, enough_destaged);
	*next_young = jiffies + (cache_mode(cache) == MODE_WRITEBACK ?
				 YOUNG_INTERVAL : CLOSE_INTERVAL);
	return pass(wb, false, NULL);
}

static bool woken(struct writeback *wb, bool by_pressure)
{
	if (kthread_should_stop())
		return true;
	return READ_ONCE(wb->running) &&
	       (drain_asked(wb) || (by_pressure && READ_ONCE(wb->pressed)));
}

static int writeback_thread(void *data)
{
	struct writeback *wb = data;
	unsigned long next_young = jiffies + CLOSE_INTERVAL;
	unsigned long pause = 0;
	unsigned int failed;

	while (!kthread_should_stop()) {
		wait_event_interruptible_timeout(wb->wait, woken(wb, !pause),
						 pause ? pause : IDLE_INTERVAL);
		spin_lock(&wb->lock);
		wb->busy = wb->running;
		spin_unlock(&wb->lock);
		failed = 0;
		if (wb->busy && work_due(wb, next_young))
			failed = do_work(wb, &next_young);
		spin_lock(&wb->lock);
		wb->busy = false;
		spin_unlock(&wb->lock);
		wake_up_all(&wb->idle);
		pause = failed ? clamp_t(unsigned long, 2 * pause, PAUSE_MIN,
					 PAUSE_MAX) : 0;
	}
	return 0;
}

/*---- For others ----*/

/**
 * writeback_wake() - a writer that a destage waited for is gone
 * @cache: the cache
 *
 * Context: any.
 */
void writeback_wake(struct cache *cache)
{
	wake_up(&cache->writeback->wait);
}

/**
 * writeback_press() - slots are needed, and too many lines are dirty
 * @cache: the cache
 *
 * Context: any.
 */
void writeback_press(struct cache *cache)
{
	WRITE_ONCE(cache->writeback->pressed, true);
	wake_up(&cache->writeback->wait);
}

static bool drain_over(struct writeback *wb, u64 ticket)
{
	return READ_ONCE(wb->drains_done) >= ticket ||
	       READ_ONCE(wb->drain_cancel) || !READ_ONCE(wb->running);
}

/**
 * writeback_drain() - destages and closes what is dirty or open now
 * @cache: the cache, live
 *
 * Data that becomes dirty after the call does not count, so it ends while
 * writes go on. Context: sleeps, interruptible.
 *
 * Return: 0; -EIO if some of it could not be; -EINTR if it was cancelled, or
 * interrupted by a signal.
 */
int writeback_drain(struct cache *cache)
{
	struct writeback *wb = cache->writeback;
	u64 ticket;
	int r;

	spin_lock(&wb->lock);
	/* Set before presuspend cancels, so that none begins after that. */
	if (READ_ONCE(cache->suspending)) {
		spin_unlock(&wb->lock);
		return -EINTR;
	}
	WRITE_ONCE(wb->drain_cancel, false);
	ticket = ++wb->drains_asked;
	spin_unlock(&wb->lock);
	wake_up(&wb->wait);
	r = wait_event_interruptible(wb->idle, drain_over(wb, ticket));
	if (r || READ_ONCE(wb->drains_done) < ticket) {
		writeback_cancel(cache);
		return -EINTR;
	}
	return READ_ONCE(wb->drain_error);
}

/**
 * writeback_cancel() - ends all drains
 * @cache: the cache
 */
void writeback_cancel(struct cache *cache)
{
	struct writeback *wb = cache->writeback;

	spin_lock(&wb->lock);
	WRITE_ONCE(wb->drain_cancel, true);
	wb->drains_done = wb->drains_asked;
	wb->drain_error = -EINTR;
	spin_unlock(&wb->lock);
	wake_up_all(&wb->idle);
}

/**
 * writeback_is_draining() - whether a drain is under way
 * @cache: the cache
 */
bool writeback_is_draining(struct cache *cache)
{
	return drain_asked(cache->writeback);
}

/**
 * writeback_start() - lets the destager work
 * @cache: metadata is loaded
 */
void writeback_start(struct cache *cache)
{
	WRITE_ONCE(cache->writeback->running, true);
	wake_up(&cache->writeback->wait);
}

/**
 * writeback_stop() - waits until the destager rests
 * @cache: the cache
 *
 * Drains end with -EINTR. Context: sleeps.
 */
void writeback_stop(struct cache *cache)
{
	struct writeback *wb = cache->writeback;

	spin_lock(&wb->lock);
	WRITE_ONCE(wb->running, false);
	spin_unlock(&wb->lock);
	writeback_cancel(cache);
	wake_up(&wb->wait);
	wait_event(wb->idle, !READ_ONCE(wb->busy));
}

/**
 * writeback_init() - makes the destager, at rest
 * @cache: writeback_exit() ends it, after an error too
 *
 * Return: 0 or a negative error.
 */
int writeback_init(struct cache *cache)
{
	struct writeback *wb = kvzalloc(sizeof(*wb), GFP_KERNEL);
	unsigned int i;

	if (!wb)
		return -ENOMEM;
	cache->writeback = wb;
	wb->cache = cache;
	init_waitqueue_head(&wb->wait);
	init_waitqueue_head(&wb->idle);
	init_completion(&wb->done);
	spin_lock_init(&wb->lock);
	for (i = 0; i < BATCH_PAGES; i++) {
		wb->pages[i] = alloc_page(GFP_KERNEL);
		if (!wb->pages[i])
			return -ENOMEM;
	}
	wb->thread = kthread_run(writeback_thread, wb, "ssdcache-destage");
	if (IS_ERR(wb->thread)) {
		int r = PTR_ERR(wb->thread);

		wb->thread = NULL;
		return r;
	}
	return 0;
}

/**
 * writeback_exit() - ends the destager
 * @cache: the cache, stopped
 */
void writeback_exit(struct cache *cache)
{
	struct writeback *wb = cache->writeback;
	unsigned int i;

	if (!wb)
		return;
	if (wb->thread)
		kthread_stop(wb->thread);
	for (i = 0; i < BATCH_PAGES; i++)
		if (wb->pages[i])
			__free_page(wb->pages[i]);
	kvfree(wb);
}
