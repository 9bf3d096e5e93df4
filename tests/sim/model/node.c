/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../table.h"
#include "node.h"

#include <assert.h>
#include <stdlib.h>

#include "crash.h"
#include "world.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define NODE_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(NODE_ASAN)
#include <sanitizer/asan_interface.h>
#define NODE_POISON(p, bytes)	ASAN_POISON_MEMORY_REGION(p, bytes)
#define NODE_UNPOISON(p, bytes) ASAN_UNPOISON_MEMORY_REGION(p, bytes)
#else
#define NODE_POISON(p, bytes)	((void)0)
#define NODE_UNPOISON(p, bytes) ((void)0)
#endif

enum { NODE_BURST = 32, NODE_TURNS_MAX = 20000 };

static void node_timer(void *context, uint64_t argument);

static uint16_t node_overhead(const struct node *n)
{
	return n->world->net.v6 ? ENGINE_OVERHEAD_V6 : ENGINE_OVERHEAD_V4;
}

void *node_grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 16;
	array = realloc(array, *room * size);
	assert(array);
	return array;
}

static struct node_ids node_ids_new(uint32_t count)
{
	struct node_ids ids = {.count = count};
	ids.owner = calloc(count, sizeof(*ids.owner));
	ids.generation = calloc(count, sizeof(*ids.generation));
	assert(ids.owner && ids.generation);
	return ids;
}

static void node_memory(struct node *n, const struct node_options *o)
{
	n->store = memory_map_poisoned(o->store_bytes);
	n->table = memory_map(table_bytes(o->table_slots));
	table_begin((struct object_table *)n->table.base, o->table_slots, n->store.bytes, 0);
}

void node_init(struct node *n, struct world *w, uint32_t index, const struct node_options *o)
{
	*n = (struct node){.world = w,
			   .index = index % w->count,
			   .worker = index / w->count,
			   .store_used = NODE_REDZONE_BYTES,
			   .options = *o};
	if (n->worker == 0) {
		node_memory(n, o);
	} else {
		n->store = w->nodes[n->index].store;
		n->table = w->nodes[n->index].table;
	}
	n->msg_tx = memory_map((uint64_t)o->msg_slots * MSG_SLOT_BYTES);
	n->msg_rx = memory_map((uint64_t)(o->msg_rx_slots ? o->msg_rx_slots : o->msg_slots) *
			       MSG_SLOT_BYTES);
	n->tx_slot_used = calloc(o->msg_slots, 1);
	n->in_ids = node_ids_new(o->config.edges_max);
	n->out_ids = node_ids_new(o->config.edges_max);
	n->buffer_ids = node_ids_new(o->config.buffers_max);
	node_start(n);
}

static void node_config(struct node *n)
{
	struct engine_config *c = &n->config;
	*c = n->options.config;
	c->incarnation = ((uint64_t)n->life << 32 | n->index) + 0x5afe000000000001ull;
	c->addr = network_addr(&n->world->net, n->index);
	c->addr.port = (uint16_t)(c->addr.port + n->worker);
	struct prng p = prng_fork(n->world->seed, c->incarnation ^ (uint64_t)n->worker << 56);
	for (unsigned i = 0; i < sizeof(c->key); i++)
		c->key[i] = (uint8_t)prng_next(&p);
	c->store = n->store.base;
	c->store_bytes = n->store.bytes;
	c->table = (struct object_table *)n->table.base;
	c->msg_tx = n->msg_tx.base;
	c->msg_tx_bytes = n->msg_tx.bytes;
	c->msg_rx = n->msg_rx.base;
	c->msg_rx_slots = (uint32_t)(n->msg_rx.bytes / MSG_SLOT_BYTES);
	c->counters = &n->counters;
}

void node_start(struct node *n)
{
	assert(!n->alive);
	n->life = n->worker ? n->world->nodes[n->index].life : n->life + 1;
	n->counters = (struct counters){0};
	node_config(n);
	size_t bytes = engine_bytes(&n->config);
	assert(bytes && "the test's configuration is out of bounds");
	n->engine_memory = memory_map(bytes);
	n->engine = engine_init(n->engine_memory.base, &n->config, world_now(n->world));
	assert(n->engine);
	n->alive = true;
	n->timer_ns = n->turn_scheduled_ns = 0;
	n->kicked = n->in_turn = false;
	memset(n->in_ids.owner, 0, n->in_ids.count * sizeof(uint32_t));
	memset(n->out_ids.owner, 0, n->out_ids.count * sizeof(uint32_t));
	memset(n->buffer_ids.owner, 0, n->buffer_ids.count * sizeof(uint32_t));
	if (n->frozen_until_ns > world_now(n->world))
		node_freeze(n, n->frozen_until_ns); /* its thaw was for the process before */
	node_turn(n);
}

