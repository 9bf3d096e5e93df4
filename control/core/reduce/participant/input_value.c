/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts that come in messages. Control adds them up, or puts them side by side, instead of a
 * worker. In LINK a part is expected as a PUSH (push.h); if it does not come, it is pulled
 * (pull.h).
 */
#include <errno.h>
#include "internal/reduce_kernel.h"
#include "core/base/env.h"
#include "state.h"

/* A living node sends the bytes, or an answer without them, within PULL_KEEP_NS. */

enum { PART_PAUSES = 8 }; /* that double, between PULLs of an object that is still being built */

static struct message_pull input_value_range(const struct part *p)
{
	const struct participant *k = p->participant;
	uint64_t bytes = (uint64_t)p->count * k->chunk_bytes;
	uint64_t left = k->size - (uint64_t)p->to * k->chunk_bytes;

	return (struct message_pull){.id = p->id,
				     .generation = p->generation,
				     .first = (uint64_t)p->first * k->chunk_bytes,
				     .bytes = (uint32_t)(bytes < left ? bytes : left)};
}

/* The first value of a sum is copied, the others are added to it. */
static void input_value_add(struct control *c, const struct part *p, const uint8_t *value,
			    uint32_t bytes)
{
	struct participant *k = p->participant;
	uint8_t *at = c->memory + c->table->slot[k->slot].offset;

	if (k->sum.op == 0)
		memcpy(at + (uint64_t)p->to * k->chunk_bytes, value, bytes);
	else if (k->in == 0)
		memcpy(at, value, bytes);
	else
		reduce_combine(k->sum.op, k->sum.dtype, at, value, bytes);
	k->in += k->sum.op ? 1 : p->count;
	if (k->in < k->need)
		return;
	if (k->sum.scale > 1)
		reduce_scale(k->sum.dtype, at, k->sum.scale, (uint32_t)k->size);
	participant_done(c, k);
	pull_done(c, k);
	if (k->hidden)
		push_stripe(c, k);
}

bool input_value_accept(struct control *c, struct part *p, const struct message_pull *m)
{
	const struct message_pull range = input_value_range(p);

	if (p->participant->done || p->state > PART_REQUEST || m->first != range.first ||
	    m->bytes != range.bytes)
		return false;
	input_end(c, p); /* only the whole matters */
	if (p->node == c->cluster->self && p->participant->sum.op != 0)
		push_source(c, p);
	input_value_add(c, p, m->value, m->bytes);
	return true;
}

static bool input_value_pulled(struct control *c, struct call *call, const struct message *answer)
{
	struct part *p = call->owner;
	struct message_pull pulled = call->message.pull;
	int32_t status = answer ? answer->pull.status : -ETIMEDOUT;

	p->call = NULL;
	p->silent = false;
	if (status == 0) {
		pulled.value = answer->pull.value;
		pulled.bytes = answer->pull.bytes;
		if (input_value_accept(c, p, &pulled))
			return false;
		status = -EPROTO;
	}
	if (status == -EAGAIN) { /* it is being made */
		p->lost_ns = 0;
		p->attempts = p->attempts < PART_PAUSES ? p->attempts : PART_PAUSES;
	}
	if (status == -EAGAIN || status == -ENOENT || status == -ETIMEDOUT)
		input_later(c, p, status);
	else
		input_lost(c, p, status);
	return false;
}

static void input_value_ask(struct control *c, struct part *p)
{
	struct message m = {.kind = MESSAGE_PULL};

	p->state = PART_REQUEST;
	m.pull = input_value_range(p);
	p->call = rpc_start(c, p->node, &m, TABLE_SLOT_NONE, c->config.call_ns, input_value_pulled,
			    p);
	input_timer(c, p, p->call ? PART_SILENT_NS : env_backoff(c, 1));
}

static void input_value_start(struct control *c, struct part *p)
{
	if (p->participant->done)
		return;
	if (!p->participant->pushed || p->node == c->cluster->self || p->node->state != NODE_UP)
		input_value_ask(c, p);
	else
		input_timer(c, p, PUSH_KEEP_NS);
}

static void input_value_fire(struct control *c, struct part *p)
{
	if (!p->call) {
		input_value_ask(c, p);
	} else if (p->node->state == NODE_DOWN) {
		input_unask(c, p);
		input_later(c, p, -EHOSTUNREACH);
	} else {
		p->silent = true;
		participant_report(c, p->participant);
		input_timer(c, p, PART_SILENT_NS);
	}
}

const struct part_way part_value = {input_value_start, input_value_fire};
