/* SPDX-License-Identifier: BSD-3-Clause */
/* What the requester of a reduce asks of the coordinator of its own node: to take over a reduce
 * that was delegated to it, and to give it back (delegate.c). All else goes by messages. */
#ifndef SARISSA_CONTROL_CORE_COORDINATOR_DELEGATE_H
#define SARISSA_CONTROL_CORE_COORDINATOR_DELEGATE_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message_reduce;

/* Why a request cannot be, or NULL; nothing but its own fields is looked at. */
const char *reduce_wrong(const struct message_reduce *m);

/* At the caller: whether that request is coordinated here; begins to, unless it is. False: it
 * cannot. */
bool reduce_is_delegate(struct control *c, const struct message_reduce *m);
bool reduce_delegate_begin(struct control *c, const struct message_reduce *m, uint64_t before);
/* Not any more, if it was: nothing that was made stays but the result, if that is one of it. */
void reduce_return(struct control *c, const struct message_reduce *m, uint64_t result);

#endif
