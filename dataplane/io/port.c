/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include "ether.h"
#include "log.h"

enum {
	DESCRIPTORS = 1024,
	DESCRIPTORS_TAP = 256, /* it keeps that many buffers for a single packet */
};

static int port_fail(const struct options *o, int error, const char *what, const char *todo)
{
	const char *dpdk = log_dpdk_last();
	log_error("port %s: %s%s%s%s: %s", o->port.text, what, *dpdk ? " (" : "", dpdk,
		  *dpdk ? ")" : "", todo);
	return error;
}

/* A locally administered address that follows from the IP address: the same after a restart, and
 * not the one of the kernel's end of a tap, which a bridge would keep for itself. */
static void port_make_mac(const struct net_addr *addr, uint8_t *mac)
{
	mac[0] = 0x02;
	mac[1] = net_addr_is_v4(addr) ? 0x5a : addr->ip[11] ^ 0x5b;
	memcpy(mac + 2, addr->ip + 12, 4);
}

static int port_read_interface(const struct options *o, struct port *p)
{
	const char *name = o->port.name;
	int error = interface_read(name, &p->interface);
	if (error) {
		log_error("port %s: no interface %s here (%s): see 'ip link'", o->port.text, name,
			  strerror(-error));
		return error;
	}
	if (!p->interface.up) {
		log_error("port %s: the interface is down: 'ip link set dev %s up'", o->port.text,
			  name);
		return -ENETDOWN;
	}
	if (!o->has_addr && !p->interface.has_addr) {
		log_error("port %s: the interface has no IP address: give it one, or --addr",
			  o->port.text);
		return -EADDRNOTAVAIL;
	}
	if (!o->has_addr) {
		p->addr = p->interface.addr;
		p->addr.port = o->udp_port;
	}
	if (p->mtu > p->interface.mtu) {
		log_error("port %s: --mtu %u is above the interface's %u: "
			  "'ip link set dev %s mtu %u'",
			  o->port.text, p->mtu, p->interface.mtu, name, p->mtu);
		return -EMSGSIZE;
	}
	if (p->mtu == 0)
		p->mtu = (uint16_t)(p->interface.mtu > 9000 ? 9000 : p->interface.mtu);
	memcpy(p->mac, p->interface.mac, 6);
	return 0;
}

/* Makes the device appear. pci devices were found by rte_eal_init already. */
static int port_probe(const struct options *o, struct port *p)
{
	char devargs[PORT_SPEC_DEVARGS];
	const char *object = xdp_object_path();
	if (p->kind == PORT_AF_XDP && !object) {
		log_error("port %s: the XDP program %s is missing: install it, or build with clang",
			  o->port.text, SARISSA_XDP_OBJECT);
		return -ENOENT;
	}
	if (p->kind != PORT_PCI) {
		bool busy = o->busy_poll && strcmp(p->interface.driver, "veth") != 0;
		if (!port_spec_devargs(&o->port, p->queues, object, busy, devargs, sizeof(devargs)))
			return port_fail(o, -ENAMETOOLONG, "the name is too long", "shorten it");
		int error = rte_dev_probe(devargs);
		if (error < 0)
			return port_fail(o, error, "the device does not come up",
					 "check its name, and the rights to use it");
	}
	RTE_ETH_FOREACH_DEV(p->id)
	return 0;
	return port_fail(o, -ENODEV, "no such device",
			 "check the address, and the driver with dpdk-devbind.py --status");
}

static int port_check_limits(const struct options *o, struct port *p,
			     const struct rte_eth_dev_info *info)
{
	char what[96];
	if (info->max_rx_queues < p->queues || info->max_tx_queues < p->queues) {
		snprintf(what, sizeof(what), "it has %u queues for %u workers",
			 RTE_MIN(info->max_rx_queues, info->max_tx_queues), p->queues);
		return port_fail(o, -EINVAL, what, "use fewer --workers, or add queues to it");
	}
	/* the interface's MTU was checked already, and af_xdp drivers count on the pool */
	unsigned frame = p->mtu + ETHER_HEADER + RTE_ETHER_CRC_LEN;
	if (info->max_rx_pktlen && frame > info->max_rx_pktlen) {
		snprintf(what, sizeof(what), "it takes frames of %u bytes, MTU %u needs %u",
			 info->max_rx_pktlen, p->mtu, frame);
		return port_fail(o, -EMSGSIZE, what, "use a smaller --mtu");
	}
	return 0;
}

