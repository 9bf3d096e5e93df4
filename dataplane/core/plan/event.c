/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "event.h"
#include "buffer.h"
#include "core/engine_state.h"

static uint32_t event_room(const struct engine *e)
{
	assert(e->events.tail - e->events.head <= e->events.mask + 1);
	return e->events.mask + 1 - (e->events.tail - e->events.head);
}

bool event_spare(const struct engine *e, uint32_t records)
{
	return event_room(e) >= e->events.reserved + records;
}

struct record *event_push(struct engine *e, enum event_op op)
{
	assert(event_room(e) > 0);
	struct record *r = &e->events.ring[e->events.tail++ & e->events.mask];
	memset(r, 0, sizeof(*r));
	r->op = (uint8_t)op;
	return r;
}

/* Progress waits in the ring as a mark; what it says is the newest when it leaves. */
static void event_refresh(struct engine *e, struct record *r)
{
	struct buffer *b = buffer_find(e, r->progress.buffer);

	if (!b)
		return;
	b->progress_queued = false;
	b->progress_low = b->ready_low;
	r->progress.ready_bytes = buffer_ready_bytes(b);
}

unsigned engine_events(struct engine *e, struct record *out, unsigned count)
{
	unsigned n = 0;

	for (; n < count && e->events.head != e->events.tail; n++) {
		out[n] = e->events.ring[e->events.head++ & e->events.mask];
		assert(event_valid(&out[n]));
		if (out[n].op == EVENT_PROGRESS)
			event_refresh(e, &out[n]);
	}
	return n;
}
