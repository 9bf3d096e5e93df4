/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record rings inside the ipc memfd: rte_ring with RECORD_BYTES elements, one producer and one
 * consumer each, and the sleeping flags beside them (ipc.h says how they are used). An rte_ring
 * holds no pointer that its users follow, so each process may map it at another address.
 *
 * Who may call: control and dataplane shells. ring_bytes and ring_init need librte_ring (only the
 * dataplane calls them); the rest is inline.
 */
#ifndef SARISSA_INTERNAL_RING_H
#define SARISSA_INTERNAL_RING_H

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include "internal/ipc.h"

/* Bytes of one ring of IPC_RING_RECORDS records, in whole cache lines. */
static inline uint64_t ring_bytes(void)
{
	ssize_t n = rte_ring_get_memsize_elem(RECORD_BYTES, IPC_RING_RECORDS);
	return ((uint64_t)n + 63) / 64 * 64;
}

/* Builds an empty ring in memory (64-aligned, ring_bytes() long). Returns 0 or -errno. */
static inline int ring_init(void *memory)
{
	return rte_ring_init(memory, "records", IPC_RING_RECORDS, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* Puts as many of count records as there is room for; returns how many. Producer only. */
static inline unsigned ring_push(struct rte_ring *r, const struct record *in, unsigned count)
{
	return rte_ring_sp_enqueue_burst_elem(r, in, RECORD_BYTES, count, NULL);
}

/* How many records ring_push would take now. Producer only. */
static inline unsigned ring_room(const struct rte_ring *r)
{
	return rte_ring_free_count(r);
}

/* Takes up to count records; returns how many. Consumer only. */
static inline unsigned ring_pop(struct rte_ring *r, struct record *out, unsigned count)
{
	return rte_ring_sc_dequeue_burst_elem(r, out, RECORD_BYTES, count, NULL);
}

/* Records that wait in it. */
static inline unsigned ring_held(const struct rte_ring *r)
{
	return rte_ring_count(r);
}

static inline bool ring_empty(const struct rte_ring *r)
{
	return rte_ring_empty(r);
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