void node_kill(struct node *n)
{
	if (!n->alive)
		return;
	n->alive = false;
	n->crash_left = 0;
	n->pending_count = 0;
	while (n->inbox_count)
		network_discard(&n->world->net, n->inbox[--n->inbox_count]);
	for (uint32_t i = 0; i < n->conns_count; i++)
		if (!n->conns[i].down_ns)
			n->conns[i].down_ns = world_now(n->world);
	for (uint32_t i = 0; i < n->edges_count; i++)
		if (n->edges[i].state < EDGE_FAILED || n->edges[i].state == EDGE_DROPPING)
			n->edges[i].state = EDGE_DROPPED;
	for (uint32_t i = 0; i < n->messages_count; i++)
		n->messages[i].ended = true;
	memset(n->tx_slot_used, 0, n->options.msg_slots);
	for (uint32_t i = 0; i < n->buffers_count; i++) {
		struct node_buffer *b = &n->buffers[i];
		b->live = false;
		if (b->dropping && !b->dropped) {
			b->dropped = true;
			memory_poison(n->store.base + b->store_offset, b->size);
		}
		b->dropping = false;
	}
	memory_unmap(&n->engine_memory);
	n->engine = NULL;
}

void node_free(struct node *n)
{
	node_kill(n);
	if (n->worker == 0) {
		memory_unmap(&n->store);
		memory_unmap(&n->table);
	}
	memory_unmap(&n->msg_tx);
	memory_unmap(&n->msg_rx);
	free(n->tx_slot_used);
	free(n->pending);
	free(n->buffers);
	free(n->edges);
	free(n->messages);
	free(n->conns);
	free(n->extents);
	struct node_ids *ids[] = {&n->in_ids, &n->out_ids, &n->buffer_ids};
	for (unsigned i = 0; i < 3; i++) {
		free(ids[i]->owner);
		free(ids[i]->generation);
	}
}

void node_freeze(struct node *n, uint64_t until_ns)
{
	n->frozen_until_ns = until_ns;
	if (n->turn_scheduled_ns < until_ns) {
		n->turn_scheduled_ns = until_ns;
		events_add(&n->world->events, until_ns, node_timer, n, n->life);
	}
}

/* ---- into the engine, in which it may die -------------------------------------------------- */

struct node_call {
	struct node *n;
	const struct packet_in *in;
	struct packet_out *out;
	struct record *records;
	const struct record *command;
	unsigned got;
	bool taken;
};

static void node_call_receive(void *arg)
{
	struct node_call *c = arg;
	engine_receive(c->n->engine, c->in, world_now(c->n->world));
}

static void node_call_transmit(void *arg)
{
	struct node_call *c = arg;
	c->got = engine_transmit(c->n->engine, c->out, NODE_BURST, world_now(c->n->world));
}

static void node_call_events(void *arg)
{
	struct node_call *c = arg;
	c->got = engine_events(c->n->engine, c->records, NODE_BURST);
}

static void node_call_tick(void *arg)
{
	struct node_call *c = arg;
	engine_tick(c->n->engine, world_now(c->n->world));
}

static void node_call_command(void *arg)
{
	struct node_call *c = arg;
	c->taken = engine_command(c->n->engine, c->command, world_now(c->n->world));
}

/* Returns false when it died meanwhile, or had before. */
static bool node_call(struct node_call *c, void (*call)(void *arg))
{
	if (!c->n->alive)
		return false;
	if (crash_run(&c->n->crash_left, call, c))
		return true;
	c->n->crashed(c->n);
	return false;
}

static bool node_give(struct node *n, const struct record *r)
{
	struct node_call c = {.n = n, .command = r};
	return node_call(&c, node_call_command) && c.taken;
}

/* ---- the shell's loop --------------------------------------------------------------------- */

static void node_receive(struct node *n, struct network_packet *p)
{
	struct packet_in in = {
		.data = p->data, .length = p->length, .ecn = p->ecn, .from = p->source};
	struct node_call c = {.n = n, .in = &in};
	uint16_t length = p->length;
	if (length + node_overhead(n) > n->config.mtu)
		world_violation(n->world, "node %u got a packet above its MTU", n->index);
	NODE_POISON(p->data + length, sizeof(p->data) - length);
	node_call(&c, node_call_receive);
	NODE_UNPOISON(p->data + length, sizeof(p->data) - length);
	network_discard(&n->world->net, p);
}

static void node_send(struct node *n, struct network_packet *p, const struct packet_out *out)
{
	uint32_t length = (uint32_t)out->head_length + out->payload_length;
	if (out->head_length > out->head_room || length + node_overhead(n) > n->config.mtu) {
		world_violation(n->world, "node %u sends %u bytes: above its MTU", n->index,
				length);
		network_discard(&n->world->net, p);
		return;
	}
	if (out->payload_length)
		memcpy(p->data + out->head_length, out->payload, out->payload_length);
	packet_out_seal(out);
	p->length = (uint16_t)length;
	p->from_port = (uint16_t)n->worker;
	network_send(&n->world->net, p, n->index, &out->to, out->ecn);
}

