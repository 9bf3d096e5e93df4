/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "internal/reduce.h"

enum { PIN = 1 };

static struct object_id cast_id(uint8_t number)
{
	struct object_id id;

	memset(id.bytes, number * 41, sizeof(id.bytes));
	id.bytes[3] = number;
	return id;
}

static struct session_request cast_request(struct cast *c, uint32_t node, uint16_t op, uint8_t id)
{
	struct session_request r = {.magic = SESSION_MAGIC,
				    .op = op,
				    .version = SESSION_VERSION,
				    .seq = ++c->task[node].seq,
				    .timeout_ns = c->patience_ns > 0 ? (int64_t)c->patience_ns : -1,
				    .pin = SESSION_PIN_NONE};
	r.id = cast_id(id);
	return r;
}

static void cast_send(struct cast *c, uint32_t node, struct session_request *r)
{
	c->task[node].answered = false;
	full_request(&c->g.full[node], c->task[node].session, r);
}

/* A receiver learns where the object will be, and then waits for all of it. */
static void cast_reply(void *context, struct full *f, const struct full_reply *r)
{
	struct cast *c = context;
	uint32_t node = f->n->index;
	struct cast_task *t = &c->task[node];

	if (r->reply.seq != t->seq)
		return;
	t->answered = true;
	t->status = r->reply.status;
	if (r->reply.status != 0) {
		if (!c->may_fail)
			fail_msg("request %u: %d, %s", r->reply.op, r->reply.status, r->reply.text);
		snprintf(t->text, sizeof(t->text), "%s", r->reply.text);
		t->done = true;
		t->done_ns = world_now(&c->w);
		return;
	}
	if (r->reply.op != SESSION_WAIT)
		t->reply = r->reply;
	if (r->reply.op != SESSION_GET && r->reply.op != SESSION_WAIT)
		return;
	if (r->reply.op == SESSION_WAIT || r->reply.watermark == c->size) {
		t->done = true;
		t->done_ns = world_now(&c->w);
		return;
	}
	struct session_request wait = cast_request(c, node, SESSION_WAIT, 0);
	wait.slot = t->reply.slot;
	wait.generation = t->reply.generation;
	wait.watermark = c->size;
	cast_send(c, node, &wait);
}

bool cast_all_done(void *context)
{
	const struct cast *c = context;

	for (uint32_t i = 1; i < c->nodes; i++)
		if (!c->task[i].done)
			return false;
	return true;
}

static bool cast_answered(void *task)
{
	return ((struct cast_task *)task)->answered;
}

static void cast_answer(struct cast *c, uint32_t node)
{
	assert_true(world_until(&c->w, 10 * WORLD_S, cast_answered, &c->task[node]) != UINT64_MAX);
}

static void cast_call(struct cast *c, uint32_t node, struct session_request *r)
{
	cast_send(c, node, r);
	cast_answer(c, node);
}

void cast_put_at(struct cast *c, uint32_t node, uint8_t id)
{
	struct session_request r = cast_request(c, node, SESSION_CREATE, id);
	const struct session_reply *made = &c->task[node].reply;

	r.size = c->size;
	r.pin = 2;
	cast_call(c, node, &r);
	memory_fill(c->w.nodes[node].store.base + made->offset, id, 0, c->size);
	r = cast_request(c, node, SESSION_SEAL, id);
	r.slot = made->slot;
	r.generation = made->generation;
	r.watermark = c->size;
	cast_call(c, node, &r);
}

void cast_put(struct cast *c, uint8_t id)
{
	cast_put_at(c, 0, id);
	world_run(&c->w, 50 * WORLD_MS);
}

void cast_reduce(struct cast *c, uint32_t node, uint8_t target, uint8_t first, uint32_t count,
		 uint32_t num)
{
	struct {
		struct session_request r;
		struct object_id source[CAST_NODES_MAX];
	} packet = {.r = cast_request(c, node, SESSION_REDUCE, target)};

	packet.r.flags = c->allreduce ? SESSION_FLAG_ALLREDUCE : 0;
	packet.r.reduction = (struct session_reduction){
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = num, .count = count};
	for (uint32_t i = 0; i < count; i++)
		packet.source[i] = cast_id((uint8_t)(first + i));
	c->task[node].answered = false;
	full_packet(&c->g.full[node], c->task[node].session, &packet,
		    sizeof(packet.r) + count * sizeof(packet.source[0]));
	cast_answer(c, node);
}

