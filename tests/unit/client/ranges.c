/* SPDX-License-Identifier: BSD-3-Clause */
/* sar_get_ranges and sar_get_into, with a fake control that has scratch objects. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "fixtures/client_test.h"

static const int64_t ms = 1000000;

enum { CHUNK = 1408, SCRATCH = 4 << 20 };
#define SIZE UINT64_C(100000003)

static struct remote { /* an object of another node */
	uint64_t generation;
	uint64_t becomes;	    /* its generation after the first answer; 0: the same */
	struct session_reply wrong; /* what an answer says instead, where not 0 */
	int wrong_status;
	bool pinless, silent;
	int conn; /* of the latest request, and that */
	struct session_request request;
	struct object_range range[SESSION_RANGES_MAX];
} remote;

static void remote_answer(struct fake *f)
{
	const struct session_request *request = &remote.request;
	const struct object_range *range = remote.range;
	struct object_ranges all = {.chunk_bytes = CHUNK};
	struct session_reply reply = fake_reply(request, remote.wrong_status);
	for (uint32_t i = 0; i < request->size / sizeof(*range); i++) {
		uint64_t at = object_ranges_add(&all, &range[i]);
		assert_true(i == 0 || range[i].offset >= range[i - 1].offset);
		if (reply.status == 0 && !object_range_fits(&range[i], SIZE))
			reply.status = -ERANGE;
		for (uint64_t k = 0; k < range[i].bytes; k++)
			f->store[SCRATCH + at + k] = fake_pattern(range[i].offset + k);
	}
	if (reply.status == 0 && request->generation && request->generation != remote.generation)
		reply.status = -ERESTART;
	reply.slot = 3;
	reply.generation = 55;
	reply.offset = remote.wrong.offset ? remote.wrong.offset : SCRATCH;
	reply.size = object_ranges_bytes(&all, SIZE);
	reply.chunk_bytes = remote.wrong.chunk_bytes ? remote.wrong.chunk_bytes : CHUNK;
	reply.watermark = SIZE;
	reply.object = remote.generation;
	reply.flags = remote.wrong.flags;
	if (reply.status == 0 && !remote.pinless)
		atomic_store(&f->conn[remote.conn].pins[request->pin], pin_make(3, 55));
	fake_send(f, remote.conn, &reply, sizeof(reply), NULL, 0);
	if (remote.becomes)
		remote.generation = remote.becomes;
	remote.becomes = 0;
}

static bool remote_hook(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op != SESSION_GET_RANGES)
		return false;
	remote.conn = conn;
	remote.request = *request;
	memcpy(remote.range, f->tail, f->tail_bytes);
	if (!remote.silent)
		remote_answer(f);
	return true;
}

static void remote_begin(struct client *c)
{
	remote = (struct remote){.generation = 9};
	c->fake.hook = remote_hook;
}

static unsigned asked(struct client *c)
{
	return atomic_load(&c->fake.requests[SESSION_GET_RANGES]);
}

static bool right(const sar_range *range, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		for (uint64_t k = 0; k < range[i].bytes; k++)
			if (((uint8_t *)range[i].where)[k] != fake_pattern(range[i].offset + k))
				return false;
	return true;
}

static void ranges_of_a_remote_object(void **state)
{
	static uint8_t to[9][2000], large[3000000];
	struct client *c = *state;
	const sar_range range[] = {{5000, 2000, to[0]},	 {0, 10, to[1]},
				   {5500, 100, to[2]},	 {0, 0, NULL},
				   {SIZE - 1, 1, to[3]}, {SIZE, 0, NULL},
				   {70, 2000, to[4]},	 {7 << 20, sizeof(large), large},
				   {6999, 1, to[5]}};
	remote_begin(c);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), range, 9, 20000 * ms), 0);
	assert_true(right(range, 9));
	assert_in_range(asked(c), 3, 4); /* an eighth of the store at a time */
	assert_int_equal(fake_pins(&c->fake), 0);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), NULL, 0, 0), 0);
}

