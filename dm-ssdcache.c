// SPDX-License-Identifier: GPL-2.0
/*
 * dm-ssdcache: an SSD in front of a RAID volume.
 *
 * The target as device-mapper sees it: table line, life from constructor to
 * destructor, messages, status, the device's state. Owns struct cache and the
 * list of live instances (guarded by live_lock). The I/O path is in io.c. What
 * runs here may sleep; messages, suspend and resume hold state_mutex.
 */
#define DM_MSG_PREFIX SSDCACHE_PREFIX

#include "dm-ssdcache.h"

#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/vmalloc.h>

#define SEQ_CUTOFF_DEFAULT	8192u	/* sectors: 4 MiB */

static const char * const mode_names[NR_MODES] = {
	[MODE_WRITEBACK] = "writeback",
	[MODE_WRITETHROUGH] = "writethrough",
	[MODE_WRITEAROUND] = "writearound",
	[MODE_PASSTHROUGH] = "passthrough",
};

/* Keys of the table line, in the order in which TABLE status prints them. */
enum {
	KEY_MODE,
	KEY_LINE_SIZE,
	KEY_SEQ_CUTOFF,
	KEY_DISCARD,
	NR_KEYS
};

static const char * const key_names[NR_KEYS] = {
	[KEY_MODE] = "mode",
	[KEY_LINE_SIZE] = "line_size",
	[KEY_SEQ_CUTOFF] = "seq_cutoff",
	[KEY_DISCARD] = "discard",
};

/* All instances between resume and suspend: one SSD has at most one. */
static LIST_HEAD(live_caches);
static DEFINE_MUTEX(live_lock);

/* Caches that failed since the module was loaded: not to be trusted again. */
struct failed_cache {
	struct list_head node;
	u8 uuid[16];
};

static LIST_HEAD(failed_caches);

/*---- State ----*/

/* Called before any other instance can load the cache. */
static void remember_failed(struct cache *cache)
{
	struct failed_cache *failed;

	if (!READ_ONCE(cache->went_past))
		return;
	failed = kmalloc(sizeof(*failed), GFP_NOIO | __GFP_NOFAIL);
	memcpy(failed->uuid, cache->md.super.uuid, sizeof(failed->uuid));
	mutex_lock(&live_lock);
	list_add(&failed->node, &failed_caches);
	mutex_unlock(&live_lock);
}

static bool has_failed(const u8 *uuid)
{
	struct failed_cache *failed;
	bool found = false;

	mutex_lock(&live_lock);
	list_for_each_entry(failed, &failed_caches, node)
		if (!memcmp(failed->uuid, uuid, sizeof(failed->uuid)))
			found = true;
	mutex_unlock(&live_lock);
	return found;
}

/**
 * set_state() - the only place that changes the state, and only to the worse
 * @cache: the cache
 * @state: the new one
 * @why: for the log
 *
 * Context: may sleep.
 */
void set_state(struct cache *cache, enum cache_state state, const char *why)
{
	if (state <= cache_state(cache))
		return;
	WRITE_ONCE(cache->state, state);
	if (state == STATE_FAILED) {
		DMERR("%s: %s: nothing more is written to the SSD; only blocks that the array lacks are still read from it",
		      cache_name(cache), why);
	} else {
		DMWARN("%s: %s: no new data goes to the SSD", cache_name(cache),
		       why);
	}
	dm_table_event(cache->ti->table);
}

static const char *state_name(struct cache *cache)
{
	if (cache->detached && cache_state(cache) == STATE_RUNNING)
		return "detached";
	switch (cache_state(cache)) {
	case STATE_RUNNING:
		return "running";
	case STATE_DEGRADED:
		return "degraded";
	case STATE_FAILED:
		return "failed";
	}
	return "failed";
}

static int enter_live(struct cache *cache)
{
	struct cache *other;
	int r = 0;

	mutex_lock(&live_lock);
	list_for_each_entry(other, &live_caches, node)
		if (other->ssd->bdev->bd_dev == cache->ssd->bdev->bd_dev)
			r = -EBUSY;
	if (!r) {
		list_add(&cache->node, &live_caches);
		cache->live = true;
	}
	mutex_unlock(&live_lock);
	return r;
}

static void leave_live(struct cache *cache)
{
	mutex_lock(&live_lock);
	if (cache->live)
		list_del(&cache->node);
	cache->live = false;
	mutex_unlock(&live_lock);
}

/* Whether another device, not an older table of this one, uses the SSD. */
static bool used_by_other(struct dm_target *ti, const struct dm_dev *ssd)
{
	struct mapped_device *md = dm_table_get_md(ti->table);
	struct cache *other;
	bool found = false;

	mutex_lock(&live_lock);
	list_for_each_entry(other, &live_caches, node)
		if (other->ssd->bdev->bd_dev == ssd->bdev->bd_dev &&
		    dm_table_get_md(other->ti->table) != md)
			found = true;
	mutex_unlock(&live_lock);
	return found;
}

