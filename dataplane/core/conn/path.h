/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several paths of one connection, one per rail. Control opens a connection and names it; the
 * others are opened beside it, with a handshake of their own that says whose path they are. A path
 * has its own packet numbers, round trips, window and pace. Edges and messages belong to the
 * connection: whichever path may send takes the next chunk, so each carries what it can.
 *
 *   UP        takes part
 *   impaired  two probes in a row were not answered while another path was heard: what it had
 *             under way leaves by the others, and it only sends probes until one is answered
 *
 * A connection ends when all its paths are silent; then they end together. Any thread rule is the
 * engine's.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_PATH_H
#define SARISSA_DATAPLANE_CORE_CONN_PATH_H

#include "conn.h"

/* All places of a connection's paths; some are NULL or opening. */
#define path_each(p, c)                                                                        \
	for (struct conn **p##_at = (c)->main->path, *p; p##_at < (c)->main->path + RAILS_MAX; \
	     p##_at++)                                                                         \
		if ((p = *p##_at))

/* It goes by this rail; before anything of it has left. */
void path_on_rail(struct conn *c, unsigned rail);
/* c, which is opening, is to be a path of main on its rail. False: that has one there. */
bool path_join(struct conn *main, struct conn *c, unsigned rail);
/* The path to this address, or NULL. */
struct conn *path_to(const struct conn *c, const struct net_addr *addr);
/* The path that messages leave by: the connection's own, unless that is impaired. */
struct conn *path_carrier(struct conn *c);
/* Another path, impaired, whose items wait to leave again; NULL: none. */
struct conn *path_stranded(const struct conn *c);
/* When any path was heard last. */
uint64_t path_heard_ns(const struct conn *c);
/* There is something for any of them: all look. */
void path_wake(struct engine *e, struct conn *c);
/* A probe of c has left; a packet has come by c: which path is impaired? */
void path_probed(struct engine *e, struct conn *c);
void path_heard(struct engine *e, struct conn *c);

#endif
