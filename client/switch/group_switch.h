/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member's part in a round that a switch makes, and what it has of it until the owner says that
 * this is the result. One thread at a time. Only group_switch_run waits. It knows nothing of
 * policies.
 */
#ifndef SARISSA_CLIENT_SWITCH_GROUP_SWITCH_H
#define SARISSA_CLIENT_SWITCH_GROUP_SWITCH_H

#include "internal/group.h"
#include "sarissa/sarissa.h"

struct group_switch {
	sar_switch *way; /* of the last job; NULL: none */
	uint32_t ip, group;
	/* what it has: 0: nothing */
	uint64_t round;
	uint32_t attempt; /* with GROUP_BY_SWITCH */
	bool put;	  /* by this member: it is an object */
	sar_id id;	  /* of that */
	sar_buffer result;
};

/* A member's contributions. */
struct group_part {
	const char *group;
	uint64_t member, count;
	uint32_t op, dtype;
};

/* Takes part. Returns 0, and has the result; or -errno. It ends by itself: when the switch is
 * silent for 0.2 s, or no part of the result comes for half a second, or the whole of it takes
 * longer than 10 s and a second for each MB. */
int group_switch_run(sar *s, struct group_switch *w, const struct group_part *part,
		     const struct group_job *job);
/* The owner says that this is the newest result: true: it is what we have, and out's now. */
bool group_switch_take(sar *s, struct group_switch *w, uint64_t round, uint32_t attempt,
		       sar_buffer *out);
void group_switch_end(sar *s, struct group_switch *w);

#endif
