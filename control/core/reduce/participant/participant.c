/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * COMBINE, RELEASE and FINISH at a participant, and COMBINED to its coordinator. The parts are
 * input.c's, leases are lease.c's.
 */
#include <errno.h>
#include "internal/reduce.h"
#include "core/transfer/fetch.h"
#include "state.h"

void participants_carve(struct participants *cs, struct arena *a,
			const struct control_config *config)
{
	pool_carve(&cs->pool, a, sizeof(struct participant), config->participants_max);
	pool_carve(&cs->parts, a, sizeof(struct part), config->parts_max);
	idmap_carve(&cs->by_id, a, config->participants_max);
}

struct participant *participant_of(struct control *c, const struct object_id *id)
{
	struct idmap_node *known = idmap_find(&c->participant->participants.by_id, id);

	return known ? idmap_item(known, struct participant, by_id) : NULL;
}

uint32_t participant_chunks(const struct participant *k)
{
	return (uint32_t)chunk_count(k->size, k->chunk_bytes);
}

struct stage *participant_stage(struct control *c, struct participant *k)
{
	struct stage *s = objects_at(c, k->slot)->stage;
	uint32_t chunks = participant_chunks(k), bitmap;

	if (s)
		return s;
	bitmap = k->sum.op ? buffers_bitmap_counted(c, chunks, k->sum.need)
			   : buffers_bitmap(c, chunks);
	if (bitmap == 0)
		return NULL;
	s = buffers_stage_sum(c, k->slot, k->chunk_bytes, bitmap, &k->sum);
	if (!s)
		allocator_give(&c->flow->buffers.scratch, bitmap);
	return s;
}

/* ---- COMBINED ------------------------------------------------------------------------------- */

static void participant_unacked(struct participant *k)
{
	list_each(l, after, &k->parts) list_item(l, struct part, of_participant)->acked = false;
	k->acked = false;
}

static bool participant_acked(struct control *c, struct call *call, const struct message *answer)
{
	struct participant *k = call->owner;

	k->call = NULL;
	if (!answer) { /* it sends COMBINE again, or is gone */
		participant_unacked(k);
		return false;
	}
	if (answer->reply.status == -ESTALE && k->hidden && !k->done) {
		participant_give_up(c, k, false, "its reduce does without it");
		return false;
	}
	if (answer->reply.status == 0 && participant_chosen(k))
		participant_heard(c, k);
	participant_report(c, k);
	return false;
}

static void participant_name_part(struct message_combined *m, const struct part *p)
{
	m->part_node = p->node->number;
	m->part_id = p->id;
	m->part_generation = p->generation;
}

static bool participant_news_silent(struct participant *k, struct message_combined *m)
{
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_participant);

		if (!p->silent)
			continue;
		m->what = MESSAGE_COMBINED_SILENT;
		participant_name_part(m, p);
		p->silent = false;
		return true;
	}
	return false;
}

/* Fills in the most urgent report, and marks it acknowledged: a loss, then completion, then a
 * restart, then parts. False: there is nothing to report. */
static bool participant_news(struct participant *k, struct message_combined *m)
{
	struct part *done = NULL;

	if ((k->lost || k->done) && !k->acked) {
		m->what = k->lost ? MESSAGE_COMBINED_LOST : MESSAGE_COMBINED_DONE;
		m->status = k->lost;
		m->part_node = MESSAGE_NODE_NONE;
		return k->acked = true;
	}
	if (k->asks) {
		m->what = MESSAGE_COMBINED_RESTARTED;
		m->part_node = MESSAGE_NODE_NONE;
		k->asks = false;
		return true;
	}
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_participant);

		if (p->acked || p->state < PART_DONE)
			continue;
		if (!done || p->state == PART_LOST)
			done = p;
	}
	if (!done)
		return participant_news_silent(k, m);
	m->what = done->state == PART_LOST ? MESSAGE_COMBINED_LOST : MESSAGE_COMBINED_PART;
	participant_name_part(m, done);
	m->status = done->state == PART_LOST ? done->status : 0;
	return done->acked = true;
}

