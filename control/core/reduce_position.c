/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of a reduce: who has which position, and what its node is told. */
#include <errno.h>
#include <xxhash.h>
#include "internal/reduce.h"
#include "reduce_tree.h"
#include "state.h"

uint32_t reduce_parent(const struct reduce *r, uint32_t i)
{
	return reduce_tree_parent(r->positions, r->degree, i);
}

uint32_t reduce_children(const struct reduce *r, uint32_t i, uint32_t *out)
{
	return reduce_tree_children(r->positions, r->degree, i, out, REDUCE_DEGREE_MAX);
}

/* ---- what its node builds ------------------------------------------------------------------- */

static bool reduce_complete(const struct reduce_position *p)
{
	return p->has == p->wants;
}

/* All of an object as one part. */
static void reduce_add_part(const struct reduce *r, struct message_combine *m,
			    struct message_part *parts, uint32_t node, const struct object_id *id,
			    uint64_t generation)
{
	parts[m->count++] = (struct message_part){
		.id = *id,
		.generation = generation,
		.node = node,
		.count = (uint32_t)chunk_count(r->size, r->chunk_bytes),
	};
}

static void reduce_add_sources(const struct reduce *r, uint32_t position, struct message_combine *m,
			       struct message_part *parts)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct reduce_source *s = &r->source[i];

		if (s->position == position)
			reduce_add_part(r, m, parts, s->node, &s->id, s->generation);
	}
}

void reduce_fill_message(struct control *c, struct call *call)
{
	const struct reduce_position *p = call->owner;
	const struct reduce *r = p->reduce;
	uint32_t index = (uint32_t)(p - r->position), child[REDUCE_DEGREE_MAX];
	struct message_combine *m = &call->message.combine;

	m->count = 0;
	m->parts = c->reduces.parts;
	reduce_add_sources(r, index, m, c->reduces.parts);
	for (uint32_t i = 0, n = reduce_children(r, index, child); i < n; i++) {
		const struct reduce_position *q = &r->position[child[i]];

		if (!reduce_complete(q))
			continue;
		if (q->combines)
			reduce_add_part(r, m, c->reduces.parts, q->host, &q->id, q->generation);
		else
			reduce_add_sources(r, child[i], m, c->reduces.parts);
	}
}

static bool reduce_told(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce_position *p = call->owner;
	struct reduce *r = p->reduce;
	struct message_combined lost = {.part_node = MESSAGE_NODE_NONE, .status = -EHOSTUNREACH};
	int32_t status = answer ? answer->reply.status : -EHOSTUNREACH;
	struct text t = {.length = 0};

	if (status == -EAGAIN) /* not yet: it will be repeated */
		return true;
	p->call = NULL;
	if (status == 0 || status == -ESTALE)
		return false;
	if (status == -EHOSTUNREACH) {
		reduce_lost(c, r, (uint32_t)(p - r->position), &lost);
		return false;
	}
	text_add(&t, "node ");
	text_add_number(&t, p->host);
	text_add(&t, status == -ENOSPC
			     ? " has no room for its part of the sum: delete objects there"
		     : status == -EEXIST ? " has an object of the target's id: name another target"
					 : " cannot build its part of the sum");
	reduce_end(c, r, status, t.bytes);
	return false;
}

static void reduce_tell(struct control *c, struct reduce *r, struct reduce_position *p)
{
	struct message m = {.kind = MESSAGE_COMBINE};
	uint32_t index = (uint32_t)(p - r->position), child[REDUCE_DEGREE_MAX];

	p->dirty = false;
	calls_cancel(c, p->call);
	m.combine.id = p->id;
	m.combine.generation = p->generation;
	m.combine.target = r->by_id.id;
	m.combine.reduce = r->number;
	m.combine.size = r->size;
	m.combine.chunk_bytes = r->chunk_bytes;
	m.combine.op = r->op;
	m.combine.dtype = r->dtype;
	m.combine.need = p->wants + reduce_children(r, index, child);
	m.combine.flags = index == r->root ? 0 : MESSAGE_COMBINE_HIDDEN;
	m.combine.scale = index == r->root && r->op == REDUCE_AVG ? r->num : 0;
	if (index == r->root)
		memcpy(m.combine.name, r->name, sizeof(m.combine.name));
	p->call = calls_start(c, peers_node(c, p->host), &m, TABLE_SLOT_NONE, c->config.call_ns,
			      reduce_told, p);
}

static void reduce_tell_all(struct control *c, struct reduce *r)
{
	for (uint32_t i = 0; i < r->positions; i++)
		if (r->position[i].dirty && r->position[i].started)
			reduce_tell(c, r, &r->position[i]);
}

void reduce_beat(struct control *c, struct reduce *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->source[i].state != SOURCE_KNOWN && r->source[i].call == NULL)
			reduce_locate(c, &r->source[i]);
	if (r->state != REDUCE_RUNNING)
		return;
	for (uint32_t i = 0; i < r->positions; i++)
		r->position[i].dirty = r->position[i].started;
	reduce_tell_all(c, r);
}

/* ---- who has which position ------------------------------------------------------------------ */

