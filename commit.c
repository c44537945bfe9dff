// SPDX-License-Identifier: GPL-2.0
/*
 * Commits of dm-ssdcache: one worker makes the state of changed lines durable for
 * all who wait.
 *
 * Owns the metadata while the cache is live (it alone calls metadata.c then) and
 * the lists of those who wait, guarded by commit_lock, a leaf. Those who ask
 * while a commit runs wait for the next one.
 */
#include "dm-ssdcache.h"

/* So much warmth a crash may cost. */
#define COMMIT_INTERVAL		HZ

/**
 * commit_needed() - whether a line's state is not durable yet
 * @cache: the cache
 *
 * A change made before the call, whose commit is not durable, is never missed:
 * the worker says that it is busy before it takes lines off the tree, and here
 * the tree is looked at first. While it searches, the tree may seem empty for a
 * moment, so it must not have been busy before that either: a commit that begins
 * later includes the change. Context: any.
 */
bool commit_needed(struct cache *cache)
{
	/* Pairs with the release at the end of commit_now(). */
	if (smp_load_acquire(&cache->commit_busy))
		return true;
	if (!bittree_empty(&cache->lines.pending))
		return true;
	/* Pairs with the barrier in do_commits(). */
	smp_rmb();
	return READ_ONCE(cache->commit_busy);
}

/**
 * commit_soon() - asks for a commit without waiting for it
 * @cache: the cache
 *
 * Context: any.
 */
void commit_soon(struct cache *cache)
{
	unsigned long flags;
	bool kick;

	spin_lock_irqsave(&cache->commit_lock, flags);
	kick = !cache->commit_running && !cache->commit_stopped;
	cache->commit_asked = true;
	spin_unlock_irqrestore(&cache->commit_lock, flags);
	/* A running worker looks again before it ends. */
	if (kick)
		mod_delayed_work(cache->commit_wq, &cache->commit_work, 0);
}

/**
 * commit_bio() - has an I/O wait for a commit that begins from now on
 * @cache: the cache
 * @io: not on any list; a FLUSH has the array flushed too
 * @route: whether to route it anew then; else it is ended
 *
 * Context: any.
 */
void commit_bio(struct cache *cache, struct cache_io *io, bool route)
{
	unsigned long flags;

	spin_lock_irqsave(&cache->commit_lock, flags);
	bio_list_add(route ? &cache->commit_route : &cache->commit_end, io->bio);
	spin_unlock_irqrestore(&cache->commit_lock, flags);
	commit_soon(cache);
}

/**
 * commit_wait() - waits for a commit that begins from now on
 * @cache: the cache, live
 *
 * Context: sleeps; not the commit worker.
 * Return: 0 or the error of the commit.
 */
int commit_wait(struct cache *cache)
{
	struct commit_waiter waiter;

	init_completion(&waiter.done);
	spin_lock_irq(&cache->commit_lock);
	list_add_tail(&waiter.node, &cache->commit_waiters);
	spin_unlock_irq(&cache->commit_lock);
	commit_soon(cache);
	wait_for_completion(&waiter.done);
	return waiter.error;
}

/* Nobody will believe this SSD again, as far as it can be told. */
static void commit_failed(struct cache *cache)
{
	cache->md.super.flags |= SUPER_FAILED;
	cache->md.super.flags &= ~SUPER_CLEAN;
	metadata_write_super(&cache->md);
	set_state(cache, STATE_FAILED, "metadata could not be written");
}

/* Ends the checkpoint under way, and makes another if that was not enough. */
static int make_room(struct metadata *md)
{
	int r = 0, tries = 2;

	while (!r && !metadata_has_room(md) && tries--)
		r = metadata_checkpoint(md, true);
	return r;
}

static int do_commits(struct cache *cache)
{
	struct metadata *md = &cache->md;
	struct bittree *tree = &cache->lines.pending;
	struct record record;
	u64 nr, blocks;
	int r;

	nr = bittree_next(tree, 0);
	do {
		r = make_room(md);
		if (r)
			return r;
		blocks = md->head;
		while (nr != BITTREE_NONE) {
			slot_t slot = to_slot(nr);

			lines_snapshot(&cache->lines, slot, &record);
			record.hint = policy_hint(&cache->policy, slot);
			nr = bittree_next(tree, nr + 1);
			if (!metadata_add(md, &record))
				break;
		}
		r = metadata_commit(md);
		/* As much checkpoint as journal, so that it is done in time. */
		for (blocks = md->head - blocks; !r && blocks &&
		     metadata_is_half_full(md); blocks--)
			r = metadata_checkpoint(md, false);
		if (r)
			return r;
	} while (nr != BITTREE_NONE);
	return 0;
}

/**
 * commit_now() - commits what is pending
 * @cache: the cache
 *
 * Without anything pending the SSD is just flushed.
 *
 * Context: the commit worker, or preresume and postsuspend when it is stopped.
 * Return: 0 or a negative error; then the cache has failed.
 */
