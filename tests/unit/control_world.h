/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several whole nodes in one process, under virtual time: real control cores, the real codec and
 * real engines, over a model network with a fixed delay and optional loss. Deterministic.
 *
 * A node's control or engine can be killed and started again; the store and the table stay as they
 * do between real processes, or are lost with both.
 */
#ifndef SARISSA_TESTS_UNIT_CONTROL_WORLD_H
#define SARISSA_TESTS_UNIT_CONTROL_WORLD_H

#include "control_disk.h"
#include "core/control.h"
#include "core/lease/kept.h"
#include "engine.h"
#include "rpc/mailbox.h"

enum {
	WORLD_NODES_MAX = 8,
	WORLD_WORKERS_MAX = 2,
	WORLD_REPLIES_MAX = 4096,
	WORLD_MSG_SLOTS = 64,
	WORLD_TABLE_SLOTS = 256,
	WORLD_SESSIONS = 4,
	WORLD_INFLIGHT = 8192,
	WORLD_MEMORIES = 64,
};

#define WORLD_MS     UINT64_C(1000000)
#define WORLD_SECOND UINT64_C(1000000000)

struct world_reply {
	uint32_t session;
	struct session_reply reply;
	struct session_object object;
	struct session_node node;
	struct session_sources sources;
	uint32_t tail_bytes;
	bool taken;
};

struct world_memory { /* a private staging buffer */
	uint8_t *bytes;
	uint64_t size;
};

struct world_node {
	struct world *world;
	uint32_t number;
	uint32_t workers;
	struct control *core; /* NULL: killed */
	struct mailbox mailbox;
	void *core_memory, *mailbox_memory;
	size_t core_bytes; /* of this one: the configuration is for the next */
	struct engine *engine[WORLD_WORKERS_MAX]; /* NULL: killed */
	void *engine_memory[WORLD_WORKERS_MAX];
	size_t engine_bytes;
	struct counters counters[WORLD_WORKERS_MAX];
	uint8_t *store, *msg_tx, *msg_rx;
	struct object_table *table;
	struct disk disk;
	struct lease_kept *leases; /* outlives its control, unless the whole node is lost */
	_Atomic uint64_t pins[WORLD_SESSIONS][SESSION_PINS];
	uint64_t incarnation;
	struct world_reply *replies;
	uint32_t replies_count;
	uint32_t seq;
	struct world_memory *staged[WORLD_TABLE_SLOTS]; /* that control has, by slot */
	struct world_memory *brought;			/* comes along with the next request */
	int staging_error;				/* of making or reading any; 0: none */
	uint32_t slow; /* 1: the client does not read; more: soon it will not; 0: it always reads */
};

struct world_packet {
	uint64_t at_ns;
	struct net_addr from, to;
	uint16_t length;
	uint8_t bytes[1500];
};

struct world {
	struct world_node node[WORLD_NODES_MAX];
	uint32_t nodes;
	uint64_t store_bytes;
	uint64_t now_ns;
	uint64_t delay_ns;
	uint32_t loss_permille;
	uint64_t prng;
	uint64_t lives;			    /* of controls, so far */
	bool cut[WORLD_NODES_MAX];	    /* the cable is pulled */
	uint32_t separated[2];		    /* these two do not reach each other, if they are two */
	bool frozen[WORLD_NODES_MAX];	    /* its processes stand still */
	bool stalled[WORLD_NODES_MAX];	    /* its control does, its dataplane runs */
	bool cut_worker[WORLD_WORKERS_MAX]; /* what the workers of this number send is lost */
	bool hold_copies;		    /* of staging buffers */
	bool old_clients;		    /* of earlier controls: they still have the table */
	bool clients_live;		    /* the processes of those */
	struct world_packet *packets; /* ring in order of arrival: the delay is the same for all */
	uint32_t head, count;
	uint8_t *arena;
	struct world_memory memory[WORLD_MEMORIES]; /* all there ever were: clients keep them */
	uint32_t memories;
	struct control_config config; /* what the next control starts with */
	uint32_t shard_nodes[WORLD_NODES_MAX];
};

/* Nodes with a store of store_bytes each, all running; shard: node 0, or all of them. */
struct world *world_new(uint32_t nodes, uint32_t workers, uint64_t store_bytes, bool all_shards);
void world_free(struct world *w);
/* From now on every node keeps the part of the directory that it has among those that live: all
 * controls begin again, with the config as it is, and find each other; session 0 of each is open.
 */
void world_keep_all(struct world *w);

