/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-disk format of dm-ssdcache: structures, encoding, checks, replay.
 *
 * Owns nothing and takes no lock: every function works on the memory it is
 * given, never sleeps, never touches a device. The same two files are compiled
 * into the module, the tools and the tests. Documentation/on-disk-format.rst
 * says what the bytes mean; a unit test compares the two.
 */
#ifndef SSDCACHE_FORMAT_H
#define SSDCACHE_FORMAT_H

#include <linux/types.h>

/* A line of the array, counted in lines from the start of the target. */
typedef u64 __bitwise line_t;
/* A place on the SSD that holds one line. */
typedef u32 __bitwise slot_t;

#define NO_LINE		((__force line_t)~0ULL)
#define NO_SLOT		((__force slot_t)~0U)

static inline line_t to_line(u64 nr)
{
	return (__force line_t)nr;
}

static inline u64 line_nr(line_t line)
{
	return (__force u64)line;
}

static inline slot_t to_slot(u32 nr)
{
	return (__force slot_t)nr;
}

static inline u32 slot_nr(slot_t slot)
{
	return (__force u32)slot;
}

#define BLOCK_SIZE_BYTES	4096u
#define BLOCK_SECTORS		8u
#define BLOCK_SECTOR_SHIFT	3

#define LINE_SECTORS_MIN	128u
#define LINE_SECTORS_MAX	512u
#define LINE_NR_BITS		40

#define FORMAT_VERSION		1u
#define RECORDS_PER_BLOCK	126u
#define MAX_SEGMENTS		8u
#define MAX_SLOTS		0xfffffff0u
#define SUPER_PLACES		2u
/* Second superblock: far enough away that a wiped start does not reach it. */
#define SUPER_SECOND_BLOCK	16u
#define JOURNAL_FIRST_BLOCK	32u

#define MAGIC_SUPER	"SSDCsupr"
#define MAGIC_JOURNAL	"SSDCjrnl"
#define MAGIC_TABLE	"SSDCtabl"

/* Feature bits this code knows, as ext4 and XFS have them. */
#define FEATURES_COMPAT		0u
#define FEATURES_RO_COMPAT	0u
#define FEATURES_INCOMPAT	0u

/* Start of every metadata block: 64 bytes. */
struct disk_header {
	char	magic[8];
	__le32	crc;		/* crc32c of the block without this field */
	__le16	count;		/* journal: records; else 0 */
	__le16	flags;		/* JOURNAL_LAST */
	__le64	location;	/* own place (journal: first copy's), in 4 KiB blocks */
	__le64	seq;
	__le64	first;		/* journal: first block of the commit; table: index */
	u8	reserved[24];
} __packed;

#define JOURNAL_LAST	1u	/* last block of its commit */

/* State of one slot: 32 bytes. */
struct disk_record {
	__le32	slot;
	u8	flags;
	u8	hint;
	__le16	reserved;
	__le64	line;
	__le64	valid;
	__le64	dirty;
} __packed;

#define RECORD_USED		1u
#define RECORD_OPEN_DIRTY	2u	/* after a crash valid blocks are dirty */
#define RECORD_OPEN_DROP	4u	/* after a crash valid blocks are dropped */
#define RECORD_FLAGS_KNOWN	7u

struct disk_records_block {
	struct disk_header header;
	struct disk_record records[RECORDS_PER_BLOCK];
} __packed;

/* Slots that were added at once: at format, or when the SSD had grown. */
struct disk_segment {
	__le32	first_slot;
	__le32	nr_slots;
	__le64	table_block;	/* first place of its table; the second follows */
	__le64	data_sector;	/* of its first slot */
} __packed;

struct disk_super {
	struct disk_header header;	/* 0: seq counts writes */
	u8	uuid[16];		/* 64: of this cache */
	__le32	version;		/* 80 */
	__le32	compat;			/* 84 */
	__le32	ro_compat;		/* 88 */
	__le32	incompat;		/* 92 */
	__le32	flags;			/* 96 */
	__le32	mode;			/* 100: enum cache_mode */
	__le32	line_sectors;		/* 104 */
	__le32	nr_segments;		/* 108 */
	__le64	array_sectors;		/* 112 */
	__le64	ssd_sectors;		/* 120 */
	__le64	journal_blocks;		/* 128: each in two copies, side by side */
	__le64	journal_tail;		/* 136: first sequence number to replay */
	__le64	high_water;		/* 144: table blocks that were ever written */
	__le64	dirty_blocks;		/* 152: at a clean stop; else unknown */
	__le32	fingerprint[3];		/* 160: of the array at a clean stop */
	__le32	reserved;		/* 172 */
	struct disk_segment segments[MAX_SEGMENTS];	/* 176 */
	u8	padding[3728];
} __packed;