static int port_configure_device(const struct options *o, struct port *p)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	int error = rte_eth_dev_info_get(p->id, &info);
	if (!error)
		error = port_check_limits(o, p, &info);
	if (error)
		return error;
	if (p->kind == PORT_PCI && p->queues > 1) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads &
			(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	}
	bool chains = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (chains && (p->kind == PORT_TAP || p->kind == PORT_MEMIF))
		p->payload = PAYLOAD_CHAIN;
	else if (chains && p->kind == PORT_PCI)
		p->payload = PAYLOAD_DMA;
	if (p->payload != PAYLOAD_COPY)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	p->udp6_checksum = p->kind == PORT_PCI && !net_addr_is_v4(&p->addr) &&
			   (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	if (p->udp6_checksum)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	p->rx_interrupt = !o->busy_poll && (p->kind == PORT_TAP || p->kind == PORT_PCI);
	conf.intr_conf.rxq = p->rx_interrupt;
	uint16_t queues = (uint16_t)p->queues;
	error = rte_eth_dev_configure(p->id, queues, queues, &conf);
	if (error && p->rx_interrupt && p->kind == PORT_PCI) {
		conf.intr_conf.rxq = p->rx_interrupt = 0;
		error = rte_eth_dev_configure(p->id, queues, queues, &conf);
	}
	if (error)
		return port_fail(o, error, "it refuses its configuration", "see --log-level debug");
	if (p->kind != PORT_AF_XDP && p->mtu != RTE_ETHER_MTU &&
	    rte_eth_dev_set_mtu(p->id, p->mtu) != 0)
		return port_fail(o, -EMSGSIZE, "it refuses this MTU", "use a smaller --mtu");
	return 0;
}

static int port_setup_queue(const struct options *o, struct port *p, unsigned q)
{
	char name[32];
	uint16_t rx = p->kind == PORT_TAP ? DESCRIPTORS_TAP : DESCRIPTORS, tx = DESCRIPTORS;
	rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx, &tx);
	snprintf(name, sizeof(name), "packets%u", q);
	p->pool[q] = pool_create(name, p->kind, p->mtu, rx, tx);
	if (!p->pool[q])
		return port_fail(o, -ENOMEM, "no memory for packet buffers",
				 p->mtu > 3498 && p->kind == PORT_AF_XDP
					 ? "AF_XDP takes an MTU up to 3498"
					 : "free some, or use fewer --workers");
	int socket = rte_eth_dev_socket_id(p->id);
	int error =
		rte_eth_rx_queue_setup(p->id, (uint16_t)q, rx, (unsigned)socket, NULL, p->pool[q]);
	if (error && *xdp_attach_error())
		return port_fail(o, error, xdp_attach_error(), "the interface cannot run XDP");
	if (!error)
		error = rte_eth_tx_queue_setup(p->id, (uint16_t)q, tx, (unsigned)socket, NULL);
	if (error)
		return port_fail(o, error, "a queue does not come up",
				 "check its queues and the rights to use it");
	if (p->kind == PORT_AF_XDP)
		p->rx_fd[q] = xdp_find_socket(p->rx_fd, q);
	return 0;
}

/* The tap driver asks the kernel for a signal per packet, which would wake the main thread each
 * time. Signals are blocked (main.c) and here turned off; without one seen, the driver simply
 * reads, and we sleep on the file descriptor. */
static void port_quiet_tap(void)
{
	char path[32], target[32];
	for (int fd = 3; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		if (strcmp(target, "/dev/net/tun") == 0)
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC);
	}
}

static void port_find_fds(struct port *p)
{
	if (p->kind == PORT_TAP)
		port_quiet_tap();
	for (unsigned q = 0; p->rx_interrupt && q < p->queues; q++) {
		p->rx_fd[q] = rte_eth_dev_rx_intr_ctl_q_get_fd(p->id, (uint16_t)q);
		if (p->kind == PORT_PCI && rte_eth_dev_rx_intr_enable(p->id, (uint16_t)q) != 0)
			p->rx_fd[q] = -1;
	}
	/* the tap's descriptor is the tap itself: readable without arming */
	p->rx_interrupt = p->rx_interrupt && p->kind == PORT_PCI;
}

/* One rule per worker: its UDP port to its queue. Without them packets go by hash and are handed
 * over between workers. */
