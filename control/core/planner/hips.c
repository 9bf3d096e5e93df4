/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `hips`: an allreduce along the levels of the network, after HiPS (Geng et al., "HiPS:
 * Hierarchical Parameter Synchronization in Large-Scale Distributed Machine Learning", NetAI 2018).
 *
 * The target is cut into parts, one per rail, and each part into a segment per owner, N of them. A
 * segment of part k visits the levels in the order k, k + 1, ..., so that all ports are busy at
 * once. On a level the members of a group give what they have for owners of another coordinate to
 * the member with that coordinate: directly (mesh), or along the ring of the group (ring). With a
 * server per group only the first member owns anything. The way back is the same tree downwards,
 * but on around the rings.
 *
 * All nodes of the network must have contributions there: each one's slot is its place.
 */
#include "cost.h"
#include "route.h"

enum hips_scheme { HIPS_AUTO, HIPS_MESH, HIPS_RING, HIPS_SERVER };

struct hips_cut {
	uint32_t parts, owners;
};

/* A part per rail, as far as the graph may have so many segments; else fewer, larger ones. */
static struct hips_cut hips_cut(const struct planner_request *q, enum hips_scheme scheme)
{
	const struct network *w = q->network;
	uint32_t owners = scheme == HIPS_SERVER ? 1 : w->places;
	uint32_t fit = q->limits->route_segments_max, parts = network_rails(w);

	if ((uint64_t)fit * w->places > q->limits->vertices_max)
		fit = q->limits->vertices_max / w->places;
	if (parts * owners > fit && parts > w->levels)
		parts = w->levels;
	if (parts * owners > fit)
		parts = 1;
	return (struct hips_cut){parts, owners};
}

static bool hips_ring_level(const struct planner_request *q, enum hips_scheme scheme,
			    uint32_t level)
{
	const struct network_level *l = &q->network->level[level];

	return l->ring || scheme == HIPS_RING ||
	       (scheme == HIPS_AUTO && l->members > q->limits->mesh_members);
}

/* The level on which a segment begins: that of its part's rail. Where there is no part per rail the
 * owners take turns; but tiers of switches, on one rail, are climbed from the lowest. */
static uint32_t hips_first(const struct network *w, uint32_t parts, uint32_t part, uint32_t owner)
{
	uint32_t sum = 0;

	for (uint32_t l = 0; parts > 1 && parts == network_rails(w) && l < w->levels; l++)
		if (part - w->level[l].rail < (w->level[l].ring ? 2u : 1u))
			return l;
	if (parts > 1)
		return part % w->levels;
	if (network_rails(w) == 1)
		return 0;
	for (uint32_t l = 0; l < w->levels; l++)
		sum += network_coordinate(w, owner, l);
	return sum % w->levels;
}

/* Whether a segment goes backwards round the rings of a level: by its part's rail. Where there is
 * no part per rail by two coordinates of its owner, as one alone would send most segments that
 * begin on a level the same way round it. */
static bool hips_backwards(const struct network *w, bool each_rail, uint32_t part, uint32_t owner,
			   uint32_t first, uint32_t level)
{
	if (each_rail)
		return (part - w->level[first].rail) % 2;
	return (network_coordinate(w, owner, level) +
		network_coordinate(w, owner, (level + 1) % w->levels)) %
	       2;
}

/* Where a segment is on its way: the next slot, and who feeds this one. */
struct hips_step {
	struct route_hop up;
	uint32_t feeder;
};

static struct hips_step hips_step(const struct planner_request *q, enum hips_scheme scheme,
				  uint32_t segments, uint32_t segment, uint32_t slot)
{
	const struct network *w = q->network;
	uint32_t owners = scheme == HIPS_SERVER ? 1 : w->places, parts = segments / owners;
	uint32_t owner = segment % owners, part = segment / owners;
	uint32_t first = hips_first(w, parts, part, owner);
	bool each_rail = parts == network_rails(w) && parts > 1;

	for (uint32_t i = 0; i < w->levels; i++) {
		uint32_t l = (first + i) % w->levels, members = w->level[l].members;
		uint32_t at = network_coordinate(w, slot, l), rail = w->level[l].rail;
		uint32_t to = network_coordinate(w, owner, l), from = to;

		if (at == to)
			continue;
		if (hips_ring_level(q, scheme, l)) {
			bool links = w->level[l].ring;
			bool turned = links && hips_backwards(w, each_rail, part, owner, first, l);

			to = (at + (turned ? members - 1 : 1)) % members;
			/* on around the ring; where the owners' ways are not as many in both
			 * directions, back over the other links */
			from = links && !each_rail ? to
						   : (at + (turned ? 1 : members - 1)) % members;
			rail += turned;
		}
		return (struct hips_step){{network_moved(w, slot, l, to), rail},
					  network_moved(w, slot, l, from)};
	}
	return (struct hips_step){{slot, 0}, slot};
}

static const char *hips_unfit_as(const struct planner_request *q, enum hips_scheme scheme)
{
	uint32_t fan_in = 0;
	struct hips_cut cut;

	if (!route_full(q))
		return PLANNER_NETWORK;
	for (uint32_t l = 0; l < q->network->levels; l++)
		fan_in += hips_ring_level(q, scheme, l) ? 1 : q->network->level[l].members - 1;
	if (fan_in > q->limits->graph.fan_in_max)
		return PLANNER_SLOTS;
	cut = hips_cut(q, scheme);
	return route_unfit(q, cut.parts * cut.owners);
}

/*
 * Each level costs its hops up and down. The ports share the bytes: 2 (N - 1)/N S over all rails;
 * a server's ports carry all that its group has. The slowest level sets the pace.
 */
static uint64_t hips_estimate(const struct planner_request *q, enum hips_scheme scheme)
{
	const struct network *w = q->network;
	struct topology_link link = cost_known(planner_best(q));
	double size = (double)q->size, bytes = 0, hops_ns = 0,
	       byte_ns = 1e9 / (double)link.bytes_per_s;
	bool both_ways = false;

	for (uint32_t l = 0; l < w->levels; l++) {
		bool ring = hips_ring_level(q, scheme, l);
		uint32_t others = w->level[l].members - 1;
		double latency =
			(double)(w->level[l].latency_ns > link.latency_ns ? w->level[l].latency_ns
									  : link.latency_ns);
		double own_ns = w->level[l].bytes_per_s ? 1e9 / (double)w->level[l].bytes_per_s
							: 1e9 / (double)link.bytes_per_s;

		both_ways |= !ring;
		if (own_ns > byte_ns || l == 0)
			byte_ns = own_ns;
		hops_ns += 2.0 * (ring ? others : 1) *
			   (latency + (ring ? 1 : others) * (double)q->chunk_bytes * own_ns);
		if (scheme == HIPS_SERVER)
			bytes = bytes > others * size ? bytes : others * size;
	}
	if (scheme != HIPS_SERVER)
		bytes = 2 * size * (w->places - 1) / w->places / network_rails(w);
	if (both_ways)
		bytes = route_both_ways(bytes);
	return cost_whole((double)link.start_ns + hops_ns + bytes * byte_ns);
}

static void hips_shape_as(const struct planner_request *q, enum hips_scheme scheme,
			  struct planner_choice *c)
{
	struct hips_cut cut = hips_cut(q, scheme);

	route_shape(q, cut.parts * cut.owners, hips_estimate(q, scheme), c);
}

#define HIPS_PLANNER(name, scheme, text)                                                          \
	static struct route_hop name##_next(const struct planner_request *q, uint32_t slots,      \
					    uint32_t segments, uint32_t segment, uint32_t slot)   \
	{                                                                                         \
		return hips_step(q, scheme, segments, segment, slot).up;                          \
	}                                                                                         \
	static uint32_t name##_feeder(const struct planner_request *q, uint32_t slots,            \
				      uint32_t segments, uint32_t segment, uint32_t slot)         \
	{                                                                                         \
		return hips_step(q, scheme, segments, segment, slot).feeder;                      \
	}                                                                                         \
	static const char *name##_unfit(const struct planner_request *q)                          \
	{                                                                                         \
		return hips_unfit_as(q, scheme);                                                  \
	}                                                                                         \
	static void name##_shape(const struct planner_request *q, struct planner_choice *c)       \
	{                                                                                         \
		hips_shape_as(q, scheme, c);                                                      \
	}                                                                                         \
	static void name##_build(const struct planner_request *q, const struct planner_choice *c, \
				 struct graph *g)                                                 \
	{                                                                                         \
		route_fill(q, name##_next, name##_feeder, g);                                     \
		route_book_places(q, g);                                                          \
	}                                                                                         \
	const struct planner planner_##name = {text, name##_unfit, name##_shape, name##_build,    \
					       name##_next};

HIPS_PLANNER(hips, HIPS_AUTO, "hips")
HIPS_PLANNER(hips_mesh, HIPS_MESH, "hips-mesh")
HIPS_PLANNER(hips_ring, HIPS_RING, "hips-ring")
HIPS_PLANNER(hips_server, HIPS_SERVER, "hips-server")
