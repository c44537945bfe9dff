// SPDX-License-Identifier: GPL-2.0
/*
 * blockcheck - random I/O on a block device that knows what each sector must hold
 *
 *	blockcheck [OPTION]... DEVICE
 *
 * Every sector written carries its own number, the seed and a generation, which
 * is different for each write. For each sector the values that a read may return
 * are known: the last one whose write has completed, those whose writes are in
 * flight, and, where writes overlapped each other, each of theirs until a read
 * tells which. After a discard it may be anything that was ever written there, or
 * zeros, but once it was read it must stay.
 *
 *   --threads N        threads, one I/O each (8)
 *   --ops N            end after so many I/Os
 *   --seconds S        end after so long; without both: 10000 I/Os
 *   --seed N           (1); from the model if one is loaded
 *   --range START:LEN  sectors that are written (the whole device)
 *   --max-sectors N    longest I/O (1200)
 *   --reads N, --writes N, --fua N, --flushes N, --discards N, --zeroes N
 *                      shares of the kinds of I/O (45 38 6 4 4 3)
 *   --hot PERCENT      of the I/Os go to few places (70)
 *   --pause USEC       a thread rests so long after each I/O (0)
 *   --align N          sectors; never less than the logical block (that)
 *   --aligned PERCENT  of the I/Os are whole 4 KiB blocks (45)
 *   --overlap          writes and discards may overlap others in flight
 *   --torn             a read may see half of a sector that is just written, as
 *                      with disks of a virtual machine that are files
 *   --load FILE        what the device holds; without it: zeros
 *   --newer-ok         or anything that a run wrote which began with that model
 *                      and did not live to save its own
 *   --save FILE        what it holds in the end
 *   --verify-only      just compare the device with the model
 *   --no-verify        no comparison of the whole at the end
 *   --allow-errors     I/O errors are counted, not fatal
 *   --allow-read-errors  errors of reads alone are
 *
 * SIGTERM and SIGINT end it early, but in order. The exit status is 0 if all was
 * right, 1 if a sector was wrong, 2 if something else went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_DSYNC
#define RWF_DSYNC 2
#endif

#define SECTOR		512u
#define MAGIC		0x6b636863u
#define MODEL_MAGIC	0x6c65646f6d6b6362ull

/* Values a sector can hold: a generation, or one of these. */
#define V_ZERO		0u
#define V_ANY		0xfffffffeu	/* discarded: whatever was there before */
#define V_BAD		0xffffffffu	/* nothing that was ever written */

#define NR_CANDIDATES	7
#define REGION_SECTORS	512u
#define HISTORY		(1u << 16)
#define LINE_GUESS	128u		/* unit of the hot set */
#define MAX_IOVECS	5
#define NEWER_MAX	(1u << 22)	/* writes of a run that was cut short */

enum kind { READ, WRITE, FUA, FLUSH, DISCARD, ZERO, NR_KINDS };

static const char * const kind_names[] = {
	"read", "write", "fua write", "flush", "discard", "zeroout",
};

/* A value that the next read may return; end: clock of its completion, or 0. */
struct candidate {
	uint32_t value;
	uint32_t end;
};

struct sector {
	uint32_t version;	/* changes when a write begins or ends */
	uint16_t nr;
	uint16_t in_flight;
	uint32_t last_any;	/* clock of the last discard or zeroing */
	struct candidate candidates[NR_CANDIDATES];
};

/* What was done, for the diagnosis. */
struct event {
	uint32_t clock, end;
	uint32_t value;
	uint8_t kind, thread;
	uint32_t count;
	uint64_t start;
	double from, to;
};

struct header {
	uint32_t magic;
	uint32_t value;
	uint64_t sector;
	uint64_t seed;
	uint64_t check;
};

static struct {
	unsigned int threads;
	uint64_t ops;
	double seconds;
	uint64_t seed;
	uint64_t start, length;
	uint32_t max_sectors;
	unsigned int shares[NR_KINDS];
	unsigned int hot, aligned, pause;
	uint32_t align;
	bool newer_ok, torn, overlap, verify_only, no_verify, allow_errors, allow_read_errors;
	const char *load, *save, *device;
} opt = {
	.threads = 8, .seed = 1, .max_sectors = 1200,
	.shares = { 45, 38, 6, 4, 4, 3 }, .hot = 70, .aligned = 45,
};

