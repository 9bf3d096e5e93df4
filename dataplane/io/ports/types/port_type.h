/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A type of port is one file, port_*.c, and one row of the table in port_spec.c. All others ask
 * a port for what its type says here, and not which type it has.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_TYPES_PORT_TYPE_H
#define SARISSA_DATAPLANE_IO_PORTS_TYPES_PORT_TYPE_H

#include <stdbool.h>
#include <stdint.h>

struct options;
struct port;
struct port_ops;
struct port_queue;
struct port_spec;

/* A function that a type has no need of is NULL. Those with int return 0, or -errno with one line
 * logged, but for devargs. All are the main thread's. */
struct port_type {
	const char *name;
	const char *usage, *help; /* a line of --help */
	const char *lacks;	  /* what a process without these capabilities is told */
	uint64_t capabilities;	  /* bits of CAP_*, where CAP_SYS_ADMIN includes CAP_BPF */

	bool kernel_address; /* the kernel answers ARP and knows the neighbours and routes */
	bool sockets;	     /* the kernel has the packets: no buffers, no device of DPDK's */
	bool chosen;	     /* the user chose the driver: used as far as it says that it can */
	bool card;	     /* found by EAL: has an address and rules, reads the store by DMA */
	bool user_rings;     /* --descriptors says how long its rings are */
	bool tell_mtu;	     /* the driver is told the MTU, and says what it takes */
	bool waitable;	     /* the driver's descriptor is readable while packets wait */
	bool paged;	     /* each packet buffer lies in a page, and all in one piece */
	uint16_t rx_descriptors; /* 0: as usual */
	const struct port_ops *ops;

	/* --port NAME:...; on a fault false, and *why says which. option: one behind the name. A
	 * chosen driver reads its own options. */
	bool (*option)(const char *option, struct port_spec *out, const char **why);
	bool (*check_name)(struct port_spec *out, const char **why);

	/* Before EAL starts: what is known, and all that can be checked. */
	int (*plan)(const struct options *o, struct port *p);
	/* Writes the argument of device d for rte_dev_probe(); it begins with the device's name.
	 * Returns what snprintf does. NULL: the argument is o->port.name. */
	int (*devargs)(const struct options *o, const struct port *p, unsigned d, char *out,
		       unsigned size);
	/* Before the devices are probed. */
	int (*prepare)(const struct options *o, struct port *p);
	/* In place of device_setup_rings(), which logs nothing, and of rte_eth_dev_start(). */
	int (*setup_rings)(struct port_queue *q, uint16_t rx, uint16_t tx, int socket);
	int (*start)(const struct options *o, uint16_t device);
	/* When all devices run; p->text may be made better. */
	int (*opened)(const struct options *o, struct port *p);
	/* When no device is left, also of a port that was planned only. */
	void (*close)(struct port *p);
	/* Whether a device that has gone seems to be there again; logs nothing. */
	bool (*is_back)(const struct options *o);
};

/* All types; NULL ends them. */
extern const struct port_type *const port_types[];

#endif
