/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the flow room, for its own files and for the rooms above. */
#ifndef SARISSA_CONTROL_CORE_FLOW_ROOM_H
#define SARISSA_CONTROL_CORE_FLOW_ROOM_H

#include "core/cluster/room.h"
#include "buffers.h"
#include "substreams.h"

struct flow_ops;

struct room_flow {
	const struct flow_ops *ops;
	struct buffers buffers;
};

#endif
