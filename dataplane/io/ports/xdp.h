/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our XDP program on an interface: DPDK's af_xdp driver loads and attaches it (devarg xdp_prog=);
 * here is what the driver does not do. Main thread only.
 *
 * One dataplane per interface: the program is attached by a link, which the kernel gives to one
 * process, and takes off when that ends, however it ends; a program that is there already is
 * somebody else's, and an error. Nothing that an ordinary user may take stands for a lock. So the
 * rights needed are those to load and to attach (CAP_BPF, CAP_NET_ADMIN), and none to open what
 * others loaded.
 */
#ifndef SARISSA_DATAPLANE_IO_PORTS_XDP_H
#define SARISSA_DATAPLANE_IO_PORTS_XDP_H

#include <stdbool.h>
#include <stdint.h>
#include "internal/ids.h"

enum { XDP_SOCKETS_MAX = 256 /* of a process: a queue each */ };

struct xdp {
	int ifindex;
	bool prepared;	  /* xdp_release has something to do */
	const char *name; /* of the interface, for messages */
	bool generic;	  /* attached in generic mode */
	bool zero_copy;
};

#define XDP_OBJECT "xdp_redirect.bpf.o"

/* Path of a BPF object: beside the program in a build folder, else where it was installed. It stays
 * until the next call. */
const char *xdp_object(const char *name);

/* Before the driver is probed. Returns 0, or -errno with a line logged. */
int xdp_prepare(struct xdp *x, const char *name, int ifindex);

/* After the queues are set up: tells the attached program our address and ports, of which first is
 * the first, sends the packets of queue q to sockets[q], and finds out which modes the kernel
 * chose. Returns 0, or -errno with a line logged. */
int xdp_configure(struct xdp *x, const struct net_addr *first, unsigned ports, const int *sockets,
		  unsigned count);

/* The AF_XDP sockets that this process has open, at most max of them; returns how many. */
unsigned xdp_list_sockets(int *out, unsigned max);
/* The one that is not among the known ones, or -1. The driver keeps its sockets to itself; called
 * after a queue is set up, this tells which is its. */
int xdp_find_socket(const int *known, unsigned count);

/* In copy mode the kernel counts each frame that waits in the card against the socket's send
 * buffer, and the driver spins in its send call while that is used up: so that never is. */
void xdp_send_all(int fd, unsigned frames);

/* Closes a socket of a device that has been closed, where the driver has left it open. */
void xdp_close_socket(int fd);

/* Takes the program off and gives the interface up. */
void xdp_release(struct xdp *x);

/* Closes a program and its maps, which the driver loaded and then forgot. */
void xdp_unload(int program);

/* The program that the driver attached to an interface, or -1. */
int xdp_attach_program(int ifindex);
/* Takes it off; 0: those of all interfaces. */
void xdp_attach_end(int ifindex);
/* Why the driver could not attach the program; "" when it could. */
const char *xdp_attach_error(void);

#endif
