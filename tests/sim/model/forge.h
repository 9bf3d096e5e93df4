/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand-made packets with a valid checksum, written from wire.h alone: what an attacker on the path
 * or a broken peer could send.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_FORGE_H
#define SARISSA_TESTS_SIM_MODEL_FORGE_H

#include "wire/wire_field.h"
#include "world.h"

struct forge {
	uint8_t bytes[1472];
	uint16_t length;
	uint32_t known;	 /* wire_crc_conn() and number of a CHUNK or ACK packet: */
	uint64_t number; /* what its checksum begins with */
};

/* A packet with header and no body yet. */
static inline void forge_header(struct forge *f, uint32_t type, uint16_t check, uint32_t conn,
				uint64_t pn)
{
	memset(f, 0, sizeof(*f));
	f->bytes[WIRE_AT_VERSION_TYPE] = (uint8_t)(WIRE_VERSION << 4 | type);
	wire_put16(f->bytes + WIRE_AT_CHECK, check);
	wire_put32(f->bytes + WIRE_AT_CONN, conn);
	wire_put64(f->bytes + WIRE_AT_PN, pn);
	f->length = WIRE_BODY;
}

/* Room for a frame or body of so many bytes, zeroed. */
static inline uint8_t *forge_add(struct forge *f, uint32_t bytes)
{
	uint8_t *at = f->bytes + f->length;
	f->length = (uint16_t)(f->length + bytes);
	return at;
}

/* Makes the checksum right. */
static inline void forge_seal(struct forge *f)
{
	if (wire_is_short(f->bytes))
		wire_put32(f->bytes + CHUNK_AT_CRC, wire_crc_number(f->known, f->number));
	packet_seal(f->bytes, f->length, NULL, 0);
}

/* Sends the bytes as they are from one endpoint to another. */
static inline void forge_send(struct world *w, const struct forge *f, uint32_t from, uint32_t to)
{
	struct network_packet *p = network_new(&w->net);
	struct net_addr addr = network_addr(&w->net, to);
	memcpy(p->data, f->bytes, f->length);
	p->length = f->length;
	network_send(&w->net, p, from, &addr, ENGINE_ECN_NOT);
}

#endif
