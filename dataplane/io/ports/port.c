/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <rte_common.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_memory.h>
#include "io/node/hold.h"
#include "io/observe/log.h"
#include "udp.h"

enum {
	PORT_MTU_DEFAULT = 1500,
	PORT_XDP_BURST = 8, /* packets: docs/developer/dataplane.md, Ports */
	PORT_XDP_BURST_NS = 500000,
	PORT_MTU_AF_XDP = 3498, /* a frame, its buffer header and XDP's headroom fill a page */
	PORT_MTU_MAX = 9000,
	PORT_MEMIF_BYTES = 3 << 20, /* of a direction */
};

int port_fail(const struct options *o, int error, const char *what, const char *todo)
{
	const char *dpdk = log_dpdk_error();
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

static int port_plan_mtu(const struct options *o, struct port *p)
{
	unsigned link = p->interface.mtu;
	if (p->mtu > link) {
		log_error("port %s: --mtu %u is above the interface's %u: "
			  "'ip link set dev %s mtu %u'",
			  o->port.text, p->mtu, link, o->port.name, p->mtu);
		return -EMSGSIZE;
	}
	if (p->mtu == 0)
		p->mtu = (uint16_t)(link > PORT_MTU_MAX ? PORT_MTU_MAX : link);
	if (p->mtu <= PORT_MTU_AF_XDP)
		return 0;
	log_error("port %s: AF_XDP takes an MTU up to %u, not %u: use --mtu, or another port",
		  o->port.text, PORT_MTU_AF_XDP, p->mtu);
	return -EMSGSIZE;
}

static int port_plan_queues(const struct options *o, struct port *p)
{
	unsigned have = p->interface.queues;
	p->queues = o->port.queues ? o->port.queues : RTE_MIN(have, (unsigned)PORT_QUEUES_MAX);
	p->devices = p->queues;
	if (p->queues > have || o->workers > p->queues) {
		log_error("port %s: the interface has %u receive queue%s for %u queues and %u "
			  "workers: 'ethtool -L %s', or use fewer",
			  o->port.text, have, have == 1 ? "" : "s", p->queues, o->workers,
			  o->port.name);
		return -EINVAL;
	}
	if (p->queues < have)
		log_warning("port %s: packets that arrive on the other %u queues are lost: "
			    "'ethtool -L %s combined %u'",
			    o->port.text, have - p->queues, o->port.name, p->queues);
	return 0;
}

static int port_plan_interface(const struct options *o, struct port *p)
{
	int error = interface_read(o->port.name, &p->interface);
	if (error) {
		log_error("port %s: no interface %s here (%s): see 'ip link'", o->port.text,
			  o->port.name, strerror(-error));
		return error;
	}
	if (!p->interface.up) {
		log_error("port %s: the interface is down: 'ip link set dev %s up'", o->port.text,
			  o->port.name);
		return -ENETDOWN;
	}
	if (!o->has_addr && !p->interface.has_addr) {
		log_error("port %s: the interface has no IP address: give it one, or --addr",
			  o->port.text);
		return -EADDRNOTAVAIL;
	}
	if (!xdp_object_path()) {
		log_error("port %s: the XDP program %s is missing: install it, or build with clang",
			  o->port.text, SARISSA_XDP_OBJECT);
		return -ENOENT;
	}
	if (!o->has_addr)
		memcpy(p->addr.ip, p->interface.addr.ip, sizeof(p->addr.ip));
	memcpy(p->mac, p->interface.mac, sizeof(p->mac));
	error = port_plan_mtu(o, p);
	return error ? error : port_plan_queues(o, p);
}

/* A killed server leaves its socket file behind, and the driver does not remove it. */
static void port_clear_memif(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	strcpy(address.sun_path, path);
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

static int port_plan_memif(const struct options *o)
{
	char folder[sizeof(o->port.socket)];
	strcpy(folder, o->port.socket);
	char *slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = 0;
	if (o->port.server)
		port_clear_memif(o->port.socket);
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	log_error("port %s: cannot use the folder %s (%s): create it", o->port.text, folder,
		  strerror(errno));
	return -errno;
}

/* What DPDK would answer with one word, or not at all. */
static int port_plan_card(const struct options *o, struct card *card)
{
	char what[96], todo[96];
	switch (card_read("/sys", o->port.name, card)) {
	case CARD_GOOD:
		return 0;
	case CARD_NO_ADDRESS:
		return port_fail(o, -EINVAL, "not the address of a PCI card",
				 "give DOMAIN:BUS:DEVICE.FUNCTION, such as pci:0000:3b:00.0");
	case CARD_MISSING:
		return port_fail(o, -ENODEV, "no such card", "see dpdk-devbind.py --status");
	case CARD_NOT_NETWORK:
		return port_fail(o, -ENODEV, "not a network card", "see dpdk-devbind.py --status");
	case CARD_NO_IOMMU:
		return port_fail(o, -ENODEV, "vfio-pci has it, but there is no IOMMU",
				 "switch it on in the firmware and boot with intel_iommu=on, or "
				 "load vfio with enable_unsafe_noiommu_mode=1");
	case CARD_UNBOUND:
	case CARD_OF_KERNEL:
		break;
	}
	snprintf(what, sizeof(what), "%s%s%s", *card->driver ? "the kernel's driver " : "no driver",
		 card->driver, " has it");
	snprintf(todo, sizeof(todo), "dpdk-devbind.py -b vfio-pci %s", card->address);
	return port_fail(o, -EBUSY, what, todo);
}

int port_plan(const struct options *o, struct port *out)
{
	*out = (struct port){.kind = o->port.kind,
			     .ops = &device_ops,
			     .answers = !port_kind_kernel_owns(o->port.kind),
			     .mtu = o->mtu,
			     .vlan = o->vlan,
			     .addr = o->addr,
			     .gateway = o->gateway,
			     .prefix = o->has_gateway ? o->prefix : 0,
			     .devices = 1,
			     .queues = o->workers,
			     .workers = o->workers,
			     .card.memory_node = -1};
	for (unsigned i = 0; i < PORT_QUEUES_MAX; i++) {
		out->queue[i].rx_fd = out->held[i] = -1;
		out->device[i] = RTE_MAX_ETHPORTS;
	}
	if (out->kind == PORT_AF_XDP)
		return port_plan_interface(o, out);
	if (out->kind == PORT_UDP)
		return udp_plan(o, out);
	port_make_mac(&out->addr, out->mac);
	if (out->mtu == 0)
		out->mtu = PORT_MTU_DEFAULT;
	if (out->kind == PORT_PCI)
		return port_plan_card(o, &out->card);
	return out->kind == PORT_MEMIF ? port_plan_memif(o) : 0;
}

/* Finds the device of this name, which rte_eal_init or our probe made appear. */
static bool port_find_device(struct port *p, unsigned d, const char *name)
{
	uint16_t id;
	RTE_ETH_FOREACH_DEV(id)
	{
		struct rte_eth_dev_info info;
		if (rte_eth_dev_info_get(id, &info) == 0 &&
		    strcasecmp(rte_dev_name(info.device), name) == 0) {
			p->device[d] = id;
			return true;
		}
	}
	return false;
}

/* A memif's packets lie in places of the shared memory that have one size: each packet in one. As
 * many as a cache has room for: with 1,024 places for 9,000 bytes the copies take half as long
 * again. */
static bool port_memif_size(const struct port *p, char *devargs, unsigned size)
{
	size_t n = strlen(devargs);
	unsigned bytes = pool_frame_bytes(p->mtu), places = rte_log2_u32(PORT_MEMIF_BYTES / bytes);
	if (1u << places > PORT_MEMIF_BYTES / bytes)
		places--;
	int more = snprintf(devargs + n, size - n, ",bsize=%u,rsize=%u", bytes, places);
	return more > 0 && (unsigned)more < size - n;
}

static int port_probe(const struct options *o, struct port *p, unsigned d)
{
	char devargs[PORT_SPEC_DEVARGS] = "";
	log_dpdk_forget();
	bool busy = o->busy_poll && strcmp(p->interface.driver, "veth") != 0;
	if (p->kind != PORT_PCI) { /* those were found by rte_eal_init */
		if (!port_spec_devargs(&o->port, o->rail, d, xdp_object_path(), busy, devargs,
				       sizeof(devargs)) ||
		    (p->kind == PORT_MEMIF && !port_memif_size(p, devargs, sizeof(devargs))))
			return port_fail(o, -ENAMETOOLONG, "the name is too long", "shorten it");
		int error = rte_dev_probe(devargs);
		if (error < 0)
			return port_fail(o, error, "the device does not come up",
					 "check its name, and the rights to use it");
	}
	devargs[strcspn(devargs, ",")] = 0;
	const char *name = p->kind == PORT_PCI ? p->card.address : devargs;
	bool found = port_find_device(p, d, name);
	if (!found && p->kind == PORT_PCI) /* it came after the start */
		found = rte_dev_probe(o->port.name) == 0 && port_find_device(p, d, name);
	if (found) {
		log_dpdk_forget(); /* what it found strange did not stop it */
		return 0;
	}
	return port_fail(o, -ENODEV, "no such device",
			 "check the address, and the driver with dpdk-devbind.py --status");
}

static void port_describe(const struct options *o, struct port *p)
{
	int n = snprintf(p->text, sizeof(p->text), "%s %.40s", port_kind_name(p->kind),
			 o->port.name);
	if (p->kind == PORT_PCI) {
		const char *way = p->queues == 1 ? "" : p->steered ? ", by rule" : ", by hash";
		snprintf(p->text, sizeof(p->text), "pci %s (%.24s%s)", p->card.address,
			 p->card.driver, way);
	}
	if (p->kind != PORT_AF_XDP || n >= (int)sizeof(p->text))
		return;
	snprintf(p->text + n, sizeof(p->text) - (size_t)n, " (%s, %s)",
		 p->xdp.generic ? "generic" : "native", p->xdp.zero_copy ? "zero-copy" : "copy");
	if (!p->xdp.zero_copy)
		log_info("port %s: copy mode: %s%s", o->port.text,
			 o->port.copy ? "asked for" : "no zero-copy AF_XDP in driver ",
			 o->port.copy ? "" : p->interface.driver);
}

static int port_hold(const struct options *o, struct port *p)
{
	unsigned w = 0;
	char what[96];
	int error = hold_ports(&p->addr, p->workers, p->held, &w);
	if (!error)
		return 0;
	snprintf(what, sizeof(what), "UDP port %u cannot be held (%s)", p->addr.port + w,
		 strerror(-error));
	return port_fail(o, error, what,
			 "see who has it, 'ss -ulpn', and end that, or use --udp-port");
}

static int port_configure_xdp(struct port *p)
{
	int sockets[PORT_QUEUES_MAX];
	for (unsigned i = 0; i < p->queues; i++)
		sockets[i] = p->queue[i].rx_fd;
	int error = xdp_configure(&p->xdp, &p->addr, p->workers, sockets, p->queues);
	/* where the kernel copies, a call that sends costs as much as some frames do */
	if (!error && !p->xdp.zero_copy) {
		p->burst_bytes = PORT_XDP_BURST * (uint32_t)p->mtu;
		p->burst_ns = PORT_XDP_BURST_NS;
	}
	return error;
}

int port_open(const struct options *o, struct port *p)
{
	int error = 0;
	if (p->kind == PORT_UDP) /* planning has opened it */
		return 0;
	p->neighbours = aligned_alloc(64, sizeof(*p->neighbours));
	if (!p->neighbours)
		return -ENOMEM;
	memset(p->neighbours, 0, sizeof(*p->neighbours));
	neighbour_init(p->neighbours, p->answers);
	if (p->kind == PORT_AF_XDP)
		error = xdp_prepare(&p->xdp, o->port.name, p->interface.index);
	if (!error && p->kind == PORT_AF_XDP)
		error = port_hold(o, p);
	for (unsigned d = 0; d < p->devices && !error; d++) {
		error = port_probe(o, p, d);
		if (!error)
			error = device_open(o, p, d);
	}
	if (!error && p->kind == PORT_AF_XDP)
		error = port_configure_xdp(p);
	if (!error)
		port_describe(o, p);
	return error;
}

void port_close(struct port *p)
{
	for (unsigned d = 0; d < p->devices; d++)
		if (rte_eth_dev_is_valid_port(p->device[d])) {
			if (p->steered)
				rte_flow_flush(p->device[d], NULL);
			rte_eth_dev_stop(p->device[d]);
			device_unwatch(p->device[d]);
			rte_eth_dev_close(p->device[d]);
		}
	for (unsigned i = 0; p->rx_interrupt && i < p->queues; i++)
		close(p->queue[i].rx_fd);
	if (p->xdp.prepared)
		xdp_release(&p->xdp);
	if (p->kind == PORT_UDP)
		udp_close(p);
	free(p->neighbours);
	p->devices = 0;
	p->neighbours = NULL;
}

void port_drop(struct port *p)
{
	struct rte_device *device[PORT_QUEUES_MAX];
	struct rte_eth_dev_info info;
	unsigned devices = 0;
	for (unsigned d = 0; d < p->devices; d++)
		if (rte_eth_dev_is_valid_port(p->device[d]) &&
		    rte_eth_dev_info_get(p->device[d], &info) == 0)
			device[devices++] = info.device;
	port_close(p);
	for (unsigned d = 0; d < devices; d++)
		rte_dev_remove(device[d]);
	for (unsigned i = 0; i < PORT_QUEUES_MAX; i++) {
		if (p->kind == PORT_AF_XDP)
			xdp_close_socket(p->queue[i].rx_fd);
		rte_mempool_free(p->queue[i].pool);
		p->queue[i] = (struct port_queue){.rx_fd = -1};
	}
	p->rx_interrupt = false;
	p->payload = PAYLOAD_COPY;
	log_dpdk_forget();
}

int port_map_store(struct port *p, void *base, uint64_t bytes, size_t page_bytes)
{
	struct rte_eth_dev_info info;
	if (p->payload != PAYLOAD_DMA)
		return 0;
	bool first = rte_extmem_register(base, bytes, NULL, 0, page_bytes) == 0;
	if (!first && rte_errno != EEXIST) /* of another port */
		return -rte_errno;
	if (rte_eth_dev_info_get(p->device[0], &info) == 0 &&
	    rte_dev_dma_map(info.device, base, (uint64_t)(uintptr_t)base, bytes) == 0)
		return 0;
	int error = rte_errno;
	if (first)
		rte_extmem_unregister(base, bytes);
	return -error;
}

void port_unmap_store(struct port *p, unsigned ports, void *base, uint64_t bytes)
{
	struct rte_eth_dev_info info;
	bool mapped = false;
	for (unsigned k = 0; k < ports; k++) {
		if (p[k].payload != PAYLOAD_DMA)
			continue;
		mapped = true;
		if (rte_eth_dev_info_get(p[k].device[0], &info) == 0)
			rte_dev_dma_unmap(info.device, base, (uint64_t)(uintptr_t)base, bytes);
	}
	if (mapped)
		rte_extmem_unregister(base, bytes);
}
