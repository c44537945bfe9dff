// SPDX-License-Identifier: GPL-2.0
/*
 * Line table of dm-ssdcache. What it owns, what guards it and who calls it is
 * said in lines.h, what the flags mean in Documentation/design.rst.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "lines.h"

#define STRIPES_MIN		64u
#define STRIPES_MAX		8192u
#define SLOTS_PER_STRIPE	16u
/* Bits of the tree of open regions, for each slot. */
#define REGIONS_PER_SLOT	8u

static int stripes_init(struct line_table *table, u64 nr_slots)
{
	u32 i, nr = clamp_t(u64, roundup_pow_of_two(nr_slots / SLOTS_PER_STRIPE + 1),
			    STRIPES_MIN, STRIPES_MAX);

	table->stripe_mask = nr - 1;
	table->stripes = vzalloc(array_size(nr, sizeof(*table->stripes)));
	if (!table->stripes)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		spin_lock_init(&table->stripes[i].lock);
		INIT_LIST_HEAD(&table->stripes[i].conflicts);
	}
	return 0;
}

static int regions_init(struct line_table *table, u64 nr_slots)
{
	u64 nr_lines = super_nr_lines(table->super);

	table->region_shift = 0;
	while (nr_lines >> table->region_shift > nr_slots * REGIONS_PER_SLOT)
		table->region_shift++;
	return bittree_init(&table->open_regions,
			    (nr_lines >> table->region_shift) + 1);
}

/**
 * lines_init() - allocates a table with all slots free
 * @table: zeroed; lines_exit() frees it, after an error too
 * @super: geometry; it must stay
 * @open_flag: the RECORD_OPEN_* that open lines get
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int lines_init(struct line_table *table, const struct super *super,
	       unsigned int open_flag)
{
	u64 nr_slots = super_nr_slots(super);
	u64 nr_buckets = max_t(u64, roundup_pow_of_two(nr_slots), STRIPES_MAX);

	table->super = super;
	table->open_flag = open_flag;
	spin_lock_init(&table->free_lock);
	table->bucket_mask = nr_buckets - 1;
	table->lines = vzalloc(array_size(nr_slots, sizeof(*table->lines)));
	table->buckets = vzalloc(array_size(nr_buckets, sizeof(*table->buckets)));
	table->counters = alloc_percpu(struct line_counters);
	if (!table->lines || !table->buckets || !table->counters)
		return -ENOMEM;
	if (stripes_init(table, nr_slots) || regions_init(table, nr_slots) ||
	    bittree_init(&table->pending, nr_slots) ||
	    bittree_init(&table->free, nr_slots))
		return -ENOMEM;
	lines_reset(table);
	return 0;
}

/**
 * lines_exit() - frees what lines_init() allocated
 * @table: nobody uses it any more
 */
void lines_exit(struct line_table *table)
{
	bittree_exit(&table->free);
	bittree_exit(&table->pending);
	bittree_exit(&table->open_regions);
	vfree(table->stripes);
	free_percpu(table->counters);
	vfree(table->buckets);
	vfree(table->lines);
	memset(table, 0, sizeof(*table));
}

/**
 * lines_reset() - makes all slots free
 * @table: nobody else uses it, no I/O is in flight
 */
void lines_reset(struct line_table *table)
{
	u64 nr_slots = super_nr_slots(table->super);
	u64 bit;
	int cpu;

	memset(table->lines, 0, nr_slots * sizeof(*table->lines));
	memset(table->buckets, 0xff,
	       (table->bucket_mask + 1ULL) * sizeof(*table->buckets));
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(table->counters, cpu), 0,
		       sizeof(struct line_counters));
	for (bit = 0; bit < nr_slots; bit++)
		bittree_set(&table->free, bit);
	bittree_clear_all(&table->pending);
	bittree_clear_all(&table->open_regions);
	table->nr_free = nr_slots;
	table->nr_releasing = 0;
}

/*---- Slots ----*/

/**
 * slot_alloc() - takes the lowest free slot
 * @table: the line table
 *
 * Context: any; a stripe's lock may be held.
 * Return: a slot whose release is durable (R1), or NO_SLOT.
 */
