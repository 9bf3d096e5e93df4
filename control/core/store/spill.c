/* SPDX-License-Identifier: BSD-3-Clause */
#include "spill.h"
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"

static struct spills *spills(const struct control *c)
{
	return &c->store->spills;
}

static bool spill_on(const struct control *c)
{
	return c->config.spill_max > 0;
}

void spill_init(struct control *c)
{
	*spills(c) = (struct spills){.files_bytes = 0};
	list_init(&spills(c)->kept);
	list_init(&spills(c)->wanted);
}

static struct control_spill spill_file(struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];

	return (struct control_spill){.id = s->id,
				      .generation = s->generation,
				      .size = s->size,
				      .incarnation = c->table->incarnation,
				      .slot = slot};
}

static uint64_t spill_bytes(struct control *c, uint32_t slot)
{
	return c->table->slot[slot].size;
}

/* Deletes the spill file. */
static void spill_remove(struct control *c, uint32_t slot)
{
	const struct control_spill file = spill_file(c, slot);

	c->ops.spill_remove(c->ops.arg, &file);
	spills(c)->files_bytes -= spill_bytes(c, slot);
}

static void spill_say(struct control *c, uint32_t slot, const char *what, int error)
{
	struct text t = {.length = 0};

	text_add_object(&t, &c->table->slot[slot].id, texts_name(c, slot));
	text_add(&t, what);
	text_add_number(&t, (uint64_t)-error);
	text_add(&t, "): see the disk of --spill");
	env_log(c, CONTROL_LOG_ERROR, &t);
}

/* ---- out ------------------------------------------------------------------------------------- */

static bool spill_may_go(struct control *c, const struct object *o)
{
	uint64_t size = spill_bytes(c, objects_slot(c, o));

	return size > OBJECT_INLINE_MAX && !o->spilling && o->holds == 0 &&
	       list_empty(&o->serves) && list_empty(&o->mirrors) && list_empty(&o->waits) &&
	       spills(c)->files_bytes < c->config.spill_max &&
	       size <= c->config.spill_max - spills(c)->files_bytes && objects_unpinned(c, o);
}

static bool spill_write(struct control *c, struct object *o)
{
	uint32_t slot = objects_slot(c, o);
	const struct control_spill file = spill_file(c, slot);

	if (c->ops.spill_write(c->ops.arg, &file, c->table->slot[slot].offset) < 0) {
		c->counters.spill_errors++;
		spills(c)->mute_ns = c->now_ns + SPILL_MUTE_NS;
		return false;
	}
	o->spilling = true;
	o->holds++;
	spills(c)->writes++;
	spills(c)->files_bytes += file.size;
	spills(c)->leaving_bytes += allocator_bytes(&c->store->objects.space, o->range);
	return true;
}

bool spill_leaving(const struct control *c)
{
	return spills(c)->writes > 0;
}

/* Whether spilling all objects that may leave would free so many bytes; otherwise none is spilled.
 */
static bool spill_would_do(struct control *c, uint64_t bytes, uint64_t evictable)
{
	uint64_t there = evictable + spills(c)->leaving_bytes + c->store->objects.scratch_offset -
			 c->store->objects.space.used_bytes;

	list_each(l, after, &spills(c)->kept)
	{
		const struct object *o = list_item(l, struct object, link);

		if (there >= bytes)
			break;
		if (spill_may_go(c, o))
			there += allocator_bytes(&c->store->objects.space, o->range);
	}
	return there >= bytes;
}

/* [G8.1] */
bool spill_make_room(struct control *c, uint64_t bytes, uint64_t evictable)
{
	struct spills *s = spills(c);

	if (!spill_on(c) || c->now_ns < s->mute_ns)
		return spill_leaving(c);
	objects_scan_pins(c);
	if (!spill_would_do(c, bytes, evictable))
		return false;
	list_each(l, after, &s->kept)
	{
		if (s->leaving_bytes + evictable >= bytes || s->writes == SPILL_WRITES_MAX)
			break;
		if (spill_may_go(c, list_item(l, struct object, link)) &&
		    !spill_write(c, list_item(l, struct object, link)))
			break;
	}
	return spill_leaving(c);
}

static void spill_written(struct control *c, struct object *o)
{
	uint32_t slot = objects_slot(c, o);

	objects_set_state(c, slot, OBJECT_SPILLED);
	if (objects_pinned(c, slot) || o->holds > 0 || !list_empty(&o->mirrors) ||
	    !list_empty(&o->waits)) { /* somebody was faster */
		objects_set_state(c, slot, OBJECT_SEALED);
		spill_remove(c, slot);
		return;
	}
	list_remove(&o->link);
	allocator_give(&c->store->objects.space, o->range);
	o->range = 0;
	spills(c)->objects++;
	c->counters.spilled++;
	c->counters.spilled_bytes += spill_bytes(c, slot);
}

