/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Line table of dm-ssdcache: which line is in which slot, with valid and dirty
 * maps, counters of I/O in flight, and who is in whose way.
 *
 * Owns all state of lines and slots in memory. A hashed line's fields are guarded
 * by the lock of its stripe (lines_lock()), an unhashed slot belongs to whoever
 * took it. Callers: the I/O path and completions (any context), the commit
 * worker, the destager, the fill worker, the releaser. Nothing here sleeps but
 * for lines_init() and lines_exit().
 */
#ifndef SSDCACHE_LINES_H
#define SSDCACHE_LINES_H

#include <linux/bio.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "bittree.h"
#include "format.h"

/*
 * 32 bytes a slot. "tag" is the line number (low 40 bits) and LINE_* flags;
 * "counts" is the number of I/Os in flight: readers, writers of two epochs.
 */
struct cache_line {
	u64 valid;
	u64 dirty;
	u64 tag;
	u32 next;	/* hash chain: slot number, NO_SLOT ends it */
	u32 counts;
};

#define LINE_TAG_MASK		((1ULL << LINE_NR_BITS) - 1)
#define LINE_FLAG(n)		(1ULL << (LINE_NR_BITS + (n)))
#define LINE_USED		LINE_FLAG(0)	/* in the hash */
#define LINE_OPEN		LINE_FLAG(1)	/* next record says open */
#define LINE_DISK_CLOSED	LINE_FLAG(2)	/* record on the SSD says closed */
#define LINE_PENDING		LINE_FLAG(3)	/* differs from newest record */
#define LINE_COMMITTING		LINE_FLAG(4)	/* in the commit under way */
#define LINE_RELEASING		LINE_FLAG(5)	/* evicted, release not durable */
#define LINE_DESTAGING		LINE_FLAG(6)	/* has a destage conflict */
#define LINE_FILLING		LINE_FLAG(7)	/* has a fill conflict */
#define LINE_EPOCH		LINE_FLAG(8)	/* writer count in use */
#define LINE_RECENT		LINE_FLAG(9)	/* written since destager's visit */
#define LINE_DROPPED		LINE_FLAG(10)	/* a block left the valid map */
#define LINE_DROP_COMMITTING	LINE_FLAG(11)	/* ... in the commit under way */

#define COUNT_READERS_BITS	12
#define COUNT_WRITERS_BITS	10
#define COUNT_READERS_MAX	((1u << COUNT_READERS_BITS) - 1)
#define COUNT_WRITERS_MAX	((1u << COUNT_WRITERS_BITS) - 1)

enum conflict_kind {
	CONFLICT_BYPASS,	/* a write to the array around the cache */
	CONFLICT_BOTH,		/* a write to SSD and array */
	CONFLICT_DESTAGE,
	CONFLICT_FILL,
};

/*
 * Something under way that others on the same line must know of; on the
 * stripe's list, guarded by the stripe's lock.
 */
struct conflict {
	struct list_head node;
	enum conflict_kind kind;
	line_t line;
	u64 blocks;	/* written; destage: being copied; fill: wanted */
	u64 spoiled;	/* destage: rewritten since; fill: written since */
	u64 writing;	/* fill: being written to the SSD */
	struct bio_list waiting;	/* to be routed anew at its end */
};

struct stripe {
	spinlock_t lock;	/* guards the stripe's lines too */
	unsigned int nr_conflicts;
	struct list_head conflicts;
} ____cacheline_aligned_in_smp;

struct line_counters {
	s64 valid;	/* blocks */
	s64 dirty;	/* blocks */
};

struct line_table {
	const struct super *super;
	struct cache_line *lines;
	u32 *buckets;
	u32 bucket_mask;
	u32 stripe_mask;
	struct stripe *stripes;
	struct bittree pending;		/* by slot; user: commit worker */
	struct bittree open_regions;	/* by region; user: destager */
	unsigned int region_shift;	/* lines in a region, as a power of two */
	unsigned int open_flag;		/* RECORD_OPEN_* that open lines get */
	struct line_counters __percpu *counters;

	spinlock_t free_lock;		/* guards what follows; a leaf */
	struct bittree free;		/* by slot */
	u32 nr_free;
	u32 nr_releasing;
};

int lines_init(struct line_table *table, const struct super *super,
	       unsigned int open_flag);
void lines_exit(struct line_table *table);
void lines_reset(struct line_table *table);

static inline line_t line_of(const struct cache_line *l)
{
	return to_line(READ_ONCE(l->tag) & LINE_TAG_MASK);
}

static inline bool line_is(const struct cache_line *l, u64 flags)
{
	return l->tag & flags;
}

static inline void line_set(struct cache_line *l, u64 flags)
{
	WRITE_ONCE(l->tag, l->tag | flags);
}

static inline void line_clear(struct cache_line *l, u64 flags)
{
	WRITE_ONCE(l->tag, l->tag & ~flags);
}

static inline slot_t line_slot(const struct line_table *table,
			       const struct cache_line *l)
{
	return to_slot(l - table->lines);
}

