/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two threads promise each other by the order of their stores and loads, on this machine's
 * memory: pins (pins.h) against control's scan, sequence locks, and the sleeping flag beside a
 * ring. Both sides start each round at the same moment, many times, and never may both have missed
 * the other. Built once more with one of the orders taken out of the same headers, it must find
 * that out. What no round can show on x86 stays with the comments: it reorders stores with later
 * loads only, so the fences of the sequence lock are the compiler's there, and what is taken out of
 * it is the mark of a writer.
 *
 * Usage: threads_order; exit 0, or 1 with what was missed. With -DBROKEN_...: exit 0 when missed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include "../../check.h"
#ifdef BROKEN_FENCE
#undef atomic_thread_fence
#define atomic_thread_fence(order) atomic_signal_fence(order)
#endif
#ifdef BROKEN_MARK
#define sequence_write sequence_write_real
#endif
#include "internal/sequence.h"
#ifdef BROKEN_MARK
#undef sequence_write
/* The number stays even while it writes. */
static inline void sequence_write(_Atomic uint32_t *sequence)
{
	atomic_thread_fence(memory_order_release);
}
#endif
#include "internal/object_table.h"
#include "internal/ring.h"
#include "link/pins.h"

enum {
	ROUNDS = 500000,
	ROUNDS_BROKEN = 20000000,
	LIMIT_S = 60,
	SPINS = 4000,
	SLOTS = 1,
	WORDS = 8
};

enum build { WHOLE, NO_FENCE, NO_MARK };

#ifdef BROKEN_FENCE
static const enum build build = NO_FENCE;
#elif defined(BROKEN_MARK)
static const enum build build = NO_MARK;
#else
static const enum build build = WHOLE;
#endif

struct pair {
	const char *what;
	enum build caught_by; /* what is taken out there */
	void (*left)(void);
	void (*right)(void);
	/* Between rounds; true when both have missed the other. */
	bool (*missed)(void);
};

/* Each on a line of its own, or the line's way to and fro would order what it should not. */
static struct {
	_Alignas(128) _Atomic uint32_t arrived;
	_Alignas(128) _Atomic uint32_t turn;
	_Alignas(128) _Atomic bool stop;
	_Alignas(128) _Atomic uint64_t word[SESSION_PINS];
	_Alignas(128) uint8_t table[sizeof(struct object_table) + sizeof(struct object_slot)];
	_Alignas(128) _Atomic uint32_t sequence;
	_Alignas(128) _Atomic uint64_t copied[WORDS];
	_Alignas(128) _Atomic uint32_t sleeping;
	_Alignas(128) bool left_missed;
	_Alignas(128) bool right_missed;
} t;
static struct pins pins = {.word = t.word};
static struct ring ring;
static struct ring_end producer = {.ring = &ring}, consumer = {.ring = &ring};
static int wake_fd;

/* Both leave at the same moment, as near as the machine can. */
static void meet(void)
{
	uint32_t turn = atomic_load_explicit(&t.turn, memory_order_relaxed);

	if (atomic_fetch_add(&t.arrived, 1) == 1) {
		atomic_store(&t.arrived, 0);
		atomic_store(&t.turn, turn + 1);
		return;
	}
	for (unsigned spins = 0; atomic_load(&t.turn) == turn; spins++)
		if (spins > SPINS)
			sched_yield(); /* the other one may have no core */
}

