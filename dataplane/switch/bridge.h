/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet frames of the switch: which port has which address (a learning bridge without spanning
 * tree: ports must not form a ring), which frames are for the aggregator, and the frames of its
 * answers. Pure; called by ports.c and its test.
 */
#ifndef SARISSA_DATAPLANE_SWITCH_BRIDGE_H
#define SARISSA_DATAPLANE_SWITCH_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/aggregate.h"

enum {
	BRIDGE_ADDRESSES = 1024, /* a power of two; older ones give way */
	BRIDGE_WAYS = 4,
	BRIDGE_NO_PORT = 255,
	BRIDGE_FRAME_HEADERS = 14 + 20 + 8,
};

struct bridge {
	struct bridge_address {
		uint64_t mac; /* 0: none */
		uint8_t port;
		uint32_t used; /* the turn in which it was last seen */
	} address[BRIDGE_ADDRESSES];
	uint32_t turn;
};

/* Notes the sender, and tells the port of the destination; BRIDGE_NO_PORT: all others. */
unsigned bridge_forward(struct bridge *b, unsigned port, const uint8_t *frame);

/* The payload of a frame to the aggregator: whole IPv4 UDP to AGGREGATE_PORT. NULL: it is not. Sets
 * its bytes, and the address it was sent to, in network byte order. */
const uint8_t *bridge_contribution(const uint8_t *frame, uint32_t frame_bytes, uint32_t *bytes,
				   uint32_t *address);

/* The headers of an answer of so many bytes before them, from that address to the group. */
void bridge_write_headers(uint8_t *frame, uint32_t payload_bytes, uint32_t group, uint32_t address);

/* A virtual cable may bring frames whose UDP or TCP checksum covers the pseudo-header alone, for a
 * card that would fill it (CHECKSUM_PARTIAL of Linux): fills it, if it is such a one. */
void bridge_fill_checksum(uint8_t *frame, uint32_t frame_bytes);

/* Turns an ARP request for that address into its answer, in place. False: it is none. */
bool bridge_answer_arp(uint8_t *frame, uint32_t frame_bytes, const uint8_t address[4]);

#endif