static inline struct cache_line *slot_line(const struct line_table *table,
					   slot_t slot)
{
	return &table->lines[slot_nr(slot)];
}

static inline u32 line_bucket(const struct line_table *table, line_t line)
{
	return hash_64(line_nr(line), 32) & table->bucket_mask;
}

static inline struct stripe *line_stripe(const struct line_table *table,
					 line_t line)
{
	return &table->stripes[line_bucket(table, line) & table->stripe_mask];
}

/**
 * lines_lock() - takes the lock that guards a line, and its conflicts
 * @table: the line table
 * @line: any line of the array
 * @flags: for lines_unlock()
 *
 * Never take two. Context: any.
 */
static inline struct stripe *lines_lock(const struct line_table *table,
					line_t line, unsigned long *flags)
{
	struct stripe *stripe = line_stripe(table, line);

	spin_lock_irqsave(&stripe->lock, *flags);
	return stripe;
}

static inline void lines_unlock(struct stripe *stripe, unsigned long flags)
{
	spin_unlock_irqrestore(&stripe->lock, flags);
}

/**
 * line_find() - the cached line, releasing ones included
 * @table: the line table
 * @line: line of the array; its lock is held
 *
 * Return: NULL if it is not in the cache.
 */
static inline struct cache_line *line_find(const struct line_table *table,
					   line_t line)
{
	u32 nr = table->buckets[line_bucket(table, line)];

	while (nr != slot_nr(NO_SLOT)) {
		struct cache_line *l = &table->lines[nr];

		if ((l->tag & LINE_TAG_MASK) == line_nr(line))
			return l;
		nr = l->next;
	}
	return NULL;
}

/* Counters of I/O in flight. The stripe's lock is held. */

static inline unsigned int line_readers(const struct cache_line *l)
{
	return l->counts & COUNT_READERS_MAX;
}

static inline unsigned int line_writers(const struct cache_line *l,
					unsigned int epoch)
{
	return (l->counts >> (COUNT_READERS_BITS + epoch * COUNT_WRITERS_BITS)) &
	       COUNT_WRITERS_MAX;
}

static inline unsigned int line_epoch(const struct cache_line *l)
{
	return line_is(l, LINE_EPOCH);
}

/* False if there are too many already. */
static inline bool line_get_reader(struct cache_line *l)
{
	if (unlikely(line_readers(l) == COUNT_READERS_MAX))
		return false;
	l->counts++;
	return true;
}

static inline void line_put_reader(struct cache_line *l)
{
	l->counts--;
}

static inline bool line_get_writer(struct cache_line *l)
{
	unsigned int epoch = line_epoch(l);

	if (unlikely(line_writers(l, epoch) == COUNT_WRITERS_MAX))
		return false;
	l->counts += 1u << (COUNT_READERS_BITS + epoch * COUNT_WRITERS_BITS);
	return true;
}

static inline void line_put_writer(struct cache_line *l, unsigned int epoch)
{
	l->counts -= 1u << (COUNT_READERS_BITS + epoch * COUNT_WRITERS_BITS);
}

static inline void line_flip_epoch(struct cache_line *l)
{
	WRITE_ONCE(l->tag, l->tag ^ LINE_EPOCH);
}

slot_t slot_alloc(struct line_table *table);
void slot_free(struct line_table *table, slot_t slot);
u32 slots_free(struct line_table *table);
struct cache_line *line_insert(struct line_table *table, slot_t slot,
			       line_t line);
void lines_stage(struct line_table *table, const struct record *record);
int lines_restore(struct line_table *table);
bool line_release(struct line_table *table, struct cache_line *l);

void line_changed(struct line_table *table, struct cache_line *l);
void line_open(struct line_table *table, struct cache_line *l);
void line_close(struct line_table *table, struct cache_line *l);
void line_add_valid(struct line_table *table, struct cache_line *l, u64 blocks);
void line_add_dirty(struct line_table *table, struct cache_line *l, u64 blocks);
void line_del_dirty(struct line_table *table, struct cache_line *l, u64 blocks);
void line_drop(struct line_table *table, struct cache_line *l, u64 blocks);
void line_mark_region(struct line_table *table, line_t line);

void lines_snapshot(struct line_table *table, slot_t slot,
		    struct record *record);
bool lines_committed(struct line_table *table, const struct record *record);

void lines_count(const struct line_table *table, u64 *valid, u64 *dirty);

void conflict_add(struct stripe *stripe, struct conflict *conflict,
		  enum conflict_kind kind, line_t line, u64 blocks);
void conflict_del(struct stripe *stripe, struct conflict *conflict,
		  struct bio_list *waiting);
struct conflict *conflict_find(const struct stripe *stripe, line_t line,
			       enum conflict_kind kind);
struct conflict *conflict_overlap(const struct stripe *stripe, line_t line,
				  enum conflict_kind kind, u64 blocks);
u64 conflict_bypassed(const struct stripe *stripe, line_t line);

#endif
