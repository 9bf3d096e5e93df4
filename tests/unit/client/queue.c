/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues: many operations under way in one thread, with a fake control. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
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

static sar_id number_id(unsigned i)
{
	char name[24];
	snprintf(name, sizeof(name), "object %u", i);
	return test_id(name);
}

static struct object_id number_object(unsigned i)
{
	struct object_id object;
	sar_id id = number_id(i);
	memcpy(object.bytes, id.bytes, sizeof(object.bytes));
	return object;
}

static bool is_pattern(const sar_buffer *b)
{
	for (uint64_t i = 0; i < b->size; i++)
		if (((uint8_t *)b->data)[i] != fake_pattern(i))
			return false;
	return true;
}

static void wait_for_requests(struct client *c, enum session_op op, unsigned count)
{
	for (int i = 0; i < 60000 && atomic_load(&c->fake.requests[op]) < count; i++)
		usleep(1000);
	assert_true(atomic_load(&c->fake.requests[op]) >= count);
}

/* q: sends what the socket had no room for; may be NULL */
static void wait_for_waits(struct client *c, sar_queue *q, unsigned count)
{
	sar_completion none;
	for (int i = 0; i < 60000 && fake_waiting(&c->fake) != count; i++) {
		usleep(1000);
		if (q)
			sar_poll(q, &none, 0);
	}
	assert_int_equal(fake_waiting(&c->fake), count);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void complete_here_completes_at_once(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 4);
	struct object_id id = number_object(1);
	fake_fetching(&c->fake, &id, 5000, 5000);
	sar_completion done;
	assert_int_equal(sar_submit_get(q, number_id(1), SAR_FOREVER, 77), 0);
	assert_int_equal(sar_poll(q, &done, 1), 1);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.user_data, 77);
	assert_int_equal(done.op, SAR_OP_GET);
	assert_int_equal(done.buffer.size, 5000);
	assert_true(is_pattern(&done.buffer));
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 0);
	assert_int_equal(sar_poll(q, &done, 1), 0);
	sar_queue_close(q);
	sar_release(c->s, &done.buffer);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void what_arrives_is_one_request(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 4);
	struct object_id id = number_object(1);
	uint32_t slot = fake_fetching(&c->fake, &id, 100000, 1000);
	assert_int_equal(sar_submit_get(q, number_id(1), SAR_FOREVER, 0), 0);
	wait_for_waits(c, q, 1);
	fake_advance(&c->fake, slot, 100000);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 0);
	assert_true(is_pattern(&done.buffer));
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 1);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_WAIT]), 0);
	sar_queue_close(q);
	sar_release(c->s, &done.buffer);
}

/* It goes to a file once, between the answer and the pin. */
static bool hook_spilled(struct fake *f, int conn, const struct session_request *request)
{
	struct object_slot image;
	int64_t slot = object_table_find(f->table, &request->id, &image);
	if (request->op == SESSION_GET && slot >= 0)
		fake_state(f, (uint32_t)slot,
			   atomic_load(&f->requests[SESSION_GET]) > 1 ? OBJECT_SEALED
								      : OBJECT_SPILLED);
	return false;
}

static void what_went_to_a_file_is_asked_for_again(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 4);
	struct object_id id = number_object(1);
	c->fake.hook = hook_spilled;
	uint32_t slot = fake_fetching(&c->fake, &id, 5000, 5000);
	pthread_mutex_lock(&c->fake.lock);
	fake_state(&c->fake, slot, OBJECT_SPILLED);
	pthread_mutex_unlock(&c->fake.lock);
	assert_int_equal(sar_submit_get(q, number_id(1), SAR_FOREVER, 0), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 0);
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_GET]), 2);
	assert_true(is_pattern(&done.buffer));
	sar_queue_close(q);
	sar_release(c->s, &done.buffer);
}

