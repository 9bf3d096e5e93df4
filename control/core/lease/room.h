/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the lease room, for its own files and for the rooms above. */
#ifndef SARISSA_CONTROL_CORE_LEASE_ROOM_H
#define SARISSA_CONTROL_CORE_LEASE_ROOM_H

#include "core/cluster/room.h"
#include "leases.h"

struct room_lease {
	const struct lease_ops *ops;
	struct leases leases;
};

#endif
