/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane process: its ports, workers and shared memory, and the main thread's work while the
 * workers run: control's attach socket, the kernel's neighbours, capture, signals.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_NODE_H
#define SARISSA_DATAPLANE_IO_NODE_NODE_H

#include "away.h"
#include "io/observe/capture.h"
#include "io/net/netlink.h"
#include "options.h"
#include "shm.h"
#include "watchdog.h"
#include "worker.h"

struct node {
	const struct options *options; /* by rail; what is not of a port is in the first */
	struct port port[RAILS_MAX];   /* by rail */
	struct away away[RAILS_MAX];
	unsigned rails;
	struct worker *worker; /* by index */
	struct counters_file *counters, *peers;
	/* by rail; NULL where we resolve neighbours ourselves, and where nobody need */
	struct netlink *netlink[RAILS_MAX];
	struct capture *capture; /* NULL: off */
	struct prefault prefault;
	struct watchdog watchdog;

	/* outlive each control process; made or adopted at the first attach */
	struct shm store, table, private;
	/* of the current or last control process */
	struct shm ipc;
	struct session session[WORKERS_MAX];
	struct ring_end commands[WORKERS_MAX], events[WORKERS_MAX]; /* of the session */
	void *engine_memory[WORKERS_MAX];
	size_t engine_bytes;
	uint64_t incarnation;
	int32_t control_pid;
	bool eal;	 /* DPDK is up */
	bool huge_pages; /* of packet buffers */
	int memory_node; /* of the cards; -1: of none, or of more than one */

	int lock_fd, listen_fd, control_fd, refused_fd, control_wake, resolver_fd, signal_fd;
};

/* Runs the process until SIGTERM or SIGINT; o: of each rail. Returns its exit status; a failure has
 * been logged. */
int node_run(const struct options *o);

/* The queues of rail k that the worker serves, as the port has them now. */
void node_rail_queues(const struct node *n, struct worker *w, unsigned k);
/* Where the kernel owns the address of rail k it also knows its neighbours. Returns 0 or -errno. */
int node_open_netlink(struct node *n, unsigned k);
/* Also after a failure, or if port k has none. Before its port is closed. */
void node_close_netlink(struct node *n, unsigned k);

/* session.c: lets the card of rail k read the store, where it can; says which. */
void session_map_store(struct node *n, unsigned k);

/* session.c: serves a new control: memory adopted (fds, when request says so) or kept or made,
 * fresh engines and rings, workers switched over. Fills reply. Takes the fds. Returns 0, or -errno
 * with a line logged; the node then serves nobody. */
int session_begin(struct node *n, const struct attach_request *request, int fds[ATTACH_STORE_FDS],
		  struct attach_reply *reply);

#endif
