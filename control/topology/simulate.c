/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An event for each arrival of a piece at a node: simulate.h has the model. Events run in the order
 * of time, then of their making, so the same request gives the same time.
 */
#include "simulate.h"
#include <errno.h>
#include <stdlib.h>

enum { SIMULATE_PIECES_MAX = 16, SIMULATE_VERTICES_USUAL = 2 << 20, SIMULATE_RAILS_MAX = 256 };

struct event {
	uint64_t ns, number;
	uint32_t segment;
	uint16_t at, to;
	uint8_t down;
};

struct port {
	uint64_t sends_ns, takes_ns; /* free again from then on */
};

struct simulation {
	const struct planner_request *q;
	const struct network *w;
	uint32_t slots, segments, pieces, rails;
	double piece_bytes;
	uint16_t *next;	     /* [segment * slots + slot]; of a root: its own */
	uint16_t *child;     /* the slots of a segment in the order of their next */
	uint16_t *first;     /* [segment * (slots + 1) + slot]: its first child in child[] */
	uint16_t *taken;     /* pieces that a vertex has taken from its children */
	struct port *port;   /* [place * rails + rail] */
	struct event *event; /* heap */
	size_t events, room;
	uint64_t number, end_ns, messages;
	bool failed;
};

/* ---- heap ------------------------------------------------------------------------------------ */

static bool simulate_event_before(const struct event *a, const struct event *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->number < b->number;
}

static void simulate_event_push(struct simulation *s, struct event e)
{
	size_t i = s->events;

	if (s->events == s->room) {
		size_t room = s->room ? 2 * s->room : 4096;
		struct event *more = realloc(s->event, room * sizeof(*more));

		if (!more) {
			s->failed = true;
			return;
		}
		s->event = more;
		s->room = room;
	}
	e.number = s->number++;
	for (s->events++; i > 0 && simulate_event_before(&e, &s->event[(i - 1) / 2]);
	     i = (i - 1) / 2)
		s->event[i] = s->event[(i - 1) / 2];
	s->event[i] = e;
}

static struct event simulate_event_pop(struct simulation *s)
{
	struct event top = s->event[0], last = s->event[--s->events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->events) {
		if (child + 1 < s->events &&
		    simulate_event_before(&s->event[child + 1], &s->event[child]))
			child++;
		if (!simulate_event_before(&s->event[child], &last))
			break;
		s->event[i] = s->event[child];
		i = child;
	}
	s->event[i] = last;
	return top;
}

/* ---- links ----------------------------------------------------------------------------------- */

struct hop {
	uint32_t place, level, sends, takes; /* the rails at both ends */
};

/* The next place on the way: levels in turn, of a ring its shorter way. */
static struct hop simulate_hop(const struct network *w, uint32_t at, uint32_t to)
{
	for (uint32_t l = 0; l < w->levels; l++) {
		uint32_t a = network_coordinate(w, at, l), b = network_coordinate(w, to, l);
		uint32_t members = w->level[l].members, rail = w->level[l].rail, other = rail;

		if (a == b)
			continue;
		if (network_rails(w) == 1) /* switches all the way */
			return (struct hop){to, l, 0, 0};
		if (w->level[l].ring) {
			rail = network_rail_towards(w, at, to, l);
			b = (a + (rail == w->level[l].rail ? 1 : members - 1)) % members;
			other = rail == w->level[l].rail ? rail + 1 : rail - 1;
		}
		return (struct hop){network_moved(w, at, l, b), l, rail, other};
	}
	return (struct hop){to, 0, 0, 0};
}

