/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeping the deleted dead when the directory moves. The owner of an id remembers the newest
 * generation of it that was deleted (a tombstone, directory.h) and gives the same to the node that
 * would be its next owner. Whenever the members change, whoever has a tombstone gives it to those
 * two as they are now. So a late announcement is refused as long as one of the two has lived on.
 *
 * A node that does not answer holds nobody up: what it was not told it is told when it does. A
 * DELETE is answered when the next in line has it instead.
 *
 * A tombstone states a fact that stays true: it may be told twice, late, and to anybody.
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
	uint32_t sweep;	    /* the next one of those that are told; tombstones: all are */
	uint32_t sending;   /* calls under way */
	struct timer timer; /* somebody is silent by then */
};

void tombstone_copies_init(struct control *c);
/* There is another table, or none: tombstones are kept there, for the next control here, and those
 * that an earlier one has left there count. */
void tombstone_copies_attach(struct control *c);
/* The members have changed: all are told again. */
void tombstone_copies_sweep(struct control *c);
/* It answers (again). */
void tombstone_copies_node_up(struct control *c, struct node *n);
/* Tells the others who keep its id, for a DELETE; returns how many of them it waits for. */
uint32_t tombstone_copies_replicate(struct control *c, const struct tombstone *t,
				    struct removal *removal);
/* It is no member any more: others stand in for it. */
void tombstone_copies_node_gone(struct control *c, struct node *n);
/* Sends as many as may be under way. */
void tombstone_copies_pump(struct control *c);
/* directory_out.beyond */
void tombstone_copies_beyond(void *arg, uint32_t node);

#endif