static int fd;
static uint64_t nr_sectors;
static struct sector *model;
static pthread_mutex_t *region_locks;
static struct event *history;
static uint32_t clock_now = 1;
static uint32_t next_value = 1;
static uint32_t newer_from = V_BAD, newer_to;	/* --newer-ok */
static uint64_t ops_done;
static uint64_t counts[NR_KINDS], errors, verified, retried;
static volatile sig_atomic_t stop;
static bool failed;
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int reported;
static double time_start;

static void die(const char *what)
{
	fprintf(stderr, "blockcheck: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint32_t tick(void)
{
	return __atomic_add_fetch(&clock_now, 1, __ATOMIC_SEQ_CST);
}

/* --- Random numbers -------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

struct rnd {
	uint64_t state;
};

static uint64_t rnd(struct rnd *r, uint64_t below)
{
	r->state += 0x9e3779b97f4a7c15ull;
	return below ? mix(r->state) % below : 0;
}

static bool percent(struct rnd *r, unsigned int p)
{
	return rnd(r, 100) < p;
}

/* --- What a sector looks like ------------------------------------------------ */

static uint64_t content_seed(uint64_t sector, uint32_t value)
{
	return mix(opt.seed ^ mix(sector * 0x100000001ull ^ (uint64_t)value << 20));
}

static void fill_sector(void *to, uint64_t sector, uint32_t value)
{
	uint64_t x = content_seed(sector, value), *p;
	struct header *h = to;

	if (value == V_ZERO) {
		memset(to, 0, SECTOR);
		return;
	}
	*h = (struct header) {
		.magic = MAGIC, .value = value, .sector = sector,
		.seed = opt.seed, .check = x,
	};
	for (p = (uint64_t *)(h + 1); p < (uint64_t *)((char *)to + SECTOR); p++)
		*p = x += 0x9e3779b97f4a7c15ull;
}

/* The value that a sector holds, V_BAD if it is none of this sector. */
static uint32_t parse_sector(const void *from, uint64_t sector)
{
	static const char zeros[SECTOR];
	const struct header *h = from;
	const uint64_t *p;
	uint64_t x;

	if (h->magic != MAGIC)
		return memcmp(from, zeros, SECTOR) ? V_BAD : V_ZERO;
	x = content_seed(sector, h->value);
	if (h->sector != sector || h->seed != opt.seed || h->check != x ||
	    h->value >= __atomic_load_n(&next_value, __ATOMIC_SEQ_CST))
		return V_BAD;
	for (p = (const uint64_t *)(h + 1);
	     p < (const uint64_t *)((const char *)from + SECTOR); p++)
		if (*p != (x += 0x9e3779b97f4a7c15ull))
			return V_BAD;
	return h->value;
}

static void describe_sector(const void *from, char *text, size_t size)
{
	const struct header *h = from;

	if (h->magic == MAGIC && h->seed == opt.seed)
		snprintf(text, size, "generation %u of sector %" PRIu64 "%s",
			 h->value, h->sector,
			 parse_sector(from, h->sector) == V_BAD ?
			 ", torn inside" : "");
	else if (h->magic == MAGIC)
		snprintf(text, size, "sector %" PRIu64 " of another run (seed %"
			 PRIu64 ")", h->sector, h->seed);
	else
		snprintf(text, size, "%s (%08x %08x ...)",
			 parse_sector(from, 0) == V_ZERO ? "zeros" : "garbage",
			 h->magic, h->value);
}

/* --- The model ---------------------------------------------------------------- */

static void lock_range(uint64_t start, uint32_t count)
{
	uint64_t r;

	for (r = start / REGION_SECTORS;
	     r <= (start + count - 1) / REGION_SECTORS; r++)
		pthread_mutex_lock(&region_locks[r]);
}

static void unlock_range(uint64_t start, uint32_t count)
{
	uint64_t r;

	for (r = start / REGION_SECTORS;
	     r <= (start + count - 1) / REGION_SECTORS; r++)
		pthread_mutex_unlock(&region_locks[r]);
}

static void set_only(struct sector *s, uint32_t value, uint32_t end)
{
	s->nr = 1;
	s->candidates[0].value = value;
	s->candidates[0].end = end;
}

/* False if the range is written already, or too much is unknown of it. */
static bool write_begin(uint64_t start, uint32_t count, uint32_t value,
			uint32_t clock)
{
	uint32_t i;
	bool any = value == V_ANY || value == V_ZERO;

	for (i = 0; i < count; i++) {
		struct sector *s = &model[start + i];

		if (s->nr == NR_CANDIDATES || (s->in_flight && !opt.overlap))
			return false;
	}
	for (i = 0; i < count; i++) {
		struct sector *s = &model[start + i];

		s->candidates[s->nr].value = value;
		s->candidates[s->nr].end = 0;
		s->nr++;
		s->in_flight++;
		s->version++;
		if (any)
			s->last_any = clock;
	}
	return true;
}

static void write_end(uint64_t start, uint32_t count, uint32_t value,
		      uint32_t begun, bool success)
{
	uint32_t end = tick(), i, j, k;

	lock_range(start, count);
	for (i = 0; i < count; i++) {
		struct sector *s = &model[start + i];
		bool found = false;

		for (j = k = 0; j < s->nr; j++) {
			struct candidate c = s->candidates[j];

			/* Several may have the same value: any of them will do. */
			if (!found && c.value == value && !c.end) {
				c.end = end;
				found = true;
			} else if (success && c.end && c.end < begun) {
				continue;
			}
			s->candidates[k++] = c;
		}
		s->nr = k;
		s->in_flight--;
		s->version++;
	}
	unlock_range(start, count);
}

static bool is_candidate(const struct sector *s, uint32_t value)
{
	unsigned int i;

	/* Not of a sector that was read or written since the model was loaded. */
	if (value >= newer_from && value < newer_to && !s->version &&
	    s->nr && s->candidates[0].end == 1)
		return true;
	for (i = 0; i < s->nr; i++)
		if (s->candidates[i].value == value ||
		    (s->candidates[i].value == V_ANY && value != V_BAD))
			return true;
	return false;
}

/*
 * Whether a read that began at @begun, when the sector was as in @before, may
 * have brought @value. Region locked. Learns from it if nobody wrote meanwhile.
 */
static bool read_value(uint64_t sector, const struct sector *before,
		       uint32_t value, uint32_t begun, uint32_t first_value)
{
	struct sector *s = &model[sector];
	bool quiet = s->version == before->version && !s->in_flight;

	if (value == V_BAD)
		return opt.torn && !quiet;
	if (quiet) {
		if (!is_candidate(s, value))
			return false;
		set_only(s, value, begun);
		return true;
	}
	return is_candidate(before, value) || is_candidate(s, value) ||
	       value >= first_value || s->last_any >= begun;
}

/* --- Diagnosis ----------------------------------------------------------------- */

static const char *value_name(uint32_t value, char *text, size_t size)
{
	if (value == V_ZERO)
		return "zeros";
	if (value == V_ANY)
		return "anything older";
	snprintf(text, size, "generation %u", value);
	return text;
}

static void print_event(const struct event *e, uint64_t sector)
{
	printf("    %8.3f-%-8.3f thread %2u %-9s %" PRIu64 "+%u", e->from - time_start,
	       e->to ? e->to - time_start : 0, e->thread, kind_names[e->kind],
	       e->start, e->count);
	if (e->kind == WRITE || e->kind == FUA)
		printf(" generation %u", e->value);
	else if (e->kind == READ && e->start <= sector &&
		 sector < e->start + e->count)
		printf(" (covers it)");
	if (!e->to)
		printf(" (in flight)");
	printf("\n");
}

/* The last events that touched the sector's 4 KiB block. */
static void print_history(uint64_t sector)
{
	uint64_t first = sector & ~7ull;
	uint32_t i, shown = 0, last = __atomic_load_n(&clock_now, __ATOMIC_SEQ_CST);
	const struct event *list[40];

	for (i = 0; i < HISTORY && shown < 40; i++) {
		const struct event *e = &history[(last - i) % HISTORY];

		if (e->clock == last - i && e->count && e->start < first + 8 &&
		    e->start + e->count > first)
			list[shown++] = e;
	}
	printf("  last I/Os of its block, now is %.3f:\n", now() - time_start);
	while (shown--)
		print_event(list[shown], sector);
}

static void report(uint64_t sector, const struct sector *before,
		   const void *data, uint64_t io_start, uint32_t io_count,
		   uint32_t bad)
{
	void *again = NULL;
	char text[96], name[32];
	unsigned int i, tries;
	uint32_t align = opt.align;
	uint64_t at = sector / align * align;

	pthread_mutex_lock(&report_lock);
	failed = true;
	stop = 1;
	if (reported++ >= 3)
		goto out;
	describe_sector(data, text, sizeof(text));
	printf("sector %" PRIu64 " (block %" PRIu64 ") holds %s\n", sector,
	       sector / 8, text);
	printf("  expected:");
	for (i = 0; i < before->nr; i++)
		printf("%s %s%s", i ? " or" : "",
		       value_name(before->candidates[i].value, name, sizeof(name)),
		       before->candidates[i].end ? "" : " (in flight)");
	printf("\n  seen by a read of %" PRIu64 "+%u, with %u wrong sectors\n",
	       io_start, io_count, bad);
	if (posix_memalign(&again, 4096, align * SECTOR))
		goto out;
	for (tries = 0; tries < 3; tries++) {
		if (pread(fd, again, align * SECTOR, at * SECTOR) < 0) {
			printf("  read again: %s\n", strerror(errno));
		} else {
			describe_sector((char *)again + (sector - at) * SECTOR, text,
					sizeof(text));
			printf("  read again: %s\n", text);
		}
		usleep(100000);
	}
	free(again);
	print_history(sector);
out:
	fflush(stdout);
	pthread_mutex_unlock(&report_lock);
}

/* --- I/O ------------------------------------------------------------------------- */

struct thread {
	pthread_t id;
	unsigned int nr;
	struct rnd rnd;
	void *buffer;
	uint32_t *values;
	struct sector *before;
};

struct io {
	enum kind kind;
	uint64_t start;
	uint32_t count;
	uint32_t value;
	uint32_t begun;
	struct event *event;
};

static void io_failed(const struct io *io)
{
	bool allowed = opt.allow_errors ||
		       (opt.allow_read_errors && io->kind == READ);

	__atomic_add_fetch(&errors, 1, __ATOMIC_SEQ_CST);
	if (allowed)
		return;
	pthread_mutex_lock(&report_lock);
	printf("%s %" PRIu64 "+%u: %s\n", kind_names[io->kind], io->start,
	       io->count, strerror(errno));
	fflush(stdout);
	failed = true;
	stop = 1;
	pthread_mutex_unlock(&report_lock);
}

static uint64_t choose_line(struct thread *t)
{
	uint64_t lines = (opt.length + LINE_GUESS - 1) / LINE_GUESS;
	uint64_t line;
	double u;

	if (!percent(&t->rnd, opt.hot))
		return rnd(&t->rnd, lines);
	u = rnd(&t->rnd, 1 << 20) / (double)(1 << 20);
	line = lines * u * u * u * u;
	/* Hot lines are not neighbours, but some are. */
	return ((line >> 1) * 2654435761ull * 2 + (line & 1)) % lines;
}

static void choose_range(struct thread *t, struct io *io)
{
	uint32_t align = opt.align, count, line_pos;
	uint64_t start, end = opt.start + opt.length;
	unsigned int size = rnd(&t->rnd, 100);

	if (io->kind == DISCARD && size < 50)
		size = 50 + size;
	if (percent(&t->rnd, opt.aligned)) {
		align = align > 8 ? align : 8;
		if (size < 60)
			count = 8;
		else if (size < 90)
			count = 8 * (1 + rnd(&t->rnd, 16));
		else
			count = 8 * (1 + rnd(&t->rnd, opt.max_sectors / 8));
	} else if (size < 50) {
		count = 1 + rnd(&t->rnd, 16);
	} else if (size < 90) {
		count = 1 + rnd(&t->rnd, 140);
	} else {
		count = 1 + rnd(&t->rnd, opt.max_sectors);
	}
	line_pos = rnd(&t->rnd, LINE_GUESS);
	start = opt.start + choose_line(t) * LINE_GUESS + line_pos;
	/* Now and then the end of the device. */
	if (rnd(&t->rnd, 200) == 0)
		start = end - rnd(&t->rnd, 32) - 1;
	start = start / align * align;
	if (start < opt.start)
		start = (opt.start + opt.align - 1) / opt.align * opt.align;
	if (start >= end)
		start = (end - 1) / opt.align * opt.align;
	count = (count + opt.align - 1) / opt.align * opt.align;
	if (count > opt.max_sectors)
		count = opt.max_sectors / opt.align * opt.align;
	if (!count)
		count = opt.align;
	if (start + count > end)
		count = (end - start) / opt.align * opt.align;
	io->start = start;
	io->count = count;
}

static enum kind choose_kind(struct thread *t)
{
	unsigned int k, sum = 0, n;

	for (k = 0; k < NR_KINDS; k++)
		sum += opt.shares[k];
	n = rnd(&t->rnd, sum);
	for (k = 0; n >= opt.shares[k]; k++)
		n -= opt.shares[k];
	return k;
}

static struct event *event_begin(struct thread *t, const struct io *io)
{
	struct event *e = &history[io->begun % HISTORY];

	*e = (struct event) {
		.clock = io->begun, .value = io->value, .kind = io->kind,
		.thread = t->nr, .count = io->count, .start = io->start,
		.from = now(),
	};
	return e;
}

/* Cuts the buffer at odd places, so that bios have several pieces. */
static int make_iovecs(struct thread *t, struct iovec *iov, uint32_t count)
{
	uint32_t units = count / opt.align, cut;
	char *p = t->buffer;
	int n = 0;

	while (n < MAX_IOVECS - 1 && units > 1 && percent(&t->rnd, 40)) {
		cut = 1 + rnd(&t->rnd, units - 1);
		iov[n].iov_base = p;
		iov[n].iov_len = cut * opt.align * SECTOR;
		p += iov[n++].iov_len;
		units -= cut;
	}
	iov[n].iov_base = p;
	iov[n++].iov_len = units * opt.align * SECTOR;
	return n;
}

static bool do_write(struct thread *t, struct io *io)
{
	struct iovec iov[MAX_IOVECS];
	uint64_t range[2] = { io->start * SECTOR, (uint64_t)io->count * SECTOR };
	ssize_t done;
	uint32_t i;
	int n;
	bool ok;

	io->value = io->kind == DISCARD ? V_ANY : V_ZERO;
	if (io->kind == WRITE || io->kind == FUA)
		io->value = __atomic_fetch_add(&next_value, 1, __ATOMIC_SEQ_CST);
	lock_range(io->start, io->count);
	io->begun = tick();
	ok = write_begin(io->start, io->count, io->value, io->begun);
	unlock_range(io->start, io->count);
	if (!ok) {
		__atomic_add_fetch(&retried, 1, __ATOMIC_RELAXED);
		return false;
	}
	io->event = event_begin(t, io);

	switch (io->kind) {
	case DISCARD:
		ok = !ioctl(fd, BLKDISCARD, range);
		if (!ok && errno == EOPNOTSUPP)
			ok = true;
		break;
	case ZERO:
		ok = !ioctl(fd, BLKZEROOUT, range);
		break;
	default:
		for (i = 0; i < io->count; i++)
			fill_sector((char *)t->buffer + i * SECTOR, io->start + i,
				    io->value);
		n = make_iovecs(t, iov, io->count);
		done = pwritev2(fd, iov, n, range[0],
				io->kind == FUA ? RWF_DSYNC : 0);
		ok = done == (ssize_t)range[1];
		if (done >= 0 && !ok)
			errno = EIO;
	}
	if (!ok)
		io_failed(io);
	write_end(io->start, io->count, io->value, io->begun, ok);
	io->event->to = now();
	return true;
}

static void check_data(struct thread *t, const struct io *io, const char *data,
		       uint32_t first_value)
{
	uint32_t i, bad = 0, first_bad = 0;

	lock_range(io->start, io->count);
	for (i = 0; i < io->count; i++) {
		uint64_t sector = io->start + i;

		if (!read_value(sector, &t->before[i], t->values[i], io->begun,
				first_value) && !bad++)
			first_bad = i;
	}
	unlock_range(io->start, io->count);
	__atomic_add_fetch(&verified, io->count, __ATOMIC_RELAXED);
	if (bad)
		report(io->start + first_bad, &t->before[first_bad],
		       data + (uint64_t)first_bad * SECTOR, io->start, io->count,
		       bad);
}

static void do_read(struct thread *t, struct io *io)
{
	struct iovec iov[MAX_IOVECS];
	char *data = t->buffer;
	uint32_t i, first_value;
	ssize_t done;
	int n;

	lock_range(io->start, io->count);
	io->begun = tick();
	first_value = __atomic_load_n(&next_value, __ATOMIC_SEQ_CST);
	memcpy(t->before, &model[io->start], io->count * sizeof(*model));
	unlock_range(io->start, io->count);
	io->event = event_begin(t, io);

	n = make_iovecs(t, iov, io->count);
	done = preadv(fd, iov, n, io->start * SECTOR);
	io->event->to = now();
	if (done != (ssize_t)io->count * SECTOR) {
		if (done >= 0)
			errno = EIO;
		io_failed(io);
		return;
	}
	for (i = 0; i < io->count; i++)
		t->values[i] = parse_sector(data + i * SECTOR, io->start + i);
	check_data(t, io, data, first_value);
}

static void do_flush(struct io *io)
{
	io->start = io->count = 0;
	if (fdatasync(fd))
		io_failed(io);
}

static bool take_op(void)
{
	if (stop || (opt.seconds && now() - time_start >= opt.seconds))
		return false;
	if (opt.ops && __atomic_fetch_add(&ops_done, 1, __ATOMIC_SEQ_CST) >= opt.ops)
		return false;
	return true;
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	while (take_op()) {
		struct io io = { .kind = choose_kind(t) };

		switch (io.kind) {
		case READ:
			choose_range(t, &io);
			do_read(t, &io);
			break;
		case FLUSH:
			do_flush(&io);
			break;
		default:
			do {
				choose_range(t, &io);
			} while (!do_write(t, &io) && !stop);
		}
		__atomic_add_fetch(&counts[io.kind], 1, __ATOMIC_RELAXED);
		if (opt.pause)
			usleep(opt.pause);
	}
	return NULL;
}

static void init_thread(struct thread *t, unsigned int nr)
{
	t->nr = nr;
	t->rnd.state = mix(opt.seed * 1000003 + nr) ^ mix(next_value);
	if (posix_memalign(&t->buffer, 4096, (size_t)opt.max_sectors * SECTOR))
		die("memory");
	t->values = calloc(opt.max_sectors, sizeof(*t->values));
	t->before = calloc(opt.max_sectors, sizeof(*t->before));
	if (!t->values || !t->before)
		die("memory");
}

static void run(void)
{
	struct thread *threads = calloc(opt.threads, sizeof(*threads));
	unsigned int i;

	if (!threads)
		die("memory");
	for (i = 0; i < opt.threads; i++)
		init_thread(&threads[i], i);
	for (i = 0; i < opt.threads; i++)
		if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]))
			die("thread");
	for (i = 0; i < opt.threads; i++)
		pthread_join(threads[i].id, NULL);
}

