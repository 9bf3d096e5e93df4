/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many whole nodes cheaply: the real control core of each, its real codec, and behind the record
 * interface a model of the dataplane that moves chunks at the rate of the links instead of packets.
 * So every decision of directory, fetch, feed, serve and gossip is the real code, and only the
 * transport is modelled:
 *
 *   connections  two round trips, the acceptor's budget for newcomers, repeated HELLOs
 *   messages     bytes as the codec makes them, over the sender's link, then a hop; a bounded
 *                number not yet acknowledged
 *   streams      chunks of a stream leave when the holder has them, share both links fairly, start
 *                slowly, arrive after a hop, and count one by one in the bitmaps that control reads
 *   control      handles one event at a time, each for turn_ns
 *   death        a node falls silent; its peers hear so when the transport would
 *
 * No loss, no queue in the network, no acknowledgements on the way back. One thread.
 */
#ifndef SARISSA_TESTS_SIM_SCALE_SCALE_H
#define SARISSA_TESTS_SIM_SCALE_SCALE_H

#include "core/control.h"
#include "model/events.h"
#include "model/prng.h"

#define SCALE_START_NS 1000000000ull
#define SCALE_US       1000ull
#define SCALE_MS       1000000ull
#define SCALE_S	       1000000000ull

enum {
	SCALE_SAMPLES_MAX = 1 << 17,
	SCALE_SESSIONS = 1,
	SCALE_TABLE_SLOTS = 256,
	SCALE_KINDS = MESSAGE_KINDS,
};

struct scale_options {
	uint32_t nodes;
	double rate_gbit;
	uint64_t hop_ns;
	uint16_t mtu;
	uint64_t size;
	uint64_t turn_ns;    /* of control for one message, event or request */
	uint64_t wake_ns;    /* until a control that slept begins */
	uint64_t forward_ns; /* from the last byte of a chunk in to its first byte out */
	uint64_t step_ns;    /* of the model of the streams */
	uint64_t dead_ns;    /* until the transport gives a silent peer up */
	uint64_t limit_ns;   /* of virtual time for a scenario */
	uint32_t accepts_per_s, accepts_burst; /* newcomers; at once */
	uint32_t die;			       /* nodes that die in the middle */
	uint64_t stagger_ns;		       /* arrivals are spread over so long */
	uint64_t seed;
	bool warm; /* every node is connected to the shard and to its first holder before */
	bool verbose;
};

struct scale_run { /* chunks [first, first + count) that arrive at a time */
	uint64_t at_ns;
	uint32_t first, count;
};

struct scale_buffer {
	uint32_t handle;
	uint32_t table_slot;
	uint64_t size;
	uint32_t chunk_bytes, chunks;
	uint64_t *bitmap;	  /* NULL: a local producer's */
	struct scale_flow *flows; /* from it */
	uint32_t ready, high;	  /* chunks that are here; the last one, + 1 */
	uint32_t contiguous;
	uint32_t reported;
};

struct scale_in {
	uint32_t handle, buffer, conn;
};

struct scale_flow { /* an OUT edge */
	uint32_t node, handle, buffer, conn, stream;
	uint32_t peer;
	struct scale_flow *of_buffer;
	uint32_t first, end, cursor;
	uint32_t left; /* chunks not sent */
	uint32_t flying;
	uint64_t *sent;
	double window_bytes;
	double budget_bytes;
	uint32_t want; /* chunks, in this step */
	bool failed;
	struct scale_run *runs; /* ring */
	uint32_t runs_head, runs_count, runs_room;
	uint32_t active; /* place among the active flows */
};

struct scale_conn {
	uint32_t handle, peer;
	uint16_t peer_index;
	bool up, opening, known; /* known: control has been told */
	uint64_t token;
	uint32_t tries;
};

struct scale_item; /* on its way to a control */

