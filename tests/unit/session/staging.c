/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects in private staging buffers: what readers see of them, and when. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { PIN = 5, US = 700 };

#define STORE (UINT64_C(8) << 20)
#define SIZE  UINT64_C(3000000) /* several turns */
#define WHEN  (20 * WORLD_SECOND)

/* A session whose client must not write to the store. */
static uint32_t open_staged_of(struct world *w, uint32_t user)
{
	uint32_t session = world_open(w, 0);

	control_session_client(
		w->node[0].core, session,
		&(struct control_client){.process = US, .user = user, .staged = true});
	return session;
}

static uint32_t open_staged(struct world *w)
{
	return open_staged_of(w, 0);
}

struct writer {
	struct world *w;
	uint32_t session;
	struct session_reply object;
	struct world_memory *memory;
};

static struct session_reply create(struct world *w, uint32_t session, const char *name,
				   uint64_t size)
{
	struct session_request r = world_request(SESSION_CREATE, name);

	r.size = size;
	r.pin = PIN;
	return world_call(w, 0, session, &r, WHEN)->reply;
}

static struct writer writer_of(struct world *w, uint32_t session, const char *name, uint64_t size)
{
	struct writer k = {.w = w, .session = session, .object = create(w, session, name, size)};

	assert_int_equal(k.object.status, 0);
	assert_int_equal(k.object.flags, SESSION_FLAG_STAGED);
	k.memory = w->node[0].staged[k.object.slot];
	assert_non_null(k.memory);
	assert_int_equal(k.memory->size, size);
	return k;
}

static struct writer begin(uint32_t nodes)
{
	struct world *w = world_new(nodes, 1, STORE, false);

	return writer_of(w, open_staged(w), "x", SIZE);
}

/* Returns the seq. */
static uint32_t tell(const struct writer *k, uint16_t op, uint64_t watermark)
{
	struct session_request r = world_request(op, NULL);

	r.slot = k->object.slot;
	r.generation = k->object.generation;
	r.watermark = watermark;
	return world_send(k->w, 0, k->session, &r);
}

static int ask(const struct writer *k, uint16_t op, uint64_t watermark)
{
	struct world_reply *a = world_wait(k->w, 0, tell(k, op, watermark), WHEN);

	assert_non_null(a);
	return a->reply.status;
}

static int status_of(const struct writer *k, uint32_t seq)
{
	struct world_reply *a = world_reply_to(k->w, 0, seq);

	return a ? a->reply.status : -EINPROGRESS;
}

static uint64_t watermark(const struct writer *k)
{
	return k->w->node[0].table->slot[k->object.slot].watermark;
}

static bool turn(const struct writer *k)
{
	return control_copy(k->w->node[0].core, k->w->now_ns);
}

/* Nobody writes anything apart any more. */
static void check_none(struct world *w)
{
	struct control_gauges g;

	control_gauges(w->node[0].core, &g);
	assert_int_equal(g.creating, 0);
	for (uint32_t i = 0; i < WORLD_TABLE_SLOTS; i++)
		assert_null(w->node[0].staged[i]);
}

static void check_empty(struct world *w)
{
	struct control_usage u;

	world_run(w, WORLD_SECOND);
	check_none(w);
	control_usage(w->node[0].core, &u);
	assert_int_equal(u.objects, 0);
	assert_int_equal(u.store_bytes, 0);
	assert_int_equal(u.waits, 0);
}

static void readers_see_what_was_final(void **state)
{
	struct writer k = begin(2);
	uint32_t reader = world_open(k.w, 1);

	world_fill(k.memory->bytes, SIZE, 1);
	assert_int_equal(watermark(&k), 0);
	assert_int_equal(ask(&k, SESSION_PUBLISH, SIZE / 3), 0);
	assert_int_equal(watermark(&k), SIZE / 3);
	memset(k.memory->bytes, 0xee, SIZE / 3); /* too late */
	assert_int_equal(ask(&k, SESSION_PUBLISH, SIZE / 3 - 1), -EINVAL);
	assert_int_equal(ask(&k, SESSION_PUBLISH, SIZE + 1), -EINVAL);
	assert_int_equal(ask(&k, SESSION_SEAL, 0), 0);
	check_none(k.w);
	memset(k.memory->bytes, 0xdd, SIZE);
	assert_int_equal(world_get(k.w, 0, k.session, "x", SIZE, 1, WHEN), 0);
	assert_int_equal(world_get(k.w, 1, reader, "x", SIZE, 1, WHEN), 0);
	assert_int_equal(ask(&k, SESSION_SEAL, 0), -EINVAL);
	world_free(k.w);
}

