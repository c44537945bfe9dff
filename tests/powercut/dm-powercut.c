// SPDX-License-Identifier: GPL-2.0
/*
 * powercut: a disk in memory with a volatile write cache, for tests.
 *
 *	0 <sectors> powercut <domain> <block size> [<share of delayed I/O, %>]
 *
 * Keeps what a disk promises and nothing more. A completed write is safe only
 * when a FLUSH that was submitted after its completion has completed, or when it
 * was a FUA write. Until then all its versions are remembered, for each logical
 * block. Devices of the same domain lose power at the same moment:
 *
 *	cut		now
 *	cut_after <n>	inside the n-th write or flush that this device begins
 *	on <seed>	power is back for the whole domain: for each block of each
 *			device one of the versions that it may have, chosen by
 *			the seed, is what it holds now
 *	delayed <n>	percent of I/O that is not done at once
 *
 * I/O that was under way at the cut may or may not have reached the disk, in part
 * too, and fails; I/O that comes later fails. I/O is not done in the order in which
 * it came, and long ones are not done in one piece.
 *
 *	0 <sectors> powercut-fua <device>
 *
 * passes everything on, writes as FUA writes: user space can not submit a FUA
 * write without a FLUSH behind it.
 *
 * Status: on|off, writes, flushes, blocks with versions, cuts.
 *
 * Locks: domains_lock (list of domains and of their devices) is taken first, then
 * a device's lock, which guards all its data and may be held over nothing that
 * waits for I/O.
 */
#define DM_MSG_PREFIX "powercut"

#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#define NONE		(~0u)
#define VERSIONS_MAX	8u	/* of one block */

struct domain {
	struct list_head node;
	struct list_head devices;
	unsigned int nr;
	bool off;
	u32 cuts;
};

static LIST_HEAD(domains);
static DEFINE_MUTEX(domains_lock);

/* What was written to one block and is not safe yet. */
struct version {
	u32 older;
	u64 write;	/* number of the write */
	u64 done;	/* when the write completed; 0: not yet */
};

struct powercut {
	struct list_head node;
	struct domain *domain;
	unsigned int block_shift;	/* bytes */
	u32 nr_blocks;
	unsigned int delayed;		/* percent */
	atomic_t countdown;		/* to a cut; 0: none */
	atomic_t in_flight;
	struct workqueue_struct *wq;

	struct mutex lock;		/* guards what follows */
	u8 *safe;
	u32 *newest;			/* of each block: version or NONE */
	unsigned long *unsafe;		/* bitmap: blocks that have versions */
	u32 nr_versions;
	struct version *versions;
	u8 *data;			/* of each version */
	u32 free;
	u32 hand;			/* next block to be made safe unasked */
	u64 now;
	u64 next_write;
	u64 writes;
	u64 flushes;
};

struct powercut_io {
	struct powercut *pc;
	struct bio *bio;
	struct bvec_iter iter;
	u64 seen;		/* flush: covers writes done until then */
	u64 write;
	struct delayed_work work;
};

static bool is_off(const struct powercut *pc)
{
	/* Pairs with the release in power_cut(). */
	return smp_load_acquire(&pc->domain->off);
}

static void power_cut(struct domain *domain)
{
	domain->cuts++;
	/* Pairs with is_off(). */
	smp_store_release(&domain->off, true);
}

/*---- Versions; the lock is held ----*/

static u8 *version_data(struct powercut *pc, u32 nr)
{
	return pc->data + ((size_t)nr << pc->block_shift);
}

static u8 *safe_data(struct powercut *pc, u32 block)
{
	return pc->safe + ((size_t)block << pc->block_shift);
}

static void versions_free(struct powercut *pc, u32 nr)
{
	while (nr != NONE) {
		u32 older = pc->versions[nr].older;

		pc->versions[nr].older = pc->free;
		pc->free = nr;
		nr = older;
	}
}

