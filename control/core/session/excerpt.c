/* SPDX-License-Identifier: BSD-3-Clause */
#include "excerpt.h"
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"

#define EXCERPT_ROOM_NS \
	UINT64_C(50000000) /* until it looks again: nobody tells of a released pin */

void excerpts_carve(struct pool *p, struct arena *a)
{
	pool_carve(p, a, sizeof(struct excerpt), EXCERPTS_MAX);
}

/* ---- the scratch object --------------------------------------------------------------------- */

static uint32_t excerpt_slot(struct control *c, const struct excerpt *e)
{
	return c->table && e->generation ? slots_find(c, &e->scratch) : TABLE_SLOT_NONE;
}

/* A client that has it pinned keeps its bytes. */
static void excerpt_drop(struct control *c, struct excerpt *e)
{
	uint32_t slot = excerpt_slot(c, e);

	e->generation = 0;
	if (slot != TABLE_SLOT_NONE)
		objects_kill(c, slot, "its ranges are not wanted any more");
}

/* A new id, which leads back to the excerpt. */
static void excerpt_name(struct control *c, struct excerpt *e)
{
	uint32_t index = pool_index(&c->session->excerpts, e);
	uint64_t draw[2] = {env_random(c), env_random(c)};

	memcpy(e->scratch.bytes, draw, sizeof(e->scratch.bytes));
	memcpy(e->scratch.bytes, &index, sizeof(index));
}

static struct excerpt *excerpt_of(struct control *c, const struct object_id *scratch)
{
	struct pool *all = &c->session->excerpts;
	struct excerpt *e;
	uint32_t index;

	memcpy(&index, scratch->bytes, sizeof(index));
	if (index >= all->fresh)
		return NULL;
	e = pool_at(all, index);
	return e->wait && e->generation && object_id_equal(&e->scratch, scratch) ? e : NULL;
}

static void excerpt_charge(struct control *c, const struct excerpt *e)
{
	uint32_t slot = excerpt_slot(c, e);

	if (slot != TABLE_SLOT_NONE && !objects_at(c, slot)->owned)
		owned_charge(c, slot, e->wait->session->client.user);
}

