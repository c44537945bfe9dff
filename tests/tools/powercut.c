// SPDX-License-Identifier: GPL-2.0
/*
 * powercut - cuts the power of caches and looks at what is left
 *
 *	powercut [--seed N] [--cuts N] [--count N] [--seconds S] [--caches N]
 *		 [--threads N] [--module PATH] [--failures N] [--verbose]
 *
 * A round makes some caches, each with a disk of its own for array and SSD (target
 * "powercut", all in one domain), of random kind, and cuts their power --count
 * times while threads and a controller are busy with them. For each sector all
 * values that it may hold are known: the last one that a completed FLUSH or FUA
 * write covers, and all that were written later. After each cut, everything is
 * read (C1) and must not change any more (C2): when read again, when it was
 * evicted, when read from the array alone after a drain (C4). In write-through and
 * write-around mode the array alone must hold what was flushed at once.
 *
 * Each round has a seed of its own, which a failure names: "--seed SEED --cuts 1"
 * with the same --count does the same again, as far as threads allow.
 *
 * link: -lpthread
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define SECTOR		512u
#define MAX_CACHES	8
#define MAX_THREADS	16
#define MAX_IO		1024u		/* sectors */
#define HISTORY		(1u << 15)
#define GEN_ANY		0xffffffffu	/* whatever was there before, or zeros */
#define GEN_BAD		0xfffffffeu
#define NEVER		0xffffffffu
#define ALL_CLOCKS	0xfffffffeu

static struct {
	uint64_t seed;
	unsigned int cuts, count, seconds, caches, threads, failures;
	bool verbose;
	const char *module;
} opt = {
	.seed = 1, .cuts = 100, .count = 12, .caches = 3, .threads = 6,
	.failures = 3, .module = "/test/dm-ssdcache.ko",
};

static uint64_t round_seed;
static unsigned int cycle, cuts_done, loads_done, failures;
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool round_failed;
static volatile bool stop;
static double time_start;
static int kmsg = -1;

/*---- Small things ----*/

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t rnd(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	return n ? (rnd(state) >> 16) % n : 0;
}

static void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	printf("# powercut: seed %" PRIu64 " cycle %u: ", round_seed, cycle);
	vprintf(format, args);
	printf(": %s\n", strerror(error));
	va_end(args);
	fflush(stdout);
	exit(2);
}

static void *zalloc(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		die("out of memory");
	return p;
}

static void *alloc_io(size_t n)
{
	void *p;

	if (posix_memalign(&p, 4096, n))
		die("out of memory");
	return p;
}

/*---- Device-mapper ----*/

static int control = -1;

static void dm_prepare(struct dm_ioctl *dm, size_t size, const char *name)
{
	memset(dm, 0, sizeof(*dm));
	dm->version[0] = 4;
	dm->data_size = size;
	dm->data_start = sizeof(*dm);
	snprintf(dm->name, sizeof(dm->name), "%s", name);
}

static int dm_simple(const char *name, unsigned long cmd, uint32_t flags)
{
	struct dm_ioctl dm;

	dm_prepare(&dm, sizeof(dm), name);
	dm.flags = flags;
	return ioctl(control, cmd, &dm) ? -errno : 0;
}

static int dm_load(const char *name, uint64_t sectors, const char *target,
		   const char *args)
{
	struct {
		struct dm_ioctl dm;
		struct dm_target_spec spec;
		char args[512];
	} r;

	memset(&r, 0, sizeof(r));
	dm_prepare(&r.dm, sizeof(r), name);
	r.dm.target_count = 1;
	r.spec.length = sectors;
	snprintf(r.spec.target_type, sizeof(r.spec.target_type), "%s", target);
	snprintf(r.args, sizeof(r.args), "%s", args);
	return ioctl(control, DM_TABLE_LOAD, &r) ? -errno : 0;
}

static int dm_resume(const char *name)
{
	return dm_simple(name, DM_DEV_SUSPEND, 0);
}

static int dm_remove(const char *name)
{
	int r, tries = 300;

	do {
		r = dm_simple(name, DM_DEV_REMOVE, 0);
		if (r != -EBUSY)
			break;
		usleep(10000);
	} while (tries--);
	return r;
}

static int dm_create(const char *name, uint64_t sectors, const char *target,
		     const char *args)
{
	int r = dm_simple(name, DM_DEV_CREATE, 0);

	if (r)
		return r;
	r = dm_load(name, sectors, target, args);
	if (!r)
		r = dm_resume(name);
	if (r)
		dm_remove(name);
	return r;
}

static int dm_message(const char *name, const char *message)
{
	struct {
		struct dm_ioctl dm;
		uint64_t sector;
		char text[248];
	} r;

	memset(&r, 0, sizeof(r));
	dm_prepare(&r.dm, sizeof(r), name);
	snprintf(r.text, sizeof(r.text), "%s", message);
	return ioctl(control, DM_TARGET_MSG, &r) ? -errno : 0;
}

static int dm_status(const char *name, char *text, size_t size)
{
	struct {
		struct dm_ioctl dm;
		struct dm_target_spec spec;
		char text[2048];
	} r;

	memset(&r, 0, sizeof(r));
	dm_prepare(&r.dm, sizeof(r), name);
	if (ioctl(control, DM_TABLE_STATUS, &r))
		return -errno;
	snprintf(text, size, "%s", r.text);
	return 0;
}

static void dm_node(const char *name, char *path, size_t size, char *devno,
		    size_t devno_size)
{
	struct dm_ioctl dm;

	dm_prepare(&dm, sizeof(dm), name);
	if (ioctl(control, DM_DEV_STATUS, &dm))
		die("status of %s", name);
	if (path)
		snprintf(path, size, "/dev/dm-%u", minor(dm.dev));
	if (devno)
		snprintf(devno, devno_size, "%u:%u", major(dm.dev),
			 minor(dm.dev));
}

/*---- The module: a power cut ends its memory too ----*/

static void *module_image;
static size_t module_size;

