/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../table.h"
#include "full.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "model/crash.h"

enum { FULL_MSG_SLOTS = 32, FULL_BURST = 32, FULL_ROUNDS_MAX = 1000 };

#define FULL_OLD_NS WORLD_S

static struct full *full_of(struct node *n)
{
	return n->context;
}

static void *full_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(p != MAP_FAILED);
	return p;
}

struct node_options full_options(uint64_t store_bytes)
{
	struct node_options o = world_options();
	o.store_bytes = store_bytes;
	o.msg_slots = FULL_MSG_SLOTS;
	o.table_slots = FULL_TABLE_SLOTS;
	o.config.buffers_max = 64;
	o.config.edges_max = 64;
	o.config.msgs_max = FULL_MSG_SLOTS;
	o.config.idle_timeout_ns = 500 * WORLD_MS;
	o.config.block_bytes = 64 << 10;
	return o;
}

void full_config(struct control_config *c)
{
	control_config_default(c);
	c->table_slots = FULL_TABLE_SLOTS;
	c->sessions_max = FULL_SESSIONS;
	c->waits_max = 64;
	c->calls_max = 256;
	c->loopback_max = 32;
	c->links_max = 64;
	c->conns_max = 64;
	c->stages_max = 64;
	c->edges_max = 64;
	c->fetches_max = 16;
	c->serves_max = 32;
	c->entries_max = 256;
	c->copies_max = 512;
	c->waiters_max = 256;
	c->tombstones = 256;
	c->inline_bytes = 4 << 20;
	c->retry_ns = 200 * WORLD_MS;
	c->call_ns = WORLD_S;
	c->directory_ns = WORLD_S;
	c->status_ns = 200 * WORLD_MS;
	c->link_ns = 600 * WORLD_MS;
	c->down_ns = 100 * WORLD_MS;
	c->coordinator_lost_ns = 3 * WORLD_S;
	c->stall_ns = 200 * WORLD_MS;
	c->backoff_min_ns = 5 * WORLD_MS;
	c->backoff_max_ns = 200 * WORLD_MS;
	c->forget_ns = 4 * WORLD_S;
	c->gossip_ns = 200 * WORLD_MS;
	c->silence_ns = 400 * WORLD_MS;
	c->probe_ns = 100 * WORLD_MS;
	c->watch_ns = 300 * WORLD_MS;
	c->confirm_ns = 100 * WORLD_MS;
	c->suspect_ns = 400 * WORLD_MS;
	c->settle_ns = 400 * WORLD_MS;
}

/* ---- each node's own clock ----------------------------------------------------------------- */

uint64_t full_now(const struct full *f)
{
	uint64_t now = world_now(f->group->w);
	return now + (uint64_t)((int64_t)now * f->drift_ppm / 1000000);
}

/* When its clock shows that time. */
static uint64_t full_at(const struct full *f, uint64_t local_ns)
{
	uint64_t at = local_ns;
	if (f->drift_ppm == 0 || local_ns > INT64_MAX / FULL_DRIFT_PPM / 2)
		return local_ns;
	for (int i = 0; i < 3; i++)
		at += local_ns - at - (uint64_t)((int64_t)at * f->drift_ppm / 1000000);
	while (at + (uint64_t)((int64_t)at * f->drift_ppm / 1000000) < local_ns)
		at++;
	return at;
}

static void full_clock(struct full *f, uint32_t node)
{
	struct prng draw = prng_fork(f->group->w->clock_seed, node);
	if (f->group->w->clock_seed == 0)
		return;
	f->skew_ns = prng_below(&draw, FULL_SKEW_NS);
	f->drift_ppm = (int32_t)prng_below(&draw, 2 * FULL_DRIFT_PPM + 1) - FULL_DRIFT_PPM;
}

/* ---- control's ways out ------------------------------------------------------------------- */

/* What is a HELLO of our version to a control that is ahead, and the other way round. */
static const struct message *full_renumber(const struct message *m, struct message *copy,
					   uint32_t add)
{
	if (m->kind != MESSAGE_HELLO || add == 0)
		return m;
	*copy = *m;
	copy->hello.version += add;
	return copy;
}

static bool full_send(void *arg, uint32_t conn, const struct message *m)
{
	struct full *f = arg;
	struct message copy;
	bool sent =
		f->attached && mailbox_send(&f->mailbox, conn, full_renumber(m, &copy, f->newer));
	full_trace(f, sent ? "->" : "-x", conn, m);
	return sent;
}

