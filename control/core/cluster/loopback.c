/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a node to itself: queued and handled later in the same turn, so that no handler runs
 * inside another. What a message points to is copied, because it may change before its turn comes.
 */
#include "core/state.h"

_Static_assert(sizeof(struct object_id) * MESSAGE_SOURCES_MAX <= OBJECT_INLINE_MAX &&
		       sizeof(struct message_part) * MESSAGE_PARTS_MAX <= OBJECT_INLINE_MAX,
	       "the sources and parts of a reduce fit a queued message");

static uint8_t *loopback_data(struct control *c, const struct loopback *l)
{
	return c->loopback_data + (size_t)pool_index(&c->loopback, l) * OBJECT_INLINE_MAX;
}

bool loopback_push(struct control *c, const struct message *m)
{
	struct loopback *l = pool_take(&c->loopback);
	uint8_t *data;

	if (l == NULL) {
		c->counters.messages_lost++;
		return false;
	}
	l->message = *m;
	data = loopback_data(c, l);
	if (m->kind == MESSAGE_HAVE && m->have.value_bytes > 0) {
		l->message.have.value = memcpy(data, m->have.value, m->have.value_bytes);
	} else if (m->kind == MESSAGE_GET && m->get.others_count > 0) {
		memcpy(data, m->get.others, sizeof(struct object_id) * m->get.others_count);
		l->message.get.others = (const struct object_id *)(const void *)data;
	} else if (m->kind == MESSAGE_GOT && m->got.value_bytes > 0) {
		l->message.got.value = memcpy(data, m->got.value, m->got.value_bytes);
	} else if (m->kind == MESSAGE_GIVEN && m->take.bytes > 0) {
		l->message.take.value = memcpy(data, m->take.value, m->take.bytes);
	} else if (m->kind == MESSAGE_OBJECTS && m->objects.count > 0) {
		memcpy(data, m->objects.objects, sizeof(*m->objects.objects) * m->objects.count);
		l->message.objects.objects = (const struct session_object *)(const void *)data;
	} else if (m->kind == MESSAGE_REDUCE && m->reduce.count > 0) {
		memcpy(data, m->reduce.sources, sizeof(struct object_id) * m->reduce.count);
		l->message.reduce.sources = (const struct object_id *)(const void *)data;
	} else if ((m->kind == MESSAGE_USED || m->kind == MESSAGE_COMMIT ||
		    m->kind == MESSAGE_RECALL || m->kind == MESSAGE_PROPOSE) &&
		   m->used.count > 0) {
		memcpy(data, m->used.sources, sizeof(struct object_id) * m->used.count);
		l->message.used.sources = (const struct object_id *)(const void *)data;
	} else if (m->kind == MESSAGE_COMBINE && m->combine.count > 0) {
		memcpy(data, m->combine.parts, sizeof(struct message_part) * m->combine.count);
		l->message.combine.parts = (const struct message_part *)(const void *)data;
	}
	list_append(&c->loopback_queue, &l->link);
	return true;
}

void loopback_run(struct control *c)
{
	struct list *first;

	members_pump(c);
	objects_announce_pump(c);
	graves_pump(c);
	backup_pump(c);
	reductions_pump(c);
	if (c->unremoved)
		control_remind(c);
	while ((first = list_first(&c->loopback_queue)) != NULL) {
		struct loopback *l = list_item(first, struct loopback, link);

		list_remove(&l->link);
		control_dispatch(c, c->self, 0, &l->message);
		pool_give(&c->loopback, l);
		members_pump(c);
		objects_announce_pump(c);
	}
	control_tell_later(c);
}