static void reduce_start(struct control *c, struct reduce *r, uint32_t index)
{
	struct reduce_position *p = &r->position[index];
	uint32_t parent = reduce_parent(r, index);

	if (p->combines && !p->started) {
		if (p->generation == 0)
			p->generation = control_generation(c);
		if (index == r->root)
			directory_reserve(&c->directory, &p->id, p->generation);
		p->started = p->dirty = true;
	}
	if (parent != REDUCE_TREE_NONE)
		r->position[parent].dirty = true;
}

static void reduce_assign(struct control *c, struct reduce *r, struct reduce_source *s,
			  uint32_t index)
{
	struct reduce_position *p = &r->position[index];

	s->position = index;
	s->absorbed = false;
	if (p->host == REDUCE_NONE)
		p->host = s->node;
	p->has++;
	if (reduce_complete(p))
		reduce_start(c, r, index);
}

void reduce_resume(struct control *c, struct reduce *r, uint32_t position)
{
	const struct reduce_position *p = &r->position[position];

	if (p->combines && reduce_complete(p) && !p->started)
		reduce_start(c, r, position);
}

static bool reduce_open(const struct reduce *r, uint32_t index)
{
	return r->position[index].has < r->position[index].wants;
}

/* The position for something on that node: the root when it is the caller's, else the first in
 * order that is open. */
static uint32_t reduce_choose(const struct reduce *r, uint32_t node)
{
	const struct reduce_position *root = &r->position[r->root];

	if (node == r->caller && reduce_open(r, r->root) &&
	    (root->host == REDUCE_NONE || root->host == node))
		return r->root;
	for (uint32_t i = 0; i < r->positions; i++)
		if (reduce_open(r, i))
			return i;
	return REDUCE_NONE;
}

static struct reduce_source *reduce_next(struct control *c, struct reduce *r, uint32_t after)
{
	struct reduce_source *next = NULL;

	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->state != SOURCE_KNOWN || s->position != REDUCE_NONE || s->arrival <= after ||
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
	uint32_t arrival = 0, index;

	while ((s = reduce_next(c, r, arrival)) != NULL) {
		index = reduce_choose(r, s->node);
		if (index == REDUCE_NONE)
			break;
		arrival = s->arrival;
		reduce_assign(c, r, s, index);
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

static void reduce_name(struct reduce *r, uint32_t index)
{
	struct reduce_position *p = &r->position[index];
	struct {
		struct object_id target;
		uint64_t number, index;
	} key = {r->by_id.id, r->number, index};
	XXH128_canonical_t name;
	uint32_t child[REDUCE_DEGREE_MAX];

	*p = (struct reduce_position){.reduce = r, .host = REDUCE_NONE, .wants = 1};
	if (index == r->root) {
		p->id = r->by_id.id;
	} else {
		XXH128_canonicalFromHash(&name, XXH3_128bits(&key, sizeof(key)));
		memcpy(p->id.bytes, name.digest, sizeof(p->id.bytes));
	}
	p->combines = index == r->root || reduce_children(r, index, child) > 0;
}

static uint32_t reduce_degree(struct control *c, const struct reduce *r)
{
	const struct fanout_link *l = &c->directory.link;
	struct reduce_link link = {l->hop_ns + l->start_ns, l->bytes_per_s};
	uint32_t d = reduce_tree_degree(r->positions, r->size, r->chunk_bytes, link);

	return d < REDUCE_DEGREE_MAX ? d : REDUCE_DEGREE_MAX;
}

/* A group that is there now has its position to itself; one on the caller's node has the root. */
static void reduce_seat(struct control *c, struct reduce *r, const struct reduce_group *group,
			uint32_t groups)
{
	bool rooted = false;
	uint32_t next = 0;

	for (uint32_t g = 0; g < groups; g++)
		rooted = rooted || group[g].node == r->caller;
	for (uint32_t g = 0; g < groups; g++) {
		bool root = rooted && group[g].node == r->caller &&
			    r->position[r->root].host == REDUCE_NONE;
		uint32_t index = r->root;

		if (!root) {
			next += rooted && next == r->root;
			index = next++;
		}
		r->position[index].wants = group[g].count;
		r->position[index].host = group[g].node;
		r->position[index].combines |= group[g].count > 1;
	}
}

static void reduce_take_seats(struct control *c, struct reduce *r)
{
	struct reduce_source *s;
	uint32_t arrival = 0;

	while ((s = reduce_next(c, r, arrival)) != NULL) {
		arrival = s->arrival;
		for (uint32_t i = 0; i < r->positions; i++) {
			if (r->position[i].host != s->node || !reduce_open(r, i))
				continue;
			reduce_assign(c, r, s, i);
			break;
		}
	}
}

void reduce_plan(struct control *c, struct reduce *r)
{
	struct reduce_group *group = c->reduces.group;
	uint32_t grouped, groups = reduce_groups(c, r, group, &grouped);

	r->state = REDUCE_RUNNING;
	if (groups == 0 && !r->sized) /* nothing is there yet: the first one says how large */
		return;
	r->positions = groups + (r->num - grouped);
	r->degree = reduce_degree(c, r);
	r->root = reduce_tree_root(r->positions, r->degree);
	for (uint32_t i = 0; i < r->positions; i++)
		reduce_name(r, i);
	reduce_seat(c, r, group, groups);
	reduce_take_seats(c, r);
	reduce_accept(c, r);
	reduce_fill(c, r);
}
