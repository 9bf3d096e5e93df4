/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records that are to go to the workers, in order. A record that is pushed leaves with the next
 * turn of the shell. There is always room, by construction.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_COMMANDS_H
#define SARISSA_CONTROL_CORE_BASE_COMMANDS_H

#include <stdint.h>
#include "internal/record.h"
#include "arena.h"

struct control;
struct control_config;

struct command_queue { /* to one worker */
	struct record *ring;
	uint32_t head, count, capacity;
};

struct commands {
	struct command_queue queue[WORKERS_MAX];
	uint32_t epoch; /* of this control process: a worker refuses records of an earlier one */
};

void commands_carve(struct commands *q, struct arena *a, const struct control_config *config);
/* Appends a record for a worker. Without a dataplane it is dropped. */
void commands_push(struct control *c, unsigned worker, const struct record *r);
/* Moves up to count records out; returns how many. */
unsigned commands_take(struct control *c, unsigned worker, struct record *out, unsigned count);
/* The dataplane has gone. */
void commands_detach(struct control *c);

#endif
