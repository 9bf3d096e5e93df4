/* SPDX-License-Identifier: BSD-3-Clause */
/* One core among peers that are only its mail, for the tests of the members. */
#ifndef SARISSA_TESTS_UNIT_CONTROL_PEERS_H
#define SARISSA_TESTS_UNIT_CONTROL_PEERS_H

#include "../table.h"
#include "control_test.h"
#include "core/state.h"

enum { NODES = 8, NODES_MOST = 130, SLOTS = 64, STORE = 1 << 20, SENT_MAX = 512 };
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct fixture {
	struct control *core;
	void *memory;
	uint8_t *store;
	struct object_table *table;
	uint64_t now_ns;
	struct {
		uint32_t conn;
		struct message m;
		struct message_member first;
	} sent[SENT_MAX];
	uint32_t sent_count, errors;
	bool full; /* no message slot is free */
	char log[256];
	_Atomic uint64_t pins[SESSION_PINS];
};

static inline struct net_addr addr_of(uint32_t n)
{
	struct net_addr a = {.port = 1000};

	a.ip[15] = (uint8_t)(n + 1);
	return a;
}

static inline bool on_send(void *arg, uint32_t conn, const struct message *m)
{
	struct fixture *f = arg;

	if (f->full)
		return false;
	assert_true(f->sent_count < SENT_MAX);
	f->sent[f->sent_count].conn = conn;
	f->sent[f->sent_count].m = *m;
	if (m->kind == MESSAGE_MEMBERS && m->members.count > 0)
		f->sent[f->sent_count].first = m->members.members[0];
	f->sent_count++;
	return true;
}

static inline bool on_reply(void *arg, uint32_t session, const struct session_reply *r,
			    const void *tail, uint32_t tail_bytes)
{
	return true;
}

static inline void on_log(void *arg, enum control_log_level level, const char *text)
{
	struct fixture *f = arg;

	f->errors += level == CONTROL_LOG_ERROR;
	snprintf(f->log, sizeof(f->log), "%s", text);
}

static inline struct object_table *make_table(void)
{
	struct object_table *t = calloc(1, table_bytes(SLOTS));

	table_begin(t, SLOTS, STORE, 77);
	return t;
}

/* Node 0 of a list, or the only seed; its incarnation is 100. */
static inline struct fixture *begin_of(bool seeds, uint32_t nodes)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct control_ops ops = {
		.arg = f, .send = on_send, .reply = on_reply, .log = on_log};
	struct net_addr addrs[NODES_MOST];
	struct control_attach a = {0};
	struct control_config config;

	for (uint32_t i = 0; i < nodes; i++)
		addrs[i] = addr_of(i);
	control_config_default(&config);
	config.nodes = nodes;
	config.node = seeds ? UINT32_MAX : 0;
	config.addrs = seeds ? NULL : addrs;
	config.seeds = addrs;
	config.seeds_count = seeds;
	config.incarnation = 100;
	config.seed = 1;
	config.table_slots = SLOTS;
	config.conns_max = 16;
	f->now_ns = SECOND;
	f->memory = aligned_alloc(64, (control_bytes(&config) + 63) / 64 * 64);
	assert_non_null(f->memory);
	memset(f->memory, 0, control_bytes(&config));
	f->core = control_init(f->memory, &config, &ops, f->now_ns);
	assert_non_null(f->core);
	f->store = calloc(1, STORE);
	f->table = make_table();
	a.store = f->store;
	a.private = table_private(f->table);
	a.table = f->table;
	a.reply.workers = 1;
	a.reply.store_bytes = STORE;
	a.reply.incarnation = 5;
	a.reply.addr = addr_of(0);
	a.reply.mtu = 1500;
	a.reply.chunk_bytes = 1408;
	assert_int_equal(control_attach(f->core, &a, f->now_ns), 0);
	return f;
}

static inline struct fixture *begin(bool seeds)
{
	return begin_of(seeds, NODES);
}

static inline void end(struct fixture *f)
{
	free(f->memory);
	free(f->store);
	free(f->table);
	free(f);
}

static inline uint32_t conn_of(uint32_t n)
{
	return handle_make((uint16_t)n, 1);
}

static inline void link_up(struct fixture *f, uint32_t n)
{
	struct record r = {.op = EVENT_PEER_UP};

	r.peer.conn = conn_of(n);
	r.peer.addr = addr_of(n);
	r.peer.incarnation = 5;
	r.peer.mtu = 1500;
	control_event(f->core, 0, &r, f->now_ns);
}

static inline void hello(struct fixture *f, uint32_t at, uint32_t number, uint64_t incarnation)
{
	struct message m = {.kind = MESSAGE_HELLO};

	m.hello.node = number;
	m.hello.assigned = MESSAGE_NODE_NONE;
	m.hello.version = MESSAGE_VERSION;
	m.hello.workers = 1;
	m.hello.incarnation = incarnation;
	m.hello.store_incarnation = 200 + at;
	m.hello.digest = members_digest(f->core);
	control_message(f->core, conn_of(at), &m, f->now_ns);
}

static inline void meet(struct fixture *f, uint32_t n)
{
	link_up(f, n);
	hello(f, n, n, 100);
}

static inline void tell_at(struct fixture *f, uint32_t from, uint32_t about,
			   enum member_state state, uint64_t incarnation, struct net_addr addr)
{
	const struct message_member member = {
		.node = about, .state = state, .incarnation = incarnation, .addr = addr};
	struct message m = {.kind = MESSAGE_MEMBERS};

	m.members.step = MESSAGE_MEMBERS_NEWS;
	m.members.count = 1;
	m.members.members = &member;
	m.members.digest = members_digest(f->core);
	control_message(f->core, conn_of(from), &m, f->now_ns);
}

static inline void tell(struct fixture *f, uint32_t from, uint32_t about, enum member_state state,
			uint64_t incarnation)
{
	tell_at(f, from, about, state, incarnation, addr_of(about));
}

static inline enum member_state state_of(struct fixture *f, uint32_t n)
{
	return (enum member_state)peers_node(f->core, n)->member;
}

static inline void run(struct fixture *f, uint64_t for_ns);

/* Others say so, and it does not deny it. */
static inline void tell_dead(struct fixture *f, uint32_t from, uint32_t about, uint64_t incarnation)
{
	tell(f, from, about, MEMBER_DEAD, incarnation);
	assert_int_equal(state_of(f, about), MEMBER_SUSPECT);
	run(f, f->core->config.suspect_ns);
	assert_int_equal(state_of(f, about), MEMBER_DEAD);
}

static inline uint32_t sent(const struct fixture *f, uint32_t kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->sent_count; i++)
		count += f->sent[i].m.kind == kind;
	return count;
}

static inline void run(struct fixture *f, uint64_t for_ns)
{
	f->now_ns += for_ns;
	control_tick(f->core, f->now_ns);
}

/* An id that this node (mine) keeps, or node 1. */
static inline struct object_id id_for(struct fixture *f, uint32_t owner)
{
	struct object_id id = {{0}};

	for (;; id.bytes[0]++)
		if (control_shard(f->core, &id)->number == owner)
			return id;
}

#endif
