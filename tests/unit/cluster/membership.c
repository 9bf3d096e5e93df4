/* SPDX-License-Identifier: BSD-3-Clause */
/* Who belongs to the cluster, and what follows. */
#include "fixtures/control_peers.h"

/* ---- cluster/membership.c
 * ---------------------------------------------------------------------------- */

static void reports_are_ordered_by_incarnation(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	tell(f, 1, 2, MEMBER_ALIVE, 50);
	tell(f, 1, 2, MEMBER_DEAD, 49); /* of the past */
	assert_int_equal(state_of(f, 2), MEMBER_ALIVE);
	tell(f, 1, 2, MEMBER_SUSPECT, 50);
	tell(f, 1, 2, MEMBER_ALIVE, 50); /* the worse wins */
	assert_int_equal(state_of(f, 2), MEMBER_SUSPECT);
	tell(f, 1, 2, MEMBER_ALIVE, 51); /* it refutes */
	assert_int_equal(state_of(f, 2), MEMBER_ALIVE);
	tell_dead(f, 1, 2, 60); /* of the future: a life that we did not see */
	tell(f, 1, 2, MEMBER_ALIVE, 60);
	assert_int_equal(state_of(f, 2), MEMBER_DEAD);
	tell(f, 1, 2, MEMBER_LEFT, 60);
	assert_int_equal(state_of(f, 2), MEMBER_LEFT);
	end(f);
}

/* One who was cut off takes all of us for dead: that kills nobody who can say that it lives. */
static void nobody_dies_of_what_others_say(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	meet(f, 2);
	tell(f, 1, 2, MEMBER_DEAD, 100);
	assert_int_equal(state_of(f, 2), MEMBER_SUSPECT);
	tell(f, 1, 2, MEMBER_DEAD, 100);
	run(f, f->core->config.suspect_ns - 1);
	assert_int_equal(state_of(f, 2), MEMBER_SUSPECT);
	tell(f, 2, 2, MEMBER_ALIVE, 101);
	run(f, SECOND / 10);
	assert_int_equal(state_of(f, 2), MEMBER_ALIVE);
	tell(f, 1, 2, MEMBER_LEFT, 101); /* a goodbye is its own word */
	assert_int_equal(state_of(f, 2), MEMBER_LEFT);
	end(f);
}

static void a_repeated_report_is_not_passed_on(void **state)
{
	struct fixture *f = begin(false);
	uint32_t before;

	meet(f, 1);
	meet(f, 2);
	tell(f, 1, 3, MEMBER_DEAD, 50);
	run(f, SECOND / 10);
	before = f->sent_count;
	tell(f, 2, 3, MEMBER_DEAD, 50);
	assert_int_equal(f->sent_count, before);
	end(f);
}

static void our_own_end_is_refuted(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	f->sent_count = 0;
	tell(f, 1, 0, MEMBER_DEAD, 99); /* of an earlier life: true */
	assert_int_equal(control_counters(f->core)->members_refuted, 0);
	tell(f, 1, 0, MEMBER_DEAD, 100);
	assert_int_equal(control_counters(f->core)->members_refuted, 1);
	assert_int_equal(f->core->cluster->self->member_incarnation, 101);
	assert_int_equal(sent(f, MESSAGE_HELLO), 1);
	tell(f, 1, 0, MEMBER_SUSPECT, 500);
	assert_int_equal(f->core->cluster->self->member_incarnation, 501);
	end(f);
}

/* Others may have acted on a life that we have not seen, or have missed in ours: all is told again.
 */
