/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_LIST_H
#define STANDIN_LINUX_LIST_H

#include <linux/kernel.h>

#define LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define LIST_HEAD(name)		struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	entry->next = head->next;
	entry->prev = head;
	head->next->prev = entry;
	head->next = entry;
}

static inline void list_add_tail(struct list_head *entry,
				 struct list_head *head)
{
	list_add(entry, head->prev);
}

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	entry->next = NULL;
	entry->prev = NULL;
}

static inline void list_del_init(struct list_head *entry)
{
	list_del(entry);
	INIT_LIST_HEAD(entry);
}

#define list_entry(ptr, type, member)	container_of(ptr, type, member)
#define list_first_entry(head, type, member) \
	list_entry((head)->next, type, member)

#define list_for_each_entry(at, head, member)				\
	for (at = list_entry((head)->next, __typeof__(*at), member);	\
	     &at->member != (head);					\
	     at = list_entry(at->member.next, __typeof__(*at), member))

#define list_for_each_entry_safe(at, after, head, member)		\
	for (at = list_entry((head)->next, __typeof__(*at), member),	\
	     after = list_entry(at->member.next, __typeof__(*at), member); \
	     &at->member != (head);					\
	     at = after,						\
	     after = list_entry(at->member.next, __typeof__(*at), member))

#endif
