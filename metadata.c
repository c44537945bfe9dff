// SPDX-License-Identifier: GPL-2.0
/*
 * Metadata on the SSD: superblock, journal, slot table. What it owns and who may
 * call it is said in metadata.h, the bytes in Documentation/on-disk-format.rst.
 */
#define DM_MSG_PREFIX "ssdcache"

#include <linux/device-mapper.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "metadata.h"

#define TABLE_BATCH	64u
#define LOAD_BATCH	64u

/**
 * sync_io() - reads or writes a run of sectors and waits for it
 * @io: client to use
 * @bdev: device
 * @opf: operation and flags
 * @sector: first sector
 * @count: number of sectors
 * @data: memory from vmalloc()
 *
 * Return: 0 or -EIO.
 */
int sync_io(struct dm_io_client *io, struct block_device *bdev, blk_opf_t opf,
	    sector_t sector, sector_t count, void *data)
{
	struct dm_io_region where = {
		.bdev = bdev, .sector = sector, .count = count,
	};
	struct dm_io_request request = {
		.bi_opf = opf,
		.mem.type = DM_IO_VMA,
		.mem.ptr.vma = data,
		.client = io,
	};

	return dm_io(&request, 1, &where, NULL, IOPRIO_DEFAULT) ? -EIO : 0;
}

static int block_io(struct metadata *md, blk_opf_t opf, u64 block, u64 count,
		    void *data)
{
	int r = sync_io(md->io, md->bdev, opf, block << BLOCK_SECTOR_SHIFT,
			count << BLOCK_SECTOR_SHIFT, data);

	if (op_is_write(opf & REQ_OP_MASK)) {
		md->counters.blocks_written += count;
		if (r)
			md->counters.write_errors++;
	}
	return r;
}

/*---- Superblock ----*/

static bool is_blank(const void *block)
{
	return !memchr_inv(block, 0, BLOCK_SIZE_BYTES);
}

/*
 * The first place was wiped, the second was not. A wiped start asks for a new
 * format; that is right unless the cache holds what the array does not.
 */
static bool may_format_over(const struct super *super)
{
	if (super->flags & SUPER_DETACHED)
		return true;
	return super->flags & SUPER_CLEAN && !super->dirty_blocks;
}

static int read_place(struct dm_io_client *io, struct block_device *bdev,
		      unsigned int place, struct disk_super *scratch)
{
	return sync_io(io, bdev, REQ_OP_READ | REQ_META,
		       super_place(place) << BLOCK_SECTOR_SHIFT, BLOCK_SECTORS,
		       scratch);
}

/**
 * metadata_probe() - says what is on an SSD
 * @bdev: the SSD
 * @super: out: the newer valid superblock, if 0 is returned and not @blank
 * @scratch: one block from vmalloc()
 * @blank: out: the SSD may be formatted
 * @error: out: what to tell the user
 *
 * Changes nothing. Context: may sleep.
 * Return: 0, -EIO, or -EINVAL if what is there is not ours or not readable.
 */
int metadata_probe(struct block_device *bdev, struct super *super,
		   struct disk_super *scratch, bool *blank, char **error)
{
	struct dm_io_client *io = dm_io_client_create();
	enum format_error verdict[SUPER_PLACES];
	struct super found;
	bool zero = false, unreadable = false;
	unsigned int place;
	int r = 0;

	*blank = false;
	if (IS_ERR(io))
		return PTR_ERR(io);
	super->seq = 0;
	for (place = 0; place < SUPER_PLACES; place++) {
		if (read_place(io, bdev, place, scratch)) {
			verdict[place] = FORMAT_DAMAGED;
			unreadable = true;
			continue;
		}
		if (!place)
			zero = is_blank(scratch);
		verdict[place] = super_decode(scratch, super_place(place), &found);
		if (!verdict[place] && found.seq > super->seq)
			*super = found;
	}
	dm_io_client_destroy(io);