/*---- Table line ----*/

struct options {
	u32 line_sectors;
	enum cache_mode mode;
	u64 seq_cutoff;
	bool discard_passdown;
	unsigned long keys;
};

static int find_name(const char * const *names, unsigned int nr,
		     const char *name)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(names[i], name))
			return i;
	return -EINVAL;
}

/* Takes one key and its value; @running: by message, not by the table line. */
static int parse_key(struct options *options, const char *key, const char *value,
		     bool running, char **error)
{
	int mode, nr = find_name(key_names, NR_KEYS, key);

	switch (nr) {
	case KEY_MODE:
		mode = find_name(mode_names, NR_MODES, value);
		if (mode < 0) {
			return refuse(error, -EINVAL,
				      "mode must be writeback, writethrough, writearound or passthrough");
		}
		options->mode = mode;
		break;
	case KEY_LINE_SIZE:
		if (running) {
			return refuse(error, -EINVAL,
				      "line_size can not be changed: flush, detach, and create the cache anew");
		}
		if (kstrtou32(value, 10, &options->line_sectors) ||
		    (options->line_sectors != 128 &&
		     options->line_sectors != 256 &&
		     options->line_sectors != 512)) {
			return refuse(error, -EINVAL,
				      "line_size must be 128, 256 or 512 sectors");
		}
		break;
	case KEY_SEQ_CUTOFF:
		if (kstrtou64(value, 10, &options->seq_cutoff)) {
			return refuse(error, -EINVAL,
				      "seq_cutoff must be a number of sectors, 0 for none");
		}
		break;
	case KEY_DISCARD:
		if (strcmp(value, "passdown") && strcmp(value, "nopassdown")) {
			return refuse(error, -EINVAL,
				      "discard must be passdown or nopassdown");
		}
		options->discard_passdown = !strcmp(value, "passdown");
		break;
	default:
		return refuse(error, -EINVAL,
			      "unknown key; known are mode, line_size, seq_cutoff, discard");
	}
	__set_bit(nr, &options->keys);
	return 0;
}

static int parse_options(struct dm_target *ti, struct dm_arg_set *args,
			 struct options *options)
{
	static const struct dm_arg group = {
		0, 2 * NR_KEYS, "Number of arguments must be 0 to 8",
	};
	unsigned int nr;
	int r;

	options->line_sectors = LINE_SECTORS_MAX;
	options->mode = MODE_WRITEBACK;
	options->seq_cutoff = SEQ_CUTOFF_DEFAULT;
	options->discard_passdown = true;
	options->keys = 0;
	if (!args->argc)
		return 0;
	r = dm_read_arg_group(&group, args, &nr, &ti->error);
	if (r)
		return r;
	if (nr % 2) {
		return refuse(&ti->error, -EINVAL,
			      "Each key needs a value");
	}
	for (; nr; nr -= 2) {
		const char *key = dm_shift_arg(args);
		const char *value = dm_shift_arg(args);

		r = parse_key(options, key, value, false, &ti->error);
		if (r)
			return r;
	}
	if (args->argc) {
		return refuse(&ti->error, -EINVAL,
			      "More arguments than their number says");
	}
	return 0;
}

/*---- Metadata and the line table ----*/

static void metadata_snapshot(void *context, slot_t slot, struct record *record)
{
	struct cache *cache = context;

	lines_snapshot(&cache->lines, slot, record);
	record->hint = policy_hint(&cache->policy, slot);
}

static void metadata_committed(void *context, const struct record *record)
{
	struct cache *cache = context;

	lines_committed(&cache->lines, record);
}

static int stage_record(void *context, const struct record *record)
{
	struct cache *cache = context;

	lines_stage(&cache->lines, record);
	if (record->flags & RECORD_USED)
		policy_restore(&cache->policy, record->slot, record->hint);
	else
		policy_remove(&cache->policy, record->slot);
	return 0;
}

static unsigned int mode_open_flag(enum cache_mode mode)
{
	return mode == MODE_WRITEBACK ? RECORD_OPEN_DIRTY : RECORD_OPEN_DROP;
}

static u64 count_dirty(struct cache *cache)
{
	u64 valid, dirty;

	lines_count(&cache->lines, &valid, &dirty);
	return dirty;
}

/*
 * What the superblock says against what there is now. On success @super has the
 * sizes of now, with a segment more if the SSD has grown.
 */
static int fit_super(struct dm_target *ti, struct super *super, u64 ssd_sectors)
{
	if (super->flags & SUPER_DETACHED) {
		return refuse(&ti->error, -EINVAL,
			      "SSD: was detached from its array; to use it again, zero its first 4 KiB");
	}
	if (super->flags & SUPER_FAILED || has_failed(super->uuid)) {
		return refuse(&ti->error, -EINVAL,
			      "SSD: failed while writes went past it, its data may be old; see 'ssdcache accept' and 'ssdcache forget'");
	}
	if (ssd_sectors < super->ssd_sectors) {
		return refuse(&ti->error, -ENOSPC,
			      "SSD: smaller than when it was formatted; use the whole device");
	}
	if (ti->len < super->array_sectors) {
		return refuse(&ti->error, -EINVAL,
			      "Array: shorter than the cache knows it; flush and detach the cache before you shrink the array");
	}
	super_grow(super, ssd_sectors);
	super->array_sectors = ti->len;
	return 0;
}

