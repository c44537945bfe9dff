// SPDX-License-Identifier: GPL-2.0
/*
 * The I/O path of dm-ssdcache: where a bio goes, and what its completion means.
 *
 * Owns the bios from map to completion, the worker that routes those that had to
 * wait, and discards. State of lines is guarded by their stripe's lock, the lists
 * of bios by locks of their own. io_map() runs where dm calls it and never
 * sleeps, completions run in any context, the workers may sleep in allocations
 * only. Documentation/design.rst tells the life of each kind of I/O.
 */
#include <linux/delay.h>

#include "dm-ssdcache.h"

#define PIECES_MIN	64u
/* So many writes that failed on the SSD, and no more is let in. */
#define REDIRECTS_MAX	16

static void piece_end_bio(struct bio *bio);

/**
 * io_of() - the I/O that a bio on one of the lists stands for
 * @bio: from above, or a piece
 */
struct cache_io *io_of(struct bio *bio)
{
	if (bio->bi_end_io == piece_end_bio)
		return &container_of(bio, struct io_piece, bio)->io;
	return bio_io(bio);
}

/* The bio that waits when an I/O has to: a piece is made anew later. */
static struct bio *io_waiter(struct cache_io *io)
{
	return io->parent && !io->redirect ? io->parent->bio : io->bio;
}

/*---- Spans ----*/

static u32 line_sectors(const struct cache *cache)
{
	return 1u << cache->line_shift;
}

/* Which blocks of which line the bio touches; it does not cross a line. */
static void io_span(struct cache_io *io, const struct bio *bio)
{
	const struct cache *cache = io->cache;
	sector_t sector = bio->bi_iter.bi_sector;
	unsigned int start = sector & (line_sectors(cache) - 1);
	unsigned int end = start + bio_sectors(bio);
	unsigned int first = start >> BLOCK_SECTOR_SHIFT;
	unsigned int last = (end - 1) >> BLOCK_SECTOR_SHIFT;
	unsigned int whole_first = DIV_ROUND_UP(start, BLOCK_SECTORS);
	unsigned int whole_end = end >> BLOCK_SECTOR_SHIFT;

	/* The array may end inside its last block. */
	if (sector + bio_sectors(bio) == cache->nr_sectors)
		whole_end = DIV_ROUND_UP(end, BLOCK_SECTORS);
	io->line = to_line(sector >> cache->line_shift);
	io->nr_blocks = last - first + 1;
	io->touched = blocks_mask(first, io->nr_blocks);
	io->whole = whole_end > whole_first ?
		    blocks_mask(whole_first, whole_end - whole_first) : 0;
}

/*
 * Cuts the I/O after the blocks from its first on that are alike in @blocks.
 * Returns whether these are in @blocks.
 */
static bool io_cut(struct cache_io *io, u64 blocks)
{
	struct bio *bio = io->bio;
	unsigned int first = __ffs64(io->touched);
	bool in = blocks & BIT_ULL(first);
	u64 other = io->touched & (in ? ~blocks : blocks);
	unsigned int start, sectors;

	if (likely(!other))
		return in;
	if (io->uncut) {
		io->cut = true;
		return in;
	}
	start = bio->bi_iter.bi_sector & (line_sectors(io->cache) - 1);
	sectors = (__ffs64(other) << BLOCK_SECTOR_SHIFT) - start;
	if (io->in_map)
		dm_accept_partial_bio(bio, sectors);
	else
		bio->bi_iter.bi_size = sectors << SECTOR_SHIFT;
	io_span(io, bio);
	return in;
}

static void remap_ssd(struct cache_io *io)
{
	struct cache *cache = io->cache;
	struct bio *bio = io->bio;
	slot_t slot = line_slot(&cache->lines, io->l);

	io->iter = bio->bi_iter;
	bio_set_dev(bio, cache->ssd->bdev);
	bio->bi_iter.bi_sector = slot_to_sector(&cache->md.super, slot) +
		(bio->bi_iter.bi_sector & (line_sectors(cache) - 1));
}

static void remap_array(struct cache_io *io)
{
	io->iter = io->bio->bi_iter;
	bio_set_dev(io->bio, io->cache->array->bdev);
}

/*---- Waiting ----*/

/* What becomes of an I/O that is routed. */
enum routed {
	ROUTED_SUBMIT,		/* remapped; the caller submits it */
	ROUTED_QUEUED,		/* waits; not the caller's any more */
	ROUTED_END,		/* io->status says how it ended */
	ROUTED_WAIT_COMMIT,	/* decided under the lock only: see route_act() */
	ROUTED_WAIT_TURN,	/* likewise */
	ROUTED_CUT,		/* must be cut, and must not be: nothing done */
};

static void defer(struct cache *cache, struct bio *bio)
{
	unsigned long flags;

	spin_lock_irqsave(&cache->deferred_lock, flags);
	bio_list_add(&cache->deferred, bio);
	spin_unlock_irqrestore(&cache->deferred_lock, flags);
	queue_work(cache->wq, &cache->worker);
}

/**
 * io_route_later() - has bios routed anew that waited for something
 * @cache: the cache
 * @bios: from a conflict or the commit worker; empty on return
 *
 * Context: any.
 */
void io_route_later(struct cache *cache, struct bio_list *bios)
{
	unsigned long flags;

	if (bio_list_empty(bios))
		return;
	spin_lock_irqsave(&cache->deferred_lock, flags);
	bio_list_merge(&cache->deferred, bios);
	spin_unlock_irqrestore(&cache->deferred_lock, flags);
	bio_list_init(bios);
	queue_work(cache->wq, &cache->worker);
}

/* Has an I/O wait for the end of a conflict; the stripe's lock is held. */
static enum routed wait_conflict(struct cache_io *io, struct conflict *conflict)
{
	bio_list_add(&conflict->waiting, io_waiter(io));
	return ROUTED_QUEUED;
}

static void count_write(struct cache_io *io)
{
	struct cache *cache = io->cache;

	if (io->hit) {
		stat_inc(cache, write_hits);
		stat_add(cache, write_hit_blocks, io->nr_blocks);
	} else {
		stat_inc(cache, write_misses);
		stat_add(cache, write_miss_blocks, io->nr_blocks);
	}
}

