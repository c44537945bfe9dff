// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of lines.c: hash, flags, commits, conflicts, and a random walk
 * against a model of what the SSD and the array hold.
 *
 * sources: lines.c format.c
 */
#include "unit.h"

#include <linux/errno.h>

#include "lines.h"

/* One at a time. */
static struct super super;
static struct line_table table;

static void begin(u64 ssd_sectors, u64 array_sectors, unsigned int open_flag)
{
	make_super(&super, 128, ssd_sectors, array_sectors);
	memset(&table, 0, sizeof(table));
	assert_int_equal(lines_init(&table, &super, open_flag), 0);
}

static int end(void **state)
{
	lines_exit(&table);
	return 0;
}

static struct cache_line *find(u64 line)
{
	struct cache_line *l;
	unsigned long flags;
	struct stripe *stripe = lines_lock(&table, to_line(line), &flags);

	l = line_find(&table, to_line(line));
	lines_unlock(stripe, flags);
	return l;
}

static struct cache_line *insert(u64 line)
{
	slot_t slot = slot_alloc(&table);

	assert_true(slot != NO_SLOT);
	return line_insert(&table, slot, to_line(line));
}

static u64 flags_of(const struct cache_line *l)
{
	return l->tag & ~LINE_TAG_MASK;
}

static void snapshot(const struct cache_line *l, struct record *record)
{
	lines_snapshot(&table, line_slot(&table, l), record);
}

static void assert_record(const struct record *record, u64 line, u64 valid,
			  u64 dirty, unsigned int flags)
{
	assert_int_equal(line_nr(record->line), line);
	assert_int_equal(record->valid, valid);
	assert_int_equal(record->dirty, dirty);
	assert_int_equal(record->flags, flags);
}

static void assert_count(u64 valid, u64 dirty)
{
	u64 v, d;

	lines_count(&table, &v, &d);
	assert_int_equal(v, valid);
	assert_int_equal(d, dirty);
}

static bool is_pending(const struct cache_line *l)
{
	bool bit = bittree_test(&table.pending, l - table.lines);

	assert_int_equal(bit, line_is(l, LINE_PENDING));
	return bit;
}

_Static_assert(sizeof(struct cache_line) == 32, "cache_line");

static void test_flags_apart(void **state)
{
	static const u64 flags[] = {
		LINE_TAG_MASK, LINE_USED, LINE_OPEN, LINE_DISK_CLOSED,
		LINE_PENDING, LINE_COMMITTING, LINE_RELEASING, LINE_DESTAGING,
		LINE_FILLING, LINE_EPOCH, LINE_RECENT, LINE_DROPPED,
		LINE_DROP_COMMITTING,
	};
	u64 all = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		assert_int_equal(all & flags[i], 0);
		all |= flags[i];
	}
	assert_int_equal(2 * COUNT_WRITERS_BITS + COUNT_READERS_BITS, 32);
}

static void test_slots(void **state)
{
	u64 nr, slots;
	slot_t slot;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	slots = super_nr_slots(&super);
	assert_int_equal(slots_free(&table), slots);
	for (nr = 0; nr < slots; nr++) {
		slot = slot_alloc(&table);
		assert_int_equal(slot_nr(slot), nr);
		assert_int_equal(slots_free(&table), slots - nr - 1);
	}
	assert_true(slot_alloc(&table) == NO_SLOT);
	/* The lowest comes first, so that the table grows slowly. */
	slot_free(&table, to_slot(70));
	slot_free(&table, to_slot(3));
	slot_free(&table, to_slot(slots - 1));
	assert_int_equal(slots_free(&table), 3);
	assert_int_equal(slot_nr(slot_alloc(&table)), 3);
	assert_int_equal(slot_nr(slot_alloc(&table)), 70);
	assert_int_equal(slot_nr(slot_alloc(&table)), slots - 1);
	assert_true(slot_alloc(&table) == NO_SLOT);
}

static void test_insert_find(void **state)
{
	u64 nr, slots, lines;
	struct cache_line *l;

	begin(64 * MIB, TIB, RECORD_OPEN_DIRTY);
	slots = super_nr_slots(&super);
	lines = super_nr_lines(&super);
	for (nr = 0; nr < slots; nr++) {
		assert_null(find(nr * 7919 % lines));
		l = insert(nr * 7919 % lines);
		assert_int_equal(slot_nr(line_slot(&table, l)), nr);
		assert_ptr_equal(slot_line(&table, to_slot(nr)), l);
		assert_int_equal(flags_of(l), LINE_USED);
		assert_int_equal(line_nr(line_of(l)), nr * 7919 % lines);
	}
	for (nr = 0; nr < slots; nr++) {
		l = find(nr * 7919 % lines);
		assert_non_null(l);
		assert_int_equal(l - table.lines, nr);
		assert_null(find(nr * 7919 % lines + 1));
	}
	assert_count(0, 0);
	lines_reset(&table);
	assert_int_equal(slots_free(&table), slots);
	for (nr = 0; nr < slots; nr++)
		assert_null(find(nr * 7919 % lines));
}

/* All lines of one bucket: a chain, unhashed from its middle and its ends. */
static void test_chains(void **state)
{
	struct cache_line *chain[5];
	struct record record;
	unsigned int i, n;
	u64 line, nr[5];
	u32 bucket;

	begin(16 * MIB, TIB, RECORD_OPEN_DIRTY);
	bucket = line_bucket(&table, to_line(0));
	for (line = 0, n = 0; n < 5; line++) {
		if (line_bucket(&table, to_line(line)) != bucket)
			continue;
		/* One lock for all of a bucket. */
		assert_ptr_equal(line_stripe(&table, to_line(line)),
				 line_stripe(&table, to_line(0)));
		nr[n] = line;
		chain[n++] = insert(line);
	}
	for (n = 0; n < 5; n++) {
		static const unsigned int order[] = { 2, 4, 0, 1, 3 };
		unsigned int gone = order[n];

		assert_true(line_release(&table, chain[gone]));
		snapshot(chain[gone], &record);
		assert_true(lines_committed(&table, &record));
		assert_null(find(nr[gone]));
		nr[gone] = 0;
		for (i = 0; i < 5; i++)
			if (nr[i])
				assert_ptr_equal(find(nr[i]), chain[i]);
	}
}

