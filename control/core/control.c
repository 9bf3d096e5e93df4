/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <xxhash.h>
#include "state.h"

_Static_assert(sizeof(struct session_object) * MESSAGE_OBJECTS_MAX <= OBJECT_INLINE_MAX,
	       "a page of objects fits a queued message");

/* ---- small services ---------------------------------------------------------------------- */

const struct control_plan *control_last_plan(const struct control *c)
{
	const struct control_plan *own = &c->coordinator->reduces.last;
	const struct control_plan *heard = &c->session->sessions.heard;

	return heard->generation > own->generation ? heard : own;
}

const struct control_counters *control_counters(const struct control *c)
{
	return &c->counters;
}

static void control_turn(struct control *c);

/* ---- the directory's ways out ------------------------------------------------------------- */

static bool control_answer(void *arg, uint32_t node, const struct message *m)
{
	struct message later;
	struct control *c = arg;

	if (m->kind == MESSAGE_GOT && m->got.what == MESSAGE_GOT_UNKNOWN &&
	    ownership_settling(c, &m->got.id)) { /* a holder may be about to announce it */
		later = *m;
		later.got.what = MESSAGE_GOT_WAIT;
		*later.got.text = '\0';
		m = &later;
	} else if (m->kind == MESSAGE_OBJECTS) {
		reduce_name_targets(c, c->directory->shard.page, m->objects.count);
	} else if (m->kind == MESSAGE_GOT && m->got.what == MESSAGE_GOT_UNKNOWN) {
		later = *m;
		reduce_explain(c, &later.got);
		m = &later;
	}
	return peers_send(c, peers_node(c, node), m);
}

/* Nodes that could not get a REMOVE announce all of their objects, and get it then. */
static void control_remind(struct control *c)
{
	if (c->cluster->calls.pool.used > c->cluster->calls.pool.capacity / 2)
		return;
	c->directory->unremoved = false;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = peers_node(c, i);

		if (!n->unremoved || n->state != NODE_UP) /* control_node_up */
			continue;
		n->unremoved = false;
		if (n != c->cluster->self) {
			handshake_greeting(c, n->main->conn, MESSAGE_ANNOUNCE_ASK);
			continue;
		}
		n->epoch++;
		resync_begin(c);
	}
}

void control_start(struct control *c)
{
	const struct directory_out out = {c,
					  control_answer,
					  agent_remove,
					  agent_replicate,
					  agent_suspect,
					  agent_removals,
					  agent_settled,
					  agent_redirect,
					  backup_keep,
					  backup_later,
					  membership_down_ms,
					  tombstone_copies_beyond,
					  evict_start,
					  references_create,
					  references_unhold,
					  references_describe,
					  agent_unheard,
					  backup_crowded};

	for (uint32_t i = 0; i < c->config.shards; i++)
		c->cluster->shard_nodes[i] = c->config.shard_nodes[i];
	peers_init(c);
	membership_init(c);
	buffers_init(c);
	linkstats_init(&c->cluster->links, c->config.nodes);
	directory_init(&c->directory->shard, &c->config, &c->cluster->links, &out);
	list_init(&c->transfer->fetches.active);
	list_init(&c->participant->participants.active);
	list_init(&c->participant->pulls.early);
	list_init(&c->participant->pushes.early);
	announce_init(c);
	reduces_init(c);
	requesters_init(c);
	list_init(&c->cluster->loopback_queue);
	list_init(&c->session->sessions.polled);
	list_init(&c->session->creations.copying);
	list_init(&c->store->objects.lru);
	list_init(&c->store->objects.zombies);
	spill_init(c);
	c->cluster->calls.count = env_random(c) >> (CALLS_INDEX_BITS + 2);
	c->epoch_ns = c->config.incarnation - c->now_ns;
	tombstone_copies_init(c);
	list_init(&c->session->sessions.creates);
	list_init(&c->session->sessions.prefetches);
	list_init(&c->session->sessions.watching);
	backup_init(c);
	references_init(c);
	leases_init(c);
	group_start(c);
	/* the configuration's own pointers are the caller's */
	c->config.addrs = NULL;
	c->config.seeds = NULL;
	c->config.shard_nodes = c->cluster->shard_nodes;
}