/* Makes the version that @link names safe: it and older ones are gone. */
static void make_safe(struct powercut *pc, u32 block, u32 *link)
{
	memcpy(safe_data(pc, block), version_data(pc, *link),
	       1u << pc->block_shift);
	versions_free(pc, *link);
	*link = NONE;
	if (pc->newest[block] == NONE)
		__clear_bit(block, pc->unsafe);
}

/* A disk may write its cache back whenever it likes. */
static void make_oldest_safe(struct powercut *pc, u32 block)
{
	u32 *link = &pc->newest[block];

	while (pc->versions[*link].older != NONE)
		link = &pc->versions[*link].older;
	make_safe(pc, block, link);
}

static u32 version_alloc(struct powercut *pc)
{
	u32 nr;

	while (pc->free == NONE) {
		pc->hand = find_next_bit(pc->unsafe, pc->nr_blocks, pc->hand);
		if (pc->hand >= pc->nr_blocks) {
			pc->hand = 0;
			continue;
		}
		make_oldest_safe(pc, pc->hand++);
	}
	nr = pc->free;
	pc->free = pc->versions[nr].older;
	return nr;
}

static void block_write(struct powercut *pc, u32 block, u64 write,
			const u8 *data)
{
	unsigned int count = 0;
	u32 nr;

	for (nr = pc->newest[block]; nr != NONE; nr = pc->versions[nr].older)
		count++;
	if (count >= VERSIONS_MAX)
		make_oldest_safe(pc, block);
	nr = version_alloc(pc);
	pc->versions[nr].write = write;
	pc->versions[nr].done = 0;
	pc->versions[nr].older = pc->newest[block];
	if (data)
		memcpy(version_data(pc, nr), data, 1u << pc->block_shift);
	else
		memset(version_data(pc, nr), 0, 1u << pc->block_shift);
	pc->newest[block] = nr;
	__set_bit(block, pc->unsafe);
}

static void block_read(struct powercut *pc, u32 block, u8 *data)
{
	u32 nr = pc->newest[block];

	memcpy(data, nr == NONE ? safe_data(pc, block) : version_data(pc, nr),
	       1u << pc->block_shift);
}

/* The write has completed; @fua: its data is safe. */
static void block_done(struct powercut *pc, u32 block, u64 write, bool fua)
{
	u32 *link;

	for (link = &pc->newest[block]; *link != NONE;
	     link = &pc->versions[*link].older) {
		if (pc->versions[*link].write != write)
			continue;
		if (fua)
			make_safe(pc, block, link);
		else
			pc->versions[*link].done = pc->now;
		return;
	}
}

static void flush_until(struct powercut *pc, u64 seen)
{
	unsigned long block;

	for_each_set_bit(block, pc->unsafe, pc->nr_blocks) {
		u32 *link = &pc->newest[block];

		for (; *link != NONE; link = &pc->versions[*link].older) {
			u64 done = pc->versions[*link].done;

			if (done && done <= seen) {
				make_safe(pc, block, link);
				break;
			}
		}
	}
}

/*---- I/O ----*/

/* Copies between a bio and a block. */
static void copy_block(struct powercut *pc, struct bio *bio,
		       struct bvec_iter *iter, u8 *block, bool to_bio)
{
	unsigned int left = 1u << pc->block_shift;

	while (left) {
		struct bio_vec bvec = bio_iter_iovec(bio, *iter);
		unsigned int n = min(left, bvec.bv_len);
		void *at = kmap_local_page(bvec.bv_page) + bvec.bv_offset;

		if (to_bio)
			memcpy(at, block, n);
		else
			memcpy(block, at, n);
		kunmap_local(at);
		bio_advance_iter(bio, iter, n);
		block += n;
		left -= n;
	}
}

static u32 first_block(const struct powercut *pc, const struct powercut_io *io)
{
	return io->iter.bi_sector >> (pc->block_shift - SECTOR_SHIFT);
}

