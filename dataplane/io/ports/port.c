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
#include "io/observe/log.h"

enum { PORT_MTU_DEFAULT = 1500 };

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

/* Whether a server listens there. The drivers do not remove what a killed one leaves behind, and
 * net_vhost removes the file of a living one, when its own start has failed. */
static bool port_clear_socket(const char *path, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	strcpy(address.sun_path, path);
	if (fd < 0)
		return false;
	bool listens = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (!listens && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
	return listens;
}

int port_plan_socket(const struct options *o, const char *path, int server)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	strcpy(folder, path);
	char *slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = 0;
	if (server && port_clear_socket(path, server))
		return port_fail(o, -EADDRINUSE, "another process listens at its socket file",
				 "end that, or use another path");
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	log_error("port %s: cannot use the folder %s (%s): create it", o->port.text, folder,
		  strerror(errno));
	return -errno;
}

int port_plan(const struct options *o, struct port *out)
{
	const struct port_type *type = o->port.type;
	*out = (struct port){.type = type,
			     .ops = type->ops,
			     .answers = !type->kernel_address,
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
	if (!type->kernel_address) {
		port_make_mac(&out->addr, out->mac);
		out->mtu = out->mtu ? out->mtu : PORT_MTU_DEFAULT;
	}
	return type->plan ? type->plan(o, out) : 0;
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

bool port_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
		  unsigned size)
{
	int n = p->type->devargs ? p->type->devargs(o, p, d, out, size)
				 : snprintf(out, size, "%s", o->port.name);
	return n > 0 && (unsigned)n < size;
}

static int port_probe(const struct options *o, struct port *p, unsigned d)
{
	char devargs[PORT_SPEC_DEVARGS], name[PORT_SPEC_DEVARGS];
	log_dpdk_forget();
	if (!port_devargs(o, p, d, devargs, sizeof(devargs)))
		return port_fail(o, -ENAMETOOLONG, "the name is too long", "shorten it");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(devargs, ","),
		 p->type->card ? p->card.address : devargs);
	/* rte_eal_init has found a card, or it came after the start */
	bool found = p->type->card && port_find_device(p, d, name);
	int error = found ? 0 : rte_dev_probe(devargs);
	if (error < 0 && !p->type->card)
		return port_fail(o, error, "the device does not come up",
				 "check its name, and the rights to use it");
	if (found || (error == 0 && port_find_device(p, d, name))) {
		log_dpdk_forget(); /* what it found strange did not stop it */
		return 0;
	}
	return port_fail(o, -ENODEV, "no such device",
			 "check the address, and the driver with dpdk-devbind.py --status");
}

int port_open(const struct options *o, struct port *p)
{
	const struct port_type *type = p->type;
	if (type->sockets) /* planning has opened them */
		return 0;
	p->neighbours = aligned_alloc(64, sizeof(*p->neighbours));
	if (!p->neighbours)
		return -ENOMEM;
	memset(p->neighbours, 0, sizeof(*p->neighbours));
	neighbour_init(p->neighbours, p->answers);
	int error = type->prepare ? type->prepare(o, p) : 0;
	for (unsigned d = 0; d < p->devices && !error; d++) {
		error = port_probe(o, p, d);
		if (!error)
			error = device_open(o, p, d);
	}
	snprintf(p->text, sizeof(p->text), "%s %.40s", type->name, o->port.name);
	return error || !type->opened ? error : type->opened(o, p);
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
	if (p->type && p->type->close)
		p->type->close(p);
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