/* The store is left as it was where nothing was called final. */
static void nothing_else_is_written(void **state)
{
	struct writer k = begin(1);
	struct world *w = k.w;
	struct writer next = writer_of(w, k.session, "y", 5000);
	uint8_t *store = w->node[0].store;

	memset(store, 0xab, SIZE + 65536);
	memset(k.memory->bytes, 0xcd, SIZE);
	assert_int_equal(ask(&k, SESSION_PUBLISH, 1000), 0);
	for (uint64_t i = 0; i < SIZE + 65536; i++)
		assert_int_equal(store[i], i - k.object.offset < 1000 ? 0xcd : 0xab);
	assert_int_equal(watermark(&next), 0);
	world_free(w);
}

static void turns_are_short_and_fair(void **state)
{
	struct writer k = begin(1);
	struct writer small = writer_of(k.w, k.session, "small", 100);
	uint32_t half, whole, other;
	unsigned turns = 0;

	k.w->hold_copies = true;
	assert_false(turn(&k));
	half = tell(&k, SESSION_PUBLISH, SIZE / 2);
	whole = tell(&k, SESSION_SEAL, 0);
	other = tell(&small, SESSION_SEAL, 0);
	for (uint64_t before = 0; turn(&k); turns++, before = watermark(&k)) {
		assert_in_range(watermark(&k) - before, 1, 256 * 1024);
		if (turns == 1)
			assert_int_equal(status_of(&small, other), 0);
		if (watermark(&k) < SIZE / 2)
			assert_int_equal(status_of(&k, half), -EINPROGRESS);
		if (watermark(&k) < SIZE)
			assert_int_equal(status_of(&k, whole), -EINPROGRESS);
	}
	assert_int_equal(turns, (SIZE + 256 * 1024 - 1) / (256 * 1024));
	assert_int_equal(status_of(&k, half), 0);
	assert_int_equal(status_of(&k, whole), 0);
	world_free(k.w);
}

static void empty_objects(void **state)
{
	struct world *w = world_new(1, 1, STORE, false);
	struct writer k = writer_of(w, open_staged(w), "empty", 0);

	assert_int_equal(ask(&k, SESSION_PUBLISH, 0), 0);
	assert_int_equal(ask(&k, SESSION_SEAL, 0), 0);
	assert_int_equal(world_get(w, 0, k.session, "empty", 0, 0, WHEN), 0);
	world_free(w);
}

/* In the middle of a copy. */
static void it_ends_early(void **state)
{
	enum { ABORTED, DELETED, UNREADABLE, CLOSED, WAYS };

	for (int way = 0; way < WAYS; way++) {
		struct writer k = begin(1);
		uint32_t seq;

		k.w->hold_copies = true;
		seq = tell(&k, SESSION_SEAL, 0);
		assert_true(turn(&k));
		if (way == ABORTED)
			assert_int_equal(ask(&k, SESSION_ABORT, 0), 0);
		if (way == DELETED) {
			struct session_request r = world_request(SESSION_DELETE, "x");

			assert_int_equal(world_call(k.w, 0, k.session, &r, WHEN)->reply.status, 0);
		}
		if (way == UNREADABLE) {
			k.w->node[0].staging_error = -EIO;
			assert_true(turn(&k));
		}
		if (way == CLOSED)
			control_session_close(k.w->node[0].core, k.session, k.w->now_ns);
		else
			assert_int_equal(status_of(&k, seq), -ESTALE);
		assert_false(turn(&k));
		k.w->node[0].pins[k.session][PIN] = 0;
		check_empty(k.w);
		world_free(k.w);
	}
}