/* Does what was decided under the stripe's lock, which is not held any more. */
static enum routed route_act(struct cache_io *io, enum routed routed)
{
	struct cache *cache = io->cache;

	if (routed == ROUTED_WAIT_COMMIT) {
		commit_bio(cache, io_of(io_waiter(io)), true);
		return ROUTED_QUEUED;
	}
	if (routed == ROUTED_WAIT_TURN) {
		defer(cache, io_waiter(io));
		return ROUTED_QUEUED;
	}
	if (routed != ROUTED_SUBMIT)
		return routed;

	switch (io->kind) {
	case IO_READ_HIT:
		policy_hit(&cache->policy, line_slot(&cache->lines, io->l));
		stat_inc(cache, read_hits);
		stat_add(cache, read_hit_blocks, io->nr_blocks);
		remap_ssd(io);
		break;
	case IO_READ_ARRAY:
		stat_inc(cache, read_misses);
		stat_add(cache, read_miss_blocks, io->nr_blocks);
		remap_array(io);
		break;
	case IO_WRITE_SSD:
	case IO_BOTH:
		policy_hit(&cache->policy, line_slot(&cache->lines, io->l));
		count_write(io);
		remap_ssd(io);
		break;
	default:
		count_write(io);
		stat_inc(cache, bypassed);
		stat_add(cache, bypassed_blocks, io->nr_blocks);
		remap_array(io);
		break;
	}
	return ROUTED_SUBMIT;
}

/*---- The array's write cache ----*/

/**
 * array_written() - a write to the array has completed, before it is reported
 * @cache: the cache
 *
 * Context: any.
 */
void array_written(struct cache *cache)
{
	atomic64_inc(&cache->array_writes);
}

static bool array_unflushed(struct cache *cache)
{
	return atomic64_read(&cache->array_writes) !=
	       atomic64_read(&cache->array_flushed);
}

static void array_flushed(struct cache *cache, s64 seq)
{
	s64 old = atomic64_read(&cache->array_flushed);

	while (old < seq &&
	       !atomic64_try_cmpxchg(&cache->array_flushed, &old, seq))
		;
}

/**
 * array_flush() - makes durable what reached the array
 * @cache: the cache
 *
 * Does nothing if nothing did since the last time (R8). A failure is also
 * reported by the next FLUSH from above, whose data may be concerned.
 * Context: may sleep. Return: 0 or a negative error.
 */
int array_flush(struct cache *cache)
{
	s64 seq = atomic64_read(&cache->array_writes);
	int r;

	if (seq == atomic64_read(&cache->array_flushed))
		return 0;
	r = blkdev_issue_flush(cache->array->bdev);
	if (r) {
		stat_inc(cache, array_errors);
		WRITE_ONCE(cache->array_flush_failed, true);
		return r;
	}
	array_flushed(cache, seq);
	return 0;
}

/*---- Reads ----*/

static bool may_fill(struct cache *cache, struct stripe *stripe,
		     const struct cache_line *l)
{
	if (cache_state(cache) != STATE_RUNNING ||
	    cache_mode(cache) == MODE_PASSTHROUGH ||
	    READ_ONCE(cache->suspending) || READ_ONCE(cache->frozen) ||
	    atomic_read(&cache->nr_discards))
		return false;
	if (!l)
		return true;
	return !line_is(l, LINE_RELEASING | LINE_FILLING | LINE_DESTAGING) &&
	       !line_writers(l, 0) && !line_writers(l, 1);
}

/* What a miss should fetch; 0 for nothing. */
static u64 fill_wanted(struct cache_io *io, const struct cache_line *l)
{
	struct cache *cache = io->cache;
	u64 line_blocks = super_line_blocks(&cache->md.super, io->line);
	u64 missed = l ? io->touched & ~l->valid : io->touched;
	u64 want = 0;

	spin_lock(&cache->policy_lock);
	if (!policy_is_stream(&cache->policy, io->bio->bi_iter.bi_sector,
			      bio_sectors(io->bio)))
		want = policy_fill_size(&cache->policy, io->line, missed,
					line_blocks);
	spin_unlock(&cache->policy_lock);
	return l ? want & ~l->valid : want;
}

static struct cache_line *new_line(struct cache *cache, line_t line)
{
	slot_t slot = slot_alloc(&cache->lines);
	struct cache_line *l;

	release_check(cache);
	if (slot == NO_SLOT)
		return NULL;
	l = line_insert(&cache->lines, slot, line);
	spin_lock(&cache->policy_lock);
	policy_insert(&cache->policy, slot);
	spin_unlock(&cache->policy_lock);
	return l;
}

static void begin_fill(struct cache_io *io, struct stripe *stripe,
		       struct cache_line *l)
{
	struct cache *cache = io->cache;
	struct fill *fill;
	u64 want;

	if (!may_fill(cache, stripe, l))
		return;
	want = fill_wanted(io, l) & ~conflict_bypassed(stripe, io->line);
	if (!want)
		return;
	fill = fill_get(cache, want);
	if (!fill)
		return;
	if (!l)
		l = new_line(cache, io->line);
	if (!l) {
		fill_put(fill);
		return;
	}
	fill_begin(fill, stripe, l, io->line);
	io->fill = fill;
}

static enum routed read_hit(struct cache_io *io, struct cache_line *l)
{
	/* Too many at once: again when the worker comes to it. */
	if (!line_get_reader(l))
		return ROUTED_WAIT_TURN;
	io->l = l;
	io->kind = IO_READ_HIT;
	return ROUTED_SUBMIT;
}

static enum routed read_array(struct cache_io *io, struct stripe *stripe,
			      struct cache_line *l)
{
	io->kind = IO_READ_ARRAY;
	io->fill = NULL;
	/* The fill needs the bio back before it ends: only from map. */
	if (io->in_map)
		begin_fill(io, stripe, l);
	return ROUTED_SUBMIT;
}

