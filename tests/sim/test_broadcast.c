/* SPDX-License-Identifier: BSD-3-Clause */
/* One object to all other nodes at once, whole nodes in virtual time: how near to the bound of the
 * links, and how many copies leave the source. */
#include <string.h>

#include "full.h"
#include "testkit.h"

enum { NODES_MOST = 16, ROUNDS = 12, WARM = 4, PIN = 1 };

struct task {
	struct session_reply reply;
	uint32_t session, seq;
	bool answered, done;
	uint64_t done_ns;
};

struct cast {
	struct world w;
	struct full_group g;
	struct task task[NODES_MOST];
	uint32_t nodes;
	uint64_t size;
	bool getting;
};

static struct session_request cast_request(struct cast *c, uint32_t node, uint16_t op, uint8_t id)
{
	struct session_request r = {.magic = SESSION_MAGIC,
				    .op = op,
				    .version = SESSION_VERSION,
				    .seq = ++c->task[node].seq,
				    .timeout_ns = -1,
				    .pin = SESSION_PIN_NONE};
	memset(r.id.bytes, id * 41, sizeof(r.id.bytes));
	r.id.bytes[3] = id;
	return r;
}

static void cast_send(struct cast *c, uint32_t node, struct session_request *r)
{
	c->task[node].answered = false;
	full_request(&c->g.full[node], c->task[node].session, r);
}