static int probe_ssd(struct cache *cache, const struct options *options,
		     struct super *super)
{
	struct dm_target *ti = cache->ti;
	u64 ssd_sectors = bdev_nr_sectors(cache->ssd->bdev);
	struct disk_super *scratch;
	bool blank;
	int r;

	/* Both superblocks must be there to be looked at. */
	if (ssd_sectors < JOURNAL_FIRST_BLOCK * BLOCK_SECTORS)
		return refuse(&ti->error, -ENOSPC, "SSD: too small for a cache");
	scratch = vzalloc(BLOCK_SIZE_BYTES);
	if (!scratch)
		return -ENOMEM;
	r = metadata_probe(cache->ssd->bdev, super, scratch, &blank, &ti->error);
	vfree(scratch);
	if (r)
		return r;
	if (!blank) {
		if (test_bit(KEY_LINE_SIZE, &options->keys) &&
		    options->line_sectors != super->line_sectors) {
			return refuse(&ti->error, -EINVAL,
				      "SSD: formatted with another line_size; leave the key out to use it");
		}
		return fit_super(ti, super, ssd_sectors);
	}

	memset(super, 0, sizeof(*super));
	super->line_sectors = options->line_sectors;
	super->array_sectors = ti->len;
	super->mode = options->mode;
	r = super_layout(super, ssd_sectors);
	if (r)
		ti->error = "SSD: too small for a cache";
	return r ? r : 1;
}

/*---- Constructor and destructor ----*/

static int get_devices(struct cache *cache, struct dm_arg_set *args)
{
	struct dm_target *ti = cache->ti;
	int r;

	if (args->argc < 2) {
		return refuse(&ti->error, -EINVAL,
			      "Usage: <array device> <SSD device> [<#args> [<key> <value>]...]");
	}
	r = dm_get_device(ti, dm_shift_arg(args), dm_table_get_mode(ti->table),
			  &cache->array);
	if (r) {
		ti->error = "Array: can not be opened";
		return r;
	}
	r = dm_get_device(ti, dm_shift_arg(args), dm_table_get_mode(ti->table),
			  &cache->ssd);
	if (r) {
		ti->error = "SSD: can not be opened";
		return r;
	}
	if (cache->array->bdev == cache->ssd->bdev) {
		return refuse(&ti->error, -EINVAL,
			      "Array and SSD are the same device");
	}
	if (ti->len > bdev_nr_sectors(cache->array->bdev)) {
		return refuse(&ti->error, -EINVAL,
			      "Array: smaller than the table's length");
	}
	if (bdev_logical_block_size(cache->ssd->bdev) >
	    bdev_logical_block_size(cache->array->bdev)) {
		return refuse(&ti->error, -EINVAL,
			      "SSD: logical blocks larger than the array's, file systems could not be mounted; reformat it to 512 byte sectors");
	}
	if (bdev_logical_block_size(cache->array->bdev) > BLOCK_SIZE_BYTES) {
		return refuse(&ti->error, -EINVAL,
			      "Array: logical blocks larger than 4 KiB are not supported");
	}
	if (used_by_other(ti, cache->ssd)) {
		return refuse(&ti->error, -EBUSY,
			      "SSD: in use by another cache");
	}
	return 0;
}

static void cache_free(struct cache *cache)
{
	struct dm_target *ti = cache->ti;

	leave_live(cache);
	writeback_exit(cache);
	fills_exit(cache);
	commit_exit(cache);
	io_exit(cache);
	pages_exit(cache);
	policy_exit(&cache->policy);
	lines_exit(&cache->lines);
	metadata_close(&cache->md);
	free_percpu(cache->stats);
	if (cache->ssd)
		dm_put_device(ti, cache->ssd);
	if (cache->array)
		dm_put_device(ti, cache->array);
	mutex_destroy(&cache->state_mutex);
	kfree(cache);
}

static int alloc_parts(struct cache *cache, const struct super *super)
{
	const struct metadata_callbacks callbacks = {
		.snapshot = metadata_snapshot,
		.committed = metadata_committed,
		.context = cache,
	};
	int r;

	r = metadata_open(&cache->md, cache->ssd->bdev, super, &callbacks);
	if (!r)
		r = lines_init(&cache->lines, &cache->md.super,
			       mode_open_flag(super->mode));
	if (!r)
		r = policy_init(&cache->policy, super_nr_slots(super),
				cache->seq_cutoff);
	if (!r)
		r = pages_init(cache);
	if (!r)
		r = io_init(cache);
	if (!r)
		r = commit_init(cache);
	if (!r)
		r = fills_init(cache);
	if (!r)
		r = writeback_init(cache);
	if (!r)
		release_init(cache);
	return r;
}

