/* SPDX-License-Identifier: BSD-3-Clause */
/* Who sits where: the tree of a reduce is made when all sources have answered once, and filled as
 * they come. */
#include <assert.h>
#include <errno.h>
#include "core/planner/reduce_stripe.h"
#include "core/planner/reduce_tree.h"
#include "core/state.h"

enum {
	/* the fewest of a stripe that is passed on chunk by chunk */
	REDUCE_STRIPE_CHUNKS = 16,
	REDUCE_STRIPE_CHUNKS_UNSEEN = 2, /* its last one is held back */
	REDUCE_STRIPES_UNSEEN = 16,	 /* each node is told of each stripe */
	REDUCE_DIRECT_BYTES = 128 << 10, /* the most that all send each other at once */
};

/* ---- filling -------------------------------------------------------------------------------- */

static void reduce_start(struct control *c, struct reduce *r, uint32_t i)
{
	struct reduce_cell *p = &r->cell[i];
	uint32_t parent = reduce_parent(r, i);

	if (p->combines && !p->started) {
		if (p->generation == 0)
			p->generation = reduce_generation(c, r);
		if (r->stripes == 1 && reduce_is_root(p))
			reduce_reserve(c, r, p->generation);
		p->started = p->dirty = true;
	}
	if (parent != REDUCE_NONE)
		r->cell[parent].dirty = true;
	list_each(l, after, &r->getters) list_item(l, struct reduce_getter, link)->dirty = true;
}

void reduce_resume(struct control *c, struct reduce *r, uint32_t i)
{
	const struct reduce_cell *p = &r->cell[i];

	if (p->combines && !p->started && reduce_seat_of(p)->has == reduce_seat_of(p)->wants)
		reduce_start(c, r, i);
}

static void reduce_assign(struct control *c, struct reduce *r, struct reduce_source *s,
			  uint32_t seat)
{
	struct reduce_seat *at = &r->seat[seat];

	s->seat = seat;
	s->absorbed = false;
	if (at->host == REDUCE_NONE)
		at->host = s->node;
	if (++at->has < at->wants)
		return;
	for (uint32_t j = 0; j < r->stripes; j++)
		reduce_start(c, r, j * r->seats + seat);
}

static bool reduce_open(const struct reduce *r, uint32_t seat)
{
	return r->seat[seat].has < r->seat[seat].wants;
}

/* The seat for something on that node: the root when that is meant for it, else the first in order
 * that is open. */
static uint32_t reduce_choose(const struct reduce *r, uint32_t node)
{
	const struct reduce_seat *root = &r->seat[r->root];

	if (r->stripes == 1 && node == r->top && reduce_open(r, r->root) &&
	    (root->host == REDUCE_NONE || root->host == node))
		return r->root;
	for (uint32_t i = 0; i < r->seats; i++)
		if (reduce_open(r, i))
			return i;
	return REDUCE_NONE;
}

static struct reduce_source *reduce_next(struct control *c, struct reduce *r, uint32_t after)
{
	struct reduce_source *next = NULL;

	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->state != SOURCE_KNOWN || s->seat != REDUCE_NONE || s->arrival <= after ||
		    !reduce_reachable(c, s->node))
			continue;
		if (next == NULL || s->arrival < next->arrival)
			next = s;
	}
	return next;
}

void reduce_fill(struct control *c, struct reduce *r)
{
	struct reduce_source *s;
	uint32_t arrival = 0, seat;

	while ((s = reduce_next(c, r, arrival)) != NULL) {
		seat = reduce_choose(r, s->node);
		if (seat == REDUCE_NONE)
			break;
		arrival = s->arrival;
		reduce_assign(c, r, s, seat);
	}
	reduce_tell_all(c, r);
}

/* ---- the tree ------------------------------------------------------------------------------- */

/* What is there, by node, in order of arrival; at most num sources in all. Returns the groups. */
static uint32_t reduce_groups(struct control *c, struct reduce *r, struct reduce_group *group,
			      uint32_t *grouped)
{
	struct reduce_source *s;
	uint32_t count = 0, arrival = 0;

	*grouped = 0;
	while (*grouped < r->num && (s = reduce_next(c, r, arrival)) != NULL) {
		uint32_t g = 0;

		arrival = s->arrival;
		while (g < count &&
		       (group[g].node != s->node || group[g].count == REDUCE_GROUP_MAX))
			g++;
		if (g == count)
			group[count++] = (struct reduce_group){s->node, 0};
		group[g].count++;
		++*grouped;
	}
	return count;
}

/* Of a large target what is built of it lies on the workers that have its place there, as this node
 * cuts it: nodes alike need not carry it from one of theirs to another. */