/* The descriptor alone says when there is something to do. */
static void many_gets_woken_by_the_descriptor(void **state)
{
	enum { COUNT = 150 }; /* answers that the socket has room for */
	struct client *c = *state;
	sar_queue *q = queue_open(c, COUNT);
	static bool seen[COUNT];
	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(sar_submit_get(q, number_id(i), SAR_FOREVER, i), 0);
	wait_for_waits(c, q, COUNT);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	assert_int_equal(poll(&on, 1, 0), 0);
	for (unsigned i = COUNT; i-- > 0;) {
		struct object_id id = number_object(i);
		fake_fetching(&c->fake, &id, 100 + i, i % 2 ? 100 + i : 10);
		if (i % 2 == 0) {
			struct object_slot image;
			uint32_t slot = (uint32_t)object_table_find(c->fake.table, &id, &image);
			fake_advance(&c->fake, slot, 100 + i);
		}
	}
	for (unsigned got = 0; got < COUNT;) {
		sar_completion done[16];
		assert_int_equal(poll(&on, 1, 60000), 1);
		int n = sar_poll(q, done, 16);
		for (int i = 0; i < n; i++) {
			assert_int_equal(done[i].result, 0);
			assert_int_equal(done[i].buffer.size, 100 + done[i].user_data);
			assert_true(is_pattern(&done[i].buffer));
			assert_false(seen[done[i].user_data]);
			seen[done[i].user_data] = true;
			sar_release(c->s, &done[i].buffer);
		}
		got += (unsigned)n;
	}
	assert_int_equal(poll(&on, 1, 0), 0);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

enum { MORE = 1500, MORE_OBJECTS = 100 };

/* In a thread of its own: an answer that finds the socket full waits until the queue has read. */
static void *more_objects(void *arg)
{
	struct client *c = arg;
	for (unsigned i = 0; i < MORE_OBJECTS; i++) {
		struct object_id id = number_object(i);
		fake_fetching(&c->fake, &id, 1000, 1000);
	}
	return NULL;
}

/* The node takes 256 waits and refuses the others; the queue holds these back. */
static void more_than_the_node_takes(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, MORE);
	static sar_id ids[MORE];
	static uint64_t users[MORE];
	for (unsigned i = 0; i < MORE; i++) {
		ids[i] = number_id(i % MORE_OBJECTS);
		users[i] = i;
	}
	assert_int_equal(sar_submit_gets(q, ids, MORE, SAR_FOREVER, users), MORE);
	sar_completion done[64];
	pthread_t maker;
	for (unsigned refused = FAKE_WAITS + 50;
	     atomic_load(&c->fake.requests[SESSION_GET]) < refused;)
		assert_int_equal(sar_poll_wait(q, done, 64, 1, ms), 0);
	/* refused ones come again some at a time: not each time that one is refused */
	unsigned before = atomic_load(&c->fake.requests[SESSION_GET]);
	assert_int_equal(sar_poll_wait(q, done, 64, 1, 100 * ms), 0);
	assert_in_range(atomic_load(&c->fake.requests[SESSION_GET]) - before, 1, 64 * 12 + MORE);
	assert_int_equal(pthread_create(&maker, NULL, more_objects, c), 0);
	for (unsigned got = 0; got < MORE;) {
		int n = sar_poll_wait(q, done, 64, 1, 20000 * ms);
		assert_true(n > 0);
		for (int k = 0; k < n; k++) {
			assert_int_equal(done[k].result, 0);
			sar_release(c->s, &done[k].buffer);
		}
		got += (unsigned)n;
	}
	pthread_join(maker, NULL);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* 1,024 buffers of a connection: the rest waits for a release, in the descriptor, too. */
static void more_than_there_are_buffers(void **state)
{
	enum { COUNT = SESSION_PINS + 5 };
	struct client *c = *state;
	sar_queue *q = queue_open(c, COUNT);
	struct object_id id = number_object(0);
	static sar_completion done[COUNT];
	fake_fetching(&c->fake, &id, 100, 100);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(sar_submit_get(q, number_id(0), SAR_FOREVER, i), 0);
	assert_int_equal(sar_poll(q, done, COUNT), SESSION_PINS);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	assert_int_equal(poll(&on, 1, 0), 0);
	for (int i = 0; i < 5; i++) {
		sar_release(c->s, &done[i].buffer);
		assert_int_equal(poll(&on, 1, 60000), 1);
		assert_int_equal(sar_poll(q, &done[i], 1), 1);
		assert_int_equal(done[i].result, 0);
	}
	assert_int_equal(sar_submit_get(q, number_id(0), 20 * ms, 1), 0);
	sar_completion late = queue_one(q);
	assert_int_equal(late.result, -ETIMEDOUT);
	assert_non_null(
		strstr(sar_completion_detail(q, &late), "buffers of this connection are in use"));
	for (int i = 0; i < SESSION_PINS; i++)
		sar_release(c->s, &done[i].buffer);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* And so does the buffer of a creation, whichever call seals it. */
static void a_seal_gives_its_buffer_to_a_get(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, SESSION_PINS);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	struct object_id id = number_object(0);
	static sar_completion done[SESSION_PINS];
	sar_buffer b;
	fake_fetching(&c->fake, &id, 100, 100);
	assert_int_equal(sar_create(c->s, number_id(1), NULL, 10, &b), 0);
	for (unsigned i = 0; i < SESSION_PINS; i++)
		assert_int_equal(sar_submit_get(q, number_id(0), SAR_FOREVER, i), 0);
	assert_int_equal(sar_poll(q, done, SESSION_PINS), SESSION_PINS - 1);
	assert_int_equal(poll(&on, 1, 0), 0);
	assert_int_equal(sar_seal(c->s, &b), 0);
	assert_int_equal(poll(&on, 1, 60000), 1);
	assert_int_equal(sar_poll(q, &done[SESSION_PINS - 1], 1), 1);
	for (int i = 0; i < SESSION_PINS; i++)
		sar_release(c->s, &done[i].buffer);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void a_wait_for_a_part(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 4);
	struct object_id id = number_object(1);
	uint32_t slot = fake_fetching(&c->fake, &id, 100000, 1000);
	assert_int_equal(sar_submit_get_begin(q, number_id(1), SAR_FOREVER, 1), 0);
	sar_completion begun = queue_one(q);
	assert_int_equal(begun.result, 0);
	assert_int_equal(begun.buffer.ready, 1000);
	assert_int_equal(sar_submit_wait(q, &begun.buffer, 900, 0, 2), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.value, 1000);
	assert_int_equal(sar_submit_wait(q, &begun.buffer, 5000, 0, 3), 0);
	assert_int_equal(queue_one(q).result, -ETIMEDOUT);
	assert_int_equal(sar_submit_wait(q, &begun.buffer, 5000, SAR_FOREVER, 4), 0);
	assert_int_equal(sar_poll(q, &done, 1), 0);
	fake_advance(&c->fake, slot, 6000);
	done = queue_one(q);
	assert_int_equal(done.user_data, 4);
	assert_int_equal(done.value, 6000);
	assert_int_equal(sar_submit_wait(q, &begun.buffer, 50000, SAR_FOREVER, 5), 0);
	wait_for_requests(c, SESSION_WAIT, 2);
	fake_delete(&c->fake, slot);
	done = queue_one(q);
	assert_int_equal(done.result, -ESTALE);
	sar_release(c->s, &begun.buffer);
	sar_queue_close(q);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void cancelled(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sar_submit_get(q, number_id(i), SAR_FOREVER, i / 2), 0);
	wait_for_waits(c, q, 3);
	assert_int_equal(sar_cancel(q, 5), -ENOENT);
	assert_int_equal(sar_cancel(q, 0), 2);
	for (int i = 0; i < 2; i++) {
		sar_completion done = queue_one(q);
		assert_int_equal(done.user_data, 0);
		assert_int_equal(done.result, -ECANCELED);
		assert_non_null(strstr(sar_completion_detail(q, &done), "sar_cancel"));
	}
	wait_for_waits(c, q, 1); /* the node has none of them any more */
	assert_int_equal(sar_cancel(q, 0), -ENOENT);
	struct object_id id = number_object(2);
	fake_fetching(&c->fake, &id, 10, 10);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 0);
	sar_release(c->s, &done.buffer);
	sar_queue_close(q);
}