static void pause_some(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	for (uint32_t i = *random >> 27; i > 0; i--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* ---- a client's pin and control's scan: client/api/get.c get_look, control/core/store/objects.c
 * ---------
 */

static struct object_table *table(void)
{
	return (struct object_table *)(void *)t.table;
}

static void pin_left(void)
{
	struct object_slot seen;

	pins_set(&pins, 0, 0, 7);
	t.left_missed = object_slot_read(table(), 0, &seen) && seen.state == OBJECT_SEALED;
}

/* As objects_set_state and objects_scan_pins. */
static void pin_right(void)
{
	struct object_slot *slot = &table()->slot[0];

	sequence_write(&slot->sequence);
	slot->state = OBJECT_ZOMBIE;
	sequence_written(&slot->sequence);
	atomic_thread_fence(memory_order_seq_cst);
	t.right_missed = atomic_load_explicit(&t.word[0], memory_order_relaxed) != pin_make(0, 7);
}

/* The reader holds what control gives away. */
static bool pin_missed(void)
{
	table()->slot[0].state = OBJECT_SEALED;
	table()->slot[0].generation = 7;
	pins_clear(&pins, 0);
	return t.left_missed && t.right_missed;
}

/* ---- a sequence lock --------------------------------------------------------------------------
 */

static void sequence_left(void)
{
	uint64_t first = atomic_load_explicit(&t.copied[0], memory_order_relaxed);

	sequence_write(&t.sequence);
	for (int i = 0; i < WORDS; i++)
		atomic_store_explicit(&t.copied[i], first + 1, memory_order_relaxed);
	sequence_written(&t.sequence);
}

static void sequence_right(void)
{
	uint32_t before = sequence_read(&t.sequence);
	uint64_t copy[WORDS];
	bool torn = false;

	for (int i = WORDS - 1; i >= 0; i--)
		copy[i] = atomic_load_explicit(&t.copied[i], memory_order_relaxed);
	for (int i = 1; i < WORDS; i++)
		torn |= copy[i] != copy[0];
	t.right_missed = torn && sequence_whole(&t.sequence, before);
}

static bool sequence_missed(void)
{
	return t.right_missed;
}

/* ---- a ring's consumer goes to sleep: dataplane/io/node/idle.c ---------------------------------
 */

static void sleep_left(void)
{
	ring_sleep_begin(&t.sleeping);
	t.left_missed = ring_empty(&consumer);
}

static void sleep_right(void)
{
	struct record r = {.op = 1};

	ring_push(&producer, &r, 1);
	t.right_missed = !ring_wake(&t.sleeping, wake_fd);
}

/* The consumer sleeps beside a record, and nobody wakes it. */
static bool sleep_missed(void)
{
	struct record r;
	bool missed = t.left_missed && t.right_missed;

	ring_sleep_end(&t.sleeping);
	while (ring_pop(&consumer, &r, 1))
		continue;
	return missed;
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

static void *run_right(void *arg)
{
	const struct pair *p = arg;
	uint32_t random = 1;

	for (;;) {
		meet();
		if (atomic_load(&t.stop))
			return NULL;
		pause_some(&random);
		p->right();
		meet();
	}
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* How many rounds until both had missed; 0: in none of them. */
static uint32_t run(const struct pair *p, uint32_t rounds, uint32_t *done)
{
	uint32_t random = 2, at, found = 0;
	double end = now_s() + LIMIT_S;
	pthread_t other;

	p->missed(); /* sets it up */
	CHECK(pthread_create(&other, NULL, run_right, (void *)(uintptr_t)p) == 0);
	for (at = 1; at <= rounds && !found && (at % 1024 || now_s() < end); at++) {
		meet();
		pause_some(&random);
		p->left();
		meet();
		if (p->missed())
			found = at;
	}
	atomic_store(&t.stop, true);
	meet();
	pthread_join(other, NULL);
	atomic_store(&t.stop, false);
	*done = at - 1;
	return found;
}

int main(void)
{
	static const struct pair pairs[] = {
		{"a pin and control's scan", NO_FENCE, pin_left, pin_right, pin_missed},
		{"a ring's sleeping consumer", NO_FENCE, sleep_left, sleep_right, sleep_missed},
		{"a sequence lock", NO_MARK, sequence_left, sequence_right, sequence_missed},
	};
	int bad = 0;

	static const uint64_t seed[2] = {1, 2};

	wake_fd = eventfd(0, EFD_CLOEXEC);
	object_table_begin(table(), SLOTS, 64, 1, seed);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		bool broken = build == pairs[i].caught_by;
		uint32_t done, found;

		if (build != WHOLE && !broken)
			continue;
		found = run(&pairs[i], broken ? ROUNDS_BROKEN : ROUNDS, &done);
		printf("%s: %u rounds, %s\n", pairs[i].what, done,
		       found ? "both missed the other" : "never both missed");
		bad += broken ? !found : !!found;
	}
	return bad ? 1 : 0;
}