/* Which chunks go where. */
static void excerpt_lay_out(struct excerpt *e)
{
	struct object_ranges all = {.chunk_bytes = e->chunk_bytes};

	e->parts = 0;
	for (uint32_t i = 0; i < e->ranges; i++) {
		struct message_part *p;

		object_ranges_add(&all, &e->range[i]);
		if (all.runs == 0)
			continue;
		p = &e->part[all.runs - 1];
		*p = (struct message_part){.id = e->wait->id,
					   .generation = e->generation,
					   .first = (uint32_t)all.first,
					   .count = (uint32_t)(all.end - all.first),
					   .to = (uint32_t)all.to,
					   .size = e->size};
	}
	e->parts = all.runs;
	e->bytes = object_ranges_bytes(&all, e->size);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void excerpt_fire(struct control *c, struct timer *t);
static void excerpt_locate(struct control *c, struct excerpt *e, uint32_t failed);

static void excerpt_timer(struct control *c, struct excerpt *e, uint64_t delay_ns)
{
	timers_set(&c->timers, &e->timer, c->now_ns + delay_ns, excerpt_fire);
}

static bool excerpt_forgotten(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

/* The directory stops looking for a holder. */
static void excerpt_forget(struct control *c, const struct call *call)
{
	struct message m = {.kind = MESSAGE_GET};

	m.get.id = call->message.get.id;
	m.get.failed = MESSAGE_NODE_NONE;
	m.get.why = MESSAGE_GET_FORGET;
	m.get.generation = call->message.request;
	rpc_start(c, call->node, &m, TABLE_SLOT_NONE, c->config.call_ns, excerpt_forgotten, NULL);
}

static void excerpt_unask(struct control *c, struct excerpt *e)
{
	if (e->call && e->call->message.kind == MESSAGE_GET)
		excerpt_forget(c, e->call);
	rpc_cancel(c, e->call);
	e->call = NULL;
}

static void excerpt_pause(struct control *c, struct excerpt *e, uint64_t delay_ns)
{
	excerpt_unask(c, e);
	e->state = EXCERPT_ROOM;
	excerpt_timer(c, e, delay_ns);
}

/* As of a get: it waits for nodes of pinned replicas to answer, then for readers of this node, if
 * its time is limited. */
static void excerpt_roomless(struct control *c, struct excerpt *e, int32_t status)
{
	struct text why;

	if (e->room_ns == 0)
		e->room_ns = c->now_ns;
	if (status == -EAGAIN && c->now_ns - e->room_ns < REPLICA_ROOM_NS) {
		excerpt_pause(c, e, env_backoff(c, 1));
		return;
	}
	if (status != -EFBIG && e->wait->await.limited && objects_may_free(c, e->bytes)) {
		excerpt_pause(c, e, EXCERPT_ROOM_NS);
		return;
	}
	status = status == -EAGAIN ? -ENOSPC : status;
	objects_no_room(c, status, e->bytes, &why);
	waits_end(c, e->wait, status, why.bytes);
}

static bool excerpt_built(struct control *c, struct call *call, const struct message *answer)
{
	struct excerpt *e = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	e->call = NULL;
	if (status == -EAGAIN || status == -ENOSPC || status == -EFBIG) {
		excerpt_roomless(c, e, status);
	} else if (status < 0 && status != -ETIMEDOUT) {
		waits_end(c, e->wait, status, "its ranges cannot be brought here: get all of it");
	} else if (e->state == EXCERPT_BUILD) {
		e->room_ns = 0;
		excerpt_charge(c, e);
		excerpt_timer(c, e, c->config.coordinator_lost_ns / 4);
	}
	return false;
}

/* Tells the participant of this node what to bring, and from where. */
static void excerpt_build(struct control *c, struct excerpt *e)
{
	struct message m = {.kind = MESSAGE_COMBINE};
	struct text why;
	int error = owned_may(c, e->wait->session->client.user, e->bytes, &why);

	if (error && excerpt_slot(c, e) == TABLE_SLOT_NONE) {
		waits_end(c, e->wait, error, why.bytes);
		return;
	}
	m.combine.id = m.combine.target = e->scratch;
	m.combine.generation = e->wait->number;
	m.combine.size = e->bytes;
	m.combine.chunk_bytes = e->chunk_bytes;
	m.combine.need = m.combine.count = e->parts;
	m.combine.parts = e->part;
	m.combine.flags = MESSAGE_COMBINE_HIDDEN;
	e->state = EXCERPT_BUILD;
	e->call = rpc_start(c, c->cluster->self, &m, TABLE_SLOT_NONE, c->config.call_ns,
			    excerpt_built, e);
	if (!e->call)
		excerpt_timer(c, e, env_backoff(c, 1));
}

/* ---- the answer to the client --------------------------------------------------------------- */

/* The pin keeps the scratch object, which is no object for anybody else. */
static void excerpt_place(struct control *c, struct excerpt *e)
{
	uint32_t slot = excerpt_slot(c, e);
	struct wait *w = e->wait;
	struct session *s = w->session;
	struct session_reply r = {.op = w->op,
				  .seq = w->seq,
				  .slot = slot,
				  .chunk_bytes = e->chunk_bytes,
				  .watermark = e->size,
				  .object = e->generation};

	if (e->bytes > 0 && slot == TABLE_SLOT_NONE) { /* it was given up meanwhile */
		excerpt_locate(c, e, MESSAGE_NODE_NONE);
		return;
	}
	if (slot != TABLE_SLOT_NONE) {
		r.generation = c->table->slot[slot].generation;
		r.offset = c->table->slot[slot].offset;
		r.size = c->table->slot[slot].size;
		if (w->pin != SESSION_PIN_NONE)
			atomic_store_explicit(&s->pins[w->pin], pin_make(slot, r.generation),
					      memory_order_seq_cst);
	}
	waits_free(c, w);
	reply_send(c, s, &r);
}

static void excerpt_beyond(struct control *c, struct wait *w, const struct object_range *range,
			   uint64_t size)
{
	struct text t = {.length = 0};

	text_add(&t, "it has ");
	text_add_number(&t, size);
	text_add(&t, " bytes, and ");
	text_add_number(&t, range->bytes);
	text_add(&t, " from byte ");
	text_add_number(&t, range->offset);
	text_add(&t, " on were asked for: ask for bytes that it has");
	waits_end(c, w, -ERANGE, t.bytes);
}

/* Whether the object has the ranges, and is the one that the client has others of. If not the wait
 * has ended. */
static bool excerpt_fits(struct control *c, struct wait *w, const struct object_range *range,
			 uint32_t count, uint64_t wanted, const struct object_slot *image)
{
	if (wanted && wanted != image->generation) {
		waits_end(c, w, -ERESTART, "the object was put again: get it again");
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (object_range_fits(&range[i], image->size))
			continue;
		excerpt_beyond(c, w, &range[i], image->size);
		return false;
	}
	return true;
}

/* ---- LOCATE --------------------------------------------------------------------------------- */

static void excerpt_take_value(struct control *c, struct excerpt *e, const uint8_t *value)
{
	uint32_t slot;
	int error = objects_insert(c, &e->scratch, "", NULL, e->bytes, e->wait->number,
				   e->chunk_bytes, OBJECT_FETCHING, &slot);

	if (error) {
		excerpt_roomless(c, e, error);
		return;
	}
	objects_at(c, slot)->hidden = true;
	for (uint32_t i = 0; i < e->parts; i++) {
		const struct message_part *p = &e->part[i];
		uint64_t from = (uint64_t)p->first * e->chunk_bytes, bytes = e->size - from;

		if (bytes > (uint64_t)p->count * e->chunk_bytes)
			bytes = (uint64_t)p->count * e->chunk_bytes;
		memcpy(c->memory + c->table->slot[slot].offset + (uint64_t)p->to * e->chunk_bytes,
		       value + from, bytes);
	}
	objects_publish(c, slot, e->bytes);
	excerpt_charge(c, e);
	excerpt_place(c, e);
}

/* Some node has the object, or the directory its value. */
static void excerpt_take(struct control *c, struct excerpt *e, const struct message_got *got)
{
	struct object_slot image = {.generation = got->generation, .size = got->size};

	if (!objects_valid(got->generation, got->size, got->chunk_bytes) ||
	    (got->what == MESSAGE_GOT_VALUE && got->value_bytes != got->size)) {
		waits_end(c, e->wait, -EPROTO,
			  "the directory's answer does not hold: use nodes of one version");
		return;
	}
	if (!excerpt_fits(c, e->wait, e->range, e->ranges, e->wanted, &image))
		return;
	if (e->generation != got->generation) {
		excerpt_drop(c, e);
		excerpt_name(c, e);
		e->generation = got->generation;
		e->size = got->size;
		e->chunk_bytes = got->chunk_bytes;
		excerpt_lay_out(e);
	}
	for (uint32_t i = 0; i < e->parts; i++)
		e->part[i].node = got->holder;
	e->gone = false;
	if (e->bytes == 0) {
		excerpt_place(c, e);
	} else if (got->what == MESSAGE_GOT_HOLDER) {
		excerpt_build(c, e);
	} else {
		excerpt_drop(c, e); /* what has come of it */
		e->generation = got->generation;
		excerpt_take_value(c, e, got->value);
	}
}

/* Nobody can send it now. Returns whether the LOCATE stays open. */
static bool excerpt_absent(struct control *c, struct excerpt *e, struct call *call,
			   const struct message_got *got)
{
	bool nowait = e->wait->await.nowait;

	e->absent = got->what == MESSAGE_GOT_UNKNOWN;
	e->lost = got->lost;
	call->message.get.failed = MESSAGE_NODE_NONE; /* it may be back: a repeated LOCATE */
	if (!(e->absent && e->gone) && !(nowait && (e->absent || e->lost)))
		return true;
	excerpt_forget(c, call);
	e->call = NULL;
	if (e->absent && e->gone)
		waits_end(c, e->wait, -ESTALE, "the object was deleted: get it again");
	else if (e->lost)
		waits_end(c, e->wait, -ENODATA, "lost with its node: put it again");
	else
		session_absent(c, e->wait, -ENOENT,
			       *got->text ? got->text
					  : "no such object: wait for it with a timeout, or put "
					    "it");
	return false;
}

static bool excerpt_located(struct control *c, struct call *call, const struct message *answer)
{
	struct excerpt *e = call->owner;
	const struct message_got *got = &answer->got; /* no deadline: never NULL */

	switch (got->what) {
	case MESSAGE_GOT_UNKNOWN:
	case MESSAGE_GOT_WAIT:
		return excerpt_absent(c, e, call, got);
	case MESSAGE_GOT_HOLDER:
	case MESSAGE_GOT_VALUE:
		e->call = NULL;
		excerpt_take(c, e, got);
		return false;
	default:
		e->call = NULL;
		waits_end(c, e->wait, got->status < 0 ? got->status : -EPROTO, got->text);
		return false;
	}
}

/* A value comes along when the ranges are all of it. */
static uint32_t excerpt_value_max(const struct excerpt *e)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < e->ranges; i++)
		bytes += e->range[i].bytes;
	return bytes < OBJECT_INLINE_MAX ? (uint32_t)bytes : OBJECT_INLINE_MAX;
}

