/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa-switch: an aggregator in the network (docs/user/aggregation.md). main.c reads the options
 * and runs one of three shells: ports.c, a switch of DPDK ports, or host.c, a host behind a UDP
 * socket, both around core/aggregate.h; or xdp_shell.c, which loads the XDP program that does the
 * same. One thread.
 */
#ifndef SARISSA_DATAPLANE_SWITCH_SWITCH_H
#define SARISSA_DATAPLANE_SWITCH_SWITCH_H

#include <signal.h>
#include "core/aggregate.h"

enum { SWITCH_PORTS_MAX = 32 };

struct switch_options {
	const char *interface[SWITCH_PORTS_MAX];
	unsigned ports;
	bool xdp;	  /* the interfaces are of a bridge: an XDP program adds up */
	const char *host; /* the address of a UDP socket, instead of ports; NULL: none */
	bool has_address;
	uint8_t address[4];	       /* for which the switch answers ARP */
	unsigned groups, window, role; /* role: there is one only */
	int log_level;
};

/* Counters of the shells beside the pool's verdicts. */
struct switch_counters {
	uint64_t received, forwarded, flooded, sent, dropped;
};

struct switch_state {
	const struct switch_options *options;
	struct aggregate_pool pool;
	struct switch_counters count;
};

/* Until *stop. Returns 0, or -errno with a line logged. */
int host_run(struct switch_state *w, const volatile sig_atomic_t *stop);
int xdp_shell_run(struct switch_state *w, const volatile sig_atomic_t *stop);
int ports_run(struct switch_state *w, const volatile sig_atomic_t *stop);

#endif
