/* SPDX-License-Identifier: BSD-3-Clause */
/* The first thing that two nodes say on a connection: what becomes of it when it is asked for
 * again, or when nothing can leave. */
#include "fixtures/control_peers.h"

static void probe(struct fixture *f, uint32_t from)
{
	struct message m = {.kind = MESSAGE_MEMBERS};

	m.members.step = MESSAGE_MEMBERS_PROBE;
	m.members.digest = membership_digest(f->core);
	control_message(f->core, conn_of(from), &m, f->now_ns);
}

static uint32_t commands(struct fixture *f, uint8_t op)
{
	struct record r[64];
	unsigned count = control_commands(f->core, 0, r, 64);
	uint32_t found = 0;

	for (unsigned i = 0; i < count; i++)
		found += r[i].op == op;
	return found;
}

/* The next PEER_OPEN to a node of the list; op 0: there is none. */
static struct record next_open(struct fixture *f)
{
	struct record r[64];
	unsigned count = control_commands(f->core, 0, r, 64);

	for (unsigned i = 0; i < count; i++)
		if (r[i].op == COMMAND_PEER_OPEN)
			return r[i];
	return (struct record){.op = COMMAND_NONE};
}

static struct net_addr rail_of(uint32_t n, uint32_t rail)
{
	struct net_addr addr = addr_of(n);

	addr.ip[13] = (uint8_t)(100 + rail);
	return addr;
}

static void hello_rails(struct fixture *f, uint32_t n, uint32_t rails)
{
	struct message m = {.kind = MESSAGE_HELLO};

	m.hello = (struct message_hello){.node = n,
					 .assigned = MESSAGE_NODE_NONE,
					 .version = MESSAGE_VERSION,
					 .workers = 1,
					 .incarnation = 100,
					 .store_incarnation = 200 + n,
					 .digest = membership_digest(f->core)};
	for (uint32_t k = 1; k < rails; k++) {
		struct net_addr addr = rail_of(n, k);

		message_add_rail(&m.hello.rails, &addr);
	}
	control_message(f->core, conn_of(n), &m, f->now_ns);
}

static void have_rails(struct fixture *f, uint32_t rails)
{
	f->core->dataplane.rails = (uint8_t)rails;
	for (uint32_t k = 1; k < rails; k++)
		f->core->dataplane.rail[k].addr = rail_of(0, k);
	peers_own_rails(f->core);
}

/* Once; again when it has gone. */
static void a_path_is_asked_for_on_each_rail_that_both_have(void **state)
{
	struct fixture *f = begin(false);
	struct net_addr want = rail_of(1, 1);
	struct record r, down = {.op = EVENT_PEER_DOWN, .flags = 1};

	have_rails(f, 2);
	link_up(f, 1);
	while (next_open(f).op != COMMAND_NONE)
		;
	hello_rails(f, 1, 3);
	r = next_open(f);
	assert_int_equal(r.op, COMMAND_PEER_OPEN);
	assert_int_equal(r.flags, 1);
	assert_int_equal(r.peer.of, conn_of(1));
	assert_true(net_addr_equal(&r.peer.addr, &want));
	assert_int_equal(f->sent[0].m.hello.rails.count, 1);
	hello_rails(f, 1, 3);
	assert_int_equal(next_open(f).op, COMMAND_NONE);
	down.peer.of = conn_of(1);
	control_event(f->core, 0, &down, f->now_ns);
	hello_rails(f, 1, 3);
	assert_int_equal(next_open(f).flags, 1);
	link_up(f, 2);
	hello_rails(f, 2, 1);
	assert_int_equal(next_open(f).op, COMMAND_NONE);
	end(f);
}

static void a_rail_of_another_family_is_left_out(void **state)
{
	struct fixture *f = begin(false);
	struct record down = {.op = EVENT_PEER_DOWN}, r;

	have_rails(f, 3);
	f->core->dataplane.rail[1].addr =
		(struct net_addr){.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .port = 7400};
	link_up(f, 1);
	while (next_open(f).op != COMMAND_NONE)
		;
	hello_rails(f, 1, 3);
	assert_int_equal(next_open(f).flags, 2);
	assert_int_equal(next_open(f).op, COMMAND_NONE);
	assert_non_null(strstr(f->log, "node 1: rail 1 is not used"));
	f->log[0] = 0;
	hello_rails(f, 1, 3);
	assert_int_equal(f->log[0], 0);
	down.peer.conn = conn_of(1);
	control_event(f->core, 0, &down, f->now_ns);
	for (int i = 0; i < 4000; i++) { /* nor is the node looked for there */
		run(f, MS);
		while ((r = next_open(f)).op != COMMAND_NONE)
			assert_int_not_equal(r.flags, 1);
	}
	end(f);
}

