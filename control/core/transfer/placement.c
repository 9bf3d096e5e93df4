/* SPDX-License-Identifier: BSD-3-Clause */
/* The place of a fetched object in the store: makes it, seals it, gives it up. Called by fetch.c.
 */
#include <errno.h>
#include "core/base/text.h"
#include "state.h"
#include "events.h"

static const char fetch_nonsense[] =
	"the directory's answer does not hold: use nodes of one version";

/* Ends the fetch. The caller seals or kills the object, if there is one. */
void placement_end(struct control *c, struct fetch *f)
{
	fetch_stop(c, f);
	serve_early(c, f);
	if (f->bitmap)
		allocator_give(&c->flow->buffers.scratch, f->bitmap);
	timers_cancel(&c->timers, &f->timer);
	list_remove(&f->active);
	idmap_remove(&c->transfer->fetches.by_id, &f->by_id);
	pool_give(&c->transfer->fetches.pool, f);
}

void placement_fail(struct control *c, struct fetch *f, int32_t status, const char *text)
{
	struct object_id id = f->by_id.id;
	uint64_t generation = f->generation;
	uint32_t slot = f->slot;

	list_each(l, after, &f->waits)
	{
		wiring_wait_ended(c, list_item(l, struct await, link), status, text);
	}
	placement_end(c, f);
	if (slot != TABLE_SLOT_NONE) {
		objects_at(c, slot)->fetch = NULL;
		if (status == -ENODATA)
			objects_lose(c, slot, text);
		else
			objects_kill(c, slot, text);
	}
	announce_disown(c, &id, generation);
}

/* The edges go with the stage. */
static void placement_forget_edges(struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		upstream_forget_edges(&f->feed[i]);
}

void placement_killed(struct control *c, struct fetch *f)
{
	struct object_id id = f->by_id.id;
	uint64_t generation = f->generation;

	placement_forget_edges(f);
	placement_end(c, f);
	/* The directory must stop looking for a holder, as it may do for a GET that crossed its
	 * answer. */
	announce_disown(c, &id, generation);
}

void placement_stage_lost(struct control *c, struct fetch *f)
{
	struct stage *s = objects_at(c, f->slot)->stage;

	if (!c->attached || !s->next) { /* else other workers may still write it */
		f->bitmap = s->bitmap;	/* what has arrived stays */
		s->bitmap = 0;
	}
	placement_forget_edges(f);
	fetch_stop(c, f);
	f->attempts++;
	fetch_rest(c, f);
}

struct stage *placement_stage(struct control *c, struct fetch *f)
{
	struct stage *s = objects_at(c, f->slot)->stage;

	if (s)
		return s;
	if (f->bitmap == 0)
		f->bitmap = buffers_bitmap(c, chunk_count(f->size, f->chunk_bytes));
	if (f->bitmap == 0)
		return NULL;
	s = buffers_stage(c, f->slot, f->chunk_bytes, f->bitmap, 0);
	if (s)
		f->bitmap = 0; /* the stage's from now on */
	return s;
}

static void placement_answer_waits(struct control *c, struct fetch *f)
{
	list_each(l, after, &f->waits)
	{
		wiring_wait_placed(c, list_item(l, struct await, link), f->slot);
	}
}

/* A client of this node has put the object that the fetch waited for. Returns true when the fetch
 * has nothing to place: it has ended, or asks again. */
static bool placement_is_here(struct control *c, struct fetch *f, const struct message_got *got)
{
	uint32_t slot = slots_find(c, &f->by_id.id);
	const struct object_slot *s;

	if (slot == TABLE_SLOT_NONE)
		return false;
	s = &c->table->slot[slot];
	if (s->generation == got->generation) {
		f->slot = slot;
		placement_answer_waits(c, f);
		f->slot = TABLE_SLOT_NONE;
		placement_end(c, f);
		announce_object(c, slot); /* the HAVE ends the booking of the fetch */
		return true;
	}
	if (s->state == OBJECT_CREATING || s->flags & OBJECT_FLAG_PRIMARY) {
		fetch_rest(c, f); /* one of the two objects is deleted: the owner decides which */
		return true;
	}
	objects_replace(c, slot, "the object was replaced: get it again");
	return false;
}

