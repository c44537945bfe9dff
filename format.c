// SPDX-License-Identifier: GPL-2.0
/*
 * On-disk format of dm-ssdcache: encoding, checks and replay. Pure, see
 * format.h. Nothing that comes from a device is used before it was checked
 * here.
 */
#include <linux/bits.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "format.h"

#define JOURNAL_BLOCKS_MIN	32u
#define JOURNAL_BLOCKS_MAX	16384u
/* One block of journal for so many blocks of SSD. */
#define JOURNAL_SHARE_SHIFT	8
#define SLOTS_MIN		4u
/* Sizes beyond this are lies: 2^54 sectors are 8 EiB. */
#define SECTORS_MAX		BIT_ULL(54)

static u64 segment_table_blocks(const struct segment *segment)
{
	return DIV_ROUND_UP_ULL(segment->nr_slots, RECORDS_PER_BLOCK);
}

/**
 * super_nr_slots() - number of slots of all segments
 * @super: checked superblock
 */
u64 super_nr_slots(const struct super *super)
{
	u64 slots = 0;
	u32 i;

	for (i = 0; i < super->nr_segments; i++)
		slots += super->segments[i].nr_slots;
	return slots;
}

/**
 * super_nr_lines() - number of lines of the array, the last may be short
 * @super: checked superblock
 */
u64 super_nr_lines(const struct super *super)
{
	return div64_u64(super->array_sectors + super->line_sectors - 1,
			 super->line_sectors);
}

/**
 * super_nr_table_blocks() - table blocks of all segments, one place counted
 * @super: checked superblock
 */
u64 super_nr_table_blocks(const struct super *super)
{
	u64 blocks = 0;
	u32 i;

	for (i = 0; i < super->nr_segments; i++)
		blocks += segment_table_blocks(&super->segments[i]);
	return blocks;
}

/**
 * super_line_blocks() - mask of the blocks that a line has
 * @super: checked superblock
 * @line: below super_nr_lines()
 *
 * All of them but for the array's last line, which may be short; its last block
 * counts even where the array ends inside it.
 */
u64 super_line_blocks(const struct super *super, line_t line)
{
	u64 start = line_nr(line) * super->line_sectors;
	u64 sectors = super->array_sectors - start;

	if (sectors > super->line_sectors)
		sectors = super->line_sectors;
	return blocks_mask(0, DIV_ROUND_UP_ULL(sectors, BLOCK_SECTORS));
}

/**
 * slot_to_sector() - where a slot's data begins on the SSD, in sectors
 * @super: checked superblock
 * @slot: below super_nr_slots()
 */
u64 slot_to_sector(const struct super *super, slot_t slot)
{
	const struct segment *segment = super->segments;
	u32 nr = slot_nr(slot);

	while (nr - segment->first_slot >= segment->nr_slots)
		segment++;
	return segment->data_sector +
	       (u64)(nr - segment->first_slot) * super->line_sectors;
}

/**
 * table_block_place() - where a table block is stored, and what it covers
 * @super: checked superblock
 * @index: below super_nr_table_blocks()
 * @place: 0 or 1
 * @first_slot: out: first slot of the block
 * @nr_slots: out: number of slots, at most RECORDS_PER_BLOCK
 *
 * Return: the place, in 4 KiB blocks of the SSD.
 */
u64 table_block_place(const struct super *super, u64 index,
		      unsigned int place, u32 *first_slot, u32 *nr_slots)
{
	const struct segment *segment = super->segments;
	u64 blocks;
	u32 skip;

	while (index >= (blocks = segment_table_blocks(segment))) {
		index -= blocks;
		segment++;
	}
	skip = index * RECORDS_PER_BLOCK;
	*first_slot = segment->first_slot + skip;
	*nr_slots = min(segment->nr_slots - skip, RECORDS_PER_BLOCK);
	return segment->table_block + place * blocks + index;
}