void control_network(struct control *c, const struct network *network)
{
	c->config.network = c->directory->shard.network = network;
}

/* ---- the dataplane comes and goes --------------------------------------------------------- */

int control_attach(struct control *c, const struct control_attach *a, uint64_t now_ns)
{
	bool same = c->table && a->reply.adopted;
	int error = 0;

	assert(!c->attached);
	c->now_ns = now_ns;
	if (a->reply.workers == 0 || a->reply.workers > WORKERS_MAX)
		return -EPROTO;
	if (c->table && !same) {
		placement_restart_all(c);
		participant_reset(c);
	}
	c->memory = a->store;
	c->table = a->table;
	c->private = a->private;
	if (!same)
		error = recovery_attach(c);
	if (error)
		c->table = NULL;
	if (!same && error == 0)
		owned_attach(c);
	if (!same)
		tombstone_copies_attach(c);
	if (error)
		return error;
	c->dataplane = a->reply;
	c->workers = a->reply.workers;
	c->attached = true;
	c->commands.epoch = (uint32_t)c->table->control_epoch;
	c->cluster->self->workers = c->workers;
	peers_own_rails(c);
	c->cluster->self->store_incarnation = c->table->incarnation;
	c->cluster->self->incarnation = a->reply.incarnation;
	if (c->cluster->members.begun_ns == 0)
		c->cluster->members.begun_ns = now_ns;
	if (membership_joined(c)) {
		wiring_node_up(c, c->cluster->self);
		wiring_node_known(c, c->cluster->self);
	}
	peers_attach(c);
	gossip_start(c);
	control_turn(c);
	return 0;
}

void control_detach(struct control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (!c->attached)
		return;
	c->attached = false;
	c->counters.restarts++;
	buffer_events_detach(c);
	peers_detach(c);
	control_turn(c);
}

/* ---- one turn ---------------------------------------------------------------------------- */

static void control_turn(struct control *c)
{
	struct loopback *l;

	membership_pump(c);
	announcer_pump(c);
	tombstone_copies_pump(c);
	backup_pump(c);
	if (c->directory->unremoved)
		control_remind(c);
	while ((l = loopback_pop(c))) {
		dispatch(c, c->cluster->self, 0, &l->message);
		pool_give(&c->cluster->loopback, l);
		membership_pump(c);
		announcer_pump(c);
	}
	agent_notify_later(c);
	group_turn(c);
}

/* ---- what comes in ------------------------------------------------------------------------ */

void control_message(struct control *c, uint32_t conn, const struct message *m, uint64_t now_ns)
{
	struct node *n;

	c->now_ns = now_ns;
	c->counters.messages_in++;
	n = handshake_message(c, conn, m);
	if (n)
		dispatch(c, n, conn, m);
	control_turn(c);
}

void control_event(struct control *c, unsigned worker, const struct record *event, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (!c->attached || worker >= c->workers)
		return;
	if (event->op == EVENT_PEER_UP || event->op == EVENT_PEER_DOWN ||
	    event->op == EVENT_PEER_SILENT)
		peers_event(c, worker, event);
	else
		buffer_events_event(c, worker, event);
	control_turn(c);
}

unsigned control_commands(struct control *c, unsigned worker, struct record *out, unsigned count)
{
	return c->attached && worker < c->workers ? buffers_commands(c, worker, out, count) : 0;
}

void control_tick(struct control *c, uint64_t now_ns)
{
	uint64_t due_ns = timers_next(&c->timers);

	c->now_ns = now_ns;
	c->counters.ticks_late += due_ns < now_ns && now_ns - due_ns > TICK_LATE_NS;
	timers_run(&c->timers, c, now_ns);
	control_turn(c);
}

