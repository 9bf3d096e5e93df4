/* SPDX-License-Identifier: BSD-3-Clause */
/* Control is killed and started again, with or without its store: what its clients notice. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fixtures/client_test.h"

static const int64_t ms = 1000000, second = 1000000000;

static void wait_for_requests(struct client *c, enum session_op op, unsigned count)
{
	for (int i = 0; i < 60000 && atomic_load(&c->fake.requests[op]) < count; i++)
		usleep(1000);
	assert_true(atomic_load(&c->fake.requests[op]) >= count);
}

static void again(struct client *c)
{
	fake_kill(&c->fake);
	fake_restart(&c->fake, true);
}

/* ---- one call in another thread -------------------------------------------------------------- */

struct call {
	struct client *c;
	pthread_t thread;
	int (*run)(struct call *call);
	sar_buffer b;
	sar_id id;
	uint64_t upto;
	int64_t timeout_ns;
	uint8_t *data;
	int result;
};

static void *call_run(void *arg)
{
	struct call *call = arg;
	call->result = call->run(call);
	return NULL;
}

static void call_start(struct call *call)
{
	assert_int_equal(pthread_create(&call->thread, NULL, call_run, call), 0);
}

static int call_end(struct call *call)
{
	pthread_join(call->thread, NULL);
	return call->result;
}

static int run_get(struct call *call)
{
	return sar_get(call->c->s, call->id, call->timeout_ns, &call->b);
}

static int run_wait(struct call *call)
{
	return sar_wait(call->c->s, &call->b, call->upto, call->timeout_ns);
}

static int run_create(struct call *call)
{
	return sar_create(call->c->s, call->id, "made", call->upto, &call->b);
}

static int run_seal(struct call *call)
{
	return sar_seal(call->c->s, &call->b);
}

static int run_delete(struct call *call)
{
	return sar_delete(call->c->s, call->id);
}

static int run_put(struct call *call)
{
	return sar_put(call->c->s, call->id, "put", call->data, call->upto);
}

/* ---- what goes on ---------------------------------------------------------------------------- */

static void a_get_goes_on(void **state)
{
	struct client *c = *state;
	struct call call = {
		.c = c, .run = run_get, .id = test_id("late"), .timeout_ns = SAR_FOREVER};
	struct object_id object = test_object("late");
	call_start(&call);
	wait_for_requests(c, SESSION_GET, 1);
	for (unsigned i = 0; i < 3; i++) { /* as often as it must */
		fake_kill(&c->fake);
		usleep(20000);
		fake_restart(&c->fake, true);
		wait_for_requests(c, SESSION_GET, 2 + i);
	}
	fake_fetching(&c->fake, &object, 1000, 1000);
	assert_int_equal(call_end(&call), 0);
	assert_int_equal(((uint8_t *)call.b.data)[999], fake_pattern(999));
	sar_release(c->s, &call.b);
}

/* Those of an object that is complete here, and of one that arrives. */
static void metadata_lie_behind_the_bytes(void **state)
{
	struct client *c = *state;
	struct object_id object[] = {test_object("whole"), test_object("part")};
	sar_buffer b[2];
	for (unsigned i = 0; i < 2; i++) {
		uint32_t slot = fake_fetching(&c->fake, &object[i], 1000, i ? 500 : 1000);
		struct object_slot *s = &c->fake.table->slot[slot];
		memcpy(c->fake.store + s->offset + s->size, "meta", 4);
		s->meta_bytes = 4;
	}
	assert_int_equal(sar_get_begin(c->s, test_id("part"), 0, &b[1]), 0);
	fake_kill(&c->fake);
	assert_int_equal(sar_get(c->s, test_id("whole"), 0, &b[0]), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(b[i].meta_bytes, 4);
		assert_memory_equal(b[i].meta, "meta", 4);
		sar_release(c->s, &b[i]);
	}
	fake_restart(&c->fake, true);
}

static int64_t asked_timeout_ns;

