/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fake node knows of objects and nodes: STAT, LIST, STATUS; and PUT. */
#include <errno.h>
#include <string.h>
#include "client_fake.h"

static struct session_object fake_object(struct fake *f, int64_t slot)
{
	const struct object_slot *s = &f->table->slot[slot];
	struct session_object object = {.id = s->id,
					.generation = s->generation,
					.size = s->size,
					.copies = s->state == OBJECT_SEALED,
					.partial = s->state != OBJECT_SEALED,
					.holders = 1,
					.local_watermark = atomic_load(&s->watermark)};
	object.holder[0].complete = object.copies;
	object.holder[0].watermark = object.holder[0].arrived = object.local_watermark;
	memcpy(object.name, f->name[slot], sizeof(object.name));
	if (f->lost) {
		object.copies = 0;
		object.lost = object.lost_node = object.holder[0].node = 1;
		object.down_ms = object.holder[0].down_ms = 13400;
	}
	return object;
}

/* The nodes that do not answer, in place of objects. */
static void fake_missing(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_object object;
	} packet = {.reply = fake_reply(request, 0)};
	packet.reply.flags = SESSION_FLAG_MORE;
	packet.object.flags = SESSION_OBJECT_MISSING;
	packet.object.holders = 1;
	for (uint32_t node = 1; node <= f->missing; node++) {
		packet.object.holder[0].node = node;
		fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	}
}

void fake_list(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_object object;
	} packet;
	fake_missing(f, conn, request); /* in any order */
	for (uint32_t i = 0; i < FAKE_SLOTS; i++) {
		const struct object_slot *s = &f->table->slot[i];
		if (s->state == OBJECT_FREE || s->state == OBJECT_ZOMBIE)
			continue;
		packet.reply = fake_reply(request, 0);
		packet.reply.flags = SESSION_FLAG_MORE;
		packet.object = fake_object(f, i);
		fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	}
	fake_status(f, conn, request, 0);
}

void fake_put(struct fake *f, int conn, const struct session_request *request, const uint8_t *bytes,
	      size_t length)
{
	struct object_slot image;
	int64_t i = object_table_find(f->table, &request->id, &image);
	int status = length == sizeof(*request) + request->size ? 0 : -EINVAL;
	if (status == 0 && i >= 0)
		status = -EEXIST;
	if (status == 0 && (i = fake_make(f, &request->id, request->size, OBJECT_CREATING)) < 0)
		status = -ENOSPC;
	if (status == 0) {
		memcpy(f->store + f->table->slot[i].offset, bytes + sizeof(*request),
		       request->size);
		atomic_store(&f->table->slot[i].watermark, request->size);
		memcpy(f->name[i], request->name, sizeof(f->name[i]));
		fake_state(f, (uint32_t)i, OBJECT_SEALED); /* readers do not ask us */
	}
	fake_status(f, conn, request, status);
}

/* Node 0 feeds 1 and 2, 1 feeds 3 and 4, and so on; the last is fed by node 1 as well. */
static struct session_holder fake_holder(const struct fake *f, uint32_t node)
{
	struct session_holder h = {.node = node, .complete = node == 0, .sending = 2};
	h.upstreams = (node > 0) + (node + 1 == f->tree);
	h.upstream[0] = (node - 1) / 2;
	h.upstream[1] = 1;
	h.watermark = node;
	h.arrived = h.complete ? 1536 : 2 * node;
	return h;
}

void fake_stat(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_object object;
	} packet;
	struct object_slot image;
	int64_t i = object_table_find(f->table, &request->id, &image);
	if (i < 0) {
		fake_missing(f, conn, request);
		fake_status(f, conn, request, f->missing ? -EHOSTUNREACH : -ENOENT);
		return;
	}
	packet.reply = fake_reply(request, 0);
	packet.reply.flags = SESSION_FLAG_MORE;
	packet.object = fake_object(f, i);
	for (uint32_t at = 0; at < f->tree && !(request->flags & SESSION_FLAG_BRIEF);) {
		packet.object.holders = 0;
		while (packet.object.holders < SESSION_HOLDERS && at < f->tree)
			packet.object.holder[packet.object.holders++] = fake_holder(f, at++);
		if (at < f->tree)
			fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	}
	fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	fake_status(f, conn, request, 0);
}

void fake_nodes(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct session_node node;
	} packet = {.reply = fake_reply(request, 0)};
	packet.reply.flags = SESSION_FLAG_MORE;
	packet.node = (struct session_node){.node = 1, .self = 1, .state = 1, .mtu = 1500};
	packet.node.store_bytes = FAKE_STORE_BYTES;
	fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	packet.reply.flags = 0; /* the last one carries a node as well */
	packet.node = (struct session_node){.node = 0, .state = 2, .mtu = 1500};
	fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
}
