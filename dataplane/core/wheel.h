/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When to look at which connection: one timer per connection, on a wheel.
 */
#ifndef SARISSA_DATAPLANE_CORE_WHEEL_H
#define SARISSA_DATAPLANE_CORE_WHEEL_H

#include <stdint.h>
#include "list.h"
#include "times.h"

struct conn;
struct engine;

enum { WHEEL_SLOTS = 4096 }; /* a turn is 67 ms; what is later goes round again */

struct wheel {
	uint64_t now_slot; /* slots before it have been run */
	uint64_t occupied[WHEEL_SLOTS / 64];
	struct list slot[WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, uint64_t now_ns);
void wheel_arm(struct engine *e, struct conn *c, uint64_t when_ns);
void wheel_disarm(struct engine *e, struct conn *c);
void wheel_run(struct engine *e);
uint64_t wheel_next_ns(const struct wheel *w);

#endif
