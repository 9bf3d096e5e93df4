/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: objects that arrive, many waits on one connection, time limits, the node's death. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "fixtures/client_test.h"
#include "link/handle.h"

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const int64_t ms = 1000000;

struct waiter {
	struct client *c;
	pthread_t thread;
	char name[16];
	int64_t timeout_ns, took_ns;
	int result;
	uint64_t size;
	bool right;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;
	sar_buffer b;
	int64_t started = now_ns();
	w->result = sar_get(w->c->s, test_id(w->name), w->timeout_ns, &b);
	w->took_ns = now_ns() - started;
	if (w->result != 0)
		return NULL;
	w->size = b.size;
	w->right = true;
	for (uint64_t i = 0; i < b.size; i++)
		w->right = w->right && ((uint8_t *)b.data)[i] == fake_pattern(i);
	sar_release(w->c->s, &b);
	return NULL;
}

static void waiter_start(struct waiter *w, struct client *c, const char *name, int64_t timeout_ns)
{
	*w = (struct waiter){.c = c, .timeout_ns = timeout_ns};
	snprintf(w->name, sizeof(w->name), "%s", name);
	assert_int_equal(pthread_create(&w->thread, NULL, waiter_run, w), 0);
}

static void wait_for_requests(struct client *c, enum session_op op, unsigned count)
{
	for (int i = 0; i < 60000 && atomic_load(&c->fake.requests[op]) < count; i++)
		usleep(1000);
	assert_true(atomic_load(&c->fake.requests[op]) >= count);
}

static void progressive_get(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("growing");
	uint32_t slot = fake_fetching(&c->fake, &id, 100000, 1000);
	sar_buffer b;
	assert_int_equal(sar_get_begin(c->s, test_id("growing"), 0, &b), 0);
	assert_int_equal(b.size, 100000);
	assert_int_equal(b.ready, 1000);
	assert_true(fake_pinned(&c->fake, slot));
	assert_int_equal(sar_wait(c->s, &b, 2000, 0), -ETIMEDOUT);
	fake_advance(&c->fake, slot, 3000);
	assert_int_equal(sar_wait(c->s, &b, 2000, 0), 0);
	assert_int_equal(b.ready, 3000);
	int64_t started = now_ns();
	assert_int_equal(sar_wait(c->s, &b, 4000, 50 * ms), -ETIMEDOUT);
	assert_in_range(now_ns() - started, 50 * ms, 10000 * ms);
	fake_advance(&c->fake, slot, 100000);
	assert_int_equal(sar_wait(c->s, &b, UINT64_MAX, SAR_FOREVER), 0);
	assert_int_equal(b.ready, 100000);
	assert_int_equal(((uint8_t *)b.data)[99999], fake_pattern(99999));
	sar_release(c->s, &b);
	assert_false(fake_pinned(&c->fake, slot));
}

/* One question, one answer. */
static void a_remote_get_is_one_request(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("growing");
	uint32_t slot = fake_fetching(&c->fake, &id, 100000, 1000);
	struct waiter w;
	sar_buffer b;
	assert_int_equal(sar_get(c->s, test_id("growing"), 0, &b), -ETIMEDOUT);
	waiter_start(&w, c, "growing", SAR_FOREVER);
	wait_for_requests(c, SESSION_GET, 2);
	fake_advance(&c->fake, slot, 100000);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, 0);
	assert_int_equal(w.size, 100000);
	assert_true(w.right);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 2);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_WAIT]), 0);
	assert_false(fake_pinned(&c->fake, slot));
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void *gather_run(void *arg)
{
	struct waiter *w = arg;
	sar_id id[2] = {test_id("one"), test_id("two")};
	sar_buffer b[2];
	w->result = sar_gather(w->c->s, id, 2, SAR_FOREVER, b);
	for (unsigned i = 0; w->result == 0 && i < 2; i++)
		sar_release(w->c->s, &b[i]);
	return NULL;
}