static u32 last_block(const struct powercut *pc, const struct powercut_io *io)
{
	return first_block(pc, io) + (io->iter.bi_size >> pc->block_shift);
}

/* The power is gone while this was under way: what arrived, arrived. */
static bool reached_disk(const struct powercut *pc, bool off)
{
	return !off || get_random_u32() & 1;
}

static blk_status_t do_data(struct powercut *pc, struct powercut_io *io)
{
	bool write = op_is_write(bio_op(io->bio));
	bool discard = bio_op(io->bio) == REQ_OP_DISCARD;
	u32 block = first_block(pc, io), end = last_block(pc, io);
	struct bvec_iter iter = io->iter;
	bool off = is_off(pc);
	u8 *buffer = NULL;
	u32 chunk;

	if (!discard) {
		buffer = kmalloc(1u << pc->block_shift, GFP_NOIO);
		if (!buffer)
			return BLK_STS_RESOURCE;
	}
	while (block < end) {
		mutex_lock(&pc->lock);
		if (write && !io->write)
			io->write = ++pc->next_write;
		chunk = 1 + get_random_u32() % 32;
		for (; block < end && chunk--; block++) {
			if (!write) {
				block_read(pc, block, buffer);
				copy_block(pc, io->bio, &iter, buffer, true);
				continue;
			}
			if (!discard)
				copy_block(pc, io->bio, &iter, buffer, false);
			off = off || is_off(pc);
			if (reached_disk(pc, off))
				block_write(pc, block, io->write, buffer);
		}
		mutex_unlock(&pc->lock);
	}
	kfree(buffer);
	return is_off(pc) ? BLK_STS_IOERR : BLK_STS_OK;
}

static void data_done(struct powercut *pc, struct powercut_io *io)
{
	u32 block, end = last_block(pc, io);

	mutex_lock(&pc->lock);
	pc->writes++;
	pc->now++;
	for (block = first_block(pc, io); block < end; block++)
		block_done(pc, block, io->write, io->bio->bi_opf & REQ_FUA);
	mutex_unlock(&pc->lock);
}

static blk_status_t do_flush(struct powercut *pc, struct powercut_io *io)
{
	blk_status_t status = BLK_STS_IOERR;

	mutex_lock(&pc->lock);
	if (!is_off(pc)) {
		flush_until(pc, io->seen);
		pc->flushes++;
		status = BLK_STS_OK;
	}
	mutex_unlock(&pc->lock);
	return status;
}

static void do_io(struct powercut_io *io)
{
	struct powercut *pc = io->pc;
	struct bio *bio = io->bio;
	blk_status_t status;

	if (op_is_write(bio_op(bio)) &&
	    atomic_dec_if_positive(&pc->countdown) == 0)
		power_cut(pc->domain);
	if (!io->iter.bi_size) {
		status = do_flush(pc, io);
	} else {
		status = do_data(pc, io);
		if (!status && op_is_write(bio_op(bio)))
			data_done(pc, io);
	}
	bio->bi_status = status;
	atomic_dec(&pc->in_flight);
	bio_endio(bio);
}

static void io_work(struct work_struct *work)
{
	do_io(container_of(to_delayed_work(work), struct powercut_io, work));
}

static int powercut_map(struct dm_target *ti, struct bio *bio)
{
	struct powercut_io *io = dm_per_bio_data(bio, sizeof(*io));
	struct powercut *pc = ti->private;
	unsigned int delayed = READ_ONCE(pc->delayed);
	unsigned int dice = get_random_u32() % 100;

	if (!op_is_write(bio_op(bio)))
		delayed /= 4;
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	io->pc = pc;
	io->bio = bio;
	io->iter = bio->bi_iter;
	io->write = 0;
	atomic_inc(&pc->in_flight);
	if (is_off(pc)) {
		atomic_dec(&pc->in_flight);
		return DM_MAPIO_KILL;
	}
	if (!bio->bi_iter.bi_size) {
		mutex_lock(&pc->lock);
		io->seen = pc->now;
		mutex_unlock(&pc->lock);
	}
	if (dice >= delayed) {
		do_io(io);
		return DM_MAPIO_SUBMITTED;
	}
	INIT_DELAYED_WORK(&io->work, io_work);
	queue_delayed_work(pc->wq, &io->work, dice < delayed / 16 ? 1 : 0);
	return DM_MAPIO_SUBMITTED;
}

