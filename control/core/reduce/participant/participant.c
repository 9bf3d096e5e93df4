/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "internal/reduce.h"
#include "core/transfer/fetch.h"
#include "room.h"

void combines_carve(struct combines *cs, struct arena *a, const struct control_config *config)
{
	pool_carve(&cs->pool, a, sizeof(struct combine), config->combines_max);
	pool_carve(&cs->parts, a, sizeof(struct part), config->parts_max);
	idmap_carve(&cs->by_id, a, config->combines_max);
}

struct combine *combine_of(struct control *c, const struct object_id *id)
{
	struct idmap_node *known = idmap_find(&c->participant->combines.by_id, id);

	return known ? idmap_item(known, struct combine, by_id) : NULL;
}

uint32_t combine_chunks(const struct combine *k)
{
	return (uint32_t)chunk_count(k->size, k->chunk_bytes);
}

struct stage *combine_stage(struct control *c, struct combine *k)
{
	struct stage *s = objects_at(c, k->slot)->stage;
	uint32_t chunks = combine_chunks(k), bitmap;

	if (s)
		return s;
	bitmap = k->sum.op ? buffers_bitmap_counted(c, chunks, k->sum.need)
			   : buffers_bitmap(c, chunks);
	if (bitmap == 0)
		return NULL;
	s = buffers_stage_sum(c, k->slot, k->chunk_bytes, bitmap, &k->sum);
	if (s == NULL)
		allocator_give(&c->flow->buffers.scratch, bitmap);
	return s;
}

/* ---- telling the coordinator ---------------------------------------------------------------- */

static void combine_untold(struct combine *k)
{
	list_each(l, after, &k->parts) list_item(l, struct part, of_combine)->told = false;
	k->told = false;
}

static bool combine_told(struct control *c, struct call *call, const struct message *answer)
{
	struct combine *k = call->owner;

	k->call = NULL;
	if (answer == NULL) { /* it will ask, or be forgotten */
		combine_untold(k);
		return false;
	}
	if (answer->reply.status == -ESTALE && k->hidden && !k->done) {
		combine_give_up(c, k, false, "its reduce does without it");
		return false;
	}
	if (answer->reply.status == 0 && combine_chosen(k))
		combine_heard(c, k);
	combine_report(c, k);
	return false;
}

static void combine_name_part(struct message_combined *m, const struct part *p)
{
	m->part_node = p->node->number;
	m->part_id = p->id;
	m->part_generation = p->generation;
}

static bool combine_news_silent(struct combine *k, struct message_combined *m)
{
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_combine);

		if (!p->silent)
			continue;
		m->what = MESSAGE_COMBINED_SILENT;
		combine_name_part(m, p);
		p->silent = false;
		return true;
	}
	return false;
}

/* The most urgent news: what is lost, then that all is done, then that it begins again, then parts.
 * Sets it as told. */
static bool combine_news(struct combine *k, struct message_combined *m)
{
	struct part *done = NULL;

	if ((k->lost || k->done) && !k->told) {
		m->what = k->lost ? MESSAGE_COMBINED_LOST : MESSAGE_COMBINED_DONE;
		m->status = k->lost;
		m->part_node = MESSAGE_NODE_NONE;
		return k->told = true;
	}
	if (k->asks) {
		m->what = MESSAGE_COMBINED_AGAIN;
		m->part_node = MESSAGE_NODE_NONE;
		k->asks = false;
		return true;
	}
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_combine);

		if (p->told || p->state < PART_DONE)
			continue;
		if (done == NULL || p->state == PART_LOST)
			done = p;
	}
	if (done == NULL)
		return combine_news_silent(k, m);
	m->what = done->state == PART_LOST ? MESSAGE_COMBINED_LOST : MESSAGE_COMBINED_PART;
	combine_name_part(m, done);
	m->status = done->state == PART_LOST ? done->status : 0;
	return done->told = true;
}

