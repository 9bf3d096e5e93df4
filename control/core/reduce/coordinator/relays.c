/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which receiver gets which segment from which node. Each segment has a tree over the slots,
 * counted from its root (planner/distribution.c). A receiver gets the segment from the nearest
 * ancestor that is a receiver too, and that passes on what it has so far; from the root, if there
 * is none, if the receiver has no slot, or while that ancestor is silent. Values are not passed on.
 *
 * A receiver keeps its slot for the whole generation, and is fed by lower slots only. So receivers
 * never wait for each other in a circle.
 *
 * All receivers withhold the target's last chunk until the commit; it comes from its root. After
 * the commit, a node with the whole target replaces a root that is lost or unreachable.
 */
#include "core/planner/segment.h"
#include "state.h"

enum { FEED_LEAVES = 5 /* doublings */ };

_Static_assert((int)NODES_MAX <= (int)GRAPH_SLOTS_MAX, "a set has a bit for each node");

static bool relays_in(const struct reduce_set *s, uint32_t i)
{
	return i < GRAPH_SLOTS_MAX && s->word[i / 64] >> i % 64 & 1;
}

static void relays_set(struct reduce_set *s, uint32_t i)
{
	if (i < GRAPH_SLOTS_MAX)
		s->word[i / 64] |= UINT64_C(1) << i % 64;
}

static void relays_unset(struct reduce_set *s, uint32_t i)
{
	s->word[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static bool relays_same(const struct reduce_set *a, const struct reduce_set *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The receivers by slot: as many entries as there are slots. */
struct relays_map {
	struct reduce_set there;
	struct reduce_receiver *at[GRAPH_SLOTS_MAX];
};

static uint32_t relays_slot(const struct reduce *r, uint32_t node)
{
	for (uint32_t i = 0; i < r->plan.graph.slots; i++)
		if (r->plan.run.slot[i].host == node)
			return i;
	return REDUCE_NONE;
}

static void relays_put(struct relays_map *map, uint32_t slot, struct reduce_receiver *g)
{
	map->at[slot] = g;
	relays_set(&map->there, slot);
}

static void relays_map(struct reduce *r, struct relays_map *map)
{
	memset(&map->there, 0, sizeof(map->there));
	memset(map->at, 0, sizeof(map->at[0]) * r->plan.graph.slots);
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (g->slot == REDUCE_NONE)
			g->slot = relays_slot(r, g->node);
		if (g->slot != REDUCE_NONE)
			relays_put(map, g->slot, g);
	}
}

/* The receiver that passes a segment on to `to`; NULL: its root does. */
static const struct reduce_receiver *relays_from(const struct reduce *r,
						 const struct relays_map *map,
						 const struct reduce_receiver *to, uint32_t stripe)
{
	const struct reduce_receiver *g;
	uint32_t slot;

	if (!r->plan.graph.feeder || to->slot == REDUCE_NONE ||
	    reduce_host(reduce_root(r, stripe)) == to->node)
		return NULL;
	slot = distribution_from(&r->plan.graph, stripe, to->slot, map->there.word);
	g = slot == GRAPH_NONE ? NULL : map->at[slot];
	return g && !relays_in(&to->left, g->slot) ? g : NULL;
}

void reduce_feed_leave(struct control *c, struct reduce_receiver *g, uint32_t node, bool silent)
{
	struct relays_map map;
	struct reduce_receiver *from = NULL;

	relays_map(g->reduce, &map);
	/* by the receiver's slot: the node may be the host of another one by now */
	for (uint32_t i = 0; i < g->reduce->plan.graph.slots; i++)
		if (map.at[i] && map.at[i]->node == node)
			from = map.at[i];
	if (!from)
		return;
	if (!silent)
		relays_set(&g->lost, from->slot);
	if (relays_in(&g->left, from->slot))
		return;
	if (relays_same(&g->left, &g->lost) || c->now_ns >= g->back_ns) /* one may never answer */
		g->back_ns = c->now_ns + (FEED_BACK_NS << g->leaves);
	g->leaves += g->leaves < FEED_LEAVES;
	relays_set(&g->left, from->slot);
	from->missed = from->dirty = true; /* its answer to COMBINE shows whether it is alive */
}

static bool relays_goes_back(const struct reduce *r, const struct relays_map *map,
			     struct reduce_receiver *g)
{
	bool back = false;

	for (uint32_t i = 0; i < r->plan.graph.slots; i++) {
		if (!map->at[i] || map->at[i]->missed || !relays_in(&g->left, i) ||
		    relays_in(&g->lost, i))
			continue;
		relays_unset(&g->left, i);
		back = true;
	}
	return back;
}

void reduce_feed_return(struct control *c, struct reduce *r)
{
	struct relays_map map;

	if (!r->plan.graph.feeder)
		return;
	relays_map(r, &map);
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (!g->done && !relays_same(&g->left, &g->lost) && c->now_ns >= g->back_ns)
			g->dirty |= relays_goes_back(r, &map, g);
	}
	reduce_receivers_tell(c, r);
}

void reduce_feed_avoid(struct reduce_receiver *g, uint32_t node)
{
	relays_set(&g->avoid, node);
	g->dirty |= g->reduce->out.finished;
}

/* Whether the root of a segment cannot feed the receiver. */
static bool relays_misses(const struct reduce *r, const struct reduce_receiver *to, uint32_t stripe)
{
	return !reduce_is(reduce_root(r, stripe), RUN_STARTED) ||
	       relays_in(&to->avoid, reduce_host(reduce_root(r, stripe)));
}

static bool relays_misses_any(const struct reduce *r, const struct reduce_receiver *to)
{
	for (uint32_t j = 0; j < r->plan.graph.segments; j++)
		if (relays_misses(r, to, j))
			return true;
	return false;
}

/* A node with the whole target: the same as before, if it still can feed; or REDUCE_NONE. */
static uint32_t relays_whole(struct control *c, struct reduce *r, const struct reduce_receiver *to,
			     uint32_t before)
{
	uint32_t found = REDUCE_NONE;

	list_each(l, after, &r->out.receivers)
	{
		const struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (g == to || !g->done || relays_in(&to->avoid, g->node) ||
		    !reduce_reachable(c, g->node))
			continue;
		if (found == REDUCE_NONE || g->node == before)
			found = g->node;
	}
	return found;
}

bool reduce_feed_choose(struct control *c, struct reduce *r, struct reduce_receiver *g)
{
	uint32_t before = g->whole;

	g->whole = REDUCE_NONE;
	if (r->out.finished && relays_misses_any(r, g)) {
		g->whole = relays_whole(c, r, g, before);
		if (g->whole == REDUCE_NONE) { /* no node is left: try all again */
			g->avoid = (struct reduce_set){{0}};
			if (relays_misses_any(r, g))
				g->whole = relays_whole(c, r, g, before);
		}
	}
	return g->whole != before;
}

static bool relays_is_fed(const struct reduce *r, const struct relays_map *map,
			  const struct reduce_receiver *g, const struct reduce_receiver *by)
{
	for (uint32_t j = 0; j < r->plan.graph.segments; j++)
		if (relays_from(r, map, g, j) == by)
			return true;
	return false;
}

void reduce_feed_changed(struct reduce *r, struct reduce_receiver *changed)
{
	struct relays_map map;

	if (!r->plan.graph.feeder)
		return;
	relays_map(r, &map);
	if (changed->slot == REDUCE_NONE)
		return;
	relays_put(&map, changed->slot, changed); /* also one that has left */
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (g == changed)
			continue;
		if (relays_in(&g->left,
			      changed->slot)) { /* a receiver that comes back has nothing */
			relays_set(&g->lost, changed->slot);
			g->dirty = true;
		}
		g->dirty |= relays_is_fed(r, &map, g, changed);
	}
}