static void mode_worker(struct work_struct *work);

static int cache_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dm_arg_set args = { .argc = argc, .argv = argv };
	struct options options;
	struct super *super;
	struct cache *cache;
	int r, blank;

	cache = kzalloc(sizeof(*cache), GFP_KERNEL);
	super = kzalloc(sizeof(*super), GFP_KERNEL);
	if (!cache || !super) {
		kfree(cache);
		kfree(super);
		return refuse(&ti->error, -ENOMEM,
			      "Out of memory");
	}
	cache->ti = ti;
	mutex_init(&cache->state_mutex);
	spin_lock_init(&cache->policy_lock);
	INIT_WORK(&cache->mode_work, mode_worker);

	r = get_devices(cache, &args);
	if (!r)
		r = parse_options(ti, &args, &options);
	if (r)
		goto bad;
	blank = probe_ssd(cache, &options, super);
	if (blank < 0) {
		r = blank;
		goto bad;
	}
	cache->keys = options.keys;
	cache->table_mode = options.mode;
	cache->seq_cutoff = options.seq_cutoff;
	cache->discard_passdown = options.discard_passdown;
	cache->nr_sectors = ti->len;
	cache->line_shift = ilog2(super->line_sectors);
	cache->stats = alloc_percpu(struct cache_stats);
	r = cache->stats ? alloc_parts(cache, super) : -ENOMEM;
	if (r) {
		ti->error = "Out of memory";
		goto bad;
	}
	if (blank) {
		r = metadata_format(&cache->md);
		if (r) {
			ti->error = "SSD: could not be formatted";
			goto bad;
		}
	}
	r = dm_set_target_max_io_len(ti, super->line_sectors);
	if (r)
		goto bad;
	kfree(super);
	ti->num_flush_bios = 1;
	ti->flush_supported = true;
	ti->num_discard_bios = 1;
	ti->discards_supported = true;
	ti->per_io_data_size = sizeof(struct cache_io);
	ti->accounts_remapped_io = true;
	ti->private = cache;
	return 0;

bad:
	if (!ti->error)
		ti->error = "SSD: input/output error";
	DMERR("%s: %s", dm_table_device_name(ti->table), ti->error);
	kfree(super);
	cache_free(cache);
	return r;
}

static void cache_dtr(struct dm_target *ti)
{
	cache_free(ti->private);
}

/*---- Modes ----*/

/* Nothing is dirty or open, as far as the commit worker is told. */
static bool all_closed(struct cache *cache)
{
	return !count_dirty(cache) && bittree_empty(&cache->lines.open_regions);
}

static void set_write_both(struct cache *cache, bool both)
{
	if (cache->write_both == both)
		return;
	WRITE_ONCE(cache->write_both, both);
	update_slow_writes(cache);
}

/*
 * Drains while writes go on. After the first pass they are sent to both devices,
 * so that dirty data does come to an end.
 */
static int drain(struct cache *cache)
{
	unsigned int passes = 3;
	int r;

	do {
		r = writeback_drain(cache);
		if (r || !count_dirty(cache))
			break;
		set_write_both(cache, true);
	} while (--passes);
	return r;
}

/* Drains, then stops writes and closes all lines. thaw_writes() must follow. */
static int freeze_clean(struct cache *cache)
{
	unsigned int tries = 5;
	int r;

	r = drain(cache);
	freeze_writes(cache);
	while (!r && tries-- && !all_closed(cache))
		r = writeback_drain(cache);
	if (!r && !all_closed(cache))
		r = -EAGAIN;
	return r ? r : commit_wait(cache);
}

/* Makes superblock flags and mode durable (R9); all is frozen and clean. */
static int write_mode(struct cache *cache, enum cache_mode mode, u32 flags)
{
	struct super *super = &cache->md.super;
	u32 old_mode = super->mode;
	int r;

	commit_stop(cache);
	super->mode = mode;
	super->flags |= flags;
	r = cache_state(cache) == STATE_FAILED ? -EIO :
	    metadata_write_super(&cache->md);
	if (r) {
		super->mode = old_mode;
		super->flags &= ~flags;
	} else {
		cache->lines.open_flag = mode_open_flag(mode);
		WRITE_ONCE(cache->mode, mode);
	}
	commit_start(cache);
	return r;
}

/* state_mutex is held. */
static int change_mode(struct cache *cache, enum cache_mode mode, u32 flags)
{
	int r;

	if (cache_mode(cache) == mode && !flags)
		return 0;
	r = freeze_clean(cache);
	if (!r)
		r = write_mode(cache, mode, flags);
	set_write_both(cache, false);
	thaw_writes(cache);
	return r;
}