static void late(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	assert_int_equal(sar_submit_get(q, number_id(1), 20 * ms, 1), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, -ETIMEDOUT);
	assert_non_null(strstr(sar_completion_detail(q, &done), "id:")); /* it names the object */
	assert_int_equal(sar_submit_get(q, number_id(1), 0, 2), 0);
	assert_int_equal(queue_one(q).result, -ENOENT);
	assert_int_equal(sar_submit_get(q, number_id(1), -1, 2), -EINVAL);
	c->fake.mute = SESSION_GET; /* a node that hangs */
	assert_int_equal(sar_submit_get(q, number_id(1), 1 * ms, 3), 0);
	done = queue_one(q);
	assert_int_equal(done.result, -ETIMEDOUT);
	assert_non_null(strstr(sar_completion_detail(q, &done), "does not answer in time"));
	sar_queue_close(q);
}

/* Its time comes when nothing else has a limit: the descriptor says so once. */
static void a_limit_of_what_has_ended(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 1);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	assert_int_equal(sar_submit_get(q, number_id(1), 1000 * ms, 1), 0);
	assert_int_equal(sar_cancel(q, 1), 1);
	sar_completion done = queue_one(q);
	assert_int_equal(sar_poll(q, &done, 1), 0);
	assert_int_equal(poll(&on, 1, 0), 0);
	assert_int_equal(poll(&on, 1, 60000), 1);
	assert_int_equal(sar_poll(q, &done, 1), 0);
	assert_int_equal(poll(&on, 1, 0), 0);
	sar_queue_close(q);
}

/* Each has its own, which the next poll forgets. */
static void words_of_completions(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 64);
	sar_completion done[64];
	for (unsigned round = 0; round < 2; round++) {
		char hex[2 * SAR_ID_BYTES + 1];
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(sar_submit_get(q, number_id(i), 0, i), 0);
		assert_int_equal(sar_poll_wait(q, done, 64, 64, 20000 * ms), 64);
		for (unsigned i = 0; i < 64; i++) {
			for (unsigned k = 0; k < SAR_ID_BYTES; k++)
				snprintf(hex + 2 * k, 3, "%02x", done[i].id.bytes[k]);
			assert_int_equal(done[i].result, -ENOENT);
			assert_non_null(strstr(sar_completion_detail(q, &done[i]), hex));
		}
	}
	assert_int_equal(sar_poll(q, done + 1, 1), 0);
	assert_string_equal(sar_completion_detail(q, &done[0]), sar_strerror(-ENOENT));
	done[0].result = 0;
	assert_string_equal(sar_completion_detail(q, &done[0]), "");
	sar_queue_close(q);
}

