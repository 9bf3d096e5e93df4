/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the kernel owns our address and AF_XDP takes our packets out of its hands, the kernel's own
 * UDP ports of the workers are held by sockets that read nothing. Else any local user could bind
 * them and send as this node. Called by port.c, main thread only.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_HOLD_H
#define SARISSA_DATAPLANE_IO_NODE_HOLD_H

#include "internal/ids.h"

/* Binds the port of each worker, first's and those behind it, until the process ends; sockets[w] is
 * -1, or held already. Returns 0, or -errno: another process has sockets[*failed]. */
int hold_ports(const struct net_addr *first, unsigned workers, int *sockets, unsigned *failed);

#endif
