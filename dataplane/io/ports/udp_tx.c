/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending over a socket: the engine writes heads into memory of ours and points at payload in the
 * store; the kernel gathers both, a burst of one connection at a time. What the socket has no room
 * for waits, with a copy of its payload, and the engine is asked for no more meanwhile.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <rte_prefetch.h>
#include "io/net/ether.h"
#include "io/observe/log.h"
#include "udp.h"
#include "io/node/worker.h"

enum {
	UDP_TX_AHEAD = 2,	    /* packets */
	UDP_TX_STUCK_NS = 20000000, /* far more than a queue takes to drain */
};
#define UDP_RETRY_NS UINT64_C(60000000000) /* a route may have changed to another device */

socklen_t udp_sockaddr(const struct net_addr *addr, struct sockaddr_storage *out)
{
	if (net_addr_is_v4(addr)) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)out;
		*v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(addr->port)};
		memcpy(&v4->sin_addr, addr->ip + 12, 4);
		return sizeof(*v4);
	}
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	*v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(addr->port)};
	memcpy(&v6->sin6_addr, addr->ip, 16);
	return sizeof(*v6);
}

static struct cmsghdr *udp_control_add(struct msghdr *m, int level, int type, const void *data,
				       size_t bytes)
{
	struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)m->msg_control + m->msg_controllen);
	*c = (struct cmsghdr){.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(bytes)};
	memcpy(CMSG_DATA(c), data, bytes);
	m->msg_controllen += CMSG_SPACE(bytes);
	return c;
}
_Static_assert(CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int)) +
			       CMSG_SPACE(sizeof(struct in6_pktinfo)) <=
		       UDP_CONTROL_TX,
	       "all three fit");

/* The sockets send ECT(0) by themselves. */
static void udp_control_ecn(const struct udp *u, struct msghdr *m, int ecn)
{
	if (ecn == ENGINE_ECN_ECT0)
		return;
	if (u->v4)
		udp_control_add(m, IPPROTO_IP, IP_TOS, &ecn, sizeof(ecn));
	else
		udp_control_add(m, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof(ecn));
}

