/* SPDX-License-Identifier: BSD-3-Clause */
/* REDUCE and REDUCED: a client's request becomes one of reduce/requester, and its end the answer.
 * Called by sessions.c with checked requests, and by the requester's events (wiring.c). */
#include <errno.h>
#include "core/base/text.h"
#include "core/reduce/coordinator/wrong.h"
#include "core/reduce/requester/requester.h"
#include "core/transfer/fetch.h"
#include "state.h"

_Static_assert((int)SESSION_SOURCES_MAX == (int)MESSAGE_SOURCES_MAX,
	       "what a client names fits a message");

static void session_reduce_pages(struct control *c, const struct wait *w,
				 const struct object_id *sources, uint32_t count, bool missing)
{
	struct session_sources page;

	for (uint32_t i = 0; i < count; i += page.count) {
		uint32_t left = count - i;

		page = (struct session_sources){.count = left < SESSION_SOURCES ? left
										: SESSION_SOURCES,
						.missing = missing};
		memcpy(page.source, sources + i, sizeof(*page.source) * page.count);
		reply_item(c, w, &page, sizeof(page));
	}
}

void session_reduce_ended(struct control *c, struct wait *w, const struct message_used *used)
{
	if (w->op == SESSION_REDUCED && used->status == 0)
		session_reduce_pages(c, w, used->sources, used->count, false);
	waits_end(c, w, used->status, used->text);
}

/* In an allreduce each contributor gets the target. So this node fetches it at once, as the others
 * do, and does not wait until its client asks for it. */
static void session_reduce_get(struct control *c, const struct message_reduce *m)
{
	if (!(m->flags & MESSAGE_REDUCE_ALLREDUCE) || slots_find(c, &m->target) != TABLE_SLOT_NONE)
		return;
	for (uint32_t i = 0; i < m->count; i++) {
		if (slots_find(c, &m->sources[i]) == TABLE_SLOT_NONE)
			continue;
		fetch_get(c, &m->target, true);
		return;
	}
}

/* The fault of a request's deadline, or NULL. */
static const char *session_reduce_wrong(const struct session_request *r)
{
	if (r->reduction.reserved)
		return "what is reserved in a reduce is not zero: use a library of this version";
	if (r->reduction.deadline_ns < 0)
		return "the deadline is negative: name a time from now";
	if (r->reduction.min == 0)
		return r->reduction.deadline_ns == 0
			       ? NULL
			       : "min is 0: say how many sources suffice at the deadline";
	if (r->reduction.num != 0)
		return "num and a deadline exclude each other: leave one of them out";
	if (r->timeout_ns >= 0 && r->reduction.deadline_ns >= r->timeout_ns)
		return "the deadline is not before the reduce's timeout: allow more time, or "
		       "name an earlier deadline";
	return NULL;
}