static void test_references(void **state)
{
	struct cache_line *l;
	unsigned int i, epoch;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(5);
	assert_int_equal(line_epoch(l), 0);
	for (i = 0; i < COUNT_READERS_MAX; i++)
		assert_true(line_get_reader(l));
	assert_false(line_get_reader(l));
	for (epoch = 0; epoch < 2; epoch++) {
		assert_int_equal(line_epoch(l), epoch);
		for (i = 0; i < COUNT_WRITERS_MAX; i++) {
			assert_int_equal(line_writers(l, epoch), i);
			assert_true(line_get_writer(l));
		}
		assert_false(line_get_writer(l));
		line_flip_epoch(l);
	}
	assert_int_equal(l->counts, ~0u);
	assert_int_equal(line_readers(l), COUNT_READERS_MAX);
	assert_int_equal(line_writers(l, 0), COUNT_WRITERS_MAX);
	assert_int_equal(line_writers(l, 1), COUNT_WRITERS_MAX);
	line_put_writer(l, 1);
	assert_int_equal(line_writers(l, 0), COUNT_WRITERS_MAX);
	assert_int_equal(line_writers(l, 1), COUNT_WRITERS_MAX - 1);
	line_put_reader(l);
	line_put_writer(l, 0);
	assert_int_equal(line_readers(l), COUNT_READERS_MAX - 1);
	assert_int_equal(line_writers(l, 0), COUNT_WRITERS_MAX - 1);
	assert_int_equal(line_writers(l, 1), COUNT_WRITERS_MAX - 1);
}

static void test_maps(void **state)
{
	struct cache_line *l;
	struct record record;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(5);
	assert_false(is_pending(l));
	line_add_valid(&table, l, 0x0f);
	assert_true(is_pending(l));
	line_add_dirty(&table, l, 0x03);
	assert_count(4, 2);
	snapshot(l, &record);
	assert_false(is_pending(l));
	/* Nothing new is no change. */
	line_add_valid(&table, l, 0x0f);
	line_add_dirty(&table, l, 0x01);
	line_del_dirty(&table, l, 0xfc);
	line_drop(&table, l, 0xf0);
	assert_false(is_pending(l));
	assert_false(line_is(l, LINE_DROPPED));
	line_add_valid(&table, l, 0x1f);
	assert_true(is_pending(l));
	assert_count(5, 2);
	line_del_dirty(&table, l, 0x02);
	assert_count(5, 1);
	line_drop(&table, l, 0x11);
	assert_true(line_is(l, LINE_DROPPED));
	assert_count(3, 0);
	assert_int_equal(l->valid, 0x0e);
	assert_int_equal(l->dirty, 0);
}

/* The life of a line in write-back mode, commit by commit. */
static void test_open_protocol(void **state)
{
	struct cache_line *l;
	struct record record;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(7);
	/* First write: no record of it is on the SSD, none is needed. */
	line_open(&table, l);
	assert_false(is_pending(l));
	assert_false(line_is(l, LINE_DISK_CLOSED));
	assert_true(line_is(l, LINE_RECENT));
	assert_int_equal(bittree_next(&table.open_regions, 0),
			 7 >> table.region_shift);
	line_add_valid(&table, l, 1);
	line_add_dirty(&table, l, 1);
	snapshot(l, &record);
	assert_record(&record, 7, 1, 1, RECORD_USED | RECORD_OPEN_DIRTY);
	assert_true(line_is(l, LINE_COMMITTING));
	assert_false(line_is(l, LINE_DISK_CLOSED));
	assert_false(lines_committed(&table, &record));
	assert_int_equal(flags_of(l), LINE_USED | LINE_OPEN | LINE_RECENT);
	/* More writes: none waits. */
	line_open(&table, l);
	assert_false(is_pending(l));

	/* Destaged and closed; until the commit the SSD still says open. */
	line_del_dirty(&table, l, 1);
	line_close(&table, l);
	assert_true(is_pending(l));
	assert_false(line_is(l, LINE_DISK_CLOSED));
	snapshot(l, &record);
	assert_record(&record, 7, 1, 0, RECORD_USED);
	/* From here on it may say closed. */
	assert_true(line_is(l, LINE_DISK_CLOSED));
	lines_committed(&table, &record);
	assert_true(line_is(l, LINE_DISK_CLOSED));
	line_close(&table, l);
	assert_false(is_pending(l));

	/* Written again: waits for a commit. */
	line_open(&table, l);
	assert_true(is_pending(l));
	assert_true(line_is(l, LINE_DISK_CLOSED));
	snapshot(l, &record);
	assert_record(&record, 7, 1, 0, RECORD_USED | RECORD_OPEN_DIRTY);
	/* Not durable yet. */
	assert_true(line_is(l, LINE_DISK_CLOSED));
	lines_committed(&table, &record);
	assert_false(line_is(l, LINE_DISK_CLOSED));
	assert_true(line_is(l, LINE_OPEN));
}

/* Closed, then written again before the close was ever recorded. */
static void test_close_taken_back(void **state)
{
	struct cache_line *l;
	struct record record;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(7);
	line_open(&table, l);
	line_add_valid(&table, l, 1);
	snapshot(l, &record);
	lines_committed(&table, &record);
	line_close(&table, l);
	line_open(&table, l);
	/* The SSD has said open all the time. */
	assert_false(line_is(l, LINE_DISK_CLOSED));
	snapshot(l, &record);
	assert_record(&record, 7, 1, 0, RECORD_USED | RECORD_OPEN_DIRTY);
	assert_false(line_is(l, LINE_DISK_CLOSED));
}

