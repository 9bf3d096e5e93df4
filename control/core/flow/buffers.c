/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "state.h"
#include "events.h"

enum { SCRATCH_GRAIN_BYTES = 64 };

void buffers_carve(struct buffers *p, struct arena *a, const struct control_config *config)
{
	allocator_carve(&p->scratch, a, config->stages_max + config->edges_max);
	pool_carve(&p->stages, a, sizeof(struct stage), config->stages_max);
	pool_carve(&p->ins, a, sizeof(struct edge), config->edges_max);
	pool_carve(&p->outs, a, sizeof(struct edge), config->edges_max);
	p->stage_generation = arena_carve(a, sizeof(uint16_t) * config->stages_max);
	p->in_generation = arena_carve(a, sizeof(uint16_t) * config->edges_max);
	p->out_generation = arena_carve(a, sizeof(uint16_t) * config->edges_max);
}

void buffers_init(struct control *c)
{
	list_init(&c->flow->buffers.advances);
}

static void buffers_take_advances(struct control *c, unsigned worker)
{
	list_each(l, after, &c->flow->buffers.advances)
	{
		struct stage *s = list_item(l, struct stage, advance);
		struct record r = {.op = COMMAND_ADVANCE};

		if (s->worker != worker || c->commands.queue[worker].count >= IPC_RING_RECORDS)
			continue;
		r.progress.buffer = s->handle;
		r.progress.ready_bytes = s->ready_bytes;
		list_remove(&s->advance);
		commands_push(c, worker, &r);
	}
}

unsigned buffers_commands(struct control *c, unsigned worker, struct record *out, unsigned count)
{
	if (c->commands.queue[worker].count == 0)
		buffers_take_advances(c, worker);
	return commands_take(c, worker, out, count);
}

static uint32_t buffers_handle(uint16_t *generation, uint32_t index)
{
	generation[index] = handle_next_generation(generation[index]);
	return handle_make((uint16_t)index, generation[index]);
}

/* In the store. */
static uint64_t scratch_offset(const struct control *c, uint32_t range)
{
	return c->flow->buffers.scratch_offset + allocator_offset(&c->flow->buffers.scratch, range);
}

uint8_t *scratch_at(struct control *c, uint32_t range)
{
	return c->memory + scratch_offset(c, range);
}

void scratch_reset(struct control *c, uint64_t offset, uint64_t bytes)
{
	c->flow->buffers.scratch_offset = offset;
	allocator_reset(&c->flow->buffers.scratch, bytes, SCRATCH_GRAIN_BYTES);
}

static uint32_t buffers_scratch(struct control *c, uint64_t bytes)
{
	uint32_t range = allocator_take(&c->flow->buffers.scratch, bytes);

	if (range)
		memset(scratch_at(c, range), 0, bytes);
	return range;
}

uint32_t buffers_bitmap(struct control *c, uint64_t chunks)
{
	return buffers_scratch(c, chunk_bitmap_bytes(chunks));
}

