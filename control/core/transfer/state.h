/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module transfer, for its own files. Modules above include fetch.h and
 * serve.h. */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_STATE_H
#define SARISSA_CONTROL_CORE_TRANSFER_STATE_H

#include "core/store/state.h"
#include "fetch.h"
#include "serve.h"

struct transfer_state {
	struct fetches fetches;
	struct serves serves;
};

#endif
