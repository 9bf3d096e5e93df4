/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

/*
 * Bound of a worker's queue: each stage has at most its opening, its finishing and its dropping
 * record in it, each edge its opening and its dropping (a number is used again only after
 * EVENT_DROPPED, which needs the record to have left), each link at most an open and each
 * connection a close, its being watched and the end of that: whether it is follows the members, of
 * whom nothing more is heard while the worker takes no records. ADVANCEs wait in the stages.
 */
static uint32_t plan_queue_capacity(const struct control_config *config)
{
	return 3 * config->stages_max + 4 * config->edges_max + 2 * config->links_max +
	       4 * config->conns_max;
}

void plan_carve(struct plan *p, struct arena *a, const struct control_config *config)
{
	pool_carve(&p->stages, a, sizeof(struct stage), config->stages_max);
	pool_carve(&p->ins, a, sizeof(struct edge), config->edges_max);
	pool_carve(&p->outs, a, sizeof(struct edge), config->edges_max);
	p->stage_generation = arena_carve(a, sizeof(uint16_t) * config->stages_max);
	p->in_generation = arena_carve(a, sizeof(uint16_t) * config->edges_max);
	p->out_generation = arena_carve(a, sizeof(uint16_t) * config->edges_max);
	for (unsigned w = 0; w < WORKERS_MAX; w++) {
		struct plan_queue *q = &p->queue[w];

		q->capacity = plan_queue_capacity(config);
		q->ring = arena_carve(a, sizeof(struct record) * q->capacity);
	}
}

void plan_init(struct control *c)
{
	list_init(&c->plan.advances);
}

void plan_push(struct control *c, unsigned worker, const struct record *r)
{
	struct plan_queue *q = &c->plan.queue[worker];
	struct record *slot = &q->ring[(q->head + q->count) % q->capacity];

	if (!c->attached)
		return;
	assert(q->count < q->capacity);
	*slot = *r;
	slot->epoch = c->plan.epoch;
	q->count++;
}

static void plan_take_advances(struct control *c, unsigned worker)
{
	list_each(l, after, &c->plan.advances)
	{
		struct stage *s = list_item(l, struct stage, advance);
		struct record r = {.op = COMMAND_ADVANCE};

		if (s->worker != worker || c->plan.queue[worker].count >= IPC_RING_RECORDS)
			continue;
		r.progress.buffer = s->handle;
		r.progress.ready_bytes = s->ready_bytes;
		list_remove(&s->advance);
		plan_push(c, worker, &r);
	}
}

unsigned plan_commands(struct control *c, unsigned worker, struct record *out, unsigned count)
{
	struct plan_queue *q = &c->plan.queue[worker];
	unsigned n = 0;

	if (q->count == 0)
		plan_take_advances(c, worker);
	while (n < count && q->count > 0) {
		out[n++] = q->ring[q->head];
		q->head = (q->head + 1) % q->capacity;
		q->count--;
	}
	return n;
}

static uint32_t plan_handle(uint16_t *generation, uint32_t index)
{
	generation[index] = handle_next_generation(generation[index]);
	return handle_make((uint16_t)index, generation[index]);
}

static uint32_t plan_scratch(struct control *c, uint64_t bytes)
{
	uint32_t range = allocator_take(&c->objects.scratch, bytes);

	if (range)
		memset(objects_scratch(c, range), 0, bytes);
	return range;
}

uint32_t plan_bitmap(struct control *c, uint64_t chunks)
{
	return plan_scratch(c, chunk_bitmap_bytes(chunks));
}

uint32_t plan_bitmap_counted(struct control *c, uint64_t chunks)
{
	return plan_scratch(c, chunk_counted_bytes(chunks));
}

