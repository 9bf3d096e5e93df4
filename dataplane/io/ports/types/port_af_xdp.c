/* SPDX-License-Identifier: BSD-3-Clause */
/* af_xdp:IFACE: an interface that the kernel keeps using. Our XDP program on it is xdp.c's. */
#include "io/ports/port.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rte_common.h>
#include "internal/program/arguments.h"
#include "io/observe/log.h"
#include "io/ports/udp.h"

enum {
	XDP_BURST = 8, /* packets: docs/developer/dataplane.md, Ports */
	XDP_BURST_NS = 500000,
	MTU_AF_XDP = 3498, /* a frame, its buffer header and XDP's headroom fill a page */
	MTU_MAX = 9000,
};

static bool port_af_xdp_option(const char *option, struct port_spec *out, const char **why)
{
	uint64_t n;
	const char *value = port_spec_value(option, "queues");
	if (!value) {
		out->copy = strcmp(option, "copy") == 0;
		return out->copy ||
		       port_spec_fail(why, "af_xdp takes the options queues=N and copy");
	}
	if (!argument_number(value, 10, 1, PORT_SPEC_QUEUES_MAX, &n))
		return port_spec_fail(why, "queues must be 1 to 16");
	out->queues = (unsigned)n;
	return true;
}

static int port_af_xdp_plan_mtu(const struct options *o, struct port *p)
{
	unsigned link = p->interface.mtu;
	if (p->mtu > link) {
		log_error("port %s: --mtu %u is above the interface's %u: "
			  "'ip link set dev %s mtu %u'",
			  o->port.text, p->mtu, link, o->port.name, p->mtu);
		return -EMSGSIZE;
	}
	if (p->mtu == 0)
		p->mtu = (uint16_t)RTE_MIN(link, (unsigned)MTU_MAX);
	if (p->mtu <= MTU_AF_XDP)
		return 0;
	log_error("port %s: AF_XDP takes an MTU up to %u, not %u: use --mtu, or another port",
		  o->port.text, MTU_AF_XDP, p->mtu);
	return -EMSGSIZE;
}

static int port_af_xdp_plan_queues(const struct options *o, struct port *p)
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

static int port_af_xdp_plan(const struct options *o, struct port *p)
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
	if (access(xdp_object(XDP_OBJECT), R_OK) != 0) {
		log_error("port %s: the XDP program %s is missing: install it, or build with clang",
			  o->port.text, xdp_object(XDP_OBJECT));
		return -ENOENT;
	}
	if (!o->has_addr)
		memcpy(p->addr.ip, p->interface.addr.ip, sizeof(p->addr.ip));
	memcpy(p->mac, p->interface.mac, sizeof(p->mac));
	error = port_af_xdp_plan_mtu(o, p);
	return error ? error : port_af_xdp_plan_queues(o, p);
}

static int port_af_xdp_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
			       unsigned size)
{
	/* whether the driver may poll the kernel */
	bool busy = o->busy_poll && strcmp(p->interface.driver, "veth") != 0;
	return snprintf(out, size,
			"net_af_xdp%u,iface=%s,start_queue=%u,xdp_prog=%s,force_copy=%d%s",
			o->rail * PORT_SPEC_QUEUES_MAX + d, o->port.name, d, xdp_object(XDP_OBJECT),
			o->port.copy, busy ? "" : ",busy_budget=0");
}

/* Takes nothing in: what the kernel sees of our packets, before the XDP program is there, is not
 * kept. */
static void port_af_xdp_take_nothing(int fd)
{
	struct sock_filter drop = {.code = BPF_RET | BPF_K, .k = 0};
	struct sock_fprog program = {.len = 1, .filter = &drop};
	int least = 0;
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
}

/* An address that the kernel does not have yet (--addr) may come to it later. */
static int port_af_xdp_hold_one(const struct net_addr *addr)
{
	struct sockaddr_storage s;
	bool v4 = net_addr_is_v4(addr);
	int one = 1, fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	port_af_xdp_take_nothing(fd);
	setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, &one,
		   sizeof(one));
	if (bind(fd, (struct sockaddr *)&s, udp_sockaddr(addr, &s)) == 0)
		return fd;
	int error = -errno;
	close(fd);
	return error;
}

