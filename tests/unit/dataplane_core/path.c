/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections with several paths: two whole engines with a wire between them on each of two rails,
 * which take so many packets a step, or none.
 */
#include "fixtures/core_test.h"
#include "conn/path.h"

enum { RAILS = 2, WIRE_PACKETS = 4096, STEP_NS = 100000, CHUNKS = 700, SIZE = CHUNKS * RIG_CHUNK };

struct wire {
	struct packet *queue; /* WIRE_PACKETS */
	uint32_t head, count;
	uint64_t carried_bytes;
};

struct pair {
	struct rig *r[2];
	struct wire wire[RAILS][2]; /* by rail, and whose packets */
	uint32_t speed[RAILS];	    /* packets a step; 0: pulled */
	uint32_t conn[2];
	uint32_t downs, ups, sent_msgs;
	struct record got, message;
};

static void tweak_a(struct engine_config *f)
{
	f->rails = RAILS;
}

static void tweak_b(struct engine_config *f)
{
	f->rails = RAILS;
	f->incarnation = 2000;
	f->addr.ip[15] = 201;
}

static struct net_addr pair_addr(unsigned node, unsigned rail)
{
	struct net_addr a = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 200}, .port = 7400};

	a.ip[14] = (uint8_t)rail;
	a.ip[15] = (uint8_t)(200 + node);
	return a;
}

static void pair_take(struct pair *p, unsigned node, unsigned rail)
{
	struct wire *w = &p->wire[rail][node];

	while (w->count < WIRE_PACKETS) {
		struct packet *to = &w->queue[(w->head + w->count) % WIRE_PACKETS];
		struct packet_out out = {.head = to->bytes, .head_room = ENGINE_HEAD_MAX};
		struct rig *r = p->r[node];

		if (engine_transmit_rail(r->e, rail, &out, 1, r->now_ns) == 0)
			return;
		struct net_addr want = pair_addr(1 - node, rail);
		assert_true(net_addr_equal(&out.to, &want));
		packet_out_seal(&out);
		if (out.payload_length > 0)
			memcpy(to->bytes + out.head_length, out.payload, out.payload_length);
		to->length = (uint32_t)out.head_length + out.payload_length;
		w->count += p->speed[rail] > 0;
	}
}

static void pair_give(struct pair *p, unsigned node, unsigned rail)
{
	struct wire *w = &p->wire[rail][node];
	struct rig *r = p->r[1 - node];

	for (uint32_t n = 0; n < p->speed[rail] && w->count > 0; n++) {
		struct packet *from = &w->queue[w->head];
		struct packet_in in = {.data = from->bytes,
				       .length = (uint16_t)from->length,
				       .from = pair_addr(node, rail),
				       .rail = (uint8_t)rail};

		engine_receive(r->e, &in, r->now_ns);
		w->carried_bytes += from->length;
		w->head = (w->head + 1) % WIRE_PACKETS;
		w->count--;
	}
	if (p->speed[rail] == 0)
		w->count = 0;
}

static void pair_hear(struct pair *p, unsigned node)
{
	struct record e;

	while (rig_event(p->r[node], &e)) {
		if (e.op == EVENT_PEER_UP && e.peer.of == 0)
			p->conn[node] = e.peer.conn;
		p->ups += e.op == EVENT_PEER_UP;
		p->downs += e.op == EVENT_PEER_DOWN;
		p->sent_msgs += e.op == EVENT_MSG_SENT && e.reason == REASON_NONE;
		if (e.op == EVENT_BUFFER_DONE)
			p->got = e;
		if (e.op == EVENT_MSG)
			p->message = e;
		assert_int_not_equal(e.op, EVENT_REFUSED);
	}
}

static void pair_step(struct pair *p)
{
	for (unsigned n = 0; n < 2; n++) {
		struct rig *r = p->r[n];

		r->now_ns += STEP_NS;
		if (engine_next_timeout(r->e) <= r->now_ns)
			engine_tick(r->e, r->now_ns);
		for (unsigned k = 0; k < RAILS; k++)
			pair_take(p, n, k);
	}
	for (unsigned n = 0; n < 2; n++)
		for (unsigned k = 0; k < RAILS; k++)
			pair_give(p, n, k);
	pair_hear(p, 0);
	pair_hear(p, 1);
}

