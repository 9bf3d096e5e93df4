/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module cluster, for its own files and for the modules above. Private: gossip.h,
 * join.h, loopback.h, settle.h. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_STATE_H
#define SARISSA_CONTROL_CORE_CLUSTER_STATE_H

#include "core/base/modules.h"
#include "announcer.h"
#include "linkstats.h"
#include "membership.h"
#include "ownership.h"
#include "peers.h"
#include "rpc.h"
#include "stall.h"

struct cluster_state {
	struct node *self;
	uint32_t *shard_nodes;
	struct peers peers;
	struct members members;
	struct calls calls;
	struct linkstats links;
	struct watches watches;
	struct announcer *announcers;
	uint64_t dead_ns; /* when a node was last considered dead */
	uint64_t losses;  /* what this node's messages say of it (store/replica.h); 0: none yet */

	struct pool loopback;
	struct list loopback_queue;
	uint8_t *loopback_data; /* OBJECT_INLINE_MAX each */
};

#endif
