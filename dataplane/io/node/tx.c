/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: the engine writes its header straight into a packet buffer; payload that lies in the
 * store is chained behind it where the driver can take that, and copied once where it cannot, or
 * where a packet like that was lost. Called by worker.c in each turn, as a port's `transmit`. It
 * must not know what a packet carries.
 */
#include "worker.h"

#include <sys/eventfd.h>
#include <rte_ethdev.h>
#include <rte_prefetch.h>
#include "io/net/ether.h"

enum {
	CHAIN_MIN = 256,	/* bytes; below, a copy is cheaper than a second buffer */
	TX_STUCK_NS = 20000000, /* far more than a ring takes to drain */
};

void tx_drop_held(struct worker *w, struct rail *r)
{
	rte_pktmbuf_free_bulk(r->held, r->held_count);
	r->held_count = 0;
}

/*
 * Returns how many of them have left. A port that takes none for TX_STUCK_NS has no link, or no
 * peer: the packets are dropped, as on a pulled cable, so that the engine goes on, and detects
 * silent peers.
 */
static unsigned tx_held(struct worker *w, struct rail *r, uint64_t now_ns)
{
	unsigned sent;

	if (r->held_count == 0)
		return 0;
	sent = rte_eth_tx_burst(r->out->device, r->out->queue, r->held, (uint16_t)r->held_count);
	r->held_count -= sent;
	memmove(r->held, r->held + sent, r->held_count * sizeof(*r->held));
	if (sent > 0)
		r->held_ns = now_ns;
	else if (now_ns - r->held_ns > TX_STUCK_NS)
		tx_drop_held(w, r);
	return sent;
}

static void tx_hold(struct worker *w, struct rail *r, struct rte_mbuf *const *m, unsigned count,
		    uint64_t now_ns)
{
	w->counters->io_tx_full += count;
	memcpy(r->held, m, count * sizeof(*m));
	r->held_count = count;
	r->held_ns = now_ns;
}

static void tx_tag(const struct port *p, struct rte_mbuf *m)
{
	if (p->vlan)
		ether_tag((uint8_t *)rte_pktmbuf_prepend(m, ETHER_TAG), p->vlan);
}

void tx_send_one(struct worker *w, struct rail *r, struct rte_mbuf *m)
{
	tx_tag(r->port, m);
	if (rte_eth_tx_burst(r->out->device, r->out->queue, &m, 1) == 1)
		return;
	w->counters->io_tx_full++;
	rte_pktmbuf_free(m);
}

/* Asks the link for a neighbour. */
static void tx_solicit(struct worker *w, struct rail *r, const uint8_t *ip)
{
	const struct port *p = r->port;
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->out->pool);
	if (!m) {
		w->counters->io_no_mbuf++;
		return;
	}
	m->data_len = ether_write_solicit(rte_pktmbuf_mtod(m, uint8_t *), p->mac, p->addr.ip, ip);
	m->pkt_len = m->data_len;
	tx_send_one(w, r, m);
}

/* Finds the next hop's Ethernet address, or starts to. */
static bool tx_route(struct worker *w, struct rail *r, const struct net_addr *to, uint8_t *mac,
		     uint64_t now_ns)
{
	const struct port *p = r->port;
	const uint8_t *hop = port_next_hop(p, to->ip);
	unsigned found = neighbour_find(p->neighbours, hop, now_ns, mac);
	if (found & NEIGHBOUR_ASK) {
		if (p->answers || w->resolver_fd < 0)
			tx_solicit(w, r, hop);
		else
			eventfd_write(w->resolver_fd, 1);
	}
	return found & NEIGHBOUR_KNOWN;
}

/* Whether payload may be sent from where it is. Not a second time: some cards (e1000e, vmxnet3
 * behind an IOMMU) never transmit what lies across two pages, and would not at any later time. */
static bool tx_chains(const struct worker *w, const struct rail *r, const struct packet_out *out)
{
	if (r->port->payload == PAYLOAD_COPY || out->payload_length < CHAIN_MIN)
		return false;
	const struct session *s = w->session;
	if (r->port->payload != PAYLOAD_CHAIN &&
	    (out->payload < s->store ||
	     out->payload + out->payload_length > s->store + s->store_bytes))
		return false;
	w->counters->io_tx_copied += out->resend;
	return !out->resend;
}

