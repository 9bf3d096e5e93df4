/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of the directory, for itself and for the rooms above it. Private: agent.h. */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_ROOM_H
#define SARISSA_CONTROL_CORE_DIRECTORY_ROOM_H

#include "core/cluster/room.h"
#include "backup.h"
#include "directory.h"
#include "evict.h"
#include "tombstone_copies.h"

/* What is known of another node, by its number. */
struct directory_peer {
	struct timer forget; /* it is down: when its copies are forgotten */
	uint64_t graves_ns;  /* when it answered a tombstone last, or they began */
	uint32_t graves;     /* tombstones under way to it */
	bool graves_left;    /* there are some that it was not told, as it was silent */
	bool unremoved;	     /* no call was free for a REMOVE to it: it must tell all it has */
	bool beyond;	     /* it was logged that copies of it are refused (graves_beyond) */
};

struct room_directory {
	struct directory_peer *peers;
	struct directory shard;
	struct graves graves;
	struct backups backups;
	struct eviction eviction;
	uint64_t up_ns;	     /* when a node came up last */
	bool unremoved;	     /* some directory_peer.unremoved */
	struct timer untold; /* of the directory's */
};

static inline struct directory_peer *directory_peer(struct control *c, const struct node *n)
{
	return &c->directory->peers[n->number];
}

#endif