void participant_report(struct control *c, struct participant *k)
{
	struct message m = {.kind = MESSAGE_COMBINED};

	if (k->call)
		return;
	m.combined.id = k->by_id.id;
	m.combined.generation = k->generation;
	m.combined.target = k->target;
	m.combined.reduce = k->reduce;
	if (!participant_news(k, &m.combined))
		return;
	k->call = rpc_start(c, k->coordinator, &m, TABLE_SLOT_NONE, c->config.coordinator_lost_ns,
			    participant_acked, k);
	if (!k->call) /* too many calls: the next COMBINE repeats it */
		participant_unacked(k);
}

/* ---- beginning and ending ------------------------------------------------------------------- */

static void participant_free(struct control *c, struct participant *k)
{
	rpc_cancel(c, k->call);
	timers_cancel(&c->timers, &k->lease);
	timers_cancel(&c->timers, &k->ask);
	list_each(l, after, &k->parts) input_free(c, list_item(l, struct part, of_participant));
	pull_given_up(c, k);
	list_remove(&k->active);
	idmap_remove(&c->participant->participants.by_id, &k->by_id);
	pool_give(&c->participant->participants.pool, k);
}

void participant_killed(struct control *c, struct participant *k)
{
	if (!k->sealed) /* else the slot may have another object by now */
		objects_at(c, k->slot)->participant = NULL;
	participant_free(c, k);
}

/* Whether the target that it completed still is the object in the slot. */
static bool participant_stands(struct control *c, const struct participant *k)
{
	return objects_is(c, k->slot, k->generation) &&
	       object_id_equal(&c->table->slot[k->slot].id, &k->by_id.id);
}

/* status: -ERESTART, another generation may follow; -ECANCELED, a client has cancelled the reduce.
 */
static void participant_drop(struct control *c, struct participant *k, bool restart, int32_t status,
			     const char *why)
{
	uint32_t slot = k->slot;
	struct object_id id = k->by_id.id;
	uint64_t generation = k->generation;
	bool hidden = k->hidden, keep = k->sealed && !(restart && participant_stands(c, k));

	participant_killed(c, k);
	if (keep)
		return;
	if (status == -ECANCELED)
		objects_cancel(c, slot, why);
	else
		objects_replace(c, slot, why);
	if (!hidden)
		announce_disown(c, &id, generation);
}

void participant_give_up(struct control *c, struct participant *k, bool restart, const char *why)
{
	participant_drop(c, k, restart, -ERESTART, why);
}

static void participant_seal(struct control *c, struct participant *k)
{
	struct stage *s = objects_at(c, k->slot)->stage;

	k->sealed = true;
	objects_at(c, k->slot)->participant = NULL;
	/* a target assembled from segments is an ordinary copy: the directory appoints the pinned
	 * replica */
	objects_seal(c, k->slot, k->sum.op != 0);
	announce_object(c, k->slot);
	if (s)
		buffers_settle_stage(c, s);
}

/* Reports the rate of the incoming bytes to the cost model. It is a lower bound of the link's rate:
 * time in which sources were waited for counts, too. */
