/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"
#include "internal/reduce.h"

uint32_t world_random(struct world *w, uint32_t below)
{
	w->seed ^= w->seed << 13; /* xorshift, Marsaglia 2003 */
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (uint32_t)(w->seed >> 20) % below;
}

struct world_event *world_add(struct world *w, uint32_t what, uint64_t after_ns)
{
	struct world_event *e;

	assert_true(w->events < WORLD_EVENTS);
	e = &w->event[w->events++];
	memset(e, 0, sizeof(*e));
	e->what = what;
	e->at_ns = w->now_ns + after_ns;
	e->owner = w->owner;
	return e;
}

static uint64_t world_delay(struct world *w)
{
	return world_random(w, 10) == 0 ? world_random(w, 50) * WORLD_MS
					: world_random(w, 2000) * 1000;
}

/* ---- names ------------------------------------------------------------------------------------
 */

struct world_name *world_find(struct world *w, const char *name)
{
	for (uint32_t i = w->names; i-- > 0;) /* mostly a late one */
		if (strcmp(w->name[i].name, name) == 0)
			return &w->name[i];
	return NULL;
}

static struct world_name *world_place(struct world *w, const char *name)
{
	struct world_name *n = world_find(w, name);

	for (uint32_t i = 0; !n && i < w->names; i++)
		if (!w->name[i].there)
			n = &w->name[i];
	if (!n) {
		assert_true(w->names < WORLD_NAMES);
		n = &w->name[w->names++];
	}
	memset(n, 0, offsetof(struct world_name, bytes));
	n->sure = true;
	strcpy(n->name, name);
	n->id = group_id(name);
	n->there = true;
	return n;
}

void world_give(struct world *w, const char *name)
{
	world_place(w, name);
}

/* Its copies: those that the directory knows, or those that can be read now. A node that is silent
 * has what it had until it is taken for dead. */
static uint32_t world_copies(const struct world *w, const struct world_name *n, bool read)
{
	uint32_t count = 0;

	if (!n || !n->there)
		return 0;
	for (uint32_t i = 0; i < WORLD_NODES; i++)
		count += n->copies >> i & !(read ? !world_works(w, i) : w->node[i].known);
	return n->sure ? 2 : count;
}

bool world_there(struct world *w, const char *name)
{
	return world_copies(w, world_find(w, name), true) > 0;
}

bool world_works(const struct world *w, uint32_t node)
{
	return !w->node[node].dead && !w->node[node].cut;
}

/* A large object, on one node. */
static struct world_name *world_place_at(struct world *w, const char *name, uint32_t node)
{
	struct world_name *n = world_place(w, name);

	n->sure = false;
	n->copies = 1u << node;
	return n;
}

/* The result of a reduce, on some node. */
static void world_make_result(struct world *w, const char *name)
{
	uint32_t node;

	do
		node = world_random(w, WORLD_NODES);
	while (!world_works(w, node));
	world_place_at(w, name, node);
	world_judge_made(w, name);
}

static void world_remove(void *arg, const char *name)
{
	struct world *w = arg;
	struct world_name *n = world_find(w, name);

	if (n)
		n->there = false;
	if (strcmp(w->left, name) == 0)
		*w->left = '\0';
}

static bool world_exists(void *arg, const struct object_id *id)
{
	struct world *w = arg;

	for (uint32_t i = 0; i < w->names; i++) {
		if (w->name[i].there && object_id_equal(&w->name[i].id, id))
			return true;
	}
	return false;
}

static bool world_alive(void *arg, uint32_t node)
{
	struct world *w = arg;

	return !w->node[node].known;
}

static void world_log(void *arg, const char *text)
{
	struct world *w = arg;

	assert_non_null(strstr(text, "lost"));
	w->gone++;
}

static uint64_t world_secret(void *arg)
{
	return world_random(arg, UINT32_MAX);
}

/* ---- tasks ------------------------------------------------------------------------------------
 */

static void world_begin(struct world *w, struct group *g, uint32_t task, const char *name)
{
	assert_int_equal(w->task, 0);
	w->task = task;
	w->group = g;
	strcpy(w->target, name);
}

