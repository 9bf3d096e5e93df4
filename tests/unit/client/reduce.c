/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces as the library asks for them, and objects that are replaced while a client reads. */
#include "fixtures/client_test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const int64_t ms = 1000000;

/* ---- reduce --------------------------------------------------------------------------------- */

static unsigned sources(sar_id *out, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char name[20];
		snprintf(name, sizeof(name), "source%u", i);
		out[i] = test_id(name);
	}
	return count;
}

static void goes_as_it_is(void **state)
{
	struct client *c = *state;
	const sar_reduction how = {
		.op = SAR_MAX, .dtype = SAR_BF16, .num = 2, .flags = SAR_REDUCE_SPREAD};
	sar_id from[3], used[3];
	sar_buffer b;

	sources(from, 3);
	assert_int_equal(sar_reduce(c->s, test_id("sum"), "sum", from, 3, &how, 5 * ms), 0);
	assert_int_equal(c->fake.reduce.reduction.op, 4);
	assert_int_equal(c->fake.reduce.reduction.dtype, 2);
	assert_int_equal(c->fake.reduce.reduction.num, 2);
	assert_int_equal(c->fake.reduce.reduction.count, 3);
	assert_int_equal(c->fake.reduce.flags, SESSION_FLAG_ALLREDUCE);
	assert_in_range(c->fake.reduce.timeout_ns, 1, 5 * ms);
	assert_string_equal(c->fake.reduce.name, "sum");
	assert_memory_equal(c->fake.reduce_source, from, sizeof(from));
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum"), SAR_FOREVER, used, 3), 2);
	assert_memory_equal(used, from, 2 * sizeof(*from));
	assert_int_equal(sar_get(c->s, test_id("sum"), SAR_FOREVER, &b), 0);
	assert_int_equal(b.size, FAKE_REDUCED_BYTES);
	sar_release(c->s, &b);
	assert_int_equal(sar_reduce(c->s, test_id("sum"), "sum", from, 3, &how, 5 * ms), -EEXIST);
}

static void a_deadline_goes_as_it_is(void **state)
{
	struct client *c = *state;
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32, .min = 2, .deadline_ns = 3 * ms};
	sar_id from[3];

	sources(from, 3);
	assert_int_equal(sar_reduce(c->s, test_id("sum"), "sum", from, 3, &how, 5 * ms), 0);
	assert_int_equal(c->fake.reduce.reduction.num, 0);
	assert_int_equal(c->fake.reduce.reduction.min, 2);
	assert_in_range(c->fake.reduce.reduction.deadline_ns, 1, 3 * ms);
	assert_int_equal(sar_reduce(c->s, test_id("t"), NULL, from, 3, &how, 3 * ms), -EINVAL);
	assert_non_null(strstr(sar_error_detail(), "not before the timeout"));
	how.num = 3;
	assert_int_equal(sar_reduce(c->s, test_id("t"), NULL, from, 3, &how, SAR_FOREVER), -EINVAL);
	assert_non_null(strstr(sar_error_detail(), "num and a deadline"));
	how.num = 0;
	how.min = 4;
	assert_int_equal(sar_reduce(c->s, test_id("t"), NULL, from, 3, &how, SAR_FOREVER), -EINVAL);
	assert_non_null(strstr(sar_error_detail(), "min is 4 of 3 sources"));
	how.min = 0;
	assert_int_equal(sar_reduce(c->s, test_id("t"), NULL, from, 3, &how, SAR_FOREVER), -EINVAL);
	assert_non_null(strstr(sar_error_detail(), "min is 0"));
	how.min = 1;
	how.reserved32 = 1;
	assert_int_equal(sar_reduce(c->s, test_id("t"), NULL, from, 3, &how, SAR_FOREVER), -EINVAL);
}