/*---- Power ----*/

enum survival {
	SURVIVES_ANY,		/* any version of each block */
	SURVIVES_ANY_TOO,
	SURVIVES_NONE,		/* nothing that was not flushed */
	SURVIVES_ALL,		/* the newest of all blocks */
	SURVIVES_HALF,		/* the newest or the flushed one */
	SURVIVES_WRITES,	/* whole writes or nothing of them */
	SURVIVES_UNTIL,		/* all writes until one of them */
	NR_SURVIVALS
};

struct survivors {
	enum survival kind;
	u64 salt;
	u64 until;
	struct rnd_state random;
};

static bool survives(struct powercut *pc, struct survivors *s, u32 nr,
		     unsigned int left)
{
	u64 write = pc->versions[nr].write;

	switch (s->kind) {
	case SURVIVES_NONE:
		return false;
	case SURVIVES_ALL:
		return true;
	case SURVIVES_HALF:
		return prandom_u32_state(&s->random) & 1;
	case SURVIVES_WRITES:
		return ((write + 1) * s->salt) >> 40 & 1;
	case SURVIVES_UNTIL:
		return write <= s->until;
	default:
		return !(prandom_u32_state(&s->random) % (left + 1));
	}
}

static void choose(struct powercut *pc, struct survivors *s, u32 block)
{
	unsigned int left = 0;
	u32 *link, nr;

	for (nr = pc->newest[block]; nr != NONE; nr = pc->versions[nr].older)
		left++;
	for (link = &pc->newest[block]; *link != NONE;
	     link = &pc->versions[*link].older, left--) {
		if (survives(pc, s, *link, left)) {
			make_safe(pc, block, link);
			break;
		}
		if (s->kind == SURVIVES_HALF)
			break;
	}
	versions_free(pc, pc->newest[block]);
	pc->newest[block] = NONE;
	__clear_bit(block, pc->unsafe);
}

static void power_on_device(struct powercut *pc, u64 seed)
{
	struct survivors s;
	unsigned long block;

	mutex_lock(&pc->lock);
	prandom_seed_state(&s.random, seed);
	s.kind = prandom_u32_state(&s.random) % NR_SURVIVALS;
	s.salt = (u64)prandom_u32_state(&s.random) << 32 |
		 prandom_u32_state(&s.random) | 1;
	/* Of the last hundred. */
	s.until = pc->next_write -
		  min_t(u64, pc->next_write, prandom_u32_state(&s.random) % 100);
	for_each_set_bit(block, pc->unsafe, pc->nr_blocks)
		choose(pc, &s, block);
	atomic_set(&pc->countdown, 0);
	mutex_unlock(&pc->lock);
}

static int power_on(struct domain *domain, u64 seed)
{
	struct powercut *pc;
	int r = 0;

	mutex_lock(&domains_lock);
	list_for_each_entry(pc, &domain->devices, node)
		if (atomic_read(&pc->in_flight))
			r = -EBUSY;
	if (!r) {
		list_for_each_entry(pc, &domain->devices, node) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			power_on_device(pc, seed >> 8);
		}
		/* Pairs with is_off(). */
		smp_store_release(&domain->off, false);
	}
	mutex_unlock(&domains_lock);
	return r;
}