static void verify_all(void)
{
	struct thread t = { 0 };
	uint64_t at;

	init_thread(&t, 99);
	stop = 0;
	for (at = 0; at < nr_sectors && !stop; at += opt.max_sectors /
						     opt.align * opt.align) {
		struct io io = { .kind = READ, .start = at };

		io.count = opt.max_sectors / opt.align * opt.align;
		if (io.count > nr_sectors - at)
			io.count = nr_sectors - at;
		do_read(&t, &io);
	}
}

/* --- The model in a file --------------------------------------------------------- */

struct model_header {
	uint64_t magic;
	uint64_t seed;
	uint64_t nr_sectors;
	uint64_t next_value;
};

static void write_all(int out, const void *data, size_t size)
{
	while (size) {
		ssize_t n = write(out, data, size);

		if (n <= 0)
			die("writing the model");
		data = (const char *)data + n;
		size -= n;
	}
}

static void read_all(int in, void *data, size_t size)
{
	while (size) {
		ssize_t n = read(in, data, size);

		if (n <= 0)
			die("reading the model");
		data = (char *)data + n;
		size -= n;
	}
}

/* Sectors of which more than one value is possible get all: NR_CANDIDATES words. */
static void save_model(const char *name)
{
	struct model_header h = {
		.magic = MODEL_MAGIC, .seed = opt.seed, .nr_sectors = nr_sectors,
		.next_value = next_value,
	};
	uint32_t *values = malloc(nr_sectors * NR_CANDIDATES * sizeof(*values));
	uint64_t i;
	unsigned int j;
	int out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (out < 0 || !values)
		die(name);
	for (i = 0; i < nr_sectors; i++)
		for (j = 0; j < NR_CANDIDATES; j++)
			values[i * NR_CANDIDATES + j] = j < model[i].nr ?
				model[i].candidates[j].value : V_BAD;
	write_all(out, &h, sizeof(h));
	write_all(out, values, nr_sectors * NR_CANDIDATES * sizeof(*values));
	if (fsync(out) && errno != EINVAL)
		die(name);
	close(out);
	free(values);
}

