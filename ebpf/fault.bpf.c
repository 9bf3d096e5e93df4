/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See fault.h. Reordering needs no queue: a chosen packet is copied into a slot and dropped; some
 * packets later its bytes are put into a clone of the packet that passes by. So it comes late by a
 * number of packets, whatever their rate. Where no packet follows, it stays: to the endpoints that
 * is a loss.
 *
 * Corruption flips one bit or more of one to four bytes of the UDP payload and leaves the UDP
 * checksum alone: a receiver in the kernel drops such a packet when the checksum is in use (and
 * not left to an off-load), ours (checksum zero on IPv4) has its own.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "fault.h"
#include "packet.h"
#include "port.h"

enum slot_state {
	SLOT_EMPTY,
	SLOT_BUSY, /* one CPU reads or writes it */
	SLOT_HELD,
};

struct slot {
	__u32 state;
	__u32 bytes;
	__u64 due; /* goes on with the due-th packet, as counted by seen */
	__u8 frame[FAULT_FRAME_BYTES_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fault_config);
} fault_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fault_counters);
} fault_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FAULT_HELD_MAX);
	__type(key, __u32);
	__type(value, struct slot);
} fault_slots SEC(".maps");

/* Where the bytes of the passing packet wait while a held one goes out in its place. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} fault_scratch SEC(".maps");

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline bool fault_draw(__u32 threshold)
{
	return threshold && (threshold == FAULT_ALWAYS || bpf_get_prandom_u32() < threshold);
}

static __always_inline bool fault_slot_claim(struct slot *slot, __u32 from)
{
	return __sync_val_compare_and_swap(&slot->state, from, SLOT_BUSY) == from;
}

/* Atomic, so that the frame is written before the state. */
static __always_inline void fault_slot_give(struct slot *slot, __u32 state)
{
	__sync_lock_test_and_set(&slot->state, state);
}

static __always_inline bool fault_slot_load(struct __sk_buff *skb, struct slot *slot)
{
	__u32 bytes = skb->len;
	if (bytes == 0 || bytes > FAULT_FRAME_BYTES_MAX)
		return false;
	slot->bytes = bytes;
	return bpf_skb_load_bytes(skb, 0, slot->frame, bytes) == 0;
}

static __always_inline bool fault_slot_store(struct __sk_buff *skb, const struct slot *slot)
{
	__u32 bytes = slot->bytes;
	if (bytes == 0 || bytes > FAULT_FRAME_BYTES_MAX)
		return false;
	return bpf_skb_change_tail(skb, bytes, 0) == 0 &&
	       bpf_skb_store_bytes(skb, 0, slot->frame, bytes, 0) == 0;
}

static __always_inline void fault_send_clone(struct __sk_buff *skb, __u64 redirect_flags)
{
	skb->mark = PORT_MARK_FAULT;
	bpf_clone_redirect(skb, skb->ifindex, redirect_flags);
	skb->mark = 0;
}

static __always_inline void fault_corrupt(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 times = bpf_get_prandom_u32() % 4 + 1;
	for (__u32 i = 0; i < 4; i++) {
		__u32 offset =
			packet->payload_offset + bpf_get_prandom_u32() % packet->payload_bytes;
		__u8 byte;
		if (i >= times || bpf_skb_load_bytes(skb, offset, &byte, 1))
			return;
		byte ^= bpf_get_prandom_u32() % 255 + 1;
		bpf_skb_store_bytes(skb, offset, &byte, 1, 0);
	}
}

/* True: the packet waits in a slot, and the caller drops it. */
static __always_inline bool hold(struct __sk_buff *skb, const struct fault_config *config,
				 __u64 seen)
{
	__u32 distance = config->distance ? config->distance : 1;
	for (__u32 i = 0; i < FAULT_HELD_MAX; i++) {
		__u32 key = i;
		struct slot *slot = bpf_map_lookup_elem(&fault_slots, &key);
		if (!slot || !fault_slot_claim(slot, SLOT_EMPTY))
			continue;
		bool held = fault_slot_load(skb, slot);
		slot->due = seen + 1 + bpf_get_prandom_u32() % distance;
		fault_slot_give(slot, held ? SLOT_HELD : SLOT_EMPTY);
		return held;
	}
	return false;
}

/* Sends the held packet as a clone of this one, which then gets its own bytes back. */
static __always_inline bool fault_release_slot(struct __sk_buff *skb, struct slot *slot,
					       __u64 redirect_flags)
{
	__u32 key = 0;
	struct slot *scratch = bpf_map_lookup_elem(&fault_scratch, &key);
	if (!scratch || !fault_slot_load(skb, scratch))
		return false;
	bool stored = fault_slot_store(skb, slot);
	if (stored)
		fault_send_clone(skb, redirect_flags);
	fault_slot_store(skb, scratch);
	return stored;
}

/* At most one packet per packet that passes. */
static __always_inline void fault_release_due(struct __sk_buff *skb,
					      struct fault_counters *counters, __u64 seen,
					      __u64 redirect_flags)
{
	for (__u32 i = 0; i < FAULT_HELD_MAX; i++) {
		__u32 key = i;
		struct slot *slot = bpf_map_lookup_elem(&fault_slots, &key);
		if (!slot || slot->state != SLOT_HELD || slot->due > seen ||
		    !fault_slot_claim(slot, SLOT_HELD))
			continue;
		if (fault_release_slot(skb, slot, redirect_flags))
			count(&counters->released);
		else
			count(&counters->failed);
		fault_slot_give(slot, SLOT_EMPTY);
		return;
	}
}

static __always_inline bool fault_is_in_range(const struct packet *packet,
					      const struct fault_config *config)
{
	return (packet->destination >= config->port_first &&
		packet->destination <= config->port_last) ||
	       (packet->source >= config->port_first && packet->source <= config->port_last);
}

static __always_inline int fault(struct __sk_buff *skb, __u64 redirect_flags)
{
	__u32 key = 0;
	struct packet packet;
	if (skb->mark == PORT_MARK_FAULT)
		skb->mark = 0;
	else if (skb->mark != PORT_MARK_ORPHAN && packet_parse(skb, &packet)) {
		struct fault_config *config = bpf_map_lookup_elem(&fault_config, &key);
		struct fault_counters *counters = bpf_map_lookup_elem(&fault_counters, &key);
		if (!config || !counters || !fault_is_in_range(&packet, config))
			return TC_ACT_UNSPEC;
		__u64 seen = __sync_fetch_and_add(&counters->seen, 1);
		fault_release_due(skb, counters, seen, redirect_flags);
		if (fault_draw(config->loss)) {
			count(&counters->lost);
			return TC_ACT_SHOT;
		}
		if (packet.payload_bytes && fault_draw(config->corrupt)) {
			fault_corrupt(skb, &packet);
			count(&counters->corrupted);
		}
		if (fault_draw(config->congest) && bpf_skb_ecn_set_ce(skb) == 1)
			count(&counters->congested);
		if (fault_draw(config->duplicate)) {
			fault_send_clone(skb, redirect_flags);
			count(&counters->duplicated);
		}
		if (fault_draw(config->reorder)) {
			if (hold(skb, config, seen)) {
				count(&counters->reordered);
				return TC_ACT_SHOT;
			}
			count(&counters->failed);
		}
	}
	return TC_ACT_UNSPEC; /* on to the next classifier of the hook */
}

SEC("tc/to_host")
int sar_fault_to_host(struct __sk_buff *skb)
{
	return fault(skb, 0);
}

SEC("tc/from_host")
int sar_fault_from_host(struct __sk_buff *skb)
{
	return fault(skb, BPF_F_INGRESS);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
