/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of a directory shard to other nodes: see agent.c. */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_AGENT_H
#define SARISSA_CONTROL_CORE_DIRECTORY_AGENT_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct node;
struct object_id;
struct removal;
struct tombstone;

/* For struct directory_out. */
bool agent_remove(void *arg, uint32_t node, const struct object_id *id, uint64_t generation,
		  bool replaced, struct removal *removal);
uint32_t agent_replicate(void *arg, const struct tombstone *t, struct removal *removal);
void agent_suspect(void *arg, uint32_t node);
uint32_t agent_removals(void *arg);
bool agent_settled(void *arg, const struct object_id *id);
bool agent_unheard(void *arg, const struct object_id *id);
void agent_redirect(void *arg, uint32_t node, uint64_t request);

/* Starts the timer of deferred replies. An object that many ask for at once is often there before
 * it fires, and saves the replies. */
void agent_notify_later(struct control *c);
/* Deletes wait for a silent holder until it is no member any more. */
void agent_silent(struct control *c, struct node *n, bool gone);

#endif
