// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of bittree.h.
 *
 * link: -pthread
 */
static void race(void);
#define standin_race()	race()

#include "unit.h"

#include <pthread.h>
#include <sched.h>

#include "bittree.h"

static u64 plain_next(const u8 *plain, u64 nr_bits, u64 from)
{
	for (; from < nr_bits; from++)
		if (plain[from])
			return from;
	return BITTREE_NONE;
}

/* Everything that is set is found, in order, and nothing else. */
static void check_walk(struct bittree *tree, const u8 *plain, u64 nr_bits)
{
	u64 at = 0, want = 0;

	for (;;) {
		at = bittree_next(tree, at);
		want = plain_next(plain, nr_bits, want);
		assert_int_equal(at, want);
		if (at == BITTREE_NONE)
			return;
		assert_true(bittree_test(tree, at));
		at++;
		want++;
	}
}

static void random_run(u64 nr_bits, unsigned int steps)
{
	u8 *plain = calloc(1, nr_bits);
	struct bittree tree;
	u64 bit, run;

	assert_int_equal(bittree_init(&tree, nr_bits), 0);
	assert_true(bittree_empty(&tree));
	while (steps--) {
		bit = random_below(nr_bits);
		/* Borders are where errors live. */
		if (random_below(4) == 0)
			bit = min_t(u64, round_up(bit + 1, 64) - random_below(2),
				    nr_bits - 1);
		switch (random_below(5)) {
		case 0:
		case 1:
			bittree_set(&tree, bit);
			plain[bit] = 1;
			break;
		case 2:
			bittree_clear(&tree, bit);
			plain[bit] = 0;
			break;
		case 3:
			/* A run, so that whole words empty. */
			for (run = random_below(200); run && bit < nr_bits;
			     run--, bit++) {
				bittree_clear(&tree, bit);
				plain[bit] = 0;
			}
			break;
		case 4:
			assert_int_equal(bittree_next(&tree, bit),
					 plain_next(plain, nr_bits, bit));
			break;
		}
	}
	check_walk(&tree, plain, nr_bits);
	for (bit = 0; bit < nr_bits; bit++)
		assert_int_equal(bittree_test(&tree, bit), plain[bit]);
	assert_int_equal(bittree_next(&tree, nr_bits), BITTREE_NONE);
	assert_int_equal(bittree_next(&tree, nr_bits + 1000000), BITTREE_NONE);
	bittree_exit(&tree);
	free(plain);
}

static void test_random(void **state)
{
	static const u64 sizes[] = {
		1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 8191, 8192,
		8193, 12345, 262143, 262144, 262145, 300000,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		random_run(sizes[i], sizes[i] < 10000 ? 40000 : 4000);
}

static void test_levels(void **state)
{
	static const struct {
		u64 nr_bits;
		unsigned int nr_levels;
	} sizes[] = {
		{ 1, 1 }, { 64, 1 }, { 65, 2 }, { 4096, 2 }, { 4097, 3 },
		{ 1 << 18, 3 }, { (1 << 18) + 1, 4 }, { 1 << 24, 4 },
		{ (1 << 24) + 1, 5 }, { 1 << 30, 5 }, { (1 << 30) + 1, 6 },
	};
	struct bittree tree;
	u64 bits[64];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 nr_bits = sizes[i].nr_bits;

		assert_int_equal(bittree_init(&tree, nr_bits), 0);
		assert_int_equal(tree.nr_levels, sizes[i].nr_levels);
		assert_true(bittree_empty(&tree));
		/* Alone: the first, the last, some between. */
		for (n = 0; n < ARRAY_SIZE(bits); n++) {
			u64 bit = n == 0 ? 0 : n == 1 ? nr_bits - 1 :
				  random_below(nr_bits);

			bittree_set(&tree, bit);
			assert_int_equal(bittree_next(&tree, 0), bit);
			assert_int_equal(bittree_next(&tree, bit), bit);
			assert_int_equal(bittree_next(&tree, bit + 1),
					 BITTREE_NONE);
			bittree_clear(&tree, bit);
			assert_int_equal(bittree_next(&tree, 0), BITTREE_NONE);
		}
		/* Together. */
		for (n = 0; n < ARRAY_SIZE(bits); n++) {
			bits[n] = nr_bits / ARRAY_SIZE(bits) * n;
			bittree_set(&tree, bits[n]);
		}
		for (n = 0; n < ARRAY_SIZE(bits); n++) {
			assert_int_equal(bittree_next(&tree, bits[n]), bits[n]);
			if (n && bits[n] > bits[n - 1])
				assert_int_equal(bittree_next(&tree,
							      bits[n - 1] + 1),
						 bits[n]);
		}
		bittree_exit(&tree);
	}
}

/* Stale summaries are met by a search that begins anywhere. */
static void test_stale_summaries(void **state)
{
	struct bittree tree;
	u64 bit;

	assert_int_equal(bittree_init(&tree, 1 << 18), 0);
	for (bit = 0; bit < 1 << 18; bit++)
		bittree_set(&tree, bit);
	for (bit = 0; bit < 1 << 18; bit++)
		bittree_clear(&tree, bit);
	assert_int_equal(bittree_next(&tree, 100000), BITTREE_NONE);
	assert_int_equal(bittree_next(&tree, 1), BITTREE_NONE);
	bittree_set(&tree, 77777);
	assert_int_equal(bittree_next(&tree, 0), 77777);
	assert_int_equal(bittree_next(&tree, 77777), 77777);
	assert_int_equal(bittree_next(&tree, 77778), BITTREE_NONE);
	bittree_exit(&tree);
}

