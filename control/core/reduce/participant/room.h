/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of the participant, for itself. No other room includes any of its headers. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_ROOM_H
#define SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_ROOM_H

#include "core/store/room.h"
#include "participant.h"
#include "pull.h"
#include "push.h"

struct room_participant {
	struct participants participants;
	struct pulls pulls;
	struct pushes pushes;
};

#endif