void world_run(struct world *w, uint64_t for_ns);
/* Runs until done() or for at most for_ns; returns what done() said last. */
bool world_until(struct world *w, bool (*done)(struct world *w, void *arg), void *arg,
		 uint64_t for_ns);

void world_kill_control(struct world *w, uint32_t node);
void world_start_control(struct world *w, uint32_t node);
void world_kill_engine(struct world *w, uint32_t node);
void world_start_engine(struct world *w, uint32_t node);
/* The dataplane begins again with so many. */
void world_change_workers(struct world *w, uint32_t node, uint32_t workers);
/* One thing goes wrong with a node from that one on, or with all that workers of one number send,
 * or is put right; a draw says which. */
void world_trouble(struct world *w, uint32_t from, uint64_t draw);
/* All is put right. */
void world_heal(struct world *w);
/* Nothing is left of what was done but the objects. */
void world_end(struct world *w);
/* Both are dead: their memory is gone as well. */
void world_lose_store(struct world *w, uint32_t node);
/* All three: the whole node is gone. */
void world_kill_node(struct world *w, uint32_t node);
/* The engine dies, and a new one brings another store; its sessions are closed. */
void world_replace_store(struct world *w, uint32_t node);

/* ---- a client ------------------------------------------------------------------------------ */

uint32_t world_open(struct world *w, uint32_t node); /* and attaches */
/* Sends a request; returns its seq. */
uint32_t world_send(struct world *w, uint32_t node, uint32_t session, struct session_request *r);
/* The next reply to seq that was not taken yet, or NULL. */
struct world_reply *world_reply_to(struct world *w, uint32_t node, uint32_t seq);
/* Runs until the reply comes; NULL after for_ns. */
struct world_reply *world_wait(struct world *w, uint32_t node, uint32_t seq, uint64_t for_ns);
/* world_send and world_wait. */
struct world_reply *world_call(struct world *w, uint32_t node, uint32_t session,
			       struct session_request *r, uint64_t for_ns);

struct session_request world_request(uint16_t op, const char *name);
struct object_id world_id(const char *name);
/* PUT of that pattern; returns the seq. */
uint32_t world_put_send(struct world *w, uint32_t node, uint32_t session, const char *name,
			uint64_t size, uint64_t seed);
/* The same, and waits for the answer; returns its status. */
int world_put_whole(struct world *w, uint32_t node, uint32_t session, const char *name,
		    uint64_t size, uint64_t seed);
/* create, fill with a pattern that follows from seed, seal. Returns 0 or the error. */
int world_put(struct world *w, uint32_t node, uint32_t session, const char *name, uint64_t size,
	      uint64_t seed);
/* WAIT for all of the object that a GET or CREATE was answered with. */
struct session_request world_wait_for(const struct session_reply *got);
/* get and wait for all of it, each with that timeout. 0 and where it is, or the error; -EBUSY when
 * no reply came. */
int world_fetch(struct world *w, uint32_t node, uint32_t session, const char *name,
		int64_t timeout_ns, const uint8_t **bytes, uint64_t *size);
/* The metadata of the object in a slot, as readers of that node find them in its store. */
struct object_meta world_meta(const struct world *w, uint32_t node, uint32_t slot);
/* world_fetch, and compares with the pattern: -EIO when the bytes or the size are wrong. */
int world_get(struct world *w, uint32_t node, uint32_t session, const char *name, uint64_t size,
	      uint64_t seed, int64_t timeout_ns);
/* Asks for a reduce; returns the seq. */
uint32_t world_reduce_send(struct world *w, uint32_t node, uint32_t session, const char *target,
			   const struct object_id *sources, struct session_reduction how,
			   uint32_t flags, int64_t timeout_ns);
/* Begins a reduce; returns the status. */
int world_reduce(struct world *w, uint32_t node, uint32_t session, const char *target,
		 const struct object_id *sources, struct session_reduction how, uint32_t flags,
		 int64_t timeout_ns);
/* How it ended: the count of those in the result, which go to out when that is not NULL, or the
 * error; -EBUSY when no reply came. */
int world_reduced(struct world *w, uint32_t node, uint32_t session, const char *target,
		  int64_t timeout_ns, struct object_id *out);
void world_fill(uint8_t *bytes, uint64_t size, uint64_t seed);
bool world_holds(const uint8_t *bytes, uint64_t size, uint64_t seed);
/* Whether they are the sum, 32 bits at a time, of the patterns of seed k + 1 for every bit k. */
bool world_sums(const uint8_t *bytes, uint64_t size, uint64_t set);
void world_unpin(struct world *w, uint32_t node, uint32_t session);

#endif