static bool full_reply(void *arg, uint32_t session, const struct session_reply *r, const void *tail,
		       uint32_t tail_bytes)
{
	struct full *f = arg;
	const struct session_sources *sources = tail;
	struct full_reply *out;
	assert(f->replies_count < FULL_REPLIES);
	out = &f->replies[(f->replies_head + f->replies_count++) % FULL_REPLIES];
	*out = (struct full_reply){session, *r, 0, {{{0}}}};
	if (r->op != SESSION_REDUCED || tail_bytes != sizeof(*sources))
		return true;
	assert(sources->count <= FULL_SOURCES);
	out->sources = sources->count;
	memcpy(out->source, sources->source, sizeof(*out->source) * sources->count);
	return true;
}

/* ---- into control, in which it may die ----------------------------------------------------- */

enum full_entry {
	ENTRY_EVENT,
	ENTRY_MESSAGE,
	ENTRY_TICK,
	ENTRY_COMMANDS,
	ENTRY_REQUEST,
	ENTRY_ATTACH
};

struct full_call {
	struct full *f;
	enum full_entry entry;
	uint32_t number; /* worker, connection or session */
	const void *data;
	size_t bytes;
	struct record *out;
	unsigned got;
	int result;
};

static void full_call_run(void *arg)
{
	struct full_call *c = arg;
	struct control *core = c->f->core;
	uint64_t now = full_now(c->f);
	if (c->entry == ENTRY_EVENT)
		control_event(core, c->number, c->data, now);
	else if (c->entry == ENTRY_MESSAGE)
		control_message(core, c->number, c->data, now);
	else if (c->entry == ENTRY_TICK)
		control_tick(core, now);
	else if (c->entry == ENTRY_COMMANDS)
		c->got = control_commands(core, c->number, c->out, FULL_BURST);
	else if (c->entry == ENTRY_REQUEST)
		control_session_request(core, c->number, c->data, c->bytes, now);
	else
		c->result = control_attach(core, c->data, now);
}

/* Returns false when it died meanwhile. */
static bool full_call(struct full_call *c)
{
	struct full *f = c->f;
	if (crash_run(&f->crash_left, full_call_run, c))
		return true;
	f->crashes++;
	full_kill_control(f);
	return false;
}

static void full_enter(struct full *f, enum full_entry entry, uint32_t number, const void *data,
		       size_t bytes)
{
	struct full_call c = {
		.f = f, .entry = entry, .number = number, .data = data, .bytes = bytes};
	full_call(&c);
}

/* Its dataplane died at a crash point. */
static void full_crashed(struct node *n)
{
	struct full *f = full_of(n);
	f->dataplane_crashes++;
	full_kill_dataplane(f);
}

/* ---- one turn of control ------------------------------------------------------------------ */

static void full_event(struct node *n, const struct record *event)
{
	struct full *f = full_of(n);
	assert(f->events_count < FULL_EVENTS);
	f->events[(f->events_head + f->events_count++) % FULL_EVENTS] =
		(struct full_event){*event, n->worker};
	full_wake(f, world_now(n->world) + f->group->latency_ns);
}

static bool full_events(struct full *f)
{
	bool any = f->events_count > 0;
	struct message m, copy;
	while (f->core && f->events_count) {
		struct full_event e = f->events[f->events_head];
		const struct record *r = &e.record;
		f->events_head = (f->events_head + 1) % FULL_EVENTS;
		f->events_count--;
		full_trace_event(f, r);
		if (r->op != EVENT_MSG && r->op != EVENT_MSG_SENT) {
			full_enter(f, ENTRY_EVENT, e.worker, r, 0);
		} else if (mailbox_event(&f->mailbox, r, &m)) {
			full_trace(f, "<-", r->msg.conn, &m);
			full_enter(f, ENTRY_MESSAGE, r->msg.conn,
				   full_renumber(&m, &copy, -f->newer), 0);
		}
	}
	return any;
}

static bool full_commands_of(struct full *f, uint32_t worker)
{
	struct record burst[FULL_BURST];
	struct full_call c = {.f = f, .entry = ENTRY_COMMANDS, .number = worker, .out = burst};
	bool any = false;
	unsigned got;
	while (f->core && f->attached) {
		if (!full_call(&c))
			return any;
		got = c.got;
		if (!got && worker == 0)
			got = mailbox_commands(&f->mailbox, burst, FULL_BURST);
		if (!got)
			break;
		for (unsigned i = 0; i < got; i++)
			node_command(full_worker(f, worker), &burst[i]);
		any = true;
	}
	return any;
}

static bool full_commands(struct full *f)
{
	bool any = false;
	for (uint32_t k = 0; k < f->workers; k++)
		any |= full_commands_of(f, k);
	return any;
}

static bool full_replies(struct full *f)
{
	bool any = f->replies_count > 0;
	while (f->replies_count) {
		struct full_reply r = f->replies[f->replies_head];
		f->replies_head = (f->replies_head + 1) % FULL_REPLIES;
		f->replies_count--;
		f->group->on_reply(f->group->context, f, &r);
	}
	return any;
}

