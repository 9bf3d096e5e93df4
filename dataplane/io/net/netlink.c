/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlink.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	NETLINK_BUFFER = 32768,
	USABLE = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY,
};

struct request {
	struct nlmsghdr header;
	union {
		struct ndmsg neighbour;
		struct rtmsg route;
	};
	uint8_t attributes[64];
};

static bool netlink_is_v4(const uint8_t *ip)
{
	struct net_addr a = {0};
	memcpy(a.ip, ip, 16);
	return net_addr_is_v4(&a);
}

static void netlink_request_put(struct request *r, uint16_t type, const void *data, uint16_t length)
{
	struct rtattr *a = (struct rtattr *)((uint8_t *)r + NLMSG_ALIGN(r->header.nlmsg_len));
	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(length);
	memcpy(RTA_DATA(a), data, length);
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void netlink_request_put_ip(struct request *r, uint16_t type, const uint8_t *ip)
{
	if (netlink_is_v4(ip))
		netlink_request_put(r, type, ip + 12, 4);
	else
		netlink_request_put(r, type, ip, 16);
}

/* An attribute that holds an address of this family, as 16 bytes. */
static bool netlink_attribute_ip(const struct rtattr *a, int family, uint8_t *ip)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	size_t length = RTA_PAYLOAD(a);
	if (family == AF_INET && length == 4) {
		memcpy(ip, prefix, 12);
		memcpy(ip + 12, RTA_DATA(a), 4);
		return true;
	}
	if (family == AF_INET6 && length == 16)
		memcpy(ip, RTA_DATA(a), 16);
	return family == AF_INET6 && length == 16;
}

struct neighbour_news {
	bool has_ip, has_mac;
	uint16_t state;
	uint8_t ip[16], mac[6];
};

static bool netlink_read_neighbour(const struct nlmsghdr *h, int ifindex,
				   struct neighbour_news *out)
{
	const struct ndmsg *nd = NLMSG_DATA(h);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*nd)) || nd->ndm_ifindex != ifindex)
		return false;
	memset(out, 0, sizeof(*out));
	out->state = h->nlmsg_type == RTM_DELNEIGH ? NUD_NONE : nd->ndm_state;
	int length = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*nd)));
	struct rtattr *a = (struct rtattr *)((uint8_t *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(*nd)));
	for (; RTA_OK(a, length); a = RTA_NEXT(a, length)) {
		if (a->rta_type == NDA_DST)
			out->has_ip = netlink_attribute_ip(a, nd->ndm_family, out->ip);
		if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == 6) {
			memcpy(out->mac, RTA_DATA(a), 6);
			out->has_mac = true;
		}
	}
	return out->has_ip;
}

/* The next hop of an answer about the route to ip; false when there is none over our interface. */
static bool netlink_read_route(const struct nlmsghdr *h, int ifindex, const uint8_t *ip,
			       uint8_t *next_hop)
{
	const struct rtmsg *rt = NLMSG_DATA(h);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*rt)) || h->nlmsg_type != RTM_NEWROUTE ||
	    rt->rtm_type != RTN_UNICAST)
		return false;
	int length = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*rt))), out_index = 0;
	struct rtattr *a = (struct rtattr *)((uint8_t *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(*rt)));
	memcpy(next_hop, ip, 16);
	for (; RTA_OK(a, length); a = RTA_NEXT(a, length)) {
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == 4)
			memcpy(&out_index, RTA_DATA(a), 4);
		if (a->rta_type == RTA_GATEWAY &&
		    !netlink_attribute_ip(a, rt->rtm_family, next_hop))
			return false;
		/* an IPv4 route may lead over an IPv6 neighbour: family, then its address */
		if (a->rta_type == RTA_VIA && RTA_PAYLOAD(a) == 18)
			memcpy(next_hop, (uint8_t *)RTA_DATA(a) + 2, 16);
	}
	return out_index == ifindex;
}