static enum routed decide_read(struct cache_io *io, struct stripe *stripe)
{
	struct cache *cache = io->cache;
	struct cache_line *l = line_find(&cache->lines, io->line);
	u64 valid = l ? l->valid : 0;

	/* Clean blocks are the same on the array, dirty ones are not. */
	if (unlikely(cache_state(cache) == STATE_FAILED ||
		     cache_mode(cache) == MODE_PASSTHROUGH))
		valid = l ? l->dirty : 0;
	if (likely(!(io->touched & ~valid)))
		return read_hit(io, l);
	if (l && io->touched & l->dirty && io_cut(io, valid))
		return read_hit(io, l);
	return read_array(io, stripe, l);
}

static enum routed route_read(struct cache_io *io)
{
	struct stripe *stripe;
	enum routed routed;
	unsigned long flags;

	io_span(io, io->bio);
	stripe = lines_lock(&io->cache->lines, io->line, &flags);
	routed = decide_read(io, stripe);
	lines_unlock(stripe, flags);
	return route_act(io, routed);
}

/*---- Writes ----*/

/* All that decides about writes is called with the stripe's lock held. */

static enum routed write_bypass(struct cache_io *io, struct stripe *stripe,
				struct cache_line *l, bool dropped_is_safe)
{
	struct cache *cache = io->cache;
	struct conflict *conflict;

	/* What left the valid map may still be valid on the SSD (R6). */
	if (l && !dropped_is_safe && cache_state(cache) != STATE_FAILED &&
	    line_is(l, LINE_DROPPED | LINE_DROP_COMMITTING | LINE_RELEASING))
		return ROUTED_WAIT_COMMIT;
	if (stripe->nr_conflicts) {
		/* The older data must not reach the array after the newer. */
		conflict = conflict_overlap(stripe, io->line, CONFLICT_DESTAGE,
					    io->touched);
		if (!conflict)
			conflict = conflict_overlap(stripe, io->line,
						    CONFLICT_BOTH, io->touched);
		if (conflict)
			return wait_conflict(io, conflict);
		conflict = conflict_find(stripe, io->line, CONFLICT_FILL);
		if (conflict)
			conflict->spoiled |= io->touched;
	}
	conflict_add(stripe, &io->conflict, CONFLICT_BYPASS, io->line,
		     io->touched);
	io->kind = IO_BYPASS;
	io->hit = false;
	return ROUTED_SUBMIT;
}

/* Write-around and pass-through: what is in the cache is dropped. */
static enum routed write_around(struct cache_io *io, struct stripe *stripe,
				struct cache_line *l)
{
	struct cache *cache = io->cache;

	if (l && line_is(l, LINE_RELEASING))
		return ROUTED_WAIT_COMMIT;
	if (l && l->valid & io->touched) {
		line_open(&cache->lines, l);
		if (line_is(l, LINE_DISK_CLOSED))
			return ROUTED_WAIT_COMMIT;
		line_drop(&cache->lines, l, io->touched);
	}
	/* An open line's blocks are all dropped after a crash. */
	return write_bypass(io, stripe, l, l && !line_is(l, LINE_DISK_CLOSED));
}

/*
 * The SSD's metadata can not be written, nobody will believe it again. Dirty
 * blocks that are overwritten wholly need it no more.
 */
static enum routed write_failed(struct cache_io *io, struct stripe *stripe,
				struct cache_line *l)
{
	struct cache *cache = io->cache;
	struct conflict *conflict;

	if (!l || !(l->valid & io->touched))
		return write_bypass(io, stripe, l, true);
	if (l->dirty & io->touched & ~io->whole) {
		io->status = BLK_STS_IOERR;
		return ROUTED_END;
	}
	conflict = conflict_overlap(stripe, io->line, CONFLICT_DESTAGE,
				    io->touched);
	if (conflict)
		return wait_conflict(io, conflict);
	line_drop(&cache->lines, l, io->touched);
	return write_bypass(io, stripe, l, true);
}

static bool admit_write(struct cache_io *io)
{
	struct cache *cache = io->cache;
	bool stream;

	spin_lock(&cache->policy_lock);
	stream = policy_is_stream(&cache->policy, io->bio->bi_iter.bi_sector,
				  bio_sectors(io->bio));
	spin_unlock(&cache->policy_lock);
	return !stream;
}

/*
 * Conflicts of a write that goes through the cache. Returns one that must be
 * waited for, or NULL; blocks that must bypass too are removed from @usable.
 */
static struct conflict *write_conflicts(struct cache_io *io,
					struct stripe *stripe,
					const struct cache_line *l, u64 *usable)
{
	struct conflict *conflict;

	list_for_each_entry(conflict, &stripe->conflicts, node) {
		if (conflict->line != io->line)
			continue;
		switch (conflict->kind) {
		case CONFLICT_BOTH:
			if (conflict->blocks & io->touched)
				return conflict;
			break;
		case CONFLICT_BYPASS:
			*usable &= ~(conflict->blocks & ~(l ? l->valid : 0));
			break;
		case CONFLICT_FILL:
			if (conflict->writing & io->touched)
				return conflict;
			conflict->spoiled |= io->touched;
			break;
		case CONFLICT_DESTAGE:
			/* Else a drain would never be done with the block. */
			if (READ_ONCE(io->cache->write_both) &&
			    conflict->blocks & io->touched)
				return conflict;
			conflict->spoiled |= io->touched;
			break;
		}
	}
	return NULL;
}

/* Through the cache: the line is there, open, and nothing is in the way. */
static enum routed write_ssd(struct cache_io *io, struct stripe *stripe,
			     struct cache_line *l)
{
	struct cache *cache = io->cache;
	/* Only the worker can write to both; what map began stays as it was. */
	bool both = !io->in_map && (READ_ONCE(cache->write_both) ||
				    cache_mode(cache) == MODE_WRITETHROUGH);

