/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving from a socket: each datagram is one packet or a burst that the kernel left whole. Its
 * packets are given to the engine where they lie.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include "io/net/ether.h"
#include "udp.h"
#include "io/node/worker.h"

enum { UDP_RX_AHEAD = 2 /* packets */ };

static bool udp_sender(const struct sockaddr_storage *from, struct net_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
		ether_map_v4(out->ip, (const uint8_t *)&v4->sin_addr);
		out->port = ntohs(v4->sin_port);
		return true;
	}
	if (from->ss_family != AF_INET6)
		return false;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
	memcpy(out->ip, &v6->sin6_addr, 16);
	out->port = ntohs(v6->sin6_port);
	return true;
}

static int udp_control_int(const struct cmsghdr *c)
{
	int value = 0;
	size_t bytes = c->cmsg_len - CMSG_LEN(0);
	memcpy(&value, CMSG_DATA(c), bytes < sizeof(value) ? bytes : sizeof(value));
	return value;
}

/* The kernel counts what it had no room for from the socket's start. */
static void udp_overflowed(struct worker *w, struct rail *r, uint32_t total)
{
	w->counters->io_rx_lost += (uint32_t)(total - r->udp->overflowed);
	r->udp->overflowed = total;
}

/* Reads what the kernel says of a datagram; returns the length of its packets. */
static unsigned udp_control(struct worker *w, struct rail *r, struct msghdr *m, unsigned length,
			    uint8_t *ecn)
{
	unsigned segment = length;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			segment = (unsigned)udp_control_int(c);
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
			*ecn = (uint8_t)(udp_control_int(c) & 3);
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			udp_overflowed(w, r, (uint32_t)udp_control_int(c));
	}
	return segment > 0 && segment < length ? segment : length;
}

static void udp_packets(struct worker *w, const uint8_t *data, unsigned length, unsigned segment,
			struct packet_in *in, uint64_t now_ns)
{
	struct engine *e = w->session->engine;
	for (unsigned at = 0; at < length; at += segment) {
		unsigned ahead = at + UDP_RX_AHEAD * segment;
		if (ahead < length) {
			struct packet_in next = {.data = data + ahead};
			next.length = (uint16_t)RTE_MIN(segment, length - ahead);
			engine_prefetch(e, &next);
		}
		in->data = data + at;
		in->length = (uint16_t)RTE_MIN(segment, length - at);
		engine_receive(e, in, now_ns);
	}
}

static unsigned udp_datagram(struct worker *w, struct rail *r, struct mmsghdr *d, uint64_t now_ns)
{
	struct msghdr *m = &d->msg_hdr;
	struct packet_in in = {.rail = r->index};
	unsigned segment = udp_control(w, r, m, d->msg_len, &in.ecn);
	if (!w->session || d->msg_len == 0 || !udp_sender(m->msg_name, &in.from)) {
		w->counters->io_not_ours++;
		return 1;
	}
	udp_packets(w, m->msg_iov->iov_base, d->msg_len, segment, &in, now_ns);
	return (d->msg_len + segment - 1) / segment;
}

static void udp_ready(struct udp *u)
{
	for (unsigned i = 0; i < UDP_TAKES; i++) {
		u->whole[i] = (struct iovec){u->datagrams + (size_t)i * UDP_DATAGRAM_MAX,
					     UDP_DATAGRAM_MAX};
		u->rx[i].msg_hdr = (struct msghdr){.msg_name = &u->sender[i],
						   .msg_namelen = sizeof(u->sender[i]),
						   .msg_iov = &u->whole[i],
						   .msg_iovlen = 1,
						   .msg_control = u->control[i],
						   .msg_controllen = UDP_CONTROL_RX};
	}
}

unsigned udp_receive(struct worker *w, struct rail *r, uint64_t now_ns)
{
	struct udp *u = r->udp;
	unsigned packets = 0;
	if (u->drained && !w->busy_poll) { /* the sleep that comes next ends at once if not */
		u->drained = false;
		return 0;
	}
	uint64_t begin = worker_stage_begin(w);
	udp_ready(u);
	int n = recvmmsg(u->fd, u->rx, UDP_TAKES, MSG_DONTWAIT, NULL);
	worker_stage_end(w, IO_RX_DRIVER, begin);
	w->counters->io_rx_calls++;
	if (n <= 0)
		return 0;
	u->drained = n < UDP_TAKES;
	w->counters->io_rx_bursts += (unsigned)n;
	for (int i = 0; i < n; i++)
		packets += udp_datagram(w, r, &u->rx[i], now_ns);
	worker_stage_end(w, IO_RX, begin);
	return packets;
}

const struct port_ops udp_ops = {
	.receive = udp_receive,
	.transmit = udp_transmit,
	.drop_held = udp_drop_held,
	.stop = udp_drop_held,
};
