/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands each message to its module: see dispatch.c. */
#ifndef SARISSA_CONTROL_CORE_DISPATCH_H
#define SARISSA_CONTROL_CORE_DISPATCH_H

#include <stdint.h>

struct control;
struct message;
struct node;

/* conn: the connection of the message; 0: of this node itself. */
void dispatch(struct control *c, struct node *n, uint32_t conn, const struct message *m);

#endif
