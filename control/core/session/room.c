/* SPDX-License-Identifier: BSD-3-Clause */
/* A CREATE that waits for room: until the nodes of pinned replicas have answered (store/replica.h).
 */
#include <errno.h>
#include "room.h"

void room_carve(struct sessions *s, struct arena *a)
{
	pool_carve(&s->rooms, a, sizeof(struct room), REPLICA_ROOMS);
}

void room_retry(struct control *c)
{
	list_each(l, after, &c->session->sessions.roomless)
	{
		struct room *room = list_item(l, struct room, link);
		struct wait *w = waits_of(c, room->wait, room->number);

		if (w && !c->table)
			waits_no_directory(c, w);
		else if (w &&
			 !session_create_retry(c, w, &room->request, c->now_ns >= room->until_ns))
			continue;
		list_remove(l);
		pool_give(&c->session->sessions.rooms, room);
	}
}

void room_await(struct control *c, struct session *s, const struct session_request *r)
{
	struct wait *w = waits_start(c, s, r);
	struct room *room = w ? pool_take(&c->session->sessions.rooms) : NULL;

	if (!w)
		return;
	if (!room) {
		if (!session_create_retry(c, w, r, true))
			waits_end(c, w, -ENOSPC, "too many creates wait for room: try again later");
		return;
	}
	room->wait = w;
	room->number = w->number;
	room->until_ns = c->now_ns + REPLICA_ROOM_NS;
	room->request = *r;
	list_append(&c->session->sessions.roomless, &room->link);
}
