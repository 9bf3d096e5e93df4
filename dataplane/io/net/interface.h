/* SPDX-License-Identifier: BSD-3-Clause */
/* An interface as the kernel knows it, whose address it owns (AF_XDP). Main thread only. */
#ifndef SARISSA_DATAPLANE_IO_NET_INTERFACE_H
#define SARISSA_DATAPLANE_IO_NET_INTERFACE_H

#include <net/if.h>
#include "internal/ids.h"

struct interface {
	int index;
	unsigned mtu;	 /* IP bytes */
	unsigned queues; /* for receiving */
	uint8_t mac[6];
	bool up, has_addr;
	struct net_addr addr; /* the first global one, IPv4 preferred; port 0 */
	char driver[32];
};

/* Returns 0, or -ENODEV when there is no such interface, or another -errno. */
int interface_read(const char *name, struct interface *out);

/* The interface that has the address; net: or its network, as lo has that of 127.0.0.2. false: none
 * has. */
bool interface_find(const struct net_addr *addr, bool net, char out[IFNAMSIZ]);

#endif