static bool hook_timeout(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op != SESSION_GET)
		return false;
	asked_timeout_ns = request->timeout_ns;
	if (atomic_load(&f->requests[SESSION_GET]) > 1)
		fake_status(f, conn, request, -ETIMEDOUT);
	return true;
}

static void a_get_goes_on_with_what_is_left_of_its_time(void **state)
{
	struct client *c = *state;
	struct call call = {
		.c = c, .run = run_get, .id = test_id("never"), .timeout_ns = 100 * second};
	c->fake.hook = hook_timeout;
	call_start(&call);
	wait_for_requests(c, SESSION_GET, 1);
	usleep(200000);
	again(c);
	assert_int_equal(call_end(&call), -ETIMEDOUT);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 2);
	assert_in_range(asked_timeout_ns, 1, 100 * second - 200 * ms);
}

static void a_wait_goes_on(void **state)
{
	struct client *c = *state;
	struct object_id object = test_object("growing");
	uint32_t slot = fake_fetching(&c->fake, &object, 100000, 1000);
	struct call call = {.c = c, .run = run_wait, .upto = 50000, .timeout_ns = 20 * second};
	assert_int_equal(sar_get_begin(c->s, test_id("growing"), 0, &call.b), 0);
	call_start(&call);
	wait_for_requests(c, SESSION_WAIT, 1);
	again(c);
	wait_for_requests(c, SESSION_WAIT, 2);
	fake_advance(&c->fake, slot, 60000);
	assert_int_equal(call_end(&call), 0);
	assert_int_equal(call.b.ready, 60000);
	sar_release(c->s, &call.b);
}

static void what_is_held_is_counted_again(void **state)
{
	struct client *c = *state;
	struct object_id object[2] = {test_object("one"), test_object("two")};
	uint32_t slot[2] = {fake_fetching(&c->fake, &object[0], 100, 100),
			    fake_fetching(&c->fake, &object[1], 100, 50)};
	sar_buffer b[2], other;
	assert_int_equal(sar_get(c->s, test_id("one"), 0, &b[0]), 0);
	assert_int_equal(sar_get_begin(c->s, test_id("two"), 0, &b[1]), 0);
	again(c);
	assert_false(fake_pinned(&c->fake, slot[0]));
	assert_int_equal(sar_get(c->s, test_id("none"), 0, &other), -ENOENT);
	assert_true(fake_pinned(&c->fake, slot[0]));
	assert_true(fake_pinned(&c->fake, slot[1]));
	sar_release(c->s, &b[1]);
	assert_true(fake_pinned(&c->fake, slot[0]));
	assert_false(fake_pinned(&c->fake, slot[1]));
	again(c);
	sar_release(c->s, &b[0]); /* the last one: joins as well, so that nothing is kept for us */
	assert_false(fake_pinned(&c->fake, slot[0]));
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_ATTACH]), 3);
}

/* No system call tells that another one has taken over: the table does. */
static void a_local_get_notices_another_control(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	assert_int_equal(sar_put(c->s, test_id("here"), NULL, "here", 4), 0);
	again(c);
	assert_int_equal(sar_get(c->s, test_id("here"), 0, &b), 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_ATTACH]), 2);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 0);
	sar_release(c->s, &b);
}

/* ---- creations ------------------------------------------------------------------------------- */

static void a_creation_goes_on(void **state)
{
	struct client *c = *state;
	sar_buffer b, got;
	assert_int_equal(sar_create(c->s, test_id("half"), "half", 10000, &b), 0);
	memset(b.data, 'a', 5000);
	assert_int_equal(sar_publish(c->s, &b, 5000), 0);
	again(c);
	memset((uint8_t *)b.data + 5000, 'b', 5000);
	assert_int_equal(sar_publish(c->s, &b, 6000), 0);
	assert_int_equal(atomic_load(&c->fake.resumed), 1);
	again(c);
	assert_int_equal(sar_seal(c->s, &b), 0);
	assert_int_equal(atomic_load(&c->fake.resumed), 2);
	assert_int_equal(sar_get(c->s, test_id("half"), 0, &got), 0);
	assert_int_equal(((uint8_t *)got.data)[4999], 'a');
	assert_int_equal(((uint8_t *)got.data)[9999], 'b');
	sar_release(c->s, &got);
	again(c); /* nothing is under creation any more */
	assert_int_equal(sar_delete(c->s, test_id("half")), 0);
	assert_int_equal(atomic_load(&c->fake.resumed), 2);
}