/**
 * slot_to_table_index() - the table block that holds a slot's record
 * @super: checked superblock
 * @slot: below super_nr_slots()
 */
u64 slot_to_table_index(const struct super *super, slot_t slot)
{
	const struct segment *segment = super->segments;
	u32 nr = slot_nr(slot);
	u64 before = 0;

	while (nr - segment->first_slot >= segment->nr_slots) {
		before += segment_table_blocks(segment);
		segment++;
	}
	return before + (nr - segment->first_slot) / RECORDS_PER_BLOCK;
}

/**
 * super_place() - where a superblock is, in 4 KiB blocks of the SSD
 * @place: 0 or 1
 */
u64 super_place(unsigned int place)
{
	return place ? SUPER_SECOND_BLOCK : 0;
}

/**
 * journal_place() - where a journal block is, in 4 KiB blocks of the SSD
 * @super: checked superblock
 * @seq: its sequence number
 * @copy: 0 or 1
 */
u64 journal_place(const struct super *super, u64 seq, unsigned int copy)
{
	u64 slot;

	div64_u64_rem(seq, super->journal_blocks, &slot);
	return JOURNAL_FIRST_BLOCK + 2 * slot + copy;
}

/**
 * cache_seed() - start value of the checksums of a cache's blocks
 * @super: only the UUID is read
 *
 * Blocks of an earlier format of the same SSD never have a right checksum.
 */
u32 cache_seed(const struct super *super)
{
	return crc32c(~0u, super->uuid, sizeof(super->uuid));
}

static u32 block_crc(u32 seed, const void *block)
{
	const struct disk_header *header = block;
	const size_t before = offsetof(struct disk_header, crc);
	const size_t after = before + sizeof(header->crc);
	const u8 *bytes = block;
	u32 crc = crc32c(seed, bytes, before);

	return crc32c(crc, bytes + after, BLOCK_SIZE_BYTES - after);
}

static enum format_error header_check(u32 seed, const void *block,
				      const char *magic, u64 location)
{
	const struct disk_header *header = block;

	if (memcmp(header->magic, magic, sizeof(header->magic)))
		return FORMAT_NOT_OURS;
	if (le32_to_cpu(header->crc) != block_crc(seed, block))
		return FORMAT_DAMAGED;
	if (le64_to_cpu(header->location) != location)
		return FORMAT_DAMAGED;
	return FORMAT_OK;
}

/*---- Layout ----*/

/*
 * Puts a segment between two places of the SSD, in sectors: table, second place
 * of the table, slots aligned to the line size.
 */
static bool segment_layout(struct segment *segment, u32 line_sectors,
			   u32 first_slot, u64 from, u64 to)
{
	u64 start = round_up(from, BLOCK_SECTORS);
	u64 slots, table, data;

	if (to <= start)
		return false;
	slots = min_t(u64, div_u64(to - start, line_sectors),
		      MAX_SLOTS - first_slot);
	for (; slots; slots--) {
		table = DIV_ROUND_UP_ULL(slots, RECORDS_PER_BLOCK);
		data = round_up(start + 2 * table * BLOCK_SECTORS, line_sectors);
		if (data + slots * line_sectors <= to)
			break;
		/* Each round gives back about what the table takes. */
		if (data > to)
			slots -= min(slots - 1,
				     div_u64(data - to, line_sectors));
	}
	if (!slots)
		return false;

	segment->first_slot = first_slot;
	segment->nr_slots = slots;
	segment->table_block = start >> BLOCK_SECTOR_SHIFT;
	segment->data_sector = data;
	return true;
}

/**
 * super_layout() - divides an SSD
 * @super: line_sectors is set; the layout is filled in
 * @ssd_sectors: size of the SSD, in sectors
 *
 * Return: 0, or -ENOSPC if the SSD is too small.
 */