void combine_report(struct control *c, struct combine *k)
{
	struct message m = {.kind = MESSAGE_COMBINED};

	if (k->call)
		return;
	m.combined.id = k->by_id.id;
	m.combined.generation = k->generation;
	m.combined.target = k->target;
	m.combined.reduce = k->reduce;
	if (!combine_news(k, &m.combined))
		return;
	k->call = calls_start(c, k->coordinator, &m, TABLE_SLOT_NONE, c->config.orphan_ns,
			      combine_told, k);
	if (k->call == NULL) /* too many: with the next COMBINE */
		combine_untold(k);
}

/* ---- beginning and ending ------------------------------------------------------------------- */

static void combine_free(struct control *c, struct combine *k)
{
	calls_cancel(c, k->call);
	timers_cancel(&c->timers, &k->orphan);
	timers_cancel(&c->timers, &k->ask);
	list_each(l, after, &k->parts) part_free(c, list_item(l, struct part, of_combine));
	take_given_up(c, k);
	list_remove(&k->active);
	idmap_remove(&c->participant->combines.by_id, &k->by_id);
	pool_give(&c->participant->combines.pool, k);
}

void combine_killed(struct control *c, struct combine *k)
{
	if (!k->sealed) /* else the slot may be another's by now */
		objects_at(c, k->slot)->combine = NULL;
	combine_free(c, k);
}

/* Whether the target that it has completed still is the object in its slot. */
static bool combine_stands(struct control *c, const struct combine *k)
{
	return objects_is(c, k->slot, k->generation) &&
	       object_id_equal(&c->table->slot[k->slot].id, &k->by_id.id);
}

/* status: -ERESTART, another one may take its place; -ECANCELED, somebody has ended its reduce. */
static void combine_drop(struct control *c, struct combine *k, bool anew, int32_t status,
			 const char *why)
{
	uint32_t slot = k->slot;
	struct object_id id = k->by_id.id;
	uint64_t generation = k->generation;
	bool hidden = k->hidden, keep = k->sealed && !(anew && combine_stands(c, k));

	combine_killed(c, k);
	if (keep)
		return;
	if (status == -ECANCELED)
		objects_cancel(c, slot, why);
	else
		objects_replace(c, slot, why);
	if (!hidden)
		objects_disown(c, &id, generation);
}

void combine_give_up(struct control *c, struct combine *k, bool anew, const char *why)
{
	combine_drop(c, k, anew, -ERESTART, why);
}

static void combine_seal(struct control *c, struct combine *k)
{
	struct stage *s = objects_at(c, k->slot)->stage;

	k->sealed = true;
	objects_at(c, k->slot)->combine = NULL;
	/* what was put together from stripes is a copy as others; the directory names one that must
	 * stay */
	objects_seal(c, k->slot, k->sum.op != 0);
	objects_announce(c, k->slot);
	if (s)
		buffers_settle_stage(c, s);
}

/* What came over the link, for the model by which trees are made: it shows no more than the link
 * can, and less where sources were waited for. */
static void combine_measure(struct control *c, const struct combine *k)
{
	uint64_t chunks = 0, rate;

	list_each(l, after, &k->parts) chunks += list_item(l, struct part, of_combine)->shown;
	if (chunks == 0)
		return;
	rate = fanout_rate(&c->cluster->links.all, chunks * k->chunk_bytes,
			   c->now_ns - k->flows_ns);
	if (rate == 0)
		return;
	linkstats_saw_rate(&c->cluster->links, c->cluster->self->number, MESSAGE_NODE_NONE, rate,
			   0);
	objects_at(c, k->slot)->rate = rate;
}

void combine_done(struct control *c, struct combine *k)
{
	k->done = true;
	combine_measure(c, k);
	list_each(l, after, &k->parts) part_end(c, list_item(l, struct part, of_combine));
	if (!k->hidden && !k->held)
		combine_seal(c, k);
	else
		objects_progress(c, k->slot); /* whoever reads it through a stage of its own */
	if (combine_chosen(k))
		combine_wait(c, k);
	combine_report(c, k);
}