/* The memory that it is written in goes along. */
static void a_staged_creation_goes_on(void **state)
{
	struct client *c = *state;
	c->fake.staged = true;
	a_creation_goes_on(state);
}

/* What the new control does not know is lost by name. */
static void a_creation_is_lost_by_name(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	assert_int_equal(sar_create(c->s, test_id("half"), "half", 10000, &b), 0);
	fake_kill(&c->fake);
	for (uint32_t i = 0; i < FAKE_SLOTS; i++)
		if (c->fake.table->slot[i].state == OBJECT_CREATING)
			c->fake.table->slot[i].state = OBJECT_ZOMBIE;
	fake_restart(&c->fake, true);
	memset(b.data, 'a', 10000); /* still ours to write */
	assert_int_equal(sar_seal(c->s, &b), -ESTALE);
	assert_int_equal(sar_abort(c->s, &b), -ESTALE);
	assert_int_equal(sar_put(c->s, test_id("half"), "half", "new", 3), 0);
}

/* An older kernel lets it send a descriptor that nobody waits for, and then control ends the
 * connection. */
static void nothing_is_brought_that_nobody_waits_for(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	c->fake.staged = true;
	assert_int_equal(sar_create(c->s, test_id("half"), "half", 10000, &b), 0);
	again(c);
	assert_int_equal(sar_publish(c->s, &b, 100), 0);
	assert_int_equal(atomic_load(&c->fake.descriptors), 1);
	fake_kill(&c->fake);
	fake_restart(&c->fake, false);
	assert_int_equal(sar_publish(c->s, &b, 200), -ESTALE);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_RESUME]), 2);
	assert_int_equal(atomic_load(&c->fake.descriptors), 1);
	sar_abort(c->s, &b);
}

/* A request that was served, and whose answer is lost with control. */
static void mute(struct call *call, enum session_op op)
{
	struct client *c = call->c;
	unsigned before = atomic_load(&c->fake.requests[op]);
	atomic_store(&c->fake.mute, op);
	call_start(call);
	wait_for_requests(c, op, before + 1);
	usleep(20000);
	fake_kill(&c->fake);
	atomic_store(&c->fake.mute, 0);
	fake_restart(&c->fake, true);
}

static void an_unanswered_create_is_ours(void **state)
{
	struct client *c = *state;
	struct call call = {.c = c, .run = run_create, .id = test_id("made"), .upto = 100};
	mute(&call, SESSION_CREATE);
	assert_int_equal(call_end(&call), 0);
	memset(call.b.data, 7, 100);
	assert_int_equal(sar_seal(c->s, &call.b), 0);
	unsigned made = 0;
	for (uint32_t i = 0; i < FAKE_SLOTS; i++)
		made += c->fake.table->slot[i].state != OBJECT_FREE;
	assert_int_equal(made, 1);
}

static void an_unanswered_staged_create_is_ours(void **state)
{
	struct client *c = *state;
	c->fake.staged = true;
	an_unanswered_create_is_ours(state);
}

static void an_unanswered_seal_is_done(void **state)
{
	struct client *c = *state;
	struct call call = {.c = c, .run = run_seal};
	assert_int_equal(sar_create(c->s, test_id("made"), NULL, 4, &call.b), 0);
	memcpy(call.b.data, "made", 4);
	mute(&call, SESSION_SEAL);
	assert_int_equal(call_end(&call), 0);
	assert_int_equal(sar_get(c->s, test_id("made"), 0, &call.b), 0);
	sar_release(c->s, &call.b);
}

