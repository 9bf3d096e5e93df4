/* SPDX-License-Identifier: BSD-3-Clause */
/* One shard of the directory by itself: past, repeated, late and hostile messages. */
#include "fixtures/control_shard.h"
#include "core/planner/planner.h"

static void requesters_chain_behind_each_other(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	for (uint32_t i = 1; i < 6; i++) {
		const struct message *a = get_first(f, i, 1);

		assert_int_equal(a->got.what, MESSAGE_GOT_HOLDER);
		assert_int_equal(a->got.holder, i - 1);
	}
	/* the first receiver is done: its upstream's slot is free for the next one */
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(get_first(f, 6, 1)->got.holder, 0);
}

static void a_repeated_get_gets_the_same_answer(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_GET};

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	m.get = (struct message_get){.id = id_of(1), .failed = MESSAGE_NODE_NONE};
	assert_int_equal(send(f, 1, &m)->got.holder, 0);
	f->out_count = 0;
	directory_message(&f->d, 1, &m); /* the same request number */
	assert_int_equal(sent_to(f, 1), 0);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 1);
	f->out_count = 0;
	directory_message(&f->d, 1, &m);
	assert_int_equal(sent_to(f, 1), 0); /* and not behind 2, which depends on it */
}

static void nobody_is_fed_by_itself(void **state)
{
	struct fixture *f = *state;
	const struct message *a;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	get_first(f, 1, 1); /* 0 -> 1 */
	get_first(f, 2, 1); /* 1 -> 2 */
	get_first(f, 3, 1); /* 2 -> 3 */
	/* 1 has lost 0; 2 and 3 depend on it, so only 0 is left, and that has just failed */
	a = get(f, 1, 1, 7, 0, MESSAGE_GET_UNREACHED);
	assert_int_equal(a->got.what, MESSAGE_GOT_WAIT);
	assert_int_equal(f->suspects, 1);
	/* 0 vanishes for good: 1 can go on only when somebody else has all of it */
	directory_node_down(&f->d, 0);
	f->out_count = 0;
	assert_int_equal(have(f, 4, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(sent_to(f, 1), 4);
}

/* 1 has a part, and 2 is fed by it; then 1 says by whom it was fed before that: by 2. */
static void what_comes_late_makes_no_circle(void **state)
{
	struct fixture *f = *state;
	struct message_have part = {.id = id_of(1),
				    .generation = 7,
				    .size = BIG,
				    .state = MESSAGE_COPY_PARTIAL,
				    .upstream = MESSAGE_NODE_NONE};
	struct copy *copy;

	f->unsettled = true; /* who has all of it may still say so */
	assert_int_equal(say_have(f, 1, part), 0);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 1);
	part.upstream = 2;
	assert_int_equal(say_have(f, 1, part), 0);
	copy = directory_copy(directory_find(&f->d, &part.id), 1);
	assert_int_equal(copy->upstreams, 0);
	assert_int_equal(copy->sending, 1);
}

static void waiters_are_served_in_order(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(get_first(f, 1, 1)->got.what, MESSAGE_GOT_UNKNOWN);
	assert_int_equal(get_first(f, 2, 1)->got.what, MESSAGE_GOT_UNKNOWN);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_CREATING, true), 0);
	assert_int_equal(sent_to(f, 1), 0);
	assert_int_equal(sent_to(f, 2), 1);
}

/* Node 0 creates object 1, and a GET of it comes from there. Returns the generation after that. */
static uint64_t create_and_get(struct fixture *f, uint64_t life)
{
	struct message m = {.kind = MESSAGE_GET, .request = 77};

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_CREATING, true), 0);
	m.get.id = id_of(1);
	m.get.failed = MESSAGE_NODE_NONE;
	m.get.epoch = life;
	directory_message(&f->d, 0, &m);
	return directory_find(&f->d, &m.get.id)->generation;
}