static void pair_command(struct pair *p, unsigned node, unsigned rail)
{
	struct record r = {.op = COMMAND_PEER_OPEN, .flags = (uint8_t)rail};

	r.peer.addr = pair_addr(1 - node, rail);
	r.peer.of = rail > 0 ? p->conn[node] : 0;
	rig_command(p->r[node], &r);
}

static void pair_wait(struct pair *p, uint32_t ups)
{
	for (uint32_t k = 0; p->ups < ups; k++) {
		assert_true(k < 4000);
		pair_step(p);
	}
}

/* The first rail stands. */
static struct pair *pair_begin(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->r[0] = rig_new(tweak_a);
	p->r[1] = rig_new(tweak_b);
	for (unsigned k = 0; k < RAILS; k++) {
		p->speed[k] = 8;
		for (unsigned n = 0; n < 2; n++)
			p->wire[k][n].queue = malloc(WIRE_PACKETS * sizeof(struct packet));
	}
	pair_command(p, 0, 0);
	pair_wait(p, 2);
	return p;
}

/* Both rails stand; node 0 has a source, of which node 1 gets a copy. */
static struct pair *pair_new(void)
{
	struct pair *p = pair_begin();

	pair_command(p, 0, 1);
	pair_command(p, 1, 1);
	pair_wait(p, 4);
	return p;
}

static void pair_free(struct pair *p)
{
	for (unsigned k = 0; k < RAILS; k++)
		for (unsigned n = 0; n < 2; n++)
			free(p->wire[k][n].queue);
	rig_free(p->r[0]);
	rig_free(p->r[1]);
	free(p);
}

static void pair_copy(struct pair *p)
{
	struct peer at[2] = {{.conn = p->conn[0]}, {.conn = p->conn[1]}};
	struct record source = record_source(0, SIZE, SIZE), sink = record_buffer(0, SIZE);
	struct record in = record_edge(COMMAND_IN, 0, 0, &at[1], 0, CHUNKS);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &at[0], 0, CHUNKS);

	for (uint32_t i = 0; i < SIZE; i++)
		rig_data(p->r[0], 0)[i] = (uint8_t)(i * 2654435761u >> 24);
	rig_command(p->r[0], &source);
	rig_command(p->r[1], &sink);
	rig_command(p->r[1], &in);
	rig_command(p->r[0], &out);
}

/* Steps until the copy is whole. */
static uint32_t pair_finish(struct pair *p)
{
	uint32_t steps = 0;

	for (; p->got.op != EVENT_BUFFER_DONE; steps++) {
		assert_true(steps < 20000);
		pair_step(p);
	}
	assert_memory_equal(rig_data(p->r[0], 0), rig_data(p->r[1], 0), SIZE);
	return steps;
}

static uint32_t pair_missing(const struct pair *p)
{
	return chunks_missing(rig_bitmap(p->r[1], 0), 0, CHUNKS);
}

static void pair_message(struct pair *p)
{
	struct peer at = {.conn = p->conn[0]};
	struct record m = record_msg(&at, 0, 5000);

	p->message.op = EVENT_NONE;
	rig_command(p->r[0], &m);
	for (uint32_t k = 0; p->message.op == EVENT_NONE; k++) {
		assert_true(k < 3000);
		pair_step(p);
	}
	assert_int_equal(p->message.msg.conn, p->conn[1]);
}

static void a_copy_takes_what_each_rail_carries(void **state)
{
	struct pair *p = pair_new();

	p->speed[1] = 4;
	pair_copy(p);
	uint64_t before[2] = {p->wire[0][0].carried_bytes, p->wire[1][0].carried_bytes};
	pair_finish(p);
	uint64_t fast = p->wire[0][0].carried_bytes - before[0];
	uint64_t slow = p->wire[1][0].carried_bytes - before[1];
	assert_in_range(slow * 100 / (fast + slow), 25, 42); /* a third */
	assert_int_equal(p->downs, 0);
	pair_free(p);
}