static void an_unanswered_delete_is_done(void **state)
{
	struct client *c = *state;
	struct call call = {.c = c, .run = run_delete, .id = test_id("gone")};
	assert_int_equal(sar_put(c->s, call.id, NULL, "gone", 4), 0);
	mute(&call, SESSION_DELETE);
	assert_int_equal(call_end(&call), 0);
	assert_int_equal(sar_delete(c->s, call.id), -ENOENT);
}

enum { MIB = 1 << 20 };

/* Control goes while the third MiB is made; by the next one there is another. */
static int fill_beside_another(void *arg, void *to, uint64_t at, uint64_t bytes, int last)
{
	struct client *c = arg;
	memset(to, 7, bytes);
	if (at == 2 * MIB)
		again(c);
	if (at == 3 * MIB) {
		assert_int_equal(atomic_load(&c->fake.resumed), 1);
		for (uint32_t i = 0; i < FAKE_SLOTS; i++)
			if (c->fake.table->slot[i].state == OBJECT_CREATING)
				assert_int_equal(c->fake.table->slot[i].watermark, 3 * MIB);
	}
	return 0;
}

/* Readers have what is filled in, and what the node keeps for its old clients may go. */
static void a_put_from_finds_the_other_control(void **state)
{
	struct client *c = *state;
	sar_id id = test_id("from");
	assert_int_equal(sar_put_from(c->s, id, NULL, 5 * MIB, fill_beside_another, c), 0);
	assert_int_equal(atomic_load(&c->fake.resumed), 1);
}

/* Wherever control dies in a put, there is one object in the end, with all its bytes. */
static void a_put_is_made_once(void **state)
{
	static const enum session_op ops[] = {SESSION_CREATE, SESSION_SEAL, SESSION_PUT};
	static const uint64_t bytes[] = {3000000, 3000000, 1000};
	struct client *c = *state;
	uint8_t *data = test_pattern(3000000);
	for (unsigned i = 0; i < 3; i++) {
		char name[8];
		snprintf(name, sizeof(name), "put%u", i);
		struct call call = {.c = c,
				    .run = run_put,
				    .id = test_id(name),
				    .upto = bytes[i],
				    .data = data};
		sar_buffer b;
		mute(&call, ops[i]);
		assert_int_equal(call_end(&call), 0);
		assert_int_equal(sar_get(c->s, call.id, 0, &b), 0);
		assert_int_equal(b.size, bytes[i]);
		assert_memory_equal(b.data, data, bytes[i]);
		sar_release(c->s, &b);
	}
	unsigned made = 0;
	for (uint32_t i = 0; i < FAKE_SLOTS; i++)
		made += c->fake.table->slot[i].state != OBJECT_FREE;
	assert_int_equal(made, 3);
	free(data);
}

/* Control follows the reduces that it was asked for: another one is asked for those that have not
 * ended. */
static void reduces_are_asked_for_again(void **state)
{
	struct client *c = *state;
	const sar_reduction how = {
		.op = SAR_SUM, .dtype = SAR_F32, .min = 2, .deadline_ns = 50 * second};
	const sar_id from[2] = {test_id("x"), test_id("y")};
	sar_id used[2];
	char name[8];
	for (unsigned i = 0; i < 70; i++) { /* more than are remembered */
		snprintf(name, sizeof(name), "sum%u", i);
		assert_int_equal(sar_reduce(c->s, test_id(name), name, from, 2, &how, 100 * second),
				 0);
	}
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum69"), 0, used, 2), 2);
	assert_int_equal(sar_delete(c->s, test_id("sum68")), 0);
	again(c);
	c->fake.reduce = (struct session_request){0};
	assert_int_equal(sar_reduce_sources(c->s, test_id("sum69"), 0, used, 2), -ENOENT);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_REDUCE]), 70 + 64 - 2);
	assert_int_equal(c->fake.reduce.flags, SESSION_FLAG_RETRY);
	assert_in_range(c->fake.reduce.timeout_ns, 1, 100 * second - 1);
	assert_int_equal(c->fake.reduce.reduction.min, 2);
	assert_in_range(c->fake.reduce.reduction.deadline_ns, 1, 50 * second - 1);
	assert_memory_equal(c->fake.reduce_source, from, sizeof(from));
}

