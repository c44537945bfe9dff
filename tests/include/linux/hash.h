/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_HASH_H
#define STANDIN_LINUX_HASH_H

#include <linux/types.h>

static inline u32 hash_64(u64 value, unsigned int bits)
{
	return value * 0x61C8864680B583EBull >> (64 - bits);
}

static inline u32 hash_32(u32 value, unsigned int bits)
{
	return value * 0x61C88647u >> (32 - bits);
}

#endif
