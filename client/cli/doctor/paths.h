/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of this node's workers, from the file RUNDIR/peers, and what is wrong with the
 * path of one of them beside the others. Also when the dataplane does not run any more.
 */
#ifndef SARISSA_CLIENT_CLI_DOCTOR_PATHS_H
#define SARISSA_CLIENT_CLI_DOCTOR_PATHS_H

#include "internal/peer_counters.h"
#include "sarissa/sarissa.h"

enum { PATHS_NO_NODE = -1, PATHS_NOTE_BYTES = 128 };

/* One connection. The counters are those since it was established, or since an earlier look. */
struct path {
	int64_t node; /* whose address this is; PATHS_NO_NODE: not known */
	uint32_t worker, conn;
	struct net_addr addr;
	struct peer_values values;
	uint64_t over_ns; /* over which the counters rose */
};

struct paths {
	struct path *row;
	size_t count;
	uint32_t mtu;	 /* of this node's link; 0: not known */
	char file[4096]; /* set in any case */
};

/* Reads the file that belongs to the node with this socket. 0; -ENOENT and other -errno; -EPROTO
 * when it is of another version. The rows are freed with paths_free(). */
int paths_read(const char *socket, struct paths *out);
void paths_free(struct paths *p);

/* The way from here to the first worker of a node; NULL: none is told. */
const struct path *paths_to(const struct paths *p, const sar_node *node);

/* Asks the node whose addresses these are, and for its MTU. Without a control they must do. Another
 * path of a connection is its node's. */
void paths_name(struct paths *p, const char *socket);

/* Leaves of the counters what they have risen by since an earlier look. */
void paths_since(struct paths *now, const struct paths *before);

/* By node, then address, then worker. */
void paths_sort(struct paths *p);

/* Shares of what was sent to it, and of what it sent, that did not arrive; of 1. */
double paths_note_lost(const struct path *p);
double paths_note_missed(const struct path *p);

/* The usual values here: the middle one of all paths, the link's MTU; 0: nobody knows. */
struct paths_note_usual {
	uint64_t rtt_ns, bytes_per_s, mtu;
};

struct paths_note_usual paths_note_usual(const struct paths *p);

/* Whether something is wrong with a path; note says what, or is empty. */
bool paths_note(const struct path *p, const struct paths_note_usual *usual,
		char note[PATHS_NOTE_BYTES]);

#endif