static void full(void **state)
{
	struct client *c = *state;
	sar_queue *q;
	assert_int_equal(sar_queue_open(c->s, 0, &q), -EINVAL);
	assert_int_equal(sar_queue_open(c->s, 65537, &q), -EINVAL);
	q = queue_open(c, 2);
	sar_id ids[3] = {number_id(1), number_id(2), number_id(3)};
	uint64_t users[3] = {1, 2, 3};
	assert_int_equal(sar_submit_gets(q, ids, 3, SAR_FOREVER, users), 2);
	assert_int_equal(sar_submit_get(q, ids[2], SAR_FOREVER, 3), -EAGAIN);
	assert_non_null(strstr(sar_error_detail(), "2 operations are under way"));
	sar_completion done[2];
	assert_int_equal(sar_poll(q, done, 2), 0);
	assert_int_equal(sar_cancel(q, 1), 1);
	assert_int_equal(queue_one(q).user_data, 1);
	assert_int_equal(sar_submit_get(q, ids[2], SAR_FOREVER, 3), 0);
	assert_int_equal(sar_poll_wait(q, done, 2, 2, 10 * ms), 0); /* the time is over */
	sar_queue_close(q);
	wait_for_waits(c, NULL, 0); /* closing ends them at the node as well */
	q = queue_open(c, 2);
	assert_int_equal(sar_poll_wait(q, done, 2, 2, SAR_FOREVER), 0); /* nothing is under way */
	sar_queue_close(q);
}

static void waits_are_ended(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	assert_int_equal(sar_submit_get(q, number_id(1), SAR_FOREVER, 1), 0);
	wait_for_waits(c, q, 1);
	sar_end_waits(c->s);
	assert_int_equal(poll(&on, 1, 60000), 1);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, -ESHUTDOWN);
	assert_int_equal(poll(&on, 1, 0), 0);
	assert_int_equal(sar_submit_get(q, number_id(2), SAR_FOREVER, 2), 0);
	assert_int_equal(queue_one(q).result, -ESHUTDOWN);
	assert_int_equal(sar_submit_put(q, number_id(3), NULL, "abc", 3, 3), 0);
	assert_int_equal(queue_one(q).result, 0);
	sar_queue_close(q);
}

