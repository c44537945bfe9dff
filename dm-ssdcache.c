// SPDX-License-Identifier: GPL-2.0
/*
 * Device-mapper target "ssdcache": an SSD as a cache for an array.
 *
 * This is the skeleton: the table takes <array> <ssd> and everything is
 * mapped through to the array.
 */
#include <linux/device-mapper.h>
#include <linux/module.h>
#include <linux/slab.h>

#define DM_MSG_PREFIX "ssdcache"

struct ssdcache {
	struct dm_dev *array;
	struct dm_dev *ssd;
};

static int ssdcache_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct ssdcache *c;
	int r;

	if (argc < 2) {
		ti->error = "Need <array> <ssd>";
		return -EINVAL;
	}

	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}

	r = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &c->array);
	if (r) {
		ti->error = "Cannot open the array";
		goto free;
	}

	r = dm_get_device(ti, argv[1], dm_table_get_mode(ti->table), &c->ssd);
	if (r) {
		ti->error = "Cannot open the SSD";
		goto put_array;
	}

	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->private = c;
	return 0;

put_array:
	dm_put_device(ti, c->array);
free:
	kfree(c);
	return r;
}

static void ssdcache_dtr(struct dm_target *ti)
{
	struct ssdcache *c = ti->private;

	dm_put_device(ti, c->ssd);
	dm_put_device(ti, c->array);
	kfree(c);
}

static int ssdcache_map(struct dm_target *ti, struct bio *bio)
{
	struct ssdcache *c = ti->private;

	bio_set_dev(bio, c->array->bdev);
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	return DM_MAPIO_REMAPPED;
}

static void ssdcache_status(struct dm_target *ti, status_type_t type,
			    unsigned int flags, char *result,
			    unsigned int maxlen)
{
	struct ssdcache *c = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		DMEMIT("state=running");
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s %s", c->array->name, c->ssd->name);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static int ssdcache_iterate_devices(struct dm_target *ti,
				    iterate_devices_callout_fn fn, void *data)
{
	struct ssdcache *c = ti->private;

	return fn(ti, c->array, 0, ti->len, data);
}

static struct target_type ssdcache_target = {
	.name = "ssdcache",
	.version = {0, 1, 0},
	.module = THIS_MODULE,
	.ctr = ssdcache_ctr,
	.dtr = ssdcache_dtr,
	.map = ssdcache_map,
	.status = ssdcache_status,
	.iterate_devices = ssdcache_iterate_devices,
};

static int __init ssdcache_init(void)
{
	return dm_register_target(&ssdcache_target);
}

static void __exit ssdcache_exit(void)
{
	dm_unregister_target(&ssdcache_target);
}

module_init(ssdcache_init);
module_exit(ssdcache_exit);

MODULE_DESCRIPTION("Device-mapper SSD cache");
MODULE_LICENSE("GPL");
