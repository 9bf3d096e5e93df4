/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the kernel owns our address (AF_XDP), it also knows the routes and the neighbours: this
 * asks it and listens to what changes. Answers go into the neighbour table, keyed by the peer's
 * address. rtnetlink(7); main thread only.
 */
#ifndef SARISSA_DATAPLANE_IO_NET_NETLINK_H
#define SARISSA_DATAPLANE_IO_NET_NETLINK_H

#include "neighbour.h"

struct netlink {
	int events_fd; /* poll it, then netlink_take_events(); -1: not open */
	int ask_fd;
	int ifindex;
	uint32_t sequence;
	bool routes_changed;
	bool no_carrier;		  /* the link is down: nobody there can be asked */
	bool gone;			  /* the interface has been deleted */
	uint64_t refreshed_ns, looked_ns; /* when all entries were last refreshed, looked up */
	struct neighbour_table *table;
	uint8_t next_hop[NEIGHBOURS][16]; /* by table entry; zero: no route known */
};

/* Opens the sockets. Returns 0 or -errno. */
int netlink_open(struct netlink *k, int ifindex, struct neighbour_table *table);
void netlink_close(struct netlink *k);

/* Reads what changed. */
void netlink_take_events(struct netlink *k, uint64_t now_ns);

/* Looks up everybody the workers want to reach; makes the kernel resolve those it does not know.
 * Call it when a worker asked, and at least every NETLINK_REFRESH_NS. */
void netlink_resolve(struct netlink *k, uint64_t now_ns);
#define NETLINK_REFRESH_NS 20000000000ull
#define NETLINK_ROUTES_NS  100000000ull /* changed routes are looked at no oftener */

static inline bool netlink_is_due(const struct netlink *k, uint64_t now_ns)
{
	return now_ns >= k->refreshed_ns + NETLINK_REFRESH_NS ||
	       (k->routes_changed && now_ns >= k->looked_ns + NETLINK_ROUTES_NS);
}

/* Poll its events no longer than this. */
static inline int netlink_wait_ms(const struct netlink *k)
{
	return (int)((k->routes_changed ? NETLINK_ROUTES_NS : NETLINK_REFRESH_NS) / 1000000);
}

#endif
