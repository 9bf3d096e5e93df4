/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of sarissa-dataplane. Main thread, before anything else. */
#ifndef SARISSA_DATAPLANE_IO_NODE_OPTIONS_H
#define SARISSA_DATAPLANE_IO_NODE_OPTIONS_H

#include <stdint.h>
#include "internal/ids.h"
#include "io/ports/port_spec.h"

/* Of one port, with what holds for all of them: an array of these, by rail. */
struct options {
	unsigned rails; /* of the array */
	uint8_t rail;	/* of this port: its index */
	const char *rundir;
	const char *capture;   /* pcapng file, or NULL */
	const char *cores;     /* list as given, or NULL: workers float */
	int core[WORKERS_MAX]; /* when cores: the one of each worker */
	struct port_spec port;
	char port_why[256];	    /* with --port auto: why this one; else "" */
	bool has_addr, has_gateway; /* addresses below are set */
	struct net_addr addr;	    /* ours; port is udp_port */
	uint8_t prefix;		    /* bits of addr that name the link; 0: everything is on it */
	struct net_addr gateway;
	uint16_t udp_port;    /* of worker 0 */
	uint16_t mtu;	      /* IP bytes; 0: the interface's own, or 1500 */
	uint16_t vlan;	      /* tag of all frames; 0: none */
	uint16_t descriptors; /* of each ring of a card; 0: a usual number */
	unsigned workers;
	uint16_t peers_max; /* connections of each worker */
	uint64_t store_bytes;
	uint32_t objects; /* that it holds at most */
	bool busy_poll;
	uint64_t rate_bps;				      /* 0: no bound */
	uint64_t delay_target_ns, ack_delay_ns, credit_bytes; /* 0: the engine's default */
	int log_level;
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_DONE, /* --help, --version: exit 0 */
	OPTIONS_WRONG /* one line is on stderr: exit 2 */
};

enum options_result options_parse(int argc, char **argv, struct options out[RAILS_MAX]);

#endif