	if (unreadable && verdict[0] && verdict[1]) {
		r = refuse(error, -EIO, "SSD: can not be read");
	} else if (zero && (verdict[1] || may_format_over(super))) {
		*blank = true;
	} else if (zero) {
		r = refuse(error, -EINVAL,
			   "SSD: first 4 KiB are zero but its second superblock names data the array lacks; restore it with 'ssdcache repair', or give it up by zeroing the first 128 KiB");
	} else if (verdict[0] == FORMAT_NOT_OURS && !verdict[1]) {
		r = refuse(error, -EINVAL,
			   "SSD: begins with something else, but has a second superblock; restore the cache with 'ssdcache repair', or zero the first 128 KiB to use the SSD anew");
	} else if (verdict[0] == FORMAT_UNKNOWN || verdict[1] == FORMAT_UNKNOWN) {
		r = refuse(error, -EINVAL,
			   "SSD: cache written by a newer version of dm-ssdcache; use that version");
	} else if (verdict[0] && verdict[1] &&
		   verdict[0] == FORMAT_NOT_OURS && verdict[1] == FORMAT_NOT_OURS) {
		r = refuse(error, -EINVAL,
			   "SSD: holds something else; to use it as cache, zero its first 4 KiB");
	} else if (!verdict[0] != !verdict[1]) {
		DMWARN("%pg: one superblock is damaged (%s), the other is used", bdev,
		       format_error_text(verdict[0] ? verdict[0] : verdict[1]));
	} else if (verdict[0] && verdict[1]) {
		r = refuse(error, -EINVAL,
			   "SSD: both superblocks damaged; run 'ssdcache check', or zero its first 128 KiB to give up the cache");
	}
	return r;
}

/**
 * metadata_write_super() - makes the superblock durable in both places
 * @md: @md->super is written, under the next sequence number
 *
 * One place after the other: one of them is always whole, and when this
 * returns 0 both are the same. All that was written before is durable too.
 *
 * Return: 0, or -EIO if neither place could be written.
 */
int metadata_write_super(struct metadata *md)
{
	unsigned int place, failed = 0;

	md->super.seq++;
	/* The first place last: while it is blank a format is not finished. */
	for (place = SUPER_PLACES; place--;) {
		super_encode(&md->super, super_place(place), md->scratch);
		if (block_io(md, REQ_OP_WRITE | REQ_PREFLUSH | REQ_FUA | REQ_META,
			     super_place(place), 1, md->scratch))
			failed++;
	}
	return failed == SUPER_PLACES ? -EIO : 0;
}

/*---- Life ----*/

/**
 * metadata_open() - allocates all that is needed for an SSD
 * @md: zeroed; metadata_close() frees it, after an error too
 * @bdev: the SSD; it must stay
 * @super: what metadata_probe() found, or a new layout
 * @callbacks: copied
 *
 * Does no I/O. Return: 0 or a negative error.
 */
int metadata_open(struct metadata *md, struct block_device *bdev,
		  const struct super *super,
		  const struct metadata_callbacks *callbacks)
{
	u64 nr = super_nr_table_blocks(super);
	int r;

	md->bdev = bdev;
	md->super = *super;
	md->callbacks = *callbacks;
	md->io = dm_io_client_create();
	if (IS_ERR(md->io)) {
		r = PTR_ERR(md->io);
		md->io = NULL;
		return r;
	}
	md->journal = vzalloc(COMMIT_BLOCKS_MAX * BLOCK_SIZE_BYTES);
	md->table = vzalloc(TABLE_BATCH * BLOCK_SIZE_BYTES);
	md->scratch = vzalloc(BLOCK_SIZE_BYTES);
	md->table_seq = vzalloc(array_size(nr, sizeof(*md->table_seq)));
	md->newer_place = vzalloc(BITS_TO_LONGS(nr) * sizeof(long));
	if (!md->journal || !md->table || !md->scratch || !md->table_seq ||
	    !md->newer_place)
		return -ENOMEM;
	if (bittree_init(&md->touched[0], nr) || bittree_init(&md->touched[1], nr))
		return -ENOMEM;
	return 0;
}

