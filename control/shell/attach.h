/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaches to the dataplane (internal/ipc.h): connects, passes the descriptors that control holds,
 * gets those of the dataplane, and maps them. The store and the table stay mapped when the
 * dataplane dies, and go to the next one. Called by host.c; it must not know the event loop.
 */
#ifndef SARISSA_CONTROL_SHELL_ATTACH_H
#define SARISSA_CONTROL_SHELL_ATTACH_H

#include "core/control.h"
#include "internal/ring.h"

struct attach {
	int socket;			    /* -1: no dataplane */
	int store_fd, table_fd, private_fd; /* -1: none yet */
	int ipc_fd, control_wake, worker_wake[WORKERS_MAX];
	uint8_t *store;
	struct object_table *table;
	struct object_private *private;
	struct ipc_header *ipc;
	struct ring_end commands[WORKERS_MAX], events[WORKERS_MAX];
	uint64_t store_bytes, table_bytes, private_bytes, ipc_bytes;
	/* Memory that the new dataplane did not take over stays mapped until attach_forget_old. */
	uint8_t *old_store;
	struct object_table *old_table;
	struct object_private *old_private;
	uint64_t old_store_bytes, old_table_bytes, old_private_bytes;
	struct attach_reply reply;
	bool kept; /* the last reply adopted our store */
};

void attach_init(struct attach *a);

/* Connects and sends the request. Returns 0 or -errno: then a->socket is -1. */
int attach_begin(struct attach *a, const char *rundir);

/* Reads the reply. Returns 1 when attached and mapped; 0 when it has not come yet; -errno, and the
 * connection is closed (-EPROTONOSUPPORT: versions differ). */
int attach_finish(struct attach *a);

/* Nobody looks at the earlier store and table any more. */
void attach_forget_old(struct attach *a);

/* The dataplane has gone: unmaps the rings, keeps store and table. */
void attach_end(struct attach *a);

#endif
