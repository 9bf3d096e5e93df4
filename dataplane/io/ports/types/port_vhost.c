/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost:PATH: a virtio card of a guest or another process, which connects to our socket file. */
#include "io/ports/port.h"

#include <stdio.h>
#include <sys/socket.h>

static bool port_vhost_check_name(struct port_spec *out, const char **why)
{
	if (*out->name != '/' || strlen(out->name) >= sizeof(out->socket) || strchr(out->name, ','))
		return port_spec_fail(
			why, "vhost takes an absolute path of at most 107 bytes, and no options");
	strcpy(out->socket, out->name);
	return true;
}

static int port_vhost_plan(const struct options *o, struct port *p)
{
	return port_plan_socket(o, o->port.socket, SOCK_STREAM);
}

static int port_vhost_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
			      unsigned size)
{
	return snprintf(out, size, "net_vhost%u,iface=%s,queues=%u", o->rail, o->port.socket,
			p->queues);
}

const struct port_type port_vhost = {
	.name = "vhost",
	.usage = "vhost:PATH",
	.help = "the virtio card of a guest, by the socket file PATH",
	.chosen = true,
	.tell_mtu = true,
	.ops = &device_ops,
	.check_name = port_vhost_check_name,
	.plan = port_vhost_plan,
	.devargs = port_vhost_devargs,
};
