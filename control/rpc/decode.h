/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that turn bytes into messages have in common. False: it is no message of ours. */
#ifndef SARISSA_CONTROL_RPC_DECODE_H
#define SARISSA_CONTROL_RPC_DECODE_H

#include "codec.h"
#include "control.pb-c.h"

bool decode_id(const ProtobufCBinaryData *in, struct object_id *out);
bool decode_chunk(uint32_t chunk_bytes, uint64_t size);
bool decode_generation(uint64_t generation);
bool decode_status(int32_t status);

/* decode_stream.c: PIECES and HAS; STREAM */
bool decode_range(const Rpc__Stream *in, struct message_stream *out);
bool decode_stream(const Rpc__Stream *in, struct message_stream *out);

/* decode_value.c */
bool decode_take(const Rpc__Take *in, struct message_take *out);
bool decode_given(const Rpc__Given *in, struct message_take *out);
bool decode_offer(const Rpc__Offer *in, struct message_offer *out);

#endif
