/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel, or somebody in its place, tells of neighbours, routes and the link: events, and
 * answers to our questions, with headers that are nearly right. The sockets are pairs of ours. What
 * lies behind a datagram in the buffer is nobody's: with the sanitizer, reading it ends the
 * program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include "io/net/netlink.h"
#include "input.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define HIDE(at, bytes) __asan_poison_memory_region(at, bytes)
#define SHOW(at, bytes) __asan_unpoison_memory_region(at, bytes)
#endif
#endif
#ifndef HIDE
#define HIDE(at, bytes) memset(at, 0x55, bytes)
#define SHOW(at, bytes) (void)0
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __real_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags);

enum { IFINDEX = 3, DATAGRAM_MAX = 2048 };

/* The linker puts this in the place of recv. */
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags)
{
	SHOW(to, bytes);
	ssize_t n = __real_recv(fd, to, bytes, flags);
	size_t there = n > 0 ? (size_t)n : 0;
	int error = errno;

	if (n >= 0)
		HIDE((uint8_t *)to + there, bytes - there);
	errno = error;
	return n;
}

/* Few addresses, so that news meet. */
static void some_ip(struct input *in, bool v4, uint8_t *ip)
{
	memset(ip, 0, 16);
	if (v4)
		ip[10] = ip[11] = 0xff;
	else
		ip[0] = 0xfe;
	ip[15] = input_byte(in) % 8;
}

static size_t put_attribute(uint8_t *to, uint16_t type, const void *value, uint16_t bytes)
{
	struct rtattr a = {.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(bytes)};

	memcpy(to, &a, sizeof(a));
	memcpy(to + sizeof(a), value, bytes);
	return RTA_ALIGN(a.rta_len);
}

static size_t put_ip(struct input *in, uint8_t *to, bool v4, uint16_t type)
{
	uint8_t ip[16];

	some_ip(in, v4, ip);
	return put_attribute(to, type, v4 ? ip + 12 : ip, v4 ? 4 : 16);
}

static size_t put_neighbour(struct input *in, uint8_t *to, bool v4)
{
	struct ndmsg nd = {.ndm_family = v4 ? AF_INET : AF_INET6, .ndm_ifindex = IFINDEX};
	size_t at = NLMSG_ALIGN(sizeof(nd));

	nd.ndm_state = input_byte(in);
	memcpy(to, &nd, sizeof(nd));
	at += put_ip(in, to + at, v4, NDA_DST);
	return at + put_attribute(to + at, NDA_LLADDR, "\2\0\0\0\0\7", 6);
}

static size_t put_route(struct input *in, uint8_t *to, bool v4)
{
	struct rtmsg rt = {.rtm_family = v4 ? AF_INET : AF_INET6, .rtm_type = RTN_UNICAST};
	size_t at = NLMSG_ALIGN(sizeof(rt));
	uint8_t choice = input_byte(in), via[18] = {AF_INET6, 0, 0xfe};
	uint32_t index = IFINDEX;

	memcpy(to, &rt, sizeof(rt));
	at += put_attribute(to + at, RTA_OIF, &index, sizeof(index));
	if (choice & 1)
		at += put_ip(in, to + at, v4, RTA_GATEWAY);
	if (choice & 2)
		at += put_attribute(to + at, RTA_VIA, via, sizeof(via));
	return at;
}

/* One message at to, which is aligned; returns its bytes. */
static size_t put_message(struct input *in, uint8_t *to, uint32_t sequence)
{
	static const uint16_t types[] = {RTM_NEWNEIGH, RTM_DELNEIGH, RTM_NEWROUTE, RTM_DELROUTE,
					 RTM_NEWLINK,  NLMSG_ERROR,  NLMSG_DONE,   NLMSG_NOOP};
	uint8_t choice = input_byte(in);
	struct nlmsghdr h = {.nlmsg_type = types[choice % 8], .nlmsg_seq = sequence};
	size_t bytes = sizeof(h);
	struct ifinfomsg link = {.ifi_index = IFINDEX, .ifi_flags = choice};

	memset(to, 0, 256);
	if (h.nlmsg_type <= NLMSG_ERROR)
		bytes += sizeof(struct nlmsgerr);
	else if (h.nlmsg_type == RTM_NEWLINK)
		memcpy(to + bytes, &link, sizeof(link)), bytes += sizeof(link);
	else if (h.nlmsg_type == RTM_NEWROUTE || h.nlmsg_type == RTM_DELROUTE)
		bytes += put_route(in, to + bytes, choice & 8);
	else
		bytes += put_neighbour(in, to + bytes, choice & 8);
	h.nlmsg_len = (uint32_t)(bytes - (choice & 16 ? 1 : 0));
	memcpy(to, &h, sizeof(h));
	input_spoil(in, to, bytes, choice >> 5);
	return bytes;
}

/* Some messages, the last of which may be cut. */
static void put_datagram(struct input *in, int fd, uint32_t sequence)
{
	static _Alignas(8) uint8_t room[DATAGRAM_MAX + 256];
	uint8_t choice = input_byte(in);
	size_t bytes = 0;

	for (unsigned left = choice % 4; left > 0 && bytes < DATAGRAM_MAX; left--)
		bytes += NLMSG_ALIGN(put_message(in, room + bytes, sequence));
	if (choice & 0x80)
		bytes -= (choice >> 4 & 7) < bytes ? choice >> 4 & 7 : bytes;
	send(fd, room, bytes, MSG_DONTWAIT);
}

static void want(struct input *in, struct neighbour_table *t, uint64_t now_ns)
{
	uint8_t ip[16], mac[6];

	some_ip(in, input_byte(in) & 1, ip);
	neighbour_find(t, ip, now_ns, mac);
}

static void step(struct input *in, struct netlink *k, const int other[2], uint64_t *now_ns)
{
	uint8_t choice = input_byte(in), room[256];

	switch (choice % 4) {
	case 0:
		put_datagram(in, other[0], 0);
		netlink_take_events(k, *now_ns);
		break;
	case 1:
		want(in, k->table, *now_ns);
		break;
	case 2:
		for (uint32_t i = 1; i <= 1u + choice / 64; i++)
			put_datagram(in, other[1], k->sequence + i - (choice >> 2 & 1));
		netlink_resolve(k, *now_ns);
		while (recv(other[1], room, sizeof(room), MSG_DONTWAIT) >= 0)
			continue; /* questions */
		SHOW(room, sizeof(room));
		break;
	default:
		*now_ns += choice * 1000000000ull / 4;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct netlink k;
	static struct neighbour_table table;
	struct input in = {data, size};
	int events[2], ask[2], other[2];
	uint64_t now_ns = 1000000000;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, events) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ask) < 0)
		return 0;
	memset(&table, 0, sizeof(table));
	neighbour_init(&table, false);
	memset(&k, 0, sizeof(k));
	k.events_fd = events[0];
	k.ask_fd = ask[0];
	k.ifindex = IFINDEX;
	k.table = &table;
	other[0] = events[1];
	other[1] = ask[1];
	for (int i = 0; i < 32 && in.left > 0; i++)
		step(&in, &k, other, &now_ns);
	netlink_close(&k);
	close(other[0]);
	close(other[1]);
	return 0;
}
