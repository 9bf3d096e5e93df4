/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the bytes of wire.h are read and written: fields by their offsets, through memcpy, and the
 * functions of wire.c for headers and integrity. For all of the core that touches a packet; it
 * knows no connection.
 */
#ifndef SARISSA_DATAPLANE_CORE_WIRE_WIRE_FIELD_H
#define SARISSA_DATAPLANE_CORE_WIRE_WIRE_FIELD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/kernel/crc.h"
#include "wire.h"

/* Offsets from the begin of a packet. */
enum {
	WIRE_AT_VERSION_TYPE = offsetof(struct wire_header, first),
	WIRE_AT_FLAGS = offsetof(struct wire_header, flags),
	WIRE_AT_CHECK = offsetof(struct wire_header, check),
	WIRE_AT_CONN = offsetof(struct wire_header, conn),
	WIRE_AT_PN = offsetof(struct wire_header, pn),
	WIRE_AT_CRC = offsetof(struct wire_header, crc),
	WIRE_HEADER_BYTES = WIRE_AT_CRC, /* before the integrity field */
	WIRE_BODY = sizeof(struct wire_header),
	WIRE_CRC_BYTES = WIRE_BODY - WIRE_AT_CRC,

	CHUNK_AT_PN = offsetof(struct wire_chunk, pn), /* of type ACK as well */
	CHUNK_AT_STREAM = offsetof(struct wire_chunk, stream),
	CHUNK_AT_CHUNK = offsetof(struct wire_chunk, chunk),
	CHUNK_AT_CRC = offsetof(struct wire_chunk, crc), /* of type ACK as well */
	CHUNK_BODY = sizeof(struct wire_chunk),		 /* payload, or the short ack before it */

	WIRE_ACK_AT_SHORT = offsetof(struct wire_ack, largest), /* as far as the bitmap */
	WIRE_ACK_AT_BITMAP = offsetof(struct wire_ack, bitmap),
	WIRE_ACK_BYTES = sizeof(struct wire_ack),
};
_Static_assert(offsetof(struct wire_ack, pn) == (int)CHUNK_AT_PN &&
		       offsetof(struct wire_ack, crc) == (int)CHUNK_AT_CRC,
	       "CHUNK and ACK are checked alike");

/* From the begin of a short ack, or of a body: behind WIRE_BODY. */
enum {
	SHORT_AT_LARGEST = offsetof(struct wire_short, largest),
	SHORT_AT_DELAY = offsetof(struct wire_short, delay),
	SHORT_AT_ARRIVAL = offsetof(struct wire_short, arrival),
	SHORT_AT_BITMAP = offsetof(struct wire_short, bitmap),
	SHORT_BYTES = sizeof(struct wire_short),

	HELLO_AT_CONN = offsetof(struct wire_hello, conn),
	HELLO_AT_MTU = offsetof(struct wire_hello, mtu),
	HELLO_AT_WORKERS = offsetof(struct wire_hello, workers),
	HELLO_AT_INCARNATION = offsetof(struct wire_hello, incarnation),
	HELLO_AT_PEER = offsetof(struct wire_hello, peer),
	HELLO_AT_TIME = offsetof(struct wire_hello, time),
	HELLO_AT_COOKIE = offsetof(struct wire_hello, cookie),
	HELLO_AT_WINDOW = offsetof(struct wire_hello, window),
	HELLO_AT_PATH = offsetof(struct wire_hello, path),
	HELLO_BYTES = sizeof(struct wire_hello),
	WIRE_COOKIE_BYTES = sizeof(((struct wire_hello *)NULL)->cookie),

	RESET_AT_CONN = offsetof(struct wire_reset, conn),
	RESET_AT_CHECK = offsetof(struct wire_reset, check),
	RESET_AT_PN = offsetof(struct wire_reset, pn),
	RESET_BYTES = sizeof(struct wire_reset),
};

/* From the begin of a frame. */
enum {
	FRAME_AT_FLAGS = offsetof(struct frame_data, flags),

	DATA_AT_LENGTH = offsetof(struct frame_data, length),
	DATA_AT_STREAM = offsetof(struct frame_data, stream),
	DATA_AT_CHUNK = offsetof(struct frame_data, chunk),
	DATA_BYTES = sizeof(struct frame_data),

	PART_AT_OFFSET = offsetof(struct frame_part, offset), /* the rest as in a DATA frame */
	PART_FRAME_BYTES = sizeof(struct frame_part),

	ACK_AT_WORDS = offsetof(struct frame_ack, words),
	ACK_AT_DELAY = offsetof(struct frame_ack, delay),
	ACK_AT_LARGEST = offsetof(struct frame_ack, largest),
	ACK_AT_ARRIVAL = offsetof(struct frame_ack, arrival),
	ACK_AT_BITMAP = sizeof(struct frame_ack),

	GRANT_AT_SENDERS = offsetof(struct frame_grant, senders),
	GRANT_AT_STREAM = offsetof(struct frame_grant, stream),
	GRANT_AT_CHUNKS = offsetof(struct frame_grant, chunks),
	GRANT_BYTES = sizeof(struct frame_grant),

	MSG_AT_LENGTH = offsetof(struct frame_msg, length),
	MSG_AT_ID = offsetof(struct frame_msg, id),
	MSG_AT_FRAGMENT = offsetof(struct frame_msg, fragment),
	MSG_AT_TOTAL = offsetof(struct frame_msg, total),
	MSG_FRAME_BYTES = sizeof(struct frame_msg),

	PING_BYTES = sizeof(struct frame_bare),
	CLOSE_BYTES = sizeof(struct frame_bare),
	RESET_STREAM_AT_STREAM = offsetof(struct frame_reset_stream, stream),
	RESET_STREAM_BYTES = sizeof(struct frame_reset_stream),
	ECN_AT_COUNT = offsetof(struct frame_ecn, count),
	ECN_BYTES = sizeof(struct frame_ecn),
};

/* Credit before the first grant, in chunks of any size: no more bytes, no more chunks, at least
 * one. */
static inline uint32_t wire_unscheduled(uint32_t chunk_bytes)
{
	uint32_t chunks = UNSCHEDULED_BYTES / chunk_bytes;

	if (chunks > UNSCHEDULED_CHUNKS)
		return UNSCHEDULED_CHUNKS;
	return chunks > 0 ? chunks : 1;
}

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

/* The check for PAYLOAD packets, where the sender's id of the connection takes part: an opener
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

#endif
