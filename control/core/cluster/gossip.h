/* SPDX-License-Identifier: BSD-3-Clause */
/* How reports about members spread, and how a few others are watched (SWIM). */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_GOSSIP_H
#define SARISSA_CONTROL_CORE_CLUSTER_GOSSIP_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message_members;
struct node;

/* Whether this node keeps a connection with another, to watch each other and to pass news on. */
bool gossip_watches(const struct control *c, const struct node *n);
/* Whether the node is a neighbour in the ring: those two are watched closely. */
bool gossip_is_next(const struct control *c, const struct node *n);
void gossip_connect(struct control *c);
/* The node does not answer: asks other members to probe it. Unless one of them hears from it soon,
 * it becomes suspect. */
void gossip_miss(struct control *c, struct node *n);
/* It has said something. */
void gossip_heard(struct control *c, struct node *n);
void gossip_flood(struct control *c);
void gossip_table(struct control *c, struct node *n);
void gossip_entry(struct control *c, struct node *to, const struct node *about);
/* Tells a node that its number belongs to another node. It fences itself. */
void gossip_taken(struct control *c, struct node *to, const struct node *about,
		  uint64_t incarnation);
void gossip_probe(struct control *c, struct node *n);
void gossip_take(struct control *c, struct node *n, const struct message_members *m);
void gossip_start(struct control *c);

#endif
