/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients' socket RUNDIR/control.sock: accepts and disconnects clients. requests.c reads what
 * they send, answers.c writes. Called by host.c. One thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_CLIENTS_H
#define SARISSA_CONTROL_CLIENTS_CLIENTS_H

#include <stdatomic.h>
#include <uv.h>
#include "closer.h"
#include "internal/session.h"
#include "refusals.h"

struct attach;
struct host;
struct client;

struct clients {
	struct host *host;
	uv_poll_t listening;
	uv_timer_t retry;      /* while no spare_fd can be had */
	int listen_fd;	       /* -1: not yet */
	int spare_fd;	       /* for when there are no more */
	struct client **table; /* by session */
	uint32_t table_size;
	uint32_t queued;  /* answers that wait for clients to read */
	bool failed;	  /* some client waits to be closed */
	bool wait;	  /* some client waits to be read */
	bool no_rights;	  /* they cannot send descriptors */
	bool turned_away; /* for want of descriptors, and said so */
	bool paused;	  /* nobody is let in: much is being closed, or there is no spare_fd */
	struct refusals refusals;
	struct closer closer; /* of their sockets, and of what they have sent */
};

/* Returns 0, or 1 and one line said why. */
int clients_init(struct clients *c, struct host *host);
/* Begins to listen, if that has not happened yet. Returns 0, or 1 and one line said why. */
int clients_listen(struct clients *c);
/* Closes the clients that failed while the core ran. */
void clients_settle(struct clients *c);
void clients_close_all(struct clients *c);
/* The end of a connection; no_rights: over which no descriptors can have been sent. */
void clients_hang_up(struct clients *c, int fd, bool no_rights);
/* At the end of the process: removes the socket, and disconnects all clients. */
void clients_leave(struct clients *c);

#endif
