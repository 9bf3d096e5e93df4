/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the module group, for its own files and the modules above: the groups that this node
 * owns (groups.h), what their tasks are in this control core (shell.c), and the members that are
 * sessions of this node (agent.c). Bounds: groups_max, group_members_max of all groups, and as many
 * contributions as GROUP_CONTRIBUTIONS times that.
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_STATE_H
#define SARISSA_CONTROL_CORE_GROUP_STATE_H

#include "core/base/modules.h"
#include "core/store/await.h"
#include "agent.h"
#include "groups.h"

struct message;
struct message_used;
struct node;

enum { GROUP_CONTRIBUTIONS = 2 };

enum group_work { GROUP_WORK_NONE, GROUP_WORK_PUT, GROUP_WORK_READ, GROUP_WORK_LIST };

/* The task of the group with the same index. */
struct group_shell {
	struct await await; /* on the requester of its reduce */
	struct timer timer; /* an end that is known at once is told in a later turn */
	struct call *call;
	struct call *look; /* beside the task */
	struct group *group;
	uint32_t work; /* enum group_work */
	int32_t status;
	uint32_t slot; /* PUT, READ: of the object */
	uint64_t generation;
	uint32_t shard, tried; /* LIST: index of the owner asked; READ: holders asked */
	uint64_t cursor;
	char name[OBJECT_NAME_MAX + 1]; /* PUT, READ; LIST: the prefix */
};

struct group_state {
	struct groups groups;
	struct groups_ops ops;
	struct group_shell *shells; /* one per group */
	struct agents agents;
	struct timer timer;
};

void group_carve(struct group_state *r, struct arena *a, const struct control_config *config);
void group_start(struct control *c);

/* GROUP of another node, or of this one. */
void group_message(struct control *c, struct node *n, const struct message *m);
/* The reduce of a group has ended. */
void group_reduce_ended(struct control *c, struct await *w, const struct message_used *used);
/* The node is dead; its control has restarted. */
void group_node_lost(struct control *c, uint32_t node);
void group_node_reborn(struct control *c, uint32_t node);
/* Ids have other owners now. */
void group_ownership(struct control *c, bool (*mine)(void *arg, const struct object_id *id));
/* Sets the timer of the module; at the end of each turn. */
void group_turn(struct control *c);

/* shell.c */
void shell_init(struct control *c);

#endif
