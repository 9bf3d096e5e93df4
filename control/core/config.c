/* SPDX-License-Identifier: BSD-3-Clause */
/* The default limits of a control core, and the memory that follows from limits. */
#include "core/lease/kept.h"
#include "state.h"

void control_config_default(struct control_config *config)
{
	*config = (struct control_config){
		.sessions_max = 1024,
		.sessions_user_max = 768,
		.waits_max = 32768,
		.grid_slots = 6, /* fewer are faster without: docs/study/tried.md */
		.creations_max = 1024,
		.creations_user_max = 256,
		.calls_max = 32768,
		.loopback_max = 512,
		.links_max = 4096,
		.conns_max = 4096,
		.stages_max = 2048,
		.edges_max = 4096,
		.fetches_max = 16384,
		.serves_max = 4096,
		.reduces_max = 4096,
		.reduce_sources_max = 65536,
		.reduce_value_bytes = UINT64_C(64) << 20,
		.participants_max = 4096,
		.parts_max = 8192,
		.pushes_max = 256,
		.requesters_max = 2048,
		.groups_max = 64,
		.group_members_max = 4096,
		.waiters_max = OBJECT_TABLE_SLOTS_DEFAULT,
		.inline_bytes = UINT64_C(64) << 20,
		.quota_bytes = UINT64_MAX,
		.references_max = 2 * HOLDS_KEPT,
		.leases_max = LEASES_KEPT,
		.holds_max = HOLDS_KEPT,
		.retry_ns = TIMES_RETRY_NS,
		.call_ns = TIMES_CALL_NS,
		.directory_ns = SESSION_DIRECTORY_NS,
		.status_ns = TIMES_STATUS_NS,
		.link_ns = TIMES_LINK_NS,
		.down_ns = TIMES_DOWN_NS,
		.coordinator_lost_ns = TIMES_COORDINATOR_LOST_NS,
		.stall_ns = TIMES_STALL_NS,
		.backoff_min_ns = TIMES_BACKOFF_MIN_NS,
		.backoff_max_ns = TIMES_BACKOFF_MAX_NS,
		.forget_ns = TIMES_FORGET_NS,
		.replica_ns = TIMES_REPLICA_NS,
		.pins_ns = TIMES_PINS_NS,
		.poll_ns = TIMES_POLL_NS,
		.gossip_ns = TIMES_GOSSIP_NS,
		.silence_ns = TIMES_SILENCE_NS,
		.probe_ns = TIMES_PROBE_NS,
		.watch_ns = TIMES_WATCH_NS,
		.confirm_ns = TIMES_CONFIRM_NS,
		.suspect_ns = TIMES_SUSPECT_NS,
		.rest_ns = TIMES_REST_NS,
		.settle_ns = TIMES_SETTLE_NS,
		.settle_max_ns = TIMES_SETTLE_MAX_NS,
		.join_ns = TIMES_JOIN_NS,
	};
	control_config_slots(config, OBJECT_TABLE_SLOTS_DEFAULT);
}

static bool config_power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static bool config_limits_valid(const struct control_config *f)
{
	return f->table_slots > 0 && f->table_slots <= OBJECT_TABLE_SLOTS_MAX &&
	       f->sessions_max > 0 && f->sessions_user_max > 0 && f->waits_max > 0 &&
	       f->calls_max > 0 && f->calls_max <= CALLS_INDEX_MASK && f->loopback_max > 0 &&
	       f->links_max > 0 && f->conns_max > 0 && f->conns_max <= 65536 && f->stages_max > 0 &&
	       f->stages_max <= BUFFERS_MAX && f->edges_max > 0 && f->edges_max <= EDGES_MAX &&
	       f->fetches_max > 0 && f->serves_max > 0 && f->participants_max > 0 &&
	       f->reduces_max > 0 && f->requesters_max > 0 && f->reduce_sources_max > 0 &&
	       f->parts_max > 0 && f->pushes_max > 0 && f->entries_max > 0 && f->copies_max > 0 &&
	       f->waiters_max > 0 && f->tombstones >= 4 && config_power_of_two(f->tombstones) &&
	       f->quotas_count <= CONTROL_QUOTAS_MAX && f->references_max > 0 &&
	       f->leases_max > 0 && f->holds_max > 0 && f->groups_max > 0 &&
	       f->group_members_max > 0 &&
	       (!f->leases || (f->leases_max == LEASES_KEPT && f->holds_max == HOLDS_KEPT)) &&
	       f->backoff_min_ns > 0 && f->gossip_ns > 0;
}

static bool config_valid(const struct control_config *f)
{
	if (f->nodes == 0 || f->nodes > NODES_MAX || f->shards > f->nodes ||
	    (f->shards > 0 && !f->shard_nodes) || f->seeds_count > MEMBERS_SEEDS_MAX ||
	    (f->seeds_count > 0 ? !f->seeds || f->seeds_count > f->nodes : !f->addrs) ||
	    (f->node >= f->nodes && (f->node != UINT32_MAX || f->seeds_count == 0)))
		return false;
	for (uint32_t i = 0; i < f->shards; i++)
		if (f->shard_nodes[i] >= f->nodes)
			return false;
	return config_limits_valid(f);
}