static void in_a_child(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	assert_int_equal(sar_submit_get(q, number_id(1), SAR_FOREVER, 1), 0);
	wait_for_waits(c, q, 1);
	pid_t pid = fork();
	if (pid == 0) {
		sar_completion done;
		bool right = sar_submit_get(q, number_id(2), 0, 2) == -EINVAL &&
			     sar_poll(q, &done, 1) == -EINVAL && sar_cancel(q, 1) == -EINVAL;
		sar_queue_close(q);
		sar_close(c->s);
		_exit(right ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	struct object_id id = number_object(1);
	fake_fetching(&c->fake, &id, 10, 10);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 0);
	sar_release(c->s, &done.buffer);
	sar_queue_close(q);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void check_object(struct client *c, unsigned i, const void *data, uint64_t size)
{
	sar_buffer b;
	assert_int_equal(sar_get(c->s, number_id(i), 0, &b), 0);
	assert_int_equal(b.size, size);
	assert_memory_equal(b.data, data, size);
	sar_release(c->s, &b);
}

static int put_once(sar_queue *q, unsigned i, const void *data, uint64_t size)
{
	assert_int_equal(sar_submit_put(q, number_id(i), "some name", data, size, i), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.op, SAR_OP_PUT);
	assert_int_equal(done.result < 0, *sar_completion_detail(q, &done) != '\0');
	return done.result;
}

static void puts_of_all_sizes(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	static const uint64_t sizes[] = {0, 3, SESSION_PUT_MAX, SESSION_PUT_MAX + 1, 2100000};
	uint8_t *data = test_pattern(2100000);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(put_once(q, i, data, sizes[i]), 0);
		check_object(c, i, data, sizes[i]);
		assert_int_equal(put_once(q, i, data, sizes[i]), 0); /* the same */
		assert_int_equal(put_once(q, i, data, sizes[i] + 1), -EEXIST);
	}
	data[2000000] ^= 1;
	assert_int_equal(put_once(q, 4, data, 2100000), -EEXIST);
	assert_int_equal(sar_submit_put(q, number_id(9), NULL, NULL, 1, 1), -EINVAL);
	char name[SAR_NAME_MAX + 2];
	memset(name, 'x', sizeof(name));
	name[SAR_NAME_MAX + 1] = '\0';
	assert_int_equal(sar_submit_put(q, number_id(9), name, data, 1, 1), -ENAMETOOLONG);
	assert_int_equal(put_once(q, 9, data, FAKE_STORE_BYTES + 1), -ENOSPC);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
	free(data);
}

/* With other bytes nothing is held; what is made new is held from its creation on. */
static void puts_of_bytes_that_exist_join_the_lease(void **state)
{
	struct client *c = *state;
	static const uint64_t sizes[] = {3, SESSION_PUT_MAX + 1};
	sar_queue *q = queue_open(c, 8);
	uint8_t *data = test_pattern(SESSION_PUT_MAX + 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(put_once(q, i, data, sizes[i]), 0);
	assert_int_equal(put_once(q, 0, data, sizes[0]), 0);
	assert_int_equal(sar_set_lease(c->s, 77), 0);
	assert_int_equal(put_once(q, 2, data, sizes[1]), 0);
	assert_int_equal(put_once(q, 0, data + 1, sizes[0]), -EEXIST);
	assert_int_equal(c->fake.requests[SESSION_HOLD], 0);
	for (unsigned i = 0; i < 2; i++) {
		sar_id id = number_id(i);
		assert_int_equal(put_once(q, i, data, sizes[i]), 0);
		assert_int_equal(c->fake.requests[SESSION_HOLD], i + 1);
		assert_int_equal(c->fake.hold.generation, 77);
		assert_int_equal(c->fake.hold.flags, SESSION_FLAG_JOINS);
		assert_memory_equal(c->fake.hold.id.bytes, id.bytes, sizeof(id.bytes));
	}
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
	free(data);
}

static bool hold_too_late(struct fake *f, int conn, const struct session_request *request)
{
	struct object_slot image;
	if (request->op != SESSION_HOLD)
		return false;
	f->hook = NULL;
	fake_state(f, (uint32_t)object_table_find(f->table, &request->id, &image), OBJECT_ZOMBIE);
	struct session_reply reply = fake_reply(request, -ENOENT);
	fake_send(f, conn, &reply, sizeof(reply), NULL, 0);
	return true;
}

/* Deleted after the bytes were compared: it is put once more, and held from then on. */
static void a_put_joins_what_is_deleted_meanwhile(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	uint8_t *data = test_pattern(SESSION_PUT_MAX + 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(put_once(q, i, data, SESSION_PUT_MAX + 1), 0);
		assert_int_equal(sar_set_lease(c->s, 77), 0);
		c->fake.hook = hold_too_late;
		assert_int_equal(
			i == 0 ? put_once(q, i, data, SESSION_PUT_MAX + 1)
			       : sar_put(c->s, number_id(i), NULL, data, SESSION_PUT_MAX + 1),
			0);
		assert_int_equal(c->fake.requests[SESSION_HOLD], i + 1);
		check_object(c, i, data, SESSION_PUT_MAX + 1);
		assert_int_equal(sar_set_lease(c->s, 0), 0);
	}
	sar_queue_close(q);
	free(data);
}

static void puts_of_pieces(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	uint8_t *data = test_pattern(3000000);
	struct iovec iov[5] = {{data, 7}, {NULL, 0}, {data + 7, 100}, {data + 107, 5}, {0}};
	assert_int_equal(sar_submit_put_iov(q, number_id(0), NULL, iov, 4, 0), 0);
	assert_int_equal(queue_one(q).result, 0);
	check_object(c, 0, data, 112);
	iov[4] = (struct iovec){data + 112, 3000000 - 112};
	assert_int_equal(sar_submit_put_iov(q, number_id(1), NULL, iov, 5, 0), 0);
	assert_int_equal(queue_one(q).result, 0);
	check_object(c, 1, data, 3000000);
	assert_int_equal(sar_put_iov(c->s, number_id(2), NULL, iov, 4), 0);
	check_object(c, 2, data, 112);
	iov[4].iov_len = 1000000;
	assert_int_equal(sar_put_iov(c->s, number_id(3), NULL, iov, 5), 0);
	check_object(c, 3, data, 1000112);
	assert_int_equal(sar_put_iov(c->s, number_id(3), NULL, iov, 5), 0); /* compared */
	assert_int_equal(sar_submit_put_iov(q, number_id(3), NULL, iov, 5, 0), 0);
	assert_int_equal(queue_one(q).result, 0);
	sar_queue_close(q);
	free(data);
}

static void puts_at_once(void **state)
{
	enum { COUNT = 50 };
	struct client *c = *state;
	sar_queue *q = queue_open(c, COUNT);
	uint8_t *data = test_pattern(1000);
	static sar_put_item items[COUNT + 1];
	static sar_completion done[COUNT];
	for (unsigned i = 0; i <= COUNT; i++)
		items[i] = (sar_put_item){
			.id = number_id(i), .data = data, .size = 10 * i, .user_data = i};
	assert_int_equal(sar_submit_puts(q, items, COUNT + 1), COUNT);
	assert_int_equal(sar_poll_wait(q, done, COUNT, COUNT, 20000 * ms), COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(done[i].result, 0);
		check_object(c, i, data, 10 * i);
	}
	items[0].reserved[0] = 1;
	assert_int_equal(sar_submit_puts(q, items, 1), -EINVAL);
	sar_queue_close(q);
	free(data);
}

static void create_and_seal(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 8);
	sar_info info;
	assert_int_equal(sar_submit_create(q, number_id(1), "made", 5000, 1), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 0);
	memset(done.buffer.data, 'x', 5000);
	assert_int_equal(sar_submit_seal(q, &done.buffer, 2), 0);
	assert_null(done.buffer.data);
	assert_int_equal(sar_submit_seal(q, &done.buffer, 2), -EINVAL);
	done = queue_one(q);
	assert_int_equal(done.result, 0);
	assert_null(done.buffer.data);
	assert_int_equal(sar_submit_info(q, number_id(1), &info, 3), 0);
	assert_int_equal(queue_one(q).result, 0);
	assert_int_equal(info.size, 5000);
	assert_int_equal(sar_submit_delete(q, number_id(1), 4), 0);
	assert_int_equal(queue_one(q).result, 0);
	assert_int_equal(sar_submit_delete(q, number_id(1), 4), 0);
	assert_int_equal(queue_one(q).result, -ENOENT);

	assert_int_equal(sar_submit_create(q, number_id(2), NULL, 5000, 1), 0);
	done = queue_one(q);
	struct object_id id = number_object(2);
	struct object_slot image;
	fake_delete(&c->fake, (uint32_t)object_table_find(c->fake.table, &id, &image));
	assert_int_equal(sar_submit_seal(q, &done.buffer, 2), 0);
	done = queue_one(q);
	assert_int_equal(done.result, -ESTALE);
	assert_non_null(done.buffer.data); /* the user's again */
	sar_abort(c->s, &done.buffer);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* ---- many objects --------------------------------------------------------------------------- */

static void gathered(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 5);
	sar_id ids[4];
	sar_buffer out[4];
	for (unsigned i = 0; i < 4; i++)
		ids[i] = number_id(i);
	assert_int_equal(sar_submit_gather(q, ids, 5, 0, out, 1), -EAGAIN);
	assert_int_equal(sar_submit_gather(q, ids, 4, SAR_FOREVER, out, 1), 0);
	for (unsigned i = 0; i < 4; i++) {
		sar_completion done;
		struct object_id id = number_object(i);
		assert_int_equal(sar_poll(q, &done, 1), 0);
		fake_fetching(&c->fake, &id, 100 + i, 100 + i);
	}
	assert_int_equal(queue_one(q).result, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(out[i].size, 100 + i);
		assert_true(is_pattern(&out[i]));
		sar_release(c->s, &out[i]);
	}
	assert_int_equal(sar_gather(c->s, ids, 4, 0, out), 0);
	for (unsigned i = 0; i < 4; i++)
		sar_release(c->s, &out[i]);
	ids[2] = number_id(99);
	assert_int_equal(sar_submit_gather(q, ids, 4, 20 * ms, out, 2), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, -ETIMEDOUT);
	assert_memory_equal(&done.id, &ids[2], sizeof(sar_id)); /* which one has failed */
	assert_int_equal(sar_submit_gather(q, ids, 4, SAR_FOREVER, out, 3), 0);
	assert_int_equal(sar_cancel(q, 3), 1);
	assert_int_equal(queue_one(q).result, -ECANCELED);
	assert_int_equal(sar_gather(c->s, ids, 4, 0, out), -ENOENT);
	assert_int_equal(sar_gather(c->s, ids, 0, 0, out), -EINVAL);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void reduced(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 3);
	sar_id sources[3] = {number_id(1), number_id(2), number_id(3)};
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32, .num = 2};
	assert_int_equal(sar_submit_reduce(q, number_id(9), "sum", sources, 3, &how, 0, 1),
			 -EINVAL);
	assert_int_equal(
		sar_submit_reduce(q, number_id(9), "sum", sources, 3, &how, SAR_FOREVER, 1), 0);
	sar_completion done = queue_one(q);
	assert_int_equal(done.result, 2);
	assert_int_equal(c->fake.reduce.reduction.op, SAR_SUM);

	how.num = 0;
	assert_int_equal(
		sar_submit_allreduce(q, number_id(8), "all", sources, 3, &how, SAR_FOREVER, 2), 0);
	done = queue_one(q);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.buffer.size, FAKE_REDUCED_BYTES);
	assert_true(is_pattern(&done.buffer));
	assert_true(c->fake.reduce.flags & SESSION_FLAG_ALLREDUCE);
	sar_release(c->s, &done.buffer);
	sar_buffer b; /* another participant: it is there already */
	assert_int_equal(
		sar_allreduce(c->s, number_id(8), "all", sources, 3, &how, SAR_FOREVER, &b), 0);
	assert_true(is_pattern(&b));
	sar_release(c->s, &b);
	sources[1] = number_id(7);
	assert_int_equal(
		sar_allreduce(c->s, number_id(8), "all", sources, 3, &how, SAR_FOREVER, &b),
		-EEXIST);
	assert_non_null(strstr(sar_error_detail(), "not the result of these sources"));
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* Of another participant, whose reduce fails before it is asked about. */
static bool hook_another_fails(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op != SESSION_REDUCE || atomic_load(&f->requests[SESSION_REDUCE]) > 1)
		return false;
	fake_status(f, conn, request, -EEXIST);
	return true;
}

