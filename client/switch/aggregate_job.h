/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One member's part in one allreduce through a switch: which chunk to send next, where a result
 * goes, what was lost. Called by aggregate.c and by tests; it has no socket, clock or allocation.
 *
 * Each of `window` slots has one chunk under way; its result clocks the slot's next chunk (window
 * further on). A slot: FRESH (waits for its turn, or for the source) -> SENT -> POLLED (asked about
 * with a header alone, since losing a result costs a poll and not a chunk) -> FRESH, until its
 * chunks are over. A poll that is answered "not in" sends the chunk again.
 *
 * AGGREGATE_BLOCK (SwitchML, NSDI 2021): f32 as i32 with one exponent per chunk. Packet k has the
 * exponent of data chunk k and the values of data chunk k - window, scaled by the largest exponent
 * that the result k - window brought. So the first packet of each slot has no values.
 */
#ifndef SARISSA_CLIENT_SWITCH_AGGREGATE_JOB_H
#define SARISSA_CLIENT_SWITCH_AGGREGATE_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include "internal/aggregate.h"

enum {
	AGGREGATE_JOB_WINDOW_MAX = 4096,
	AGGREGATE_JOB_REORDER = 64, /* results that pass one by before it counts as lost */
	AGGREGATE_JOB_PROBES = 16,  /* polls of a timeout at a time */
};

/* The switch counts as gone when nothing has come from it for so long. */
#define AGGREGATE_JOB_SILENCE_NS 200000000ull

enum aggregate_job_state { AGGREGATE_JOB_FRESH, AGGREGATE_JOB_SENT, AGGREGATE_JOB_POLLED };

struct aggregate_job_slot {
	uint64_t sent_ns, first_ns; /* its last packet; its chunk */
	uint32_t chunk; /* under way, or the next one; all before it in this slot have results */
	uint32_t order; /* of its last packet, among all */
	uint16_t next, previous; /* of those under way, by order */
	uint8_t state, tries;
	bool over;	      /* it has no chunk left */
	signed char exponent; /* agreed for the values of chunk; AGGREGATE_BLOCK */
};

struct aggregate_job_spec {
	const void *source;
	void *target;
	uint64_t bytes;
	uint32_t group, round;
	uint32_t window;  /* as the switch said: a power of two */
	uint16_t payload; /* bytes of a whole chunk, a multiple of 8 */
	uint8_t member, members;
	uint64_t token;	   /* of the member's INSTALL */
	uint8_t op, dtype; /* dtype: of internal/reduce.h, or AGGREGATE_BLOCK with f32 */
};

struct aggregate_job {
	struct aggregate_job_spec spec;
	uint32_t chunks, lead, slots; /* lead: packets of a slot before its values, times window */
	uint32_t prefix;	      /* all chunks before it have results */
	uint32_t left;		      /* slots that are not over */
	uint64_t source_ready;	      /* bytes at the source that may be sent */
	uint64_t heard_ns, probed_ns;
	uint64_t rtt_ns, deviation_ns;
	uint32_t order, order_heard, probes;
	uint64_t in_all;		 /* members that are in every chunk */
	uint32_t fewest;		 /* members that are in a chunk */
	int error;			 /* < 0: the switch has refused or lost something */
	uint64_t packets, polls, resent; /* sent; of these polls, and chunks sent once more */
	uint16_t oldest, newest;
	/* rings of slots: those that are FRESH, and those whose chunk goes again */
	uint32_t fresh_first, fresh_end, repeat_first, repeat_end;
	uint16_t fresh[AGGREGATE_JOB_WINDOW_MAX], repeat[AGGREGATE_JOB_WINDOW_MAX];
	struct aggregate_job_slot slot[AGGREGATE_JOB_WINDOW_MAX];
};

/* The spec is valid, and its memory stays as long as the job; source_ready is all of it. */
void aggregate_job_init(struct aggregate_job *j, const struct aggregate_job_spec *spec,
			uint64_t now_ns);

/* Writes the next packet to out, AGGREGATE_PACKET_MAX bytes, and returns its bytes; 0: none now. */
uint32_t aggregate_job_next(struct aggregate_job *j, uint64_t now_ns, void *out);

/* Takes a packet, checked by aggregate_intact. False: it is not for this job. */
bool aggregate_job_take(struct aggregate_job *j, uint64_t now_ns, const void *packet,
			uint32_t bytes);

/* When aggregate_job_next has something again if nothing comes. */
uint64_t aggregate_job_timeout(const struct aggregate_job *j);

/* 0: goes on; 1: the target has all; < 0: -ENETUNREACH the switch is silent, -ESTALE it has given
 * a chunk to others, -ENOTSUP, -EINVAL it has refused. */
int aggregate_job_status(const struct aggregate_job *j, uint64_t now_ns);

/* Bytes of the target, from the start, that are final. */
uint64_t aggregate_job_ready(const struct aggregate_job *j);

#endif
