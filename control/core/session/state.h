/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the module session, for its own files. */
#ifndef SARISSA_CONTROL_CORE_SESSION_STATE_H
#define SARISSA_CONTROL_CORE_SESSION_STATE_H

#include "core/store/state.h"
#include "excerpt.h"
#include "owned.h"
#include "sessions.h"
#include "staging.h"

struct session_state {
	struct sessions sessions;
	struct creations creations;
	struct owners owners;
	struct pool excerpts;
};

#endif