void placement_room(struct control *c)
{
	list_each(l, after, &c->transfer->fetches.active)
	{
		struct fetch *f = list_item(l, struct fetch, active);

		if (f->room_ns != 0 && f->state == FETCH_REST && f->room_bytes == 0)
			fetch_ask(c, f);
	}
}

/* Waits for room: the GET is repeated when the nodes of pinned replicas have answered. The booking
 * stands until then. False: it has waited long enough. [G8.2] */
static bool placement_awaits_room(struct control *c, struct fetch *f)
{
	if (f->room_ns == 0)
		f->room_ns = c->now_ns;
	if (c->now_ns - f->room_ns >= REPLICA_ROOM_NS && !spill_leaving(c))
		return false;
	fetch_rest(c, f);
	return true;
}

/* Ends the waits that have no limit of time: one may be of the reader whose room it is. Returns
 * true when no wait is left. */
static bool placement_refuse_unlimited(struct control *c, struct fetch *f, int32_t status,
				       uint64_t bytes)
{
	struct text t;

	objects_no_room(c, status, bytes, &t);
	list_each(l, after, &f->waits)
	{
		struct await *w = list_item(l, struct await, link);

		if (!w->limited)
			wiring_wait_ended(c, w, status, t.bytes);
	}
	return list_empty(&f->waits);
}

/* Waits until readers, writers or other fetches of this node give back what is no primary copy. The
 * booking does not stand so long. False: that would not be room enough, or nobody has time. */
static bool placement_awaits_readers(struct control *c, struct fetch *f,
				     const struct message_got *got)
{
	uint64_t bytes = objects_need(got->size, &got->meta);

	if (!objects_may_free(c, bytes) || placement_refuse_unlimited(c, f, -ENOSPC, bytes))
		return false;
	announce_disown(c, &f->by_id.id, got->generation);
	fetch_rest_roomless(c, f, bytes);
	return true;
}

bool placement_still_roomless(struct control *c, struct fetch *f)
{
	uint64_t bytes = f->room_bytes;

	if (objects_may_fit(c, bytes))
		return false;
	if (!objects_may_free(c, bytes) || placement_refuse_unlimited(c, f, -ENOSPC, bytes)) {
		struct text t;

		objects_no_room(c, -ENOSPC, bytes, &t);
		placement_fail(c, f, -ENOSPC, t.bytes);
	} else {
		fetch_rest_roomless(c, f, bytes);
	}
	return true;
}

/* Makes the object, with room if need be. Returns 0, or -errno and the fetch has ended. */
static int placement_make_room(struct control *c, struct fetch *f, const struct message_got *got)
{
	uint32_t slot = f->slot;
	struct text t;
	int error;

	if (slot != TABLE_SLOT_NONE && f->generation != got->generation) {
		/* another object with the same id: the arrived chunks are useless */
		objects_at(c, slot)->fetch = NULL;
		fetch_stop(c, f);
		if (f->bitmap)
			allocator_give(&c->flow->buffers.scratch, f->bitmap);
		f->bitmap = 0;
		f->slot = TABLE_SLOT_NONE;
		f->generation = got->generation;
		objects_replace(c, slot, "the object was replaced: get it again");
		if (list_empty(&f->waits)) {
			placement_fail(c, f, -ECANCELED, "");
			return -ESTALE;
		}
	}
	if (f->slot != TABLE_SLOT_NONE)
		return 0;
	if (placement_is_here(c, f, got))
		return -EEXIST;
	error = objects_valid(got->generation, got->size, got->chunk_bytes)
			? objects_insert(c, &f->by_id.id, got->name, &got->meta, got->size,
					 got->generation, got->chunk_bytes, OBJECT_FETCHING,
					 &f->slot)
			: -EPROTO;
	if (error == -EAGAIN && placement_awaits_room(c, f))
		return error;
	if ((error == -EAGAIN || error == -ENOSPC) && placement_awaits_readers(c, f, got))
		return -EAGAIN;
	if (error) {
		error = error == -EAGAIN ? -ENOSPC : error;
		objects_no_room(c, error, got->size, &t);
		f->generation = got->generation; /* so that the booking is given back */
		placement_fail(c, f, error, error == -EPROTO ? fetch_nonsense : t.bytes);
		return error;
	}
	f->room_ns = 0;
	f->generation = got->generation;
	f->size = got->size;
	f->chunk_bytes = got->chunk_bytes;
	objects_at(c, f->slot)->fetch = f;
	return 0;
}

