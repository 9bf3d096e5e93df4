/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port made of ordinary UDP sockets, one for each worker, for hosts without a card of our own and
 * for users without any right. The kernel does routes, neighbours and checksums. Packets of one
 * connection go out as one burst that the kernel or the card cuts (UDP_SEGMENT), and come in as one
 * where they were one on the way (UDP_GRO): the price is per burst.
 *
 * port_udp.c opens the sockets (main thread), udp_burst.c says what makes a burst (pure), udp_tx.c
 * and udp_rx.c are the worker's.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_UDP_H
#define SARISSA_DATAPLANE_IO_PORTS_UDP_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "core/engine.h"

struct rail;
struct worker;

enum {
	UDP_PACKETS = 128,	  /* sent in a turn, at most */
	UDP_SEGMENTS = 64,	  /* of a burst, as the kernel takes them */
	UDP_BURST_BYTES = 65000,  /* of a burst: an IP packet, less any headers */
	UDP_BURST_NS = 1000000,	  /* what a hop of a chain may wait for */
	UDP_TAKES = 16,		  /* bursts received in a call */
	UDP_DATAGRAM_MAX = 65536, /* bytes of one that is received */
	UDP_CONTROL_TX = 96,	  /* bytes of control messages: segment, ECN, source address */
	UDP_CONTROL_RX = 160,	  /* segment, ECN, losses, and room for what others switch on */
};

/* So many of the packets make one burst: to one address, all of one length, but for the last. */
unsigned udp_burst_packets(const struct packet_out *out, unsigned count);

/* A burst on its way to the kernel. */
struct udp_burst {
	struct sockaddr_storage to;
	_Alignas(8) uint8_t control[UDP_CONTROL_TX];
};

/* A socket, and what its worker has of it. */
struct udp {
	int fd;
	bool v4;
	bool from;	     /* bound to every address: each packet says which is ours */
	bool segments;	     /* bursts may be sent */
	bool drained;	     /* the last call took all that was there */
	bool logged;	     /* a device that refuses bursts: logged once */
	bool filtered;	     /* a filter of this host forbids packets: logged once */
	int refusal;	     /* of a burst, until a single packet shows whose fault it is */
	uint32_t overflowed; /* lost for want of receive buffer so far, as the kernel counts */
	uint64_t retry_ns;   /* bursts are off until then */

	/* sending: packets first..first + count - 1 of out wait for the socket */
	unsigned first, count;
	uint64_t held_ns; /* when the socket last took some */
	struct packet_out out[UDP_PACKETS];
	uint8_t *heads;		       /* UDP_PACKETS of them, */
	unsigned head_stride;	       /* bytes apart: each has room for a whole packet */
	unsigned packets[UDP_PACKETS]; /* of each burst */
	struct udp_burst burst[UDP_PACKETS];
	struct iovec piece[2 * UDP_PACKETS];
	struct mmsghdr tx[UDP_PACKETS];

	/* receiving */
	uint8_t *datagrams; /* UDP_TAKES of UDP_DATAGRAM_MAX bytes */
	struct iovec whole[UDP_TAKES];
	struct mmsghdr rx[UDP_TAKES];
	struct sockaddr_storage sender[UDP_TAKES];
	_Alignas(8) uint8_t control[UDP_TAKES][UDP_CONTROL_RX];
};

/* udp_rx.c */
extern const struct port_ops udp_ops;
unsigned udp_receive(struct worker *w, struct rail *r, uint64_t now_ns);
/* udp_tx.c */
unsigned udp_transmit(struct worker *w, struct rail *r, uint64_t now_ns);
void udp_drop_held(struct worker *w, struct rail *r);

/* The kernel's form of an address; returns its length. */
socklen_t udp_sockaddr(const struct net_addr *addr, struct sockaddr_storage *out);

#endif
