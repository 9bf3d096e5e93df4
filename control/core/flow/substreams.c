/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "substreams.h"
#include <errno.h>
#include "state.h"

/* The number of chunks from `chunk` to the end of its lane; sets the lane's first chunk and worker.
 */
static uint32_t substream_left(const struct substream_cut *cut, uint32_t chunk, uint32_t *base,
			       unsigned *worker)
{
	uint32_t lane = lane_of(cut->chunks, cut->lanes, chunk);

	*base = lane_first(cut->chunks, cut->lanes, lane);
	*worker = lane_worker(&cut->id, cut->workers, lane);
	return lane_first(cut->chunks, cut->lanes, lane + 1) - chunk;
}

struct substream substream_at(const struct substream_range *r, uint32_t chunk)
{
	struct substream s = {.first = chunk, .peer_first = r->peer_first + (chunk - r->first)};
	uint32_t here = substream_left(&r->here, s.first, &s.base, &s.worker);
	uint32_t there = substream_left(&r->there, s.peer_first, &s.peer_base, &s.peer_worker);
	uint32_t left = r->end - chunk;

	left = here < left ? here : left;
	assert(chunk >= r->first && chunk < r->end && left > 0 && there > 0);
	s.end = chunk + (there < left ? there : left);
	return s;
}

bool substreams_greeted(struct control *c, struct node *n, uint64_t size, uint32_t *lanes)
{
	if (c->attached && n->state != NODE_UP) /* it comes with its HELLO */
		peers_link(c, n, 0, 0);
	if (!c->attached || n->state != NODE_UP)
		return false;
	if (*lanes == 0)
		*lanes = lane_count(size, n->workers);
	return true;
}

static const struct link *substream_link(struct control *c, struct node *n,
					 const struct substream *s)
{
	const struct link *l = peers_link(c, n, s->worker, s->peer_worker);

	return l && l->state == LINK_UP ? l : NULL;
}

bool substreams_linked(struct control *c, struct node *n, const struct substream_range *r)
{
	bool up = true;
	struct substream s;

	for (uint32_t at = r->first; at < r->end; at = s.end) {
		s = substream_at(r, at);
		up &= substream_link(c, n, &s) != NULL;
	}
	return up;
}

bool substreams_open(struct control *c, struct node *n, const struct substream_range *r,
		     struct stage *head, const uint64_t *map, struct part *part, struct list *edges)
{
	struct substream s;

	for (uint32_t at = r->first; at < r->end; at = s.end) {
		const struct link *l;
		struct edge *e;

		s = substream_at(r, at);
		if (chunks_missing(map, s.first, s.end) == 0)
			continue;
		l = substream_link(c, n, &s);
		e = l ? buffers_in(c, head, l->conn, &s, part) : NULL;
		if (!e)
			return false;
		list_append(edges, &e->of_owner);
	}
	return true;
}

static void substreams_name_some(const struct list *edges, const uint64_t *map, bool all,
				 struct message_stream *m)
{
	list_each(l, after, edges)
	{
		const struct edge *e = list_item(l, struct edge, of_owner);

		if (all || chunks_missing(map, e->first, e->end) > 0)
			m->substream[m->substreams++] =
				(struct message_substream){.stream = e->handle,
							   .worker = e->stage->worker,
							   .first = e->peer_first,
							   .count = e->end - e->first};
	}
}

void substreams_name(const struct list *edges, const uint64_t *map, struct message_stream *m)
{
	substreams_name_some(edges, map, !m->check, m);
	if (m->substreams == 0)
		substreams_name_some(edges, map, true, m);
}

bool substreams_recut(const struct message_reply *r, uint32_t *lanes)
{
	if (r->status != -EXDEV || r->lanes == *lanes || r->lanes == 0 || r->lanes > LANES_MAX)
		return false;
	*lanes = r->lanes;
	return true;
}

void substreams_drop(struct control *c, struct list *edges)
{
	list_each(l, after, edges)
	{
		list_remove(l);
		buffers_drop_edge(c, list_item(l, struct edge, of_owner));
	}
}

void substreams_forget(struct list *edges)
{
	list_each(l, after, edges)
	{
		list_remove(l);
	}
}