/* Each is an operation of a queue, and needs none of its descriptors. */
static void a_call_that_waits_opens_no_descriptor(void **state)
{
	struct client *c = *state;
	struct object_id one = test_object("one"), two = test_object("two");
	struct waiter get, gather = {.c = c};
	sar_buffer b;
	assert_int_equal(sar_get(c->s, test_id("none"), 0, &b), -ENOENT); /* it has attached */
	unsigned before = descriptors();
	waiter_start(&get, c, "one", SAR_FOREVER);
	assert_int_equal(pthread_create(&gather.thread, NULL, gather_run, &gather), 0);
	wait_for_requests(c, SESSION_GET, 4);
	assert_int_equal(descriptors(), before);
	fake_fetching(&c->fake, &one, 1000, 1000);
	fake_fetching(&c->fake, &two, 1000, 1000);
	pthread_join(get.thread, NULL);
	pthread_join(gather.thread, NULL);
	assert_int_equal(get.result, 0);
	assert_int_equal(gather.result, 0);
}

static void deleted_while_arriving(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("doomed");
	uint32_t slot = fake_fetching(&c->fake, &id, 1000, 10);
	sar_buffer b;
	assert_int_equal(sar_get_begin(c->s, test_id("doomed"), 0, &b), 0);
	fake_delete(&c->fake, slot);
	assert_int_equal(sar_wait(c->s, &b, 10, 0), 0);
	assert_int_equal(sar_wait(c->s, &b, 11, SAR_FOREVER), -ESTALE);
	sar_release(c->s, &b);
}

/* A time that is over before control is asked is still one: no answer of whether the object is here
 * now. */
static void a_short_wait_is_a_wait(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	assert_int_equal(sar_get(c->s, test_id("never"), 1, &b), -ETIMEDOUT);
	assert_int_equal(sar_get_begin(c->s, test_id("never"), 1, &b), -ETIMEDOUT);
	assert_int_equal(sar_get(c->s, test_id("never"), 0, &b), -ENOENT);
	assert_int_equal(sar_get_begin(c->s, test_id("never"), 0, &b), -ENOENT);
}

/* Replies in another order than the requests, while some time out. */
static void many_waits_at_once(void **state)
{
	enum { COUNT = 32 };
	struct client *c = *state;
	static struct waiter w[COUNT];
	char name[16];
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "object %d", i);
		waiter_start(&w[i], c, name, i % 4 == 3 ? 20 * ms : SAR_FOREVER);
	}
	wait_for_requests(c, SESSION_GET, COUNT);
	usleep(50000);
	for (int i = COUNT - 1; i >= 0; i--) {
		snprintf(name, sizeof(name), "object %d", i);
		struct object_id id = test_object(name);
		if (i % 4 != 3)
			fake_fetching(&c->fake, &id, 1000 + (uint64_t)i, 1000 + (uint64_t)i);
	}
	for (int i = 0; i < COUNT; i++) {
		pthread_join(w[i].thread, NULL);
		if (i % 4 == 3) {
			assert_int_equal(w[i].result, -ETIMEDOUT);
			continue;
		}
		assert_int_equal(w[i].result, 0);
		assert_int_equal(w[i].size, 1000 + i);
		assert_true(w[i].right);
	}
}

/* The one that reads the socket times out first: another must take over. */
static void reader_hands_over(void **state)
{
	struct client *c = *state;
	struct waiter first, second;
	struct object_id id = test_object("second");
	waiter_start(&first, c, "first", 100 * ms);
	wait_for_requests(c, SESSION_GET, 1);
	waiter_start(&second, c, "second", SAR_FOREVER);
	pthread_join(first.thread, NULL);
	assert_int_equal(first.result, -ETIMEDOUT);
	fake_fetching(&c->fake, &id, 100, 100);
	pthread_join(second.thread, NULL);
	assert_int_equal(second.result, 0);
	assert_true(second.right);
}

static bool hook_silent(struct fake *f, int conn, const struct session_request *request)
{
	return request->op == SESSION_GET || request->op == SESSION_CREATE;
}

/* Nobody waits longer than he said. What is here is still to be had. */
static void death_ends_waits_in_time(void **state)
{
	enum { COUNT = 16 };
	struct client *c = *state;
	static struct waiter w[COUNT];
	sar_buffer here, b;
	assert_int_equal(sar_put(c->s, test_id("here"), NULL, "here", 4), 0);
	assert_int_equal(sar_get(c->s, test_id("here"), 0, &here), 0);
	c->fake.hook = hook_silent; /* or it would end the first, when it dies late */
	for (int i = 0; i < COUNT; i++)
		waiter_start(&w[i], c, "never", (1000 + 10 * i) * ms);
	wait_for_requests(c, SESSION_GET, COUNT);
	fake_kill(&c->fake);
	for (int i = 0; i < COUNT; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].result, -ENOTCONN);
		assert_in_range(w[i].took_ns, (1000 + 10 * i) * ms, 10000 * ms);
	}
	assert_int_equal(sar_get(c->s, test_id("there"), 0, &b), -ENOTCONN);
	assert_non_null(strstr(sar_error_detail(), "no control on this node: "));
	assert_int_equal(sar_get(c->s, test_id("here"), 0, &b), 0);
	sar_release(c->s, &b);
	assert_memory_equal(here.data, "here", 4);
	sar_release(c->s, &here);
}