static void mode_worker(struct work_struct *work)
{
	struct cache *cache = container_of(work, struct cache, mode_work);
	int r;

	mutex_lock(&cache->state_mutex);
	r = cache->suspending ? 0 : change_mode(cache, cache->table_mode, 0);
	mutex_unlock(&cache->state_mutex);
	if (r)
		DMERR("%s: could not leave write-back mode (%d); dirty data is kept, send 'flush' and 'set mode'",
		      cache_name(cache), r);
	else
		dm_table_event(cache->ti->table);
}

/*---- Resume ----*/

/* Blocks behind the old end of an array that has grown were never read. */
static int fit_last_block(struct cache *cache, u64 old_sectors)
{
	line_t line = to_line(old_sectors >> cache->line_shift);
	unsigned int offset = old_sectors & ((1u << cache->line_shift) - 1);
	u64 block = BIT_ULL(offset >> BLOCK_SECTOR_SHIFT);
	struct cache_line *l;

	if (old_sectors == cache->nr_sectors || !(offset % BLOCK_SECTORS))
		return 0;
	l = line_find(&cache->lines, line);
	if (!l || !(l->valid & block))
		return 0;
	if (l->dirty & block) {
		DMERR("%s: the array has grown inside a block that is dirty; load the old length and send 'flush' first",
		      cache_name(cache));
		return -EINVAL;
	}
	line_drop(&cache->lines, l, block);
	return 0;
}

/* Whether the array is what the cache knows (section 5 of the design rules). */
static int check_array(struct cache *cache, const struct super *found)
{
	u32 fingerprint[3];
	u64 checked, differ;
	bool changed = false;
	int r;

	if (found->flags & SUPER_CLEAN && found->high_water &&
	    found->array_sectors == cache->nr_sectors) {
		r = guard_fingerprint(cache, fingerprint);
		if (r)
			return r;
		changed = memcmp(fingerprint, found->fingerprint,
				 sizeof(fingerprint));
	}
	r = guard_sample(cache, &checked, &differ);
	if (r)
		return r;
	if (!changed && !differ)
		return 0;
	if (count_dirty(cache)) {
		DMERR("%s: the array was changed without its cache, which holds %llu dirty blocks (%llu of %llu clean blocks differ); run 'ssdcache check' and decide with 'ssdcache repair' or 'ssdcache forget'",
		      cache_name(cache), count_dirty(cache), differ, checked);
		return -EUCLEAN;
	}
	DMWARN("%s: the array was changed without its cache (%llu of %llu clean blocks differ): the cache is emptied",
	       cache_name(cache), differ, checked);
	lines_reset(&cache->lines);
	policy_reset(&cache->policy);
	metadata_touch_all(&cache->md);
	return 0;
}

/* Reads the superblock again: an instance that was live may have written it. */
static int reread_super(struct cache *cache, struct super *found)
{
	struct dm_target *ti = cache->ti;
	struct disk_super *scratch = vzalloc(BLOCK_SIZE_BYTES);
	struct super *super = &cache->md.super;
	struct super fitted;
	bool blank;
	int r;

	if (!scratch)
		return -ENOMEM;
	r = metadata_probe(cache->ssd->bdev, found, scratch, &blank, &ti->error);
	vfree(scratch);
	if (!r && blank)
		r = -EUCLEAN;
	if (!r) {
		fitted = *found;
		r = fit_super(ti, &fitted, bdev_nr_sectors(cache->ssd->bdev));
	}
	if (!r && (memcmp(fitted.uuid, super->uuid, sizeof(fitted.uuid)) ||
		   fitted.line_sectors != super->line_sectors ||
		   super_nr_slots(&fitted) != super_nr_slots(super))) {
		r = refuse(&ti->error, -EUCLEAN,
			   "SSD: changed since the table was loaded; load it again");
	}
	if (r) {
		DMERR("%s: %s", cache_name(cache),
		      ti->error ? ti->error : "SSD: superblock unreadable");
		return r;
	}
	*super = fitted;
	return 0;
}

/* From here on an unclean stop is to be recovered from. */
static int mark_in_use(struct cache *cache)
{
	struct super *super = &cache->md.super;

	super->flags &= ~SUPER_CLEAN;
	memset(super->fingerprint, 0, sizeof(super->fingerprint));
	/* Ends with the superblock: journal empty, numbers never used before. */
	return metadata_checkpoint(&cache->md, true);
}

static int load(struct cache *cache)
{
	struct super *super = &cache->md.super;
	struct super *found = kmalloc(sizeof(*found), GFP_NOIO);
	int r;

	if (!found)
		return -ENOMEM;
	r = reread_super(cache, found);
	if (r)
		goto out;
	/* Records are judged by the size that the array had. */
	super->array_sectors = found->array_sectors;
	lines_reset(&cache->lines);
	policy_reset(&cache->policy);
	r = metadata_load(&cache->md, stage_record, cache);
	super->array_sectors = cache->nr_sectors;
	if (r)
		goto out;
	r = lines_restore(&cache->lines);
	if (r) {
		DMERR("%s: a line is in two slots; run 'ssdcache check'",
		      cache_name(cache));
		goto out;
	}
	r = fit_last_block(cache, found->array_sectors);
	if (!r)
		r = check_array(cache, found);
	if (r)
		goto out;
	if (!count_dirty(cache))
		super->mode = cache->table_mode;
	cache->mode = super->mode;
	cache->lines.open_flag = mode_open_flag(cache->mode);
	r = mark_in_use(cache);
	if (!r)
		r = commit_now(cache);
	if (!r)
		cache->loaded = true;
out:
	kfree(found);
	return r;
}

