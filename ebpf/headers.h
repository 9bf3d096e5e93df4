/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixed parts of the headers that our programs look at, for BPF programs only. Offsets are from
 * the start of the frame.
 */
#ifndef SARISSA_EBPF_HEADERS_H
#define SARISSA_EBPF_HEADERS_H

#include <linux/types.h>

enum {
	ETHERNET_BYTES = 14,
	IPV4_BYTES_MIN = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	PROTOCOL_UDP = 17,
	IPV4_FRAGMENT_MASK = 0x3fff, /* more fragments, or an offset: part of a datagram */
};

struct ethernet_header {
	__u8 destination[6];
	__u8 source[6];
	__be16 type;
};

struct ipv4_header {
	__u8 version_words;
	__u8 traffic_class;
	__be16 length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__be32 source, destination;
};

struct ipv6_header {
	__be32 version_class_flow;
	__be16 length;
	__u8 next_header;
	__u8 hop_limit;
	__be32 source[4], destination[4];
};

struct udp_header {
	__be16 source, destination;
	__be16 length;
	__be16 checksum;
};

#endif
