/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from this node to itself. */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_LOOPBACK_H
#define SARISSA_CONTROL_CORE_CLUSTER_LOOPBACK_H

#include "core/base/list.h"
#include "core/message/message.h"

struct control;

struct loopback { /* a message to ourselves, with what it points to */
	struct list link;
	struct message message;
};

bool loopback_push(struct control *c, const struct message *m);
/* Handles what is queued, and what that brings, until nothing is left. */
void loopback_run(struct control *c);

#endif