int super_layout(struct super *super, u64 ssd_sectors)
{
	u64 blocks = ssd_sectors >> BLOCK_SECTOR_SHIFT;
	u64 from;

	super->ssd_sectors = ssd_sectors;
	super->journal_blocks = clamp_t(u64, blocks >> JOURNAL_SHARE_SHIFT,
					JOURNAL_BLOCKS_MIN, JOURNAL_BLOCKS_MAX);
	super->nr_segments = 0;
	from = (JOURNAL_FIRST_BLOCK + 2 * super->journal_blocks) * BLOCK_SECTORS;
	if (!segment_layout(&super->segments[0], super->line_sectors, 0, from,
			    ssd_sectors))
		return -ENOSPC;
	if (super->segments[0].nr_slots < SLOTS_MIN)
		return -ENOSPC;
	super->nr_segments = 1;
	return 0;
}

static u64 segment_end(const struct super *super, u32 i)
{
	const struct segment *segment = &super->segments[i];

	return segment->data_sector +
	       (u64)segment->nr_slots * super->line_sectors;
}

/**
 * super_grow() - adds a segment for what an SSD has grown by
 * @super: checked superblock
 * @ssd_sectors: new size, in sectors
 *
 * Return: whether there is a new segment.
 */
bool super_grow(struct super *super, u64 ssd_sectors)
{
	u32 last = super->nr_segments - 1;
	struct segment *segment = &super->segments[last + 1];

	if (ssd_sectors <= super->ssd_sectors ||
	    super->nr_segments == MAX_SEGMENTS)
		return false;
	if (!segment_layout(segment, super->line_sectors, super_nr_slots(super),
			    segment_end(super, last), ssd_sectors))
		return false;
	super->nr_segments++;
	super->ssd_sectors = ssd_sectors;
	return true;
}

/*---- Superblock ----*/

/**
 * super_encode() - makes a superblock to be written
 * @super: what it says; @super->seq is its sequence number
 * @location: super_place() it will be written to
 * @disk: out: the block
 */
void super_encode(const struct super *super, u64 location,
		  struct disk_super *disk)
{
	u32 i;

	memset(disk, 0, sizeof(*disk));
	memcpy(disk->header.magic, MAGIC_SUPER, sizeof(disk->header.magic));
	disk->header.location = cpu_to_le64(location);
	disk->header.seq = cpu_to_le64(super->seq);
	memcpy(disk->uuid, super->uuid, sizeof(disk->uuid));
	disk->version = cpu_to_le32(FORMAT_VERSION);
	disk->compat = cpu_to_le32(FEATURES_COMPAT);
	disk->ro_compat = cpu_to_le32(FEATURES_RO_COMPAT);
	disk->incompat = cpu_to_le32(FEATURES_INCOMPAT);
	disk->flags = cpu_to_le32(super->flags);
	disk->mode = cpu_to_le32(super->mode);
	disk->line_sectors = cpu_to_le32(super->line_sectors);
	disk->nr_segments = cpu_to_le32(super->nr_segments);
	disk->array_sectors = cpu_to_le64(super->array_sectors);
	disk->ssd_sectors = cpu_to_le64(super->ssd_sectors);
	disk->journal_blocks = cpu_to_le64(super->journal_blocks);
	disk->journal_tail = cpu_to_le64(super->journal_tail);
	disk->high_water = cpu_to_le64(super->high_water);
	disk->dirty_blocks = cpu_to_le64(super->dirty_blocks);
	for (i = 0; i < ARRAY_SIZE(disk->fingerprint); i++)
		disk->fingerprint[i] = cpu_to_le32(super->fingerprint[i]);
	for (i = 0; i < super->nr_segments; i++) {
		const struct segment *segment = &super->segments[i];

		disk->segments[i].first_slot = cpu_to_le32(segment->first_slot);
		disk->segments[i].nr_slots = cpu_to_le32(segment->nr_slots);
		disk->segments[i].table_block = cpu_to_le64(segment->table_block);
		disk->segments[i].data_sector = cpu_to_le64(segment->data_sector);
	}
	disk->header.crc = cpu_to_le32(block_crc(~0u, disk));
}