void cast_begin(struct cast *c, uint32_t node, uint8_t id)
{
	struct session_request r = cast_request(c, node, SESSION_GET, id);

	c->task[node].done = false;
	r.pin = PIN;
	cast_send(c, node, &r);
}

void cast_check(struct cast *c, uint32_t node, uint8_t id)
{
	assert_int_equal(memory_check(c->w.nodes[node].store.base + c->task[node].reply.offset, id,
				      0, c->size),
			 c->size);
}

uint64_t cast_get(struct cast *c, uint8_t id)
{
	uint64_t begin = world_now(&c->w), last = 0;

	for (uint32_t i = 1; i < c->nodes; i++)
		cast_begin(c, i, id);
	assert_true(world_until(&c->w, 60 * WORLD_S, cast_all_done, c) != UINT64_MAX);
	for (uint32_t i = 1; i < c->nodes; i++) {
		cast_check(c, i, id);
		if (c->task[i].done_ns > last)
			last = c->task[i].done_ns;
	}
	return last - begin;
}

void cast_remove(struct cast *c, uint8_t id)
{
	struct session_request r = cast_request(c, 0, SESSION_DELETE, id);

	for (uint32_t i = 0; i < c->nodes; i++)
		memset(c->g.full[i].pins, 0, sizeof(c->g.full[i].pins));
	world_run(&c->w, 20 * WORLD_MS);
	cast_call(c, 0, &r);
	world_run(&c->w, 200 * WORLD_MS);
}

void cast_open(struct cast *c, uint32_t nodes, uint64_t size, uint64_t mbit, uint32_t shards)
{
	struct control_config config;

	full_config(&config);
	cast_open_as(c, nodes, size, mbit, shards, &config);
}

void cast_attach(struct cast *c, uint32_t node)
{
	struct session_request r = cast_request(c, node, SESSION_ATTACH, 0);

	c->task[node].session = (uint32_t)full_session(&c->g.full[node]);
	cast_send(c, node, &r);
}

void cast_open_as(struct cast *c, uint32_t nodes, uint64_t size, uint64_t mbit, uint32_t shards,
		  const struct control_config *config)
{
	struct network_link link = testkit_link(mbit, 100 * WORLD_US);
	struct node_options o = full_options(4 * size + (4 << 20));

	memset(c, 0, sizeof(*c));
	c->nodes = nodes;
	c->size = size;
	world_init(&c->w, nodes, &link, &o, TESTKIT_SEED, false);
	full_open(&c->g, &c->w, config, shards, 20 * WORLD_US);
	c->g.on_reply = cast_reply;
	c->g.context = c;
	world_run(&c->w, 3 * WORLD_S); /* the members meet */
	for (uint32_t i = 0; i < nodes; i++)
		cast_attach(c, i);
	world_run(&c->w, WORLD_MS);
}

void cast_close(struct cast *c)
{
	full_close(&c->g);
	testkit_clean(&c->w);
	world_free(&c->w);
}

uint64_t cast_sent(const struct cast *c)
{
	return c->w.nodes[0].counters.tx_chunk_bytes;
}

/* ---- reduces -------------------------------------------------------------------------------- */

void cast_open_sources(struct cast *c, uint32_t nodes, uint32_t count, uint64_t size, uint64_t mbit)
{
	cast_open(c, nodes, size, mbit, 0);
	cast_put_sources(c, count);
}

void cast_put_sources(struct cast *c, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		cast_put_at(c, i, (uint8_t)(i + 1));
	c->may_fail = true;
	world_run(&c->w, 50 * WORLD_MS);
}

struct cast_receiver {
	struct cast *c;
	uint32_t node;
	uint8_t target;
};

static bool cast_sum_has_ended(void *context)
{
	const struct cast_receiver *g = context;
	const struct cast_task *t = &g->c->task[g->node];

	if (t->done && t->status == -ERESTART)
		cast_begin(g->c, g->node, g->target);
	return t->done;
}

void cast_sum_ends(struct cast *c, uint32_t node, uint8_t target)
{
	struct cast_receiver g = {c, node, target};

	assert_true(world_until(&c->w, 20 * WORLD_S, cast_sum_has_ended, &g) != UINT64_MAX);
	assert_int_equal(c->task[node].status, 0);
}

void cast_kill(struct cast *c, uint32_t node)
{
	full_kill_control(&c->g.full[node]);
	full_kill_dataplane(&c->g.full[node]);
}
