/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a delegate for the requester on the same node. One table, in wiring.c. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_EVENTS_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_EVENTS_H

struct control;
struct message_used;

struct delegate_ops {
	/* A result with these sources can be built: is it to be the result? */
	void (*propose)(struct control *c, const struct message_used *used);
	/* The shard owner has agreed; has refused. */
	void (*confirmed)(struct control *c, const struct message_used *used);
	void (*refused)(struct control *c, const struct message_used *used);
	/* The reduce has failed. */
	void (*own_failed)(struct control *c, const struct message_used *used);
};

#endif