static int cache_preresume(struct dm_target *ti)
{
	struct cache *cache = ti->private;
	unsigned int noio;
	int r;

	/* No memory may be reclaimed through a device that is suspended. */
	noio = memalloc_noio_save();
	mutex_lock(&cache->state_mutex);
	r = enter_live(cache);
	if (r) {
		DMERR("%s: SSD is in use by another cache", cache_name(cache));
		goto out;
	}
	if (!cache->loaded)
		r = load(cache);
	else if (cache_state(cache) != STATE_FAILED && !cache->detached)
		r = mark_in_use(cache);
	if (r) {
		leave_live(cache);
		goto out;
	}
	WRITE_ONCE(cache->suspending, false);
	update_slow_writes(cache);
	commit_start(cache);
	writeback_start(cache);
	if (cache->mode != cache->table_mode && !cache->detached)
		queue_work(cache->fill_wq, &cache->mode_work);
out:
	mutex_unlock(&cache->state_mutex);
	memalloc_noio_restore(noio);
	return r;
}

/*---- Suspend ----*/

static void cache_presuspend(struct dm_target *ti)
{
	struct cache *cache = ti->private;

	WRITE_ONCE(cache->suspending, true);
	/* A message that waits for a drain would hold up the suspend. */
	writeback_cancel(cache);
}

static void cache_presuspend_undo(struct dm_target *ti)
{
	struct cache *cache = ti->private;

	WRITE_ONCE(cache->suspending, false);
}

/* No writer is in flight, so the maps of all lines are exact. */
static void close_all(struct cache *cache)
{
	struct line_table *table = &cache->lines;
	u64 nr, end, region = 0, nr_lines = super_nr_lines(&cache->md.super);

	while ((region = bittree_next(&table->open_regions, region)) !=
	       BITTREE_NONE) {
		nr = region << table->region_shift;
		end = min(nr + (1ULL << table->region_shift), nr_lines);
		for (; nr < end; nr++) {
			struct cache_line *l;
			struct stripe *stripe;
			unsigned long flags;

			stripe = lines_lock(table, to_line(nr), &flags);
			l = line_find(table, to_line(nr));
			if (l && !line_is(l, LINE_RELEASING))
				line_close(table, l);
			lines_unlock(stripe, flags);
		}
		region++;
		cond_resched();
	}
}

static int stop_clean(struct cache *cache)
{
	struct super *super = &cache->md.super;
	int r, flushed;

	/* A line is closed only over data that the array has durably. */
	flushed = array_flush(cache);
	if (!flushed)
		close_all(cache);
	r = commit_now(cache);
	if (!r)
		r = metadata_checkpoint(&cache->md, true);
	if (!r)
		r = flushed;
	if (!r)
		r = guard_fingerprint(cache, super->fingerprint);
	if (r)
		return r;
	super->dirty_blocks = count_dirty(cache);
	super->flags |= SUPER_CLEAN;
	return metadata_write_super(&cache->md);
}

static void cache_postsuspend(struct dm_target *ti)
{
	struct cache *cache = ti->private;
	unsigned int noio = memalloc_noio_save();

	WRITE_ONCE(cache->suspending, true);
	writeback_cancel(cache);
	cancel_work_sync(&cache->mode_work);
	mutex_lock(&cache->state_mutex);
	release_stop(cache);
	flush_work(&cache->discard_work);
	flush_work(&cache->worker);
	fills_drain(cache);
	writeback_stop(cache);
	commit_stop(cache);
	if (cache->live && cache_state(cache) != STATE_FAILED && stop_clean(cache))
		DMERR("%s: not stopped cleanly; it will be recovered at the next start",
		      cache_name(cache));
	remember_failed(cache);
	leave_live(cache);
	mutex_unlock(&cache->state_mutex);
	memalloc_noio_restore(noio);
}

/*---- Messages ----*/

static int message_flush(struct cache *cache)
{
	int r = drain(cache);

	/* Blocks that were always being written around or discarded. */
	if (!r && count_dirty(cache)) {
		r = freeze_clean(cache);
		thaw_writes(cache);
	}
	set_write_both(cache, false);
	if (r || cache_state(cache) == STATE_FAILED)
		return r;
	return commit_wait(cache);
}

