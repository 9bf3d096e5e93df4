/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects between whole nodes: every size, chains, loss, and what deleting does to them. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "rpc/mailbox.h"

#define STORE (UINT64_C(16) << 20)

static struct world *two(void)
{
	struct world *w = world_new(2, 1, STORE, false);

	assert_int_equal(world_open(w, 0), 0);
	assert_int_equal(world_open(w, 1), 0);
	return w;
}

static void expect_quiet(struct world *w)
{
	struct control_usage u;

	world_run(w, 3 * WORLD_SECOND);
	for (uint32_t i = 0; i < w->nodes; i++) {
		control_usage(w->node[i].core, &u);
		assert_int_equal(u.fetches, 0);
		assert_int_equal(u.serves, 0);
		assert_int_equal(u.stages, 0);
		assert_int_equal(u.edges, 0);
		assert_int_equal(u.waits, 0);
		assert_int_equal(u.calls, 0);
		assert_int_equal(u.zombies, 0);
		assert_int_equal(u.scratch_bytes, 0);
	}
}

static void every_size_arrives(void **state)
{
	static const uint64_t sizes[] = {0,	1,     63,    64,      1407,	      1408,   1409,
					 65535, 65536, 65537, 1 << 20, (1 << 20) + 7, 5000000};
	struct world *w = two();
	char name[16];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "size%zu", i);
		assert_int_equal(world_put(w, i % 2, 0, name, sizes[i], i), 0);
		assert_int_equal(world_get(w, 1 - i % 2, 0, name, sizes[i], i, -1), 0);
		assert_int_equal(world_get(w, i % 2, 0, name, sizes[i], i, 0), 0);
		world_unpin(w, 0, 0);
		world_unpin(w, 1, 0);
	}
	expect_quiet(w);
	world_free(w);
}

static void get_waits_for_put(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_GET, "later");
	uint32_t seq = world_send(w, 1, 0, &r);

	assert_null(world_wait(w, 1, seq, 2 * WORLD_SECOND));
	assert_int_equal(world_put(w, 0, 0, "later", 300000, 1), 0);
	assert_non_null(world_wait(w, 1, seq, WORLD_SECOND));
	assert_int_equal(world_get(w, 1, 0, "later", 300000, 1, -1), 0);
	expect_quiet(w);
	world_free(w);
}

static void get_without_waiting(void **state)
{
	struct world *w = two();

	assert_int_equal(world_get(w, 1, 0, "none", 0, 0, 0), -ENOENT);
	assert_int_equal(world_get(w, 0, 0, "none", 0, 0, 0), -ENOENT);
	assert_int_equal(world_get(w, 1, 0, "none", 0, 0, WORLD_SECOND), -ETIMEDOUT);
	assert_int_equal(world_put(w, 0, 0, "some", 100, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "some", 100, 1, 0), 0);
	expect_quiet(w);
	world_free(w);
}

/* However soon it gives up it is told why, if there is the time for an answer. */
static void a_short_get_hears_that_nobody_has_it(void **state)
{
	struct world *w = two();

	for (uint64_t ms = 1; ms <= 32; ms *= 2) {
		struct session_request r = world_request(SESSION_GET, "none");
		struct world_reply *got;

		r.timeout_ns = (int64_t)(ms * WORLD_MS);
		got = world_call(w, 1, 0, &r, WORLD_SECOND);
		assert_non_null(got);
		assert_int_equal(got->reply.status, -ETIMEDOUT);
		assert_non_null(strstr(got->reply.text, "nobody has put such an object yet"));
		world_run(w, 10 * WORLD_MS);
	}
	expect_quiet(w);
	world_free(w);
}

static bool says_of_none(struct world *w, uint16_t op, int64_t timeout_ns, int32_t status,
			 const char *text)
{
	struct session_request r = world_request(op, "none");
	struct world_reply *answer;

	r.timeout_ns = timeout_ns;
	answer = world_call(w, 1, 0, &r, 2 * WORLD_SECOND);
	assert_non_null(answer);
	assert_int_equal(answer->reply.status, status);
	if (strstr(answer->reply.text, text))
		return true;
	print_message("%s\n", answer->reply.text);
	return false;
}

