/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a coordinator that was delegated to this node, which has asked for the reduce, tells the
 * requester here. One table, in wiring.c.
 */
#ifndef SARISSA_CONTROL_CORE_COORDINATOR_EVENTS_H
#define SARISSA_CONTROL_CORE_COORDINATOR_EVENTS_H

struct control;
struct message_used;

struct delegate_ops {
	/* These sources are chosen. */
	void (*propose)(struct control *c, const struct message_used *used);
	/* The shard owner has taken that; it has not. */
	void (*confirmed)(struct control *c, const struct message_used *used);
	void (*refused)(struct control *c, const struct message_used *used);
	/* The reduce has failed. */
	void (*own_failed)(struct control *c, const struct message_used *used);
};

#endif
