// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of format.c: structures, layout, checks, replay.
 *
 * sources: format.c
 */
#include "unit.h"

#include <linux/crc32c.h>
#include <linux/errno.h>

/*---- Offsets and sizes, as Documentation/on-disk-format.rst has them ----*/

#define AT(type, field, offset, bytes)					\
	_Static_assert(offsetof(struct type, field) == (offset) &&	\
		       sizeof(((struct type *)0)->field) == (bytes),	\
		       #type "." #field)

_Static_assert(sizeof(struct disk_header) == 64, "disk_header");
AT(disk_header, magic, 0, 8);
AT(disk_header, crc, 8, 4);
AT(disk_header, count, 12, 2);
AT(disk_header, flags, 14, 2);
AT(disk_header, location, 16, 8);
AT(disk_header, seq, 24, 8);
AT(disk_header, first, 32, 8);
AT(disk_header, reserved, 40, 24);

_Static_assert(sizeof(struct disk_record) == 32, "disk_record");
AT(disk_record, slot, 0, 4);
AT(disk_record, flags, 4, 1);
AT(disk_record, hint, 5, 1);
AT(disk_record, reserved, 6, 2);
AT(disk_record, line, 8, 8);
AT(disk_record, valid, 16, 8);
AT(disk_record, dirty, 24, 8);

_Static_assert(sizeof(struct disk_records_block) == 4096, "disk_records_block");
AT(disk_records_block, header, 0, 64);
AT(disk_records_block, records, 64, 126 * 32);

_Static_assert(sizeof(struct disk_segment) == 24, "disk_segment");
AT(disk_segment, first_slot, 0, 4);
AT(disk_segment, nr_slots, 4, 4);
AT(disk_segment, table_block, 8, 8);
AT(disk_segment, data_sector, 16, 8);

_Static_assert(sizeof(struct disk_super) == 4096, "disk_super");
AT(disk_super, header, 0, 64);
AT(disk_super, uuid, 64, 16);
AT(disk_super, version, 80, 4);
AT(disk_super, compat, 84, 4);
AT(disk_super, ro_compat, 88, 4);
AT(disk_super, incompat, 92, 4);
AT(disk_super, flags, 96, 4);
AT(disk_super, mode, 100, 4);
AT(disk_super, line_sectors, 104, 4);
AT(disk_super, nr_segments, 108, 4);
AT(disk_super, array_sectors, 112, 8);
AT(disk_super, ssd_sectors, 120, 8);
AT(disk_super, journal_blocks, 128, 8);
AT(disk_super, journal_tail, 136, 8);
AT(disk_super, high_water, 144, 8);
AT(disk_super, dirty_blocks, 152, 8);
AT(disk_super, fingerprint, 160, 12);
AT(disk_super, reserved, 172, 4);
AT(disk_super, segments, 176, 8 * 24);
AT(disk_super, padding, 368, 3728);

_Static_assert(MODE_WRITEBACK == 0 && MODE_WRITETHROUGH == 1 &&
	       MODE_WRITEAROUND == 2 && MODE_PASSTHROUGH == 3, "modes");
_Static_assert(SUPER_CLEAN == 1 && SUPER_DETACHED == 2 && SUPER_FAILED == 4,
	       "super flags");
_Static_assert(RECORD_USED == 1 && RECORD_OPEN_DIRTY == 2 &&
	       RECORD_OPEN_DROP == 4, "record flags");

static void flip_bit(void *block, unsigned int bit)
{
	((u8 *)block)[bit / 8] ^= 1 << bit % 8;
}

/* The checksum and the byte order do not depend on what format.c thinks. */
static void test_bytes(void **state)
{
	static u8 block[4096];
	struct super super;
	u32 crc = ~0u;
	unsigned int i, n;

	make_super(&super, 512, GIB, TIB);
	super.seq = 0x1122334455667788;
	super.array_sectors = 0x0000123456789abc;
	super_encode(&super, 16, (struct disk_super *)block);
	assert_memory_equal(block, "SSDCsupr", 8);
	assert_memory_equal(block + 16, "\x10\0\0\0\0\0\0\0", 8);
	assert_memory_equal(block + 24, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
	assert_memory_equal(block + 64, super.uuid, 16);
	assert_memory_equal(block + 80, "\1\0\0\0", 4);
	assert_memory_equal(block + 104, "\0\2\0\0", 4);
	assert_memory_equal(block + 112, "\xbc\x9a\x78\x56\x34\x12\0\0", 8);
	for (i = 0; i < sizeof(block); i++) {
		if (i >= 8 && i < 12)
			continue;
		crc ^= block[i];
		for (n = 0; n < 8; n++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(block[8 + i], crc >> 8 * i & 0xff);
}

/*---- Layout ----*/

/* Parts in the order of their places: none overlaps, all are inside. */
static void check_layout(const struct super *super)
{
	u64 end = super_place(1) + 1;
	u64 index = 0, slots = 0;
	u32 i, first, count;

	assert_int_equal(super_place(0), 0);
	assert_true(end <= journal_place(super, 0, 0));
	end = journal_place(super, super->journal_blocks - 1, 1) + 1;
	assert_int_equal(end, journal_place(super, 0, 0) +
			      2 * super->journal_blocks);
	assert_int_equal(journal_place(super, 0, 0) + 1,
			 journal_place(super, 0, 1));
	assert_int_equal(journal_place(super, super->journal_blocks, 0),
			 journal_place(super, 0, 0));
	end *= BLOCK_SECTORS;
	for (i = 0; i < super->nr_segments; i++) {
		const struct segment *segment = &super->segments[i];
		u64 blocks = (segment->nr_slots + 125ULL) / 126;
		u64 last;

		assert_int_equal(segment->first_slot, slots);
		assert_true(segment->nr_slots);
		/* Its table: two places, one after the other. */
		assert_true(table_block_place(super, index, 0, &first, &count) *
			    BLOCK_SECTORS >= end);
		assert_int_equal(first, segment->first_slot);
		assert_int_equal(table_block_place(super, index, 1, &first, &count),
				 segment->table_block + blocks);
		end = table_block_place(super, index + blocks - 1, 1, &first,
					&count) + 1;
		assert_int_equal(end, segment->table_block + 2 * blocks);
		assert_int_equal((u64)first + count,
				 (u64)segment->first_slot + segment->nr_slots);
		end *= BLOCK_SECTORS;
		/* Its slots. */
		assert_true(segment->data_sector >= end);
		assert_int_equal(segment->data_sector % super->line_sectors, 0);
		assert_int_equal(slot_to_sector(super, to_slot(slots)),
				 segment->data_sector);
		last = slots + segment->nr_slots - 1;
		end = slot_to_sector(super, to_slot(last)) + super->line_sectors;
		assert_int_equal(end, segment->data_sector +
				 segment->nr_slots * (u64)super->line_sectors);
		assert_true(end <= super->ssd_sectors);
		slots += segment->nr_slots;
		index += blocks;
	}
	assert_int_equal(super_nr_slots(super), slots);
	assert_int_equal(super_nr_table_blocks(super), index);
}

/* slot -> table block and the way back, at all borders and at random. */
static void check_slot(const struct super *super, u64 nr)
{
	u64 index = slot_to_table_index(super, to_slot(nr));
	u32 first, count;

	assert_true(index < super_nr_table_blocks(super));
	table_block_place(super, index, 0, &first, &count);
	assert_true(count >= 1 && count <= RECORDS_PER_BLOCK);
	assert_true(nr >= first && nr - first < count);
}

static void check_indexes(const struct super *super)
{
	u64 slots = super_nr_slots(super), blocks = super_nr_table_blocks(super);
	u64 index, before = 0, step = blocks / 1000 + 1;
	u32 i, first, count;

	for (index = 0; index < blocks; index += step) {
		table_block_place(super, index, 0, &first, &count);
		assert_int_equal(slot_to_table_index(super, to_slot(first)), index);
		assert_int_equal(slot_to_table_index(super,
						     to_slot(first + count - 1)),
				 index);
		if (step == 1) {
			assert_int_equal(first, before);
			before += count;
		}
	}
	if (step == 1)
		assert_int_equal(before, slots);
	for (i = 0; i < super->nr_segments; i++) {
		check_slot(super, super->segments[i].first_slot);
		check_slot(super, super->segments[i].first_slot +
			   super->segments[i].nr_slots - 1);
	}
	for (i = 0; i < 1000; i++) {
		u64 a = random_below(slots), b = random_below(slots);
		u64 sa = slot_to_sector(super, to_slot(a));
		u64 sb = slot_to_sector(super, to_slot(b));

		check_slot(super, a);
		if (a < b)
			assert_true(sb - sa >= (b - a) * super->line_sectors);
	}
}

static void check_accepted(const struct super *super)
{
	struct disk_super disk;
	struct super back;

	super_encode(super, super_place(0), &disk);
	assert_int_equal(super_decode(&disk, super_place(0), &back), FORMAT_OK);
	assert_int_equal(back.nr_segments, super->nr_segments);
	assert_memory_equal(back.segments, super->segments,
			    super->nr_segments * sizeof(super->segments[0]));
}

/* Little is wasted: one more slot would not have fitted. */
static void check_tight(const struct super *super)
{
	const struct segment *last = &super->segments[super->nr_segments - 1];
	u64 slots = last->nr_slots + 1ULL;
	u64 table = (slots + 125) / 126;
	u64 data = round_up((last->table_block + 2 * table) * BLOCK_SECTORS,
			    super->line_sectors);

	if (slots > MAX_SLOTS)
		return;
	assert_true(data + slots * super->line_sectors > super->ssd_sectors);
}

static void layout_one(u32 line_sectors, u64 ssd_sectors)
{
	struct super super;

	memset(&super, 0, sizeof(super));
	super.seq = 1;
	super.line_sectors = line_sectors;
	super.array_sectors = TIB;
	if (super_layout(&super, ssd_sectors)) {
		/* Only what is hopeless is refused. */
		assert_true(ssd_sectors < 2 * MIB);
		return;
	}
	assert_int_equal(super.ssd_sectors, ssd_sectors);
	check_layout(&super);
	check_indexes(&super);
	check_tight(&super);
	check_accepted(&super);
}

static void test_layout(void **state)
{
	static const u32 lines[] = { 128, 256, 512 };
	unsigned int i, n;
	u64 size;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		for (size = 2 * MIB; size <= 16 * TIB; size *= 2) {
			layout_one(lines[i], size);
			layout_one(lines[i], size + 1);
			layout_one(lines[i], size - 1);
			layout_one(lines[i], size + random_below(size));
		}
		for (n = 0; n < 1000; n++)
			layout_one(lines[i], n);
		for (n = 0; n < 2000; n++)
			layout_one(lines[i], random_below(64 * MIB));
	}
}

static void test_layout_too_small(void **state)
{
	struct super super = { .line_sectors = 512 };
	u64 size;

	for (size = 0; size < 512; size++)
		assert_int_equal(super_layout(&super, size), -ENOSPC);
}

/* Past 2 TiB a product of 32 bits would wrap. */
static void test_layout_large(void **state)
{
	struct super super;
	u64 slots;

	make_super(&super, 512, 16 * TIB, PIB);
	slots = super_nr_slots(&super);
	assert_true(slots > 60000000);
	assert_true(slot_to_sector(&super, to_slot(slots - 1)) > 15 * TIB);
	assert_int_equal(slot_to_sector(&super, to_slot(slots - 1)) -
			 slot_to_sector(&super, to_slot(0)),
			 (slots - 1) * 512);
	assert_int_equal(super_nr_lines(&super), PIB / 512);
	make_super(&super, 128, 16 * TIB, PIB);
	assert_int_equal(super_nr_lines(&super), PIB / 128);
	check_layout(&super);
	/* More slots than their numbers can say: the rest is left over. */
	make_super(&super, 128, PIB, PIB);
	assert_int_equal(super_nr_slots(&super), MAX_SLOTS);
	check_layout(&super);
	check_indexes(&super);
	check_accepted(&super);
	assert_false(super_grow(&super, 2 * PIB));
}

static void test_growth(void **state)
{
	static const u32 lines[] = { 128, 256, 512 };
	struct super super, before;
	unsigned int i, n, grown;
	u64 size;

	for (n = 0; n < 300; n++) {
		size = 2 * MIB + random_below(n % 3 ? 100 * MIB : 4 * TIB);
		make_super(&super, lines[n % 3], size, TIB);
		for (grown = 0; grown < 20; grown++) {
			before = super;
			size += random_below(grown % 2 ? 64 * KIB : size);
			if (!super_grow(&super, size)) {
				/* Nothing changed, and for a reason. */
				assert_int_equal(super.ssd_sectors,
						 before.ssd_sectors);
				assert_int_equal(super.nr_segments,
						 before.nr_segments);
				if (super.nr_segments < MAX_SEGMENTS)
					assert_true(size - before.ssd_sectors <
						    4 * super.line_sectors);
				continue;
			}
			assert_int_equal(super.ssd_sectors, size);
			assert_int_equal(super.nr_segments,
					 before.nr_segments + 1);
			/* What was there did not move. */
			assert_memory_equal(super.segments, before.segments,
					    before.nr_segments *
					    sizeof(super.segments[0]));
			check_layout(&super);
			check_tight(&super);
			check_accepted(&super);
		}
		check_indexes(&super);
		assert_int_equal(super.nr_segments, MAX_SEGMENTS);
		assert_false(super_grow(&super, 2 * super.ssd_sectors));
	}
	/* Neither the same size nor a smaller one is growth. */
	make_super(&super, 512, GIB, TIB);
	for (i = 0; i < 2; i++)
		assert_false(super_grow(&super, GIB - i));
}

static void test_line_blocks(void **state)
{
	static const u32 lines[] = { 128, 256, 512 };
	struct super super;
	unsigned int i;
	u64 rest, last, blocks, all;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		all = lines[i] == 512 ? ~0ULL : (1ULL << lines[i] / 8) - 1;
		for (rest = 1; rest <= lines[i]; rest++) {
			make_super(&super, lines[i], GIB, 3 * TIB + rest);
			last = super_nr_lines(&super) - 1;
			assert_int_equal(last, 3 * TIB / lines[i]);
			blocks = super_line_blocks(&super, to_line(last));
			assert_int_equal(__builtin_popcountll(blocks),
					 (rest + 7) / 8);
			assert_int_equal(blocks & (blocks + 1), 0);
			assert_int_equal(super_line_blocks(&super,
							   to_line(last - 1)), all);
			assert_int_equal(super_line_blocks(&super, to_line(0)),
					 all);
		}
	}
	/* An array that is shorter than a line. */
	make_super(&super, 512, GIB, 1);
	assert_int_equal(super_nr_lines(&super), 1);
	assert_int_equal(super_line_blocks(&super, to_line(0)), 1);
}

static void test_masks(void **state)
{
	unsigned int first, count, i;

	for (first = 0; first < 64; first++) {
		for (count = 0; first + count <= 64; count++) {
			u64 mask = 0;

			for (i = first; i < first + count; i++)
				mask |= 1ULL << i;
			assert_int_equal(blocks_mask(first, count), mask);
			if (!first && count)
				assert_int_equal(blocks_run(mask), count);
		}
	}
	assert_int_equal(blocks_run(~0ULL), 64);
	assert_int_equal(blocks_run(0x17), 3);
}

/*---- Superblock ----*/

static void random_super(struct super *super)
{
	static const u32 lines[] = { 128, 256, 512 };
	unsigned int i, grow = random_below(MAX_SEGMENTS);

	make_super(super, lines[random_below(3)], 2 * MIB + random_below(TIB),
		   1 + random_below(PIB));
	while (grow--)
		super_grow(super, super->ssd_sectors + random_below(TIB));
	for (i = 0; i < sizeof(super->uuid); i++)
		super->uuid[i] = random_u64();
	super->seq = random_u64() >> 2;
	super->flags = random_below(8);
	super->mode = random_below(NR_MODES);
	super->journal_tail = random_u64() >> 2;
	super->high_water = random_below(super_nr_table_blocks(super) + 1);
	super->dirty_blocks = random_u64();
	for (i = 0; i < 3; i++)
		super->fingerprint[i] = random_u64();
}

static void test_super_round_trip(void **state)
{
	struct super super, back;
	struct disk_super disk;
	unsigned int n, place;
	u32 i;

	for (n = 0; n < 2000; n++) {
		random_super(&super);
		for (place = 0; place < 2; place++) {
			memset(&disk, 0xff, sizeof(disk));
			super_encode(&super, super_place(place), &disk);
			memset(&back, 0xee, sizeof(back));
			assert_int_equal(super_decode(&disk, super_place(place),
						      &back), FORMAT_OK);
			assert_memory_equal(back.segments, super.segments,
					    super.nr_segments *
					    sizeof(super.segments[0]));
			for (i = super.nr_segments; i < MAX_SEGMENTS; i++)
				memset(&super.segments[i], 0,
				       sizeof(super.segments[i]));
			assert_int_equal(back.seq, super.seq);
			assert_memory_equal(back.uuid, super.uuid, 16);
			assert_int_equal(back.flags, super.flags);
			assert_int_equal(back.mode, super.mode);
			assert_int_equal(back.line_sectors, super.line_sectors);
			assert_int_equal(back.nr_segments, super.nr_segments);
			assert_int_equal(back.array_sectors, super.array_sectors);
			assert_int_equal(back.ssd_sectors, super.ssd_sectors);
			assert_int_equal(back.journal_blocks,
					 super.journal_blocks);
			assert_int_equal(back.journal_tail, super.journal_tail);
			assert_int_equal(back.high_water, super.high_water);
			assert_int_equal(back.dirty_blocks, super.dirty_blocks);
			assert_memory_equal(back.fingerprint, super.fingerprint,
					    sizeof(super.fingerprint));
			assert_int_equal(super_decode(&disk, super_place(!place),
						      &back), FORMAT_DAMAGED);
		}
	}
}

static void test_super_bits(void **state)
{
	struct super super, back;
	struct disk_super disk;
	enum format_error error;
	unsigned int bit;

	random_super(&super);
	super_encode(&super, super_place(1), &disk);
	for (bit = 0; bit < 8 * sizeof(disk); bit++) {
		flip_bit(&disk, bit);
		error = super_decode(&disk, super_place(1), &back);
		assert_int_equal(error, bit < 64 ? FORMAT_NOT_OURS :
						   FORMAT_DAMAGED);
		flip_bit(&disk, bit);
	}
	assert_int_equal(super_decode(&disk, super_place(1), &back), FORMAT_OK);
}

static void seal_super(struct disk_super *disk)
{
	u32 crc;

	disk->header.crc = 0;
	crc = crc32c(~0u, disk, 8);
	crc = crc32c(crc, (u8 *)disk + 12, sizeof(*disk) - 12);
	disk->header.crc = cpu_to_le32(crc);
}

static enum format_error decode_changed(const struct super *super)
{
	struct disk_super disk;
	struct super back;

	super_encode(super, 0, &disk);
	return super_decode(&disk, 0, &back);
}

/* Right checksum, impossible content. */
static void test_super_impossible(void **state)
{
	struct super good, bad, back;
	struct disk_super disk;

	make_super(&good, 512, GIB, TIB);
	assert_true(super_grow(&good, 2 * GIB));
	assert_int_equal(decode_changed(&good), FORMAT_OK);

#define REFUSED(change) do {						\
	bad = good;							\
	change;								\
	assert_int_equal(decode_changed(&bad), FORMAT_INCONSISTENT);	\
} while (0)
#define ACCEPTED(change) do {						\
	bad = good;							\
	change;								\
	assert_int_equal(decode_changed(&bad), FORMAT_OK);		\
} while (0)
	REFUSED(bad.flags = 8);
	REFUSED(bad.flags = 1u << 31);
	REFUSED(bad.mode = NR_MODES);
	REFUSED(bad.mode = ~0u);
	REFUSED(bad.line_sectors = 0);
	REFUSED(bad.line_sectors = 64);
	REFUSED(bad.line_sectors = 384);
	REFUSED(bad.line_sectors = 1024);
	REFUSED(bad.array_sectors = 0);
	REFUSED(bad.array_sectors = ~0ULL);
	REFUSED(bad.array_sectors = (1ULL << 54) + 1);
	REFUSED(bad.array_sectors = 512ULL << LINE_NR_BITS);
	ACCEPTED(bad.array_sectors = (512ULL << LINE_NR_BITS) - 512);
	REFUSED(bad.ssd_sectors = 0);
	REFUSED(bad.ssd_sectors = ~0ULL);
	REFUSED(bad.ssd_sectors = GIB);
	REFUSED(bad.journal_blocks = 31);
	REFUSED(bad.journal_blocks = 16385);
	REFUSED(bad.journal_blocks = ~0ULL);
	REFUSED(bad.journal_blocks = good.journal_blocks + 1);
	REFUSED(bad.journal_tail = 1ULL << 62);
	ACCEPTED(bad.journal_tail = (1ULL << 62) - 1);
	REFUSED(bad.seq = 1ULL << 62);
	REFUSED(bad.high_water = super_nr_table_blocks(&good) + 1);
	ACCEPTED(bad.high_water = super_nr_table_blocks(&good));
	REFUSED(bad.high_water = ~0ULL);
	REFUSED(bad.nr_segments = 0);
	REFUSED(bad.segments[0].first_slot = 1);
	REFUSED(bad.segments[1].first_slot++);
	REFUSED(bad.segments[1].first_slot--);
	REFUSED(bad.segments[0].nr_slots = 0);
	REFUSED(bad.segments[1].nr_slots = 0);
	REFUSED(bad.segments[0].nr_slots++);
	REFUSED(bad.segments[1].nr_slots++);
	REFUSED(bad.segments[1].nr_slots = ~0u);
	REFUSED(bad.segments[0].table_block = 0);
	REFUSED(bad.segments[0].table_block = 16);
	REFUSED(bad.segments[0].table_block--);
	REFUSED(bad.segments[1].table_block--);
	REFUSED(bad.segments[1].table_block = good.segments[0].table_block);
	REFUSED(bad.segments[0].table_block = 1ULL << 61);
	REFUSED(bad.segments[0].table_block = ~0ULL);
	REFUSED(bad.segments[0].data_sector = 0);
	REFUSED(bad.segments[0].data_sector = ~0ULL);
	REFUSED(bad.segments[0].data_sector += 4);
	REFUSED(bad.segments[0].data_sector = bad.segments[0].table_block * 8);
	REFUSED(bad.segments[1].data_sector = good.segments[0].data_sector);
	REFUSED(bad.segments[1].data_sector += 512);
	REFUSED(swap(bad.segments[0], bad.segments[1]));
#undef REFUSED
#undef ACCEPTED

	/* More segments than there is room for. */
	super_encode(&good, 0, &disk);
	disk.nr_segments = cpu_to_le32(MAX_SEGMENTS + 1);
	seal_super(&disk);
	assert_int_equal(super_decode(&disk, 0, &back), FORMAT_INCONSISTENT);
	disk.nr_segments = cpu_to_le32(~0u);
	seal_super(&disk);
	assert_int_equal(super_decode(&disk, 0, &back), FORMAT_INCONSISTENT);
}

