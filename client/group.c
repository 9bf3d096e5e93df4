/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: what sarissa/group.h promises, as requests to the group's owner. A contribution is an
 * object of this node that is put before the owner hears of it. When the owner does not know the
 * member, because it or this node's control was started again, the member announces itself with its
 * clock and the contributions that have had no round yet, and the call goes on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "deadline.h"
#include "error.h"
#include "handle.h"
#include "internal/group.h"
#include "sarissa/group.h"

_Static_assert(SAR_GROUP_NAME_MAX == GROUP_NAME_MAX && SAR_COHORT_MAX == GROUP_COHORT_MAX &&
		       SAR_POLICY_MAX == GROUP_POLICY_MAX && SAR_STALENESS == GROUP_HISTOGRAM &&
		       SAR_POLICY_TABLE_MAX == GROUP_TABLE_BYTES &&
		       SAR_GROUP_MEMBERS == GROUP_MEMBERS_MAX &&
		       (int)SAR_GROUP_TOTAL == (int)GROUP_TOTAL,
	       "limits of groups have one number everywhere");
_Static_assert(sizeof(struct group_answer) != sizeof(struct session_object),
	       "handle.c tells items by their size");

enum { GROUP_TRIES = 5 }; /* of a put; of a pull whose result was deleted before it could be got */

#define GROUP_DECISION_NS 1000000000 /* for a decision that is there to be found */

struct sar_member {
	sar *s;
	struct group_request join; /* that announces it again */
	uint64_t count, item_bytes;
	uint32_t dtype;
	bool unsure; /* the owner's answer about its clock is missing */
};

static int group_text(char *out, size_t room, const char *text, const char *what)
{
	if (text && strlen(text) >= room)
		return error_set(-ENAMETOOLONG, "%s has at most %zu bytes, this one %zu", what,
				 room - 1, strlen(text));
	strcpy(out, text ? text : "");
	return 0;
}

static int group_ask(struct group_request *r, uint32_t step, const char *name)
{
	*r = (struct group_request){.step = step};
	if (!name)
		return error_set(-EINVAL, "a group has a name: say which");
	return group_text(r->name, GROUP_NAME_MAX + 1, name, "the name of a group");
}

/* *retried, unless NULL: an earlier control may have done it already. */
static int group_call(sar *s, const struct group_request *r, int64_t timeout_ns,
		      struct group_answer *out, bool *retried)
{
	struct session_request request = handle_request(SESSION_GROUP, NULL);
	struct mux_tail tail = {{(void *)(uintptr_t)r, sizeof(*r)}, -1};
	struct mux_result result;
	int error = handle_check(s);
	if (error < 0)
		return error;
	request.size = sizeof(*r);
	error = handle_call(s, &request, &tail, sizeof(*out), timeout_ns, &result);
	if (retried)
		*retried = result.retried;
	if (error < 0)
		return error;
	memset(out, 0, sizeof(*out));
	if (result.items_count > 0)
		memcpy(out, result.items, sizeof(*out));
	mux_result_free(&result);
	return 0;
}

/* ---- the clock of a member --------------------------------------------------------------------
 */

static void group_clock(struct group_request *j, uint64_t clock)
{
	uint64_t by = clock > j->clock ? clock - j->clock : 0;
	j->pending = by < GROUP_PENDING_MAX ? j->pending << by : 0;
	j->clock += by;
}

static void group_learn(sar_member *m, const struct group_answer *a)
{
	struct group_request *j = &m->join;
	group_clock(j, a->clock);
	for (unsigned i = 0; i < GROUP_PENDING_MAX; i++)
		if (j->clock < i || j->clock - i <= a->done)
			j->pending &= ~(UINT64_C(1) << i);
	m->unsure = false;
}

/* Announces the member to an owner that does not know it. */
static int group_rejoin(sar_member *m)
{
	struct group_answer answer;
	int r = group_call(m->s, &m->join, HANDLE_CALL_NS, &answer, NULL);
	if (r < 0)
		return r;
	group_learn(m, &answer);
	return 0;
}

/* A request of a member; one that the owner does not know is announced, once. */
static int group_member_call(sar_member *m, struct group_request *r, int64_t timeout_ns,
			     struct group_answer *out, bool *retried)
{
	int error = group_call(m->s, r, timeout_ns, out, retried);
	if (error != -ESTALE)
		return error;
	error = group_rejoin(m);
	if (error < 0)
		return error;
	*retried = true;
	bool more;
	return group_call(m->s, r, timeout_ns, out, &more);
}