/* The record under way says closed: it counts before it is durable. */
static void test_open_during_commit(void **state)
{
	struct cache_line *l;
	struct record closed, opened;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(7);
	line_add_valid(&table, l, 0xff);
	snapshot(l, &closed);
	assert_record(&closed, 7, 0xff, 0, RECORD_USED);
	line_open(&table, l);
	assert_true(line_is(l, LINE_DISK_CLOSED));
	assert_true(is_pending(l));
	lines_committed(&table, &closed);
	/* That commit did not help: the next one does. */
	assert_true(line_is(l, LINE_DISK_CLOSED));
	assert_true(is_pending(l));
	snapshot(l, &opened);
	assert_record(&opened, 7, 0xff, 0, RECORD_USED | RECORD_OPEN_DIRTY);
	lines_committed(&table, &opened);
	assert_false(line_is(l, LINE_DISK_CLOSED));

	/* The record under way says open, the line is closed meanwhile. */
	line_close(&table, l);
	snapshot(l, &closed);
	lines_committed(&table, &closed);
	line_open(&table, l);
	snapshot(l, &opened);
	line_close(&table, l);
	assert_true(is_pending(l));
	lines_committed(&table, &opened);
	assert_false(line_is(l, LINE_DISK_CLOSED));
	assert_false(line_is(l, LINE_OPEN));
	snapshot(l, &closed);
	assert_record(&closed, 7, 0xff, 0, RECORD_USED);
	assert_true(line_is(l, LINE_DISK_CLOSED));
	lines_committed(&table, &closed);
}

static void test_drop_during_commit(void **state)
{
	struct cache_line *l;
	struct record before, after;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(7);
	line_add_valid(&table, l, 0xff);
	snapshot(l, &before);
	line_drop(&table, l, 0x0f);
	assert_true(line_is(l, LINE_DROPPED));
	lines_committed(&table, &before);
	/* What became durable says that the blocks are valid. */
	assert_true(line_is(l, LINE_DROPPED));
	assert_true(is_pending(l));
	snapshot(l, &after);
	assert_record(&after, 7, 0xf0, 0, RECORD_USED);
	assert_false(line_is(l, LINE_DROPPED));
	assert_true(line_is(l, LINE_DROP_COMMITTING));
	/* Another one while the first is being recorded. */
	line_drop(&table, l, 0x10);
	assert_true(line_is(l, LINE_DROPPED));
	lines_committed(&table, &after);
	assert_true(line_is(l, LINE_DROPPED));
	assert_false(line_is(l, LINE_DROP_COMMITTING));
	snapshot(l, &after);
	lines_committed(&table, &after);
	assert_false(line_is(l, LINE_DROPPED | LINE_DROP_COMMITTING));
}

static void test_release(void **state)
{
	static const u64 busy[] = { LINE_DESTAGING, LINE_FILLING };
	struct cache_line *l;
	struct record record;
	unsigned int i;
	u32 slots;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	slots = slots_free(&table);
	l = insert(7);
	line_open(&table, l);
	line_add_valid(&table, l, 0xff);
	line_add_dirty(&table, l, 0x80);
	/* In use, or dirty. */
	assert_false(line_release(&table, l));
	line_del_dirty(&table, l, 0x80);
	assert_true(line_get_reader(l));
	assert_false(line_release(&table, l));
	line_put_reader(l);
	assert_true(line_get_writer(l));
	assert_false(line_release(&table, l));
	line_put_writer(l, 0);
	line_flip_epoch(l);
	assert_true(line_get_writer(l));
	assert_false(line_release(&table, l));
	line_put_writer(l, 1);
	for (i = 0; i < ARRAY_SIZE(busy); i++) {
		line_set(l, busy[i]);
		assert_false(line_release(&table, l));
		line_clear(l, busy[i]);
	}
	assert_count(8, 0);
	assert_int_equal(slots_free(&table), slots - 1);

	assert_true(line_release(&table, l));
	assert_false(line_release(&table, l));
	assert_count(0, 0);
	/* Soon it will be free, but nobody gets it yet (R1). */
	assert_int_equal(slots_free(&table), slots);
	assert_int_equal(slot_nr(slot_alloc(&table)), 1);
	slot_free(&table, to_slot(1));
	assert_ptr_equal(find(7), l);
	assert_true(is_pending(l));
	assert_false(line_is(l, LINE_OPEN));
	snapshot(l, &record);
	assert_record(&record, line_nr(NO_LINE), 0, 0, 0);
	assert_int_equal(slot_nr(record.slot), 0);
	assert_ptr_equal(find(7), l);
	assert_true(lines_committed(&table, &record));
	assert_null(find(7));
	assert_int_equal(flags_of(l), 0);
	assert_int_equal(slots_free(&table), slots);
	assert_int_equal(table.nr_releasing, 0);
	/* Twice is harmless: the table is recorded after the journal. */
	assert_false(lines_committed(&table, &record));
	assert_int_equal(slots_free(&table), slots);
	assert_int_equal(slot_nr(slot_alloc(&table)), 0);
}

static void test_release_during_commit(void **state)
{
	struct cache_line *l, *again;
	struct record before, after;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	l = insert(7);
	line_add_valid(&table, l, 0xff);
	snapshot(l, &before);
	assert_true(line_release(&table, l));
	/* That record says valid. */
	assert_false(lines_committed(&table, &before));
	assert_ptr_equal(find(7), l);
	assert_true(line_is(l, LINE_RELEASING));
	assert_true(is_pending(l));
	snapshot(l, &after);
	assert_record(&after, line_nr(NO_LINE), 0, 0, 0);
	assert_true(lines_committed(&table, &after));

	/* A free slot is recorded, and gets a line before that is durable. */
	snapshot(l, &before);
	assert_record(&before, line_nr(NO_LINE), 0, 0, 0);
	again = insert(8);
	assert_ptr_equal(again, l);
	line_open(&table, l);
	line_add_valid(&table, l, 1);
	assert_false(lines_committed(&table, &before));
	assert_ptr_equal(find(8), l);
	assert_true(is_pending(l));
	assert_int_equal(l->valid, 1);
	/* It was not in that commit at all. */
	assert_int_equal(flags_of(l),
			 LINE_USED | LINE_OPEN | LINE_RECENT | LINE_PENDING);
}

/* The drop modes: open lines get the other flag. */
static void test_open_drop(void **state)
{
	struct cache_line *l;
	struct record record;

	begin(16 * MIB, GIB, RECORD_OPEN_DROP);
	l = insert(7);
	line_add_valid(&table, l, 3);
	snapshot(l, &record);
	assert_record(&record, 7, 3, 0, RECORD_USED);
	lines_committed(&table, &record);
	assert_true(line_is(l, LINE_DISK_CLOSED));
	line_open(&table, l);
	snapshot(l, &record);
	assert_record(&record, 7, 3, 0, RECORD_USED | RECORD_OPEN_DROP);
	lines_committed(&table, &record);
	assert_false(line_is(l, LINE_DISK_CLOSED));
}

