/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module directory, for its own files and for the modules above. Private: agent.h.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_STATE_H
#define SARISSA_CONTROL_CORE_DIRECTORY_STATE_H

#include "core/cluster/state.h"
#include "backup.h"
#include "directory.h"
#include "evict.h"
#include "references.h"
#include "tombstone_copies.h"

struct directory_state {
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
