/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module store, for its own files and for the modules above. */
#ifndef SARISSA_CONTROL_CORE_STORE_STATE_H
#define SARISSA_CONTROL_CORE_STORE_STATE_H

#include "core/flow/state.h"
#include "await.h"
#include "objects.h"
#include "replica.h"
#include "resync.h"
#include "spill.h"

struct store_state {
	struct objects objects;
	struct replicas pinned;
	struct reconcile reconcile;
	struct spills spills;
};

#endif