/* [P12.1] */
static void a_rail_that_is_pulled_loses_nothing_and_is_used_again(void **state)
{
	for (unsigned pulled = 0; pulled < RAILS; pulled++) {
		struct pair *p = pair_new();

		pair_copy(p);
		while (pair_missing(p) > CHUNKS / 2)
			pair_step(p);
		p->speed[pulled] = 0;
		assert_true(pair_finish(p) < 3000);
		pair_message(p);
		assert_true(p->r[0]->counters.paths_impaired > 0);
		for (uint32_t k = 0; k < 60000; k++) /* twice as long as a peer may be silent */
			pair_step(p);
		pair_message(p);
		assert_int_equal(p->downs, 0);
		assert_true(conn_find(p->r[0]->e, p->conn[0])->path[pulled]->impaired);

		p->speed[pulled] = 8;
		for (uint32_t k = 0; k < 6000; k++)
			pair_step(p);
		assert_false(conn_find(p->r[0]->e, p->conn[0])->path[pulled]->impaired);
		p->speed[1 - pulled] = 0;
		pair_message(p);
		assert_int_equal(p->downs, 0);
		pair_free(p);
	}
}

static void a_connection_ends_when_all_rails_are_silent(void **state)
{
	struct pair *p = pair_new();

	p->speed[0] = p->speed[1] = 0;
	for (uint32_t k = 0; p->downs < 4; k++) {
		assert_true(k < 60000);
		pair_step(p);
	}
	assert_int_equal(engine_connections(p->r[0]->e), 0);
	assert_int_equal(engine_connections(p->r[1]->e), 0);
	pair_free(p);
}

static void watched_silence_is_that_of_all_rails(void **state)
{
	struct pair *p = pair_new();
	struct record w = {.op = COMMAND_PEER_WATCH};

	w.watch.conn = p->conn[0];
	w.watch.silence_ns = 50000000;
	rig_command(p->r[0], &w);
	p->speed[0] = 0;
	for (uint32_t k = 0; k < 10000; k++)
		pair_step(p);
	assert_false(conn_find(p->r[0]->e, p->conn[0])->silent);
	p->speed[1] = 0;
	for (uint32_t k = 0; k < 2000; k++)
		pair_step(p);
	assert_true(conn_find(p->r[0]->e, p->conn[0])->silent);
	pair_free(p);
}

static void closing_one_ends_its_paths_at_both_ends(void **state)
{
	struct pair *p = pair_new();
	struct record close = {.op = COMMAND_PEER_CLOSE};

	close.peer.conn = p->conn[0];
	rig_command(p->r[0], &close);
	for (uint32_t k = 0; p->downs < 4; k++) {
		assert_true(k < 100);
		pair_step(p);
	}
	pair_free(p);
}

static void wrong_records_are_refused(void **state)
{
	struct pair *p = pair_new();
	struct rig *r = p->r[0];
	struct record good = {.op = COMMAND_PEER_OPEN, .flags = 1, .token = 9}, bad;

	good.peer.addr = pair_addr(3, 1);
	good.peer.of = p->conn[0];
	REFUSE_RECORD(REASON_BAD_RANGE, bad.flags = RAILS);
	REFUSE_RECORD(REASON_BAD_CONN, bad.peer.of++);
	REFUSE_RECORD(REASON_BAD_CONN,
		      bad.peer.of =
			      r->e->conns[conn_find(r->e, p->conn[0])->path[1]->index].handle);
	REFUSE_RECORD(REASON_BUSY_ID, bad.peer.addr = pair_addr(1, 0));
	pair_free(p);
}

static void a_path_needs_an_opening_at_both_ends(void **state)
{
	struct pair *p = pair_begin();

	pair_command(p, 0, 1);
	for (uint32_t k = 0; k < 5000; k++)
		pair_step(p);
	assert_int_equal(p->ups, 2);
	assert_null(conn_find(p->r[1]->e, p->conn[1])->path[1]);
	pair_command(p, 1, 1);
	pair_wait(p, 4);
	assert_int_equal(p->downs, 0);
	pair_free(p);
}

/* A HELLO to node 0 by rail 1, whatever it says of itself; answer: what node 0 sends there, or
 * nothing. Returns whether there was an answer. */