static void excerpt_locate(struct control *c, struct excerpt *e, uint32_t failed)
{
	struct message m = {.kind = MESSAGE_GET};

	excerpt_unask(c, e);
	timers_cancel(&c->timers, &e->timer);
	e->state = EXCERPT_LOCATE;
	m.get.id = e->wait->id;
	m.get.generation = e->generation;
	m.get.failed = failed;
	m.get.why = MESSAGE_GET_LOCATE;
	m.get.value_max = excerpt_value_max(e);
	e->call = rpc_start(c, ownership_shard(c, &e->wait->id), &m, TABLE_SLOT_NONE, UINT64_MAX,
			    excerpt_located, e);
	if (!e->call) {
		e->state = EXCERPT_ROOM;
		excerpt_timer(c, e, env_backoff(c, 1));
	}
}

bool excerpt_calls(const struct call *call)
{
	return call->end == excerpt_located || call->end == excerpt_built;
}

/* ---- COMBINED ------------------------------------------------------------------------------- */

static void excerpt_fire(struct control *c, struct timer *t)
{
	struct excerpt *e = list_item(t, struct excerpt, timer);

	if (e->state == EXCERPT_READY)
		excerpt_place(c, e);
	else if (e->state == EXCERPT_BUILD)
		excerpt_build(c, e); /* a sign of life */
	else
		excerpt_locate(c, e, MESSAGE_NODE_NONE);
}