#define SUPER_CLEAN	1u	/* stopped cleanly: journal empty, no line open */
#define SUPER_DETACHED	2u	/* no longer of any array */
#define SUPER_FAILED	4u	/* writes went past it: not to be trusted */
#define SUPER_FLAGS_KNOWN 7u

enum cache_mode {
	MODE_WRITEBACK,
	MODE_WRITETHROUGH,
	MODE_WRITEAROUND,
	MODE_PASSTHROUGH,
	NR_MODES
};

/* What a checked superblock says, in memory. */
struct segment {
	u32	first_slot;
	u32	nr_slots;
	u64	table_block;
	u64	data_sector;
};

struct super {
	u64	seq;
	u8	uuid[16];
	u32	flags;
	u32	mode;
	u32	line_sectors;
	u32	nr_segments;
	u64	array_sectors;
	u64	ssd_sectors;
	u64	journal_blocks;
	u64	journal_tail;
	u64	high_water;
	u64	dirty_blocks;
	u32	fingerprint[3];
	struct segment segments[MAX_SEGMENTS];
};

/* State of one slot, in memory. */
struct record {
	slot_t	slot;
	line_t	line;		/* NO_LINE if the slot is free */
	u64	valid;
	u64	dirty;
	u8	flags;		/* RECORD_* */
	u8	hint;
};

/* What is wrong with a block; 0 is nothing. */
enum format_error {
	FORMAT_OK,
	FORMAT_NOT_OURS,	/* no magic of ours */
	FORMAT_DAMAGED,		/* checksum or own location wrong */
	FORMAT_UNKNOWN,		/* version or feature from the future */
	FORMAT_INCONSISTENT,	/* checksum right, content impossible */
};

/**
 * blocks_mask() - bits of @count blocks from @first of a line
 * @first: first block, 0 to 63
 * @count: number of blocks, @first + @count <= 64
 */
static inline u64 blocks_mask(unsigned int first, unsigned int count)
{
	if (!count)
		return 0;
	return (~0ULL >> (64 - count)) << first;
}

/**
 * blocks_run() - length of the run of blocks that begins with block 0
 * @blocks: mask whose lowest bit is set
 */
static inline unsigned int blocks_run(u64 blocks)
{
	return ~blocks ? __builtin_ctzll(~blocks) : 64;
}

u64 super_nr_slots(const struct super *super);
u64 super_nr_lines(const struct super *super);
u64 super_nr_table_blocks(const struct super *super);
u64 super_line_blocks(const struct super *super, line_t line);
u64 slot_to_sector(const struct super *super, slot_t slot);
u64 table_block_place(const struct super *super, u64 index,
		      unsigned int place, u32 *first_slot, u32 *nr_slots);
u64 slot_to_table_index(const struct super *super, slot_t slot);
u64 super_place(unsigned int place);
u64 journal_place(const struct super *super, u64 seq, unsigned int copy);

u32 cache_seed(const struct super *super);
int super_layout(struct super *super, u64 ssd_sectors);
bool super_grow(struct super *super, u64 ssd_sectors);
void super_encode(const struct super *super, u64 location,
		  struct disk_super *disk);
enum format_error super_decode(const struct disk_super *disk, u64 location,
			       struct super *super);
const char *format_error_text(enum format_error error);

void record_encode(const struct record *record, struct disk_record *disk);
enum format_error record_decode(const struct super *super,
				const struct disk_record *disk,
				struct record *record);
void record_recover(struct record *record);

void journal_seal(const struct super *super, struct disk_records_block *block,
		  u64 seq, u64 first, unsigned int count, bool last);
enum format_error journal_check(const struct super *super,
				const struct disk_records_block *block,
				u64 *seq, u64 *first, bool *last);

void table_seal(const struct super *super, struct disk_records_block *block,
		u64 index, u64 seq, unsigned int place);
enum format_error table_check(const struct super *super,
			      const struct disk_records_block *block,
			      u64 index, unsigned int place, u64 *seq);

/**
 * struct replay - how journal_replay() reads and delivers
 * @read: fill @block with what copy @copy holds at the place of @seq;
 *	  0 or a negative error, which counts as a damaged block
 * @apply: deliver a checked record from the journal block @seq; a negative
 *	  error ends the replay
 * @context: handed to both
 * @next_seq: out: the first sequence number that was not part of a whole commit
 * @highest: out: the highest sequence number seen in the ring, part of a whole
 *	     commit or not
 * @repaired: out: number of blocks that the first copy did not hold
 */
struct replay {
	int (*read)(void *context, u64 seq, unsigned int copy,
		    struct disk_records_block *block);
	int (*apply)(void *context, u64 seq, const struct record *record);
	void *context;
	u64 next_seq;
	u64 highest;
	u64 repaired;
};

int journal_replay(const struct super *super, struct replay *replay,
		   struct disk_records_block *scratch);

#endif