/**
 * metadata_close() - frees what metadata_open() allocated
 * @md: nobody uses it any more
 */
void metadata_close(struct metadata *md)
{
	bittree_exit(&md->touched[1]);
	bittree_exit(&md->touched[0]);
	vfree(md->newer_place);
	vfree(md->table_seq);
	vfree(md->scratch);
	vfree(md->table);
	vfree(md->journal);
	if (md->io)
		dm_io_client_destroy(md->io);
	memset(md, 0, sizeof(*md));
}

/**
 * metadata_format() - makes a blank SSD a cache without lines
 * @md: opened with a layout from super_layout()
 *
 * Until the last write the first superblock is blank, so a format that was cut
 * short is begun anew.
 */
int metadata_format(struct metadata *md)
{
	int r;

	/* A valid second superblock of an earlier cache must not come back. */
	memset(md->table, 0, BLOCK_SIZE_BYTES);
	r = block_io(md, REQ_OP_WRITE | REQ_FUA | REQ_META, super_place(1), 1,
		     md->table);
	if (r)
		return r;
	get_random_bytes(md->super.uuid, sizeof(md->super.uuid));
	md->super.journal_tail = 1;
	md->super.high_water = 0;
	md->super.flags = SUPER_CLEAN;
	return metadata_write_super(md);
}

/*---- Table ----*/

struct table_writes {
	atomic_t pending;
	struct completion done;
	bool failed;
};

static void table_write_done(unsigned long error, void *context)
{
	struct table_writes *writes = context;

	if (error)
		WRITE_ONCE(writes->failed, true);
	if (atomic_dec_and_test(&writes->pending))
		complete(&writes->done);
}

/*
 * Writes table blocks, all at once, each into its older or its newer place, then
 * flushes.
 */
static int table_write(struct metadata *md, const u64 *indexes, unsigned int nr,
		       bool newer)
{
	struct table_writes writes = { .pending = ATOMIC_INIT(1) };
	unsigned int i;
	u32 first, count;

	init_completion(&writes.done);
	for (i = 0; i < nr; i++) {
		unsigned int place = !test_bit(indexes[i], md->newer_place) ^ newer;
		struct dm_io_region where = {
			.bdev = md->bdev,
			.sector = table_block_place(&md->super, indexes[i], place,
						    &first, &count) * BLOCK_SECTORS,
			.count = BLOCK_SECTORS,
		};
		struct dm_io_request request = {
			.bi_opf = REQ_OP_WRITE | REQ_META,
			.mem.type = DM_IO_VMA,
			.mem.ptr.vma = &md->table[i],
			.notify.fn = table_write_done,
			.notify.context = &writes,
			.client = md->io,
		};

		table_seal(&md->super, &md->table[i], indexes[i], md->head, place);
		atomic_inc(&writes.pending);
		if (dm_io(&request, 1, &where, NULL, IOPRIO_DEFAULT))
			table_write_done(1, &writes);
	}
	table_write_done(0, &writes);
	wait_for_completion_io(&writes.done);
	md->counters.blocks_written += nr;
	if (writes.failed) {
		md->counters.write_errors++;
		return -EIO;
	}
	return blkdev_issue_flush(md->bdev);
}

static void table_snapshot(struct metadata *md, u64 index,
			   struct disk_records_block *block)
{
	struct record record;
	u32 i, first, count;

	table_block_place(&md->super, index, 0, &first, &count);
	for (i = 0; i < count; i++) {
		md->callbacks.snapshot(md->callbacks.context, to_slot(first + i),
				       &record);
		record_encode(&record, &block->records[i]);
	}
}

static void records_committed(struct metadata *md,
			      const struct disk_records_block *block, u32 count)
{
	struct record record;
	u32 i;

	for (i = 0; i < count; i++)
		if (!record_decode(&md->super, &block->records[i], &record))
			md->callbacks.committed(md->callbacks.context, &record);
}

