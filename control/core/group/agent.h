/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of groups that are sessions of this node: announced again to a new owner of their
 * group, and reported as lost when their session ends. Called by the module session and the front
 * door. It must not know policies or rounds.
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_AGENT_H
#define SARISSA_CONTROL_CORE_GROUP_AGENT_H

#include "core/base/arena.h"
#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/cluster/state.h"
#include "internal/group.h"

struct control;
struct control_config;
struct node;

struct agent_member {
	struct idmap_node by_number;
	struct list of_session;
	struct object_id group;
	struct group_request join; /* that announces it again */
	uint64_t round; /* that its last contribution is in, as the owner has said; 0: unknown, or
			   a switch may make it */
	struct announced announced;
};

struct agents {
	struct announcer announcer;
	struct pool pool;
	struct idmap by_number;
};

void agents_carve(struct agents *as, struct arena *a, const struct control_config *config);
void agents_init(struct control *c);
/* The members have changed: an owner that took this node for dead has dropped what it acknowledged.
 */
void agents_doubt(struct control *c);
/* The owner has answered a request of a member: status 0. members: those of its session. False: no
 * room for a member more. */
bool agents_saw(struct control *c, struct list *members, const struct object_id *group,
		const struct group_request *r, const struct group_answer *a);
/* The object that a pull of the member will most likely get: the result of the round that its last
 * contribution is in. False: unknown. */
bool agents_awaited(struct control *c, const struct object_id *group, const struct group_request *r,
		    struct object_id *out);
/* Whether another member may join here. */
bool agents_room(const struct control *c);
/* The session of these members has ended. */
void agents_leave(struct control *c, struct list *members);

#endif
