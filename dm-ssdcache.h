/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the target share: the cache and one I/O.
 */
#ifndef DM_SSDCACHE_H
#define DM_SSDCACHE_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/dm-io.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "format.h"
#include "lines.h"
#include "metadata.h"
#include "policy.h"

#define SSDCACHE_PREFIX "ssdcache"

enum cache_state {
	STATE_RUNNING,
	STATE_DEGRADED,		/* no new data into the cache */
	STATE_FAILED,		/* metadata can not be written: array only */
};

/* Statistics, one set a CPU; in the order of their status fields. */
struct cache_stats {
	u64 read_hits, read_hit_blocks;
	u64 read_misses, read_miss_blocks;
	u64 write_hits, write_hit_blocks;
	u64 write_misses, write_miss_blocks;
	u64 bypassed, bypassed_blocks;
	u64 fills, filled_blocks;
	u64 destaged;
	u64 ssd_read_errors, ssd_write_errors, array_errors;
};

struct cache;

enum io_kind {
	IO_PLAIN,		/* nothing to be done at completion */
	IO_READ_HIT,
	IO_READ_ARRAY,
	IO_WRITE_SSD,
	IO_BYPASS,
	IO_BOTH,		/* write-through: SSD and array */
	IO_FLUSH_ARRAY,
};

/*
 * One I/O: in the per-bio data of a bio from above, or in front of a clone made
 * by the worker ("piece"), which has a parent then.
 */
struct cache_io {
	struct cache *cache;
	struct bio *bio;
	struct cache_io *parent;	/* NULL for a bio from above */
	struct cache_line *l;		/* referenced, if the kind says so */
	line_t line;
	u64 touched;		/* blocks of the line that it touches */
	u64 whole;		/* those that it covers wholly */
	s64 array_seq;		/* IO_FLUSH_ARRAY: what it makes durable */
	struct bvec_iter iter;	/* in sectors of the target */
	struct conflict conflict;	/* IO_BYPASS, IO_BOTH */
	struct fill *fill;	/* IO_READ_ARRAY: to be filled from it */
	atomic_t pending;	/* pieces, legs, and one while it is divided */
	enum io_kind kind;
	u8 epoch;
	u8 nr_blocks;		/* in touched */
	bool in_map;
	bool hit;		/* a write of valid blocks only */
	bool need_commit;	/* FUA: complete after a commit */
	bool uncut;		/* must not be cut; cut says that it must be */
	bool cut;
	bool routed;		/* remapped; the worker submits it */
	bool redirect;		/* the SSD failed: on to the array */
	blk_status_t status;
	blk_status_t array_status;	/* IO_BOTH: of the leg to the array */
};

/* A clone made by the worker. */
struct io_piece {
	struct cache_io io;
	struct bio bio;
};

/* Somebody who sleeps until a commit is durable. */
struct commit_waiter {
	struct list_head node;
	struct completion done;
	int error;
};

struct fill;
struct writeback;

struct cache {
	struct dm_target *ti;
	struct dm_dev *array;
	struct dm_dev *ssd;
	struct list_head node;		/* of all live instances */
	bool live;

	/* From the table line. */
	enum cache_mode table_mode;
	unsigned long keys;		/* bit KEY_*: which keys were given */
	u64 seq_cutoff;
	bool discard_passdown;
	bool ssd_write_failed;		/* at least one write to the SSD did */
	bool went_past;			/* the array was written after a failure */
	atomic_t nr_redirected;		/* visits of the worker with such writes */

	/* Geometry, constant. */
	unsigned int line_shift;	/* sectors of a line, power of two */
	u64 nr_sectors;

	enum cache_state state;		/* set_state() alone changes it */
	enum cache_mode mode;		/* the durable one */
	bool write_both;		/* leaving write-back: no new dirty block */
	bool frozen;			/* new writes are deferred */
	bool slow_writes;		/* one of them, or write-through */
	bool suspending;
	bool loaded;
	bool detached;

	struct line_table lines;
	struct policy policy;
	spinlock_t policy_lock;		/* a leaf */
	struct metadata md;
	struct cache_stats __percpu *stats;
	struct mutex state_mutex;	/* messages, suspend, resume */

	/* Writes that reached the array, and how many of them are flushed. */
	atomic64_t array_writes;
	atomic64_t array_flushed;
	bool array_flush_failed;	/* the next FLUSH must say so */

	/* Worker: bios to be routed anew. */
	struct workqueue_struct *wq;
	struct work_struct worker;
	spinlock_t deferred_lock;	/* guards the lists below; a leaf */
	struct bio_list deferred;
	struct bio_list frozen_bios;
	struct bio_set pieces;
	struct bio_set page_bios;