/* Sends a request and waits for its answer. Returns 0 with the answer in buffer, or -errno. */
static int netlink_ask(struct netlink *k, struct request *r, void *buffer)
{
	r->header.nlmsg_seq = ++k->sequence;
	if (send(k->ask_fd, r, r->header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(k->ask_fd, buffer, NETLINK_BUFFER, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		const struct nlmsghdr *h = buffer;
		if (!NLMSG_OK(h, (size_t)n) || h->nlmsg_seq != k->sequence)
			continue; /* late answer to a request that timed out */
		if (h->nlmsg_type != NLMSG_ERROR)
			return 0;
		const struct nlmsgerr *e = NLMSG_DATA(h);
		return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ? -EPROTO : e->error;
	}
}

/* ifindex: the route over that interface, even when another is better; 0: the best one. */
static bool netlink_route(struct netlink *k, const uint8_t *ip, int ifindex, uint8_t *next_hop,
			  int *error)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[NETLINK_BUFFER];
	struct request r = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			   .nlmsg_type = RTM_GETROUTE,
			   .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = netlink_is_v4(ip) ? AF_INET : AF_INET6,
			  .rtm_dst_len = netlink_is_v4(ip) ? 32 : 128},
	};
	netlink_request_put_ip(&r, RTA_DST, ip);
	if (ifindex)
		netlink_request_put(&r, RTA_OIF, &ifindex, sizeof(ifindex));
	*error = netlink_ask(k, &r, buffer);
	return *error == 0 && netlink_read_route((void *)buffer, k->ifindex, ip, next_hop);
}

/* An interface is named only where the best route leads over another one: asked so, the kernel
 * takes everything without a route to be on the link. */
static bool netlink_next_hop(struct netlink *k, const uint8_t *ip, uint8_t *next_hop)
{
	int error;
	return netlink_route(k, ip, 0, next_hop, &error) ||
	       (error == 0 && netlink_route(k, ip, k->ifindex, next_hop, &error));
}

static struct request netlink_ask_neighbour(struct netlink *k, const uint8_t *ip, uint16_t type,
					    uint16_t flags, uint8_t ntf)
{
	struct request r = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			   .nlmsg_type = type,
			   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
		.neighbour = {.ndm_family = netlink_is_v4(ip) ? AF_INET : AF_INET6,
			      .ndm_ifindex = k->ifindex,
			      .ndm_flags = ntf},
	};
	netlink_request_put_ip(&r, NDA_DST, ip);
	return r;
}

/* A next hop as the kernel knows it. */
static bool netlink_look_up(struct netlink *k, const uint8_t *next_hop, struct neighbour_news *out)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[NETLINK_BUFFER];
	struct request r = netlink_ask_neighbour(k, next_hop, RTM_GETNEIGH, 0, 0);
	return netlink_ask(k, &r, buffer) == 0 &&
	       netlink_read_neighbour((void *)buffer, k->ifindex, out) && out->has_mac &&
	       (out->state & USABLE);
}

/* Makes the kernel ask the link, as if it sent there itself: the answer comes as an event. Not for
 * an entry that an administrator has set: since Linux 5.16 that would make it one that ages. */
static void netlink_use(struct netlink *k, const uint8_t *next_hop)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[NETLINK_BUFFER];
	struct request r =
		netlink_ask_neighbour(k, next_hop, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, NTF_USE);
	netlink_ask(k, &r, buffer);
}

static void netlink_resolve_entry(struct netlink *k, uint32_t i, const uint8_t *ip, uint64_t now_ns)
{
	struct neighbour_news news;
	uint8_t hop[16] = {0};
	bool found = netlink_next_hop(k, ip, hop);
	if (!found || memcmp(hop, k->next_hop[i], sizeof(hop)) != 0)
		neighbour_forget(k->table, ip);
	memcpy(k->next_hop[i], hop, sizeof(hop));
	if (found && netlink_look_up(k, hop, &news))
		neighbour_learn(k->table, ip, news.mac, false, now_ns);
	else if (found)
		netlink_use(k, hop);
}

/* Keeps the kernel's entry of a peer we send to alive and checked: the kernel does not see our
 * packets, so without this it would forget the peer, or not notice that it moved. */
static void netlink_refresh_entry(struct netlink *k, uint32_t i)
{
	struct neighbour_news news;
	if (!netlink_look_up(k, k->next_hop[i], &news) ||
	    !(news.state & (NUD_PERMANENT | NUD_NOARP)))
		netlink_use(k, k->next_hop[i]);
}

void netlink_resolve(struct netlink *k, uint64_t now_ns)
{
	bool refresh = now_ns >= k->refreshed_ns + NETLINK_REFRESH_NS;
	bool all = k->routes_changed && now_ns >= k->looked_ns + NETLINK_ROUTES_NS;
	uint8_t ip[16];
	if (k->no_carrier)
		return;
	for (uint32_t i = 0; i < NEIGHBOURS; i++) {
		enum neighbour_state state = neighbour_at(k->table, i, now_ns, ip);
		if (state == NEIGHBOUR_WANTED)
			neighbour_take(k->table, i);
		if (state == NEIGHBOUR_WANTED || (state == NEIGHBOUR_IN_USE && all))
			netlink_resolve_entry(k, i, ip, now_ns);
		else if (state == NEIGHBOUR_IN_USE && refresh)
			netlink_refresh_entry(k, i);
	}
	if (all) {
		k->routes_changed = false;
		k->looked_ns = now_ns;
	}
	if (refresh)
		k->refreshed_ns = now_ns;
}

