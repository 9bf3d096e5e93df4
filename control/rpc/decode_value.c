/* SPDX-License-Identifier: BSD-3-Clause */
#include "decode.h"

bool decode_pull(const Rpc__Pull *in, struct message_pull *out)
{
	out->generation = in->generation;
	out->first = in->first;
	out->bytes = in->bytes;
	return decode_generation(in->generation) && in->first <= INT64_MAX && in->bytes > 0 &&
	       in->bytes <= OBJECT_INLINE_MAX && decode_id(&in->id, &out->id);
}

bool decode_push(const Rpc__Push *in, struct message_push *out)
{
	out->bytes.generation = in->generation;
	out->bytes.first = in->first;
	out->bytes.value = in->value.data;
	out->bytes.bytes = (uint32_t)in->value.len;
	return decode_generation(in->generation) && in->first <= INT64_MAX && in->value.len > 0 &&
	       in->value.len <= OBJECT_INLINE_MAX && decode_id(&in->into, &out->into) &&
	       decode_id(&in->id, &out->bytes.id);
}

/* The bytes, or an error. */
bool decode_pull_reply(const Rpc__PullReply *in, struct message_pull *out)
{
	out->status = in->status;
	out->value = in->value.data;
	out->bytes = (uint32_t)in->value.len;
	return decode_status(in->status) && in->value.len <= OBJECT_INLINE_MAX &&
	       (in->status == 0) == (in->value.len > 0);
}