static void check_refused(struct world *w, uint64_t all, uint64_t greedy)
{
	const struct control_counters *n = control_counters(w->node[0].core);

	assert_int_equal(n->creations_refused, all);
	assert_int_equal(n->creations_greedy, greedy);
}

/* Of all sessions of a user together, whichever of them asks; of all users. */
static void as_many_as_there_is_room_for(void **state)
{
	struct world *w = world_new(1, 1, STORE, false);
	uint32_t first = open_staged(w), more = open_staged(w), second = open_staged_of(w, 1000);
	struct writer k = writer_of(w, first, "0", 10);
	struct session_reply r;
	char name[4] = "1";

	for (; name[0] < '4'; name[0]++)
		writer_of(w, name[0] % 2 ? first : more, name, 10);
	for (int i = 0; i < 2; i++) {
		r = create(w, i ? more : first, "more", 10);
		assert_int_equal(r.status, -EMFILE);
		assert_non_null(strstr(r.text, "by this user"));
		check_refused(w, i + 1, i + 1);
	}
	writer_of(w, second, "4", 10);
	writer_of(w, second, "5", 10);
	r = create(w, second, "more", 10);
	assert_int_equal(r.status, -EMFILE);
	assert_null(strstr(r.text, "by this user"));
	check_refused(w, 3, 2);
	assert_int_equal(ask(&k, SESSION_SEAL, 0), 0);
	w->node[0].staging_error = -ENOMEM;
	assert_int_equal(create(w, second, "more", 10).status, -ENOMEM);
	check_refused(w, 4, 2);
	w->node[0].staging_error = 0;
	writer_of(w, second, "more", 10);
	control_session_close(w->node[0].core, more, w->now_ns); /* it gives back what it had */
	assert_int_equal(create(w, world_open(w, 0), "trusted", 10).flags, 0);
	writer_of(w, first, "again", 10);
	world_free(w);
}

static struct writer come_back(struct writer k, uint64_t pin)
{
	k.session = open_staged(k.w);
	k.w->node[0].pins[k.session][PIN] = pin;
	return k;
}

/* Control is killed in the middle of a copy, or before its client has the answer to CREATE. */
static struct writer restart(struct writer k)
{
	uint64_t pin = k.w->node[0].pins[k.session][PIN];

	k.w->old_clients = true;
	world_kill_control(k.w, 0);
	world_start_control(k.w, 0);
	world_run(k.w, WORLD_SECOND);
	return come_back(k, pin);
}

static int resume(const struct writer *k, struct world_memory *brought)
{
	struct session_request r = world_request(SESSION_RESUME, NULL);
	int status;

	r.pin = PIN;
	k->w->node[0].brought = brought;
	status = world_call(k->w, 0, k->session, &r, WHEN)->reply.status;
	k->w->node[0].brought = NULL;
	return status;
}

static bool brings(const struct writer *k)
{
	return control_session_brings(k->w->node[0].core, k->session);
}

static void another_control_goes_on_with_it(void **state)
{
	struct writer k = begin(2);

	world_fill(k.memory->bytes, SIZE, 4);
	k.w->hold_copies = true;
	tell(&k, SESSION_SEAL, 0);
	assert_true(turn(&k));
	assert_false(brings(&k));
	k.w->hold_copies = false;
	k = restart(k);
	assert_true(brings(&k));
	assert_int_equal(resume(&k, k.memory), 0);
	assert_true(brings(&k)); /* it was told so, and what else it has may be gone meanwhile */
	assert_int_equal(resume(&k, k.memory), -ESTALE); /* once */
	assert_int_equal(ask(&k, SESSION_SEAL, 0), 0);
	assert_int_equal(world_get(k.w, 1, world_open(k.w, 1), "x", SIZE, 4, WHEN), 0);
	check_none(k.w);
	world_free(k.w);
}

