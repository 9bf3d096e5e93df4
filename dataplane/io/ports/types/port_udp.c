/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp:ADDR: kernel UDP sockets. Finds the interface and the MTU of the address, opens and sets up
 * the sockets of each worker, closes them; udp_rx.c and udp_tx.c move the packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rte_common.h>
#include "internal/program/arguments.h"
#include "io/net/ether.h"
#include "io/ports/port.h"
#include "io/ports/udp.h"

enum {
	UDP_BUFFER = 4 << 20, /* bytes asked for; the kernel gives what its limits allow */
	UDP_MTU_DEFAULT = 1500,
	UDP_MTU_MAX = 9000,
	ECT0 = 2,
};

static bool port_udp_option(const char *option, struct port_spec *out, const char **why)
{
	uint64_t kib;
	const char *value = port_spec_value(option, "buffer");
	if (!value) {
		out->single = strcmp(option, "single") == 0;
		return out->single ||
		       port_spec_fail(why, "udp takes the options single and buffer=KIB");
	}
	if (!argument_number(value, 10, 1, 1 << 20, &kib))
		return port_spec_fail(why, "buffer must be 1 to 1048576 KiB");
	out->buffer = (unsigned)kib << 10;
	return true;
}

/* An address of one host, or the one that stands for all of this one's. */
static bool port_udp_check_name(struct port_spec *out, const char **why)
{
	uint8_t v4[4];
	if (inet_pton(AF_INET, out->name, v4) == 1)
		ether_map_v4(out->addr.ip, v4);
	else if (inet_pton(AF_INET6, out->name, out->addr.ip) != 1)
		return (strlen(out->name) < IFNAMSIZ && !strchr(out->name, ':')) ||
		       port_spec_fail(why, "neither an IP address nor the name of an interface");
	out->has_addr = true;
	bool is_v4 = net_addr_is_v4(&out->addr);
	if (is_v4 ? out->addr.ip[12] >= 224 : out->addr.ip[0] == 0xff)
		return port_spec_fail(why, "not the address of one host");
	if (!is_v4 && out->addr.ip[0] == 0xfe && (out->addr.ip[1] & 0xc0) == 0x80)
		return port_spec_fail(why, "a link-local address: peers elsewhere cannot use it");
	return true;
}

/* ---- where ---- */

static bool port_udp_is_any(const struct net_addr *a)
{
	static const uint8_t none[16];
	return memcmp(a->ip, none, 16) == 0 ||
	       (net_addr_is_v4(a) && memcmp(a->ip + 12, none, 4) == 0);
}

/* The port is named by an interface, by its address, or by the address that stands for all. */
static int port_udp_plan_address(const struct options *o, struct port *p, struct net_addr *bound)
{
	*bound = o->port.addr;
	if (!o->port.has_addr) {
		int error = interface_read(o->port.name, &p->interface);
		if (error)
			return port_fail(o, error, "no such address or interface here",
					 "see 'ip addr'");
		if (!p->interface.up)
			return port_fail(o, -ENETDOWN, "the interface is down",
					 "'ip link set dev IFACE up'");
		if (!o->has_addr && !p->interface.has_addr)
			return port_fail(o, -EADDRNOTAVAIL, "the interface has no IP address",
					 "give it one, or --addr");
		if (!o->has_addr)
			memcpy(p->addr.ip, p->interface.addr.ip, sizeof(p->addr.ip));
		*bound = p->addr;
	} else if (port_udp_is_any(&o->port.addr)) {
		if (!o->has_addr || net_addr_is_v4(&o->addr) != net_addr_is_v4(&o->port.addr))
			return port_fail(o, -EDESTADDRREQ, "peers need one address of this node",
					 "name it with --addr");
	} else if (o->has_addr && memcmp(o->addr.ip, o->port.addr.ip, 16) != 0) {
		return port_fail(o, -EINVAL, "--addr is another address", "leave it out");
	} else {
		memcpy(p->addr.ip, o->port.addr.ip, sizeof(p->addr.ip));
	}
	return 0;
}

static int port_udp_plan_mtu(const struct options *o, struct port *p)
{
	unsigned link = p->interface.mtu;
	char name[IFNAMSIZ];
	if (link == 0 && interface_find(&p->addr, true, name))
		interface_read(name, &p->interface);
	link = p->interface.mtu;
	if (link > 0 && p->mtu > link)
		return port_fail(o, -EMSGSIZE, "--mtu is above the interface's", "see 'ip link'");
	if (p->mtu == 0)
		p->mtu = (uint16_t)(link == 0 ? UDP_MTU_DEFAULT
					      : RTE_MIN(link, (unsigned)UDP_MTU_MAX));
	return 0;
}

/* ---- sockets ---- */

