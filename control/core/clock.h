/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds on generations: see clock.c. */
#ifndef SARISSA_CONTROL_CORE_CLOCK_H
#define SARISSA_CONTROL_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message;
struct node;

/* Whether the message creates or deletes an object with a generation beyond the bound: then it is
 * refused, and answered. */
bool clock_refuses(struct control *c, struct node *n, const struct message *m);

#endif