static uint32_t config_timers(const struct control_config *f)
{
	return f->calls_max + f->waits_max + (1 + FETCH_FEEDS) * f->fetches_max + f->links_max +
	       2 * (f->participants_max + f->parts_max) + f->pushes_max + 3 * f->reduces_max +
	       2 * f->requesters_max + 2 * (f->nodes + MEMBERS_GUESTS) + 13 + f->references_max +
	       f->leases_max + f->holds_max + f->groups_max + EXCERPTS_MAX + 1;
}

struct control *core_join(struct core *k)
{
	struct control *c = &k->control;

	c->cluster = &k->cluster;
	c->directory = &k->directory;
	c->lease = &k->lease;
	c->flow = &k->flow;
	c->store = &k->store;
	c->transfer = &k->transfer;
	c->participant = &k->participant;
	c->coordinator = &k->coordinator;
	c->requester = &k->requester;
	c->group = &k->group;
	c->session = &k->session;
	return c;
}

static void config_carve_cluster(struct arena *a, const struct control_config *f,
				 struct cluster_state *k)
{
	k->shard_nodes = arena_carve(a, sizeof(*k->shard_nodes) * f->shards);
	peers_carve(&k->peers, a, f);
	membership_carve(&k->members, a, f);
	rpc_carve(&k->calls, a, f->calls_max);
	linkstats_carve(&k->links, a, f);
	pool_carve(&k->loopback, a, sizeof(struct loopback), f->loopback_max);
	k->loopback_data = arena_carve(a, (size_t)f->loopback_max * OBJECT_INLINE_MAX);
}

static struct core *config_carve(struct arena *a, const struct control_config *f, struct core *into)
{
	struct core *k = arena_carve(a, sizeof(*k));
	/* Without memory the same steps only add up the bytes, on a throw-away copy. */
	struct core *p = k ? k : into;

	timers_carve(&p->control.timers, a, config_timers(f));
	commands_carve(&p->control.commands, a, f);
	config_carve_cluster(a, f, &p->cluster);
	directory_carve(&p->directory.shard, a, f);
	references_carve(&p->directory.references, a, f);
	backup_carve(&p->directory.backups, a);
	leases_carve(&p->lease.leases, a, f);
	buffers_carve(&p->flow.buffers, a, f);
	objects_carve(&p->store.objects, a, f);
	fetches_carve(&p->transfer.fetches, a, f);
	serves_carve(&p->transfer.serves, a, f);
	pulls_carve(&p->participant.pulls, a, f);
	push_carve(&p->participant.pushes, a, f);
	participants_carve(&p->participant.participants, a, f);
	reduces_carve(&p->coordinator.reduces, a, f);
	requesters_carve(&p->requester.requesters, a, f);
	group_carve(&p->group, a, f);
	sessions_carve(&p->session.sessions, a, f);
	staging_carve(&p->session.creations, a, f);
	owned_carve(&p->session.owners, a);
	excerpts_carve(&p->session.excerpts, a);
	create_wait_carve(&p->session.sessions, a);
	return k;
}

void control_config_slots(struct control_config *config, uint32_t slots)
{
	config->table_slots = slots;
	config->entries_max = 2 * slots;
	config->copies_max = 4 * slots;
	config->tombstones = object_private_tombstones(slots);
}

size_t control_bytes(const struct control_config *config)
{
	struct arena a = {.memory = NULL};
	struct core scratch;

	if (!config_valid(config))
		return 0;
	config_carve(&a, config, &scratch);
	return a.bytes;
}

static void config_table(const struct idmap *m, void (*take)(void *memory, size_t bytes))
{
	take(m->bucket, ((size_t)m->mask + 1) * sizeof(*m->bucket));
}

void control_tables(const struct control *c, void (*take)(void *memory, size_t bytes))
{
	const struct directory *d = &c->directory->shard;

	config_table(&d->by_id, take);
	take(d->by_node, ((size_t)d->by_node_mask + 1) * sizeof(*d->by_node));
	config_table(&c->transfer->fetches.by_id, take);
	config_table(&c->participant->participants.by_id, take);
	config_table(&c->coordinator->reduces.by_id, take);
}

struct control *control_init(void *memory, const struct control_config *config,
			     const struct control_ops *ops, uint64_t now_ns)
{
	struct arena a = {.memory = memory, .hash_key = {config->hash_key[0], config->hash_key[1]}};
	struct control *c;

	if (!memory || !config_valid(config))
		return NULL;
	c = core_join(config_carve(&a, config, NULL));
	c->config = *config;
	c->ops = *ops;
	c->now_ns = now_ns;
	control_start(c);
	return c;
}
