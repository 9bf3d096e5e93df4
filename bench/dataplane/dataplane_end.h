/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One endpoint of the dataplane benchmarks: an engine behind the dataplane's own receive and
 * transmit paths, without a control process. Belongs to the thread that turns it.
 */
#ifndef SARISSA_BENCH_DATAPLANE_DATAPLANE_END_H
#define SARISSA_BENCH_DATAPLANE_DATAPLANE_END_H

#include "dataplane.h"
#include "io/node/worker.h"

struct end {
	struct worker *worker;
	struct session session;
	struct engine_config config;
	struct counters counters;
	uint64_t stages[IO_STAGES];
	uint32_t conn;			  /* 0: not connected yet */
	unsigned buffers_done, outs_done; /* since the user of this last set them to 0 */
	unsigned dropped;		  /* buffers given up */
};

/* Where an object lies in the store of an end. */
struct object {
	uint32_t handle; /* the same at both ends */
	uint64_t store_offset, bytes, bitmap_offset;
	uint64_t taken_offset; /* of an object that is added to; 0: it is copied */
	uint16_t chunk_bytes;
};

/* Makes workers[index] a worker of a port that is open, with an engine over the store. */
bool end_open(struct end *e, const struct port *port, struct worker *workers, unsigned index,
	      uint64_t incarnation, uint8_t *store, uint64_t store_bytes);
/* A turn of the worker loop; how much there was to do. */
unsigned end_turn(struct end *e);
void end_command(struct end *e, struct record r);
/* Begins a connection to addr, which the neighbour table knows. */
void end_connect(struct end *e, const struct net_addr *addr);
/* The object goes from here, or comes here, over the one connection. */
void end_send(struct end *e, const struct object *o);
/* The object, whose buffer is there, goes from here into another: as (its handle, its bitmap). */
void end_send_on(struct end *e, const struct object *o, const struct object *as);
void end_take(struct end *e, const struct object *o);
/* Gives the buffer up, and all that hangs on it. */
void end_drop(struct end *e, uint32_t handle);

/* Whether cycles are taken by stage, which costs some. */
void end_account(struct end *e, bool on);
/* Adds what was taken so far. */
void end_stages(const struct end *e, struct stage_cycles *sum);

/* sum += now - was, stage by stage. */
void stages_add(struct stage_cycles *sum, const struct stage_cycles *now,
		const struct stage_cycles *was);
/* As members of a JSON object, per packet. */
void stages_print(const struct stage_cycles *s, uint64_t packets);

/* Copies so many bytes in chunks for at least this long; bytes per second of the pass in the
 * middle.
 */
double end_memcpy(uint8_t *to, const uint8_t *from, uint64_t bytes, uint16_t chunk_bytes,
		  double seconds);

/* Numbers from 1 to 2 where they are taken for f32: additions of ordinary cost. */
void end_fill(uint8_t *store, uint64_t bytes, uint32_t seed);
bool end_filled(const uint8_t *store, uint64_t bytes, uint32_t seed);

#endif