static void stage(u32 slot, u64 line, u64 valid, u64 dirty, u8 flags)
{
	struct record record = {
		.slot = to_slot(slot),
		.line = flags ? to_line(line) : NO_LINE,
		.valid = valid, .dirty = dirty, .flags = flags,
	};

	lines_stage(&table, &record);
}

static void assert_line(u64 line, u32 slot, u64 valid, u64 dirty, u64 flags)
{
	struct cache_line *l = find(line);

	assert_non_null(l);
	assert_int_equal(l - table.lines, slot);
	assert_int_equal(l->valid, valid);
	assert_int_equal(l->dirty, dirty);
	assert_int_equal(flags_of(l), LINE_USED | flags);
	assert_int_equal(l->counts, 0);
	is_pending(l);
	if (dirty)
		assert_true(bittree_test(&table.open_regions,
					 line >> table.region_shift));
}

static void test_restore(void **state)
{
	u64 slots, lines, again;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	slots = super_nr_slots(&super);
	lines = super_nr_lines(&super);
	for (again = 0; again < 2; again++) {
		stage(0, 10, 0xff, 0x0f, RECORD_USED);
		stage(1, 11, 0xff, 0x0f, RECORD_USED | RECORD_OPEN_DIRTY);
		stage(2, 12, 0xff, 0x0f, RECORD_USED | RECORD_OPEN_DROP);
		stage(3, 13, 0xff, 0x00, RECORD_USED | RECORD_OPEN_DROP);
		stage(4, 14, 0, 0, RECORD_USED);
		stage(5, 15, 0xff, 0xff, RECORD_USED);
		stage(5, 0, 0, 0, 0);
		/* The newest record of a slot counts. */
		stage(6, 16, 0xff, 0xff, RECORD_USED | RECORD_OPEN_DIRTY);
		stage(6, 17, 0x01, 0x00, RECORD_USED);
		/* A line may move from slot to slot. */
		stage(7, 18, 0xff, 0xff, RECORD_USED);
		stage(7, 0, 0, 0, 0);
		stage(slots - 1, 18, 0x80, 0x80, RECORD_USED);
		stage(8, lines - 1, 0x1, 0x1, RECORD_USED);
		assert_int_equal(lines_restore(&table), 0);

		assert_line(10, 0, 0xff, 0x0f, LINE_DISK_CLOSED);
		/* Closed by what a crash means, which is to be recorded. */
		assert_line(11, 1, 0xff, 0xff, LINE_DISK_CLOSED | LINE_PENDING);
		assert_line(12, 2, 0x0f, 0x0f, LINE_DISK_CLOSED | LINE_PENDING);
		assert_line(13, 3, 0, 0, LINE_PENDING);
		assert_line(14, 4, 0, 0, 0);
		assert_null(find(15));
		assert_null(find(16));
		assert_line(17, 6, 0x01, 0, LINE_DISK_CLOSED);
		assert_line(18, slots - 1, 0x80, 0x80, LINE_DISK_CLOSED);
		assert_line(lines - 1, 8, 1, 1, LINE_DISK_CLOSED);
		assert_count(8 + 8 + 4 + 1 + 1 + 1, 4 + 8 + 4 + 1 + 1);
		assert_int_equal(slots_free(&table), slots - 8);
		assert_int_equal(slot_nr(slot_alloc(&table)), 5);
		assert_int_equal(slot_nr(slot_alloc(&table)), 7);
		assert_int_equal(slot_nr(slot_alloc(&table)), 9);
		assert_int_equal(bittree_next(&table.pending, 0), 1);
		/* All is forgotten, and loaded once more. */
		lines_reset(&table);
		assert_count(0, 0);
		assert_int_equal(slots_free(&table), slots);
		assert_true(bittree_empty(&table.pending));
		assert_true(bittree_empty(&table.open_regions));
	}
}

static void test_restore_duplicate(void **state)
{
	u64 slots;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	slots = super_nr_slots(&super);
	stage(3, 10, 1, 0, RECORD_USED);
	stage(slots - 1, 10, 1, 1, RECORD_USED);
	assert_int_equal(lines_restore(&table), -EEXIST);
	lines_reset(&table);
	assert_null(find(10));
	/* Neither has blocks: impossible as well. */
	stage(0, 10, 0, 0, RECORD_USED);
	stage(1, 10, 0, 0, RECORD_USED);
	assert_int_equal(lines_restore(&table), -EEXIST);
	lines_reset(&table);
	stage(0, 10, 0, 0, RECORD_USED);
	assert_int_equal(lines_restore(&table), 0);
}

/* A full cache whose hash was never so full. */
static void test_restore_full(void **state)
{
	u64 nr, slots, lines;

	begin(256 * MIB, PIB, RECORD_OPEN_DIRTY);
	slots = super_nr_slots(&super);
	lines = super_nr_lines(&super);
	for (nr = 0; nr < slots; nr++)
		stage(nr, lines / slots * nr, nr & 0xffff, 0, RECORD_USED);
	assert_int_equal(lines_restore(&table), 0);
	assert_true(slot_alloc(&table) == NO_SLOT);
	for (nr = 0; nr < slots; nr++)
		assert_int_equal(find(lines / slots * nr) - table.lines, nr);
}

/* 2 MiB of cache for 1 PiB: few bits, and each line has one. */
static void test_regions(void **state)
{
	static const u64 arrays[] = { 1, 100 * MIB, TIB, PIB, PIB + 1 };
	u64 nr_bits, lines, slots, line;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(arrays); i++) {
		begin(2 * MIB, arrays[i], RECORD_OPEN_DIRTY);
		lines = super_nr_lines(&super);
		slots = super_nr_slots(&super);
		nr_bits = (lines >> table.region_shift) + 1;
		assert_true(nr_bits <= 8 * slots + 1);
		/* As fine as that allows. */
		if (table.region_shift)
			assert_true(2 * nr_bits >= 8 * slots);
		for (n = 0; n < 100; n++) {
			line = n ? random_below(lines) : lines - 1;
			line_mark_region(&table, to_line(line));
			assert_int_equal(bittree_next(&table.open_regions, 0),
					 line >> table.region_shift);
			bittree_clear(&table.open_regions,
				      line >> table.region_shift);
		}
		if (i < ARRAY_SIZE(arrays) - 1)
			lines_exit(&table);
	}
}

