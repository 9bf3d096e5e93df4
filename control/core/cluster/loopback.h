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
/* Takes the next one out; the caller gives it back to the pool. NULL: none is left. */
struct loopback *loopback_pop(struct control *c);

#endif
