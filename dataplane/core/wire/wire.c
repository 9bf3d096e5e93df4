/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire_field.h"
#include "core/kernel/chunk_crc.h"

/* The head of a packet of type CHUNK or ACK: 16 bytes, and words of 8. */
static uint32_t wire_crc_brief(uint32_t state, const uint8_t *head, uint32_t head_length)
{
	uint32_t crc = crc_half(crc_word(state, head), head + CHUNK_AT_CHUNK);

	for (uint32_t at = CHUNK_BODY; at < head_length; at += 8)
		crc = crc_word(crc, head + at);
	return crc;
}

/* From byte `at` on, in two parts. */
static uint32_t wire_crc_rest(uint32_t crc, uint32_t at, const uint8_t *head, uint32_t head_length,
			      const uint8_t *payload, uint32_t payload_length)
{
	if (payload == head + head_length) { /* one call less. MUTANT-OK: only speed */
		head_length += payload_length;
		payload_length = 0;
	}
	if (head_length > at) /* MUTANT-OK: no bytes change no sum */
		crc = crc_bytes(crc, head + at, head_length - at);
	if (payload_length > 0) /* MUTANT-OK: no bytes change no sum */
		crc = crc_bytes(crc, payload, payload_length);
	return ~crc;
}

/* [P2.1] */
uint32_t wire_crc(const uint8_t *head, uint32_t head_length, const uint8_t *payload,
		  uint32_t payload_length)
{
	uint32_t crc = crc_word(crc_word(UINT32_MAX, head), head + 8);

	return wire_crc_rest(crc, WIRE_BODY, head, head_length, payload, payload_length);
}

uint32_t wire_crc_conn(uint64_t from_incarnation, uint32_t from_conn, uint64_t to_incarnation,
		       uint32_t to_conn)
{
	uint8_t known[24];

	wire_put64(known, from_incarnation);
	wire_put64(known + 8, to_incarnation);
	wire_put32(known + 16, from_conn);
	wire_put32(known + 20, to_conn);
	return crc_bytes(UINT32_MAX, known, sizeof(known));
}

uint32_t wire_crc_number(uint32_t state, uint64_t pn)
{
	uint8_t number[8]; /* MUTANT-OK: room to spare */

	wire_put64(number, pn);
	return crc_word(state, number);
}

uint32_t wire_crc_chunk(uint32_t state, const uint8_t *head, uint32_t head_length,
			const uint8_t *payload, uint32_t payload_length)
{
	uint32_t crc = crc_half(crc_word(state, head), head + CHUNK_AT_CHUNK);

	return wire_crc_rest(crc, CHUNK_BODY, head, head_length, payload, payload_length);
}

/* Of a packet of any type, whose integrity field is at *field: the state behind the head. */
static uint32_t wire_crc_head(uint8_t *head, uint32_t head_length, uint8_t **field)
{
	if (!wire_is_short(head)) {
		uint32_t crc = crc_word(crc_word(UINT32_MAX, head), head + 8);
		*field = head + WIRE_AT_CRC;
		return head_length > WIRE_BODY /* MUTANT-OK: no bytes change no sum */
			       ? crc_bytes(crc, head + WIRE_BODY, head_length - WIRE_BODY)
			       : crc;
	}
	*field = head + CHUNK_AT_CRC;
	return wire_crc_brief(wire_get32(*field), head, head_length);
}

struct crc_span wire_crc_span(uint32_t state, const uint8_t *packet, uint32_t head_length,
			      uint32_t length)
{
	uint32_t before = wire_crc_brief(state, packet, head_length), behind = before;

	if (length > head_length) /* MUTANT-OK: no bytes change no sum */
		behind = crc_bytes(before, packet + head_length, length - head_length);
	return (struct crc_span){before, behind};
}

/* [P2.3] */
uint16_t wire_check(uint64_t from_incarnation, uint64_t to_incarnation)
{
	/* Fibonacci multipliers spread neighbouring boot times over the 16 bits that are kept. */
	uint64_t mixed = from_incarnation * 0x9e3779b97f4a7c15ull;
	mixed ^= to_incarnation * 0xc2b2ae3d27d4eb4full;
	mixed ^= mixed >> 32;
	mixed *= 0x9e3779b97f4a7c15ull;
	return (uint16_t)(mixed >> 48);
}