static void module_read(void)
{
	struct stat st;
	int fd = open(opt.module, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		die("%s", opt.module);
	module_size = st.st_size;
	module_image = zalloc(module_size);
	if (read(fd, module_image, module_size) != (ssize_t)module_size)
		die("%s", opt.module);
	close(fd);
}

static void module_load(void)
{
	if (syscall(SYS_init_module, module_image, module_size, "") &&
	    errno != EEXIST)
		die("loading %s", opt.module);
}

static void module_unload(void)
{
	unsigned int tries = 1000;

	while (syscall(SYS_delete_module, "dm_ssdcache", O_NONBLOCK)) {
		if (errno == ENOENT)
			return;
		if (!tries--)
			die("unloading the module");
		usleep(5000);
	}
}

/*---- A cache and what its sectors may hold ----*/

enum mode { WRITEBACK, WRITETHROUGH, WRITEAROUND, PASSTHROUGH, NR_MODES };

static const char * const mode_names[] = {
	"writeback", "writethrough", "writearound", "passthrough",
};

struct candidate {
	uint32_t gen;
	uint32_t start, end;	/* clock; end is NEVER until it completed */
	bool fua;
};

struct sector {
	uint32_t nr, room;
	struct candidate *c;
};

enum kind { READ, WRITE, FUA, FLUSH, DISCARD, NR_KINDS };

static const char * const kind_names[] = {
	"read", "write", "fua", "flush", "discard",
};

struct event {
	uint32_t kind, gen, start, end, first, count, cycle;
	int result;
};

struct cache {
	unsigned int id;
	uint64_t random;
	char array[16], ssd[16], name[16], fua[16];
	char array_path[32], ssd_path[32], path[32], fua_path[32];
	char array_no[16], ssd_no[16];
	uint64_t sectors, ssd_sectors;
	unsigned int line, array_block, ssd_block, seq_cutoff, delayed;
	bool passdown;
	bool up;
	volatile bool replaced;	/* by an error table, which has no flushes */

	enum mode mode;		/* of the table line, next time */
	int sure_mode;		/* the durable one, -1: not known */
	unsigned int weights[NR_KINDS];
	bool controlled;

	pthread_mutex_t lock;	/* guards what follows */
	struct sector *model;
	uint32_t clock, flushed, gen;
	uint32_t reading[MAX_THREADS];
	struct event *history;
	uint32_t nr_events;

	pthread_rwlock_t use;	/* held by I/O; for writing: device goes away */
	int fd, fua_fd;

	uint8_t *ssd_image, *array_image;	/* after the cut, before the load */
	bool has_image, has_failed;
};

static struct cache caches[MAX_CACHES];

static uint64_t word0(const struct cache *c, uint32_t sector)
{
	return 0x5043ull << 48 | (uint64_t)(c->id + 1) << 40 | sector;
}

static void fill_sector(const struct cache *c, uint8_t *data, uint32_t sector,
			uint32_t gen)
{
	uint64_t *w = (uint64_t *)data;
	unsigned int i;

	for (i = 0; i < SECTOR / 8; i += 2) {
		w[i] = word0(c, sector);
		w[i + 1] = gen | (uint64_t)~gen << 32;
	}
}

/* Which write made this sector; 0: zeros. */
static uint32_t sector_gen(const struct cache *c, const uint8_t *data,
			   uint32_t sector)
{
	const uint64_t *w = (const uint64_t *)data;

	if (memcmp(data, data + 16, SECTOR - 16))
		return GEN_BAD;
	if (!w[0] && !w[1])
		return 0;
	if (w[0] != word0(c, sector) || (uint32_t)w[1] != ~(uint32_t)(w[1] >> 32))
		return GEN_BAD;
	return (uint32_t)w[1] > c->gen ? GEN_BAD : (uint32_t)w[1];
}

static bool covered(const struct cache *c, const struct candidate *w)
{
	return w->end <= c->flushed || (w->fua && w->end != NEVER);
}

/* Forgets values that can not come back, unless a read under way may see them. */
static void prune(struct cache *c, struct sector *s, uint32_t reading)
{
	uint32_t newest = 0, i, n = 0;

	for (i = 0; i < s->nr; i++)
		if (covered(c, &s->c[i]) && s->c[i].end <= reading &&
		    s->c[i].start > newest)
			newest = s->c[i].start;
	for (i = 0; i < s->nr; i++)
		if (s->c[i].end >= newest)
			s->c[n++] = s->c[i];
	s->nr = n;
}

static uint32_t oldest_read(const struct cache *c)
{
	uint32_t oldest = ALL_CLOCKS;
	unsigned int i;

	for (i = 0; i < MAX_THREADS; i++)
		if (c->reading[i] && c->reading[i] < oldest)
			oldest = c->reading[i];
	return oldest;
}

static void model_add(struct cache *c, uint32_t first, uint32_t count,
		      uint32_t gen, uint32_t start)
{
	uint32_t i, reading = oldest_read(c);

	for (i = first; i < first + count; i++) {
		struct sector *s = &c->model[i];

		prune(c, s, reading);
		if (s->nr == s->room) {
			s->room = s->room ? 2 * s->room : 4;
			s->c = realloc(s->c, s->room * sizeof(*s->c));
			if (!s->c)
				die("out of memory");
		}
		s->c[s->nr++] = (struct candidate){ gen, start, NEVER, false };
	}
}

static void model_end(struct cache *c, uint32_t first, uint32_t count,
		      uint32_t start, uint32_t end, bool fua)
{
	uint32_t i, j;

	for (i = first; i < first + count; i++) {
		struct sector *s = &c->model[i];

		for (j = 0; j < s->nr; j++) {
			if (s->c[j].start != start)
				continue;
			s->c[j].end = end;
			s->c[j].fua = fua;
		}
	}
}

/* Whether a read that began at @reading may return @gen. */
static bool may_hold(struct sector *s, uint32_t gen, uint32_t reading)
{
	uint32_t newest = 0, i;

	if (gen == GEN_BAD)
		return false;
	for (i = 0; i < s->nr; i++)
		if (s->c[i].end <= reading && s->c[i].start > newest)
			newest = s->c[i].start;
	for (i = 0; i < s->nr; i++)
		if ((s->c[i].gen == gen || s->c[i].gen == GEN_ANY) &&
		    s->c[i].end >= newest)
			return true;
	return false;
}

/* Whether it may be there after a cut. */
static bool may_survive(struct cache *c, struct sector *s, uint32_t gen)
{
	uint32_t i;

	prune(c, s, ALL_CLOCKS);
	if (gen == GEN_BAD)
		return false;
	for (i = 0; i < s->nr; i++)
		if (s->c[i].gen == gen || s->c[i].gen == GEN_ANY)
			return true;
	return false;
}

/* It was read: this is what it holds, until it is written again. */
static void pin(struct sector *s, uint32_t gen)
{
	if (!s->room) {
		s->room = 4;
		s->c = zalloc(4 * sizeof(*s->c));
	}
	s->nr = 1;
	s->c[0] = (struct candidate){ gen, 0, 0, false };
}

static struct event *note(struct cache *c, enum kind kind, uint32_t first,
			  uint32_t count, uint32_t gen, uint32_t start)
{
	struct event *e = &c->history[c->nr_events++ % HISTORY];

	*e = (struct event){ kind, gen, start, 0, first, count, cycle, 0 };
	return e;
}

/*---- What is on the SSD, for the report; see Documentation/on-disk-format.rst ----*/

static uint64_t le(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/* One record, if it is the line's or of a slot that the line was in. */
static void dump_record(const uint8_t *b, const uint8_t *r,
			uint32_t line, uint32_t block, uint64_t slots)
{
	bool used = r[4] & 1;

	if (used ? le(r + 8, 8) != line && !(slots >> le(r, 4) & 1) :
		   b[4] == 't' || !(slots >> le(r, 4) & 1))
		return;
	printf("#   %.4s seq %" PRIu64 " first %" PRIu64 "%s: slot %" PRIu64 "%s%s line %"
	       PRId64 " valid %016" PRIx64 " (%u) dirty %016" PRIx64 " (%u)\n",
	       (char *)b + 4, le(b + 24, 8), le(b + 32, 8),
	       le(b + 14, 2) ? " last" : "", le(r, 4),
	       r[4] & 2 ? " OPEN-DIRTY" : "", r[4] & 4 ? " OPEN-DROP" : "",
	       used ? (int64_t)le(r + 8, 8) : -1, le(r + 16, 8),
	       (unsigned int)(le(r + 16, 8) >> block & 1), le(r + 24, 8),
	       (unsigned int)(le(r + 24, 8) >> block & 1));
}

static bool is_journal(const uint8_t *b)
{
	return !memcmp(b, "SSDCjrnl", 8);
}

static unsigned int records(const uint8_t *b)
{
	if (is_journal(b))
		return le(b + 12, 2);
	return memcmp(b, "SSDCtabl", 8) ? 0 : 126;
}

/* What the SSD said of a sector after the cut, the newest last. */
static void dump_ssd(struct cache *c, uint32_t sector)
{
	uint32_t line = sector / c->line, block = sector % c->line / 8;
	uint32_t nr = c->ssd_sectors / 8, i, j;
	uint64_t data = 0, slots = 0, highest = 0, seq;
	const uint8_t *image = c->ssd_image;

	for (i = 0; i < nr; i++) {
		const uint8_t *b = image + i * 4096ull;

		if (!memcmp(b, "SSDCsupr", 8)) {
			data = le(b + 176 + 16, 8);
			printf("#   super at %u: seq %" PRIu64 " flags %" PRIu64
			       " mode %" PRIu64 " tail %" PRIu64 " high_water %" PRIu64
			       " data at %" PRIu64 "\n", i, le(b + 24, 8),
			       le(b + 96, 4), le(b + 100, 4), le(b + 136, 8),
			       le(b + 144, 8), data);
		}
		if (is_journal(b) && le(b + 24, 8) > highest)
			highest = le(b + 24, 8);
		for (j = 0; j < records(b); j++) {
			const uint8_t *r = b + 64 + 32 * j;

			if (r[4] & 1 && le(r + 8, 8) == line)
				slots |= 1ull << le(r, 4);
		}
	}
	for (i = 0; i < nr; i++)
		if (!memcmp(image + i * 4096ull, "SSDCtabl", 8))
			for (j = 0; j < 126; j++)
				dump_record(image + i * 4096ull,
					    image + i * 4096ull + 64 + 32 * j, line,
					    block, slots);
	for (seq = highest > 40 ? highest - 40 : 0; seq <= highest; seq++) {
		for (i = 0; i < nr; i++) {
			const uint8_t *b = image + i * 4096ull;

			if (!is_journal(b) || le(b + 24, 8) != seq)
				continue;
			for (j = 0; j < records(b); j++)
				dump_record(b, b + 64 + 32 * j, line, block,
					    slots);
			break;
		}
	}
	for (i = data; data && i < c->ssd_sectors; i++) {
		uint32_t gen = sector_gen(c, image + (uint64_t)i * SECTOR, sector);

		if (gen && gen != GEN_BAD)
			printf("#   SSD sector %u (slot %" PRIu64 ") holds gen %u\n",
			       i, (i - data) / c->line, gen);
	}
	printf("#   array holds gen %u\n",
	       sector_gen(c, c->array_image + (uint64_t)sector * SECTOR, sector));
}

static void dump_history(struct cache *c, uint32_t sector)
{
	uint32_t first = c->nr_events > HISTORY ? c->nr_events - HISTORY : 0;
	uint32_t i, shown = 0, flushes = 0;

	/* The newest, but all in their order. */
	for (i = c->nr_events; i > first && shown < 16; i--) {
		const struct event *e = &c->history[(i - 1) % HISTORY];

		if (e->kind != FLUSH && sector >= e->first &&
		    sector < e->first + e->count)
			shown++;
	}
	for (; i < c->nr_events; i++) {
		const struct event *e = &c->history[i % HISTORY];

		/* Of all flushes, the next ones. */
		if (e->kind == FLUSH) {
			if (flushes++ > 3)
				continue;
		} else if (sector < e->first || sector >= e->first + e->count) {
			continue;
		} else {
			flushes = 0;
		}
		printf("#   cycle %u: %s %u+%u gen %u, clock %u to %u: %d\n",
		       e->cycle, kind_names[e->kind], e->first, e->count, e->gen,
		       e->start, e->end, e->result);
	}
}

static void describe(const struct cache *c)
{
	printf("# cache %u: mode %s (sure: %s) line %u array %" PRIu64 "/%u ssd %"
	       PRIu64 "/%u seq_cutoff %u discard %s%s\n",
	       c->id, mode_names[c->mode],
	       c->sure_mode < 0 ? "no" : mode_names[c->sure_mode], c->line,
	       c->sectors, c->array_block, c->ssd_sectors, c->ssd_block,
	       c->seq_cutoff, c->passdown ? "passdown" : "nopassdown",
	       c->controlled ? ", controlled" : "");
}

/* Returns whether it is to be told in full. */
static bool failure(struct cache *c, const char *format, ...)
{
	va_list args;
	bool first;

	pthread_mutex_lock(&report_lock);
	first = !c->has_failed;
	if (!round_failed)
		failures++;
	round_failed = true;
	c->has_failed = true;
	stop = true;
	if (first) {
		printf("# FAILED: seed %" PRIu64 " count %u, cycle %u: cache %u: ",
		       round_seed, opt.count, cycle, c->id);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n");
		describe(c);
	}
	fflush(stdout);
	pthread_mutex_unlock(&report_lock);
	return first;
}

static void wrong(struct cache *c, uint32_t sector, uint32_t gen, const char *when)
{
	const struct sector *s = &c->model[sector];
	uint32_t i;

	if (!failure(c, "sector %u (line %u block %u) %s: gen %u%s",
		     sector, sector / c->line, sector % c->line / 8, when, gen,
		     gen == GEN_BAD ? " (garbage)" : ""))
		return;
	pthread_mutex_lock(&report_lock);
	printf("#   allowed (flushed until clock %u):", c->flushed);
	for (i = 0; i < s->nr; i++)
		printf(" %u [%u, %u%s]", s->c[i].gen, s->c[i].start, s->c[i].end,
		       s->c[i].fua ? ", fua" : "");
	printf("\n");
	dump_history(c, sector);
	if (c->has_image)
		dump_ssd(c, sector);
	fflush(stdout);
	pthread_mutex_unlock(&report_lock);
}

/*---- Power ----*/

static bool power_is_off(void)
{
	char text[256];

	if (dm_status(caches[0].ssd, text, sizeof(text)))
		die("status of %s", caches[0].ssd);
	return !strncmp(text, "off", 3);
}

static void power_on(uint64_t seed)
{
	char message[64];
	int r, tries = 500;

	snprintf(message, sizeof(message), "on %" PRIu64, seed);
	while ((r = dm_message(caches[0].ssd, message)) == -EBUSY && tries--)
		usleep(10000);
	if (r)
		die("power on");
}

static void power_cut(void)
{
	if (dm_message(caches[0].ssd, "cut"))
		die("power cut");
}

static void arm(const char *device, unsigned int n)
{
	char message[64];

	snprintf(message, sizeof(message), "cut_after %u", n);
	if (dm_message(device, message))
		die("arming the cut");
}

/* Whether the disks do things in another order than they are told to. */
static void set_delayed(bool delayed)
{
	char message[64];
	unsigned int i;

	for (i = 0; i < opt.caches; i++) {
		snprintf(message, sizeof(message), "delayed %u",
			 delayed ? caches[i].delayed : 0);
		if (dm_message(caches[i].array, message) ||
		    dm_message(caches[i].ssd, message))
			die("message to the disks");
	}
}

/*---- The kernel's log ----*/

/* What the target says when clean data was found wrong. */
static bool kmsg_emptied(void)
{
	char text[4096];
	bool found = false;
	ssize_t n;

	while ((n = read(kmsg, text, sizeof(text) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		text[n] = 0;
		if (strstr(text, "ssdcache") && strstr(text, "without its cache"))
			found = true;
	}
	return found;
}

/*---- Caches up and down ----*/

static int raw_read(const char *path, uint8_t *buffer, uint64_t sectors)
{
	uint64_t at = 0, size = sectors * SECTOR;
	int fd = open(path, O_RDONLY | O_DIRECT);

	if (fd < 0)
		return -errno;
	while (at < size) {
		size_t n = size - at < 1 << 20 ? size - at : 1 << 20;

		if (pread(fd, buffer + at, n, at) != (ssize_t)n) {
			close(fd);
			return -EIO;
		}
		at += n;
	}
	close(fd);
	return 0;
}

static void table_args(const struct cache *c, char *args, size_t size)
{
	snprintf(args, size, "%s %s 8 mode %s line_size %u seq_cutoff %u discard %s",
		 c->array_no, c->ssd_no, mode_names[c->mode], c->line,
		 c->seq_cutoff, c->passdown ? "passdown" : "nopassdown");
}

static int cache_open(struct cache *c)
{
	c->fd = open(c->path, O_RDWR | O_DIRECT);
	if (c->fd >= 0)
		c->fua_fd = open(c->fua_path, O_RDWR | O_DIRECT);
	return c->fd < 0 || c->fua_fd < 0 ? -errno : 0;
}

static void cache_close(struct cache *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->fua_fd >= 0)
		close(c->fua_fd);
	c->fd = c->fua_fd = -1;
}

static int cache_up(struct cache *c)
{
	char args[256], devno[16];
	int r;

	table_args(c, args, sizeof(args));
	r = dm_create(c->name, c->sectors, "ssdcache", args);
	if (r)
		return r;
	c->up = true;
	c->replaced = false;
	dm_node(c->name, c->path, sizeof(c->path), devno, sizeof(devno));
	r = dm_create(c->fua, c->sectors, "powercut-fua", devno);
	if (r)
		return r;
	dm_node(c->fua, c->fua_path, sizeof(c->fua_path), NULL, 0);
	return cache_open(c);
}

static int cache_down(struct cache *c)
{
	int r;

	cache_close(c);
	if (!c->up)
		return 0;
	dm_remove(c->fua);
	r = dm_remove(c->name);
	if (!r)
		c->up = false;
	return r;
}

static uint64_t status_field(struct cache *c, const char *field)
{
	char text[2048], *at;

	if (dm_status(c->name, text, sizeof(text)))
		return 0;
	at = strstr(text, field);
	return at ? strtoull(at + strlen(field), NULL, 10) : 0;
}

static int status_mode(struct cache *c)
{
	char text[2048];
	int i;

	if (dm_status(c->name, text, sizeof(text)))
		return -1;
	for (i = 0; i < NR_MODES; i++) {
		char word[32];

		snprintf(word, sizeof(word), " mode=%s ", mode_names[i]);
		if (strstr(text, word))
			return i;
	}
	return -1;
}

/*---- Workload ----*/

struct worker {
	pthread_t thread;
	struct cache *c;
	unsigned int nr;
	uint64_t random;
	uint8_t *buffer;
};

static void io_error(struct cache *c, enum kind kind, uint32_t first, uint32_t count,
		     int error)
{
	stop = true;
	if (!power_is_off())
		failure(c, "%s of %u+%u: %s, with the power on", kind_names[kind],
			first, count, strerror(error));
}

static void do_read(struct worker *w, uint32_t first, uint32_t count)
{
	struct cache *c = w->c;
	uint32_t i, reading;
	int error = 0;

	pthread_mutex_lock(&c->lock);
	reading = ++c->clock;
	c->reading[w->nr] = reading;
	pthread_mutex_unlock(&c->lock);
	errno = 0;
	if (pread(c->fd, w->buffer, count * SECTOR, (off_t)first * SECTOR) !=
	    (ssize_t)(count * SECTOR))
		error = errno ? errno : EIO;
	pthread_mutex_lock(&c->lock);
	for (i = 0; !error && i < count; i++) {
		uint32_t gen = sector_gen(c, w->buffer + i * SECTOR, first + i);

		if (!may_hold(&c->model[first + i], gen, reading)) {
			printf("# a read from clock %u to %u\n", reading, c->clock);
			wrong(c, first + i, gen, "read before the cut");
			break;
		}
	}
	c->reading[w->nr] = 0;
	pthread_mutex_unlock(&c->lock);
	if (error)
		io_error(c, READ, first, count, error);
}

static void do_write(struct worker *w, uint32_t first, uint32_t count, enum kind kind)
{
	struct cache *c = w->c;
	uint32_t i, gen, start, end;
	struct event *e;
	uint64_t range[2] = { (uint64_t)first * SECTOR, (uint64_t)count * SECTOR };
	int error = 0;

	pthread_mutex_lock(&c->lock);
	gen = kind == DISCARD ? GEN_ANY : ++c->gen;
	start = ++c->clock;
	model_add(c, first, count, gen, start);
	e = note(c, kind, first, count, gen, start);
	pthread_mutex_unlock(&c->lock);
	errno = 0;
	if (kind == DISCARD) {
		if (ioctl(c->fd, BLKDISCARD, range))
			error = errno;
	} else {
		for (i = 0; i < count; i++)
			fill_sector(c, w->buffer + i * SECTOR, first + i, gen);
		if (pwrite(kind == FUA ? c->fua_fd : c->fd, w->buffer,
			   count * SECTOR, (off_t)first * SECTOR) !=
		    (ssize_t)(count * SECTOR))
			error = errno ? errno : EIO;
	}
	pthread_mutex_lock(&c->lock);
	end = ++c->clock;
	if (!error)
		model_end(c, first, count, start, end, kind == FUA);
	if (e->start == start) {
		e->end = end;
		e->result = -error;
	}
	pthread_mutex_unlock(&c->lock);
	if (error)
		io_error(c, kind, first, count, error);
}

static void do_flush(struct worker *w)
{
	struct cache *c = w->c;
	struct event *e;
	uint32_t start;
	int error = 0;

	pthread_mutex_lock(&c->lock);
	start = ++c->clock;
	e = note(c, FLUSH, 0, 0, 0, start);
	pthread_mutex_unlock(&c->lock);
	if (fdatasync(c->fd))
		error = errno;
	else if (c->replaced)
		error = ENODEV;
	pthread_mutex_lock(&c->lock);
	if (!error && c->flushed < start)
		c->flushed = start;
	if (e->start == start) {
		e->end = ++c->clock;
		e->result = -error;
	}
	pthread_mutex_unlock(&c->lock);
	if (error)
		io_error(c, FLUSH, 0, 0, error);
}

static void choose_range(struct worker *w, uint32_t *first, uint32_t *count)
{
	struct cache *c = w->c;
	uint32_t align = c->array_block / SECTOR, at, n;
	uint32_t dice = below(&w->random, 100);

	/* Half of all goes to some lines. */
	if (below(&w->random, 2)) {
		uint32_t nr = c->sectors / c->line;
		uint64_t hot = round_seed + cycle * 77 + c->id;
		uint32_t i = below(&w->random, 4);

		do
			at = below(&hot, nr) * c->line;
		while (i--);
		at += below(&w->random, c->line);
	} else {
		at = below(&w->random, c->sectors);
	}
	if (dice < 30) {
		n = 1 + below(&w->random, 7);
	} else if (dice < 70) {
		n = 8 * (1 + below(&w->random, 4));
		align = 8;
	} else if (dice < 92) {
		n = 1 + below(&w->random, 64);
	} else {
		n = 1 + below(&w->random, 600);
	}
	at -= at % align;
	n = (n + align - 1) / align * align;
	if (at + n > c->sectors)
		n = c->sectors - at;
	*first = at;
	*count = n;
}

static void *work(void *data)
{
	struct worker *w = data;
	struct cache *c = w->c;
	uint32_t first, count, dice, total = 0;
	unsigned int i;

	for (i = 0; i < NR_KINDS; i++)
		total += c->weights[i];
	while (!stop) {
		dice = below(&w->random, total);
		for (i = 0; dice >= c->weights[i]; i++)
			dice -= c->weights[i];
		choose_range(w, &first, &count);
		pthread_rwlock_rdlock(&c->use);
		if (!stop && c->fd >= 0) {
			if (i == READ)
				do_read(w, first, count);
			else if (i == FLUSH)
				do_flush(w);
			else if (i == DISCARD && count > 32)
				/* Then nothing is known of what is there. */
				do_write(w, first, 32, i);
			else
				do_write(w, first, count, i);
		}
		pthread_rwlock_unlock(&c->use);
	}
	return NULL;
}

/*---- The controller: drains, modes, reloads, stops and starts ----*/

static void step_failed(struct cache *c, const char *what, int r)
{
	if (!power_is_off())
		failure(c, "%s: %s, with the power on", what, strerror(-r));
	stop = true;
}

static void ctl_mode(struct cache *c, enum mode mode)
{
	char message[64];
	int r;

	snprintf(message, sizeof(message), "set mode %s", mode_names[mode]);
	c->sure_mode = -1;
	r = dm_message(c->name, message);
	/* Writes may have overtaken the drain for too long. */
	if (r == -EAGAIN || r == -EINTR)
		return;
	if (r) {
		step_failed(c, message, r);
		return;
	}
	c->mode = mode;
	c->sure_mode = mode;
}

static void ctl_reload(struct cache *c)
{
	char args[256];
	int r;

	c->sure_mode = -1;
	table_args(c, args, sizeof(args));
	r = dm_load(c->name, c->sectors, "ssdcache", args);
	if (r) {
		step_failed(c, "load", r);
		return;
	}
	r = dm_simple(c->name, DM_DEV_SUSPEND, DM_SUSPEND_FLAG);
	if (!r)
		r = dm_resume(c->name);
	if (r) {
		step_failed(c, "resume", r);
		/* Nobody shall wait for a device that does not come back. */
		c->replaced = true;
		dm_load(c->name, c->sectors, "error", "");
		r = dm_resume(c->name);
		if (r)
			die("resume with an error table: %d", r);
	}
}

static void ctl_restart(struct cache *c)
{
	int r;

	pthread_rwlock_wrlock(&c->use);
	if (stop)
		goto out;
	c->sure_mode = -1;
	r = cache_down(c);
	if (r) {
		step_failed(c, "remove", r);
		goto out;
	}
	if (!below(&c->random, 3))
		c->mode = below(&c->random, PASSTHROUGH + 1);
	r = cache_up(c);
	if (r)
		step_failed(c, "create again", r);
out:
	pthread_rwlock_unlock(&c->use);
}

static void *control_cache(void *data)
{
	struct cache *c = data;
	int r;

	while (!stop) {
		usleep(2000 + below(&c->random, 60000));
		if (stop)
			break;
		switch (below(&c->random, 10)) {
		case 0: case 1: case 2:
			r = dm_message(c->name, "flush");
			if (r && r != -EINTR && r != -EAGAIN)
				step_failed(c, "message flush", r);
			break;
		case 3: case 4: case 5:
			ctl_mode(c, below(&c->random, 3) ?
				 below(&c->random, WRITEAROUND) :
				 below(&c->random, NR_MODES));
			break;
		case 6: case 7:
			ctl_reload(c);
			break;
		default:
			ctl_restart(c);
			break;
		}
	}
	return NULL;
}

/*---- After a cut ----*/

static void take_image(struct cache *c)
{
	if (raw_read(c->ssd_path, c->ssd_image, c->ssd_sectors) ||
	    raw_read(c->array_path, c->array_image, c->sectors))
		die("reading the disks of cache %u", c->id);
	c->has_image = true;
}

/* As if the SSD was thrown away. */
static void check_array_alone(struct cache *c)
{
	uint32_t i;

	if (c->sure_mode <= WRITEBACK)
		return;
	for (i = 0; i < c->sectors; i++) {
		uint32_t gen = sector_gen(c, c->array_image + (uint64_t)i * SECTOR,
					  i);

		if (!may_survive(c, &c->model[i], gen)) {
			wrong(c, i, gen, "on the array alone after the cut");
			return;
		}
	}
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	return b ? gcd(b, a % b) : a;
}

static void read_all(struct cache *c, int fd, uint8_t *buffer, bool pinned,
		     const char *when)
{
	static const uint32_t chunks[] = { 64, 128, 256 };
	uint32_t chunk = chunks[below(&c->random, 3)];
	uint32_t nr = (c->sectors + chunk - 1) / chunk;
	uint32_t start = 0, step = 1, n, i, gen;

	if (pinned) {
		start = below(&c->random, nr);
		step = 1 + below(&c->random, nr);
		while (gcd(step, nr) != 1)
			step++;
	}
	for (n = 0; n < nr && !c->has_failed; n++) {
		uint32_t at = (start + (uint64_t)n * step) % nr * chunk;
		uint32_t count = chunk;

		if (at + count > c->sectors)
			count = c->sectors - at;
		if (pread(fd, buffer, count * SECTOR, (off_t)at * SECTOR) !=
		    (ssize_t)(count * SECTOR)) {
			failure(c, "%s: read of %u+%u: %s", when, at, count,
				strerror(errno));
			return;
		}
		for (i = 0; i < count; i++) {
			struct sector *s = &c->model[at + i];

			gen = sector_gen(c, buffer + i * SECTOR, at + i);
			if (!may_survive(c, s, gen)) {
				wrong(c, at + i, gen, when);
				return;
			}
			if (!pinned)
				pin(s, gen);
		}
	}
}

static void *verify(void *data)
{
	struct cache *c = data;
	uint8_t *buffer = alloc_io(MAX_IO * SECTOR);
	int fd, r, way = below(&c->random, 4);

	read_all(c, c->fd, buffer, false, "first read after the cut");
	read_all(c, c->fd, buffer, true, "second read");
	read_all(c, c->fd, buffer, true, "read after evictions");
	if (way > 1 || c->has_failed)
		goto out;

	r = dm_message(c->name, "flush");
	if (r) {
		failure(c, "message flush after the cut: %s", strerror(-r));
		goto out;
	}
	if (status_field(c, " dirty_blocks="))
		failure(c, "dirty blocks after a drain");
	if (way == 0) {
		read_all(c, c->fd, buffer, true, "read after a drain");
		goto out;
	}
	r = cache_down(c);
	if (r) {
		failure(c, "remove after the cut: %s", strerror(-r));
		goto out;
	}
	fd = open(c->array_path, O_RDONLY | O_DIRECT);
	read_all(c, fd, buffer, true, "read from the array after a drain");
	close(fd);
	if (c->has_failed)
		goto out;
	r = cache_up(c);
	if (r)
		failure(c, "create after a clean stop: %s", strerror(-r));
	else
		read_all(c, c->fd, buffer, true, "read after a clean restart");
out:
	free(buffer);
	return NULL;
}

static void verify_all(void)
{
	pthread_t threads[MAX_CACHES];
	unsigned int i;

	for (i = 0; i < opt.caches; i++)
		pthread_create(&threads[i], NULL, verify, &caches[i]);
	for (i = 0; i < opt.caches; i++)
		pthread_join(threads[i], NULL);
}

/*---- One cycle ----*/

static void all_down(void)
{
	unsigned int i;
	double start;
	int r;

	for (i = 0; i < opt.caches; i++) {
		start = now();
		r = cache_down(&caches[i]);
		if (r)
			die("removing cache %u: %d", i, r);
		if (now() - start > 10)
			failure(&caches[i], "remove took %.1f s", now() - start);
	}
	module_unload();
}

/* Power back, caches up; cuts that hit the load itself are repeated. */
static void recover(uint64_t *random)
{
	unsigned int i, tries = 4;
	int r;

again:
	power_on(rnd(random));
	module_load();
	for (i = 0; i < opt.caches; i++) {
		take_image(&caches[i]);
		check_array_alone(&caches[i]);
	}
	if (round_failed)
		return;
	kmsg_emptied();
	set_delayed(!below(random, 4));
	if (tries && !below(random, 3)) {
		tries--;
		arm(caches[below(random, opt.caches)].ssd, 1 + below(random, 24));
	}
	for (i = 0; i < opt.caches; i++) {
		struct cache *c = &caches[i];

		r = cache_up(c);
		c->sure_mode = -1;
		if (!r)
			continue;
		if (power_is_off()) {
			cuts_done++;
			all_down();
			goto again;
		}
		if (failure(c, "load after the cut: %s", strerror(-r)))
			dump_ssd(c, 0);
		return;
	}
	loads_done++;
	/* Too late for the load. */
	for (i = 0; i < opt.caches; i++)
		arm(caches[i].ssd, 0);
	if (power_is_off()) {
		cuts_done++;
		all_down();
		goto again;
	}
	if (kmsg_emptied()) {
		failure(&caches[0], "after the cut clean blocks were not the array's");
		for (i = 0; i < opt.caches; i++)
			describe(&caches[i]);
	}
}

static void choose_weights(struct cache *c, uint64_t *random)
{
	static const unsigned int weights[][NR_KINDS] = {
		{ 30, 45, 10, 12, 3 },
		{ 15, 60, 10, 3, 1 },
		{ 60, 20, 5, 10, 2 },
		{ 10, 40, 0, 40, 0 },
		{ 30, 20, 40, 3, 2 },
		{ 30, 50, 0, 8, 12 },
	};

	memcpy(c->weights, weights[below(random, 6)], sizeof(c->weights));
	c->controlled = !below(random, 2);
}

static void run_workload(uint64_t *random)
{
	static struct worker workers[MAX_CACHES * MAX_THREADS];
	pthread_t controllers[MAX_CACHES];
	unsigned int i, j, kind = below(random, 8);
	struct cache *victim = &caches[below(random, opt.caches)];
	double start, until;
	struct worker *w;

	stop = false;
	for (i = 0; i < opt.caches; i++) {
		struct cache *c = &caches[i];

		choose_weights(c, random);
		/* Known only where the load had nothing to change. */
		if (status_mode(c) == (int)c->mode)
			c->sure_mode = c->mode;
		for (j = 0; j < opt.threads; j++) {
			w = &workers[i * opt.threads + j];
			w->c = c;
			w->nr = j;
			w->random = rnd(random);
			if (!w->buffer)
				w->buffer = alloc_io(MAX_IO * SECTOR);
		}
	}
	/* Inside an I/O to one of the disks, counted from now; else by time. */
	if (kind < 2)
		arm(victim->array, 1 + below(random, 200));
	else if (kind < 5)
		arm(victim->ssd, 1 + below(random, 400));
	until = kind < 5 ? 2 : 0.01 + below(random, 250) / 1000.0;

	for (i = 0; i < opt.caches * opt.threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (i = 0; i < opt.caches; i++)
		if (caches[i].controlled)
			pthread_create(&controllers[i], NULL, control_cache,
				       &caches[i]);
	start = now();
	while (!stop && now() - start < until)
		usleep(2000);

	/* Sometimes when the load is over, inside what the controller does. */
	if (kind != 7 && !round_failed)
		power_cut();
	stop = true;
	for (i = 0; i < opt.caches * opt.threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < opt.caches; i++)
		if (caches[i].controlled)
			pthread_join(controllers[i], NULL);
	if (kind == 7 && !round_failed) {
		arm(victim->ssd, 1 + below(random, 30));
		if (below(random, 2))
			dm_message(victim->name, "flush");
		else if (below(random, 2))
			ctl_mode(victim, below(random, NR_MODES));
		cache_down(victim);
		power_cut();
	}
	cuts_done++;
}

/*---- One round ----*/

static void cache_begin(struct cache *c, unsigned int id, uint64_t *random)
{
	static const unsigned int lines[] = { 128, 128, 256, 512 };
	pthread_rwlockattr_t attr;
	unsigned int slots;
	char args[64];
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->id = id;
	c->random = rnd(random);
	c->fd = c->fua_fd = -1;
	c->sure_mode = -1;
	c->line = lines[below(random, 4)];
	c->array_block = below(random, 3) ? 512 : 4096;
	c->ssd_block = c->array_block == 512 || below(random, 2) ? 512 : 4096;
	c->mode = below(random, 2) ? WRITEBACK : below(random, WRITEAROUND + 1);
	c->seq_cutoff = below(random, 2) ? 8192 : below(random, 512);
	c->passdown = below(random, 4);
	c->delayed = 20 + below(random, 60);
	slots = 5 + below(random, c->line == 128 ? 12 : 4);
	/* Metadata takes the first 100 blocks or so. */
	c->ssd_sectors = 1024 + slots * c->line;
	c->sectors = (slots * 2 + below(random, 6)) * c->line;
	if (below(random, 2)) {
		/* The last line is short, the last block may be. */
		c->sectors += below(random, c->line);
		if (c->array_block == 4096)
			c->sectors -= c->sectors % 8;
	}
	snprintf(c->array, sizeof(c->array), "array%u", id);
	snprintf(c->ssd, sizeof(c->ssd), "ssd%u", id);
	snprintf(c->name, sizeof(c->name), "cache%u", id);
	snprintf(c->fua, sizeof(c->fua), "fua%u", id);
	snprintf(args, sizeof(args), "0 %u %u", c->array_block, c->delayed);
	if (dm_create(c->array, c->sectors, "powercut", args))
		die("creating %s", c->array);
	snprintf(args, sizeof(args), "0 %u %u", c->ssd_block, c->delayed);
	if (dm_create(c->ssd, c->ssd_sectors, "powercut", args))
		die("creating %s", c->ssd);
	dm_node(c->array, c->array_path, sizeof(c->array_path), c->array_no,
		sizeof(c->array_no));
	dm_node(c->ssd, c->ssd_path, sizeof(c->ssd_path), c->ssd_no,
		sizeof(c->ssd_no));
	pthread_mutex_init(&c->lock, NULL);
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
				      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&c->use, &attr);
	c->model = zalloc(c->sectors * sizeof(*c->model));
	for (i = 0; i < c->sectors; i++)
		pin(&c->model[i], 0);
	c->history = zalloc(HISTORY * sizeof(*c->history));
	c->ssd_image = alloc_io(c->ssd_sectors * SECTOR);
	c->array_image = alloc_io(c->sectors * SECTOR);
}

static void cache_end(struct cache *c)
{
	uint64_t i;

	if (dm_remove(c->array) || dm_remove(c->ssd))
		die("removing the disks of cache %u", c->id);
	for (i = 0; i < c->sectors; i++)
		free(c->model[i].c);
	free(c->model);
	free(c->history);
	free(c->ssd_image);
	free(c->array_image);
}

static void do_round(uint64_t seed)
{
	uint64_t random = seed, writes = 0;
	double t[4] = { 0 }, at;
	unsigned int i;

	round_seed = seed;
	round_failed = false;
	cycle = 0;
	for (i = 0; i < opt.caches; i++)
		cache_begin(&caches[i], i, &random);
	if (opt.verbose)
		for (i = 0; i < opt.caches; i++)
			describe(&caches[i]);
	/* The first recovery is a format. */
	for (cycle = 0; cycle < opt.count && !round_failed; cycle++) {
		random = seed * 1000003 + cycle;
		at = now();
		recover(&random);
		t[0] += now() - at;
		at = now();
		set_delayed(false);
		if (!round_failed)
			verify_all();
		set_delayed(true);
		t[1] += now() - at;
		at = now();
		if (!round_failed)
			run_workload(&random);
		t[2] += now() - at;
		at = now();
		if (!power_is_off())
			power_cut();
		all_down();
		t[3] += now() - at;
	}
	power_on(1);
	for (i = 0; i < opt.caches; i++) {
		writes += caches[i].gen;
		cache_end(&caches[i]);
	}
	if (opt.verbose) {
		printf("# round %" PRIu64 ": %u cycles, %u cuts so far, %" PRIu64
		       " writes, recover %.2f verify %.2f work %.2f down %.2f s\n",
		       seed, cycle, cuts_done, writes, t[0], t[1], t[2], t[3]);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, 0, 's' }, { "cuts", 1, 0, 'c' }, { "count", 1, 0, 'n' },
		{ "seconds", 1, 0, 't' }, { "caches", 1, 0, 'k' },
		{ "threads", 1, 0, 'j' }, { "module", 1, 0, 'm' },
		{ "failures", 1, 0, 'f' }, { "verbose", 0, 0, 'v' }, { 0 }
	};
	unsigned int rounds = 0;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (o) {
		case 's': opt.seed = strtoull(optarg, NULL, 10); break;
		case 'c': opt.cuts = strtoul(optarg, NULL, 10); break;
		case 'n': opt.count = strtoul(optarg, NULL, 10); break;
		case 't': opt.seconds = strtoul(optarg, NULL, 10); break;
		case 'k': opt.caches = strtoul(optarg, NULL, 10); break;
		case 'j': opt.threads = strtoul(optarg, NULL, 10); break;
		case 'm': opt.module = optarg; break;
		case 'f': opt.failures = strtoul(optarg, NULL, 10); break;
		case 'v': opt.verbose = true; break;
		default: return 2;
		}
	}
	if (!opt.caches || opt.caches > MAX_CACHES || !opt.threads ||
	    opt.threads > MAX_THREADS || !opt.count)
		return 2;
	control = open("/dev/mapper/control", O_RDWR);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (control < 0 || kmsg < 0)
		die("/dev/mapper/control or /dev/kmsg");
	lseek(kmsg, 0, SEEK_END);
	module_read();
	module_unload();
	time_start = now();
	/* Each cut hits all caches. */
	while (cuts_done * opt.caches < opt.cuts && failures < opt.failures &&
	       (!opt.seconds || now() - time_start < opt.seconds))
		do_round(opt.seed + rounds++);
	printf("# seeds %" PRIu64 " to %" PRIu64 ", count %u: %u caches lost power %u times, %u loads, %.1f s, %u rounds failed\n",
	       opt.seed, opt.seed + rounds - 1, opt.count, opt.caches, cuts_done,
	       loads_done, now() - time_start, failures);
	return failures ? 1 : 0;
}