void spill_wrote(struct control *c, uint32_t slot, int error)
{
	struct object *o = objects_at(c, slot);

	spills(c)->writes--;
	spills(c)->leaving_bytes -= allocator_bytes(&c->store->objects.space, o->range);
	o->spilling = false;
	o->holds--;
	if (error) {
		c->counters.spill_errors++;
		spill_say(c, slot, ": cannot be spilled (error ", error);
		spills(c)->mute_ns = c->now_ns + SPILL_MUTE_NS;
		spills(c)->files_bytes -= spill_bytes(c, slot);
	} else if (c->table->slot[slot].state == OBJECT_SEALED) {
		spill_written(c, o);
	} else {
		spill_remove(c, slot);
	}
	objects_reap(c);
	wiring_room(c);
}

/* ---- back ------------------------------------------------------------------------------------ */

static void spill_read(struct control *c, struct object *o)
{
	uint32_t slot = objects_slot(c, o);
	const struct control_spill file = spill_file(c, slot);
	uint64_t offset = allocator_offset(&c->store->objects.space, o->range);

	int error = c->ops.spill_read(c->ops.arg, &file, offset);

	list_remove(&o->restore);
	o->restoring = true;
	o->holds++;
	spills(c)->reads++;
	if (error < 0)
		spill_has_read(c, slot, error);
}

/* Returns false when it must wait. */
static bool spill_try(struct control *c, struct object *o)
{
	uint32_t slot = objects_slot(c, o);
	struct text t;
	int error;

	if (spills(c)->reads == SPILL_READS_MAX)
		return false;
	error = objects_allocate(c, objects_bytes(c, slot), &o->range);
	if (error == -EAGAIN)
		return false;
	if (error == 0) {
		spill_read(c, o);
		return true;
	}
	list_remove(&o->restore);
	c->counters.store_full++;
	objects_no_room(c, error, spill_bytes(c, slot), &t);
	wiring_failed(c, o, error, t.bytes);
	return true;
}

void spill_restore(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	if (o->fileless) {
		spill_lost(c, slot);
		return;
	}
	if (o->restoring || list_linked(&o->restore))
		return;
	list_append(&spills(c)->wanted, &o->restore);
	spill_try(c, o);
}

void spill_pump(struct control *c)
{
	for (struct list *l; (l = list_first(&spills(c)->wanted)) != NULL;)
		if (!spill_try(c, list_item(l, struct object, restore)))
			return;
}

/* Whether the error proves that the bytes are lost: a checksum, or a file that is not there. A disk
 * that fails may answer another time. */
static bool spill_proves(int error)
{
	return error == -EBADMSG || error == -ENOENT;
}

void spill_lost(struct control *c, uint32_t slot)
{
	struct object_id id = c->table->slot[slot].id;
	uint64_t generation = c->table->slot[slot].generation;

	c->counters.spill_errors++;
	replica_losing(c);
	objects_lose(c, slot, "lost: its file in the folder of --spill is damaged or gone");
	replica_lost(c, &id, generation);
	replica_acked(c);
}

void spill_has_read(struct control *c, uint32_t slot, int error)
{
	struct object *o = objects_at(c, slot);
	struct object_slot *s = &c->table->slot[slot];

	spills(c)->reads--;
	o->restoring = false;
	o->holds--;
	if (s->state == OBJECT_SPILLED && error &&
	    !spill_proves(error)) { /* another time, perhaps */
		c->counters.spill_errors++;
		spill_say(c, slot, ": its spilled bytes cannot be read now (error ", error);
		allocator_give(&c->store->objects.space, o->range);
		o->range = 0;
		wiring_failed(c, o, -EIO,
			      "its file in the folder of --spill cannot be "
			      "read now: try again later");
	} else if (s->state == OBJECT_SPILLED && error) {
		spill_say(c, slot, ": its spilled bytes are lost (error ", error);
		spill_lost(c, slot);
	} else if (s->state == OBJECT_SPILLED) {
		c->counters.restored++;
		c->counters.restored_bytes += s->size;
		objects_restored(c, slot); /* before its file goes: this process may be killed */
		spill_remove(c, slot);
		spills(c)->objects--;
	}
	objects_reap(c);
	wiring_room(c);
}

/* ---- the rest of its life -------------------------------------------------------------------- */

void spill_killed(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);
	const struct control_spill file = spill_file(c, slot);

	list_remove(&o->restore);
	if (o->fileless) { /* was not counted */
		if (spill_on(c))
			c->ops.spill_remove(c->ops.arg, &file);
		o->fileless = false;
		replica_acked(c);
		return;
	}
	spill_remove(c, slot);
	spills(c)->objects--;
}

void spill_find(struct control *c, uint32_t slot)
{
	const struct control_spill file = spill_file(c, slot);
	int error = spill_on(c) ? c->ops.spill_find(c->ops.arg, &file) : -ENOENT;

	if (error && spill_proves(error)) {
		objects_at(c, slot)->fileless = true;
		replica_losing(c);
		if (spill_on(c))
			spill_say(c, slot, ": its spilled bytes are lost (error ", error);
		return;
	}
	spills(c)->files_bytes += file.size;
	spills(c)->objects++;
}