static void test_super_features(void **state)
{
	struct super super, back;
	struct disk_super disk;
	unsigned int bit;

	make_super(&super, 512, GIB, TIB);
	for (bit = 0; bit < 32; bit++) {
		super_encode(&super, 0, &disk);
		disk.compat = cpu_to_le32(1u << bit);
		seal_super(&disk);
		assert_int_equal(super_decode(&disk, 0, &back), FORMAT_OK);
		super_encode(&super, 0, &disk);
		disk.ro_compat = cpu_to_le32(1u << bit);
		seal_super(&disk);
		assert_int_equal(super_decode(&disk, 0, &back), FORMAT_UNKNOWN);
		super_encode(&super, 0, &disk);
		disk.incompat = cpu_to_le32(1u << bit);
		seal_super(&disk);
		assert_int_equal(super_decode(&disk, 0, &back), FORMAT_UNKNOWN);
		super_encode(&super, 0, &disk);
		disk.version = cpu_to_le32(FORMAT_VERSION ^ 1u << bit);
		seal_super(&disk);
		assert_int_equal(super_decode(&disk, 0, &back), FORMAT_UNKNOWN);
	}
	/* A version that is not known says more than content that is odd. */
	disk.line_sectors = 0;
	seal_super(&disk);
	assert_int_equal(super_decode(&disk, 0, &back), FORMAT_UNKNOWN);
	memset(&disk, 0, sizeof(disk));
	assert_int_equal(super_decode(&disk, 0, &back), FORMAT_NOT_OURS);
	memset(&disk, 0xff, sizeof(disk));
	assert_int_equal(super_decode(&disk, 0, &back), FORMAT_NOT_OURS);
}