static void reduce_name_hidden(const struct control *c, struct reduce *r, uint32_t i)
{
	uint32_t chunks = (uint32_t)chunk_count(r->size, r->chunk_bytes), first, count;
	uint32_t stripes = lane_count(r->size, c->workers);
	struct reduce_cell *p = &r->cell[i];

	reduce_cell_name(&r->by_id.id, r->number, i, &p->id);
	if (stripes == 1)
		return;
	reduce_extent(r, p->stripe, &first, &count);
	lane_settle(&p->id, &r->by_id.id, lane_of(chunks, stripes, first));
}

static void reduce_name(const struct control *c, struct reduce *r, uint32_t i)
{
	struct reduce_cell *p = &r->cell[i];
	uint32_t child[REDUCE_DEGREE_MAX];

	*p = (struct reduce_cell){.reduce = r, .seat = i % r->seats, .stripe = i / r->seats};
	if (r->stripes == 1 && reduce_is_root(p))
		p->id = r->by_id.id;
	else
		reduce_name_hidden(c, r, i);
	p->combines = reduce_is_root(p) || reduce_children(r, i, child) > 0;
}

/* A group that is there now has its seat to itself; one on the node that it is meant for has the
 * root. */
static void reduce_book(struct reduce *r, const struct reduce_group *group, uint32_t groups)
{
	bool rooted = false;
	uint32_t next = 0;

	for (uint32_t g = 0; g < groups; g++)
		rooted = rooted || (r->stripes == 1 && group[g].node == r->top);
	for (uint32_t g = 0; g < groups; g++) {
		bool root =
			rooted && group[g].node == r->top && r->seat[r->root].host == REDUCE_NONE;
		uint32_t seat = r->root;

		if (!root) {
			next += rooted && next == r->root;
			seat = next++;
		}
		r->seat[seat] = (struct reduce_seat){group[g].node, group[g].count, 0};
		for (uint32_t j = 0; j < r->stripes; j++)
			r->cell[j * r->seats + seat].combines |= group[g].count > 1;
	}
}

static void reduce_take_seats(struct control *c, struct reduce *r)
{
	struct reduce_source *s;
	uint32_t arrival = 0;

	while ((s = reduce_next(c, r, arrival)) != NULL) {
		arrival = s->arrival;
		for (uint32_t i = 0; i < r->seats; i++) {
			if (r->seat[i].host != s->node || !reduce_open(r, i))
				continue;
			reduce_assign(c, r, s, i);
			break;
		}
	}
}

static bool reduce_carve(struct control *c, struct reduce *r, const struct planner_choice *choice)
{
	struct allocator *space = &c->reduces.space;
	uint64_t seats = sizeof(struct reduce_seat) * r->seats;
	uint64_t cells = sizeof(struct reduce_cell) * r->seats * r->stripes;
	uint64_t graph = planner_bytes(choice);

	seats = (seats + 63) / 64 * 64;
	r->tree = allocator_take(space, seats + cells + graph);
	if (r->tree == 0)
		return false;
	r->seat = (struct reduce_seat *)(void *)(c->reduces.memory +
						 allocator_offset(space, r->tree));
	r->cell = (struct reduce_cell *)(void *)((uint8_t *)r->seat + seats);
	r->cells = r->seats * r->stripes;
	for (uint32_t i = 0; i < r->seats; i++)
		r->seat[i] = (struct reduce_seat){REDUCE_NONE, 1, 0};
	planner_build(&c->reduces.asked, choice, r->cell + r->cells, graph, &r->graph);
	return true;
}

/* Whether the graph is the tree: the same slots and vertices, and edges in the same order. */
static bool reduce_same_vertex(const struct reduce *r, uint32_t i)
{
	const struct graph_vertex *v = &r->graph.vertex[i];
	uint32_t child[REDUCE_DEGREE_MAX], children = reduce_children(r, i, child);
	bool same = v->out == reduce_parent(r, i) && v->ins == children;

	for (uint32_t k = 0; same && k < children; k++)
		same = r->graph.edge[v->in + k].vertex == child[k];
	return same && (v->op == GRAPH_SUM) == r->cell[i].combines &&
	       (v->out == GRAPH_NONE) == reduce_is_root(&r->cell[i]) &&
	       v->target == (r->stripes == 1 && reduce_is_root(&r->cell[i]));
}

static bool reduce_same_feeder(const struct reduce *r, uint32_t i)
{
	uint32_t j = i / r->seats, place = (i + r->seats - j) % r->seats;
	uint32_t from = place ? reduce_stripe_feeder(r->row, place) : 0;

	return r->graph.feeder[i] == (j + from) % r->seats;
}

