/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The group whose members may use a node. Under the service units it is the daemons' own. Daemons
 * that root starts by hand give their socket and files to it, where this machine has it
 * (scripts/setup, systemd-sysusers). Called by both daemons for files that they have just made.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_NODE_GROUP_H
#define SARISSA_INCLUDE_INTERNAL_NODE_GROUP_H

#include <grp.h>
#include <unistd.h>

#define NODE_GROUP "sarissa"

static inline void node_group_give(const char *path)
{
	const struct group *group = geteuid() == 0 && getegid() == 0 ? getgrnam(NODE_GROUP) : NULL;

	if (group && lchown(path, (uid_t)-1, group->gr_gid) != 0)
		return; /* it stays root's: root alone may use the node */
}

#endif
