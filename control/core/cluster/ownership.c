/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shard ownership: which node owns the directory shard of an id. When the members change, holders
 * announce their objects to the new owner (store/announce.c), open requests are sent there (rpc.c),
 * and the old owner forgets the ids and redirects their waiters. Nodes with different views
 * redirect requests to each other until they agree; the requests stay open. Called by all modules.
 */
#include <xxhash.h>
#include "state.h"
#include "join.h"

/* Rendezvous hashing: each node has a weight for the id, and the node with the largest weight owns
 * it. So when a node joins or leaves, only its own ids move; the next owner is the node with the
 * second largest weight. D. G. Thaler, C. V. Ravishankar, 1998. */
static uint64_t ownership_weight(uint32_t node, const struct object_id *id)
{
	return XXH3_64bits_withSeed(id->bytes, sizeof(id->bytes), node + UINT64_C(1));
}

static void ownership_best(const uint32_t *nodes, uint32_t count, const struct object_id *id,
			   uint32_t best[2])
{
	uint64_t weights[2] = {0, 0};

	best[0] = best[1] = MESSAGE_NODE_NONE;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t weight = ownership_weight(nodes[i], id);
		bool first = best[0] == MESSAGE_NODE_NONE || weight > weights[0];

		if (!first && best[1] != MESSAGE_NODE_NONE && weight <= weights[1])
			continue;
		if (first) {
			best[1] = best[0];
			weights[1] = weights[0];
		}
		best[!first] = nodes[i];
		weights[!first] = weight;
	}
}

static uint32_t ownership_owner(const uint32_t *nodes, uint32_t count, const struct object_id *id)
{
	uint32_t best[2];

	ownership_best(nodes, count, id, best);
	return best[0];
}

static bool ownership_fixed(const struct control *c)
{
	return c->config.shards > 0;
}

/* Computing the weights of all members is slow: the owners of recent ids are cached until the view
 * changes. */
static uint32_t ownership_remembered(struct control *c, const struct object_id *id)
{
	struct members *m = &c->cluster->members;
	struct member_owner *o = &m->owner[(id->bytes[0] ^ id->bytes[15]) % MEMBERS_OWNERS];

	if (o->known && object_id_equal(&o->id, id))
		return o->node;
	*o = (struct member_owner){*id, ownership_owner(m->live, m->live_count, id), true};
	return o->node;
}

struct node *ownership_shard(struct control *c, const struct object_id *id)
{
	uint32_t owner;

	if (ownership_fixed(c))
		owner = ownership_owner(c->cluster->shard_nodes, c->config.shards, id);
	else
		owner = ownership_remembered(c, id);
	return owner == MESSAGE_NODE_NONE ? c->cluster->self : &c->cluster->peers.nodes[owner];
}

void ownership_replicas(struct control *c, const struct object_id *id, struct node *owners[2])
{
	uint32_t best[2];

	if (ownership_fixed(c))
		ownership_best(c->cluster->shard_nodes, c->config.shards, id, best);
	else
		ownership_best(c->cluster->members.live, c->cluster->members.live_count, id, best);
	for (int i = 0; i < 2; i++)
		owners[i] = peers_node(c, best[i]);
}

struct node *ownership_stand_in(struct control *c, const struct object_id *id,
				const struct node *than)
{
	const uint32_t *nodes =
		ownership_fixed(c) ? c->cluster->shard_nodes : c->cluster->members.live;
	uint32_t count = ownership_fixed(c) ? c->config.shards : c->cluster->members.live_count;
	uint64_t below = ownership_weight(than->number, id), most = 0;
	struct node *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct node *n = peers_node(c, nodes[i]);
		uint64_t weight = ownership_weight(nodes[i], id);

		if (weight >= below || weight < most || n == c->cluster->self ||
		    !membership_live(n))
			continue;
		most = weight;
		best = n;
	}
	return best;
}

struct node *ownership_backup(struct control *c, const struct object_id *id)
{
	struct node *best = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < c->cluster->members.live_count; i++) {
		struct node *n = peers_node(c, c->cluster->members.live[i]);
		uint64_t weight = ownership_weight(n->number, id);

		if (n == c->cluster->self || !membership_live(n) || c->now_ns < n->unkept_ns ||
		    (best && weight < most))
			continue;
		most = weight;
		best = n;
	}
	return best;
}

bool ownership_is_shard(const struct control *c, const struct node *n)
{
	if (!ownership_fixed(c))
		return membership_joined(c) && !join_is_guest(c, n) && membership_live(n);
	for (uint32_t i = 0; i < c->config.shards; i++)
		if (c->cluster->shard_nodes[i] == n->number)
			return true;
	return false;
}

struct node *ownership_next(struct control *c, uint32_t *cursor)
{
	if (ownership_fixed(c))
		return *cursor < c->config.shards ? peers_node(c, c->cluster->shard_nodes[*cursor])
						  : NULL;
	while (*cursor < c->config.nodes && !membership_live(peers_node(c, *cursor)))
		++*cursor;
	return peers_node(c, *cursor);
}

bool ownership_settling(struct control *c, const struct object_id *id)
{
	const struct members *m = &c->cluster->members;

	if (ownership_fixed(c) || m->live_count < 2 || m->settled)
		return false;
	return ownership_owner(m->before, m->before_count, id) != c->cluster->self->number;
}

bool ownership_before(const struct control *c, const struct node *n, const struct object_id *id)
{
	return !ownership_fixed(c) &&
	       ownership_weight(n->number, id) > ownership_weight(c->cluster->self->number, id);
}

bool ownership_constant(const struct control *c, const struct object_id *id)
{
	uint64_t weight = ownership_weight(c->cluster->self->number, id);

	if (!c->cluster->members.seen || !c->cluster->self->seen)
		return false;
	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (c->cluster->peers.nodes[i].seen && ownership_weight(i, id) > weight)
			return false;
	return true;
}

void ownership_redirect(struct control *c, struct node *n, uint64_t request)
{
	struct message m = {.kind = MESSAGE_REDIRECT, .request = request};

	m.members.digest = membership_digest(c);
	c->counters.redirects++;
	peers_send(c, n, &m);
}