static void a_get_of_the_creator_does_not_end_what_it_creates(void **state)
{
	struct fixture *f = *state;

	/* on its way when the create was accepted */
	assert_int_equal(create_and_get(f, 0), 7);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(get_first(f, 1, 1)->got.holder, 0);
}

static void a_get_of_a_later_life_ends_what_was_created(void **state)
{
	struct fixture *f = *state;

	/* its control has restarted and knows nothing of it */
	assert_int_equal(create_and_get(f, 9), 0);
}

static void small_values_come_inline(void **state)
{
	struct fixture *f = *state;
	uint8_t value[100];
	struct message m = {.kind = MESSAGE_HAVE};
	const struct message *a;

	memset(value, 0x5a, sizeof(value));
	m.have = (struct message_have){.id = id_of(1),
				       .generation = 7,
				       .size = sizeof(value),
				       .chunk_bytes = 1408,
				       .state = MESSAGE_COPY_COMPLETE,
				       .upstream = MESSAGE_NODE_NONE,
				       .value = value,
				       .value_bytes = sizeof(value),
				       .has_value = 1};
	assert_int_equal(send(f, 0, &m)->reply.status, 0);
	directory_node_down(&f->d, 0); /* the value outlives its node */
	a = get_first(f, 1, 1);
	assert_int_equal(a->got.what, MESSAGE_GOT_VALUE);
	assert_int_equal(a->got.value_bytes, sizeof(value));
	assert_memory_equal(a->got.value, value, sizeof(value));
}

/* 200 Mbit/s: four values of 64 KiB from one node take longer than a chain. */
static void slow_link(struct fixture *f)
{
	fanout_saw_start(&f->links.all, 300000);
	fanout_saw_hop(&f->links.all, 100000);
	fanout_saw_rate(&f->links.all, 25000000);
}

static void values_are_handed_on_when_that_is_faster(void **state)
{
	struct fixture *f = *state;

	slow_link(f);
	f->d.self = 6;
	have_value(f, 0, 1, 65536);
	assert_int_equal(get_first(f, 1, 1)->got.what, MESSAGE_GOT_VALUE); /* alone */
	/* a second one is reckoned with now; the value of 1 is still on its way */
	assert_int_equal(get_first(f, 2, 1)->got.holder, 0);
	assert_int_equal(get_first(f, 3, 1)->got.holder, 2);
	/* it has come: 1 is a complete holder as any other */
	assert_int_equal(have(f, 1, 1, 7, 65536, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(get_first(f, 4, 1)->got.holder, 1);
	/* the directory's own node needs no link for it; who has lost a holder does not wait */
	assert_int_equal(get_first(f, 6, 1)->got.what, MESSAGE_GOT_VALUE);
	assert_int_equal(get(f, 3, 1, 7, 2, MESSAGE_GET_UNREACHED)->got.what, MESSAGE_GOT_VALUE);
	/* the answer to 5 got lost: it asks again, and nothing is booked twice */
	assert_int_equal(get_first(f, 5, 1)->got.what, MESSAGE_GOT_HOLDER);
	have_value(f, 0, 2, 1024);
	for (uint32_t i = 1; i < 6; i++) /* so small that a start-up costs more */
		assert_int_equal(get_first(f, i, 2)->got.what, MESSAGE_GOT_VALUE);
}

static void a_value_goes_out_when_nobody_can_stream(void **state)
{
	struct fixture *f = *state;

	slow_link(f);
	have_value(f, 0, 1, 65536);
	directory_node_down(&f->d, 0);
	for (uint32_t i = 1; i < 6; i++)
		assert_int_equal(get_first(f, i, 1)->got.what, MESSAGE_GOT_VALUE);
}

/* The second object of a size finds the tree that the first would have needed, level by level. */
static void start_ups_make_trees(void **state)
{
	static const uint32_t holder[] = {0, 0, 1, 2, 1, 2};
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_DELETE};

	fanout_saw_start(&f->links.all, 100000);
	fanout_saw_hop(&f->links.all, 100000);
	fanout_saw_rate(&f->links.all, 600000000);
	assert_int_equal(
		planner_width((struct topology_link){f->links.all.hop_ns, f->links.all.start_ns,
						     f->links.all.bytes_per_s},
			      6, 65536, 1408),
		2);
	have(f, 0, 1, 7, 65536, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t i = 1; i < 7; i++)
		assert_int_equal(get_first(f, i, 1)->got.what, MESSAGE_GOT_HOLDER);
	have(f, 0, 2, 7, 65536, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t i = 1; i < 7; i++)
		assert_int_equal(get_first(f, i, 2)->got.holder, holder[i - 1]);
	/* objects of that size that one node at a time asks for make the expectation go */
	m.object.id = id_of(1);
	send(f, 0, &m); /* room for copies */
	m.object.id = id_of(3);
	for (int k = 0; k < 40; k++) {
		have(f, 0, 3, 7 + k, 65536, MESSAGE_COPY_COMPLETE, false);
		get_first(f, 1, 3);
		send(f, 0, &m);
		for (uint32_t i = 0; i < f->removed_count; i++)
			directory_removed(&f->d, f->removed[i].removal);
		f->removed_count = 0;
	}
	have(f, 0, 3, 99, 65536, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 1, 3)->got.holder, 0);
	assert_int_equal(get_first(f, 2, 3)->got.holder, 1);
}