	/* Discards in flight, checked by writes while there are any. */
	atomic_t nr_discards;
	spinlock_t discard_lock;	/* guards discards; a leaf */
	struct list_head discards;
	struct bio_list discards_deferred;	/* guarded by deferred_lock */
	struct work_struct discard_work;

	/* Commits. */
	struct workqueue_struct *commit_wq;
	struct delayed_work commit_work;
	spinlock_t commit_lock;		/* guards the lists below; a leaf */
	struct bio_list commit_end;	/* to be completed after it */
	struct bio_list commit_route;	/* to be routed anew after it */
	struct list_head commit_waiters;
	bool commit_asked;
	bool commit_running;		/* looks again before it ends */
	bool commit_stopped;
	bool commit_busy;		/* see commit_needed() */

	/* Releases of slots. */
	struct work_struct release_work;
	u32 free_low;
	u32 free_high;

	struct fill *fills;
	struct list_head fills_free;	/* what follows is guarded by fills_lock */
	spinlock_t fills_lock;		/* a leaf */
	unsigned int fills_busy;
	wait_queue_head_t fills_wait;
	struct workqueue_struct *fill_wq;

	struct writeback *writeback;
	struct work_struct mode_work;	/* to table_mode, after a load with dirty data */
};

static inline enum cache_state cache_state(const struct cache *cache)
{
	return READ_ONCE(cache->state);
}

static inline enum cache_mode cache_mode(const struct cache *cache)
{
	return READ_ONCE(cache->mode);
}

#define stat_add(cache, field, n)	this_cpu_add((cache)->stats->field, n)
#define stat_inc(cache, field)		this_cpu_inc((cache)->stats->field)

static inline const char *cache_name(const struct cache *cache)
{
	return dm_table_device_name(cache->ti->table);
}

/* dm-ssdcache.c */
void set_state(struct cache *cache, enum cache_state state, const char *why);

/* io.c */
int io_init(struct cache *cache);
void io_exit(struct cache *cache);
int io_map(struct dm_target *ti, struct bio *bio);
int io_end(struct dm_target *ti, struct bio *bio, blk_status_t *error);
void io_route_later(struct cache *cache, struct bio_list *bios);
void io_route_woken(struct cache *cache, struct bio_list *bios);
struct cache_io *io_of(struct bio *bio);
void io_finish(struct cache_io *io, blk_status_t status);
bool io_discarding(struct cache *cache, line_t line);
int io_drop_range(struct cache *cache, sector_t start, sector_t end);
void array_written(struct cache *cache);
int array_flush(struct cache *cache);
void update_slow_writes(struct cache *cache);
void freeze_writes(struct cache *cache);
void thaw_writes(struct cache *cache);

static inline struct cache_io *bio_io(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct cache_io));
}

/* commit.c */
int commit_init(struct cache *cache);
void commit_exit(struct cache *cache);
void commit_start(struct cache *cache);
void commit_stop(struct cache *cache);
void commit_soon(struct cache *cache);
void commit_bio(struct cache *cache, struct cache_io *io, bool route);
int commit_wait(struct cache *cache);
bool commit_needed(struct cache *cache);
int commit_now(struct cache *cache);

/* release.c */
void release_init(struct cache *cache);
void release_check(struct cache *cache);
void release_stop(struct cache *cache);

/* pages.c */
typedef void (*pages_done_fn)(void *context, blk_status_t status);
int pages_init(struct cache *cache);
void pages_exit(struct cache *cache);
void pages_submit(struct cache *cache, struct block_device *bdev, blk_opf_t opf,
		  sector_t sector, sector_t sectors, struct page **pages,
		  pages_done_fn done, void *context);

/* fill.c */
int fills_init(struct cache *cache);
void fills_exit(struct cache *cache);
void fills_drain(struct cache *cache);
struct fill *fill_get(struct cache *cache, u64 blocks);
void fill_put(struct fill *fill);
void fill_begin(struct fill *fill, struct stripe *stripe, struct cache_line *l,
		line_t line);
void fill_read_done(struct cache_io *io);

/* guard.c */
int guard_fingerprint(struct cache *cache, u32 *fingerprint);
int guard_sample(struct cache *cache, u64 *checked, u64 *differ);

/* writeback.c */
int writeback_init(struct cache *cache);
void writeback_exit(struct cache *cache);
void writeback_start(struct cache *cache);
void writeback_stop(struct cache *cache);
void writeback_wake(struct cache *cache);
int writeback_drain(struct cache *cache);
void writeback_cancel(struct cache *cache);
bool writeback_is_draining(struct cache *cache);
void writeback_press(struct cache *cache);

#endif
