/* SPDX-License-Identifier: BSD-3-Clause */
/* KEEP: the shard owner asks this node to hold the second copy of a small object. */
#include <errno.h>
#include "state.h"
#include "keep.h"

/* Frees the id for the second copy. 0; -EALREADY: the object is here; or -errno. */
static int keep_room(struct control *c, const struct message_have *have)
{
	uint32_t slot = slots_find(c, &have->id);
	const struct object_slot *s;

	if (slot == TABLE_SLOT_NONE)
		return 0;
	s = &c->table->slot[slot];
	if (s->state != OBJECT_SEALED)
		return -EAGAIN;
	if (s->generation == have->generation) {
		if (!(s->flags & OBJECT_FLAG_PRIMARY) || s->flags & OBJECT_FLAG_APPOINTED)
			objects_appoint(c, slot, false);
		return -EALREADY;
	}
	if (s->generation > have->generation || s->flags & OBJECT_FLAG_PRIMARY)
		return -EAGAIN; /* one of the two objects has been deleted: the owner decides which
				 */
	objects_replace(c, slot, "the object was put again: get it again");
	return 0;
}

int keep_copy(struct control *c, const struct message_have *have)
{
	uint32_t slot;
	int error;

	if (!c->table)
		return -EAGAIN;
	if (!objects_valid(have->generation, have->size, have->chunk_bytes) || !have->has_value ||
	    have->value_bytes != have->size)
		return -EPROTO;
	error = keep_room(c, have);
	if (error)
		return error == -EALREADY ? 0 : error;
	error = objects_insert(c, &have->id, have->name, &have->meta, have->size, have->generation,
			       have->chunk_bytes, OBJECT_FETCHING, &slot);
	if (error)
		return error;
	if (have->size > 0)
		memcpy(c->memory + c->table->slot[slot].offset, have->value, have->size);
	objects_publish(c, slot, have->size);
	objects_seal(c, slot, true);
	placement_superseded(c, &have->id, slot);
	announce_object(c, slot);
	return 0;
}
