/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <assert.h>
#include <stdlib.h>

static bool events_before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

void events_init(struct events *q, uint64_t now_ns)
{
	*q = (struct events){.now_ns = now_ns, .room = 1024};
	q->heap = malloc(q->room * sizeof(*q->heap));
	assert(q->heap);
}

void events_free(struct events *q)
{
	free(q->heap);
	*q = (struct events){0};
}

void events_add(struct events *q, uint64_t at_ns, events_fn run, void *context, uint64_t argument)
{
	if (q->count == q->room) {
		q->room *= 2;
		q->heap = realloc(q->heap, q->room * sizeof(*q->heap));
		assert(q->heap);
	}
	struct event ev = {at_ns < q->now_ns ? q->now_ns : at_ns, q->sequence++, run, context,
			   argument};
	size_t i = q->count++;
	while (i > 0 && events_before(&ev, &q->heap[(i - 1) / 2])) {
		q->heap[i] = q->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	q->heap[i] = ev;
}

uint64_t events_next_ns(const struct events *q)
{
	return q->count ? q->heap[0].at_ns : UINT64_MAX;
}

static struct event events_pop(struct events *q)
{
	struct event top = q->heap[0], last = q->heap[--q->count];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= q->count)
			break;
		if (child + 1 < q->count && events_before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!events_before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return top;
}

bool events_step(struct events *q, uint64_t until_ns)
{
	if (events_next_ns(q) > until_ns || !q->count) {
		if (until_ns != UINT64_MAX && until_ns > q->now_ns)
			q->now_ns = until_ns;
		return false;
	}
	struct event ev = events_pop(q);
	q->now_ns = ev.at_ns;
	q->ran++;
	ev.run(ev.context, ev.argument);
	return true;
}
