/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of the coordinator, for itself. The requester includes delegate.h. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_ROOM_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_ROOM_H

#include "core/store/room.h"
#include "delegate.h"
#include "coordinator.h"

struct delegate_ops;

struct room_coordinator {
	const struct delegate_ops *ops;
	struct reduces reduces;
};

#endif