static bool world_put(void *arg, struct group *g, const char *name, const char *bytes,
		      uint32_t length)
{
	struct world *w = arg;
	struct world_event *e;
	int32_t status = world_there(w, name) ? -EEXIST : 0;

	if (world_random(w, 30) == 0)
		return false;
	world_begin(w, g, 1, name);
	if (status == 0 && world_random(w, 30) == 0)
		status = -ETIMEDOUT;
	if (status == 0 || (status == -ETIMEDOUT && world_random(w, 2))) {
		struct world_name *n = world_place(w, name); /* at -ETIMEDOUT it may be there */

		assert_true(length <= sizeof(n->bytes));
		memcpy(n->bytes, bytes, length);
		n->length = length;
	}
	e = world_add(w, WORLD_TASK, world_delay(w));
	e->status = status;
	return true;
}

static bool world_read(void *arg, struct group *g, const char *name)
{
	struct world *w = arg;

	struct world_name *n = world_find(w, name);
	int32_t status = n && n->there ? 0 : -ENOENT;

	world_begin(w, g, 2, name);
	if (status == 0 && n->ghost) {
		status = -ENODATA;
		if (!n->lasting) /* the directory hears it some time */
			n->there = world_random(w, 3) > 0;
	}
	world_add(w, WORLD_TASK, world_delay(w))->status = status;
	return true;
}

static bool world_list(void *arg, struct group *g, const char *prefix)
{
	struct world *w = arg;

	world_begin(w, g, 3, prefix);
	world_add(w, WORLD_TASK, world_delay(w))->status = 0;
	return true;
}

/* The name with that id, of all that ever were. */
static const char *world_named(struct world *w, const struct object_id *id)
{
	for (uint32_t i = w->names; i-- > 0;)
		if (object_id_equal(&w->name[i].id, id))
			return w->name[i].name;
	return "";
}

static bool world_reduce(void *arg, struct group *g, const char *target,
			 const struct object_id *sources, uint32_t count, bool resume)
{
	struct world *w = arg;
	struct world_event *e;
	bool all = true;

	if (world_random(w, 30) == 0)
		return false;
	world_begin(w, g, 4, target);
	w->source_count = count;
	for (uint32_t i = 0; i < count; i++) {
		strcpy(w->sources[i], world_named(w, &sources[i]));
		all &= *w->sources[i] && world_there(w, w->sources[i]);
	}
	if (world_there(w, target)) {
		assert_true(resume);
		all = true; /* it has ended before */
	}
	e = world_add(w, WORLD_TASK, all ? world_delay(w) : 3000 * WORLD_MS);
	e->status = all ? 0 : -ETIMEDOUT;
	return true;
}

static void world_cancel(void *arg, struct group *g, const char *target)
{
	struct world *w = arg;

	assert_int_equal(w->task, 4);
	for (uint32_t i = 0; i < w->events; i++)
		if (w->event[i].what == WORLD_TASK && w->event[i].owner == w->owner)
			w->event[i].status = -ECANCELED;
	world_remove(w, target);
}

/* The reduce that runs goes on without anybody who waits for it. */
static void world_leave_running(struct world *w)
{
	if (w->task != 4 || *w->left || world_random(w, 2))
		return;
	strcpy(w->left, w->target);
	memcpy(w->left_sources, w->sources, sizeof(w->sources));
	w->left_count = w->source_count;
	world_add(w, WORLD_LEFT, world_delay(w));
}

static void world_abandon(void *arg, struct group *g)
{
	struct world *w = arg;

	world_leave_running(w);
	for (uint32_t i = 0; i < w->events; i++)
		if (w->event[i].what == WORLD_TASK || w->event[i].what == WORLD_LOOK)
			w->event[i].owner = UINT32_MAX;
	w->task = 0;
}

static bool world_look(void *arg, struct group *g, const char *name)
{
	struct world *w = arg;
	struct world_event *e;

	if (world_random(w, 30) == 0)
		return false;
	for (uint32_t i = 0; i < w->events; i++) /* one at a time */
		assert_true(w->event[i].what != WORLD_LOOK || w->event[i].owner != w->owner);
	e = world_add(w, WORLD_LOOK, world_delay(w));
	e->status = world_random(w, 30) ? 0 : -ETIMEDOUT;
	strcpy(e->text, name);
	w->group = g;
	return true;
}

