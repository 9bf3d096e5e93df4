/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies to clients. */
#include <errno.h>
#include "state.h"

static uint32_t reply_session(const struct control *c, const struct session *s)
{
	return pool_index(&c->session->sessions.pool, s);
}

void reply_make(const struct session_request *r, struct session_reply *out)
{
	*out = (struct session_reply){.op = r->op, .seq = r->seq};
}

void reply_send(struct control *c, struct session *s, struct session_reply *r)
{
	r->magic = SESSION_MAGIC;
	c->ops.reply(c->ops.arg, reply_session(c, s), r, NULL, 0);
}

void reply_error(struct control *c, struct session *s, uint16_t op, uint32_t seq, int32_t status,
		 const char *text)
{
	struct session_reply r = {.op = op, .seq = seq, .status = status};

	strncpy(r.text, text, sizeof(r.text) - 1);
	reply_send(c, s, &r);
}

void reply_place(struct control *c, struct session *s, uint16_t op, uint32_t seq, uint32_t pin,
		 uint32_t slot)
{
	const struct object_slot *image = &c->table->slot[slot];
	struct session_reply r = {.op = op, .seq = seq};

	if (op != SESSION_WAIT && pin != SESSION_PIN_NONE)
		atomic_store_explicit(&s->pins[pin], pin_make(slot, image->generation),
				      memory_order_seq_cst);
	if (op == SESSION_CREATE && image->flags & OBJECT_FLAG_STAGED)
		r.flags = SESSION_FLAG_STAGED;
	r.slot = slot;
	r.chunk_bytes = image->chunk_bytes;
	r.generation = image->generation;
	r.offset = image->offset;
	r.size = image->size;
	r.watermark = atomic_load_explicit(&image->watermark, memory_order_acquire);
	if (op == SESSION_GET_RANGES) {
		r.flags = SESSION_FLAG_WHOLE;
		r.watermark = image->size;
		r.object = image->generation;
	}
	objects_touch(c, slot);
	reply_send(c, s, &r);
}

bool reply_item(struct control *c, const struct wait *w, const void *item, uint32_t bytes)
{
	struct session_reply r = {
		.magic = SESSION_MAGIC, .op = w->op, .seq = w->seq, .flags = SESSION_FLAG_MORE};

	return c->ops.reply(c->ops.arg, reply_session(c, w->session), &r, item, bytes);
}
