/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eviction from a full table of copies. A copy that must be noted, a pinned replica or the only
 * one, takes the place of a cached copy of another object. The holder gives that up first (REMOVE);
 * only then does the directory forget it, so that a delete in between still reaches it. Called by
 * directory.c (HAVE).
 *
 *   idle     --a HAVE finds no room-->           asks the node of the pinned copy
 *   asks     --it answers, all is as before-->   removes: REMOVE to the holder of the cached copy
 *   asks     --it does not answer-->             idle: the next HAVE looks for another copy
 *   removes  --answered-->                       idle, with room
 *   removes  --not answered in time-->           idle
 *
 * One at a time. A HAVE that finds no room is answered -EAGAIN, and is repeated.
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
