// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of policy.c: short sequences whose answer is known, and what must
 * hold for any.
 *
 * sources: policy.c
 */
#include "unit.h"

#include <linux/errno.h>

#include "policy.h"

static struct policy policy;

static void begin(u32 nr_slots, u64 seq_cutoff)
{
	memset(&policy, 0, sizeof(policy));
	assert_int_equal(policy_init(&policy, nr_slots, seq_cutoff), 0);
}

static int end(void **state)
{
	policy_exit(&policy);
	return 0;
}

/* The next victim; how many steps of the hand it took is returned. */
static unsigned int next_victim(slot_t *victim)
{
	unsigned int steps = 0;

	do {
		/* Each line loses one a round: a bound for any state. */
		assert_true(steps++ <= policy.nr_slots * POLICY_FREQUENCY_MAX);
		*victim = policy_victim(&policy);
	} while (*victim == NO_SLOT);
	assert_true(slot_nr(*victim) < policy.nr_slots);
	return steps;
}

static void test_no_memory(void **state)
{
	memset(&policy, 0, sizeof(policy));
	standin_alloc_fails = 1;
	assert_int_equal(policy_init(&policy, 10, 0), -ENOMEM);
	standin_alloc_fails = 0;
	policy_exit(&policy);
	policy_exit(&policy);
}

static void test_empty_has_no_victim(void **state)
{
	unsigned int i;

	begin(10, 0);
	for (i = 0; i < 100; i++)
		assert_true(policy_victim(&policy) == NO_SLOT);
	/* Nor has one whose lines have all gone. */
	for (i = 0; i < 10; i++)
		policy_insert(&policy, to_slot(i));
	for (i = 0; i < 10; i++)
		policy_remove(&policy, to_slot(i));
	for (i = 0; i < 100; i++)
		assert_true(policy_victim(&policy) == NO_SLOT);
}

/* Lines used once go before those used again. */
static void test_used_again_stay(void **state)
{
	bool gone[64] = { false };
	slot_t victim;
	unsigned int i, n;

	begin(64, 0);
	for (i = 0; i < 64; i++)
		policy_insert(&policy, to_slot(i));
	for (n = 0; n < 3; n++)
		for (i = 0; i < 64; i += 4)
			policy_hit(&policy, to_slot(i));
	for (n = 0; n < 48; n++) {
		next_victim(&victim);
		assert_int_not_equal(slot_nr(victim) % 4, 0);
		assert_false(gone[slot_nr(victim)]);
		gone[slot_nr(victim)] = true;
		policy_remove(&policy, victim);
	}
	/* Then the others, sooner or later. */
	for (n = 0; n < 16; n++) {
		next_victim(&victim);
		assert_int_equal(slot_nr(victim) % 4, 0);
		policy_remove(&policy, victim);
	}
	assert_true(policy_victim(&policy) == NO_SLOT);
}

/* A victim that can not be evicted must not be all that is ever proposed. */
static void test_moves_on(void **state)
{
	unsigned int seen[16] = { 0 }, i, n;
	slot_t victim;

	begin(16, 0);
	for (i = 0; i < 16; i++)
		policy_insert(&policy, to_slot(i));
	for (n = 0; n < 16 * 8; n++) {
		next_victim(&victim);
		seen[slot_nr(victim)]++;
	}
	for (i = 0; i < 16; i++)
		assert_true(seen[i]);
}

/* Whatever happens: a cached line is proposed, a free slot never is. */
static void test_random(void **state)
{
	static bool used[300];
	unsigned int n, nr_used = 0;
	slot_t victim;
	u32 slot;

	begin(300, 2048);
	memset(used, 0, sizeof(used));
	for (n = 0; n < 200000; n++) {
		slot = random_below(300);
		switch (random_below(6)) {
		case 0:
			if (used[slot])
				break;
			policy_insert(&policy, to_slot(slot));
			used[slot] = true;
			nr_used++;
			break;
		case 1:
		case 2:
			if (used[slot])
				policy_hit(&policy, to_slot(slot));
			break;
		case 3:
			policy_is_stream(&policy, random_below(1ULL << 41),
					 1 + random_below(2048));
			break;
		case 4:
			if (nr_used < 200)
				break;
			next_victim(&victim);
			assert_true(used[slot_nr(victim)]);
			policy_remove(&policy, victim);
			used[slot_nr(victim)] = false;
			nr_used--;
			break;
		case 5:
			assert_int_equal(!!policy_hint(&policy, to_slot(slot)),
					 used[slot]);
			break;
		}
	}
}

