/* SPDX-License-Identifier: BSD-3-Clause */
#include "hold.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "io/ports/udp.h"

/* Takes nothing in: what the kernel sees of our packets, before the XDP program is there, is not
 * kept. */
static void hold_drop_all(int fd)
{
	struct sock_filter drop = {.code = BPF_RET | BPF_K, .k = 0};
	struct sock_fprog program = {.len = 1, .filter = &drop};
	int least = 0;
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
}

/* An address that the kernel does not have yet (--addr) may come to it later. */
static int hold_open(const struct net_addr *addr)
{
	struct sockaddr_storage s;
	bool v4 = net_addr_is_v4(addr);
	int one = 1, fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	hold_drop_all(fd);
	setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, &one,
		   sizeof(one));
	if (bind(fd, (struct sockaddr *)&s, udp_sockaddr(addr, &s)) == 0)
		return fd;
	int error = -errno;
	close(fd);
	return error;
}

int hold_ports(const struct net_addr *first, unsigned workers, int *sockets, unsigned *failed)
{
	struct net_addr addr = *first;
	for (unsigned w = 0; w < workers; w++) {
		if (sockets[w] >= 0)
			continue;
		addr.port = (uint16_t)(first->port + w);
		int fd = hold_open(&addr);
		/* a port below 1024, which no ordinary user can have either, and we need not */
		if (fd < 0 && fd != -EACCES) {
			*failed = w;
			return fd;
		}
		sockets[w] = fd < 0 ? -1 : fd;
	}
	return 0;
}
