/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `--port auto`: chooses the fastest port that is there and permitted. Main thread, before EAL.
 *
 *   1. pci:ADDR      a card that is bound to a DPDK driver, when --addr says whose address it gets
 *   2. af_xdp:IFACE  where this process may use it and the driver does zero-copy
 *   3. udp:IP        kernel sockets: always
 *
 * AF_XDP in copy mode is not chosen: kernel sockets with segmentation off-load cost less.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_TYPES_PORT_AUTO_H
#define SARISSA_DATAPLANE_IO_PORTS_TYPES_PORT_AUTO_H

#include "io/node/options.h"

enum { PORT_AUTO_WHY = sizeof(((struct options *)0)->port_why) };

/* Sets o->port; why: one line on what was chosen, and what was not and for which reason. Returns 0,
 * or -errno with one line logged. */
int port_auto(struct options *o, char why[PORT_AUTO_WHY]);

/* Whether an AF_XDP socket of the interface's first queue may be bound for zero-copy: 0, or -errno:
 * -EPERM: not permitted; -EOPNOTSUPP: the driver does not. Nothing of it is left. */
int port_auto_zero_copy(const char *interface);

#endif
