/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the XDP program and the process that loads it agree on. The program hands UDP packets to
 * ports [base, base + count) to AF_XDP sockets and leaves everything else to the kernel, so that
 * the interface stays usable for ssh and all other traffic.
 *
 * Limits: one VLAN tag; no IP fragments (a later fragment has no port), no IPv6 extension headers:
 * these go to the kernel.
 */
#ifndef SARISSA_EBPF_XDP_REDIRECT_H
#define SARISSA_EBPF_XDP_REDIRECT_H

/* XSKMAP, key = receive queue, value = AF_XDP socket. DPDK's af_xdp driver looks for this name. */
#define XDP_REDIRECT_SOCKETS_MAP "xsks_map"
#define XDP_REDIRECT_QUEUES_MAX	 64

/* ARRAY of u32 in host byte order: which ports are ours. Zero count: none. */
#define XDP_REDIRECT_PORTS_MAP	"sar_ports"
#define XDP_REDIRECT_PORT_BASE	0 /* key of the first port */
#define XDP_REDIRECT_PORT_COUNT 1 /* key of the number of ports */
#define XDP_REDIRECT_KEYS	2

#define XDP_REDIRECT_PROGRAM "sar_redirect"

#endif