static void test_error_text(void **state)
{
	int error, other;

	for (error = FORMAT_OK; error <= FORMAT_INCONSISTENT; error++)
		for (other = FORMAT_OK; other < error; other++)
			assert_string_not_equal(format_error_text(error),
						format_error_text(other));
	assert_string_equal(format_error_text(99), "unknown");
}

/*---- Records ----*/

static void random_record(const struct super *super, struct record *record)
{
	u64 lines = super_nr_lines(super);

	memset(record, 0, sizeof(*record));
	record->slot = to_slot(random_below(super_nr_slots(super)));
	record->hint = random_u64();
	record->line = NO_LINE;
	if (!random_below(4))
		return;
	record->line = to_line(random_below(4) ? random_below(lines) : lines - 1);
	record->valid = random_u64() & super_line_blocks(super, record->line);
	record->dirty = random_u64() & record->valid;
	record->flags = RECORD_USED;
	if (random_below(2))
		record->flags |= random_below(2) ? RECORD_OPEN_DIRTY :
						   RECORD_OPEN_DROP;
}

static void assert_records_equal(const struct record *a, const struct record *b)
{
	assert_int_equal(slot_nr(a->slot), slot_nr(b->slot));
	assert_int_equal(line_nr(a->line), line_nr(b->line));
	assert_int_equal(a->valid, b->valid);
	assert_int_equal(a->dirty, b->dirty);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->hint, b->hint);
}