/* A node that hangs: the wait ends all the same, soon after its time. */
static void silent_node(void **state)
{
	struct client *c = *state;
	struct waiter w;
	c->fake.hook = hook_silent;
	waiter_start(&w, c, "nothing", 10 * ms);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -ETIMEDOUT);
	assert_in_range(w.took_ns, 10 * ms, 10000 * ms);
}

enum { SLOW = 3 };
static struct session_request slow_request[SLOW];
static atomic_uint slow_requests;
static int slow_conn;

static bool hook_slow(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op != SESSION_GET)
		return false;
	slow_request[slow_requests++] = *request;
	slow_conn = conn;
	return true;
}

static void slow_answer(struct fake *f, unsigned i, const struct timespec *at)
{
	struct session_reply reply = fake_reply(&slow_request[i], -ENODATA);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL);
	pthread_mutex_lock(&f->lock);
	fake_send(f, slow_conn, &reply, sizeof(reply), NULL, 0);
	pthread_mutex_unlock(&f->lock);
}

/* Control knows why a time is over, even when it says so somewhat late. */
static void control_has_the_last_word(void **state)
{
	static const int64_t timeout_ns[SLOW] = {999 * ms, 1500 * ms, 0};
	static const int64_t answer_ms[SLOW] = {1100, 1600, 5100};
	struct client *c = *state;
	struct waiter w[SLOW];
	slow_requests = 0;
	c->fake.hook = hook_slow;
	int64_t began_ns = now_ns();
	for (unsigned i = 0; i < SLOW; i++) {
		waiter_start(&w[i], c, "slow", timeout_ns[i]);
		wait_for_requests(c, SESSION_GET, i + 1);
	}
	for (unsigned i = 0; i < SLOW; i++) {
		int64_t at_ns = began_ns + answer_ms[i] * ms;
		slow_answer(&c->fake, i,
			    &(struct timespec){at_ns / 1000000000, at_ns % 1000000000});
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].result, -ENODATA);
	}
}

static struct session_request late_request;
static int late_conn;

static bool hook_late(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op != SESSION_GET && request->op != SESSION_CREATE)
		return false;
	late_request = *request;
	late_conn = conn;
	return true;
}

/* The answer comes after the caller has gone: it has pinned nothing. */
static void late_answer_leaves_nothing(void **state)
{
	struct client *c = *state;
	struct waiter w;
	struct object_id id = test_object("late");
	uint32_t slot = fake_fetching(&c->fake, &id, 100, 50);
	c->fake.hook = hook_late;
	waiter_start(&w, c, "late", 10 * ms);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -ETIMEDOUT);
	const struct object_slot *s = &c->fake.table->slot[slot];
	pthread_mutex_lock(&c->fake.lock);
	struct session_reply reply = fake_reply(&late_request, 0);
	reply.slot = slot;
	reply.generation = s->generation;
	reply.offset = s->offset;
	reply.size = s->size;
	fake_send(&c->fake, late_conn, &reply, sizeof(reply), NULL, 0);
	pthread_mutex_unlock(&c->fake.lock);
	assert_int_equal(late_request.pin, SESSION_PIN_NONE);
	assert_int_equal(sar_delete(c->s, test_id("other")), -ENOENT);
	assert_false(fake_pinned(&c->fake, slot));
}

struct hammer {
	struct client *c;
	pthread_t thread;
	unsigned seed, wrong;
};

