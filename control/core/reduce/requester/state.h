/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the requester, for its own files. Sessions include requester.h. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_REQUESTER_STATE_H
#define SARISSA_CONTROL_CORE_REDUCE_REQUESTER_STATE_H

#include "core/cluster/state.h"
#include "requester.h"

struct requester_state {
	struct requesters requesters;
};

#endif