static int message_set(struct cache *cache, const char *key, const char *value)
{
	struct options options = {
		.mode = cache_mode(cache),
		.seq_cutoff = cache->seq_cutoff,
		.discard_passdown = cache->discard_passdown,
	};
	char *error = NULL;
	int r;

	r = parse_key(&options, key, value, true, &error);
	if (r) {
		DMERR("%s: set: %s", cache_name(cache), error);
		return r;
	}
	if (cache->detached) {
		DMERR("%s: set: the SSD is detached", cache_name(cache));
		return -EINVAL;
	}
	if (test_bit(KEY_MODE, &options.keys)) {
		r = change_mode(cache, options.mode, 0);
		if (r)
			return r;
		cache->table_mode = options.mode;
	}
	spin_lock_irq(&cache->policy_lock);
	cache->seq_cutoff = options.seq_cutoff;
	cache->policy.seq_cutoff = options.seq_cutoff;
	spin_unlock_irq(&cache->policy_lock);
	WRITE_ONCE(cache->discard_passdown, options.discard_passdown);
	cache->keys |= options.keys;
	return 0;
}

static void clear_stats(struct cache *cache)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(cache->stats, cpu), 0,
		       sizeof(struct cache_stats));
}

static int message_invalidate(struct cache *cache, const char *start_arg,
			      const char *length_arg)
{
	u64 start, length, end;
	int r;

	if (kstrtou64(start_arg, 10, &start) || kstrtou64(length_arg, 10, &length) ||
	    !length || start >= cache->nr_sectors ||
	    length > cache->nr_sectors - start) {
		DMERR("%s: invalidate: needs a first sector and a number of sectors within the device",
		      cache_name(cache));
		return -EINVAL;
	}
	/* Blocks that are touched in part are dropped too: nothing is lost. */
	end = min(round_up(start + length, BLOCK_SECTORS), (u64)cache->nr_sectors);
	start = round_down(start, BLOCK_SECTORS);
	r = freeze_clean(cache);
	if (!r)
		r = io_drop_range(cache, start, end);
	set_write_both(cache, false);
	thaw_writes(cache);
	return r;
}

static int message_detach(struct cache *cache)
{
	int r = change_mode(cache, MODE_PASSTHROUGH, SUPER_DETACHED);

	if (r)
		return r;
	cache->detached = true;
	cache->table_mode = MODE_PASSTHROUGH;
	__set_bit(KEY_MODE, &cache->keys);
	dm_table_event(cache->ti->table);
	return 0;
}

static int cache_message(struct dm_target *ti, unsigned int argc, char **argv,
			 char *result, unsigned int maxlen)
{
	struct cache *cache = ti->private;
	int r = -EINVAL;

	if (argc == 1 && !strcasecmp(argv[0], "cancel_flush")) {
		writeback_cancel(cache);
		return 0;
	}
	if (mutex_lock_interruptible(&cache->state_mutex))
		return -EINTR;
	if (!cache->live || READ_ONCE(cache->suspending)) {
		DMERR("%s: message: the device is suspended, resume it first",
		      cache_name(cache));
		r = -EBUSY;
	} else if (argc == 1 && !strcasecmp(argv[0], "flush")) {
		r = message_flush(cache);
	} else if (argc == 1 && !strcasecmp(argv[0], "clear_stats")) {
		clear_stats(cache);
		r = 0;
	} else if (argc == 1 && !strcasecmp(argv[0], "detach")) {
		r = message_detach(cache);
	} else if (argc == 3 && !strcasecmp(argv[0], "set")) {
		r = message_set(cache, argv[1], argv[2]);
	} else if (argc == 3 && !strcasecmp(argv[0], "invalidate")) {
		r = message_invalidate(cache, argv[1], argv[2]);
	} else {
		DMERR("%s: unknown message; known are flush, cancel_flush, set <key> <value>, clear_stats, invalidate <start> <length>, detach",
		      cache_name(cache));
	}
	mutex_unlock(&cache->state_mutex);
	return r;
}

/*---- Status ----*/

static void sum_stats(const struct cache *cache, struct cache_stats *sum)
{
	u64 *to = (u64 *)sum;
	unsigned int i;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const u64 *from = (u64 *)per_cpu_ptr(cache->stats, cpu);

		for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
			to[i] += READ_ONCE(from[i]);
	}
}

