/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which Ethernet address leads to which IP address: one table per process.
 *
 * Workers look up without a lock; those that learn (a worker that took an ARP answer, the main
 * thread that hears from the kernel) write under a short spin lock. Keys are next hops where we
 * resolve ourselves, destinations where the kernel does (the kernel's route is in the answer).
 *
 * Bounds: NEIGHBOURS entries, NEIGHBOUR_PROBE places per address; a place that was used within
 * NEIGHBOUR_KEEP_NS is never taken over, so strangers cannot push out live peers; one that nobody
 * answers for is free again soon, and one that was only heard of at once, so that they cannot fill
 * the table either. Questions for one
 * address are at least NEIGHBOUR_ASK_MIN_NS apart, doubling to NEIGHBOUR_ASK_MAX_NS.
 */
#ifndef SARISSA_DATAPLANE_IO_NET_NEIGHBOUR_H
#define SARISSA_DATAPLANE_IO_NET_NEIGHBOUR_H

#include <stdatomic.h>
#include "internal/ids.h"

enum {
	NEIGHBOURS = 4096, /* a power of two, well above NODES_MAX */
	NEIGHBOUR_PROBE = 16,
	NEIGHBOUR_KNOWN = 1, /* mac was set */
	NEIGHBOUR_ASK = 2,   /* the caller should ask for it now */
};

#define NEIGHBOUR_ASK_MIN_NS	20000000ull    /* 20 ms */
#define NEIGHBOUR_ASK_MAX_NS	1000000000ull  /* 1 s */
#define NEIGHBOUR_FRESH_NS	30000000000ull /* after that a known one is asked again */
#define NEIGHBOUR_STALE_NS	(NEIGHBOUR_FRESH_NS + 10000000000ull) /* then it is forgotten */
#define NEIGHBOUR_KEEP_NS	60000000000ull
#define NEIGHBOUR_UNANSWERED_NS 50000000ull

struct neighbour {
	_Atomic uint64_t ip[2];
	_Atomic uint64_t mac; /* low 48 bits, bit 48 set; 0: not known */
	_Atomic uint64_t used_ns, confirmed_ns, ask_at_ns;
	_Atomic uint32_t asked;	 /* times since the last answer */
	_Atomic uint32_t wanted; /* the main thread has not seen the last question yet */
	uint32_t pad[2];
};
_Static_assert(sizeof(struct neighbour) == 64, "an entry is one cache line");

struct neighbour_table {
	_Alignas(64) atomic_flag lock;
	bool ageing; /* false: the kernel tells what has gone, nothing ages here */
	_Alignas(64) struct neighbour entry[NEIGHBOURS];
};

/* Zeroed memory is an empty table; ageing as above. now_ns must never be 0 in the calls below. */
void neighbour_init(struct neighbour_table *t, bool ageing);

/* Looks ip up for a packet that leaves now. Returns a set of NEIGHBOUR_*; an unknown address gets a
 * place, when there is one, so that questions are counted. */
unsigned neighbour_find(struct neighbour_table *t, const uint8_t *ip, uint64_t now_ns,
			uint8_t *mac);

/* Takes an answer. create: also when nobody has asked for this address. */
void neighbour_learn(struct neighbour_table *t, const uint8_t *ip, const uint8_t *mac, bool create,
		     uint64_t now_ns);

/* Entry i, for the main thread: what it says of the address that is copied to ip. */
enum neighbour_state {
	NEIGHBOUR_EMPTY,
	NEIGHBOUR_WANTED, /* a worker has asked, however long ago, and the answer is missing */
	NEIGHBOUR_IN_USE, /* known, and used within NEIGHBOUR_KEEP_NS */
	NEIGHBOUR_UNUSED,
};
enum neighbour_state neighbour_at(struct neighbour_table *t, uint32_t i, uint64_t now_ns,
				  uint8_t *ip);
/* The question about entry i is being seen to; it is WANTED again with the next one. */
void neighbour_take(struct neighbour_table *t, uint32_t i);

/* The address is not to be used any more; a later find asks again. */
void neighbour_forget(struct neighbour_table *t, const uint8_t *ip);

#endif
