/* SPDX-License-Identifier: BSD-3-Clause */
#include "group_switch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "aggregate.h"
#include "accumulate.h"
#include "api/error.h"
#include "link/handle.h"
#include "link/interrupt.h"
#include "internal/reduce.h"

#define JOB_FIND_NS  1000000000	    /* for objects that are there */
#define JOB_STEP_NS  50000000u	    /* how often it looks whether something has come */
#define JOB_STALL_NS 500000000ull   /* then other members are taken for dead */
#define JOB_LIMIT_NS 10000000000ull /* of a job, and a second for each MB: as the owner has it */

static void group_job_result_name(const struct group_part *part, uint64_t round, uint32_t attempt,
				  char name[SAR_NAME_MAX + 1])
{
	int n = snprintf(name, SAR_NAME_MAX + 1, GROUP_PREFIX "%s/r/%" PRIu64, part->group, round);
	if (attempt)
		snprintf(name + n, SAR_NAME_MAX + 1 - (size_t)n, ".%" PRIu32, attempt);
}

/* Gives up what it has. An object is deleted, unless it may be the result of its round. That does
 * not wait: the owner deletes what is left. */
static void group_job_drop(sar *s, struct group_switch *w, bool wrong)
{
	struct session_request request = handle_request(SESSION_DELETE, &w->id);
	struct error_kept words;
	if (w->round == 0)
		return;
	w->round = 0;
	error_keep(&words);
	sar_release(s, &w->result);
	if (w->put && wrong)
		mux_post(&s->mux, &request);
	error_restore(&words);
}

/* The contribution; member 0 adds the total before to a copy of its own. */
static int group_job_source(sar *s, const struct group_part *part, const struct group_job *job,
			    sar_buffer *out)
{
	char name[SAR_NAME_MAX + 1];
	sar_buffer own = {0}, base = {0};
	int n = snprintf(name, sizeof(name), GROUP_PREFIX "%s/%" PRIu64 "/%016" PRIx64, part->group,
			 job->clock, part->member);
	int r = sar_get(s, sar_id_of(name, (size_t)n), JOB_FIND_NS, &own);
	if (r == 0 && own.size != part->count * reduce_dtype_bytes(part->dtype)) {
		sar_release(s, &own);
		return error_set(-EINVAL, "%s was put again with another size", name);
	}
	if (r < 0 || job->member != 0 || job->base == 0) {
		*out = own;
		return r;
	}
	group_job_result_name(part, job->base, job->base_attempt, name);
	r = sar_get(s, sar_id_of(name, strlen(name)), JOB_FIND_NS, &base);
	if (r == 0 && base.size != own.size)
		r = error_set(-EINVAL, "%s has another size than a contribution", name);
	else if (r == 0)
		r = aggregate_memory(own.size, NULL, out);
	if (r == 0) {
		memcpy(out->data, own.data, own.size);
		accumulate(part->op, part->dtype, out->data, base.data, part->count);
	}
	sar_release(s, &own);
	sar_release(s, &base);
	return r;
}

static int group_job_way(struct group_switch *w, const struct group_job *job)
{
	uint8_t ip[4];
	char address[16];
	if (w->way && w->ip == job->ip && w->group == job->group)
		return 0;
	sar_switch_leave(w->way);
	w->way = NULL;
	w->ip = job->ip;
	w->group = job->group;
	memcpy(ip, &job->ip, sizeof(ip));
	snprintf(address, sizeof(address), "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
	return aggregate_open(address, job->group, &w->way);
}

/* Until all is in: then everybody is in every chunk. */
static int group_job_steps(struct group_switch *w, uint64_t bytes, unsigned members)
{
	uint64_t begin = aggregate_now_ns(), moved = begin, ready = 0;
	sar_switch_result result;
	for (;;) {
		uint64_t now = aggregate_now_ns();
		int r = aggregate_step(w->way, bytes, now + JOB_STEP_NS);
		if (r < 0)
			return r;
		if (r > 0)
			break;
		if (interrupt_wanted())
			return error_set(-EINTR, INTERRUPT_TEXT);
		if (aggregate_ready(w->way) != ready) {
			ready = aggregate_ready(w->way);
			moved = now;
		} else if (now - moved > JOB_STALL_NS) {
			return error_set(-ETIMEDOUT, "other members have not sent theirs");
		}
		if (now - begin > JOB_LIMIT_NS + bytes * 1000)
			return error_set(-ETIMEDOUT, "the switch is too slow");
	}
	aggregate_result(w->way, begin, &result);
	return result.fewest == members ? 0 : error_set(-EPROTO, "a sum without some members");
}

static int group_job_add(sar *s, struct group_switch *w, const struct group_part *part,
			 const struct group_job *job, const sar_buffer *source, sar_buffer *target)
{
	struct aggregate_join join = {.member = (uint8_t)job->member,
				      .members = (uint8_t)job->members,
				      .quorum = (uint8_t)job->members,
				      .version = job->version,
				      .round = job->version,
				      .key = job->key};
	sar_reduction how = {.op = part->op, .dtype = part->dtype};
	int r = group_job_way(w, job);
	if (r == 0)
		r = aggregate_install(w->way, &join);
	if (r == 0)
		r = aggregate_begin(w->way, source->data, target->data, source->size, &how);
	return r == 0 ? group_job_steps(w, source->size, job->members) : r;
}

/* Member 0: the target is an object, which others get. */
static int group_job_seal(sar *s, sar_id id, sar_buffer *target)
{
	int r = sar_seal(s, target);
	if (r < 0)
		sar_abort(s, target);
	return r < 0 ? r : sar_get(s, id, JOB_FIND_NS, target);
}

int group_switch_run(sar *s, struct group_switch *w, const struct group_part *part,
		     const struct group_job *job)
{
	char name[SAR_NAME_MAX + 1];
	sar_buffer source = {0}, target = {0};
	uint32_t attempt = job->attempt | GROUP_BY_SWITCH;
	bool put = job->member == 0;
	group_job_drop(s, w, job->round == w->round);
	int r = group_job_source(s, part, job, &source);
	if (r < 0)
		return r;
	group_job_result_name(part, job->round, attempt, name);
	w->id = sar_id_of(name, strlen(name));
	r = put ? sar_create(s, w->id, name, source.size, &target)
		: aggregate_memory(source.size, NULL, &target);
	if (r == 0) {
		r = group_job_add(s, w, part, job, &source, &target);
		if (r == 0 && put)
			r = group_job_seal(s, w->id, &target);
		else if (r < 0 && put)
			sar_abort(s, &target);
		else if (r < 0)
			sar_release(s, &target);
	}
	sar_release(s, &source);
	if (r < 0)
		return r;
	w->round = job->round;
	w->attempt = attempt;
	w->put = put;
	w->result = target;
	return 0;
}

bool group_switch_take(sar *s, struct group_switch *w, uint64_t round, uint32_t attempt,
		       sar_buffer *out)
{
	if (w->round == 0 || round < w->round)
		return false;
	if (round > w->round || attempt != w->attempt) {
		group_job_drop(s, w, round == w->round);
		return false;
	}
	*out = w->result;
	w->round = 0;
	return true;
}

void group_switch_end(sar *s, struct group_switch *w)
{
	struct error_kept words;
	error_keep(&words);
	group_job_drop(s, w, false);
	sar_switch_leave(w->way);
	error_restore(&words);
	*w = (struct group_switch){0};
}