bool excerpt_combined(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct excerpt *e = n == c->cluster->self ? excerpt_of(c, &m->combined.id) : NULL;
	uint32_t node = m->combined.part_node;

	if (!e)
		return false;
	peers_send(c, n, &answer);
	if (m->combined.what == MESSAGE_COMBINED_DONE) {
		excerpt_unask(c, e);
		e->state = EXCERPT_READY;
		excerpt_timer(c, e, 0); /* behind the answer to the participant */
	} else if (e->state == EXCERPT_BUILD && node != MESSAGE_NODE_NONE &&
		   (m->combined.what == MESSAGE_COMBINED_LOST ||
		    m->combined.what == MESSAGE_COMBINED_SILENT)) {
		c->counters.failovers++;
		e->gone |= m->combined.status == -ENOENT;
		excerpt_locate(c, e, node);
	}
	return true;
}

/* ---- begin and end -------------------------------------------------------------------------- */

void excerpt_end(struct control *c, struct wait *w)
{
	struct excerpt *e = w->excerpt;

	w->excerpt = NULL;
	excerpt_unask(c, e);
	timers_cancel(&c->timers, &e->timer);
	excerpt_drop(c, e);
	e->wait = NULL;
	pool_give(&c->session->excerpts, e);
}

int32_t excerpt_late(struct control *c, const struct wait *w, struct text *why)
{
	const struct excerpt *e = w->excerpt;

	*why = (struct text){.length = 0};
	if (e->room_ns) {
		objects_no_room(c, -ENOSPC, e->bytes, why);
		return -ENOSPC;
	}
	if (e->lost) {
		text_add(why, "lost with node ");
		text_add_number(why, e->lost - 1);
		text_add(why, ": put it again");
		return -ENODATA;
	}
	text_add(why, e->absent ? "nobody has put such an object yet: wait longer, or put it"
				: "its ranges are not here yet: wait longer");
	return -ETIMEDOUT;
}

/* The object is here, as a whole or in part: the ranges are read from it. */
static void session_get_ranges_here(struct control *c, struct wait *w, uint32_t slot,
				    const struct object_range *range, uint32_t count,
				    const struct session_request *r)
{
	const struct object_slot *image = &c->table->slot[slot];
	bool spilled = image->state == OBJECT_SPILLED;
	int64_t timeout_ns =
		spilled && w->await.nowait ? (int64_t)c->config.directory_ns : r->timeout_ns;

	if (!excerpt_fits(c, w, range, count, r->generation, image))
		return;
	w->object = objects_at(c, slot);
	for (uint32_t i = 0; i < count; i++)
		if (range[i].offset + range[i].bytes > w->watermark)
			w->watermark = range[i].offset + range[i].bytes;
	list_append(&w->object->waits, &w->await.link);
	waits_timeout(c, w, timeout_ns);
	if (image->state == OBJECT_FETCHING || w->object->participant)
		waits_poll(c, w);
	if (spilled)
		spill_restore(c, slot);
	else
		waits_check_object(c, w->object);
}

void session_get_ranges(struct control *c, struct session *s, const struct session_request *r,
			const uint8_t *ranges)
{
	uint32_t slot = slots_find(c, &r->id),
		 count = (uint32_t)(r->size / sizeof(struct object_range));
	struct wait *w = waits_start(c, s, r);
	struct object_range range[SESSION_RANGES_MAX];
	struct excerpt *e;

	if (!w)
		return;
	memcpy(range, ranges, r->size);
	w->await.nowait = r->timeout_ns == 0;
	w->await.limited = r->timeout_ns > 0;
	if (slot != TABLE_SLOT_NONE) {
		session_get_ranges_here(c, w, slot, range, count, r);
		return;
	}
	e = pool_take(&c->session->excerpts);
	if (!e) {
		waits_end(c, w, -EAGAIN,
			  "too many ranges arrive at this node at a time: try again later");
		return;
	}
	e->wait = w;
	e->wanted = r->generation;
	e->ranges = count;
	memcpy(e->range, range, r->size);
	w->excerpt = e;
	waits_timeout(c, w, w->await.nowait ? (int64_t)c->config.directory_ns : r->timeout_ns);
	excerpt_locate(c, e, MESSAGE_NODE_NONE);
}
