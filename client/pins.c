/* SPDX-License-Identifier: BSD-3-Clause */
#include "pins.h"

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

void pins_give(struct pins *p, uint32_t index)
{
	pins_clear(p, index);
	atomic_fetch_and_explicit(&p->used[index / 64], ~(1ull << index % 64),
				  memory_order_release);
}