slot_t slot_alloc(struct line_table *table)
{
	unsigned long flags;
	u64 nr = BITTREE_NONE;

	spin_lock_irqsave(&table->free_lock, flags);
	if (table->nr_free) {
		nr = bittree_next(&table->free, 0);
		bittree_clear(&table->free, nr);
		table->nr_free--;
	}
	spin_unlock_irqrestore(&table->free_lock, flags);
	return nr == BITTREE_NONE ? NO_SLOT : to_slot(nr);
}

/**
 * slot_free() - gives a slot back that holds nothing, in memory and on the SSD
 * @table: the line table
 * @slot: from slot_alloc(), or its release became durable
 *
 * Context: any; a stripe's lock may be held.
 */
void slot_free(struct line_table *table, slot_t slot)
{
	unsigned long flags;

	spin_lock_irqsave(&table->free_lock, flags);
	bittree_set(&table->free, slot_nr(slot));
	table->nr_free++;
	spin_unlock_irqrestore(&table->free_lock, flags);
}

/**
 * slots_free() - number of slots that can be handed out, or soon can be
 * @table: the line table
 *
 * Lines being released count. Context: any.
 */
u32 slots_free(struct line_table *table)
{
	return READ_ONCE(table->nr_free) + READ_ONCE(table->nr_releasing);
}

static void count_releasing(struct line_table *table, int delta)
{
	unsigned long flags;

	spin_lock_irqsave(&table->free_lock, flags);
	table->nr_releasing += delta;
	spin_unlock_irqrestore(&table->free_lock, flags);
}

/**
 * line_insert() - puts a line without valid blocks into a slot
 * @table: the line table
 * @slot: from slot_alloc()
 * @line: not in the table; its lock is held
 */
struct cache_line *line_insert(struct line_table *table, slot_t slot,
			       line_t line)
{
	struct cache_line *l = slot_line(table, slot);
	u32 *bucket = &table->buckets[line_bucket(table, line)];

	l->valid = 0;
	l->dirty = 0;
	l->counts = 0;
	WRITE_ONCE(l->tag, line_nr(line) | LINE_USED);
	l->next = *bucket;
	*bucket = slot_nr(slot);
	return l;
}

static void line_unhash(struct line_table *table, struct cache_line *l)
{
	u32 *link = &table->buckets[line_bucket(table, line_of(l))];
	u32 nr = l - table->lines;

	while (*link != nr)
		link = &table->lines[*link].next;
	*link = l->next;
	line_clear(l, ~LINE_TAG_MASK);
}

/*
 * While metadata is loaded a slot's entry holds its newest record so far: the
 * line with LINE_USED, not hashed, and these flags.
 */
#define STAGED_OPEN_DIRTY	LINE_OPEN
#define STAGED_OPEN_DROP	LINE_RECENT

/**
 * lines_stage() - notes the newest record of a slot while metadata is loaded
 * @table: nobody else uses it; lines_reset() came before
 * @record: checked
 */
void lines_stage(struct line_table *table, const struct record *record)
{
	struct cache_line *l = slot_line(table, record->slot);

	l->valid = record->valid;
	l->dirty = record->dirty;
	l->tag = 0;
	if (!(record->flags & RECORD_USED))
		return;
	l->tag = line_nr(record->line) | LINE_USED;
	if (record->flags & RECORD_OPEN_DIRTY)
		l->tag |= STAGED_OPEN_DIRTY;
	if (record->flags & RECORD_OPEN_DROP)
		l->tag |= STAGED_OPEN_DROP;
}

static void lines_unstage(struct cache_line *l, slot_t slot,
			  struct record *record)
{
	record->slot = slot;
	record->line = line_of(l);
	record->valid = l->valid;
	record->dirty = l->dirty;
	record->flags = RECORD_USED;
	if (line_is(l, STAGED_OPEN_DIRTY))
		record->flags |= RECORD_OPEN_DIRTY;
	if (line_is(l, STAGED_OPEN_DROP))
		record->flags |= RECORD_OPEN_DROP;
}

