/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_KERNEL_H
#define STANDIN_LINUX_KERNEL_H

#include_next <linux/kernel.h>

#include <assert.h>
#include <endian.h>

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/types.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define __pick(type, x, op, y) ({	\
	type __x = (x);			\
	type __y = (y);			\
	__x op __y ? __x : __y; })

#define min_t(type, x, y)	__pick(type, x, <, y)
#define max_t(type, x, y)	__pick(type, x, >, y)
/* As strict as the kernel's: both must be of one type. */
#define __same_type(x, y) \
	__builtin_types_compatible_p(__typeof__((x) + 0), __typeof__((y) + 0))
#define min(x, y) ({						\
	_Static_assert(__same_type(x, y), "min() of two types");	\
	min_t(__typeof__((x) + 0), x, y); })
#define max(x, y) ({						\
	_Static_assert(__same_type(x, y), "max() of two types");	\
	max_t(__typeof__((x) + 0), x, y); })
#define clamp_t(type, x, low, high)	min_t(type, max_t(type, x, low), high)
#define clamp(x, low, high)		min(max(x, low), high)

#define swap(a, b) do {			\
	__typeof__(a) __tmp = (a);	\
	(a) = (b);			\
	(b) = __tmp;			\
} while (0)

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d)	div_u64((u64)(n) + (d) - 1, d)
/* To a power of two. */
#define round_down(x, y)	((x) & ~((__typeof__(x))(y) - 1))
#define round_up(x, y)		((((x) - 1) | ((__typeof__(x))(y) - 1)) + 1)

#define WARN_ON(condition)	({ assert(!(condition)); false; })
#define WARN_ON_ONCE(condition)	WARN_ON(condition)
#define BUILD_BUG_ON(condition) \
	_Static_assert(!(condition), "BUILD_BUG_ON(" #condition ")")

#define cpu_to_le16(x)	((__force __le16)htole16(x))
#define cpu_to_le32(x)	((__force __le32)htole32(x))
#define cpu_to_le64(x)	((__force __le64)htole64(x))
#define le16_to_cpu(x)	le16toh((__force u16)(x))
#define le32_to_cpu(x)	le32toh((__force u32)(x))
#define le64_to_cpu(x)	((u64)le64toh((__force u64)(x)))

#endif
