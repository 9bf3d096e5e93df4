/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module lease, for its own files and for the modules above. */
#ifndef SARISSA_CONTROL_CORE_LEASE_STATE_H
#define SARISSA_CONTROL_CORE_LEASE_STATE_H

#include "core/cluster/state.h"
#include "leases.h"

struct lease_state {
	struct leases leases;
};

#endif
