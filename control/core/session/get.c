/* SPDX-License-Identifier: BSD-3-Clause */
/* GET and WAIT: begin a fetch if the object is not here, and keep the request in waits.c until so
 * many bytes are readable. Called by sessions.c with checked requests. */
#include <errno.h>
#include "core/transfer/fetch.h"
#include "state.h"

/* An owner defers the reply "wait" by 5 to 10 ms. A GET with a shorter timeout would never learn
 * that the object was not put: its request is not deferrable. */

/* The object is spilled here. A GET with nowait still gives the disk some time. */
static void session_get_spilled(struct control *c, struct session *s,
				const struct session_request *r, uint32_t slot)
{
	struct wait *w = waits_start(c, s, r);

	if (!w)
		return;
	w->object = objects_at(c, slot);
	w->watermark = UINT64_MAX;
	list_append(&w->object->waits, &w->await.link);
	waits_timeout(c, w, r->timeout_ns == 0 ? (int64_t)c->config.directory_ns : r->timeout_ns);
	spill_restore(c, slot);
}

void session_get(struct control *c, struct session *s, const struct session_request *r)
{
	uint32_t slot = slots_find(c, &r->id);
	bool whole = r->flags & SESSION_FLAG_WHOLE;
	struct fetch *f;
	struct wait *w;

	if (slot != TABLE_SLOT_NONE && c->table->slot[slot].state == OBJECT_SPILLED) {
		session_get_spilled(c, s, r, slot);
		return;
	}
	if (slot != TABLE_SLOT_NONE && !(whole && objects_incomplete(c, slot))) {
		reply_place(c, s, r->op, r->seq, r->pin, slot);
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	w->whole = whole;
	w->await.nowait = r->timeout_ns == 0;
	if (slot != TABLE_SLOT_NONE) {
		waits_timeout(c, w, r->timeout_ns);
		waits_place(c, w, slot);
		return;
	}
	f = fetch_get(c, &r->id, r->timeout_ns < 0 || r->timeout_ns >= GET_DEFERRABLE_NS);
	if (!f) {
		waits_end(c, w, -EAGAIN,
			  "too many objects arrive at this node at a time: try again later");
		return;
	}
	w->fetch = f;
	w->await.limited = r->timeout_ns > 0;
	list_append(&f->waits, &w->await.link);
	/* A GET with nowait still gives the directory time to answer. */
	waits_timeout(c, w, w->await.nowait ? (int64_t)c->config.directory_ns : r->timeout_ns);
	fetch_answer_nowait(c, f);
}

void session_wait(struct control *c, struct session *s, const struct session_request *r)
{
	const struct object_slot *image;
	struct wait *w;

	if (r->slot >= c->table->slots) {
		reply_error(c, s, r->op, r->seq, -EINVAL, "no such slot");
		return;
	}
	image = &c->table->slot[r->slot];
	if (image->generation == r->generation && image->flags & OBJECT_FLAG_REPLACED) {
		reply_error(c, s, r->op, r->seq, -ERESTART,
			    "the object was replaced: get it again");
		return;
	}
	if (image->generation == r->generation && image->flags & OBJECT_FLAG_LOST) {
		reply_error(c, s, r->op, r->seq, -ENODATA,
			    "lost: a part of it exists nowhere: put it again");
		return;
	}
	if (!objects_is(c, r->slot, r->generation)) {
		reply_error(c, s, r->op, r->seq, -ESTALE,
			    "the object was deleted or evicted: get it again");
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	w->object = objects_at(c, r->slot);
	w->watermark = r->watermark < image->size ? r->watermark : image->size;
	list_append(&w->object->waits, &w->await.link);
	waits_timeout(c, w, r->timeout_ns);
	if (w->watermark < image->size &&
	    (image->state == OBJECT_FETCHING || w->object->participant))
		waits_poll(c, w);
	if (image->state == OBJECT_SPILLED)
		spill_restore(c, r->slot);
	else
		waits_check_object(c, w->object);
}
