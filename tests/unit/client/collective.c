/* SPDX-License-Identifier: BSD-3-Clause */
/* sar_wait_any: how many objects suffice, and which of them are there. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "fixtures/client_fake.h"
#include "fixtures/client_test.h"

enum { COUNT = 6 };

static const int64_t ms = 1000000;

static sar_id collective_id[COUNT];

static void collective_ids(void)
{
	for (unsigned i = 0; i < COUNT; i++)
		collective_id[i] = sar_id_of(&i, sizeof(i));
}

/* The object i comes from elsewhere, with so many of its 100 bytes. */
static uint32_t collective_arrive(struct client *c, unsigned i, uint64_t ready)
{
	struct object_id id;
	memcpy(id.bytes, collective_id[i].bytes, sizeof(id.bytes));
	return fake_fetching(&c->fake, &id, 100, ready);
}

static unsigned collective_sum(const uint8_t there[COUNT])
{
	unsigned sum = 0;
	for (unsigned i = 0; i < COUNT; i++)
		sum += (unsigned)there[i] << i;
	return sum;
}

static void what_is_here_suffices(void **state)
{
	struct client *c = *state;
	uint8_t there[COUNT];
	collective_ids();
	collective_arrive(c, 1, 100);
	collective_arrive(c, 4, 100);
	collective_arrive(c, 5, 50);
	for (int64_t timeout_ns = 0; timeout_ns <= 10 * ms; timeout_ns += 10 * ms) {
		memset(there, 7, sizeof(there));
		assert_int_equal(sar_wait_any(c->s, collective_id, COUNT, 1, SAR_FOREVER, there),
				 1);
		assert_int_equal(collective_sum(there), 1 << 1);
		assert_int_equal(sar_wait_any(c->s, collective_id, COUNT, 2, SAR_FOREVER, there),
				 2);
		assert_int_equal(collective_sum(there), 1 << 1 | 1 << 4);
		assert_int_equal(sar_wait_any(c->s, collective_id, COUNT, 3, timeout_ns, there), 2);
		assert_int_equal(collective_sum(there), 1 << 1 | 1 << 4);
	}
	assert_int_equal(sar_wait_any(c->s, collective_id + 2, 2, 1, 0, there), 0);
	assert_int_equal(fake_pins(&c->fake), 0);
	assert_int_equal(fake_waiting(&c->fake), 0);
}

static void arguments_out_of_range(void **state)
{
	struct client *c = *state;
	uint8_t there[1];
	assert_int_equal(sar_wait_any(c->s, collective_id, 1, 0, 0, there), -EINVAL);
	assert_int_equal(sar_wait_any(c->s, collective_id, 1, 2, 0, there), -EINVAL);
	assert_int_equal(sar_wait_any(c->s, collective_id, 1, 1, 0, NULL), -EINVAL);
	assert_int_equal(sar_wait_any(c->s, collective_id, 1, 1, -1, there), -EINVAL);
	assert_int_equal(sar_wait_any(c->s, collective_id, SAR_SOURCES_MAX + 1, 1, 0, there),
			 -EINVAL);
}

struct collective_waiter {
	struct client *c;
	unsigned num;
	uint8_t there[COUNT];
	int result;
	pthread_t thread;
};

static void *collective_wait(void *arg)
{
	struct collective_waiter *w = arg;
	w->result = sar_wait_any(w->c->s, collective_id, COUNT, w->num, 20000 * ms, w->there);
	return NULL;
}

/* A waiter, once all of its questions are with control. */
static void collective_begin(struct collective_waiter *w, struct client *c, unsigned num)
{
	*w = (struct collective_waiter){.c = c, .num = num};
	pthread_create(&w->thread, NULL, collective_wait, w);
	for (int i = 0; i < 60000 && fake_waiting(&c->fake) < COUNT; i++)
		usleep(1000);
	assert_int_equal(fake_waiting(&c->fake), COUNT);
}

static void what_comes_ends_the_wait(void **state)
{
	struct client *c = *state;
	struct collective_waiter w;
	collective_ids();
	collective_begin(&w, c, 2);
	collective_arrive(c, 3, 50); /* not yet */
	collective_arrive(c, 2, 100);
	fake_delete(&c->fake, collective_arrive(c, 5, 50)); /* never: its get says so */
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, 2);
	assert_int_equal(collective_sum(w.there), 1 << 2 | 1 << 5);
	for (int i = 0; i < 60000 && fake_waiting(&c->fake) > 0; i++)
		usleep(1000); /* control hears that the others are not wanted */
	assert_int_equal(fake_waiting(&c->fake), 0);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void ended_waits_end_it(void **state)
{
	struct client *c = *state;
	struct collective_waiter w;
	collective_ids();
	collective_begin(&w, c, 1);
	sar_end_waits(c->s);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -ESHUTDOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(what_is_here_suffices),
		test_client(arguments_out_of_range),
		test_client(what_comes_ends_the_wait),
		test_client(ended_waits_end_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
