/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients may ask, what they must not, and how they vanish. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/directory/state.h"
#include "core/state.h"

#define STORE (UINT64_C(4) << 20)

static struct world *one(void)
{
	struct world *w = world_new(1, 1, STORE, false);

	assert_int_equal(world_open(w, 0), 0);
	return w;
}

/* Of a request that ends with one answer, and gets no other. */
static int status_of(struct world *w, uint32_t session, struct session_request *r)
{
	const struct world_node *n = &w->node[0];
	struct world_reply *a = world_call(w, 0, session, r, 20 * WORLD_SECOND);
	uint32_t answers = 0;

	assert_non_null(a);
	for (uint32_t i = 0; i < n->replies_count; i++)
		answers += n->replies[i].reply.seq == a->reply.seq &&
			   !(n->replies[i].reply.flags & SESSION_FLAG_MORE);
	assert_int_equal(answers, 1);
	if (a->reply.status)
		assert_true(strlen(a->reply.text) > 0);
	return a->reply.status;
}

static const struct world_node *tables_of;
static size_t tables_bytes;

static void take_table(void *memory, size_t bytes)
{
	const uint8_t *at = memory, *all = tables_of->core_memory;

	assert_true(at >= all && bytes <= tables_of->core_bytes);
	assert_true((size_t)(at - all) <= tables_of->core_bytes - bytes);
	tables_bytes += bytes;
}

/* Touching these pages in advance touches nothing else, and not much: no payload is among them. */
static void tables_are_a_small_part_of_the_memory(void **state)
{
	struct world *w = one();
	const struct control_config *f = &w->config;

	tables_of = &w->node[0];
	tables_bytes = 0;
	control_tables(tables_of->core, take_table);
	assert_in_range(tables_bytes, (f->entries_max + f->copies_max) * sizeof(void *),
			tables_of->core_bytes / 16);
	world_end(w);
}

/* What a client is told to try again has not begun. */
static void a_lease_without_room_to_wait_is_as_before(void **state)
{
	struct world *w = one();
	struct control *c = w->node[0].core;
	struct pool *waits = &c->session->sessions.waits;
	struct session_request r = world_request(SESSION_LEASE, NULL);
	uint64_t lease;

	assert_int_equal(world_put(w, 0, 0, "x", 100, 1), 0);
	r.timeout_ns = WORLD_SECOND;
	lease = world_call(w, 0, 0, &r, WORLD_SECOND)->reply.generation;
	for (uint32_t room = waits->capacity, i = 0; i < 4; i++, waits->capacity = room) {
		static const uint16_t op[] = {SESSION_HOLD, SESSION_EXPIRE, SESSION_HOLD,
					      SESSION_RELEASE};

		r = world_request(op[i], "x");
		r.generation = lease;
		r.timeout_ns = 0;
		if (i != 2)
			waits->capacity = waits->used;
		assert_int_equal(status_of(w, 0, &r), i == 2 ? 0 : -EAGAIN);
		world_run(w, WORLD_SECOND / 10);
		assert_int_equal(c->lease->leases.holds.used, i / 2);
	}
	world_end(w);
}

static void malformed_requests_are_answered(void **state)
{
	struct world *w = one();
	struct session_request r = world_request(SESSION_GET, "x");
	struct control *c = w->node[0].core;
	uint64_t bad = control_counters(c)->requests_bad;

	control_session_request(c, 0, &r, sizeof(r) - 1, w->now_ns);
	control_session_request(c, 0, &r, sizeof(r) + 1, w->now_ns);
	control_session_request(c, 0, &r, 0, w->now_ns);
	assert_int_equal(control_counters(c)->requests_bad, bad + 3);
	r.magic++;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r = world_request(0, "x");
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r = world_request(SESSION_OPS, "x");
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r = world_request(65535, "x");
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r = world_request(SESSION_GET, "x");
	r.version++;
	assert_int_equal(status_of(w, 0, &r), -EPROTONOSUPPORT);
	r = world_request(SESSION_GET, "x");
	r.pin = SESSION_PINS;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r = world_request(SESSION_CREATE, "x");
	memset(r.name, 'x', sizeof(r.name));
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	/* no such session: ignored */
	control_session_request(c, 77, &r, sizeof(r), w->now_ns);
	world_free(w);
}