int placement_place(struct control *c, struct fetch *f, const struct message_got *got)
{
	int error = placement_make_room(c, f, got);

	if (error)
		return error;
	f->known = true;
	placement_answer_waits(c, f);
	if (f->size == 0) {
		fetch_done(c, f);
		return -EALREADY;
	}
	/* Made at once: the next receiver of the chain can attach to it before the first byte is
	 * here. */
	if (c->attached)
		placement_stage(c, f);
	serve_early(c, f);
	f->spare = got->spare;
	if (!peers_node(c, got->holder) || peers_node(c, got->holder) == c->cluster->self) {
		/* the directory names this node as the holder: it is not */
		f->failed = got->holder;
		f->why = MESSAGE_GET_FIRST;
		f->attempts++;
		fetch_rest(c, f);
		return -EAGAIN;
	}
	return 0;
}

void placement_take_value(struct control *c, struct fetch *f, const struct message_got *got)
{
	struct object *o;

	if (got->value_bytes != got->size) {
		placement_fail(c, f, -EPROTO, fetch_nonsense);
		return;
	}
	if (placement_make_room(c, f, got))
		return;
	o = objects_at(c, f->slot);
	if (o->stage) { /* a stream of the same bytes was arriving */
		serve_end_all(c, o);
		fetch_stop(c, f);
		buffers_drop_stage(c, o->stage);
	}
	if (got->size > 0)
		memcpy(c->memory + c->table->slot[f->slot].offset, got->value, got->size);
	objects_publish(c, f->slot, got->size);
	placement_answer_waits(c, f);
	fetch_done(c, f);
}

void placement_restart_all(struct control *c)
{
	list_each(l, after, &c->transfer->fetches.active)
	{
		struct fetch *f = list_item(l, struct fetch, active);

		f->slot = TABLE_SLOT_NONE;
		f->generation = 0;
		f->bitmap = 0;
		placement_fail(c, f, -ESTALE, "the node has lost its store: get it again");
	}
}

void placement_announce(struct control *c, const struct node *shard)
{
	list_each(l, after, &c->transfer->fetches.active)
	{
		struct fetch *f = list_item(l, struct fetch, active);

		if (f->slot != TABLE_SLOT_NONE && ownership_shard(c, &f->by_id.id) == shard)
			announce_object(c, f->slot);
	}
}

/* A fetch of this id without a place. */
struct fetch *placement_unplaced(struct control *c, const struct object_id *id)
{
	struct fetch *f = fetch_find(c, id);

	return f && f->slot == TABLE_SLOT_NONE ? f : NULL;
}

bool placement_asks(struct control *c, const struct object_id *id)
{
	const struct fetch *f = fetch_find(c, id);

	return f && f->call;
}

void placement_superseded(struct control *c, const struct object_id *id, uint32_t slot)
{
	struct fetch *f = placement_unplaced(c, id);

	if (!f)
		return;
	list_each(l, after, &f->waits)
	{
		wiring_wait_placed(c, list_item(l, struct await, link), slot);
	}
	placement_end(c, f);
}

void placement_wake(struct control *c, const struct object_id *id)
{
	struct fetch *f = placement_unplaced(c, id);

	if (f && !f->call)
		fetch_rest(c, f);
}