/* As many as there can be: the answer comes in pages. */
static void very_many_sources(void **state)
{
	struct client *c = *state;
	const sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	static sar_id from[SAR_SOURCES_MAX], used[SAR_SOURCES_MAX];

	sources(from, SAR_SOURCES_MAX);
	assert_int_equal(
		sar_reduce(c->s, test_id("sum"), NULL, from, SAR_SOURCES_MAX, &how, SAR_FOREVER),
		0);
	assert_int_equal(c->fake.reduce.timeout_ns, -1);
	assert_memory_equal(c->fake.reduce_source, from, sizeof(from));
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum"), 0, used, SAR_SOURCES_MAX),
			 SAR_SOURCES_MAX);
	assert_memory_equal(used, from, sizeof(from));
	memset(used, 0, sizeof(used));
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum"), 0, used, 65), SAR_SOURCES_MAX);
	assert_memory_equal(used, from, 65 * sizeof(*from));
	assert_int_equal(used[65].bytes[0], 0);
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum"), 0, NULL, 0), SAR_SOURCES_MAX);
}

static void bad_arguments(void **state)
{
	struct client *c = *state;
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	sar_id from[2], target = test_id("sum");
	char name[SAR_NAME_MAX + 2];

	sources(from, 2);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 0, &how, ms), -EINVAL);
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 1025, &how, ms), -EINVAL);
	assert_int_equal(sar_reduce(c->s, target, NULL, NULL, 2, &how, ms), -EINVAL);
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 2, NULL, ms), -EINVAL);
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 2, &how, 0), -EINVAL);
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 2, &how, -1), -EINVAL);
	assert_int_equal(sar_reduce(c->s, target, name, from, 2, &how, ms), -ENAMETOOLONG);
	how.flags = 2;
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 2, &how, ms), -EINVAL);
	how.flags = 0;
	how.reserved[3] = 1;
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 2, &how, ms), -EINVAL);
	assert_int_equal(sar_reduce_sources(c->s, target, -1, from, 2), -EINVAL);
	assert_int_equal(c->fake.requests[SESSION_REDUCE], 0);
	assert_int_equal(sar_reduce_sources(c->s, target, 0, from, 2), -ENOENT);
	how.reserved[3] = 0;
	c->fake.reduce_goes_on = true;
	assert_int_equal(sar_reduce(c->s, target, NULL, from, 2, &how, ms), 0);
	assert_int_equal(sar_reduce_sources(c->s, target, ms, from, 2), -ETIMEDOUT);
}

static bool hook_page(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_sources sources;
	} packet = {.reply = fake_reply(request, 0), .sources = {.count = UINT32_MAX}};

	if (request->op != SESSION_REDUCED)
		return false;
	fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	return true;
}

/* A page that says that it holds more than it can. */
static void page_that_lies(void **state)
{
	struct client *c = *state;
	sar_id used[4];

	c->fake.hook = hook_page;
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum"), ms, used, 4), SESSION_SOURCES);
}

enum { LISTED = 300, LISTED_PRESENT = 100 };
static sar_id listed[LISTED];

/* LISTED sources in pages, the first LISTED_PRESENT of which are there. */
static bool hook_progress(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_sources sources;
	} packet = {.reply = fake_reply(request, 0)};
	uint32_t count;

	if (request->op != SESSION_REDUCED || request->flags != SESSION_FLAG_PROGRESS)
		return false;
	packet.reply.flags = SESSION_FLAG_MORE;
	for (uint32_t at = 0; at < LISTED; at += count) {
		uint32_t end = at < LISTED_PRESENT ? LISTED_PRESENT : LISTED;

		count = end - at < SESSION_SOURCES ? end - at : SESSION_SOURCES;
		packet.sources.count = count;
		packet.sources.missing = at >= LISTED_PRESENT;
		memcpy(packet.sources.source, listed + at, sizeof(*listed) * count);
		fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	}
	fake_status(f, conn, request, 0);
	return true;
}

