/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/text.h"
#include "state.h"

enum {
	/* of one turn: some 50 us, for the rest of the node waits meanwhile */
	COPY_TURN_BYTES = 256 * 1024,
	COPY_LEAST_BYTES = 16 * 1024, /* the least that an object counts for in a turn */
};

void staging_carve(struct creations *all, struct arena *a, const struct control_config *config)
{
	pool_carve(&all->pool, a, sizeof(struct creation), config->creations_max);
}

static int staging_refused(int error, struct text *why)
{
	*why = (struct text){.length = 0};
	text_add(why, "no memory to write the object in: ");
	text_add(why, error == -EDQUOT	 ? "too many objects are being created by this user: seal "
					   "or abort some"
		      : error == -EMFILE ? "too many objects are being created: seal or abort some"
					 : "free some, or try again later");
	return error == -EDQUOT ? -EMFILE : error;
}

int staging_start(struct control *c, struct session *s, uint32_t slot, bool brought,
		  struct text *why)
{
	bool greedy = s->user->staged_count >= c->config.creations_user_max;
	struct creation *k = greedy ? NULL : pool_take(&c->session->creations.pool);
	struct object *o = objects_at(c, slot);
	int error = greedy ? -EDQUOT : -EMFILE;

	if (k)
		error = c->ops.memory(c->ops.arg, slot, c->table->slot[slot].size, brought);
	if (error) {
		if (k)
			pool_give(&c->session->creations.pool, k);
		c->counters.creations_refused += !brought;
		c->counters.creations_greedy += greedy && !brought;
		return staging_refused(error, why);
	}
	k->session = s;
	k->object = o;
	k->upto = c->table->slot[slot].watermark;
	s->user->staged_count++;
	o->creation = k;
	objects_set_staged(c, slot);
	c->counters.creations++;
	return 0;
}

void staging_end(struct control *c, struct object *o)
{
	struct creation *k = o->creation;

	o->creation = NULL;
	list_remove(&k->link);
	k->session->user->staged_count--;
	pool_give(&c->session->creations.pool, k);
	c->ops.memory_drop(c->ops.arg, objects_slot(c, o));
}

void staging_await(struct control *c, struct session *s, const struct session_request *r,
		   uint64_t watermark)
{
	struct object *o = objects_at(c, r->slot);
	struct creation *k = o->creation;
	struct wait *w;

	if (!k) {
		reply_error(c, s, r->op, r->seq, -ESTALE,
			    "control was started again and has not been brought what was written: "
			    "create it again");
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	w->object = o;
	w->watermark = watermark;
	list_append(&o->waits, &w->await.link);
	if (k->upto < watermark)
		k->upto = watermark;
	k->seal |= r->op == SESSION_SEAL;
	if (!list_linked(&k->link))
		list_append(&c->session->creations.copying, &k->link);
}

/* The bytes before ready are in the store: answers the requests that waited for them. */
static void staging_answer(struct control *c, struct object *o, uint64_t ready)
{
	uint32_t slot = objects_slot(c, o);

	list_each(l, after, &o->waits)
	{
		struct wait *w = list_item(l, struct wait, await.link);

		if ((w->op != SESSION_PUBLISH && w->op != SESSION_SEAL) || w->watermark > ready ||
		    w->sealed)
			continue;
		if (w->op != SESSION_SEAL || !seal_await(c, w, slot))
			waits_place(c, w, slot);
	}
}

/* Copies up to so many bytes. Returns what they count for in the turn. */
static uint64_t staging_copy(struct control *c, struct creation *k, uint64_t most)
{
	struct object *o = k->object;
	uint32_t slot = objects_slot(c, o);
	const struct object_slot *image = &c->table->slot[slot];
	uint64_t at = image->watermark, bytes = k->upto - at < most ? k->upto - at : most;
	uint8_t *to = c->memory + image->offset + at;

	list_remove(&k->link);
	if (bytes > 0 && c->ops.memory_read(c->ops.arg, slot, at, to, bytes) < 0) {
		announce_abandon(c, slot, "its memory could not be read: create it again");
		return bytes;
	}
	c->counters.creations_bytes += bytes;
	at += bytes;
	if (at < k->upto)
		list_append(&c->session->creations.copying, &k->link);
	if (at == image->size && k->seal) {
		objects_seal(c, slot, true);
		announce_object(c, slot);
	} else if (bytes > 0) {
		objects_publish(c, slot, at);
	}
	staging_answer(c, o, at);
	return bytes > COPY_LEAST_BYTES ? bytes : COPY_LEAST_BYTES;
}

void staging_copies(struct control *c)
{
	struct list *copying = &c->session->creations.copying;
	uint64_t left = COPY_TURN_BYTES;

	while (left > 0 && !list_empty(copying)) {
		struct creation *k = list_item(list_first(copying), struct creation, link);
		uint64_t used = staging_copy(c, k, left);

		left -= used < left ? used : left;
	}
}
