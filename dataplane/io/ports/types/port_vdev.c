/* SPDX-License-Identifier: BSD-3-Clause */
/* vdev:NAME[,KEY=VALUE...]: any virtual device of DPDK's, in EAL's own words. */
#include "io/ports/port.h"

const struct port_type port_vdev = {
	.name = "vdev",
	.usage = "vdev:NAME[,KEY=VALUE...]",
	.help = "any DPDK virtual device",
	.chosen = true,
	.user_rings = true,
	.tell_mtu = true,
	.ops = &device_ops,
};