static void late_requesters_get_complete_and_little_used_holders(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t i = 1; i < 4; i++)
		get_first(f, i, 1);
	have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false); /* still feeds 2 */
	assert_int_equal(get_first(f, 4, 1)->got.holder, 0);
	have(f, 2, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 5, 1)->got.holder, 1);
	assert_int_equal(get_first(f, 6, 1)->got.holder, 4); /* only partial ones are free */
	have(f, 3, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 7, 1)->got.holder, 2);
}

/* Copies that a link carries: bookings whose holder and receiver differ in the group of so many. */
static uint32_t crossings(const uint32_t *holder, uint32_t nodes, uint32_t group, uint32_t into)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < nodes; n++)
		count += n / group == into && holder[n] / group != into;
	return count;
}

/* fattree:4: two hosts at an edge switch, two of these in a pod, four pods. */
static void a_copy_enters_a_rack_once(void **state)
{
	static const struct network tree = {
		.levels = 3,
		.places = 16,
		.level = {{.members = 2}, {.members = 2}, {.members = 4}},
		.narrow = true};
	static const uint32_t order[] = {9, 3, 14, 1, 4, 8, 13, 2, 15, 7, 11, 5, 10, 12, 6};
	struct fixture *f = *state;

	for (unsigned known = 0; known < 2; known++) {
		uint32_t holder[16] = {0}, racks = 0, pods = 0;

		f->d.network = known ? &tree : NULL;
		have(f, 0, (uint8_t)(1 + known), 7, BIG, MESSAGE_COPY_COMPLETE, false);
		for (uint32_t i = 0; i < 15; i++) {
			holder[order[i]] = get_first(f, order[i], (uint8_t)(1 + known))->got.holder;
			if (i == 6) /* a complete one far away is no reason to cross again */
				have(f, 14, (uint8_t)(1 + known), 7, BIG, MESSAGE_COPY_COMPLETE,
				     false);
		}
		for (uint32_t rack = 0; rack < 8; rack++)
			racks += crossings(holder, 16, 2, rack);
		for (uint32_t pod = 0; pod < 4; pod++)
			pods += crossings(holder, 16, 4, pod);
		if (known) {
			assert_int_equal(racks, 7);
			assert_int_equal(pods, 3);
		} else {
			assert_true(racks > 7 && pods > 3);
		}
	}
}

