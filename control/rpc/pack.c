/* SPDX-License-Identifier: BSD-3-Clause */
/* From structs of message.h to structs of protobuf-c, by rows. */
#include <string.h>
#include "rows.h"

_Static_assert(sizeof(Rpc__Objects) + MESSAGE_OBJECTS_MAX * (sizeof(Rpc__Description) + 16) +
			       MESSAGE_OBJECTS_MAX * SESSION_HOLDERS * (sizeof(Rpc__Holder) + 16) <=
		       CODEC_SCRATCH_BYTES - 1024,
	       "the largest message fits the scratch memory");

static void *pack_message(const struct rows *rows, const void *from, const void *before,
			  struct rows_arena *a)
{
	void *wire = rows_alloc(a, rows->wire->sizeof_message);

	if (!wire)
		return NULL;
	rows->wire->message_init(wire);
	return pack_rows(rows, from, before, a, wire) ? wire : NULL;
}

static bool pack_messages(const struct row *r, const void *items, size_t count,
			  struct rows_arena *a, size_t *n, void ***out)
{
	const uint8_t *item = items;

	*n = count < r->most ? count : r->most;
	*out = rows_alloc(a, *n * sizeof(**out));
	if (!*out)
		return false;
	for (size_t i = 0; i < *n; i++, item += r->of->bytes) {
		(*out)[i] = pack_message(r->of, item, i ? item - r->of->bytes : NULL, a);
		if (!(*out)[i])
			return false;
	}
	return true;
}

/* With messages inside. */
static bool pack_part(const struct row *r, const uint8_t *m, struct rows_arena *a, uint8_t *wire)
{
	const uint8_t *from = m + r->at;
	void **to = (void *)(wire + r->wire), *n = wire + r->n;

	if (r->op == ROW_LIST || r->op == ROW_PAGE) {
		if (r->op == ROW_PAGE)
			memcpy(&from, m + r->at, sizeof(from));
		return pack_messages(r, from, *(const uint32_t *)(const void *)(m + r->count), a, n,
				     (void *)to);
	}
	if (r->op == ROW_LINKED)
		memcpy(&from, m + r->at, sizeof(from));
	else if (*(const uint64_t *)(const void *)(from + r->of->row[0].at) == 0)
		from = NULL;
	*to = from ? pack_message(r->of, from, NULL, a) : NULL;
	return !from || *to;
}

static ProtobufCBinaryData pack_bytes(const struct row *r, const void *from, const uint32_t *count)
{
	const struct message_rails *rails = from;
	const struct object_meta *meta = from;
	size_t length = r->size;

	if (r->op == ROW_TEXT)
		length = strnlen(from, r->size - 1);
	else if (r->op == ROW_META)
		from = meta->data, length = meta->bytes;
	else if (r->op == ROW_RAILS)
		from = rails->addr, length = (size_t)rails->count * MESSAGE_RAIL_BYTES;
	else if (r->op == ROW_BYTES)
		memcpy(&from, from, sizeof(from)), length *= *count;
	return (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)from};
}

/* All but the numbers that are as wide as here. */
static bool pack_row(const struct row *r, const uint8_t *m, struct rows_arena *a, uint8_t *wire)
{
	const void *in = m + r->at, *count = m + r->count;
	void *out = wire + r->wire, *n = wire + r->n;

	switch (r->op) {
	case ROW_8:
		*(uint32_t *)out = *(const uint8_t *)in;
		return true;
	case ROW_16:
		*(uint32_t *)out = *(const uint16_t *)in;
		return true;
	case ROW_ARRAY:
		*(size_t *)n = (size_t)r->words * *(const uint32_t *)count;
		memcpy(out, &in, sizeof(in));
		return true;
	case ROW_WHOLE:
		*(size_t *)n = r->most;
		memcpy(out, &in, sizeof(in));
		return true;
	case ROW_SIXTEEN:
	case ROW_TEXT:
	case ROW_META:
	case ROW_RAILS:
	case ROW_BYTES:
		*(ProtobufCBinaryData *)out = pack_bytes(r, in, count);
		return true;
	default:
		return pack_part(r, m, a, wire);
	}
}

bool pack_rows(const struct rows *rows, const void *from, const void *before, struct rows_arena *a,
	       void *wire)
{
	static const uint8_t none[sizeof(struct message_part)];
	const uint8_t *was = before ? before : none;

	for (const struct row *r = rows->row, *end = r + rows->count; r < end; r++) {
		const void *in = (const uint8_t *)from + r->at;
		void *out = (uint8_t *)wire + r->wire;

		if (r->op == ROW_32)
			*(uint32_t *)out = *(const uint32_t *)in + r->add;
		else if (r->op == ROW_64)
			*(uint64_t *)out = *(const uint64_t *)in + r->add;
		else if (r->op == ROW_DELTA_32)
			*(uint32_t *)out = *(const uint32_t *)in -
					   *(const uint32_t *)(const void *)(was + r->at);
		else if (r->op == ROW_DELTA_64)
			*(uint64_t *)out = *(const uint64_t *)in -
					   *(const uint64_t *)(const void *)(was + r->at);
		else if (!pack_row(r, from, a, wire))
			return false;
	}
	return true;
}

void pack_plan(const struct message *m, struct rows_arena *a, void *wire)
{
	const struct control_plan *p = m->plan;
	Rpc__Node *out = wire;

	if (!p)
		return;
	pack_rows(&rows_plan, p, NULL, a, out);
	out->plan_flags = (p->everyone ? 1 : 0) | (p->repaired ? 2 : 0) | (p->network ? 4 : 0);
}

void pack_reduced(const struct message *m, struct rows_arena *a, void *wire)
{
	Rpc__Object *out = wire;

	out->mode = m->reduce.timeout_ns == 0;
}
