/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files that decode messages. All return false for a message that is not valid. */
#ifndef SARISSA_CONTROL_RPC_DECODE_H
#define SARISSA_CONTROL_RPC_DECODE_H

#include "codec.h"
#include "control.pb-c.h"

/* A message that asks for more is refused. */
struct decode_arena {
	uint8_t *memory;
	size_t used;
};

/* data: the arena; NULL when it is used up. */
void *decode_alloc(void *data, size_t size);

bool decode_id(const ProtobufCBinaryData *in, struct object_id *out);
bool decode_chunk(uint32_t chunk_bytes, uint64_t size);
bool decode_rails(const ProtobufCBinaryData *in, struct message_rails *out);
bool decode_generation(uint64_t generation);
bool decode_status(int32_t status);
/* Text of at most room - 1 bytes without a zero among them. */
bool decode_text(const ProtobufCBinaryData *in, char *out, size_t room);
bool decode_meta(const ProtobufCBinaryData *in, struct object_meta *out);

/* decode_described.c */
bool decode_node_status(const Rpc__Node *in, struct session_node *out);
/* The plan of a NODE; *out NULL: it has none. */
bool decode_plan(const Rpc__Node *in, struct decode_arena *a, const struct control_plan **out);
bool decode_watch(const Rpc__Watch *in, struct message_watch *out);
bool decode_objects(const Rpc__Objects *in, struct decode_arena *a, struct message_objects *out);
bool decode_members(const Rpc__Members *in, struct decode_arena *a, struct message_members *out);

/* decode_stream.c: PIECES and HAS; STREAM */
bool decode_range(const Rpc__Stream *in, struct message_stream *out);
bool decode_stream(const Rpc__Stream *in, struct message_stream *out);

/* decode_value.c */
bool decode_pull(const Rpc__Pull *in, struct message_pull *out);
bool decode_pull_reply(const Rpc__PullReply *in, struct message_pull *out);
bool decode_push(const Rpc__Push *in, struct message_push *out);

#endif
