/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a real switch and a real NIC do and a veth does not, on the switch port's egress towards a
 * host:
 *  - steering: a packet for worker w's UDP port goes to receive queue w, as a flow rule in the
 *    host's NIC would do;
 *  - orphaning: Linux keeps the sender's socket on the packet over veth and bridge, so that a
 *    sender would notice the queue of a remote switch port. The packet is replaced by its clone,
 *    which has no socket.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "packet.h"
#include "port.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct port_config);
} port_config SEC(".maps");

static __always_inline void port_steer(struct __sk_buff *skb, const struct port_config *config)
{
	struct packet packet;
	if (!packet_parse(skb, &packet))
		return;
	if (packet.destination < config->port_base ||
	    packet.destination - config->port_base >= config->workers)
		return;
	skb->queue_mapping = packet.destination - config->port_base + 1; /* 0 means not chosen */
}

SEC("tc")
int sar_port_egress(struct __sk_buff *skb)
{
	__u32 key = 0;
	struct port_config *config = bpf_map_lookup_elem(&port_config, &key);
	if (!config)
		return TC_ACT_UNSPEC;
	if (config->workers > 1)
		port_steer(skb, config);
	if (!config->orphan)
		return TC_ACT_UNSPEC;
	if (skb->mark == PORT_MARK_ORPHAN) {
		skb->mark = 0;
		return TC_ACT_UNSPEC;
	}
	skb->mark = PORT_MARK_ORPHAN;
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return TC_ACT_SHOT;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
