/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_SPINLOCK_H
#define STANDIN_LINUX_SPINLOCK_H

#include <assert.h>
#include <pthread.h>

/* A lock that is taken twice, or freed by another thread, ends the test. */
typedef struct {
	pthread_mutex_t mutex;
} spinlock_t;

static inline void spin_lock_init(spinlock_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

static inline void spin_lock(spinlock_t *lock)
{
	int r = pthread_mutex_lock(&lock->mutex);

	assert(!r);
	(void)r;
}

static inline void spin_unlock(spinlock_t *lock)
{
	int r = pthread_mutex_unlock(&lock->mutex);

	assert(!r);
	(void)r;
}

#define spin_lock_irqsave(lock, flags) do {	\
	spin_lock(lock);			\
	(flags) = 1;				\
} while (0)

#define spin_unlock_irqrestore(lock, flags) do {	\
	assert((flags) == 1);				\
	spin_unlock(lock);				\
} while (0)

#define spin_lock_irq(lock)	spin_lock(lock)
#define spin_unlock_irq(lock)	spin_unlock(lock)
#define lockdep_assert_held(lock)	((void)(lock))

#endif