static bool line_sectors_valid(u32 sectors)
{
	return sectors == 128 || sectors == 256 || sectors == 512;
}

static bool super_segments_valid(const struct super *super)
{
	u64 end = (JOURNAL_FIRST_BLOCK + 2 * super->journal_blocks) * BLOCK_SECTORS;
	u64 slots = 0;
	u32 i;

	if (!super->nr_segments || super->nr_segments > MAX_SEGMENTS)
		return false;
	for (i = 0; i < super->nr_segments; i++) {
		const struct segment *segment = &super->segments[i];
		u64 table = 2 * segment_table_blocks(segment);

		if (segment->first_slot != slots || !segment->nr_slots ||
		    segment->table_block > SECTORS_MAX >> BLOCK_SECTOR_SHIFT ||
		    segment->data_sector > SECTORS_MAX)
			return false;
		if (segment->table_block * BLOCK_SECTORS < end ||
		    (segment->table_block + table) * BLOCK_SECTORS >
							segment->data_sector ||
		    segment->data_sector & (BLOCK_SECTORS - 1))
			return false;
		end = segment_end(super, i);
		if (end > super->ssd_sectors)
			return false;
		slots += segment->nr_slots;
	}
	return slots <= MAX_SLOTS;
}

static bool super_valid(const struct super *super)
{
	if (super->flags & ~SUPER_FLAGS_KNOWN || super->mode >= NR_MODES)
		return false;
	if (!line_sectors_valid(super->line_sectors))
		return false;
	if (!super->array_sectors || super->array_sectors > SECTORS_MAX ||
	    super->ssd_sectors > SECTORS_MAX)
		return false;
	if (super_nr_lines(super) >> LINE_NR_BITS)
		return false;
	if (super->journal_blocks < JOURNAL_BLOCKS_MIN ||
	    super->journal_blocks > JOURNAL_BLOCKS_MAX)
		return false;
	/* Sequence numbers must never wrap; real ones stay far below. */
	if (super->journal_tail >> 62 || super->seq >> 62 || !super->seq)
		return false;
	if (!super_segments_valid(super))
		return false;
	return super->high_water <= super_nr_table_blocks(super);
}

/**
 * super_decode() - checks a superblock and reads it
 * @disk: the block
 * @location: super_place() it was read from
 * @super: out: valid only if FORMAT_OK is returned
 */
enum format_error super_decode(const struct disk_super *disk, u64 location,
			       struct super *super)
{
	enum format_error error;
	u32 i;

	error = header_check(~0u, disk, MAGIC_SUPER, location);
	if (error)
		return error;
	if (le32_to_cpu(disk->version) != FORMAT_VERSION ||
	    le32_to_cpu(disk->incompat) & ~FEATURES_INCOMPAT ||
	    le32_to_cpu(disk->ro_compat) & ~FEATURES_RO_COMPAT)
		return FORMAT_UNKNOWN;