static int port_udp_bind(const struct options *o, struct udp *u, const struct net_addr *bound)
{
	struct sockaddr_storage s;
	socklen_t length = udp_sockaddr(bound, &s);
	char what[96];
	if (bind(u->fd, (struct sockaddr *)&s, length) == 0)
		return 0;
	int error = -errno;
	snprintf(what, sizeof(what), "UDP port %u cannot be taken (%s)", bound->port,
		 strerror(-error));
	switch (-error) {
	case EADDRINUSE:
		return port_fail(o, error, what,
				 "another node has this address: use another, or --udp-port");
	case EADDRNOTAVAIL:
		return port_fail(o, error, what, "no interface has this address: see 'ip addr'");
	case EACCES:
		return port_fail(o, error, what, "ports below 1024 are root's: use --udp-port");
	default:
		return port_fail(o, error, what, "see 'ip addr'");
	}
}

static void port_udp_set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* A feature that a kernel lacks costs speed, nothing else. */
static void port_udp_set_all(struct udp *u, unsigned buffer)
{
	int fd = u->fd, none = 0;
	int bytes = buffer ? (int)buffer : UDP_BUFFER;
	port_udp_set(fd, SOL_SOCKET, SO_SNDBUF, bytes);
	port_udp_set(fd, SOL_SOCKET, SO_RCVBUF, bytes);
	if (buffer == 0)
		port_udp_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes);
	port_udp_set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	if (u->v4) {
		port_udp_set(fd, IPPROTO_IP, IP_TOS, ECT0);
		port_udp_set(fd, IPPROTO_IP, IP_RECVTOS, 1);
		port_udp_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	} else {
		port_udp_set(fd, IPPROTO_IPV6, IPV6_TCLASS, ECT0);
		port_udp_set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		port_udp_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	}
	u->segments = setsockopt(fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
}

static int port_udp_open(const struct options *o, struct port *p, unsigned worker,
			 const struct net_addr *bound)
{
	struct udp *u = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*u), 64ul));
	if (!u)
		return -ENOMEM;
	memset(u, 0, sizeof(*u));
	p->udp[worker] = u;
	struct net_addr at = *bound;
	at.port = (uint16_t)(p->addr.port + worker);
	u->v4 = net_addr_is_v4(bound);
	u->from = port_udp_is_any(bound);
	u->head_stride = RTE_ALIGN_CEIL((unsigned)p->mtu, 64u);
	u->heads = aligned_alloc(64, (size_t)UDP_PACKETS * u->head_stride);
	u->datagrams = aligned_alloc(64, (size_t)UDP_TAKES * UDP_DATAGRAM_MAX);
	u->fd = socket(u->v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0 || !u->heads || !u->datagrams)
		return port_fail(o, -ENOMEM, "no socket", strerror(u->fd < 0 ? errno : ENOMEM));
	p->queue[worker].rx_fd = u->fd;
	if (!u->v4)
		port_udp_set(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	port_udp_set_all(u, o->port.buffer);
	u->segments = u->segments && !o->port.single;
	return port_udp_bind(o, u, &at);
}

static void port_udp_describe(struct port *p)
{
	char ip[INET6_ADDRSTRLEN];
	int one = 1;
	bool whole = p->udp[0]->segments, gro = whole;
	bool v4 = net_addr_is_v4(&p->addr);
	for (unsigned w = 0; w < p->workers && gro; w++)
		gro = setsockopt(p->udp[w]->fd, SOL_UDP, UDP_GRO, &one, sizeof(one)) == 0;
	inet_ntop(v4 ? AF_INET : AF_INET6, p->addr.ip + (v4 ? 12 : 0), ip, sizeof(ip));
	snprintf(p->text, sizeof(p->text), "udp %.39s (%s)", ip,
		 !whole ? "single"
		 : gro	? "gso, gro"
			: "gso");
}

static int port_udp_plan(const struct options *o, struct port *p)
{
	struct net_addr bound;
	int error = port_udp_plan_address(o, p, &bound);
	if (!error)
		error = port_udp_plan_mtu(o, p);
	for (unsigned w = 0; w < p->workers && !error; w++)
		error = port_udp_open(o, p, w, &bound);
	if (error)
		return error;
	p->devices = 0;
	p->asking_costs = true;
	port_udp_describe(p);
	if (p->udp[0]->segments) {
		p->burst_bytes = UDP_BURST_BYTES;
		p->burst_ns = UDP_BURST_NS;
	}
	return 0;
}

static void port_udp_close(struct port *p)
{
	for (unsigned w = 0; w < PORT_QUEUES_MAX && p->udp[w]; w++) {
		if (p->udp[w]->fd > 0)
			close(p->udp[w]->fd);
		free(p->udp[w]->heads);
		free(p->udp[w]->datagrams);
		free(p->udp[w]);
		p->udp[w] = NULL;
	}
}

const struct port_type port_udp = {
	.name = "udp",
	.usage = "udp:ADDR[,single][,buffer=KIB]",
	.help = "UDP sockets at an address or interface: no rights",
	.kernel_address = true,
	.sockets = true,
	.ops = &udp_ops,
	.option = port_udp_option,
	.check_name = port_udp_check_name,
	.plan = port_udp_plan,
	.close = port_udp_close,
};
