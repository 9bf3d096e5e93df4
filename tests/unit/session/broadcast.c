/* SPDX-License-Identifier: BSD-3-Clause */
/* BROADCAST: copies at named nodes before anybody there asks for them. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"

#define STORE (UINT64_C(8) << 20)

enum { SIZE = 1000000 };

static uint32_t broadcast_send(struct world *w, uint32_t session, const char *name,
			       const uint32_t *nodes, uint32_t count, int64_t timeout_ns)
{
	struct world_node *n = &w->node[0];
	struct {
		struct session_request r;
		uint32_t nodes[8];
	} packet = {world_request(SESSION_BROADCAST, name), {0}};

	packet.r.seq = ++n->seq;
	packet.r.size = count * sizeof(*nodes);
	packet.r.timeout_ns = timeout_ns;
	if (count > 0)
		memcpy(packet.nodes, nodes, packet.r.size);
	control_session_request(n->core, session, &packet, sizeof(packet.r) + packet.r.size,
				w->now_ns);
	return packet.r.seq;
}

static int broadcast(struct world *w, uint32_t session, const char *name, const uint32_t *nodes,
		     uint32_t count, int64_t timeout_ns)
{
	struct world_reply *a =
		world_wait(w, 0, broadcast_send(w, session, name, nodes, count, timeout_ns),
			   30 * WORLD_SECOND);

	assert_non_null(a);
	assert_int_equal(a->reply.status != 0, a->reply.text[0] != '\0');
	return a->reply.status;
}

static uint32_t objects_of(struct world *w, uint32_t node)
{
	struct control_usage u;

	control_usage(w->node[node].core, &u);
	return u.objects;
}

static uint32_t waits_of_node(struct world *w, uint32_t node)
{
	struct control_usage u;

	control_usage(w->node[node].core, &u);
	return u.waits;
}

static void named_nodes_have_a_copy(void **state)
{
	struct world *w = world_new(4, 1, STORE, false);
	uint32_t session = world_open(w, 0), nodes[3] = {2, 0, 1}, reader = world_open(w, 2);

	assert_int_equal(world_put(w, 0, session, "x", SIZE, 7), 0);
	assert_int_equal(broadcast(w, session, "x", nodes, 3, -1), 0);
	assert_int_equal(objects_of(w, 1), 1);
	assert_int_equal(objects_of(w, 2), 1);
	assert_int_equal(objects_of(w, 3), 0);
	assert_int_equal(broadcast(w, session, "x", NULL, 0, -1), 0); /* all */
	assert_int_equal(objects_of(w, 3), 1);
	world_kill_node(w, 0); /* the bytes are there, not only a place for them */
	assert_int_equal(world_get(w, 2, reader, "x", SIZE, 7, WORLD_SECOND), 0);
	world_free(w);
}

/* It may be put later; who is asked again for the same has one wait for it. */
static void before_the_put(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 0), nodes[1] = {1}, writer = world_open(w, 2);
	uint32_t seq = broadcast_send(w, session, "x", nodes, 1, -1);

	world_run(w, 20 * WORLD_SECOND);
	assert_null(world_reply_to(w, 0, seq));
	assert_int_equal(waits_of_node(w, 1), 1);
	assert_int_equal(world_put(w, 2, writer, "x", SIZE, 7), 0);
	assert_int_equal(world_wait(w, 0, seq, 10 * WORLD_SECOND)->reply.status, 0);
	assert_int_equal(objects_of(w, 1), 1);
	assert_int_equal(waits_of_node(w, 1), 0);
	world_end(w);
}

static void refusals(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 0), nodes[2] = {1, 9};
	struct session_request r = world_request(SESSION_BROADCAST, "x");

	assert_int_equal(broadcast(w, session, "x", nodes, 2, -1), -EINVAL);
	r.size = 4; /* and none follows */
	assert_int_equal(world_call(w, 0, session, &r, 0)->reply.status, -EINVAL);
	r.size = UINT64_MAX;
	assert_int_equal(world_call(w, 0, session, &r, 0)->reply.status, -EINVAL);
	assert_int_equal(broadcast(w, session, "x", nodes, 1, 0), -ENOENT);
	assert_int_equal(broadcast(w, session, "x", nodes, 1, 100000000), -ETIMEDOUT);
	assert_int_equal(waits_of_node(w, 0), 0);
	world_run(w, 20 * WORLD_SECOND); /* nobody asks for it any more */
	assert_int_equal(waits_of_node(w, 1), 0);
	assert_int_equal(world_put(w, 0, session, "x", SIZE, 7), 0);
	world_kill_node(w, 1);
	world_run(w, 20 * WORLD_SECOND);
	assert_int_equal(broadcast(w, session, "x", nodes, 1, -1), -EHOSTUNREACH);
	world_free(w);
}

/* A node that dies while it waits is named; without the client nothing is left. */
static void a_node_dies(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 0), nodes[2] = {1, 2};
	uint32_t seq = broadcast_send(w, session, "x", nodes, 2, -1);
	struct world_reply *a;

	world_run(w, WORLD_SECOND);
	world_kill_node(w, 1);
	a = world_wait(w, 0, seq, 30 * WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -EHOSTUNREACH);
	assert_memory_equal(a->reply.text, "node 1: ", 8);
	seq = broadcast_send(w, session, "y", nodes + 1, 1, -1);
	world_run(w, WORLD_SECOND);
	assert_int_equal(waits_of_node(w, 2), 2);
	control_session_close(w->node[0].core, session, w->now_ns);
	world_run(w, 20 * WORLD_SECOND);
	assert_int_equal(waits_of_node(w, 0), 0);
	assert_int_equal(waits_of_node(w, 2), 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_nodes_have_a_copy),
		cmocka_unit_test(before_the_put),
		cmocka_unit_test(refusals),
		cmocka_unit_test(a_node_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
