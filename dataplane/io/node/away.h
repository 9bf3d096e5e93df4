/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports whose device goes while the node runs, an interface that is deleted or a card that is
 * pulled out, and that take it up again when it is back. Called by the main thread (node.c). While
 * a port is away workers let it alone: what is to leave by it is lost, as with a pulled cable, so
 * the engine knows nothing of this.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_AWAY_H
#define SARISSA_DATAPLANE_IO_NODE_AWAY_H

#include <stdbool.h>
#include <stdint.h>

struct node;

/* Of one port. */
struct away {
	bool is;	   /* its device has gone */
	uint64_t try_ns;   /* when it is looked for next */
	uint64_t pause_ns; /* from then to the next time */
};

/* Looks at all ports: lets those alone whose device has gone, opens those again whose device is
 * back. A node whose last card has gone gets SIGTERM. */
void away_step(struct node *n, uint64_t now_ns);
/* Until the next look; -1: none is away. */
int away_wait_ms(const struct node *n, uint64_t now_ns);

#endif
