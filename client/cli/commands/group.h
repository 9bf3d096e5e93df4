/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the commands know of synchronisation groups: their names, and one group with its members
 * (group.c). `sarissa group` and `sarissa top` show them.
 */
#ifndef SARISSA_CLIENT_CLI_COMMANDS_GROUP_H
#define SARISSA_CLIENT_CLI_COMMANDS_GROUP_H

#include <stddef.h>
#include "cli/support/json.h"
#include "sarissa/group.h"

/* Freed by the caller; {0} at first. */
struct group_members {
	sar_member_info *item;
	size_t count;
};

/* Freed by the caller; {0} at first. */
struct group_list {
	char (*name)[SAR_GROUP_NAME_MAX + 1];
	size_t count;
};

/* The names of all groups, in order. 0 or a negative errno; -EHOSTUNREACH: those that are known. */
int group_names(sar *s, struct group_list *out);

/* One group. 0 or a negative errno; what it has read of the members is in out in any case. */
int group_read(sar *s, const char *name, sar_group_info *info, struct group_members *out);

/* The fields of a group into an object that is open. */
void group_json(struct json *j, const char *name, const sar_group_info *i,
		const struct group_members *m);

/* How the bucket of staleness k is called: "0", "4-7", "more". */
const char *group_staleness(int k);

#endif