static void attach_comes_first(void **state)
{
	struct world *w = one();
	struct session_request r = world_request(SESSION_LIST, NULL);
	int session = control_session_open(w->node[0].core, w->node[0].pins[1], w->now_ns);

	assert_int_equal(session, 1);
	assert_int_equal(status_of(w, 1, &r), -EINVAL);
	r = world_request(SESSION_ATTACH, NULL);
	assert_int_equal(status_of(w, 1, &r), 0);
	r = world_request(SESSION_LIST, NULL);
	assert_int_equal(status_of(w, 1, &r), 0);
	world_free(w);
}

static struct session_reply create(struct world *w, uint32_t session, const char *name,
				   uint64_t size)
{
	struct session_request r = world_request(SESSION_CREATE, name);

	r.size = size;
	r.pin = 5;
	return world_call(w, 0, session, &r, 5 * WORLD_SECOND)->reply;
}

static void slots_that_are_not_ours(void **state)
{
	struct world *w = one();
	struct session_reply a = create(w, 0, "x", 1000);
	struct session_request r = world_request(SESSION_SEAL, NULL);
	uint32_t other = world_open(w, 0);

	r.slot = a.slot;
	r.generation = a.generation;
	assert_int_equal(status_of(w, other, &r), -EINVAL); /* another client's */
	r.generation++;
	assert_int_equal(status_of(w, 0, &r), -ESTALE);
	r.slot = UINT32_MAX;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r.slot = WORLD_TABLE_SLOTS;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r.op = SESSION_WAIT;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r.slot = a.slot;
	assert_int_equal(status_of(w, 0, &r), -ESTALE);
	r.op = SESSION_PUBLISH;
	r.generation = a.generation;
	r.watermark = 1001;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r.watermark = 600;
	assert_int_equal(status_of(w, 0, &r), 0);
	r.watermark = 599; /* goes back */
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	r.op = SESSION_SEAL;
	assert_int_equal(status_of(w, 0, &r), 0);
	assert_int_equal(status_of(w, 0, &r), -EINVAL); /* sealed twice */
	r.op = SESSION_ABORT;
	assert_int_equal(status_of(w, 0, &r), -EINVAL);
	world_free(w);
}

static void sizes_beyond_the_store(void **state)
{
	struct world *w = one();
	struct session_reply refused;

	assert_int_equal(create(w, 0, "a", UINT64_MAX).status, -EFBIG);
	assert_int_equal(create(w, 0, "a", STORE).status, -EFBIG);
	assert_int_equal(create(w, 0, "a", STORE * 3 / 4).status, 0);
	refused = create(w, 0, "b", STORE / 2);
	assert_int_equal(refused.status, -ENOSPC);
	assert_non_null(strstr(refused.text, " bytes used, this object has 2097152): "));
	assert_int_equal(create(w, 0, "a", 1).status, -EEXIST);
	world_free(w);
}

static void a_dead_client_leaves_nothing(void **state)
{
	struct world *w = one();
	struct session_request r = world_request(SESSION_GET, "never");
	struct control_usage u;
	uint32_t other = world_open(w, 0);

	assert_int_equal(create(w, other, "half", 100000).status, 0);
	world_send(w, 0, other, &r);
	r = world_request(SESSION_CREATE, "unanswered"); /* the directory has no time to answer */
	r.size = 10;
	world_send(w, 0, other, &r);
	control_session_close(w->node[0].core, other, w->now_ns);
	world_run(w, WORLD_SECOND);
	control_usage(w->node[0].core, &u);
	assert_int_equal(u.objects, 0);
	assert_int_equal(u.store_bytes, 0);
	assert_int_equal(u.waits, 0);
	assert_int_equal(u.fetches, 0);
	assert_int_equal(u.calls, 0);
	assert_int_equal(u.entries, 0);
	world_free(w);
}

/* The end of the creation is that of the wait for it. */
static void a_dead_client_waited_for_itself(void **state)
{
	struct world *w = world_new(2, 1, STORE, false);
	struct session_request r = world_request(SESSION_CREATE, "x");
	uint32_t session = world_open(w, 1);
	struct session_reply place;
	struct control_usage u;

	r.size = 10;
	world_send(w, 1, session, &r); /* what node 0 answers has no time to come */
	r = world_request(SESSION_GET, "x");
	place = world_reply_to(w, 1, world_send(w, 1, session, &r))->reply;
	assert_int_equal(place.status, 0);
	r = world_request(SESSION_WAIT, NULL);
	r.slot = place.slot;
	r.generation = place.generation;
	r.watermark = 10;
	world_send(w, 1, session, &r);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.waits, 2);
	control_session_close(w->node[1].core, session, w->now_ns);
	world_run(w, WORLD_SECOND);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.waits, 0);
	assert_int_equal(u.objects, 0);
	world_free(w);
}