static void test_record_round_trip(void **state)
{
	struct record record, back;
	struct disk_record disk;
	struct super super;
	unsigned int n;

	for (n = 0; n < 100000; n++) {
		if (n % 1000 == 0)
			random_super(&super);
		random_record(&super, &record);
		memset(&disk, 0xff, sizeof(disk));
		record_encode(&record, &disk);
		memset(&back, 0xee, sizeof(back));
		assert_int_equal(record_decode(&super, &disk, &back), FORMAT_OK);
		assert_records_equal(&record, &back);
	}
}

static enum format_error decode_record(const struct super *super, u32 slot,
				       u8 flags, u64 line, u64 valid, u64 dirty)
{
	struct disk_record disk = {
		.slot = cpu_to_le32(slot), .flags = flags,
		.line = cpu_to_le64(line), .valid = cpu_to_le64(valid),
		.dirty = cpu_to_le64(dirty),
	};
	struct record record;

	return record_decode(super, &disk, &record);
}

static void test_record_checks(void **state)
{
	struct disk_record disk = { .reserved = cpu_to_le16(1) };
	struct record record;
	struct super super;
	u64 lines, slots;
	unsigned int bit;

	/* 16 blocks a line; 5 in the last. */
	make_super(&super, 128, GIB, TIB + 33);
	lines = super_nr_lines(&super);
	slots = super_nr_slots(&super);

#define OK(...) assert_int_equal(decode_record(&super, __VA_ARGS__), FORMAT_OK)
#define BAD(...) assert_int_equal(decode_record(&super, __VA_ARGS__), \
				  FORMAT_INCONSISTENT)
	OK(0, 0, 0, 0, 0);
	OK(slots - 1, 0, 0, 0, 0);
	BAD(slots, 0, 0, 0, 0);
	BAD(~0u, 0, 0, 0, 0);
	OK(0, RECORD_USED, 0, 0, 0);
	OK(0, RECORD_USED, lines - 1, 0x1f, 0x1f);
	BAD(0, RECORD_USED, lines - 1, 0x3f, 0);
	BAD(0, RECORD_USED, lines - 1, 1ULL << 63, 0);
	OK(0, RECORD_USED, lines - 2, 0xffff, 0xffff);
	BAD(0, RECORD_USED, lines - 2, 0x1ffff, 0);
	BAD(0, RECORD_USED, lines, 0, 0);
	BAD(0, RECORD_USED, 1ULL << LINE_NR_BITS, 0, 0);
	BAD(0, RECORD_USED, ~0ULL, 0, 0);
	BAD(0, RECORD_USED, 0, 0, 1);
	BAD(0, RECORD_USED, 0, 1, 2);
	BAD(0, RECORD_USED, 0, 1, 3);
	OK(0, RECORD_USED | RECORD_OPEN_DIRTY, 0, 3, 1);
	OK(0, RECORD_USED | RECORD_OPEN_DROP, 0, 3, 1);
	BAD(0, RECORD_USED | RECORD_OPEN_DIRTY | RECORD_OPEN_DROP, 0, 3, 1);
	/* A free slot has nothing. */
	BAD(0, 0, 1, 0, 0);
	BAD(0, 0, ~0ULL, 0, 0);
	BAD(0, 0, 0, 1, 0);
	BAD(0, 0, 0, 1, 1);
	BAD(0, 0, 0, 0, 1);
	BAD(0, RECORD_OPEN_DIRTY, 0, 0, 0);
	BAD(0, RECORD_OPEN_DROP, 0, 0, 0);
	for (bit = 3; bit < 8; bit++)
		BAD(0, RECORD_USED | 1 << bit, 0, 0, 0);
