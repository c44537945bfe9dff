// SPDX-License-Identifier: GPL-2.0
/*
 * Policy of dm-ssdcache, see policy.h: a clock with a small frequency for each
 * line, and a table of sequential streams.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "policy.h"

/**
 * policy_init() - allocates a policy without lines
 * @policy: policy_exit() frees it, after an error too
 * @nr_slots: of the cache
 * @seq_cutoff: length in sectors over which a stream is kept out, 0 for none
 *
 * Return: 0 or -ENOMEM.
 */
int policy_init(struct policy *policy, u32 nr_slots, u64 seq_cutoff)
{
	policy->nr_slots = nr_slots;
	policy->seq_cutoff = seq_cutoff;
	policy->frequency = vzalloc(nr_slots);
	if (!policy->frequency)
		return -ENOMEM;
	policy_reset(policy);
	return 0;
}

/**
 * policy_exit() - frees what policy_init() allocated
 * @policy: nobody uses it any more
 */
void policy_exit(struct policy *policy)
{
	vfree(policy->frequency);
	policy->frequency = NULL;
}

/**
 * policy_reset() - forgets all lines
 * @policy: nobody else uses it
 */
void policy_reset(struct policy *policy)
{
	memset(policy->frequency, 0, policy->nr_slots);
	memset(policy->streams, 0, sizeof(policy->streams));
	policy->hand = 0;
	policy->learning = true;
}

/**
 * policy_is_stream() - whether an access belongs to a stream to be kept out
 * @policy: the policy
 * @sector: its first sector
 * @count: number of sectors
 *
 * To be called once for each miss.
 */
bool policy_is_stream(struct policy *policy, u64 sector, u64 count)
{
	struct policy_stream *oldest = &policy->streams[0];
	unsigned int i;

	policy->clock++;
	for (i = 0; i < POLICY_STREAMS; i++) {
		struct policy_stream *stream = &policy->streams[i];

		if (stream->next == sector && sector) {
			stream->next += count;
			stream->length += count;
			stream->age = policy->clock;
			return policy->seq_cutoff &&
			       stream->length > policy->seq_cutoff;
		}
		if (stream->age < oldest->age)
			oldest = stream;
	}
	oldest->next = sector + count;
	oldest->length = count;
	oldest->age = policy->clock;
	return policy->seq_cutoff && count > policy->seq_cutoff;
}

/**
 * policy_insert() - a line was put into a slot
 * @policy: the policy
 * @slot: which was free
 */
void policy_insert(struct policy *policy, slot_t slot)
{
	WRITE_ONCE(policy->frequency[slot_nr(slot)], 1);
}

/**
 * policy_remove() - a line left its slot
 * @policy: the policy
 * @slot: which is free now
 */
void policy_remove(struct policy *policy, slot_t slot)
{
	WRITE_ONCE(policy->frequency[slot_nr(slot)], 0);
}

/**
 * policy_victim() - the slot that should be emptied next
 * @policy: the policy
 *
 * The caller may find that it can not be, and ask again: each call moves on.
 * Work is bounded by one step of the hand.
 *
 * Return: a slot, or NO_SLOT if this step met none.
 */
slot_t policy_victim(struct policy *policy)
{
	u32 nr = policy->hand;
	u8 now = READ_ONCE(policy->frequency[nr]);

	policy->learning = false;
	policy->hand = nr + 1 == policy->nr_slots ? 0 : nr + 1;
	if (now == 1)
		return to_slot(nr);
	if (now)
		WRITE_ONCE(policy->frequency[nr], now - 1);
	return NO_SLOT;
}

/**
 * policy_hint() - what is worth keeping of a line over a restart
 * @policy: the policy
 * @slot: of the line
 */
u8 policy_hint(const struct policy *policy, slot_t slot)
{
	return READ_ONCE(policy->frequency[slot_nr(slot)]);
}

/**
 * policy_restore() - a line that was there before the restart
 * @policy: the policy
 * @slot: of the line
 * @hint: from policy_hint(), or damaged: any value is harmless
 */
void policy_restore(struct policy *policy, slot_t slot, u8 hint)
{
	policy->frequency[slot_nr(slot)] = clamp_t(u8, hint, 1,
						   POLICY_FREQUENCY_MAX);
}

/**
 * policy_fill_size() - what a read miss should fetch
 * @policy: the policy
 * @line: which was missed
 * @missed: the blocks that were asked for and are not valid
 * @line_blocks: the blocks that the line has
 *
 * Return: mask of blocks, at least @missed; 0 if nothing should be.
 */
u64 policy_fill_size(struct policy *policy, line_t line, u64 missed,
		     u64 line_blocks)
{
	return missed & line_blocks;
}