static void load_model(const char *name)
{
	struct model_header h;
	uint32_t *values;
	uint64_t i, nr;
	unsigned int j;
	int in = open(name, O_RDONLY);

	if (in < 0)
		die(name);
	read_all(in, &h, sizeof(h));
	if (h.magic != MODEL_MAGIC) {
		fprintf(stderr, "blockcheck: %s is no model\n", name);
		exit(2);
	}
	opt.seed = h.seed;
	next_value = h.next_value;
	if (opt.newer_ok) {
		newer_from = next_value;
		next_value += NEWER_MAX;
		newer_to = next_value;
	}
	values = malloc(h.nr_sectors * NR_CANDIDATES * sizeof(*values));
	if (!values)
		die("memory");
	read_all(in, values, h.nr_sectors * NR_CANDIDATES * sizeof(*values));
	close(in);
	/* A device that has grown is zero behind the old end. */
	nr = h.nr_sectors < nr_sectors ? h.nr_sectors : nr_sectors;
	for (i = 0; i < nr; i++) {
		struct sector *s = &model[i];

		s->nr = 0;
		for (j = 0; j < NR_CANDIDATES; j++) {
			uint32_t value = values[i * NR_CANDIDATES + j];

			if (value == V_BAD)
				continue;
			s->candidates[s->nr].value = value;
			s->candidates[s->nr++].end = 1;
		}
	}
	free(values);
}

