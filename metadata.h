/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Metadata on the SSD: superblock, journal, slot table. Turns records into
 * durable blocks and back; knows neither bios of users nor lines in memory.
 *
 * There is no lock: whoever holds the right to commit calls, one at a time: the
 * constructor and preresume before the cache runs, then the commit worker, then
 * postsuspend when that has ended. All functions sleep.
 */
#ifndef SSDCACHE_METADATA_H
#define SSDCACHE_METADATA_H

#include <linux/blkdev.h>
#include <linux/dm-io.h>

#include "bittree.h"
#include "format.h"

/* Journal blocks that one commit may have; more records, more commits. */
#define COMMIT_BLOCKS_MAX	32u

/**
 * struct metadata_callbacks - how metadata asks for records
 * @snapshot: the record of a slot as of now, which is being written from now on
 * @committed: that record is durable
 * @context: handed to both
 */
struct metadata_callbacks {
	void (*snapshot)(void *context, slot_t slot, struct record *record);
	void (*committed)(void *context, const struct record *record);
	void *context;
};

struct metadata_counters {
	u64 commits;		/* of the journal */
	u64 blocks_written;	/* of 4 KiB, both places counted */
	u64 repaired;		/* blocks read from the second place */
	u64 write_errors;
};

struct metadata {
	struct block_device *bdev;
	struct dm_io_client *io;
	struct super super;
	struct metadata_callbacks callbacks;
	struct metadata_counters counters;

	/* Journal: [super.journal_tail, head) is in use. */
	u64 head;
	struct disk_records_block *journal;	/* COMMIT_BLOCKS_MAX blocks */
	unsigned int nr_records;		/* gathered in it */
	struct bio bio;				/* that writes it */
	struct bio_vec vecs[2 * COMMIT_BLOCKS_MAX];
	struct disk_super *scratch;		/* to write the superblock from */

	/* Checkpoint. */
	struct bittree touched[2];	/* table blocks; user: the one caller */
	unsigned int touching;		/* which of them is being added to */
	u64 touched_end;		/* one above the highest ever touched */
	bool checkpointing;
	u64 checkpoint_seq;		/* tail when it is done */
	struct disk_records_block *table;	/* TABLE_BATCH blocks */
	u64 *table_seq;			/* of each table block */
	unsigned long *newer_place;	/* bit: the second is the newer */
};

/* Says why something is refused: @why goes to the user. */
static inline int refuse(char **error, int r, char *why)
{
	*error = why;
	return r;
}

int metadata_probe(struct block_device *bdev, struct super *super,
		   struct disk_super *scratch, bool *blank, char **error);
int metadata_open(struct metadata *md, struct block_device *bdev,
		  const struct super *super,
		  const struct metadata_callbacks *callbacks);
void metadata_close(struct metadata *md);
int metadata_format(struct metadata *md);
int metadata_load(struct metadata *md,
		  int (*apply)(void *context, const struct record *record),
		  void *context);

bool metadata_add(struct metadata *md, const struct record *record);
int metadata_commit(struct metadata *md);
int metadata_checkpoint(struct metadata *md, bool whole);
void metadata_touch_all(struct metadata *md);
bool metadata_has_room(const struct metadata *md);
bool metadata_is_half_full(const struct metadata *md);
int metadata_write_super(struct metadata *md);

int sync_io(struct dm_io_client *io, struct block_device *bdev, blk_opf_t opf,
	    sector_t sector, sector_t count, void *data);

#endif