static void an_allreduce_begins_again_when_another_has_failed(void **state)
{
	struct client *c = *state;
	sar_id sources[2] = {number_id(1), number_id(2)};
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	sar_buffer b;
	c->fake.hook = hook_another_fails;
	assert_int_equal(
		sar_allreduce(c->s, number_id(8), "all", sources, 2, &how, SAR_FOREVER, &b), 0);
	assert_true(is_pattern(&b));
	assert_int_equal(atomic_load(&c->fake.requests[SESSION_REDUCE]), 2);
	sar_release(c->s, &b);
	c->fake.hook = NULL;
}

/* Of a reduce that began when the target was made and the reduce of the others was over. */
static bool hook_made_before(struct fake *f, int conn, const struct session_request *request)
{
	if (request->op == SESSION_REDUCE)
		fake_status(f, conn, request, 0);
	else if (request->op == SESSION_REDUCED)
		fake_status(f, conn, request,
			    request->flags & SESSION_FLAG_PROGRESS ? -ENODATA : -EEXIST);
	else
		return false;
	return true;
}

static void an_allreduce_that_comes_late_takes_the_target(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 3);
	sar_id sources[2] = {number_id(1), number_id(2)};
	sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32};
	struct object_id target = number_object(8);
	sar_completion done;
	c->fake.hook = hook_made_before;
	assert_int_equal(
		sar_submit_allreduce(q, number_id(8), "all", sources, 2, &how, SAR_FOREVER, 1), 0);
	while (atomic_load(&c->fake.requests[SESSION_REDUCED]) < 2)
		assert_int_equal(sar_poll(q, &done, 1), 0);
	fake_fetching(&c->fake, &target, 100, 100);
	done = queue_one(q);
	assert_int_equal(done.result, 0);
	assert_true(is_pattern(&done.buffer));
	sar_release(c->s, &done.buffer);
	c->fake.hook = NULL;
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void broadcast(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 3);
	uint32_t nodes[3] = {3, 1, 2};
	struct object_id id = number_object(1);
	fake_fetching(&c->fake, &id, 100, 100);
	assert_int_equal(sar_submit_broadcast(q, number_id(1), nodes, 3, SAR_FOREVER, 1), 0);
	assert_int_equal(queue_one(q).result, 0);
	assert_memory_equal(c->fake.broadcast, nodes, sizeof(nodes));
	assert_int_equal(sar_broadcast(c->s, number_id(2), nodes, 1, 10 * ms), -ETIMEDOUT);
	assert_int_equal(sar_submit_broadcast(q, number_id(1), nodes, 1025, 0, 1), -EINVAL);
	sar_queue_close(q);
}