/**
 * lines_restore() - makes all staged records lines of the cache
 * @table: nobody else uses it
 *
 * Lines that were open are treated as after a crash (R3) and are to be recorded
 * by the next commit.
 *
 * Return: 0, or -EEXIST if a line is in two slots; then only lines_reset() or
 * lines_exit() may follow.
 */
int lines_restore(struct line_table *table)
{
	u64 nr, nr_slots = super_nr_slots(table->super);
	struct record record;

	for (nr = 0; nr < nr_slots; nr++) {
		struct cache_line *l = &table->lines[nr];
		bool open;

		if (!line_is(l, LINE_USED))
			continue;
		lines_unstage(l, to_slot(nr), &record);
		if (line_find(table, record.line))
			return -EEXIST;
		open = record.flags & (RECORD_OPEN_DIRTY | RECORD_OPEN_DROP);
		record_recover(&record);
		line_insert(table, record.slot, record.line);
		l->valid = record.valid;
		l->dirty = record.dirty;
		if (l->valid)
			line_set(l, LINE_DISK_CLOSED);
		if (l->dirty)
			line_mark_region(table, record.line);
		if (open)
			line_changed(table, l);
		this_cpu_add(table->counters->valid, hweight64(l->valid));
		this_cpu_add(table->counters->dirty, hweight64(l->dirty));
		bittree_clear(&table->free, nr);
		table->nr_free--;
	}
	return 0;
}

/**
 * line_release() - begins to evict a line
 * @table: the line table
 * @l: its lock is held
 *
 * The line stays in the hash until lines_committed() says that its release is
 * durable.
 *
 * Return: false if it is in use or dirty.
 */
bool line_release(struct line_table *table, struct cache_line *l)
{
	if (l->counts || l->dirty ||
	    line_is(l, LINE_RELEASING | LINE_DESTAGING | LINE_FILLING))
		return false;
	this_cpu_sub(table->counters->valid, hweight64(l->valid));
	l->valid = 0;
	line_clear(l, LINE_OPEN);
	line_set(l, LINE_RELEASING);
	line_changed(table, l);
	count_releasing(table, 1);
	return true;
}

/*---- Changes of a line; its lock is held ----*/

/**
 * line_changed() - says that the next commit must record a line
 * @table: the line table
 * @l: its lock is held
 */
void line_changed(struct line_table *table, struct cache_line *l)
{
	if (line_is(l, LINE_PENDING))
		return;
	line_set(l, LINE_PENDING);
	bittree_set(&table->pending, l - table->lines);
}

/**
 * line_mark_region() - has the destager visit a line
 * @table: the line table
 * @line: of the array
 */
void line_mark_region(struct line_table *table, line_t line)
{
	bittree_set(&table->open_regions, line_nr(line) >> table->region_shift);
}

/**
 * line_open() - says that a line is about to be written in place
 * @table: the line table
 * @l: its lock is held
 */
void line_open(struct line_table *table, struct cache_line *l)
{
	if (!line_is(l, LINE_OPEN)) {
		line_set(l, LINE_OPEN);
		line_mark_region(table, line_of(l));
		if (line_is(l, LINE_DISK_CLOSED))
			line_changed(table, l);
	}
	if (!line_is(l, LINE_RECENT))
		line_set(l, LINE_RECENT);
}

/**
 * line_close() - says that a line's maps are exact
 * @table: the line table
 * @l: its lock is held; no writer is in flight
 */
void line_close(struct line_table *table, struct cache_line *l)
{
	if (!line_is(l, LINE_OPEN))
		return;
	line_clear(l, LINE_OPEN);
	line_changed(table, l);
}

/**
 * line_add_valid() - blocks whose data is in the slot
 * @table: the line table
 * @l: its lock is held
 * @blocks: their mask
 */
void line_add_valid(struct line_table *table, struct cache_line *l, u64 blocks)
{
	u64 more = blocks & ~l->valid;

	if (!more)
		return;
	l->valid |= more;
	this_cpu_add(table->counters->valid, hweight64(more));
	line_changed(table, l);
}