/* The kernel owns our address, and AF_XDP takes our packets out of its hands. Its own UDP ports of
 * the workers are held until the process ends: else any local user could bind them and send as this
 * node. */
static int port_af_xdp_hold(const struct options *o, struct port *p)
{
	char what[96];
	struct net_addr addr = p->addr;
	for (unsigned w = 0; w < p->workers; w++) {
		if (p->held[w] >= 0)
			continue;
		addr.port = (uint16_t)(p->addr.port + w);
		p->held[w] = port_af_xdp_hold_one(&addr);
		/* a port below 1024, which no ordinary user can have either, and we need not */
		if (p->held[w] >= 0 || p->held[w] == -EACCES)
			continue;
		snprintf(what, sizeof(what), "UDP port %u cannot be held (%s)", addr.port,
			 strerror(-p->held[w]));
		return port_fail(o, p->held[w], what,
				 "see who has it, 'ss -ulpn', and end that, or use --udp-port");
	}
	return 0;
}

static int port_af_xdp_prepare(const struct options *o, struct port *p)
{
	int error = xdp_prepare(&p->xdp, o->port.name, p->interface.index);
	return error ? error : port_af_xdp_hold(o, p);
}

static int port_af_xdp_setup_rings(struct port_queue *q, uint16_t rx, uint16_t tx, int socket)
{
	int known[XDP_SOCKETS_MAX];
	unsigned sockets = xdp_list_sockets(known, XDP_SOCKETS_MAX);
	int error = device_setup_rings(q, rx, tx, socket);
	if (error)
		return error;
	q->rx_fd = xdp_find_socket(known, sockets);
	xdp_send_all(q->rx_fd, tx);
	return 0;
}

static int port_af_xdp_configure(struct port *p)
{
	int sockets[PORT_QUEUES_MAX];
	for (unsigned i = 0; i < p->queues; i++)
		sockets[i] = p->queue[i].rx_fd;
	int error = xdp_configure(&p->xdp, &p->addr, p->workers, sockets, p->queues);
	/* where the kernel copies, a call that sends costs as much as some frames do */
	if (!error && !p->xdp.zero_copy) {
		p->burst_bytes = XDP_BURST * (uint32_t)p->mtu;
		p->burst_ns = XDP_BURST_NS;
	}
	return error;
}

static int port_af_xdp_opened(const struct options *o, struct port *p)
{
	int error = port_af_xdp_configure(p);
	if (error)
		return error;
	size_t n = strlen(p->text);
	snprintf(p->text + n, sizeof(p->text) - n, " (%s, %s)",
		 p->xdp.generic ? "generic" : "native", p->xdp.zero_copy ? "zero-copy" : "copy");
	if (!p->xdp.zero_copy)
		log_info("port %s: copy mode: %s%s", o->port.text,
			 o->port.copy ? "asked for" : "no zero-copy AF_XDP in driver ",
			 o->port.copy ? "" : p->interface.driver);
	return 0;
}

static void port_af_xdp_close(struct port *p)
{
	if (!p->xdp.prepared)
		return;
	xdp_release(&p->xdp);
	for (unsigned i = 0; i < p->queues; i++)
		xdp_close_socket(p->queue[i].rx_fd);
}

static bool port_af_xdp_is_back(const struct options *o)
{
	struct interface i;
	return interface_read(o->port.name, &i) == 0 && i.up && (o->has_addr || i.has_addr);
}

const struct port_type port_af_xdp = {
	.name = "af_xdp",
	.usage = "af_xdp:IFACE[,queues=N][,copy]",
	.help = "an interface that the kernel keeps using",
	.lacks = "the capabilities net_admin, net_raw and bpf: run as root, grant them with "
		 "setcap, or use --port udp:, which needs none",
	.capabilities = 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW | 1ull << CAP_BPF,
	.kernel_address = true,
	.paged = true,
	.rx_descriptors = PORT_XDP_FILL, /* with fewer than buffers it drops while there is room */
	.ops = &device_ops,
	.option = port_af_xdp_option,
	.check_name = port_spec_interface,
	.plan = port_af_xdp_plan,
	.devargs = port_af_xdp_devargs,
	.prepare = port_af_xdp_prepare,
	.setup_rings = port_af_xdp_setup_rings,
	.opened = port_af_xdp_opened,
	.close = port_af_xdp_close,
	.is_back = port_af_xdp_is_back,
};