static void an_abort_wakes_the_readers(void **state)
{
	struct world *w = one();
	struct session_reply a = create(w, 0, "x", 5000);
	struct session_request r = world_request(SESSION_WAIT, NULL);
	uint32_t seq;

	r.slot = a.slot;
	r.generation = a.generation;
	r.watermark = 5000;
	seq = world_send(w, 0, 0, &r);
	assert_null(world_reply_to(w, 0, seq));
	r.op = SESSION_ABORT;
	assert_int_equal(status_of(w, 0, &r), 0);
	assert_int_equal(world_reply_to(w, 0, seq)->reply.status, -ESTALE);
	world_free(w);
}

static void pins_hold_the_memory(void **state)
{
	struct world *w = one();
	struct session_request r = world_request(SESSION_GET, "x");
	struct control_usage u;
	struct session_reply a;

	assert_int_equal(world_put(w, 0, 0, "x", 5000, 3), 0);
	r.pin = 9;
	a = world_call(w, 0, 0, &r, 0)->reply;
	assert_int_equal(w->node[0].pins[0][9], pin_make(a.slot, a.generation));
	r = world_request(SESSION_DELETE, "x");
	assert_int_equal(status_of(w, 0, &r), 0);
	world_run(w, WORLD_SECOND);
	assert_true(world_holds(w->node[0].store + a.offset, 5000, 3));
	assert_int_equal(w->node[0].table->slot[a.slot].state, OBJECT_ZOMBIE);
	w->node[0].pins[0][9] = pin_make(a.slot, a.generation + 1); /* nonsense pins nothing */
	w->node[0].pins[0][10] = UINT64_MAX;
	world_run(w, WORLD_SECOND);
	control_usage(w->node[0].core, &u);
	assert_int_equal(u.objects, 0);
	world_free(w);
}

/* A client that reads slowly gets its list in pieces, and all of it. */
static void a_long_list_waits_for_its_reader(void **state)
{
	struct world *w = one();
	struct session_request r = world_request(SESSION_LIST, NULL);
	uint32_t seq, got = 0, pauses = 0;
	struct world_reply *a;
	char name[16];
	bool more = true;

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(world_put(w, 0, 0, name, 10, 1), 0);
	}
	world_run(w, WORLD_SECOND);
	w->node[0].slow = 10;
	seq = world_send(w, 0, 0, &r);
	while (more) {
		a = world_reply_to(w, 0, seq);
		if (!a) {
			assert_true(++pauses < 20);
			w->node[0].slow = 10;
			control_session_writable(w->node[0].core, 0, w->now_ns);
			continue;
		}
		more = a->reply.flags & SESSION_FLAG_MORE;
		got += a->tail_bytes == sizeof(a->object);
	}
	assert_int_equal(got, 100);
	assert_true(pauses >= 2);
	world_free(w);
}

static void status_shows_this_node_first(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	struct session_request r = world_request(SESSION_STATUS, NULL);
	struct world_reply *a;
	uint32_t up = 0, down = 0;
	bool more;

	assert_int_equal(world_open(w, 1), 0);
	w->cut[2] = true;
	world_send(w, 1, 0, &r);
	a = world_wait(w, 1, r.seq, 5 * WORLD_SECOND);
	assert_int_equal(a->node.node, 1);
	assert_int_equal(a->node.self, 1);
	do {
		a = world_wait(w, 1, r.seq, 5 * WORLD_SECOND);
		assert_non_null(a);
		more = a->reply.flags & SESSION_FLAG_MORE;
		up += more && a->node.state == 1;
		down += more && a->node.state != 1;
	} while (more);
	assert_int_equal(up, 1);
	assert_int_equal(down, 1);
	world_free(w);
}

/* CANCEL ends what only waits, of this client only, and the fetch that nobody else wants. */
static void a_cancelled_wait_is_gone(void **state)
{
	struct world *w = world_new(2, 1, STORE, false);
	uint32_t session = world_open(w, 1), other = world_open(w, 1);
	struct session_request get = world_request(SESSION_GET, "x"), r;
	struct control_usage u;

	get.timeout_ns = -1;
	world_send(w, 1, session, &get);
	world_run(w, WORLD_SECOND);
	r = world_request(SESSION_CANCEL, NULL);
	r.generation = get.seq;
	assert_int_equal(world_call(w, 1, other, &r, WORLD_SECOND)->reply.status, -ENOENT);
	r.generation = get.seq + (UINT64_C(1) << 32);
	assert_int_equal(world_call(w, 1, session, &r, WORLD_SECOND)->reply.status, -ENOENT);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.waits, 1);
	r.generation = get.seq;
	assert_int_equal(world_call(w, 1, session, &r, WORLD_SECOND)->reply.status, 0);
	assert_null(world_reply_to(w, 1, get.seq));
	assert_int_equal(world_call(w, 1, session, &r, WORLD_SECOND)->reply.status, -ENOENT);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.waits, 0);
	assert_int_equal(u.fetches, 0);
	world_free(w);
}