uint64_t control_next_timeout(const struct control *c)
{
	return timers_next(&c->timers);
}

/* ---- clients ------------------------------------------------------------------------------- */

void control_session_forfeit(struct control *c, uint32_t session, uint64_t now_ns)
{
	c->now_ns = now_ns;
	sessions_forfeit(c, session);
	control_turn(c);
}

void control_session_close(struct control *c, uint32_t session, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (sessions_close(c, session))
		control_turn(c);
}

void control_session_request(struct control *c, uint32_t session, const void *bytes, size_t length,
			     uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (sessions_request(c, session, bytes, length))
		control_turn(c);
}

void control_session_writable(struct control *c, uint32_t session, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (sessions_writable(c, session))
		control_turn(c);
}

bool control_copy(struct control *c, uint64_t now_ns)
{
	if (list_empty(&c->session->creations.copying))
		return false;
	c->now_ns = now_ns;
	staging_copies(c);
	control_turn(c);
	return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

void control_spilled(struct control *c, uint32_t slot, int error, uint64_t now_ns)
{
	c->now_ns = now_ns;
	spill_wrote(c, slot, error);
	control_turn(c);
}

void control_restored(struct control *c, uint32_t slot, int error, uint64_t now_ns)
{
	c->now_ns = now_ns;
	spill_has_read(c, slot, error);
	control_turn(c);
}

bool control_is_spilled(const struct control *c, const struct object_id *id, uint64_t generation)
{
	uint32_t slot = c->table ? slots_find((struct control *)c, id) : TABLE_SLOT_NONE;

	return slot != TABLE_SLOT_NONE && c->table->slot[slot].generation == generation &&
	       c->table->slot[slot].state == OBJECT_SPILLED;
}

/* ---- coming and going ---------------------------------------------------------------------- */

enum control_membership control_membership(const struct control *c)
{
	if (c->cluster->members.fenced)
		return CONTROL_FENCED;
	return membership_joined(c) ? CONTROL_MEMBER : CONTROL_JOINING;
}

uint32_t control_number(const struct control *c)
{
	return membership_joined(c) ? c->cluster->self->number : UINT32_MAX;
}

uint32_t control_members(const struct control *c)
{
	return c->cluster->members.live_count;
}

void control_leave(struct control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	membership_say_end(c, MEMBER_LEFT);
}

bool control_has_left(const struct control *c)
{
	return c->cluster->members.left;
}

void control_rest(struct control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	membership_say_end(c, MEMBER_RESTING);
}

void control_usage(const struct control *c, struct control_usage *out)
{
	*out = (struct control_usage){
		.store_bytes = c->store->objects.space.used_bytes,
		.scratch_bytes = c->flow->buffers.scratch.used_bytes,
		.objects = c->store->objects.count,
		.zombies = c->store->objects.zombie_count,
		.fetches = c->transfer->fetches.pool.used,
		.serves = c->transfer->serves.pool.used,
		.participants = c->participant->participants.pool.used,
		.parts = c->participant->participants.parts.used,
		.pulls = c->participant->pulls.pool.used,
		.pushes = c->participant->pushes.pool.used,
		.stages = c->flow->buffers.stages.used,
		.edges = c->flow->buffers.ins.used + c->flow->buffers.outs.used,
		.calls = c->cluster->calls.pool.used,
		.waits = c->session->sessions.waits.used,
		.entries = c->directory->shard.entries.used,
	};
	list_each(l, after, &c->coordinator->reduces.active) out->reduces++;
	list_each(l, after, &c->requester->requesters.active) out->requesters++;
	for (uint32_t i = 0; i < c->config.nodes; i++)
		out->nodes_up += peers_node((struct control *)c, i)->state == NODE_UP;
	for (uint32_t i = 0; i < c->cluster->peers.links.fresh; i++) {
		const struct link *l = pool_at(&c->cluster->peers.links, i);

		out->links_up += l->state == LINK_UP;
	}
}
