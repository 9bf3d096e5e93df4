/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of aggregation in the network (docs/user/aggregation.md): members send contributions to a
 * UDP port, and a switch on the path adds them up and sends the result to all. Used by the pool
 * (dataplane/core/aggregate.h), the member's job (client/switch/aggregate_job.h) and
 * ebpf/aggregate.bpf.c: so it has fixed widths and no libc. Little-endian. Pure; any thread.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_AGGREGATE_H
#define SARISSA_INCLUDE_INTERNAL_AGGREGATE_H

#ifdef __bpf__
#include <linux/types.h>
typedef __u8 aggregate_u8;
typedef __u16 aggregate_u16;
typedef __u32 aggregate_u32;
typedef __u64 aggregate_u64;
#else
#include <stdint.h>
typedef uint8_t aggregate_u8;
typedef uint16_t aggregate_u16;
typedef uint32_t aggregate_u32;
typedef uint64_t aggregate_u64;
#endif

enum {
	AGGREGATE_PORT = 7480,	      /* UDP: of the switch */
	AGGREGATE_RESULT_PORT = 7481, /* UDP: of the members */
	AGGREGATE_HEADER = 32,
	AGGREGATE_PAYLOAD_MAX = 1440, /* a full frame at MTU 1500 */
	AGGREGATE_PACKET_MAX = AGGREGATE_HEADER + AGGREGATE_PAYLOAD_MAX,
	AGGREGATE_STEP = 8, /* payload is padded with zeros to a multiple of it */
	AGGREGATE_MEMBERS_MAX = 64,
	AGGREGATE_BANKS = 4, /* two versions of a slot for each of two rounds */
	/* A type beside those of internal/reduce.h: i32 with a shared exponent per chunk. */
	AGGREGATE_BLOCK = 13,
};

/* The first byte of a packet. The high four bits are the version of the format. */
enum aggregate_kind {
	AGGREGATE_INSTALL = 0x51,      /* to the switch: a group and its policy */
	AGGREGATE_CONTRIBUTION = 0x52, /* to the switch: a chunk */
	AGGREGATE_POLL = 0x53,	       /* to the switch: asks for the state of a chunk */
	AGGREGATE_INSTALLED = 0x54,    /* answers INSTALL */
	AGGREGATE_RESULT = 0x55,       /* a complete chunk */
	AGGREGATE_WAIT = 0x56,	       /* answers a POLL: the result is not there yet */
	AGGREGATE_GONE = 0x57,	       /* answers: the slot has a later chunk */
	AGGREGATE_REFUSED = 0x58,      /* answers: refused; flags has the reason */
};

enum aggregate_reason {
	AGGREGATE_NO_ROOM = 1,	    /* all groups of the switch are in use */
	AGGREGATE_OTHER_GROUP = 2,  /* the group has another number of members */
	AGGREGATE_NO_KERNEL = 3,    /* this switch cannot compute that operation on that type */
	AGGREGATE_OTHER_SHAPE = 4,  /* another member sent this chunk with another size or type */
	AGGREGATE_OTHER_MEMBER = 5, /* the member's place is another process's, or another key's */
};

struct aggregate_header {
	aggregate_u8 kind;
	/* REFUSED: the reason. CONTRIBUTION: aggregate_end. Else 0. */
	aggregate_u8 flags;
	aggregate_u8 member;  /* to the switch: the sender; RESULT, WAIT: how many are in */
	aggregate_u8 members; /* of the group */
	aggregate_u32 check;  /* aggregate_check */
	/* RESULT, WAIT: bit i, member i is in. INSTALL, INSTALLED: bytes 0 quorum, 1 reserved, 2-3
	 * window, 4-7 deadline in microseconds. CONTRIBUTION, POLL: the token of the member's
	 * INSTALL. Else 0. */
	aggregate_u64 bitmap;
	aggregate_u32 group;
	aggregate_u32 round;	/* INSTALL, INSTALLED: version of the policy */
	aggregate_u32 chunk;	/* from 0 in each round */
	aggregate_u16 slot;	/* chunk mod window */
	aggregate_u8 operation; /* op in the low, type in the high four bits */
	/* Of AGGREGATE_BLOCK, for the payload of chunk + window. RESULT: the largest one. */
	signed char exponent;
};