int commit_now(struct cache *cache)
{
	int r;

	if (cache_state(cache) == STATE_FAILED)
		return -EIO;
	WRITE_ONCE(cache->commit_busy, true);
	/* Before the first line leaves the tree, see commit_needed(). */
	smp_mb();
	r = do_commits(cache);
	/* Drops summaries over words that are empty now. */
	bittree_next(&cache->lines.pending, 0);
	if (r)
		commit_failed(cache);
	/* After it: whoever sees this sees the records durable. */
	smp_store_release(&cache->commit_busy, false);
	return r;
}

/*
 * Whether data is on an SSD whose metadata does not name it. Then no FLUSH may
 * say that it is durable, until it was destaged or overwritten.
 */
static bool dirty_lost(struct cache *cache)
{
	u64 valid, dirty;

	lines_count(&cache->lines, &valid, &dirty);
	return dirty;
}

static void end_bios(struct cache *cache, struct bio_list *bios, int commit_error,
		     int array_error, bool failed_before)
{
	struct bio *bio;

	while ((bio = bio_list_pop(bios))) {
		int r = commit_error;

		if (bio->bi_opf & REQ_PREFLUSH) {
			if (failed_before && !dirty_lost(cache))
				r = 0;
			if (!r)
				r = array_error;
		}
		io_finish(io_of(bio), errno_to_blk_status(r));
	}
}

static bool wants_array_flush(struct bio_list *bios)
{
	struct bio *bio;

	bio_list_for_each(bio, bios)
		if (bio->bi_opf & REQ_PREFLUSH)
			return true;
	return false;
}

/* All that is asked for by now, in one commit. */
static void commit_round(struct cache *cache, struct bio_list *end,
			 struct bio_list *route, struct list_head *waiters)
{
	bool failed_before = cache_state(cache) == STATE_FAILED;
	struct commit_waiter *waiter, *next;
	int r, array_error = 0;

	if (wants_array_flush(end)) {
		/* Without its SSD the cache knows nothing: it asks the array. */
		array_error = failed_before ?
			      blkdev_issue_flush(cache->array->bdev) :
			      array_flush(cache);
		if (xchg(&cache->array_flush_failed, false))
			array_error = -EIO;
	}
	r = commit_now(cache);
	end_bios(cache, end, r, array_error, failed_before);
	io_route_woken(cache, route);
	list_for_each_entry_safe(waiter, next, waiters, node) {
		waiter->error = r;
		complete(&waiter->done);
	}
}

/* Whether to commit again; commit_lock is held. */
static bool round_due(struct cache *cache, bool timer)
{
	if (cache->commit_stopped)
		return false;
	if (cache->commit_asked)
		return true;
	/* What nobody asked for. */
	return timer && !bittree_empty(&cache->lines.pending);
}

static void commit_worker(struct work_struct *work)
{
	struct cache *cache = container_of(to_delayed_work(work), struct cache,
					   commit_work);
	bool timer = true;

	spin_lock_irq(&cache->commit_lock);
	while (round_due(cache, timer)) {
		struct bio_list end = cache->commit_end;
		struct bio_list route = cache->commit_route;
		LIST_HEAD(waiters);

		bio_list_init(&cache->commit_end);
		bio_list_init(&cache->commit_route);
		list_splice_init(&cache->commit_waiters, &waiters);
		timer = false;
		cache->commit_asked = false;
		cache->commit_running = true;
		spin_unlock_irq(&cache->commit_lock);
		commit_round(cache, &end, &route, &waiters);
		spin_lock_irq(&cache->commit_lock);
	}
	cache->commit_running = false;
	if (!cache->commit_stopped)
		queue_delayed_work(cache->commit_wq, &cache->commit_work,
				   COMMIT_INTERVAL);
	spin_unlock_irq(&cache->commit_lock);
}

/**
 * commit_start() - lets commits begin
 * @cache: metadata is loaded
 */
void commit_start(struct cache *cache)
{
	spin_lock_irq(&cache->commit_lock);
	cache->commit_stopped = false;
	spin_unlock_irq(&cache->commit_lock);
	commit_soon(cache);
}

/**
 * commit_stop() - lets no commit begin and waits for the one under way
 * @cache: no I/O is in flight and nobody waits for a commit
 */
void commit_stop(struct cache *cache)
{
	spin_lock_irq(&cache->commit_lock);
	cache->commit_stopped = true;
	spin_unlock_irq(&cache->commit_lock);
	cancel_delayed_work_sync(&cache->commit_work);
}

/**
 * commit_init() - prepares for commits; none begins before commit_start()
 * @cache: commit_exit() ends it, after an error too
 *
 * Return: 0 or -ENOMEM.
 */
int commit_init(struct cache *cache)
{
	spin_lock_init(&cache->commit_lock);
	bio_list_init(&cache->commit_end);
	bio_list_init(&cache->commit_route);
	INIT_LIST_HEAD(&cache->commit_waiters);
	INIT_DELAYED_WORK(&cache->commit_work, commit_worker);
	cache->commit_stopped = true;
	cache->commit_wq = alloc_workqueue("ssdcache-commit",
					   WQ_MEM_RECLAIM | WQ_HIGHPRI, 1);
	return cache->commit_wq ? 0 : -ENOMEM;
}

/**
 * commit_exit() - frees what commit_init() allocated
 * @cache: commits are stopped
 */
void commit_exit(struct cache *cache)
{
	if (cache->commit_wq)
		destroy_workqueue(cache->commit_wq);
}