/* What is kept over a restart leads to the same order of eviction. */
static void test_hints(void **state)
{
	struct policy restored = { 0 };
	slot_t a, b;
	unsigned int i, n;
	u32 steps_a, steps_b;

	begin(100, 0);
	assert_int_equal(policy_init(&restored, 100, 0), 0);
	for (i = 0; i < 100; i++) {
		policy_insert(&policy, to_slot(i));
		for (n = random_below(6); n; n--)
			policy_hit(&policy, to_slot(i));
	}
	for (i = 0; i < 100; i++)
		policy_restore(&restored, to_slot(i),
			       policy_hint(&policy, to_slot(i)));
	for (n = 0; n < 100; n++) {
		steps_a = next_victim(&a);
		swap(policy, restored);
		steps_b = next_victim(&b);
		policy_remove(&policy, b);
		swap(policy, restored);
		policy_remove(&policy, a);
		assert_int_equal(slot_nr(a), slot_nr(b));
		assert_int_equal(steps_a, steps_b);
	}
	/* Any byte may be on the SSD. */
	for (n = 0; n < 256; n++) {
		policy_restore(&policy, to_slot(n % 100), n);
		assert_true(policy_hint(&policy, to_slot(n % 100)));
	}
	for (n = 0; n < 100; n++) {
		next_victim(&a);
		policy_remove(&policy, a);
	}
	policy_exit(&restored);
}

static void test_reset(void **state)
{
	unsigned int i;

	begin(10, 64);
	for (i = 0; i < 10; i++)
		policy_insert(&policy, to_slot(i));
	policy_victim(&policy);
	policy_is_stream(&policy, 8, 64);
	policy_reset(&policy);
	for (i = 0; i < 10; i++)
		assert_int_equal(policy_hint(&policy, to_slot(i)), 0);
	for (i = 0; i < 20; i++)
		assert_true(policy_victim(&policy) == NO_SLOT);
	/* The stream is forgotten too. */
	assert_false(policy_is_stream(&policy, 72, 8));
}

static void test_streams(void **state)
{
	u64 at, i;

	/* 1 MiB: what goes on beyond that is kept out, all of it. */
	begin(10, 2048);
	for (at = 8000, i = 0; i < 40; i++, at += 256)
		assert_int_equal(policy_is_stream(&policy, at, 256), i >= 8);
	/* A jump begins anew. */
	assert_false(policy_is_stream(&policy, 1000000, 256));
	/* The one before is still known. */
	assert_true(policy_is_stream(&policy, at, 256));
	/* One access that is longer than the cutoff. */
	assert_true(policy_is_stream(&policy, 5000000, 2049));
	assert_false(policy_is_stream(&policy, 6000000, 2048));
	/* Past 2^32 sectors. */
	for (at = (1ULL << 40) - 256, i = 0; i < 40; i++, at += 256)
		assert_int_equal(policy_is_stream(&policy, at, 256), i >= 8);
}

static void test_many_streams(void **state)
{
	unsigned int n;
	u64 i;

	/* As many as are watched, taking turns. */
	begin(10, 2048);
	for (i = 0; i < 20; i++)
		for (n = 0; n < POLICY_STREAMS; n++)
			assert_int_equal(policy_is_stream(&policy,
							  (n + 1) * GIB + i * 256,
							  256), i >= 8);
	/* Random accesses are no streams. */
	for (i = 0; i < 10000; i++)
		assert_false(policy_is_stream(&policy, random_below(PIB), 8));
}

static void test_no_cutoff(void **state)
{
	u64 i;

	begin(10, 0);
	for (i = 0; i < 1000; i++)
		assert_false(policy_is_stream(&policy, 8 + i * 2048, 2048));
}

static void test_fill_size(void **state)
{
	u64 blocks, missed, fill;
	unsigned int n;

	begin(10, 2048);
	for (n = 0; n < 10000; n++) {
		blocks = blocks_mask(0, 1 + random_below(64));
		missed = random_u64() & blocks;
		fill = policy_fill_size(&policy, to_line(random_below(100)),
					missed, blocks);
		assert_int_equal(fill & ~blocks, 0);
		if (fill)
			assert_int_equal(missed & ~fill, 0);
	}
}

#define policy_test(test)	cmocka_unit_test_teardown(test, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
		policy_test(test_empty_has_no_victim),
		policy_test(test_used_again_stay),
		policy_test(test_moves_on),
		policy_test(test_random),
		policy_test(test_hints),
		policy_test(test_reset),
		policy_test(test_streams),
		policy_test(test_many_streams),
		policy_test(test_no_cutoff),
		policy_test(test_fill_size),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
