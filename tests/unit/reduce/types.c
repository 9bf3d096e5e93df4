/* SPDX-License-Identifier: BSD-3-Clause */
/* The sources of a reduce have one type, shape and size, and the request asks for that type; what
 * differs is named at once, at all who wait. Whole nodes, also those where the node that asks
 * coordinates (control_reduces.h). */
#include <errno.h>
#include "core/reduce/coordinator/wrong.h"
#include "fixtures/control_reduces.h"
#include "internal/array_meta.h"

enum { READER = OWNER };

/* Added up by the directory; streamed. */
static const uint64_t elements[] = {256, 500000};

static struct array_meta array_of(uint32_t dtype, uint64_t rows, uint64_t columns)
{
	struct array_meta a = {.dtype = dtype, .order = 'C', .dims = 2, .shape = {rows, columns}};

	strcpy(a.text, dtype ? array_meta_numpy(dtype) : ">f4");
	return a;
}

/* Source i, on node i; a NULL: bytes that do not say what they are. */
static void put_typed(struct world *w, uint32_t i, const struct array_meta *a, uint64_t size)
{
	struct session_request r, seal = world_request(SESSION_SEAL, NULL);
	struct world_reply *got;
	char name[8];

	snprintf(name, sizeof(name), "a%u", i);
	r = world_request(SESSION_CREATE, name);
	r.size = size;
	r.pin = 7;
	if (a)
		assert_true(array_meta_write(a, &r.meta));
	got = world_call(w, i, 0, &r, LONG);
	assert_non_null(got);
	if (got->reply.status)
		fail_msg("create: %s", got->reply.text);
	world_fill(w->node[i].store + got->reply.offset, size, i + 1);
	seal.slot = got->reply.slot;
	seal.generation = got->reply.generation;
	assert_int_equal(world_call(w, i, 0, &seal, LONG)->reply.status, 0);
}

static struct session_reduction of_type(uint32_t dtype)
{
	return (struct session_reduction){.op = REDUCE_SUM, .dtype = dtype, .count = SOURCES};
}

static void says(const struct world_reply *a, const char *const words[], unsigned count)
{
	assert_non_null(a);
	assert_int_equal(a->reply.status, -EINVAL);
	for (unsigned i = 0; i < count; i++)
		if (!strstr(a->reply.text, words[i]))
			fail_msg("'%s' does not say '%s'", a->reply.text, words[i]);
}

static void nothing_is_made(struct world *w)
{
	struct session_request r = world_request(SESSION_STAT, target);

	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(world_call(w, CALLER, 0, &r, LONG)->reply.status, -ENOENT);
}

/* All but one are `usual`; the last is `odd`. It is there before the reduce, or comes later. */
static void refused(const struct array_meta *usual, uint64_t usual_size,
		    const struct array_meta *odd, uint64_t odd_size, uint32_t dtype,
		    const char *const words[], unsigned count)
{
	for (int late = 0; late < 2; late++) {
		struct world *w = reducing(0);
		struct session_request get = world_request(SESSION_GET, target);
		struct session_request end = world_request(SESSION_REDUCED, target);
		uint32_t asked, got, ended;
		uint64_t put_ns;

		for (uint32_t i = 0; i + 1 < SOURCES; i++)
			put_typed(w, i, usual, usual_size);
		if (!late)
			put_typed(w, SOURCES - 1, odd, odd_size);
		asked = world_reduce_send(w, CALLER, 0, target, ids, of_type(dtype), 0, -1);
		if (!late) {
			says(world_wait(w, CALLER, asked, LONG), words, count);
			nothing_is_made(w);
			world_end(w);
			continue;
		}
		assert_int_equal(world_wait(w, CALLER, asked, LONG)->reply.status, 0);
		get.timeout_ns = end.timeout_ns = -1;
		got = world_send(w, READER, 0, &get);
		ended = world_send(w, CALLER, 0, &end);
		world_run(w, WORLD_SECOND);
		put_ns = w->now_ns;
		put_typed(w, SOURCES - 1, odd, odd_size);
		says(world_wait(w, CALLER, ended, LONG), words, count);
		says(world_wait(w, READER, got, LONG), words, count);
		assert_in_range(w->now_ns - put_ns, 0, SOON_NS);
		nothing_is_made(w);
		world_end(w);
	}
}

/* [G1.8] */
static void arrays_of_other_types_are_named(void **state)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct array_meta f32 = array_of(REDUCE_F32, 4, elements[k] / 4);
		struct array_meta i32 = array_of(REDUCE_I32, 4, elements[k] / 4);
		uint64_t size = 4 * elements[k];

		refused(&f32, size, &i32, size, REDUCE_F32,
			(const char *[]){"'a4' is i32[4,", " is f32[4,", "asks for f32"}, 3);
		refused(&f32, size, &i32, size, 0,
			(const char *[]){"'a4'", "i32[4,", "f32[4,", "have one type"}, 4);
	}
}

