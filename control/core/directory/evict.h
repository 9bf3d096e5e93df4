/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shard owner whose table of copies is full makes room for a copy that an object cannot do
 * without: a cached copy of another object leaves. Its holder gives it up first (REMOVE), and only
 * then the directory forgets it, so that a delete in between still reaches it.
 *
 *   idle     --a HAVE finds no room-->           asks the node of the pinned copy
 *   asks     --it answers, all is as before-->   removes: REMOVE to the holder of the cached copy
 *   asks     --it does not answer-->             idle: the next HAVE looks for another copy
 *   removes  --answered-->                       idle, with room
 *   removes  --not answered in time-->           idle
 *
 * One at a time: a HAVE that found no room is told to come again (-EAGAIN), and does.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_EVICT_H
#define SARISSA_CONTROL_CORE_DIRECTORY_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/message/message.h"

struct copy;

struct eviction { /* while directory.evicting */
	struct message_object object;
	uint32_t node; /* that holds the cached copy */
};

/* directory_out.evict */
bool evict_start(void *arg, const struct copy *copy, uint32_t pinned);

#endif