/* Whichever node owns the id. */
static void the_deleted_is_told_from_what_never_was(void **state)
{
	for (uint32_t seed = 0; seed < 4; seed++) {
		struct world *w = two();
		struct session_request r = world_request(SESSION_DELETE, "none");

		assert_true(says_of_none(w, SESSION_GET, 0, -ENOENT, "no such object"));
		assert_true(
			says_of_none(w, SESSION_GET, WORLD_SECOND, -ETIMEDOUT, "nobody has put"));
		assert_true(says_of_none(w, SESSION_DELETE, 0, -ENOENT, "see the list"));
		assert_true(says_of_none(w, SESSION_STAT, 0, -ENOENT, "see the list"));
		assert_int_equal(world_put(w, seed % 2, 0, "none", 100000, 1), 0);
		assert_int_equal(world_call(w, seed / 2, 0, &r, WORLD_SECOND)->reply.status, 0);
		assert_true(
			says_of_none(w, SESSION_GET, 0, -ENOENT, "it was deleted: put it again"));
		assert_true(says_of_none(w, SESSION_GET, WORLD_SECOND, -ETIMEDOUT,
					 "it was deleted: put it again"));
		assert_true(says_of_none(w, SESSION_DELETE, 0, -ENOENT, "it was deleted already"));
		assert_true(says_of_none(w, SESSION_STAT, 0, -ENOENT, "it was deleted: put it"));
		/* another one of the id */
		assert_int_equal(world_put(w, 0, 0, "none", 100000, 2), 0);
		assert_int_equal(world_get(w, 1, 0, "none", 100000, 2, -1), 0);
		world_unpin(w, 1, 0);
		expect_quiet(w);
		world_free(w);
	}
}

/* An answer to STAT cannot have an object and say that it was deleted. */
static void an_object_that_is_there_was_not_deleted(void **state)
{
	static uint8_t arena[MAILBOX_ARENA_BYTES] __attribute__((aligned(64)));
	static uint8_t bytes[MSG_BYTES_MAX];
	static const struct session_object object = {.generation = 1};

	for (uint32_t count = 0; count < 2; count++)
		for (uint32_t deleted = 0; deleted < 3; deleted++) {
			struct message m = {.kind = MESSAGE_OBJECTS, .request = 7}, back;
			size_t length;

			m.objects = (struct message_objects){0, count, &object, deleted, 0, 0, 0};
			length = codec_encode(&m, arena + CODEC_ARENA_BYTES, bytes, sizeof(bytes));
			if (deleted > (count == 0)) {
				assert_true(codec_decode(bytes, length, arena, &back) < 0);
				continue;
			}
			assert_int_equal(codec_decode(bytes, length, arena, &back), 0);
			assert_int_equal(back.objects.deleted, deleted);
		}
}

/* A stream is read while it is written, and arrives while it is written. */
static void published_bytes_arrive_early(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_CREATE, "live");
	struct world_reply *created, *got;
	const uint8_t *bytes;
	uint32_t seq;

	r.size = 1 << 20;
	created = world_call(w, 0, 0, &r, WORLD_SECOND);
	assert_int_equal(created->reply.status, 0);
	world_fill(w->node[0].store + created->reply.offset, 1 << 20, 9);
	r = world_request(SESSION_GET, "live");
	got = world_call(w, 1, 0, &r, WORLD_SECOND);
	assert_int_equal(got->reply.status, 0);
	assert_int_equal(got->reply.size, 1 << 20);
	bytes = w->node[1].store + got->reply.offset;

	r = world_request(SESSION_WAIT, NULL);
	r.slot = got->reply.slot;
	r.generation = got->reply.generation;
	r.watermark = 500000;
	seq = world_send(w, 1, 0, &r);
	assert_null(world_wait(w, 1, seq, WORLD_SECOND));

	r = world_request(SESSION_PUBLISH, NULL);
	r.slot = created->reply.slot;
	r.generation = created->reply.generation;
	r.watermark = 600000;
	assert_int_equal(world_call(w, 0, 0, &r, 0)->reply.status, 0);
	got = world_wait(w, 1, seq, WORLD_SECOND);
	assert_non_null(got);
	assert_true(got->reply.watermark >= 500000 && got->reply.watermark <= 600000);
	assert_true(world_holds(bytes, got->reply.watermark, 9));

	r.op = SESSION_SEAL;
	assert_int_equal(world_call(w, 0, 0, &r, 0)->reply.status, 0);
	assert_int_equal(world_get(w, 1, 0, "live", 1 << 20, 9, -1), 0);
	world_unpin(w, 1, 0);
	expect_quiet(w);
	world_free(w);
}

