/* SPDX-License-Identifier: BSD-3-Clause */
/* What the applications do, and what must be true in the end. */
#include "reducers.h"

#include <stdio.h>

static uint64_t now(const struct reducers *c)
{
	return world_now(c->g->w);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void job_plan(struct reducers *c, struct reducer_job *j, uint64_t after_ns,
		     uint64_t within_ns, enum reducer_work work, uint32_t what, uint32_t node)
{
	if (j->events == REDUCERS_EVENTS)
		return;
	j->event[j->events++] =
		(struct reducer_event){now(c) + after_ns + prng_below(c->draw, within_ns + 1),
				       (uint8_t)work, (uint8_t)what, node};
}

static uint32_t job_size(const struct reducers *c)
{
	struct prng *p = c->draw;

	if (c->exchanged)
		return 4 * (uint32_t)prng_between(p, 15000, 30000);
	if (c->wide)
		return 4 * (uint32_t)prng_between(p, REDUCERS_WIDE_MIN / 4, REDUCERS_WIDE_MAX / 4);
	return 4 * (uint32_t)(prng_chance(p, 400000)
				      ? prng_below(p, 16384)
				      : 16384 + prng_below(p, 1u << prng_between(p, 10, 18)));
}

/* All of it on so many nodes before the sum is asked for, for all of them. */
static void job_exchanged(const struct reducers *c, struct reducer_job *j)
{
	uint32_t nodes = c->g->w->count;

	j->count = j->count < nodes ? j->count : nodes;
	j->num = j->num < j->count ? j->num : j->count;
	j->flags = SESSION_FLAG_ALLREDUCE;
}

/* It often comes while sources do; the time is never over before. */
static void job_deadline(const struct reducers *c, struct reducer_job *j)
{
	j->num = j->count;
	j->min = (uint32_t)prng_between(c->draw, 1, j->count);
	j->deadline_ns = (int64_t)prng_below(
		c->draw, prng_chance(c->draw, 300000) ? 3 * WORLD_S : 300 * WORLD_MS);
	if (j->timeout_ns >= 0)
		j->timeout_ns += j->deadline_ns;
}

static void job_begin(struct reducers *c)
{
	struct reducer_job *j = &c->job[c->jobs];
	struct prng *p = c->draw;
	uint32_t nodes = c->g->w->count, receivers = (uint32_t)prng_below(p, 6);
	uint64_t spread = prng_chance(p, 500000) ? 300 * WORLD_MS : 5 * WORLD_MS;
	*j = (struct reducer_job){.number = c->jobs++, .begun_ns = now(c), .active = true};
	j->count = (uint32_t)prng_between(p, 1, c->wide ? REDUCERS_WIDE_SOURCES : REDUCERS_SOURCES);
	j->num = prng_chance(p, 400000) ? (uint32_t)prng_between(p, 1, j->count) : j->count;
	j->size = job_size(c);
	j->caller = (uint32_t)prng_below(p, nodes);
	j->flags = prng_chance(p, 300000) ? SESSION_FLAG_ALLREDUCE : 0;
	j->timeout_ns = prng_chance(p, 600000) ? -1 : (int64_t)prng_between(p, 1, 8 * WORLD_S);
	j->end_ns = now(c) + 4 * WORLD_S;
	if (c->exchanged)
		job_exchanged(c, j);
	if (c->deadlines)
		job_deadline(c, j);
	for (uint32_t i = 0; i < j->count; i++) {
		j->source[i].node = c->exchanged ? i : (uint32_t)prng_below(p, nodes);
		if (!prng_chance(p, j->num < j->count || c->deadlines ? 200000 : 50000))
			job_plan(c, j, 0, spread, REDUCER_PUT, i, j->source[i].node);
		if (!prng_chance(p, 100000))
			continue;
		job_plan(c, j, spread / 2, spread, REDUCER_DELETE, i, j->source[i].node);
		job_plan(c, j, spread, 2 * spread, REDUCER_PUT, i, (uint32_t)prng_below(p, nodes));
	}
	job_plan(c, j, c->exchanged ? 2 * spread : 0, spread, REDUCER_REDUCE, REDUCERS_TARGET,
		 j->caller);
	if (prng_chance(p, 150000))
		job_plan(c, j, 0, 3 * WORLD_S, REDUCER_REDUCE, REDUCERS_TARGET,
			 (uint32_t)prng_below(p, nodes));
	if (prng_chance(p, 80000))
		job_plan(c, j, 0, 3 * spread, REDUCER_DELETE, REDUCERS_TARGET, j->caller);
	for (uint32_t i = 0; i < receivers; i++)
		job_plan(c, j, 0, prng_chance(p, 300000) ? 3 * WORLD_S : 2 * spread, REDUCER_GET,
			 REDUCERS_TARGET, (uint32_t)prng_below(p, nodes));
}

static bool job_busy(const struct reducers *c, const struct reducer_job *j)
{
	for (uint32_t i = 0; i < REDUCERS_TASKS; i++)
		if (c->task[i].job == j)
			return true;
	return j->events > 0;
}

static void job_delete(struct reducers *c, struct reducer_job *j)
{
	uint32_t node = (uint32_t)prng_below(c->draw, c->g->w->count);
	for (uint32_t i = 0; i < j->count; i++)
		if (j->source[i].versions)
			reducers_task(c, j, node, REDUCER_DELETE, i);
	reducers_task(c, j, node, REDUCER_DELETE, REDUCERS_TARGET);
}

static void job_step(struct reducers *c, struct reducer_job *j)
{
	for (uint32_t i = 0; i < j->events; i++) {
		struct reducer_event e = j->event[i];
		struct reducer_task *t;
		if (e.at_ns > now(c))
			continue;
		j->event[i--] = j->event[--j->events];
		if (c->quiet)
			continue;
		t = reducers_task(c, j, e.node, e.work, e.what);
		if (t && e.work == REDUCER_GET)
			t->partial = prng_chance(c->draw, 400000);
	}
	if (c->quiet || (job_busy(c, j) && now(c) < j->end_ns))
		return;
	if (now(c) >= j->end_ns || prng_chance(c->draw, 10000)) {
		j->active = false;
		job_delete(c, j);
	}
}

void reducers_store_lost(struct reducers *c, uint32_t node)
{
	(void)node;
	c->losses = true;
}

bool reducers_idle(const struct reducers *c)
{
	for (uint32_t i = 0; i < REDUCERS_TASKS; i++)
		if (c->task[i].job && c->task[i].work != REDUCER_ASK)
			return false;
	return true;
}

void reducers_jobs(struct reducers *c)
{
	uint32_t active = 0;
	for (uint32_t i = 0; i < c->jobs; i++) {
		if (!c->job[i].active)
			continue;
		active++;
		job_step(c, &c->job[i]);
	}
	if (!c->quiet && active < (c->wide ? 1 : REDUCERS_ACTIVE) && c->jobs < REDUCERS_JOBS &&
	    prng_chance(c->draw, 20000))
		job_begin(c);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void reducers_run(struct reducers *c, uint64_t for_ns)
{
	uint64_t end = now(c) + for_ns;
	while (now(c) < end && !c->g->w->violations) {
		bool any = false;
		reducers_step(c);
		world_run(c->g->w, WORLD_MS);
		for (uint32_t i = 0; i < REDUCERS_TASKS && !any; i++)
			any = c->task[i].job != NULL;
		if (!any)
			return;
	}
	for (uint32_t i = 0; i < REDUCERS_TASKS && !c->g->w->violations; i++) {
		const struct reducer_task *t = &c->task[i];
		if (t->job)
			world_violation(c->g->w,
					"work %u step %u of %u.%u on node %u still waits in a "
					"healthy cluster",
					t->work, t->step, t->job->number, t->what, t->node);
	}
}

void reducers_finish(struct reducers *c)
{
	for (uint32_t i = 0; i < c->jobs; i++) {
		struct reducer_job *j = &c->job[i];
		for (uint32_t k = 0; j->active && j->asked && k < j->count; k++) {
			struct reducer_task *t =
				reducers_task(c, j, j->source[k].node, REDUCER_PUT, k);
			if (t)
				t->final = true;
		}
	}
	for (uint32_t i = 0; i < c->jobs; i++) {
		struct reducer_job *j = &c->job[i];
		struct reducer_task *t = NULL;
		if (j->active && j->asked)
			t = reducers_task(c, j, (uint32_t)prng_below(c->draw, c->g->w->count),
					  REDUCER_ASK, REDUCERS_TARGET);
		if (t)
			t->final = true;
	}
	for (uint32_t i = 0; i < REDUCERS_TASKS; i++) {
		struct reducer_task *t = &c->task[i];
		/* its sources were deleted, and its target before it restarted */
		if (t->job && t->work == REDUCER_ASK && !t->job->active)
			reducers_task(c, t->job, t->node, REDUCER_DELETE, REDUCERS_TARGET);
	}
	reducers_run(c, REDUCERS_FINISH_NS + 2 * WORLD_S);
}

void reducers_read_all(struct reducers *c)
{
	for (uint32_t i = 0; i < c->jobs && !c->g->w->violations; i++) {
		struct reducer_job *j = &c->job[i];
		if (!j->active || !j->ended || j->status || j->deleted || c->losses)
			continue;
		for (uint32_t n = 0; n < c->g->w->count; n++) {
			struct reducer_task *t =
				reducers_task(c, j, n, REDUCER_GET, REDUCERS_TARGET);
			if (!t)
				continue;
			t->final = !j->flags; /* stripes may be lost before anybody has all */
			t->used = j->asked == 1 && !c->splits && !j->parted ? j->used : 0;
		}
		reducers_run(c, 30 * WORLD_S);
	}
}

static void reducers_delete(struct reducers *c, uint32_t asked_min)
{
	for (uint32_t i = 0; i < c->jobs && !c->g->w->violations; i++) {
		if (c->job[i].asked < asked_min)
			continue;
		job_delete(c, &c->job[i]);
		reducers_run(c, 10 * WORLD_S);
		c->job[i].active = false;
	}
}

void reducers_delete_all(struct reducers *c)
{
	reducers_delete(c, 0);
	/* Of two reduces into one target the second may begin when that has been deleted, where a
	 * coordinator that died had accepted it. */
	world_run(c->g->w, WORLD_S);
	reducers_delete(c, 2);
}

void reducers_leave(struct reducers *c)
{
	for (uint32_t i = 0; i < c->g->w->count; i++) {
		struct full *f = &c->g->full[i];
		if (c->open[i] && f->core && f->life == c->life[i])
			control_session_close(f->core, c->session[i], full_now(f));
		c->open[i] = false;
		full_wake(f, now(c));
	}
}

void reducers_print(const struct reducers *c)
{
	printf("%u jobs, %llu puts, %llu reduced, %llu gets (%.1f MB), %llu failures, %llu "
	       "restarts, ended by errno:",
	       c->jobs, (unsigned long long)c->puts, (unsigned long long)c->reduced,
	       (unsigned long long)c->gets, (double)c->bytes / 1e6, (unsigned long long)c->failures,
	       (unsigned long long)c->restarts);
	for (uint32_t i = 0; i < 128; i++)
		if (c->errors[i])
			printf(" %u:%llu", i, (unsigned long long)c->errors[i]);
	printf(", ");
}