	memset(super, 0, sizeof(*super));
	super->seq = le64_to_cpu(disk->header.seq);
	memcpy(super->uuid, disk->uuid, sizeof(super->uuid));
	super->flags = le32_to_cpu(disk->flags);
	super->mode = le32_to_cpu(disk->mode);
	super->line_sectors = le32_to_cpu(disk->line_sectors);
	super->nr_segments = le32_to_cpu(disk->nr_segments);
	super->array_sectors = le64_to_cpu(disk->array_sectors);
	super->ssd_sectors = le64_to_cpu(disk->ssd_sectors);
	super->journal_blocks = le64_to_cpu(disk->journal_blocks);
	super->journal_tail = le64_to_cpu(disk->journal_tail);
	super->high_water = le64_to_cpu(disk->high_water);
	super->dirty_blocks = le64_to_cpu(disk->dirty_blocks);
	for (i = 0; i < ARRAY_SIZE(disk->fingerprint); i++)
		super->fingerprint[i] = le32_to_cpu(disk->fingerprint[i]);
	for (i = 0; i < MAX_SEGMENTS; i++) {
		struct segment *segment = &super->segments[i];

		segment->first_slot = le32_to_cpu(disk->segments[i].first_slot);
		segment->nr_slots = le32_to_cpu(disk->segments[i].nr_slots);
		segment->table_block = le64_to_cpu(disk->segments[i].table_block);
		segment->data_sector = le64_to_cpu(disk->segments[i].data_sector);
	}
	return super_valid(super) ? FORMAT_OK : FORMAT_INCONSISTENT;
}

/**
 * format_error_text() - what a user is told
 * @error: what a check returned
 */
const char *format_error_text(enum format_error error)
{
	switch (error) {
	case FORMAT_OK:
		return "valid";
	case FORMAT_NOT_OURS:
		return "not a dm-ssdcache block";
	case FORMAT_DAMAGED:
		return "checksum or location wrong";
	case FORMAT_UNKNOWN:
		return "written by a newer version";
	case FORMAT_INCONSISTENT:
		return "content impossible";
	}
	return "unknown";
}

/*---- Records ----*/

/**
 * record_encode() - makes a record to be written
 * @record: what it says
 * @disk: out
 */
void record_encode(const struct record *record, struct disk_record *disk)
{
	disk->slot = cpu_to_le32(slot_nr(record->slot));
	disk->flags = record->flags;
	disk->hint = record->hint;
	disk->reserved = 0;
	disk->line = cpu_to_le64(record->line == NO_LINE ? 0 :
				 line_nr(record->line));
	disk->valid = cpu_to_le64(record->valid);
	disk->dirty = cpu_to_le64(record->dirty);
}

static bool record_valid(const struct super *super, const struct record *record)
{
	u64 blocks;

	if (!(record->flags & RECORD_USED))
		return !record->flags && record->line == NO_LINE &&
		       !record->valid && !record->dirty;
	if ((record->flags & RECORD_OPEN_DIRTY) &&
	    (record->flags & RECORD_OPEN_DROP))
		return false;
	if (line_nr(record->line) >= super_nr_lines(super))
		return false;
	blocks = super_line_blocks(super, record->line);
	return !(record->valid & ~blocks) && !(record->dirty & ~record->valid);
}

/**
 * record_decode() - checks a record and reads it
 * @super: checked superblock
 * @disk: from a block whose checksum is right
 * @record: out: valid only if FORMAT_OK is returned
 */
enum format_error record_decode(const struct super *super,
				const struct disk_record *disk,
				struct record *record)
{
	u64 line = le64_to_cpu(disk->line);

	record->slot = to_slot(le32_to_cpu(disk->slot));
	record->flags = disk->flags;
	record->hint = disk->hint;
	record->valid = le64_to_cpu(disk->valid);
	record->dirty = le64_to_cpu(disk->dirty);
	if (record->flags & ~RECORD_FLAGS_KNOWN || disk->reserved)
		return FORMAT_INCONSISTENT;
	if (slot_nr(record->slot) >= super_nr_slots(super))
		return FORMAT_INCONSISTENT;
	record->line = to_line(line);
	if (!(record->flags & RECORD_USED)) {
		if (line)
			return FORMAT_INCONSISTENT;
		record->line = NO_LINE;
	}
	return record_valid(super, record) ? FORMAT_OK : FORMAT_INCONSISTENT;
}

/**
 * record_recover() - what a record means after a crash (R3)
 * @record: checked; closed on return
 */
