/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "modules.h"

/* Bound of a worker's queue. Records in it at a time: of a stage at most its opening, finishing and
 * dropping; of an edge its opening and dropping (a number is reused only after EVENT_DROPPED, so
 * after the record has left); of a link an open; of a connection a close, an open for each other
 * rail, and the begin and end of its watch (which follow the members, and no news of these comes
 * while the worker takes no records). ADVANCEs wait in the stages. */
static uint32_t commands_capacity(const struct control_config *config)
{
	return 3 * config->stages_max + 4 * config->edges_max + 2 * config->links_max +
	       (4 + RAILS_MAX - 1) * config->conns_max;
}

void commands_carve(struct commands *q, struct arena *a, const struct control_config *config)
{
	for (unsigned w = 0; w < WORKERS_MAX; w++) {
		q->queue[w].capacity = commands_capacity(config);
		q->queue[w].ring = arena_carve(a, sizeof(struct record) * q->queue[w].capacity);
	}
}

void commands_push(struct control *c, unsigned worker, const struct record *r)
{
	struct command_queue *q = &c->commands.queue[worker];
	struct record *slot = &q->ring[(q->head + q->count) % q->capacity];

	if (!c->attached)
		return;
	assert(q->count < q->capacity && q->head < q->capacity);
	assert(command_valid(r));
	*slot = *r;
	slot->epoch = c->commands.epoch;
	q->count++;
}

unsigned commands_take(struct control *c, unsigned worker, struct record *out, unsigned count)
{
	struct command_queue *q = &c->commands.queue[worker];
	unsigned n = 0;

	assert(q->count <= q->capacity);
	while (n < count && q->count > 0) {
		out[n++] = q->ring[q->head];
		q->head = (q->head + 1) % q->capacity;
		q->count--;
	}
	return n;
}

void commands_detach(struct control *c)
{
	for (unsigned w = 0; w < WORKERS_MAX; w++)
		c->commands.queue[w].head = c->commands.queue[w].count = 0;
}