/* One question and one answer, at a node where it arrives and where it is written. */
static void a_get_of_a_whole_object_is_one_request(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_CREATE, "live"), whole;
	struct world_reply *created, *got;
	uint32_t seq[2];

	r.size = 1 << 20;
	created = world_call(w, 0, 0, &r, WORLD_SECOND);
	assert_int_equal(created->reply.status, 0);
	world_fill(w->node[0].store + created->reply.offset, 1 << 20, 9);
	whole = world_request(SESSION_GET, "live");
	whole.flags = SESSION_FLAG_WHOLE;
	for (uint32_t i = 0; i < 2; i++) {
		seq[i] = world_send(w, i, 0, &whole);
		assert_null(world_wait(w, i, seq[i], WORLD_SECOND));
		whole.timeout_ns = i ? WORLD_SECOND : 0; /* they do not wait, or not for long */
		got = world_call(w, i, 0, &whole, 2 * WORLD_SECOND);
		assert_int_equal(got->reply.status, -ETIMEDOUT);
		assert_non_null(strstr(got->reply.text, "0 of 1048576 bytes are here"));
		whole.timeout_ns = -1;
	}
	r = world_request(SESSION_SEAL, NULL);
	r.slot = created->reply.slot;
	r.generation = created->reply.generation;
	assert_int_equal(world_call(w, 0, 0, &r, 0)->reply.status, 0);
	for (uint32_t i = 0; i < 2; i++) {
		got = world_wait(w, i, seq[i], WORLD_SECOND);
		assert_non_null(got);
		assert_int_equal(got->reply.status, 0);
		assert_int_equal(got->reply.watermark, 1 << 20);
		assert_true(world_holds(w->node[i].store + got->reply.offset, 1 << 20, 9));
	}
	expect_quiet(w);
	world_free(w);
}

/* Who waits for all of it hears that it will not come. */
static void a_get_of_a_whole_object_hears_of_its_end(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_CREATE, "live"), whole;
	uint32_t seq;

	r.size = 1 << 20;
	assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
	whole = world_request(SESSION_GET, "live");
	whole.flags = SESSION_FLAG_WHOLE;
	seq = world_send(w, 1, 0, &whole);
	assert_null(world_wait(w, 1, seq, WORLD_SECOND));
	r = world_request(SESSION_DELETE, "live");
	assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
	assert_int_equal(world_wait(w, 1, seq, WORLD_SECOND)->reply.status, -ESTALE);
	expect_quiet(w);
	world_free(w);
}

struct gets {
	uint32_t nodes, seq[WORLD_NODES_MAX], left;
};

static bool gets_answered(struct world *w, void *arg)
{
	struct gets *g = arg;

	for (uint32_t i = 1; i < g->nodes; i++)
		if (g->seq[i] && world_reply_to(w, i, g->seq[i])) {
			g->seq[i] = 0;
			g->left--;
		}
	return g->left == 0;
}

/* All ask at once: they chain behind each other, and the origin sends each byte about once. */
static void broadcast(uint32_t workers, uint32_t loss_permille, bool all_shards)
{
	struct world *w = world_new(6, workers, STORE, all_shards);
	struct gets g = {.nodes = 6, .left = 5};
	uint64_t sent;

	w->prng = 12345;
	w->loss_permille = loss_permille;
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(world_open(w, i), 0);
	assert_int_equal(world_put(w, 0, 0, "wide", 3000000, 5), 0);
	for (uint32_t i = 1; i < 6; i++) {
		struct session_request r = world_request(SESSION_GET, "wide");

		r.pin = 0;
		g.seq[i] = world_send(w, i, 0, &r);
	}
	assert_true(world_until(w, gets_answered, &g, 60 * WORLD_SECOND));
	for (uint32_t i = 1; i < 6; i++)
		assert_int_equal(world_get(w, i, 0, "wide", 3000000, 5, -1), 0);
	sent = 0;
	for (uint32_t k = 0; k < workers; k++)
		sent += w->node[0].counters[k].tx_chunk_bytes -
			w->node[0].counters[k].tx_chunk_resends * 1408;
	/* a late receiver may find the origin free again */
	assert_true(sent < (loss_permille ? 3 : 2) * UINT64_C(3000000));
	for (uint32_t i = 0; i < 6; i++)
		world_unpin(w, i, 0);
	w->loss_permille = 0;
	expect_quiet(w);
	world_free(w);
}

