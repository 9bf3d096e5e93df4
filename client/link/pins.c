/* SPDX-License-Identifier: BSD-3-Clause */
#include "pins.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

enum { PINS_WORDS = SESSION_PINS / 64 };

uint32_t pins_take(struct pins *p)
{
	uint32_t start = atomic_load_explicit(&p->hint, memory_order_relaxed);
	for (uint32_t k = 0; k < PINS_WORDS; k++) {
		uint32_t w = (start + k) % PINS_WORDS;
		uint64_t used = atomic_load_explicit(&p->used[w], memory_order_relaxed);
		while (used != UINT64_MAX) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~used);
			if (!atomic_compare_exchange_weak_explicit(
				    &p->used[w], &used, used | 1ull << bit, memory_order_acquire,
				    memory_order_relaxed))
				continue;
			atomic_store_explicit(&p->hint, w, memory_order_relaxed);
			return w * 64 + bit;
		}
	}
	return SESSION_PIN_NONE;
}

uint32_t pins_turn(const struct pins *p)
{
	uint32_t turn;
	while ((turn = atomic_load_explicit(&p->turn, memory_order_acquire)) & 1)
		sched_yield();
	return turn;
}

int pins_replace(struct pins *p, void *page, bool keep, void (*change)(void *arg), void *arg)
{
	_Atomic uint64_t *fresh = page;
	void *at = (void *)(uintptr_t)p->word;
	atomic_fetch_add(&p->turn, 1);
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < SESSION_PINS; i++) {
		uint64_t word = atomic_load_explicit(&p->word[i], memory_order_relaxed);
		atomic_store_explicit(&fresh[i], keep ? word : 0, memory_order_relaxed);
	}
	int r = 0;
	if (mremap(page, SESSION_PIN_BYTES, SESSION_PIN_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at) !=
	    at)
		r = -errno;
	if (r == 0)
		change(arg);
	atomic_fetch_add(&p->turn, 1);
	return r;
}

void pins_give(struct pins *p, uint32_t index)
{
	uint32_t turn;
	do {
		turn = pins_turn(p);
		atomic_exchange(&p->word[index], 0); /* and a full fence */
	} while (!pins_turn_is(p, turn));
	/* and a full fence: afterwards the caller looks whether a thread waits for a pin */
	atomic_fetch_and(&p->used[index / 64], ~(1ull << index % 64));
}