static int powercut_message(struct dm_target *ti, unsigned int argc, char **argv,
			    char *result, unsigned int maxlen)
{
	struct powercut *pc = ti->private;
	u64 value;

	if (argc == 1 && !strcmp(argv[0], "cut")) {
		power_cut(pc->domain);
		return 0;
	}
	if (argc != 2 || kstrtou64(argv[1], 10, &value))
		return -EINVAL;
	if (!strcmp(argv[0], "cut_after")) {
		atomic_set(&pc->countdown, min_t(u64, value, INT_MAX));
		return 0;
	}
	if (!strcmp(argv[0], "delayed")) {
		WRITE_ONCE(pc->delayed, min_t(u64, value, 100));
		return 0;
	}
	if (!strcmp(argv[0], "on"))
		return power_on(pc->domain, value);
	return -EINVAL;
}

/*---- Life ----*/

static struct domain *domain_join(unsigned int nr, struct powercut *pc)
{
	struct domain *domain;

	mutex_lock(&domains_lock);
	list_for_each_entry(domain, &domains, node)
		if (domain->nr == nr)
			goto found;
	domain = kzalloc(sizeof(*domain), GFP_KERNEL);
	if (!domain)
		goto out;
	domain->nr = nr;
	INIT_LIST_HEAD(&domain->devices);
	list_add(&domain->node, &domains);
found:
	list_add_tail(&pc->node, &domain->devices);
out:
	mutex_unlock(&domains_lock);
	return domain;
}

static void domain_leave(struct powercut *pc)
{
	mutex_lock(&domains_lock);
	list_del(&pc->node);
	if (list_empty(&pc->domain->devices)) {
		list_del(&pc->domain->node);
		kfree(pc->domain);
	}
	mutex_unlock(&domains_lock);
}

static void powercut_free(struct powercut *pc)
{
	if (pc->domain)
		domain_leave(pc);
	if (pc->wq)
		destroy_workqueue(pc->wq);
	vfree(pc->data);
	vfree(pc->versions);
	vfree(pc->unsafe);
	vfree(pc->newest);
	vfree(pc->safe);
	mutex_destroy(&pc->lock);
	kfree(pc);
}

static int powercut_alloc(struct powercut *pc)
{
	u32 i;

	pc->nr_versions = pc->nr_blocks + 64;
	pc->safe = vzalloc((size_t)pc->nr_blocks << pc->block_shift);
	pc->newest = vmalloc(array_size(pc->nr_blocks, sizeof(*pc->newest)));
	pc->unsafe = vzalloc(BITS_TO_LONGS(pc->nr_blocks) * sizeof(long));
	pc->versions = vzalloc(array_size(pc->nr_versions,
					  sizeof(*pc->versions)));
	pc->data = vmalloc((size_t)pc->nr_versions << pc->block_shift);
	pc->wq = alloc_workqueue("powercut", WQ_UNBOUND | WQ_MEM_RECLAIM, 16);
	if (!pc->safe || !pc->newest || !pc->unsafe || !pc->versions ||
	    !pc->data || !pc->wq)
		return -ENOMEM;
	memset(pc->newest, 0xff, pc->nr_blocks * sizeof(*pc->newest));
	for (i = 0; i < pc->nr_versions; i++)
		pc->versions[i].older = i + 1 < pc->nr_versions ? i + 1 : NONE;
	return 0;
}

static int powercut_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	unsigned int nr, block_size, delayed = 50;
	struct powercut *pc;

	if (argc < 2 || argc > 3 || kstrtouint(argv[0], 10, &nr) ||
	    kstrtouint(argv[1], 10, &block_size) ||
	    (block_size != 512 && block_size != 4096) ||
	    (argc == 3 && (kstrtouint(argv[2], 10, &delayed) || delayed > 100)) ||
	    ti->len % (block_size >> SECTOR_SHIFT) || ti->len >> 24) {
		ti->error = "Usage: <domain> 512|4096 [<delayed, %>], at most 8 GiB";
		return -EINVAL;
	}
	pc = kzalloc(sizeof(*pc), GFP_KERNEL);
	if (!pc)
		return -ENOMEM;
	mutex_init(&pc->lock);
	pc->block_shift = ffs(block_size) - 1;
	pc->nr_blocks = ti->len >> (pc->block_shift - SECTOR_SHIFT);
	pc->delayed = delayed;
	if (!powercut_alloc(pc))
		pc->domain = domain_join(nr, pc);
	if (!pc->domain) {
		ti->error = "Out of memory";
		powercut_free(pc);
		return -ENOMEM;
	}
	ti->num_flush_bios = 1;
	ti->flush_supported = true;
	ti->num_discard_bios = 1;
	ti->discards_supported = true;
	ti->per_io_data_size = sizeof(struct powercut_io);
	ti->private = pc;
	return 0;
}

