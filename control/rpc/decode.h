/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that turn bytes into messages have in common. False: it is no message of ours. */
#ifndef SARISSA_CONTROL_RPC_DECODE_H
#define SARISSA_CONTROL_RPC_DECODE_H

#include "codec.h"
#include "control.pb-c.h"

bool decode_id(const ProtobufCBinaryData *in, struct object_id *out);
bool decode_chunk(uint32_t chunk_bytes, uint64_t size);

/* decode_stream.c: PIECES and HAS; STREAM */
bool decode_range(const Rpc__Stream *in, struct message_stream *out);
bool decode_stream(const Rpc__Stream *in, struct message_stream *out);

#endif
