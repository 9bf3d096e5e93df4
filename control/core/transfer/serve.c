/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"

void serves_carve(struct serves *s, struct arena *a, const struct control_config *config)
{
	pool_carve(&s->pool, a, sizeof(struct serve), config->serves_max);
	pool_carve(&s->early, a, sizeof(struct serve_early), config->serves_max);
}

uint32_t serves_fed(const struct control *c)
{
	return c->transfer->serves.fed;
}

static bool serve_feeds(const struct object *o, const struct node *n)
{
	list_each(l, after, &o->serves)
	{
		if (list_item(l, struct serve, of_object)->node == n)
			return true;
	}
	return false;
}

static void serve_free(struct control *c, struct serve *s)
{
	list_remove(&s->of_object);
	c->transfer->serves.fed -= !serve_feeds(s->object, s->node);
	pool_give(&c->transfer->serves.pool, s);
}

void serve_ended(struct control *c, struct serve *s)
{
	struct edge *e = s->edge;

	serve_free(c, s);
	buffers_drop_edge(c, e);
}

void serve_end_stage(struct control *c, struct object *o, const struct stage *head)
{
	list_each(l, after, &o->serves)
	{
		struct serve *s = list_item(l, struct serve, of_object);

		if (head && s->edge->stage->head != head)
			continue;
		s->edge->serve = NULL;
		serve_free(c, s);
	}
}

void serve_end_all(struct control *c, struct object *o)
{
	serve_end_stage(c, o, NULL);
}

bool serve_any(const struct control *c, const struct object *o)
{
	list_each(l, after, &o->serves)
	{
		const struct serve *s = list_item(l, struct serve, of_object);

		if (c->now_ns - s->asked_ns < c->config.coordinator_lost_ns)
			return true;
	}
	return false;
}

/* The connection that the receiver has set its IN edge on; NULL when it is not up here (yet). conn:
 * that of the request, of the workers 0. */
static const struct conn *serve_conn(struct control *c, struct node *n, uint32_t conn,
				     unsigned worker, unsigned peer_worker)
{
	const struct link *l;

	if (!c->attached)
		return NULL;
	if (worker == 0 && peer_worker == 0)
		return peers_conn(c, 0, conn);
	l = peers_link(c, n, worker, peer_worker);
	return l && l->state == LINK_UP ? peers_conn(c, worker, l->conn) : NULL;
}

static struct stage *serve_stage(struct control *c, uint32_t slot, const struct message_stream *m)
{
	const struct object_slot *image = &c->table->slot[slot];
	const struct object *o = objects_at(c, slot);
	uint64_t ready = atomic_load_explicit(&image->watermark, memory_order_acquire);
	struct stage *s = o->stage;

	if (!s && (image->state == OBJECT_FETCHING || (o->participant && wiring_unfinished(o))))
		return NULL;
	return s ? s : buffers_stage(c, slot, m->chunk_bytes, 0, ready);
}

/* Whether the request is a repeated one, whose streams exist. A node may have several streams of
 * one object: for its copy, and for parts of sums. */
static bool serve_known(struct control *c, struct object *o, const struct node *n,
			const struct message_substream *substream, uint32_t conn)
{
	list_each(l, after, &o->serves)
	{
		struct serve *s = list_item(l, struct serve, of_object);

		if (s->node != n || s->edge->conn != conn || s->stream != substream->stream)
			continue;
		s->asked_ns = c->now_ns;
		return true;
	}
	return false;
}

static void serve_replace(struct control *c, struct object *o, const struct node *n,
			  const struct message_stream *m)
{
	list_each(l, after, &o->serves)
	{
		struct serve *s = list_item(l, struct serve, of_object);
		bool ends = false;

		for (uint32_t i = 0; i < m->replaced; i++)
			ends |= s->node == n && s->stream == m->replaces[i];
		if (ends)
			serve_ended(c, s);
	}
}

