/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls: requests to other nodes, or to this one, that are not answered yet. A call is repeated
 * when a connection to its node comes up, and every retry_ns, until it is answered, cancelled, or
 * past its deadline. Its owner gets exactly one end, none after a cancel. Called by all modules
 * above. It must not know what the messages say, but for their ids.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_RPC_H
#define SARISSA_CONTROL_CORE_CLUSTER_RPC_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/timers.h"

struct call;

/* A request number holds the call's index, for finding it. */
#define CALLS_INDEX_BITS 20
#define CALLS_INDEX_MASK ((1u << CALLS_INDEX_BITS) - 1)
/* And whether it is a LOCATE: decides what a late answer means. */
#define CALLS_LOCATE (UINT64_C(1) << 63)

/* The end of a call; answer is NULL when the deadline has passed. On return the call is gone,
 * unless the function returns true for an answer that is not final (GOT "wait"; REPLY "not now").
 */
typedef bool call_end(struct control *c, struct call *call, const struct message *answer);

struct call {
	struct list of_node;
	struct node *node;
	struct timer timer;
	uint64_t deadline_ns;
	uint64_t sent_ns; /* 0: sent more than once, or to this node: no measure of time */
	call_end *end;
	void *owner;
	uint64_t cookie;	/* the owner's own */
	uint32_t redirects;	/* answers in a row that said REDIRECT or "later" */
	bool deferred;		/* HAVE: the owner wants it again later */
	uint32_t value_slot;	/* HAVE: object whose bytes go along, or TABLE_SLOT_NONE */
	struct message message; /* without value */
};

struct calls {
	struct pool pool;
	uint64_t count; /* of all calls so far; starts at random, so that answers to an earlier
			   process of this node match none */
	uint32_t plans; /* open COMBINEs, of all nodes */
};

void rpc_carve(struct calls *cs, struct arena *a, uint32_t calls_max);

/* Sends m (kind and body set) to a node. Returns the call, or NULL when too many are open. The end
 * is never told from within. timeout_ns UINT64_MAX: no deadline. */
struct call *rpc_start(struct control *c, struct node *n, const struct message *m,
		       uint32_t value_slot, uint64_t timeout_ns, call_end *end, void *owner);
void rpc_cancel(struct control *c, struct call *call);
/* Whether one more COMBINE to the node fits beside the open ones. A plan has thousands of them:
 * more at a time than the dataplane has slots for messages would be lost, and other messages with
 * them.
 */
bool rpc_plan_fits(const struct control *c, const struct node *n);
bool rpc_plans_full(const struct control *c); /* whatever the node */
/* Continues a call as another request, which its message holds now; its end must return true. Sends
 * it now, or later, after retry_ns. */
void rpc_reuse(struct control *c, struct call *call, bool later);

/* An answer from a node; ignored when nothing waits for it. */
void rpc_answer(struct control *c, struct node *n, const struct message *m);

/* REDIRECT: the node does not own the id. */
void rpc_redirected(struct control *c, struct node *n, const struct message *m);
/* The members have changed: sends open requests to the present owners of their ids. */
void rpc_move(struct control *c);

/* The node is dead: calls that only it can answer end. */
void rpc_gone(struct control *c, struct node *n);

/* A connection to the node has come up: sends all its calls again. */
void rpc_resend(struct control *c, struct node *n);

#endif