static void simulate_send(struct simulation *s, struct event e, uint64_t now_ns)
{
	struct hop hop = simulate_hop(s->w, e.at, e.to);
	const struct network_level *level = &s->w->level[hop.level];
	struct port *from = &s->port[e.at * s->rails + hop.sends];
	struct port *to = &s->port[hop.place * s->rails + hop.takes];
	uint64_t takes_ns = (uint64_t)(s->piece_bytes * 1e9 / (double)level->bytes_per_s);
	uint64_t sent = from->sends_ns > now_ns ? from->sends_ns : now_ns;
	uint64_t here = sent + level->latency_ns;

	if (to->takes_ns > here)
		here = to->takes_ns;
	from->sends_ns = sent + takes_ns;
	to->takes_ns = here + takes_ns;
	s->messages++;
	e.at = (uint16_t)hop.place;
	e.ns = here + takes_ns;
	simulate_event_push(s, e);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static uint32_t simulate_children(const struct simulation *s, uint32_t segment, uint32_t slot)
{
	const uint16_t *first = &s->first[(size_t)segment * (s->slots + 1)];

	return first[slot + 1] - first[slot];
}

/* A node has a piece of the sum: to all that have it from this node. */
static void simulate_down(struct simulation *s, uint32_t segment, uint32_t slot, uint64_t now_ns)
{
	const uint16_t *first = &s->first[(size_t)segment * (s->slots + 1)];
	const uint16_t *child = &s->child[(size_t)segment * s->slots];

	s->end_ns = now_ns > s->end_ns ? now_ns : s->end_ns;
	for (uint32_t k = first[slot]; k < first[slot + 1]; k++)
		simulate_send(s,
			      (struct event){.segment = segment,
					     .at = (uint16_t)slot,
					     .to = child[k],
					     .down = 1},
			      now_ns);
}

/* A node has all contributions to a piece: to the next one, or from the root downwards. */
static void simulate_up(struct simulation *s, uint32_t segment, uint32_t slot, uint64_t now_ns)
{
	uint16_t next = s->next[(size_t)segment * s->slots + slot];

	if (next == slot)
		simulate_down(s, segment, slot, now_ns);
	else
		simulate_send(s,
			      (struct event){.segment = segment, .at = (uint16_t)slot, .to = next},
			      now_ns);
}

static void simulate_arrive(struct simulation *s, const struct event *e)
{
	uint16_t *taken = &s->taken[(size_t)e->segment * s->slots + e->to];

	if (e->at != e->to)
		simulate_send(s, *e, e->ns);
	else if (e->down)
		simulate_down(s, e->segment, e->to, e->ns);
	else if (++*taken % simulate_children(s, e->segment, e->to) == 0)
		simulate_up(s, e->segment, e->to, e->ns);
}

/* The trees of all segments: where each slot gives to, and who gives to it. */
static void simulate_trees(struct simulation *s, const struct planner *planner,
			   struct simulated *out)
{
	for (uint32_t j = 0; j < s->segments; j++) {
		uint16_t *next = &s->next[(size_t)j * s->slots],
			 *child = &s->child[(size_t)j * s->slots];
		uint16_t *first = &s->first[(size_t)j * (s->slots + 1)], place = 0;

		for (uint32_t i = 0; i < s->slots; i++)
			next[i] =
				(uint16_t)planner->next(planner, s->q, s->slots, s->segments, j, i)
					.slot;
		for (uint32_t i = 0; i < s->slots; i++)
			first[next[i]] += next[i] != i;
		for (uint32_t i = 0; i < s->slots; i++) {
			uint16_t count = first[i];

			out->fan_in = count > out->fan_in ? count : out->fan_in;
			first[i] = place;
			place = (uint16_t)(place + count);
		}
		first[s->slots] = place;
		for (uint32_t i = 0; i < s->slots; i++)
			if (next[i] != i)
				child[first[next[i]]++] = (uint16_t)i;
		for (uint32_t i = s->slots; i-- > 1;)
			first[i] = first[i - 1];
		first[0] = 0;
		for (uint32_t i = 0; i < s->slots; i++) {
			uint32_t hops = 0;

			for (uint32_t at = i; next[at] != at; at = next[at])
				hops++;
			out->starts = 2 * hops > out->starts ? 2 * hops : out->starts;
		}
	}
}

/* All leaves send; each node begins with the segment after its own, so that not all send to the
 * same node. */
static void simulate_begin(struct simulation *s)
{
	for (uint32_t p = 0; p < s->pieces; p++)
		for (uint32_t k = 1; k <= s->segments; k++)
			for (uint32_t i = 0; i < s->slots; i++) {
				uint32_t j = (i + k) % s->segments;

				if (simulate_children(s, j, i) == 0)
					simulate_up(s, j, i, 0);
			}
}

int simulate_allreduce(const struct planner_request *q, const struct planner *planner,
		       const struct planner_choice *choice, struct simulated *out)
{
	size_t slots = choice->size.slots, segments = choice->size.segments;
	struct simulation s = {.q = q,
			       .w = q->network,
			       .slots = (uint32_t)slots,
			       .segments = (uint32_t)segments,
			       .rails = network_rails(q->network)};

	*out = (struct simulated){0};
	s.pieces = (uint32_t)(SIMULATE_VERTICES_USUAL / (slots * segments));
	s.pieces = s.pieces < 1			    ? 1
		   : s.pieces > SIMULATE_PIECES_MAX ? SIMULATE_PIECES_MAX
						    : s.pieces;
	s.piece_bytes = (double)q->size / (double)segments / s.pieces;
	s.next = calloc(slots * segments, sizeof(*s.next));
	s.child = calloc(slots * segments, sizeof(*s.child));
	s.first = calloc((slots + 1) * segments, sizeof(*s.first));
	s.taken = calloc(slots * segments, sizeof(*s.taken));
	s.port = calloc(slots * s.rails, sizeof(*s.port));
	s.failed = !s.next || !s.child || !s.first || !s.taken || !s.port;
	if (!s.failed) {
		simulate_trees(&s, planner, out);
		simulate_begin(&s);
	}
	while (s.events > 0 && !s.failed) {
		struct event e = simulate_event_pop(&s);

		simulate_arrive(&s, &e);
	}
	out->ns = s.end_ns;
	out->messages = s.messages;
	free(s.next);
	free(s.child);
	free(s.first);
	free(s.taken);
	free(s.port);
	free(s.event);
	return s.failed ? -ENOMEM : 0;
}