static struct group_request group_of_member(const sar_member *m, uint32_t step)
{
	struct group_request r = m->join;
	r.step = step;
	r.flags = 0;
	return r;
}

/* ---- groups -----------------------------------------------------------------------------------
 */

int sar_group_create(sar *s, const char *name, const sar_group_spec *spec)
{
	struct group_request request;
	struct group_answer answer;
	bool retried;
	if (!spec || !spec->policy)
		return error_set(-EINVAL, "sar_group_create: say what group: op, dtype, count and "
					  "policy");
	for (size_t i = 0; i < sizeof(spec->reserved) / sizeof(spec->reserved[0]); i++)
		if (spec->reserved[i])
			return error_set(-EINVAL, "sar_group_create: what is reserved in "
						  "sar_group_spec is not zero: clear it first");
	if (spec->flags & ~(uint32_t)SAR_GROUP_TOTAL)
		return error_set(-EINVAL, "sar_group_create: unknown flags: only SAR_GROUP_TOTAL");
	int r = group_ask(&request, GROUP_CREATE, name);
	if (r == 0)
		r = group_text(request.policy, sizeof(request.policy), spec->policy, "a policy");
	if (r < 0)
		return r;
	request.op = spec->op;
	request.dtype = spec->dtype;
	request.count = spec->count;
	request.members = spec->members;
	request.flags = spec->flags;
	return group_call(s, &request, HANDLE_CALL_NS, &answer, &retried);
}

int sar_group_policy(sar *s, const char *name, const char *policy, uint64_t *version)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask(&request, GROUP_POLICY, name);
	if (r == 0)
		r = group_text(request.policy, sizeof(request.policy), policy, "a policy");
	if (r == 0)
		r = group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
	if (r == 0 && version)
		*version = answer.version;
	return r;
}

int sar_policy_explain(sar *s, const char *policy, char table[SAR_POLICY_TABLE_MAX])
{
	struct group_request request = {.step = GROUP_EXPLAIN};
	struct group_answer answer;
	int r = group_text(request.policy, sizeof(request.policy), policy, "a policy");
	if (r == 0)
		r = group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
	if (r == 0)
		memcpy(table, answer.table, SAR_POLICY_TABLE_MAX);
	return r;
}

int sar_group_remove(sar *s, const char *name)
{
	struct group_request request;
	struct group_answer answer;
	bool retried = false;
	int r = group_ask(&request, GROUP_REMOVE, name);
	if (r == 0)
		r = group_call(s, &request, HANDLE_CALL_NS, &answer, &retried);
	return r == -ENOENT && retried ? 0 : r;
}

static void group_info(const struct group_answer *a, sar_group_info *out)
{
	*out = (sar_group_info){.op = a->op,
				.dtype = a->dtype,
				.flags = a->flags,
				.members = a->members,
				.count = a->count,
				.live = a->live,
				.owner = a->owner,
				.version = a->version,
				.round = a->round,
				.clock = a->top,
				.rounds = a->rounds,
				.counted = a->counted,
				.late = a->late,
				.refused = a->refused,
				.lost = a->lost,
				.waiting_ns = a->waiting_ns};
	memcpy(out->staleness, a->histogram, sizeof(out->staleness));
	memcpy(out->policy, a->policy, sizeof(out->policy));
	memcpy(out->table, a->table, sizeof(out->table));
}

static void group_member_info(const struct group_member_info *m, sar_member_info *out)
{
	*out = (sar_member_info){.member = m->member,
				 .clock = m->clock,
				 .round = m->round,
				 .waiting_ns = m->waiting_ns,
				 .counted = m->counted,
				 .late = m->late,
				 .refused = m->refused,
				 .node = m->node,
				 .waits = m->waits};
	memcpy(out->cohort, m->cohort, sizeof(out->cohort));
}

int sar_group_info_get(sar *s, const char *name, sar_group_info *out,
		       int (*fn)(const sar_member_info *member, void *arg), void *arg)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask(&request, GROUP_INFO, name);
	for (bool first = true; r == 0; first = false) {
		r = group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
		if (r < 0)
			return r;
		if (first)
			group_info(&answer, out);
		for (uint32_t i = 0; fn && r == 0 && i < answer.page && i < GROUP_PAGE; i++) {
			sar_member_info member;
			group_member_info(&answer.member[i], &member);
			r = fn(&member, arg);
		}
		if (!fn || answer.cursor <= request.cursor)
			break;
		request.cursor = answer.cursor;
	}
	return r;
}

