/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --capture FILE: copies of all packets, as pcapng. Workers copy into a ring (callbacks on the
 * port's queues); the main thread writes. What the ring has no room for is missing in the file and
 * counted when it is closed. The workers' timing suffers: for finding faults only.
 */
#ifndef SARISSA_DATAPLANE_IO_OBSERVE_CAPTURE_H
#define SARISSA_DATAPLANE_IO_OBSERVE_CAPTURE_H

#include <stdint.h>

struct capture;
struct port;

/* Opens the file and hooks the queues of those ports that DPDK drives. Call when they are started,
 * before the workers run. Returns NULL with a line logged. */
struct capture *capture_start(const char *file, struct port *port, unsigned ports);

/* Hooks the queues of one more port. Returns 0 or -errno. */
int capture_hook(struct capture *c, struct port *port);
/* Also after a failure. Before the port is closed, which keeps hooks; no worker uses it. */
void capture_unhook(struct port *port);

/* Writes what has been copied; call at least every CAPTURE_MS. */
void capture_write(struct capture *c);
enum { CAPTURE_MS = 5 };

/* Writes the rest and closes. The workers must have ended. */
void capture_stop(struct capture *c);

#endif