/* One search over a tree without bits, and it looks empty from above. */
static void test_empty(void **state)
{
	static const u64 sizes[] = { 1, 64, 65, 4097, 1 << 18, 1 << 24 };
	struct bittree tree;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(bittree_init(&tree, sizes[i]), 0);
		assert_true(bittree_empty(&tree));
		for (n = 0; n < 200; n++) {
			u64 bit = n == 0 ? 0 : n == 1 ? sizes[i] - 1 :
				  random_below(sizes[i]);

			bittree_set(&tree, bit);
			assert_false(bittree_empty(&tree));
			bittree_clear(&tree, bit);
			/* Words end where the one above ends too. */
			if (n % 2)
				bittree_next(&tree, bit);
			assert_int_equal(bittree_next(&tree, 0), BITTREE_NONE);
			assert_true(bittree_empty(&tree));
		}
		bittree_exit(&tree);
	}
}

static void test_no_memory(void **state)
{
	struct bittree tree;
	unsigned int n;

	for (n = 1; n <= 4; n++) {
		standin_alloc_fails = n;
		assert_int_equal(bittree_init(&tree, (1 << 18) + 1), -ENOMEM);
		bittree_exit(&tree);
	}
	standin_alloc_fails = 5;
	assert_int_equal(bittree_init(&tree, (1 << 18) + 1), 0);
	bittree_exit(&tree);
	standin_alloc_fails = 0;
}

/*
 * Setters post work and set its bit; the one searcher clears a bit and takes all
 * that was posted. What was posted before a search began is found by it.
 */
#define SETTERS		3
#define POSTS		400000u
#define PLACES		96u
#define RACE_BITS	300000ULL

static struct {
	struct bittree tree;
	u64 place[PLACES];
	unsigned int posted[PLACES];
	unsigned int done[PLACES];	/* of these the set has returned */
	unsigned int taken[PLACES];
	unsigned int setters;
} work;

static void work_init(void)
{
	unsigned int i;

	memset(&work, 0, sizeof(work));
	assert_int_equal(bittree_init(&work.tree, RACE_BITS), 0);
	/* Few words, so that they empty all the time, far from each other. */
	for (i = 0; i < PLACES; i++)
		work.place[i] = i / 3 * 9001 % RACE_BITS + i % 3;
}

static void work_exit(void)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++)
		assert_int_equal(work.taken[i], work.posted[i]);
	assert_int_equal(bittree_next(&work.tree, 0), BITTREE_NONE);
	bittree_exit(&work.tree);
}

static void post(unsigned int place)
{
	__atomic_fetch_add(&work.posted[place], 1, __ATOMIC_SEQ_CST);
	bittree_set(&work.tree, work.place[place]);
	__atomic_fetch_add(&work.done[place], 1, __ATOMIC_SEQ_CST);
}

static unsigned int place_of(u64 bit)
{
	unsigned int place;

	for (place = 0; place < PLACES; place++)
		if (work.place[place] == bit)
			return place;
	fail();
	return 0;
}

static void take_all(void)
{
	unsigned int done[PLACES], place;
	u64 at = 0;

	for (place = 0; place < PLACES; place++)
		done[place] = __atomic_load_n(&work.done[place], __ATOMIC_SEQ_CST);
	while ((at = bittree_next(&work.tree, at)) != BITTREE_NONE) {
		place = place_of(at);
		bittree_clear(&work.tree, at);
		/* What comes from here on sets the bit again. */
		smp_mb__after_atomic();
		work.taken[place] = __atomic_load_n(&work.posted[place],
						    __ATOMIC_SEQ_CST);
		at++;
	}
	for (place = 0; place < PLACES; place++)
		assert_true((int)(work.taken[place] - done[place]) >= 0);
}

/*
 * Others come between, at each place where they can: setters, and, between the
 * steps of a setter, the searcher.
 */
static unsigned int races_left, race_depth;
static bool searching;

static void search(void)
{
	searching = true;
	take_all();
	searching = false;
}

static void race(void)
{
	u64 what;

	if (!races_left || race_depth == 3)
		return;
	what = random_below(8);
	if (what > 3)
		return;
	race_depth++;
	races_left--;
	if (what & 1)
		post(random_below(PLACES));
	if (what & 2 && !searching)
		search();
	race_depth--;
}

static void test_races(void **state)
{
	work_init();
	races_left = 2000000;
	while (races_left) {
		if (random_below(2))
			post(random_below(random_below(2) ? PLACES : 6));
		else
			search();
	}
	search();
	work_exit();
}

static void *setter(void *arg)
{
	u32 state = 12345 + (uintptr_t)arg, n;

	for (n = 0; n < POSTS; n++) {
		state = state * 1664525 + 1013904223;
		post((state >> 16) % PLACES);
		/* Let the searcher run dry now and then. */
		if (!(state >> 24))
			sched_yield();
	}
	__atomic_fetch_sub(&work.setters, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[SETTERS];
	unsigned int i;

	work_init();
	work.setters = SETTERS;
	for (i = 0; i < SETTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, setter,
						(void *)(uintptr_t)i), 0);
	while (__atomic_load_n(&work.setters, __ATOMIC_SEQ_CST))
		take_all();
	for (i = 0; i < SETTERS; i++)
		pthread_join(threads[i], NULL);
	take_all();
	work_exit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_stale_summaries),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests_name("bittree", tests, NULL, NULL);
}
