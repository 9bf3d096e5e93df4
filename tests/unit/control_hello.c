/* SPDX-License-Identifier: BSD-3-Clause */
/* The first thing that two nodes say on a connection: what becomes of it when it is asked for
 * again, or when nothing can leave. */
#include "control_peers.h"

static void probe(struct fixture *f, uint32_t from)
{
	struct message m = {.kind = MESSAGE_MEMBERS};

	m.members.step = MESSAGE_MEMBERS_PROBE;
	m.members.digest = members_digest(f->core);
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
	calls_start(f->core, peers_node(f->core, 1), &status, TABLE_SLOT_NONE, SECOND, NULL, NULL);
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
		cmocka_unit_test(a_connection_that_stands_is_not_forgotten),
		cmocka_unit_test(without_a_slot_the_hello_waits_and_the_rest_behind_it),
		cmocka_unit_test(what_is_known_of_a_link_ends_with_its_node),
		cmocka_unit_test(a_handshake_without_a_time_shows_no_way),
		cmocka_unit_test(a_far_one_without_a_time_is_far_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