static void many_ranges(void **state)
{
	enum { COUNT = 1000 };
	static sar_range range[COUNT];
	static uint8_t to[COUNT][7];
	struct client *c = *state;
	sar_queue *q;
	sar_completion done;
	remote_begin(c);
	for (unsigned i = 0; i < COUNT; i++)
		range[i] = (sar_range){i * UINT64_C(7919) * 9973 % (SIZE - 7), 7, to[i]};
	assert_int_equal(sar_queue_open(c->s, 4, &q), 0);
	assert_int_equal(sar_submit_get_ranges(q, test_id("far"), range, COUNT, SAR_FOREVER, 5), 0);
	assert_int_equal(sar_poll_wait(q, &done, 1, 1, 20000 * ms), 1);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.op, SAR_OP_GET_RANGES);
	assert_int_equal(done.value, SIZE);
	assert_null(done.buffer.data);
	assert_true(right(range, COUNT));
	assert_int_equal(asked(c), (COUNT + SESSION_RANGES_MAX - 1) / SESSION_RANGES_MAX);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void a_complete_object_is_not_asked_for(void **state)
{
	static uint8_t to[5000], whole[6000000];
	struct client *c = *state;
	struct object_id id = test_object("here");
	const sar_range range[] = {{4000, 1000, to}, {10, 3, to + 1000}, {5000, 0, NULL}};
	const sar_range beyond = {4999, 2, to};
	uint64_t size = 0;
	fake_fetching(&c->fake, &id, 5000, 5000);
	assert_int_equal(sar_get_ranges(c->s, test_id("here"), range, 3, 0), 0);
	assert_true(right(range, 3));
	assert_int_equal(sar_get_ranges(c->s, test_id("here"), &beyond, 1, 0), -ERANGE);
	assert_non_null(strstr(sar_error_detail(), "it has 5000 bytes, and 2 from byte 4999"));
	assert_int_equal(asked(c), 0);
	assert_int_equal(sar_get_into(c->s, test_id("here"), to, 5000, 0, &size), 0);
	assert_int_equal(size, 5000);
	assert_true(right(&(sar_range){0, 5000, to}, 1));
	assert_int_equal(sar_get_into(c->s, test_id("here"), to, 4999, 0, &size), -ERANGE);
	assert_int_equal(size, 5000);
	assert_int_equal(sar_get_into(c->s, test_id("none"), to, 5, 0, &size), -ENOENT);
	id = test_object("large");
	fake_fetching(&c->fake, &id, 6000000, 6000000);
	assert_int_equal(sar_get_into(c->s, test_id("large"), whole, 6000000, 0, NULL), 0);
	assert_true(right(&(sar_range){0, 6000000, whole}, 1));
	id = test_object("empty");
	fake_fetching(&c->fake, &id, 0, 0);
	assert_int_equal(sar_get_into(c->s, test_id("empty"), NULL, 0, 0, &size), 0);
	assert_int_equal(size, 0);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void arguments(void **state)
{
	struct client *c = *state;
	uint8_t to;
	const sar_range bare = {0, 1, NULL}, wrapped = {UINT64_MAX, 2, &to}, one = {0, 1, &to},
			far = {SIZE, 1, &to};
	remote_begin(c);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &bare, 1, 0), -EINVAL);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), NULL, 1, 0), -EINVAL);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &one, SAR_RANGES_MAX + 1, 0),
			 -EINVAL);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &one, 1, -1), -EINVAL);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &wrapped, 1, 0), -ERANGE);
	assert_int_equal(sar_get_into(c->s, test_id("far"), NULL, 1, 0, NULL), -EINVAL);
	assert_int_equal(asked(c), 0);
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &far, 1, 0), -ERANGE);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* Another object with its id takes its place after a part: all bytes are of the new one. */
static void all_bytes_are_of_one_generation(void **state)
{
	static uint8_t large[3000000];
	struct client *c = *state;
	const sar_range range = {123, sizeof(large), large};
	remote_begin(c);
	remote.becomes = 11;
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &range, 1, 20000 * ms), 0);
	assert_true(right(&range, 1));
	assert_int_equal(asked(c), 5); /* one of the first, one that is refused, three */
	assert_int_equal(remote.request.generation, 11);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void wait_for_asked(struct client *c, unsigned count)
{
	for (int i = 0; i < 60000 && asked(c) < count; i++)
		usleep(1000);
	assert_int_equal(asked(c), count);
}