/* [P16] */
void wire_header(uint8_t *p, enum wire_type type, uint16_t check, uint32_t conn, uint64_t pn)
{
	p[WIRE_AT_VERSION_TYPE] = (uint8_t)(WIRE_VERSION << 4 | type);
	p[WIRE_AT_FLAGS] = 0;
	wire_put16(p + WIRE_AT_CHECK, check);
	wire_put32(p + WIRE_AT_CONN, conn);
	wire_put64(p + WIRE_AT_PN, pn);
	wire_put32(p + WIRE_AT_CRC, 0);
}

void wire_chunk(uint8_t *p, uint64_t pn, uint32_t stream, uint32_t chunk, uint32_t state)
{
	p[WIRE_AT_VERSION_TYPE] = WIRE_VERSION << 4 | WIRE_CHUNK;
	p[WIRE_AT_FLAGS] = 0;
	wire_put16(p + CHUNK_AT_PN, (uint16_t)pn);
	wire_put32(p + CHUNK_AT_STREAM, stream);
	wire_put32(p + CHUNK_AT_CHUNK, chunk);
	wire_put32(p + CHUNK_AT_CRC, state);
}

void wire_ack(uint8_t *p, uint64_t pn, const uint8_t *brief, uint32_t state)
{
	p[WIRE_AT_VERSION_TYPE] = WIRE_VERSION << 4 | WIRE_ACK;
	p[WIRE_AT_FLAGS] = 0;
	wire_put16(p + CHUNK_AT_PN, (uint16_t)pn);
	memcpy(p + WIRE_ACK_AT_SHORT, brief, SHORT_AT_BITMAP);
	wire_put32(p + CHUNK_AT_CRC, state);
	memcpy(p + WIRE_ACK_AT_BITMAP, brief + SHORT_AT_BITMAP, SHORT_BYTES - SHORT_AT_BITMAP);
}

void packet_seal(uint8_t *head, uint16_t head_length, const uint8_t *payload,
		 uint16_t payload_length)
{
	uint8_t *at = head + CHUNK_AT_CRC;

	if (wire_is_short(head))
		wire_put32(at, wire_crc_chunk(wire_get32(at), head, head_length, payload,
					      payload_length));
	else
		wire_put32(head + WIRE_AT_CRC,
			   wire_crc(head, head_length, payload, payload_length));
}

bool packet_out_known(const struct packet_out *out)
{
	return chunk_crc_known(&out->crc);
}

/* Takes the CRC of a payload that was summed by itself into the CRC of the packet. */
static void packet_carry(const struct packet_out *out, uint32_t crc)
{
	uint8_t *field;
	uint32_t state = wire_crc_head(out->head, out->head_length, &field);

	wire_put32(field, ~(crc_carry(state, out->crc.carry) ^ crc));
}

static void packet_note(const struct packet_out *out, uint32_t crc)
{
	*out->crc.place = (struct chunk_crc){out->crc.buffer, out->crc.chunk, crc};
	packet_carry(out, crc);
}

void packet_out_seal(const struct packet_out *out)
{
	if (!out->crc.place)
		packet_seal(out->head, out->head_length, out->payload, out->payload_length);
	else if (chunk_crc_known(&out->crc))
		packet_carry(out, out->crc.place->crc);
	else
		packet_note(out, crc_bytes(0, out->payload, out->payload_length));
}

void packet_out_seal_copy(const struct packet_out *out)
{
	uint8_t *to = out->head + out->head_length, *field;

	if (chunk_crc_known(&out->crc)) {
		memcpy(to, out->payload, out->payload_length);
		packet_carry(out, out->crc.place->crc);
	} else if (out->crc.place) {
		packet_note(out, crc_copy(0, to, out->payload, out->payload_length));
	} else {
		uint32_t state = wire_crc_head(out->head, out->head_length, &field);
		wire_put32(field, ~crc_copy(state, to, out->payload, out->payload_length));
	}
}