/* ---- another control ------------------------------------------------------------------------ */

static void control_killed(void **state)
{
	enum { COUNT = 100 };
	struct client *c = *state;
	sar_queue *q = queue_open(c, COUNT + 1);
	struct pollfd on = {.fd = sar_fd(q), .events = POLLIN};
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(sar_submit_get(q, number_id(i), SAR_FOREVER, i), 0);
	wait_for_waits(c, q, COUNT);
	fake_kill(&c->fake);
	sar_completion done;
	assert_int_equal(poll(&on, 1, 60000), 1);
	assert_int_equal(sar_poll(q, &done, 1), 0); /* none of them has failed */
	assert_int_equal(sar_submit_get(q, number_id(0), 50 * ms, 1000), 0);
	done = queue_one(q);
	assert_int_equal(done.user_data, 1000);
	assert_int_equal(done.result, -ENOTCONN);
	fake_restart(&c->fake, true);
	unsigned served = atomic_load(&c->fake.requests[SESSION_GET]) + COUNT;
	for (unsigned i = 0; i < 60000 && atomic_load(&c->fake.requests[SESSION_GET]) < served;
	     i++) {
		poll(&on, 1, 1);
		assert_int_equal(sar_poll(q, &done, 1), 0);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		struct object_id id = number_object(i);
		fake_fetching(&c->fake, &id, 10 + i, 10 + i);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(poll(&on, 1, 60000), 1);
		if (sar_poll(q, &done, 1) == 0) {
			i--;
			continue;
		}
		assert_int_equal(done.result, 0);
		assert_int_equal(done.buffer.size, 10 + done.user_data);
		sar_release(c->s, &done.buffer);
	}
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* A put goes on at the next control, and so does what was being created. */
static void control_killed_in_a_put(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 4);
	uint8_t *data = test_pattern(6000000);
	c->fake.mute = SESSION_SEAL;
	assert_int_equal(sar_submit_put(q, number_id(1), NULL, data, 6000000, 1), 0);
	sar_completion done;
	for (int i = 0; i < 60000 && atomic_load(&c->fake.requests[SESSION_SEAL]) == 0; i++) {
		assert_int_equal(sar_poll(q, &done, 1), 0);
		usleep(1000);
	}
	fake_kill(&c->fake);
	c->fake.mute = 0;
	fake_restart(&c->fake, true);
	assert_int_equal(queue_one(q).result, 0);
	check_object(c, 1, data, 6000000);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
	free(data);
}

