/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of members, and of clients that create, change and remove groups: each is checked,
 * and answered now or when its round ends. Called by groups.c. It must not know the messages that
 * bring requests.
 */
#include <errno.h>
#include "internal/reduce.h"
#include "groups.h"

/* ---- create, policy, remove -------------------------------------------------------------------
 */

static const char groups_full[] = "this node has as many groups as it may: remove some";
static const char groups_no_row[] = "the policy has no row for that cohort, and none for all "
				    "others: join another one";

/* The fault of a policy for a group with so many members, or NULL. */
static const char *groups_policy_wrong(const struct group_request *r, uint32_t members,
				       struct group_policy *p, struct group_policy_error *error)
{
	if (group_policy_parse(r->policy, p, error) != 0)
		return error->text;
	if (members > 0 && group_policy_excess(p, members) > 0) {
		struct text t = {.length = 0};

		text_add(&t, "a quorum of ");
		text_add_number(&t, group_policy_excess(p, members));
		text_add(&t, ": the group has ");
		text_add_number(&t, members);
		text_add(&t, " members: choose a smaller one");
		memcpy(error->text, t.bytes, sizeof(error->text) - 1);
		error->text[sizeof(error->text) - 1] = '\0';
		return error->text;
	}
	return NULL;
}

static const char *groups_create_wrong(const struct group_request *r)
{
	if (!reduce_op_name(r->op) || !reduce_dtype_name(r->dtype))
		return "unknown operation or type of elements";
	if (r->count == 0 || r->count > UINT64_MAX / REDUCE_ELEMENT_BYTES_MAX)
		return "a group needs a number of elements: at least 1";
	if (r->members > GROUP_MEMBERS_MAX)
		return "a group has at most 1023 members";
	if (r->flags & GROUP_TOTAL && r->op == REDUCE_AVG)
		return "totals of averages have no true count: choose sum, or results of rounds";
	return NULL;
}

static void groups_create(struct groups *gs, const struct group_waiter *w,
			  const struct group_request *r)
{
	const char *wrong = groups_create_wrong(r);
	struct group_policy_error error;
	struct group_policy p;
	struct group *g;
	struct text name;
	uint32_t bytes;

	if (!wrong)
		wrong = groups_policy_wrong(r, r->members, &p, &error);
	if (wrong) {
		groups_refuse(gs, w, -EINVAL, wrong);
		return;
	}
	g = groups_make(gs, r->name);
	if (!g) {
		groups_refuse(gs, w, -ENOSPC, groups_full);
		return;
	}
	g->phase = GROUP_PHASE_CREATE;
	g->op = r->op;
	g->dtype = r->dtype;
	g->count = r->count;
	g->flags = r->flags & GROUP_TOTAL;
	g->start = r->members;
	g->switches = r->switches;
	for (uint32_t i = 0; i < r->switches; i++)
		g->at_switch[i].ip = r->switch_ip[i];
	g->version = 1;
	g->policy = p;
	memcpy(g->policy_text, r->policy, sizeof(g->policy_text));
	g->oldest = 1;
	g->creator = *w;
	rounds_open(g, 1);
	bytes = group_meta_write(g, gs->blob, sizeof(gs->blob));
	group_name(&name, g->name, NULL, 0, 0);
	if (gs->ops->put(gs->ops->arg, g, name.bytes, gs->blob, bytes))
		return;
	g->creator.request = 0;
	groups_free(gs, g);
	groups_refuse(gs, w, -EAGAIN, "the node has no room for it at the moment: try again");
}

static void groups_policy(struct groups *gs, struct group *g, const struct group_waiter *w,
			  const struct group_request *r)
{
	uint32_t members = g->live > g->start ? g->live : g->start;
	struct group_policy_error error;
	struct group_policy p;
	const char *wrong = groups_policy_wrong(r, members, &p, &error);
	int32_t status = wrong ? -EINVAL : 0;

	for (uint32_t i = 0; !wrong && i < g->cohorts; i++)
		if (g->cohort[i].live > 0 &&
		    group_policy_match(&p, g->cohort[i].name) == POLICY_NO_ROW) {
			wrong = "the new policy has no row for a cohort that has members: name it, "
				"or add a row without a cohort";
			status = -EINVAL;
		}
	if (!wrong && g->swapper.request && g->swapper.request != w->request) {
		wrong = "another change of the policy is under way: try again";
		status = -EAGAIN;
	}
	if (wrong) {
		groups_refuse(gs, w, status, wrong);
		return;
	}
	if (g->swapper.request)
		return; /* repeated */
	g->swapper = *w;
	g->wanted = p;
	memcpy(g->wanted_text, r->policy, sizeof(g->wanted_text));
	rounds_turn(gs, g);
}