static void combine_let_go(struct control *c, struct combine *k)
{
	struct stage *s = objects_at(c, k->slot)->stage;

	if (!k->held)
		return;
	k->held = k->sum.hold = false;
	if (s)
		buffers_finish(c, s);
	if (k->done)
		combine_seal(c, k);
}

/* Nothing that was added up can be trusted. A hidden object is built again from the same parts: the
 * same set. Of one that has readers they may have seen bytes: the coordinator decides. */
void combine_stage_lost(struct control *c, struct combine *k)
{
	if (k->done)
		return; /* all of it is in the store */
	list_each(l, after, &k->parts) part_restart(c, list_item(l, struct part, of_combine));
	k->flows_ns = 0;
	k->asks = k->hidden;
	if (!k->hidden || c->attached)
		k->lost = -ESTALE;
	k->told = false;
}

void combine_reset(struct control *c)
{
	list_each(l, after, &c->participant->combines.active)
	{
		combine_free(c, list_item(l, struct combine, active));
	}
}

void combine_node_down(struct control *c, const struct node *n)
{
	list_each(i, after, &c->participant->combines.active)
	{
		struct combine *k = list_item(i, struct combine, active);

		list_each(j, next, &k->parts)
		{
			struct part *p = list_item(j, struct part, of_combine);

			if (p->state != PART_LINK || p->node != n)
				continue;
			timers_cancel(&c->timers, &p->timer);
			part_start(c, p);
		}
	}
}

bool combine_wants(struct control *c, const struct link *l)
{
	list_each(i, after, &c->participant->combines.active)
	{
		const struct combine *k = list_item(i, struct combine, active);

		list_each(j, next, &k->parts)
		{
			const struct part *p = list_item(j, struct part, of_combine);

			if (p->state == PART_LINK && p->node == l->node)
				return true;
		}
	}
	return false;
}

void combine_node_up(struct control *c, struct node *n)
{
	list_each(i, after, &c->participant->combines.active)
	{
		struct combine *k = list_item(i, struct combine, active);

		list_each(j, next, &k->parts)
		{
			struct part *p = list_item(j, struct part, of_combine);

			if (p->state == PART_LINK && (p->node == n || n == c->cluster->self))
				part_start(c, p);
		}
		if (n == c->cluster->self)
			combine_report(c, k);
	}
}

/* ---- COMBINE -------------------------------------------------------------------------------- */

/* Whether the part is a range of its object, and of what is built. */
static bool combine_check_part(struct control *c, const struct message_combine *m,
			       const struct message_part *p)
{
	uint64_t chunks = chunk_count(m->size, m->chunk_bytes);

	if (peers_node(c, p->node) == NULL || p->count == 0 || p->to >= chunks ||
	    p->count > chunks - p->to || (m->op && p->count != chunks) ||
	    (m->flags & MESSAGE_COMBINE_VALUES && p->count > OBJECT_INLINE_MAX / m->chunk_bytes))
		return false;
	if (p->size == 0)
		return p->first == 0;
	return (uint64_t)p->first + p->count <= chunk_count(p->size, m->chunk_bytes);
}

/* 0, or -EINVAL when what a COMBINE says cannot be. */
static int combine_check(struct control *c, const struct message_combine *m)
{
	uint32_t element = m->op ? reduce_dtype_bytes(m->dtype) : 1;
	uint32_t both = MESSAGE_COMBINE_HIDDEN | MESSAGE_COMBINE_HOLD;

	if ((m->op && !reduce_op_valid(m->op)) || element == 0 || m->size % element)
		return -EINVAL;
	if (m->flags & ~(uint32_t)(both | MESSAGE_COMBINE_VALUES | MESSAGE_COMBINE_LENT) ||
	    (m->flags & both) == both)
		return -EINVAL;
	if (m->generation == 0 || m->size == 0 || m->chunk_bytes < CHUNK_BYTES_MIN ||
	    m->chunk_bytes > CHUNK_BYTES_MAX || m->chunk_bytes % 64 || m->need == 0 ||
	    m->need > MESSAGE_PARTS_MAX || m->count > m->need || m->scale > UINT16_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < m->count; i++)
		if (!combine_check_part(c, m, &m->parts[i]))
			return -EINVAL;
	return 0;
}

