/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The largest packet that the path carries, after RFC 8899. transmit.c sends what path_mtu_next()
 * asks for; sent.c tells what became of it and of all other packets. It knows nothing of streams.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_PATH_MTU_H
#define SARISSA_DATAPLANE_CORE_CONN_PATH_MTU_H

#include "conn.h"

struct sent;

/* Begins a search between what is known to pass and what both links take. */
void path_mtu_start(struct engine *e, struct conn *c);
/* IP bytes of the padded PING that is to leave now, as c->pmtu.next_ns has come; 0: none after all.
 * It is of trial c->pmtu.trial. */
uint16_t path_mtu_next(struct engine *e, struct conn *c);
/* Such a packet was acknowledged, or lost. */
void path_mtu_acked(struct engine *e, struct conn *c, uint32_t trial, uint32_t bytes);
void path_mtu_lost(struct engine *e, struct conn *c, uint32_t trial, uint32_t bytes);
/* Another packet was declared lost. */
void path_mtu_vanished(struct engine *e, struct conn *c, const struct sent *s);
/* A packet of so many IP bytes has arrived, whatever had been concluded about it before. */
void path_mtu_passes(struct engine *e, struct conn *c, uint32_t bytes);
static inline void path_mtu_passed(struct engine *e, struct conn *c, uint32_t bytes)
{
	if (bytes > c->mtu || c->pmtu.doubt > 0)
		path_mtu_passes(e, c, bytes);
}

#endif