static void world_looked(struct world *w, const struct world_event *e)
{
	if (e->owner == w->owner)
		groups_looked(w->groups, w->group, e->status,
			      e->status ? 0 : world_copies(w, world_find(w, e->text), false));
}

static bool world_all(struct world *w, char (*sources)[128], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!world_there(w, sources[i]))
			return false;
	return true;
}

static void world_left_ends(struct world *w)
{
	if (*w->left && !world_there(w, w->left) && world_all(w, w->left_sources, w->left_count))
		world_make_result(w, w->left);
	*w->left = '\0';
}

static void world_task(struct world *w, struct world_event *e)
{
	struct group *g = w->group;
	uint32_t task = w->task;
	struct world_name *n = world_find(w, w->target);

	if (e->owner != w->owner)
		return;
	w->task = 0;
	if (task == 1) {
		groups_put(w->groups, g, e->status, "no room");
	} else if (task == 2) {
		if (e->status == 0 && n && n->there)
			groups_read(w->groups, g, 0, n->bytes, n->length);
		else
			groups_read(w->groups, g, e->status ? e->status : -ENOENT, NULL, 0);
	} else if (task == 3) {
		for (uint32_t i = 0; i < w->names; i++)
			if (w->name[i].there &&
			    strncmp(w->name[i].name, w->target, strlen(w->target)) == 0)
				groups_listed(w->groups, g, w->name[i].name,
					      world_copies(w, &w->name[i], false) > 0);
		groups_list_ended(w->groups, g, 0);
	} else {
		if (e->status == 0 && !world_there(w, w->target) &&
		    !world_all(w, w->sources, w->source_count))
			e->status = -ETIMEDOUT; /* lost meanwhile */
		if (e->status == 0 && !world_there(w, w->target))
			world_make_result(w, w->target);
		groups_reduced(w->groups, g, e->status, "");
	}
}

/* ---- after each event -------------------------------------------------------------------------
 */

struct group *world_group(struct world *w)
{
	for (uint32_t i = 0; i < w->groups->pool.fresh; i++) {
		struct group *g = pool_at(&w->groups->pool, i);

		if (g->phase == GROUP_PHASE_LIVE)
			return g;
	}
	return NULL;
}

static void world_check(struct world *w)
{
	struct group *g = world_group(w);
	uint32_t live[GROUP_COHORTS_MAX] = {0}, present[GROUP_COHORTS_MAX] = {0}, waits = 0,
		 members = 0;

	if (!g)
		return;
	world_judge_gone(w, g);
	world_limit(w, g);
	w->open_version = g->open.version;
	w->opened = g->open.number;
	list_each(l, after, &g->members)
	{
		const struct group_member *m = list_item(l, struct group_member, of_group);

		live[m->cohort]++;
		members++;
		present[m->cohort] += m->in_round == g->open.number;
		waits += list_linked(&m->waits);
		if (g->cohort[m->cohort].tracked)
			assert_true(m->clock >= g->cohort[m->cohort].clocks.base);
		assert_true(m->decided <= m->clock || m->clock == 0);
		assert_int_equal(list_linked(&m->waits), m->request != 0);
	}
	assert_int_equal(members, g->live);
	for (uint32_t i = 0; i < g->cohorts; i++) {
		assert_int_equal(live[i], g->cohort[i].live);
		assert_int_equal(present[i], g->cohort[i].present);
		if (!g->cohort[i].tracked)
			continue;
		assert_true(clocks_valid(&g->cohort[i].clocks));
		assert_int_equal(g->cohort[i].clocks.members, live[i]);
	}
	list_each(l, after, &g->waits)
	{
		waits--;
	}
	assert_int_equal(waits, 0);
	assert_true(g->published < g->open.number);
}

/* ---- clients ----------------------------------------------------------------------------------
 */

