/* SPDX-License-Identifier: BSD-3-Clause */
/* Intrusive doubly linked list. A zeroed node is not linked; a head is made with list_init. */
#ifndef SARISSA_CONTROL_CORE_BASE_LIST_H
#define SARISSA_CONTROL_CORE_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

#define list_item(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Walks a list; the current node may be removed inside. */
#define list_each(node, after, head)                                                  \
	for (struct list *node = (head)->next, *after = node->next; (node) != (head); \
	     (node) = (after), (after) = (node)->next)

static inline void list_init(struct list *head)
{
	head->prev = head->next = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline bool list_linked(const struct list *node)
{
	return node->next != NULL;
}

static inline void list_append(struct list *head, struct list *node)
{
	assert(head->next && head->prev->next == head);
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Does nothing when the node is not linked. */
static inline void list_remove(struct list *node)
{
	if (!node->next)
		return;
	assert(node->prev->next == node && node->next->prev == node);
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->prev = node->next = NULL;
}

static inline struct list *list_first(const struct list *head)
{
	return list_empty(head) ? NULL : head->next;
}

#endif