static void how_far_it_is(void **state)
{
	struct client *c = *state;
	static sar_id got[LISTED];
	unsigned present = 1;

	sources(listed, LISTED);
	assert_int_equal(sar_reduce_progress(c->s, test_id("sum"), got, LISTED, &present), -ENOENT);
	assert_int_equal(present, 0);
	c->fake.hook = hook_progress;
	assert_int_equal(sar_reduce_progress(c->s, test_id("sum"), got, LISTED, &present), LISTED);
	assert_int_equal(present, LISTED_PRESENT);
	assert_memory_equal(got, listed, sizeof(got));
	memset(got, 0, sizeof(got));
	assert_int_equal(sar_reduce_progress(c->s, test_id("sum"), got, 101, &present), LISTED);
	assert_memory_equal(got, listed, 101 * sizeof(*listed));
	assert_int_equal(got[101].bytes[0], 0);
}

/* ---- replaced ------------------------------------------------------------------------------- */

struct again {
	struct client *c;
	struct object_id id;
	pthread_t thread;
	uint32_t slot;
	unsigned times;
};

/* Takes the object from its reader some times; then there is a complete one. */
static void *again_run(void *arg)
{
	struct again *a = arg;
	for (unsigned i = 0; i < a->times; i++) {
		while (atomic_load(&a->c->fake.requests[SESSION_GET]) <= i)
			usleep(500);
		fake_replace(&a->c->fake, a->slot);
		a->slot = fake_fetching(&a->c->fake, &a->id, 5000, i + 1 < a->times ? 100 : 5000);
	}
	fake_advance(&a->c->fake, a->slot, 5000);
	return NULL;
}

static void get_begins_again(void **state)
{
	struct client *c = *state;
	struct again a = {.c = c, .id = test_object("sum"), .times = 4};
	sar_buffer b;

	a.slot = fake_fetching(&c->fake, &a.id, 5000, 1000);
	assert_int_equal(pthread_create(&a.thread, NULL, again_run, &a), 0);
	assert_int_equal(sar_get(c->s, test_id("sum"), 20000 * ms, &b), 0);
	pthread_join(a.thread, NULL);
	assert_int_equal(b.ready, 5000);
	assert_int_equal(((const uint8_t *)b.data)[4999], fake_pattern(4999));
	assert_true(fake_pinned(&c->fake, a.slot));
	sar_release(c->s, &b);
	for (uint32_t slot = 0; slot < FAKE_SLOTS; slot++)
		assert_false(fake_pinned(&c->fake, slot));
}

/* Who reads as it comes has seen bytes of the old one, and is told. */
static void wait_says_so(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("sum");
	uint32_t slot = fake_fetching(&c->fake, &id, 5000, 1000);
	sar_buffer b;

	assert_int_equal(sar_get_begin(c->s, test_id("sum"), 0, &b), 0);
	assert_int_equal(sar_wait(c->s, &b, 1000, 0), 0);
	fake_replace(&c->fake, slot);
	assert_int_equal(sar_wait(c->s, &b, 1000, 0), 0);
	assert_int_equal(sar_wait(c->s, &b, 1001, 0), -ERESTART);
	assert_non_null(strstr(sar_error_detail(), "its reduce restarted"));
	sar_release(c->s, &b);
}

/* It does not begin again for ever. */
static void time_ends(void **state)
{
	struct client *c = *state;
	struct again a = {.c = c, .id = test_object("sum"), .times = 1};
	sar_buffer b;

	a.slot = fake_fetching(&c->fake, &a.id, 5000, 1000);
	fake_replace(&c->fake, a.slot);
	assert_int_equal(sar_get(c->s, test_id("sum"), 30 * ms, &b), -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(goes_as_it_is),	test_client(a_deadline_goes_as_it_is),
		test_client(very_many_sources), test_client(how_far_it_is),
		test_client(bad_arguments),	test_client(page_that_lies),
		test_client(get_begins_again),	test_client(wait_says_so),
		test_client(time_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