static bool stranger_hello(struct pair *p, const struct peer *peer, uint32_t path,
			   const uint8_t *time_and_cookie, struct packet *answer)
{
	struct packet hello;
	struct packet_in in = {.data = hello.bytes, .from = peer->addr, .rail = 1};
	struct packet_out out = {.head = answer->bytes, .head_room = ENGINE_HEAD_MAX};
	uint8_t *body = forge_hello(&hello, WIRE_HELLO, peer, WIRE_HELLO_MIN);

	wire_put32(body + HELLO_AT_PATH, path);
	if (time_and_cookie)
		memcpy(body + HELLO_AT_TIME, time_and_cookie, 8 + WIRE_COOKIE_BYTES);
	forge_seal(&hello);
	in.length = (uint16_t)hello.length;
	while (engine_transmit_rail(p->r[0]->e, 1, &out, 1, p->r[0]->now_ns) == 1)
		continue;
	engine_receive(p->r[0]->e, &in, p->r[0]->now_ns);
	return engine_transmit_rail(p->r[0]->e, 1, &out, 1, p->r[0]->now_ns) == 1;
}

/* With a cookie for just this question. */
static bool stranger_asks(struct pair *p, const struct peer *peer, uint32_t path,
			  struct packet *answer)
{
	assert_true(stranger_hello(p, peer, path, NULL, answer));
	assert_int_equal(answer->bytes[0], WIRE_VERSION << 4 | WIRE_COOKIE);
	return stranger_hello(p, peer, path, answer->bytes + WIRE_BODY + HELLO_AT_TIME, answer);
}

/* Node 1 has one rail: the place on the second is free for ever, and everybody may know its
 * incarnation. */
static void nobody_else_becomes_a_path(void **state)
{
	struct pair *p = pair_begin();
	struct conn *c = conn_find(p->r[0]->e, p->conn[0]);
	struct peer peer = {.addr = pair_addr(3, 1), .id = 0x30007, .incarnation = 2000};
	const struct net_addr want = pair_addr(1, 1);
	struct packet answer;

	rig_drops(p->r[0], NULL);
	assert_false(stranger_asks(p, &peer, p->conn[0], &answer));
	rig_drops(p->r[0], "drop_state", 1, NULL);
	assert_null(c->path[1]);

	/* a cookie serves the path that was asked for: each guess costs one */
	assert_true(stranger_hello(p, &peer, p->conn[0] ^ 0x10000, NULL, &answer));
	assert_false(stranger_hello(p, &peer, p->conn[0], answer.bytes + WIRE_BODY + HELLO_AT_TIME,
				    &answer));
	rig_drops(p->r[0], "drop_cookie", 1, NULL);

	/* nor where a path is opened to another address, or stands */
	pair_command(p, 0, 1);
	assert_false(stranger_asks(p, &peer, p->conn[0], &answer));
	pair_command(p, 1, 1);
	pair_wait(p, 4);
	assert_true(net_addr_equal(&c->path[1]->addr, &want));
	pair_free(p);
}

/* A host with the address of a path cannot end the connection by asking for that path again. */
static void another_hello_of_a_path_ends_nothing(void **state)
{
	struct pair *p = pair_new();
	struct conn *c = conn_find(p->r[0]->e, p->conn[0]), *path = c->path[1];
	struct peer peer = {.addr = pair_addr(1, 1), .id = 0x30007, .incarnation = 2000};
	struct packet answer;

	rig_drops(p->r[0], NULL);
	assert_false(stranger_asks(p, &peer, p->conn[0], &answer));
	rig_drops(p->r[0], "drop_state", 1, NULL);
	assert_ptr_equal(conn_find(p->r[0]->e, p->conn[0])->path[1], path);
	pair_copy(p);
	pair_finish(p);
	assert_int_equal(p->downs, 0);
	assert_int_equal(p->ups, 4);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_takes_what_each_rail_carries),
		cmocka_unit_test(a_rail_that_is_pulled_loses_nothing_and_is_used_again),
		cmocka_unit_test(a_connection_ends_when_all_rails_are_silent),
		cmocka_unit_test(watched_silence_is_that_of_all_rails),
		cmocka_unit_test(closing_one_ends_its_paths_at_both_ends),
		cmocka_unit_test(wrong_records_are_refused),
		cmocka_unit_test(a_path_needs_an_opening_at_both_ends),
		cmocka_unit_test(nobody_else_becomes_a_path),
		cmocka_unit_test(another_hello_of_a_path_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