/* A child has the bytes that it was forked with, and nothing that another control waits for. */
static void a_child_keeps_no_table(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	int status;
	assert_int_equal(sar_put(c->s, test_id("here"), NULL, "here", 4), 0);
	assert_int_equal(sar_get(c->s, test_id("here"), 0, &b), 0);
	pthread_mutex_lock(&c->fake.lock); /* it does without its table until it has it again */
	munmap(c->fake.table, c->fake.table_bytes); /* the fake's own would be inherited */
	pid_t child = fork();
	if (child == 0) {
		char line[256];
		FILE *maps = fopen("/proc/self/maps", "r");
		unsigned found = memcmp(b.data, "here", 4) != 0;
		while (fgets(line, sizeof(line), maps))
			found += strstr(line, "memfd:table") != NULL;
		found += sar_get(c->s, test_id("here"), 0, &b) != -EINVAL;
		sar_close(c->s);
		_exit((int)found);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	c->fake.table = mmap(NULL, c->fake.table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			     c->fake.table_fd, 0);
	pthread_mutex_unlock(&c->fake.lock);
	assert_int_equal(WEXITSTATUS(status), 0);
	sar_release(c->s, &b);
}

/* ---- another store ----------------------------------------------------------------------------
 */

static void what_is_held_of_a_lost_store_stays_readable(void **state)
{
	struct client *c = *state;
	sar_buffer old, now;
	assert_int_equal(sar_put(c->s, test_id("a"), NULL, "old", 3), 0);
	assert_int_equal(sar_get(c->s, test_id("a"), 0, &old), 0);
	fake_kill(&c->fake);
	fake_restart(&c->fake, false);
	assert_int_equal(sar_put(c->s, test_id("a"), NULL, "new", 3), 0);
	assert_int_equal(sar_get(c->s, test_id("a"), 0, &now), 0);
	assert_memory_equal(old.data, "old", 3);
	assert_memory_equal(now.data, "new", 3);
	sar_release(c->s, &old);
	sar_release(c->s, &now);
	for (uint32_t slot = 0; slot < FAKE_SLOTS; slot++)
		assert_false(fake_pinned(&c->fake, slot));
}

static void a_lost_store_ends_waits(void **state)
{
	struct client *c = *state;
	struct object_id object = test_object("growing");
	struct call begun = {.c = c, .run = run_wait, .upto = 50000, .timeout_ns = 20 * second};
	struct call whole = {
		.c = c, .run = run_get, .id = test_id("growing"), .timeout_ns = 20 * second};
	sar_buffer half;
	fake_fetching(&c->fake, &object, 100000, 1000);
	assert_int_equal(sar_get_begin(c->s, whole.id, 0, &begun.b), 0);
	assert_int_equal(sar_create(c->s, test_id("half"), NULL, 100, &half), 0);
	call_start(&begun);
	call_start(&whole);
	wait_for_requests(c, SESSION_WAIT, 1);
	wait_for_requests(c, SESSION_GET, 2);
	fake_kill(&c->fake);
	fake_restart(&c->fake, false);
	assert_int_equal(call_end(&begun), -ERESTART);
	assert_int_equal(begun.b.ready, 1000);
	assert_int_equal(((uint8_t *)begun.b.data)[999], fake_pattern(999));
	assert_int_equal(sar_wait(c->s, &begun.b, 1001, 0), -ERESTART);
	assert_non_null(strstr(sar_error_detail(), "lost its store"));
	wait_for_requests(c, SESSION_GET, 3); /* who wants all of it asks the new one */
	fake_fetching(&c->fake, &object, 2000, 2000);
	assert_int_equal(call_end(&whole), 0);
	assert_int_equal(whole.b.size, 2000);
	assert_int_equal(sar_publish(c->s, &half, 50), -ESTALE);
	assert_int_equal(sar_seal(c->s, &half), -ESTALE);
	sar_abort(c->s, &half);
	sar_release(c->s, &begun.b);
	sar_release(c->s, &whole.b);
}

/* ---- very often -------------------------------------------------------------------------------
 */

struct hammer {
	struct client *c;
	pthread_t thread;
	_Atomic bool *stop;
	_Atomic unsigned turns;
	unsigned seed, wrong, gets, puts;
};

static void *hammer_run(void *arg)
{
	struct hammer *h = arg;
	while (!atomic_load(h->stop)) {
		char name[16] = {0};
		sar_buffer b;
		snprintf(name, sizeof(name), "h%d", rand_r(&h->seed) % 8);
		int r = sar_get(h->c->s, test_id(name), 20 * ms, &b);
		if (r == 0) {
			h->gets++;
			h->wrong += memcmp(b.data, name, strlen(name) + 1) != 0;
			sar_release(h->c->s, &b);
		} else if (r == -ETIMEDOUT) {
			h->puts++;
			r = sar_put(h->c->s, test_id(name), name, name, sizeof(name));
			h->wrong += r != 0 && r != -ESTALE && r != -ENOSPC;
		} else {
			h->wrong += r != -ENOTCONN && r != -ESTALE;
		}
		if (rand_r(&h->seed) % 64 == 0)
			sar_delete(h->c->s, test_id(name));
		atomic_fetch_add(&h->turns, 1);
	}
	return NULL;
}

/* A call that the fifth control in a row dies over is ended: some live until each has been served.
 */
static void hammers_come_on(struct hammer *h, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned before = atomic_load(&h[i].turns);
		for (int k = 0; k < 60000 && atomic_load(&h[i].turns) == before; k++)
			usleep(1000);
		assert_true(atomic_load(&h[i].turns) != before);
	}
}

