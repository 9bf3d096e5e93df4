/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the cluster tells the modules above it, which it does not know. Defined in wiring.c.
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

/* The node's HELLO has come. False: the directory shard here does not know its objects. */
bool wiring_node_up(struct control *c, struct node *n);
/* No message reaches the node any more. */
void wiring_node_down(struct control *c, struct node *n);
/* The node begins to announce all of its objects. */
void wiring_node_known(struct control *c, struct node *n);
/* The node asks for an announcement of all objects here. */
void wiring_announce_asked(struct control *c, struct node *n);
/* The node has answered a request that was sent taken_ns ago. */
void wiring_heard(struct control *c, struct node *n, uint64_t taken_ns);
/* node.losses has changed. */
void wiring_losses(struct control *c, struct node *n);

/* One more link to the node is up. */
void wiring_link_up(struct control *c, struct node *n);
/* Whether a fetch or a participant needs the link. */
bool wiring_link_wanted(struct control *c, const struct link *l);

/* The node is considered dead; ever: since an unknown time. */
void wiring_node_away(struct control *c, struct node *n, bool ever);
/* The node is no member any more: ends all waiting for it. */
void wiring_node_ended(struct control *c, struct node *n);
/* The members agree that the node is dead; that it lives. */
void wiring_node_dead(struct control *c, struct node *n);
void wiring_node_back(struct control *c, struct node *n);
/* The last step after a node stopped being a member. */
void wiring_node_gone(struct control *c, struct node *n);
/* The node has restarted, or has refuted a suspicion. */
void wiring_node_reborn(struct control *c, struct node *n);
/* The live members have changed, and with them the owners of ids. unsettled comes first:
 * from then on holders may announce. */
void wiring_unsettled(struct control *c);
void wiring_view_changed(struct control *c);

/* Before a request is sent: fills in the present state. False: the request is obsolete. */
bool wiring_prepare(struct control *c, struct call *call);
/* An answer to a call that has ended. */
void wiring_late_answer(struct control *c, struct node *n, const struct message *m);

#endif
