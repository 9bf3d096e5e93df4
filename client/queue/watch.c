/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A watch: one request, and a completion for each event that comes back. Events wait in mux until
 * they are polled; mux drops those that wait too long (SAR_EVENT_MISSED). Under the queue's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include "api/error.h"
#include "queue.h"

/* Control has ended it, which it does for a reason only. */
static void op_watch_ended(struct op *op, int status)
{
	op_finish(op, status < 0 ? status
				 : error_set(-EPROTO, "the node has ended the watch: use a library "
						      "and a node of one version"));
}

void op_watch_begin(struct op *op)
{
	op_new(op, SESSION_WATCH);
	op_request(op, op_watch_ended);
}

void op_watch_out(struct op *op)
{
	if (op->kind != SAR_OP_WATCH || op->request.op != SESSION_WATCH)
		return;
	op->watch.linked = true;
	op_list_add(&op->queue->watching, op);
}

void op_watch_in(struct op *op)
{
	if (op->kind != SAR_OP_WATCH || !op->watch.linked)
		return;
	op->watch.linked = false;
	op_list_remove(&op->queue->watching, op);
}

void op_watch_retry(struct op *op)
{
	if (op->kind == SAR_OP_WATCH)
		op->request.flags |= SESSION_FLAG_RETRY;
}

void op_watch_free(struct op *op)
{
	if (op->kind != SAR_OP_WATCH)
		return;
	free(op->watch.event);
	op->watch = (struct op_watch){0};
}

/* Takes what mux has, when all before is told. */
static void op_watch_take(struct op *op)
{
	void *items;
	if (op->watch.at < op->watch.count)
		return;
	if (!atomic_exchange(&op->watch.more, false))
		return;
	free(op->watch.event);
	op->watch.count = mux_items(&op->queue->s->mux, &op->call, &items);
	op->watch.event = items;
	op->watch.at = 0;
}

static void op_watch_describe(struct op *op, const struct session_object *o, sar_completion *out)
{
	*out = (sar_completion){.user_data = op->user_data,
				.op = op->kind,
				.flags = SAR_MORE,
				.event = o->flags / SESSION_OBJECT_EVENT,
				.value = o->size};
	memcpy(out->id.bytes, o->id.bytes, sizeof(out->id.bytes));
	words_add(&op->queue->words, out, o->name, sizeof(o->name) - 1);
}

unsigned op_watch_fill(struct op *op, sar_completion *out, unsigned room)
{
	unsigned count = 0;
	if (op->kind != SAR_OP_WATCH || op->parent)
		return 0;
	while (count < room) {
		op_watch_take(op);
		if (op->watch.at == op->watch.count)
			break;
		op_watch_describe(op, &op->watch.event[op->watch.at++], &out[count++]);
	}
	return count;
}

unsigned queue_watched(struct sar_queue *q, sar_completion *out, unsigned room)
{
	unsigned count = 0;
	for (struct op *op = q->watching.first; op && count < room; op = op->next)
		count += op_watch_fill(op, out + count, room - count);
	return count;
}

bool queue_watch_left(const struct sar_queue *q)
{
	for (const struct op *op = q->watching.first; op; op = op->next)
		if (op->watch.at < op->watch.count || atomic_load(&op->watch.more))
			return true;
	return false;
}