static void a_life_that_was_not_seen_counts_for_all(void **state)
{
	struct fixture *f = begin(false);
	const struct message_member both[] = {
		{.node = 2, .state = MEMBER_ALIVE, .incarnation = 103, .addr = addr_of(2)},
		{.node = 2, .state = MEMBER_LEFT, .incarnation = 103, .addr = addr_of(2)}};
	struct message m = {.kind = MESSAGE_MEMBERS};
	uint64_t life;

	meet(f, 1);
	meet(f, 2);
	life = membership_epoch(f->core, peers_node(f->core, 1));
	tell(f, 1, 2, MEMBER_ALIVE, 101); /* seen from its start, */
	tell(f, 1, 2, MEMBER_LEFT, 101);  /* to its end */
	assert_int_equal(membership_epoch(f->core, peers_node(f->core, 1)), life);
	tell(f, 1, 2, MEMBER_LEFT, 102); /* only its end */
	assert_int_equal(membership_epoch(f->core, peers_node(f->core, 1)), life + 1);
	m.members.count = 2; /* both at a time */
	m.members.members = both;
	m.members.digest = membership_digest(f->core);
	control_message(f->core, conn_of(1), &m, f->now_ns);
	assert_int_equal(membership_epoch(f->core, peers_node(f->core, 1)), life + 2);
	end(f);
}

static void forged_numbers_and_addresses_are_strange(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	tell(f, 1, NODES, MEMBER_DEAD, 50);
	tell(f, 1, UINT32_MAX, MEMBER_ALIVE, 50);
	tell_at(f, 1, 2, MEMBER_DEAD, 5000, addr_of(7)); /* the list has another address */
	assert_int_equal(control_counters(f->core)->members_strange, 3);
	assert_int_equal(state_of(f, 2), MEMBER_ALIVE);
	end(f);
}

