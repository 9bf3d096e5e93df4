/* SPDX-License-Identifier: BSD-3-Clause */
/* ring:NAME: a loop-back in this process. */
#include "io/ports/port.h"

#include <stdio.h>

static bool port_ring_check_name(struct port_spec *out, const char **why)
{
	return strlen(out->name) <= 24 || port_spec_fail(why, "a ring name has at most 24 bytes");
}

static int port_ring_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
			     unsigned size)
{
	return snprintf(out, size, "net_ring_%s", o->port.name);
}

const struct port_type port_ring = {
	.name = "ring",
	.usage = "ring:NAME",
	.help = "a loop-back, for tests",
	.tell_mtu = true,
	.ops = &device_ops,
	.check_name = port_ring_check_name,
	.devargs = port_ring_devargs,
};