#undef OK
#undef BAD
	assert_int_equal(record_decode(&super, &disk, &record),
			 FORMAT_INCONSISTENT);
}

static void test_record_recover(void **state)
{
	struct record record, was;
	struct super super;
	unsigned int n;

	random_super(&super);
	for (n = 0; n < 10000; n++) {
		random_record(&super, &was);
		record = was;
		record_recover(&record);
		assert_int_equal(record.flags, was.flags & RECORD_USED);
		assert_int_equal(record.dirty & ~record.valid, 0);
		/* No dirty block is ever lost. */
		assert_int_equal(was.dirty & ~record.dirty, 0);
		if (was.flags & RECORD_OPEN_DIRTY) {
			assert_int_equal(record.valid, was.valid);
			assert_int_equal(record.dirty, was.valid);
		} else if (was.flags & RECORD_OPEN_DROP) {
			/* No clean block is believed. */
			assert_int_equal(record.valid, was.dirty);
			assert_int_equal(record.dirty, was.dirty);
		} else {
			assert_int_equal(record.valid, was.valid);
			assert_int_equal(record.dirty, was.dirty);
		}
		was = record;
		record_recover(&record);
		assert_records_equal(&record, &was);
	}
}

/*---- Frames of journal and table blocks ----*/

static void random_block(const struct super *super,
			 struct disk_records_block *block, unsigned int count)
{
	struct record record;
	unsigned int i;

	memset(block, 0xa5, sizeof(*block));
	for (i = 0; i < count; i++) {
		random_record(super, &record);
		record_encode(&record, &block->records[i]);
	}
}

static void test_journal_frame(void **state)
{
	static struct disk_records_block block;
	struct super super, other;
	unsigned int n, bit, i;
	u64 seq, first, s, f;
	bool last, l;

	for (n = 0; n < 2000; n++) {
		unsigned int count = random_below(RECORDS_PER_BLOCK + 1);

		if (n % 100 == 0)
			random_super(&super);
		seq = random_u64() >> 2;
		first = seq - random_below(min_t(u64, seq + 1, 32));
		last = random_below(2);
		random_block(&super, &block, count);
		journal_seal(&super, &block, seq, first, count, last);
		assert_int_equal(journal_check(&super, &block, &s, &f, &l),
				 FORMAT_OK);
		assert_int_equal(s, seq);
		assert_int_equal(f, first);
		assert_int_equal(l, last);
		assert_int_equal(le16_to_cpu(block.header.count), count);
		for (i = count; i < RECORDS_PER_BLOCK; i++)
			assert_null(memchr_inv(&block.records[i], 0, 32));
		/* Not of another cache. */
		other = super;
		other.uuid[random_below(16)] ^= 1 << random_below(8);
		assert_int_equal(journal_check(&other, &block, &s, &f, &l),
				 FORMAT_DAMAGED);
		/* Nor of a ring of another size, unless the place is the same. */
		other = super;
		other.journal_blocks = 32 + random_below(100);
		if (seq % other.journal_blocks != seq % super.journal_blocks)
			assert_int_equal(journal_check(&other, &block, &s, &f,
						       &l), FORMAT_DAMAGED);
		/* Nor a table block. */
		assert_int_equal(table_check(&super, &block, 0, 0, &s),
				 FORMAT_NOT_OURS);
	}
	for (bit = 0; bit < 8 * sizeof(block); bit++) {
		flip_bit(&block, bit);
		assert_int_not_equal(journal_check(&super, &block, &s, &f, &l),
				     FORMAT_OK);
		flip_bit(&block, bit);
	}
	memset(&block, 0, sizeof(block));
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_NOT_OURS);
}

static void seal_block(const struct super *super,
		       struct disk_records_block *block)
{
	u32 crc = crc32c(cache_seed(super), block, 8);

	crc = crc32c(crc, (u8 *)block + 12, sizeof(*block) - 12);
	block->header.crc = cpu_to_le32(crc);
}

static void test_journal_frame_impossible(void **state)
{
	static struct disk_records_block block;
	struct super super;
	u64 s, f;
	bool l;

	make_super(&super, 512, GIB, TIB);
	random_block(&super, &block, 3);
	journal_seal(&super, &block, 100, 99, 3, true);
	seal_block(&super, &block);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l), FORMAT_OK);
	block.header.count = cpu_to_le16(127);
	seal_block(&super, &block);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_INCONSISTENT);
	journal_seal(&super, &block, 100, 99, 3, true);
	block.header.flags = cpu_to_le16(3);
	seal_block(&super, &block);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_INCONSISTENT);
	journal_seal(&super, &block, 100, 101, 3, true);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_INCONSISTENT);
	journal_seal(&super, &block, 1ULL << 62, 0, 3, true);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_INCONSISTENT);
	/* Its number moved on by a lap fits the place, but not the checksum. */
	journal_seal(&super, &block, 100, 99, 3, true);
	block.header.seq = cpu_to_le64(100 + super.journal_blocks);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_DAMAGED);
	/* A sealed block copied to another place of the ring. */
	journal_seal(&super, &block, 100, 99, 3, true);
	block.header.seq = cpu_to_le64(101);
	seal_block(&super, &block);
	assert_int_equal(journal_check(&super, &block, &s, &f, &l),
			 FORMAT_DAMAGED);
}

