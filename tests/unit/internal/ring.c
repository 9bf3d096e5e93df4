/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record rings: what is put in comes out, also where the indexes wrap, and an other end that
 * writes what it likes into the shared memory makes ours neither read nor write outside of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include "internal/ring.h"

enum { PAGE = 4096, BURST = 64, HOSTILE_TURNS = 200000 };

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 31;
}

/* A ring at the end of what may be touched, and nothing before it either. */
static struct ring *ring_new(void)
{
	size_t bytes = (sizeof(struct ring) + PAGE - 1) / PAGE * PAGE;
	uint8_t *all = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(all, MAP_FAILED);
	assert_int_equal(mprotect(all + PAGE, bytes, PROT_READ | PROT_WRITE), 0);
	return (struct ring *)(void *)(all + PAGE + bytes - sizeof(struct ring));
}

static void ring_free(struct ring *r)
{
	size_t bytes = (sizeof(struct ring) + PAGE - 1) / PAGE * PAGE;

	munmap((uint8_t *)(r + 1) - bytes - PAGE, bytes + 2 * PAGE);
}

/* From any index on: they wrap after months. */
static struct ring_end end_at(struct ring *r, uint32_t index)
{
	struct ring_end p = ring_end(r);

	p.mine = p.theirs = index;
	atomic_store(&r->head, index);
	atomic_store(&r->tail, index);
	return p;
}

static void what_goes_in_comes_out(void **state)
{
	static const uint32_t starts[] = {0, UINT32_MAX - 5000, UINT32_MAX};
	struct ring *r = ring_new();

	for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
		struct ring_end in = end_at(r, starts[k]), out = in;
		uint64_t put = 0, got = 0, seed = 1;

		assert_true(ring_empty(&out));
		assert_int_equal(ring_room(&in), IPC_RING_RECORDS);
		while (got < 10 * IPC_RING_RECORDS) {
			struct record burst[BURST] = {0};
			unsigned want = (unsigned)(draw(&seed) % BURST), n;

			for (unsigned i = 0; i < want; i++)
				burst[i].token = put + i;
			n = ring_push(&in, burst, want);
			assert_true(n == want || ring_room(&in) == 0);
			put += n;
			assert_int_equal(ring_held(&in), put - got);
			assert_int_equal(ring_empty(&out), put == got);
			n = ring_pop(&out, burst, (unsigned)(draw(&seed) % (BURST - 1)));
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(burst[i].token, got + i);
			got += n;
			assert_true(put - got <= IPC_RING_RECORDS);
		}
	}
	ring_free(r);
}

static void a_full_ring_takes_no_more(void **state)
{
	struct ring *r = ring_new();
	struct ring_end in = end_at(r, 7), out = in;
	struct record one = {.token = 1}, burst[BURST];

	for (unsigned n = 0; n < IPC_RING_RECORDS; n++)
		assert_int_equal(ring_push(&in, &one, 1), 1);
	assert_int_equal(ring_push(&in, &one, 1), 0);
	assert_int_equal(ring_pop(&out, burst, BURST), BURST);
	assert_int_equal(ring_push(&in, burst, BURST), BURST);
	assert_int_equal(ring_room(&in), 0);
	ring_free(r);
}

static void scribble(struct ring *r, uint64_t *seed)
{
	uint32_t near = (uint32_t)(draw(seed) % (4 * IPC_RING_RECORDS)) - 2 * IPC_RING_RECORDS;

	switch (draw(seed) % 4) {
	case 0:
		atomic_store(&r->head, (uint32_t)draw(seed));
		break;
	case 1:
		atomic_store(&r->tail, (uint32_t)draw(seed));
		break;
	case 2:
		atomic_store(&r->head, atomic_load(&r->head) + near);
		break;
	default:
		atomic_store(&r->tail, atomic_load(&r->tail) + near);
	}
}

/* Pages that may not be touched lie on both sides. */
static void a_hostile_other_end_stops_at_the_ring(void **state)
{
	struct ring *r = ring_new();
	struct ring_end in = end_at(r, 0), out = in;
	struct record burst[BURST + 1];
	uint64_t seed = 3;

	memset(burst, 0, sizeof(burst));
	for (uint32_t turn = 0; turn < HOSTILE_TURNS; turn++) {
		unsigned want = (unsigned)(draw(&seed) % BURST), n;
		uint32_t mine = in.mine;

		scribble(r, &seed);
		assert_true(ring_room(&in) <= IPC_RING_RECORDS);
		assert_true(ring_held(&in) <= IPC_RING_RECORDS);
		n = ring_push(&in, burst, want);
		assert_true(n <= want);
		assert_int_equal(in.mine, mine + n);
		assert_true(in.mine - in.theirs <= IPC_RING_RECORDS);

		scribble(r, &seed);
		mine = out.mine;
		ring_empty(&out);
		burst[want].token = UINT64_C(0x5afe);
		n = ring_pop(&out, burst, want);
		assert_true(n <= want);
		assert_int_equal(burst[want].token, UINT64_C(0x5afe));
		assert_int_equal(out.mine, mine + n);
		assert_true(out.theirs - out.mine <= IPC_RING_RECORDS);
	}
	ring_free(r);
}

/* What it wrote over our own index is not read back. */
static void our_own_index_is_our_own(void **state)
{
	struct ring *r = ring_new();
	struct ring_end in = end_at(r, 0), out = in;
	struct record record = {.token = 1};

	assert_int_equal(ring_push(&in, &record, 1), 1);
	atomic_store(&r->head, 1000);
	record.token = 2;
	assert_int_equal(ring_push(&in, &record, 1), 1);
	assert_int_equal(atomic_load(&r->head), 2);
	assert_int_equal(ring_pop(&out, &record, 1), 1);
	assert_int_equal(record.token, 1);
	atomic_store(&r->tail, 77777);
	assert_int_equal(ring_pop(&out, &record, 1), 1);
	assert_int_equal(record.token, 2);
	assert_int_equal(atomic_load(&r->tail), 2);
	assert_int_equal(ring_room(&in), IPC_RING_RECORDS);
	ring_free(r);
}

static void an_end_is_valid_within_one_ring(void **state)
{
	static const uint32_t starts[] = {0, 7, UINT32_MAX - 3, UINT32_MAX};

	(void)state;
	for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
		for (uint32_t used = 0; used < 3 * IPC_RING_RECORDS; used++) {
			struct ring_end p = {.mine = starts[k] + used, .theirs = starts[k]};
			struct ring_end q = {.mine = starts[k], .theirs = starts[k] + used};

			assert_int_equal(ring_valid(&p, true), used <= IPC_RING_RECORDS);
			assert_int_equal(ring_valid(&q, false), used <= IPC_RING_RECORDS);
			assert_int_equal(ring_valid(&p, false), used == 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_is_valid_within_one_ring),
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(a_full_ring_takes_no_more),
		cmocka_unit_test(a_hostile_other_end_stops_at_the_ring),
		cmocka_unit_test(our_own_index_is_our_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