	io->epoch = line_epoch(l);
	if (!line_get_writer(l))
		return ROUTED_WAIT_TURN;
	io->l = l;
	io->kind = both ? IO_BOTH : IO_WRITE_SSD;
	io->hit = !(io->touched & ~l->valid);
	if (io->bio->bi_opf & REQ_FUA && cache_mode(cache) == MODE_WRITEBACK) {
		/* Durably dirty already: FUA is all it needs (R8). */
		io->need_commit = io->touched & ~l->dirty || both ||
			line_is(l, LINE_PENDING | LINE_COMMITTING);
	}
	if (both)
		conflict_add(stripe, &io->conflict, CONFLICT_BOTH, io->line,
			     io->touched);
	return ROUTED_SUBMIT;
}

static enum routed write_cached(struct cache_io *io, struct stripe *stripe,
				struct cache_line *l)
{
	struct cache *cache = io->cache;
	u64 usable = l ? l->valid | io->whole : io->whole;
	struct conflict *conflict;
	bool cached;

	if (l && line_is(l, LINE_RELEASING))
		return ROUTED_WAIT_COMMIT;
	/* Degraded: what is there is kept up to date, no more is added. */
	if (unlikely(cache_state(cache) != STATE_RUNNING))
		usable = l ? l->valid : 0;
	if (stripe->nr_conflicts) {
		conflict = write_conflicts(io, stripe, l, &usable);
		if (conflict)
			return wait_conflict(io, conflict);
	}
	cached = io_cut(io, usable);
	if (io->cut)
		return ROUTED_CUT;
	if (!cached)
		return write_bypass(io, stripe, l, false);
	if (!l && admit_write(io))
		l = new_line(cache, io->line);
	if (!l)
		return write_bypass(io, stripe, l, false);
	line_open(&cache->lines, l);
	if (line_is(l, LINE_DISK_CLOSED))
		return ROUTED_WAIT_COMMIT;
	return write_ssd(io, stripe, l);
}

/* Whether only the worker may route writes. */
static bool must_defer(struct cache *cache)
{
	return READ_ONCE(cache->slow_writes) || atomic_read(&cache->nr_discards);
}

static enum routed decide_write(struct cache_io *io, struct stripe *stripe)
{
	struct cache *cache = io->cache;
	struct cache_line *l = line_find(&cache->lines, io->line);

	/* Interrupts are off: freeze_writes() waits for this section. */
	if ((io->in_map || io->uncut) && unlikely(must_defer(cache)))
		return ROUTED_WAIT_TURN;
	if (unlikely(cache_state(cache) == STATE_FAILED))
		return write_failed(io, stripe, l);
	switch (cache_mode(cache)) {
	case MODE_WRITEBACK:
	case MODE_WRITETHROUGH:
		return write_cached(io, stripe, l);
	default:
		return write_around(io, stripe, l);
	}
}

static enum routed route_write(struct cache_io *io)
{
	struct stripe *stripe;
	enum routed routed;
	unsigned long flags;

	io_span(io, io->bio);
	stripe = lines_lock(&io->cache->lines, io->line, &flags);
	routed = decide_write(io, stripe);
	lines_unlock(stripe, flags);
	return route_act(io, routed);
}

/*---- Discards ----*/

struct discard {
	struct list_head node;
	line_t first, last;
	struct bio_list waiting;
};

/**
 * io_discarding() - whether a discard of a line is under way
 * @cache: the cache
 * @line: of the array
 *
 * Context: any; a stripe's lock may be held.
 */
bool io_discarding(struct cache *cache, line_t line)
{
	struct discard *discard;
	unsigned long flags;
	bool found = false;

	if (likely(!atomic_read(&cache->nr_discards)))
		return false;
	spin_lock_irqsave(&cache->discard_lock, flags);
	list_for_each_entry(discard, &cache->discards, node)
		if (line_nr(discard->first) <= line_nr(line) &&
		    line_nr(line) <= line_nr(discard->last))
			found = true;
	spin_unlock_irqrestore(&cache->discard_lock, flags);
	return found;
}

static bool wait_discard(struct cache *cache, struct bio *bio)
{
	line_t line = to_line(bio->bi_iter.bi_sector >> cache->line_shift);
	struct discard *discard;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&cache->discard_lock, flags);
	list_for_each_entry(discard, &cache->discards, node) {
		if (line_nr(discard->first) <= line_nr(line) &&
		    line_nr(line) <= line_nr(discard->last)) {
			bio_list_add(&discard->waiting, bio);
			found = true;
			break;
		}
	}
	spin_unlock_irqrestore(&cache->discard_lock, flags);
	return found;
}

static void discard_list(struct cache *cache, struct discard *discard)
{
	unsigned long flags;

	bio_list_init(&discard->waiting);
	spin_lock_irqsave(&cache->discard_lock, flags);
	list_add_tail(&discard->node, &cache->discards);
	atomic_inc(&cache->nr_discards);
	spin_unlock_irqrestore(&cache->discard_lock, flags);
}

static void discard_unlist(struct cache *cache, struct discard *discard)
{
	unsigned long flags;

	spin_lock_irqsave(&cache->discard_lock, flags);
	list_del(&discard->node);
	atomic_dec(&cache->nr_discards);
	spin_unlock_irqrestore(&cache->discard_lock, flags);
	io_route_later(cache, &discard->waiting);
}

/*
 * Drops the blocks of a line. False if a destage or a write to both devices has
 * some of them on their way to the array: that must be there before, or the two
 * devices end up with different winners.
 */
static bool discard_line(struct cache *cache, line_t line, u64 blocks)
{
	struct conflict *conflict;
	struct cache_line *l;
	struct stripe *stripe;
	unsigned long flags;
	bool done = true;

	stripe = lines_lock(&cache->lines, line, &flags);
	l = line_find(&cache->lines, line);
	if (conflict_overlap(stripe, line, CONFLICT_BOTH, blocks))
		done = false;
	if (l && line_is(l, LINE_FILLING)) {
		conflict = conflict_find(stripe, line, CONFLICT_FILL);
		if (conflict->writing & blocks)
			done = false;
		else
			conflict->spoiled |= blocks;
	}
	if (l && line_is(l, LINE_DESTAGING) && blocks & l->dirty &&
	    conflict_overlap(stripe, line, CONFLICT_DESTAGE, blocks))
		done = false;
	if (l && done)
		line_drop(&cache->lines, l, blocks);
	lines_unlock(stripe, flags);
	return done;
}

