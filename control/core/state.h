/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole of a control core, all rooms open: for what builds it (config.c), wires the rooms to
 * each other (control.c, dispatch.c, wiring.c, gauges.c, clock.c), and for tests. No room includes
 * this.
 */
#ifndef SARISSA_CONTROL_CORE_STATE_H
#define SARISSA_CONTROL_CORE_STATE_H

#include "core/base/bitmap.h"
#include "core/base/env.h"
#include "core/base/rooms.h"
#include "core/base/text.h"
#include "core/cluster/events.h"
#include "core/cluster/gossip.h"
#include "core/cluster/join.h"
#include "core/cluster/loopback.h"
#include "core/cluster/room.h"
#include "core/cluster/settle.h"
#include "core/directory/agent.h"
#include "core/directory/room.h"
#include "core/lease/room.h"
#include "core/flow/events.h"
#include "core/flow/room.h"
#include "core/store/events.h"
#include "core/store/room.h"
#include "core/transfer/events.h"
#include "core/transfer/keep.h"
#include "core/transfer/room.h"
#include "core/reduce/participant/room.h"
#include "core/reduce/coordinator/events.h"
#include "core/reduce/coordinator/room.h"
#include "core/reduce/requester/events.h"
#include "core/reduce/requester/room.h"
#include "core/group/room.h"
#include "core/session/room.h"
#include "clock.h"
#include "control.h"
#include "dispatch.h"

struct core {
	struct control control;
	struct room_cluster cluster;
	struct room_directory directory;
	struct room_lease lease;
	struct room_flow flow;
	struct room_store store;
	struct room_transfer transfer;
	struct room_participant participant;
	struct room_coordinator coordinator;
	struct room_requester requester;
	struct room_group group;
	struct room_session session;
};

/* Sets the pointers from the control to its rooms. */
struct control *core_join(struct core *k);

/* wiring.c */
extern const struct cluster_ops wiring_cluster;
extern const struct flow_ops wiring_flow;
extern const struct store_ops wiring_store;
extern const struct transfer_ops wiring_transfer;
extern const struct delegate_ops wiring_delegate;
extern const struct requester_ops wiring_requester;
extern const struct lease_ops wiring_lease;

/* control.c */
void control_start(struct control *c);

#endif
