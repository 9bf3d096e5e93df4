/* SPDX-License-Identifier: BSD-3-Clause */
/* sar_device_get, sar_device_put and sar_device_register, with a fake node and a stand-in for the
 * CUDA driver. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "fixtures/client_test.h"
#include "fixtures/cuda/standin.h"
#include "sarissa/device.h"

static const int64_t ms = 1000000;

enum { SIZE = 3000001, LARGE = 7 << 20 };

static int device_setup(void **state)
{
	standin_fail(NULL, 0, 0);
	standin_read_only(1);
	return client_setup(state);
}

/* Whatever a test has done, nothing of the driver's is left when the handle is closed. */
static int device_teardown(void **state)
{
	int r = client_teardown(state);
	standin_fail(NULL, 0, 0);
	return r || standin_left();
}

#define test_device(name) cmocka_unit_test_setup_teardown(name, device_setup, device_teardown)

static uint64_t device_memory(uint64_t bytes)
{
	uint64_t at;
	assert_int_equal(cuMemAlloc_v2(&at, bytes), 0);
	return at;
}

static bool device_has(uint64_t at, uint64_t bytes)
{
	const uint8_t *memory = (const uint8_t *)(uintptr_t)at;
	for (uint64_t i = 0; i < bytes; i++)
		if (memory[i] != fake_pattern(i))
			return false;
	return true;
}

static void device_put_here(struct client *c, const char *name, uint64_t bytes)
{
	uint8_t *data = test_pattern(bytes);
	assert_int_equal(sar_put(c->s, test_id(name), name, data, bytes), 0);
	free(data);
}

static void an_object_comes_to_the_device(void **state)
{
	struct client *c = *state;
	uint64_t size = 0, at = device_memory(SIZE);
	unsigned registered = standin_calls("cuMemHostRegister_v2");
	device_put_here(c, "here", SIZE);
	assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE, NULL, 0, &size), 0);
	assert_int_equal(size, SIZE);
	assert_true(device_has(at, SIZE));
	assert_int_equal(fake_pins(&c->fake), 0);
	assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE, NULL, 0, NULL), 0);
	assert_int_equal(standin_calls("cuMemHostRegister_v2"), registered + 1);
	assert_int_equal(standin_registered(), FAKE_STORE_BYTES);
	cuMemFree_v2(at);
}

struct device_arrival {
	struct client *c;
	uint64_t memory;
	int64_t timeout_ns;
	int result;
};

static void *device_arrive(void *arg)
{
	struct device_arrival *a = arg;
	a->result = sar_device_get(a->c->s, test_id("far"), a->memory, LARGE, NULL, a->timeout_ns,
				   NULL);
	return NULL;
}

static void device_await(const char *call, unsigned calls)
{
	while (standin_calls(call) < calls)
		usleep(1000);
}

/* The device has the first pieces before the object is complete. */
static void pieces_are_copied_as_they_arrive(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("far");
	uint32_t slot = fake_fetching(&c->fake, &id, LARGE, 0);
	struct device_arrival a = {
		.c = c, .memory = device_memory(LARGE), .timeout_ns = SAR_FOREVER};
	unsigned copies = standin_calls("cuMemcpyHtoDAsync_v2");
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, device_arrive, &a), 0);
	fake_advance(&c->fake, slot, 2 << 20);
	device_await("cuMemcpyHtoDAsync_v2", copies + 1);
	assert_true(fake_pinned(&c->fake, slot));
	fake_advance(&c->fake, slot, (5 << 20) + 7);
	device_await("cuMemcpyHtoDAsync_v2", copies + 2);
	fake_advance(&c->fake, slot, LARGE);
	pthread_join(thread, NULL);
	assert_int_equal(a.result, 0);
	assert_true(device_has(a.memory, LARGE));
	assert_int_equal(standin_calls("cuMemcpyHtoDAsync_v2"), copies + 3);
	cuMemFree_v2(a.memory);
}

/* The bytes stay in use until copies that have begun are done: the stand-in makes them last. */
static void a_timeout_waits_for_the_copies(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("far");
	uint32_t slot = fake_fetching(&c->fake, &id, LARGE, 3 << 20);
	struct device_arrival a = {.c = c, .memory = device_memory(LARGE), .timeout_ns = 50 * ms};
	device_arrive(&a);
	assert_int_equal(a.result, SAR_E_TIMED_OUT);
	assert_true(device_has(a.memory, 3 << 20));
	assert_false(fake_pinned(&c->fake, slot));
	cuMemFree_v2(a.memory);
}

static void a_store_that_cannot_be_registered_is_read_all_the_same(void **state)
{
	struct client *c = *state;
	uint64_t at = device_memory(SIZE);
	unsigned copies = standin_calls("cuMemcpyHtoD_v2");
	device_put_here(c, "here", SIZE);
	standin_read_only(0);
	assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE, NULL, 0, NULL), 0);
	assert_true(device_has(at, SIZE));
	assert_int_equal(standin_calls("cuMemcpyHtoD_v2"), copies + 1);
	assert_int_equal(sar_device_register(c->s, 0), SAR_E_DEVICE);
	assert_non_null(strstr(sar_error_detail(), "does not register the store: CUDA error 1"));
	cuMemFree_v2(at);
}

