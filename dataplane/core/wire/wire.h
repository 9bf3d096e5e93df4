/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a packet. docs/developer/protocol.md draws them; this header is their only
 * definition in code. All integers are little-endian and may lie at any alignment: read and written
 * through memcpy.
 *
 * A packet is a fixed header, an integrity field, and a body: frames for type PAYLOAD, one struct
 * for the others. In clear mode the integrity field is a CRC32C (4 bytes) over header and body; a
 * 16-byte AEAD tag can stand in its place (flag WIRE_FLAG_SECURE), header as associated data and
 * packet number as nonce, without any other change. Types CHUNK and ACK have a short header of
 * their own: what it leaves out the receiver knows, and the CRC covers that too.
 */
#ifndef SARISSA_DATAPLANE_CORE_WIRE_WIRE_H
#define SARISSA_DATAPLANE_CORE_WIRE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/kernel/crc.h"

enum {
	WIRE_VERSION = 4,
	WIRE_HEADER_BYTES = 16, /* before the integrity field */
	WIRE_CRC_BYTES = 4,
	WIRE_BODY = WIRE_HEADER_BYTES + WIRE_CRC_BYTES,
	WIRE_FLAG_SECURE = 1,  /* reserved for the AEAD form; refused in clear mode */
	WIRE_HELLO_MIN = 1200, /* UDP payload of a HELLO: no reply is ever larger */
	WIRE_COOKIE_BYTES = 16,
};

enum wire_type {
	WIRE_HELLO = 1, /* conn 0; body wire_hello, padded */
	WIRE_COOKIE,	/* conn of the opener; body wire_hello with the cookie */
	WIRE_ACCEPT,	/* conn of the opener; body wire_hello, padded like the HELLO it answers */
	WIRE_PAYLOAD,	/* frames */
	WIRE_RESET,	/* conn 0; body wire_reset: no connection behind a packet of yours */
	WIRE_CHUNK, /* one chunk of a stream that asks for nothing, with a short ack or without */
	WIRE_ACK,   /* a short ack and nothing else */
};

enum wire_frame {
	FRAME_PADDING = 0, /* ends the frames: what follows is filling */
	FRAME_DATA,	   /* one chunk of a stream */
	FRAME_ACK,
	FRAME_GRANT,
	FRAME_MSG, /* a fragment of a message */
	FRAME_PING,
	FRAME_RESET_STREAM, /* the receiver knows no such stream */
	FRAME_CLOSE,
	FRAME_ECN,  /* CE marks seen so far */
	FRAME_PART, /* a part of a chunk, where the path does not carry all of it at once */
};

/* Byte offsets inside the fixed header. */
enum {
	WIRE_AT_VERSION_TYPE = 0, /* version in the high 4 bits, type in the low 4 */
	WIRE_AT_FLAGS = 1,
	WIRE_AT_CHECK = 2, /* u16: incarnation check */
	WIRE_AT_CONN = 4,  /* u32: connection id of the receiver */
	WIRE_AT_PN = 8,	   /* u64: packet number */
	WIRE_AT_CRC = 16,  /* u32 */
};

/* Byte offsets inside a packet of type CHUNK. Stream and chunk lie where a DATA frame has them. */
enum {
	CHUNK_AT_PN = 2,	  /* u16: low bits of the packet number; of type ACK as well */
	CHUNK_AT_STREAM = 4,	  /* u32 */
	CHUNK_AT_CHUNK = 8,	  /* u32 */
	CHUNK_AT_CRC = 12,	  /* u32; of type ACK as well */
	CHUNK_BODY = 16,	  /* payload, up to the end of the packet; behind the short ack */
	CHUNK_PN_REACH = 1 << 15, /* how far a number may be from one that the receiver knows */
	CHUNK_FLAG_ACK = 2,	  /* a short ack begins at CHUNK_BODY */
};

