/* SPDX-License-Identifier: BSD-3-Clause */
#include "group_work.h"

#include <errno.h>
#include "link/interrupt.h"
#include "link/thread.h"

struct group_request group_of_pull(const sar_member *m, const struct group_report *report)
{
	struct group_request r = group_of_member(m, GROUP_PULL);
	r.flags = GROUP_SWITCHABLE | report->flags;
	r.job = report->round;
	r.job_attempt = report->attempt;
	r.job_error = report->error;
	return r;
}

static struct group_report group_work_report(const struct group_job *job, int result)
{
	return (struct group_report){.flags = result == 0 ? GROUP_SWITCHED : GROUP_UNSWITCHED,
				     .attempt = job->attempt,
				     .error = result == -EINTR ? 0 : (uint32_t)-result,
				     .round = job->round};
}

struct group_report group_take_part(sar_member *m, const struct group_job *job)
{
	struct group_part part = {.group = m->join.name,
				  .member = m->join.member,
				  .count = m->count,
				  .op = m->op,
				  .dtype = m->dtype};
	return group_work_report(job, group_switch_run(m->s, &m->at_switch, &part, job));
}

static bool group_work_stopped(void *arg)
{
	struct group_work *w = arg;
	return atomic_load(&w->stop) || atomic_load(&w->m->s->mux.ended);
}

static void *group_work_run(void *arg)
{
	struct group_work *w = arg;
	struct interrupt stops = {.asked = group_work_stopped, .arg = w};
	interrupt_set(&stops);
	w->report = group_take_part(w->m, &w->job);
	w->ended(w->arg);
	return NULL;
}

void group_work_begin(struct group_work *w)
{
	int r = thread_begin(&w->thread, group_work_run, w);
	w->begun = r == 0;
	if (r == 0)
		return;
	w->report = group_work_report(&w->job, r);
	w->ended(w->arg);
}

void group_work_join(struct group_work *w)
{
	if (w->begun)
		pthread_join(w->thread, NULL);
	w->begun = false;
}
