/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sar_switch_reduce: an allreduce of objects through a switch, and by the nodes when the switch
 * fails. Called by the library's users only.
 *
 * All members end with the same bytes, in two phases. Member 0 seals the object when it has the
 * switch's result, and only then takes part in the second allreduce, of a flag. Who has the flag
 * keeps the result that it has: the object has the same. All others take the object, which member
 * 0 or the nodes make.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "aggregate.h"
#include "api/buffer.h"
#include "queue/deadline.h"
#include "api/error.h"
#include "sarissa/array.h"

#define STEP_NS 1000000u /* how often a source that grows is looked at */

#define FLAG_STALL_NS 500000000u /* then member 0 is taken for dead, or has no result */

enum { PUBLISH_BYTES = 1 << 20, REDUCE_ROUNDS = 2 };

#define LOOK_NS 200000000u /* when nothing goes on, whether the sources fit together */

struct reduction {
	sar *s;
	sar_switch *w;
	const sar_id *sources;
	unsigned count, member;
	bool looked;
	sar_buffer source, target; /* target: member 0's object, or private memory */
	bool first;		   /* member 0 */
	int64_t deadline;
};

int aggregate_memory(uint64_t size, const sar_buffer *like, sar_buffer *out)
{
	uint64_t bytes = size + BUFFER_PRIVATE_MORE;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (at == MAP_FAILED)
		return error_set(-ENOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
	struct buffer own = {.kind = BUFFER_PRIVATE,
			     .page = (uint8_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE))};
	*out = (sar_buffer){.data = at, .size = size, .ready = size};
	if (like && like->meta_bytes > 0) {
		out->meta = memcpy((uint8_t *)at + size, like->meta, like->meta_bytes);
		out->meta_bytes = like->meta_bytes;
	}
	buffer_set(out, &own);
	return 0;
}

static void aggregate_give_up(struct reduction *r)
{
	if (r->first)
		sar_abort(r->s, &r->target);
	else
		sar_release(r->s, &r->target);
}

/* Publishes the chunks that readers of the target on other nodes may have. */
static int aggregate_publish(struct reduction *r)
{
	uint64_t ready = aggregate_ready(r->w);
	if (!r->first || ready < r->target.ready + PUBLISH_BYTES)
		return 0;
	return sar_publish(r->s, &r->target, ready);
}

static bool aggregate_same_kind(const struct reduction *r, const sar_info *info)
{
	const sar_buffer *own = &r->source;
	return info->size == own->size && (info->meta_bytes == 0 || own->meta_bytes == 0 ||
					   (info->meta_bytes == own->meta_bytes &&
					    memcmp(info->meta, own->meta, own->meta_bytes) == 0));
}

/* A switch that gets chunks of unlike arrays never has all of some. 0, or -EINVAL: the nodes say
 * what differs. */
static int aggregate_look(struct reduction *r, uint64_t begin_ns)
{
	sar_info info;
	if (r->looked || aggregate_now_ns() - begin_ns < LOOK_NS)
		return 0;
	r->looked = true;
	for (unsigned i = 0; i < r->count; i++) {
		if (i == r->member || sar_info_get(r->s, r->sources[i], &info) < 0)
			continue;
		if (!aggregate_same_kind(r, &info))
			return error_set(-EINVAL,
					 "the sources of members %u and %u have other sizes, types "
					 "or shapes",
					 r->member, i);
	}
	return 0;
}

/* 1: all is in. */
static int aggregate_go_on(struct reduction *r)
{
	uint64_t begin_ns = aggregate_now_ns();
	for (;;) {
		bool grows = r->source.ready < r->source.size;
		int64_t left = deadline_left(r->deadline);
		uint64_t step = grows || r->first ? STEP_NS : (uint64_t)left;
		if (!r->looked && step > LOOK_NS)
			step = LOOK_NS;
		if (step > (uint64_t)left)
			step = (uint64_t)left;
		int n = aggregate_step(r->w, r->source.ready, aggregate_now_ns() + step);
		if (n != 0)
			return n;
		if (left <= 0)
			return error_set(-ETIMEDOUT, "other members have not sent theirs");
		n = aggregate_publish(r);
		if (n == 0)
			n = aggregate_look(r, begin_ns);
		if (n < 0)
			return n;
		if (grows)
			n = sar_wait(r->s, &r->source, r->source.ready + 1, 0);
		if (n < 0 && n != -ETIMEDOUT)
			return n;
	}
}

