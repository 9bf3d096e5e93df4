/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "wheel.h"
#include "core/conn/conn.h"
#include "numbers.h"

/*
 * A timing wheel (Varghese and Lauck, SOSP 1987): slots of WHEEL_SLOT_NS, an element farther away
 * than one turn waits in the last slot and is put again from there. A connection has one timer,
 * set to the earliest of what it waits for; a later deadline does not move it, it fires early once
 * and is set again.
 */

void wheel_init(struct wheel *w, uint64_t now_ns)
{
	w->now_slot = now_ns / WHEEL_SLOT_NS;
	for (uint32_t k = 0; k < WHEEL_SLOTS; k++)
		list_init(&w->slot[k]);
}

void wheel_disarm(struct engine *e, struct conn *c)
{
	if (list_empty(&c->timer))
		return;
	assert(c->wheel_ns != NEVER);
	struct list *other = c->timer.next;
	list_remove(&c->timer);
	if (list_empty(other) && other >= e->wheel.slot && other < e->wheel.slot + WHEEL_SLOTS) {
		uint64_t k = (uint64_t)(other - e->wheel.slot);
		e->wheel.occupied[k / 64] &= ~(UINT64_C(1) << (k % 64));
	}
	c->wheel_ns = NEVER;
}

void wheel_arm(struct engine *e, struct conn *c, uint64_t when_ns)
{
	struct wheel *w = &e->wheel;

	if (!list_empty(&c->timer)) {
		if (c->wheel_ns <= when_ns)
			return;
		wheel_disarm(e, c);
	}
	if (when_ns == NEVER)
		return;
	uint64_t slot = (when_ns + WHEEL_SLOT_NS - 1) / WHEEL_SLOT_NS;
	if (slot < w->now_slot)
		slot = w->now_slot;
	if (slot >= w->now_slot + WHEEL_SLOTS)
		slot = w->now_slot + WHEEL_SLOTS - 1;
	assert(slot >= w->now_slot && slot - w->now_slot < WHEEL_SLOTS);
	c->wheel_ns = slot * WHEEL_SLOT_NS;
	list_append(&w->slot[slot % WHEEL_SLOTS], &c->timer);
	w->occupied[slot % WHEEL_SLOTS / 64] |= UINT64_C(1) << (slot % 64);
}

static void wheel_run_slot(struct engine *e, uint64_t k)
{
	struct list due;

	list_init(&due);
	while (!list_empty(&e->wheel.slot[k])) {
		struct list *l = e->wheel.slot[k].next;
		list_remove(l);
		list_append(&due, l);
	}
	e->wheel.occupied[k / 64] &= ~(UINT64_C(1) << (k % 64));
	while (!list_empty(&due)) {
		struct conn *c = list_entry(due.next, struct conn, timer);
		assert(c->state != CONN_FREE);
		list_remove(&c->timer);
		c->wheel_ns = NEVER;
		conn_timers(e, c);
	}
}

void wheel_run(struct engine *e)
{
	struct wheel *w = &e->wheel;
	uint64_t end = e->now_ns / WHEEL_SLOT_NS + 1;
	uint64_t behind = end > w->now_slot ? end - w->now_slot : 0;

	/* After a standstill one turn is enough; counted from the present, so that what is set
	 * again on the way lands in the turn to come. */
	if (behind > WHEEL_SLOTS) {
		behind = WHEEL_SLOTS;
		w->now_slot = end - behind;
	}
	uint64_t first = w->now_slot;
	for (uint64_t k = 0; k < behind; k++) {
		uint64_t slot = (first + k) % WHEEL_SLOTS;
		if (w->occupied[slot / 64] == 0 && slot % 64 == 0 && behind - k >= 64) {
			k += 63;
			continue;
		}
		w->now_slot = first + k + 1;
		if (w->occupied[slot / 64] >> (slot % 64) & 1)
			wheel_run_slot(e, slot);
	}
	if (end > w->now_slot)
		w->now_slot = end;
}

uint64_t wheel_next_ns(const struct wheel *w)
{
	uint64_t first = w->now_slot % WHEEL_SLOTS;
	uint64_t word = first / 64;
	uint64_t bits = w->occupied[word] & (UINT64_MAX << (first % 64));

	for (uint64_t k = 0; k <= WHEEL_SLOTS / 64; k++) {
		if (bits != 0) {
			uint64_t slot = word * 64 + (uint64_t)__builtin_ctzll(bits);
			uint64_t ahead = (slot - first) % WHEEL_SLOTS;
			return (w->now_slot + ahead) * WHEEL_SLOT_NS;
		}
		word = (word + 1) % (WHEEL_SLOTS / 64);
		bits = w->occupied[word];
	}
	return NEVER;
}
