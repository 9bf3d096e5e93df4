/* SPDX-License-Identifier: BSD-3-Clause */
/* A put of an id that is in use: the bytes decide, also while they are still being written. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "fixtures/client_fake.h"
#include "fixtures/client_test.h"
#include "sarissa/array.h"

enum { BIG = 2500000 };

static void the_bytes_decide(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("twice");
	uint8_t *data = test_pattern(BIG);
	sar_buffer b;
	assert_int_equal(sar_put(c->s, id, NULL, data, BIG), 0);
	assert_int_equal(sar_put(c->s, id, NULL, data, BIG), 0);
	assert_int_equal(sar_put(c->s, id, NULL, data, BIG - 1), -EEXIST);
	assert_non_null(strstr(sar_error_detail(), "2500000 bytes, this one has 2499999"));
	data[BIG - 1] ^= 1;
	assert_int_equal(sar_put(c->s, id, NULL, data, BIG), -EEXIST);
	assert_non_null(strstr(sar_error_detail(), "with other bytes"));
	assert_int_equal(sar_create(c->s, id, NULL, BIG, &b), -EEXIST);
	assert_int_equal(sar_delete(c->s, id), 0);
	assert_int_equal(sar_put(c->s, id, NULL, data, BIG), 0);
	assert_int_equal(sar_put(c->s, test_id("empty"), NULL, NULL, 0), 0);
	assert_int_equal(sar_put(c->s, test_id("empty"), NULL, NULL, 0), 0);
	free(data);
}

static bool hook_piece_by_piece(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op != SESSION_PUT)
		return false;
	fake_status(f, conn, request, -ERESTART);
	return true;
}

static void check_small(struct client *c, const char *name, uint64_t size)
{
	uint8_t *data = test_pattern(size);
	sar_buffer b;
	assert_int_equal(sar_put(c->s, test_id(name), name, data, size), 0);
	assert_int_equal(sar_put(c->s, test_id(name), name, data, size), 0);
	assert_int_equal(sar_get(c->s, test_id(name), 0, &b), 0);
	assert_int_equal(b.size, size);
	assert_memory_equal(b.data, data, size);
	sar_release(c->s, &b);
	data[size / 2] ^= 1;
	assert_int_equal(sar_put(c->s, test_id(name), name, data, size), -EEXIST);
	free(data);
}

static void a_small_one_is_one_request(void **state)
{
	struct client *c = *state;
	check_small(c, "small", 1000);
	check_small(c, "most", SESSION_PUT_MAX);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUT]), 6);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_CREATE]), 0);
	check_small(c, "more", SESSION_PUT_MAX + 1);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUT]), 6);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_CREATE]), 3);
}

static void where_that_does_not_go_it_is_created(void **state)
{
	struct client *c = *state;
	c->fake.hook = hook_piece_by_piece;
	check_small(c, "small", 1000);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUT]), 3);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_CREATE]), 3);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_SEAL]), 1);
}

/* Control copies what is there while the rest is filled in, and not all of it at the end. */
static void a_staged_watermark_is_published_early(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("apart");
	uint8_t *data = test_pattern(BIG);
	sar_buffer b;
	c->fake.staged = true;
	assert_int_equal(sar_put(c->s, id, NULL, data, BIG), 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUBLISH]), 2);
	assert_int_equal(sar_get(c->s, id, 0, &b), 0);
	assert_memory_equal(b.data, data, BIG);
	sar_release(c->s, &b);
	free(data);
}

/* Readers have published bytes; the more there are, the rarer it publishes. */
static void a_shared_watermark_is_published_early_too(void **state)
{
	enum { MIB = 1 << 20 };
	struct client *c = *state;
	uint8_t *data = test_pattern(6 * MIB);
	assert_int_equal(sar_put(c->s, test_id("one"), NULL, data, MIB), 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUBLISH]), 0);
	/* at 1, 2, 3 and 4.5 MiB */
	assert_int_equal(sar_put(c->s, test_id("six"), NULL, data, 6 * MIB), 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUBLISH]), 4);
	free(data);
}

struct later {
	struct fake *fake;
	uint32_t slot;
	uint64_t advance; /* 0: delete */
};

static void *later(void *arg)
{
	const struct later *l = arg;
	for (int i = 0; i < 60000 && atomic_load(&l->fake->requests[SESSION_WAIT]) == 0; i++)
		usleep(1000); /* the put waits for the other one */
	if (l->advance)
		fake_advance(l->fake, l->slot, l->advance);
	else
		fake_delete(l->fake, l->slot);
	return NULL;
}

