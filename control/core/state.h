/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole state of a control core. Only files of control/core include this. */
#ifndef SARISSA_CONTROL_CORE_STATE_H
#define SARISSA_CONTROL_CORE_STATE_H

#include "core/base/bitmap.h"
#include "core/base/commands.h"
#include "core/base/env.h"
#include "core/base/text.h"
#include "core/base/timers.h"
#include "core/cluster/events.h"
#include "core/cluster/gossip.h"
#include "core/cluster/join.h"
#include "core/cluster/loopback.h"
#include "core/cluster/membership.h"
#include "core/cluster/ownership.h"
#include "core/cluster/peers.h"
#include "core/cluster/rpc.h"
#include "core/cluster/settle.h"
#include "core/directory/agent.h"
#include "core/directory/backup.h"
#include "core/directory/evict.h"
#include "core/directory/directory.h"
#include "core/directory/tombstone_copies.h"
#include "core/flow/buffers.h"
#include "core/flow/events.h"
#include "core/store/events.h"
#include "core/store/objects.h"
#include "core/store/primary.h"
#include "core/store/resync.h"
#include "core/transfer/events.h"
#include "core/transfer/fetch.h"
#include "core/transfer/keep.h"
#include "core/transfer/serve.h"
#include "core/transfer/upstream.h"
#include "core/reduce/participant/participant.h"
#include "core/reduce/participant/pull.h"
#include "core/reduce/participant/push.h"
#include "core/reduce/coordinator/coordinator.h"
#include "core/reduce/coordinator/events.h"
#include "core/reduce/requester/events.h"
#include "core/reduce/requester/requester.h"
#include "core/session/sessions.h"
#include "core/session/staging.h"
#include "clock.h"
#include "control.h"
#include "dispatch.h"

struct control {
	struct control_config config;
	struct control_ops ops;
	const struct cluster_ops *cluster_ops;
	const struct flow_ops *flow_ops;
	const struct store_ops *store_ops;
	const struct transfer_ops *transfer_ops;
	const struct delegate_ops *delegate_ops;
	const struct requester_ops *requester_ops;
	struct control_counters counters;
	uint64_t now_ns;
	uint64_t random;     /* state of the generator for pauses */
	uint64_t generation; /* of the last object made here, without the node's part */
	uint64_t up_ns;	     /* when a node came up last */
	uint64_t dead_ns;    /* when one was taken for dead last */
	uint64_t epoch_ns;   /* from our clock to that of the incarnations */
	bool unremoved;	     /* some node.unremoved */
	struct timer untold; /* of the directory's */

	bool attached;
	struct attach_reply dataplane;
	uint8_t *store;
	struct object_table *table; /* NULL before the first attach */
	uint32_t workers;	    /* of our dataplane; 0 before the first attach */

	struct node *self;
	uint32_t *shard_nodes;
	struct timers timers;
	struct commands commands;
	struct peers peers;
	struct members members;
	struct calls calls;
	struct graves graves;
	struct guards guards;
	struct backups backups;
	struct reconcile reconcile;
	struct directory directory;
	struct eviction eviction;
	struct objects objects;
	struct buffers buffers;
	struct fetches fetches;
	struct combines combines;
	struct reduces reduces;
	struct serves serves;
	struct takes takes;
	struct offers offers;
	struct watches watches;
	struct reductions reductions;
	struct sessions sessions;
	struct creations creations;

	struct pool loopback;
	struct list loopback_queue;
	uint8_t *loopback_data; /* OBJECT_INLINE_MAX each */
};

/* wiring.c */
extern const struct cluster_ops wiring_cluster;
extern const struct flow_ops wiring_flow;
extern const struct store_ops wiring_store;
extern const struct transfer_ops wiring_transfer;
extern const struct delegate_ops wiring_delegate;
extern const struct requester_ops wiring_requester;

/* control.c */
void control_start(struct control *c);

#endif
