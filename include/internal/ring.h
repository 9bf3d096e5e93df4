/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record rings inside the ipc memfd, one producer and one consumer each, and the sleeping flags
 * beside them (ipc.h says how they are used). Control and dataplane have different rights, so
 * neither trusts what the other may write: each end keeps its own index in its own memory, takes
 * the other's for at most a whole ring, and the size is a constant.
 *
 * Who may call: control and dataplane shells.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_RING_H
#define SARISSA_INCLUDE_INTERNAL_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#include "ipc.h"

/* In the shared memory; all zero: empty. The indexes count records and wrap. */
struct ring {
	_Alignas(128) _Atomic uint32_t head; /* the producer's: behind the last record */
	_Alignas(128) _Atomic uint32_t tail; /* the consumer's: the first record */
	_Alignas(128) struct record record[IPC_RING_RECORDS];
};
_Static_assert((IPC_RING_RECORDS & (IPC_RING_RECORDS - 1)) == 0, "indexes wrap");

/* One end of a ring, in the private memory of the thread that uses it. */
struct ring_end {
	_Alignas(64) struct ring *ring;
	uint32_t mine;	 /* our index, which the other end only gets a copy of */
	uint32_t theirs; /* the other's index when it was last read and made sense */
};

/* Either end of a ring that nobody has used yet. */
static inline struct ring_end ring_end(void *memory)
{
	return (struct ring_end){.ring = (struct ring *)memory};
}

/* How many records lie between consumer and producer. An index that cannot be is not taken: the
 * ring then stands still for its end, as one whose other end hangs. */
static inline uint32_t ring_used(uint32_t head, uint32_t tail)
{
	return head - tail;
}

/* Our own end: never more records between the two indexes than the ring has. What the other end
 * wrote is taken by ring_look() only if that stays so. */
static inline bool ring_valid(const struct ring_end *p, bool producer)
{
	return (producer ? ring_used(p->mine, p->theirs) : ring_used(p->theirs, p->mine)) <=
	       IPC_RING_RECORDS;
}

static inline void ring_look(struct ring_end *p, const _Atomic uint32_t *index, bool producer)
{
	uint32_t now = atomic_load_explicit(index, memory_order_acquire);

	if ((producer ? ring_used(p->mine, now) : ring_used(now, p->mine)) <= IPC_RING_RECORDS)
		p->theirs = now;
}

/* How many records ring_push would take now. Producer only. */
static inline unsigned ring_room(struct ring_end *p)
{
	ring_look(p, &p->ring->tail, true);
	return IPC_RING_RECORDS - ring_used(p->mine, p->theirs);
}

/* Puts as many of count records as there is room for; returns how many. Producer only. */
static inline unsigned ring_push(struct ring_end *p, const struct record *in, unsigned count)
{
	unsigned room = IPC_RING_RECORDS - ring_used(p->mine, p->theirs);

	assert(ring_valid(p, true));
	if (room < count)
		room = ring_room(p);
	if (count > room)
		count = room;
	for (unsigned i = 0; i < count; i++)
		p->ring->record[(p->mine + i) % IPC_RING_RECORDS] = in[i];
	if (count > 0) {
		p->mine += count;
		atomic_store_explicit(&p->ring->head, p->mine, memory_order_release);
	}
	return count;
}

/* Records that wait in it. Producer only. */
static inline unsigned ring_held(struct ring_end *p)
{
	return IPC_RING_RECORDS - ring_room(p);
}

/* Takes up to count records; returns how many. Consumer only. */
static inline unsigned ring_pop(struct ring_end *p, struct record *out, unsigned count)
{
	unsigned held = ring_used(p->theirs, p->mine);

	assert(ring_valid(p, false));
	if (held < count) {
		ring_look(p, &p->ring->head, false);
		held = ring_used(p->theirs, p->mine);
	}
	if (count > held)
		count = held;
	for (unsigned i = 0; i < count; i++)
		out[i] = p->ring->record[(p->mine + i) % IPC_RING_RECORDS];
	if (count > 0) {
		p->mine += count;
		atomic_store_explicit(&p->ring->tail, p->mine, memory_order_release);
	}
	return count;
}

/* Consumer only. */
static inline bool ring_empty(struct ring_end *p)
{
	ring_look(p, &p->ring->head, false);
	return p->theirs == p->mine;
}

/* Consumer, before it sleeps: then looks at its rings once more, and only then polls its eventfd.
 */
static inline void ring_sleep_begin(_Atomic uint32_t *sleeping)
{
	atomic_store_explicit(sleeping, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Consumer, awake again (or it found a record after all). */
static inline void ring_sleep_end(_Atomic uint32_t *sleeping)
{
	atomic_store_explicit(sleeping, 0, memory_order_relaxed);
}

/* Producer, after it has pushed: wakes the consumer when it sleeps. Returns true when it did. */
static inline bool ring_wake(_Atomic uint32_t *sleeping, int eventfd)
{
	uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(sleeping, memory_order_relaxed) == 0 ||
	    atomic_exchange_explicit(sleeping, 0, memory_order_acq_rel) == 0)
		return false;
	/* The counter cannot overflow in practice; a full one wakes the consumer all the same. */
	return write(eventfd, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

#endif
