/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduces.h"

#include <stdlib.h>
#include "queue/deadline.h"

struct reduces_one {
	struct reduces_one *next;
	struct session_request request;
	int64_t until_ns, began_ns;
	sar_id source[];
};

/* Under lock: all of this target, and those beyond so many. */
static void reduces_drop(struct reduces *r, const struct object_id *target, unsigned most)
{
	unsigned kept = 0;
	for (struct reduces_one **at = &r->first; *at;) {
		struct reduces_one *one = *at;
		if (kept < most && !object_id_equal(&one->request.id, target)) {
			kept++;
			at = &one->next;
			continue;
		}
		*at = one->next;
		free(one);
	}
	atomic_store(&r->count, kept);
}

void reduces_remember(struct reduces *r, const struct session_request *request,
		      const sar_id *sources, int64_t until_ns, int64_t began_ns)
{
	size_t bytes = sizeof(*sources) * request->reduction.count;
	struct reduces_one *one = malloc(sizeof(*one) + bytes);
	if (!one)
		return;
	one->request = *request;
	one->until_ns = until_ns;
	one->began_ns = began_ns;
	memcpy(one->source, sources, bytes);
	pthread_mutex_lock(&r->lock);
	reduces_drop(r, &request->id, REDUCES_MAX - 1);
	one->next = r->first;
	r->first = one;
	atomic_fetch_add(&r->count, 1);
	pthread_mutex_unlock(&r->lock);
}

void reduces_forget(struct reduces *r, const sar_id *target)
{
	struct object_id id;
	if (atomic_load_explicit(&r->count, memory_order_relaxed) == 0)
		return;
	memcpy(id.bytes, target->bytes, sizeof(id.bytes));
	pthread_mutex_lock(&r->lock);
	reduces_drop(r, &id, REDUCES_MAX);
	pthread_mutex_unlock(&r->lock);
}

int reduces_resume(struct reduces *r, struct mux *m, int64_t deadline_ns)
{
	int error = 0;
	pthread_mutex_lock(&r->lock);
	for (struct reduces_one *one = r->first; one && error == 0; one = one->next) {
		struct mux_tail tail = {
			{one->source, sizeof(sar_id) * one->request.reduction.count}, -1};
		struct session_request request = one->request;
		struct mux_result result;
		int64_t left = deadline_left(one->until_ns);
		if (left == 0)
			continue;
		request.flags |= SESSION_FLAG_RETRY;
		request.timeout_ns = left == DEADLINE_NEVER ? -1 : left;
		request.reduction.deadline_ns =
			deadline_rest(request.reduction.deadline_ns, one->began_ns);
		error = mux_call(m, &request, &tail, 0, deadline_ns, &result);
		mux_result_free(&result);
	}
	pthread_mutex_unlock(&r->lock);
	return error;
}

void reduces_fini(struct reduces *r)
{
	while (r->first) {
		struct reduces_one *one = r->first;
		r->first = one->next;
		free(one);
	}
}