/* ---- closing, threads ----------------------------------------------------------------------- */

static void closed_with_all_under_way(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 64);
	uint8_t *data = test_pattern(3000000);
	static sar_buffer out[2];
	sar_id ids[2] = {number_id(1), number_id(50)};
	struct object_id id = number_object(1);
	fake_fetching(&c->fake, &id, 100, 100);
	assert_int_equal(sar_submit_get(q, number_id(1), SAR_FOREVER, 1), 0);  /* done */
	assert_int_equal(sar_submit_get(q, number_id(51), SAR_FOREVER, 1), 0); /* waits */
	assert_int_equal(sar_submit_gather(q, ids, 2, SAR_FOREVER, out, 2), 0);
	ids[1] = ids[0];
	assert_int_equal(sar_submit_gather(q, ids, 2, SAR_FOREVER, out, 2), 0);
	assert_int_equal(sar_submit_put(q, number_id(2), NULL, data, 3000000, 3), 0);
	assert_int_equal(sar_submit_put(q, number_id(3), NULL, data, 3, 3), 0);
	assert_int_equal(sar_submit_create(q, number_id(4), NULL, 100, 3), 0);
	wait_for_requests(c, SESSION_CREATE, 2);
	sar_queue_close(q);
	free(data);
	sar_buffer b; /* answers come first: the late ones have been dealt with */
	assert_int_equal(sar_get(c->s, number_id(3), 20000 * ms, &b), 0);
	sar_release(c->s, &b);
	assert_int_equal(sar_delete(c->s, number_id(3)), 0);
	for (int i = 0; i < 60000 && atomic_load(&c->fake.aborts) < 2; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&c->fake.aborts), 2);
	wait_for_waits(c, NULL, 0);
	assert_int_equal(fake_pins(&c->fake), 0);
}

struct receiver {
	struct client *c;
	pthread_t thread;
	unsigned first;
};

static void *reader_run(void *arg)
{
	struct receiver *g = arg;
	for (unsigned i = 0; i < 50; i++) {
		sar_buffer b;
		if (sar_get(g->c->s, number_id(g->first + i), 20000 * ms, &b) != 0)
			return NULL;
		sar_release(g->c->s, &b);
	}
	return g;
}

/* Callers that wait and a queue read answers for each other. */
static void beside_callers_that_wait(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c, 100);
	struct receiver g[2] = {{.c = c, .first = 0}, {.c = c, .first = 50}};
	static sar_completion done[100];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&g[i].thread, NULL, reader_run, &g[i]), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(sar_submit_get(q, number_id(i), SAR_FOREVER, i), 0);
	for (unsigned i = 0; i < 100; i++) {
		struct object_id id = number_object(i);
		fake_fetching(&c->fake, &id, 100, 100);
	}
	assert_int_equal(sar_poll_wait(q, done, 100, 100, 20000 * ms), 100);
	for (int i = 0; i < 2; i++) {
		void *right;
		pthread_join(g[i].thread, &right);
		assert_non_null(right);
	}
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(done[i].result, 0);
		sar_release(c->s, &done[i].buffer);
	}
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(complete_here_completes_at_once),
		test_client(what_arrives_is_one_request),
		test_client(what_went_to_a_file_is_asked_for_again),
		test_client(many_gets_woken_by_the_descriptor),
		test_client(more_than_the_node_takes),
		test_client(more_than_there_are_buffers),
		test_client(a_seal_gives_its_buffer_to_a_get),
		test_client(a_wait_for_a_part),
		test_client(cancelled),
		test_client(late),
		test_client(a_limit_of_what_has_ended),
		test_client(words_of_completions),
		test_client(full),
		test_client(waits_are_ended),
		test_client(in_a_child),
		test_client(puts_of_all_sizes),
		test_client(puts_of_bytes_that_exist_join_the_lease),
		test_client(a_put_joins_what_is_deleted_meanwhile),
		test_client(puts_of_pieces),
		test_client(puts_at_once),
		test_client(create_and_seal),
		test_client(gathered),
		test_client(reduced),
		test_client(an_allreduce_begins_again_when_another_has_failed),
		test_client(an_allreduce_that_comes_late_takes_the_target),
		test_client(broadcast),
		test_client(control_killed),
		test_client(control_killed_in_a_put),
		test_client(closed_with_all_under_way),
		test_client(beside_callers_that_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
