/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of this node's clients, for bounds over all sessions of one user. */
#ifndef SARISSA_CONTROL_CORE_SESSION_QUOTA_H
#define SARISSA_CONTROL_CORE_SESSION_QUOTA_H

#include "core/base/idmap.h"

struct user {
	struct idmap_node by_number; /* as the kernel knows it */
	uint32_t sessions;
	uint32_t staged_count; /* their private staging buffers */
};

struct users {
	struct pool pool;
	struct idmap by_number;
};

/* What stands for the number in a map. */
struct object_id users_id(uint32_t number);
/* As many as there are sessions. */
void users_carve(struct users *u, struct arena *a, uint32_t sessions_max);
/* For one session more; NULL: it has sessions_max already. */
struct user *users_join(struct users *u, uint32_t number, uint32_t sessions_max);
/* And for one less; NULL: it had none. */
void users_leave(struct users *u, struct user *user);

#endif