static void participant_measure(struct control *c, const struct participant *k)
{
	uint64_t chunks = 0, rate;

	list_each(l, after, &k->parts) chunks += list_item(l, struct part, of_participant)->shown;
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

void participant_done(struct control *c, struct participant *k)
{
	k->done = true;
	participant_measure(c, k);
	list_each(l, after, &k->parts) input_end(c, list_item(l, struct part, of_participant));
	if (!k->hidden && !k->withheld)
		participant_seal(c, k);
	else
		objects_progress(c, k->slot); /* for readers with a stage of their own */
	if (participant_chosen(k))
		participant_wait(c, k);
	participant_report(c, k);
}

static void participant_let_go(struct control *c, struct participant *k)
{
	struct stage *s = objects_at(c, k->slot)->stage;

	if (!k->withheld)
		return;
	k->withheld = k->sum.withhold = false;
	if (s)
		buffers_finish(c, s);
	if (k->done)
		participant_seal(c, k);
}

/* The partial sum is lost with its worker. A hidden object is rebuilt from the same parts, so it
 * has the same contributions. Readers of the target may have seen some bytes: there the coordinator
 * decides. */
void participant_stage_lost(struct control *c, struct participant *k)
{
	if (k->done)
		return; /* all of it is in the store */
	list_each(l, after, &k->parts) input_restart(c, list_item(l, struct part, of_participant));
	k->flows_ns = 0;
	k->asks = k->hidden;
	if (!k->hidden || c->attached)
		k->lost = -ESTALE;
	k->acked = false;
}

void participant_reset(struct control *c)
{
	list_each(l, after, &c->participant->participants.active)
	{
		participant_free(c, list_item(l, struct participant, active));
	}
}

void participant_node_down(struct control *c, const struct node *n)
{
	list_each(i, after, &c->participant->participants.active)
	{
		struct participant *k = list_item(i, struct participant, active);

		list_each(j, next, &k->parts)
		{
			struct part *p = list_item(j, struct part, of_participant);

			if (p->state != PART_LINK || p->node != n)
				continue;
			timers_cancel(&c->timers, &p->timer);
			input_start(c, p);
		}
	}
}

bool participant_wants(struct control *c, const struct link *l)
{
	list_each(i, after, &c->participant->participants.active)
	{
		const struct participant *k = list_item(i, struct participant, active);

		list_each(j, next, &k->parts)
		{
			const struct part *p = list_item(j, struct part, of_participant);

			if (p->state == PART_LINK && p->node == l->node)
				return true;
		}
	}
	return false;
}

void participant_node_up(struct control *c, struct node *n)
{
	list_each(i, after, &c->participant->participants.active)
	{
		struct participant *k = list_item(i, struct participant, active);

		list_each(j, next, &k->parts)
		{
			struct part *p = list_item(j, struct part, of_participant);

			if (p->state == PART_LINK && (p->node == n || n == c->cluster->self))
				input_start(c, p);
		}
		if (n == c->cluster->self)
			participant_report(c, k);
	}
}

/* Whether a session of this node asks for it, and no reduce. */
static bool participant_wanted_here(const struct control *c, const struct node *n,
				    const struct message_combine *m)
{
	return n == c->cluster->self && m->flags & MESSAGE_COMBINE_HIDDEN &&
	       object_id_equal(&m->id, &m->target);
}

/* ---- COMBINE -------------------------------------------------------------------------------- */

/* Whether the part is a range of its object and of the built object. */
static bool participant_check_part(struct control *c, const struct message_combine *m,
				   const struct message_part *p)
{
	uint64_t chunks = chunk_count(m->size, m->chunk_bytes);

	if (!peers_node(c, p->node) || p->count == 0 || p->to >= chunks ||
	    p->count > chunks - p->to || (m->op && p->count != chunks) ||
	    (m->flags & MESSAGE_COMBINE_VALUES && p->count > OBJECT_INLINE_MAX / m->chunk_bytes))
		return false;
	if (p->size == 0)
		return p->first == 0;
	return (uint64_t)p->first + p->count <= chunk_count(p->size, m->chunk_bytes);
}

/* 0, or -EINVAL: the COMBINE makes no sense. */
static int participant_check(struct control *c, const struct message_combine *m)
{
	uint32_t element = m->op ? reduce_dtype_bytes(m->dtype) : 1;
	uint32_t both = MESSAGE_COMBINE_HIDDEN | MESSAGE_COMBINE_WITHHOLD;

	if ((m->op && !reduce_op_valid(m->op)) || element == 0 || m->size % element)
		return -EINVAL;
	if (m->flags & ~(uint32_t)(both | MESSAGE_COMBINE_VALUES) || (m->flags & both) == both)
		return -EINVAL;
	if (m->generation == 0 || m->size == 0 || m->chunk_bytes < CHUNK_BYTES_MIN ||
	    m->chunk_bytes > CHUNK_BYTES_MAX || m->chunk_bytes % 64 || m->need == 0 ||
	    m->need > MESSAGE_PARTS_MAX || m->count > m->need || m->scale > UINT16_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < m->count; i++)
		if (!participant_check_part(c, m, &m->parts[i]))
			return -EINVAL;
	return 0;
}

/* Frees the target's id. The directory reserves it for this reduce. So another object with this id
 * is either a copy of an earlier target, which goes; or one that the directory does not know yet,
 * and must decide about: -EAGAIN. */
static int participant_free_id(struct control *c, const struct object_id *id)
{
	uint32_t slot = slots_find(c, id);
	const struct object_slot *s;

	if (slot == TABLE_SLOT_NONE)
		return 0;
	s = &c->table->slot[slot];
	if (s->state == OBJECT_CREATING ||
	    (s->state == OBJECT_SEALED && s->flags & OBJECT_FLAG_PRIMARY) ||
	    s->state == OBJECT_SPILLED)
		return -EAGAIN;
	objects_replace(c, slot, "the object is built again: get it again");
	return 0;
}

static int participant_make(struct control *c, struct node *n, const struct message_combine *m,
			    struct participant **out)
{
	struct participant *k;
	uint32_t slot;
	int error = participant_free_id(c, &m->id);

	if (error)
		return error;
	k = pool_take(&c->participant->participants.pool);
	if (!k)
		return -EAGAIN;
	error = objects_insert(c, &m->id, m->name, &m->meta, m->size, m->generation, m->chunk_bytes,
			       OBJECT_CREATING, &slot);
	if (error) {
		pool_give(&c->participant->participants.pool, k);
		return error;
	}
	list_init(&k->parts);
	list_init(&k->pulls);
	list_append(&c->participant->participants.active, &k->active);
	idmap_insert(&c->participant->participants.by_id, &k->by_id, &m->id);
	k->coordinator = n;
	k->target = m->target;
	k->withheld = m->flags & MESSAGE_COMBINE_WITHHOLD;
	k->sum = (struct buffer_sum){m->op, m->dtype, m->op ? m->need : 1, m->scale, k->withheld};
	k->reduce = m->reduce;
	k->generation = m->generation;
	k->size = m->size;
	k->slot = slot;
	k->chunk_bytes = m->chunk_bytes;
	k->hidden = m->flags & MESSAGE_COMBINE_HIDDEN;
	k->values = m->flags & MESSAGE_COMBINE_VALUES;
	for (uint32_t i = 0; i < m->count; i++)
		k->pushed |= m->parts[i].node == c->cluster->self->number;
	k->need = m->op ? m->need : participant_chunks(k);
	objects_at(c, slot)->participant = k;
	objects_at(c, slot)->hidden = k->hidden;
	objects_at(c, slot)->gathered = m->op == 0;
	/* Made at once: readers can attach to it before the first byte is here. */
	if (c->attached && !k->values)
		participant_stage(c, k);
	if (!k->hidden)
		placement_superseded(c, &m->id, slot);
	if (k->values)
		pull_begun(c, k); /* it feeds no readers before it is complete */
	else
		announce_object(c, slot);
	*out = k;
	return 0;
}

static bool participant_is_source(const struct part *p, const struct message_part *m)
{
	return p->node->number == m->node && object_id_equal(&p->id, &m->id) &&
	       p->generation == m->generation;
}

/* Finds the part of a COMBINE: in a sum by its source, in an assembled target by its position. */
static struct part *participant_part(const struct participant *k, const struct message_part *m)
{
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_participant);

		if (p->to == m->to && (k->sum.op == 0 || participant_is_source(p, m)))
			return p;
	}
	return NULL;
}

