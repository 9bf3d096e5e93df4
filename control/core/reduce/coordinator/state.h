/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the coordinator, for its own files. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_STATE_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_STATE_H

#include "core/store/state.h"
#include "coordinator.h"

struct coordinator_state {
	struct reduces reduces;
};

#endif