static void broadcast_chains(void **state)
{
	broadcast(1, 0, false);
}

static void broadcast_over_two_workers(void **state)
{
	broadcast(2, 0, true);
}

static void broadcast_with_loss(void **state)
{
	broadcast(1, 50, true);
}

static void delete_removes_every_copy(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_DELETE, "gone");
	struct control_usage u;

	assert_int_equal(world_put(w, 0, 0, "gone", 200000, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "gone", 200000, 1, -1), 0);
	assert_int_equal(world_call(w, 1, 0, &r, WORLD_SECOND)->reply.status, 0);
	world_run(w, WORLD_SECOND);
	assert_int_equal(world_get(w, 0, 0, "gone", 0, 0, 0), -ENOENT);
	control_usage(w->node[0].core, &u);
	assert_int_equal(u.objects, 0);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.zombies, 1); /* a reader still has it */
	world_unpin(w, 1, 0);
	world_run(w, WORLD_SECOND);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.objects, 0);
	assert_int_equal(u.store_bytes, 0);
	assert_int_equal(world_call(w, 1, 0, &r, WORLD_SECOND)->reply.status, -ENOENT);
	expect_quiet(w);
	world_free(w);
}

/* [G1.2] */
static void put_again_is_another_object(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_DELETE, "twice");

	assert_int_equal(world_put(w, 0, 0, "twice", 150000, 1), 0);
	assert_int_equal(world_put(w, 0, 0, "twice", 150000, 2), -EEXIST);
	assert_int_equal(world_put(w, 1, 0, "twice", 150000, 2), -EEXIST);
	assert_int_equal(world_get(w, 1, 0, "twice", 150000, 1, -1), 0);
	assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
	assert_int_equal(world_put(w, 0, 0, "twice", 170000, 3), 0);
	assert_int_equal(world_get(w, 1, 0, "twice", 170000, 3, -1), 0);
	world_unpin(w, 1, 0);
	expect_quiet(w);
	world_free(w);
}

static void delete_while_it_arrives(void **state)
{
	struct world *w = two();
	struct session_request get = world_request(SESSION_GET, "half"), r;
	struct world_reply *got;
	uint32_t seq;

	assert_int_equal(world_put(w, 0, 0, "half", 8000000, 1), 0);
	got = world_call(w, 1, 0, &get, WORLD_SECOND);
	assert_int_equal(got->reply.status, 0);
	r = world_wait_for(&got->reply);
	seq = world_send(w, 1, 0, &r);
	world_run(w, 500000);
	assert_null(world_reply_to(w, 1, seq));
	r = world_request(SESSION_DELETE, "half");
	assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
	got = world_wait(w, 1, seq, WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, -ESTALE);
	expect_quiet(w);
	world_free(w);
}

static void full_store_evicts_copies_only(void **state)
{
	struct world *w = two();

	assert_int_equal(world_put(w, 0, 0, "a", 6000000, 1), 0);
	assert_int_equal(world_put(w, 0, 0, "b", 6000000, 2), 0);
	assert_int_equal(world_put(w, 0, 0, "c", 6000000, 3), -ENOSPC); /* primaries stay */
	assert_int_equal(world_put(w, 0, 0, "d", 60000000, 3), -EFBIG);
	assert_int_equal(world_get(w, 1, 0, "a", 6000000, 1, -1), 0);
	world_unpin(w, 1, 0);
	assert_int_equal(world_put(w, 1, 0, "c", 6000000, 3), 0);
	assert_int_equal(world_get(w, 1, 0, "b", 6000000, 2, -1), 0); /* evicts a */
	assert_int_equal(world_get(w, 1, 0, "a", 6000000, 1, 5 * (int64_t)WORLD_SECOND),
			 -ENOSPC); /* b is pinned */
	world_unpin(w, 1, 0);
	assert_int_equal(world_get(w, 1, 0, "a", 6000000, 1, -1), 0);
	world_unpin(w, 1, 0);
	expect_quiet(w);
	world_free(w);
}

/* A get with a limit of time waits for what a reader of this node gives back, one without does not:
 * it may be that reader's. The object can be had elsewhere meanwhile. [G8.2] */
