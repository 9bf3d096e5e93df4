/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: the calls that wait. Those of one request make it here, the others are operations of
 * queue/group.c. */
#include "group.h"

#include <errno.h>
#include <stdlib.h>
#include "queue/deadline.h"
#include "error.h"
#include "queue/run.h"

static int group_call(sar *s, const struct group_request *r, struct group_answer *out)
{
	struct session_request request = handle_request(SESSION_GROUP, NULL);
	struct mux_tail tail = {{(void *)(uintptr_t)r, sizeof(*r)}, -1};
	struct mux_result result;
	request.size = sizeof(*r);
	int error = run_request(s, &request, &tail, sizeof(*out), HANDLE_CALL_NS, &result);
	if (error < 0)
		return error;
	group_answered(&result, out);
	mux_result_free(&result);
	return 0;
}

/* ---- groups -----------------------------------------------------------------------------------
 */

int sar_group_create(sar *s, const char *name, const sar_group_spec *spec)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	return r < 0 ? r : run_end(&run, sar_submit_group_create(&run.q, name, spec, 0), &end);
}

int sar_group_policy(sar *s, const char *name, const char *policy, uint64_t *version)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r == 0)
		r = run_end(&run, sar_submit_group_policy(&run.q, name, policy, 0), &end);
	if (r == 0 && version)
		*version = end.value;
	return r;
}

int sar_policy_explain(sar *s, const char *policy, char table[SAR_POLICY_TABLE_MAX])
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask_explain(&request, policy);
	if (r == 0)
		r = group_call(s, &request, &answer);
	if (r == 0)
		memcpy(table, answer.table, SAR_POLICY_TABLE_MAX);
	return r;
}

int sar_group_remove(sar *s, const char *name)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	return r < 0 ? r : run_end(&run, sar_submit_group_remove(&run.q, name, 0), &end);
}

int sar_group_info_get(sar *s, const char *name, sar_group_info *out,
		       int (*fn)(const sar_member_info *member, void *arg), void *arg)
{
	struct group_request request;
	struct group_answer answer;
	int r = group_ask(&request, GROUP_INFO, name);
	for (bool first = true; r == 0; first = false) {
		r = group_call(s, &request, &answer);
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
		r = group_call(s, &request, &answer);
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
	int r = group_call(m->s, &request, &answer);
	group_switch_end(m->s, &m->at_switch);
	free(m);
	return r == -ENOENT ? 0 : r;
}

/* ---- push and pull ----------------------------------------------------------------------------
 */

int sar_group_push(sar_member *m, const void *data, uint64_t bytes)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, m->s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_group_push(&run.q, m, data, bytes, 0), &end);
}

int sar_group_pull(sar_member *m, int64_t timeout_ns, sar_group_result *out)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, m->s, 1);
	if (r < 0)
		return r;
	r = run_end(&run, sar_submit_group_pull(&run.q, m, timeout_ns, out, 0), &end);
	if (r == 0)
		out->buffer = end.buffer;
	return r;
}

int sar_group_contributors(sar_member *m, const sar_group_result *result, sar_contributor *out,
			   unsigned room)
{
	struct run run;
	sar_completion end;
	if (result->round == 0)
		return 0;
	int r = run_begin(&run, m->s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_group_contributors(&run.q, m, result, out, room, 0), &end);
}