static void udp_control_from(const struct udp *u, struct msghdr *m, const struct net_addr *from)
{
	if (u->v4) {
		struct in_pktinfo info = {0};
		memcpy(&info.ipi_spec_dst, from->ip + 12, 4);
		udp_control_add(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		struct in6_pktinfo info = {0};
		memcpy(&info.ipi6_addr, from->ip, 16);
		udp_control_add(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
}

static struct iovec *udp_pieces(struct iovec *v, const struct packet_out *p)
{
	*v++ = (struct iovec){p->head, p->head_length};
	if (p->payload_length > 0)
		*v++ = (struct iovec){(void *)(uintptr_t)p->payload, p->payload_length};
	return v;
}

/* Describes the packets that wait to the kernel; returns in how many bursts. */
static unsigned udp_describe(struct worker *w, struct rail *r, struct udp *u)
{
	unsigned end = u->first + u->count, n = 0;
	struct iovec *v = u->piece;
	for (unsigned at = u->first; at < end; n++) {
		struct packet_out *p = &u->out[at];
		struct udp_burst *b = &u->burst[n];
		struct msghdr *m = &u->tx[n].msg_hdr;
		uint16_t segment = (uint16_t)(p->head_length + p->payload_length);
		unsigned packets = u->segments ? udp_burst_packets(p, end - at) : 1;
		*m = (struct msghdr){.msg_name = &b->to, .msg_iov = v, .msg_control = b->control};
		m->msg_namelen = udp_sockaddr(&p->to, &b->to);
		for (unsigned k = 0; k < packets; k++)
			v = udp_pieces(v, &p[k]);
		m->msg_iovlen = (size_t)(v - m->msg_iov);
		if (packets > 1)
			udp_control_add(m, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
		udp_control_ecn(u, m, p->ecn);
		if (u->from)
			udp_control_from(u, m, &r->port->addr);
		u->packets[n] = packets;
		at += packets;
	}
	return n;
}

static void udp_take_off(struct udp *u, unsigned packets)
{
	u->first += packets;
	u->count -= packets;
}

static void udp_lose(struct worker *w, struct udp *u, unsigned packets)
{
	w->counters->io_tx_lost += packets;
	udp_take_off(u, packets);
}

void udp_drop_held(struct worker *w, struct rail *r)
{
	struct udp *u = r->udp;
	udp_lose(w, u, u->count);
	r->held_count = 0;
	r->wants_room = false;
}

static void udp_bursts(struct worker *w, struct udp *u, bool on)
{
	u->segments = on;
	w->counters->io_gso_off = !on;
}

/* A burst was refused, and a single packet was taken: it is the device. */
static void udp_refused(struct worker *w, struct rail *r, struct udp *u)
{
	w->counters->io_gso_refused++;
	if (!u->logged)
		log_warning("port %s: the device takes no bursts (%s): packets leave one by one, "
			    "at a multiple of the CPU time: see 'ethtool -k' for tx-checksumming",
			    r->port->text, strerror(u->refusal));
	u->logged = true;
	u->refusal = 0;
}

/* Only a filter of this host says so: netfilter's output, or the service's cgroup. */
static void udp_filtered(struct worker *w, struct rail *r, struct udp *u)
{
	w->counters->io_tx_filtered += u->packets[0];
	if (!u->filtered)
		log_warning("port %s: a filter of this host forbids to send: see IPAddressDeny= of "
			    "the service, and 'nft list ruleset'",
			    r->port->text);
	u->filtered = true;
}

/* The first burst that waits cannot leave. Returns false when all must wait. */
static bool udp_fault(struct worker *w, struct rail *r, struct udp *u, int error, uint64_t now_ns)
{
	switch (error) {
	case EINTR:
		return true;
	case EAGAIN:
		r->wants_room = true;
		return false;
	case ENOBUFS:
	case ENOMEM: /* the socket would say that it has room */
		r->wants_room = false;
		return false;
	case EIO:
	case EINVAL:
	case EMSGSIZE:
		if (u->packets[0] > 1) {
			u->refusal = error;
			u->retry_ns = now_ns + UDP_RETRY_NS;
			udp_bursts(w, u, false);
			return true;
		}
		/* By itself, too: not the device's bursts are at fault, but the packet's length, or
		 * that our address is gone for a while (EINVAL). */
		if (u->refusal) {
			u->refusal = 0;
			udp_bursts(w, u, true);
		}
		break;
	default:
		break;
	}
	w->counters->io_tx_refused += u->packets[0];
	if (error == EPERM || error == EACCES)
		udp_filtered(w, r, u);
	udp_lose(w, u, u->packets[0]);
	return true;
}

/* Gives the kernel what waits; returns how many packets it took. */
static unsigned udp_flush(struct worker *w, struct rail *r, struct udp *u, uint64_t now_ns)
{
	unsigned sent = 0;
	bool go_on = true;
	r->wants_room = false;
	while (go_on && u->count > 0) {
		unsigned bursts = udp_describe(w, r, u);
		int n = sendmmsg(u->fd, u->tx, bursts, MSG_DONTWAIT);
		w->counters->io_tx_calls++;
		if (n < 0) {
			go_on = udp_fault(w, r, u, errno, now_ns);
			continue;
		}
		w->counters->io_tx_bursts += (unsigned)n;
		if (u->refusal)
			udp_refused(w, r, u);
		for (int k = 0; k < n; k++) {
			sent += u->packets[k];
			udp_take_off(u, u->packets[k]);
		}
	}
	return sent;
}

/* Packets that could not leave must not point at payload that may go. */
static void udp_hold(struct worker *w, struct rail *r, struct udp *u)
{
	for (unsigned k = u->first; k < u->first + u->count; k++) {
		struct packet_out *p = &u->out[k];
		if (p->payload_length > 0)
			memcpy(p->head + p->head_length, p->payload, p->payload_length);
		p->head_length = (uint16_t)(p->head_length + p->payload_length);
		p->payload_length = 0;
	}
	w->counters->io_tx_full += u->count;
	r->held_count = u->count;
}

/* Like a network card that takes nothing: after a while the packets are dropped, so that the engine
 * goes on, and detects silent peers. */
static unsigned udp_held(struct worker *w, struct rail *r, struct udp *u, uint64_t now_ns)
{
	unsigned sent = udp_flush(w, r, u, now_ns);
	r->held_count = u->count;
	if (sent > 0 || u->count == 0)
		u->held_ns = now_ns;
	else if (now_ns - u->held_ns > UDP_TX_STUCK_NS)
		udp_drop_held(w, r);
	return sent;
}

static void udp_prefetch(const struct packet_out *p)
{
	for (unsigned at = 0; at < p->payload_length; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(p->payload + at);
}

static void udp_seal(struct worker *w, const struct packet_out *out, unsigned count)
{
	uint64_t begin = worker_stage_begin(w);
	for (unsigned i = 0; i < count; i++) {
		const struct packet_out *p = &out[i];
		if (i + UDP_TX_AHEAD < count && !packet_out_known(&out[i + UDP_TX_AHEAD]))
			udp_prefetch(&out[i + UDP_TX_AHEAD]);
		packet_out_seal(p);
	}
	worker_stage_end(w, IO_SEAL, begin);
}

unsigned udp_transmit(struct worker *w, struct rail *r, uint64_t now_ns)
{
	struct udp *u = r->udp;
	unsigned sent = r->held_count > 0 ? udp_held(w, r, u, now_ns) : 0;
	if (r->held_count > 0)
		return sent;
	if (!u->segments && u->retry_ns > 0 && now_ns >= u->retry_ns)
		udp_bursts(w, u, true);
	for (unsigned i = 0; i < UDP_PACKETS; i++) {
		u->out[i].head = u->heads + (size_t)i * u->head_stride;
		u->out[i].head_room = (uint16_t)(r->port->mtu - ETHER_IPV4 - ETHER_UDP_HEADER);
	}
	unsigned n =
		engine_transmit_rail(w->session->engine, r->index, u->out, UDP_PACKETS, now_ns);
	if (n == 0)
		return sent;
	udp_seal(w, u->out, n);
	u->first = 0;
	u->count = n;
	u->held_ns = now_ns;
	uint64_t begin = worker_stage_begin(w);
	udp_flush(w, r, u, now_ns);
	worker_stage_end(w, IO_TX_DRIVER, begin);
	if (u->count > 0)
		udp_hold(w, r, u);
	return sent + n;
}