void session_reduce(struct control *c, struct session *s, const struct session_request *r,
		    const struct object_id *sources)
{
	struct message_reduce reduce = {.target = r->id,
					.op = r->reduction.op,
					.dtype = r->reduction.dtype,
					.num = r->reduction.num,
					.count = r->reduction.count,
					.sources = sources};
	struct requester *requester;
	const char *wrong;
	struct wait *w;

	if (reduce.num == 0)
		reduce.num = reduce.count;
	if (r->flags & SESSION_FLAG_ALLREDUCE)
		reduce.flags |= MESSAGE_REDUCE_ALLREDUCE;
	if (r->reduction.min) {
		reduce.flags |= MESSAGE_REDUCE_DEADLINE;
		reduce.min = r->reduction.min;
		reduce.deadline_ns = (uint64_t)r->reduction.deadline_ns;
	}
	reduce.timeout_ns = r->timeout_ns < 0 ? UINT64_MAX : (uint64_t)r->timeout_ns;
	memcpy(reduce.name, r->name, sizeof(reduce.name));
	wrong = r->flags & ~(uint32_t)(SESSION_FLAG_ALLREDUCE | SESSION_FLAG_RETRY)
			? "unknown flags"
			: session_reduce_wrong(r);
	if (!wrong)
		wrong = reduce_wrong(&reduce);
	if (wrong) {
		reply_error(c, s, r->op, r->seq, -EINVAL, wrong);
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	if (r->flags & SESSION_FLAG_RETRY) { /* REDUCED answers how it ends */
		if (requester_find(c, &r->id) || requester_resume(c, &reduce))
			waits_end(c, w, 0, "");
		else
			waits_end(c, w, -EAGAIN,
				  "too many reduces of this node at a time: try again later");
		return;
	}
	requester = requester_start(c, &reduce);
	if (!requester) {
		waits_end(c, w, -EAGAIN,
			  "too many reduces of this node at a time: try again later");
		return;
	}
	list_append(&requester->waits, &w->await.link);
	waits_timeout(c, w, (int64_t)c->config.directory_ns);
	session_reduce_get(c, &reduce);
}

/* Answers that the reduce runs, with its progress if that is known. */
static void session_reduce_goes_on(struct control *c, struct wait *w, const struct message_used *m)
{
	struct text t = {.length = 0};

	if (w->progress && m->count > 0) {
		session_reduce_pages(c, w, m->sources, m->present, false);
		session_reduce_pages(c, w, m->sources + m->present, m->count - m->present, true);
		waits_end(c, w, 0, m->text);
		return;
	}
	text_add(&t, "not ended yet: ");
	text_add(&t, *m->text ? m->text : "wait longer");
	waits_end(c, w, -ETIMEDOUT, t.bytes);
}

static bool session_reduce_answered(struct control *c, struct call *call,
				    const struct message *answer)
{
	struct wait *w = call->owner;
	struct requester *requester = requester_find(c, &w->id);
	const struct requester *kept = requester_recall(c, &w->id);
	struct message_used used;

	w->call = NULL;
	used = (struct message_used){.node = MESSAGE_NODE_NONE};
	if (!answer)
		session_reduce_goes_on(c, w, &used);
	else if (answer->used.status == -EAGAIN)
		session_reduce_goes_on(c, w, &answer->used);
	else if (answer->used.status != -ENOENT)
		session_reduce_ended(c, w, &answer->used);
	else if (requester)
		list_append(&requester->waits, &w->await.link);
	else if (kept) { /* the coordinator is lost, and the new owner does not know the reduce yet
			  */
		requester_used(c, kept, &used);
		session_reduce_ended(c, w, &used);
	} else
		waits_end(c, w, -ENOENT, "no reduce into this target is known: begin one");
	return false;
}

void session_reduced(struct control *c, struct session *s, const struct session_request *r)
{
	struct requester *requester = requester_find(c, &r->id);
	struct message m = {.kind = MESSAGE_REDUCED};
	struct wait *w = waits_start(c, s, r);

	if (!w)
		return;
	w->progress = r->timeout_ns == 0 && r->flags & SESSION_FLAG_PROGRESS;
	if (requester && r->timeout_ns != 0) {
		list_append(&requester->waits, &w->await.link);
		waits_timeout(c, w, r->timeout_ns);
		return;
	}
	m.reduce.target = r->id;
	m.reduce.timeout_ns = r->timeout_ns == 0 ? 0 : UINT64_MAX;
	/* A request with nowait still gives the directory time to answer. */
	waits_timeout(c, w,
		      r->timeout_ns != 0 ? r->timeout_ns
		      : requester	 ? (int64_t)c->config.status_ns
					 : (int64_t)c->config.directory_ns);
	w->call = rpc_start(c, ownership_shard(c, &r->id), &m, TABLE_SLOT_NONE, UINT64_MAX,
			    session_reduce_answered, w);
	if (!w->call)
		waits_end(c, w, -EAGAIN, "too many requests to the directory: try again later");
}
