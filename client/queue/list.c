/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of a queue's operations: those that are due at a time, and those with a number of the user.
 * queue.c and the files of the operations call it with the queue's lock held.
 */
#include <assert.h>
#include "deadline.h"
#include "queue.h"

void op_list_init(struct op_list *l)
{
	*l = (struct op_list){NULL, &l->first};
}

void op_list_add(struct op_list *l, struct op *op)
{
	assert(!op->link && !*l->last);
	op->next = NULL;
	op->link = l->last;
	*l->last = op;
	l->last = &op->next;
}

void op_list_remove(struct op_list *l, struct op *op)
{
	assert(op->link && *op->link == op);
	*op->link = op->next;
	if (op->next)
		op->next->link = op->link;
	else
		l->last = op->link;
	op->next = NULL;
	op->link = NULL;
}

/* ---- deadlines: a binary heap --------------------------------------------------------------- */

static void list_heap_set(struct sar_queue *q, unsigned at, struct op *op)
{
	assert(at >= 1 && at <= q->due);
	q->heap[at] = op;
	op->heap_at = at;
}

static void list_heap_up(struct sar_queue *q, struct op *op)
{
	unsigned at = op->heap_at;
	for (; at > 1 && q->heap[at / 2]->due_ns > op->due_ns; at /= 2)
		list_heap_set(q, at, q->heap[at / 2]);
	list_heap_set(q, at, op);
}

static void list_heap_down(struct sar_queue *q, struct op *op)
{
	unsigned at = op->heap_at;
	for (unsigned child; (child = 2 * at) <= q->due; at = child) {
		if (child < q->due && q->heap[child + 1]->due_ns < q->heap[child]->due_ns)
			child++;
		if (q->heap[child]->due_ns >= op->due_ns)
			break;
		list_heap_set(q, at, q->heap[child]);
	}
	list_heap_set(q, at, op);
}

void queue_due_not(struct sar_queue *q, struct op *op)
{
	if (op->heap_at == 0)
		return;
	assert(op->heap_at <= q->due && q->heap[op->heap_at] == op);
	struct op *last = q->heap[q->due--];
	if (last != op) {
		list_heap_set(q, op->heap_at, last);
		list_heap_up(q, last);
		list_heap_down(q, last);
	}
	op->heap_at = 0;
}

void queue_due(struct sar_queue *q, struct op *op, int64_t due_ns)
{
	queue_due_not(q, op);
	op->due_ns = due_ns;
	if (due_ns == DEADLINE_NEVER)
		return;
	assert(op->heap_at == 0);
	op->heap_at = ++q->due;
	list_heap_up(q, op);
}

/* ---- by user_data --------------------------------------------------------------------------- */

static struct op **list_user_bucket(const struct sar_queue *q, uint64_t user_data)
{
	/* Fibonacci hashing: Knuth, TAOCP 3, 6.4 */
	return &q->user[(user_data * 0x9e3779b97f4a7c15ull >> 32) & (q->users - 1)];
}

void queue_user_add(struct sar_queue *q, struct op *op)
{
	struct op **at = list_user_bucket(q, op->user_data);

	assert(!op->user_link);
	op->by_user = *at;
	if (*at)
		(*at)->user_link = &op->by_user;
	op->user_link = at;
	*at = op;
}

void queue_user_remove(struct op *op)
{
	if (!op->user_link)
		return;
	assert(*op->user_link == op);
	*op->user_link = op->by_user;
	if (op->by_user)
		op->by_user->user_link = op->user_link;
	op->user_link = NULL;
}

struct op *queue_user_find(struct sar_queue *q, struct op *after, uint64_t user_data)
{
	struct op *op = after ? after->by_user : *list_user_bucket(q, user_data);
	while (op && op->user_data != user_data)
		op = op->by_user;
	return op;
}