static void the_store_is_registered_when_asked(void **state)
{
	struct client *c = *state;
	assert_int_equal(sar_device_register(c->s, 7), SAR_E_NO_DEVICE);
	assert_int_equal(sar_device_register(c->s, 0), 0);
	assert_int_equal(sar_device_register(c->s, 0), 0);
	assert_int_equal(standin_registered(), FAKE_STORE_BYTES);
}

/* A lost store stays registered as long as it is mapped; the next one is registered as well. */
static void another_store_is_registered_too(void **state)
{
	struct client *c = *state;
	uint64_t at = device_memory(SIZE);
	device_put_here(c, "here", SIZE);
	assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE, NULL, 0, NULL), 0);
	fake_kill(&c->fake);
	fake_restart(&c->fake, false);
	device_put_here(c, "again", SIZE);
	memset((void *)(uintptr_t)at, 0, SIZE);
	assert_int_equal(sar_device_get(c->s, test_id("again"), at, SIZE, NULL, 0, NULL), 0);
	assert_true(device_has(at, SIZE));
	assert_int_equal(standin_registered(), 2 * FAKE_STORE_BYTES);
	cuMemFree_v2(at);
}

static void failures_have_names(void **state)
{
	struct client *c = *state;
	uint8_t plain[8];
	uint64_t size = 77, at = device_memory(SIZE);
	device_put_here(c, "here", SIZE);
	assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE - 1, NULL, 0, &size),
			 SAR_E_RANGE);
	assert_int_equal(size, 77);
	assert_int_equal(sar_device_get(c->s, test_id("none"), at, SIZE, NULL, 0, NULL),
			 SAR_E_NOT_FOUND);
	assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE, NULL, -1, NULL),
			 SAR_E_INVALID);
	assert_int_equal(sar_device_get(c->s, test_id("here"), (uintptr_t)plain, 8, NULL, 0, NULL),
			 SAR_E_INVALID);
	assert_non_null(strstr(sar_error_detail(), "is no memory of a GPU"));
	static const char *const calls[] = {"cuMemcpyHtoDAsync_v2", "cuEventSynchronize",
					    "cuEventRecord",	    "cuEventCreate",
					    "cuCtxPushCurrent_v2",  "cuDevicePrimaryCtxRetain"};
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		standin_fail(calls[i], 801, 0);
		assert_int_equal(sar_device_get(c->s, test_id("here"), at, SIZE, NULL, 0, NULL),
				 SAR_E_DEVICE);
		assert_non_null(strstr(sar_error_detail(), "801, CUDA_ERROR_NOT_SUPPORTED"));
		assert_int_equal(fake_pins(&c->fake), 0);
	}
	cuMemFree_v2(at);
}

static void an_object_is_made_of_memory_of_the_device(void **state)
{
	struct client *c = *state;
	sar_buffer b;
	uint64_t at = device_memory(LARGE);
	for (uint64_t i = 0; i < LARGE; i++)
		((uint8_t *)(uintptr_t)at)[i] = fake_pattern(i);
	const uint64_t sizes[] = {5, 4 << 20, (4 << 20) + 1};
	for (unsigned i = 0; i < 3; i++) {
		sar_id id = sar_id_of(&i, sizeof(i));
		assert_int_equal(sar_device_put(c->s, id, "made", at, sizes[i], NULL, NULL), 0);
		assert_int_equal(sar_get(c->s, id, 0, &b), 0);
		assert_int_equal(b.size, sizes[i]);
		assert_true(device_has((uintptr_t)b.data, b.size));
		sar_release(c->s, &b);
		assert_int_equal(sar_delete(c->s, id), 0);
		c->fake.used = 0; /* of the store: the fake does not reuse it */
	}
	assert_int_equal(sar_device_put(c->s, test_id("twice"), "twice", at, 9, NULL, NULL), 0);
	assert_int_equal(sar_device_put(c->s, test_id("twice"), "twice", at, 9, NULL, NULL),
			 SAR_E_EXISTS);
	assert_int_equal(sar_device_put(c->s, test_id("none"), "none", 0, 0, NULL, NULL), 0);
	cuMemFree_v2(at);
}

static void a_put_that_fails_leaves_nothing(void **state)
{
	struct client *c = *state;
	uint64_t at = device_memory(LARGE);
	sar_info info;
	static const char *const calls[] = {"cuMemcpyDtoHAsync_v2", "cuEventSynchronize",
					    "cuMemHostAlloc", "cuEventCreate"};
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		standin_fail(calls[i], 801, i < 2 ? 1 : 0);
		assert_int_equal(
			sar_device_put(c->s, test_id("bad"), "bad", at, 6 << 20, NULL, NULL),
			SAR_E_DEVICE);
		assert_int_equal(sar_info_get(c->s, test_id("bad"), &info), SAR_E_NOT_FOUND);
		assert_int_equal(fake_pins(&c->fake), 0);
		c->fake.used = 0; /* of the store: the fake does not reuse it */
	}
	assert_int_equal(sar_device_put(c->s, test_id("bad"), "bad", at + LARGE, 1, NULL, NULL),
			 SAR_E_INVALID);
	cuMemFree_v2(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_device(an_object_comes_to_the_device),
		test_device(pieces_are_copied_as_they_arrive),
		test_device(a_timeout_waits_for_the_copies),
		test_device(a_store_that_cannot_be_registered_is_read_all_the_same),
		test_device(the_store_is_registered_when_asked),
		test_device(another_store_is_registered_too),
		test_device(failures_have_names),
		test_device(an_object_is_made_of_memory_of_the_device),
		test_device(a_put_that_fails_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
