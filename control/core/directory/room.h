/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the directory room, for its own files and for the rooms above. Private: agent.h. */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_ROOM_H
#define SARISSA_CONTROL_CORE_DIRECTORY_ROOM_H

#include "core/cluster/room.h"
#include "backup.h"
#include "directory.h"
#include "evict.h"
#include "references.h"
#include "tombstone_copies.h"

struct room_directory {
	struct directory shard;
	struct tombstone_copies tombstone_copies;
	struct backups backups;
	struct eviction eviction;
	struct references references;
	uint64_t up_ns;	       /* when a node came up last */
	bool unremoved;	       /* some node.unremoved */
	struct timer deferred; /* of the directory's */
};

#endif