static bool node_transmit(struct node *n)
{
	struct network_packet *packets[NODE_BURST];
	struct packet_out out[NODE_BURST];
	struct node_call c = {.n = n, .out = out};
	bool any = false;
	unsigned got;
	do {
		for (unsigned i = 0; i < NODE_BURST; i++) {
			packets[i] = network_new(&n->world->net);
			out[i] = (struct packet_out){
				.head = packets[i]->data,
				.head_room = (uint16_t)(n->config.mtu - node_overhead(n))};
		}
		got = node_call(&c, node_call_transmit) ? c.got : 0;
		for (unsigned i = 0; i < got; i++)
			node_send(n, packets[i], &out[i]);
		for (unsigned i = got; i < NODE_BURST; i++)
			network_discard(&n->world->net, packets[i]);
		any |= got > 0;
	} while (got == NODE_BURST);
	return any;
}

static bool node_events(struct node *n)
{
	struct record records[NODE_BURST];
	struct node_call c = {.n = n, .records = records};
	bool any = false;
	while (node_call(&c, node_call_events) && c.got > 0) {
		any = true;
		for (unsigned i = 0; i < c.got && n->alive; i++)
			(n->control ? n->control : node_event)(n, &records[i]);
	}
	return any;
}

static void node_flush(struct node *n)
{
	uint32_t given = 0;
	while (given < n->pending_count && node_give(n, &n->pending[given]))
		given++;
	if (!given || !n->alive)
		return;
	n->pending_count -= given;
	memmove(n->pending, n->pending + given, n->pending_count * sizeof(*n->pending));
}

static void node_arm(struct node *n)
{
	uint64_t at = engine_next_timeout(n->engine), now = world_now(n->world);
	if (n->pending_count && at > now + 1000)
		at = now + 1000;
	if (at == UINT64_MAX)
		return;
	if (at < n->frozen_until_ns)
		at = n->frozen_until_ns;
	if (n->timer_ns > now && n->timer_ns <= at)
		return; /* an earlier or equal one is in the heap */
	n->timer_ns = at;
	events_add(&n->world->events, at, node_timer, n, n->life);
}

static void node_spin_check(struct node *n)
{
	if (n->turns_at_ns != world_now(n->world)) {
		n->turns_at_ns = world_now(n->world);
		n->turns_now = 0;
	}
	if (++n->turns_now > NODE_TURNS_MAX) {
		world_violation(n->world, "node %u turns without end at one instant", n->index);
		node_kill(n);
	}
}

void node_turn(struct node *n)
{
	struct node_call c = {.n = n};
	bool again = true;
	if (n->in_turn || !n->alive)
		return;
	n->in_turn = true;
	while (again && n->alive) {
		node_spin_check(n);
		if (!n->alive)
			break;
		again = false;
		node_flush(n);
		if (n->alive && world_now(n->world) >= engine_next_timeout(n->engine))
			node_call(&c, node_call_tick);
		again |= node_transmit(n);
		again |= node_events(n);
	}
	n->in_turn = false;
	if (n->alive)
		node_arm(n);
}

static void node_drain(struct node *n)
{
	uint32_t count = n->inbox_count;
	struct network_packet *batch[NODE_INBOX_PKTS];
	memcpy(batch, n->inbox, count * sizeof(*batch));
	n->inbox_count = 0;
	n->last_turn_ns = world_now(n->world);
	for (uint32_t i = 0; i < count; i++) {
		node_receive(n, batch[i]);
		if (i % NODE_BURST == NODE_BURST - 1)
			node_turn(n);
		if (!n->alive) {
			while (++i < count)
				network_discard(&n->world->net, batch[i]);
			return;
		}
	}
}

static void node_timer(void *context, uint64_t argument)
{
	struct node *n = context;
	uint64_t now = world_now(n->world);
	if (!n->alive || n->life != argument || now < n->frozen_until_ns)
		return;
	n->kicked = false;
	if (now >= n->timer_ns)
		n->timer_ns = 0;
	if (n->inbox_count)
		node_drain(n);
	node_turn(n);
}

void node_deliver(struct node *n, struct network_packet *p)
{
	uint64_t now = world_now(n->world);
	if (!n->alive) {
		network_discard(&n->world->net, p);
		return;
	}
	if (now >= n->frozen_until_ns && !n->options.turn_ns) {
		node_receive(n, p);
		node_turn(n);
		return;
	}
	if (n->inbox_count == NODE_INBOX_PKTS) {
		n->inbox_drops++;
		network_discard(&n->world->net, p);
		return;
	}
	n->inbox[n->inbox_count++] = p;
	if (n->turn_scheduled_ns > now)
		return;
	uint64_t at = n->last_turn_ns + n->options.turn_ns;
	at = at < now ? now : at;
	n->turn_scheduled_ns = at < n->frozen_until_ns ? n->frozen_until_ns : at;
	events_add(&n->world->events, n->turn_scheduled_ns, node_timer, n, n->life);
}

void node_command(struct node *n, const struct record *r)
{
	if (!n->alive)
		return;
	if (!n->in_turn && !n->kicked) {
		n->kicked = true;
		events_add(&n->world->events, world_now(n->world), node_timer, n, n->life);
	}
	if (!n->pending_count && node_give(n, r))
		return;
	if (!n->alive)
		return;
	n->pending = node_grow(n->pending, n->pending_count, &n->pending_room, sizeof(*r));
	n->pending[n->pending_count++] = *r;
}