static void test_conflicts(void **state)
{
	struct bio bios[4], *bio;
	struct bio_list waiting = BIO_EMPTY_LIST;
	struct conflict bypass[2], destage, fill, other;
	struct stripe *stripe;
	unsigned long flags;
	line_t line = to_line(7), elsewhere = to_line(8);
	unsigned int i;

	begin(16 * MIB, GIB, RECORD_OPEN_DIRTY);
	stripe = lines_lock(&table, line, &flags);
	assert_null(conflict_find(stripe, line, CONFLICT_FILL));
	assert_int_equal(conflict_bypassed(stripe, line), 0);
	conflict_add(stripe, &other, CONFLICT_FILL, elsewhere, ~0ULL);
	assert_null(conflict_find(stripe, line, CONFLICT_FILL));
	assert_null(conflict_overlap(stripe, line, CONFLICT_FILL, ~0ULL));
	conflict_add(stripe, &bypass[0], CONFLICT_BYPASS, line, 0x0f);
	conflict_add(stripe, &bypass[1], CONFLICT_BYPASS, line, 0xf0);
	conflict_add(stripe, &destage, CONFLICT_DESTAGE, line, 0xff00);
	conflict_add(stripe, &fill, CONFLICT_FILL, line, 0xf00000);
	assert_int_equal(stripe->nr_conflicts, 5);
	assert_int_equal(conflict_bypassed(stripe, line), 0xff);
	assert_int_equal(conflict_bypassed(stripe, elsewhere), 0);
	assert_ptr_equal(conflict_find(stripe, line, CONFLICT_DESTAGE), &destage);
	assert_ptr_equal(conflict_find(stripe, line, CONFLICT_FILL), &fill);
	assert_ptr_equal(conflict_find(stripe, elsewhere, CONFLICT_FILL), &other);
	assert_null(conflict_find(stripe, line, CONFLICT_BOTH));
	assert_ptr_equal(conflict_overlap(stripe, line, CONFLICT_BYPASS, 0x18),
			 &bypass[0]);
	assert_ptr_equal(conflict_overlap(stripe, line, CONFLICT_BYPASS, 0x10),
			 &bypass[1]);
	assert_null(conflict_overlap(stripe, line, CONFLICT_BYPASS, 0x100));
	assert_ptr_equal(conflict_overlap(stripe, line, CONFLICT_DESTAGE, 0x100),
			 &destage);
	assert_null(conflict_overlap(stripe, line, CONFLICT_DESTAGE, 0xf0));
	assert_int_equal(fill.spoiled | fill.writing | destage.spoiled, 0);

	/* Who waited comes in the order of waiting, behind earlier ones. */
	for (i = 0; i < 4; i++)
		bio_list_add(i < 3 ? &destage.waiting : &fill.waiting, &bios[i]);
	conflict_del(stripe, &fill, &waiting);
	conflict_del(stripe, &bypass[0], &waiting);
	conflict_del(stripe, &destage, &waiting);
	assert_null(conflict_find(stripe, line, CONFLICT_DESTAGE));
	assert_int_equal(conflict_bypassed(stripe, line), 0xf0);
	assert_true(bio_list_empty(&destage.waiting));
	for (i = 0; i < 4; i++) {
		bio = bio_list_pop(&waiting);
		assert_ptr_equal(bio, &bios[(i + 3) % 4]);
	}
	assert_null(bio_list_pop(&waiting));
	conflict_del(stripe, &bypass[1], &waiting);
	conflict_del(stripe, &other, &waiting);
	assert_int_equal(stripe->nr_conflicts, 0);
	assert_true(list_empty(&stripe->conflicts));
	lines_unlock(stripe, flags);
}

static void test_no_memory(void **state)
{
	unsigned int n;
	int r = -ENOMEM;

	make_super(&super, 128, 16 * MIB, GIB);
	for (n = 1; r; n++) {
		assert_true(n < 40);
		memset(&table, 0, sizeof(table));
		standin_alloc_fails = n;
		r = lines_init(&table, &super, RECORD_OPEN_DIRTY);
		if (r) {
			assert_int_equal(r, -ENOMEM);
			lines_exit(&table);
		}
	}
	standin_alloc_fails = 0;
	assert_true(n > 8);
}

/*---- Random walk ----*/

/*
 * A model of the devices under the line table. Each write of a block has a
 * number; what an SSD or array block holds is such a number, and on the SSD the
 * line it belongs to. At each step a power cut is thought of: the records that
 * are durable then, recovered, must lead to contents that are allowed.
 */
#define WALK_LINES	40u
#define WALK_BLOCKS	6u
#define WALK_SLOTS	12u
#define WALK_IOS	8u
#define ALL_BLOCKS	((1u << WALK_BLOCKS) - 1)

struct content {
	u64 version;
	u32 line;
};

static struct walk {
	bool drop;
	u64 version;
	/* As the SSD shows it, as of its last flush, and of the one under way. */
	struct content ssd[WALK_SLOTS][WALK_BLOCKS];
	struct content ssd_durable[WALK_SLOTS][WALK_BLOCKS];
	struct content ssd_flushing[WALK_SLOTS][WALK_BLOCKS];
	u64 array[WALK_LINES][WALK_BLOCKS];
	/* Newest acknowledged; as of the last completed commit. */
	u64 acked[WALK_LINES][WALK_BLOCKS];
	u64 promised[WALK_LINES][WALK_BLOCKS];
	/* Newest record of each slot on the SSD. */
	struct record disk[WALK_SLOTS];

	/* Writes in flight to the SSD (in drop mode to both). */
	struct walk_io {
		bool busy;
		u32 line;
		struct cache_line *l;
		u64 blocks;
		unsigned int epoch;
		u64 version;
	} io[WALK_IOS];
	u64 writing[WALK_LINES];	/* blocks */
	unsigned int readers[WALK_LINES];

	/* The commit under way. */
	bool committing;
	unsigned int nr_records;
	struct record records[WALK_SLOTS];
	u64 committed_acks[WALK_LINES][WALK_BLOCKS];

	u64 writes, opens_waited, releases, bypasses, fills, closes, drops;
} walk;

static u64 walk_line_blocks(u32 line)
{
	return super_line_blocks(&super, to_line(line)) & ALL_BLOCKS;
}

static u64 random_blocks(u32 line)
{
	return random_u64() & random_u64() & walk_line_blocks(line);
}

