/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An Ethernet port of this process: its devices and queue pairs, probed, configured, started.
 * The functions belong to the main thread; once open the fields are read by all.
 *
 * An AF_XDP interface is opened as one device per queue: the driver counts the queues of a veth
 * wrongly (it looks at combined channels only), but takes any one of them by number.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_PORT_H
#define SARISSA_DATAPLANE_IO_PORTS_PORT_H

#include "card.h"
#include "io/net/interface.h"
#include "io/net/link.h"
#include "io/net/neighbour.h"
#include "io/node/options.h"
#include "xdp.h"

struct counters;
struct rte_eth_conf;
struct rte_eth_dev_info;
struct rte_eth_rxtx_callback;
struct rte_mempool;
struct rail;
struct udp;
struct worker;

/* How payload of the store gets into a packet. */
enum port_payload {
	PAYLOAD_COPY,  /* one copy, behind the header */
	PAYLOAD_CHAIN, /* the driver reads a chained segment before its burst returns */
	PAYLOAD_DMA,   /* a card reads the chained segment later; it must lie in the store */
};

enum {
	PORT_QUEUES_MAX = PORT_SPEC_QUEUES_MAX,
	PORT_XDP_FILL = 2048, /* buffers that the af_xdp driver gives to the kernel at the start */
	EAL_MIB = 24,
};

/* A queue pair. Worker w of W serves the queues w, w + W, ... and sends on the first of them. */
struct port_queue {
	uint16_t device, queue; /* as ethdev counts */
	int rx_fd;		/* readable when packets wait; -1: none; see rx_interrupt */
	struct rte_mempool *pool;
	const struct rte_eth_rxtx_callback *capture_rx, *capture_tx; /* capture.c */
};

/* How a worker uses its port: one table for all that DPDK drives, one for sockets. */
struct port_ops {
	/* Takes and answers what arrived; returns how many packets. */
	unsigned (*receive)(struct worker *w, struct rail *r, uint64_t now_ns);
	/* Sends what the port did not take last time, then what the engine has; returns how many
	 * packets. While the port takes nothing the engine is not asked for more. */
	unsigned (*transmit)(struct worker *w, struct rail *r, uint64_t now_ns);
	/* Forgets what the port did not take. */
	void (*drop_held)(struct worker *w, struct rail *r);
	/* A worker ends. */
	void (*stop)(struct worker *w, struct rail *r);
};

/* rx.c: for what DPDK drives. */
extern const struct port_ops device_ops;

/* A card's counts at the last look. */
struct port_noted {
	uint64_t rx_missed, rx_errors, rx_no_mbuf, tx_errors;
};

struct port {
	const struct port_type *type;
	const struct port_ops *ops;
	enum port_payload payload;
	bool answers;	    /* no kernel owns our address: we answer ARP, ND and echo */
	bool udp6_checksum; /* the card fills it */
	bool steered;	    /* the card brings each worker's packets to its queue */
	bool asking_costs;  /* each look at a queue is a system call: workers do not spin */
	bool rx_interrupt;  /* rx_fd must be armed, and is an epoll instance that EAL reads */
	uint16_t mtu;	    /* IP bytes */
	uint16_t vlan;	    /* tag of all frames; 0: none */
	uint8_t mac[6];
	struct net_addr addr, gateway; /* addr.port: of worker 0 */
	uint8_t prefix;		       /* 0: every address is on the link */
	uint16_t device[PORT_QUEUES_MAX];
	unsigned devices, queues, workers;
	struct port_queue queue[PORT_QUEUES_MAX];
	char text[64]; /* for status: "af_xdp eth0 (native, copy)" */
	struct neighbour_table *neighbours;
	uint32_t burst_bytes; /* as in engine_config */
	uint64_t burst_ns;
	struct card card;		  /* pci */
	struct link_watch link;		  /* pci, vdev */
	struct port_noted noted;	  /* pci, vdev */
	struct xdp xdp;			  /* af_xdp */
	struct interface interface;	  /* af_xdp, udp */
	struct udp *udp[PORT_QUEUES_MAX]; /* udp: of each worker */
	/* af_xdp: the kernel's sockets of our ports, or negative. They stay while the interface is
	 * gone, and until the process ends */
	int held[PORT_QUEUES_MAX];
};

