/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell around each real control core: its queue of events, its clock, its one client. */
#include "../../table.h"
#include "scale.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "engine.h"
#include "rpc/codec.h"

enum { NODE_BURST = 32 };

struct scale_item {
	struct scale_item *next;
	struct record record; /* unless it is a message or a request */
	struct session_request *request;
	uint32_t conn, length;
	uint8_t bytes[];
};

static void node_turn(void *context, uint64_t argument);

uint64_t scale_now(const struct scale *s)
{
	return s->events.now_ns;
}

static uint64_t node_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SCALE_S + (uint64_t)t.tv_nsec;
}

static void node_sample(struct scale_samples *samples, uint64_t ns)
{
	samples->sum_ns += ns;
	samples->all++;
	if (samples->count < SCALE_SAMPLES_MAX)
		samples->ns[samples->count++] = (uint32_t)ns;
}

/* ---- the queue ---------------------------------------------------------------------------- */

static struct scale_item *node_item(struct scale_node *n, const void *bytes, uint32_t length)
{
	struct scale_item *i = calloc(1, sizeof(*i) + length);
	assert(i);
	i->length = length;
	if (length)
		memcpy(i->bytes, bytes, length);
	if (n->queue_tail)
		n->queue_tail->next = i;
	else
		n->queue_head = i;
	n->queue_tail = i;
	if (!n->busy)
		events_add(&n->s->events, scale_now(n->s) + n->s->o.wake_ns + n->s->o.turn_ns,
			   node_turn, n, 0);
	n->busy = true;
	return i;
}

void scale_event(struct scale_node *n, const struct record *r)
{
	if (!n->dead)
		node_item(n, NULL, 0)->record = *r;
}

void scale_message(struct scale_node *n, uint32_t conn, uint8_t *bytes, uint32_t length)
{
	node_item(n, bytes, length)->conn = conn;
}

static void node_take_message(struct scale_node *n, const struct scale_item *i)
{
	struct scale *s = n->s;
	uint64_t begun = node_clock(), decoded, ended;
	struct message m;
	int error = codec_decode(i->bytes, i->length, s->arena, &m);
	assert(error == 0);
	decoded = node_clock();
	n->messages_in++;
	control_message(n->core, i->conn, &m, scale_now(s));
	ended = node_clock();
	n->cpu_ns += ended - begun;
	if (n->index == s->shard) {
		node_sample(&s->cost[m.kind], ended - decoded);
		node_sample(&s->cost_codec, decoded - begun);
	}
}

static void node_take(struct scale_node *n, const struct scale_item *i)
{
	uint64_t begun;
	if (i->length) {
		node_take_message(n, i);
		return;
	}
	begun = node_clock();
	if (i->request)
		control_session_request(n->core, 0, i->request, sizeof(*i->request),
					scale_now(n->s));
	else
		control_event(n->core, 0, &i->record, scale_now(n->s));
	n->cpu_ns += node_clock() - begun;
}

/* ---- turns -------------------------------------------------------------------------------- */

static void node_commands(struct scale_node *n)
{
	struct record burst[NODE_BURST];
	unsigned got;
	while ((got = control_commands(n->core, 0, burst, NODE_BURST)) > 0)
		for (unsigned i = 0; i < got; i++) {
			if (burst[i].op == COMMAND_PEER_OPEN)
				scale_peer_open(n, &burst[i]);
			else if (burst[i].op == COMMAND_PEER_CLOSE)
				scale_peer_close(n, burst[i].peer.conn);
			else if (burst[i].op != COMMAND_PEER_WATCH) /* a probe finds it */
				scale_flow_command(n, &burst[i]);
		}
}

static void node_alarm(void *context, uint64_t at_ns)
{
	struct scale_node *n = context;
	if (n->wake_ns != at_ns)
		return;
	n->wake_ns = 0;
	if (!n->dead && !n->busy) {
		n->busy = true;
		node_turn(n, 0);
	}
}

static void node_turn(void *context, uint64_t argument)
{
	struct scale_node *n = context;
	struct scale_item *i = n->queue_head;
	uint64_t now = scale_now(n->s), begun, next;
	(void)argument;
	if (i) {
		n->queue_head = i->next;
		n->queue_tail = i->next ? n->queue_tail : NULL;
	}
	if (i && !n->dead)
		node_take(n, i);
	if (i)
		free(i->request);
	free(i);
	if (n->dead) {
		n->busy = n->queue_head != NULL;
		if (n->busy)
			events_add(&n->s->events, now, node_turn, n, 0);
		return;
	}
	if (control_next_timeout(n->core) <= now) {
		begun = node_clock();
		control_tick(n->core, now);
		n->cpu_ns += node_clock() - begun;
	}
	node_commands(n);
	n->busy = n->queue_head != NULL;
	if (n->busy) {
		events_add(&n->s->events, now + n->s->o.turn_ns, node_turn, n, 0);
		return;
	}
	next = control_next_timeout(n->core);
	next = next <= now ? now + 1 : next;
	if (next < UINT64_MAX - 1 && (n->wake_ns == 0 || next < n->wake_ns)) {
		n->wake_ns = next;
		events_add(&n->s->events, next, node_alarm, n, next);
	}
}

