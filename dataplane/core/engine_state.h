/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an engine: connections, buffers, edges, messages. Everything is carved out of the
 * caller's memory at init (engine.c); nothing is allocated later. Only files of dataplane/core
 * include this; the shell sees engine.h alone.
 */
#ifndef SARISSA_DATAPLANE_CORE_ENGINE_STATE_H
#define SARISSA_DATAPLANE_CORE_ENGINE_STATE_H

#include "core/wire/cookie.h"
#include "engine.h"
#include "core/conn/handshake.h"
#include "core/kernel/kernel.h"
#include "list.h"
#include "core/plan/part.h"
#include "wheel.h"

struct conn;
struct buffer;
struct chunk_crc;
struct out_edge;
struct in_edge;
struct msg_out;

/* Slots for received messages: msg.c. */
struct engine_slots {
	uint32_t *free; /* stack */
	uint32_t free_count;
	uint64_t *at_control; /* bit per slot: with control */
};

/* Records for control: event.c. */
struct engine_events {
	struct record *ring;
	uint32_t mask;
	uint32_t reserved; /* for what may happen to everything that exists */
	uint32_t head, tail;
};

/* Answers that wait to leave: handshake.c. */
struct engine_replies {
	struct reply slot[REPLIES_MAX];
	uint32_t head, count;
};

struct engine {
	struct engine_config config;
	struct counters *count; /* config.counters */
	struct engine_stages stages;
	uint64_t now_ns;
	unsigned quantum[RAILS_MAX]; /* packets of one connection in its turn */

	struct conn *conns;
	struct buffer *buffers;
	struct out_edge *out_edges;
	struct in_edge *in_edges;
	struct msg_out *msgs;
	struct list free_msgs;
	struct list free_conns; /* by ready; the one freed last is at the end, its memory is warm */
	struct list ready[RAILS_MAX];
	struct list *by_addr; /* hash buckets: conns_max rounded up to a power of two */
	uint32_t addr_mask;
	struct list *by_stream; /* OUT edges: edges_max buckets, rounded up the same way */
	uint64_t stream_factor; /* odd, secret */
	uint32_t stream_mask;
	uint32_t conns_used;
	uint32_t sent_slots;   /* power of two: 2 * window_pkts */
	uint32_t rx_window;    /* bits, power of two */
	uint32_t in_active;    /* IN edges that still expect chunks, */
	uint32_t in_senders;   /* and the connections that they are on */
	uint32_t in_announced; /* senders when all of them were told how many they are */
	uint32_t unanswered;   /* connections whose probes nobody has answered yet */
	uint64_t heard_ns;     /* when a connection brought something last */
	struct list sweeps;    /* LOCAL edges whose source may have something for them */
	enum kernel_level kernels;
	struct chunk_crc *crcs; /* CHUNK_CRCS of them; a chunk has one place: chunk_crc.h */
	uint32_t buffer_number; /* of the buffer opened last; never 0 */
	bool carries;		/* crcs are used */

	struct engine_slots slots;
	struct engine_parts parts;
	struct engine_events events;
	struct engine_replies replies[RAILS_MAX];
	uint64_t budget_spent_ns[BUDGETS]; /* token buckets: time up to which each is spent */
	uint64_t pace_ns[RAILS_MAX];	   /* the same for config.rate_bps */

	struct wheel wheel;
};

#endif
