/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replicates tombstones, so that deleted objects stay deleted when owners change. The owner of an
 * id and its next owner have each tombstone. When the members change, every node sends its
 * tombstones to the two as they are then. A late announcement is refused as long as one of the two
 * has lived on. A silent node blocks nothing: it gets its tombstones when it answers, and a DELETE
 * waits for the next node in line instead. A tombstone stays true: it may be sent twice, late, and
 * to any node. Called by the directory (directory_out), wiring.c and control.c.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_TOMBSTONE_COPIES_H
#define SARISSA_CONTROL_CORE_DIRECTORY_TOMBSTONE_COPIES_H

#include "core/message/message.h"
#include "core/base/timers.h"

struct control;
struct node;
struct removal;
struct tombstone;

struct tombstone_copies {
	uint32_t sweep;	    /* index of the next tombstone to send; at the end: all are sent */
	uint32_t sending;   /* calls under way */
	struct timer timer; /* then a busy node counts as silent */
};

void tombstone_copies_init(struct control *c);
/* The object table has changed, or is gone. Takes over the tombstones in it, and writes them there
 * from now on, for the next control process. */
void tombstone_copies_attach(struct control *c);
/* The members have changed: sends all tombstones again. */
void tombstone_copies_sweep(struct control *c);
/* The node answers (again). */
void tombstone_copies_node_up(struct control *c, struct node *n);
/* Sends a tombstone to its other replicas, for a DELETE; returns how many answers to wait for. */
uint32_t tombstone_copies_replicate(struct control *c, const struct tombstone *t,
				    struct removal *removal);
/* The node is no member any more: the next nodes in the order of owners replace it. */
void tombstone_copies_node_gone(struct control *c, struct node *n);
/* Sends tombstones, as many as may be open at a time. */
void tombstone_copies_pump(struct control *c);
/* directory_out.beyond */
void tombstone_copies_beyond(void *arg, uint32_t node);

#endif
