/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>
#include "message.h"

_Static_assert(sizeof(struct object_id) * MESSAGE_SOURCES_MAX <= OBJECT_INLINE_MAX &&
		       sizeof(struct message_part) * MESSAGE_PARTS_MAX <= OBJECT_INLINE_MAX,
	       "the sources and parts of a reduce fit a queued message");
_Static_assert(sizeof(struct group_answer) <= OBJECT_INLINE_MAX, "so does a group's answer");

void message_add_rail(struct message_rails *r, const struct net_addr *addr)
{
	uint8_t *to = r->addr[r->count++];

	memcpy(to, addr->ip, sizeof(addr->ip));
	to[16] = (uint8_t)addr->port;
	to[17] = (uint8_t)(addr->port >> 8);
}

struct net_addr message_rail(const struct message_rails *r, uint32_t i)
{
	const uint8_t *from = r->addr[i - 1];
	struct net_addr addr = {.port = (uint16_t)(from[16] | from[17] << 8)};

	memcpy(addr.ip, from, sizeof(addr.ip));
	return addr;
}

const struct object_id *message_id(const struct message *m)
{
	switch (m->kind) {
	case MESSAGE_HAVE:
		return &m->have.id;
	case MESSAGE_GET:
		return &m->get.id;
	case MESSAGE_HOLD:
		return &m->hold.id;
	case MESSAGE_GROUP:
		return m->group.ask.step == GROUP_EXPLAIN ? NULL : &m->group.id;
	case MESSAGE_STAT:
		return m->object.generation ? NULL : &m->object.id;
	case MESSAGE_DROP:
	case MESSAGE_DELETE:
		return &m->object.id;
	case MESSAGE_REDUCE:
	case MESSAGE_REDUCED:
		return &m->reduce.target;
	case MESSAGE_RECALL:
		return &m->used.target;
	default:
		return NULL;
	}
}

/* The kind of message that answers a request. */
uint32_t message_answer_kind(uint32_t request_kind)
{
	switch (request_kind) {
	case MESSAGE_GET:
		return MESSAGE_GOT;
	case MESSAGE_STAT:
	case MESSAGE_LIST:
	case MESSAGE_WATCH:
		return MESSAGE_OBJECTS;
	case MESSAGE_STATUS:
		return MESSAGE_NODE;
	case MESSAGE_GROUP:
		return MESSAGE_GROUPED;
	case MESSAGE_REDUCED:
		return MESSAGE_USED;
	case MESSAGE_PIECES:
		return MESSAGE_HAS;
	case MESSAGE_PULL:
		return MESSAGE_PULL_REPLY;
	default:
		return MESSAGE_REPLY;
	}
}

void message_copy(struct message *out, const struct message *m, uint8_t *data)
{
	*out = *m;
	if (m->kind == MESSAGE_HAVE && m->have.value_bytes > 0) {
		out->have.value = memcpy(data, m->have.value, m->have.value_bytes);
	} else if (m->kind == MESSAGE_GET && m->get.others_count > 0) {
		memcpy(data, m->get.others, sizeof(struct object_id) * m->get.others_count);
		out->get.others = (const struct object_id *)(const void *)data;
	} else if (m->kind == MESSAGE_GOT && m->got.value_bytes > 0) {
		out->got.value = memcpy(data, m->got.value, m->got.value_bytes);
	} else if (m->kind == MESSAGE_PULL_REPLY && m->pull.bytes > 0) {
		out->pull.value = memcpy(data, m->pull.value, m->pull.bytes);
	} else if (m->kind == MESSAGE_OBJECTS && m->objects.count > 0) {
		memcpy(data, m->objects.objects, sizeof(*m->objects.objects) * m->objects.count);
		out->objects.objects = (const struct session_object *)(const void *)data;
	} else if (m->kind == MESSAGE_NODE && m->plan) {
		out->plan = memcpy(data, m->plan, sizeof(*m->plan));
	} else if (m->kind == MESSAGE_GROUPED && m->grouped.answer) {
		memcpy(data, m->grouped.answer, sizeof(*m->grouped.answer));
		out->grouped.answer = (const struct group_answer *)(const void *)data;
	} else if (m->kind == MESSAGE_REDUCE && m->reduce.count > 0) {
		memcpy(data, m->reduce.sources, sizeof(struct object_id) * m->reduce.count);
		out->reduce.sources = (const struct object_id *)(const void *)data;
	} else if ((m->kind == MESSAGE_USED || m->kind == MESSAGE_COMMIT ||
		    m->kind == MESSAGE_RECALL) &&
		   m->used.count > 0) {
		memcpy(data, m->used.sources, sizeof(struct object_id) * m->used.count);
		out->used.sources = (const struct object_id *)(const void *)data;
	} else if (m->kind == MESSAGE_COMBINE && m->combine.count > 0) {
		memcpy(data, m->combine.parts, sizeof(struct message_part) * m->combine.count);
		out->combine.parts = (const struct message_part *)(const void *)data;
	}
}
