/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the store room, for its own files and for the rooms above. */
#ifndef SARISSA_CONTROL_CORE_STORE_ROOM_H
#define SARISSA_CONTROL_CORE_STORE_ROOM_H

#include "core/flow/room.h"
#include "await.h"
#include "objects.h"
#include "replica.h"
#include "resync.h"
#include "spill.h"

struct store_ops;

struct room_store {
	const struct store_ops *ops;
	struct objects objects;
	struct replicas pinned;
	struct reconcile reconcile;
	struct spills spills;
};

#endif
