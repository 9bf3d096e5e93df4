/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole node: engines of node.h, one per worker, with a real control core, its codec and mailbox.
 * As between
 * the two processes, events reach control some time after they happened; either side can be
 * killed and started again while store and table stay, or are lost with both.
 */
#ifndef SARISSA_TESTS_SIM_FULL_FULL_H
#define SARISSA_TESTS_SIM_FULL_FULL_H

#include "core/control.h"
#include "rpc/mailbox.h"
#include "model/world.h"

enum { FULL_SESSIONS = 3, FULL_TABLE_SLOTS = 128, FULL_REPLIES = 1024, FULL_EVENTS = 8192 };

enum { FULL_SOURCES = 512, FULL_DRIFT_PPM = 200 };

#define FULL_SKEW_NS (4 * WORLD_S)

struct full_reply {
	uint32_t session;
	struct session_reply reply;
	uint32_t sources; /* REDUCED */
	struct object_id source[FULL_SOURCES];
};

struct full_event {
	struct record record;
	uint32_t worker;
};

struct full {
	struct node *n;	  /* the first worker */
	uint32_t workers; /* that its dataplane has, or begins with: at most as in its options */
	struct full_group *group;
	struct control *core; /* NULL: killed */
	bool attached;
	void *core_memory, *mailbox_memory;
	struct mailbox mailbox;
	struct full_event *events; /* ring: on their way to control */
	uint32_t events_head, events_count;
	uint64_t wake_ns; /* a wake-up in the heap; 0: none */
	bool pumping;
	uint32_t life;	   /* of control */
	uint64_t skew_ns;  /* of the time of day, by which generations are numbered */
	int32_t drift_ppm; /* of its control's clock */
	uint32_t newer;	   /* versions of the messages that its control is ahead of ours */
	uint64_t frozen_until_ns;
	uint32_t crash_left; /* crash points until control dies at one (crash.h); 0: it lives */
	uint32_t crashes, dataplane_crashes; /* at crash points */
	uint64_t old_until_ns; /* clients of its last life have the table until then */
	_Atomic uint64_t pins[FULL_SESSIONS][SESSION_PINS];
	struct full_reply *replies; /* ring: on their way to clients */
	uint32_t replies_head, replies_count;
};

struct full_group {
	struct world *w;
	struct full *full;
	struct control_config config;
	uint32_t *shard_nodes;
	struct net_addr *addrs;
	uint8_t *arena;
	uint64_t latency_ns; /* from an event to control */
	void (*on_reply)(void *context, struct full *f, const struct full_reply *r);
	void *context;
	void (*on_log)(const struct full *f, const char *text); /* or NULL */
	bool trace; /* SWARM_TRACE in the environment: every message on stderr */
};

/* Node options that fit whole nodes. */
struct node_options full_options(uint64_t store_bytes);
/* Times of control that fit simulated seconds instead of minutes. */
void full_config(struct control_config *c);

/* Gives every node of the world a control, and all its workers. shards: nodes 0 .. shards - 1 keep
 * the directory; 0: all that live. */
void full_open(struct full_group *g, struct world *w, const struct control_config *config,
	       uint32_t shards, uint64_t latency_ns);
void full_close(struct full_group *g);

/* What its control's clock shows. */
uint64_t full_now(const struct full *f);

void full_kill_control(struct full *f);
void full_start_control(struct full *f);
void full_kill_dataplane(struct full *f);
void full_start_dataplane(struct full *f);
/* Both are dead, and so is the memory. */
void full_lose_store(struct full *f);

/* Gives a request to control; the answer comes through on_reply. */
void full_request(struct full *f, uint32_t session, const struct session_request *r);
/* The same of any length. */
void full_packet(struct full *f, uint32_t session, const void *packet, size_t bytes);
/* A session and its pins, or -1. */
int full_session(struct full *f);

/* One of its workers; those that it does not begin with are dead. */
struct node *full_worker(const struct full *f, uint32_t worker);
/* Neither workers nor control run until then. */
void full_still(struct full *f, uint64_t until_ns);
/* Lets control run soon. */
void full_wake(struct full *f, uint64_t at_ns);

/* full_trace.c: to replay a failure */
void full_trace(const struct full *f, const char *way, uint32_t conn, const struct message *m);
void full_trace_event(const struct full *f, const struct record *r);
void full_trace_life(const struct full *f, const char *what);
void full_trace_log(void *arg, enum control_log_level level, const char *text);

#endif
