/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `hips`: an allreduce along the levels of the network, after HiPS (Geng et al., "HiPS:
 * Hierarchical Parameter Synchronization in Large-Scale Distributed Machine Learning", NetAI 2018).
 *
 * The target is cut into parts, one per rail, and each part into a segment per owner. A segment of
 * part k visits the levels in the order k, k + 1, ..., so that all ports are busy at once. On a
 * level the members of a group give what they have for owners of another coordinate to the member
 * with that coordinate: directly (mesh), or along the ring of the group (ring). With a server per
 * group only the first member owns anything. The way back is the same tree downwards, but on around
 * the rings.
 *
 * A part has an owner at each place, or fewer: a node sends a segment upwards at most once whatever
 * owns it, so that owners are needed only to keep the ports alike. With the places of d levels, all
 * combinations of the coordinates that a segment visits first, the busiest port sends little more
 * than its share. So plans of many nodes take few vertices: hips_cut weighs that.
 *
 * All nodes of the network must have contributions there: each one's slot is its place.
 */
#include "cost.h"
#include "route.h"
#include "segment.h"

enum hips_scheme { HIPS_AUTO, HIPS_MESH, HIPS_RING, HIPS_SERVER };

struct hips_cut {
	uint32_t parts, owners; /* owners of each part */
};

static bool hips_ring_level(const struct planner_request *q, enum hips_scheme scheme,
			    uint32_t level)
{
	const struct network_level *l = &q->network->level[level];

	return l->ring || scheme == HIPS_RING ||
	       (scheme == HIPS_AUTO && l->members > q->limits->mesh_members);
}

/* The cut that has so many segments: a part per rail, or one part, where these are no multiple. */
static struct hips_cut hips_cut_of(const struct network *w, uint32_t segments)
{
	uint32_t rails = network_rails(w), parts = segments % rails == 0 ? rails : 1;

	return (struct hips_cut){parts, segments / parts};
}

/* The level of a part's rail. */
static uint32_t hips_level(const struct network *w, uint32_t part)
{
	for (uint32_t l = 0; l < w->levels; l++)
		if (part - w->level[l].rail < (w->level[l].ring ? 2u : 1u))
			return l;
	return 0;
}

/* The place that owns a segment. Its number among those of its part gives its digits, in the order
 * in which the levels are visited from `from` on; each is turned by those before, so that owners
 * with few digits differ on all levels. */
static uint32_t hips_place(const struct network *w, uint32_t number, uint32_t from)
{
	uint32_t place = 0, turn = 0;

	for (uint32_t i = 0; i < w->levels; i++) {
		uint32_t l = (from + i) % w->levels, members = w->level[l].members;

		turn += number % members;
		number /= members;
		place = network_moved(w, place, l, turn % members);
	}
	return place;
}

static uint32_t hips_owner(const struct network *w, struct hips_cut cut, uint32_t segment)
{
	uint32_t from = cut.parts > 1 ? hips_level(w, segment / cut.owners) : 0;

	return hips_place(w, segment % cut.owners, from);
}

/* The level on which a segment begins: that of its part's rail. Where there is no part per rail the
 * owners take turns; but tiers of switches, on one rail, are climbed from the lowest. */
static uint32_t hips_first(const struct network *w, struct hips_cut cut, uint32_t segment)
{
	uint32_t sum = 0, owner;

	if (cut.parts > 1)
		return hips_level(w, segment / cut.owners);
	if (network_rails(w) == 1)
		return 0;
	owner = hips_owner(w, cut, segment);
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
	struct hips_cut cut = hips_cut_of(w, segments);
	uint32_t part = segment / cut.owners;
	uint32_t first = hips_first(w, cut, segment), owner = hips_owner(w, cut, segment);
	bool each_rail = cut.parts > 1;

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

/* ---- how many owners --------------------------------------------------------------------------
 */

/* The most places that `levels` levels have together, one visited after the other. */
static uint32_t hips_widest(const struct network *w, uint32_t levels)
{
	uint32_t most = 0,
		 begin = network_rails(w) == 1 ? 1 : w->levels; /* levels of first visits */

	for (uint32_t from = 0; from < begin; from++) {
		uint32_t places = 1;

		for (uint32_t i = 0; i < levels; i++)
			places *= w->level[(from + i) % w->levels].members;
		most = places > most ? places : most;
	}
	return most;
}

/*
 * What the busiest port sends upwards and downwards, in units of the size over the number of rails.
 * Owners have all combinations of d coordinates. Of each other level one segment of each part more
 * may fall to the same port; where the level is a mesh, its copies to all others of the group.
 * Upwards that can be so only where another port of the node has less to send.
 */
static double hips_load(const struct planner_request *q, enum hips_scheme scheme,
			struct hips_cut cut)
{
	const struct network *w = q->network;
	uint32_t d = 0, others = 1;
	double left;

	if (scheme == HIPS_SERVER) { /* its ports carry all that its group has */
		for (uint32_t l = 0; l < w->levels; l++)
			others = w->level[l].members > others ? w->level[l].members : others;
		return (double)(others - 1) * network_rails(w);
	}
	if (cut.owners >= w->places || cut.parts < network_rails(w))
		return 2 - 2.0 / w->places;
	while (d + 1 < w->levels && hips_widest(w, d + 1) <= cut.owners)
		d++;
	for (uint32_t l = 0; l < w->levels; l++)
		if (!hips_ring_level(q, scheme, l) && w->level[l].members > others + 1)
			others = w->level[l].members - 1;
	left = cut.parts > 1 ? (double)(w->levels - 1 - d) / cut.owners : 0;
	if (others == 1)
		return 2 + left + (cut.parts > 1 ? left : (double)(w->levels - d) / cut.owners);
	return 2 + left + ((double)(w->levels - d) * others - 1) / cut.owners;
}

/*
 * Each level costs its hops up and down. The ports share the bytes; the slowest level sets the
 * pace.
 */
static uint64_t hips_estimate(const struct planner_request *q, enum hips_scheme scheme,
			      struct hips_cut cut)
{
	const struct network *w = q->network;
	struct topology_link link = cost_known(planner_best(q));
	double bytes = (double)q->size * hips_load(q, scheme, cut) / network_rails(w);
	double hops_ns = 0, byte_ns = 1e9 / (double)link.bytes_per_s;
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
	}
	if (both_ways)
		bytes = route_both_ways(bytes);
	return cost_whole((double)link.start_ns + hops_ns + bytes * byte_ns);
}

/* Segments that a graph may have. */
static uint32_t hips_fit(const struct planner_request *q)
{
	uint64_t chunks = segment_chunks(q->size, q->chunk_bytes);
	uint32_t fit = route_segments(q);

	return chunks < fit ? (uint32_t)chunks : fit;
}

/* A part per rail, with as many owners as pay: each makes a vertex per node, which takes a start.
 * Where there is no room for that, one part. */
static struct hips_cut hips_cut(const struct planner_request *q, enum hips_scheme scheme)
{
	const struct network *w = q->network;
	uint32_t fit = hips_fit(q), rails = network_rails(w);
	struct hips_cut best = {rails, 0}, cut = {rails, 0};
	uint64_t least = UINT64_MAX;

	if (scheme == HIPS_SERVER)
		return (struct hips_cut){rails <= fit ? rails : 1, 1};
	for (uint32_t d = w->levels; d > 0; d--) {
		uint64_t ns;

		cut.owners = hips_widest(w, d);
		if ((uint64_t)cut.owners * rails > fit)
			continue;
		ns = hips_estimate(q, scheme, cut) +
		     route_setup_ns(q, (uint64_t)cut.owners * rails * w->places);
		if (ns < least) {
			least = ns;
			best = cut;
		}
	}
	if (best.owners == 0)
		best.owners = fit / rails;
	if (best.owners == 0) {
		best = (struct hips_cut){1, fit < w->places ? fit : w->places};
		best.owners -= best.owners % rails == 0; /* hips_cut_of */
	}
	return best;
}

static const char *hips_unfit(const struct planner *planner, const struct planner_request *q)
{
	uint32_t fan_in = 0;

	if (!route_full(q))
		return PLANNER_NETWORK;
	if (q->network->crossed)
		return PLANNER_CROSSED;
	for (uint32_t l = 0; l < q->network->levels; l++)
		fan_in += hips_ring_level(q, planner->scheme, l) ? 1
								 : q->network->level[l].members - 1;
	return fan_in > q->limits->graph.fan_in_max ? PLANNER_SLOTS : NULL;
}

static uint32_t hips_segments(const struct planner *planner, const struct planner_request *q)
{
	struct hips_cut cut = hips_cut(q, planner->scheme);

	return cut.parts * cut.owners;
}

static uint64_t hips_ns(const struct planner *planner, const struct planner_request *q,
			uint32_t segments)
{
	return hips_estimate(q, planner->scheme, hips_cut_of(q->network, segments));
}

static struct route_hop hips_next(const struct planner *planner, const struct planner_request *q,
				  uint32_t slots, uint32_t segments, uint32_t segment,
				  uint32_t slot)
{
	return hips_step(q, planner->scheme, segments, segment, slot).up;
}

static uint32_t hips_feeder(const struct planner *planner, const struct planner_request *q,
			    uint32_t slots, uint32_t segments, uint32_t segment, uint32_t slot)
{
	return hips_step(q, planner->scheme, segments, segment, slot).feeder;
}

#define HIPS(text, kind)                                                           \
	{                                                                          \
		.name = text, .scheme = kind, .places = true, .unfit = hips_unfit, \
		.segments = hips_segments, .estimate = hips_ns, .next = hips_next, \
		.feeder = hips_feeder                                              \
	}

const struct planner planner_hips = HIPS("hips", HIPS_AUTO);
const struct planner planner_hips_mesh = HIPS("hips-mesh", HIPS_MESH);
const struct planner planner_hips_ring = HIPS("hips-ring", HIPS_RING);
const struct planner planner_hips_server = HIPS("hips-server", HIPS_SERVER);
