/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A doubly linked intrusive list. An element on no list points to itself. The owner of the head
 * owns the list; no allocation.
 */
#ifndef SARISSA_DATAPLANE_CORE_LIST_H
#define SARISSA_DATAPLANE_CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

#define list_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))
#define list_each(link, head)                                                                    \
	for (struct list * (link) = (head)->next, *link##_next = (link)->next; (link) != (head); \
	     (link) = link##_next, link##_next = (link)->next)

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_remove(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

static inline void list_append(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

/* Appends unless it is on a list already. */
static inline void list_want(struct list *head, struct list *l)
{
	if (list_empty(l))
		list_append(head, l);
}

#endif