static void other_shapes_and_orders_are_named(void **state)
{
	struct array_meta tall = array_of(REDUCE_F64, 250, 2), wide = array_of(REDUCE_F64, 2, 250);
	struct array_meta fortran = tall, flat = array_of(REDUCE_F64, 500, 1);

	fortran.order = 'F';
	flat.dims = 1;
	refused(&tall, 4000, &wide, 4000, REDUCE_F64,
		(const char *[]){"'a4' is f64[2,250]", "is f64[250,2]"}, 2);
	refused(&tall, 4000, &fortran, 4000, 0,
		(const char *[]){"'a4' is f64[250,2]F", "is f64[250,2]"}, 2);
	refused(&tall, 4000, &flat, 4000, 0, (const char *[]){"'a4' is f64[500]", "f64[250,2]"}, 2);
	wide = array_of(REDUCE_F64, 250, 3);
	refused(&tall, 4000, &wide, 6000, REDUCE_F64,
		(const char *[]){"'a4' is f64[250,3]", "is f64[250,2]"}, 2);
}

static void other_types_and_bytes_are_named(void **state)
{
	struct array_meta f32 = array_of(REDUCE_F32, 10, 100), big = array_of(0, 10, 100);

	refused(&f32, 4000, &big, 4000, REDUCE_F32, (const char *[]){"'a4' is >f4[10,100]"}, 1);
	refused(NULL, 4000, NULL, 4008, REDUCE_F64,
		(const char *[]){"'a4' has 4008 bytes", "has 4000 bytes", "one size"}, 3);
}

/* Unless a type is asked for. */
static void bytes_among_arrays_are_named(void **state)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct array_meta f32 = array_of(REDUCE_F32, 4, elements[k] / 4);
		uint64_t size = 4 * elements[k];

		refused(&f32, size, NULL, size, 0, (const char *[]){"'a4' has", "bytes"}, 2);
	}
}

static void refused_at_once(const struct array_meta *a, uint64_t size, uint32_t dtype,
			    const char *const words[], unsigned count)
{
	struct world *w = reducing(0);
	uint32_t asked;

	for (uint32_t i = 0; i < SOURCES; i++)
		put_typed(w, i, a, size);
	asked = world_reduce_send(w, CALLER, 0, target, ids, of_type(dtype), 0, -1);
	says(world_wait(w, CALLER, asked, LONG), words, count);
	nothing_is_made(w);
	world_end(w);
}

static void a_request_asks_for_the_type_of_the_arrays(void **state)
{
	struct array_meta i64 = array_of(REDUCE_I64, 2, 1), empty = array_of(REDUCE_F32, 0, 7);

	refused_at_once(&i64, 16, REDUCE_I8,
			(const char *[]){"i64[2,1]", "asks for i8", "numpy's i8 is i64"}, 3);
	refused_at_once(&empty, 0, REDUCE_I32, (const char *[]){"f32[0,7]", "asks for i32"}, 2);
	refused_at_once(NULL, 1002, REDUCE_F32, (const char *[]){"1002 bytes", "4 of f32"}, 2);
	refused_at_once(NULL, 1000, 0, (const char *[]){"1000 bytes", "name the dtype", "--dtype"},
			3);
	refused_at_once(NULL, 1000, REDUCE_DTYPE_END, (const char *[]){"unknown element type"}, 1);
}

/* Without a dtype, too; on each way to the result, and with a source that says nothing. */
static void the_result_is_described_as_its_sources(void **state)
{
	for (uint32_t k = 0; k < 8; k++) {
		uint64_t count = elements[k & 1];
		struct array_meta a = array_of(REDUCE_U32, 2, count / 2), back;
		struct world *w = reducing(0);
		struct session_request get = world_request(SESSION_GET, target);
		struct session_request stat = world_request(SESSION_STAT, target);
		struct object_meta told;
		struct world_reply *got;

		get.timeout_ns = LONG;
		for (uint32_t i = 0; i < SOURCES; i++)
			put_typed(w, i, k & 4 && i == 2 ? NULL : &a, 4 * count);
		assert_int_equal(world_reduce(w, CALLER, 0, target, ids,
					      of_type(k & 4 ? REDUCE_U32 : 0),
					      k & 2 ? SESSION_FLAG_ALLREDUCE : 0, -1),
				 0);
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), SOURCES);
		for (uint32_t i = 0; i < NODES; i++) {
			const uint8_t *bytes;
			uint64_t size;

			got = world_call(w, i, 0, &get, LONG);
			assert_int_equal(got->reply.status, 0);
			told = world_meta(w, i, got->reply.slot);
			assert_true(array_meta_read(&told, &back));
			assert_memory_equal(&back, &a, sizeof(a));
			assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &size), 0);
			assert_true(world_sums(bytes, size, (1 << SOURCES) - 1));
		}
		got = world_call(w, CALLER, 0, &stat, LONG);
		assert_true(array_meta_read(&got->object.meta, &back));
		for (uint32_t i = 0; i < NODES; i++)
			world_unpin(w, i, 0);
		world_end(w);
	}
}