/**
 * line_add_dirty() - blocks that are newer than the array's
 * @table: the line table
 * @l: its lock is held
 * @blocks: their mask; all are valid
 */
void line_add_dirty(struct line_table *table, struct cache_line *l, u64 blocks)
{
	u64 more = blocks & ~l->dirty;

	if (!more)
		return;
	l->dirty |= more;
	this_cpu_add(table->counters->dirty, hweight64(more));
	line_changed(table, l);
}

/**
 * line_del_dirty() - blocks that the array holds too, flushed (R4)
 * @table: the line table
 * @l: its lock is held
 * @blocks: their mask
 */
void line_del_dirty(struct line_table *table, struct cache_line *l, u64 blocks)
{
	u64 less = blocks & l->dirty;

	if (!less)
		return;
	l->dirty &= ~less;
	this_cpu_sub(table->counters->dirty, hweight64(less));
	line_changed(table, l);
}

/**
 * line_drop() - blocks that are to be read from the array from now on
 * @table: the line table
 * @l: its lock is held
 * @blocks: their mask; dirty ones are lost
 *
 * They are still valid on the SSD until the next commit, see LINE_DROPPED.
 */
void line_drop(struct line_table *table, struct cache_line *l, u64 blocks)
{
	u64 less = blocks & l->valid;

	if (!less)
		return;
	line_del_dirty(table, l, less);
	l->valid &= ~less;
	this_cpu_sub(table->counters->valid, hweight64(less));
	line_set(l, LINE_DROPPED);
	line_changed(table, l);
}

/*---- Commits ----*/

/**
 * lines_snapshot() - the record of a slot as of now
 * @table: the line table
 * @slot: any slot
 * @record: out; hint is not filled in
 *
 * The line counts as being committed from now on. Context: commit worker.
 */
void lines_snapshot(struct line_table *table, slot_t slot,
		    struct record *record)
{
	struct cache_line *l = slot_line(table, slot);
	struct stripe *stripe;
	unsigned long flags;
	line_t line;
	u64 tag;

	memset(record, 0, sizeof(*record));
	record->slot = slot;
	record->line = NO_LINE;
	/*
	 * A hashed line stays hashed as long as the commit worker, which is
	 * the caller, does not unhash it. A free slot may get a line at any
	 * moment, under that line's lock: it is not touched here.
	 */
	for (;;) {
		line = line_of(l);
		stripe = lines_lock(table, line, &flags);
		tag = READ_ONCE(l->tag);
		if ((tag & LINE_TAG_MASK) == line_nr(line))
			break;
		lines_unlock(stripe, flags);
	}
	if (!(tag & LINE_USED))
		goto out;

	if (line_is(l, LINE_PENDING)) {
		line_clear(l, LINE_PENDING);
		bittree_clear(&table->pending, slot_nr(slot));
	}
	line_set(l, LINE_COMMITTING);
	if (line_is(l, LINE_DROPPED)) {
		line_clear(l, LINE_DROPPED);
		line_set(l, LINE_DROP_COMMITTING);
	}
	if (l->valid && !line_is(l, LINE_OPEN))
		line_set(l, LINE_DISK_CLOSED);
	if (!line_is(l, LINE_RELEASING)) {
		record->line = line;
		record->valid = l->valid;
		record->dirty = l->dirty;
		record->flags = RECORD_USED;
		if (line_is(l, LINE_OPEN))
			record->flags |= table->open_flag;
	}
out:
	lines_unlock(stripe, flags);
}

/**
 * lines_committed() - a record is durable
 * @table: the line table
 * @record: from lines_snapshot()
 *
 * Context: commit worker.
 * Return: whether the slot was released by it and is free now.
 */
