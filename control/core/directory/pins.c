/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned replicas (store/replica.h): the directory names them, appoints another one when they are
 * lost, and lets an appointed one give its pin back. A copy that the directory did not appoint
 * keeps its pin as long as its node has it, whatever any owner says.
 */
#include "directory.h"

/* Another copy that is pinned and was not appointed. Its node is there, and has announced all that
 * it has. */
static const struct copy *directory_first(const struct directory *d, const struct copy *own)
{
	list_each(l, after, &own->entry->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);
		const struct directory_node *n = &d->nodes[copy->node];

		if (copy != own && copy->pinned && !copy->appointed &&
		    copy->state == MESSAGE_COPY_COMPLETE && n->up && !n->dead && !n->silent &&
		    !n->away)
			return copy;
	}
	return NULL;
}

/* Whether the appointed copy may give its pin back: not if that leaves a small value on one
 * machine.
 */
static bool directory_spares(const struct directory *d, struct copy *own)
{
	bool pinned = own->pinned, alone;

	own->pinned = false;
	alone = directory_alone(d, own->entry);
	own->pinned = pinned;
	return own->appointed && !own->entry->keeping && !alone;
}

/* The holder of an appointed copy asks whether the pin may go. If so, the copy does not count as
 * pinned here from now on. Its holder gives the pin up later, or announces that it keeps it. */
static uint32_t directory_give_back(const struct directory *d, struct copy *own)
{
	const struct copy *first = directory_first(d, own);

	if (first && directory_spares(d, own)) {
		own->pinned = false;
		return first->node + 1;
	}
	return own->pinned ? own->node + 1 : 0;
}

uint32_t directory_pinned(const struct directory *d, struct entry *e, uint32_t requester,
			  const struct message_have *have)
{
	struct copy *own = directory_copy(e, requester);

	if (have->appointed && !have->pinned)
		return directory_give_back(d, own);
	if (own->pinned && own->appointed)
		return requester + 1; /* others have been told so: its answer may have been lost */
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->pinned && d->nodes[copy->node].up)
			return copy->node + 1;
	}
	if (!have->pin_lost || own->state != MESSAGE_COPY_COMPLETE)
		return 0;
	own->pinned = own->appointed = true;
	return requester + 1;
}