/* Threads get, put and delete while one control after the other dies: no wrong byte, no pin left.
 */
static void threads_hammer_while_controls_die(void **state)
{
	enum { COUNT = 4 };
	struct client *c = *state;
	static _Atomic bool stop;
	struct hammer h[COUNT];
	unsigned gets = 0;
	atomic_store(&stop, false);
	for (unsigned i = 0; i < COUNT; i++) {
		h[i] = (struct hammer){.c = c, .seed = i + 1, .stop = &stop};
		assert_int_equal(pthread_create(&h[i].thread, NULL, hammer_run, &h[i]), 0);
	}
	for (int i = 0; i < 40; i++) {
		usleep(15000);
		if (i % 3 == 2)
			hammers_come_on(h, COUNT);
		fake_kill(&c->fake);
		fake_restart(&c->fake, i % 10 != 9);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < COUNT; i++) {
		pthread_join(h[i].thread, NULL);
		assert_int_equal(h[i].wrong, 0);
		gets += h[i].gets;
	}
	assert_true(gets > 0);
	sar_delete(c->s, test_id("none"));
	for (uint32_t slot = 0; slot < FAKE_SLOTS; slot++)
		assert_false(fake_pinned(&c->fake, slot));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(a_get_goes_on),
		test_client(metadata_lie_behind_the_bytes),
		test_client(a_get_goes_on_with_what_is_left_of_its_time),
		test_client(a_wait_goes_on),
		test_client(what_is_held_is_counted_again),
		test_client(a_local_get_notices_another_control),
		test_client(a_creation_goes_on),
		test_client(a_staged_creation_goes_on),
		test_client(a_creation_is_lost_by_name),
		test_client(nothing_is_brought_that_nobody_waits_for),
		test_client(an_unanswered_create_is_ours),
		test_client(an_unanswered_staged_create_is_ours),
		test_client(an_unanswered_seal_is_done),
		test_client(an_unanswered_delete_is_done),
		test_client(a_put_from_finds_the_other_control),
		test_client(a_put_is_made_once),
		test_client(reduces_are_asked_for_again),
		test_client(a_child_keeps_no_table),
		test_client(what_is_held_of_a_lost_store_stays_readable),
		test_client(a_lost_store_ends_waits),
		test_client(threads_hammer_while_controls_die),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