void groups_swapped(struct groups *gs, struct group *g, int32_t status, const char *text)
{
	struct group_waiter w = g->swapper;

	g->task = GROUP_TASK_NONE;
	g->swapper.request = 0;
	if (status == -EEXIST) { /* of an earlier owner: its number is taken */
		g->version++;
		groups_tell(gs, &w, -EAGAIN,
			    "the policy was changed meanwhile: look, and try again", NULL);
		rounds_turn(gs, g);
		return;
	}
	if (status != 0) {
		groups_tell(gs, &w, status, text, NULL);
		rounds_turn(gs, g);
		return;
	}
	g->version++;
	g->policy = g->wanted;
	memcpy(g->policy_text, g->wanted_text, sizeof(g->policy_text));
	roster_bind(g, true);
	if (g->open.count == 0) /* nobody has begun it */
		rounds_open(g, g->open.number);
	groups_tell(gs, &w, 0, "", g);
	rounds_turn(gs, g);
}

static void groups_remove(struct groups *gs, struct group *g, const struct group_waiter *w)
{
	struct text name;

	if (g->phase == GROUP_PHASE_REMOVE) {
		g->remover = *w;
		return;
	}
	if (g->task == GROUP_TASK_REDUCE) {
		group_name(&name, g->name, "r", g->closing.number, g->closing.attempt);
		gs->ops->remove(gs->ops->arg, name.bytes);
	}
	if (g->task == GROUP_TASK_MEND) {
		group_name(&name, g->name, "r", g->newest.number, g->newest.attempt);
		gs->ops->remove(gs->ops->arg, name.bytes);
	}
	groups_abandon(gs, g);
	list_each(l, after, &g->members)
	{
		roster_drop(gs, g, list_item(l, struct group_member, of_group), false);
	}
	g->remover = *w;
	g->phase = GROUP_PHASE_REMOVE;
	g->task = GROUP_TASK_NONE;
	g->switch_due_ns = g->open.due_ns = UINT64_MAX; /* no round ends any more */
	load_retry(gs, g);
}

/* ---- members ----------------------------------------------------------------------------------
 */

static void groups_rejoin(struct groups *gs, struct group *g, struct group_member *m,
			  const struct group_request *r)
{
	for (int i = GROUP_PENDING_MAX - 1; i >= 0; i--) {
		uint64_t clock = r->clock - (uint64_t)i;

		if (r->pending >> i & 1 && clock <= r->clock && clock > m->clock)
			rounds_contribute(gs, g, m, clock);
	}
	if (r->clock > m->clock)
		roster_move(g, m, r->clock, g->open.number - 1);
	m->provisional = false;
	if (r->seen > m->seen) {
		m->seen = r->seen;
		m->seen_attempt = r->seen_attempt;
	}
	if (r->joined > m->joined)
		m->joined = r->joined;
	results_compare(g, m);
	g->moved = true;
}

static bool groups_decided(const struct group_round *r, uint64_t member, uint64_t clock)
{
	list_each(l, after, &r->contributions)
	{
		const struct group_contribution *one =
			list_item(l, struct group_contribution, link);

		if (one->member == member && one->clock == clock)
			return true;
	}
	return false;
}

/* The contributions of a member that is not taken back are of no use, unless they are decided. */
static void groups_unwanted(struct groups *gs, const struct group *g, const struct group_request *r)
{
	struct text name;

	for (uint64_t i = 0; i < GROUP_PENDING_MAX && i < r->clock; i++) {
		if (!(r->pending >> i & 1) ||
		    groups_decided(&g->closing, r->member, r->clock - i) ||
		    groups_decided(&g->newest, r->member, r->clock - i))
			continue;
		group_contribution_name(&name, g->name, r->clock - i, r->member);
		gs->ops->remove(gs->ops->arg, name.bytes);
	}
}