static u64 line_part(const struct cache *cache, line_t line, sector_t start,
		     sector_t end)
{
	sector_t from = line_nr(line) << cache->line_shift;
	sector_t to = from + line_sectors(cache);

	start = max(start, from) - from;
	end = min(end, to) - from;
	return blocks_mask(start >> BLOCK_SECTOR_SHIFT,
			   DIV_ROUND_UP_ULL(end, BLOCK_SECTORS) -
			   (start >> BLOCK_SECTOR_SHIFT));
}

/**
 * io_drop_range() - drops whole blocks from the cache, durably
 * @cache: the cache
 * @start: first sector, a multiple of the block size
 * @end: sector after the last, likewise, or the end of the target
 *
 * Data that is only on the SSD is lost. Only lines in the cache cost work where
 * the range is longer than the cache.
 *
 * Context: may sleep. Return: 0 or the error of the commit.
 */
int io_drop_range(struct cache *cache, sector_t start, sector_t end)
{
	line_t first = to_line(start >> cache->line_shift);
	line_t last = to_line((end - 1) >> cache->line_shift);
	u64 nr_slots = super_nr_slots(&cache->md.super);
	u64 nr;

	if (line_nr(last) - line_nr(first) < nr_slots) {
		for (nr = line_nr(first); nr <= line_nr(last); nr++) {
			u64 blocks = line_part(cache, to_line(nr), start, end);

			while (!discard_line(cache, to_line(nr), blocks))
				fsleep(1000);
			cond_resched();
		}
	} else {
		for (nr = 0; nr < nr_slots; nr++) {
			const struct cache_line *l = &cache->lines.lines[nr];
			line_t line = line_of(l);

			if (!(READ_ONCE(l->tag) & LINE_USED) ||
			    line_nr(line) < line_nr(first) ||
			    line_nr(line) > line_nr(last))
				continue;
			while (!discard_line(cache, line,
					     line_part(cache, line, start, end)))
				fsleep(1000);
			cond_resched();
		}
	}
	return commit_needed(cache) ? commit_wait(cache) : 0;
}

static void do_discard(struct cache *cache, struct bio *bio)
{
	struct cache_io *io = bio_io(bio);
	sector_t start = round_up(bio->bi_iter.bi_sector, BLOCK_SECTORS);
	sector_t end = bio_end_sector(bio);
	struct discard discard;
	int r = 0;

	if (end != cache->nr_sectors)
		end = round_down(end, BLOCK_SECTORS);
	if (start >= end) {
		io_finish(io, BLK_STS_OK);
		return;
	}
	discard.first = to_line(start >> cache->line_shift);
	discard.last = to_line((end - 1) >> cache->line_shift);
	discard_list(cache, &discard);
	if (cache_state(cache) != STATE_FAILED)
		r = io_drop_range(cache, start, end);
	/*
	 * A discard is a hint: one that can not be recorded is left out, the
	 * data stays as it was on the SSD or becomes the array's.
	 */
	if (!r && cache->discard_passdown &&
	    bdev_max_discard_sectors(cache->array->bdev))
		r = blkdev_issue_discard(cache->array->bdev, start, end - start,
					 GFP_NOIO);
	if (!r)
		array_written(cache);
	discard_unlist(cache, &discard);
	io_finish(io, BLK_STS_OK);
}

static void discard_worker(struct work_struct *work)
{
	struct cache *cache = container_of(work, struct cache, discard_work);
	struct bio_list bios = BIO_EMPTY_LIST;
	struct bio *bio;

	/* thaw_writes() queues this work again. */
	if (READ_ONCE(cache->frozen))
		return;
	spin_lock_irq(&cache->deferred_lock);
	bio_list_merge(&bios, &cache->discards_deferred);
	bio_list_init(&cache->discards_deferred);
	spin_unlock_irq(&cache->deferred_lock);
	while ((bio = bio_list_pop(&bios)))
		do_discard(cache, bio);
}

/*---- Completion ----*/

/* A bio that must not wait met a full queue: nothing was done. */
static bool would_block(const struct cache_io *io, blk_status_t status)
{
	return status == BLK_STS_AGAIN && io->bio->bi_opf & REQ_NOWAIT;
}

static void io_put(struct cache_io *io)
{
	if (atomic_dec_and_test(&io->pending))
		io_finish(io, io->status);
}

/**
 * io_finish() - ends an I/O that its completion had held back
 * @io: not on any list
 * @status: how it ended
 *
 * Context: any.
 */
void io_finish(struct cache_io *io, blk_status_t status)
{
	struct cache_io *parent = io->parent;
	struct bio *bio = io->bio;

	if (!parent) {
		io->kind = IO_PLAIN;
		io->status = status;
		bio->bi_status = status;
		bio_endio(bio);
		return;
	}
	if (status)
		parent->status = status;
	bio_put(bio);
	io_put(parent);
}

static void redirect(struct cache_io *io)
{
	io->redirect = true;
	io->bio->bi_iter = io->iter;
	io->bio->bi_status = BLK_STS_OK;
	defer(io->cache, io->bio);
}

static void put_writer(struct cache *cache, struct cache_io *io)
{
	struct cache_line *l = io->l;

	line_put_writer(l, io->epoch);
	if (unlikely(line_is(l, LINE_DESTAGING)) &&
	    io->epoch != line_epoch(l) && !line_writers(l, io->epoch))
		writeback_wake(cache);
}

static bool read_hit_end(struct cache_io *io, blk_status_t status)
{
	struct cache *cache = io->cache;
	struct cache_line *l = io->l;
	struct stripe *stripe;
	unsigned long flags;
	bool lost;

	stripe = lines_lock(&cache->lines, io->line, &flags);
	line_put_reader(l);
	lost = l->dirty & io->touched;
	/* With a writer in flight the block may become dirty: it stays. */
	if (unlikely(status) && !would_block(io, status) && !lost &&
	    !line_writers(l, 0) && !line_writers(l, 1) &&
	    !line_is(l, LINE_DESTAGING | LINE_FILLING))
		line_drop(&cache->lines, l, io->touched);
	lines_unlock(stripe, flags);
	if (likely(!status) || would_block(io, status))
		return true;
	stat_inc(cache, ssd_read_errors);
	if (lost)
		return true;
	redirect(io);
	return false;
}

