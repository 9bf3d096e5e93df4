/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the dataplane benchmark. One thread, everything on one core. */
#ifndef SARISSA_BENCH_DATAPLANE_DATAPLANE_H
#define SARISSA_BENCH_DATAPLANE_DATAPLANE_H

#include <stdbool.h>
#include <stdint.h>

struct pair;

struct stage_cycles {
	uint64_t driver, headers, ahead, check, receive, copy_in, ack, transmit, copy_out, seal;
};

struct pair_result {
	double seconds;
	uint64_t bytes;	  /* of payload */
	uint64_t packets; /* that carried payload */
	uint64_t cycles;
	uint16_t chunk_bytes;
	struct stage_cycles stage; /* of both endpoints together; zero without accounting */
};

/* Two endpoints in this thread, joined by one net_ring device. patience_s: how long an object may
 * take. NULL with a line on stderr. */
struct pair *pair_open(uint16_t mtu, uint64_t object_bytes, double patience_s);
/* The work of a run. */
enum pair_work {
	PAIR_COPY,    /* an object from one to the other */
	PAIR_SUM,     /* the receiver adds an object of its own to it, as f32, into a third place;
		       * copy_in is that addition */
	PAIR_FAN,     /* it is sent twice at the same time, into two places */
	PAIR_FORWARD, /* the receiver sends it back at once, into another place of the sender */
};

/* Moves objects for at least this long; the result is that of the median object. False, with a line
 * on stderr: the bytes are wrong, or do not come. */
bool pair_run(struct pair *p, double seconds, bool stages, enum pair_work work,
	      struct pair_result *out);
/* Copies the same object in the same chunks for at least this long; bytes per second. */
double pair_memcpy(struct pair *p, double seconds);
void pair_close(struct pair *p);
/* Zeroed, in huge pages where there are some, to be unmapped; NULL: none. */
void *end_memory(uint64_t bytes);

struct local_result {
	double cycles, kernel_cycles; /* per chunk; of the kernel alone, called chunk by chunk */
};

/* Two f32 objects of a node are added by its engine into a third place. Medians. False, with a line
 * on stderr: it cannot, or the bytes are wrong. */
bool local_run(uint16_t chunk_bytes, uint64_t object_bytes, struct local_result *out);

/* Packets per second of testpmd's io forwarding on a net_ring device, one forwarding core; 0 with a
 * line on stderr when it cannot be run. */
double testpmd_run(uint16_t packet_bytes, unsigned seconds);

#endif