/* The directory keeps the id for this reduce: what else is here under it is a copy of what the
 * target was before; or the directory has yet to hear of it, and to say which of the two stays. */
static int combine_free_id(struct control *c, const struct object_id *id)
{
	uint32_t slot = objects_find(c, id);
	const struct object_slot *s;

	if (slot == TABLE_SLOT_NONE)
		return 0;
	s = &c->table->slot[slot];
	if (s->state == OBJECT_CREATING ||
	    (s->state == OBJECT_SEALED && s->flags & OBJECT_FLAG_PRIMARY) ||
	    s->state == OBJECT_SPILLED)
		return -EAGAIN;
	objects_replace(c, slot, "the object is made anew: get it again");
	return 0;
}

static int combine_make(struct control *c, struct node *n, const struct message_combine *m,
			struct combine **out)
{
	struct combine *k;
	uint32_t slot;
	int error = combine_free_id(c, &m->id);

	if (error)
		return error;
	k = pool_take(&c->participant->combines.pool);
	if (k == NULL)
		return -EAGAIN;
	error = objects_insert(c, &m->id, m->name, m->size, m->generation, m->chunk_bytes,
			       OBJECT_CREATING, &slot);
	if (error) {
		pool_give(&c->participant->combines.pool, k);
		return error;
	}
	list_init(&k->parts);
	list_init(&k->takes);
	list_append(&c->participant->combines.active, &k->active);
	idmap_insert(&c->participant->combines.by_id, &k->by_id, &m->id);
	k->coordinator = n;
	k->target = m->target;
	k->held = m->flags & MESSAGE_COMBINE_HOLD;
	k->sum = (struct buffer_sum){m->op, m->dtype, m->op ? m->need : 1, m->scale, k->held};
	k->reduce = m->reduce;
	k->generation = m->generation;
	k->size = m->size;
	k->slot = slot;
	k->chunk_bytes = m->chunk_bytes;
	k->hidden = m->flags & MESSAGE_COMBINE_HIDDEN;
	k->lent = m->flags & MESSAGE_COMBINE_LENT;
	k->values = m->flags & MESSAGE_COMBINE_VALUES;
	for (uint32_t i = 0; i < m->count; i++)
		k->offered |= m->parts[i].node == c->cluster->self->number;
	k->need = m->op ? m->need : combine_chunks(k);
	objects_at(c, slot)->combine = k;
	objects_at(c, slot)->hidden = k->hidden;
	objects_at(c, slot)->gathered = m->op == 0;
	/* At once, so that others can be attached before the first byte is here. */
	if (c->attached && !k->values)
		combine_stage(c, k);
	if (!k->hidden)
		fetch_superseded(c, &m->id, slot);
	if (k->values)
		take_begun(c, k); /* nobody can be fed from it before it is complete */
	else
		objects_announce(c, slot);
	*out = k;
	return 0;
}

static bool combine_is_source(const struct part *p, const struct message_part *m)
{
	return p->node->number == m->node && object_id_equal(&p->id, &m->id) &&
	       p->generation == m->generation;
}

/* A part of what is added up is its source; of what is put together, its place. */
static struct part *combine_part(const struct combine *k, const struct message_part *m)
{
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_combine);

		if (p->to == m->to && (k->sum.op == 0 || combine_is_source(p, m)))
			return p;
	}
	return NULL;
}

static int combine_parts(struct control *c, struct combine *k, const struct message_combine *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		struct part *p = combine_part(k, &m->parts[i]);

		if (p) {
			if (!combine_is_source(p, &m->parts[i]) && p->count == m->parts[i].count)
				part_move(c, p, &m->parts[i]);
			continue;
		}
		if (k->sum.op && k->count >= k->sum.need)
			return -EPROTO;
		p = part_add(c, k, &m->parts[i]);
		if (p == NULL)
			return -EAGAIN;
		part_start(c, p);
	}
	return 0;
}