/* A short ack: a bitmap of 64 packets, and where and when it ends. */
enum {
	SHORT_AT_LARGEST = 0, /* u16: low bits of the largest number received */
	SHORT_AT_DELAY = 2,   /* u16, u32: as in an ACK frame */
	SHORT_AT_ARRIVAL = 4,
	SHORT_AT_BITMAP = 8, /* u64: bit 63 is largest, bit 63 - k is largest - k */
	SHORT_BYTES = 16,
	WIRE_ACK_AT_SHORT = 4,	 /* in a packet of type ACK: as far as the bitmap, */
	WIRE_ACK_AT_BITMAP = 16, /* which lies behind the CRC */
	WIRE_ACK_BYTES = 24,
};

enum {
	FRAMES_MAX = 16
}; /* in a packet; a stream may take long to find, so their work is bounded */

/* Frame layouts: byte offsets from the frame's start, and fixed sizes. */
enum {
	FRAME_AT_FLAGS = 1,
	FRAME_FLAG_ASK = 1, /* DATA, MSG: acknowledge at once, the sender waits */

	DATA_AT_LENGTH = 2, /* u16: payload bytes */
	DATA_AT_STREAM = 4, /* u32 */
	DATA_AT_CHUNK = 8,  /* u32: index; offset in the object is index * chunk size */
	DATA_BYTES = 12,

	ACK_AT_WORDS = 1,    /* u8: 64-bit words of bitmap, 1..16 */
	ACK_AT_DELAY = 2,    /* u16: units of 4 us since the largest packet arrived */
	ACK_AT_LARGEST = 4,  /* u64 */
	ACK_AT_ARRIVAL = 12, /* u32: when it arrived, us of a clock of the receiver's own; wraps */
	ACK_AT_BITMAP = 16,  /* u64[words], ascending; the last covers largest | 63 */
	ACK_WORDS_MAX = 16,
	ACK_DELAY_UNIT_NS = 4000,

	PART_AT_OFFSET = 12, /* u16: bytes of the chunk before it; the rest as in a DATA frame */
	PART_FRAME_BYTES = 16,
	PART_BYTES = 1152, /* fits every path; a frame brings one or more of them, in one piece */
	PARTS_MAX = 8,	   /* of the longest chunk */

	GRANT_AT_SENDERS = 1, /* u8: nodes that stream to this one now, 255 at most; 0: not said */
	GRANT_AT_STREAM = 4,  /* u32: the receiver's stream id */
	GRANT_AT_CHUNKS = 8,  /* u32: first transmissions allowed in all */
	GRANT_BYTES = 12,

	MSG_AT_LENGTH = 2,   /* u16: payload bytes */
	MSG_AT_ID = 4,	     /* u32: counts up from 0 per connection and direction */
	MSG_AT_FRAGMENT = 8, /* u16: index; offset is index * MSG_FRAGMENT_BYTES */
	MSG_AT_TOTAL = 12,   /* u32: bytes of the message */
	MSG_FRAME_BYTES = 16,
	MSG_FRAGMENT_BYTES = 1152, /* fits every path */
	MSG_FRAGMENTS_MAX = 64,

	PING_BYTES = 4,
	RESET_STREAM_AT_STREAM = 4,
	RESET_STREAM_BYTES = 8,
	CLOSE_BYTES = 4,  /* u8 type, u8 reason, 2 reserved */
	ECN_AT_COUNT = 4, /* u32: wraps */
	ECN_BYTES = 8,
};

/* Of a stream, before its first grant: a round trip of 10 Gbit/s and 36 us, in chunks of MTU 1500.
 */
enum { UNSCHEDULED_CHUNKS = 32, UNSCHEDULED_BYTES = UNSCHEDULED_CHUNKS * 1408 };

/* The unscheduled window in chunks of another size: no more bytes, no more chunks, at least one. */
static inline uint32_t wire_unscheduled(uint32_t chunk_bytes)
{
	uint32_t chunks = UNSCHEDULED_BYTES / chunk_bytes;

	if (chunks > UNSCHEDULED_CHUNKS)
		return UNSCHEDULED_CHUNKS;
	return chunks > 0 ? chunks : 1;
}