/* Puts size bytes of the pattern beside another put that has come as far as `ready`. */
static int put_beside(struct client *c, const char *name, uint64_t ready, uint64_t advance)
{
	struct object_id object = test_object(name);
	uint8_t *data = test_pattern(BIG);
	struct later l = {&c->fake, fake_fetching(&c->fake, &object, BIG, ready), advance};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, later, &l), 0);
	int r = sar_put(c->s, test_id(name), NULL, data, BIG);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&c->fake.requests[SESSION_WAIT]) > 0);
	assert_false(fake_pinned(&c->fake, l.slot));
	free(data);
	return r;
}

static void waits_for_the_other_one(void **state)
{
	struct client *c = *state;
	assert_int_equal(put_beside(c, "finishes", 1000, BIG), 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_CREATE]), 1);
}

static void takes_the_place_of_one_that_is_gone(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	assert_int_equal(put_beside(c, "goes", 1000, 0), 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_CREATE]), 2);
	assert_int_equal(sar_get(c->s, test_id("goes"), 0, &b), 0);
	assert_int_equal(((uint8_t *)b.data)[BIG - 1], fake_pattern(BIG - 1));
	sar_release(c->s, &b);
}

static int give_up(void *arg, void *to, uint64_t at, uint64_t bytes, int last)
{
	memset(to, 7, bytes);
	assert_int_equal(last, 1);
	return at >= *(const uint64_t *)arg ? 42 : 0;
}

static void a_given_up_put_leaves_nothing(void **state)
{
	struct client *c = *state;
	uint64_t limit = 1 << 20;
	sar_buffer b;
	assert_int_equal(sar_put_from(c->s, test_id("part"), "part", BIG, give_up, &limit), 42);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_PUBLISH]), 1);
	assert_int_equal(atomic_load(&c->fake.aborts), 1);
	assert_int_equal(sar_get(c->s, test_id("part"), 0, &b), -ENOENT);
}

enum { RACERS = 3, ROUNDS = 40, RACE_BYTES = 50000 };

struct racer {
	struct fake *fake;
	pthread_barrier_t *start;
	uint8_t value;
	int result[ROUNDS];
};

static void *race(void *arg)
{
	struct racer *r = arg;
	uint8_t *data = malloc(RACE_BYTES);
	sar *s;
	memset(data, r->value, RACE_BYTES);
	assert_int_equal(sar_open(r->fake->path, &s), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(r->start);
		r->result[i] = sar_put(s, sar_id_of(&i, sizeof(i)), NULL, data, RACE_BYTES);
	}
	sar_close(s);
	free(data);
	return NULL;
}

/* Two with the same bytes and one with others: the first one decides what the others return. */
static void one_of_several_wins(void **state)
{
	struct client *c = *state;
	pthread_barrier_t start;
	pthread_t thread[RACERS];
	struct racer racer[RACERS];
	pthread_barrier_init(&start, NULL, RACERS);
	for (int i = 0; i < RACERS; i++) {
		racer[i] = (struct racer){&c->fake, &start, (uint8_t)(1 + i / 2), {0}};
		assert_int_equal(pthread_create(&thread[i], NULL, race, &racer[i]), 0);
	}
	for (int i = 0; i < RACERS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < ROUNDS; i++) {
		sar_buffer b;
		assert_int_equal(sar_get(c->s, sar_id_of(&i, sizeof(i)), 0, &b), 0);
		for (int k = 0; k < RACERS; k++)
			assert_int_equal(racer[k].result[i],
					 racer[k].value == *(uint8_t *)b.data ? 0 : -EEXIST);
		sar_release(c->s, &b);
	}
	pthread_barrier_destroy(&start);
}

static void a_description_names_one_type(void **state)
{
	const char *const wrong[] = {">f4", "<i4", "<f8"};
	sar_array a = {.dtype = SAR_F32, .order = 'C', .dims = 1, .shape = {3}}, back;
	uint8_t meta[SAR_META_MAX];
	int n;
	for (unsigned i = 0; i < 3; i++) {
		strcpy(a.type, wrong[i]);
		assert_int_equal(sar_array_describe(&a, meta), -EINVAL);
		assert_non_null(strstr(sar_error_detail(), wrong[i]));
		assert_non_null(strstr(sar_error_detail(), "is not f32"));
	}
	a.dtype = 0;
	strcpy(a.type, "<f4");
	n = sar_array_describe(&a, meta);
	assert_in_range(n, 1, SAR_META_MAX);
	assert_int_equal(sar_array_parse(meta, (size_t)n, &back), 0);
	assert_int_equal(back.dtype, SAR_F32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(the_bytes_decide),
		test_client(a_small_one_is_one_request),
		test_client(where_that_does_not_go_it_is_created),
		test_client(a_staged_watermark_is_published_early),
		test_client(a_shared_watermark_is_published_early_too),
		test_client(waits_for_the_other_one),
		test_client(takes_the_place_of_one_that_is_gone),
		test_client(a_given_up_put_leaves_nothing),
		test_client(one_of_several_wins),
		cmocka_unit_test(a_description_names_one_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