static void relays_add(struct control *c, struct message_combine *m,
		       const struct message_part *part)
{
	c->coordinator->reduces.parts[m->count++] = *part;
}

/* Takes the same chunks from a node's copy of the target instead; REDUCE_NONE: leaves the part. */
static void relays_pass(const struct reduce *r, struct message_part *part, uint32_t from)
{
	if (from == REDUCE_NONE)
		return;
	part->id = r->by_id.id;
	part->generation = r->out.generation;
	part->node = from;
	part->first = part->to;
	part->size = r->from.size;
}

/* The last chunk of the segment comes from its root, or from the node with the whole target: takes
 * it out of the rest. */
static void relays_split(struct control *c, struct message_combine *m, struct message_part *rest,
			 const struct reduce *r, uint32_t whole)
{
	uint64_t bytes = segment_bytes(r->from.size, r->from.chunk_bytes, r->plan.graph.segments,
				       r->plan.graph.segments - 1);
	struct message_part last = *rest;

	rest->size = last.size = bytes;
	last.first = --rest->count;
	last.to += last.first;
	last.count = 1;
	relays_pass(r, &last, whole);
	relays_add(c, m, &last);
}

void reduce_feed_fill_message(struct control *c, struct call *call)
{
	const struct reduce_receiver *g = call->owner;
	struct message_combine *m = &call->message.combine;
	struct reduce *r = g->reduce;
	struct relays_map map;

	if (m->generation != r->out.generation)
		return; /* a COMBINE of the next generation follows: this one gets none of its parts
			 */
	relays_map(r, &map);
	for (uint32_t j = 0; j < r->plan.graph.segments; j++) {
		const struct reduce_vertex *root = reduce_root(r, j);
		const struct reduce_receiver *from = relays_from(r, &map, g, j);
		uint32_t whole = relays_misses(r, g, j) ? g->whole : REDUCE_NONE;
		struct message_part part = {
			.id = root->id, .generation = root->generation, .node = reduce_host(root)};

		if (!reduce_is(root, RUN_STARTED) && whole == REDUCE_NONE)
			continue;
		part.to = r->plan.graph.segment[j].first;
		part.count = r->plan.graph.segment[j].count;
		if (r->plan.graph.feeder && j == r->plan.graph.segments - 1)
			relays_split(c, m, &part, r, whole);
		relays_pass(r, &part, from ? from->node : whole);
		relays_add(c, m, &part);
	}
}