static int participant_parts(struct control *c, struct participant *k,
			     const struct message_combine *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		struct part *p = participant_part(k, &m->parts[i]);

		if (p) {
			if (!participant_is_source(p, &m->parts[i]) &&
			    p->count == m->parts[i].count)
				input_move(c, p, &m->parts[i]);
			continue;
		}
		if (k->sum.op && k->count >= k->sum.need)
			return -EPROTO;
		p = input_add(c, k, &m->parts[i]);
		if (!p)
			return -EAGAIN;
		input_start(c, p);
	}
	return 0;
}

/* Whether the COMBINE describes the same object. Its parts have been checked against it. */
static bool participant_is(const struct participant *k, const struct message_combine *m)
{
	return k->size == m->size && k->chunk_bytes == m->chunk_bytes && k->sum.op == m->op &&
	       k->values == (bool)(m->flags & MESSAGE_COMBINE_VALUES);
}

/* Finds or makes the participant of a COMBINE. One that builds the same id gives way to a newer
 * generation of its reduce, and to any reduce of the target's present coordinator. */
static int participant_find(struct control *c, struct node *n, const struct message_combine *m,
			    struct participant **out)
{
	struct participant *k = participant_of(c, &m->id);
	bool restart = k && k->coordinator == n && k->reduce == m->reduce;
	int error;

