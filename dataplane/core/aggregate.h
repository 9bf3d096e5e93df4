/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The aggregator of a switch: groups, their policies and slots, in which contributions are added up
 * while they pass. Called by the shells of --role switch, by one thread. It has no clock, socket or
 * allocation, and trusts nothing in a packet.
 *
 * Slots: a group has AGGREGATE_BANKS times `window` of them. A member sends chunk c only when it
 * has the result of chunk c - window, and begins a round when it has all of the one before. So when
 * a slot is taken for a later chunk, every member is done with the former one, except where a
 * quorum went on without it (SwitchML, NSDI 2021; the two banks per round parity are ours).
 * A packet of an earlier chunk finds a later one in its slot, and is answered with GONE.
 *
 * A slot: free -> open at the first contribution -> done when the condition holds. Done slots keep
 * their result for members that ask again, until a later chunk takes the slot.
 */
#ifndef SARISSA_DATAPLANE_CORE_AGGREGATE_H
#define SARISSA_DATAPLANE_CORE_AGGREGATE_H

#include <stdbool.h>
#include "internal/aggregate.h"
#include "core/kernel/kernel.h"
#include "times.h"

enum {
	AGGREGATE_GROUPS_MAX = 64,
	AGGREGATE_WINDOW_MAX = 4096,
	AGGREGATE_PORTS_MAX = 64,
	AGGREGATE_PASSED_MAX = 64,
	AGGREGATE_NONE = UINT32_MAX,
};

/* Everything that can happen to a packet, in the order of the counters. */
enum aggregate_verdict {
	AGGREGATE_BAD,	     /* not intact, or a header that contradicts itself: drop it */
	AGGREGATE_PASS,	     /* no such group here: forward it to the host it is addressed to */
	AGGREGATE_FOREIGN,   /* of no member: its token is not that of the place: drop it */
	AGGREGATE_ADDED,     /* it waits for others */
	AGGREGATE_DUPLICATE, /* it was in already, the chunk is open */
	AGGREGATE_COMPLETE,  /* send the answer to all ports of the group */
	AGGREGATE_REPEAT,    /* send the answer, a result, to where the packet came from */
	AGGREGATE_ANSWER,    /* send the answer to where the packet came from */
	AGGREGATE_LATE,	     /* the same: the result was made without it */
	AGGREGATE_REFUSE,    /* the same: the answer says why */
	AGGREGATE_EXPIRED,   /* of aggregate_expire: as COMPLETE */
	AGGREGATE_VERDICTS,
};

struct aggregate_slot {
	_Alignas(64) uint64_t seen;
	uint64_t opened_ns;
	uint32_t round, chunk;
	uint32_t next, previous; /* of the open slots of a group, oldest first */
	uint16_t bytes;
	uint8_t state, operation, end, quorum, members, overdue; /* quorum, members: when opened */
	bool differs; /* contributions have: nobody gets a result */
	signed char exponent;
	uint32_t deadline_us;
	_Alignas(64) uint8_t payload[AGGREGATE_PAYLOAD_MAX];
};

struct aggregate_group {
	bool used;
	uint32_t id, version;
	uint8_t members, quorum;
	uint32_t deadline_us;
	uint64_t ports;	 /* where its packets came from */
	uint32_t origin; /* what the caller gave with the latest */
	uint64_t used_ns;
	uint32_t oldest, newest; /* slots with a deadline that are open, as indices of the pool */
	uint64_t key;
	struct {
		uint64_t token;	  /* 0: nobody has the place yet */
		uint32_t version; /* with which the member took it: a later one may take it again */
	} place[AGGREGATE_MEMBERS_MAX];
};

/* A group that found no room: all of its packets go on to the host, until nobody uses it. */
struct aggregate_passed {
	uint32_t id;
	uint64_t used_ns; /* 0: none */
};

struct aggregate_pool {
	uint32_t window, groups;
	struct aggregate_group group[AGGREGATE_GROUPS_MAX];
	struct aggregate_slot *slot; /* groups * AGGREGATE_BANKS * window */
	enum kernel_level level;
	uint32_t own; /* origin of packets that no host would take: a group without room is refused
		       */
	struct aggregate_passed passed[AGGREGATE_PASSED_MAX];
	uint64_t count[AGGREGATE_VERDICTS];
};

/* The packet to send. The payload lies in the pool until the next call. */
struct aggregate_answer {
	struct aggregate_header header; /* sealed by aggregate_write */
	const uint8_t *payload;
	uint32_t bytes;	 /* of the payload */
	uint64_t ports;	 /* bit i: to port i */
	uint32_t origin; /* of the packet, or of the latest of the group */
};

/* Bytes of the slots. groups is 1 to AGGREGATE_GROUPS_MAX; window a power of two, 8 to
 * AGGREGATE_WINDOW_MAX. */
uint64_t aggregate_bytes(uint32_t groups, uint32_t window);
/* memory: that many bytes, at a multiple of 64, zero. */
void aggregate_init(struct aggregate_pool *p, uint32_t groups, uint32_t window, void *memory,
		    enum kernel_level level);

/* Where a packet came from: a port below AGGREGATE_PORTS_MAX, and a number of the caller's, such as
 * the address that it was sent to, which comes back in answers. */
struct aggregate_source {
	unsigned port;
	uint32_t origin;
};

/* Takes one packet, the UDP payload. answer is set for COMPLETE, REPEAT, ANSWER, LATE and REFUSE.
 */
enum aggregate_verdict aggregate_take(struct aggregate_pool *p, uint64_t now_ns,
				      struct aggregate_source from, const void *packet,
				      uint32_t bytes, struct aggregate_answer *answer);

/* Completes one slot whose deadline has passed: true, and the answer for its group. Call it until
 * it returns false. */
bool aggregate_expire(struct aggregate_pool *p, uint64_t now_ns, struct aggregate_answer *answer);
/* When aggregate_expire has something to do next; UINT64_MAX: never. */
uint64_t aggregate_timeout(const struct aggregate_pool *p);

/* Writes the packet of an answer and returns its bytes, at most AGGREGATE_PACKET_MAX. */
uint32_t aggregate_write(const struct aggregate_answer *answer, void *out);

#endif
