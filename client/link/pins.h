/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pin page of one connection (internal/session.h): words that tell control which objects this
 * process reads. Any thread, no lock, no system call.
 *
 * A restarted control brings a new page. While it replaces the old one (pins_replace, microseconds)
 * the turn is odd. A thread that has set or cleared a word checks that the turn is unchanged, and
 * repeats it otherwise. So no word is lost, and none stays behind.
 */
#ifndef SARISSA_CLIENT_LINK_PINS_H
#define SARISSA_CLIENT_LINK_PINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include "internal/session.h"

struct pins {
	_Atomic uint64_t *word; /* SESSION_PINS of them, shared with control */
	_Atomic uint64_t used[SESSION_PINS / 64];
	_Atomic uint32_t hint;
	_Atomic uint32_t turn;
};

/* An unused index, the caller's until pins_give; SESSION_PIN_NONE when there is none. */
uint32_t pins_take(struct pins *p);

/* Clears the word, so that control may reuse the bytes, and gives the index back. */
void pins_give(struct pins *p, uint32_t index);

/* The turn that holds; waits while it is odd. */
uint32_t pins_turn(const struct pins *p);

/* Whether the turn is unchanged. If so, a later pins_replace sees pins that were set or cleared
 * before (pins_set and pins_give have the full fence for that). */
static inline bool pins_turn_is(const struct pins *p, uint32_t turn)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&p->turn, memory_order_relaxed) == turn;
}

/* Puts page in the place of the one that is mapped now, with all its words (keep), or with none.
 * One thread at a time; change() runs while the turn is odd. 0, or -errno: then all is as before.
 */
int pins_replace(struct pins *p, void *page, bool keep, void (*change)(void *arg), void *arg);

/* Announces a read of (slot, generation): what is read from the table afterwards is read later
 * than any control could miss the pin (store, full fence, load: Michael's hazard pointers). */
static inline void pins_set(struct pins *p, uint32_t index, uint32_t slot, uint64_t generation)
{
	atomic_store_explicit(&p->word[index], pin_make(slot, generation), memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void pins_clear(struct pins *p, uint32_t index)
{
	atomic_store_explicit(&p->word[index], 0, memory_order_release);
}

static inline bool pins_holds(const struct pins *p, uint32_t index, uint32_t slot,
			      uint64_t generation)
{
	return atomic_load_explicit(&p->word[index], memory_order_acquire) ==
	       pin_make(slot, generation);
}

#endif