static bool tx_chain(struct worker *w, struct rail *r, struct rte_mbuf *m,
		     const struct packet_out *out)
{
	struct rte_mbuf *tail = rte_pktmbuf_alloc(r->out->pool);
	if (!tail)
		return false;
	/* never freed by its count: the worker's own reference stays */
	rte_mbuf_ext_refcnt_update(&w->pinned, 1);
	void *payload = (void *)(uintptr_t)out->payload;
	rte_pktmbuf_attach_extbuf(tail, payload, (rte_iova_t)(uintptr_t)payload,
				  out->payload_length, &w->pinned);
	tail->data_len = tail->pkt_len = out->payload_length;
	m->next = tail;
	m->nb_segs = 2;
	m->pkt_len += out->payload_length;
	w->counters->io_tx_in_place++;
	return true;
}

/* Puts the payload behind the header in m, and the checksum over both into the header; returns
 * where the payload lies. */
static const uint8_t *tx_payload(struct worker *w, struct rail *r, struct rte_mbuf *m,
				 const struct packet_out *out)
{
	const uint8_t *payload = out->payload;
	uint64_t begin;
	m->data_len = out->head_length;
	m->pkt_len = out->head_length;
	bool chained = out->payload_length > 0 && tx_chains(w, r, out) && tx_chain(w, r, m, out);
	begin = worker_stage_begin(w);
	if (out->payload_length == 0 || chained) {
		packet_out_seal(out);
	} else {
		packet_out_seal_copy(out);
		payload = out->head + out->head_length;
		m->data_len = (uint16_t)(m->data_len + out->payload_length);
		m->pkt_len = m->data_len;
	}
	worker_stage_end(w, IO_SEAL, begin);
	return payload;
}

static void tx_headers_v6(const struct port *p, struct rte_mbuf *m, const struct packet_out *out,
			  const uint8_t *payload, const struct ether_route *route,
			  const struct net_addr *from)
{
	uint16_t length = (uint16_t)(out->head_length + out->payload_length), sum;
	if (p->udp6_checksum) {
		sum = ether_udp6_pseudo(from, &out->to, length);
		m->l2_len = p->vlan ? ETHER_HEADER + ETHER_TAG : ETHER_HEADER;
		m->l3_len = ETHER_IPV6;
		m->ol_flags |= RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
	} else {
		sum = ether_udp6_checksum(from, &out->to, out->head, out->head_length, payload,
					  out->payload_length);
	}
	ether_write_v6(out->head, length, route, from, &out->to, out->ecn, sum);
	rte_pktmbuf_prepend(m, ETHER_HEADERS_V6);
}

/* The address that the packet before went to: of a burst most go to the same. */
struct tx_last {
	struct net_addr to, from;
	struct ether_route route;
	struct ether_stamp stamp; /* where the address is of IPv4 */
	bool any, known, v4;
};

static void tx_turn_to(struct worker *w, struct rail *r, const struct net_addr *to,
		       struct tx_last *last, uint64_t now_ns)
{
	const struct port *p = r->port;
	last->any = true;
	last->to = *to;
	last->from = p->addr;
	last->from.port = (uint16_t)(last->from.port + w->index);
	last->v4 = net_addr_is_v4(to);
	memcpy(last->route.our_mac, p->mac, ETHER_MAC);
	last->known = tx_route(w, r, to, last->route.next_mac, now_ns);
	if (last->known && last->v4)
		ether_stamp_v4(&last->stamp, &last->route, &last->from, to);
}

/* Turns what the engine wrote into m into a frame. Returns false when it cannot leave now. */
static bool tx_frame(struct worker *w, struct rail *r, struct rte_mbuf *m,
		     const struct packet_out *out, struct tx_last *last, uint64_t now_ns)
{
	if (!last->any || !net_addr_equal(&out->to, &last->to))
		tx_turn_to(w, r, &out->to, last, now_ns);
	if (!last->known) {
		w->counters->io_no_neighbour++;
		return false;
	}
	const uint8_t *payload = tx_payload(w, r, m, out);
	if (last->v4) {
		uint16_t length = (uint16_t)(out->head_length + out->payload_length);
		ether_put_v4(&last->stamp, out->head, length, out->ecn);
		rte_pktmbuf_prepend(m, ETHER_HEADERS_V4);
	} else {
		tx_headers_v6(r->port, m, out, payload, &last->route, &last->from);
	}
	tx_tag(r->port, m);
	return true;
}

