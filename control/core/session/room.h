/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of the clients, for itself. */
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
