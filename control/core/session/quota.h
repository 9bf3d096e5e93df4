/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of this node's clients, for bounds over all sessions of one user. */
#ifndef SARISSA_CONTROL_CORE_SESSION_QUOTA_H
#define SARISSA_CONTROL_CORE_SESSION_QUOTA_H

#include "core/base/idmap.h"

struct user {
	struct idmap_node by_number; /* as the kernel knows it */
	uint32_t sessions;
	uint32_t waiting;      /* their requests that wait */
	uint32_t staged_count; /* their private staging buffers */
};

struct users {
	struct pool pool;
	struct idmap by_number;
};

/* The id of a user number, for a map by id. */
struct object_id quota_id(uint32_t number);
/* Room for one user per session. */
void quota_carve(struct users *u, struct arena *a, uint32_t sessions_max);
/* The user, with one session more; NULL: it has the most already. */
struct user *quota_join(struct users *u, uint32_t number, uint32_t sessions_max);
/* The user has one session less; NULL: nothing happens. */
void quota_leave(struct users *u, struct user *user);

#endif
