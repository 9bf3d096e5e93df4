/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XDP program of an AF_XDP port: packets to our address and UDP ports go to the socket of their
 * queue; all else goes on to the kernel. dataplane/io/ports/xdp.c loads it and fills the maps.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "headers.h"
#include "xdp_redirect.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDP_REDIRECT_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xdp_redirect_ours);
} sar_ours SEC(".maps");

/* A part of the packet that is still to be read. */
struct cursor {
	void *at, *end;
};

static __always_inline __be16 xdp_read_ethernet(struct cursor *c)
{
	struct ethernet_header *ethernet = c->at;
	if ((void *)(ethernet + 1) > c->end)
		return 0;
	c->at = ethernet + 1;
	return ethernet->type;
}

/* Moves to what follows the header; false unless that is a whole UDP datagram to our address. We
 * send no options, and to skip them the verifier would ask for one capability more (CAP_PERFMON).
 */
static __always_inline bool xdp_read_ipv4(struct cursor *c, const struct xdp_redirect_ours *ours)
{
	struct ipv4_header *ip = c->at;
	if ((void *)(ip + 1) > c->end || ip->protocol != PROTOCOL_UDP)
		return false;
	if (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return false;
	if ((ip->version_words & 0x0f) * 4 != IPV4_BYTES_MIN)
		return false;
	c->at = ip + 1;
	return ip->destination == ours->ip[3] && ours->ip[2] == bpf_htonl(0xffff);
}

static __always_inline bool xdp_read_ipv6(struct cursor *c, const struct xdp_redirect_ours *ours)
{
	struct ipv6_header *ip = c->at;
	if ((void *)(ip + 1) > c->end || ip->next_header != PROTOCOL_UDP)
		return false;
	c->at = ip + 1;
	for (int i = 0; i < 4; i++)
		if (ip->destination[i] != ours->ip[i])
			return false;
	return true;
}

SEC("xdp")
int sar_redirect(struct xdp_md *ctx)
{
	__u32 key = 0;
	struct cursor c = {(void *)(long)ctx->data, (void *)(long)ctx->data_end};
	const struct xdp_redirect_ours *ours = bpf_map_lookup_elem(&sar_ours, &key);
	__be16 type = xdp_read_ethernet(&c);
	if (!ours)
		return XDP_PASS;
	if (type == bpf_htons(ETHERTYPE_IPV4)) {
		if (!xdp_read_ipv4(&c, ours))
			return XDP_PASS;
	} else if (type != bpf_htons(ETHERTYPE_IPV6) || !xdp_read_ipv6(&c, ours)) {
		return XDP_PASS;
	}
	struct udp_header *udp = c.at;
	if ((void *)(udp + 1) > c.end || bpf_ntohs(udp->destination) - ours->port >= ours->ports)
		return XDP_PASS;
	/* the low bits of the flags are the verdict for a queue without a socket */
	return bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