/*
 * The snapshots come first, then the flush that makes the data they speak of
 * durable (R2), then the older place, then, when that is durable, the other: so
 * that damage of either is survived (C6).
 */
static int checkpoint_batch(struct metadata *md, const u64 *indexes,
			    unsigned int nr)
{
	unsigned int i;
	u32 first, count;
	int r;

	for (i = 0; i < nr; i++)
		table_snapshot(md, indexes[i], &md->table[i]);
	r = blkdev_issue_flush(md->bdev);
	if (!r)
		r = table_write(md, indexes, nr, false);
	if (!r)
		r = table_write(md, indexes, nr, true);
	/*
	 * Recovery reads nothing above the mark. All blocks below are written:
	 * touch() leaves no gap, and batches go upwards.
	 */
	if (!r && indexes[nr - 1] >= md->super.high_water) {
		md->super.high_water = indexes[nr - 1] + 1;
		r = metadata_write_super(md);
	}
	if (r)
		return r;
	for (i = 0; i < nr; i++) {
		table_block_place(&md->super, indexes[i], 0, &first, &count);
		md->table_seq[indexes[i]] = md->head;
		records_committed(md, &md->table[i], count);
	}
	return 0;
}

static void checkpoint_begin(struct metadata *md)
{
	md->checkpointing = true;
	md->checkpoint_seq = md->head;
	md->touching ^= 1;
}

static int checkpoint_end(struct metadata *md)
{
	md->checkpointing = false;
	md->super.journal_tail = md->checkpoint_seq;
	return metadata_write_super(md);
}

/**
 * metadata_checkpoint() - moves records from the journal to the table
 * @md: no commit is being gathered
 * @whole: do it all; else one step of a bounded number of blocks
 *
 * Return: 0, or a negative error after which nothing more may be written.
 */
int metadata_checkpoint(struct metadata *md, bool whole)
{
	u64 indexes[TABLE_BATCH];
	struct bittree *tree;
	unsigned int nr;
	u64 index;
	int r;

	if (!md->checkpointing)
		checkpoint_begin(md);
	tree = &md->touched[md->touching ^ 1];
	do {
		nr = 0;
		index = 0;
		while (nr < TABLE_BATCH &&
		       (index = bittree_next(tree, index)) != BITTREE_NONE) {
			bittree_clear(tree, index);
			indexes[nr++] = index;
		}
		if (!nr)
			return checkpoint_end(md);
		r = checkpoint_batch(md, indexes, nr);
		if (r)
			return r;
	} while (whole || nr < TABLE_BATCH);
	return 0;
}

static unsigned int commit_blocks(const struct metadata *md)
{
	return min_t(u64, COMMIT_BLOCKS_MAX, md->super.journal_blocks / 4);
}

/**
 * metadata_has_room() - whether the largest commit fits in the journal
 * @md: an open cache
 */
bool metadata_has_room(const struct metadata *md)
{
	return md->head - md->super.journal_tail + commit_blocks(md) <=
	       md->super.journal_blocks;
}

/**
 * metadata_is_half_full() - whether a checkpoint is due
 * @md: an open cache
 */
bool metadata_is_half_full(const struct metadata *md)
{
	return md->checkpointing ||
	       (md->head - md->super.journal_tail) * 2 > md->super.journal_blocks;
}

/*---- Journal ----*/

static void touch(struct metadata *md, slot_t slot)
{
	u64 index = slot_to_table_index(&md->super, slot);
	struct bittree *tree = &md->touched[md->touching];

	/* Below the high-water mark there must be no block never written. */
	while (md->touched_end <= index)
		bittree_set(tree, md->touched_end++);
	bittree_set(tree, index);
}

/**
 * metadata_touch_all() - has the next checkpoint write the whole table
 * @md: loaded; the cache was emptied, and no old record may come back
 */