static void world_send(struct world *w, uint32_t i, const struct group_request *r)
{
	struct world_client *c = &w->client[i];

	c->repeat_ns = w->now_ns + 100 * WORLD_MS;
	assert_null(group_request_wrong(r));
	for (uint32_t k = 0; k < 1 + (world_random(w, 100) < w->doubles); k++) {
		struct world_event *e;

		if (world_random(w, 100) < w->loss || !world_works(w, c->node))
			continue;
		e = world_add(w, WORLD_REQUEST, world_delay(w));
		e->who = i;
		e->node = c->node;
		e->request = c->request;
		e->ask = *r;
	}
}

static void world_ask_state(struct world *w, uint32_t i)
{
	struct world_client *c = &w->client[i];
	struct group_request r = c->join;

	if (c->rejoins) {
		r.flags = GROUP_REJOIN;
	} else if (c->state == CLIENT_PUSHES) {
		r.step = GROUP_PUSH;
		r.clock = c->clock;
		r.count = 10;
		r.dtype = REDUCE_F32;
	} else if (c->state == CLIENT_PULLS) {
		r.step = GROUP_PULL;
		r.job = c->job.round;
		r.job_attempt = c->job.attempt;
		r.job_error = ENETUNREACH;
	}
	if (!c->rejoins && c->state != CLIENT_JOINS)
		r.flags = 0;
	if (r.step == GROUP_PULL)
		r.flags = c->report | (i == 5 ? 0 : GROUP_SWITCHABLE);
	world_send(w, i, &r);
}

void world_contribution(struct world *w, uint64_t member, uint64_t clock, uint32_t node)
{
	struct text name;

	group_contribution_name(&name, "g", clock, member);
	world_place_at(w, name.bytes, node);
}

void world_ghost(struct world *w, const char *name)
{
	struct world_name *n = world_place(w, name);

	n->ghost = n->lasting = true;
}

static void world_next(struct world *w, uint32_t i, uint32_t state)
{
	struct world_client *c = &w->client[i];

	c->state = state;
	c->rejoins = false;
	if (state == CLIENT_WORKS) {
		c->report = 0;
		c->job.round = 0;
		c->repeat_ns = w->now_ns + c->pace_ns / 2 + world_random(w, (uint32_t)c->pace_ns);
		return;
	}
	c->request = ++w->requests;
	if (state == CLIENT_PUSHES) {
		c->clock = c->join.clock + 1;
		world_contribution(w, c->join.member, c->clock, c->node);
	}
	world_ask_state(w, i);
}

static void world_learn(struct world_client *c, const struct group_answer *a)
{
	struct group_request *j = &c->join;
	uint64_t by = a->clock > j->clock ? a->clock - j->clock : 0;

	j->pending = by < GROUP_PENDING_MAX ? j->pending << by : 0;
	j->clock += by;
	for (uint32_t i = 0; i < GROUP_PENDING_MAX; i++)
		if (j->clock < i || j->clock - i <= a->done)
			j->pending &= ~(UINT64_C(1) << i);
}

void world_start_client(struct world *w, uint32_t i)
{
	struct world_client *c = &w->client[i];

	if (!world_works(w, c->node))
		world_node_back(w, c->node);
	world_judge_died(w, i);
	c->own = (struct group_kept){0};
	c->told = 0;
	memset(c->acked, 0, sizeof(c->acked));
	c->join = (struct group_request){.step = GROUP_JOIN, .name = "g"};
	c->join.member = (uint64_t)world_random(w, 1u << 30) << 20 | i << 8 | (c->deaths + 1);
	strcpy(c->join.cohort, i % 2 ? "slow" : "fast");
	world_next(w, i, CLIENT_JOINS);
}

/* The push was taken, now or when an earlier answer was lost. */
static void world_took(struct world *w, uint32_t i)
{
	struct world_client *c = &w->client[i];

	if (c->clock > c->join.clock) {
		c->join.pending <<= c->clock - c->join.clock;
		c->join.clock = c->clock;
	}
	c->join.pending |= UINT64_C(1) << (c->join.clock - c->clock) % GROUP_PENDING_MAX;
	c->pushed++;
	world_next(w, i, CLIENT_PULLS);
}

