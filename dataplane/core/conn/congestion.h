/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much may be on the way to a peer, and at what pace: delay target after Swift (SIGCOMM 2020),
 * ECN fraction after DCTCP (RFC 8257). sent.c brings what arrived, transmit.c asks before it sends.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_CONGESTION_H
#define SARISSA_DATAPLANE_CORE_CONN_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

/* Nodes that share a receiver's link, by its grants: up to that each may aim at more queue.
 * in_edge.c grants at once when one more comes, so that all of them know. */
enum { CONGESTION_FEW_SENDERS = 4 };

/* As many first windows fit into the buffer of a port, 16 x 16 packets. Of more senders each begins
 * with a part of one, and in_edge.c grants before a stream begins, so that its sender knows. */
enum { CONGESTION_MANY_SENDERS = 16 };

struct conn;
struct engine;

void congestion_init(struct engine *e, struct conn *c);
void congestion_acked(struct engine *e, struct conn *c, uint64_t bytes, uint32_t packets,
		      uint64_t largest_pn);
void congestion_lost(struct conn *c);
/* The receiver says how many share its link. */
void congestion_shared(struct engine *e, struct conn *c, uint8_t senders);
void congestion_marked(struct conn *c, uint32_t marks);
/* May bytes leave now? Sets pace_blocked or cwnd_limited when not. What is patient waits for a
 * burst.
 */
bool congestion_allows(struct engine *e, struct conn *c, uint32_t bytes, bool may_wait);
void congestion_sent(struct engine *e, struct conn *c, uint32_t bytes);
/* The connection has found silence after probes: starts over carefully. */
void congestion_collapse(struct engine *e, struct conn *c);

#endif