static unsigned int status_info(struct cache *cache, char *result,
				unsigned int maxlen)
{
	const struct metadata_counters *md = &cache->md.counters;
	u64 slots = super_nr_slots(&cache->md.super);
	struct cache_stats stats;
	unsigned int sz = 0;
	u64 valid, dirty;

	sum_stats(cache, &stats);
	lines_count(&cache->lines, &valid, &dirty);
	DMEMIT("state=%s mode=%s line=%u slots=%llu used=%llu valid_blocks=%llu dirty_blocks=%llu",
	       state_name(cache), mode_names[cache_mode(cache)],
	       1u << cache->line_shift, slots,
	       slots - READ_ONCE(cache->lines.nr_free), valid, dirty);
	DMEMIT(" read_hits=%llu read_hit_blocks=%llu read_misses=%llu read_miss_blocks=%llu",
	       stats.read_hits, stats.read_hit_blocks, stats.read_misses,
	       stats.read_miss_blocks);
	DMEMIT(" write_hits=%llu write_hit_blocks=%llu write_misses=%llu write_miss_blocks=%llu",
	       stats.write_hits, stats.write_hit_blocks, stats.write_misses,
	       stats.write_miss_blocks);
	DMEMIT(" bypassed=%llu bypassed_blocks=%llu fills=%llu filled_blocks=%llu destaged=%llu",
	       stats.bypassed, stats.bypassed_blocks, stats.fills,
	       stats.filled_blocks, stats.destaged);
	DMEMIT(" journal_commits=%llu metadata_writes=%llu metadata_repaired=%llu",
	       md->commits, md->blocks_written, md->repaired);
	DMEMIT(" ssd_read_errors=%llu ssd_write_errors=%llu array_errors=%llu",
	       stats.ssd_read_errors, stats.ssd_write_errors + md->write_errors,
	       stats.array_errors);
	DMEMIT(" learning=%u flushing=%u", cache->policy.learning,
	       writeback_is_draining(cache));
	return sz;
}

static unsigned int status_table(struct cache *cache, char *result,
				 unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT("%s %s", cache->array->name, cache->ssd->name);
	if (!cache->keys)
		return sz;
	DMEMIT(" %u", 2 * (unsigned int)hweight_long(cache->keys));
	if (test_bit(KEY_MODE, &cache->keys))
		DMEMIT(" mode %s", mode_names[cache->table_mode]);
	if (test_bit(KEY_LINE_SIZE, &cache->keys))
		DMEMIT(" line_size %u", 1u << cache->line_shift);
	if (test_bit(KEY_SEQ_CUTOFF, &cache->keys))
		DMEMIT(" seq_cutoff %llu", cache->seq_cutoff);
	if (test_bit(KEY_DISCARD, &cache->keys))
		DMEMIT(" discard %s",
		       cache->discard_passdown ? "passdown" : "nopassdown");
	return sz;
}

static void cache_status(struct dm_target *ti, status_type_t type,
			 unsigned int status_flags, char *result,
			 unsigned int maxlen)
{
	struct cache *cache = ti->private;

	switch (type) {
	case STATUSTYPE_INFO:
		status_info(cache, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		status_table(cache, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

/*---- Limits ----*/

static int cache_iterate_devices(struct dm_target *ti,
				 iterate_devices_callout_fn fn, void *data)
{
	struct cache *cache = ti->private;
	int r;

	r = fn(ti, cache->array, 0, ti->len, data);
	if (!r)
		r = fn(ti, cache->ssd, 0, bdev_nr_sectors(cache->ssd->bdev), data);
	return r;
}

static void cache_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct cache *cache = ti->private;
	struct block_device *array = cache->array->bdev;
	unsigned int line_bytes = 1u << (cache->line_shift + SECTOR_SHIFT);
	unsigned int max_discard = bdev_max_discard_sectors(array);
	unsigned int granularity = bdev_discard_granularity(array);

	/* What is best for the array is best for the device. */
	limits->io_min = max_t(unsigned int, bdev_io_min(array), BLOCK_SIZE_BYTES);
	limits->io_opt = bdev_io_opt(array) ? bdev_io_opt(array) : line_bytes;

	if (!cache->discard_passdown || !max_discard) {
		max_discard = UINT_MAX >> SECTOR_SHIFT;
		granularity = 0;
	}
	limits->max_discard_sectors = max_discard;
	limits->max_hw_discard_sectors = max_discard;
	limits->discard_granularity = max_t(unsigned int, granularity,
					    BLOCK_SIZE_BYTES);
	limits->discard_alignment = 0;
}

static struct target_type ssdcache_target = {
	.name = "ssdcache",
	.version = {1, 0, 0},
	/* io_map() never sleeps; metadata is written whatever is done above. */
	.features = DM_TARGET_NOWAIT | DM_TARGET_ALWAYS_WRITEABLE,
	.module = THIS_MODULE,
	.ctr = cache_ctr,
	.dtr = cache_dtr,
	.map = io_map,
	.end_io = io_end,
	.presuspend = cache_presuspend,
	.presuspend_undo = cache_presuspend_undo,
	.postsuspend = cache_postsuspend,
	.preresume = cache_preresume,
	.status = cache_status,
	.message = cache_message,
	.iterate_devices = cache_iterate_devices,
	.io_hints = cache_io_hints,
};

static int __init ssdcache_init(void)
{
	return dm_register_target(&ssdcache_target);
}

static void __exit ssdcache_exit(void)
{
	struct failed_cache *failed, *next;

	dm_unregister_target(&ssdcache_target);
	list_for_each_entry_safe(failed, next, &failed_caches, node)
		kfree(failed);
}

module_init(ssdcache_init);
module_exit(ssdcache_exit);

MODULE_DESCRIPTION("device-mapper SSD cache for RAID volumes");
MODULE_LICENSE("GPL");