static void full_run(void *context, uint64_t argument);

void full_wake(struct full *f, uint64_t at_ns)
{
	uint64_t now = world_now(f->n->world);
	at_ns = at_ns < now ? now : at_ns;
	if (f->wake_ns && f->wake_ns >= now && f->wake_ns <= at_ns)
		return;
	f->wake_ns = at_ns;
	events_add(&f->n->world->events, at_ns, full_run, f, at_ns);
}

void full_still(struct full *f, uint64_t until_ns)
{
	for (uint32_t k = 0; k < f->workers; k++)
		node_freeze(full_worker(f, k), until_ns);
	f->frozen_until_ns = until_ns;
}

static void full_run(void *context, uint64_t argument)
{
	struct full *f = context;
	uint64_t now = world_now(f->n->world);
	bool again = true;
	if (f->wake_ns == argument)
		f->wake_ns = 0;
	if (f->pumping)
		return;
	if (now < f->frozen_until_ns) {
		full_wake(f, f->frozen_until_ns);
		return;
	}
	f->pumping = true;
	for (uint32_t rounds = 0; again && f->core; rounds++) {
		if (rounds > FULL_ROUNDS_MAX) {
			world_violation(f->n->world, "node %u: control turns without end",
					f->n->index);
			break;
		}
		again = full_events(f);
		if (f->core && control_next_timeout(f->core) <= full_now(f))
			full_enter(f, ENTRY_TICK, 0, NULL, 0);
		again |= full_commands(f);
		again |= full_replies(f);
	}
	f->pumping = false;
	if (f->core && control_next_timeout(f->core) != UINT64_MAX)
		full_wake(f, full_at(f, control_next_timeout(f->core)));
}

/* ---- processes ---------------------------------------------------------------------------- */

struct node *full_worker(const struct full *f, uint32_t worker)
{
	const struct world *w = f->n->world;
	return &w->nodes[f->n->index + worker * w->count];
}

static void full_workers_kill(struct full *f)
{
	const struct world *w = f->n->world;
	for (uint32_t i = f->n->index; i < w->engines; i += w->count)
		node_kill(&w->nodes[i]);
}

static void full_workers_start(struct full *f)
{
	for (uint32_t k = 0; k < f->workers; k++) {
		full_worker(f, k)->options.config.workers = (uint16_t)f->workers;
		node_start(full_worker(f, k));
	}
}

static void full_attach(struct full *f, bool adopted)
{
	struct node *n = f->n;
	struct object_table *table = (struct object_table *)n->table.base;
	struct control_attach a = {
		.store = n->store.base, .table = table, .private = table_private(table)};
	struct full_call c = {.f = f, .entry = ENTRY_ATTACH, .data = &a};
	f->events_head = f->events_count = 0;
	mailbox_init(&f->mailbox, f->mailbox_memory, f->group->arena, n->msg_tx.base,
		     n->options.msg_slots, n->msg_rx.base, n->config.msg_rx_slots);
	a.reply.workers = f->workers;
	a.reply.adopted = adopted;
	a.reply.store_bytes = n->store.bytes;
	a.reply.incarnation = n->config.incarnation;
	a.reply.addr = n->config.addr;
	a.reply.mtu = n->config.mtu;
	a.reply.chunk_bytes = engine_chunk_bytes(n->config.mtu, !n->world->net.v6);
	f->attached = true;
	if (!full_call(&c))
		return;
	if (c.result != 0)
		world_violation(n->world, "node %u: control does not take the table", n->index);
	full_wake(f, world_now(n->world));
}

void full_kill_dataplane(struct full *f)
{
	if (!f->n->alive)
		return;
	full_trace_life(f, "the dataplane dies");
	full_workers_kill(f);
	f->events_count = 0;
	f->attached = false;
	if (f->core) {
		control_detach(f->core, full_now(f));
		full_wake(f, world_now(f->n->world));
	}
}

void full_start_dataplane(struct full *f)
{
	if (f->n->alive)
		return;
	full_trace_life(f, "the dataplane begins");
	full_workers_start(f);
	if (f->core)
		full_attach(f, true);
}

void full_kill_control(struct full *f)
{
	if (!f->core)
		return;
	full_trace_life(f, "control dies");
	munmap(f->core_memory, control_bytes(&f->group->config));
	f->core = NULL;
	f->attached = false;
	f->crash_left = 0;
	f->replies_count = f->events_count = 0;
	memset(f->pins, 0, sizeof(f->pins));
}

static bool full_old_clients(void *arg)
{
	const struct full *f = arg;
	return world_now(f->group->w) < f->old_until_ns;
}