/* The invariants of design.rst, and what the table counts. */
static void walk_check_table(void)
{
	u64 valid = 0, dirty = 0, releasing = 0, used = 0;
	unsigned int i;
	u32 nr;

	for (nr = 0; nr < super_nr_slots(&super); nr++) {
		struct cache_line *l = &table.lines[nr];
		u32 line = line_nr(line_of(l));

		assert_true(is_pending(l) == line_is(l, LINE_PENDING));
		if (!line_is(l, LINE_USED)) {
			assert_int_equal(flags_of(l), 0);
			continue;
		}
		/* One in the free pool is no line's (I5). */
		assert_false(bittree_test(&table.free, nr));
		assert_ptr_equal(find(line), l);
		used++;
		valid += hweight64(l->valid);
		dirty += hweight64(l->dirty);
		/* I1 */
		assert_int_equal(l->dirty & ~l->valid, 0);
		assert_int_equal(l->valid & ~walk_line_blocks(line), 0);
		/* I3, I4 */
		if (line_writers(l, 0) || line_writers(l, 1)) {
			assert_true(line_is(l, LINE_OPEN));
			assert_false(line_is(l, LINE_DISK_CLOSED));
			assert_false(line_is(l, LINE_RELEASING));
		}
		if (line_is(l, LINE_RELEASING)) {
			releasing++;
			assert_int_equal(l->valid | l->counts, 0);
			assert_false(line_is(l, LINE_OPEN));
		}
		if (line_is(l, LINE_OPEN))
			assert_true(bittree_test(&table.open_regions,
						 line >> table.region_shift));
		if (line_is(l, LINE_COMMITTING | LINE_DROP_COMMITTING))
			assert_true(walk.committing);
		if (line_is(l, LINE_DROPPED))
			assert_true(line_is(l, LINE_PENDING));
		/* What nobody is to record is recorded. */
		if (!line_is(l, LINE_PENDING | LINE_COMMITTING) &&
		    (l->valid || walk.disk[nr].flags)) {
			const struct record *disk = &walk.disk[nr];

			assert_int_equal(line_nr(disk->line), line);
			assert_int_equal(disk->valid, l->valid);
			assert_int_equal(disk->dirty, l->dirty);
			if (!line_is(l, LINE_OPEN))
				assert_int_equal(disk->flags, RECORD_USED);
		}
		if (walk.disk[nr].flags == RECORD_USED && walk.disk[nr].valid)
			assert_true(line_is(l, LINE_DISK_CLOSED));
	}
	assert_count(valid, dirty);
	assert_int_equal(table.nr_releasing, releasing);
	assert_int_equal(table.nr_free + used, super_nr_slots(&super));
	for (i = 0; i < WALK_IOS; i++)
		if (walk.io[i].busy)
			assert_ptr_equal(find(walk.io[i].line), walk.io[i].l);
}

/* What would be read of a block if the power went now and this was durable. */
static void walk_check_block(u32 line, unsigned int block, bool dirty,
			     const struct content *content, u64 promised)
{
	/* Never another line's (R1), nor from before the data came (R2). */
	assert_int_equal(content->line, line);
	if (dirty) {
		assert_true(content->version >= promised);
		return;
	}
	/* Clean is what the array has, and what nobody is writing (R3, R6). */
	assert_int_equal(content->version, walk.array[line][block]);
	assert_false(walk.writing[line] & 1ULL << block);
}

static void walk_check_cut(const struct record *disk,
			   struct content (*durable)[WALK_BLOCKS],
			   u64 (*promised)[WALK_BLOCKS])
{
	u64 seen[WALK_LINES] = { 0 };
	bool twice[WALK_LINES] = { false };
	unsigned int nr, block;
	u32 line;

	for (nr = 0; nr < WALK_SLOTS; nr++) {
		struct record record = disk[nr];

		if (!record.flags)
			continue;
		line = line_nr(record.line);
		/* lines_restore() would refuse it. */
		assert_false(twice[line]);
		twice[line] = true;
		record_recover(&record);
		seen[line] = record.valid;
		for (block = 0; block < WALK_BLOCKS; block++) {
			bool dirty = record.dirty & 1ULL << block;

			if (!(record.valid & 1ULL << block))
				continue;
			walk_check_block(line, block, dirty,
					 &walk.ssd[nr][block],
					 promised[line][block]);
			walk_check_block(line, block, dirty,
					 &durable[nr][block],
					 promised[line][block]);
		}
	}
	for (line = 0; line < WALK_LINES; line++)
		for (block = 0; block < WALK_BLOCKS; block++)
			if (!(seen[line] & 1ULL << block))
				assert_true(walk.array[line][block] >=
					    promised[line][block]);
}

/* The disk after the commit under way. */
static void walk_next_disk(struct record *disk)
{
	unsigned int i;

	memcpy(disk, walk.disk, sizeof(walk.disk));
	for (i = 0; i < walk.nr_records; i++)
		disk[slot_nr(walk.records[i].slot)] = walk.records[i];
}

static void walk_check(void)
{
	struct record next[WALK_SLOTS];
	unsigned int block;
	u32 line;

	walk_check_table();
	walk_check_cut(walk.disk, walk.ssd_durable, walk.promised);
	if (walk.committing) {
		walk_next_disk(next);
		walk_check_cut(next, walk.ssd_flushing, walk.promised);
	}
	/* Without a cut a read gets the newest of all (C3). */
	for (line = 0; line < WALK_LINES; line++) {
		struct cache_line *l = find(line);

		for (block = 0; block < WALK_BLOCKS; block++) {
			bool cached = l && l->valid & 1ULL << block;

			if (walk.writing[line] & 1ULL << block)
				continue;
			assert_int_equal(cached ?
					 walk.ssd[l - table.lines][block].version :
					 walk.array[line][block],
					 walk.acked[line][block]);
		}
	}
}

static void walk_commit_begin(void)
{
	unsigned int nr;
	u64 at = 0;

	memcpy(walk.committed_acks, walk.acked, sizeof(walk.acked));
	walk.nr_records = 0;
	walk.committing = true;
	if (random_below(8)) {
		for (at = 0; (at = bittree_next(&table.pending, at)) !=
		     BITTREE_NONE; at++)
			lines_snapshot(&table, to_slot(at),
				       &walk.records[walk.nr_records++]);
		assert_true(bittree_empty(&table.pending));
	} else {
		/* A checkpoint records all there is. */
		for (nr = 0; nr < WALK_SLOTS; nr++)
			lines_snapshot(&table, to_slot(nr),
				       &walk.records[walk.nr_records++]);
	}
	memcpy(walk.ssd_flushing, walk.ssd, sizeof(walk.ssd));
}

