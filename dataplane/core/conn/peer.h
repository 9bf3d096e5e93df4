/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others may read of a connection, where engine_config.peers has room for that.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_PEER_H
#define SARISSA_DATAPLANE_CORE_CONN_PEER_H

#include "conn.h"
#include "core/numbers.h"

/* Writes all of it. */
void peer_tell(struct engine *e, struct conn *c);
/* When that is due; small news can wait for the next occasion. */
static inline uint64_t peer_tell_due_ns(const struct conn *c)
{
	return c->tally.tx_bytes + c->tally.rx_bytes - c->report.reported_bytes > 65536
		       ? c->report.tell_ns
		       : NEVER;
}
/* At the end of this turn, however little has been sent since: something has changed that lasts. */
static inline void peer_tell_soon(const struct engine *e, struct conn *c)
{
	c->report.tell_ns = e->config.peers ? 0 : NEVER;
}
/* It has ended. */
void peer_forget(const struct engine *e, const struct conn *c);

#endif
