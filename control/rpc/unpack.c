/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From structs of protobuf-c to structs of message.h, by rows: a number out of its bounds is
 * refused.
 */
#include <string.h>
#include "rows.h"

static bool unpack_rails(const ProtobufCBinaryData *in, struct message_rails *out)
{
	if (in->len % MESSAGE_RAIL_BYTES != 0 || in->len > sizeof(out->addr))
		return false;
	out->count = (uint32_t)(in->len / MESSAGE_RAIL_BYTES);
	if (in->len > 0)
		memcpy(out->addr, in->data, in->len);
	for (uint32_t i = 1; i <= out->count; i++)
		if (message_rail(out, i).port > UINT16_MAX - WORKERS_MAX)
			return false;
	return true;
}

/* Stays where it is. Never NULL, so that none of it may be copied. */
static bool unpack_pointed(const struct row *r, const ProtobufCBinaryData *in, uint8_t *out)
{
	const void *data = in->len > 0 ? (const void *)in->data : in;

	memcpy(out + r->at, &data, sizeof(data));
	if (in->len == 0)
		return true;
	if (in->len % r->size != 0 || in->len / r->size > r->most)
		return false;
	*(uint32_t *)(void *)(out + r->count) = (uint32_t)(in->len / r->size);
	return true;
}

static bool unpack_text(const struct row *r, const ProtobufCBinaryData *in, char *out)
{
	if (in->len == 0)
		return true;
	if (in->len > r->most || memchr(in->data, 0, in->len))
		return false;
	memcpy(out, in->data, in->len);
	return true;
}

static bool unpack_meta(const ProtobufCBinaryData *in, struct object_meta *out)
{
	if (in->len > sizeof(out->data))
		return false;
	out->bytes = (uint8_t)in->len;
	if (in->len > 0)
		memcpy(out->data, in->data, in->len);
	return true;
}

static bool unpack_array(const struct row *r, const void *wire, uint8_t *out)
{
	size_t n = *(const size_t *)(const void *)((const uint8_t *)wire + r->n);
	const uint32_t *word;

	if (n == 0)
		return r->op == ROW_ARRAY;
	if (r->op == ROW_WHOLE ? n != r->most : n % r->words || n / r->words > r->most)
		return false;
	memcpy(&word, (const uint8_t *)wire + r->wire, sizeof(word));
	memcpy(out + r->at, word, n * r->size);
	if (r->op == ROW_ARRAY)
		*(uint32_t *)(void *)(out + r->count) = (uint32_t)(n / r->words);
	for (size_t i = 0; r->size == sizeof(*word) && i < n; i++)
		if (word[i] > r->span)
			return false;
	return true;
}

static void *unpack_room(struct rows_arena *a, size_t bytes)
{
	void *room = rows_alloc(a, bytes);

	return room ? memset(room, 0, bytes) : NULL;
}

static bool unpack_messages(const struct row *r, const void *wire, struct rows_arena *a,
			    uint8_t *out)
{
	size_t n = *(const size_t *)(const void *)((const uint8_t *)wire + r->n);
	void *const *in;
	uint8_t *item = out + r->at;

	if (n > r->most)
		return false;
	if (r->op == ROW_PAGE) {
		item = unpack_room(a, n * r->of->bytes);
		if (!item)
			return false;
		memcpy(out + r->at, &item, sizeof(item));
	}
	memcpy(&in, (const uint8_t *)wire + r->wire, sizeof(in));
	*(uint32_t *)(void *)(out + r->count) = (uint32_t)n;
	for (size_t i = 0; i < n; i++, item += r->of->bytes)
		if (!unpack_rows(r->of, in[i], i ? item - r->of->bytes : NULL, a, item))
			return false;
	return true;
}

/* With messages inside. */
static bool unpack_part(const struct row *r, const void *wire, struct rows_arena *a, uint8_t *out)
{
	const void *in;
	void *to = out + r->at;

	if (r->op == ROW_LIST || r->op == ROW_PAGE)
		return unpack_messages(r, wire, a, out);
	memcpy(&in, (const uint8_t *)wire + r->wire, sizeof(in));
	if (!in)
		return true;
	if (r->op == ROW_LINKED) {
		to = unpack_room(a, r->of->bytes);
		memcpy(out + r->at, &to, sizeof(to));
	}
	return to && unpack_rows(r->of, in, NULL, a, to);
}

/* All but the numbers that are as wide as here. */
static bool unpack_row(const struct row *r, const void *wire, struct rows_arena *a, uint8_t *out)
{
	const void *in = (const uint8_t *)wire + r->wire;
	const ProtobufCBinaryData *bytes = in;
	const uint32_t *word = in;
	void *to = out + r->at;

	switch (r->op) {
	case ROW_8:
	case ROW_16:
		if (*word - (uint32_t)r->low > (uint32_t)r->span)
			return false;
		if (r->op == ROW_8)
			*(uint8_t *)to = (uint8_t)*word;
		else
			*(uint16_t *)to = (uint16_t)*word;
		return true;
	case ROW_ARRAY:
	case ROW_WHOLE:
		return unpack_array(r, wire, out);
	case ROW_SIXTEEN:
		if (bytes->len != 16)
			return false;
		memcpy(to, bytes->data, 16);
		return true;
	case ROW_TEXT:
		return unpack_text(r, bytes, to);
	case ROW_META:
		return unpack_meta(bytes, to);
	case ROW_RAILS:
		return unpack_rails(bytes, to);
	case ROW_BYTES:
		return unpack_pointed(r, bytes, out);
	default:
		return unpack_part(r, wire, a, out);
	}
}

bool unpack_rows(const struct rows *rows, const void *wire, const void *before,
		 struct rows_arena *a, void *out)
{
	static const uint8_t none[sizeof(struct message_part)];
	const uint8_t *was = before ? before : none;

	for (const struct row *r = rows->row, *end = r + rows->count; r < end; r++) {
		const void *in = (const uint8_t *)wire + r->wire;
		void *to = (uint8_t *)out + r->at;

		if (r->op == ROW_32) {
			const uint32_t word = *(const uint32_t *)in;

			if (word - (uint32_t)r->low > (uint32_t)r->span)
				return false;
			*(uint32_t *)to = word - r->add;
		} else if (r->op == ROW_64) {
			const uint64_t word = *(const uint64_t *)in;

			if (word - r->low > r->span)
				return false;
			*(uint64_t *)to = word - r->add;
		} else if (r->op == ROW_DELTA_32) {
			*(uint32_t *)to = *(const uint32_t *)in +
					  *(const uint32_t *)(const void *)(was + r->at);
		} else if (r->op == ROW_DELTA_64) {
			*(uint64_t *)to = *(const uint64_t *)in +
					  *(const uint64_t *)(const void *)(was + r->at);
		} else if (!unpack_row(r, wire, a, out)) {
			return false;
		}
	}
	return true;
}
