/* SPDX-License-Identifier: BSD-3-Clause */
/* When a shard owner knows all objects of its ids: see settle.c. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_SETTLE_H
#define SARISSA_CONTROL_CORE_CLUSTER_SETTLE_H

#include <stdint.h>

struct control;
struct node;

/* What an entry of the table adds to members.view. */
uint64_t settle_mark(const struct node *n);
/* Other members live than before, or we begin a new incarnation. */
void settle_begin(struct control *c);
/* The view has changed. */
void settle_look(struct control *c);
/* The node has told all that it holds, as of that view; 0: it may have done so before. */
void settle_heard(struct control *c, struct node *n, uint64_t view);

#endif
