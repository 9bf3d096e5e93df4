/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removes stale directory entries of this node. HAVE only adds entries; DROP is sent
 * once, and may be lost with a connection or a process, or go to a new owner while the old one
 * lives on unreachable. So when all objects are announced to an owner again, ANNOUNCED follows: the
 * owner forgets entries of this node that were not announced since. HAVE and GET carry the epoch
 * (membership_epoch) in which they are sent, ANNOUNCED the epoch that is complete, so their order
 * does not matter. Called by recovery.c, control.c and the cluster's events.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_RESYNC_H
#define SARISSA_CONTROL_CORE_STORE_RESYNC_H

#include "core/message/message.h"
#include "core/base/timers.h"

struct control;
struct node;

struct reconcile {
	struct timer timer;
	uint64_t calls;	  /* HAVEs up to this number were sent before the sweep ended */
	uint32_t sending; /* ANNOUNCEDs that are not answered yet */
	bool swept;	  /* all objects are announced, or their HAVEs are on the way */
};

/* Announces all that some owners may not know, and ends with ANNOUNCED. */
void resync_begin(struct control *c);
/* One more object must be announced before ANNOUNCED: its owner has refused it, or has
 * acknowledged it in an earlier epoch. */
void resync_more(struct control *c);
/* Writes the epoch into a HAVE or a GET that is sent to that node. A HAVE that is repeated gets the
 * present epoch, as it says what holds now; a GET keeps its first one, as the owner has booked a
 * copy for it then. */
void resync_stamp(struct control *c, struct node *n, struct message *m);
/* The node may have entries that an earlier control process of this node announced. */
void resync_asked(struct node *n);

#endif
