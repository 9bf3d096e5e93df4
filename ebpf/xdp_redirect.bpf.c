/* SPDX-License-Identifier: BSD-3-Clause */
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
	__uint(max_entries, XDP_REDIRECT_KEYS);
	__type(key, __u32);
	__type(value, __u32);
} sar_ports SEC(".maps");

/* A part of the packet that is still to be read. */
struct cursor {
	void *at, *end;
};

static __always_inline __be16 read_ethernet(struct cursor *c)
{
	struct ethernet_header *ethernet = c->at;
	if ((void *)(ethernet + 1) > c->end)
		return 0;
	c->at = ethernet + 1;
	if (ethernet->type != bpf_htons(ETHERTYPE_VLAN) &&
	    ethernet->type != bpf_htons(ETHERTYPE_QINQ))
		return ethernet->type;
	struct vlan_header *vlan = c->at;
	if ((void *)(vlan + 1) > c->end)
		return 0;
	c->at = vlan + 1;
	return vlan->type;
}

/* Moves to what follows the header; false unless that is a whole UDP datagram. We send no options,
 * and to skip them the verifier would ask for one capability more (CAP_PERFMON). */
static __always_inline bool read_ipv4(struct cursor *c)
{
	struct ipv4_header *ip = c->at;
	if ((void *)(ip + 1) > c->end || ip->protocol != PROTOCOL_UDP)
		return false;
	if (ip->fragment & bpf_htons(IPV4_FRAGMENT_MASK))
		return false;
	if ((ip->version_words & 0x0f) * 4 != IPV4_BYTES_MIN)
		return false;
	c->at = ip + 1;
	return true;
}

static __always_inline bool read_ipv6(struct cursor *c)
{
	struct ipv6_header *ip = c->at;
	if ((void *)(ip + 1) > c->end || ip->next_header != PROTOCOL_UDP)
		return false;
	c->at = ip + 1;
	return true;
}

static __always_inline bool is_our_port(__u16 port)
{
	__u32 base_key = XDP_REDIRECT_PORT_BASE, count_key = XDP_REDIRECT_PORT_COUNT;
	__u32 *base = bpf_map_lookup_elem(&sar_ports, &base_key);
	__u32 *count = bpf_map_lookup_elem(&sar_ports, &count_key);
	return base && count && port >= *base && port - *base < *count;
}

SEC("xdp")
int sar_redirect(struct xdp_md *ctx)
{
	struct cursor c = {(void *)(long)ctx->data, (void *)(long)ctx->data_end};
	__be16 type = read_ethernet(&c);
	if (type == bpf_htons(ETHERTYPE_IPV4)) {
		if (!read_ipv4(&c))
			return XDP_PASS;
	} else if (type != bpf_htons(ETHERTYPE_IPV6) || !read_ipv6(&c)) {
		return XDP_PASS;
	}
	struct udp_header *udp = c.at;
	if ((void *)(udp + 1) > c.end || !is_our_port(bpf_ntohs(udp->destination)))
		return XDP_PASS;
	/* the low bits of the flags are the verdict for a queue without a socket */
	return bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
