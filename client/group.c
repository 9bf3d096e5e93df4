/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: what sarissa/group.h promises, as requests to the group's owner. A contribution is an
 * object of this node that is put before the owner hears of it. When the owner does not know the
 * member, because it or this node's control was started again, the member announces itself with its
 * clock and the contributions that have had no round yet, and the call goes on.
 */
#include "group.h"

#include <errno.h>
#include <stdlib.h>
#include "deadline.h"
#include "error.h"
#include "group_work.h"
#include "run.h"

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
	error = run_request(s, &request, &tail, sizeof(*out), timeout_ns, &result);
	if (retried)
		*retried = result.retried;
	if (error < 0)
		return error;
	group_answered(&result, out);
	mux_result_free(&result);
	return 0;
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

/* ---- groups -----------------------------------------------------------------------------------
 */

int sar_group_create(sar *s, const char *name, const sar_group_spec *spec)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask_create(&request, name, spec);
	return r < 0 ? r : group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
}

int sar_group_policy(sar *s, const char *name, const char *policy, uint64_t *version)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask_policy(&request, name, policy);
	if (r == 0)
		r = group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
	if (r == 0 && version)
		*version = answer.version;
	return r;
}

int sar_policy_explain(sar *s, const char *policy, char table[SAR_POLICY_TABLE_MAX])
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask_explain(&request, policy);
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

/* Of a join that was interrupted: the owner may have a member that nobody knows. */
static void group_unjoin(sar *s, const struct group_request *join)
{
	struct group_request leave = *join;
	struct session_request request = handle_request(SESSION_GROUP, NULL);
	struct mux_tail tail = {{&leave, sizeof(leave)}, -1};
	struct mux_result result;
	struct interrupt before = interrupt_set(NULL);
	leave.step = GROUP_LEAVE;
	request.size = sizeof(leave);
	mux_call(&s->mux, &request, &tail, sizeof(struct group_answer),
		 deadline_after(INTERRUPT_TIDY_NS), &result);
	mux_result_free(&result);
	interrupt_set(&before);
}

int sar_group_join(sar *s, const char *name, const char *cohort, sar_member **out)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask_join(&request, name, cohort);
	if (r == 0)
		r = group_call(s, &request, HANDLE_CALL_NS, &answer, NULL);
	if (r == -EINTR) {
		group_unjoin(s, &request);
		return error_set(r, INTERRUPT_TEXT);
	}
	if (r < 0)
		return r;
	sar_member *m = group_member_new(s, &request, &answer);
	if (!m)
		return -ENOMEM;
	*out = m;
	return 0;
}

int sar_group_leave(sar_member *m)
{
	struct group_answer answer;
	if (!m)
		return 0;
	if (group_member_free(m) < 0)
		return -EBUSY;
	struct group_request request = group_of_member(m, GROUP_LEAVE);
	int r = group_call(m->s, &request, HANDLE_CALL_NS, &answer, NULL);
	group_switch_end(m->s, &m->at_switch);
	free(m);
	return r == -ENOENT ? 0 : r;
}

/* ---- push and pull ----------------------------------------------------------------------------
 */

static int group_put(sar_member *m, uint64_t clock, const void *data, uint64_t bytes, sar_id *id)
{
	char name[SAR_NAME_MAX + 1];
	*id = group_contribution(m, clock, name);
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
	int r = group_push_check(m, bytes);
	if (r == 0 && m->unsure)
		r = group_rejoin(m);
	if (r < 0)
		return r;
	struct group_request request = group_of_push(m);
	r = group_put(m, request.clock, data, bytes, &id);
	if (r < 0)
		return r;
	r = group_member_call(m, &request, HANDLE_CALL_NS, &answer, &retried);
	if (r == -EEXIST && retried)
		r = 0; /* the first time it was counted, and the answer was lost */
	else if (r == 0)
		group_learn(m, &answer);
	if (r == 0) {
		group_pushed(m, request.clock);
		return 0;
	}
	struct error_kept kept;
	error_keep(&kept);
	m->unsure = group_unsure(r);
	if (!m->unsure)
		sar_delete(m->s, id);
	error_restore(&kept);
	return r;
}

/* The requests of a pull until it is answered with a result: before that, with parts in rounds. */
static int group_pull_answer(sar_member *m, int64_t until_ns, int64_t timeout_ns,
			     struct group_answer *answer)
{
	struct group_report report = {0};
	for (;;) {
		struct group_request request = group_of_pull(m, &report);
		int64_t left = deadline_left_of(until_ns, timeout_ns);
		bool retried = false;
		/* a report must arrive, however long the part took */
		if (report.flags && left < GROUP_REPORT_NS)
			left = GROUP_REPORT_NS;
		int r = group_member_call(m, &request, left, answer, &retried);
		if (r < 0)
			m->unsure = true;
		if (r < 0 || answer->job.round == 0)
			return r;
		group_learn(m, answer);
		report = group_take_part(m, &answer->job);
	}
}

int sar_group_pull(sar_member *m, int64_t timeout_ns, sar_group_result *out)
{
	int64_t until_ns = timeout_ns == SAR_FOREVER ? DEADLINE_NEVER : deadline_after(timeout_ns);
	struct group_answer answer;
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_group_pull: a timeout is not negative: use "
					  "SAR_FOREVER to wait without limit");
	int r = group_member_free(m);
	for (int i = 0; r == 0; i++) {
		int64_t left, limit = group_get_ns(m);
		sar_id id;
		r = group_pull_answer(m, until_ns, timeout_ns, &answer);
		if (r < 0)
			return group_pull_late(m, r);
		group_pulled(m, &answer, out, &id);
		if (answer.round == 0 || group_switch_take(m->s, &m->at_switch, answer.round,
							   answer.attempt, &out->buffer))
			return 0;
		left = deadline_left_of(until_ns, timeout_ns);
		r = sar_get(m->s, id, left < limit ? left : limit, &out->buffer);
		if (r == 0 && group_result_check(m, &out->buffer) < 0) {
			struct error_kept words;
			error_keep(&words);
			sar_release(m->s, &out->buffer);
			error_restore(&words);
			return -EINVAL;
		}
		if (r == -ETIMEDOUT && left > limit)
			i--; /* it is lost: the owner finds out, or makes it again */
		else if (!group_pull_retries(r) || i == GROUP_TRIES)
			return r;
		r = 0;
	}
	return r;
}

int sar_group_contributors(sar_member *m, const sar_group_result *result, sar_contributor *out,
			   unsigned room)
{
	char name[SAR_NAME_MAX + 1];
	sar_buffer b = {0};
	if (result->round == 0)
		return 0;
	sar_id id = group_round(m, 'd', result->round, result->attempt, name);
	int r = sar_get(m->s, id, GROUP_DECISION_NS, &b);
	if (r == -ETIMEDOUT)
		return group_decision_gone(m, result);
	if (r < 0)
		return r;
	r = group_contributors(&b, out, room);
	sar_release(m->s, &b);
	return r;
}