/* Of bytes, which do not say what they are: the participants do. */
static void participants_ask_for_the_same(void **state)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct session_reduction first = of_type(REDUCE_F32), second = first;
		struct session_request end = world_request(SESSION_REDUCED, target);
		const char *types[] = {"f32", "i32"}, *ops[] = {"sum", "max"};
		struct world *w = reducing(0);
		uint32_t one, two;

		if (k)
			second.op = REDUCE_MAX;
		else
			second.dtype = REDUCE_I32;
		end.timeout_ns = -1;
		put_typed(w, 0, NULL, 4000);
		assert_int_equal(
			world_reduce(w, 0, 0, target, ids, first, SESSION_FLAG_ALLREDUCE, -1), 0);
		one = world_send(w, 0, 0, &end);
		two = world_reduce_send(w, 1, 0, target, ids, second, SESSION_FLAG_ALLREDUCE, -1);
		says(world_wait(w, 1, two, LONG), k ? ops : types, 2);
		says(world_wait(w, 0, one, LONG), k ? ops : types, 2);
		world_end(w);
	}
}

/* One who is no participant is refused, and ends nothing. */
static void another_request_is_refused_alone(void **state)
{
	struct session_reduction less = of_type(REDUCE_F32);
	struct world *w = reducing(0);
	uint32_t two;

	less.count = SOURCES - 1;
	assert_int_equal(world_reduce(w, 0, 0, target, ids, of_type(REDUCE_F32), 0, -1), 0);
	two = world_reduce_send(w, 1, 0, target, ids, of_type(REDUCE_I32), 0, -1);
	assert_int_equal(world_wait(w, 1, two, LONG)->reply.status, -EEXIST);
	two = world_reduce_send(w, 1, 0, target, ids, less, SESSION_FLAG_ALLREDUCE, -1);
	assert_int_equal(world_wait(w, 1, two, LONG)->reply.status, -EEXIST);
	for (uint32_t i = 0; i < SOURCES; i++)
		put_typed(w, i, NULL, 4000);
	assert_int_equal(world_reduced(w, 0, 0, target, LONG, NULL), SOURCES);
	world_end(w);
}

/* In whatever order; each counts, and none may stand twice. */
static void all_of_many_sources_count(void **state)
{
	static struct object_id named[MESSAGE_SOURCES_MAX];
	static struct reduce_source of[MESSAGE_SOURCES_MAX];
	const uint32_t count = MESSAGE_SOURCES_MAX, at[] = {0, count / 2, count - 1};
	const struct message_reduce m = {
		.op = REDUCE_SUM, .num = count, .count = count, .sources = named};
	const struct reduce r = {.want.op = REDUCE_SUM, .from = {.source = of, .count = count}};
	struct text why;

	for (uint32_t i = 0; i < count; i++) {
		char name[8];

		snprintf(name, sizeof(name), "m%u", i);
		named[i] = of[count - 1 - i].id = world_id(name);
	}
	assert_null(reduce_wrong(&m));
	assert_int_equal(reduce_differs(&r, &m, &why), REDUCE_SAME);
	for (uint32_t k = 0; k < 3; k++) {
		const struct object_id own = named[at[k]];

		named[at[k]] = world_id("another");
		assert_null(reduce_wrong(&m));
		assert_int_equal(reduce_differs(&r, &m, &why), REDUCE_OTHER_SOURCES);
		for (uint32_t i = 0; i < count; i += 73) {
			if (i == at[k])
				continue;
			named[at[k]] = named[i];
			assert_non_null(strstr(reduce_wrong(&m), "twice"));
		}
		named[at[k]] = own;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_of_other_types_are_named),
		cmocka_unit_test(other_shapes_and_orders_are_named),
		cmocka_unit_test(other_types_and_bytes_are_named),
		cmocka_unit_test(bytes_among_arrays_are_named),
		cmocka_unit_test(a_request_asks_for_the_type_of_the_arrays),
		cmocka_unit_test(the_result_is_described_as_its_sources),
		cmocka_unit_test(participants_ask_for_the_same),
		cmocka_unit_test(another_request_is_refused_alone),
		cmocka_unit_test(all_of_many_sources_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
