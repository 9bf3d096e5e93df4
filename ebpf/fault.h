/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on the path of a node, for tests: a tc classifier on the switch's port of that node loses,
 * duplicates, delays (by some packets) and corrupts the UDP packets of a port range. Attached once
 * per direction (to_host on egress, from_host on ingress), each with its own maps: rates and
 * counters of nodes and directions are independent.
 *
 * The control side (scripts/cluster fault) writes element 0 of `fault_config` and reads element 0
 * of `fault_counters`; both are plain arrays in host byte order.
 */
#ifndef SARISSA_EBPF_FAULT_H
#define SARISSA_EBPF_FAULT_H

#include <linux/types.h>

enum {
	FAULT_FRAME_BYTES_MAX = 9216, /* longer frames pass untouched */
	FAULT_HELD_MAX = 16,	      /* packets that are on the way late, at once */
};

/* Thresholds are parts of 2^32; FAULT_ALWAYS means every packet. */
#define FAULT_ALWAYS 0xffffffffu

struct fault_config {
	__u32 port_first, port_last; /* destination or source port, host order; both inclusive */
	__u32 loss, duplicate, reorder, corrupt, congest;
	__u32 distance; /* a reordered packet comes 1..distance packets late */
};

struct fault_counters {
	__u64 seen; /* packets of the port range */
	__u64 lost, duplicated, reordered, corrupted, congested;
	__u64 released; /* reordered ones that have gone on; the others wait for a packet */
	__u64 failed;	/* faults that could not be made, e.g. no room to hold a packet */
};

#endif
