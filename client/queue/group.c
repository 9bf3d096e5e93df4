/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of groups: what sarissa/group.h promises, as requests to the group's owner, one after
 * the other. Each stage ends with op_finish, which calls the next one (op->then). Under the queue's
 * lock.
 *
 * A contribution is an object of this node that is put before the owner hears of it. When the owner
 * does not know the member, because it or this node's control was started again, the member
 * announces itself with its clock and the contributions that have had no round yet, and the
 * operation goes on.
 *
 *   CREATE, REMOVE, POLICY, LEAVE   GROUP -> done
 *   INFO, JOIN                      GROUP (INFO: one after the other, a page each) -> done
 *   PUSH     JOIN again, if unsure -> PUT -> GROUP -> done
 *            -EEXIST of the PUT: DELETE -> PUT; -ESTALE of the GROUP: JOIN again -> GROUP
 *            refused: DELETE -> done, with the words of the refusal
 *   PULL     GROUP -> GET of the result -> done; deleted meanwhile: again
 *            a part at a switch: a thread takes part (the call's, if it waits) -> GROUP; it may
 *            have the result then
 *   CONTRIBUTORS  GET of the decision -> done
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "deadline.h"
#include "api/error.h"
#include "api/get.h"
#include "api/group.h"
#include "group_work.h"
#include "queue.h"

struct op_group {
	struct group_request ask;
	struct group_answer answer;
	sar_member *m;
	op_step *answered; /* with what the owner says */
	sar_member **joined;
	sar_group_result *pulled;
	sar_group_result decided; /* CONTRIBUTORS */
	sar_group_info *info;
	sar_member_info *member;
	sar_contributor *contributor;
	unsigned room, count, tries;
	struct iovec data;
	struct group_work work;
	struct group_report report; /* to be told by the next pull */
	int64_t until_ns;
	bool nowait;
	bool heard;	/* an earlier request may have been */
	bool announced; /* after this request was not understood: once */
	int result;
	char words[SAR_DETAIL_MAX];
};

/* ---- ends ----------------------------------------------------------------------------------- */

static void group_end(struct op *op, int result)
{
	if (op->group->m)
		op->group->m->busy = false;
	op_finish(op, result);
}

void op_group_free(struct op *op)
{
	free(op->group);
	op->group = NULL;
}

bool op_group_refuses(const struct op *op)
{
	uint32_t step = op->group ? op->group->ask.step : 0;
	return op->request.op == SESSION_GROUP &&
	       (step == GROUP_CREATE || step == GROUP_POLICY || step == GROUP_PUSH);
}

/* A member that nobody would know of must not stay in the group: the answer is waited for. */
bool op_group_stays(struct op *op)
{
	if (op->state == OP_AWAY)
		atomic_store(&op->group->work.stop, true);
	return op->state == OP_AWAY || op->kind == SAR_OP_GROUP_LEAVE ||
	       (op->kind == SAR_OP_GROUP_JOIN && op->state == OP_OUT);
}

void op_group_release(struct op *op)
{
	struct op_group *g = op->group;
	bool done = op->state == OP_DONE;
	sar_member *m = g ? g->m : NULL;
	if (g) {
		atomic_store(&g->work.stop, true);
		group_work_join(&g->work);
	}
	if (m && !done) {
		m->busy = false;
		m->unsure = true;
	}
	if (g && op->kind == SAR_OP_GROUP_JOIN && done && op->result == 0)
		sar_group_leave(*g->joined);
	if (m && op->kind == SAR_OP_GROUP_LEAVE && !done)
		sar_group_leave(m);
	op_group_free(op);
}

/* ---- requests to the owner ------------------------------------------------------------------ */

struct iovec op_group_bytes(const struct op *op)
{
	return (struct iovec){&op->group->ask, sizeof(op->group->ask)};
}

static void group_step(struct op *op, int status)
{
	if (status == 0)
		group_answered(&op->call.result, &op->group->answer);
	op_finish(op, status);
}

static void group_send(struct op *op, const struct group_request *ask, op_step *then)
{
	op->group->ask = *ask;
	op->post = false;
	op->request.name[0] = '\0';
	op_new(op, SESSION_GROUP);
	memset(&op->request.id, 0, sizeof(op->request.id)); /* it is about no object */
	op->request.size = sizeof(*ask);
	op->then = then;
	op_request(op, group_step);
}

static void group_request(struct op *op, const struct group_request *ask, op_step *then)
{
	op->nowait = false;
	op_patience(op, HANDLE_CALL_NS);
	group_send(op, ask, then);
}

static void group_member_repeat(struct op *op);

static void group_member_announced(struct op *op, int status)
{
	struct op_group *g = op->group;
	if (status < 0) {
		g->answered(op, status);
		return;
	}
	group_learn(g->m, &g->answer);
	group_member_repeat(op);
}

static void group_member_answered(struct op *op, int status)
{
	struct op_group *g = op->group;
	g->heard |= op->retried || status == -ESTALE;
	if (status == -ESTALE && !g->announced && !op->cancelled) {
		g->announced = true;
		group_request(op, &g->m->join, group_member_announced);
		return;
	}
	g->answered(op, status);
}

/* The request of a member, PUSH or PULL, as it is to be sent now. */
static void group_member_repeat(struct op *op)
{
	struct op_group *g = op->group;
	struct group_request ask;
	if (op->kind == SAR_OP_GROUP_PUSH) {
		ask = group_of_push(g->m);
		group_request(op, &ask, group_member_answered);
		return;
	}
	ask = group_of_pull(g->m, &g->report);
	op->nowait = g->nowait;
	op->until_ns = g->until_ns;
	if (g->report.flags) { /* it must arrive, however long the part took */
		int64_t least = deadline_after(GROUP_REPORT_NS);
		op->until_ns = op->cancelled || least > g->until_ns ? least : g->until_ns;
	}
	group_send(op, &ask, group_member_answered);
}

/* One that the owner does not know is announced, once. */
static void group_member_request(struct op *op, op_step *answered)
{
	op->group->answered = answered;
	op->group->announced = op->group->heard = false;
	group_member_repeat(op);
}

/* ---- groups --------------------------------------------------------------------------------- */

static void group_done(struct op *op, int status)
{
	struct op_group *g = op->group;
	if (op->kind == SAR_OP_GROUP_REMOVE && status == -ENOENT && op->retried)
		status = 0;
	if (op->kind == SAR_OP_GROUP_LEAVE) {
		group_switch_end(g->m->s, &g->m->at_switch);
		free(g->m);
		g->m = NULL;
		status = status == -ENOENT ? 0 : status;
	}
	if (op->kind == SAR_OP_GROUP_POLICY && status == 0)
		op->value = g->answer.version;
	group_end(op, status);
}

static void group_described(struct op *op, int status)
{
	struct op_group *g = op->group;
	const struct group_answer *a = &g->answer;
	struct group_request next = g->ask;
	if (status < 0) {
		group_end(op, status);
		return;
	}
	if (g->ask.cursor == 0)
		group_info(a, g->info);
	for (uint32_t i = 0; i < a->page && i < GROUP_PAGE; i++, g->count++)
		if (g->count < g->room)
			group_member_info(&a->member[i], &g->member[g->count]);
	if (g->count >= g->room || a->cursor <= g->ask.cursor) {
		op->value = g->count < g->room ? g->count : g->room;
		group_end(op, 0);
		return;
	}
	next.cursor = a->cursor;
	group_request(op, &next, group_described);
}

/* The rest of a failed push is gone, and the failure is told. */
static void group_undone(struct op *op, int status)
{
	group_end(op, error_set(op->group->result, "%s", op->group->words));
}

static void group_joined(struct op *op, int status)
{
	struct op_group *g = op->group;
	struct group_request leave = g->ask;
	sar_member *m = NULL;
	if (status == 0 && !op->cancelled) {
		m = group_member_new(op->queue->s, &g->ask, &g->answer);
		status = m ? 0 : -ENOMEM;
	}
	if (m)
		*g->joined = m;
	if (m || (status < 0 && status != -ENOMEM)) {
		group_end(op, status);
		return;
	}
	/* it has joined, and nobody will use it: the group is not to wait for it */
	g->result = status == 0 ? -ECANCELED : status;
	snprintf(g->words, sizeof(g->words), "%s",
		 status == 0 ? "cancelled by sar_cancel" : sar_error_detail());
	leave.step = GROUP_LEAVE;
	leave.flags = GROUP_LOST;
	group_request(op, &leave, group_undone);
}

/* ---- push ----------------------------------------------------------------------------------- */

static void group_push_put(struct op *op);

static void group_push_delete(struct op *op, op_step *then)
{
	op->post = false;
	op_new(op, SESSION_DELETE);
	op_patience(op, HANDLE_CALL_NS);
	op->then = then;
	op_request(op, op_finish);
}

static void group_push_answered(struct op *op, int status)
{
	struct op_group *g = op->group;
	uint64_t clock = g->m->join.clock + 1;
	bool counted = status == -EEXIST && g->heard;
	if (status == 0 || counted) {
		if (status == 0)
			group_learn(g->m, &g->answer);
		group_pushed(g->m, clock);
		op->value = clock;
		group_end(op, 0);
		return;
	}
	g->m->unsure = group_unsure(status);
	if (g->m->unsure) {
		group_end(op, status);
		return;
	}
	g->result = status;
	snprintf(g->words, sizeof(g->words), "%s", sar_error_detail());
	group_push_delete(op, group_undone);
}

static void group_push_cleared(struct op *op, int status)
{
	if (status < 0 && status != -ENOENT)
		group_end(op, status);
	else
		group_push_put(op);
}

static void group_push_there(struct op *op, int status)
{
	struct op_group *g = op->group;
	g->tries++;
	if (status == 0)
		group_member_request(op, group_push_answered);
	else if (status == -EEXIST && g->tries <= GROUP_TRIES) /* of a push that failed */
		group_push_delete(op, group_push_cleared);
	else if ((status == -ETIMEDOUT || status == -EAGAIN) && g->tries <= GROUP_TRIES)
		group_push_put(op); /* while members of the cluster change: it may be there */
	else
		group_end(op, status);
}

static void group_push_put(struct op *op)
{
	struct op_group *g = op->group;
	op->id = group_contribution(g->m, g->m->join.clock + 1, op->request.name);
	op->put = (struct op_put){.one = g->data, .count = 1, .size = g->data.iov_len};
	op->post = false;
	op->then = group_push_there;
	op_put_begin(op);
}

static void group_push_known(struct op *op, int status)
{
	struct op_group *g = op->group;
	if (status < 0) {
		group_end(op, status);
		return;
	}
	group_learn(g->m, &g->answer);
	group_push_put(op);
}

/* ---- pull ----------------------------------------------------------------------------------- */

static void group_pull_answered(struct op *op, int status);

static void group_pull_got(struct op *op, int status)
{
	struct op_group *g = op->group;
	/* it is lost, and the owner finds out; or rounds went on so fast that it is deleted already
	 */
	bool lost = status == -ETIMEDOUT && !g->nowait && deadline_left(g->until_ns) > 0;
	if (status == 0 && group_result_check(g->m, &op->buffer) < 0) {
		get_give_back(op->queue->s, &op->buffer);
		op->buffer = (sar_buffer){0};
		status = -EINVAL;
	}
	if (lost || (group_pull_retries(status) && g->tries++ < GROUP_TRIES))
		group_member_request(op, group_pull_answered);
	else
		group_end(op, status);
}

static void group_part_back(void *op)
{
	op_back(op);
}

/* The thread has ended. */
static void group_part_ended(struct op *op, int status)
{
	struct op_group *g = op->group;
	group_work_join(&g->work);
	g->report = g->work.report;
	group_member_request(op, group_pull_answered);
}

static void group_part_begin(struct op *op)
{
	struct op_group *g = op->group;
	group_learn(g->m, &g->answer);
	if (op->queue->run) {
		g->report = group_take_part(g->m, &g->answer.job);
		group_member_request(op, group_pull_answered);
		return;
	}
	op->step = group_part_ended;
	op->state = OP_AWAY;
	g->work = (struct group_work){
		.m = g->m, .job = g->answer.job, .ended = group_part_back, .arg = op};
	group_work_begin(&g->work);
}

static void group_pull_answered(struct op *op, int status)
{
	struct op_group *g = op->group;
	g->report = (struct group_report){0};
	if (op->cancelled)
		status = op_cancelled_words();
	if (status < 0) {
		g->m->unsure = true;
		group_end(op, group_pull_late(g->m, status));
		return;
	}
	if (g->answer.job.round) {
		group_part_begin(op);
		return;
	}
	group_pulled(g->m, &g->answer, g->pulled, &op->id);
	op->value = g->answer.round;
	if (op->value == 0 || group_switch_take(g->m->s, &g->m->at_switch, g->answer.round,
						g->answer.attempt, &op->buffer)) {
		group_end(op, 0);
		return;
	}
	op->nowait = g->nowait;
	op->until_ns = op_until(g->nowait ? 0 : group_get_ns(g->m));
	if (!g->nowait && g->until_ns < op->until_ns)
		op->until_ns = g->until_ns;
	op->then = group_pull_got;
	op_get(op, true, op_finish);
}

static void group_decision_got(struct op *op, int status)
{
	struct op_group *g = op->group;
	if (status == -ETIMEDOUT)
		status = group_decision_gone(g->m, &g->decided);
	if (status == 0)
		status = group_contributors(&op->buffer, g->contributor, g->room);
	get_give_back(op->queue->s, &op->buffer);
	op->buffer = (sar_buffer){0};
	group_end(op, status);
}

/* ---- submitting ----------------------------------------------------------------------------- */

/* An operation that is about to ask what is in g, which it takes over. */
static int group_begin(sar_queue *q, uint16_t kind, const struct op_group *g, uint64_t user_data,
		       struct op **out)
{
	struct op_group *own = malloc(sizeof(*own));
	if (!own)
		return error_set(-ENOMEM, "out of memory");
	*own = *g;
	int r = queue_enter(q);
	struct op *op = r < 0 ? NULL : queue_take(q, kind, NULL, user_data);
	if (!op) {
		free(own);
		return r < 0 ? r : queue_leave(q, -EAGAIN);
	}
	op->group = own;
	if (own->m)
		own->m->busy = true;
	queue_user_add(q, op);
	*out = op;
	return 0;
}

static int group_submit(sar_queue *q, uint16_t kind, const struct op_group *g, uint64_t user_data,
			op_step *then)
{
	struct op *op;
	int r = group_begin(q, kind, g, user_data, &op);
	if (r < 0)
		return r;
	group_request(op, &g->ask, then);
	return queue_leave(q, 0);
}

int sar_submit_group_create(sar_queue *q, const char *name, const sar_group_spec *spec,
			    uint64_t user_data)
{
	struct op_group g = {0};
	int r = group_ask_create(&g.ask, name, spec);
	return r < 0 ? r : group_submit(q, SAR_OP_GROUP_CREATE, &g, user_data, group_done);
}

int sar_submit_group_remove(sar_queue *q, const char *name, uint64_t user_data)
{
	struct op_group g = {0};
	int r = group_ask(&g.ask, GROUP_REMOVE, name);
	return r < 0 ? r : group_submit(q, SAR_OP_GROUP_REMOVE, &g, user_data, group_done);
}

int sar_submit_group_policy(sar_queue *q, const char *name, const char *policy, uint64_t user_data)
{
	struct op_group g = {0};
	int r = group_ask_policy(&g.ask, name, policy);
	return r < 0 ? r : group_submit(q, SAR_OP_GROUP_POLICY, &g, user_data, group_done);
}

int sar_submit_group_info(sar_queue *q, const char *name, sar_group_info *out,
			  sar_member_info *members, unsigned room, uint64_t user_data)
{
	struct op_group g = {.info = out, .member = members, .room = room};
	int r = out ? group_ask(&g.ask, GROUP_INFO, name)
		    : error_set(-EINVAL, "sar_submit_group_info: no place for the answer");
	return r < 0 ? r : group_submit(q, SAR_OP_GROUP_INFO, &g, user_data, group_described);
}

int sar_submit_group_join(sar_queue *q, const char *name, const char *cohort, sar_member **out,
			  uint64_t user_data)
{
	struct op_group g = {.joined = out};
	int r = out ? group_ask_join(&g.ask, name, cohort)
		    : error_set(-EINVAL, "sar_submit_group_join: no place for the member");
	return r < 0 ? r : group_submit(q, SAR_OP_GROUP_JOIN, &g, user_data, group_joined);
}

int sar_submit_group_leave(sar_queue *q, sar_member *m, uint64_t user_data)
{
	struct op_group g = {.m = m};
	int r = m ? group_member_free(m) : error_set(-EINVAL, "sar_submit_group_leave: no member");
	if (r < 0)
		return r;
	g.ask = group_of_member(m, GROUP_LEAVE);
	return group_submit(q, SAR_OP_GROUP_LEAVE, &g, user_data, group_done);
}

int sar_submit_group_push(sar_queue *q, sar_member *m, const void *data, uint64_t bytes,
			  uint64_t user_data)
{
	struct op_group g = {.m = m, .data = {(void *)(uintptr_t)data, bytes}};
	struct op *op;
	int r = group_push_check(m, bytes);
	if (r == 0)
		r = group_begin(q, SAR_OP_GROUP_PUSH, &g, user_data, &op);
	if (r < 0)
		return r;
	if (m->unsure)
		group_request(op, &m->join, group_push_known);
	else
		group_push_put(op);
	return queue_leave(q, 0);
}

int sar_submit_group_pull(sar_queue *q, sar_member *m, int64_t timeout_ns, sar_group_result *out,
			  uint64_t user_data)
{
	struct op_group g = {.m = m, .pulled = out, .nowait = timeout_ns == 0};
	struct op *op;
	int r = group_member_free(m);
	if (timeout_ns < 0)
		r = error_set(-EINVAL, "sar_submit_group_pull: a timeout is not negative: use "
				       "SAR_FOREVER to wait without limit");
	if (r == 0 && !out)
		r = error_set(-EINVAL, "sar_submit_group_pull: no place for the result");
	if (r < 0)
		return r;
	*out = (sar_group_result){0};
	g.until_ns = op_until(timeout_ns);
	r = group_begin(q, SAR_OP_GROUP_PULL, &g, user_data, &op);
	if (r < 0)
		return r;
	group_member_request(op, group_pull_answered);
	return queue_leave(q, 0);
}

int sar_submit_group_contributors(sar_queue *q, sar_member *m, const sar_group_result *result,
				  sar_contributor *out, unsigned room, uint64_t user_data)
{
	struct op_group g = {.m = m, .contributor = out, .room = room, .decided = *result};
	struct op *op;
	int r = group_member_free(m);
	if (r == 0 && result->round == 0)
		r = error_set(-EINVAL, "sar_submit_group_contributors: the result is of no round: "
				       "pull one first");
	if (r == 0)
		r = group_begin(q, SAR_OP_GROUP_CONTRIBUTORS, &g, user_data, &op);
	if (r < 0)
		return r;
	op->id = group_round(m, 'd', result->round, result->attempt, op->request.name);
	op_patience(op, GROUP_DECISION_NS);
	op->then = group_decision_got;
	op_get(op, true, op_finish);
	return queue_leave(q, 0);
}