/* Rounds up to cache lines, so that no two workers write the same one. */
static uint64_t buffers_lines(uint64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

uint32_t buffers_bitmap_counted(struct control *c, uint64_t chunks, uint32_t parts)
{
	return buffers_scratch(c, buffers_lines(chunk_counted_bytes(chunks)) +
					  parts * buffers_lines(chunk_bitmap_bytes(chunks)));
}

/* A chain of so many stages, or NULL: too few are free. */
static struct stage *buffers_take(struct control *c, uint32_t slot, uint32_t lanes)
{
	struct stage *head = NULL, **end = &head;

	for (uint32_t i = 0; i < lanes; i++) {
		struct stage *s = pool_take(&c->flow->buffers.stages);

		if (!s) {
			for (struct stage *next; head; head = next) {
				next = head->next;
				pool_give(&c->flow->buffers.stages, head);
			}
			return NULL;
		}
		*end = s;
		end = &s->next;
		s->head = head;
		s->slot = slot;
		list_init(&s->ins);
		list_init(&s->outs);
	}
	for (struct stage *s = head; s; s = s->next)
		s->handle = buffers_handle(c->flow->buffers.stage_generation,
					   pool_index(&c->flow->buffers.stages, s));
	assert(head && lanes >= 1);
	head->lanes = (uint16_t)lanes;
	wiring_held(c, slot);
	return head;
}

/* The bytes of the stage among the first ready bytes of the object. */
static uint64_t buffers_share(const struct stage *s, uint64_t ready_bytes)
{
	uint64_t from = (uint64_t)s->first * s->chunk_bytes;

	if (ready_bytes <= from)
		return 0;
	return ready_bytes - from < s->size ? ready_bytes - from : s->size;
}

/* The slot whose watermark the worker of the first lane updates. Not if that lane is complete:
 * later lanes may have moved the watermark on. */
static uint32_t buffers_watermark_slot(struct control *c, const struct stage *s)
{
	uint32_t chunks = (uint32_t)chunk_count(s->size, s->chunk_bytes);
	const uint64_t *map;

	if (s->head->bitmap == 0 || s != s->head)
		return TABLE_SLOT_NONE;
	map = (const uint64_t *)(const void *)scratch_at(c, s->bitmap);
	return !s->next || chunks_missing(map, 0, chunks) > 0 ? s->slot : TABLE_SLOT_NONE;
}

/* Of a lane's own bitmap. */
static uint64_t buffers_map_offset(struct control *c, const struct stage *s, bool counted)
{
	if (s->head->bitmap == 0)
		return 0;
	return scratch_offset(c, s->head->bitmap) +
	       (counted ? chunk_counted_bytes(s->first) : chunk_bitmap_bytes(s->first));
}

static void buffers_open(struct control *c, struct stage *s, const struct buffer_sum *sum)
{
	const struct object_slot *image = &c->table->slot[s->slot];
	struct record r = {.op = COMMAND_BUFFER};

	r.buffer.buffer = s->handle;
	r.buffer.table_slot = buffers_watermark_slot(c, s);
	r.buffer.store_offset = image->offset + (uint64_t)s->first * s->chunk_bytes;
	r.buffer.size = s->size;
	r.buffer.bitmap_offset = buffers_map_offset(c, s, sum->op != 0);
	r.buffer.ready_bytes = s->ready_bytes;
	r.buffer.chunk_bytes = (uint16_t)s->chunk_bytes;
	r.buffer.need = (uint8_t)sum->need;
	r.buffer.reduce_op = (uint8_t)sum->op;
	r.buffer.dtype = (uint8_t)sum->dtype;
	r.buffer.scale = (uint16_t)sum->scale;
	r.buffer.withhold = s->withhold;
	commands_push(c, s->worker, &r);
}

static const struct buffer_sum buffers_copy = {.need = 1};

static struct stage *buffers_chain(struct control *c, uint32_t slot, uint32_t chunk_bytes,
				   uint32_t bitmap, uint64_t ready_bytes,
				   const struct buffer_sum *sum)
{
	const struct object_slot *image = &c->table->slot[slot];
	uint32_t chunks = (uint32_t)chunk_count(image->size, chunk_bytes), i = 0;
	uint32_t lanes = lane_count(image->size, c->workers);
	struct stage *head = buffers_take(c, slot, lanes);

	if (!head)
		return NULL;
	head->bitmap = bitmap;
	for (struct stage *s = head; s; s = s->next, i++) {
		uint64_t end = (uint64_t)lane_first(chunks, lanes, i + 1) * chunk_bytes;

		s->worker = (uint16_t)lane_worker(&image->id, c->workers, i);
		s->chunk_bytes = chunk_bytes;
		s->first = lane_first(chunks, lanes, i);
		s->size =
			(end < image->size ? end : image->size) - (uint64_t)s->first * chunk_bytes;
		s->ready_bytes = buffers_share(s, ready_bytes);
		s->withhold = sum->withhold && !s->next;
		buffers_open(c, s, sum);
	}
	wiring_opened(c, head);
	return head;
}

struct stage *buffers_stage(struct control *c, uint32_t slot, uint32_t chunk_bytes, uint32_t bitmap,
			    uint64_t ready_bytes)
{
	return buffers_chain(c, slot, chunk_bytes, bitmap, ready_bytes, &buffers_copy);
}

struct stage *buffers_stage_sum(struct control *c, uint32_t slot, uint32_t chunk_bytes,
				uint32_t bitmap, const struct buffer_sum *sum)
{
	return buffers_chain(c, slot, chunk_bytes, bitmap, 0, sum);
}

void buffers_finish(struct control *c, struct stage *head)
{
	struct record r = {.op = COMMAND_FINISH};
	struct stage *s = head;

	assert(!head->dropping);
	while (s->next)
		s = s->next;
	s->withhold = false;
	r.progress.buffer = s->handle;
	commands_push(c, s->worker, &r);
}

struct stage *buffers_mirror(struct control *c, uint32_t slot, unsigned worker, uint32_t count,
			     uint32_t chunk_bytes, struct part *part)
{
	uint64_t ready =
		atomic_load_explicit(&c->table->slot[slot].watermark, memory_order_acquire);
	struct stage *head = buffers_take(c, slot, count);

	if (!head)
		return NULL;
	for (struct stage *s = head; s; s = s->next) {
		s->worker = (uint16_t)(worker++ % c->workers);
		s->chunk_bytes = chunk_bytes;
		s->size = c->table->slot[slot].size;
		s->ready_bytes = ready;
		buffers_open(c, s, &buffers_copy);
	}
	head->part = part;
	wiring_mirrored(c, head);
	return head;
}

struct stage *buffers_lane(struct stage *head, uint32_t chunk)
{
	struct stage *s = head;

	while (s->next && s->next->first <= chunk)
		s = s->next;
	return s;
}

void buffers_advance(struct control *c, struct stage *head, uint64_t ready_bytes)
{
	for (struct stage *s = head; s; s = s->next) {
		uint64_t share = buffers_share(s, ready_bytes);

		if (share == s->ready_bytes)
			continue;
		s->ready_bytes = share;
		if (!list_linked(&s->advance))
			list_append(&c->flow->buffers.advances, &s->advance);
	}
}

static void buffers_drop_lane(struct control *c, struct stage *s)
{
	struct record r = {.op = COMMAND_DROP_BUFFER};

	list_remove(&s->advance);
	list_each(l, after, &s->outs)
	{
		struct edge *e = list_item(l, struct edge, of_stage);

		e->serve = NULL;
		e->dropping = true;
	}
	list_each(l, after, &s->ins)
	{
		struct edge *e = list_item(l, struct edge, of_stage);

		list_remove(&e->of_owner);
		e->feed = NULL;
		e->part = NULL;
		e->dropping = true;
	}
	r.progress.buffer = s->handle;
	commands_push(c, s->worker, &r);
}

void buffers_drop_stage(struct control *c, struct stage *head)
{
	assert(head->head == head);
	if (head->dropping)
		return;
	head->dropping = true;
	head->part = NULL;
	list_remove(&head->mirror);
	wiring_closed(c, head);
	for (struct stage *s = head; s; s = s->next)
		buffers_drop_lane(c, s);
}

void buffers_settle_stage(struct control *c, struct stage *s)
{
	if (wiring_arriving(c, s->head))
		return;
	for (const struct stage *each = s->head; each; each = each->next)
		if (!list_empty(&each->outs) || !list_empty(&each->ins))
			return;
	buffers_drop_stage(c, s->head);
}

static struct edge *buffers_edge(struct control *c, struct stage *s, bool out, uint32_t conn)
{
	struct pool *pool = out ? &c->flow->buffers.outs : &c->flow->buffers.ins;
	struct edge *e = pool_take(pool);

	assert(!s->head->dropping);
	if (!e)
		return NULL;
	e->handle = buffers_handle(out ? c->flow->buffers.out_generation
				       : c->flow->buffers.in_generation,
				   pool_index(pool, e));
	e->stage = s;
	e->conn = conn;
	e->out = out;
	list_append(out ? &s->outs : &s->ins, &e->of_stage);
	return e;
}

static void buffers_edge_record(const struct edge *e, uint8_t op, struct record *r)
{
	*r = (struct record){.op = op};
	r->edge.edge = e->handle;
	r->edge.buffer = e->stage->handle;
	r->edge.conn = e->conn;
}

/* Offset in the store of the bitmap of all chunks. */
static uint64_t buffers_given_offset(struct control *c, const struct stage *head,
				     const struct part *part)
{
	uint64_t chunks = chunk_count(c->table->slot[head->slot].size, head->chunk_bytes);
	uint64_t map = scratch_offset(c, head->bitmap);
	int32_t addend = wiring_addend(part);

	if (addend < 0)
		return map;
	return map + buffers_lines(chunk_counted_bytes(chunks)) +
	       (uint32_t)addend * buffers_lines(chunk_bitmap_bytes(chunks));
}

const uint64_t *buffers_given(struct control *c, const struct stage *head, const struct part *part)
{
	return (const uint64_t *)(const void *)(c->memory + buffers_given_offset(c, head, part));
}

static struct edge *buffers_substream(struct control *c, struct stage *head, uint32_t conn,
				      const struct substream *t, struct part *part,
				      uint64_t *map_offset)
{
	struct edge *e = buffers_edge(c, buffers_lane(head, t->first), false, conn);

	if (!e)
		return NULL;
	assert(t->first < t->end);
	e->first = t->first;
	e->end = t->end;
	e->peer_first = t->peer_first;
	e->part = part;
	if (part)
		*map_offset =
			buffers_given_offset(c, head, part) + chunk_bitmap_bytes(e->stage->first);
	return e;
}

struct edge *buffers_in(struct control *c, struct stage *head, uint32_t conn,
			const struct substream *t, struct part *part)
{
	struct record r = {.op = COMMAND_NONE};
	uint64_t map = 0;
	struct edge *e = buffers_substream(c, head, conn, t, part, &map);

	if (!e)
		return NULL;
	buffers_edge_record(e, COMMAND_IN, &r);
	r.edge.first_chunk = t->first - t->base;
	r.edge.chunks = t->end - t->first;
	r.edge.peer_first = t->peer_first - t->peer_base;
	r.edge.bitmap_offset = map;
	commands_push(c, e->stage->worker, &r);
	return e;
}

struct edge *buffers_local(struct control *c, struct stage *head, const struct stage *source,
			   const struct substream *t, struct part *part)
{
	struct record r = {.op = COMMAND_LOCAL};
	struct edge *e = buffers_substream(c, head, 0, t, part, &r.local.bitmap_offset);

	if (!e)
		return NULL;
	assert(!source->head->dropping && e->stage->worker == source->worker);
	r.local.edge = e->handle;
	r.local.buffer = e->stage->handle;
	r.local.source = source->handle;
	r.local.first_chunk = t->first - t->base;
	r.local.chunks = t->end - t->first;
	r.local.peer_first = t->peer_first - source->first;
	commands_push(c, e->stage->worker, &r);
	return e;
}

/* Sets the runs of m that lie in the lane, which begins at chunk base. */
static void buffers_skip(uint64_t *map, uint32_t base, uint32_t chunks,
			 const struct message_stream *m)
{
	for (uint32_t i = 0; i < m->skips; i++) {
		uint32_t from = m->skip[i].first, end = from + m->skip[i].count;

		from = from > base ? from - base : 0;
		end = end > base ? end - base : 0;
		if (end > chunks)
			end = chunks;
		if (from < end)
			bitmap_set(map, from, end - from);
	}
}

struct edge *buffers_out(struct control *c, struct stage *s, uint32_t conn,
			 const struct message_substream *substream, const struct message_stream *m)
{
	uint32_t chunks = (uint32_t)chunk_count(s->size, s->chunk_bytes);
	uint32_t bitmap = buffers_bitmap(c, chunks);
	struct edge *e = bitmap ? buffers_edge(c, s, true, conn) : NULL;
	struct record r;

	if (!e) {
		if (bitmap)
			allocator_give(&c->flow->buffers.scratch, bitmap);
		return NULL;
	}
	e->bitmap = bitmap;
	buffers_skip((uint64_t *)(void *)scratch_at(c, bitmap), s->first, chunks, m);
	buffers_edge_record(e, COMMAND_OUT, &r);
	r.edge.stream = substream->stream;
	r.edge.first_chunk = substream->first - s->first;
	r.edge.chunks = substream->count;
	r.edge.bitmap_offset = scratch_offset(c, bitmap);
	commands_push(c, s->worker, &r);
	return e;
}

void buffers_drop_edge(struct control *c, struct edge *e)
{
	struct record r;

	if (e->dropping)
		return;
	e->dropping = true;
	list_remove(&e->of_owner);
	e->feed = NULL;
	e->part = NULL;
	e->serve = NULL;
	buffers_edge_record(e, COMMAND_DROP_EDGE, &r);
	r.flags = e->out ? RECORD_FLAG_OUT : RECORD_FLAG_IN;
	commands_push(c, e->stage->worker, &r);
}
