/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of kernel UDP sockets: finds the interface and the MTU of its address, opens and sets up
 * the sockets of each worker, closes them. Called by port.c; udp_rx.c and udp_tx.c move the
 * packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rte_common.h>
#include "io/net/ether.h"
#include "io/observe/log.h"
#include "port.h"
#include "udp.h"

enum {
	UDP_BUFFER = 4 << 20, /* bytes asked for; the kernel gives what its limits allow */
	UDP_MTU_DEFAULT = 1500,
	UDP_MTU_MAX = 9000,
	ECT0 = 2,
};

static int udp_fail(const struct options *o, int error, const char *what, const char *todo)
{
	log_error("port %s: %s: %s", o->port.text, what, todo);
	return error;
}

/* ---- where --------------------------------------------------------------------------------------
 */

static bool udp_is_any(const struct net_addr *a)
{
	static const uint8_t none[16];
	return memcmp(a->ip, none, 16) == 0 ||
	       (net_addr_is_v4(a) && memcmp(a->ip + 12, none, 4) == 0);
}

/* The bits of a that mask names are those of b. */
static bool udp_same_net(const void *a, const void *b, const void *mask, unsigned bytes)
{
	const uint8_t *x = a, *y = b, *m = mask;
	for (unsigned i = 0; i < bytes; i++)
		if ((x[i] ^ y[i]) & m[i])
			return false;
	return true;
}

static bool udp_on(const struct ifaddrs *a, const struct net_addr *addr)
{
	if (!a->ifa_addr || !a->ifa_netmask)
		return false;
	if (a->ifa_addr->sa_family == AF_INET && net_addr_is_v4(addr))
		return udp_same_net(&((struct sockaddr_in *)a->ifa_addr)->sin_addr, addr->ip + 12,
				    &((struct sockaddr_in *)a->ifa_netmask)->sin_addr, 4);
	if (a->ifa_addr->sa_family == AF_INET6 && !net_addr_is_v4(addr))
		return udp_same_net(&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr, addr->ip,
				    &((struct sockaddr_in6 *)a->ifa_netmask)->sin6_addr, 16);
	return false;
}

/* The interface that has the address, or its network as 127.0.0.2 has that of lo. */
static void udp_find_interface(struct port *p)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) != 0)
		return;
	for (struct ifaddrs *a = list; a; a = a->ifa_next)
		if (udp_on(a, &p->addr)) {
			interface_read(a->ifa_name, &p->interface);
			break;
		}
	freeifaddrs(list);
}

/* The port is named by an interface, by its address, or by the address that stands for all. */
static int udp_plan_address(const struct options *o, struct port *p, struct net_addr *bound)
{
	*bound = o->port.addr;
	if (!o->port.has_addr) {
		int error = interface_read(o->port.name, &p->interface);
		if (error)
			return udp_fail(o, error, "no such address or interface here",
					"see 'ip addr'");
		if (!p->interface.up)
			return udp_fail(o, -ENETDOWN, "the interface is down",
					"'ip link set dev IFACE up'");
		if (!o->has_addr && !p->interface.has_addr)
			return udp_fail(o, -EADDRNOTAVAIL, "the interface has no IP address",
					"give it one, or --addr");
		if (!o->has_addr)
			memcpy(p->addr.ip, p->interface.addr.ip, sizeof(p->addr.ip));
		*bound = p->addr;
	} else if (udp_is_any(&o->port.addr)) {
		if (!o->has_addr || net_addr_is_v4(&o->addr) != net_addr_is_v4(&o->port.addr))
			return udp_fail(o, -EDESTADDRREQ, "peers need one address of this node",
					"name it with --addr");
	} else if (o->has_addr && memcmp(o->addr.ip, o->port.addr.ip, 16) != 0) {
		return udp_fail(o, -EINVAL, "--addr is another address", "leave it out");
	} else {
		memcpy(p->addr.ip, o->port.addr.ip, sizeof(p->addr.ip));
	}
	return 0;
}

static int udp_plan_mtu(const struct options *o, struct port *p)
{
	unsigned link = p->interface.mtu;
	if (link == 0)
		udp_find_interface(p);
	link = p->interface.mtu;
	if (link > 0 && p->mtu > link)
		return udp_fail(o, -EMSGSIZE, "--mtu is above the interface's", "see 'ip link'");
	if (p->mtu == 0)
		p->mtu = (uint16_t)(link == 0 ? UDP_MTU_DEFAULT
					      : RTE_MIN(link, (unsigned)UDP_MTU_MAX));
	return 0;
}

/* ---- sockets ------------------------------------------------------------------------------------
 */

static int udp_bind(const struct options *o, struct udp *u, const struct net_addr *bound)
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
		return udp_fail(o, error, what,
				"another node has this address: use another, or --udp-port");
	case EADDRNOTAVAIL:
		return udp_fail(o, error, what, "no interface has this address: see 'ip addr'");
	case EACCES:
		return udp_fail(o, error, what, "ports below 1024 are root's: use --udp-port");
	default:
		return udp_fail(o, error, what, "see 'ip addr'");
	}
}

static void udp_set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* What a kernel lacks costs speed, nothing else. */
static void udp_set_all(struct udp *u, unsigned buffer)
{
	int fd = u->fd, none = 0;
	int bytes = buffer ? (int)buffer : UDP_BUFFER;
	udp_set(fd, SOL_SOCKET, SO_SNDBUF, bytes);
	udp_set(fd, SOL_SOCKET, SO_RCVBUF, bytes);
	if (buffer == 0)
		udp_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes);
	udp_set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	if (u->v4) {
		udp_set(fd, IPPROTO_IP, IP_TOS, ECT0);
		udp_set(fd, IPPROTO_IP, IP_RECVTOS, 1);
		udp_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	} else {
		udp_set(fd, IPPROTO_IPV6, IPV6_TCLASS, ECT0);
		udp_set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		udp_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	}
	u->segments = setsockopt(fd, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
}

static int udp_open(const struct options *o, struct port *p, unsigned worker,
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
	u->from = udp_is_any(bound);
	u->head_stride = RTE_ALIGN_CEIL((unsigned)p->mtu, 64u);
	u->heads = aligned_alloc(64, (size_t)UDP_PACKETS * u->head_stride);
	u->datagrams = aligned_alloc(64, (size_t)UDP_TAKES * UDP_DATAGRAM_MAX);
	u->fd = socket(u->v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0 || !u->heads || !u->datagrams)
		return udp_fail(o, -ENOMEM, "no socket", strerror(u->fd < 0 ? errno : ENOMEM));
	p->queue[worker].rx_fd = u->fd;
	if (!u->v4)
		udp_set(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	udp_set_all(u, o->port.buffer);
	u->segments = u->segments && !o->port.single;
	return udp_bind(o, u, &at);
}

static void udp_describe_port(struct port *p)
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

int udp_plan(const struct options *o, struct port *p)
{
	struct net_addr bound;
	int error = udp_plan_address(o, p, &bound);
	if (!error)
		error = udp_plan_mtu(o, p);
	for (unsigned w = 0; w < p->workers && !error; w++)
		error = udp_open(o, p, w, &bound);
	if (error)
		return error;
	p->ops = &udp_ops;
	p->devices = 0;
	p->asking_costs = true;
	udp_describe_port(p);
	if (p->udp[0]->segments) {
		p->burst_bytes = UDP_BURST_BYTES;
		p->burst_ns = UDP_BURST_NS;
	}
	return 0;
}

void udp_close(struct port *p)
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
