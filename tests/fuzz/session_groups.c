/* SPDX-License-Identifier: BSD-3-Clause */
#include "session_groups.h"

#include <errno.h>
#include <string.h>
#include "core/group/groups.h"
#include "internal/reduce.h"

/* Few names, members and clocks, so that requests meet. */
static void groups_draw(struct rig_input *in, struct group_request *g)
{
	static const char *const names[] = {"a", "b", "c", "", "a/b", "a b"};
	static const char *const cohorts[] = {"", "fast", "slow", "x"};
	static const char *const policies[] = {"bsp",
					       "ssp 1",
					       "asp",
					       "share 50",
					       "k-of-n 1 deadline 10ms late refuse",
					       "auto",
					       "fast: bsp, slow: ssp 2",
					       "k-of-n 9"};
	uint8_t a = (uint8_t)rig_take(in, 1), b = (uint8_t)rig_take(in, 1);

	memset(g, 0, sizeof(*g));
	g->step = a % (GROUP_STEPS + 1);
	g->flags = b & 0x40 ? (uint32_t)rig_take(in, 1) : 0;
	g->op = b & 0x20 ? (uint32_t)rig_take(in, 1) : REDUCE_SUM;
	g->dtype = b & 0x10 ? (uint32_t)rig_take(in, 1) : REDUCE_F32;
	g->count = b & 0x80 ? rig_take(in, 8) : 4;
	g->member = b % 4;
	g->clock = rig_take(in, 1) % 8;
	g->pending = b & 8 ? rig_take(in, 8) : 0;
	g->seen = b & 8 ? rig_take(in, 1) % 8 : 0;
	g->joined = b & 8 ? rig_take(in, 1) % 8 : 0;
	g->members = b / 4 % 4;
	strcpy(g->name, names[a / 32 % 6]);
	strcpy(g->cohort, cohorts[b / 16 % 4]);
	strcpy(g->policy, policies[b % 8]);
}

void groups_request_of(struct rig *r, struct rig_input *in, uint32_t session,
		       struct session_request *q)
{
	uint8_t packet[sizeof(*q) + sizeof(struct group_request)], bits;
	struct group_request g;

	groups_draw(in, &g);
	bits = (uint8_t)rig_take(in, 1);
	if (bits == 0x55)
		memset(g.policy, 'x', sizeof(g.policy)); /* a text that does not end */
	q->size = bits == 0x56 ? sizeof(g) - 1 : sizeof(g);
	memcpy(packet, q, sizeof(*q));
	memcpy(packet + sizeof(*q), &g, sizeof(g));
	control_session_request(r->core, session, packet, sizeof(packet) - (bits == 0x57),
				r->now_ns);
}

void groups_say(struct rig *r, struct rig_input *in, bool answer, uint8_t bits)
{
	struct message m = {.kind = answer ? MESSAGE_GROUPED : MESSAGE_GROUP};
	struct group_answer a = {.count = 4, .dtype = REDUCE_F32};
	struct text name;

	m.request = answer ? r->sent[bits % 16] : rig_take(in, 1) + 1;
	if (answer) {
		m.grouped.status = bits & 0x10 ? 0 : -(int32_t)rig_take(in, 1);
		m.grouped.answer = bits & 0x20 ? NULL : &a;
		a.clock = rig_take(in, 1);
		a.done = rig_take(in, 1);
		a.round = rig_take(in, 1);
		a.page = bits & 0x40 ? (uint32_t)rig_take(in, 1) % (GROUP_PAGE + 1) : 0;
	} else {
		groups_draw(in, &m.group.ask);
		group_name(&name, m.group.ask.name, NULL, 0, 0);
		m.group.id = group_id(name.bytes);
	}
	rig_say(r, 1 + bits / 8 % 2, &m);
}