static void world_answer_join(struct world *w, uint32_t i, const struct world_event *e)
{
	struct world_client *c = &w->client[i];
	uint32_t state = c->state;

	if (e->status) { /* taken for dead: joins as a new member */
		assert_true(e->status == -ESTALE || e->status == -ENOENT);
		w->turned_away += c->rejoins;
		c->deaths++;
		world_start_client(w, i);
		return;
	}
	if (c->rejoins) {
		world_learn(c, &e->answer);
		c->rejoins = false;
		c->request = ++w->requests;
		world_ask_state(w, i);
		return;
	}
	c->join.clock = e->answer.clock;
	c->join.joined = e->answer.joined;
	assert_int_equal(state, CLIENT_JOINS);
	world_next(w, i, CLIENT_WORKS);
}

/* Its part of a round at a switch. A large one takes longer than the owner waits. */
static void world_adds(struct world *w, uint32_t i, const struct group_job *job)
{
	struct world_client *c = &w->client[i];
	struct text name;

	group_contribution_name(&name, "g", job->clock, c->join.member);
	assert_true(job->member < job->members);
	c->state = CLIENT_ADDS;
	c->job = *job;
	/* the hosts may have made the round meanwhile */
	c->report = world_random(w, 4) && world_there(w, name.bytes) ? GROUP_SWITCHED
								     : GROUP_UNSWITCHED;
	c->repeat_ns = w->now_ns + world_random(w, 30) * WORLD_MS;
}

/* Member 0 puts the result before it says that it is there. */
static void world_added(struct world *w, uint32_t i)
{
	struct world_client *c = &w->client[i];
	struct text name;

	group_name(&name, "g", "r", c->job.round, c->job.attempt | GROUP_BY_SWITCH);
	if (c->job.member == 0 && (c->report == GROUP_SWITCHED || world_random(w, 2)) &&
	    !world_there(w, name.bytes)) {
		world_place_at(w, name.bytes, c->node);
		world_judge_made(w, name.bytes);
	}
	if (c->report == GROUP_SWITCHED)
		c->own = (struct group_kept){c->job.round, c->job.attempt | GROUP_BY_SWITCH};
	world_next(w, i, CLIENT_PULLS);
}

/* The pull has named a result: it has it itself, or gets it, or pulls again. */
static void world_gets(struct world *w, uint32_t i)
{
	struct world_client *c = &w->client[i];
	bool own = c->own.number == c->get.number && c->own.attempt == c->get.attempt;
	struct world_name *n;
	struct text name;

	group_name(&name, "g", "r", c->get.number, c->get.attempt);
	n = world_find(w, name.bytes);
	if (own || (n && n->copies >> c->node & 1) ||
	    (world_copies(w, n, true) > 0 && world_works(w, c->node))) {
		if (n && n->there && !n->sure && !own)
			n->copies |= 1u << c->node;
		world_judge_got(w, i, &c->get);
		world_next(w, i, CLIENT_WORKS);
	} else if (c->tries++ < 20) {
		c->repeat_ns = w->now_ns + 50 * WORLD_MS;
	} else {
		world_next(w, i, CLIENT_PULLS);
	}
}

static void world_answered(struct world *w, const struct world_event *e)
{
	struct world_client *c = &w->client[e->who];

	if (c->state == CLIENT_DEAD || e->request != c->request)
		return;
	if (c->rejoins || c->state == CLIENT_JOINS) {
		world_answer_join(w, e->who, e);
		return;
	}
	if (e->status == -ESTALE) {
		c->rejoins = true;
		c->request = ++w->requests;
		world_ask_state(w, e->who);
	} else if (c->state == CLIENT_PUSHES) {
		if (e->status == 0) {
			world_learn(c, &e->answer);
			c->acked[c->clock % WORLD_CLOCKS] = c->clock;
		}
		c->refused += e->status == -ETIME;
		if (e->status == 0 || e->status == -EEXIST)
			world_took(w, e->who);
		else if (e->status == -ETIME || e->status == -EAGAIN)
			world_next(w, e->who, CLIENT_PULLS);
		else
			fail_msg("push: %d", e->status);
	} else {
		assert_true(e->status == 0 || e->status == -ENODATA);
		if (e->status == 0 && e->answer.job.round) {
			world_adds(w, e->who, &e->answer.job);
			return;
		}
		if (e->status == 0) {
			w->switched += e->answer.attempt >= GROUP_BY_SWITCH;
			world_learn(c, &e->answer);
			c->join.seen = e->answer.round;
			c->join.seen_attempt = e->answer.attempt;
			c->get = (struct group_kept){e->answer.round, e->answer.attempt};
		}
		c->told += e->status != 0;
		c->tries = 0;
		c->state = e->status == 0 && c->get.number ? CLIENT_GETS : c->state;
		c->repeat_ns = w->now_ns + world_random(w, 3) * WORLD_MS;
		if (c->state != CLIENT_GETS)
			world_next(w, e->who, CLIENT_WORKS);
	}
}