static void *hammer_run(void *arg)
{
	struct hammer *h = arg;
	for (int i = 0; i < 300; i++) {
		char name[16];
		sar_buffer b;
		snprintf(name, sizeof(name), "h%d", rand_r(&h->seed) % 8);
		int r = sar_put(h->c->s, test_id(name), name, name, sizeof(name));
		h->wrong += r != 0 && r != -EEXIST && r != -ENOSPC && r != -ESTALE;
		r = sar_get(h->c->s, test_id(name), ms, &b);
		if (r == 0) {
			h->wrong += memcmp(b.data, name, strlen(name) + 1) != 0;
			sar_release(h->c->s, &b);
		} else {
			h->wrong += r != -ETIMEDOUT && r != -ESTALE;
		}
		if (i % 3 == 0)
			sar_delete(h->c->s, test_id(name));
	}
	return NULL;
}

/* The fake never reuses bytes, so every byte that a get returns must be right. */
static void threads_hammer_one_handle(void **state)
{
	enum { COUNT = 6 };
	struct client *c = *state;
	struct hammer h[COUNT];
	for (unsigned i = 0; i < COUNT; i++) {
		h[i] = (struct hammer){.c = c, .seed = i + 1};
		assert_int_equal(pthread_create(&h[i].thread, NULL, hammer_run, &h[i]), 0);
	}
	for (int i = 0; i < COUNT; i++) {
		pthread_join(h[i].thread, NULL);
		assert_int_equal(h[i].wrong, 0);
	}
	for (uint32_t slot = 0; slot < FAKE_SLOTS; slot++)
		assert_false(fake_pinned(&c->fake, slot));
}

/* All waits end, whichever thread reads for the others; other requests go on. */
static void waits_end(void **state)
{
	enum { COUNT = 6 };
	struct client *c = *state;
	struct waiter w[COUNT];
	sar_buffer writer, held, late;
	assert_int_equal(sar_create(c->s, test_id("writer"), NULL, 10, &writer), 0);
	struct object_id id = test_object("half");
	uint32_t slot = fake_fetching(&c->fake, &id, 1000, 10);
	assert_int_equal(sar_get_begin(c->s, test_id("half"), SAR_FOREVER, &held), 0);
	for (unsigned i = 0; i < COUNT; i++)
		waiter_start(&w[i], c, i % 2 ? "never" : "half", SAR_FOREVER);
	wait_for_requests(c, SESSION_GET, 1 + COUNT);
	sar_end_waits(c->s);
	for (unsigned i = 0; i < COUNT; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].result, -ESHUTDOWN);
	}
	assert_int_equal(sar_get(c->s, test_id("never"), SAR_FOREVER, &late), -ESHUTDOWN);
	assert_int_equal(sar_wait(c->s, &held, 1000, SAR_FOREVER), -ESHUTDOWN);
	assert_int_equal(sar_reduce_sources(c->s, test_id("never"), SAR_FOREVER, NULL, 0),
			 -ESHUTDOWN);
	id = test_object("never");
	uint32_t given = fake_fetching(&c->fake, &id, 100, 100); /* answers those who have left */
	assert_int_equal(sar_seal(c->s, &writer), 0);
	assert_int_equal(sar_put(c->s, test_id("put"), NULL, "put", 3), 0);
	assert_false(fake_pinned(&c->fake, given));
	assert_int_equal(sar_get(c->s, test_id("put"), SAR_FOREVER, &late), 0);
	sar_release(c->s, &late);
	assert_true(fake_pinned(&c->fake, slot));
	assert_int_equal(((uint8_t *)held.data)[9], fake_pattern(9));
	sar_release(c->s, &held);
	assert_false(fake_pinned(&c->fake, slot));
}

static void waits_for_a_control_end(void **state)
{
	struct client *c = *state;
	struct waiter w;
	fake_kill(&c->fake);
	waiter_start(&w, c, "never", SAR_FOREVER);
	while (mux_error(&c->s->mux) == 0) /* it has noticed */
		usleep(1000);
	sar_end_waits(c->s);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -ESHUTDOWN);
	fake_restart(&c->fake, true);
	assert_int_equal(sar_put(c->s, test_id("put"), NULL, "put", 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(progressive_get),
		test_client(a_remote_get_is_one_request),
		test_client(a_call_that_waits_opens_no_descriptor),
		test_client(deleted_while_arriving),
		test_client(a_short_wait_is_a_wait),
		test_client(many_waits_at_once),
		test_client(reader_hands_over),
		test_client(death_ends_waits_in_time),
		test_client(silent_node),
		test_client(control_has_the_last_word),
		test_client(late_answer_leaves_nothing),
		test_client(threads_hammer_one_handle),
		test_client(waits_end),
		test_client(waits_for_a_control_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