static void a_get_waits_for_room_of_a_reader(void **state)
{
	struct world *w = two();
	struct session_request get = world_request(SESSION_GET, "b"), limited = get;
	struct world_reply *got;
	uint32_t seq[3];

	assert_int_equal(world_put(w, 0, 0, "a", 6000000, 1), 0);
	assert_int_equal(world_put(w, 0, 0, "b", 6000000, 2), 0);
	assert_int_equal(world_put(w, 1, 0, "own", 6000000, 3), 0);
	assert_int_equal(world_get(w, 1, 0, "a", 6000000, 1, -1), 0);
	limited.timeout_ns = 20 * (int64_t)WORLD_SECOND;
	seq[0] = world_send(w, 1, 0, &limited);
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, 1, seq[0]));
	get.timeout_ns = -1;
	seq[1] = world_send(w, 1, 0, &get);
	limited.timeout_ns = 2 * (int64_t)WORLD_SECOND;
	seq[2] = world_send(w, 1, 0, &limited);
	got = world_wait(w, 1, seq[1], WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, -ENOSPC);
	got = world_wait(w, 1, seq[2], 3 * WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, -ENOSPC);
	assert_memory_equal(got->reply.text, "store full (", 12);
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, 1, seq[0]));
	world_unpin(w, 1, 0); /* of a */
	got = world_wait(w, 1, seq[0], WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, 0);
	world_run(w, 5 * WORLD_SECOND);
	world_unpin(w, 1, 0);
	/* what stays however long it waits is an error at once */
	assert_int_equal(world_put(w, 1, 0, "more", 6000000, 4), 0);
	limited.timeout_ns = 20 * (int64_t)WORLD_SECOND;
	limited.id = world_request(SESSION_GET, "a").id;
	got = world_call(w, 1, 0, &limited, WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, -ENOSPC);
	expect_quiet(w);
	world_free(w);
}

/* Those that wait for room look together. */
static void many_that_wait_for_room_look_once(void **state)
{
	enum { MANY = 14 };
	struct world *w = two();
	uint32_t seq[MANY];
	uint64_t looks;

	assert_int_equal(world_put(w, 0, 0, "a", 6000000, 1), 0);
	assert_int_equal(world_put(w, 1, 0, "own", 10400000, 3), 0);
	assert_int_equal(world_get(w, 1, 0, "a", 6000000, 1, -1), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		struct session_request get;
		char name[8];

		snprintf(name, sizeof(name), "b%u", i);
		assert_int_equal(world_put(w, 0, 0, name, 400000, i), 0);
		get = world_request(SESSION_GET, name);
		get.timeout_ns = 20 * (int64_t)WORLD_SECOND;
		seq[i] = world_send(w, 1, 0, &get);
		world_run(w, 3 * WORLD_MS);
	}
	looks = w->node[1].core->store->objects.scan;
	world_run(w, WORLD_SECOND);
	looks = w->node[1].core->store->objects.scan - looks;
	assert_in_range(looks, 10, 110);
	for (uint32_t i = 0; i < MANY; i++)
		assert_null(world_reply_to(w, 1, seq[i]));
	world_unpin(w, 1, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		struct world_reply *got = world_wait(w, 1, seq[i], WORLD_SECOND);

		assert_non_null(got);
		assert_int_equal(got->reply.status, 0);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_arrives),
		cmocka_unit_test(get_waits_for_put),
		cmocka_unit_test(get_without_waiting),
		cmocka_unit_test(a_short_get_hears_that_nobody_has_it),
		cmocka_unit_test(the_deleted_is_told_from_what_never_was),
		cmocka_unit_test(an_object_that_is_there_was_not_deleted),
		cmocka_unit_test(published_bytes_arrive_early),
		cmocka_unit_test(a_get_of_a_whole_object_is_one_request),
		cmocka_unit_test(a_get_of_a_whole_object_hears_of_its_end),
		cmocka_unit_test(broadcast_chains),
		cmocka_unit_test(broadcast_over_two_workers),
		cmocka_unit_test(broadcast_with_loss),
		cmocka_unit_test(delete_removes_every_copy),
		cmocka_unit_test(put_again_is_another_object),
		cmocka_unit_test(delete_while_it_arrives),
		cmocka_unit_test(a_get_waits_for_room_of_a_reader),
		cmocka_unit_test(many_that_wait_for_room_look_once),
		cmocka_unit_test(full_store_evicts_copies_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
