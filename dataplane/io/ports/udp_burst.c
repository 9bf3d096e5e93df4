/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many of the packets to send next fit one call with segmentation off-load: one address, one
 * codepoint, equal lengths. Called by udp_tx.c. Pure.
 */
#include "udp.h"

static unsigned udp_burst_length(const struct packet_out *p)
{
	return (unsigned)p->head_length + p->payload_length;
}

unsigned udp_burst_packets(const struct packet_out *out, unsigned count)
{
	unsigned segment = udp_burst_length(&out[0]), bytes = segment, n = 1;

	for (; n < count && n < UDP_SEGMENTS; n++) {
		unsigned length = udp_burst_length(&out[n]);
		/* one control message says the codepoint of all */
		if (length > segment || bytes + length > UDP_BURST_BYTES ||
		    out[n].ecn != out[0].ecn || !net_addr_equal(&out[n].to, &out[0].to))
			return n;
		bytes += length;
		if (length < segment) /* the kernel cuts at equal distances: a rest ends it */
			return n + 1;
	}
	return n;
}
