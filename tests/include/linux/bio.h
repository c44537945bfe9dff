/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_BIO_H
#define STANDIN_LINUX_BIO_H

#include <linux/types.h>

/* Just enough to be on a list. */
struct bio {
	struct bio *bi_next;
};

struct bio_list {
	struct bio *head;
	struct bio *tail;
};

#define BIO_EMPTY_LIST	{ NULL, NULL }

#define bio_list_for_each(bio, list) \
	for (bio = (list)->head; bio; bio = bio->bi_next)

static inline void bio_list_init(struct bio_list *list)
{
	list->head = NULL;
	list->tail = NULL;
}

static inline bool bio_list_empty(const struct bio_list *list)
{
	return !list->head;
}

static inline void bio_list_add(struct bio_list *list, struct bio *bio)
{
	bio->bi_next = NULL;
	if (list->tail)
		list->tail->bi_next = bio;
	else
		list->head = bio;
	list->tail = bio;
}

static inline void bio_list_merge(struct bio_list *list,
				  struct bio_list *more)
{
	if (!more->head)
		return;
	if (list->tail)
		list->tail->bi_next = more->head;
	else
		list->head = more->head;
	list->tail = more->tail;
}

static inline struct bio *bio_list_pop(struct bio_list *list)
{
	struct bio *bio = list->head;

	if (bio) {
		list->head = bio->bi_next;
		if (!list->head)
			list->tail = NULL;
		bio->bi_next = NULL;
	}
	return bio;
}

#endif
