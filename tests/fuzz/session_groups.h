/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups, for fuzz_session.c: requests of clients and of other nodes, and answers of owners. */
#ifndef SARISSA_TESTS_FUZZ_SESSION_GROUPS_H
#define SARISSA_TESTS_FUZZ_SESSION_GROUPS_H

#include "control_rig.h"

/* A request of a client, nearly always whole; q has all but the size. */
void groups_request_of(struct rig *r, struct rig_input *in, uint32_t session,
		       struct session_request *q);
/* What a node asks of this one as the owner, or answers as the owner to what was asked of it. */
void groups_say(struct rig *r, struct rig_input *in, bool answer, uint8_t bits);

#endif
