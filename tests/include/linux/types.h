/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-ins for kernel headers, for the pure parts in user space. */
#ifndef STANDIN_LINUX_TYPES_H
#define STANDIN_LINUX_TYPES_H

/* What the C library's own headers want of this name. */
#include_next <linux/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef __u8 u8;
typedef __s8 s8;
typedef __u16 u16;
typedef __s16 s16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef u64 sector_t;

#ifndef __force
#define __force
#endif
#ifndef __bitwise
#define __bitwise
#endif
#define __percpu
#define __packed			__attribute__((__packed__))
#ifndef __always_inline
#define __always_inline			inline __attribute__((__always_inline__))
#endif
#define ____cacheline_aligned_in_smp	__attribute__((__aligned__(64)))

struct list_head {
	struct list_head *next, *prev;
};

#endif