/* A next hop changed: tell every destination behind it. One that nobody has asked for yet is
 * remembered too: most likely it is a peer that is about to send to us. */
static void netlink_apply(struct netlink *k, const struct neighbour_news *news, uint64_t now_ns)
{
	uint8_t ip[16];
	bool usable = news->has_mac && (news->state & USABLE);
	if (usable)
		neighbour_learn(k->table, news->ip, news->mac, true, now_ns);
	for (uint32_t i = 0; i < NEIGHBOURS; i++) {
		if (neighbour_at(k->table, i, now_ns, ip) == NEIGHBOUR_EMPTY)
			continue;
		if (memcmp(ip, news->ip, 16) == 0)
			memcpy(k->next_hop[i], ip, 16);
		else if (memcmp(k->next_hop[i], news->ip, 16) != 0)
			continue;
		if (usable)
			neighbour_learn(k->table, ip, news->mac, false, now_ns);
		else
			neighbour_forget(k->table, ip);
	}
}

/* A question while the link is down waits: the kernel would take seconds to ask again. */
static void netlink_link(struct netlink *k, const struct nlmsghdr *h)
{
	const struct ifinfomsg *link = NLMSG_DATA(h);
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*link)) || link->ifi_index != k->ifindex)
		return;
	k->no_carrier = !(link->ifi_flags & IFF_RUNNING);
	k->routes_changed = true;
}

/* Of an interface that leaves a bridge the kernel says so, too, as one of the bridge's. */
static bool netlink_is_gone(const struct netlink *k, const struct nlmsghdr *h)
{
	const struct ifinfomsg *link = NLMSG_DATA(h);
	return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*link)) && link->ifi_family == AF_UNSPEC &&
	       link->ifi_index == k->ifindex;
}

static void netlink_event(struct netlink *k, const struct nlmsghdr *h, uint64_t now_ns)
{
	struct neighbour_news news;
	switch (h->nlmsg_type) {
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (netlink_read_neighbour(h, k->ifindex, &news))
			netlink_apply(k, &news, now_ns);
		break;
	case RTM_NEWLINK:
		netlink_link(k, h);
		break;
	case RTM_DELLINK:
		k->gone |= netlink_is_gone(k, h);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		k->routes_changed = true;
		break;
	}
}

/* Not the interface that has its name now, which may be another one. */
static bool netlink_is_there(const struct netlink *k)
{
	char name[IF_NAMESIZE];
	return if_indextoname((unsigned)k->ifindex, name) || errno != ENXIO;
}

void netlink_take_events(struct netlink *k, uint64_t now_ns)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[NETLINK_BUFFER];
	for (;;) {
		ssize_t n = recv(k->events_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && errno == ENOBUFS) { /* some were lost: look at everything again */
			k->routes_changed = true;
			k->no_carrier = false;
			k->gone |= !netlink_is_there(k);
		} else if (n <= 0) {
			return;
		}
		/* whole words: NLMSG_NEXT would step over the end of anything else */
		size_t left = n > 0 ? (size_t)n / NLMSG_ALIGNTO * NLMSG_ALIGNTO : 0;
		for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left))
			netlink_event(k, h, now_ns);
	}
}

/* The neighbours the kernel has now, answered as if they had just appeared. */
static void netlink_ask_all(struct netlink *k)
{
	struct request r = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			   .nlmsg_type = RTM_GETNEIGH,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};
	if (send(k->events_fd, &r, r.header.nlmsg_len, 0) < 0)
		k->routes_changed = true;
}

static int netlink_socket_open(uint32_t groups)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
	struct timeval wait = {.tv_sec = 1};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int netlink_open(struct netlink *k, int ifindex, struct neighbour_table *table)
{
	memset(k, 0, sizeof(*k));
	k->ifindex = ifindex;
	k->table = table;
	k->events_fd = netlink_socket_open(RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE |
					   RTMGRP_IPV6_ROUTE);
	if (k->events_fd < 0)
		return k->events_fd;
	k->ask_fd = netlink_socket_open(0);
	if (k->ask_fd >= 0) {
		k->gone = !netlink_is_there(k); /* before its end would have been heard of */
		netlink_ask_all(k);
		return 0;
	}
	close(k->events_fd);
	k->events_fd = -1;
	return k->ask_fd;
}

void netlink_close(struct netlink *k)
{
	if (k->events_fd < 0)
		return;
	close(k->events_fd);
	close(k->ask_fd);
	k->events_fd = -1;
}