static void groups_join(struct groups *gs, struct group *g, const struct group_waiter *w,
			const struct group_request *r)
{
	struct group_member *m = roster_find(gs, g, r->member);
	bool rejoin = r->flags & GROUP_REJOIN;
	uint64_t most =
		m && m->clock > GROUP_NUMBER_MAX ? m->clock + GROUP_PENDING_MAX : GROUP_NUMBER_MAX;
	int error;

	if (r->clock > most || (!m && rejoin && r->joined <= g->open.number - 1)) {
		groups_unwanted(gs, g, r);
		groups_refuse(gs, w, -ESTALE,
			      "the member was taken for dead, and rounds went on: join again");
		return;
	}
	if (!m)
		m = roster_add(gs, g, r->member, w->node, r->cohort,
			       rejoin ? r->clock - GROUP_PENDING_MAX < r->clock
						? r->clock - GROUP_PENDING_MAX
						: 0
				      : UINT64_MAX,
			       &error);
	if (!m) {
		groups_refuse(gs, w, error == -ENOENT ? -EINVAL : error,
			      error == -ENOENT ? groups_no_row
					       : "the group has as many members or cohorts as it "
						 "may: leave, or remove some");
		return;
	}
	m->node = w->node;
	if (rejoin)
		groups_rejoin(gs, g, m, r);
	if (r->seen > g->published && r->seen <= GROUP_NUMBER_MAX && g->task == GROUP_TASK_NONE &&
	    g->open.count == 0) {
		/* rounds that this owner has not found: their numbers are taken */
		g->published = g->result = r->seen;
		g->kept[r->seen % (2 * GROUP_KEEP)] = (struct group_kept){r->seen, r->seen_attempt};
		rounds_open(g, r->seen + 1);
	}
	groups_answer(gs, w, g, m);
	rounds_turn(gs, g);
}

static void groups_number_text(struct text *t, const char *before, uint64_t n, const char *after)
{
	text_add(t, before);
	text_add_number(t, n);
	text_add(t, after);
}

/* Why a contribution is not taken: 0, or -errno and a text. */
static int32_t groups_push_wrong(const struct group *g, const struct group_member *m,
				 const struct group_request *r, struct text *t)
{
	t->length = 0;
	*t->bytes = '\0';
	if (r->count != g->count || r->dtype != g->dtype) {
		groups_number_text(t, "a contribution of ", r->count, " elements of ");
		text_add(t, reduce_dtype_name(r->dtype) ? reduce_dtype_name(r->dtype) : "no type");
		groups_number_text(t, ": the group has ", g->count, " of ");
		text_add(t, reduce_dtype_name(g->dtype));
		return -EINVAL;
	}
	if (r->clock <= m->clock) {
		groups_number_text(t, "clock ", r->clock, " is past: ");
		groups_number_text(t, "the next one of this member is ", m->clock + 1, "");
		return -EEXIST;
	}
	if (r->clock != m->clock + 1) {
		groups_number_text(t, "clock ", r->clock, " is too far ahead: ");
		groups_number_text(t, "the next one of this member is ", m->clock + 1, "");
		return -EINVAL;
	}
	if (!roster_may_push(g, m)) {
		groups_number_text(t, "clock ", r->clock,
				   " is too far ahead of the slowest member: pull first");
		return -EAGAIN;
	}
	if (m->clock - m->done >= GROUP_PENDING_MAX && m->need > g->published) {
		groups_number_text(
			t, "", GROUP_PENDING_MAX,
			" contributions of this member wait for their rounds: pull first");
		return -EAGAIN;
	}
	return 0;
}

static void groups_pushed(struct groups *gs, const struct group *g, const struct group_waiter *w,
			  const struct group_member *m)
{
	groups_fill(gs, g, m);
	gs->answer.joined = m->in_round;
	gs->ops->answer(gs->ops->arg, w->node, w->request, 0, "", &gs->answer);
}

