/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_COMPILER_H
#define STANDIN_LINUX_COMPILER_H

/* A test may have something happen at all places where others may come between. */
#ifndef standin_race
#define standin_race()	((void)0)
#endif

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Relaxed atomics, so that the thread sanitizer knows what is meant. */
#define READ_ONCE(x)	__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value) \
	__atomic_store_n(&(x), (value), __ATOMIC_RELAXED)

#define smp_mb()			__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()			__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb()			__atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_mb__before_atomic()		smp_mb()
#define smp_mb__after_atomic()		do { smp_mb(); standin_race(); } while (0)

#endif
