/* SPDX-License-Identifier: BSD-3-Clause */
/* A CREATE that waits for room: until the nodes of pinned replicas have answered (store/replica.h).
 */
#include <errno.h>
#include "state.h"

void create_wait_carve(struct sessions *s, struct arena *a)
{
	pool_carve(&s->create_waits, a, sizeof(struct create_wait), CREATE_WAITS_MAX);
}

void create_wait_retry(struct control *c)
{
	list_each(l, after, &c->session->sessions.creates)
	{
		struct create_wait *e = list_item(l, struct create_wait, link);
		struct wait *w = waits_of(c, e->wait, e->number);

		if (w && !c->table)
			waits_no_directory(c, w);
		else if (w && !session_create_retry(c, w, &e->request, c->now_ns >= e->until_ns))
			continue;
		list_remove(l);
		pool_give(&c->session->sessions.create_waits, e);
	}
}

void create_wait_await(struct control *c, struct session *s, const struct session_request *r)
{
	struct wait *w = waits_start(c, s, r);
	struct create_wait *e = w ? pool_take(&c->session->sessions.create_waits) : NULL;

	if (!w)
		return;
	if (!e) {
		if (!session_create_retry(c, w, r, true))
			waits_end(c, w, -ENOSPC, "too many creates wait for room: try again later");
		return;
	}
	e->wait = w;
	e->number = w->number;
	e->until_ns = c->now_ns + REPLICA_ROOM_NS;
	e->request = *r;
	list_append(&c->session->sessions.creates, &e->link);
}