static bool write_ssd_end(struct cache_io *io, blk_status_t status)
{
	struct cache *cache = io->cache;
	struct cache_line *l = io->l;
	struct stripe *stripe;
	unsigned long flags;
	bool lost = false;

	stripe = lines_lock(&cache->lines, io->line, &flags);
	if (likely(!status)) {
		/* Dropped meanwhile, since another write of it failed. */
		lost = io->touched & ~io->whole & ~l->valid &&
		       READ_ONCE(cache->ssd_write_failed);
		if (likely(!lost)) {
			line_add_valid(&cache->lines, l, io->touched);
			line_add_dirty(&cache->lines, l, io->touched);
		}
	} else if (!would_block(io, status)) {
		WRITE_ONCE(cache->ssd_write_failed, true);
		line_drop(&cache->lines, l, io->touched & ~l->dirty);
	}
	put_writer(cache, io);
	lines_unlock(stripe, flags);
	if (unlikely(would_block(io, status)))
		return true;
	if (unlikely(status || lost)) {
		if (status)
			stat_inc(cache, ssd_write_errors);
		redirect(io);
		return false;
	}
	if (unlikely(io->need_commit)) {
		commit_bio(cache, io, false);
		return false;
	}
	return true;
}

static void bypass_end(struct cache_io *io, blk_status_t status)
{
	struct cache *cache = io->cache;
	struct bio_list waiting = BIO_EMPTY_LIST;
	struct stripe *stripe;
	unsigned long flags;

	if (status && !would_block(io, status))
		stat_inc(cache, array_errors);
	if (unlikely(cache_state(cache) == STATE_FAILED && !status))
		WRITE_ONCE(cache->went_past, true);
	array_written(cache);
	stripe = lines_lock(&cache->lines, io->line, &flags);
	conflict_del(stripe, &io->conflict, &waiting);
	lines_unlock(stripe, flags);
	io_route_later(cache, &waiting);
}

/* One leg of a write to both has ended; true if it was the last. */
static bool both_end(struct cache_io *io)
{
	return atomic_dec_and_test(&io->pending);
}

/*
 * Both legs have ended, io->status is the SSD's. What is dirty stays so: its
 * only sure copy is on the SSD.
 */
static bool both_finish(struct cache_io *io)
{
	struct cache *cache = io->cache;
	struct cache_line *l = io->l;
	struct bio_list waiting = BIO_EMPTY_LIST;
	struct stripe *stripe;
	unsigned long flags;
	bool leaving = cache_mode(cache) == MODE_WRITEBACK;
	bool lost;

	if (io->status)
		stat_inc(cache, ssd_write_errors);
	if (io->array_status)
		stat_inc(cache, array_errors);
	array_written(cache);

	stripe = lines_lock(&cache->lines, io->line, &flags);
	lost = io->touched & l->dirty;
	if (io->status) {
		WRITE_ONCE(cache->ssd_write_failed, true);
		line_drop(&cache->lines, l, io->touched & ~l->dirty);
	} else if (!io->array_status) {
		line_add_valid(&cache->lines, l, io->touched);
	} else if (leaving) {
		line_add_valid(&cache->lines, l, io->touched);
		line_add_dirty(&cache->lines, l, io->touched);
		io->array_status = BLK_STS_OK;
	} else {
		line_drop(&cache->lines, l, io->touched);
	}
	put_writer(cache, io);
	conflict_del(stripe, &io->conflict, &waiting);
	lines_unlock(stripe, flags);
	io_route_later(cache, &waiting);

	/* In write-back mode a dropped block needs its commit before the end. */
	if (io->status && leaving && !lost && !io->array_status) {
		io->status = BLK_STS_OK;
		io->need_commit = true;
	} else if (!io->status || !lost) {
		io->status = io->array_status;
	}
	if (io->need_commit && !io->status) {
		commit_bio(cache, io, false);
		return false;
	}
	return true;
}

/* What a completion means. True if the I/O is over, with io->status. */
static bool io_done(struct cache_io *io, blk_status_t status)
{
	struct cache *cache = io->cache;

	switch (io->kind) {
	case IO_PLAIN:
		break;
	case IO_READ_HIT:
		io->status = status;
		return read_hit_end(io, status);
	case IO_WRITE_SSD:
		io->status = status;
		return write_ssd_end(io, status);
	case IO_READ_ARRAY:
		io->status = status;
		if (unlikely(status) && !would_block(io, status))
			stat_inc(cache, array_errors);
		if (io->fill) {
			fill_read_done(io);
			return false;
		}
		break;
	case IO_BYPASS:
		io->status = status;
		bypass_end(io, status);
		break;
	case IO_BOTH:
		io->status = status;
		return both_end(io) && both_finish(io);
	case IO_FLUSH_ARRAY:
		io->status = status;
		if (status)
			stat_inc(cache, array_errors);
		else
			array_flushed(cache, io->array_seq);
		break;
	}
	return true;
}

/**
 * io_end() - dm's end_io
 * @ti: our target
 * @bio: from io_map(), or ended by io_finish()
 * @error: in: how the device ended it, out: what the user is told
 */
int io_end(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct cache_io *io = bio_io(bio);

	if (io->kind == IO_PLAIN)
		return DM_ENDIO_DONE;
	if (!io_done(io, *error))
		return DM_ENDIO_INCOMPLETE;
	*error = io->status;
	return DM_ENDIO_DONE;
}

static void piece_end_bio(struct bio *bio)
{
	struct cache_io *io = io_of(bio);

	if (io_done(io, bio->bi_status))
		io_finish(io, io->status);
}