static void too_many_of_everything(void **state)
{
	struct world *w = one();
	struct session_request r;
	uint32_t refused = 0;
	char name[16];

	while (control_session_open(w->node[0].core, w->node[0].pins[1], w->now_ns) >= 0)
		;
	for (int i = 0; i < 200; i++) { /* more gets than fetches and waits */
		snprintf(name, sizeof(name), "n%d", i);
		r = world_request(SESSION_GET, name);
		world_send(w, 0, 0, &r);
		struct world_reply *a = world_reply_to(w, 0, r.seq);

		if (a) {
			assert_int_equal(a->reply.status, -EAGAIN);
			refused++;
		}
	}
	assert_true(refused > 100);
	control_session_close(w->node[0].core, 0, w->now_ns);
	world_run(w, WORLD_SECOND);
	world_free(w);
}

static int open_of(struct world *w, uint32_t user, bool daemons, uint32_t *session)
{
	struct control_client who = {.process = 1, .user = user, .daemons = daemons};
	struct control *c = w->node[0].core;
	int opened = control_session_open(c, w->node[0].pins[1], w->now_ns), error;

	if (opened < 0)
		return opened;
	*session = (uint32_t)opened;
	error = control_session_client(c, *session, &who);
	if (error)
		control_session_close(c, *session, w->now_ns);
	return error;
}

/* One user cannot keep all others away; the daemons' user and root may have everything. */
static void a_user_has_a_share_of_the_sessions(void **state)
{
	enum { SHARE = WORLD_SESSIONS - 1, GREEDY = 1000, OTHER = 1001 };
	struct world *w = world_new(1, 1, STORE, false);
	struct control *c = w->node[0].core;
	uint32_t session[WORLD_SESSIONS], none;

	for (uint32_t i = 0; i < SHARE; i++)
		assert_int_equal(open_of(w, GREEDY, false, &session[i]), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(open_of(w, GREEDY, false, &none), -EDQUOT);
	assert_int_equal(control_counters(c)->clients_greedy, 3);
	assert_int_equal(open_of(w, OTHER, false, &session[SHARE]), 0);
	assert_int_equal(open_of(w, OTHER, false, &none), -EMFILE);

	control_session_close(c, session[0], w->now_ns);
	assert_int_equal(open_of(w, GREEDY, false, &session[0]), 0);
	for (uint32_t i = 0; i < WORLD_SESSIONS; i++)
		control_session_close(c, session[i], w->now_ns);
	for (uint32_t i = 0; i < WORLD_SESSIONS; i++)
		assert_int_equal(open_of(w, GREEDY, true, &session[i]), 0);
	assert_int_equal(control_counters(c)->clients_greedy, 3);
	for (uint32_t i = 0; i < WORLD_SESSIONS; i++)
		control_session_close(c, session[i], w->now_ns);
	world_free(w);
}

/* Gets of what nobody puts: one user's leave room for those of others. */
static void a_user_has_a_share_of_the_waits(void **state)
{
	enum { GREEDY = 1000, OTHER = 1001, SHARE = 12 }; /* of 16 objects that may be awaited */
	struct world *w = world_new(2, 1, STORE, false);
	struct session_request attach = world_request(SESSION_ATTACH, NULL), get;
	uint32_t session[3], user[3] = {GREEDY, GREEDY, OTHER};
	char name[16];

	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(open_of(w, user[i], false, &session[i]), 0);
		assert_int_equal(world_call(w, 0, session[i], &attach, WORLD_SECOND)->reply.status,
				 0);
	}
	for (uint32_t i = 0; i < SHARE + 2; i++) {
		struct world_reply *a;

		snprintf(name, sizeof(name), "absent%u", i);
		get = world_request(SESSION_GET, name);
		get.timeout_ns = -1;
		a = world_call(w, 0, session[i < SHARE ? i % 2 : 2], &get, WORLD_SECOND / 10);
		assert_null(a);
	}
	get = world_request(SESSION_GET, "one more");
	get.timeout_ns = -1;
	for (uint32_t i = 0; i < 2; i++) {
		struct world_reply *a = world_call(w, 0, session[i], &get, WORLD_SECOND);

		assert_non_null(a);
		assert_int_equal(a->reply.status, -EAGAIN);
		assert_non_null(strstr(a->reply.text, "of this user"));
	}
	control_session_close(w->node[0].core, session[0], w->now_ns);
	assert_null(world_call(w, 0, session[1], &get, WORLD_SECOND / 10));
	world_free(w);
}

