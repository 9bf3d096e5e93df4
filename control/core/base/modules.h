/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control core as each of its modules sees it: the configuration, the time of the present turn,
 * what the dataplane has given, and a pointer to the state of each module. Those are declared only.
 * A module includes the headers of itself and of modules below it, so it cannot look into one
 * above.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_MODULES_H
#define SARISSA_CONTROL_CORE_BASE_MODULES_H

#include "core/control.h"
#include "commands.h"
#include "timers.h"
#include "times.h"

struct cluster_state;
struct coordinator_state;
struct directory_state;
struct flow_state;
struct group_state;
struct lease_state;
struct participant_state;
struct requester_state;
struct session_state;
struct store_state;
struct transfer_state;

struct control {
	struct control_config config;
	struct control_ops ops;
	struct control_counters counters;
	uint64_t now_ns;
	uint64_t random;       /* state of the generator for pauses */
	uint64_t generation;   /* of the last object made here, without the node's part */
	bool generation_drawn; /* it has been raised beyond the clock (env.c) */
	uint64_t epoch_ns;     /* from our clock to that of the incarnations */
	struct timers timers;
	struct commands commands;

	bool attached;
	struct attach_reply dataplane;
	uint8_t *memory;	    /* the store's bytes */
	struct object_table *table; /* NULL before the first attach */
	struct object_private *private;
	uint32_t workers; /* of our dataplane; 0 before the first attach */

	struct cluster_state *cluster;
	struct directory_state *directory;
	struct lease_state *lease;
	struct flow_state *flow;
	struct store_state *store;
	struct transfer_state *transfer;
	struct participant_state *participant;
	struct coordinator_state *coordinator;
	struct requester_state *requester;
	struct group_state *group;
	struct session_state *session;
};

#endif