/* Parts were checked against what the message says of the whole. */
static bool combine_is(const struct combine *k, const struct message_combine *m)
{
	return k->size == m->size && k->chunk_bytes == m->chunk_bytes && k->sum.op == m->op &&
	       k->values == (bool)(m->flags & MESSAGE_COMBINE_VALUES);
}

/* What is built under this id now gives way to a newer generation of the same reduce, and to any
 * other reduce of the one who coordinates the target now. The directory's node and the one who has
 * asked may both think so: then it is the later generation. */
static int combine_find(struct control *c, struct node *n, const struct message_combine *m,
			struct combine **out)
{
	struct combine *k = combine_of(c, &m->id);
	bool again = k && k->coordinator == n && k->reduce == m->reduce;
	bool led = k && (k->lent || m->flags & MESSAGE_COMBINE_LENT);
	int error;

	if ((again || led) && k->generation > m->generation)
		return -ESTALE;
	if (again && k->generation == m->generation) {
		*out = k;
		return combine_is(k, m) ? 0 : -EPROTO;
	}
	if (k)
		combine_give_up(c, k, again, "its reduce began again: get it again");
	error = combine_make(c, n, m, out);
	if (error == 0 && again)
		(*out)->offered = false; /* what has not changed was before */
	return error;
}

void combine_request(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct combine *k = NULL;
	int error = combine_check(c, &m->combine);

	if (error == 0 && (c->table == NULL || (!(m->combine.flags & MESSAGE_COMBINE_LENT) &&
						control_shard(c, &m->combine.target) != n)))
		error = -EAGAIN;
	if (error == 0)
		error = combine_find(c, n, &m->combine, &k);
	if (error == 0) {
		k->lent = m->combine.flags & MESSAGE_COMBINE_LENT;
		combine_heard(c, k);
		if (k->done) /* who asks again no longer counts on it */
			k->told = false;
		if (!(m->combine.flags & MESSAGE_COMBINE_HOLD))
			combine_let_go(c, k);
		error = combine_parts(c, k, &m->combine);
		if (error == 0 && k->values)
			offer_begun(c, k);
		if (error)
			combine_give_up(c, k, false, "it cannot be built here: get it again");
		else
			combine_report(c, k);
	}
	answer.reply.status = error;
	answer.reply.generation = m->combine.generation;
	peers_send(c, n, &answer);
}

void combine_release(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	list_each(l, after, &c->participant->combines.active)
	{
		struct combine *k = list_item(l, struct combine, active);

		if (k->coordinator != n || k->reduce != m->combined.reduce ||
		    !object_id_equal(&k->target, &m->combined.target))
			continue;
		if (!k->hidden && k->done && k->generation == m->combined.generation) {
			if (m->combined.what && k->held)
				continue; /* it may be the result: FINISH will come, or nobody */
			combine_let_go(c, k);
		}
		if (m->combined.status == -ECANCELED)
			combine_drop(c, k, false, -ECANCELED,
				     "the reduce was cancelled by rm: reduce again");
		else
			combine_give_up(c, k, false, "its reduce has ended: get it again");
	}
	peers_send(c, n, &answer);
}

void combine_finish(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct combine *k = combine_of(c, &m->combined.target);
	uint32_t slot = c->table ? objects_find(c, &m->combined.target) : TABLE_SLOT_NONE;
	bool known = k && k->generation == m->combined.generation;

	if (known)
		combine_let_go(c, k);
	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, m->combined.generation) ||
	    c->table->slot[slot].state != OBJECT_SEALED)
		answer.reply.status = known ? -EAGAIN : -ENOENT;
	answer.reply.generation = m->combined.generation;
	peers_send(c, n, &answer);
}