struct scale_node {
	struct scale *s;
	uint32_t index;
	bool dead;
	struct control *core;
	size_t core_bytes;
	uint8_t *store;
	struct object_table *table;
	_Atomic uint64_t *pins;
	struct net_addr addr;

	struct scale_conn *conns;
	uint32_t conns_used;
	uint16_t *conn_of; /* peer -> index + 1 */
	uint64_t link_free_ns;
	uint64_t accept_spent_ns;
	uint32_t slots_used; /* messages not acknowledged */

	struct scale_buffer *buffers;
	struct scale_in *ins;
	struct scale_flow **outs;
	double up_bytes, down_bytes; /* that the links can take in this step */
	uint32_t up_flows, down_flows;

	struct scale_item *queue_head, *queue_tail;
	bool busy;
	uint64_t wake_ns;

	/* the client */
	uint32_t seq, slot;
	uint64_t generation;
	uint64_t asked_ns, done_ns; /* 0: not (yet) */
	int32_t status;
	bool wants;

	/* counts */
	uint64_t messages[SCALE_KINDS], message_bytes[SCALE_KINDS]; /* sent */
	uint64_t messages_in, messages_refused;
	uint64_t sent_bytes; /* payload of streams */
	uint64_t first_ns;   /* the first chunk */
	uint32_t depth;	     /* streams between it and the source */
	uint64_t cpu_ns;
};

struct scale_samples {
	uint32_t *ns;
	uint32_t count;
	uint64_t sum_ns, all;
};

struct scale {
	struct scale_options o;
	struct control_config config;
	struct events events;
	struct scale_node *nodes;
	struct net_addr *addrs;
	uint32_t *shard_nodes;
	struct scale_flow **active;
	uint32_t active_count, active_room;
	bool stepping;
	uint32_t rotation;
	uint16_t chunk_bytes;
	uint32_t wire_bytes; /* of a chunk on the link */
	uint8_t *arena, *scratch, *packet;
	struct object_id id;
	uint32_t shard; /* of id */
	uint32_t gone;	/* nodes that will not end: dead */
	uint32_t ended; /* clients */
	struct prng draw;
	struct scale_samples cost[SCALE_KINDS]; /* of messages at the shard */
	struct scale_samples cost_codec;
	uint64_t hellos_refused;
};

/* ---- scale_wire.c: connections and messages ---- */
void scale_peer_open(struct scale_node *n, const struct record *r);
void scale_peer_close(struct scale_node *n, uint32_t handle);
bool scale_send(void *arg, uint32_t conn, const struct message *m);
struct scale_conn *scale_conn_find(struct scale_node *n, uint32_t handle);
/* It falls silent. */
void scale_die(struct scale_node *n);
/* What a client or the directory would need, before the clock runs. */
double scale_link_ns(const struct scale *s, uint64_t bytes);
/* Messages that are under way at the end; no event runs afterwards. */
void scale_wire_close(struct scale *s);

/* ---- scale_flow.c: buffers, edges, chunks ---- */
void scale_flow_command(struct scale_node *n, const struct record *r);
/* The connection has ended: its edges fail. */
void scale_flow_lost(struct scale_node *n, uint32_t conn, uint16_t reason);
void scale_flow_die(struct scale_node *n);

/* ---- scale_node.c: control and its client ---- */
void scale_open(struct scale *s, const struct scale_options *o);
void scale_close(struct scale *s);
/* To control, in its turn. */
void scale_event(struct scale_node *n, const struct record *r);
void scale_message(struct scale_node *n, uint32_t conn, uint8_t *bytes, uint32_t length);
/* A request of the client; the answer sets done_ns in the end. */
void scale_create(struct scale_node *n, uint64_t size);
void scale_get(struct scale_node *n);
/* Only asks the directory. */
void scale_stat(struct scale_node *n);
uint64_t scale_resident(const struct scale_node *n);
uint64_t scale_now(const struct scale *s);

#endif
