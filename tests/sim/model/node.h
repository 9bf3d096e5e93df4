/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One simulated node: an engine, its store, object table and message areas in plain memory between
 * guard pages, driven exactly as engine.h says a shell does. The node keeps a ledger of everything
 * it was told to do and judges every event and every byte against it; what does not fit is a
 * violation of the world (world.h).
 *
 * Buffers, edges and messages are named by their index in the node's ledger.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_NODE_H
#define SARISSA_TESTS_SIM_MODEL_NODE_H

#include "engine.h"
#include "internal/ipc.h"
#include "memory.h"
#include "network.h"

struct world;
struct node;

enum {
	NODE_NONE = UINT32_MAX,
	NODE_INBOX_PKTS = 1024, /* receive ring of the modelled NIC */
	NODE_REDZONE_BYTES = 64,
};

struct node_options {
	struct engine_config config; /* engine_config_default() and what the test changes */
	uint64_t store_bytes;
	uint32_t msg_slots;    /* per direction */
	uint32_t msg_rx_slots; /* 0: as many */
	uint32_t table_slots;
	uint64_t turn_ns; /* the worker looks at its receive ring so often; 0: at every packet */
};

enum buffer_kind {
	BUFFER_SOURCE, /* holds the content from the start, or as far as node_advance() */
	BUFFER_SINK,   /* fills from IN edges */
};

struct node_buffer {
	uint32_t handle;
	enum buffer_kind kind;
	uint64_t store_offset, size, bitmap_offset, seed;
	uint64_t ready_bytes; /* as far as events or the producer said */
	uint32_t chunk_bytes, table_slot, epoch;
	bool live;     /* the engine knows it */
	bool done;     /* BUFFER_DONE has come */
	bool dropping; /* DROP_BUFFER is under way */
	bool dropped;  /* its memory is poison now, and must stay so */
};

enum edge_state { EDGE_OPEN, EDGE_DONE, EDGE_FAILED, EDGE_DROPPING, EDGE_DROPPED };

struct node_edge {
	uint32_t handle, buffer, peer, conn, stream, first, chunks;
	uint8_t direction; /* RECORD_FLAG_IN or _OUT */
	enum edge_state state;
	bool given; /* IN: its range is complete, as EVENT_IN_DONE said; it stays open */
	uint16_t reason;
	uint64_t bitmap_offset; /* OUT */
	uint64_t ended_ns;
};

/* What the sending node knows about a message. */
struct node_message {
	uint32_t conn, sequence, length, slot, peer;
	bool ended, acknowledged, delivered;
};

/* A connection as this node has seen it, in order of PEER_UP. */
struct node_conn {
	uint32_t handle, peer;
	uint64_t peer_incarnation;
	uint64_t up_ns, down_ns; /* down_ns 0: up */
	uint16_t reason, mtu;
	uint32_t next_out, next_in; /* message sequence numbers */
};

/* Who holds the index of a handle: ledger index + 1, or 0. */
struct node_ids {
	uint32_t *owner;
	uint16_t *generation;
	uint32_t count, next;
};

/* A range of the store that belongs to somebody; all else is poison. */
struct node_extent {
	uint64_t offset, bytes;
};

struct node {
	struct world *world;
	uint32_t index;
	uint32_t worker; /* of several that have store and table in common; else 0 */
	bool alive;
	uint32_t life; /* counts restarts */
	struct node_options options;
	struct engine_config config;
	struct engine *engine;
	struct counters counters; /* of this life */
	struct memory engine_memory, store, table, msg_tx, msg_rx;
	uint64_t store_used;
	struct node_extent *extents; /* of the store, ascending */
	uint32_t extents_count, extents_room;
	uint64_t frozen_until_ns;
	uint64_t turn_scheduled_ns, last_turn_ns, timer_ns;
	struct network_packet *inbox[NODE_INBOX_PKTS];
	uint32_t inbox_count;
	uint64_t inbox_drops;
	uint64_t turns_at_ns;
	uint32_t turns_now;
	bool in_turn, kicked;

	struct record *pending; /* commands that the engine had no room for */
	uint32_t pending_count, pending_room;

	struct node_buffer *buffers;
	struct node_edge *edges;
	struct node_message *messages;
	struct node_conn *conns;
	uint32_t buffers_count, edges_count, messages_count, conns_count;
	uint32_t buffers_room, edges_room, messages_room, conns_room;
	struct node_ids in_ids, out_ids, buffer_ids; /* handles, this life */
	uint8_t *tx_slot_used;
	uint32_t open_answers; /* PEER_UP and PEER_DOWN that came with a token */
	uint32_t refused;
	uint16_t refused_reason;
	bool expect_refused;
	uint64_t done_ns; /* time of the last BUFFER_DONE */
	uint64_t msgs_delivered;
	bool hold_messages; /* received slots are not given back */
	struct record held[64];
	uint32_t held_count;