/* Body of HELLO, COOKIE and ACCEPT: byte offsets from WIRE_BODY. */
enum {
	HELLO_AT_CONN = 0,	  /* u32: id the sender wants to be called by */
	HELLO_AT_MTU = 4,	  /* u16: IP bytes of the sender's link */
	HELLO_AT_WORKERS = 6,	  /* u16 */
	HELLO_AT_INCARNATION = 8, /* u64: of the sender; COOKIE: echo of the opener's */
	HELLO_AT_PEER = 16,	  /* u64: ACCEPT: echo of the opener's incarnation; else 0 */
	HELLO_AT_TIME = 24,	  /* u64: when the cookie was made, in the maker's units */
	HELLO_AT_COOKIE = 32,	  /* 16 bytes; zero in the first HELLO */
	HELLO_AT_WINDOW = 48,	  /* u32: packets the sender keeps in flight at most */
	HELLO_AT_PATH = 52, /* u32: HELLO: the receiver's id of the connection that this one is to
			       be another path of; 0: it is a connection. Else 0 */
	HELLO_BYTES = 56,
};

/* Body of RESET: what the offending packet said. */
enum {
	RESET_AT_CONN = 0,  /* u32 */
	RESET_AT_CHECK = 4, /* u16 */
	RESET_AT_PN = 8,    /* u64 */
	RESET_BYTES = 16,
};

static inline uint16_t wire_get16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t wire_get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t wire_get64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void wire_put16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void wire_put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void wire_put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the accessors above copy host order");

/* CRC32C (Castagnoli, RFC 3720 B.4) of a packet whose body may lie in two parts. */
uint32_t wire_crc(const uint8_t *head, uint32_t head_length, const uint8_t *payload,
		  uint32_t payload_length);

/* A packet of type CHUNK or ACK begins its CRC with what is not sent: wire_crc_conn() over what
 * both ends know of the connection, once for each direction, then wire_crc_number() over the whole
 * packet number, and, with a short ack, over the whole number of its largest. wire_crc_chunk() goes
 * on from there. */
uint32_t wire_crc_conn(uint64_t from_incarnation, uint32_t from_conn, uint64_t to_incarnation,
		       uint32_t to_conn);
uint32_t wire_crc_number(uint32_t state, uint64_t pn);
uint32_t wire_crc_chunk(uint32_t state, const uint8_t *head, uint32_t head_length,
			const uint8_t *payload, uint32_t payload_length);
/* The states of a whole packet of type CHUNK or ACK, its payload behind head_length bytes: not yet
 * the CRC but the states before and behind the payload. */
struct crc_span wire_crc_span(uint32_t state, const uint8_t *packet, uint32_t head_length,
			      uint32_t length);

/* 16 bits that only this pair of lives agrees on: the sender's incarnation, then the receiver's. */
uint16_t wire_check(uint64_t from_incarnation, uint64_t to_incarnation);

/* The state for PAYLOAD packets, where the sender's id of the connection takes part: an opener
 * keeps its own id while the other side may close and accept again, and late packets of the former
 * connection must not pass for packets of the new one. */
static inline uint16_t wire_check_conn(uint64_t from_incarnation, uint32_t from_conn,
				       uint64_t to_incarnation)
{
	return (uint16_t)(wire_check(from_incarnation, to_incarnation) ^ from_conn ^
			  from_conn >> 16);
}

/* Writes the fixed header; the integrity field stays open for packet_seal(). */
void wire_header(uint8_t *p, enum wire_type type, uint16_t check, uint32_t conn, uint64_t pn);

/* The head for types CHUNK and ACK. packet_seal() finds the state of the CRC where the CRC will be.
 */
void wire_chunk(uint8_t *p, uint64_t pn, uint32_t stream, uint32_t chunk, uint32_t state);
void wire_ack(uint8_t *p, uint64_t pn, const uint8_t *brief, uint32_t state);
static inline bool wire_is_chunk(const uint8_t *p)
{
	return p[WIRE_AT_VERSION_TYPE] == (WIRE_VERSION << 4 | WIRE_CHUNK);
}
/* One of both. */
static inline bool wire_is_short(const uint8_t *p)
{
	return (p[WIRE_AT_VERSION_TYPE] & ~1) == (WIRE_VERSION << 4 | WIRE_CHUNK);
}
_Static_assert((WIRE_CHUNK & 1) == 0 && WIRE_ACK == WIRE_CHUNK + 1, "told by one bit");

#endif
