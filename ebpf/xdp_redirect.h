/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the XDP program and the process that loads it agree on. The program hands UDP packets to our
 * address and ports to AF_XDP sockets and leaves everything else to the kernel, so that the
 * interface stays usable for ssh, for other addresses and all other traffic.
 *
 * Limits: no VLAN tag (another network, though on the same cable), no IP fragments (a later
 * fragment has no port), no IPv6 extension headers: these go to the kernel.
 */
#ifndef SARISSA_EBPF_XDP_REDIRECT_H
#define SARISSA_EBPF_XDP_REDIRECT_H

#include <linux/types.h>

/* XSKMAP, key = receive queue, value = AF_XDP socket. DPDK's af_xdp driver looks for this name. */
#define XDP_REDIRECT_SOCKETS_MAP "xsks_map"
#define XDP_REDIRECT_QUEUES_MAX	 64

/* ARRAY of one: what is ours. */
#define XDP_REDIRECT_OURS_MAP "sar_ours"

struct xdp_redirect_ours {
	__u32 ip[4];	   /* network byte order; IPv4 as ::ffff:a.b.c.d */
	__u32 port, ports; /* the first one and how many, host byte order; zero: none */
};

#endif
