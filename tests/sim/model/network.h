/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model network under virtual time: endpoints around one non-blocking switch, each on a link
 * with an up and a down direction. With network_rails an endpoint has several such links, and
 * packets for others pass through it, as a network of servers (BCube, a torus) needs it. A
 * direction is a FIFO of buffer_bytes drained at rate_bps (tail drop, ECN mark above ecn_bytes),
 * then half the link's propagation delay. The faults of a direction strike behind its queue, so a
 * lost packet has used the link, as on a wire.
 *
 * Everything random comes from the network's own generator: the same seed and the same calls give
 * the same run. One thread; needs the heap.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_NETWORK_H
#define SARISSA_TESTS_SIM_MODEL_NETWORK_H

#include "internal/ids.h"
#include "events.h"
#include "full/places.h"
#include "prng.h"

enum {
	NETWORK_PACKET_MAX = 9000, /* UDP payload bytes that fit a packet */
	NETWORK_ENDPOINTS_MAX = 4096,
	NETWORK_FRAME_OVERHEAD = 14, /* Ethernet header: what a shaper counts */
};

struct network_faults {
	uint32_t loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
	uint64_t reorder_ns; /* a reordered packet is late by up to this */
	uint64_t jitter_ns;  /* every packet is late by up to this, order kept */
};

struct network_link {
	uint64_t rate_bps;     /* each direction; 0: infinitely fast */
	uint64_t delay_ns;     /* propagation, half of it per direction */
	uint64_t buffer_bytes; /* each direction; 0: unbounded */
	uint64_t ecn_bytes;    /* mark when this much is queued; 0: never */
	uint32_t mtu;	       /* IP bytes that pass, larger ones vanish; 0: any */
};

struct network_packet {
	uint32_t from, to; /* endpoint indices */
	uint32_t at;	   /* that sends it now: `from`, or one on the way */
	uint16_t length;   /* UDP payload bytes */
	uint16_t from_port,
		to_port; /* the how manieth of the endpoint's; the sender says its own */
	uint8_t ecn;
	uint8_t copies; /* how often the network has duplicated it */
	uint32_t next_free;
	uint64_t nth; /* of the packets from -> to, from 0: what exact masks count */
	uint64_t extra_ns;
	struct net_addr source; /* as written by the sender */
	uint8_t data[NETWORK_PACKET_MAX];
};

/* What an exact loss mask or a rule of a test decides about a packet that is being sent. */
enum network_verdict {
	NETWORK_PASS,
	NETWORK_DROP,
	NETWORK_TWICE, /* an extra copy at once */
	NETWORK_LATE,  /* held back by network.late_ns */
};

struct network_direction {
	uint64_t free_ns;     /* when the transmitter falls idle */
	uint64_t last_out_ns; /* order under jitter */
	uint64_t backlog_max_bytes;
	uint64_t pkts, bytes;
	uint64_t drops_full, drops_fault, drops_down, drops_mtu;
	uint64_t marked, corrupted, duplicated, reordered;
	struct network_faults faults;
};

struct network_endpoint {
	struct network_link link;
	struct network_direction up, down;
	uint32_t side; /* of a partition: only equal sides talk, or (one_way) a lower to a higher */
	bool is_down;  /* cable pulled */
};

struct network {
	struct events *events;
	struct prng prng;
	struct network_endpoint *endpoints;
	uint32_t count;
	uint32_t rails; /* links of an endpoint; those of rail r are endpoints[r * count + i] */
	/* With more than one: the next hop of a packet at one endpoint and for another. */
	struct network_hop (*hop)(const void *context, uint32_t at, uint32_t to);
	const void *hop_context;
	uint16_t ports; /* of an endpoint */
	bool v6, one_way;
	struct network_packet *pool; /* slabs of packets, by index */
	uint32_t pool_room, pool_used, pool_free;
	uint64_t *pair_sent; /* count*count: packets from -> to so far */
	uint64_t drops_rule, drops_partition, drops_no_route;
	uint64_t in_flight, delivered;
	uint64_t late_ns;
	enum network_verdict (*rule)(void *context, const struct network_packet *p);
	void *rule_context;
	/* A packet has arrived at p->to; the callee owns it and ends with network_discard. */
	void (*deliver)(void *context, struct network_packet *p);
	void *deliver_context;
};

/* Builds count endpoints of one port, all on the given kind of link, without faults. */
void network_init(struct network *n, struct events *events, uint32_t count,
		  const struct network_link *link, uint64_t seed, bool v6);
void network_free(struct network *n);
/* Gives each endpoint so many links, all like its first, before anything is sent. */
void network_rails_set(struct network *n, uint32_t rails,
		       struct network_hop (*hop)(const void *context, uint32_t at, uint32_t to),
		       const void *context);

/* The address of an endpoint's first port, and back from any of them (UINT32_MAX: none of ours). */
struct net_addr network_addr(const struct network *n, uint32_t endpoint);
uint32_t network_endpoint_of(const struct network *n, const struct net_addr *addr);

/* A packet to fill in: data and length. It belongs to the caller until network_send or _discard. */
struct network_packet *network_new(struct network *n);
void network_discard(struct network *n, struct network_packet *p);

/* Sends it; the network owns it from here. */
void network_send(struct network *n, struct network_packet *p, uint32_t from,
		  const struct net_addr *to, uint8_t ecn);

/* The same faults on every link, both directions, half each way for the probabilities. */
void network_faults_all(struct network *n, const struct network_faults *faults);

/* Bytes queued in one direction now. */
uint64_t network_backlog_bytes(const struct network *n, const struct network_endpoint *e,
			       const struct network_direction *d);

/* Bytes of a packet on the wire. */
uint64_t network_frame_bytes(const struct network *n, uint32_t udp_payload_bytes);

#endif
