/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends the core's replies to clients, with descriptors. A client that does not read is
 * disconnected when its queue is full. Called by the core (control_ops) and clients.c. One thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_ANSWERS_H
#define SARISSA_CONTROL_CLIENTS_ANSWERS_H

#include "client.h"

/* Queues a reply. Returns false when the queue has become long. */
bool answers_reply(struct clients *c, uint32_t session, const struct session_reply *r,
		   const void *tail, uint32_t tail_bytes);
/* Its socket takes more. */
void answers_flush(struct client *k);
void answers_forget(struct client *k);
/* Whether a client of an earlier control still has the table open or mapped. */
bool answers_of_before(const struct attach *a);
/* Whether the process of that birth (struct control_client) has. */
bool answers_process_has(const struct attach *a, uint64_t birth);

#endif