/* A getter is told where the object will be, and then waits for all of it. */
static void cast_reply(void *context, struct full *f, const struct full_reply *r)
{
	struct cast *c = context;
	uint32_t node = f->n->index;
	struct task *t = &c->task[node];

	if (r->reply.seq != t->seq)
		return;
	if (r->reply.status != 0)
		fail_msg("request %u: %d, %s", r->reply.op, r->reply.status, r->reply.text);
	t->answered = true;
	if (r->reply.op != SESSION_WAIT)
		t->reply = r->reply;
	if (!c->getting)
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

static bool cast_all_done(void *context)
{
	const struct cast *c = context;

	for (uint32_t i = 1; i < c->nodes; i++)
		if (!c->task[i].done)
			return false;
	return true;
}

static bool cast_answered(void *context)
{
	return ((struct cast *)context)->task[0].answered;
}

static void cast_call(struct cast *c, struct session_request *r)
{
	cast_send(c, 0, r);
	assert_true(world_until(&c->w, 10 * WORLD_S, cast_answered, c) != UINT64_MAX);
}

static void cast_put(struct cast *c, uint8_t id)
{
	struct session_request r = cast_request(c, 0, SESSION_CREATE, id);
	const struct session_reply *made = &c->task[0].reply;

	c->getting = false;
	r.size = c->size;
	r.pin = 2;
	cast_call(c, &r);
	memory_fill(c->w.nodes[0].store.base + made->offset, id, 0, c->size);
	r = cast_request(c, 0, SESSION_SEAL, id);
	r.slot = made->slot;
	r.generation = made->generation;
	r.watermark = c->size;
	cast_call(c, &r);
	world_run(&c->w, 50 * WORLD_MS);
}

/* Returns when the last one had it, in ns since all asked. */
static uint64_t cast_get(struct cast *c, uint8_t id)
{
	uint64_t begin = world_now(&c->w), last = 0;

	c->getting = true;
	for (uint32_t i = 1; i < c->nodes; i++) {
		struct session_request r = cast_request(c, i, SESSION_GET, id);

		c->task[i].done = false;
		r.pin = PIN;
		cast_send(c, i, &r);
	}
	assert_true(world_until(&c->w, 60 * WORLD_S, cast_all_done, c) != UINT64_MAX);
	for (uint32_t i = 1; i < c->nodes; i++) {
		const struct task *t = &c->task[i];

		assert_int_equal(
			memory_check(c->w.nodes[i].store.base + t->reply.offset, id, 0, c->size),
			c->size);
		last = t->done_ns > last ? t->done_ns : last;
	}
	c->getting = false;
	return last - begin;
}

static void cast_remove(struct cast *c, uint8_t id)
{
	struct session_request r = cast_request(c, 0, SESSION_DELETE, id);

	for (uint32_t i = 0; i < c->nodes; i++)
		memset(c->g.full[i].pins, 0, sizeof(c->g.full[i].pins));
	world_run(&c->w, 20 * WORLD_MS);
	cast_call(c, &r);
	world_run(&c->w, 200 * WORLD_MS);
}

static void cast_open(struct cast *c, uint32_t nodes, uint64_t size, uint64_t mbit, uint32_t shards)
{
	struct network_link link = testkit_link(mbit, 100 * WORLD_US);
	struct node_options o = full_options(4 * size + (4 << 20));
	struct control_config config;

	memset(c, 0, sizeof(*c));
	c->nodes = nodes;
	c->size = size;
	full_config(&config);
	world_init(&c->w, nodes, &link, &o, TESTKIT_SEED, false);
	full_open(&c->g, &c->w, &config, shards, 20 * WORLD_US);
	c->g.on_reply = cast_reply;
	c->g.context = c;
	world_run(&c->w, 3 * WORLD_S); /* the members meet */
	for (uint32_t i = 0; i < nodes; i++) {
		struct session_request r = cast_request(c, i, SESSION_ATTACH, 0);

		c->task[i].session = (uint32_t)full_session(&c->g.full[i]);
		cast_send(c, i, &r);
	}
	world_run(&c->w, WORLD_MS);
}

static void cast_close(struct cast *c)
{
	full_close(&c->g);
	testkit_clean(&c->w);
	world_free(&c->w);
}

static uint64_t cast_sent(const struct cast *c)
{
	return c->w.nodes[0].counters.tx_chunk_bytes;
}

struct expect {
	uint32_t nodes;
	uint64_t size;
	double ratio, copies; /* at most: time to S/B, copies sent by the source */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Medians, after some rounds in which the nodes have learnt how fast their links are. */
static void cast_measure(const struct expect *e, uint64_t mbit)
{
	static struct cast c;
	double ratio[ROUNDS], copies[ROUNDS];
	char what[64];

	cast_open(&c, e->nodes, e->size, mbit, 0);
	for (int k = 0; k < WARM + ROUNDS; k++) {
		uint8_t id = (uint8_t)(k + 1);

		cast_put(&c, id);
		uint64_t sent = cast_sent(&c), ns = cast_get(&c, id);
		if (k >= WARM) {
			ratio[k - WARM] = (double)ns / (double)testkit_bound_ns(e->size, mbit);
			copies[k - WARM] = (double)(cast_sent(&c) - sent) / (double)e->size;
		}
		cast_remove(&c, id);
	}
	qsort(ratio, ROUNDS, sizeof(*ratio), by_value);
	qsort(copies, ROUNDS, sizeof(*copies), by_value);
	snprintf(what, sizeof(what), "%llu KiB to %u, ratio", (unsigned long long)e->size >> 10,
		 e->nodes - 1);
	testkit_at_most(what, ratio[ROUNDS / 2], e->ratio);
	testkit_at_most("copies from the source", copies[ROUNDS / 2], e->copies);
	cast_close(&c);
}

static void broadcasts_are_near_their_bound(void **state)
{
	static const struct expect at_200[] = {
		{8, 1 << 20, 1.15, 1.1},   {16, 1 << 20, 1.3, 1.1}, {8, 256 << 10, 1.3, 1.1},
		{16, 256 << 10, 1.6, 1.1}, {8, 64 << 10, 2.0, 1.1}, {16, 64 << 10, 2.6, 2.1},
		{16, 16 << 10, 5, 4.1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(at_200) / sizeof(at_200[0]); i++)
		cast_measure(&at_200[i], 200);
}

/* Loses the next packet from node 0 to node 1, once. */
static enum network_verdict lose_one(void *context, const struct network_packet *p)
{
	bool *left = context;

	if (!*left || p->from != 0 || p->to != 1)
		return NETWORK_PASS;
	*left = false;
	return NETWORK_DROP;
}

/* Node 2 is sent to node 1, which hears later than node 2 that it will have the object: the request
 * is kept until then, not refused and repeated. */
static void a_request_that_comes_early_waits(void **state)
{
	static struct cast c;
	bool lose = true;
	uint64_t heard;

	(void)state;
	cast_open(&c, 3, 256 << 10, 200, 1);
	cast_put(&c, 1);
	c.w.net.rule = lose_one;
	c.w.net.rule_context = &lose;
	heard = control_counters(c.g.full[2].core)->messages_in;
	cast_get(&c, 1);
	world_run(&c.w, 10 * WORLD_MS);
	heard = control_counters(c.g.full[2].core)->messages_in - heard;
	assert_false(lose);
	testkit_at_most("answers to GET, STREAM, HAVE, HAVE", heard, 4);
	assert_int_equal(c.w.nodes[0].counters.tx_chunk_bytes, c.size); /* a chain it was */
	cast_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broadcasts_are_near_their_bound),
		cmocka_unit_test(a_request_that_comes_early_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
