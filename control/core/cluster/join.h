/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that have an address but no number yet, and how they get one. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_JOIN_H
#define SARISSA_CONTROL_CORE_CLUSTER_JOIN_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct control;
struct message_hello;
struct net_addr;
struct node;

/* The node without a number at an address, made if need be; NULL: too many. */
struct node *join_guest(struct control *c, const struct net_addr *addr);
bool join_is_guest(const struct control *c, const struct node *n);
void join_forget(struct control *c, struct node *guest);
/* We know our address now. */
void join_attach(struct control *c);
/* Periodic: looks for seeds. */
void join_tick(struct control *c);
/* A HELLO with another number than the connection's node has. Returns the connection's node from
 * now on, or NULL. */
struct node *join_hello(struct control *c, struct conn *conn, const struct message_hello *h);
/* A number was given to us. */
void join_assigned(struct control *c, uint32_t number);

#endif
