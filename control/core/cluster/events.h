/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the cluster tells the rooms above it, which it does not know. One table, in wiring.c.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_EVENTS_H
#define SARISSA_CONTROL_CORE_CLUSTER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct call;
struct control;
struct link;
struct message;
struct node;

struct cluster_ops {
	/* It has said hello. False when our shard does not know its objects. */
	bool (*node_up)(struct control *c, struct node *n);
	/* No message reaches it any more. */
	void (*node_down)(struct control *c, struct node *n);
	/* It has begun to announce what it holds. */
	void (*node_known)(struct control *c, struct node *n);
	/* It asks us to announce all that we hold. */
	void (*announce_asked)(struct control *c, struct node *n);
	/* It has answered a request that was sent so long ago. */
	void (*heard)(struct control *c, struct node *n, uint64_t taken_ns);

	/* A further link with it is up. */
	void (*link_up)(struct control *c, struct node *n);
	/* Whether somebody needs that link. */
	bool (*link_wanted)(struct control *c, const struct link *l);

	/* It is taken for dead; ever: nobody knows since when. */
	void (*node_away)(struct control *c, struct node *n, bool ever);
	/* It is no member any more: what waits for it does not any longer. */
	void (*node_ended)(struct control *c, struct node *n);
	/* The members agree that it is dead; that it lives. */
	void (*node_dead)(struct control *c, struct node *n);
	void (*node_back)(struct control *c, struct node *n);
	/* The last of what follows when it is no member any more. */
	void (*node_gone)(struct control *c, struct node *n);
	/* It has begun anew, or has denied something. */
	void (*node_reborn)(struct control *c, struct node *n);
	/* Other members live: ids have moved. First: holders begin to tell. */
	void (*unsettled)(struct control *c);
	void (*view_changed)(struct control *c);

	/* Before a request leaves: fills in what holds now. False: it does not hold any more. */
	bool (*prepare)(struct control *c, struct call *call);
	/* An answer that nobody waits for any more. */
	void (*late_answer)(struct control *c, struct node *n, const struct message *m);
};

#endif