/* ---- the client --------------------------------------------------------------------------- */

static struct session_request *node_request(struct scale_node *n, uint16_t op)
{
	struct session_request *r = calloc(1, sizeof(*r));
	assert(r);
	r->magic = SESSION_MAGIC;
	r->version = SESSION_VERSION;
	r->op = op;
	r->seq = ++n->seq;
	r->id = n->s->id;
	r->slot = n->slot;
	r->generation = n->generation;
	r->pin = 0;
	r->timeout_ns = -1;
	node_item(n, NULL, 0)->request = r;
	return r;
}

static void node_ended(struct scale_node *n, int32_t status)
{
	n->done_ns = scale_now(n->s);
	n->status = status;
	n->s->ended++;
}

static bool node_reply(void *arg, uint32_t session, const struct session_reply *r, const void *tail,
		       uint32_t tail_bytes)
{
	struct scale_node *n = arg;
	(void)session;
	(void)tail;
	(void)tail_bytes;
	if (r->op == SESSION_ATTACH || r->seq != n->seq)
		return true;
	n->slot = r->slot;
	n->generation = r->generation;
	if (r->status || r->op == SESSION_SEAL || r->op == SESSION_WAIT)
		node_ended(n, r->status);
	else if (r->op == SESSION_CREATE)
		node_request(n, SESSION_SEAL);
	else if (r->op == SESSION_GET && r->watermark == r->size)
		node_ended(n, 0);
	else if (r->op == SESSION_GET)
		node_request(n, SESSION_WAIT)->watermark = UINT64_MAX;
	return true;
}

void scale_create(struct scale_node *n, uint64_t size)
{
	n->asked_ns = scale_now(n->s);
	node_request(n, SESSION_CREATE)->size = size;
}

void scale_get(struct scale_node *n)
{
	n->asked_ns = scale_now(n->s);
	n->wants = true;
	node_request(n, SESSION_GET);
}

void scale_stat(struct scale_node *n)
{
	node_request(n, SESSION_STAT);
}

/* ---- opening ------------------------------------------------------------------------------ */

static void *node_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(p != MAP_FAILED);
	return p;
}

static size_t node_store_bytes(const struct scale *s)
{
	return (s->o.size + (s->o.size >> 6) + (64 << 20)) & ~(size_t)4095;
}

static void node_log(void *arg, enum control_log_level level, const char *text)
{
	const struct scale_node *n = arg;
	if (n->s->o.verbose && level <= CONTROL_LOG_INFO)
		fprintf(stderr, "%.3f ms node %u: %s\n",
			(double)(scale_now(n->s) - SCALE_START_NS) / 1e6, n->index, text);
}

static void node_attach(struct scale_node *n)
{
	struct control_attach a = {
		.store = n->store, .table = n->table, .private = table_private(n->table)};
	struct session_request r = {
		.magic = SESSION_MAGIC, .version = SESSION_VERSION, .op = SESSION_ATTACH};
	int session;
	a.reply.workers = 1;
	a.reply.store_bytes = node_store_bytes(n->s);
	a.reply.incarnation = 1;
	a.reply.addr = n->addr;
	a.reply.mtu = n->s->o.mtu;
	a.reply.chunk_bytes = n->s->chunk_bytes;
	if (control_attach(n->core, &a, scale_now(n->s)) != 0)
		abort();
	session = control_session_open(n->core, n->pins, scale_now(n->s));
	assert(session == 0);
	control_session_request(n->core, 0, &r, sizeof(r), scale_now(n->s));
}

static void node_table(struct scale_node *n)
{
	n->table = node_map(table_bytes(SCALE_TABLE_SLOTS));
	table_begin(n->table, SCALE_TABLE_SLOTS, node_store_bytes(n->s), n->index + 1);
}