static struct stage *plan_open_stage(struct control *c, uint32_t slot, unsigned worker,
				     uint32_t chunk_bytes, uint32_t bitmap, uint64_t ready_bytes,
				     const struct plan_sum *sum)
{
	const struct object_slot *image = &c->table->slot[slot];
	struct record r = {.op = COMMAND_BUFFER};
	struct stage *s = pool_take(&c->plan.stages);

	if (s == NULL)
		return NULL;
	s->handle = plan_handle(c->plan.stage_generation, pool_index(&c->plan.stages, s));
	list_init(&s->ins);
	list_init(&s->outs);
	s->worker = (uint16_t)worker;
	s->slot = slot;
	s->size = image->size;
	s->chunk_bytes = chunk_bytes;
	s->bitmap = bitmap;
	r.buffer.buffer = s->handle;
	r.buffer.table_slot = bitmap ? slot : TABLE_SLOT_NONE;
	r.buffer.store_offset = image->offset;
	r.buffer.size = image->size;
	r.buffer.bitmap_offset = bitmap ? objects_scratch_offset(c, bitmap) : 0;
	r.buffer.ready_bytes = ready_bytes;
	r.buffer.chunk_bytes = (uint16_t)chunk_bytes;
	r.buffer.need = (uint8_t)sum->need;
	r.buffer.reduce_op = (uint8_t)sum->op;
	r.buffer.dtype = (uint8_t)sum->dtype;
	r.buffer.scale = (uint16_t)sum->scale;
	r.buffer.hold = sum->hold;
	plan_push(c, worker, &r);
	objects_at(c, slot)->holds++;
	return s;
}

struct stage *plan_stage(struct control *c, uint32_t slot, unsigned worker, uint32_t chunk_bytes,
			 uint32_t bitmap, uint64_t ready_bytes)
{
	static const struct plan_sum copy = {.need = 1};
	struct stage *s = plan_open_stage(c, slot, worker, chunk_bytes, bitmap, ready_bytes, &copy);

	if (s)
		objects_at(c, slot)->stage = s;
	return s;
}

struct stage *plan_stage_sum(struct control *c, uint32_t slot, unsigned worker,
			     uint32_t chunk_bytes, uint32_t bitmap, const struct plan_sum *sum)
{
	struct stage *s = plan_open_stage(c, slot, worker, chunk_bytes, bitmap, 0, sum);

	if (s)
		objects_at(c, slot)->stage = s;
	return s;
}

void plan_finish(struct control *c, const struct stage *s)
{
	struct record r = {.op = COMMAND_FINISH};

	r.progress.buffer = s->handle;
	plan_push(c, s->worker, &r);
}

struct stage *plan_mirror(struct control *c, uint32_t slot, unsigned worker, uint32_t chunk_bytes,
			  struct part *part)
{
	static const struct plan_sum copy = {.need = 1};
	uint64_t ready =
		atomic_load_explicit(&c->table->slot[slot].watermark, memory_order_acquire);
	struct stage *s = plan_open_stage(c, slot, worker, chunk_bytes, 0, ready, &copy);

	if (s == NULL)
		return NULL;
	s->part = part;
	list_append(&objects_at(c, slot)->mirrors, &s->mirror);
	return s;
}

void plan_advance(struct control *c, struct stage *s, uint64_t ready_bytes)
{
	s->ready_bytes = ready_bytes;
	if (!list_linked(&s->advance))
		list_append(&c->plan.advances, &s->advance);
}

void plan_drop_stage(struct control *c, struct stage *s)
{
	struct record r = {.op = COMMAND_DROP_BUFFER};

	if (s->dropping)
		return;
	s->dropping = true;
	s->part = NULL;
	list_remove(&s->advance);
	list_remove(&s->mirror);
	if (objects_at(c, s->slot)->stage == s)
		objects_at(c, s->slot)->stage = NULL;
	list_each(l, after, &s->outs)
	{
		struct edge *e = list_item(l, struct edge, of_stage);

		e->serve = NULL;
		e->dropping = true;
	}
	list_each(l, after, &s->ins)
	{
		struct edge *e = list_item(l, struct edge, of_stage);

		e->feed = NULL;
		e->part = NULL;
		e->dropping = true;
	}
	r.progress.buffer = s->handle;
	plan_push(c, s->worker, &r);
}

void plan_settle_stage(struct control *c, struct stage *s)
{
	const struct object *o = objects_at(c, s->slot);

	if (list_empty(&s->outs) && list_empty(&s->ins) && o->fetch == NULL && o->combine == NULL)
		plan_drop_stage(c, s);
}

static struct edge *plan_edge(struct control *c, struct stage *s, bool out, uint32_t conn)
{
	struct pool *pool = out ? &c->plan.outs : &c->plan.ins;
	struct edge *e = pool_take(pool);

