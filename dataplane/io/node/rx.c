/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: from the port's queue, and from workers that took a packet which is not theirs. Called
 * by worker.c in each turn, as a port's `receive`. It gives each packet for this worker to
 * engine_receive, and must not know what is in it behind the UDP header.
 */
#include "worker.h"

#include <rte_ethdev.h>
#include <rte_prefetch.h>
#include "io/net/ether.h"

/* Answers who-has for our address, and remembers the sender's. One for another address tells the
 * sender's, too, if we know it already (RFC 826): so a peer announces that it has moved. */
static bool rx_answer_neighbour(struct worker *w, struct rail *r, const struct ether_frame *f,
				uint64_t now_ns)
{
	const struct port *p = r->port;
	bool ours = memcmp(f->to.ip, p->addr.ip, 16) == 0;
	static const uint8_t unspecified[16];
	if (f->has_mac && memcmp(f->from.ip, unspecified, 16) != 0)
		neighbour_learn(p->neighbours, f->from.ip, f->from_mac, ours, now_ns);
	if (!ours)
		return false;
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->out->pool);
	if (!m) {
		w->counters->io_no_mbuf++;
		return true;
	}
	uint8_t *out = rte_pktmbuf_mtod(m, uint8_t *);
	m->data_len = ether_write_advertise(out, p->mac, f, f->from_mac);
	m->pkt_len = m->data_len;
	tx_send_one(w, r, m);
	w->counters->io_arp_replies++;
	return true;
}

/* Returns true when the buffer went out again as the reply. */
static bool rx_answer_echo(struct worker *w, struct rail *r, struct rte_mbuf *m, uint8_t *data,
			   const struct ether_frame *f)
{
	if (memcmp(f->to.ip, r->port->addr.ip, 16) != 0 || m->nb_segs != 1) {
		w->counters->io_not_ours++;
		return false;
	}
	ether_make_echo_reply(data, r->port->mac, f);
	tx_send_one(w, r, m);
	w->counters->io_echo_replies++;
	return true;
}

/* Where no kernel does it for us. Returns true when the buffer is gone. */
static bool rx_link(struct worker *w, struct rail *r, struct rte_mbuf *m, uint8_t *data,
		    struct ether_frame *f, uint64_t now_ns)
{
	switch (f->kind) {
	case ETHER_ECHO_REQUEST4:
	case ETHER_ECHO_REQUEST6:
		return rx_answer_echo(w, r, m, data, f);
	case ETHER_ND_SOLICIT:
		if (!f->has_mac) /* then the frame's own source is where to answer */
			memcpy(f->from_mac, data + ETHER_MAC, ETHER_MAC);
		/* fall through */
	case ETHER_ARP_REQUEST:
		if (rx_answer_neighbour(w, r, f, now_ns))
			return false;
		break;
	case ETHER_ARP_REPLY:
	case ETHER_ND_ADVERTISE:
		if (f->has_mac)
			neighbour_learn(r->port->neighbours, f->from.ip, f->from_mac, false,
					now_ns);
		return false;
	default:
		break;
	}
	w->counters->io_not_ours++;
	return false;
}

/* Gives a packet to the worker whose port it names. Returns true when the buffer is gone. */
static bool rx_hand_over(struct worker *w, struct rail *r, struct rte_mbuf *m, unsigned to)
{
	struct worker *other = &w->all[to];
	if (rte_ring_mp_enqueue(other->rail[r->index].handover, m) != 0) {
		w->counters->io_handover_full++;
		return false;
	}
	idle_wake(other);
	return true;
}

/* Returns true when the buffer is gone. */
static bool rx_udp(struct worker *w, struct rail *r, struct rte_mbuf *m,
		   const struct ether_frame *f, uint64_t now_ns)
{
	unsigned to = (unsigned)(f->to.port - r->port->addr.port);
	if (to >= w->workers || memcmp(f->to.ip, r->port->addr.ip, 16) != 0) {
		w->counters->io_not_ours++;
		return false;
	}
	if (to != w->index)
		return rx_hand_over(w, r, m, to);
	if (!w->session) {
		w->counters->io_not_ours++;
		return false;
	}
	struct packet_in in = {.data = f->payload,
			       .length = f->payload_length,
			       .ecn = f->ecn,
			       .from = f->from,
			       .rail = r->index};
	engine_receive(w->session->engine, &in, now_ns);
	return false;
}

/* A packet in pieces, made one; NULL when it is too long, or shorter than it says. */
static uint8_t *rx_whole(struct worker *w, struct rte_mbuf *m)
{
	if (m->pkt_len > ETHER_FRAME_MAX)
		return NULL;
	return (uint8_t *)(uintptr_t)rte_pktmbuf_read(m, 0, m->pkt_len, w->scratch);
}