static void world_answer(void *arg, uint32_t node, uint64_t request, int32_t status,
			 const char *text, const struct group_answer *answer)
{
	struct world *w = arg;
	struct world_event *e;

	assert_non_null(memchr(text, 0, 256));
	if (request == WORLD_UNHEARD || world_random(w, 100) < w->loss)
		return;
	e = world_add(w, WORLD_ANSWER, world_delay(w));
	e->request = request;
	e->status = status;
	e->who = WORLD_MEMBERS;
	for (uint32_t i = 0; i < w->clients; i++)
		if (w->client[i].request == request)
			e->who = i;
	strncpy(e->text, text, sizeof(e->text) - 1);
	if (answer)
		e->answer = *answer;
}

/* Its pull has timed out at its node. It pulls again, and may have forgotten its job. */
static void world_pulls_again(struct world *w, uint32_t i)
{
	struct world_client *c = &w->client[i];
	struct group_request r = c->join;
	uint64_t request = c->request;

	r.step = GROUP_PULL;
	r.flags = GROUP_WITHDRAWN;
	r.job = request;
	c->request = WORLD_UNHEARD;
	world_send(w, i, &r);
	if (world_random(w, 2))
		c->report = 0;
	c->request = ++w->requests;
	world_ask_state(w, i);
}

/* ---- events -----------------------------------------------------------------------------------
 */

static void world_deliver(struct world *w, struct world_event *e)
{
	struct group *g = world_group(w);
	struct group before = g ? *g : (struct group){0};

	w->groups->now_ns = w->now_ns;
	if (e->what == WORLD_REQUEST && (w->absent || !world_works(w, e->node)))
		return;
	if (e->what == WORLD_ANSWER && e->who != WORLD_MEMBERS &&
	    !world_works(w, w->client[e->who].node))
		return;
	if (e->what == WORLD_REQUEST)
		groups_request(w->groups, e->node, e->request, &e->ask);
	else if (e->what == WORLD_ANSWER && e->who == WORLD_MEMBERS)
		w->heard = *e;
	else if (e->what == WORLD_ANSWER)
		world_answered(w, e);
	else if (e->what == WORLD_TASK)
		world_task(w, e);
	else if (e->what == WORLD_LOOK)
		world_looked(w, e);
	else if (e->what == WORLD_LEFT)
		world_left_ends(w);
	else if (e->what == WORLD_DEAD)
		world_taken_for_dead(w, e->node);
	if (g && g == world_group(w))
		world_judge_published(w, &before, g);
	world_check(w);
}

static void world_clients(struct world *w)
{
	for (uint32_t i = 0; i < w->clients; i++) {
		struct world_client *c = &w->client[i];

		if (c->state == CLIENT_DEAD || w->now_ns < c->repeat_ns)
			continue;
		if (c->state == CLIENT_WORKS)
			world_next(w, i, CLIENT_PUSHES);
		else if (c->state == CLIENT_ADDS)
			world_added(w, i);
		else if (c->state == CLIENT_GETS)
			world_gets(w, i);
		else if (c->state == CLIENT_PULLS && !c->rejoins && w->pulls_end &&
			 world_random(w, 8) == 0)
			world_pulls_again(w, i);
		else
			world_ask_state(w, i);
	}
}

