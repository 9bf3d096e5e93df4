/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --port option: short forms of what carries our packets, and the device argument that DPDK
 * wants for each. Pure text; called once, by the main thread.
 *
 *   af_xdp:IFACE[,queues=N][,copy]      an interface that the kernel keeps using
 *   udp:ADDR[,single][,buffer=KIB]      UDP sockets at an address or interface of the kernel's
 *   tap:NAME                            a new kernel interface NAME at the other end
 *   memif:ID[,role=server|client][,socket=PATH]   shared memory to another process
 *   ring:NAME                           a loop-back in this process
 *   pci:ADDR[,key=value...]             a network card bound to a DPDK driver
 *   vdev:NAME[,key=value...]            any virtual device in EAL's own words
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_PORT_SPEC_H
#define SARISSA_DATAPLANE_IO_PORTS_PORT_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include "internal/ids.h"

enum {
	PORT_SPEC_TEXT = 256,
	PORT_SPEC_DEVARGS = 1024,
	PORT_SPEC_QUEUES_MAX = 16,
};

enum port_kind {
	PORT_AF_XDP,
	PORT_UDP,
	PORT_TAP,
	PORT_MEMIF,
	PORT_RING,
	PORT_PCI,
	PORT_VDEV,
	PORT_KINDS,
};

struct port_spec {
	enum port_kind kind;
	char text[PORT_SPEC_TEXT]; /* as given */
	char name[PORT_SPEC_TEXT]; /* interface, ring, id, PCI address or raw device arguments */
	unsigned queues;	   /* af_xdp; 0: all that the interface has */
	bool copy;		   /* af_xdp: do not ask for zero-copy */
	bool server;		   /* memif */
	bool has_addr;		   /* udp: the name is this address, not an interface */
	struct net_addr addr;
	bool single;	  /* udp: packets one by one */
	unsigned buffer;  /* udp: bytes of a socket's buffers; 0: as many as there may be */
	char socket[108]; /* memif */
};

/* Reads text. On a fault returns false and sets *why to what is wrong with it. */
bool port_spec_parse(const char *text, struct port_spec *out, const char **why);

/* Writes the device argument for rte_dev_probe(); it begins with the device's name. rail: of the
 * port, for names that no other port has. queue, program, busy are for af_xdp: which queue, the
 * path of our XDP object, whether the driver may poll the kernel. Returns false when it does not
 * fit into size bytes. */
bool port_spec_devargs(const struct port_spec *spec, unsigned rail, unsigned queue,
		       const char *program, bool busy, char *out, unsigned size);

/* Whether both name the same device. */
bool port_spec_same(const struct port_spec *a, const struct port_spec *b);

const char *port_kind_name(enum port_kind kind);

/* A driver of the user's choice: asked what it can do, and used as far as it says. */
static inline bool port_kind_chosen(enum port_kind kind)
{
	return kind == PORT_PCI || kind == PORT_VDEV;
}

/* The kernel owns the address on this kind of port: it answers ARP and knows the neighbours. */
static inline bool port_kind_kernel_owns(enum port_kind kind)
{
	return kind == PORT_AF_XDP || kind == PORT_UDP;
}

#endif