/* And who opens by another rail is known. */
static void a_node_is_looked_for_by_its_rails_in_turn(void **state)
{
	struct fixture *f = begin(false);
	struct record down = {.op = EVENT_PEER_DOWN}, up = {.op = EVENT_PEER_UP, .flags = 1}, r;
	struct net_addr want = rail_of(1, 1);

	have_rails(f, 2);
	link_up(f, 1);
	hello_rails(f, 1, 2);
	down.peer.conn = conn_of(1);
	control_event(f->core, 0, &down, f->now_ns);
	while (next_open(f).op != COMMAND_NONE)
		;
	for (r.op = COMMAND_NONE; r.op == COMMAND_NONE; r = next_open(f))
		run(f, MS);
	assert_true(net_addr_equal(&r.peer.addr, &want));
	assert_int_equal(r.flags, 1);
	assert_int_equal(r.peer.of, 0);
	up.peer.conn = conn_of(1);
	up.peer.addr = want;
	control_event(f->core, 0, &up, f->now_ns);
	assert_int_equal(peers_node(f->core, 1)->main->state, LINK_UP);
	assert_int_equal(peers_node(f->core, 1)->main->conn, conn_of(1));
	hello_rails(f, 1, 2);
	r = next_open(f);
	want = addr_of(1);
	assert_int_equal(r.flags, 0);
	assert_true(net_addr_equal(&r.peer.addr, &want));
	end(f);
}

/* The dataplane answers PEER_OPEN for a connection that stands with PEER_UP; it may have been sent
 * before the first PEER_UP was read here. */
static void a_connection_that_stands_is_not_forgotten(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	link_up(f, 1);
	assert_int_equal(sent(f, MESSAGE_HELLO), 1 + 1); /* its objects are asked for */
	f->sent_count = 0;
	probe(f, 1);
	assert_int_equal(sent(f, MESSAGE_MEMBERS), 1);
	assert_int_equal(control_counters(f->core)->messages_before_hello, 0);
	end(f);
}

static void without_a_slot_the_hello_waits_and_the_rest_behind_it(void **state)
{
	struct fixture *f = begin(false);
	const struct message status = {.kind = MESSAGE_STATUS};

	f->full = true;
	meet(f, 1);
	rpc_start(f->core, peers_node(f->core, 1), &status, TABLE_SLOT_NONE, SECOND, NULL, NULL);
	f->full = false;
	probe(f, 1);
	assert_int_equal(f->sent_count, 0);
	assert_int_equal(commands(f, COMMAND_PEER_CLOSE), 0);
	run(f, 2 * MS);
	assert_int_equal(sent(f, MESSAGE_HELLO), 2);
	assert_int_equal(f->sent[0].m.hello.announce, MESSAGE_ANNOUNCE_NONE);
	assert_int_equal(f->sent[1].m.hello.announce, MESSAGE_ANNOUNCE_ASK);
	assert_int_equal(f->sent[2].m.kind, MESSAGE_STATUS);
	end(f);
}