void record_recover(struct record *record)
{
	if (record->flags & RECORD_OPEN_DIRTY)
		record->dirty = record->valid;
	if (record->flags & RECORD_OPEN_DROP)
		record->valid = record->dirty;
	record->flags &= ~(RECORD_OPEN_DIRTY | RECORD_OPEN_DROP);
}

/*---- Journal and table blocks ----*/

static void records_seal(const struct super *super,
			 struct disk_records_block *block, const char *magic,
			 u64 location, u64 seq, u64 first)
{
	memcpy(block->header.magic, magic, sizeof(block->header.magic));
	block->header.location = cpu_to_le64(location);
	block->header.seq = cpu_to_le64(seq);
	block->header.first = cpu_to_le64(first);
	memset(block->header.reserved, 0, sizeof(block->header.reserved));
	block->header.crc = cpu_to_le32(block_crc(cache_seed(super), block));
}

/**
 * journal_seal() - completes a journal block
 * @super: checked superblock
 * @block: the first @count records are filled in; the rest is zero, but for
 *	   those of an earlier use, which its header counts: they are zeroed
 * @seq: its sequence number
 * @first: sequence number of the first block of its commit
 * @count: number of records, at most RECORDS_PER_BLOCK
 * @last: whether it is the last of its commit
 *
 * Both copies are the same: each says the place of the first.
 */
void journal_seal(const struct super *super, struct disk_records_block *block,
		  u64 seq, u64 first, unsigned int count, bool last)
{
	unsigned int old = min_t(unsigned int, le16_to_cpu(block->header.count),
				 RECORDS_PER_BLOCK);

	if (old > count)
		memset(&block->records[count], 0,
		       (old - count) * sizeof(block->records[0]));
	block->header.count = cpu_to_le16(count);
	block->header.flags = cpu_to_le16(last ? JOURNAL_LAST : 0);
	records_seal(super, block, MAGIC_JOURNAL,
		     journal_place(super, seq, 0), seq, first);
}

/**
 * journal_check() - checks a journal block's frame
 * @super: checked superblock
 * @block: the block
 * @seq: out: sequence number; the caller compares it with what it expects
 * @first: out: sequence number of the first block of its commit
 * @last: out: whether it is the last of its commit
 */
enum format_error journal_check(const struct super *super,
				const struct disk_records_block *block,
				u64 *seq, u64 *first, bool *last)
{
	const struct disk_header *header = &block->header;
	enum format_error error;
	u16 flags = le16_to_cpu(header->flags);

	*seq = le64_to_cpu(header->seq);
	*first = le64_to_cpu(header->first);
	*last = flags & JOURNAL_LAST;
	error = header_check(cache_seed(super), block, MAGIC_JOURNAL,
			     journal_place(super, *seq, 0));
	if (error)
		return error;
	if (le16_to_cpu(header->count) > RECORDS_PER_BLOCK ||
	    flags & ~JOURNAL_LAST || *first > *seq || *seq >> 62)
		return FORMAT_INCONSISTENT;
	return FORMAT_OK;
}

/**
 * table_seal() - completes a table block
 * @super: checked superblock
 * @block: all its records are filled in
 * @index: of the table block
 * @seq: journal records with a smaller number are contained in it
 * @place: 0 or 1
 */
void table_seal(const struct super *super, struct disk_records_block *block,
		u64 index, u64 seq, unsigned int place)
{
	u32 first_slot, nr_slots;
	u64 location = table_block_place(super, index, place, &first_slot,
					 &nr_slots);

	memset(&block->records[nr_slots], 0,
	       (RECORDS_PER_BLOCK - nr_slots) * sizeof(block->records[0]));
	block->header.count = 0;
	block->header.flags = 0;
	records_seal(super, block, MAGIC_TABLE, location, seq, index);
}

/**
 * table_check() - checks a table block's frame
 * @super: checked superblock
 * @block: the block
 * @index: of the table block
 * @place: where it was read from, 0 or 1
 * @seq: out: journal records with a smaller number are contained in it
 */