/* Who is fed within the rack gets no second upstream from outside on trial. */
static void a_trial_stays_in_the_rack(void **state)
{
	static const struct network racks = {
		.levels = 2, .places = 8, .level = {{.members = 2}, {.members = 4}}};
	struct fixture *f = *state;

	f->d.network = &racks;
	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	have(f, 4, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 0);
	assert_int_equal(get_first(f, 3, 1)->got.holder, 2);
	assert_int_equal(get(f, 3, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_MORE)->got.status, -EAGAIN);
	f->d.network = NULL;
	assert_int_equal(get(f, 3, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_MORE)->got.holder, 4);
}

/* On its rail: nodes of a square are one or two links apart. */
static void a_neighbour_is_preferred(void **state)
{
	static const struct network cube = {
		.levels = 2, .places = 9, .level = {{.members = 3}, {.members = 3, .rail = 1}}};
	struct fixture *f = *state;

	f->d.network = &cube;
	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	have(f, 4, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 7, 1)->got.holder, 4);
	assert_int_equal(get_first(f, 6, 1)->got.holder, 0);
	assert_int_equal(get_first(f, 8, 1)->got.holder, 7);
}

static void create_of_an_existing_id_fails(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_CREATING, true), 0);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_CREATING, true), 0); /* repeated */
	assert_int_equal(have(f, 1, 1, 8, BIG, MESSAGE_COPY_CREATING, true), -EEXIST);
	assert_int_equal(have(f, 1, 1, 6, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(have(f, 1, 1, 8, BIG, MESSAGE_COPY_CREATING, false), -ESTALE);
	assert_int_equal(have(f, 1, 1, 7, BIG + 1, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	directory_node_down(&f->d, 0);
	assert_int_equal(have(f, 1, 1, 8, BIG, MESSAGE_COPY_CREATING, true), -EAGAIN);
	directory_node_dead(&f->d, 0, true); /* its only holder: it may be put again */
	assert_int_equal(have(f, 1, 1, 8, BIG, MESSAGE_COPY_CREATING, true), 0);
	directory_node_up(&f->d, 0, 100);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
}

static void an_id_in_use_is_described(void **state)
{
	static const struct {
		uint32_t state;
		const char *text;
	} cases[] = {
		{MESSAGE_COPY_CREATING,
		 "'old' exists already (4194304 bytes, being created on node 3): delete it first"},
		{MESSAGE_COPY_COMPLETE,
		 "'old' exists already (4194304 bytes, complete on node 3): delete it first"},
	};

	for (uint8_t i = 0; i < 2; i++) {
		struct message m = {.kind = MESSAGE_HAVE};

		m.have = (struct message_have){.id = id_of(i),
					       .generation = 7,
					       .size = BIG,
					       .chunk_bytes = 1408,
					       .state = cases[i].state,
					       .upstream = MESSAGE_NODE_NONE,
					       .create = true,
					       .name = "old"};
		assert_int_equal(send(*state, 3, &m)->reply.status, 0);
		m.have.generation = 8;
		m.have.state = MESSAGE_COPY_CREATING;
		assert_string_equal(send(*state, 1, &m)->reply.text, cases[i].text);
	}
}

static void an_abort_takes_the_partial_copies_along(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_DROP};

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_CREATING, true);
	get_first(f, 1, 1);
	m.object = (struct message_object){.id = id_of(1), .generation = 7};
	assert_int_equal(send(f, 0, &m)->reply.status, 0);
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(f->removed[0].node, 1);
	assert_int_equal(get_first(f, 2, 1)->got.what, MESSAGE_GOT_UNKNOWN);
}

static void a_drop_returns_the_slot(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_DROP};

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	get_first(f, 1, 1);
	m.object = (struct message_object){.id = id_of(1)}; /* it is no longer wanted */
	send(f, 1, &m);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 0);
	send(f, 3, &m);		 /* of one that never asked: nothing happens */
	m.object.generation = 8; /* of another generation: neither */
	send(f, 0, &m);
	assert_int_equal(get_first(f, 3, 1)->got.holder, 2);
}

