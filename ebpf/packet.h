/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the UDP header of a tc packet, for BPF programs on clsact hooks only. Same limits as the
 * XDP program: no fragments, no IPv6 extension headers. (A VLAN tag is not expected on a port.)
 */
#ifndef SARISSA_EBPF_PACKET_H
#define SARISSA_EBPF_PACKET_H

#include <stdbool.h>
#include "headers.h"

struct packet {
	__u32 payload_offset; /* of the UDP payload, in the frame */
	__u32 payload_bytes;
	__u16 source, destination; /* ports, host order */
};

static __always_inline bool packet_parse_ipv4(struct __sk_buff *skb, __u32 *udp_offset)
{
	struct ipv4_header ip;
	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &ip, sizeof(ip)))
		return false;
	if (ip.protocol != PROTOCOL_UDP || ip.fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return false;
	*udp_offset = ETHERNET_BYTES + (ip.version_words & 0x0f) * 4;
	return true;
}

static __always_inline bool packet_parse_ipv6(struct __sk_buff *skb, __u32 *udp_offset)
{
	struct ipv6_header ip;
	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &ip, sizeof(ip)))
		return false;
	*udp_offset = ETHERNET_BYTES + IPV6_BYTES;
	return ip.next_header == PROTOCOL_UDP;
}

/* False: not a whole UDP datagram. */
static __always_inline bool packet_parse(struct __sk_buff *skb, struct packet *out)
{
	__u32 udp_offset = 0;
	struct udp_header udp;
	if (skb->protocol == bpf_htons(ETHERTYPE_IPV4)) {
		if (!packet_parse_ipv4(skb, &udp_offset))
			return false;
	} else if (skb->protocol != bpf_htons(ETHERTYPE_IPV6) ||
		   !packet_parse_ipv6(skb, &udp_offset)) {
		return false;
	}
	if (bpf_skb_load_bytes(skb, udp_offset, &udp, sizeof(udp)))
		return false;
	out->payload_offset = udp_offset + UDP_BYTES;
	if (skb->len < out->payload_offset)
		return false;
	out->payload_bytes = skb->len - out->payload_offset;
	out->source = bpf_ntohs(udp.source);
	out->destination = bpf_ntohs(udp.destination);
	return true;
}

#endif