enum format_error table_check(const struct super *super,
			      const struct disk_records_block *block,
			      u64 index, unsigned int place, u64 *seq)
{
	u32 first_slot, nr_slots;
	u64 location = table_block_place(super, index, place, &first_slot,
					 &nr_slots);
	enum format_error error;

	error = header_check(cache_seed(super), block, MAGIC_TABLE, location);
	if (error)
		return error;
	*seq = le64_to_cpu(block->header.seq);
	if (le64_to_cpu(block->header.first) != index || *seq >> 62)
		return FORMAT_INCONSISTENT;
	return FORMAT_OK;
}

/*---- Replay ----*/

/* Reads the block @seq from the copy that has it; -ENOENT if none does. */
static int replay_block(const struct super *super, struct replay *replay,
			u64 seq, struct disk_records_block *block, u64 *first,
			bool *last)
{
	unsigned int copy;
	u64 found;

	for (copy = 0; copy < 2; copy++) {
		if (replay->read(replay->context, seq, copy, block))
			continue;
		if (journal_check(super, block, &found, first, last))
			continue;
		if (found == seq)
			return copy;
	}
	return -ENOENT;
}

/* The number after the last whole commit. */
static u64 replay_find_end(const struct super *super, struct replay *replay,
			   struct disk_records_block *block)
{
	u64 tail = super->journal_tail;
	u64 seq, first, begin = tail;
	bool last;

	for (seq = tail; seq < tail + super->journal_blocks; seq++) {
		int copy = replay_block(super, replay, seq, block, &first, &last);

		if (copy < 0 || first != begin)
			break;
		if (last)
			begin = seq + 1;
	}
	return begin;
}

/*
 * Whether a commit behind the end was complete once: then blocks before it
 * are not missing but damaged.
 */
static bool replay_gap(const struct super *super, struct replay *replay,
		       u64 end, struct disk_records_block *block)
{
	u64 tail = super->journal_tail;
	u64 seq, first;
	bool last;

	for (seq = end; seq < tail + super->journal_blocks; seq++) {
		if (replay_block(super, replay, seq, block, &first, &last) < 0)
			continue;
		replay->highest = seq;
		if (first > end || (last && first == end))
			return true;
	}
	return false;
}

static int replay_apply_block(const struct super *super, struct replay *replay,
			      u64 seq, const struct disk_records_block *block)
{
	unsigned int i, count = le16_to_cpu(block->header.count);
	struct record record;
	int r;

	for (i = 0; i < count; i++) {
		if (record_decode(super, &block->records[i], &record))
			return -EILSEQ;
		r = replay->apply(replay->context, seq, &record);
		if (r)
			return r;
	}
	return 0;
}

/**
 * journal_replay() - delivers the records of all whole commits, oldest first
 * @super: checked superblock
 * @replay: see there
 * @scratch: one block of memory
 *
 * Commits that lack a block at the end were never acknowledged and are not
 * delivered.
 *
 * Return: 0; -EUCLEAN if blocks of an acknowledged commit are missing in both
 * copies; -EILSEQ if a record is impossible; what @replay->apply returned. After
 * an error nothing that was delivered may be used.
 */
int journal_replay(const struct super *super, struct replay *replay,
		   struct disk_records_block *scratch)
{
	u64 end = replay_find_end(super, replay, scratch);
	u64 seq, first;
	bool last;
	int r;

	replay->repaired = 0;
	replay->next_seq = end;
	replay->highest = end;
	if (replay_gap(super, replay, end, scratch))
		return -EUCLEAN;
	for (seq = super->journal_tail; seq < end; seq++) {
		r = replay_block(super, replay, seq, scratch, &first, &last);
		if (r < 0)
			return -EUCLEAN;
		replay->repaired += r;
		r = replay_apply_block(super, replay, seq, scratch);
		if (r)
			return r;
	}
	return 0;
}
