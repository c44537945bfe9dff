/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_LOG2_H
#define STANDIN_LINUX_LOG2_H

#include <linux/types.h>

static inline int ilog2(u64 n)
{
	return 63 - __builtin_clzll(n);
}

static inline bool is_power_of_2(u64 n)
{
	return n && !(n & (n - 1));
}

static inline u64 roundup_pow_of_two(u64 n)
{
	return n > 1 ? 2ULL << ilog2(n - 1) : 1;
}

static inline u64 rounddown_pow_of_two(u64 n)
{
	return 1ULL << ilog2(n);
}

#endif