void metadata_touch_all(struct metadata *md)
{
	u64 index;

	for (index = 0; index < md->touched_end; index++)
		bittree_set(&md->touched[md->touching], index);
}

/**
 * metadata_add() - gathers a record for the next commit
 * @md: an open cache
 * @record: copied
 *
 * Return: whether there is room for another one; if not, commit first.
 */
bool metadata_add(struct metadata *md, const struct record *record)
{
	struct disk_records_block *block =
		&md->journal[md->nr_records / RECORDS_PER_BLOCK];

	record_encode(record, &block->records[md->nr_records % RECORDS_PER_BLOCK]);
	md->nr_records++;
	touch(md, record->slot);
	return md->nr_records < commit_blocks(md) * RECORDS_PER_BLOCK;
}

/* One bio for a run of blocks: each twice, since its copies stand together. */
static int journal_write_run(struct metadata *md, u64 seq,
			     const struct disk_records_block *blocks, u64 nr,
			     blk_opf_t flags)
{
	struct bio *bio = &md->bio;
	unsigned int copy;
	int r;
	u64 i;

	bio_init(bio, md->bdev, md->vecs, ARRAY_SIZE(md->vecs),
		 REQ_OP_WRITE | REQ_META | REQ_SYNC | flags);
	bio->bi_iter.bi_sector = journal_place(&md->super, seq, 0) * BLOCK_SECTORS;
	for (i = 0; i < nr; i++)
		for (copy = 0; copy < 2; copy++)
			__bio_add_page(bio, vmalloc_to_page(&blocks[i]),
				       BLOCK_SIZE_BYTES, 0);
	r = submit_bio_wait(bio);
	bio_uninit(bio);
	md->counters.blocks_written += 2 * nr;
	return r;
}

/* After an error: each copy by itself. One of each block is enough. */
static int journal_write_singly(struct metadata *md, u64 seq,
				const struct disk_records_block *blocks, u64 nr,
				blk_opf_t flags)
{
	unsigned int copy, failed;

	md->counters.write_errors++;
	for (; nr; nr--, seq++, blocks++) {
		failed = 0;
		for (copy = 0; copy < 2; copy++)
			failed += !!block_io(md, REQ_OP_WRITE | REQ_META | flags,
					     journal_place(&md->super, seq, copy),
					     1, (void *)blocks);
		if (failed == 2)
			return -EIO;
	}
	return 0;
}

/* Writes @nr blocks of the journal, both copies of each. */
static int journal_write(struct metadata *md, u64 seq,
			 const struct disk_records_block *blocks, u64 nr,
			 blk_opf_t flags)
{
	u64 run, left;
	int r = 0;

	for (; nr && !r; nr -= run, seq += run, blocks += run) {
		div64_u64_rem(seq, md->super.journal_blocks, &left);
		run = min(nr, md->super.journal_blocks - left);
		r = journal_write_run(md, seq, blocks, run, flags);
		if (r)
			r = journal_write_singly(md, seq, blocks, run, flags);
	}
	return r;
}

/**
 * metadata_commit() - makes what was gathered, and all data before, durable
 * @md: an open cache
 *
 * Data whose write completed before the call is durable on return, then the
 * records (R2). Without records the SSD is flushed and nothing is written.
 *
 * Return: 0, or a negative error after which nothing more may be written.
 */
int metadata_commit(struct metadata *md)
{
	unsigned int i, count, nr = DIV_ROUND_UP(md->nr_records, RECORDS_PER_BLOCK);
	unsigned int left = md->nr_records;
	int r;

	if (!nr)
		return blkdev_issue_flush(md->bdev);
	if (md->head + nr - md->super.journal_tail > md->super.journal_blocks) {
		/* The commit worker checkpoints before it comes to this. */
		DMERR("%pg: journal full", md->bdev);
		return -ENOSPC;
	}
	for (i = 0; i < nr; i++) {
		count = min(left, RECORDS_PER_BLOCK);
		left -= count;
		journal_seal(&md->super, &md->journal[i], md->head + i, md->head,
			     count, i == nr - 1);
	}
	r = journal_write(md, md->head, md->journal, nr - 1, 0);
	if (!r)
		r = journal_write(md, md->head + nr - 1, &md->journal[nr - 1], 1,
				  REQ_PREFLUSH | REQ_FUA);
	if (r)
		return r;
	md->head += nr;
	md->counters.commits++;
	for (i = 0; i < nr; i++)
		records_committed(md, &md->journal[i],
				  le16_to_cpu(md->journal[i].header.count));
	md->nr_records = 0;
	return 0;
}

