/* SPDX-License-Identifier: BSD-3-Clause */
/* When a shard owner knows all objects of its ids: see settle.c. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_SETTLE_H
#define SARISSA_CONTROL_CORE_CLUSTER_SETTLE_H

#include <stdint.h>

struct control;
struct node;

/* The contribution of a member to members.view. */
uint64_t settle_mark(const struct node *n);
/* The live members have changed, or this node has a new incarnation. */
void settle_begin(struct control *c);
/* The view has changed. */
void settle_look(struct control *c);
/* ANNOUNCED of the node for that view; 0: counts its last one. */
void settle_heard(struct control *c, struct node *n, uint64_t view);

#endif
