/* SPDX-License-Identifier: GPL-2.0 */
/* What the unit tests share. */
#ifndef SSDCACHE_UNIT_H
#define SSDCACHE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "format.h"

/* The same numbers in each run: a failure can be repeated. */
static u64 random_state = 88172645463325252ULL;

static inline u64 random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545F4914F6CDD1DULL;
}

static inline u64 random_below(u64 limit)
{
	return random_u64() % limit;
}

/* A superblock that super_decode() would accept. */
static inline void make_super(struct super *super, u32 line_sectors,
			      u64 ssd_sectors, u64 array_sectors)
{
	unsigned int i;

	memset(super, 0, sizeof(*super));
	super->seq = 1;
	super->line_sectors = line_sectors;
	super->array_sectors = array_sectors;
	super->journal_tail = 1;
	for (i = 0; i < sizeof(super->uuid); i++)
		super->uuid[i] = 0x10 + i;
	assert_int_equal(super_layout(super, ssd_sectors), 0);
}

#define KIB	2ULL		/* sectors */
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)
#define TIB	(1024 * GIB)
#define PIB	(1024 * TIB)

#endif