_Static_assert(sizeof(struct aggregate_header) == AGGREGATE_HEADER, "a wire format");

/* A policy, in the place of bitmap. */
struct aggregate_policy {
	aggregate_u8 quorum;	   /* so many suffice at the deadline */
	aggregate_u8 reserved;	   /* 0 */
	aggregate_u16 window;	   /* INSTALLED: slots of a version; a power of two */
	aggregate_u32 deadline_us; /* after the first contribution to a chunk; 0: at once */
};

_Static_assert(sizeof(struct aggregate_policy) == 8, "a wire format");

/* The payload of INSTALL. */
struct aggregate_place {
	aggregate_u64
		key; /* of the group: those who do not have that of the first are no members */
	aggregate_u64 token; /* of this member, drawn at random by its process; not 0 */
};

_Static_assert(sizeof(struct aggregate_place) == 16, "a wire format");

/* 0, or of the last chunk of an array: 1 + its bytes of padding. So a switch sees when arrays
 * differ in length. */
static inline aggregate_u8 aggregate_end(int last, aggregate_u32 padding)
{
	return last ? (aggregate_u8)(1 + padding) : 0;
}

static inline aggregate_u8 aggregate_operation(aggregate_u8 op, aggregate_u8 dtype)
{
	return (aggregate_u8)(op | dtype << 4);
}

/* Which of the AGGREGATE_BANKS * window slots of a group has the chunk. */
static inline aggregate_u32 aggregate_slot(aggregate_u32 round, aggregate_u32 chunk,
					   aggregate_u32 window)
{
	aggregate_u32 bank = (round & 1) * 2 + (chunk / window & 1);
	return bank * window + chunk % window;
}

/* > 0: chunk a of round a is later than chunk b of round b. Rounds wrap. */
static inline int aggregate_later(aggregate_u32 round_a, aggregate_u32 chunk_a,
				  aggregate_u32 round_b, aggregate_u32 chunk_b)
{
	if (round_a != round_b)
		return (int)(round_a - round_b) > 0 ? 1 : -1;
	return chunk_a > chunk_b ? 1 : chunk_a == chunk_b ? 0 : -1;
}

#ifndef __bpf__
#include <string.h>

/*
 * Two sums over the 32-bit words of the packet, its check taken as 0 (after Fletcher, IEEE Trans.
 * Communications 30(1), 1982): one of the words, one of those weighted by their distance from the
 * end. bytes is a multiple of 4. Not CRC32C, because XDP programs have no instruction for that.
 */
static inline uint32_t aggregate_check(const void *packet, uint32_t bytes)
{
	const uint8_t *p = packet;
	uint32_t n = bytes / 4, sum = 0, weighted = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t word;
		memcpy(&word, p + 4 * i, 4);
		word = i == 1 ? 0 : word;
		sum += word;
		weighted += word * (n - i);
	}
	return weighted ^ (sum << 16 | sum >> 16);
}

static inline void aggregate_seal(void *packet, uint32_t bytes)
{
	uint32_t check = aggregate_check(packet, bytes);
	memcpy((uint8_t *)packet + 4, &check, 4);
}

/* Whether the bytes can be one of our packets, undamaged. */
static inline int aggregate_intact(const void *packet, uint32_t bytes)
{
	uint32_t check;
	if (bytes < AGGREGATE_HEADER || bytes > AGGREGATE_PACKET_MAX || bytes % AGGREGATE_STEP)
		return 0;
	memcpy(&check, (const uint8_t *)packet + 4, 4);
	return check == aggregate_check(packet, bytes);
}

/* The multicast address that the results of a group go to, in network byte order: 239.83.x.y. */
static inline void aggregate_address(uint32_t group, uint8_t out[4])
{
	out[0] = 239, out[1] = 83;
	out[2] = (uint8_t)(group >> 8), out[3] = (uint8_t)group;
}
#endif

#endif