/* The pin of a request that nobody wants any more is free when it is answered, and not before. */
static void a_late_answer_has_its_pin(void **state)
{
	struct client *c = *state;
	uint8_t to[100];
	const sar_range range = {0, 100, to};
	sar_queue *q;
	sar_completion done;
	remote_begin(c);
	remote.silent = true;
	assert_int_equal(sar_queue_open(c->s, 4, &q), 0);
	assert_int_equal(sar_submit_get_ranges(q, test_id("far"), &range, 1, SAR_FOREVER, 5), 0);
	wait_for_asked(c, 1);
	const struct session_request first = remote.request;
	assert_int_equal(sar_cancel(q, 5), 1);
	assert_int_equal(sar_poll_wait(q, &done, 1, 1, 20000 * ms), 1);
	assert_int_equal(done.result, -ECANCELED);
	assert_int_equal(sar_submit_get_ranges(q, test_id("far"), &range, 1, SAR_FOREVER, 5), 0);
	wait_for_asked(c, 2);
	assert_int_not_equal(remote.request.pin, first.pin);
	remote.silent = false;
	const struct session_request second = remote.request;
	pthread_mutex_lock(&c->fake.lock);
	remote.request = first; /* its answer was faster than its end */
	remote_answer(&c->fake);
	remote.request = second;
	remote_answer(&c->fake);
	pthread_mutex_unlock(&c->fake.lock);
	assert_int_equal(fake_pins(&c->fake), 2);
	assert_int_equal(sar_poll_wait(q, &done, 1, 1, 20000 * ms), 1);
	assert_int_equal(done.result, 0);
	assert_true(right(&range, 1));
	assert_int_equal(fake_pins(&c->fake), 0);
	remote.silent = true; /* and one that is under way when the queue is closed */
	assert_int_equal(sar_submit_get_ranges(q, test_id("far"), &range, 1, SAR_FOREVER, 5), 0);
	wait_for_asked(c, 3);
	sar_queue_close(q);
}

static void another_control_goes_on(void **state)
{
	struct client *c = *state;
	static uint8_t large[2000000];
	const sar_range range = {77, sizeof(large), large};
	sar_queue *q;
	sar_completion done;
	remote_begin(c);
	remote.silent = true;
	assert_int_equal(sar_queue_open(c->s, 4, &q), 0);
	assert_int_equal(sar_submit_get_ranges(q, test_id("far"), &range, 1, SAR_FOREVER, 5), 0);
	wait_for_asked(c, 1);
	fake_kill(&c->fake);
	remote.silent = false;
	fake_restart(&c->fake, true);
	assert_int_equal(sar_poll_wait(q, &done, 1, 1, 20000 * ms), 1);
	assert_int_equal(done.result, 0);
	assert_true(right(&range, 1));
	assert_int_equal(fake_pins(&c->fake), 0);
	sar_queue_close(q);
}

static void answers_that_do_not_hold(void **state)
{
	struct client *c = *state;
	uint8_t to[100];
	const sar_range range = {5000, 100, to};
	const struct session_reply wrong[] = {{.offset = FAKE_STORE_BYTES - 10},
					      {.offset = UINT64_MAX - 10},
					      {.chunk_bytes = 1},
					      {.chunk_bytes = UINT32_MAX},
					      {.flags = SESSION_FLAG_WHOLE}};
	remote_begin(c);
	for (unsigned i = 0; i < 5; i++) {
		remote.wrong = wrong[i];
		assert_int_equal(sar_get_ranges(c->s, test_id("far"), &range, 1, 0), -EPROTO);
	}
	remote.wrong = (struct session_reply){0};
	remote.pinless = true;
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &range, 1, 0), -EPROTO);
	remote.pinless = false;
	remote.generation = 0;
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &range, 1, 0), -EPROTO);
	remote.generation = 4;
	remote.wrong_status = -ENODATA;
	assert_int_equal(sar_get_ranges(c->s, test_id("far"), &range, 1, 0), -ENODATA);
	assert_int_equal(fake_pins(&c->fake), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(ranges_of_a_remote_object),
		test_client(many_ranges),
		test_client(a_complete_object_is_not_asked_for),
		test_client(arguments),
		test_client(all_bytes_are_of_one_generation),
		test_client(a_late_answer_has_its_pin),
		test_client(another_control_goes_on),
		test_client(answers_that_do_not_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