/* Of the leg to the array of a write to both. */
static void leg_end_bio(struct bio *bio)
{
	struct cache_io *io = bio->bi_private;

	io->array_status = bio->bi_status;
	bio_put(bio);
	if (both_end(io) && both_finish(io))
		io_finish(io, io->status);
}

/*---- Worker ----*/

static enum routed decide_redirect(struct cache_io *io, struct stripe *stripe)
{
	struct line_table *table = &io->cache->lines;
	struct cache_line *l = line_find(table, io->line);

	if (l && l->dirty & io->touched) {
		io->status = BLK_STS_IOERR;
		return ROUTED_END;
	}
	if (l && !line_is(l, LINE_RELEASING))
		line_drop(table, l, io->touched);
	return write_bypass(io, stripe, l, false);
}

/* Sends a write to the array whose SSD failed, without cutting it. */
static void redirect_write(struct cache_io *io)
{
	struct stripe *stripe;
	enum routed routed;
	unsigned long flags;

	if (atomic_inc_return(&io->cache->nr_redirected) == REDIRECTS_MAX)
		set_state(io->cache, STATE_DEGRADED, "writes to the SSD fail");

	stripe = lines_lock(&io->cache->lines, io->line, &flags);
	routed = decide_redirect(io, stripe);
	lines_unlock(stripe, flags);
	routed = route_act(io, routed);
	if (routed == ROUTED_SUBMIT)
		submit_bio_noacct(io->bio);
	else if (routed == ROUTED_END)
		io_finish(io, io->status);
}

static void redirect_read(struct cache_io *io)
{
	io->kind = IO_READ_ARRAY;
	io->fill = NULL;
	remap_array(io);
	submit_bio_noacct(io->bio);
}

static struct cache_io *piece_alloc(struct cache_io *parent)
{
	struct bio *bio = bio_alloc_clone(parent->bio->bi_bdev, parent->bio,
					  GFP_NOIO, &parent->cache->pieces);
	struct io_piece *piece = container_of(bio, struct io_piece, bio);
	struct cache_io *io = &piece->io;

	memset(io, 0, sizeof(*io));
	bio->bi_end_io = piece_end_bio;
	io->cache = parent->cache;
	io->bio = bio;
	io->parent = parent;
	atomic_set(&io->pending, 1);
	return io;
}

static void submit_both(struct cache_io *io)
{
	struct cache *cache = io->cache;
	struct bio *leg = bio_alloc_clone(cache->array->bdev, io->bio, GFP_NOIO,
					  &cache->pieces);

	leg->bi_iter = io->iter;
	leg->bi_private = io;
	leg->bi_end_io = leg_end_bio;
	atomic_set(&io->pending, 2);
	/* Durable on the array is durable: the line is open. */
	if (cache_mode(cache) != MODE_WRITEBACK)
		io->bio->bi_opf &= ~REQ_FUA;
	submit_bio_noacct(leg);
	dm_submit_bio_remap(io->parent->bio, io->bio);
}

/*
 * A write that waited for a commit, tried as a whole and without allocating
 * anything. False if it must be cut.
 */
static bool route_whole(struct cache *cache, struct bio *bio)
{
	struct cache_io *io = bio_io(bio);
	enum routed routed;

	bio->bi_opf &= ~REQ_NOWAIT;
	io->in_map = false;
	io->uncut = true;
	io->cut = false;
	routed = route_write(io);
	io->uncut = false;
	if (routed == ROUTED_CUT)
		return false;
	if (routed == ROUTED_END) {
		io_finish(io, io->status);
	} else if (routed == ROUTED_SUBMIT && io->kind == IO_WRITE_SSD) {
		dm_submit_bio_remap(bio, NULL);
	} else if (routed == ROUTED_SUBMIT) {
		/* The array may make whoever submits wait. */
		io->routed = true;
		defer(cache, bio);
	}
	return true;
}

/**
 * io_route_woken() - routes bios anew whose commit is durable
 * @cache: the cache
 * @bios: empty on return
 *
 * Context: the commit worker.
 */
void io_route_woken(struct cache *cache, struct bio_list *bios)
{
	struct bio_list later = BIO_EMPTY_LIST;
	struct blk_plug plug;
	struct bio *bio;

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(bios))) {
		struct cache_io *io = io_of(bio);

		/* Pieces and halves of bios are for the worker. */
		if (io->parent || io->redirect || atomic_read(&io->pending) != 1 ||
		    !route_whole(cache, bio))
			bio_list_add(&later, bio);
	}
	blk_finish_plug(&plug);
	io_route_later(cache, &later);
}

/* One piece of what is left of a bio; false if the rest waits. */
static bool route_piece(struct cache_io *parent, bool write)
{
	struct cache_io *io = piece_alloc(parent);
	enum routed routed = write ? route_write(io) : route_read(io);

	if (routed == ROUTED_QUEUED) {
		bio_put(io->bio);
		return false;
	}
	atomic_inc(&parent->pending);
	bio_advance(parent->bio, io->bio->bi_iter.bi_size);
	if (routed == ROUTED_END)
		io_finish(io, io->status);
	else if (io->kind == IO_BOTH)
		submit_both(io);
	else
		dm_submit_bio_remap(parent->bio, io->bio);
	return true;
}

static void route_deferred(struct cache *cache, struct bio *bio)
{
	struct cache_io *io = io_of(bio);
	bool write = op_is_write(bio_op(bio));

	/* Whoever did not want to wait has long been told that he need not. */
	bio->bi_opf &= ~REQ_NOWAIT;
	if (io->routed) {
		io->routed = false;
		dm_submit_bio_remap(bio, NULL);
		return;
	}
	if (io->redirect) {
		if (write)
			redirect_write(io);
		else
			redirect_read(io);
		return;
	}
	if (write && READ_ONCE(cache->frozen)) {
		spin_lock_irq(&cache->deferred_lock);
		bio_list_add(&cache->frozen_bios, bio);
		spin_unlock_irq(&cache->deferred_lock);
		return;
	}
	if (write && atomic_read(&cache->nr_discards) && wait_discard(cache, bio))
		return;
	while (bio->bi_iter.bi_size)
		if (!route_piece(io, write))
			return;
	io_put(io);
}