/* --- Start ------------------------------------------------------------------------ */

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (end == text || *end) {
		fprintf(stderr, "blockcheck: '%s' is no number\n", text);
		exit(2);
	}
	return n;
}

static void parse_range(char *text)
{
	char *colon = strchr(text, ':');

	if (colon)
		*colon++ = 0;
	opt.start = number(text);
	opt.length = colon ? number(colon) : 0;
}

static void parse_args(int argc, char **argv)
{
	enum {
		THREADS = 256, OPS, SECONDS, SEED, RANGE, MAX_SECTORS, HOT, ALIGN,
		ALIGNED, OVERLAP, LOAD, SAVE, VERIFY_ONLY, NO_VERIFY, ALLOW_ERRORS,
		ALLOW_READ_ERRORS, PAUSE, NEWER_OK, TORN, SHARES,
	};
	static const struct option options[] = {
		{ "threads", 1, NULL, THREADS }, { "ops", 1, NULL, OPS },
		{ "seconds", 1, NULL, SECONDS }, { "seed", 1, NULL, SEED },
		{ "range", 1, NULL, RANGE }, { "hot", 1, NULL, HOT },
		{ "max-sectors", 1, NULL, MAX_SECTORS },
		{ "align", 1, NULL, ALIGN }, { "aligned", 1, NULL, ALIGNED },
		{ "overlap", 0, NULL, OVERLAP }, { "load", 1, NULL, LOAD },
		{ "save", 1, NULL, SAVE }, { "verify-only", 0, NULL, VERIFY_ONLY },
		{ "no-verify", 0, NULL, NO_VERIFY },
		{ "allow-errors", 0, NULL, ALLOW_ERRORS },
		{ "allow-read-errors", 0, NULL, ALLOW_READ_ERRORS },
		{ "torn", 0, NULL, TORN },
		{ "pause", 1, NULL, PAUSE }, { "newer-ok", 0, NULL, NEWER_OK },
		{ "reads", 1, NULL, SHARES + READ },
		{ "writes", 1, NULL, SHARES + WRITE },
		{ "fua", 1, NULL, SHARES + FUA },
		{ "flushes", 1, NULL, SHARES + FLUSH },
		{ "discards", 1, NULL, SHARES + DISCARD },
		{ "zeroes", 1, NULL, SHARES + ZERO },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case THREADS:	opt.threads = number(optarg); break;
		case OPS:	opt.ops = number(optarg); break;
		case SECONDS:	opt.seconds = number(optarg); break;
		case SEED:	opt.seed = number(optarg); break;
		case RANGE:	parse_range(optarg); break;
		case MAX_SECTORS: opt.max_sectors = number(optarg); break;
		case HOT:	opt.hot = number(optarg); break;
		case ALIGN:	opt.align = number(optarg); break;
		case ALIGNED:	opt.aligned = number(optarg); break;
		case OVERLAP:	opt.overlap = true; break;
		case LOAD:	opt.load = optarg; break;
		case SAVE:	opt.save = optarg; break;
		case VERIFY_ONLY: opt.verify_only = true; break;
		case NO_VERIFY:	opt.no_verify = true; break;
		case ALLOW_ERRORS: opt.allow_errors = true; break;
		case ALLOW_READ_ERRORS: opt.allow_read_errors = true; break;
		case TORN:	opt.torn = true; break;
		case NEWER_OK:	opt.newer_ok = true; break;
		case PAUSE:	opt.pause = number(optarg); break;
		default:
			if (c < SHARES)
				exit(2);
			opt.shares[c - SHARES] = number(optarg);
		}
	}
	if (optind != argc - 1) {
		fprintf(stderr, "usage: blockcheck [OPTION]... DEVICE\n");
		exit(2);
	}
	opt.device = argv[optind];
	if (!opt.ops && !opt.seconds)
		opt.ops = 10000;
}

