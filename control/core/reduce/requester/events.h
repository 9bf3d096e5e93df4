/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the requester for the sessions. Defined in wiring.c. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_REQUESTER_EVENTS_H
#define SARISSA_CONTROL_CORE_REDUCE_REQUESTER_EVENTS_H

#include <stdint.h>

struct control;
struct message_used;
struct await;

/* The reduce of the wait has ended with this result. */
void wiring_reduce_ended(struct control *c, struct await *w, const struct message_used *used);
/* The reduce is accepted: it cannot be refused any more, only fail. */
void wiring_reduce_accepted(struct control *c, struct await *w);

#endif