static void node_open(struct scale *s, uint32_t index)
{
	struct scale_node *n = &s->nodes[index];
	const struct control_ops ops = {
		.arg = n, .send = scale_send, .reply = node_reply, .log = node_log};
	struct control_config c = s->config;
	n->s = s;
	n->index = index;
	n->addr = s->addrs[index];
	n->store = node_map(node_store_bytes(s));
	n->pins = calloc(SESSION_PINS, sizeof(*n->pins));
	n->conns = calloc(c.conns_max, sizeof(*n->conns));
	n->conn_of = calloc(s->o.nodes, sizeof(*n->conn_of));
	n->buffers = calloc(c.stages_max, sizeof(*n->buffers));
	n->ins = calloc(c.edges_max, sizeof(*n->ins));
	n->outs = calloc(c.edges_max, sizeof(struct scale_flow *));
	assert(n->pins && n->conns && n->conn_of && n->buffers && n->ins && n->outs);
	node_table(n);
	c.node = index;
	c.incarnation = 1;
	c.seed = prng_mix(s->o.seed ^ (uint64_t)index << 32);
	n->core_bytes = control_bytes(&c);
	n->core = control_init(node_map(n->core_bytes), &c, &ops, scale_now(s));
	if (!n->core)
		abort();
	node_attach(n);
	n->busy = true;
	events_add(&s->events, scale_now(s), node_turn, n, 0);
}

static void node_close(struct scale_node *n)
{
	while (n->queue_head) {
		struct scale_item *i = n->queue_head;
		n->queue_head = i->next;
		free(i->request);
		free(i);
	}
	scale_flow_die(n);
	munmap(n->core, n->core_bytes);
	munmap(n->store, node_store_bytes(n->s));
	munmap(n->table, table_bytes(SCALE_TABLE_SLOTS));
	free(n->pins);
	free(n->conns);
	free(n->conn_of);
	free(n->buffers);
	free(n->ins);
	free(n->outs);
}

void scale_open(struct scale *s, const struct scale_options *o)
{
	*s = (struct scale){.o = *o, .draw = {prng_mix(o->seed)}};
	events_init(&s->events, SCALE_START_NS);
	s->chunk_bytes = engine_chunk_bytes(o->mtu, true);
	s->wire_bytes = s->chunk_bytes + ENGINE_DATA_OVERHEAD + ENGINE_OVERHEAD_V4 + 38;
	s->arena = node_map(CODEC_ARENA_BYTES);
	s->scratch = node_map(CODEC_SCRATCH_BYTES);
	s->packet = node_map(MSG_BYTES_MAX);
	s->nodes = calloc(o->nodes, sizeof(*s->nodes));
	s->addrs = calloc(o->nodes, sizeof(*s->addrs));
	assert(s->nodes && s->addrs);
	for (int i = 0; i < SCALE_KINDS; i++)
		s->cost[i].ns = malloc(SCALE_SAMPLES_MAX * sizeof(uint32_t));
	s->cost_codec.ns = malloc(SCALE_SAMPLES_MAX * sizeof(uint32_t));
	for (uint32_t i = 0; i < o->nodes; i++) {
		struct net_addr a = {.port = UDP_PORT_DEFAULT};
		a.ip[10] = a.ip[11] = 0xff;
		a.ip[12] = 10;
		a.ip[13] = (uint8_t)(i >> 16);
		a.ip[14] = (uint8_t)(i >> 8);
		a.ip[15] = (uint8_t)i;
		s->addrs[i] = a;
	}
	for (int i = 0; i < 2; i++)
		((uint64_t *)(void *)s->id.bytes)[i] = prng_next(&s->draw);
	control_config_default(&s->config);
	s->config.nodes = o->nodes;
	s->config.addrs = s->addrs;
	s->config.table_slots = SCALE_TABLE_SLOTS;
	s->config.sessions_max = SCALE_SESSIONS;
	for (uint32_t i = 0; i < o->nodes; i++)
		node_open(s, i);
}

void scale_close(struct scale *s)
{
	while (events_step(&s->events, scale_now(s)))
		; /* nothing that is due now is lost */
	scale_wire_close(s);
	for (uint32_t i = 0; i < s->o.nodes; i++)
		node_close(&s->nodes[i]);
	for (int i = 0; i < SCALE_KINDS; i++)
		free(s->cost[i].ns);
	free(s->cost_codec.ns);
	munmap(s->arena, CODEC_ARENA_BYTES);
	munmap(s->scratch, CODEC_SCRATCH_BYTES);
	munmap(s->packet, MSG_BYTES_MAX);
	events_free(&s->events);
	free(s->active);
	free(s->nodes);
	free(s->addrs);
}

uint64_t scale_resident(const struct scale_node *n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (n->core_bytes + page - 1) / page;
	unsigned char *map = malloc(pages);
	uint64_t count = 0;
	assert(map);
	if (mincore(n->core, n->core_bytes, map) == 0)
		for (size_t i = 0; i < pages; i++)
			count += map[i] & 1;
	free(map);
	return count * page;
}
