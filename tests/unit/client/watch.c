/* SPDX-License-Identifier: BSD-3-Clause */
/* sar_submit_watch, with a fake control. */
#include <errno.h>
#include <poll.h>
#include "fixtures/client_test.h"

static const int64_t ms = 1000000;

static sar_queue *queue_open(struct client *c, unsigned capacity)
{
	sar_queue *q;
	assert_int_equal(sar_queue_open(c->s, capacity, &q), 0);
	return q;
}

static sar_completion queue_one(sar_queue *q)
{
	sar_completion c;
	assert_int_equal(sar_poll_wait(q, &c, 1, 1, 20000 * ms), 1);
	return c;
}

static struct object_id object_of(const char *name)
{
	struct object_id object;
	sar_id id = test_id(name);
	memcpy(object.bytes, id.bytes, sizeof(object.bytes));
	return object;
}

/* What a control says of watches: two events of the beginning, and what a test has it say. */
static struct {
	_Atomic unsigned begun;
	struct session_request request;
	int conn;
} watching;

static void watch_say(struct fake *f, uint32_t event, uint64_t size)
{
	struct {
		struct session_reply reply;
		struct session_object object;
	} packet = {fake_reply(&watching.request, 0), {.size = size, .name = "a name"}};
	packet.reply.flags = SESSION_FLAG_MORE;
	packet.object.id = object_of("object");
	packet.object.flags = event * SESSION_OBJECT_EVENT;
	fake_send(f, watching.conn, &packet, sizeof(packet), NULL, 0);
}

static bool watch_hook(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op == SESSION_CANCEL) {
		assert_int_equal(request->generation, watching.request.seq);
		fake_status(f, conn, request, 0);
		return true;
	}
	if (request->op != SESSION_WATCH)
		return false;
	watching.request = *request;
	watching.conn = conn;
	if (request->flags & SESSION_FLAG_RETRY)
		watch_say(f, SESSION_EVENT_MISSED, 0);
	watch_say(f, SESSION_EVENT_APPEARED, 5);
	watch_say(f, SESSION_EVENT_COMPLETE, 5);
	atomic_fetch_add(&watching.begun, 1);
	return true;
}

static void expect_event(sar_queue *q, uint32_t event, uint64_t size)
{
	sar_completion done = queue_one(q);
	assert_int_equal(done.op, SAR_OP_WATCH);
	assert_int_equal(done.user_data, 9);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.flags, SAR_MORE);
	assert_int_equal(done.event, event);
	assert_int_equal(done.value, size);
	if (event != SAR_EVENT_MISSED) {
		sar_id id = test_id("object");
		assert_memory_equal(&done.id, &id, sizeof(id));
		assert_string_equal(sar_completion_detail(q, &done), "a name");
	}
}

static void watched(void **state)
{
	struct client *c = *state;
	char name[SAR_NAME_MAX + 2];
	sar_completion done, many[4];
	sar_queue *q = queue_open(c, 2);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sar_submit_watch(q, name, 1), -ENAMETOOLONG);
	c->fake.hook = watch_hook;
	assert_int_equal(sar_submit_watch(q, "a ", 9), 0);
	expect_event(q, SAR_EVENT_APPEARED, 5);
	expect_event(q, SAR_EVENT_COMPLETE, 5);
	assert_string_equal(watching.request.name, "a ");
	assert_int_equal(sar_poll(q, many, 4), 0);
	watch_say(&c->fake, SESSION_EVENT_GONE, 6); /* a descriptor shows it */
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	assert_int_equal(poll(&on, 1, 60000), 1);
	expect_event(q, SAR_EVENT_GONE, 6);
	fake_kill(&c->fake);
	fake_restart(&c->fake, true);
	expect_event(q, SAR_EVENT_MISSED, 0);
	expect_event(q, SAR_EVENT_APPEARED, 5);
	assert_int_equal(sar_cancel(q, 9), 1);
	do
		done = queue_one(q); /* what had come before it */
	while (done.flags);
	assert_int_equal(done.result, -ECANCELED);
	assert_string_equal(sar_completion_detail(q, &done), "cancelled by sar_cancel");
	assert_int_equal(done.event, 0);
	assert_int_equal(sar_submit_watch(q, NULL, 9), 0);
	expect_event(q, SAR_EVENT_APPEARED, 5);
	sar_queue_close(q); /* with events that nobody has polled */
}

/* Those that nobody polls do not grow for ever, though other calls read the socket. */
static void events_are_bounded(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 1);
	unsigned count = 0;
	sar_info info;
	c->fake.hook = watch_hook;
	assert_int_equal(sar_submit_watch(q, "", 9), 0);
	expect_event(q, SAR_EVENT_APPEARED, 5);
	expect_event(q, SAR_EVENT_COMPLETE, 5);
	for (unsigned i = 0; i < 1100; i++) {
		watch_say(&c->fake, SESSION_EVENT_GONE, i);
		if (i % 20 == 0)
			assert_int_equal(sar_info_get(c->s, test_id("none"), &info), -ENOENT);
	}
	expect_event(q, SAR_EVENT_MISSED, 0);
	for (sar_completion done; sar_poll_wait(q, &done, 1, 1, 50 * ms) == 1; count++)
		assert_int_equal(done.event, SAR_EVENT_GONE);
	assert_true(count > 0 && count < 100);
	sar_queue_close(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(watched),
		test_client(events_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