static void walk_commit_end(void)
{
	unsigned int i, other;

	walk_next_disk(walk.disk);
	memcpy(walk.ssd_durable, walk.ssd_flushing, sizeof(walk.ssd));
	memcpy(walk.promised, walk.committed_acks, sizeof(walk.promised));
	/* In any order. */
	for (i = 0; i < walk.nr_records; i++) {
		other = random_below(walk.nr_records);
		swap(walk.records[i], walk.records[other]);
	}
	for (i = 0; i < walk.nr_records; i++) {
		const struct record *record = &walk.records[i];
		struct cache_line *l = slot_line(&table, record->slot);
		bool releasing = line_is(l, LINE_RELEASING);
		bool released = lines_committed(&table, record);

		assert_true(!released || releasing);
		assert_int_equal(released, releasing && !record->flags &&
				 !line_is(l, LINE_USED));
		walk.releases += released;
	}
	walk.committing = false;
}

/* As the I/O path does it; NULL if the write would wait. */
static struct cache_line *walk_to_write(u32 line)
{
	struct cache_line *l = find(line);
	slot_t slot;

	if (!l) {
		slot = slot_alloc(&table);
		if (slot == NO_SLOT)
			return NULL;
		l = line_insert(&table, slot, to_line(line));
	}
	if (line_is(l, LINE_RELEASING))
		return NULL;
	line_open(&table, l);
	if (line_is(l, LINE_DISK_CLOSED)) {
		walk.opens_waited++;
		return NULL;
	}
	return l;
}

static void walk_write_begin(u32 line, u64 blocks)
{
	struct walk_io *io = &walk.io[random_below(WALK_IOS)];
	struct cache_line *l;

	if (io->busy || walk.writing[line] & blocks)
		return;
	l = walk_to_write(line);
	if (!l)
		return;
	assert_true(line_get_writer(l));
	io->busy = true;
	io->line = line;
	io->l = l;
	io->blocks = blocks;
	io->epoch = line_epoch(l);
	io->version = ++walk.version;
	walk.writing[line] |= blocks;
}

static void walk_write_end(struct walk_io *io)
{
	unsigned int block;

	if (!io->busy)
		return;
	for (block = 0; block < WALK_BLOCKS; block++) {
		if (!(io->blocks & 1ULL << block))
			continue;
		walk.ssd[io->l - table.lines][block].version = io->version;
		walk.ssd[io->l - table.lines][block].line = io->line;
		if (walk.drop)
			walk.array[io->line][block] = io->version;
		walk.acked[io->line][block] = io->version;
	}
	line_add_valid(&table, io->l, io->blocks);
	if (!walk.drop)
		line_add_dirty(&table, io->l, io->blocks);
	line_put_writer(io->l, io->epoch);
	walk.writing[io->line] &= ~io->blocks;
	io->busy = false;
	walk.writes++;
}

static void walk_to_array(u32 line, u64 blocks)
{
	unsigned int block;

	walk.version++;
	for (block = 0; block < WALK_BLOCKS; block++) {
		if (!(blocks & 1ULL << block))
			continue;
		walk.array[line][block] = walk.version;
		walk.acked[line][block] = walk.version;
	}
	walk.bypasses++;
}

static void walk_bypass(u32 line, u64 blocks)
{
	struct cache_line *l = find(line);

	if (l && (l->valid | walk.writing[line]) & blocks)
		return;
	if (l && line_is(l, LINE_DROPPED | LINE_DROP_COMMITTING | LINE_RELEASING))
		return;
	walk_to_array(line, blocks);
}

/* Drop modes: what is overwritten is dropped at once if the line is open. */
static void walk_write_around(u32 line, u64 blocks)
{
	struct cache_line *l = find(line);

	if (!l || walk.writing[line] || line_is(l, LINE_RELEASING))
		return;
	line_open(&table, l);
	if (line_is(l, LINE_DISK_CLOSED))
		return;
	line_drop(&table, l, blocks);
	walk_to_array(line, blocks);
}

static void walk_fill(u32 line, u64 blocks)
{
	struct cache_line *l = find(line);
	unsigned int block;
	slot_t slot;

	if (!l) {
		slot = slot_alloc(&table);
		if (slot == NO_SLOT)
			return;
		l = line_insert(&table, slot, to_line(line));
	}
	blocks &= ~(l->valid | walk.writing[line]);
	if (line_is(l, LINE_RELEASING) || !blocks)
		return;
	for (block = 0; block < WALK_BLOCKS; block++) {
		if (!(blocks & 1ULL << block))
			continue;
		walk.ssd[l - table.lines][block].version =
			walk.array[line][block];
		walk.ssd[l - table.lines][block].line = line;
	}
	line_add_valid(&table, l, blocks);
	walk.fills++;
}

static void walk_destage(u32 line, u64 blocks)
{
	struct cache_line *l = find(line);
	unsigned int block;

	if (!l || line_is(l, LINE_RELEASING))
		return;
	line_flip_epoch(l);
	if (random_below(2))
		blocks = ALL_BLOCKS;
	blocks &= l->dirty & ~walk.writing[line];
	for (block = 0; block < WALK_BLOCKS; block++)
		if (blocks & 1ULL << block)
			walk.array[line][block] =
				walk.ssd[l - table.lines][block].version;
	line_del_dirty(&table, l, blocks);
	if (!l->dirty && !line_writers(l, 0) && !line_writers(l, 1) &&
	    line_is(l, LINE_OPEN)) {
		line_close(&table, l);
		walk.closes++;
	}
}

/* A clean block can not be read: the array has it too. */
static void walk_drop(u32 line, u64 blocks)
{
	struct cache_line *l = find(line);

	if (!l || line_is(l, LINE_RELEASING))
		return;
	blocks &= l->valid & ~l->dirty & ~walk.writing[line];
	line_drop(&table, l, blocks);
	walk.drops += !!blocks;
}

