// SPDX-License-Identifier: GPL-2.0
/*
 * Releases of slots: keeps some free whose release is durable, so that no write
 * waits for one (R1).
 *
 * Owns the work item that evicts; what it evicts belongs to the commit worker
 * next, see lines_committed().
 */
#include "dm-ssdcache.h"

/* Steps of the policy's hand before others get the CPU. */
#define RELEASE_STEPS	16384u

static bool release_one(struct cache *cache)
{
	struct line_table *table = &cache->lines;
	struct cache_line *l;
	struct stripe *stripe;
	unsigned long flags;
	bool done = false;
	slot_t slot;

	spin_lock_irq(&cache->policy_lock);
	slot = policy_victim(&cache->policy);
	spin_unlock_irq(&cache->policy_lock);
	if (slot == NO_SLOT)
		return false;
	l = slot_line(table, slot);
	for (;;) {
		line_t line = line_of(l);

		stripe = lines_lock(table, line, &flags);
		if (line_of(l) == line)
			break;
		lines_unlock(stripe, flags);
	}
	if (READ_ONCE(l->tag) & LINE_USED)
		done = line_release(table, l);
	if (done)
		policy_remove(&cache->policy, slot);
	lines_unlock(stripe, flags);
	return done;
}

static void release_worker(struct work_struct *work)
{
	struct cache *cache = container_of(work, struct cache, release_work);
	u32 steps = min_t(u64, RELEASE_STEPS,
			  8 * super_nr_slots(&cache->md.super));
	bool any = false;

	while (steps-- && slots_free(&cache->lines) < cache->free_high)
		any |= release_one(cache);
	if (any)
		commit_soon(cache);
	if (slots_free(&cache->lines) < cache->free_low)
		writeback_press(cache);
}

/**
 * release_check() - has slots released if few are free
 * @cache: the cache
 *
 * Context: any; a stripe's lock may be held.
 */
void release_check(struct cache *cache)
{
	if (unlikely(slots_free(&cache->lines) < cache->free_low) &&
	    !READ_ONCE(cache->suspending) &&
	    cache_state(cache) == STATE_RUNNING)
		queue_work(cache->fill_wq, &cache->release_work);
}

/**
 * release_stop() - waits for the end of releases under way
 * @cache: is being suspended, so none begins
 */
void release_stop(struct cache *cache)
{
	cancel_work_sync(&cache->release_work);
}

/**
 * release_init() - prepares for releases
 * @cache: the number of slots is known
 */
void release_init(struct cache *cache)
{
	u64 nr_slots = super_nr_slots(&cache->md.super);

	INIT_WORK(&cache->release_work, release_worker);
	cache->free_low = clamp_t(u64, nr_slots / 64, 1, 1024);
	cache->free_high = 2 * cache->free_low;
}