static int serve_start(struct control *c, struct node *n, struct object *o, struct stage *head,
		       uint32_t conn, const struct message_stream *m,
		       const struct message_substream *substream)
{
	struct stage *stage = buffers_lane(head, substream->first);
	struct serve *s;

	if (substream->first + substream->count >
	    stage->first + chunk_count(stage->size, m->chunk_bytes))
		return -EINVAL;
	s = pool_take(&c->transfer->serves.pool);
	if (!s)
		return -EAGAIN;
	s->edge = buffers_out(c, stage, conn, substream, m);
	if (!s->edge) {
		pool_give(&c->transfer->serves.pool, s);
		return -EAGAIN;
	}
	s->edge->serve = s;
	s->object = o;
	s->node = n;
	s->stream = substream->stream;
	s->asked_ns = c->now_ns;
	c->transfer->serves.fed += !serve_feeds(o, n);
	list_append(&o->serves, &s->of_object);
	return 0;
}

static bool serve_range_valid(const struct control *c, uint32_t slot,
			      const struct message_stream *m)
{
	uint64_t size = c->table->slot[slot].size, chunks;

	if (m->chunk_bytes < CHUNK_BYTES_MIN || m->chunk_bytes > CHUNK_BYTES_MAX ||
	    m->chunk_bytes % 64)
		return false;
	chunks = chunk_count(size, m->chunk_bytes);
	return m->count > 0 && m->first < chunks && m->count <= chunks - m->first;
}

/* Begins the missing streams. *lanes: the number of lanes here, if the receiver assumes another. */
static int serve_begin(struct control *c, struct node *n, struct object *o,
		       const struct message_stream *m, const uint32_t *conn, uint32_t *lanes)
{
	struct stage *head = serve_stage(c, objects_slot(c, o), m);
	int error = 0;

	if (!head)
		return -EAGAIN;
	if (head->lanes != m->lanes) {
		*lanes = head->lanes;
		error = -EXDEV;
	} else if (head->chunk_bytes != m->chunk_bytes) {
		error = -EMEDIUMTYPE;
	}
	for (uint32_t i = 0; i < m->substreams && error == 0; i++)
		if (!serve_known(c, o, n, &m->substream[i], conn[i]))
			error = serve_start(c, n, o, head, conn[i], m, &m->substream[i]);
	if (error)
		buffers_settle_stage(c, head);
	else
		objects_touch(c, objects_slot(c, o));
	return error;
}

static int serve_check(struct control *c, struct node *n, uint32_t conn,
		       const struct message_stream *m, uint32_t *lanes)
{
	uint32_t slot = c->table ? slots_find(c, &m->id) : TABLE_SLOT_NONE, known = 0;
	uint32_t conns[MESSAGE_SUBSTREAMS_MAX], chunks;
	struct object *o;

	if (slot == TABLE_SLOT_NONE && idmap_find(&c->transfer->fetches.by_id, &m->id))
		return -EAGAIN; /* nobody knows when */
	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, m->generation))
		return -ENOENT;
	if (!serve_range_valid(c, slot, m))
		return -EINVAL;
	if (c->table->slot[slot].state == OBJECT_SPILLED) {
		spill_restore(c, slot);
		return -EAGAIN; /* when it is back */
	}
	o = objects_at(c, slot);
	chunks = (uint32_t)chunk_count(c->table->slot[slot].size, m->chunk_bytes);
	for (uint32_t i = 0; i < m->substreams; i++) {
		const struct message_substream *substream = &m->substream[i];
		uint32_t lane = lane_of(chunks, m->lanes, substream->first);
		const struct conn *data = serve_conn(
			c, n, conn, lane_worker(&m->id, c->workers, lane), substream->worker);

		if (!data)
			return -EAGAIN;
		conns[i] = data->handle;
		known += serve_known(c, o, n, substream, data->handle);
	}
	serve_replace(c, o, n, m);
	if (known == m->substreams)
		return 0;
	if (m->check) /* the stream has ended here: a new one needs a new edge, with fresh credit */
		return -EPIPE;
	return serve_begin(c, n, o, m, conns, lanes);
}