void world_run(struct world *w, uint64_t ns)
{
	uint64_t until = w->now_ns + ns;

	while (w->now_ns < until) {
		uint64_t next = w->absent ? UINT64_MAX : groups_next(w->groups);
		uint32_t first = UINT32_MAX;
		struct world_event e;

		next = next < until ? next : until;
		for (uint32_t i = 0; i < w->clients; i++)
			if (w->client[i].state != CLIENT_DEAD && w->client[i].repeat_ns < next)
				next = w->client[i].repeat_ns;
		for (uint32_t i = 0; i < w->events; i++)
			if (w->event[i].at_ns <= next) {
				next = w->event[i].at_ns;
				first = i;
			}
		w->now_ns = next > w->now_ns ? next : w->now_ns;
		if (first != UINT32_MAX) {
			e = w->event[first];
			w->event[first] = w->event[--w->events];
			world_deliver(w, &e);
		} else {
			w->groups->now_ns = w->now_ns;
			if (groups_next(w->groups) <= w->now_ns && !w->absent)
				groups_tick(w->groups);
			world_check(w);
			world_clients(w);
		}
	}
}

static void world_make(struct world *w)
{
	const struct groups_limits limits = {4, 64, 256};
	struct arena a = {.memory = NULL};
	struct groups scratch;

	groups_carve(&scratch, &a, &limits);
	w->memory = aligned_alloc(64, (a.bytes + 63) / 64 * 64);
	memset(w->memory, 0, a.bytes);
	a = (struct arena){.memory = w->memory};
	w->groups = calloc(1, sizeof(*w->groups));
	groups_carve(w->groups, &a, &limits);
	groups_init(w->groups, &w->ops, w->home);
	w->groups->now_ns = w->now_ns;
}

static void world_unmake(struct world *w)
{
	free(w->groups);
	free(w->memory);
}

void world_kill_owner(struct world *w)
{
	struct world_name *n = w->task == 1 ? world_find(w, w->target) : NULL;

	if (n && n->there && world_random(w, 2))
		n->ghost = true;
	world_leave_running(w);
	w->owner++;
	w->task = 0;
	world_unmake(w);
	world_make(w);
}

/* Its node says that it has left after all that it has sent for the member. */
void world_forget(struct world *w, uint32_t i)
{
	for (uint32_t k = 0; k < w->events; k++)
		if (w->event[k].what == WORLD_REQUEST && w->event[k].who == i)
			w->event[k].what = WORLD_STEP;
}

void world_kill_client(struct world *w, uint32_t i, bool node)
{
	struct world_client *c = &w->client[i];
	struct group_request r = c->join;
	char text[128];

	if (c->state == CLIENT_DEAD)
		return;
	c->state = CLIENT_DEAD;
	c->deaths++;
	c->request = 0;
	world_judge_died(w, i);
	world_forget(w, i);
	if (!node) {
		r.step = GROUP_LEAVE;
		r.flags = GROUP_LOST;
		world_ask(w, &r, NULL, text);
		return;
	}
	world_kill_node(w, c->node);
}

int32_t world_ask(struct world *w, const struct group_request *r, struct group_answer *out,
		  char text[128])
{
	uint64_t request = ++w->requests;
	uint32_t loss = w->loss;

	*text = '\0';
	w->loss = 0;
	for (uint32_t tries = 0; tries < 60000; tries++) {
		w->groups->now_ns = w->now_ns;
		if (tries % 500 == 0 && !w->absent)
			groups_request(w->groups, 0, request, r);
		world_run(w, WORLD_MS);
		if (w->heard.request != request)
			continue;
		w->loss = loss;
		if (out)
			*out = w->heard.answer;
		strcpy(text, w->heard.text);
		return w->heard.status;
	}
	world_show(w);
	fail_msg("no answer to step %u", r->step);
	return 0;
}

void world_policy(struct world *w, const char *policy)
{
	struct group_request r = {.step = GROUP_POLICY, .name = "g"};
	char text[128];
	int32_t status;

	strcpy(r.policy, policy);
	for (int i = 0; i < 20; i++) {
		status = world_ask(w, &r, NULL, text);
		if (status == 0)
			return;
		assert_true(status == -EAGAIN || status == -ETIMEDOUT || status == -EINVAL ||
			    status == -ENOENT || status == -ECANCELED);
		world_run(w, 50 * WORLD_MS);
	}
}