static bool unanswered(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

/* Who took us for dead has not heard what we asked: it is asked again, after a HELLO of a life that
 * it listens to, and not a second later. */
static void one_who_took_us_for_dead_is_asked_again(void **state)
{
	const struct message status = {.kind = MESSAGE_STATUS};
	struct fixture *f = begin(false);

	for (uint32_t n = 1; n <= 2; n++) {
		meet(f, n);
		rpc_start(f->core, peers_node(f->core, n), &status, TABLE_SLOT_NONE, SECOND,
			  unanswered, NULL);
	}
	f->sent_count = 0;
	tell(f, 1, 0, MEMBER_DEAD, 100);
	assert_int_equal(sent(f, MESSAGE_HELLO), 2);
	assert_int_equal(sent(f, MESSAGE_STATUS), 1);
	assert_int_equal(f->sent[2].m.kind, MESSAGE_STATUS);
	assert_int_equal(f->sent[2].conn, conn_of(1));
	tell(f, 2, 0, MEMBER_SUSPECT, 200); /* it listens */
	assert_int_equal(sent(f, MESSAGE_STATUS), 1);
	end(f);
}

static void a_hello_of_an_ended_life_is_told_so(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	tell_dead(f, 1, 2, 100);
	link_up(f, 2);
	f->sent_count = 0;
	hello(f, 2, 2, 100);
	assert_int_equal(control_counters(f->core)->members_stale, 1);
	assert_int_equal(sent(f, MESSAGE_MEMBERS), 1);
	assert_int_equal(f->sent[0].first.state, MEMBER_DEAD);
	assert_int_equal(state_of(f, 2), MEMBER_DEAD);
	hello(f, 2, 2, 101);
	assert_int_equal(state_of(f, 2), MEMBER_ALIVE);
	end(f);
}

/* What was heard of it before anybody here has met it counts, whatever store it has; a new store
 * has forgotten all. */
static void a_death_is_known_before_the_first_hello(void **state)
{
	struct fixture *f = begin(false);
	struct node *n = peers_node(f->core, 2);

	meet(f, 1);
	tell_dead(f, 1, 2, 100);
	assert_true(n->died);
	link_up(f, 2);
	hello(f, 2, 2, 101);
	assert_int_equal(state_of(f, 2), MEMBER_ALIVE);
	assert_true(n->died);
	n->store_incarnation--;
	hello(f, 2, 2, 101);
	assert_false(n->died);
	end(f);
}

static void peer_down(struct fixture *f, uint32_t n)
{
	struct record r = {.op = EVENT_PEER_DOWN};

	r.peer.conn = conn_of(n);
	control_event(f->core, 0, &r, f->now_ns);
}

static uint32_t opened(struct fixture *f, uint32_t n)
{
	struct net_addr addr = addr_of(n);
	struct record r;
	uint32_t count = 0;

	while (control_commands(f->core, 0, &r, 1))
		count += r.op == COMMAND_PEER_OPEN && net_addr_equal(&r.peer.addr, &addr);
	return count;
}

/* While it was dead we tried in vain, in growing pauses. */
static void one_who_is_back_is_connected_with_at_once(void **state)
{
	struct fixture *f = begin(false);
	struct link *l;

	meet(f, 1);
	meet(f, 2);
	tell_dead(f, 1, 2, 100);
	peer_down(f, 2);
	l = peers_node(f->core, 2)->main;
	l->attempts = 6;
	l->wanted = true;
	for (int k = 0; k < 2; k++) {
		uint64_t life = 101 + 2 * (uint64_t)k;

		opened(f, 2);
		tell(f, 1, 2, MEMBER_ALIVE,
		     life); /* at first a pause runs, then it is being opened */
		assert_int_equal(opened(f, 2), 1);
		tell(f, 1, 2, MEMBER_ALIVE, life + 1);
		assert_int_equal(opened(f, 2), 0); /* it was alive */
		tell_dead(f, 1, 2, life + 1);
	}
	end(f);
}

/* ---- what follows for the directory (cluster/ownership.c)
 * -------------------------------------------- */

static void get_from(struct fixture *f, uint32_t n, struct object_id id, uint64_t request)
{
	struct message m = {.kind = MESSAGE_GET, .request = request};

	m.get.id = id;
	m.get.failed = MESSAGE_NODE_NONE;
	control_message(f->core, conn_of(n), &m, f->now_ns);
}

static uint32_t entries(struct fixture *f)
{
	struct control_usage u;

	control_usage(f->core, &u);
	return u.entries;
}

static void a_request_for_another_owner_is_sent_away(void **state)
{
	struct fixture *f = begin(false);

	meet(f, 1);
	get_from(f, 1, id_for(f, 1), 9);
	assert_int_equal(control_counters(f->core)->redirects, 1);
	assert_int_equal(entries(f), 0);
	get_from(f, 1, id_for(f, 0), 10);
	assert_int_equal(entries(f), 1);
	end(f);
}

/* Seed 2047 of objects-cuts: it went on asking over its old connection, and waited for ever. */
static void a_dead_member_waits_for_nothing(void **state)
{
	struct fixture *f = begin(false);
	struct record r[8];
	unsigned closed = 0, count;

	meet(f, 1);
	meet(f, 2);
	get_from(f, 1, id_for(f, 0), 9);
	assert_int_equal(entries(f), 1);
	while (control_commands(f->core, 0, r, 8) > 0)
		;
	tell_dead(f, 2, 1, 100);
	assert_int_equal(entries(f), 0);
	get_from(f, 1, id_for(f, 0), 10);
	assert_int_equal(entries(f), 0);
	while ((count = control_commands(f->core, 0, r, 8)) > 0)
		for (unsigned i = 0; i < count; i++)
			closed += r[i].op == COMMAND_PEER_CLOSE && r[i].peer.conn == conn_of(1);
	assert_int_equal(closed, 1);
	end(f);
}

static const struct message *find_to(const struct fixture *f, uint32_t n, uint32_t kind)
{
	for (uint32_t i = 0; i < f->sent_count; i++)
		if (f->sent[i].m.kind == kind && (n == UINT32_MAX || f->sent[i].conn == conn_of(n)))
			return &f->sent[i].m;
	return NULL;
}

static const struct message *find(const struct fixture *f, uint32_t kind)
{
	return find_to(f, UINT32_MAX, kind);
}

static void answer(struct fixture *f, uint32_t from, uint32_t kind)
{
	const struct message *asked = find_to(f, from, kind);
	struct message m = {.kind = MESSAGE_REPLY};

	assert_non_null(asked);
	m.request = asked->request;
	control_message(f->core, conn_of(from), &m, f->now_ns);
}

static void of_a_fixed_list_only_those_keep_parts(void **state)
{
	struct fixture *f = begin(false);
	uint32_t shards[] = {2, 5, 3};

	f->core->cluster->shard_nodes = shards;
	f->core->config.shards = 2;
	for (uint32_t n = 0; n < NODES; n++)
		assert_int_equal(ownership_is_shard(f->core, peers_node(f->core, n)),
				 n == 2 || n == 5);
	end(f);
}

/* This owner knows of all objects: every member has told it what it holds. */
static void all_have_told(struct fixture *f)
{
	run(f, 0);
	for (uint32_t n = 0; n < NODES; n++)
		settle_heard(f->core, peers_node(f->core, n), f->core->cluster->members.view);
	assert_true(f->core->cluster->members.settled);
}

/* Else it could come back with a copy that was out of reach, when this node ends next. [G4.2] */
static void a_delete_waits_until_the_next_owner_knows_or_another(void **state)
{
	enum { ANSWERS, DIES, SILENT, CASES };

	for (int next_one = 0; next_one < CASES; next_one++) {
		struct fixture *f = begin(false);
		struct message m = {.kind = MESSAGE_HAVE, .request = 5};
		struct node *owners[2];
		uint32_t next, holder;

		m.have = (struct message_have){.id = id_for(f, 0),
					       .generation = 9,
					       .size = 4,
					       .chunk_bytes = 1408,
					       .state = MESSAGE_COPY_COMPLETE,
					       .upstream = MESSAGE_NODE_NONE};
		ownership_replicas(f->core, &m.have.id, owners);
		next = owners[1]->number;
		holder = ownership_stand_in(f->core, &m.have.id, owners[1])->number;
		meet(f, next);
		meet(f, holder);
		control_message(f->core, conn_of(holder), &m, f->now_ns);
		all_have_told(f);
		m = (struct message){.kind = MESSAGE_DELETE, .request = 6, .object.id = m.have.id};
		f->sent_count = 0;
		control_message(f->core, conn_of(holder), &m, f->now_ns);
		answer(f, holder, MESSAGE_REMOVE);
		assert_null(find(f, MESSAGE_REPLY));
		if (next_one == DIES)
			tell_dead(f, holder, next, 100);
		else if (next_one == SILENT)
			run(f, f->core->config.retry_ns);
		assert_null(find(f, MESSAGE_REPLY));
		assert_int_equal(find(f, MESSAGE_TOMBSTONE)->tombstone.age, 0);
		answer(f, next_one == ANSWERS ? next : holder, MESSAGE_TOMBSTONE);
		assert_non_null(find(f, MESSAGE_REPLY));
		assert_int_equal(find(f, MESSAGE_REPLY)->request, 6);
		end(f);
	}
}

/* Whether it is one of the two that keep the id. */
static bool keeps(struct fixture *f, uint32_t n, const struct object_id *id)
{
	struct node *owners[2];

	ownership_replicas(f->core, id, owners);
	return owners[0] == peers_node(f->core, n) || owners[1] == peers_node(f->core, n);
}

/* One who is silent is not waited for: what it was not told then, it hears when it answers. */
static void tombstones_left_out_follow_an_answer(void **state)
{
	enum { TOMBSTONES = 12, AT_A_TIME = 8 };
	struct fixture *f = begin(false);
	struct message m = {.kind = MESSAGE_TOMBSTONE}, reply = {.kind = MESSAGE_REPLY};
	uint64_t told = 0;

	meet(f, 1);
	meet(f, 2);
	m.tombstone.node = MESSAGE_NODE_NONE;
	for (; m.tombstone.generation < TOMBSTONES; m.tombstone.id.bytes[1]++) {
		if (!keeps(f, 0, &m.tombstone.id) || !keeps(f, 1, &m.tombstone.id))
			continue;
		m.tombstone.generation++;
		control_message(f->core, conn_of(2), &m, f->now_ns);
	}
	tell(f, 2, 5, MEMBER_ALIVE, 101); /* the members have changed: all are told again */
	for (int turns = 0; turns < 32; turns++)
		run(f, 0);
	assert_int_equal(sent(f, MESSAGE_TOMBSTONE), AT_A_TIME);
	run(f, 100 * MS);
	for (uint32_t i = 0, turns = 0; turns < 128; turns++) {
		if (turns == 32) /* nothing waits for it */
			assert_int_equal(f->core->directory->tombstone_copies.sweep,
					 f->core->config.tombstones);
		for (; turns >= 32 && i < f->sent_count; i++) {
			if (f->sent[i].m.kind != MESSAGE_TOMBSTONE)
				continue;
			told |= UINT64_C(1) << f->sent[i].m.tombstone.generation;
			assert_int_equal(f->sent[i].m.tombstone.age,
					 1 + TOMBSTONES - f->sent[i].m.tombstone.generation);
			reply.request = f->sent[i].m.request;
			control_message(f->core, conn_of(1), &reply, f->now_ns);
		}
		run(f, 0);
	}
	assert_int_equal(told, (UINT64_C(1) << (TOMBSTONES + 1)) - 2);
	end(f);
}

/* A client gets the object of the id, and node 1 sends it. Before that, node 1 answers a GET that
 * nobody has sent. */
static void value_comes(struct fixture *f)
{
	static const uint8_t value[4] = {1, 2, 3, 4};
	struct session_request r = {.magic = SESSION_MAGIC, .version = SESSION_VERSION};
	struct message got = {.kind = MESSAGE_GOT, .request = 12345};
	int s;

	meet(f, 1);
	s = control_session_open(f->core, f->pins, f->now_ns);
	r.op = SESSION_ATTACH;
	control_session_request(f->core, (uint32_t)s, &r, sizeof(r), f->now_ns);
	got.got = (struct message_got){.id = id_for(f, 1),
				       .generation = 9,
				       .size = 4,
				       .chunk_bytes = 1408,
				       .what = MESSAGE_GOT_VALUE,
				       .holder = MESSAGE_NODE_NONE,
				       .value = value,
				       .value_bytes = 4};
	f->sent_count = 0;
	control_message(f->core, conn_of(1), &got, f->now_ns); /* nobody here has asked */
	assert_int_equal(sent(f, MESSAGE_DROP), 1);
	r.op = SESSION_GET;
	r.seq = 1;
	r.id = got.got.id;
	r.timeout_ns = -1;
	r.pin = SESSION_PIN_NONE;
	f->sent_count = 0;
	control_session_request(f->core, (uint32_t)s, &r, sizeof(r), f->now_ns);
	assert_int_equal(sent(f, MESSAGE_GET), 1);
	for (uint32_t i = 0; i < f->sent_count; i++)
		if (f->sent[i].m.kind == MESSAGE_GET)
			got.request = f->sent[i].m.request;
	f->sent_count = 0;
	control_message(f->core, conn_of(1), &got, f->now_ns);
}

/* Seed 289 of objects-mixed: a DROP, repeated after the object had come, took the copy away. */
static void a_late_drop_is_not_sent(void **state)
{
	struct fixture *f = begin(false);

	value_comes(f);
	for (int i = 0; i < 15; i++)
		run(f, 100 * MS);
	assert_int_equal(sent(f, MESSAGE_DROP), 0);
	end(f);
}

/* Its GET was repeated while the value came, and waits at the owner: only the HAVE would end it. */
static void a_copy_that_goes_before_its_have_is_answered_is_dropped(void **state)
{
	for (int answered = 0; answered < 2; answered++) {
		struct fixture *f = begin(false);
		struct message m = {.kind = MESSAGE_REMOVE, .request = 7};

		value_comes(f);
		for (int i = 0; i < 5 && !find_to(f, 1, MESSAGE_HAVE); i++)
			run(f, 100 * MS);
		if (answered)
			answer(f, 1, MESSAGE_HAVE);
		f->sent_count = 0;
		m.object = (struct message_object){.id = id_for(f, 1), .generation = 9};
		control_message(f->core, conn_of(1), &m, f->now_ns);
		assert_int_equal(sent(f, MESSAGE_REPLY), 1);
		assert_int_equal(sent(f, MESSAGE_DROP), !answered);
		end(f);
	}
}

/* ---- cluster/join.c
 * ------------------------------------------------------------------------------- */

static void newcomers_get_numbers_in_turn(void **state)
{
	struct fixture *f = begin(true);

	assert_int_equal(control_number(f->core), 0);
	run(f, f->core->config.join_ns + SECOND);
	for (uint32_t n = 3; n < 5; n++) {
		link_up(f, n);
		f->sent_count = 0;
		hello(f, n, MESSAGE_NODE_NONE, 100);
		hello(f, n, MESSAGE_NODE_NONE, 100); /* repeated: the same again */
		assert_int_equal(f->sent_count, 2);
		assert_int_equal(f->sent[0].m.hello.assigned, n - 2);
		assert_int_equal(f->sent[1].m.hello.assigned, n - 2);
		hello(f, n, n - 2, 100);
		assert_int_equal(state_of(f, n - 2), MEMBER_ALIVE);
	}
	end(f);
}

static void a_young_seed_gives_nothing(void **state)
{
	struct fixture *f = begin(true);

	link_up(f, 3);
	f->sent_count = 0;
	hello(f, 3, MESSAGE_NODE_NONE, 100);
	assert_int_equal(f->sent_count, 0);
	end(f);
}

static void a_taken_number_is_told(void **state)
{
	struct fixture *f = begin(true);

	link_up(f, 1);
	hello(f, 1, 1, 100);
	assert_int_equal(state_of(f, 1), MEMBER_ALIVE);
	link_up(f, 2);
	f->sent_count = 0;
	hello(f, 2, 1, 900); /* the number of the node at another address */
	assert_int_equal(control_counters(f->core)->hello_refused, 1);
	assert_int_equal(sent(f, MESSAGE_MEMBERS), 1);
	assert_int_equal(f->sent[0].first.node, 1);
	assert_true(f->sent[0].first.incarnation > 900);
	assert_int_equal(peers_node(f->core, 1)->member_incarnation, 100);
	hello(f, 2, 0, 900); /* ours */
	assert_int_equal(control_counters(f->core)->hello_refused, 2);
	hello(f, 2, NODES, 900); /* there is none */
	assert_int_equal(control_counters(f->core)->hello_refused, 3);
	assert_non_null(strstr(f->log, "there is no such number"));
	end(f);
}

/* [G9.2] */
static void one_whose_number_is_taken_stops(void **state)
{
	struct fixture *f = begin(true);

	link_up(f, 1);
	hello(f, 1, 1, 100);
	tell_at(f, 1, 0, MEMBER_LEFT, 101, addr_of(6)); /* and is free again */
	assert_int_equal(f->errors, 0);
	tell_at(f, 1, 0, MEMBER_SUSPECT, 101, addr_of(6));
	assert_int_equal(control_membership(f->core), CONTROL_FENCED);
	assert_int_equal(f->errors, 1);
	assert_non_null(strstr(f->log, "start this node with --node auto"));
	tell_at(f, 1, 0, MEMBER_ALIVE, 102, addr_of(6));
	assert_int_equal(f->errors, 1); /* once */
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_are_ordered_by_incarnation),
		cmocka_unit_test(nobody_dies_of_what_others_say),
		cmocka_unit_test(a_repeated_report_is_not_passed_on),
		cmocka_unit_test(our_own_end_is_refuted),
		cmocka_unit_test(a_life_that_was_not_seen_counts_for_all),
		cmocka_unit_test(forged_numbers_and_addresses_are_strange),
		cmocka_unit_test(one_who_took_us_for_dead_is_asked_again),
		cmocka_unit_test(a_hello_of_an_ended_life_is_told_so),
		cmocka_unit_test(a_death_is_known_before_the_first_hello),
		cmocka_unit_test(one_who_is_back_is_connected_with_at_once),
		cmocka_unit_test(a_request_for_another_owner_is_sent_away),
		cmocka_unit_test(a_dead_member_waits_for_nothing),
		cmocka_unit_test(of_a_fixed_list_only_those_keep_parts),
		cmocka_unit_test(tombstones_left_out_follow_an_answer),
		cmocka_unit_test(a_delete_waits_until_the_next_owner_knows_or_another),
		cmocka_unit_test(a_late_drop_is_not_sent),
		cmocka_unit_test(a_copy_that_goes_before_its_have_is_answered_is_dropped),
		cmocka_unit_test(newcomers_get_numbers_in_turn),
		cmocka_unit_test(a_young_seed_gives_nothing),
		cmocka_unit_test(a_taken_number_is_told),
		cmocka_unit_test(one_whose_number_is_taken_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
