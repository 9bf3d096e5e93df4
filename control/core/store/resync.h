/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bringing what the directory believes of us back to what holds. Announcements only add; what takes
 * away (DROP) is said once to whoever keeps the id then, and may be lost with a connection, with a
 * control that was killed, or go to the next owner while the first one lives on out of reach. So
 * whenever a node's part of the directory must be told all again, it hears at the end (ANNOUNCED)
 * that this was all: what it had from us before and did not hear again, it forgets.
 *
 * HAVE and GET carry the life (members_epoch) that they were sent in, ANNOUNCED the one that it is
 * about, so their order on the way does not matter.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_RESYNC_H
#define SARISSA_CONTROL_CORE_STORE_RESYNC_H

#include "core/message/message.h"
#include "core/base/timers.h"

struct control;
struct node;

struct reconcile {
	struct timer timer;
	uint64_t calls; /* those up to this number tell what an earlier life had told, or all again
			 */
	uint32_t sending; /* TOLDs that are not answered yet */
	bool swept;	  /* all was told again, or is on its way */
};

/* All is being told again to some nodes. */
void reconcile_begin(struct control *c);
/* What the directory has refused is told in another way, or what it has heard of an earlier life is
 * told again: it has not heard all yet. */
void reconcile_more(struct control *c);
/* Writes the life into a message that leaves for that node, if it is one that carries it. A HAVE
 * that is sent again says what holds then; a GET stands for the copy that the directory has booked
 * when it was sent first. */
void reconcile_stamp(struct control *c, struct node *n, struct message *m);
/* The node may hold what an earlier control here has told it. */
void reconcile_asked(struct node *n);

#endif
