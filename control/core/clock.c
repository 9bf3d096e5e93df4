/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds on generations, which come from the creators' clocks. A generation of the far future would
 * win over all later puts, and its tombstone would block the id. So a create or a delete with a
 * generation more than an hour ahead of this node's clock is refused, and does not raise the
 * generations of this node. Existing objects are accepted with any generation: a node whose clock
 * was set back loses no object. Called by dispatch.c.
 */
#include <errno.h>
#include "state.h"

static uint64_t clock_generation(const struct message *m)
{
	if (m->kind == MESSAGE_HAVE && m->have.create)
		return m->have.generation;
	return m->kind == MESSAGE_TOMBSTONE ? m->tombstone.generation : 0;
}

static void clock_say(struct control *c, struct node *n, const struct text *why)
{
	struct text t = *why;

	if (n->ahead)
		return;
	n->ahead = true;
	env_log(c, CONTROL_LOG_WARNING, &t);
}

bool clock_refuses(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	uint64_t generation = clock_generation(m);
	struct text t = {.length = 0};

	if (n == c->cluster->self || generation <= env_generation_max(c))
		return false;
	c->counters.generations_refused++;
	text_add(&t, "the clock of node ");
	text_add_number(&t, n->number);
	text_add(&t, " is ");
	text_add_number(&t, (generation - c->epoch_ns - c->now_ns) / UINT64_C(1000000000));
	text_add(&t, " s ahead of that of node ");
	text_add_number(&t, c->cluster->self->number);
	text_add(&t, ": set both right, and start control again");
	clock_say(c, n, &t);
	answer.reply.status = -ERANGE;
	memcpy(answer.reply.text, t.bytes, strnlen(t.bytes, MESSAGE_TEXT_MAX));
	peers_send(c, n, &answer);
	return true;
}
