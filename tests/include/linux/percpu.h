/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_PERCPU_H
#define STANDIN_LINUX_PERCPU_H

#include <linux/vmalloc.h>

/* Two CPUs, of which the first does all the work. */
#define STANDIN_CPUS	2

#define alloc_percpu(type)	((type *)vzalloc(STANDIN_CPUS * sizeof(type)))
#define free_percpu(ptr)	vfree(ptr)
#define per_cpu_ptr(ptr, cpu)	(&(ptr)[cpu])
#define this_cpu_ptr(ptr)	per_cpu_ptr(ptr, 0)
#define for_each_possible_cpu(cpu) \
	for ((cpu) = 0; (cpu) < STANDIN_CPUS; (cpu)++)

#define this_cpu_add(field, value) \
	((void)__atomic_fetch_add(&(field), (value), __ATOMIC_RELAXED))
#define this_cpu_sub(field, value) \
	((void)__atomic_fetch_sub(&(field), (value), __ATOMIC_RELAXED))
#define this_cpu_inc(field)	this_cpu_add(field, 1)

#endif
