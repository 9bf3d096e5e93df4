/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks that our tc programs put on packets between two passes through the same hook, so that a
 * clone is recognised when it comes back. A program clears its own mark and leaves others alone.
 */
#ifndef SARISSA_EBPF_PORT_H
#define SARISSA_EBPF_PORT_H

#include <linux/types.h>

#define PORT_MARK_FAULT	 0x5a520001u /* clone made by fault.bpf.c */
#define PORT_MARK_ORPHAN 0x5a520002u /* clone made by port.bpf.c */

/* Element 0 of the ARRAY `port_config`. */
struct port_config {
	__u32 port_base; /* UDP destination port of worker 0 */
	__u32 workers;	 /* ports port_base + w go to queue w; 0 or 1: no steering */
	__u32 orphan;	 /* 1: take packets away from the socket that sent them */
};

#endif