/* ---- members ----------------------------------------------------------------------------------
 */

static uint64_t group_item_bytes(uint32_t dtype)
{
	switch (dtype) {
	case SAR_I8:
	case SAR_U8:
		return 1;
	case SAR_F16:
	case SAR_BF16:
	case SAR_I16:
	case SAR_U16:
		return 2;
	case SAR_F32:
	case SAR_I32:
	case SAR_U32:
		return 4;
	default:
		return 8;
	}
}

int sar_group_join(sar *s, const char *name, const char *cohort, sar_member **out)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask(&request, GROUP_JOIN, name);
	if (r == 0)
		r = group_text(request.cohort, sizeof(request.cohort), cohort,
			       "the name of a cohort");
	if (r < 0)
		return r;
	while (request.member == 0)
		if (getrandom(&request.member, sizeof(request.member), 0) < 0)
			return error_set(-errno, "no random number: %s", strerrordesc_np(errno));
	sar_member *m = calloc(1, sizeof(*m));
	if (!m)
		return error_set(-ENOMEM, "out of memory");
	r = group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
	if (r < 0) {
		free(m);
		return r;
	}
	m->s = s;
	m->join = request;
	m->join.flags = GROUP_REJOIN;
	m->join.joined = answer.joined;
	m->join.clock = answer.clock;
	m->count = answer.count;
	m->dtype = answer.dtype;
	m->item_bytes = group_item_bytes(answer.dtype);
	*out = m;
	return 0;
}

int sar_group_leave(sar_member *m)
{
	struct group_answer answer;
	if (!m)
		return 0;
	struct group_request request = group_of_member(m, GROUP_LEAVE);
	int r = group_call(m->s, &request, HANDLE_CALL_NS, &answer, NULL);
	free(m);
	return r == -ENOENT ? 0 : r;
}

uint64_t sar_member_number(const sar_member *m)
{
	return m->join.member;
}

uint64_t sar_member_clock(const sar_member *m)
{
	return m->join.clock;
}

/* ---- push -------------------------------------------------------------------------------------
 */

static int group_put(sar_member *m, uint64_t clock, const void *data, uint64_t bytes, sar_id *id)
{
	char name[SAR_NAME_MAX + 1];
	int n = snprintf(name, sizeof(name), GROUP_PREFIX "%s/%" PRIu64 "/%016" PRIx64,
			 m->join.name, clock, m->join.member);
	*id = sar_id_of(name, (size_t)n);
	int r = sar_put(m->s, *id, name, data, bytes);
	/* while members of the cluster change: it may be there */
	for (int i = 0; i < GROUP_TRIES && (r == -ETIMEDOUT || r == -EAGAIN); i++)
		r = sar_put(m->s, *id, name, data, bytes);
	if (r != -EEXIST)
		return r;
	r = sar_delete(m->s, *id); /* of a push that failed: nobody has counted it */
	return r == 0 || r == -ENOENT ? sar_put(m->s, *id, name, data, bytes) : r;
}

int sar_group_push(sar_member *m, const void *data, uint64_t bytes)
{
	struct group_answer answer;
	bool retried = false;
	sar_id id;
	if (bytes != m->count * m->item_bytes)
		return error_set(-EINVAL,
				 "a contribution of %" PRIu64 " bytes: group %s has %" PRIu64
				 " elements, which are %" PRIu64 " bytes",
				 bytes, m->join.name, m->count, m->count * m->item_bytes);
	int r = m->unsure ? group_rejoin(m) : 0;
	if (r < 0)
		return r;
	uint64_t clock = m->join.clock + 1;
	r = group_put(m, clock, data, bytes, &id);
	if (r < 0)
		return r;
	struct group_request request = group_of_member(m, GROUP_PUSH);
	request.clock = clock;
	request.count = m->count;
	request.dtype = m->dtype;
	r = group_member_call(m, &request, HANDLE_CALL_NS, &answer, &retried);
	if (r == -EEXIST && retried)
		r = 0; /* the first time it was counted, and the answer was lost */
	else if (r == 0)
		group_learn(m, &answer);
	if (r == 0) {
		group_clock(&m->join, clock);
		m->join.pending |= UINT64_C(1) << (m->join.clock - clock) % GROUP_PENDING_MAX;
		return 0;
	}
	struct error_kept kept;
	error_keep(&kept);
	m->unsure = r == -ETIMEDOUT || r == -ENOTCONN || r == -ESHUTDOWN;
	if (!m->unsure)
		sar_delete(m->s, id);
	error_restore(&kept);
	return r;
}

