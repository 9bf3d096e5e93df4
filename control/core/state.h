/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole of a control core, all modules open: for what builds it (config.c), wires the modules
 * to each other (control.c, dispatch.c, wiring.c, gauges.c, clock.c), and for tests. No module
 * includes this.
 */
#ifndef SARISSA_CONTROL_CORE_STATE_H
#define SARISSA_CONTROL_CORE_STATE_H

#include "core/base/bitmap.h"
#include "core/base/env.h"
#include "core/base/modules.h"
#include "core/base/text.h"
#include "core/cluster/events.h"
#include "core/cluster/gossip.h"
#include "core/cluster/join.h"
#include "core/cluster/loopback.h"
#include "core/cluster/state.h"
#include "core/cluster/settle.h"
#include "core/directory/agent.h"
#include "core/directory/state.h"
#include "core/lease/state.h"
#include "core/flow/events.h"
#include "core/flow/state.h"
#include "core/store/events.h"
#include "core/store/state.h"
#include "core/transfer/events.h"
#include "core/transfer/keep.h"
#include "core/transfer/state.h"
#include "core/reduce/participant/state.h"
#include "core/reduce/coordinator/state.h"
#include "core/reduce/requester/events.h"
#include "core/reduce/requester/state.h"
#include "core/group/state.h"
#include "core/session/state.h"
#include "clock.h"
#include "control.h"
#include "dispatch.h"

struct core {
	struct control control;
	struct cluster_state cluster;
	struct directory_state directory;
	struct lease_state lease;
	struct flow_state flow;
	struct store_state store;
	struct transfer_state transfer;
	struct participant_state participant;
	struct coordinator_state coordinator;
	struct requester_state requester;
	struct group_state group;
	struct session_state session;
};

/* Sets the pointers from the control to its modules. */
struct control *core_join(struct core *k);

/* wiring.c */

/* control.c */
void control_start(struct control *c);

#endif
