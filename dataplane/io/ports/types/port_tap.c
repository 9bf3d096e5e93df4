/* SPDX-License-Identifier: BSD-3-Clause */
/* tap:NAME: a new interface of the kernel's at the other end. */
#include "io/ports/port.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int port_tap_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
			    unsigned size)
{
	return snprintf(out, size, "net_tap%u,iface=%s", o->rail, o->port.name);
}

/* The driver asks the kernel for a signal per packet, which would wake the main thread each time.
 * Signals are blocked (node.c) and here turned off; without one seen, the driver simply reads, and
 * we sleep on the file descriptor. */
static int port_tap_quiet(const struct options *o, struct port *p)
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
	return 0;
}

const struct port_type port_tap = {
	.name = "tap",
	.usage = "tap:NAME",
	.help = "a new kernel interface NAME at the other end",
	.lacks = "the capability net_admin: run as root, or grant it with setcap",
	.capabilities = 1ull << CAP_NET_ADMIN,
	.tell_mtu = true,
	.waitable = true,
	.rx_descriptors = 256, /* it keeps that many buffers for a single packet */
	.ops = &device_ops,
	.check_name = port_spec_interface,
	.devargs = port_tap_devargs,
	.opened = port_tap_quiet,
};