static void an_absent_copy_is_forgotten(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 1, 1)->got.holder, 0);
	assert_int_equal(get(f, 1, 1, 0, 0, MESSAGE_GET_ABSENT)->got.what, MESSAGE_GOT_UNKNOWN);
	/* nonsense about nodes that hold nothing, or do not exist, does no harm */
	get(f, 1, 1, 0, 5, MESSAGE_GET_ABSENT);
	get(f, 1, 1, 0, 1000, MESSAGE_GET_UNREACHED);
}

static void another_store_holds_nothing(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	directory_node_down(&f->d, 0);
	assert_int_equal(get_first(f, 1, 1)->got.what, MESSAGE_GOT_WAIT);
	f->out_count = 0;
	assert_false(directory_node_up(&f->d, 0, 100)); /* the same store: it may have less now */
	assert_int_equal(sent_to(f, 1), 0);
	directory_node_down(&f->d, 0);
	assert_false(directory_node_up(&f->d, 0, 200)); /* another one */
	/* node 1 has a part, and does not know itself what it will get */
	assert_int_equal(get_first(f, 2, 1)->got.what, MESSAGE_GOT_WAIT);
	directory_node_down(&f->d, 1);
	directory_node_down(&f->d, 2);
	directory_node_up(&f->d, 2, 102);
	assert_int_equal(get_first(f, 2, 1)->got.what, MESSAGE_GOT_WAIT); /* node 1 may come back */
	directory_node_dead(&f->d, 1, true);
	directory_node_dead(&f->d, 2, true);
	assert_int_equal(get_first(f, 3, 1)->got.what, MESSAGE_GOT_UNKNOWN);
}

