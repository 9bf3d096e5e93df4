/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the participant, for its own files. No other module includes any of its headers. */
#ifndef SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_STATE_H
#define SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_STATE_H

#include "core/store/state.h"
#include "participant.h"
#include "pull.h"
#include "push.h"

struct participant_state {
	struct participants participants;
	struct pulls pulls;
	struct pushes pushes;
};

#endif
