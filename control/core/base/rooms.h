/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control core as each of its rooms sees it: the configuration, the time of the present turn,
 * what the dataplane has given, and a pointer to the state of each room. Those are declared only. A
 * room includes the headers of itself and of rooms below it, so it cannot look into one above.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_ROOMS_H
#define SARISSA_CONTROL_CORE_BASE_ROOMS_H

#include "core/control.h"
#include "commands.h"
#include "timers.h"

struct room_cluster;
struct room_coordinator;
struct room_directory;
struct room_flow;
struct room_group;
struct room_lease;
struct room_participant;
struct room_requester;
struct room_session;
struct room_store;
struct room_transfer;

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

	struct room_cluster *cluster;
	struct room_directory *directory;
	struct room_lease *lease;
	struct room_flow *flow;
	struct room_store *store;
	struct room_transfer *transfer;
	struct room_participant *participant;
	struct room_coordinator *coordinator;
	struct room_requester *requester;
	struct room_group *group;
	struct room_session *session;
};

#endif