static void full_tables_refuse(void **state)
{
	struct fixture *f = *state;
	uint8_t i;

	for (i = 1; i <= 16; i++)
		assert_int_equal(have(f, 0, i, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 0, 17, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ENOSPC);
	assert_int_equal(get_first(f, 1, 18)->got.what, MESSAGE_GOT_FAILED);
	for (i = 2; f->d.copies.used < NODES; i++)
		assert_int_equal(have(f, i, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(get_first(f, 1, 1)->got.what, MESSAGE_GOT_FAILED); /* no more copies */
	for (i = 0; i < NODES; i++)
		directory_node_forget(&f->d, i, true);
	assert_int_equal(f->d.copies.used, 0);
	assert_int_equal(f->d.entries.used, 0);
	assert_int_equal(f->d.waiters.used, 0);
}

static void pages_of_a_list(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_LIST};
	const struct message *a;

	for (uint8_t i = 1; i <= 5; i++)
		have(f, i, i, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	a = send(f, 1, &m);
	assert_int_equal(a->objects.count, 5);
	assert_int_equal(a->objects.cursor, 0);
	assert_int_equal(a->objects.objects[0].copies, 1);
	f->d.scan_max = 2; /* a turn looks at so many: a page may be empty and not the last */
	strcpy(m.list.prefix, "no such name");
	for (uint32_t page = 1; page <= 2; page++) {
		a = send(f, 1, &m);
		assert_int_equal(a->objects.count, 0);
		assert_int_equal(a->objects.cursor, 2 * page);
		m.list.cursor = a->objects.cursor;
	}
	assert_int_equal(send(f, 1, &m)->objects.cursor, 0);
	memset(m.list.prefix, 0, sizeof(m.list.prefix));
	m.list.cursor = UINT64_MAX; /* beyond the end */
	assert_int_equal(send(f, 1, &m)->objects.count, 0);
	m = (struct message){.kind = MESSAGE_STAT};
	m.object.id = id_of(3);
	assert_int_equal(send(f, 1, &m)->objects.count, 1);
	m.object.id = id_of(99);
	assert_int_equal(send(f, 1, &m)->objects.count, 0);
}

/* More holders than one answer has room for; each is told with all that feed it. */
static void pages_of_holders(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_STAT}, partial = {.kind = MESSAGE_HAVE};
	uint32_t seen = 0, nodes = 0, pages = 0;
	uint64_t mask = 0;

	for (uint32_t i = 0; i < NODES - 1; i++)
		have(f, i, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	partial.have = (struct message_have){.id = id_of(1),
					     .generation = 7,
					     .size = BIG,
					     .chunk_bytes = 1408,
					     .state = MESSAGE_COPY_PARTIAL,
					     .upstream = 3,
					     .also_count = 3,
					     .also = {5, 6, 40}};
	assert_int_equal(send(f, NODES - 1, &partial)->reply.status, 0);
	m.object.id = id_of(1);
	do {
		const struct message *a = send(f, 1, &m);
		const struct session_object *o = a->objects.objects;

		assert_int_equal(a->objects.count, 1);
		assert_int_equal(o->copies, NODES - 1);
		assert_int_equal(o->partial, 1);
		for (uint32_t i = 0; i < o->holders; i++, nodes++) {
			const struct session_holder *h = &o->holder[i];

			mask |= UINT64_C(1) << h->node;
			assert_int_equal(h->sending, h->node == 3 || h->node == 5 || h->node == 6 ||
							     h->node == 40);
			if (h->complete)
				continue;
			assert_int_equal(h->node, NODES - 1);
			assert_int_equal(h->upstreams, 4);
			assert_int_equal(h->upstream[3], 40);
			seen++;
		}
		m.object.cursor = a->objects.cursor;
		pages++;
	} while (m.object.cursor);
	assert_int_equal(nodes, NODES);
	assert_int_equal(mask, (UINT64_C(1) << NODES) - 1);
	assert_int_equal(pages, NODES / SESSION_HOLDERS);
	assert_int_equal(seen, 1);
	m.object.cursor = UINT64_MAX; /* beyond the end */
	assert_int_equal(send(f, 1, &m)->objects.objects[0].holders, 0);
}

/* What is left of an object, node after node, as one of them asks. */
static void parts_are_named_when_the_rest_is_dead(void **state)
{
	struct fixture *f = *state;
	const struct message *m;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t i = 1; i < 4; i++)
		get_first(f, i, 1);
	directory_node_down(&f->d, 0);
	assert_int_equal(get(f, 1, 1, 7, 0, MESSAGE_GET_UNREACHED)->got.what, MESSAGE_GOT_WAIT);
	assert_int_equal(get(f, 1, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_PIECE)->got.what,
			 MESSAGE_GOT_FAILED); /* there is hope */
	f->out_count = 0;
	f->unsettled = true;
	directory_node_dead(&f->d, 0, true);
	assert_int_equal(f->out_count, 0); /* others may be about to tell of theirs */
	f->unsettled = false;
	m = get(f, 2, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_FIRST);
	assert_int_equal(m->got.what, MESSAGE_GOT_INCOMPLETE);
	m = get(f, 3, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_HEDGE); /* who is fed hears it, too */
	assert_int_equal(m->got.what, MESSAGE_GOT_INCOMPLETE);
	m = get(f, 2, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_PIECE);
	assert_int_equal(m->got.what, MESSAGE_GOT_PIECE);
	assert_int_equal(m->got.holder, 1);
	assert_int_equal(get(f, 2, 1, 7, 1, MESSAGE_GET_PIECE)->got.holder, 3);
	directory_node_dead(&f->d, 3, true);
	m = get(f, 2, 1, 7, 1, MESSAGE_GET_PIECE);
	assert_int_equal(m->got.holder, MESSAGE_NODE_NONE);
	assert_int_equal(m->got.departed, 1);
	/* and when a complete copy is back it is had from there */
	directory_node_up(&f->d, 0, 100);
	assert_int_equal(get(f, 2, 1, 7, 1, MESSAGE_GET_PIECE)->got.what, MESSAGE_GOT_FAILED);
	assert_int_equal(get(f, 2, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_FIRST)->got.holder, 0);
}

/* Those who wait are told when the last who has all of it is dead, not before. */
static void who_waits_is_told_of_the_death(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	have(f, 4, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	get_first(f, 1, 1);
	directory_node_down(&f->d, 0);
	directory_node_down(&f->d, 4);
	get(f, 1, 1, 7, 0, MESSAGE_GET_UNREACHED);
	f->out_count = 0;
	directory_node_dead(&f->d, 0, true);
	assert_int_equal(f->out_count, 0);
	directory_node_dead(&f->d, 4, true);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->out[0].m.got.what, MESSAGE_GOT_INCOMPLETE);
}

static int have_made(struct fixture *f, uint32_t node, uint64_t generation)
{
	return say_have(f, node,
			(struct message_have){.id = id_of(1),
					      .generation = generation,
					      .size = 100000,
					      .state = MESSAGE_COPY_CREATING,
					      .upstream = MESSAGE_NODE_NONE,
					      .made = true});
}

/* Who makes a target for a coordinator that is gone may still be its result's only holder; not when
 * another one makes it, or has made it. */
static void a_target_of_a_lost_coordinator(void **state)
{
	struct fixture *f = *state;
	struct object_id id = id_of(1);
	uint64_t before;

	assert_int_equal(have_made(f, 1, 5), -ESTALE);
	assert_int_equal(directory_reserve(&f->d, &id, &before), 0);
	assert_int_equal(before, 0);
	directory_reserve_for(&f->d, &id, 7);
	assert_int_equal(have_made(f, 1, 5), -ECANCELED);
	assert_int_equal(have_made(f, 2, 7), 0);
	directory_unreserve(&f->d, &id);
	assert_int_equal(have_made(f, 1, 5), -ECANCELED);
}

/* A reservation of the id says of which generation a lost object was. */
static void a_reservation_tells_what_was_there(void **state)
{
	struct fixture *f = *state;
	struct object_id id = id_of(1);
	uint64_t before = 77;

	assert_int_equal(have(f, 1, 1, 5, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(directory_reserve(&f->d, &id, &before), -EEXIST);
	assert_int_equal(before, 77);
	directory_node_down(&f->d, 1);
	assert_int_equal(directory_reserve(&f->d, &id, &before), -EAGAIN);
	assert_int_equal(before, 77);
	directory_node_dead(&f->d, 1, true);
	assert_int_equal(directory_reserve(&f->d, &id, &before), 0);
	assert_int_equal(before, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(requesters_chain_behind_each_other),
		TEST(a_repeated_get_gets_the_same_answer),
		TEST(nobody_is_fed_by_itself),
		TEST(what_comes_late_makes_no_circle),
		TEST(waiters_are_served_in_order),
		TEST(a_get_of_the_creator_does_not_end_what_it_creates),
		TEST(a_get_of_a_later_life_ends_what_was_created),
		TEST(small_values_come_inline),
		TEST(values_are_handed_on_when_that_is_faster),
		TEST(a_value_goes_out_when_nobody_can_stream),
		TEST(start_ups_make_trees),
		TEST(late_requesters_get_complete_and_little_used_holders),
		TEST(a_copy_enters_a_rack_once),
		TEST(a_trial_stays_in_the_rack),
		TEST(a_neighbour_is_preferred),
		TEST(create_of_an_existing_id_fails),
		TEST(an_id_in_use_is_described),
		TEST(an_abort_takes_the_partial_copies_along),
		TEST(a_drop_returns_the_slot),
		TEST(an_absent_copy_is_forgotten),
		TEST(another_store_holds_nothing),
		TEST(full_tables_refuse),
		TEST(pages_of_a_list),
		TEST(pages_of_holders),
		TEST(parts_are_named_when_the_rest_is_dead),
		TEST(who_waits_is_told_of_the_death),
		TEST(a_target_of_a_lost_coordinator),
		TEST(a_reservation_tells_what_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