static bool ended(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

/* It has the copy of an object that was deleted, and there was no room for a call to say so.
 * Meanwhile it asks what this node has. */
static void a_holder_that_was_not_asked_to_remove_announces_all(void **state)
{
	struct fixture *f = begin(false);
	const struct message status = {.kind = MESSAGE_STATUS};
	struct message have = {.kind = MESSAGE_HAVE}, tombstone = {.kind = MESSAGE_TOMBSTONE};
	struct message ask = {.kind = MESSAGE_HELLO, .hello = {.node = 1, .workers = 1}};
	uint32_t asked = 0;

	meet(f, 1);
	meet(f, 2);
	have.have = (struct message_have){.id = id_for(f, 0),
					  .generation = 9,
					  .size = 4,
					  .chunk_bytes = 1408,
					  .state = MESSAGE_COPY_COMPLETE,
					  .upstream = MESSAGE_NODE_NONE};
	control_message(f->core, conn_of(1), &have, f->now_ns);
	f->full = true;
	while (rpc_start(f->core, peers_node(f->core, 2), &status, TABLE_SLOT_NONE, SECOND, ended,
			 NULL))
		;
	tombstone.tombstone = (struct message_tombstone){
		.id = have.have.id, .generation = 9, .node = MESSAGE_NODE_NONE};
	control_message(f->core, conn_of(2), &tombstone, f->now_ns);
	ask.hello.assigned = MESSAGE_NODE_NONE;
	ask.hello.version = MESSAGE_VERSION;
	ask.hello.incarnation = 100;
	ask.hello.store_incarnation = 201;
	ask.hello.digest = membership_digest(f->core);
	ask.hello.announce = MESSAGE_ANNOUNCE_ASK;
	control_message(f->core, conn_of(1), &ask, f->now_ns);
	f->sent_count = 0;
	run(f, 2 * SECOND); /* the calls have ended */
	f->full = false;
	run(f, 2 * MS);
	for (uint32_t i = 0; i < f->sent_count; i++)
		asked += f->sent[i].conn == conn_of(1) && f->sent[i].m.kind == MESSAGE_HELLO &&
			 f->sent[i].m.hello.announce == MESSAGE_ANNOUNCE_ASK;
	assert_int_equal(asked, 1);
	end(f);
}

static void reconnect(struct fixture *f, uint32_t n, uint64_t incarnation, uint32_t rtt_us)
{
	struct record down = {.op = EVENT_PEER_DOWN}, up = {.op = EVENT_PEER_UP};

	down.peer.conn = up.peer.conn = conn_of(n);
	up.peer.addr = addr_of(n);
	up.peer.incarnation = incarnation;
	up.peer.mtu = 1500;
	up.peer.rtt_us = rtt_us;
	control_event(f->core, 0, &down, f->now_ns);
	control_event(f->core, 0, &up, f->now_ns);
}

/* Its incarnation was 5. */
static void what_is_known_of_a_link_ends_with_its_node(void **state)
{
	struct fixture *f = begin(false);
	struct linkstats *s = &f->core->cluster->links;

	meet(f, 1);
	linkstats_saw_start(s, 2, MS);
	for (int i = 0; i < 3; i++)
		linkstats_saw_start(s, 1, 400 * MS);
	linkstats_saw_start(s, 2, MS);
	assert_int_equal(linkstats_of(s, 1).start_ns, 400 * MS);
	reconnect(f, 1, 5, 300);
	assert_int_equal(linkstats_of(s, 1).start_ns, 400 * MS);
	reconnect(f, 1, 6, 300);
	assert_int_equal(linkstats_of(s, 1).start_ns, MS);
	end(f);
}

/* One whose HELLO went twice: nobody knows which of them was answered. */
static void a_handshake_without_a_time_shows_no_way(void **state)
{
	struct fixture *f = begin(false);
	struct linkstats *s = &f->core->cluster->links;
	const uint64_t assumed = fanout_prior().hop_ns;

	s->all = fanout_prior();
	reconnect(f, 1, 5, 0);
	assert_int_equal(s->all.hop_ns, assumed);
	assert_false(s->all.hop_seen);
	reconnect(f, 1, 5, 300);
	assert_int_equal(s->all.hop_ns, 150000);
	reconnect(f, 1, 5, 0);
	assert_int_equal(s->all.hop_ns, 150000);
	reconnect(f, 2, 5, 0);
	assert_int_equal(s->all.hop_ns, 150000);
	end(f);
}

/* Half of what a request and its answer take there more than elsewhere. */
static void a_far_one_without_a_time_is_far_all_the_same(void **state)
{
	struct fixture *f = begin(false);
	struct linkstats *s = &f->core->cluster->links;

	meet(f, 1);
	reconnect(f, 1, 6, 0);
	reconnect(f, 2, 6, 300);
	linkstats_saw_start(s, 2, MS);
	for (int i = 0; i < 3; i++)
		linkstats_saw_start(s, 1, 41 * MS);
	linkstats_saw_start(s, 2, MS);
	assert_int_equal(linkstats_of(s, 1).hop_ns, s->all.hop_ns + 20 * MS);
	reconnect(f, 1, 6, 30000);
	assert_int_equal(linkstats_of(s, 1).hop_ns, 15 * MS);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_asked_for_on_each_rail_that_both_have),
		cmocka_unit_test(a_rail_of_another_family_is_left_out),
		cmocka_unit_test(a_node_is_looked_for_by_its_rails_in_turn),
		cmocka_unit_test(a_connection_that_stands_is_not_forgotten),
		cmocka_unit_test(without_a_slot_the_hello_waits_and_the_rest_behind_it),
		cmocka_unit_test(a_holder_that_was_not_asked_to_remove_announces_all),
		cmocka_unit_test(what_is_known_of_a_link_ends_with_its_node),
		cmocka_unit_test(a_handshake_without_a_time_shows_no_way),
		cmocka_unit_test(a_far_one_without_a_time_is_far_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
