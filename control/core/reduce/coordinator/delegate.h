/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the requester calls in the coordinator of its own node: to begin a reduce that the shard
 * owner has delegated to it, and to drop it (delegate.c). Everything else goes by messages. Of the
 * coordinator's headers the requester and the sessions may include only this one.
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_DELEGATE_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_DELEGATE_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message_reduce;

/* The fault of a request's fields, or NULL. */
const char *reduce_wrong(const struct message_reduce *m);

/* Whether this node coordinates that request. */
bool reduce_is_delegate(struct control *c, const struct message_reduce *m);
/* Begins to coordinate it, unless it does. before: latest generation of the target that another
 * writer has made. False: there is no room, or another reduce into the target runs here. */
bool reduce_delegate_begin(struct control *c, const struct message_reduce *m, uint64_t before);
/* Drops it, if it is coordinated here. Only a result of that generation stays; 0: none. */
void reduce_return(struct control *c, const struct message_reduce *m, uint64_t result);

#endif