static void walk_read(u32 line)
{
	struct cache_line *l = find(line);

	if (walk.readers[line]) {
		assert_non_null(l);
		line_put_reader(l);
		walk.readers[line]--;
	} else if (l && l->valid) {
		assert_true(line_get_reader(l));
		walk.readers[line]++;
	}
}

static void walk_release(u32 line)
{
	struct cache_line *l = find(line);
	bool may;

	if (!l)
		return;
	may = !l->dirty && !walk.writing[line] && !walk.readers[line] &&
	      !line_is(l, LINE_RELEASING);
	assert_int_equal(line_release(&table, l), may);
}

/* Power cut and restart: what lines_restore() makes of the records. */
static void walk_restart(void)
{
	unsigned int i, nr, block;
	u32 line;

	/* Unflushed contents may be lost, whichever. */
	for (nr = 0; nr < WALK_SLOTS; nr++)
		for (block = 0; block < WALK_BLOCKS; block++)
			if (random_below(2))
				walk.ssd[nr][block] = walk.ssd_durable[nr][block];
	/* Was a write in flight, it may have come to be. */
	for (i = 0; i < WALK_IOS; i++) {
		struct walk_io *io = &walk.io[i];

		if (!io->busy)
			continue;
		for (block = 0; block < WALK_BLOCKS; block++) {
			if (!(io->blocks & 1ULL << block))
				continue;
			nr = io->l - table.lines;
			if (random_below(2)) {
				walk.ssd[nr][block].version = io->version;
				walk.ssd[nr][block].line = io->line;
			}
			if (walk.drop && random_below(2))
				walk.array[io->line][block] = io->version;
		}
		io->busy = false;
	}
	memset(walk.writing, 0, sizeof(walk.writing));
	memset(walk.readers, 0, sizeof(walk.readers));
	memcpy(walk.ssd_durable, walk.ssd, sizeof(walk.ssd));
	walk.committing = false;

	lines_reset(&table);
	for (nr = 0; nr < WALK_SLOTS; nr++)
		if (walk.disk[nr].flags)
			lines_stage(&table, &walk.disk[nr]);
	assert_int_equal(lines_restore(&table), 0);
	/* From now on this is what was ever written (C2). */
	for (line = 0; line < WALK_LINES; line++) {
		struct cache_line *l = find(line);

		for (block = 0; block < WALK_BLOCKS; block++) {
			bool cached = l && l->valid & 1ULL << block;

			nr = cached ? l - table.lines : 0;
			if (cached)
				assert_int_equal(walk.ssd[nr][block].line, line);
			walk.acked[line][block] = cached ?
				walk.ssd[nr][block].version :
				walk.array[line][block];
			assert_true(walk.acked[line][block] >=
				    walk.promised[line][block]);
		}
	}
	walk_commit_begin();
	walk_commit_end();
}

static void walk_step(void)
{
	/* Few lines most of the time, so that they meet. */
	u32 line = random_below(random_below(4) ? 10 : WALK_LINES);
	u64 blocks;

	if (!random_below(8))
		line = WALK_LINES - 1;
	blocks = random_blocks(line);

	switch (random_below(16)) {
	case 0:
	case 1:
	case 2:
		if (blocks)
			walk_write_begin(line, blocks);
		break;
	case 3:
	case 4:
	case 5:
		walk_write_end(&walk.io[random_below(WALK_IOS)]);
		break;
	case 6:
		walk_fill(line, blocks);
		break;
	case 7:
		walk_bypass(line, blocks);
		break;
	case 8:
		if (walk.drop)
			walk_write_around(line, blocks);
		break;
	case 9:
	case 10:
		walk_destage(line, blocks);
		break;
	case 11:
		walk_drop(line, blocks);
		break;
	case 12:
		walk_read(line);
		break;
	case 13:
		walk_release(line);
		break;
	case 14:
		if (!walk.committing)
			walk_commit_begin();
		else
			walk_commit_end();
		break;
	case 15:
		if (!random_below(50))
			walk_restart();
		break;
	}
}

static void random_walk(bool drop)
{
	unsigned int n;

	make_super(&super, 128, 4 * MIB, (WALK_LINES - 1) * 128 + 3 * 8 - 5);
	assert_true(super.segments[0].nr_slots >= WALK_SLOTS);
	super.segments[0].nr_slots = WALK_SLOTS;
	assert_int_equal(super_nr_lines(&super), WALK_LINES);
	memset(&table, 0, sizeof(table));
	assert_int_equal(lines_init(&table, &super, drop ? RECORD_OPEN_DROP :
				    RECORD_OPEN_DIRTY), 0);
	memset(&walk, 0, sizeof(walk));
	walk.drop = drop;
	for (n = 0; n < WALK_SLOTS; n++) {
		walk.disk[n].slot = to_slot(n);
		walk.disk[n].line = NO_LINE;
	}
	/* Of no line yet. */
	memset(walk.ssd, 0xff, sizeof(walk.ssd));
	memset(walk.ssd_durable, 0xff, sizeof(walk.ssd_durable));
	for (n = 0; n < 150000; n++) {
		walk_step();
		walk_check();
	}
	/* All of it took part. */
	assert_true(walk.writes > 1000);
	assert_true(walk.opens_waited > 500);
	assert_true(walk.releases > 300);
	assert_true(walk.bypasses > 1000);
	assert_true(walk.fills > 300);
	assert_true(walk.closes > 500);
	assert_true(walk.drops > 300);
}

static void test_walk_dirty(void **state)
{
	random_walk(false);
}

static void test_walk_drop(void **state)
{
	random_walk(true);
}

#define line_test(test)	cmocka_unit_test_teardown(test, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags_apart),
		line_test(test_slots),
		line_test(test_insert_find),
		line_test(test_chains),
		line_test(test_references),
		line_test(test_maps),
		line_test(test_open_protocol),
		line_test(test_close_taken_back),
		line_test(test_open_during_commit),
		line_test(test_drop_during_commit),
		line_test(test_release),
		line_test(test_release_during_commit),
		line_test(test_open_drop),
		line_test(test_restore),
		line_test(test_restore_duplicate),
		line_test(test_restore_full),
		line_test(test_regions),
		line_test(test_conflicts),
		line_test(test_no_memory),
		line_test(test_walk_dirty),
		line_test(test_walk_drop),
	};

	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
