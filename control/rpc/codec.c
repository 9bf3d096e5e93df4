/* SPDX-License-Identifier: BSD-3-Clause */
/* One message: the envelope around its body. */
#include <errno.h>
#include "rows.h"
#include "internal/ipc.h"

/* No envelope adds more to its body: tag and 8 bytes, tag and length, tag and varint. */
enum { CODEC_ENVELOPE_BYTES = 1 + 8 + 2 + 5 + 2 + 10 };

static void codec_free(void *data, void *pointer)
{
	/* all at once, when the arena is used again */
}

const char *codec_name(uint32_t kind)
{
	return kind < MESSAGE_KINDS && rows_names[kind] ? rows_names[kind] : "none";
}

size_t codec_encode(const struct message *m, uint8_t *scratch, uint8_t *out, size_t room)
{
	struct rows_arena a = {scratch, 0, CODEC_SCRATCH_BYTES};
	Rpc__Envelope e = RPC__ENVELOPE__INIT;
	const struct rows_kind *k;

	if (m->kind == MESSAGE_NONE || m->kind >= MESSAGE_KINDS)
		return 0;
	k = &rows_kinds[rows_cases[m->kind]];
	e.request = m->request;
	e.losses = m->losses;
	e.body_case = rows_cases[m->kind];
	e.hello = rows_alloc(&a, k->rows->wire->sizeof_message); /* or another: all are pointers */
	k->rows->wire->message_init((void *)e.hello);
	if (!pack_rows(k->rows, (const uint8_t *)m + k->at, NULL, &a, e.hello))
		return 0;
	if (k->pack)
		k->pack(m, &a, e.hello);
	/* The size of an envelope costs as much as its body's: it has a field of each kind. */
	if (protobuf_c_message_get_packed_size((const void *)e.hello) + CODEC_ENVELOPE_BYTES >
		    room &&
	    rpc__envelope__get_packed_size(&e) > room)
		return 0;
	return rpc__envelope__pack(&e, out);
}

int codec_decode(const uint8_t *bytes, size_t length, uint8_t *arena, struct message *m)
{
	struct rows_arena a = {arena, 0, CODEC_ARENA_BYTES};
	ProtobufCAllocator allocator = {rows_alloc, codec_free, &a};
	const struct rows_kind *k;
	const Rpc__Envelope *e;

	if (length == 0 || length > MSG_BYTES_MAX)
		return -EBADMSG;
	e = rpc__envelope__unpack(&allocator, length, bytes);
	if (!e || (uint32_t)e->body_case >= ROWS_CASES)
		return -EBADMSG;
	k = &rows_kinds[e->body_case];
	*m = (struct message){.kind = k->kind, .request = e->request, .losses = e->losses};
	if (k->kind == MESSAGE_NONE ||
	    !unpack_rows(k->rows, e->hello, NULL, &a, (uint8_t *)m + k->at) ||
	    (k->check && !k->check(e->hello, &a, m)))
		return -EBADMSG;
	return 0;
}