static void groups_push(struct groups *gs, struct group *g, const struct group_waiter *w,
			const struct group_request *r)
{
	struct group_member *m = roster_find(gs, g, r->member);
	const struct group_policy_row *row = &g->open.policy.row[g->cohort[m->cohort].open_row];
	struct text t;
	int32_t wrong;

	if (m->push_request == w->request && r->clock <= m->clock) { /* the answer was lost */
		groups_pushed(gs, g, w, m);
		return;
	}
	wrong = groups_push_wrong(g, m, r, &t);

	if (wrong == 0 && row->refuse && r->clock <= g->top) {
		groups_number_text(&t, "late: the round of clock ", r->clock,
				   " has closed, and the policy refuses it: pull, and go on");
		wrong = -ETIME;
		m->residual = true;
		m->refused++;
		g->refused++;
		g->moved = true;
	}
	if (wrong == 0) {
		if (rounds_contribute(gs, g, m, r->clock)) {
			m->push_request = w->request;
			if (g->policy.alone)
				g->policy.alone->pushed(gs, g, m);
		} else {
			wrong = -EAGAIN;
			text_add(&t, "too many contributions wait: try again later");
		}
	}
	if (wrong)
		groups_refuse(gs, w, wrong, t.bytes);
	else
		groups_pushed(gs, g, w, m);
	rounds_turn(gs, g);
}

/* The pull of that request has timed out at its node: the member does not wait in it any more. */
static void groups_withdraw(struct groups *gs, struct group *g, struct group_member *m,
			    uint64_t request)
{
	uint64_t waited = gs->now_ns - m->since_ns;

	switching_withdrawn(gs, g, m, request);
	if (m->request == 0 || m->request != request)
		return;
	list_remove(&m->waits);
	m->request = 0;
	m->resumed = false;
	m->answered_ns = gs->now_ns;
	m->waiting_ns += waited;
	g->waiting_ns += waited;
}

static void groups_pull(struct groups *gs, struct group *g, const struct group_waiter *w,
			const struct group_request *r)
{
	struct group_member *m = roster_find(gs, g, r->member);

	if (r->seen > m->seen) {
		m->seen = r->seen;
		m->seen_attempt = r->seen_attempt;
	}
	if (r->flags & GROUP_NOW) {
		groups_answer(gs, w, g, m);
		return;
	}
	if (r->flags & GROUP_WITHDRAWN) {
		groups_withdraw(gs, g, m, r->job);
		groups_answer(gs, w, g, m);
		rounds_turn(gs, g);
		return;
	}
	m->node = w->node;
	if (switching_pull(gs, g, m, w, r))
		return;
	if (m->request == 0) {
		if (!m->resumed)
			m->since_ns = gs->now_ns;
		list_append(&g->waits, &m->waits);
		if (g->policy.alone)
			g->policy.alone->waits(gs, g);
	}
	m->request = w->request; /* an earlier one has nobody who waits for it */
	g->moved = true;
	rounds_turn(gs, g);
}

static void groups_page(struct groups *gs, const struct group *g, uint32_t cursor)
{
	struct group_answer *a = &gs->answer;
	uint32_t i = 0;

	list_each(l, after, &g->members)
	{
		const struct group_member *m = list_item(l, struct group_member, of_group);
		struct group_member_info *o;

		if (i++ < cursor)
			continue;
		if (a->page == GROUP_PAGE) {
			a->cursor = cursor + GROUP_PAGE;
			return;
		}
		o = &a->member[a->page++];
		*o = (struct group_member_info){
			.member = m->number,
			.clock = m->clock,
			.round = m->seen,
			.waiting_ns = m->waiting_ns + (m->request ? gs->now_ns - m->since_ns : 0),
			.counted = m->counted,
			.late = m->late,
			.refused = m->refused,
			.node = m->node,
			.waits = m->request != 0};
		memcpy(o->cohort, g->cohort[m->cohort].name, sizeof(o->cohort));
	}
}