static void powercut_dtr(struct dm_target *ti)
{
	powercut_free(ti->private);
}

static void powercut_status(struct dm_target *ti, status_type_t type,
			    unsigned int status_flags, char *result,
			    unsigned int maxlen)
{
	struct powercut *pc = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		mutex_lock(&pc->lock);
		DMEMIT("%s %llu %llu %u %u", is_off(pc) ? "off" : "on",
		       pc->writes, pc->flushes,
		       bitmap_weight(pc->unsafe, pc->nr_blocks),
		       pc->domain->cuts);
		mutex_unlock(&pc->lock);
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%u %u %u", pc->domain->nr, 1u << pc->block_shift,
		       pc->delayed);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static void powercut_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct powercut *pc = ti->private;
	unsigned int block_size = 1u << pc->block_shift;

	limits->logical_block_size = block_size;
	limits->physical_block_size = block_size;
	limits->io_min = block_size;
	limits->max_discard_sectors = 1 << 16;
	limits->max_hw_discard_sectors = 1 << 16;
	limits->discard_granularity = block_size;
}

static struct target_type powercut_target = {
	.name = "powercut",
	.version = {1, 0, 0},
	.module = THIS_MODULE,
	.ctr = powercut_ctr,
	.dtr = powercut_dtr,
	.map = powercut_map,
	.status = powercut_status,
	.message = powercut_message,
	.io_hints = powercut_io_hints,
};

/*---- FUA ----*/

static int fua_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dm_dev *dev;
	int r;

	if (argc != 1) {
		ti->error = "Usage: <device>";
		return -EINVAL;
	}
	r = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &dev);
	if (r) {
		ti->error = "Device can not be opened";
		return r;
	}
	ti->num_flush_bios = 1;
	ti->private = dev;
	return 0;
}

static void fua_dtr(struct dm_target *ti)
{
	dm_put_device(ti, ti->private);
}

static int fua_map(struct dm_target *ti, struct bio *bio)
{
	struct dm_dev *dev = ti->private;

	bio_set_dev(bio, dev->bdev);
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	if (bio_op(bio) == REQ_OP_WRITE && bio_sectors(bio))
		bio->bi_opf |= REQ_FUA;
	return DM_MAPIO_REMAPPED;
}

static int fua_iterate_devices(struct dm_target *ti,
			       iterate_devices_callout_fn fn, void *data)
{
	return fn(ti, ti->private, 0, ti->len, data);
}

static struct target_type fua_target = {
	.name = "powercut-fua",
	.version = {1, 0, 0},
	.module = THIS_MODULE,
	.ctr = fua_ctr,
	.dtr = fua_dtr,
	.map = fua_map,
	.iterate_devices = fua_iterate_devices,
};

static int __init powercut_init(void)
{
	int r = dm_register_target(&powercut_target);

	if (!r) {
		r = dm_register_target(&fua_target);
		if (r)
			dm_unregister_target(&powercut_target);
	}
	return r;
}

static void __exit powercut_exit(void)
{
	dm_unregister_target(&fua_target);
	dm_unregister_target(&powercut_target);
}

module_init(powercut_init);
module_exit(powercut_exit);

MODULE_DESCRIPTION("device-mapper disk that loses power, for tests");
MODULE_LICENSE("GPL");