/*---- Load ----*/

struct load {
	struct metadata *md;
	int (*apply)(void *context, const struct record *record);
	void *context;
	struct disk_records_block *places[2];	/* LOAD_BATCH blocks each */
	struct disk_records_block *ring;	/* the whole journal, both copies */
	u64 highest;
};

/* Reads block for block what could not be read at once; zero where it fails. */
static void load_singly(struct metadata *md, u64 block, u64 count,
			struct disk_records_block *to)
{
	for (; count; count--, block++, to++)
		if (block_io(md, REQ_OP_READ | REQ_META, block, 1, to))
			memset(to, 0, sizeof(*to));
}

static int load_table_block(struct load *load, u64 index,
			    const struct disk_records_block *block, u64 seq)
{
	struct metadata *md = load->md;
	struct record record;
	u32 i, first, count;
	int r;

	table_block_place(&md->super, index, 0, &first, &count);
	for (i = 0; i < count; i++) {
		if (record_decode(&md->super, &block->records[i], &record) ||
		    slot_nr(record.slot) != first + i) {
			DMERR("%pg: table block %llu: impossible record of slot %u; run 'ssdcache check'",
			      md->bdev, index, first + i);
			return -EILSEQ;
		}
		r = load->apply(load->context, &record);
		if (r)
			return r;
	}
	md->table_seq[index] = seq;
	load->highest = max(load->highest, seq);
	return 0;
}

static int load_table_pair(struct load *load, u64 index, unsigned int at)
{
	struct metadata *md = load->md;
	enum format_error verdict[2];
	unsigned int place, newer;
	u64 seq[2] = { 0 };

	for (place = 0; place < 2; place++)
		verdict[place] = table_check(&md->super, &load->places[place][at],
					     index, place, &seq[place]);
	if (verdict[0] && verdict[1]) {
		DMERR("%pg: table block %llu: both places damaged (%s, %s); run 'ssdcache repair'",
		      md->bdev, index, format_error_text(verdict[0]),
		      format_error_text(verdict[1]));
		return -EUCLEAN;
	}
	if (verdict[0] || verdict[1]) {
		md->counters.repaired++;
		/* Rewritten by the checkpoint that ends the load. */
		bittree_set(&md->touched[md->touching], index);
	}
	newer = !verdict[1] && (verdict[0] || seq[1] > seq[0]);
	if (newer)
		set_bit(index, md->newer_place);
	else
		clear_bit(index, md->newer_place);
	return load_table_block(load, index, &load->places[newer][at], seq[newer]);
}

/* One read a segment and batch, since the places of a segment follow. */
static int load_table(struct load *load)
{
	struct metadata *md = load->md;
	u32 first, count, last;
	u64 index, start, end;
	unsigned int place, i, nr;
	int r;

	for (index = 0; index < md->super.high_water; index += nr) {
		start = table_block_place(&md->super, index, 0, &first, &count);
		for (nr = 1; nr < LOAD_BATCH; nr++) {
			if (index + nr == md->super.high_water)
				break;
			end = table_block_place(&md->super, index + nr, 0, &last,
						&count);
			if (end != start + nr)
				break;
		}
		for (place = 0; place < 2; place++) {
			start = table_block_place(&md->super, index, place, &first,
						  &count);
			if (block_io(md, REQ_OP_READ | REQ_META, start, nr,
				     load->places[place]))
				load_singly(md, start, nr, load->places[place]);
		}
		for (i = 0; i < nr; i++) {
			r = load_table_pair(load, index + i, i);
			if (r)
				return r;
		}
	}
	return 0;
}