static void worker(struct work_struct *work)
{
	struct cache *cache = container_of(work, struct cache, worker);
	struct bio_list bios = BIO_EMPTY_LIST;
	struct blk_plug plug;
	struct bio *bio;

	spin_lock_irq(&cache->deferred_lock);
	bio_list_merge(&bios, &cache->deferred);
	bio_list_init(&cache->deferred);
	spin_unlock_irq(&cache->deferred_lock);

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(&bios)))
		route_deferred(cache, bio);
	blk_finish_plug(&plug);
}

/**
 * update_slow_writes() - has map leave writes to the worker, or not any more
 * @cache: the cache, after a change of mode, write_both or frozen
 *
 * On return every write that map routed before is counted in its line, or a
 * bypass. Context: sleeps; state_mutex is held.
 */
void update_slow_writes(struct cache *cache)
{
	bool slow = cache->frozen || cache->write_both ||
		    cache->mode == MODE_WRITETHROUGH;

	WRITE_ONCE(cache->slow_writes, slow);
	synchronize_rcu();
}

/**
 * freeze_writes() - holds all new writes and discards back
 * @cache: the cache
 *
 * On return every write that was not held back is counted in its line, or a
 * bypass, and no fill is under way: it might open a line. Context: sleeps.
 * thaw_writes() ends it.
 */
void freeze_writes(struct cache *cache)
{
	WRITE_ONCE(cache->frozen, true);
	/* Also for fills: they begin with interrupts off. */
	update_slow_writes(cache);
	flush_work(&cache->worker);
	flush_work(&cache->discard_work);
	fills_drain(cache);
}

/**
 * thaw_writes() - ends freeze_writes()
 * @cache: the cache
 */
void thaw_writes(struct cache *cache)
{
	struct bio_list bios = BIO_EMPTY_LIST;

	WRITE_ONCE(cache->frozen, false);
	update_slow_writes(cache);
	/* The worker may just be adding to the list. */
	flush_work(&cache->worker);
	spin_lock_irq(&cache->deferred_lock);
	bio_list_merge(&bios, &cache->frozen_bios);
	bio_list_init(&cache->frozen_bios);
	spin_unlock_irq(&cache->deferred_lock);
	io_route_later(cache, &bios);
	queue_work(cache->fill_wq, &cache->discard_work);
}

/*---- Map ----*/

static int map_flush(struct cache *cache, struct cache_io *io)
{
	struct bio *bio = io->bio;

	if (unlikely(READ_ONCE(cache->array_flush_failed)))
		goto commit;
	if (cache_mode(cache) != MODE_WRITEBACK) {
		if (!array_unflushed(cache)) {
			bio_endio(bio);
			return DM_MAPIO_SUBMITTED;
		}
		io->array_seq = atomic64_read(&cache->array_writes);
		io->kind = IO_FLUSH_ARRAY;
		bio_set_dev(bio, cache->array->bdev);
		return DM_MAPIO_REMAPPED;
	}
	if (array_unflushed(cache) || commit_needed(cache) ||
	    unlikely(cache_state(cache) == STATE_FAILED))
		goto commit;
	if (!bdev_write_cache(cache->ssd->bdev)) {
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	bio_set_dev(bio, cache->ssd->bdev);
	return DM_MAPIO_REMAPPED;

commit:
	commit_bio(cache, io, false);
	return DM_MAPIO_SUBMITTED;
}

static int map_discard(struct cache *cache, struct bio *bio)
{
	unsigned long flags;

	spin_lock_irqsave(&cache->deferred_lock, flags);
	bio_list_add(&cache->discards_deferred, bio);
	spin_unlock_irqrestore(&cache->deferred_lock, flags);
	queue_work(cache->fill_wq, &cache->discard_work);
	return DM_MAPIO_SUBMITTED;
}

/**
 * io_map() - dm's map
 * @ti: our target
 * @bio: does not cross a line, unless it is a discard
 */
int io_map(struct dm_target *ti, struct bio *bio)
{
	struct cache *cache = ti->private;
	struct cache_io *io = bio_io(bio);
	enum routed routed;

	io->cache = cache;
	io->bio = bio;
	io->parent = NULL;
	io->kind = IO_PLAIN;
	io->in_map = true;
	io->uncut = false;
	io->cut = false;
	io->routed = false;
	io->need_commit = false;
	io->redirect = false;
	io->status = BLK_STS_OK;
	atomic_set(&io->pending, 1);

	if (bio->bi_opf & REQ_PREFLUSH && !bio_sectors(bio))
		return map_flush(cache, io);
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	if (bio_op(bio) == REQ_OP_DISCARD)
		return map_discard(cache, bio);
	routed = op_is_write(bio_op(bio)) ? route_write(io) : route_read(io);
	if (likely(routed == ROUTED_SUBMIT))
		return DM_MAPIO_REMAPPED;
	return routed == ROUTED_QUEUED ? DM_MAPIO_SUBMITTED : DM_MAPIO_KILL;
}

/**
 * io_init() - prepares the I/O path
 * @cache: zeroed but for its configuration; io_exit() ends it, after an error too
 *
 * Return: 0 or a negative error.
 */
int io_init(struct cache *cache)
{
	spin_lock_init(&cache->deferred_lock);
	spin_lock_init(&cache->discard_lock);
	INIT_LIST_HEAD(&cache->discards);
	bio_list_init(&cache->deferred);
	bio_list_init(&cache->frozen_bios);
	bio_list_init(&cache->discards_deferred);
	INIT_WORK(&cache->worker, worker);
	INIT_WORK(&cache->discard_work, discard_worker);
	cache->wq = alloc_workqueue("ssdcache-io", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!cache->wq)
		return -ENOMEM;
	return bioset_init(&cache->pieces, PIECES_MIN,
			   offsetof(struct io_piece, bio), 0);
}

/**
 * io_exit() - frees what io_init() allocated
 * @cache: no I/O is in flight
 */
void io_exit(struct cache *cache)
{
	bioset_exit(&cache->pieces);
	if (cache->wq)
		destroy_workqueue(cache->wq);
}
