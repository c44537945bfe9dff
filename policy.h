/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policy of dm-ssdcache: what to let in, how much to fetch, what to evict.
 *
 * Pure: no bio, no sleep, no device, integers only. It is told of accesses and
 * asked for decisions. policy_hit() and policy_written() may be called by all
 * CPUs at once without a lock; for all other functions the caller holds one lock
 * of his choice. Compiles in user space.
 */
#ifndef SSDCACHE_POLICY_H
#define SSDCACHE_POLICY_H

#include <linux/types.h>

#include "format.h"

#define POLICY_STREAMS	32u

struct policy_stream {
	u64 next;	/* sector after its last access; 0 if unused */
	u64 length;	/* sectors */
	u64 age;
};

struct policy {
	u32 nr_slots;
	u32 hand;		/* of the clock */
	u8 *frequency;		/* of each slot, 0 if free */
	u64 seq_cutoff;		/* sectors; 0: streams are let in */
	bool learning;		/* not yet been full */
	u64 clock;
	struct policy_stream streams[POLICY_STREAMS];
};

#define POLICY_FREQUENCY_MAX	3u

int policy_init(struct policy *policy, u32 nr_slots, u64 seq_cutoff);
void policy_exit(struct policy *policy);
void policy_reset(struct policy *policy);

/**
 * policy_hit() - a block of a cached line was used
 * @policy: the policy
 * @slot: where the line is
 *
 * Lost updates cost nothing but warmth. Context: any, no lock.
 */
static inline void policy_hit(struct policy *policy, slot_t slot)
{
	u8 *frequency = &policy->frequency[slot_nr(slot)];
	u8 now = READ_ONCE(*frequency);

	if (now < POLICY_FREQUENCY_MAX)
		WRITE_ONCE(*frequency, now + 1);
}

bool policy_is_stream(struct policy *policy, u64 sector, u64 count);
void policy_insert(struct policy *policy, slot_t slot);
void policy_remove(struct policy *policy, slot_t slot);
slot_t policy_victim(struct policy *policy);
u8 policy_hint(const struct policy *policy, slot_t slot);
void policy_restore(struct policy *policy, slot_t slot, u8 hint);
u64 policy_fill_size(struct policy *policy, line_t line, u64 missed,
		     u64 line_blocks);

#endif
