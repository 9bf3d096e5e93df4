/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
	NETWORK_POOL_MAX = 1 << 18, /* packets in flight; only touched ones take memory */
	NETWORK_PORT = UDP_PORT_DEFAULT,
	NETWORK_ECN_CE = 3,
};

void network_init(struct network *n, struct events *events, uint32_t count,
		  const struct network_link *link, uint64_t seed, bool v6)
{
	assert(count <= NETWORK_ENDPOINTS_MAX);
	*n = (struct network){.events = events,
			      .count = count,
			      .rails = 1,
			      .ports = 1,
			      .v6 = v6,
			      .pool_free = UINT32_MAX};
	n->prng = prng_fork(seed, 0x6e6574);
	n->endpoints = calloc(count, sizeof(*n->endpoints));
	n->pair_sent = calloc((size_t)count * count, sizeof(*n->pair_sent));
	n->pool_room = NETWORK_POOL_MAX;
	n->pool = mmap(NULL, (size_t)n->pool_room * sizeof(*n->pool), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(n->endpoints && n->pair_sent && n->pool != MAP_FAILED);
	for (uint32_t i = 0; i < count; i++)
		n->endpoints[i].link = *link;
}

void network_rails_set(struct network *n, uint32_t rails,
		       struct network_hop (*hop)(const void *context, uint32_t at, uint32_t to),
		       const void *context)
{
	n->endpoints = realloc(n->endpoints, (size_t)n->count * rails * sizeof(*n->endpoints));
	assert(n->endpoints);
	for (uint32_t r = 1; r < rails; r++)
		memcpy(&n->endpoints[r * n->count], n->endpoints, n->count * sizeof(*n->endpoints));
	n->rails = rails;
	n->hop = hop;
	n->hop_context = context;
}

void network_free(struct network *n)
{
	munmap(n->pool, (size_t)n->pool_room * sizeof(*n->pool));
	free(n->endpoints);
	free(n->pair_sent);
	*n = (struct network){0};
}

struct net_addr network_addr(const struct network *n, uint32_t endpoint)
{
	struct net_addr a = {.port = NETWORK_PORT};
	if (n->v6) {
		a.ip[0] = 0xfd;
	} else {
		a.ip[10] = a.ip[11] = 0xff;
		a.ip[12] = 10;
	}
	a.ip[14] = (uint8_t)(endpoint >> 8);
	a.ip[15] = (uint8_t)endpoint;
	return a;
}

uint32_t network_endpoint_of(const struct network *n, const struct net_addr *addr)
{
	uint32_t i = (uint32_t)addr->ip[14] << 8 | addr->ip[15];
	struct net_addr a = network_addr(n, i);
	uint16_t port = (uint16_t)(addr->port - NETWORK_PORT);
	a.port = addr->port;
	return i < n->count && port < n->ports && net_addr_equal(&a, addr) ? i : UINT32_MAX;
}

struct network_packet *network_new(struct network *n)
{
	struct network_packet *p;
	if (n->pool_free != UINT32_MAX) {
		p = &n->pool[n->pool_free];
		n->pool_free = p->next_free;
	} else {
		assert(n->pool_used < n->pool_room && "more packets in flight than modelled");
		p = &n->pool[n->pool_used++];
	}
	p->copies = 0;
	p->from_port = 0;
	p->extra_ns = 0;
	n->in_flight++;
	return p;
}

void network_discard(struct network *n, struct network_packet *p)
{
	p->next_free = n->pool_free;
	n->pool_free = (uint32_t)(p - n->pool);
	n->in_flight--;
}

uint64_t network_frame_bytes(const struct network *n, uint32_t udp_payload_bytes)
{
	return udp_payload_bytes + (n->v6 ? 48 : 28) + NETWORK_FRAME_OVERHEAD;
}

static uint64_t network_wire_ns(const struct network_link *link, uint64_t bytes)
{
	return link->rate_bps ? bytes * 8000000000ull / link->rate_bps : 0;
}

uint64_t network_backlog_bytes(const struct network *n, const struct network_endpoint *e,
			       const struct network_direction *d)
{
	uint64_t now = n->events->now_ns;
	if (d->free_ns <= now || !e->link.rate_bps)
		return 0;
	return (uint64_t)((unsigned __int128)(d->free_ns - now) * e->link.rate_bps / 8000000000ull);
}

void network_faults_all(struct network *n, const struct network_faults *f)
{
	struct network_faults half = *f;
	half.loss_ppm /= 2;
	half.duplicate_ppm /= 2;
	half.reorder_ppm /= 2;
	half.corrupt_ppm /= 2;
	half.jitter_ns /= 2;
	for (uint32_t i = 0; i < n->count * n->rails; i++)
		n->endpoints[i].up.faults = n->endpoints[i].down.faults = half;
}

/* Through the queue of one direction: when the last bit is out, or 0 for a packet that is gone. */
static uint64_t network_queue(struct network *n, struct network_endpoint *e,
			      struct network_direction *d, struct network_packet *p)
{
	uint64_t bytes = network_frame_bytes(n, p->length), now = n->events->now_ns;
	uint64_t backlog = network_backlog_bytes(n, e, d);
	if (e->is_down) {
		d->drops_down++;
		return 0;
	}
	if (e->link.mtu && bytes - NETWORK_FRAME_OVERHEAD > e->link.mtu) {
		d->drops_mtu++;
		return 0;
	}
	if (e->link.buffer_bytes && backlog + bytes > e->link.buffer_bytes) {
		d->drops_full++;
		return 0;
	}
	if (backlog + bytes > d->backlog_max_bytes)
		d->backlog_max_bytes = backlog + bytes;
	if (e->link.ecn_bytes && backlog > e->link.ecn_bytes && p->ecn) {
		p->ecn = NETWORK_ECN_CE;
		d->marked++;
	}
	if (d->free_ns < now)
		d->free_ns = now;
	d->free_ns += network_wire_ns(&e->link, bytes);
	d->pkts++;
	d->bytes += bytes;
	return d->free_ns + (d->free_ns == 0);
}

static void network_corrupt(struct network *n, struct network_packet *p)
{
	unsigned hits = 1 + (unsigned)prng_below(&n->prng, 8);
	while (p->length && hits--)
		p->data[prng_below(&n->prng, p->length)] ^= (uint8_t)prng_between(&n->prng, 1, 255);
}

static void network_at_switch(void *context, uint64_t index);
static void network_at_host(void *context, uint64_t index);

/* The wire behind a queue: faults, then propagation to the switch or to the host. */
static void network_wire(struct network *n, struct network_endpoint *e, struct network_direction *d,
			 struct network_packet *p, uint64_t out_ns, events_fn next)
{
	const struct network_faults *f = &d->faults;
	if (prng_chance(&n->prng, f->loss_ppm)) {
		d->drops_fault++;
		network_discard(n, p);
		return;
	}
	if (prng_chance(&n->prng, f->corrupt_ppm)) {
		d->corrupted++;
		network_corrupt(n, p);
	}
	uint64_t at = out_ns + e->link.delay_ns / 2;
	if (f->jitter_ns)
		at += prng_below(&n->prng, f->jitter_ns + 1);
	if (at < d->last_out_ns)
		at = d->last_out_ns;
	d->last_out_ns = at;
	if (prng_chance(&n->prng, f->duplicate_ppm)) {
		struct network_packet *copy = network_new(n);
		memcpy(copy, p, offsetof(struct network_packet, data) + p->length);
		copy->copies++;
		d->duplicated++;
		events_add(n->events, at + prng_below(&n->prng, f->reorder_ns + 1), next, n,
			   (uint64_t)(copy - n->pool));
	}
	if (prng_chance(&n->prng, f->reorder_ppm)) {
		d->reordered++;
		at += 1 + prng_below(&n->prng, f->reorder_ns);
	}
	events_add(n->events, at + p->extra_ns, next, n, (uint64_t)(p - n->pool));
	p->extra_ns = 0;
}

/* The next hop of a packet; over one switch there is no other. */
static struct network_hop network_hop(const struct network *n, const struct network_packet *p)
{
	return n->rails > 1 && p->at != p->to ? n->hop(n->hop_context, p->at, p->to)
					      : (struct network_hop){p->to, 0, 0};
}

static void network_enter(struct network *n, struct network_packet *p)
{
	struct network_endpoint *from = &n->endpoints[network_hop(n, p).sends * n->count + p->at];
	uint64_t out_ns = network_queue(n, from, &from->up, p);
	if (out_ns)
		network_wire(n, from, &from->up, p, out_ns, network_at_switch);
	else
		network_discard(n, p);
}

void network_send(struct network *n, struct network_packet *p, uint32_t from,
		  const struct net_addr *to, uint8_t ecn)
{
	p->from = p->at = from;
	p->to = network_endpoint_of(n, to);
	p->to_port = (uint16_t)(to->port - NETWORK_PORT);
	p->ecn = ecn;
	p->source = network_addr(n, from);
	p->source.port = (uint16_t)(p->source.port + p->from_port);
	if (p->to == UINT32_MAX) {
		n->drops_no_route++;
		network_discard(n, p);
		return;
	}
	p->nth = n->pair_sent[(size_t)from * n->count + p->to]++;
	enum network_verdict v = n->rule ? n->rule(n->rule_context, p) : NETWORK_PASS;
	if (v == NETWORK_DROP) {
		n->drops_rule++;
		network_discard(n, p);
		return;
	}
	if (v == NETWORK_LATE)
		p->extra_ns = n->late_ns;
	if (v == NETWORK_TWICE) {
		struct network_packet *copy = network_new(n);
		memcpy(copy, p, offsetof(struct network_packet, data) + p->length);
		copy->copies++;
		network_enter(n, copy);
	}
	network_enter(n, p);
}

static void network_at_switch(void *context, uint64_t index)
{
	struct network *n = context;
	struct network_packet *p = &n->pool[index];
	struct network_hop hop = network_hop(n, p);
	struct network_endpoint *to = &n->endpoints[hop.takes * n->count + hop.to];
	uint32_t side = n->endpoints[p->at].side;
	if (side != to->side && !(n->one_way && side < to->side)) {
		n->drops_partition++;
		network_discard(n, p);
		return;
	}
	p->at = hop.to;
	uint64_t out_ns = network_queue(n, to, &to->down, p);
	if (out_ns)
		network_wire(n, to, &to->down, p, out_ns, network_at_host);
	else
		network_discard(n, p);
}

static void network_at_host(void *context, uint64_t index)
{
	struct network *n = context;
	struct network_packet *p = &n->pool[index];
	if (n->endpoints[p->at].is_down) {
		network_discard(n, p);
		return;
	}
	if (p->at != p->to) {
		network_enter(n, p);
		return;
	}
	n->delivered++;
	if (n->endpoints[p->to].is_down)
		network_discard(n, p);
	else
		n->deliver(n->deliver_context, p);
}