	assert(!s->dropping);
	if (e == NULL)
		return NULL;
	e->handle = plan_handle(out ? c->plan.out_generation : c->plan.in_generation,
				pool_index(pool, e));
	e->stage = s;
	e->conn = conn;
	e->out = out;
	list_append(out ? &s->outs : &s->ins, &e->of_stage);
	return e;
}

static void plan_edge_record(const struct edge *e, uint8_t op, struct record *r)
{
	*r = (struct record){.op = op};
	r->edge.edge = e->handle;
	r->edge.buffer = e->stage->handle;
	r->edge.conn = e->conn;
}

struct edge *plan_in(struct control *c, struct stage *s, uint32_t conn, uint32_t first,
		     uint32_t count)
{
	struct edge *e = plan_edge(c, s, false, conn);
	struct record r;

	if (e == NULL)
		return NULL;
	plan_edge_record(e, COMMAND_IN, &r);
	r.edge.first_chunk = r.edge.peer_first = first;
	r.edge.chunks = count;
	plan_push(c, s->worker, &r);
	return e;
}

static struct edge *plan_part_edge(struct control *c, struct stage *s, uint32_t conn,
				   struct part *part, uint32_t taken)
{
	struct edge *e = plan_edge(c, s, false, conn);

	if (e == NULL)
		return NULL;
	e->part = part;
	e->bitmap = taken;
	return e;
}

struct edge *plan_in_part(struct control *c, struct stage *s, uint32_t conn, struct part *part,
			  uint32_t taken)
{
	struct edge *e = plan_part_edge(c, s, conn, part, taken);
	struct record r;

	if (e == NULL)
		return NULL;
	plan_edge_record(e, COMMAND_IN, &r);
	r.edge.first_chunk = part->to;
	r.edge.chunks = part->count;
	r.edge.peer_first = part->first;
	r.edge.bitmap_offset = taken ? objects_scratch_offset(c, taken) : 0;
	plan_push(c, s->worker, &r);
	return e;
}

struct edge *plan_local(struct control *c, struct stage *s, const struct stage *source,
			struct part *part, uint32_t taken)
{
	struct edge *e = plan_part_edge(c, s, 0, part, taken);
	struct record r = {.op = COMMAND_LOCAL};

	assert(!source->dropping && s->worker == source->worker);
	if (e == NULL)
		return NULL;
	r.local.edge = e->handle;
	r.local.buffer = s->handle;
	r.local.source = source->handle;
	r.local.first_chunk = part->to;
	r.local.chunks = part->count;
	r.local.peer_first = part->first;
	r.local.bitmap_offset = objects_scratch_offset(c, taken);
	plan_push(c, s->worker, &r);
	return e;
}

struct edge *plan_out(struct control *c, struct stage *s, uint32_t conn,
		      const struct message_stream *m)
{
	uint32_t bitmap = plan_bitmap(c, chunk_count(s->size, s->chunk_bytes));
	struct edge *e = bitmap ? plan_edge(c, s, true, conn) : NULL;
	struct record r;

	if (e == NULL) {
		if (bitmap)
			allocator_give(&c->objects.scratch, bitmap);
		return NULL;
	}
	e->bitmap = bitmap;
	for (uint32_t i = 0; i < m->skips; i++)
		chunks_set((uint64_t *)(void *)objects_scratch(c, bitmap), m->skip[i].first,
			   m->skip[i].count);
	plan_edge_record(e, COMMAND_OUT, &r);
	r.edge.stream = m->stream;
	r.edge.first_chunk = m->first;
	r.edge.chunks = m->count;
	r.edge.bitmap_offset = objects_scratch_offset(c, bitmap);
	plan_push(c, s->worker, &r);
	return e;
}

void plan_drop_edge(struct control *c, struct edge *e)
{
	struct record r;

	if (e->dropping)
		return;
	e->dropping = true;
	e->feed = NULL;
	e->part = NULL;
	e->serve = NULL;
	plan_edge_record(e, COMMAND_DROP_EDGE, &r);
	r.flags = e->out ? RECORD_FLAG_OUT : RECORD_FLAG_IN;
	plan_push(c, e->stage->worker, &r);
}
