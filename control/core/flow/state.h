/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module flow, for its own files and for the modules above. */
#ifndef SARISSA_CONTROL_CORE_FLOW_STATE_H
#define SARISSA_CONTROL_CORE_FLOW_STATE_H

#include "core/cluster/state.h"
#include "buffers.h"
#include "substreams.h"

struct flow_state {
	struct buffers buffers;
};

#endif
