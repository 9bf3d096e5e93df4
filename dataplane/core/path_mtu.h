/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The largest packet that the path carries, after RFC 8899. transmit.c sends the probes, sent.c
 * tells what became of them and of all other packets.
 */
#ifndef SARISSA_DATAPLANE_CORE_PATH_MTU_H
#define SARISSA_DATAPLANE_CORE_PATH_MTU_H

#include "conn.h"

struct sent;

enum { MTU_BASE = 1280 }; /* IP bytes every path carries (RFC 8200, 5) */

void path_mtu_start(struct engine *e, struct conn *c);
bool path_mtu_due(const struct conn *c, uint64_t now_ns);
void path_mtu_acked(struct engine *e, struct conn *c, uint32_t bytes);
void path_mtu_lost(struct engine *e, struct conn *c, uint32_t bytes);
/* Packets other than probes were acknowledged, or one was lost: when large ones vanish for several
 * rounds while small ones pass, goes back to the base and searches again. */
void path_mtu_passed(struct conn *c, bool large, bool small);
void path_mtu_vanished(struct engine *e, struct conn *c, const struct sent *s);
static inline bool path_mtu_large(const struct conn *c, uint16_t bytes)
{
	return bytes > MTU_BASE - conn_overhead(c);
}

#endif
