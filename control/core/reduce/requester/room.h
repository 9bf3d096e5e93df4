/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of the requester, for itself. Sessions include requester.h. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_REQUESTER_ROOM_H
#define SARISSA_CONTROL_CORE_REDUCE_REQUESTER_ROOM_H

#include "core/cluster/room.h"
#include "requester.h"

struct requester_ops;

struct room_requester {
	const struct requester_ops *ops;
	struct requesters requesters;
};

#endif
