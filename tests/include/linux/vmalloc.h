/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_VMALLOC_H
#define STANDIN_LINUX_VMALLOC_H

#include <stdlib.h>

#include <linux/overflow.h>

/* A test sets how many allocations from now the first one fails; 0: none. */
__attribute__((__weak__)) unsigned int standin_alloc_fails;

static inline bool standin_alloc_failed(void)
{
	return standin_alloc_fails && !--standin_alloc_fails;
}

/* More than this no test wants to have touched. */
#define STANDIN_ALLOC_MAX	(1ULL << 36)

static inline void *vzalloc(size_t bytes)
{
	if (standin_alloc_failed() || bytes > STANDIN_ALLOC_MAX)
		return NULL;
	return calloc(1, bytes ? bytes : 1);
}

#define vmalloc(bytes)	vzalloc(bytes)

static inline void vfree(const void *memory)
{
	free((void *)memory);
}

#endif