/* ---- pull -------------------------------------------------------------------------------------
 */

static void group_name(const sar_member *m, char kind, uint64_t round, uint32_t attempt,
		       char name[SAR_NAME_MAX + 1])
{
	int n = snprintf(name, SAR_NAME_MAX + 1, GROUP_PREFIX "%s/%c/%" PRIu64, m->join.name, kind,
			 round);
	if (attempt)
		snprintf(name + n, SAR_NAME_MAX + 1 - (size_t)n, ".%" PRIu32, attempt);
}

static int group_result(sar_member *m, int64_t timeout_ns, const struct group_answer *answer,
			sar_group_result *out)
{
	char name[SAR_NAME_MAX + 1];
	*out = (sar_group_result){.round = answer->round,
				  .attempt = answer->attempt,
				  .version = answer->version,
				  .clock = m->join.clock};
	if (answer->round == 0)
		return 0;
	group_name(m, 'r', answer->round, answer->attempt, name);
	return sar_get(m->s, sar_id_of(name, strlen(name)), timeout_ns, &out->buffer);
}

int sar_group_pull(sar_member *m, int64_t timeout_ns, sar_group_result *out)
{
	int64_t until_ns = timeout_ns == SAR_FOREVER ? DEADLINE_NEVER : deadline_after(timeout_ns);
	struct group_answer answer;
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_group_pull: a timeout is not negative: use "
					  "SAR_FOREVER to wait without limit");
	for (int i = 0;; i++) {
		struct group_request request = group_of_member(m, GROUP_PULL);
		bool retried = false;
		int r = group_member_call(m, &request, deadline_left(until_ns), &answer, &retried);
		if (r < 0) {
			m->unsure = true;
			return r;
		}
		group_learn(m, &answer);
		m->join.seen = answer.round;
		m->join.seen_attempt = answer.attempt;
		r = group_result(m, deadline_left(until_ns), &answer, out);
		/* rounds went on so fast that it is deleted already: a newer one is there */
		if ((r != -ENOENT && r != -ESTALE) || i == GROUP_TRIES)
			return r;
	}
}

/* The next word of a line as a number; NULL: there is none. */
static const char *group_number(const char *at, const char *end, int base, uint64_t *out)
{
	char *after;
	if (!at || at >= end)
		return NULL;
	*out = strtoull(at, &after, base);
	return after == at || after >= end ? NULL : after + 1;
}

int sar_group_contributors(sar_member *m, const sar_group_result *result, sar_contributor *out,
			   unsigned room)
{
	char name[SAR_NAME_MAX + 1], *text;
	sar_buffer b = {0};
	unsigned count = 0;
	if (result->round == 0)
		return 0;
	group_name(m, 'd', result->round, result->attempt, name);
	int r = sar_get(m->s, sar_id_of(name, strlen(name)), GROUP_DECISION_NS, &b);
	if (r == -ETIMEDOUT)
		return error_set(-ENOENT,
				 "the decision of round %" PRIu64 " of group %s is gone: "
				 "look at newer ones",
				 result->round, m->join.name);
	if (r < 0)
		return r;
	text = malloc(b.size + 1);
	if (text) {
		memcpy(text, b.data, b.size);
		text[b.size] = '\0';
	}
	const char *end = text ? text + b.size : NULL;
	sar_release(m->s, &b);
	if (!text)
		return error_set(-ENOMEM, "out of memory");
	for (const char *line = text; line && line < end; line = strchr(line, '\n')) {
		uint64_t number, clock, staleness, node;
		line += *line == '\n';
		if (strncmp(line, "c ", 2) != 0)
			continue;
		const char *at = group_number(line + 2, end, 16, &number);
		at = group_number(at, end, 10, &clock);
		at = group_number(at, end, 10, &staleness);
		if (group_number(at, end, 10, &node) == NULL)
			continue;
		if (count < room)
			out[count] = (sar_contributor){.member = number,
						       .clock = clock,
						       .staleness = staleness,
						       .node = (uint32_t)node};
		count++;
	}
	free(text);
	return (int)count;
}