	if (restart && k->generation > m->generation)
		return -ESTALE;
	if (restart && k->generation == m->generation) {
		*out = k;
		return participant_is(k, m) ? 0 : -EPROTO;
	}
	if (k)
		participant_give_up(c, k, restart, "its reduce began again: get it again");
	error = participant_make(c, n, m, out);
	if (error == 0 && restart)
		(*out)->pushed = false; /* unchanged parts were pushed for the earlier generation */
	return error;
}

void participant_request(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct participant *k = NULL;
	int error = participant_check(c, &m->combine);

	if (error == 0 && (!c->table || (ownership_shard(c, &m->combine.target) != n &&
					 !participant_wanted_here(c, n, &m->combine))))
		error = -EAGAIN;
	if (error == 0)
		error = participant_find(c, n, &m->combine, &k);
	if (error == 0) {
		participant_heard(c, k);
		if (k->done) /* a coordinator that repeats COMBINE does not know that it is done */
			k->acked = false;
		if (!(m->combine.flags & MESSAGE_COMBINE_WITHHOLD))
			participant_let_go(c, k);
		error = participant_parts(c, k, &m->combine);
		if (error == 0 && k->values)
			push_begun(c, k);
		if (error)
			participant_give_up(c, k, false, "it cannot be built here: get it again");
		else
			participant_report(c, k);
	}
	answer.reply.status = error;
	answer.reply.generation = m->combine.generation;
	peers_send(c, n, &answer);
}

void participant_release(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	list_each(l, after, &c->participant->participants.active)
	{
		struct participant *k = list_item(l, struct participant, active);

		if (k->coordinator != n || k->reduce != m->combined.reduce ||
		    !object_id_equal(&k->target, &m->combined.target))
			continue;
		if (!k->hidden && k->done && k->generation == m->combined.generation) {
			if (m->combined.what && k->withheld)
				continue; /* it may be the result: FINISH follows, or its lease ends
					   */
			participant_let_go(c, k);
		}
		if (m->combined.status == -ECANCELED)
			participant_drop(c, k, false, -ECANCELED,
					 "the reduce was cancelled by rm: reduce again");
		else
			participant_give_up(c, k, false, "its reduce has ended: get it again");
	}
	peers_send(c, n, &answer);
}

void participant_finish(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct participant *k = participant_of(c, &m->combined.target);
	uint32_t slot = c->table ? slots_find(c, &m->combined.target) : TABLE_SLOT_NONE;
	bool known = k && k->generation == m->combined.generation;

	if (known)
		participant_let_go(c, k);
	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, m->combined.generation) ||
	    c->table->slot[slot].state != OBJECT_SEALED)
		answer.reply.status = known ? -EAGAIN : -ENOENT;
	answer.reply.generation = m->combined.generation;
	peers_send(c, n, &answer);
}
