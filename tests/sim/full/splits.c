/* SPDX-License-Identifier: BSD-3-Clause */
#include "splits.h"

#include "peek.h"

static uint64_t now(const struct splits *s)
{
	return world_now(s->g->w);
}

static uint32_t side_of(const struct splits *s, uint32_t node)
{
	return s->g->w->net.endpoints[node].side;
}

void splits_open(struct splits *s, struct full_group *g)
{
	*s = (struct splits){.g = g, .changed_ns = world_now(g->w)};
}

void splits_begin(struct splits *s, struct prng *draw, uint64_t for_ns)
{
	struct network *net = &s->g->w->net;
	uint32_t few = (uint32_t)prng_below(draw, 2), a = (uint32_t)prng_below(draw, net->count);
	uint32_t b = (a + (uint32_t)prng_between(draw, 1, net->count - 1)) % net->count;
	for (uint32_t i = 0; i < net->count; i++)
		net->endpoints[i].side = i == a || i == b ? few : !few;
	net->one_way = prng_chance(draw, 400000);
	s->split = true;
	s->count++;
	s->changed_ns = now(s);
	s->until_ns = s->changed_ns + for_ns;
}

void splits_heal(struct splits *s)
{
	struct network *net = &s->g->w->net;
	if (!s->split)
		return;
	for (uint32_t i = 0; i < net->count; i++)
		net->endpoints[i].side = 0;
	s->split = false;
	s->changed_ns = now(s);
}

void splits_deleted(struct splits *s, uint32_t node, uint32_t name, const struct object_id *id,
		    uint64_t asked_ns)
{
	struct splits_tombstone *g = &s->tombstone[name][node];
	uint32_t replicas = 0, wanted = s->g->config.shards == 1 ? 1 : 2;
	g->generation = 0;
	/* The generation, then the nodes with its tombstone, or a later one. An object that was put
	 * since the delete began (generations are times) belongs to another delete, which may not
	 * be answered yet. */
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < s->g->w->count; i++) {
			uint64_t deleted_generation = peek_tombstone(s->g->full[i].core, id);
			if (side_of(s, i) != side_of(s, node))
				continue;
			if (round == 0 && deleted_generation > g->generation &&
			    deleted_generation <= asked_ns)
				g->generation = deleted_generation;
			replicas += round == 1 && deleted_generation >= g->generation;
		}
	g->asked_ns = asked_ns;
	g->answered_ns = now(s);
	if (replicas < wanted && s->changed_ns + SPLITS_SETTLE_NS <= asked_ns)
		world_violation(s->g->w, "node %u: object %u is deleted, and %u know of it", node,
				name, replicas);
}

void splits_got(const struct splits *s, uint32_t node, uint32_t name, uint64_t generation,
		uint64_t asked_ns)
{
	bool healed = !s->split && s->changed_ns + SPLITS_SETTLE_NS <= asked_ns;
	for (uint32_t i = 0; i < s->g->w->count; i++) {
		const struct splits_tombstone *g = &s->tombstone[name][i];
		bool same_side = s->changed_ns + SPLITS_SETTLE_NS <= g->asked_ns &&
				 side_of(s, i) == side_of(s, node);
		if (generation <= g->generation && g->answered_ns < asked_ns &&
		    (healed || same_side))
			world_violation(
				s->g->w,
				"node %u: object %u generation %llx, deleted by node %u %.3f s "
				"ago",
				node, name, (unsigned long long)generation, i,
				(double)(now(s) - g->answered_ns) / 1e9);
	}
}

static void splits_judge_table(const struct splits *s, uint32_t node)
{
	const struct object_table *t = (const struct object_table *)s->g->full[node].n->table.base;
	for (uint32_t k = 0; k < t->slots; k++) {
		const struct object_slot *o = &t->slot[k];
		uint32_t name = o->id.bytes[5];
		if (o->state == OBJECT_FREE || o->state == OBJECT_ZOMBIE || name >= SPLITS_NAMES)
			continue;
		for (uint32_t i = 0; i < s->g->w->count; i++)
			if (o->generation <= s->tombstone[name][i].generation &&
			    s->tombstone[name][i].answered_ns + SPLITS_SETTLE_NS <= now(s))
				world_violation(s->g->w,
						"node %u holds object %u generation %llx, which "
						"node %u has deleted",
						node, name, (unsigned long long)o->generation, i);
	}
}

void splits_judge(const struct splits *s)
{
	if (s->split || s->changed_ns + SPLITS_SETTLE_NS > now(s))
		return;
	for (uint32_t i = 0; i < s->g->w->count; i++) {
		if (peek_reached(s->g->full[i].core) != s->g->w->count)
			world_violation(s->g->w, "node %u reaches %u of %u nodes, %.3f s after", i,
					peek_reached(s->g->full[i].core), s->g->w->count,
					(double)(now(s) - s->changed_ns) / 1e9);
		splits_judge_table(s, i);
	}
}
