/* SPDX-License-Identifier: BSD-3-Clause */
#include "substreams.h"
#include <errno.h>
#include "room.h"

/* The chunks from one on in the same lane; where that begins, and whose it is. */
static uint32_t strand_left(const struct strand_cut *cut, uint32_t chunk, uint32_t *base,
			    unsigned *worker)
{
	uint32_t lane = lane_of(cut->chunks, cut->lanes, chunk);

	*base = lane_first(cut->chunks, cut->lanes, lane);
	*worker = lane_worker(&cut->id, cut->workers, lane);
	return lane_first(cut->chunks, cut->lanes, lane + 1) - chunk;
}

struct strand strand_at(const struct strand_range *r, uint32_t chunk)
{
	struct strand s = {.first = chunk, .peer_first = r->peer_first + (chunk - r->first)};
	uint32_t here = strand_left(&r->here, s.first, &s.base, &s.worker);
	uint32_t there = strand_left(&r->there, s.peer_first, &s.peer_base, &s.peer_worker);
	uint32_t left = r->end - chunk;

	left = here < left ? here : left;
	s.end = chunk + (there < left ? there : left);
	return s;
}

bool strands_greeted(struct control *c, struct node *n)
{
	if (c->attached && n->state != NODE_UP) /* it comes with its HELLO */
		peers_link(c, n, 0, 0);
	return c->attached && n->state == NODE_UP;
}

static const struct link *strand_link(struct control *c, struct node *n, const struct strand *s)
{
	const struct link *l = peers_link(c, n, s->worker, s->peer_worker);

	return l && l->state == LINK_UP ? l : NULL;
}

bool strands_linked(struct control *c, struct node *n, const struct strand_range *r)
{
	bool up = true;
	struct strand s;

	for (uint32_t at = r->first; at < r->end; at = s.end) {
		s = strand_at(r, at);
		up &= strand_link(c, n, &s) != NULL;
	}
	return up;
}

bool strands_open(struct control *c, struct node *n, const struct strand_range *r,
		  struct stage *head, const uint64_t *map, struct part *part, struct list *edges)
{
	struct strand s;

	for (uint32_t at = r->first; at < r->end; at = s.end) {
		const struct link *l;
		struct edge *e;

		s = strand_at(r, at);
		if (chunks_missing(map, s.first, s.end) == 0)
			continue;
		l = strand_link(c, n, &s);
		e = l ? buffers_in(c, head, l->conn, &s, part) : NULL;
		if (e == NULL)
			return false;
		list_append(edges, &e->of_owner);
	}
	return true;
}

static void strands_name_some(const struct list *edges, const uint64_t *map, bool all,
			      struct message_stream *m)
{
	list_each(l, after, edges)
	{
		const struct edge *e = list_item(l, struct edge, of_owner);

		if (all || chunks_missing(map, e->first, e->end) > 0)
			m->strand[m->strands++] =
				(struct message_strand){.stream = e->handle,
							.worker = e->stage->worker,
							.first = e->peer_first,
							.count = e->end - e->first};
	}
}

void strands_name(const struct list *edges, const uint64_t *map, struct message_stream *m)
{
	strands_name_some(edges, map, !m->check, m);
	if (m->strands == 0)
		strands_name_some(edges, map, true, m);
}

bool strands_recut(const struct message_reply *r, uint32_t *lanes)
{
	if (r->status != -EXDEV || r->lanes == *lanes || r->lanes == 0 || r->lanes > LANES_MAX)
		return false;
	*lanes = r->lanes;
	return true;
}

void strands_drop(struct control *c, struct list *edges)
{
	list_each(l, after, edges)
	{
		list_remove(l);
		buffers_drop_edge(c, list_item(l, struct edge, of_owner));
	}
}

void strands_forget(struct list *edges)
{
	list_each(l, after, edges)
	{
		list_remove(l);
	}
}