void world_show(const struct world *w)
{
	for (uint32_t i = 0; i < w->groups->pool.fresh; i++) {
		struct group *g = pool_at(&w->groups->pool, i);

		print_message("phase %u task %u open %llu (%u in it) published %llu result %llu "
			      "top %llu pushed %llu live %u started %d policy '%s' version %llu of "
			      "round %llu retry %d task here %u '%s'\n",
			      g->phase, g->task, (unsigned long long)g->open.number, g->open.count,
			      (unsigned long long)g->published, (unsigned long long)g->result,
			      (unsigned long long)g->top, (unsigned long long)g->pushed, g->live,
			      g->started, g->policy_text, (unsigned long long)g->version,
			      (unsigned long long)g->open.version, g->retry_ns != UINT64_MAX,
			      w->task, w->target);
		for (uint32_t k = 0; k < g->cohorts; k++)
			print_message(
				"  cohort '%s' row %u open row %u live %u present %u low %llu "
				"tracked %d base %llu ahead %u\n",
				g->cohort[k].name, g->cohort[k].row, g->cohort[k].open_row,
				g->cohort[k].live, g->cohort[k].present,
				(unsigned long long)g->cohort[k].low, g->cohort[k].tracked,
				(unsigned long long)g->cohort[k].clocks.base,
				g->cohort[k].clocks.ahead);
		list_each(l, after, &g->members)
		{
			const struct group_member *m = list_item(l, struct group_member, of_group);

			print_message("  member %llx cohort %u clock %llu need %llu in %llu seen "
				      "%llu waits %d provisional %d\n",
				      (unsigned long long)m->number, m->cohort,
				      (unsigned long long)m->clock, (unsigned long long)m->need,
				      (unsigned long long)m->in_round, (unsigned long long)m->seen,
				      m->request != 0, m->provisional);
		}
	}
	for (uint32_t i = 0; i < w->clients; i++)
		print_message("  client %u member %llx state %u clock %llu pushed %llu\n", i,
			      (unsigned long long)w->client[i].join.member, w->client[i].state,
			      (unsigned long long)w->client[i].join.clock,
			      (unsigned long long)w->client[i].pushed);
}

uint64_t world_pushed(const struct world *w)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < w->clients; i++)
		if (w->client[i].state != CLIENT_DEAD && w->client[i].pushed < least)
			least = w->client[i].pushed;
	return least;
}

struct world *world_new(uint64_t seed, uint32_t clients, const char *policy, uint32_t flags)
{
	struct world *w = calloc(1, sizeof(*w));
	struct group_request r = {.step = GROUP_CREATE,
				  .name = "g",
				  .op = REDUCE_SUM,
				  .dtype = REDUCE_F32,
				  .count = 10,
				  .flags = flags & GROUP_TOTAL,
				  .members = clients,
				  .switches = flags & WORLD_SWITCHES ? 2 : 0,
				  .switch_ip = {1, 2}};
	char text[128];

	w->name = calloc(WORLD_NAMES, sizeof(*w->name));
	w->counted = calloc(WORLD_COUNTED, sizeof(*w->counted));
	w->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	w->now_ns = 1000 * WORLD_MS;
	w->ops = (struct groups_ops){
		w,	     world_answer, world_put,	 world_read,	world_list,   world_reduce,
		world_look,  world_log,	   world_cancel, world_abandon, world_remove, world_exists,
		world_alive, world_secret};
	w->rounds_only = !(flags & GROUP_TOTAL);
	world_make(w);
	strcpy(r.policy, policy);
	for (int32_t status; (status = world_ask(w, &r, NULL, text)) != 0 && !world_group(w);) {
		assert_true(status != -EINVAL);
		world_run(w, 10 * WORLD_MS);
	}
	w->clients = clients;
	for (uint32_t i = 0; i < clients; i++) {
		w->client[i].node = 1 + i % (WORLD_NODES - 1);
		w->client[i].pace_ns = (1 + world_random(w, 20)) * WORLD_MS;
		world_start_client(w, i);
	}
	return w;
}

void world_free(struct world *w)
{
	world_unmake(w);
	free(w->name);
	free(w->counted);
	free(w);
}
