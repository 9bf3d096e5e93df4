/* SPDX-License-Identifier: BSD-3-Clause */
#include "peek.h"

#include "core/state.h"

uint64_t peek_tombstone(const struct control *core, const struct object_id *id)
{
	const struct tombstone *t = core ? directory_tombstone(&core->directory->shard, id) : NULL;

	return t ? t->generation : 0;
}

bool peek_noted(const struct control *core, const struct object_id *id, uint32_t node)
{
	struct entry *e = core ? directory_find(&core->directory->shard, id) : NULL;

	return e && directory_copy(e, node);
}

uint32_t peek_reached(const struct control *core)
{
	uint32_t count = 0;

	for (uint32_t i = 0; core && i < core->config.nodes; i++)
		count += core->cluster->peers.nodes[i].member == MEMBER_ALIVE;
	return count;
}

bool peek_gone(const struct control *core, uint32_t node)
{
	return core && node != core->cluster->self->number &&
	       core->cluster->peers.nodes[node].member >= MEMBER_DEAD;
}

bool peek_reaches(const struct control *core, uint32_t node)
{
	return core && core->cluster->peers.nodes[node].state == NODE_UP;
}

uint64_t peek_death_ns(const struct control *core)
{
	return core ? core->cluster->dead_ns : 0;
}

static struct fetch *peek(struct control *core)
{
	struct list *l = core ? list_first(&core->transfer->fetches.active) : NULL;
	struct fetch *f = l ? list_item(l, struct fetch, active) : NULL;

	return f && f->slot != TABLE_SLOT_NONE ? f : NULL;
}

uint32_t peek_chunks(struct control *core)
{
	const struct fetch *f = peek(core);

	return f ? ranges_chunks(f) : 0;
}

uint32_t peek_missing(struct control *core)
{
	const struct fetch *f = peek(core);

	return f ? chunks_missing(ranges_map(core, f), 0, ranges_chunks(f)) : 0;
}

uint64_t peek_rate(const struct control *core, uint32_t node)
{
	return linkstats_of(&core->cluster->links, node).bytes_per_s;
}

uint32_t peek_feeder(struct control *core)
{
	const struct fetch *f = peek(core);
	uint32_t found = UINT32_MAX;

	for (int i = 0; f && i < FETCH_FEEDS; i++) {
		if (f->feed[i].state != FEED_STREAM)
			continue;
		if (found != UINT32_MAX)
			return UINT32_MAX;
		found = f->feed[i].holder->number;
	}
	return found;
}

uint32_t peek_coordinator(struct control *core)
{
	const struct list *first = core->requester->requesters.active.next;

	if (first == &core->requester->requesters.active)
		return UINT32_MAX;
	return ownership_shard(core, &list_item(first, struct requester, link)->reduce.target)
		->number;
}

const char *peek_planner(const struct control *core)
{
	list_each(l, after, &core->coordinator->reduces.active)
	{
		const struct reduce *r = list_item(l, struct reduce, active);

		if (r->state == REDUCE_RUNNING && r->plan.graph.vertices > 0)
			return r->plan.graph.planner;
	}
	return NULL;
}

const struct network *peek_racks(uint32_t members, uint32_t racks)
{
	static struct network w;

	w = (struct network){.levels = 2,
			     .places = members * racks,
			     .level = {{.members = members}, {.members = racks}},
			     .narrow = true};
	return &w;
}

const struct network *peek_cube(uint32_t members, uint32_t levels, uint64_t mbit)
{
	static struct network w;

	w = (struct network){.levels = levels, .places = 1};
	for (uint32_t l = 0; l < levels; l++) {
		w.level[l] = (struct network_level){
			.members = members, .rail = (uint8_t)l, .bytes_per_s = mbit * 125000};
		w.places *= members;
	}
	return &w;
}

uint32_t peek_give_half(struct control *core)
{
	struct fetch *f = peek(core);
	uint32_t half;

	if (!f || f->bitmap == 0)
		return 0;
	half = ranges_chunks(f) / 2;
	bitmap_set((uint64_t *)(void *)scratch_at(core, f->bitmap), half, ranges_chunks(f) - half);
	return half;
}