static void groups_info(struct groups *gs, struct group *g, const struct group_waiter *w,
			const struct group_request *r)
{
	groups_fill(gs, g, NULL);
	if (r->step == GROUP_INFO) {
		group_policy_show(&g->policy, gs->answer.table, sizeof(gs->answer.table));
		groups_page(gs, g, r->cursor);
	}
	gs->ops->answer(gs->ops->arg, w->node, w->request, 0, "", &gs->answer);
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static void groups_explain(struct groups *gs, const struct group_waiter *w,
			   const struct group_request *r)
{
	struct group_policy_error error;
	struct group_policy p;

	if (group_policy_parse(r->policy, &p, &error) != 0) {
		groups_refuse(gs, w, -EINVAL, error.text);
		return;
	}
	memset(&gs->answer, 0, sizeof(gs->answer));
	group_policy_show(&p, gs->answer.table, sizeof(gs->answer.table));
	gs->ops->answer(gs->ops->arg, w->node, w->request, 0, "", &gs->answer);
}

static void groups_of_member(struct groups *gs, struct group *g, const struct group_waiter *w,
			     const struct group_request *r)
{
	struct group_member *m = roster_find(gs, g, r->member);

	if ((!m || m->provisional) && r->step != GROUP_LEAVE) {
		groups_refuse(gs, w, -ESTALE, "no such member: it has left, or was taken for dead");
		return;
	}
	if (r->step == GROUP_PUSH) {
		groups_push(gs, g, w, r);
	} else if (r->step == GROUP_PULL) {
		groups_pull(gs, g, w, r);
	} else {
		if (m)
			roster_drop(gs, g, m, r->flags & GROUP_LOST);
		groups_refuse(gs, w, 0, "");
		rounds_turn(gs, g);
	}
}

static void groups_live(struct groups *gs, struct group *g, const struct group_waiter *w,
			const struct group_request *r)
{
	switch (r->step) {
	case GROUP_CREATE:
		groups_refuse(gs, w, -EEXIST, "the group exists already: open it, or remove it");
		break;
	case GROUP_JOIN:
		groups_join(gs, g, w, r);
		break;
	case GROUP_POLICY:
		groups_policy(gs, g, w, r);
		break;
	case GROUP_OPEN:
	case GROUP_INFO:
		groups_info(gs, g, w, r);
		break;
	default:
		groups_of_member(gs, g, w, r);
		break;
	}
}

bool groups_request(struct groups *gs, uint32_t node, uint64_t request,
		    const struct group_request *r)
{
	const struct group_waiter w = {node, request};
	struct group *g;
	struct object_id id;
	struct text t;

	if (r->step == GROUP_EXPLAIN) {
		groups_explain(gs, &w, r);
		return true;
	}
	g = groups_find(gs, r->name);
	if (g && g->phase == GROUP_PHASE_CREATE && r->step == GROUP_CREATE &&
	    g->creator.request == request && g->creator.node == node)
		return true; /* repeated */
	if (g && g->phase == GROUP_PHASE_OTHER) {
		groups_free(gs, g);
		groups_refuse(gs, &w, r->step == GROUP_CREATE ? -EEXIST : -EINVAL,
			      "the object of that name is no group: delete it, or choose another "
			      "name");
		return true;
	}
	if (!g) {
		group_name(&t, r->name, NULL, 0, 0);
		id = group_id(t.bytes);
		if (!gs->ops->exists(gs->ops->arg, &id)) {
			if (r->step == GROUP_CREATE)
				groups_create(gs, &w, r);
			else if (r->step == GROUP_LEAVE || r->step == GROUP_REMOVE)
				groups_refuse(gs, &w, r->step == GROUP_LEAVE ? 0 : -ENOENT,
					      "no such group");
			else
				groups_refuse(gs, &w, -ENOENT, "no such group: create it");
			return true;
		}
		g = groups_make(gs, r->name);
		if (g)
			load_begin(gs, g);
		else
			groups_refuse(gs, &w, -ENOSPC, groups_full);
		return !g;
	}
	g->used_ns = gs->now_ns;
	if (r->step == GROUP_REMOVE &&
	    (g->phase == GROUP_PHASE_LIVE || g->phase == GROUP_PHASE_REMOVE)) {
		groups_remove(gs, g, &w);
		return true;
	}
	if (g->phase != GROUP_PHASE_LIVE)
		return false;
	groups_live(gs, g, &w, r);
	return true;
}
