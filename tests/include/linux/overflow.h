/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_OVERFLOW_H
#define STANDIN_LINUX_OVERFLOW_H

#include <linux/types.h>

static inline size_t array_size(size_t a, size_t b)
{
	size_t bytes;

	return __builtin_mul_overflow(a, b, &bytes) ? SIZE_MAX : bytes;
}

#define size_mul(a, b)	array_size(a, b)

#endif