/* A turn looks at so many entries: the list of a node's own shard goes on in the next ones. */
static void a_long_list_takes_many_turns(void **state)
{
	enum { OBJECTS = 40 };
	struct world *w = world_new(1, 1, STORE, false);
	struct session_request list = world_request(SESSION_LIST, NULL), none;
	struct world_reply *a;
	uint32_t seq, found = 0;
	char name[16];

	assert_int_equal(world_open(w, 0), 0);
	for (uint32_t i = 0; i < OBJECTS; i++) {
		snprintf(name, sizeof(name), "object%u", i);
		assert_int_equal(world_put(w, 0, 0, name, 100, i), 0);
	}
	w->node[0].core->directory->shard.scan_max = 3;
	none = world_request(SESSION_LIST, "no such name");
	seq = world_send(w, 0, 0, &none);
	assert_null(world_reply_to(w, 0, seq)); /* not within the turn of the request */
	a = world_wait(w, 0, seq, WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_false(a->reply.flags & SESSION_FLAG_MORE);
	seq = world_send(w, 0, 0, &list);
	while ((a = world_wait(w, 0, seq, WORLD_SECOND)) && a->reply.flags & SESSION_FLAG_MORE)
		found++;
	assert_non_null(a);
	assert_int_equal(found, OBJECTS);
	world_free(w);
}

/* 'sarissa doctor' and 'sarissa status' show the same bytes, also while a bitmap takes some. */
static void status_and_gauges_agree_on_bytes(void **state)
{
	struct world *w = world_new(2, 1, UINT64_C(16) << 20, false);
	struct session_request get = world_request(SESSION_GET, "big");
	struct session_request r = world_request(SESSION_STATUS, NULL);
	struct control_gauges g;
	struct world_reply *a;
	bool arriving = false;

	assert_int_equal(world_open(w, 0), 0);
	assert_int_equal(world_open(w, 1), 0);
	get.timeout_ns = -1;
	assert_int_equal(world_put(w, 0, 0, "big", 3000000, 1), 0);
	world_send(w, 1, 0, &get);
	for (int i = 0; i < 400; i++) {
		uint32_t seq = world_send(w, 1, 0, &r);

		a = world_wait(w, 1, seq, WORLD_SECOND);
		assert_non_null(a);
		control_gauges(w->node[1].core, &g);
		arriving |= a->node.arriving > 0;
		assert_int_equal(g.store_bytes, a->node.store_bytes);
		assert_int_equal(g.store_used, a->node.store_used);
		while (a->reply.flags & SESSION_FLAG_MORE)
			a = world_wait(w, 1, seq, WORLD_SECOND);
		if (g.objects == 1 && arriving && a->node.arriving == 0 && i > 50)
			break;
	}
	assert_true(arriving && g.store_used >= 3000000);
	world_unpin(w, 1, 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_a_small_part_of_the_memory),
		cmocka_unit_test(a_lease_without_room_to_wait_is_as_before),
		cmocka_unit_test(malformed_requests_are_answered),
		cmocka_unit_test(attach_comes_first),
		cmocka_unit_test(slots_that_are_not_ours),
		cmocka_unit_test(sizes_beyond_the_store),
		cmocka_unit_test(a_dead_client_leaves_nothing),
		cmocka_unit_test(a_dead_client_waited_for_itself),
		cmocka_unit_test(an_abort_wakes_the_readers),
		cmocka_unit_test(pins_hold_the_memory),
		cmocka_unit_test(a_long_list_waits_for_its_reader),
		cmocka_unit_test(status_shows_this_node_first),
		cmocka_unit_test(a_cancelled_wait_is_gone),
		cmocka_unit_test(too_many_of_everything),
		cmocka_unit_test(a_user_has_a_share_of_the_sessions),
		cmocka_unit_test(a_user_has_a_share_of_the_waits),
		cmocka_unit_test(a_long_list_takes_many_turns),
		cmocka_unit_test(status_and_gauges_agree_on_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