/* Before EAL starts: what is to be opened, with everything checked that can be. Returns 0, or
 * -errno with one line logged. */
int port_plan(const struct options *o, struct port *out);
/* Opens and starts what was planned. Returns 0, or -errno with one line logged. */
int port_open(const struct options *o, struct port *p);
/* Also after a failure. */
void port_close(struct port *p);
/* Closes the port, with all that a second port_open() of it needs. No worker uses it. */
void port_drop(struct port *p);

/* One line about a port that fails, with the driver's own words; returns error. */
int port_fail(const struct options *o, int error, const char *what, const char *todo);

/* For types that meet a process at a socket file: whether its folder can be used. server: the type
 * of socket, or 0; a file that nobody listens at is removed. Returns 0, or -errno logged. */
int port_plan_socket(const struct options *o, const char *path, int server);

/* The type's argument for device d; false: it does not fit. */
bool port_devargs(const struct options *o, const struct port *p, unsigned d, char *out,
		  unsigned size);

/* device.c: configures device d, sets its queues up and starts it. Returns 0, or -errno logged. */
int device_open(const struct options *o, struct port *p, unsigned d);
int device_setup_rings(struct port_queue *q, uint16_t rx, uint16_t tx, int socket);

/* device_event.c: what a device tells by itself. All for a driver of the user's choice. */
/* Asks for news of its removal, before it starts; conf says what it can tell. */
void device_watch(const struct options *o, uint16_t id, const struct rte_eth_dev_info *info,
		  struct rte_eth_conf *conf);
/* Before the device closes: its number may be another one's next. */
void device_unwatch(uint16_t id);
/* Whether that has come since device_watch(). */
bool device_was_removed(unsigned rail);
/* The main thread's turn: when that is due, looks at the link, says what has changed, and adds to
 * out what the card has counted since the last time (port_*). */
void device_look(struct port *p, const char *text, struct counters *out, uint64_t now_ns);
/* Until the next look; -1: never. */
int device_look_ms(const struct port *p, uint64_t now_ns);
/* Finds what its queues can be waited for with; without that p->rx_interrupt is false. */
void device_find_interrupts(struct port *p);

/* Lets the card read the store for sending (PAYLOAD_DMA only). Returns 0 or -errno. */
int port_map_store(struct port *p, void *base, uint64_t bytes, size_t page_bytes);
void port_unmap_store(struct port *p, unsigned ports, void *base, uint64_t bytes);

/* The address on our link through which a packet to dst leaves. */
static inline const uint8_t *port_next_hop(const struct port *p, const uint8_t *dst)
{
	unsigned bytes = p->prefix / 8, bits = p->prefix % 8;
	unsigned skip = net_addr_is_v4(&p->addr) ? 12 : 0;
	if (p->prefix == 0)
		return dst;
	if (memcmp(dst, p->addr.ip, skip + bytes) == 0 &&
	    (bits == 0 || ((dst[skip + bytes] ^ p->addr.ip[skip + bytes]) >> (8 - bits)) == 0))
		return dst;
	return p->gateway.ip;
}

/* pool.c: packet buffers for one queue of a port that so many workers use, near a NUMA node or
 * SOCKET_ID_ANY; paged as in port_type. NULL when there is no memory. */
struct rte_mempool *pool_create(const char *name, bool paged, uint16_t mtu, unsigned rx_descs,
				unsigned tx_descs, unsigned workers, int socket);
/* The room of a buffer of such a pool. */
unsigned pool_frame_bytes(uint16_t mtu);
/* MiB of EAL memory, in huge or in ordinary pages, that pools for this many queues take; EAL_MIB
 * more are for the rest. */
unsigned pool_mib(bool paged, uint16_t mtu, unsigned queues, bool huge);

#endif
