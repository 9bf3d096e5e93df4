/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packs messages into bytes, and back. Called by the mailbox and the simulator, from any thread.
 * The only place that knows protobuf-c. Bytes come from other nodes: a message with one bad field
 * is refused; nothing is asserted, and memory is bounded by the caller's arena.
 */
#ifndef SARISSA_CONTROL_RPC_CODEC_H
#define SARISSA_CONTROL_RPC_CODEC_H

#include <stddef.h>
#include "../core/message/message.h"

enum {
	/* Decoding needs no more than this: the longest message, its pieces as structs, and the
	 * objects of an OBJECTS message. */
	CODEC_ARENA_BYTES = 512 * 1024,
	CODEC_SCRATCH_BYTES = 64 * 1024, /* for encoding */
};

/* Writes m into out. Returns the bytes, or 0 when they are more than room. scratch: of
 * CODEC_SCRATCH_BYTES, 16-aligned. */
size_t codec_encode(const struct message *m, uint8_t *scratch, uint8_t *out, size_t room);

/* Reads a message. Returns 0, or -EBADMSG and *m is undefined. What *m points to lies in arena (of
 * CODEC_ARENA_BYTES, 16-aligned) and stays valid until that is used again. */
int codec_decode(const uint8_t *bytes, size_t length, uint8_t *arena, struct message *m);

/* The name of a kind, in capitals. */
const char *codec_name(uint32_t kind);

#endif