static bool port_steer(struct port *p)
{
	bool v4 = net_addr_is_v4(&p->addr);
	for (unsigned q = 0; q < p->queues; q++) {
		struct rte_flow_attr attr = {.ingress = 1};
		struct rte_flow_item_udp udp = {
			.hdr.dst_port = rte_cpu_to_be_16((uint16_t)(p->addr.port + q))};
		struct rte_flow_item_udp mask = {.hdr.dst_port = 0xffff};
		struct rte_flow_action_queue queue = {.index = (uint16_t)q};
		struct rte_flow_item pattern[] = {
			{.type = RTE_FLOW_ITEM_TYPE_ETH},
			{.type = v4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6},
			{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &mask},
			{.type = RTE_FLOW_ITEM_TYPE_END}};
		struct rte_flow_action actions[] = {
			{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
			{.type = RTE_FLOW_ACTION_TYPE_END}};
		struct rte_flow_error error;
		if (!rte_flow_create(p->id, &attr, pattern, actions, &error))
			return false;
	}
	return true;
}

static int port_start(const struct options *o, struct port *p)
{
	int error = rte_eth_dev_start(p->id);
	if (error)
		return port_fail(o, error, "it does not start", "see --log-level debug");
	if (p->kind == PORT_PCI) {
		struct rte_ether_addr mac;
		if (rte_eth_macaddr_get(p->id, &mac) == 0)
			memcpy(p->mac, mac.addr_bytes, 6);
		rte_eth_allmulticast_enable(p->id); /* neighbour solicitations */
		p->steered = p->queues > 1 && port_steer(p);
	}
	port_find_fds(p);
	if (p->kind == PORT_AF_XDP)
		return xdp_configure(&p->xdp, p->addr.port, p->queues, p->rx_fd[0]);
	return 0;
}

static void port_describe(const struct options *o, struct port *p)
{
	int n = snprintf(p->text, sizeof(p->text), "%s %.40s", port_kind_name(p->kind),
			 o->port.name);
	if (p->kind != PORT_AF_XDP || n >= (int)sizeof(p->text))
		return;
	snprintf(p->text + n, sizeof(p->text) - (size_t)n, " (%s, %s)",
		 p->xdp.generic ? "generic" : "native", p->xdp.zero_copy ? "zero-copy" : "copy");
	if (!p->xdp.zero_copy)
		log_info("port %s: copy mode: %s%s", o->port.text,
			 o->port.copy ? "asked for" : "no zero-copy AF_XDP in driver ",
			 o->port.copy ? "" : p->interface.driver);
}

static int port_bring_up(const struct options *o, struct port *p)
{
	int error = 0;
	if (p->kind == PORT_AF_XDP) {
		error = port_read_interface(o, p);
		if (!error)
			error = xdp_prepare(&p->xdp, o->port.name, p->interface.index);
	} else {
		port_make_mac(&p->addr, p->mac);
		if (p->mtu == 0)
			p->mtu = RTE_ETHER_MTU;
	}
	if (!error)
		error = port_probe(o, p);
	if (!error)
		error = port_configure_device(o, p);
	for (unsigned q = 0; q < p->queues && !error; q++)
		error = port_setup_queue(o, p, q);
	return error ? error : port_start(o, p);
}

int port_open(const struct options *o, struct port *out)
{
	*out = (struct port){.id = RTE_MAX_ETHPORTS,
			     .kind = o->port.kind,
			     .answers = !port_kind_kernel_owns(o->port.kind),
			     .mtu = o->mtu,
			     .addr = o->addr,
			     .gateway = o->gateway,
			     .prefix = o->has_gateway ? o->prefix : 0,
			     .queues = o->workers,
			     .xdp.lock_fd = -1};
	for (unsigned q = 0; q < WORKERS_MAX; q++)
		out->rx_fd[q] = -1;
	out->neighbours = aligned_alloc(64, sizeof(*out->neighbours));
	if (!out->neighbours)
		return -ENOMEM;
	memset(out->neighbours, 0, sizeof(*out->neighbours));
	neighbour_init(out->neighbours, out->answers);
	int error = port_bring_up(o, out);
	if (error) {
		port_close(out);
		return error;
	}
	port_describe(o, out);
	return 0;
}

void port_close(struct port *p)
{
	if (p->id < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(p->id)) {
		rte_eth_dev_stop(p->id);
		rte_eth_dev_close(p->id);
	}
	p->id = RTE_MAX_ETHPORTS;
	if (p->xdp.lock_fd >= 0)
		xdp_release(&p->xdp);
	free(p->neighbours);
	p->neighbours = NULL;
}

int port_map_store(struct port *p, void *base, uint64_t bytes, bool huge)
{
	struct rte_eth_dev_info info;
	if (p->payload != PAYLOAD_DMA)
		return 0;
	size_t page = huge ? 2u << 20 : 4096;
	if (rte_extmem_register(base, bytes, NULL, 0, page) != 0)
		return -rte_errno;
	if (rte_eth_dev_info_get(p->id, &info) == 0 &&
	    rte_dev_dma_map(info.device, base, (uint64_t)(uintptr_t)base, bytes) == 0)
		return 0;
	int error = rte_errno;
	rte_extmem_unregister(base, bytes);
	return -error;
}

void port_unmap_store(struct port *p, void *base, uint64_t bytes)
{
	struct rte_eth_dev_info info;
	if (p->payload != PAYLOAD_DMA)
		return;
	if (rte_eth_dev_info_get(p->id, &info) == 0)
		rte_dev_dma_unmap(info.device, base, (uint64_t)(uintptr_t)base, bytes);
	rte_extmem_unregister(base, bytes);
}