static void test_table_frame(void **state)
{
	static struct disk_records_block block;
	struct super super, other;
	unsigned int n, bit, place, i;
	u64 index, blocks, seq, s;
	u32 first, count;

	for (n = 0; n < 2000; n++) {
		if (n % 100 == 0)
			random_super(&super);
		blocks = super_nr_table_blocks(&super);
		index = random_below(4) ? random_below(blocks) : blocks - 1;
		place = random_below(2);
		seq = random_u64() >> 2;
		table_block_place(&super, index, place, &first, &count);
		random_block(&super, &block, count);
		table_seal(&super, &block, index, seq, place);
		assert_int_equal(table_check(&super, &block, index, place, &s),
				 FORMAT_OK);
		assert_int_equal(s, seq);
		for (i = count; i < RECORDS_PER_BLOCK; i++)
			assert_null(memchr_inv(&block.records[i], 0, 32));
		assert_int_equal(table_check(&super, &block, index, !place, &s),
				 FORMAT_DAMAGED);
		if (blocks > 1)
			assert_int_equal(table_check(&super, &block,
						     (index + 1) % blocks, place,
						     &s), FORMAT_DAMAGED);
		other = super;
		other.uuid[random_below(16)] ^= 1 << random_below(8);
		assert_int_equal(table_check(&other, &block, index, place, &s),
				 FORMAT_DAMAGED);
		/* Own index and a sequence number that can be. */
		block.header.first = cpu_to_le64(index + 1);
		seal_block(&super, &block);
		assert_int_equal(table_check(&super, &block, index, place, &s),
				 FORMAT_INCONSISTENT);
		table_seal(&super, &block, index, 1ULL << 62, place);
		assert_int_equal(table_check(&super, &block, index, place, &s),
				 FORMAT_INCONSISTENT);
		table_seal(&super, &block, index, seq, place);
	}
	for (bit = 0; bit < 8 * sizeof(block); bit++) {
		flip_bit(&block, bit);
		assert_int_not_equal(table_check(&super, &block, index, place, &s),
				     FORMAT_OK);
		flip_bit(&block, bit);
	}
}

/*---- Replay ----*/

#define RING		32u
#define DELIVERED_MAX	(RING * RECORDS_PER_BLOCK)

struct delivered {
	u64 seq;
	struct record record;
};

/* A ring on an SSD, and what a replay delivered. */
static struct ring {
	struct super super;
	struct disk_records_block blocks[2][RING];
	bool unreadable[2][RING];
	u64 head;
	unsigned int nr;
	struct delivered delivered[DELIVERED_MAX];
	unsigned int fail_at;	/* apply fails at this record, from 1 */
	struct replay replay;
	/* What was written by whole commits. */
	unsigned int nr_written;
	struct delivered written[DELIVERED_MAX];
} ring;

static void ring_init(u64 tail)
{
	memset(&ring, 0, sizeof(ring));
	make_super(&ring.super, 128, 16 * MIB, GIB);
	assert_int_equal(ring.super.journal_blocks, RING);
	ring.super.journal_tail = tail;
	ring.head = tail;
}

static struct disk_records_block *ring_block(u64 seq, unsigned int copy)
{
	return &ring.blocks[copy][seq % RING];
}

static void ring_forget(u64 seq)
{
	unsigned int copy;

	for (copy = 0; copy < 2; copy++)
		memset(ring_block(seq, copy), 0, BLOCK_SIZE_BYTES);
}

static void ring_damage(u64 seq, unsigned int copy)
{
	flip_bit(ring_block(seq, copy), random_below(8 * BLOCK_SIZE_BYTES));
}

/* Appends a commit of @nr blocks; few records, so that tests are quick. */
static void ring_commit(unsigned int nr)
{
	struct record record;
	unsigned int i, n, copy, count;
	u64 first = ring.head;

	for (n = 0; n < nr; n++, ring.head++) {
		struct disk_records_block *block = ring_block(ring.head, 0);

		count = random_below(16) ? random_below(4) : RECORDS_PER_BLOCK;
		for (i = 0; i < count; i++) {
			random_record(&ring.super, &record);
			record_encode(&record, &block->records[i]);
			assert_true(ring.nr_written < DELIVERED_MAX);
			ring.written[ring.nr_written].seq = ring.head;
			ring.written[ring.nr_written++].record = record;
		}
		journal_seal(&ring.super, block, ring.head, first, count,
			     n == nr - 1);
		for (copy = 1; copy < 2; copy++)
			*ring_block(ring.head, copy) = *block;
	}
}

/* The tail moves to @seq: what is older is not expected any more. */
static void ring_checkpoint(u64 seq)
{
	unsigned int i, n = 0;

	ring.super.journal_tail = seq;
	for (i = 0; i < ring.nr_written; i++)
		if (ring.written[i].seq >= seq)
			ring.written[n++] = ring.written[i];
	ring.nr_written = n;
}

static void ring_uncommit(u64 seq)
{
	while (ring.nr_written && ring.written[ring.nr_written - 1].seq >= seq)
		ring.nr_written--;
}

static int ring_read(void *context, u64 seq, unsigned int copy,
		     struct disk_records_block *block)
{
	assert_ptr_equal(context, &ring);
	assert_true(seq >= ring.super.journal_tail);
	assert_true(seq < ring.super.journal_tail + RING);
	assert_true(copy < 2);
	if (ring.unreadable[copy][seq % RING]) {
		memset(block, 0x5a, sizeof(*block));
		return -EIO;
	}
	*block = *ring_block(seq, copy);
	return 0;
}

static int ring_apply(void *context, u64 seq, const struct record *record)
{
	assert_ptr_equal(context, &ring);
	assert_true(ring.nr < DELIVERED_MAX);
	ring.delivered[ring.nr].seq = seq;
	ring.delivered[ring.nr++].record = *record;
	return ring.nr == ring.fail_at ? -EDOM : 0;
}

static int ring_replay(void)
{
	static struct disk_records_block scratch;

	ring.nr = 0;
	ring.replay = (struct replay) {
		.read = ring_read, .apply = ring_apply, .context = &ring,
		.next_seq = 1, .highest = 1, .repaired = 77,
	};
	return journal_replay(&ring.super, &ring.replay, &scratch);
}

