/* SPDX-License-Identifier: BSD-3-Clause */
/* What the requester tells the sessions. One table, in wiring.c. */
#ifndef SARISSA_CONTROL_CORE_REQUESTER_EVENTS_H
#define SARISSA_CONTROL_CORE_REQUESTER_EVENTS_H

#include <stdint.h>

struct control;
struct message_used;
struct await;

struct requester_ops {
	/* The reduce that the wait is about has ended so. */
	void (*ended)(struct control *c, struct await *w, const struct message_used *used);
	/* It goes on: from here on it can only fail. */
	void (*accepted)(struct control *c, struct await *w);
};

#endif
