/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_BITOPS_H
#define STANDIN_LINUX_BITOPS_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/types.h>

#define hweight64(n)		((unsigned int)__builtin_popcountll(n))
#define hweight32(n)		((unsigned int)__builtin_popcount(n))
#define __ffs(n)		((unsigned long)__builtin_ctzl(n))
#define __ffs64(n)		((unsigned long)__builtin_ctzll(n))
#define __fls(n)		(63UL - __builtin_clzl(n))
#define fls64(n)		((n) ? 64 - __builtin_clzll(n) : 0)

/* Atomic, but in no order with anything, as the kernel's. */
static inline void set_bit(unsigned long nr, unsigned long *map)
{
	standin_race();
	__atomic_fetch_or(&map[BIT_WORD(nr)], BIT_MASK(nr), __ATOMIC_RELAXED);
}

static inline void clear_bit(unsigned long nr, unsigned long *map)
{
	standin_race();
	__atomic_fetch_and(&map[BIT_WORD(nr)], ~BIT_MASK(nr), __ATOMIC_RELAXED);
}

static inline bool test_bit(unsigned long nr, const unsigned long *map)
{
	return READ_ONCE(map[BIT_WORD(nr)]) & BIT_MASK(nr);
}

static inline void __set_bit(unsigned long nr, unsigned long *map)
{
	map[BIT_WORD(nr)] |= BIT_MASK(nr);
}

static inline void __clear_bit(unsigned long nr, unsigned long *map)
{
	map[BIT_WORD(nr)] &= ~BIT_MASK(nr);
}

#endif
