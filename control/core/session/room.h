/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the session room, for its own files. */
#ifndef SARISSA_CONTROL_CORE_SESSION_ROOM_H
#define SARISSA_CONTROL_CORE_SESSION_ROOM_H

#include "core/store/room.h"
#include "owned.h"
#include "sessions.h"
#include "staging.h"

struct room_session {
	struct sessions sessions;
	struct creations creations;
	struct owners owners;
};

#endif