/* The second allreduce: whether member 0 has sealed the object. */
static bool aggregate_flagged(struct reduction *r)
{
	const sar_reduction how = {.op = SAR_SUM, .dtype = SAR_I32};
	int32_t own[2] = {r->first, 0}, sum[2] = {0};
	uint64_t until = aggregate_now_ns() + FLAG_STALL_NS;
	int64_t left = deadline_left(r->deadline);
	struct error_kept words;
	if (left < FLAG_STALL_NS)
		until = aggregate_now_ns() + (uint64_t)left;
	error_keep(&words);
	int n = aggregate_begin(r->w, own, sum, sizeof(own), &how);
	if (n == 0)
		n = aggregate_step(r->w, sizeof(own), until);
	error_restore(&words);
	return n > 0 && sum[0] != 0; /* under a quorum member 0 may not be in it */
}

/* The result as its members have it. */
static int aggregate_finish(struct reduction *r, sar_id target, sar_buffer *out)
{
	if (!r->first) {
		if (aggregate_flagged(r)) {
			*out = r->target;
			return 0;
		}
		sar_release(r->s, &r->target);
		return error_set(-ENODATA, "others have no result of the switch");
	}
	int n = sar_seal(r->s, &r->target);
	if (n < 0) {
		sar_abort(r->s, &r->target);
		return n;
	}
	aggregate_flagged(r);
	return sar_get(r->s, target, deadline_left(r->deadline), out);
}

/* A member that is done may have made the target, or be about to give it up. */
static int aggregate_by_nodes(struct reduction *r, sar_id target, const char *name,
			      const sar_id *sources, unsigned count, const sar_reduction *how,
			      sar_buffer *out)
{
	sar_reduction plain = *how;
	plain.flags = 0;
	for (;;) {
		int n = sar_allreduce(r->s, target, name, sources, count, &plain,
				      deadline_left(r->deadline), out);
		if (n != -EEXIST || deadline_left(r->deadline) <= 0)
			return n;
		n = sar_get(r->s, target, deadline_left(r->deadline), out);
		if (n != -ESTALE && n != -ENODATA && n != -ENOENT)
			return n;
	}
}

static int aggregate_by_switch(struct reduction *r, sar_id target, const char *name,
			       const sar_reduction *how, sar_buffer *out, sar_switch_result *result)
{
	uint64_t begin = aggregate_now_ns();
	sar_put_options options = {.size = sizeof(options),
				   .meta = r->source.meta,
				   .meta_bytes = r->source.meta_bytes};
	int n = r->first ? sar_create_with(r->s, target, name, r->source.size, &options, &r->target)
			 : aggregate_memory(r->source.size, &r->source, &r->target);
	if (n < 0)
		return n;
	n = aggregate_begin(r->w, r->source.data, r->target.data, r->source.size, how);
	if (n == 0)
		n = aggregate_go_on(r);
	if (n < 0) {
		struct error_kept words;
		error_keep(&words);
		aggregate_give_up(r);
		error_restore(&words);
		return n;
	}
	if (result)
		aggregate_result(r->w, begin, result);
	return aggregate_finish(r, target, out);
}

/* The nodes say what the array is, and refuse. */
static int aggregate_asked_wrongly(const struct reduction *r, const sar_reduction *how)
{
	sar_array array;
	if (r->source.meta_bytes == 0 ||
	    sar_array_parse(r->source.meta, r->source.meta_bytes, &array) < 0 ||
	    array.dtype == how->dtype)
		return 0;
	return error_set(-EINVAL, "the source is an array of another type");
}

int sar_switch_reduce(sar *s, sar_switch *w, sar_id target, const char *name, const sar_id *sources,
		      unsigned count, const sar_reduction *how, int64_t timeout_ns,
		      sar_buffer *buffer, sar_switch_result *out)
{
	unsigned member, members;
	aggregate_place(w, &member, &members);
	if (count != members || timeout_ns <= 0)
		return error_set(-EINVAL,
				 "sar_switch_reduce: %u sources of %u members, timeout %lld", count,
				 members, (long long)timeout_ns);
	uint64_t begin = aggregate_now_ns();
	struct reduction r = {.s = s,
			      .w = w,
			      .sources = sources,
			      .count = count,
			      .member = member,
			      .first = member == 0,
			      .deadline = timeout_ns == SAR_FOREVER ? DEADLINE_NEVER
								    : deadline_after(timeout_ns)};
	int n = sar_get_begin(s, sources[member], timeout_ns, &r.source);
	if (n < 0)
		return n;
	uint32_t round = aggregate_round(w);
	n = aggregate_asked_wrongly(&r, how);
	if (n == 0)
		n = aggregate_by_switch(&r, target, name, how, buffer, out);
	aggregate_round_set(w, round + REDUCE_ROUNDS);
	sar_release(s, &r.source);
	if (n == 0 || n == -ETIMEDOUT)
		return n;
	struct error_kept words; /* why the switch did not: for those who want to say it */
	error_keep(&words);
	n = aggregate_by_nodes(&r, target, name, sources, count, how, buffer);
	if (n == 0)
		error_restore(&words);
	if (n == 0 && out)
		*out = (sar_switch_result){.duration_ns = (int64_t)(aggregate_now_ns() - begin)};
	return n;
}
