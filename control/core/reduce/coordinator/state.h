/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the coordinator, for its own files. The requester includes delegate.h. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_STATE_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_STATE_H

#include "core/store/state.h"
#include "delegate.h"
#include "coordinator.h"

struct delegate_ops;

struct coordinator_state {
	const struct delegate_ops *ops;
	struct reduces reduces;
};

#endif