static bool reduce_same(const struct reduce *r)
{
	const struct graph *g = &r->graph;
	bool same = g->slots == r->seats && g->segments == r->stripes && g->vertices == r->cells &&
		    g->values == r->direct && g->eager == r->direct &&
		    (g->feeder != NULL) == (r->row > 0);

	for (uint32_t i = 0; same && i < r->seats; i++)
		same = g->slot[i].host == r->seat[i].host && g->slot[i].wants == r->seat[i].wants &&
		       g->slot[i].prefer ==
			       (r->stripes == 1 && i == r->root ? r->top : GRAPH_NODE_NONE);
	for (uint32_t i = 0; same && i < r->cells; i++)
		same = reduce_same_vertex(r, i) && (r->row == 0 || reduce_same_feeder(r, i));
	for (uint32_t j = 0; same && j < r->stripes; j++) {
		uint32_t first, count;

		reduce_extent(r, j, &first, &count);
		same = g->segment[j].first == first && g->segment[j].count == count;
	}
	return same && graph_wrong(g, &planner_limits_usual.graph) == NULL;
}

/*
 * Whether all will get it: then there are as many stripes as seats, unless they would be too small
 * to be worth it. Small ones are exchanged as values if all of them are there: two hops instead of
 * two chains of them. While it is not known what links can do, a tree may send all copies through
 * one that is slow: then smaller stripes than usual are the safer choice.
 */
static uint32_t reduce_stripes(const struct control *c, struct reduce *r, uint32_t grouped)
{
	uint32_t fewest = c->directory.link.rate_seen || r->seats > REDUCE_STRIPES_UNSEEN
				  ? REDUCE_STRIPE_CHUNKS
				  : REDUCE_STRIPE_CHUNKS_UNSEEN;
	uint64_t chunks = chunk_count(r->size, r->chunk_bytes);

	if (!(r->flags & MESSAGE_REDUCE_SPREAD) || r->seats < 2 || r->seats > REDUCE_STRIPES_MAX ||
	    chunks < r->seats)
		return 1;
	r->direct = chunks < (uint64_t)REDUCE_STRIPE_CHUNKS * r->seats && grouped == r->num &&
		    r->seats == r->num && r->size <= REDUCE_DIRECT_BYTES &&
		    (chunks / r->seats + 1) * r->chunk_bytes <= OBJECT_INLINE_MAX;
	return r->direct || chunks >= (uint64_t)fewest * r->seats ? r->seats : 1;
}

/*
 * The row of the grid along which stripes are passed on; 0: each root feeds all others. A root that
 * waits for a late source would send its own stripe to all of them beside the sums that all wait
 * for, which it passes on to the late one's seat: along the grid it sends two copies.
 */
static uint32_t reduce_row(const struct control *c, const struct reduce *r, uint32_t grouped)
{
	uint32_t fewest = c->config.grid_seats;

	if (grouped < r->num && c->config.grid_late_seats < fewest)
		fewest = c->config.grid_late_seats;
	return r->stripes >= fewest && !r->direct ? reduce_stripe_row(r->seats) : 0;
}

void reduce_plan(struct control *c, struct reduce *r)
{
	struct reduce_group *group = c->reduces.group;
	uint32_t grouped, groups = reduce_groups(c, r, group, &grouped);
	struct planner_choice choice;

	if (r->sized && reduce_lend(c, r))
		return;
	r->state = REDUCE_RUNNING;
	reduce_accept(c, r);
	if (!r->sized) /* nothing is there yet: the first one says how large */
		return;
	if (planner_choose(reduce_links_request(c, r, group, groups, grouped), &choice)) {
		reduce_fail(c, r, -EINVAL, "the sources are too large to be reduced");
		return;
	}
	r->seats = groups + (r->num - grouped);
	r->stripes = reduce_stripes(c, r, grouped);
	reduce_links_top(c, r, group, groups);
	reduce_links_shape(c, r, group, groups);
	r->planned_ns = groups == r->seats ? c->now_ns : 0;
	r->root = reduce_tree_root(r->seats, r->degree);
	if (!reduce_carve(c, r, &choice)) {
		r->seats = 0;
		reduce_end(c, r, -EAGAIN, "too many reduces at a time: try again later");
		return;
	}
	for (uint32_t i = 0; i < r->cells; i++)
		reduce_name(c, r, i);
	reduce_watch(c, r);
	reduce_book(r, group, groups);
	r->row = reduce_row(c, r, grouped);
	assert(reduce_same(r));
	if (r->stripes > 1)
		reduce_spread_begin(c, r);
	reduce_take_seats(c, r);
	reduce_fill(c, r);
}