bool lines_committed(struct line_table *table, const struct record *record)
{
	struct cache_line *l = slot_line(table, record->slot);
	struct stripe *stripe;
	unsigned long flags;
	bool released;

	/* Set and cleared by the commit worker alone. */
	if (!(READ_ONCE(l->tag) & LINE_COMMITTING))
		return false;
	stripe = lines_lock(table, line_of(l), &flags);
	line_clear(l, LINE_COMMITTING | LINE_DROP_COMMITTING);
	if (record->flags & table->open_flag)
		line_clear(l, LINE_DISK_CLOSED);
	released = line_is(l, LINE_RELEASING) && record->line == NO_LINE;
	if (released)
		line_unhash(table, l);
	lines_unlock(stripe, flags);
	if (released) {
		slot_free(table, record->slot);
		count_releasing(table, -1);
	}
	return released;
}

/**
 * lines_count() - number of valid and dirty blocks, near enough while I/O runs
 * @table: the line table
 * @valid: out
 * @dirty: out
 */
void lines_count(const struct line_table *table, u64 *valid, u64 *dirty)
{
	struct line_counters sum = { 0 };
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct line_counters *counters =
			per_cpu_ptr(table->counters, cpu);

		sum.valid += READ_ONCE(counters->valid);
		sum.dirty += READ_ONCE(counters->dirty);
	}
	*valid = max_t(s64, sum.valid, 0);
	*dirty = max_t(s64, sum.dirty, 0);
}

/*---- Conflicts; the stripe's lock is held ----*/

/**
 * conflict_add() - lets others know of something under way
 * @stripe: the line's, locked
 * @conflict: conflict_del() takes it off
 * @kind: what it is
 * @line: where
 * @blocks: see struct conflict
 */
void conflict_add(struct stripe *stripe, struct conflict *conflict,
		  enum conflict_kind kind, line_t line, u64 blocks)
{
	conflict->kind = kind;
	conflict->line = line;
	conflict->blocks = blocks;
	conflict->spoiled = 0;
	conflict->writing = 0;
	bio_list_init(&conflict->waiting);
	list_add_tail(&conflict->node, &stripe->conflicts);
	stripe->nr_conflicts++;
}

/**
 * conflict_del() - ends it
 * @stripe: the line's, locked
 * @conflict: from conflict_add()
 * @waiting: the bios that waited are added here, to be routed anew
 */
void conflict_del(struct stripe *stripe, struct conflict *conflict,
		  struct bio_list *waiting)
{
	list_del(&conflict->node);
	stripe->nr_conflicts--;
	bio_list_merge(waiting, &conflict->waiting);
	bio_list_init(&conflict->waiting);
}

/**
 * conflict_find() - what of a kind is under way on a line
 * @stripe: the line's, locked
 * @line: where
 * @kind: destage or fill, of which there is at most one
 *
 * Return: NULL if nothing is.
 */
struct conflict *conflict_find(const struct stripe *stripe, line_t line,
			       enum conflict_kind kind)
{
	struct conflict *conflict;

	list_for_each_entry(conflict, &stripe->conflicts, node)
		if (conflict->line == line && conflict->kind == kind)
			return conflict;
	return NULL;
}

/**
 * conflict_overlap() - whether something of a kind is under way on blocks
 * @stripe: the line's, locked
 * @line: where
 * @kind: what
 * @blocks: their mask
 *
 * Return: the first that overlaps, or NULL.
 */
struct conflict *conflict_overlap(const struct stripe *stripe, line_t line,
				  enum conflict_kind kind, u64 blocks)
{
	struct conflict *conflict;

	list_for_each_entry(conflict, &stripe->conflicts, node)
		if (conflict->line == line && conflict->kind == kind &&
		    conflict->blocks & blocks)
			return conflict;
	return NULL;
}

/**
 * conflict_bypassed() - blocks of a line that are being written to the array
 * @stripe: the line's, locked
 * @line: where
 */
u64 conflict_bypassed(const struct stripe *stripe, line_t line)
{
	struct conflict *conflict;
	u64 blocks = 0;

	if (!stripe->nr_conflicts)
		return 0;
	list_for_each_entry(conflict, &stripe->conflicts, node)
		if (conflict->line == line && conflict->kind == CONFLICT_BYPASS)
			blocks |= conflict->blocks;
	return blocks;
}
