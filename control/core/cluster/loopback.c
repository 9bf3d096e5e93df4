/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a node to itself: queued and handled later in the same turn, so that no handler runs
 * inside another. What a message points to is copied, because it may change before its turn comes.
 */
#include "state.h"
#include "loopback.h"

static uint8_t *loopback_data(struct control *c, const struct loopback *l)
{
	return c->cluster->loopback_data +
	       (size_t)pool_index(&c->cluster->loopback, l) * OBJECT_INLINE_MAX;
}

bool loopback_push(struct control *c, const struct message *m)
{
	struct loopback *l = pool_take(&c->cluster->loopback);

	if (!l) {
		c->counters.messages_lost++;
		return false;
	}
	message_copy(&l->message, m, loopback_data(c, l));
	list_append(&c->cluster->loopback_queue, &l->link);
	return true;
}

struct loopback *loopback_pop(struct control *c)
{
	struct list *first = list_first(&c->cluster->loopback_queue);

	if (!first)
		return NULL;
	list_remove(first);
	return list_item(first, struct loopback, link);
}
