/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole state of a control core. Only files of control/core include this. */
#ifndef SARISSA_CONTROL_CORE_STATE_H
#define SARISSA_CONTROL_CORE_STATE_H

#include "core/base/bitmap.h"
#include "core/base/text.h"
#include "core/base/timers.h"
#include "core/cluster/gossip.h"
#include "core/cluster/join.h"
#include "core/cluster/loopback.h"
#include "core/cluster/membership.h"
#include "core/cluster/ownership.h"
#include "core/cluster/peers.h"
#include "core/cluster/rpc.h"
#include "core/cluster/settle.h"
#include "core/directory/backup.h"
#include "core/directory/directory.h"
#include "core/directory/tombstone_copies.h"
#include "core/flow/buffers.h"
#include "core/store/objects.h"
#include "core/store/primary.h"
#include "core/store/resync.h"
#include "core/transfer/fetch.h"
#include "core/transfer/serve.h"
#include "core/transfer/upstream.h"
#include "core/reduce/participant/participant.h"
#include "core/reduce/participant/pull.h"
#include "core/reduce/participant/push.h"
#include "core/reduce/coordinator/coordinator.h"
#include "core/reduce/requester/requester.h"
#include "core/session/sessions.h"
#include "core/session/staging.h"
#include "clock.h"
#include "control.h"

struct control {
	struct control_config config;
	struct control_ops ops;
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
	struct peers peers;
	struct members members;
	struct calls calls;
	struct graves graves;
	struct guards guards;
	struct backups backups;
	struct reconcile reconcile;
	struct directory directory;
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

/* control.c */
void control_start(struct control *c);
uint64_t control_random(struct control *c);
/* Of a new object: later ones are greater, on all nodes as far as their clocks agree. */
uint64_t control_generation(struct control *c);
/* The next one here will be greater than that, unless that is greater than control_generation_max.
 */
void control_generation_after(struct control *c, uint64_t generation);

/* A pause that grows with the attempts, with some jitter. */
uint64_t control_backoff(struct control *c, uint32_t attempts);
void control_log(struct control *c, enum control_log_level level, const struct text *t);
void control_log_refused(struct control *c, unsigned worker, const struct record *r);
void control_dispatch(struct control *c, struct node *n, uint32_t conn, const struct message *m);

/* Sets the time when the directory tells those who are patient that they wait. What all ask for at
 * once is often there before: nobody has been woken for nothing then. */
void control_tell_later(struct control *c);
/* Those who could not be told to give copies up tell all that they have, and hear it then. */
void control_remind(struct control *c);
/* A node has said hello. Returns false when our shard does not know its objects. */
bool control_node_up(struct control *c, struct node *n);
/* No message reaches it any more. */
void control_node_down(struct control *c, struct node *n);
/* Deletes wait for a holder that does not answer until it is gone as a member. */
void control_removals_silent(struct control *c, struct node *n, bool gone);

#endif