	/* Crash points until this process dies at one (crash.h); 0: it lives. crashed() must then
	 * kill it, and the processes that die with it. */
	uint32_t crash_left;
	void (*crashed)(struct node *n);

	/* A whole node (full.h): its events go here, to its control, instead of to the ledger. */
	void (*control)(struct node *n, const struct record *event);

	/* called after the ledger took the event; may issue commands */
	void (*on_event)(struct node *n, const struct record *event);
	void *context;
};

/* index: of world.nodes */
void node_init(struct node *n, struct world *w, uint32_t index, const struct node_options *o);
void node_free(struct node *n);

/* kill -9 and start again: another incarnation, the same address and store. Buffers that the
 * ledger holds are forgotten by the engine; their memory stays. Of several workers the first begins
 * first. */
void node_kill(struct node *n);
void node_start(struct node *n);

/* The receive side does not run until then: packets wait in the NIC's ring, or are lost. */
void node_freeze(struct node *n, uint64_t until_ns);

/* A packet from the network (which gives it away). */
void node_deliver(struct node *n, struct network_packet *p);

/* Gives the engine a record; what it cannot take now is kept and given later, in order. */
void node_command(struct node *n, const struct record *r);

/* Runs the engine until it has nothing to do now. Called by all of the above where needed. */
void node_turn(struct node *n);

/* The connection to a peer that is up now: its handle; 0 when there is none. */
uint32_t node_conn_to(const struct node *n, uint32_t peer);
struct node_conn *node_conn_find(struct node *n, uint32_t handle);

void node_connect(struct node *n, uint32_t peer);
void node_disconnect(struct node *n, uint32_t peer);

/* Buffers. A source holds the content of seed up to ready_bytes. */
uint32_t node_source(struct node *n, uint64_t size, uint32_t chunk_bytes, uint64_t seed,
		     uint64_t ready_bytes);
uint32_t node_sink(struct node *n, uint64_t size, uint32_t chunk_bytes, uint64_t seed);
/* Announces a buffer of an earlier life again, with the bitmap that it has. */
void node_adopt(struct node *n, uint32_t buffer);
/* The local producer writes on, up to ready_bytes. */
void node_advance(struct node *n, uint32_t buffer, uint64_t ready_bytes);
void node_drop_buffer(struct node *n, uint32_t buffer);

/* Buffers or edges that could still be opened; take care to have one before you open it. */
bool node_has_room(const struct node *n);
/* The same for an object of so many bytes in the store. */
bool node_has_store(const struct node *n, uint64_t bytes);

/* The node lost its store too: its buffers are gone for good. Only while it is dead. */
void node_forget(struct node *n);

/* Edges over a connection that is up. chunks 0: to the end. */
uint32_t node_in(struct node *n, uint32_t buffer, uint32_t peer, uint32_t first, uint32_t chunks);
uint32_t node_out(struct node *n, uint32_t buffer, uint32_t peer, uint32_t stream, uint32_t first,
		  uint32_t chunks);
/* The same with a sent bitmap whose bits the caller has set. */
uint32_t node_out_resumed(struct node *n, uint32_t buffer, uint32_t peer, uint32_t stream,
			  const uint64_t *sent);
void node_drop_edge(struct node *n, uint32_t edge);

/* Sends a message of length bytes (16 at least); NODE_NONE: no slot or connection. */
uint32_t node_message(struct node *n, uint32_t peer, uint32_t length);

/* Judges every byte of the node's memory. Called at the end of a test and whenever in doubt. */
void node_check(struct node *n);

/* Gives back the slots of all held messages. */
void node_release(struct node *n);

/* The engine's own books must balance (invariants.c); the first thing that does not, or NULL. */
const char *invariants_check(struct engine *e);
/* No stream, message or grant is open any more: connections may be up. */
const char *invariants_check_idle(struct engine *e);

/* ---- between the files of the node -------------------------------------------------------- */
enum node_token { TOKEN_BUFFER = 1, TOKEN_EDGE, TOKEN_MESSAGE, TOKEN_PEER };
uint64_t node_token(const struct node *n, enum node_token kind, uint32_t index);
void node_event(struct node *n, const struct record *event);
void node_message_event(struct node *n, const struct record *event);
void *node_grow(void *array, uint32_t count, uint32_t *room, size_t size);

#endif
