/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generations follow the creators' clocks. One from far in the future would win over all that is
 * put in the years to come, and a deleted one would keep its id from being put again. So what
 * another node wants to make or to have deleted is refused when its generation is more than an hour
 * ahead of the clock here, and none of those raises our own. What exists already is let in whatever
 * its generation: a node whose clock was set back loses no object.
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
	control_log(c, CONTROL_LOG_WARNING, &t);
}

bool clock_refuses(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	uint64_t generation = clock_generation(m);
	struct text t = {.length = 0};

	if (n == c->cluster->self || generation <= control_generation_max(c))
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