/* All that was committed came, in order, and nothing else. */
static void ring_expect(u64 next_seq, u64 repaired)
{
	unsigned int i, again;

	for (again = 0; again < 2; again++) {
		assert_int_equal(ring_replay(), 0);
		assert_int_equal(ring.nr, ring.nr_written);
		for (i = 0; i < ring.nr; i++) {
			assert_int_equal(ring.delivered[i].seq,
					 ring.written[i].seq);
			assert_records_equal(&ring.delivered[i].record,
					     &ring.written[i].record);
		}
		assert_int_equal(ring.replay.next_seq, next_seq);
		assert_int_equal(ring.replay.repaired, repaired);
		assert_true(ring.replay.highest >= next_seq);
	}
}

static void test_replay_empty(void **state)
{
	ring_init(1);
	ring_expect(1, 0);
	assert_int_equal(ring.replay.highest, 1);
	ring_init(123456789);
	ring_expect(123456789, 0);
	ring_init((1ULL << 62) - 1);
	ring_expect((1ULL << 62) - 1, 0);
	/* Whatever an SSD is filled with. */
	memset(ring.blocks, 0xff, sizeof(ring.blocks));
	ring_expect((1ULL << 62) - 1, 0);
}

static void test_replay_commits(void **state)
{
	unsigned int n, left;

	for (n = 0; n < 300; n++) {
		ring_init(1 + random_below(n % 2 ? 100 : 1ULL << 61));
		for (left = random_below(RING + 1); left;) {
			unsigned int nr = 1 + random_below(min(left, 8u));

			ring_commit(nr);
			left -= nr;
			/* Tried after each, full ring included. */
			ring_expect(ring.head, 0);
			assert_int_equal(ring.replay.highest, ring.head);
		}
	}
}

/* Cut short: any set of the last commit's blocks may lack, its last one does. */
static void test_replay_torn(void **state)
{
	unsigned int lack, nr;
	u64 begin, highest, seq;

	for (nr = 1; nr <= 6; nr++) {
		for (lack = 0; lack < 1u << (nr - 1); lack++) {
			ring_init(20 + random_below(64));
			ring_commit(3);
			ring_commit(1);
			begin = ring.head;
			ring_commit(nr);
			ring_uncommit(begin);
			highest = begin;
			for (seq = begin; seq < ring.head; seq++) {
				if (seq == ring.head - 1 ||
				    lack & 1 << (seq - begin))
					ring_forget(seq);
				else
					highest = seq;
			}
			ring_expect(begin, 0);
			assert_int_equal(ring.replay.highest, highest);
		}
	}
}

/* Half of the copies made it: the rest is like a damaged copy. */
static void test_replay_torn_copies(void **state)
{
	unsigned int have, nr = 4, i;
	u64 begin, repaired;

	/* Two bits a block: which of its copies was written. */
	for (have = 0; have < 1u << 2 * nr; have++) {
		bool all = true;

		ring_init(29);
		ring_commit(2);
		begin = ring.head;
		ring_commit(nr);
		repaired = 0;
		for (i = 0; i < nr; i++) {
			unsigned int copies = have >> 2 * i & 3;

			if (!(copies & 1))
				memset(ring_block(begin + i, 0), 0, 4096);
			if (!(copies & 2))
				memset(ring_block(begin + i, 1), 0, 4096);
			if (!copies)
				all = false;
			repaired += copies == 2;
		}
		if (all) {
			ring_expect(begin + nr, repaired);
		} else if (!(have >> 2 * (nr - 1) & 3)) {
			ring_uncommit(begin);
			ring_expect(begin, 0);
		} else {
			/* The last is written last: others are damaged. */
			assert_int_equal(ring_replay(), -EUCLEAN);
			assert_int_equal(ring.nr, 0);
		}
	}
}

static void ring_fill(u64 tail)
{
	ring_init(tail);
	ring_commit(1);
	ring_commit(4);
	ring_commit(2);
	ring_commit(1);
	ring_commit(7);
	ring_commit(3);
}

static void test_replay_one_copy(void **state)
{
	u64 seq, begin = 25;
	unsigned int copy, how;

	for (how = 0; how < 3; how++) {
		for (copy = 0; copy < 2; copy++) {
			for (seq = begin; seq < begin + 18; seq++) {
				ring_fill(begin);
				if (how == 0)
					ring_damage(seq, copy);
				else if (how == 1)
					ring.unreadable[copy][seq % RING] = true;
				else
					memset(ring_block(seq, copy), 0, 4096);
				ring_expect(ring.head, !copy);
			}
		}
	}
	/* The whole copy. */
	for (copy = 0; copy < 2; copy++) {
		ring_fill(begin);
		memset(ring.unreadable[copy], 1, sizeof(ring.unreadable[copy]));
		ring_expect(ring.head, copy ? 0 : 18);
	}
	/* Each block in one copy or the other. */
	ring_fill(begin);
	for (seq = begin; seq < ring.head; seq++)
		ring_damage(seq, seq % 2);
	ring_expect(ring.head, 9);
}

static void test_replay_both_copies(void **state)
{
	u64 seq, begin = 25;
	unsigned int copy, how;

	for (how = 0; how < 2; how++) {
		for (seq = begin; seq < begin + 18; seq++) {
			ring_fill(begin);
			for (copy = 0; copy < 2; copy++) {
				if (how)
					ring.unreadable[copy][seq % RING] = true;
				else
					ring_damage(seq, copy);
			}
			if (seq == ring.head - 1) {
				/* Can not be told from a commit cut short. */
				ring_uncommit(ring.head - 3);
				ring_expect(ring.head - 3, 0);
				assert_int_equal(ring.replay.highest, seq - 1);
				continue;
			}
			assert_int_equal(ring_replay(), -EUCLEAN);
			assert_int_equal(ring.nr, 0);
		}
	}
	/* A hole in the last commit but one, the last being torn. */
	ring_fill(begin);
	ring_forget(ring.head - 1);
	ring_forget(ring.head - 4);
	assert_int_equal(ring_replay(), -EUCLEAN);
	/* The last commit but one lacks its end, of the last nothing came. */
	ring_fill(begin);
	for (seq = ring.head - 4; seq < ring.head; seq++)
		ring_forget(seq);
	ring_uncommit(ring.head - 10);
	ring_expect(ring.head - 10, 0);
}

/* Lap after lap with checkpoints at random: only what is live is delivered. */
static void test_replay_laps(void **state)
{
	unsigned int n, nr;
	u64 begin;

	ring_init(1);
	for (n = 0; n < 3000; n++) {
		nr = 1 + random_below(8);
		if (ring.head + nr - ring.super.journal_tail > RING) {
			/* To the end of a commit: all of them are live ends. */
			ring_checkpoint(ring.head);
			ring_expect(ring.head, 0);
		}
		if (random_below(20)) {
			ring_commit(nr);
			ring_expect(ring.head, 0);
			continue;
		}
		/*
		 * A crash in a commit: blocks without a last. Then numbers
		 * jump, and the journal is empty.
		 */
		begin = ring.head;
		ring_commit(nr);
		ring_forget(ring.head - 1);
		ring_uncommit(begin);
		ring_expect(begin, 0);
		ring.head = ring.replay.highest + RING + 1;
		ring_checkpoint(ring.head);
		ring_expect(ring.head, 0);
	}
}