/* Fills the stock of empty packets; returns how many there are. */
static unsigned tx_heads(struct worker *w, struct rail *r)
{
	unsigned missing = WORKER_BURST - r->heads;
	struct rte_mempool *pool = r->out->pool;
	if (missing > 0 && rte_pktmbuf_alloc_bulk(pool, r->head + r->heads, missing) == 0)
		r->heads = WORKER_BURST;
	else if (missing > 0)
		w->counters->io_no_mbuf++;
	return r->heads;
}

enum { TX_AHEAD = 2 /* packets */ };

/* The store is cold: payload is fetched while packets before it are copied and sealed. */
static void tx_prefetch(struct worker *w, const struct rail *r, const struct packet_out *out)
{
	if (r->port->payload != PAYLOAD_COPY && packet_out_known(out))
		return; /* nobody here reads it */
	uint64_t begin = worker_stage_begin(w);
	for (unsigned at = 0; at < out->payload_length; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(out->payload + at);
	worker_stage_end(w, IO_AHEAD, begin);
}

static unsigned tx_round(struct worker *w, struct rail *r, unsigned room, uint64_t now_ns)
{
	struct packet_out out[WORKER_BURST];
	struct rte_mbuf *frame[WORKER_BURST];
	struct tx_last last = {.any = false};
	unsigned ready = 0;
	uint16_t head_room = (uint16_t)(r->port->mtu - ETHER_IPV4 - ETHER_UDP_HEADER);
	for (unsigned i = 0; i < room; i++) {
		out[i].head = rte_pktmbuf_mtod(r->head[i], uint8_t *);
		out[i].head_room = head_room;
	}
	unsigned n = engine_transmit_rail(w->session->engine, r->index, out, room, now_ns);
	for (unsigned i = 1; i < TX_AHEAD && i < n; i++)
		tx_prefetch(w, r, &out[i]);
	for (unsigned i = 0; i < n; i++) {
		if (i + TX_AHEAD < n)
			tx_prefetch(w, r, &out[i + TX_AHEAD]);
		if (tx_frame(w, r, r->head[i], &out[i], &last, now_ns))
			frame[ready++] = r->head[i];
		else
			rte_pktmbuf_free(r->head[i]);
	}
	r->heads -= n;
	memmove(r->head, r->head + n, r->heads * sizeof(*r->head));
	unsigned sent = 0;
	uint64_t begin = worker_stage_begin(w);
	if (ready > 0)
		sent = rte_eth_tx_burst(r->out->device, r->out->queue, frame, (uint16_t)ready);
	worker_stage_end(w, IO_TX_DRIVER, begin);
	if (sent < ready)
		tx_hold(w, r, frame + sent, ready - sent, now_ns);
	return n;
}

/* Bursts that may leave in a turn. */
static unsigned tx_rounds(const struct rail *r)
{
	unsigned rounds = WORKER_TX_BYTES / (WORKER_BURST * (unsigned)r->port->mtu);
	rounds = RTE_MIN(rounds, (unsigned)WORKER_TX_ROUNDS);
	return RTE_MAX(rounds, 1u);
}

unsigned tx_burst(struct worker *w, struct rail *r, uint64_t now_ns)
{
	uint64_t begin = worker_stage_begin(w);
	unsigned sent = tx_held(w, r, now_ns);
	for (unsigned left = tx_rounds(r); left > 0 && r->held_count == 0; left--) {
		unsigned room = tx_heads(w, r);
		unsigned n = room > 0 ? tx_round(w, r, room, now_ns) : 0;
		sent += n;
		if (n < room || room == 0)
			break;
	}
	worker_stage_end(w, IO_TX, begin);
	return sent;
}

void tx_stop(struct worker *w, struct rail *r)
{
	tx_drop_held(w, r);
	rte_pktmbuf_free_bulk(r->head, r->heads);
	r->heads = 0;
}
