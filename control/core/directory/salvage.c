/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects without a complete copy. While a node with a complete copy is a member, reachable or not,
 * receivers wait for it. When the members agree that it is dead, receivers are told
 * (GOT_INCOMPLETE), and take a chunk inventory (transfer/salvage.c). The directory names the
 * holders of parts to them, one after the other (GET_PIECE).
 */
#include <errno.h>
#include "directory.h"

bool directory_incomplete(const struct directory *d, const struct entry *e)
{
	if (e->generation == 0 || e->has_value || e->reserved)
		return false;
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->state != MESSAGE_COPY_PARTIAL && !d->nodes[copy->node].dead)
			return false;
	}
	return d->out.settled(d->out.arg, &e->by_id.id);
}

/* The holder with the least node number above `after`, other than the requester. */
static uint32_t directory_next_piece(const struct entry *e, uint32_t requester, uint32_t after)
{
	uint32_t best = MESSAGE_NODE_NONE;

	list_each(l, next, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->node == requester || (after != MESSAGE_NODE_NONE && copy->node <= after))
			continue;
		if (copy->state == MESSAGE_COPY_PARTIAL && copy->node < best)
			best = copy->node;
	}
	return best;
}

void directory_get_piece(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_find(d, &m->get.id);
	struct message answer;

	if (!e || e->generation != m->get.generation || !directory_incomplete(d, e)) {
		directory_get_failed(d, node, m->request, &m->get.id, -EAGAIN, "");
		return;
	}
	directory_got(e, m->request, MESSAGE_GOT_PIECE, &answer);
	answer.got.holder = directory_next_piece(e, node, m->get.failed);
	answer.got.departed = e->departed;
	d->out.answer(d->out.arg, node, &answer);
}