/* What ATTACH says of it. */
static uint16_t attach_flags(const struct writer *k)
{
	struct session_request r = world_request(SESSION_ATTACH, NULL);
	struct world_reply *a = world_call(k->w, 0, k->session, &r, 0);

	assert_non_null(a);
	return a->reply.flags;
}

/* A client that brings another file may bring nothing any more, over no connection; other clients
 * still may. */
static void what_is_brought_instead_ends_it(void **state)
{
	struct writer k = begin(1);
	struct control *c;
	uint32_t again;

	assert_int_equal(attach_flags(&k), 0);
	k = restart(k);
	c = k.w->node[0].core;
	again = open_staged(k.w);
	assert_int_equal(attach_flags(&k), SESSION_FLAG_BRING);
	control_session_forfeit(c, world_open(k.w, 0), k.w->now_ns); /* of nobody we know */
	assert_true(brings(&k));
	control_session_forfeit(c, again, k.w->now_ns);
	assert_false(brings(&k));
	assert_false(control_session_brings(c, again));
	assert_false(control_session_brings(c, open_staged(k.w)));
	assert_int_equal(resume(&k, k.memory), -ESTALE);
	k.w->node[0].pins[k.session][PIN] = 0;
	k.w->old_clients = false;
	check_empty(k.w);
	world_free(k.w);
}

/* It has nothing of what was written, so it takes nothing for final. */
static void without_its_memory_it_fails_by_name(void **state)
{
	struct world_memory small = {(uint8_t[10]){0}, 10};
	struct world_memory *wrong[] = {NULL, &small};

	for (unsigned i = 0; i < 2; i++) {
		struct writer k = restart(begin(1));

		assert_int_equal(resume(&k, wrong[i]), 0);
		assert_int_equal(ask(&k, SESSION_PUBLISH, 10), -ESTALE);
		assert_int_equal(ask(&k, SESSION_SEAL, 0), -ESTALE);
		check_refused(k.w, 0, 0);
		assert_int_equal(ask(&k, SESSION_ABORT, 0), 0);
		k.w->node[0].pins[k.session][PIN] = 0;
		k.w->old_clients = false;
		check_empty(k.w);
		world_free(k.w);
	}
}

/* Its answer was lost with control: the memory as well. */
static void an_unanswered_create_gets_other_memory(void **state)
{
	struct writer k = begin(1);
	struct world_memory *first = k.memory;
	struct session_request r = world_request(SESSION_CREATE, "x");

	memset(first->bytes, 0xee, SIZE);
	k = restart(k);
	assert_int_equal(resume(&k, NULL), 0);
	r.size = SIZE;
	r.pin = PIN;
	r.flags = SESSION_FLAG_RETRY;
	k.w->node[0].staging_error = -ENOMEM;
	k.object = world_call(k.w, 0, k.session, &r, WHEN)->reply;
	assert_int_equal(k.object.status, -ENOMEM); /* and asks once more, as long as it is there */
	k.w->node[0].staging_error = 0;
	k.object = world_call(k.w, 0, k.session, &r, WHEN)->reply;
	assert_int_equal(k.object.status, 0);
	assert_int_equal(k.object.flags, SESSION_FLAG_STAGED);
	k.memory = k.w->node[0].staged[k.object.slot];
	assert_ptr_not_equal(k.memory, first);
	world_fill(k.memory->bytes, SIZE, 5);
	assert_int_equal(ask(&k, SESSION_SEAL, 0), 0);
	assert_int_equal(world_get(k.w, 0, k.session, "x", SIZE, 5, WHEN), 0);
	world_free(k.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_see_what_was_final),
		cmocka_unit_test(nothing_else_is_written),
		cmocka_unit_test(turns_are_short_and_fair),
		cmocka_unit_test(empty_objects),
		cmocka_unit_test(it_ends_early),
		cmocka_unit_test(as_many_as_there_is_room_for),
		cmocka_unit_test(another_control_goes_on_with_it),
		cmocka_unit_test(without_its_memory_it_fails_by_name),
		cmocka_unit_test(what_is_brought_instead_ends_it),
		cmocka_unit_test(an_unanswered_create_gets_other_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