/* Returns true when the buffer is gone. */
static bool rx_packet(struct worker *w, struct rail *r, struct rte_mbuf *m, uint64_t now_ns)
{
	struct ether_frame f;
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t length = m->pkt_len;
	if (m->nb_segs > 1) /* never with our own buffer sizes, but a peer on a ring may */
		data = rx_whole(w, m);
	if (!data) {
		w->counters->io_bad_ip++;
		return false;
	}
	uint64_t sum =
		m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK; /* of the IPv4 header: the card's view */
	if (sum == RTE_MBUF_F_RX_IP_CKSUM_BAD) {
		w->counters->io_bad_ip++;
		return false;
	}
	if (sum == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		ether_parse_summed(data, length, &f);
	else
		ether_parse(data, length, &f);
	if (f.kind == ETHER_UDP)
		return rx_udp(w, r, m, &f, now_ns);
	if (f.kind == ETHER_BAD) {
		w->counters->io_bad_ip++;
		return false;
	}
	if (r->port->answers)
		return rx_link(w, r, m, data, &f, now_ns);
	w->counters->io_not_ours++;
	return false;
}

enum { RX_AHEAD = 2 /* packets */ };

/* Lets the engine fetch, some packets ahead, where the payload will go. Only plain headers. */
static void rx_prefetch(struct worker *w, struct rte_mbuf *m)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t at = ETHER_HEADERS_V4;
	if (m->data_len < ETHER_HEADERS_V6 || !w->session)
		return;
	if (data[12] == 0x86)
		at = ETHER_HEADERS_V6;
	else if (data[14] != 0x45)
		return;
	struct packet_in in = {.data = data + at, .length = (uint16_t)(m->data_len - at)};
	uint64_t begin = worker_stage_begin(w);
	engine_prefetch(w->session->engine, &in);
	worker_stage_end(w, IO_AHEAD, begin);
}

static void rx_packets(struct worker *w, struct rail *r, struct rte_mbuf **m, unsigned count,
		       uint64_t now_ns)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (unsigned i = 0; i < count; i++) {
		struct rte_mbuf *this = m[i];
		if (i + RX_AHEAD < count)
			rx_prefetch(w, m[i + RX_AHEAD]);
		if (!rx_packet(w, r, this, now_ns))
			m[kept++] = this;
	}
	rte_pktmbuf_free_bulk(m, kept);
}

static unsigned rx_handed_over(struct worker *w, struct rail *r, uint64_t now_ns)
{
	struct rte_mbuf *m[WORKER_BURST];
	unsigned n = rte_ring_sc_dequeue_burst(r->handover, (void **)m, WORKER_BURST, NULL);
	if (n > 0)
		rx_packets(w, r, m, n, now_ns);
	return n;
}

/* Up to so many bursts as a peer sends in a turn: what waits for another turn leaves the cache. */
/* Takes our tag off. Frames of other VLANs, and those without one, go. Returns how many are left.
 */
static unsigned rx_untag(struct worker *w, const struct rail *r, struct rte_mbuf **m,
			 unsigned count)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *data = rte_pktmbuf_mtod(m[i], uint8_t *);
		if (ether_untag(data, m[i]->data_len, r->port->vlan)) {
			rte_pktmbuf_adj(m[i], ETHER_TAG);
			m[kept++] = m[i];
		} else {
			w->counters->io_not_ours++;
			rte_pktmbuf_free(m[i]);
		}
	}
	return kept;
}

static unsigned rx_queue(struct worker *w, struct rail *r, const struct port_queue *q,
			 uint64_t now_ns)
{
	struct rte_mbuf *m[WORKER_BURST];
	unsigned total = 0;
	for (unsigned round = 0; round < WORKER_RX_ROUNDS; round++) {
		uint64_t asked = worker_stage_begin(w);
		unsigned n = rte_eth_rx_burst(q->device, q->queue, m, WORKER_BURST);
		worker_stage_end(w, IO_RX_DRIVER, asked);
		unsigned ours = r->port->vlan ? rx_untag(w, r, m, n) : n;
		if (ours > 0)
			rx_packets(w, r, m, ours, now_ns);
		total += n;
		if (n < WORKER_BURST)
			break;
	}
	return total;
}

unsigned rx_burst(struct worker *w, struct rail *r, uint64_t now_ns)
{
	uint64_t begin = worker_stage_begin(w);
	unsigned total = 0;
	for (unsigned i = 0; i < r->ins; i++)
		total += rx_queue(w, r, r->in[i], now_ns);
	if (w->workers > 1)
		total += rx_handed_over(w, r, now_ns);
	worker_stage_end(w, IO_RX, begin);
	return total;
}

const struct port_ops device_ops = {
	.receive = rx_burst,
	.transmit = tx_burst,
	.drop_held = tx_drop_held,
	.stop = tx_stop,
};