/* A checkpoint may end in the middle of what is in the ring. */
static void test_replay_tail_moves(void **state)
{
	static const unsigned int sizes[] = { 3, 1, 5, 2, 1, 4 };
	unsigned int i;
	u64 ends[ARRAY_SIZE(sizes)];

	ring_init(30);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ring_commit(sizes[i]);
		ends[i] = ring.head;
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ring_checkpoint(ends[i]);
		ring_expect(ring.head, 0);
	}
	/* The tail never is inside a commit: then it is as good as damaged. */
	ring_init(30);
	ring_commit(4);
	ring_commit(1);
	ring.super.journal_tail = 31;
	assert_int_equal(ring_replay(), -EUCLEAN);
}

/*
 * Leftovers of a torn commit lie where a new one is written. Numbers jumped, so
 * they are never taken for part of it, wherever it is cut in its turn.
 */
static void test_replay_leftovers(void **state)
{
	unsigned int old, new, cut;
	u64 begin, seq;

	for (old = 1; old <= 6; old++) {
		for (new = 1; new <= 6; new++) {
			for (cut = 0; cut <= new; cut++) {
				ring_init(27);
				ring_commit(2);
				begin = ring.head;
				ring_commit(old);
				ring_uncommit(begin);
				ring_forget(ring.head - 1);
				ring_expect(begin, 0);
				ring.head = ring.replay.highest + RING + 1;
				ring_checkpoint(ring.head);
				begin = ring.head;
				ring_commit(new);
				if (cut < new)
					ring_uncommit(begin);
				for (seq = begin + cut; seq < ring.head; seq++)
					ring_forget(seq);
				ring_expect(cut < new ? begin : ring.head, 0);
			}
		}
	}
}

/* Blocks of an earlier format, with another UUID, in the same places. */
static void test_replay_other_cache(void **state)
{
	ring_fill(1);
	ring.super.uuid[3] ^= 1;
	ring.nr_written = 0;
	ring_expect(1, 0);
	assert_int_equal(ring.replay.highest, 1);
}

/* A whole commit, but of a number too low or too high for the place's turn. */
static void test_replay_other_laps(void **state)
{
	ring_fill(1000);
	ring_checkpoint(1000 + RING);
	ring_expect(1000 + RING, 0);
	ring_fill(1000);
	ring.nr_written = 0;
	ring.super.journal_tail = 1000 - RING;
	ring_expect(1000 - RING, 0);
}

static void test_replay_impossible_record(void **state)
{
	struct disk_records_block *block;
	unsigned int copy;

	ring_init(1);
	ring_commit(2);
	for (copy = 0; copy < 2; copy++) {
		block = ring_block(2, copy);
		memset(block->records, 0, sizeof(block->records));
		block->records[1].slot =
			cpu_to_le32(super_nr_slots(&ring.super));
		journal_seal(&ring.super, block, 2, 1, 2, true);
	}
	assert_int_equal(ring_replay(), -EILSEQ);
	/* Beyond the count nothing is looked at. */
	for (copy = 0; copy < 2; copy++) {
		block = ring_block(2, copy);
		block->header.count = cpu_to_le16(1);
		seal_block(&ring.super, block);
	}
	assert_int_equal(ring_replay(), 0);
}

static void test_replay_apply_fails(void **state)
{
	unsigned int nr;

	ring_fill(1);
	nr = ring.nr_written;
	for (ring.fail_at = 1; ring.fail_at <= nr; ring.fail_at++) {
		assert_int_equal(ring_replay(), -EDOM);
		assert_int_equal(ring.nr, ring.fail_at);
	}
	assert_int_equal(ring_replay(), 0);
}

/* An SSD that forgets while it is being read. */
static unsigned int reads_left;

static int failing_read(void *context, u64 seq, unsigned int copy,
			struct disk_records_block *block)
{
	if (!reads_left)
		return -EIO;
	reads_left--;
	return ring_read(context, seq, copy, block);
}

static void test_replay_read_fails(void **state)
{
	static struct disk_records_block scratch;
	unsigned int n, ok = 0;
	int r;

	ring_fill(1);
	for (n = 0; n < 100; n++) {
		reads_left = n;
		ring.nr = 0;
		ring.replay = (struct replay) {
			.read = failing_read, .apply = ring_apply,
			.context = &ring,
		};
		r = journal_replay(&ring.super, &ring.replay, &scratch);
		assert_true(r == 0 || r == -EUCLEAN);
		if (!r && ring.nr == ring.nr_written)
			ok++;
		/* Never records out of order or without their commit. */
		if (!r)
			assert_true(ring.nr == 0 || ring.nr == ring.nr_written);
	}
	assert_true(ok);
}

/* Random bits of damage: what is delivered was written, and a prefix of it. */
static void test_replay_random_damage(void **state)
{
	unsigned int n, hits, i;
	int r;

	for (n = 0; n < 3000; n++) {
		ring_fill(1 + random_below(1000));
		for (hits = random_below(8); hits; hits--)
			ring_damage(ring.super.journal_tail + random_below(RING),
				    random_below(2));
		r = ring_replay();
		if (r) {
			assert_int_equal(r, -EUCLEAN);
			assert_int_equal(ring.nr, 0);
			continue;
		}
		assert_true(ring.nr <= ring.nr_written);
		for (i = 0; i < ring.nr; i++)
			assert_records_equal(&ring.delivered[i].record,
					     &ring.written[i].record);
		assert_true(ring.replay.next_seq == ring.head ||
			    ring.replay.next_seq == ring.head - 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_layout_too_small),
		cmocka_unit_test(test_layout_large),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_line_blocks),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_super_round_trip),
		cmocka_unit_test(test_super_bits),
		cmocka_unit_test(test_super_impossible),
		cmocka_unit_test(test_super_features),
		cmocka_unit_test(test_error_text),
		cmocka_unit_test(test_record_round_trip),
		cmocka_unit_test(test_record_checks),
		cmocka_unit_test(test_record_recover),
		cmocka_unit_test(test_journal_frame),
		cmocka_unit_test(test_journal_frame_impossible),
		cmocka_unit_test(test_table_frame),
		cmocka_unit_test(test_replay_empty),
		cmocka_unit_test(test_replay_commits),
		cmocka_unit_test(test_replay_torn),
		cmocka_unit_test(test_replay_torn_copies),
		cmocka_unit_test(test_replay_one_copy),
		cmocka_unit_test(test_replay_both_copies),
		cmocka_unit_test(test_replay_laps),
		cmocka_unit_test(test_replay_tail_moves),
		cmocka_unit_test(test_replay_leftovers),
		cmocka_unit_test(test_replay_other_cache),
		cmocka_unit_test(test_replay_other_laps),
		cmocka_unit_test(test_replay_impossible_record),
		cmocka_unit_test(test_replay_apply_fails),
		cmocka_unit_test(test_replay_read_fails),
		cmocka_unit_test(test_replay_random_damage),
	};

	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