static int load_journal_read(void *context, u64 seq, unsigned int copy,
			     struct disk_records_block *block)
{
	struct load *load = context;
	u64 at = journal_place(&load->md->super, seq, copy) - JOURNAL_FIRST_BLOCK;

	memcpy(block, &load->ring[at], sizeof(*block));
	return 0;
}

static int load_journal_apply(void *context, u64 seq, const struct record *record)
{
	struct load *load = context;
	struct metadata *md = load->md;
	u64 index = slot_to_table_index(&md->super, record->slot);

	touch(md, record->slot);
	/* The table block may hold a newer state. */
	if (seq < md->table_seq[index])
		return 0;
	return load->apply(load->context, record);
}

static int load_journal(struct load *load)
{
	struct metadata *md = load->md;
	struct replay replay = {
		.read = load_journal_read,
		.apply = load_journal_apply,
		.context = load,
	};
	u64 at, nr = 2 * md->super.journal_blocks;
	int r;

	/* In pieces, so that one that can not be read does not hide the others. */
	for (at = 0; at < nr; at += LOAD_BATCH) {
		u64 count = min_t(u64, LOAD_BATCH, nr - at);

		if (block_io(md, REQ_OP_READ | REQ_META, JOURNAL_FIRST_BLOCK + at,
			     count, &load->ring[at]))
			load_singly(md, JOURNAL_FIRST_BLOCK + at, count,
				    &load->ring[at]);
	}
	r = journal_replay(&md->super, &replay, md->table);
	if (r == -EUCLEAN)
		DMERR("%pg: journal: blocks of a finished commit are missing in both copies; run 'ssdcache repair'",
		      md->bdev);
	else if (r == -EILSEQ)
		DMERR("%pg: journal: impossible record; run 'ssdcache check'",
		      md->bdev);
	if (r)
		return r;
	md->counters.repaired += replay.repaired;
	load->highest = max(load->highest, replay.highest);
	return 0;
}

static int load_alloc(struct load *load)
{
	unsigned int i;

	load->ring = vzalloc(2 * load->md->super.journal_blocks * BLOCK_SIZE_BYTES);
	for (i = 0; i < 2; i++)
		load->places[i] = vzalloc(LOAD_BATCH * BLOCK_SIZE_BYTES);
	return load->ring && load->places[0] && load->places[1] ? 0 : -ENOMEM;
}

static void load_free(struct load *load)
{
	unsigned int i;

	vfree(load->ring);
	for (i = 0; i < 2; i++)
		vfree(load->places[i]);
}

/**
 * metadata_load() - reads the newest durable record of each slot
 * @md: opened; @md->super was read when no other instance was live (R10)
 * @apply: gets records of a slot, the newest last; a negative error ends it
 * @context: handed to @apply
 *
 * Writes nothing. On success the caller ends recovery with a whole checkpoint,
 * which makes the journal empty under sequence numbers never used before.
 *
 * Return: 0, or a negative error; then nothing that was applied may be used.
 */
int metadata_load(struct metadata *md,
		  int (*apply)(void *context, const struct record *record),
		  void *context)
{
	struct load load = { .md = md, .apply = apply, .context = context };
	int r;

	load.highest = md->super.journal_tail;
	md->nr_records = 0;
	md->checkpointing = false;
	bittree_clear_all(&md->touched[0]);
	bittree_clear_all(&md->touched[1]);
	md->touched_end = md->super.high_water;
	r = load_alloc(&load);
	if (!r)
		r = load_table(&load);
	if (!r)
		r = load_journal(&load);
	/* Leftovers of a torn commit must never look like part of a new one. */
	md->head = load.highest + md->super.journal_blocks + 1;
	load_free(&load);
	return r;
}