static void open_device(void)
{
	struct stat st;
	uint64_t bytes;
	int block = 512;

	fd = open(opt.device, (opt.verify_only ? O_RDONLY : O_RDWR) | O_DIRECT);
	if (fd < 0 || fstat(fd, &st))
		die(opt.device);
	if (S_ISBLK(st.st_mode)) {
		if (ioctl(fd, BLKGETSIZE64, &bytes) || ioctl(fd, BLKSSZGET, &block))
			die(opt.device);
		nr_sectors = bytes / SECTOR;
	} else {
		nr_sectors = st.st_size / SECTOR;
	}
	if (opt.align < block / SECTOR)
		opt.align = block / SECTOR;
	if (!opt.length || opt.start + opt.length > nr_sectors)
		opt.length = nr_sectors - opt.start;
	if (opt.start >= nr_sectors) {
		fprintf(stderr, "blockcheck: the range is behind the device\n");
		exit(2);
	}
}

static void init_model(void)
{
	uint64_t i, regions = nr_sectors / REGION_SECTORS + 1;

	model = calloc(nr_sectors, sizeof(*model));
	region_locks = calloc(regions, sizeof(*region_locks));
	history = calloc(HISTORY, sizeof(*history));
	if (!model || !region_locks || !history)
		die("memory");
	for (i = 0; i < regions; i++)
		pthread_mutex_init(&region_locks[i], NULL);
	for (i = 0; i < nr_sectors; i++)
		set_only(&model[i], V_ZERO, 1);
	if (opt.load)
		load_model(opt.load);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	unsigned int k;

	parse_args(argc, argv);
	open_device();
	init_model();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	time_start = now();
	if (!opt.verify_only)
		run();
	if ((opt.verify_only || !opt.no_verify) && !failed)
		verify_all();
	if (opt.save)
		save_model(opt.save);
	for (k = 0; k < NR_KINDS && !opt.verify_only; k++)
		printf("%" PRIu64 " %ss, ", counts[k], kind_names[k]);
	printf("%" PRIu64 " sectors verified, %" PRIu64 " errors, %" PRIu64
	       " retries, %.1f s: %s\n", verified, errors, retried,
	       now() - time_start, failed ? "FAILED" : "ok");
	return failed ? 1 : 0;
}