void full_start_control(struct full *f)
{
	struct full_group *g = f->group;
	const struct control_ops ops = {.arg = f,
					.send = full_send,
					.reply = full_reply,
					.log = full_trace_log,
					.old_clients = full_old_clients};
	struct control_config c = g->config;
	if (f->core)
		return;
	full_trace_life(f, "control begins");
	f->life++;
	if (prng_mix(g->w->seed + f->life) & 1) /* they take what was unfinished along, or not */
		f->old_until_ns = world_now(g->w) + FULL_OLD_NS;
	c.node = f->n->index;
	c.incarnation = full_now(f) + f->skew_ns + f->life; /* as a clock would give it */
	c.seed = prng_mix(g->w->seed ^ ((uint64_t)f->n->index << 32 | f->life));
	f->core_memory = full_map(control_bytes(&c));
	f->core = control_init(f->core_memory, &c, &ops, full_now(f));
	assert(f->core);
	if (!f->n->alive)
		return;
	full_workers_kill(f); /* a dataplane resets for each control */
	full_workers_start(f);
	full_attach(f, false);
}

static void full_table(struct full *f)
{
	struct object_table *t = (struct object_table *)f->n->table.base;
	memset(t, 0, f->n->table.bytes);
	table_begin(t, f->n->options.table_slots, f->n->store.bytes,
		    prng_mix(f->group->w->seed + ++f->life));
}

void full_lose_store(struct full *f)
{
	assert(!f->core && !f->n->alive);
	full_trace_life(f, "the store is lost");
	full_table(f);
	memory_poison(f->n->store.base, f->n->store.bytes);
}

static size_t full_mailbox_bytes(const struct full *f)
{
	return mailbox_bytes(f->n->options.msg_slots, f->n->options.msg_slots);
}

void full_open(struct full_group *g, struct world *w, const struct control_config *config,
	       uint32_t shards, uint64_t latency_ns)
{
	g->w = w;
	g->latency_ns = latency_ns;
	g->trace = getenv("SWARM_TRACE") != NULL;
	g->full = calloc(w->count, sizeof(*g->full));
	g->shard_nodes = calloc(w->count, sizeof(*g->shard_nodes));
	g->addrs = calloc(w->count, sizeof(*g->addrs));
	g->arena = full_map(MAILBOX_ARENA_BYTES);
	assert(g->full && g->shard_nodes && g->addrs);
	for (uint32_t i = 0; i < w->count; i++) {
		g->shard_nodes[i] = i;
		g->addrs[i] = network_addr(&w->net, i);
	}
	g->config = *config;
	g->config.nodes = w->count;
	g->config.shards = shards;
	g->config.addrs = g->addrs;
	g->config.shard_nodes = g->shard_nodes;
	for (uint32_t i = 0; i < w->count; i++) {
		struct full *f = &g->full[i];
		f->n = &w->nodes[i];
		f->workers = f->n->options.config.workers;
		f->group = g;
		full_clock(f, i);
		for (uint32_t k = i; k < w->engines; k += w->count) {
			w->nodes[k].context = f;
			w->nodes[k].control = full_event;
			w->nodes[k].crashed = full_crashed;
		}
		f->events = calloc(FULL_EVENTS, sizeof(*f->events));
		f->replies = calloc(FULL_REPLIES, sizeof(*f->replies));
		f->mailbox_memory = full_map(full_mailbox_bytes(f));
		assert(f->events && f->replies);
		full_table(f);
		full_start_control(f);
	}
}

void full_close(struct full_group *g)
{
	for (uint32_t i = 0; i < g->w->count; i++) {
		struct full *f = &g->full[i];
		full_kill_control(f);
		munmap(f->mailbox_memory, full_mailbox_bytes(f));
		free(f->events);
		free(f->replies);
	}
	munmap(g->arena, MAILBOX_ARENA_BYTES);
	free(g->full);
	free(g->shard_nodes);
	free(g->addrs);
}

/* ---- clients ------------------------------------------------------------------------------ */

int full_session(struct full *f)
{
	/* control numbers its sessions itself; the pins must be those of that number */
	int s = control_session_open(f->core, f->pins[0], full_now(f));
	if (s > 0) {
		control_session_close(f->core, (uint32_t)s, full_now(f));
		s = control_session_open(f->core, f->pins[s], full_now(f));
	}
	return s;
}

void full_packet(struct full *f, uint32_t session, const void *packet, size_t bytes)
{
	if (!f->core) /* it died at a crash point of another request */
		return;
	full_enter(f, ENTRY_REQUEST, session, packet, bytes);
	full_wake(f, world_now(f->n->world));
}

void full_request(struct full *f, uint32_t session, const struct session_request *r)
{
	full_packet(f, session, r, sizeof(*r));
}
