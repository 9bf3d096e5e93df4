/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of puts and creations: of programs of other versions, and what control hears. */
#include <errno.h>
#include <stdlib.h>
#include "fixtures/client_fake.h"
#include "fixtures/client_test.h"

enum { SMALL = 3, LARGE = 100000, FIRST_BYTES = 3 * sizeof(size_t) };

static const int64_t put_options_second = 1000000000;

/* What control was asked last. */
static struct session_request put_options_expire, put_options_made;
static int put_options_status; /* of EXPIRE */

static bool put_options_hook(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op == SESSION_CREATE || request->op == SESSION_PUT)
		put_options_made = *request;
	if (request->op != SESSION_EXPIRE)
		return false;
	put_options_expire = *request;
	fake_status(f, conn, request, put_options_status);
	return true;
}

static int put_options_put(struct client *c, const char *name, const void *options, uint64_t size)
{
	uint8_t *data = test_pattern(size);
	int r = sar_put_with(c->s, test_id(name), name, data, size, options);
	free(data);
	return r;
}

static void sizes_of_other_versions(void **state)
{
	struct client *c = *state;
	struct {
		sar_put_options now;
		uint64_t later;
	} options;
	memset(&options, 0xff, sizeof(options));
	options.now.meta = NULL;
	options.now.meta_bytes = 0;
	for (options.now.size = 0; options.now.size < FIRST_BYTES; options.now.size++)
		assert_int_equal(put_options_put(c, "short", &options, SMALL), -EINVAL);
	options.now.size = FIRST_BYTES; /* what lies behind is not looked at */
	assert_int_equal(put_options_put(c, "first", &options, SMALL), 0);
	memset(&options, 0, sizeof(options));
	options.now.size = sizeof(options);
	assert_int_equal(put_options_put(c, "later", &options, SMALL), 0);
	options.later = 1;
	assert_int_equal(put_options_put(c, "unknown", &options, SMALL), -E2BIG);
	assert_non_null(strstr(sar_error_detail(), "does not know"));
}

static void members_out_of_range(void **state)
{
	struct client *c = *state;
	const struct {
		sar_put_options options;
		int result;
	} wrong[] = {
		{{.copies = 1}, -ENOTSUP},
		{{.flags = 1}, -ENOTSUP},
		{{.timeout_ns = -1}, -EINVAL},
		{{.ttl_ns = -1}, -EINVAL},
		{{.ttl_ns = 11 * 366 * 86400ll * 1000000000}, -EINVAL},
		{{.meta_bytes = SAR_META_MAX + 1, .meta = wrong}, -EINVAL},
		{{.meta_bytes = 1}, -EINVAL},
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		sar_put_options options = wrong[i].options;
		options.size = sizeof(options);
		assert_int_equal(put_options_put(c, "wrong", &options, SMALL), wrong[i].result);
	}
	assert_int_equal(c->fake.requests[SESSION_PUT], 0);
}

static void lease_and_life_go_along(void **state)
{
	struct client *c = *state;
	sar_put_options options = {
		.size = sizeof(options), .lease = 77, .ttl_ns = 5 * put_options_second};
	const uint64_t size[] = {SMALL, LARGE};
	c->fake.hook = put_options_hook;
	put_options_status = 0;
	for (unsigned i = 0; i < 2; i++) {
		const char *name = i == 0 ? "small" : "large";
		for (unsigned turn = 0; turn < 2; turn++) { /* then it is there already */
			put_options_expire = put_options_made = (struct session_request){0};
			assert_int_equal(put_options_put(c, name, &options, size[i]), 0);
			assert_int_equal(put_options_made.generation, 77);
			assert_int_equal(put_options_expire.timeout_ns, 5 * put_options_second);
			assert_memory_equal(put_options_expire.id.bytes, test_id(name).bytes, 16);
			assert_int_equal(c->fake.requests[SESSION_HOLD], i + turn);
		}
		assert_int_equal(c->fake.hold.generation, 77);
	}
	assert_int_equal(put_options_put(c, "other", NULL, SMALL), 0);
	assert_int_equal(put_options_made.generation, 0); /* no mode of the handle */
}

static void created_with_a_life(void **state)
{
	struct client *c = *state;
	sar_put_options options = {.size = sizeof(options), .ttl_ns = put_options_second};
	sar_buffer b;
	c->fake.hook = put_options_hook;
	put_options_status = 0;
	assert_int_equal(sar_create_with(c->s, test_id("a"), "a", LARGE, &options, &b), 0);
	assert_int_equal(put_options_expire.timeout_ns, put_options_second);
	assert_int_equal(sar_seal(c->s, &b), 0);
	put_options_status = -ENOSPC;
	assert_int_equal(sar_create_with(c->s, test_id("b"), "b", LARGE, &options, &b), -ENOSPC);
	assert_non_null(strstr(sar_error_detail(), "'b'"));
	assert_int_equal(c->fake.aborts, 1);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* Control does not answer op: a call and an operation of a queue end by themselves. */
static void put_options_late(struct client *c, sar_queue *q, unsigned op,
			     const sar_put_options *options)
{
	const sar_id call = sar_id_of(&op, 1), queued = sar_id_of(&op, 2);
	uint64_t size = op == SESSION_PUT ? SMALL : LARGE;
	uint8_t *data = test_pattern(size);
	sar_completion done;
	c->fake.mute = (int)op;
	assert_int_equal(sar_put_with(c->s, call, NULL, data, size, options), -ETIMEDOUT);
	assert_non_null(strstr(sar_error_detail(), "in the time that the options give"));
	assert_int_equal(sar_submit_put_with(q, queued, NULL, data, size, options, 0), 0);
	assert_int_equal(sar_poll_wait(q, &done, 1, 1, 20 * put_options_second), 1);
	assert_int_equal(done.result, -ETIMEDOUT);
	c->fake.mute = 0;
	free(data);
}

static void limit_of_time(void **state)
{
	struct client *c = *state;
	sar_put_options options = {.size = sizeof(options), .timeout_ns = put_options_second / 50};
	sar_queue *q;
	assert_int_equal(sar_queue_open(c->s, 1, &q), 0);
	const unsigned ops[] = {SESSION_PUT, SESSION_CREATE, SESSION_SEAL};
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		put_options_late(c, q, ops[i], &options);
	options.timeout_ns = SAR_FOREVER;
	assert_int_equal(put_options_put(c, "in time", &options, LARGE), 0);
	sar_queue_close(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(sizes_of_other_versions), test_client(members_out_of_range),
		test_client(lease_and_life_go_along), test_client(created_with_a_life),
		test_client(limit_of_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