/* Chunks of it that are here. */
static uint32_t serve_ready(struct control *c, const struct message_stream *m)
{
	uint32_t slot = slots_find(c, &m->id);
	const struct object_slot *image = &c->table->slot[slot];
	uint64_t watermark = atomic_load_explicit(&image->watermark, memory_order_acquire);
	uint32_t chunks = (uint32_t)chunk_count(image->size, m->chunk_bytes);

	if (image->state == OBJECT_FETCHING && objects_at(c, slot)->fetch)
		return chunks -
		       chunks_missing(ranges_map(c, objects_at(c, slot)->fetch), 0, chunks);
	return watermark == image->size ? chunks : (uint32_t)(watermark / m->chunk_bytes);
}

static void serve_answer(struct control *c, struct node *n, uint32_t conn, uint64_t request,
			 const struct message_stream *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = request};

	answer.reply.status = serve_check(c, n, conn, m, &answer.reply.lanes);
	answer.reply.generation = m->generation;
	answer.reply.ready = answer.reply.status == 0 ? serve_ready(c, m) : 0;
	peers_send(c, n, &answer);
}

/* Keeps a request for an object whose own fetch here still waits for the directory's answer. */
static bool serve_keep(struct control *c, struct node *n, uint32_t conn, const struct message *m)
{
	struct idmap_node *found = idmap_find(&c->transfer->fetches.by_id, &m->stream.id);
	struct fetch *f = found ? idmap_item(found, struct fetch, by_id) : NULL;
	struct serve_early *e;

	if (!f || f->slot != TABLE_SLOT_NONE || f->state != FETCH_ASK || f->answered)
		return false;
	list_each(l, after, &f->early)
	{
		e = list_item(l, struct serve_early, of_fetch);
		if (e->node == n && e->request == m->request)
			return true; /* repeated */
	}
	e = pool_take(&c->transfer->serves.early);
	if (!e)
		return false;
	e->node = n;
	e->request = m->request;
	e->conn = conn;
	e->stream = m->stream;
	list_append(&f->early, &e->of_fetch);
	return true;
}

void serve_early(struct control *c, struct fetch *f)
{
	list_each(l, after, &f->early)
	{
		struct serve_early *e = list_item(l, struct serve_early, of_fetch);

		serve_answer(c, e->node, e->conn, e->request, &e->stream);
		list_remove(&e->of_fetch);
		pool_give(&c->transfer->serves.early, e);
	}
}

void serve_request(struct control *c, struct node *n, uint32_t conn, const struct message *m)
{
	if (!serve_keep(c, n, conn, m))
		serve_answer(c, n, conn, m->request, &m->stream);
}

/* Lists the runs of chunks in a range, as many as fit; shortens the range to those. */
static void serve_runs(struct control *c, uint32_t slot, struct message_stream *m)
{
	const struct object *o = objects_at(c, slot);
	const uint64_t *map = o->fetch ? ranges_map(c, o->fetch) : NULL;
	uint32_t at = m->first, end = m->first + m->count, stop, ready = serve_ready(c, m);

	if (!map && !o->fetch && ready > at) {
		m->skip[m->skips++] = (struct chunk_run){at, (ready < end ? ready : end) - at};
		return;
	}
	while (map && at < end) {
		if (m->skips == MESSAGE_SKIPS_MAX) {
			m->count = at - m->first;
			return;
		}
		stop = bitmap_run(map, &at, end);
		if (stop > at)
			m->skip[m->skips++] = (struct chunk_run){at, stop - at};
		at = stop;
	}
}

void serve_pieces(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_HAS, .request = m->request, .stream = m->stream};
	uint32_t slot = c->table ? slots_find(c, &m->stream.id) : TABLE_SLOT_NONE;

	answer.stream.skips = 0;
	if (slot != TABLE_SLOT_NONE && objects_is(c, slot, m->stream.generation) &&
	    serve_range_valid(c, slot, &m->stream))
		serve_runs(c, slot, &answer.stream);
	peers_send(c, n, &answer);
}
