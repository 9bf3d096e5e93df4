/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket where control and dataplane meet (internal/ipc.h): RUNDIR/dataplane.sock. Main thread
 * only. One control at a time; a second one is told -EBUSY.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_ATTACH_H
#define SARISSA_DATAPLANE_IO_NODE_ATTACH_H

#include "internal/ipc.h"

/* Listens; removes a socket file that a killed process left. Returns the fd, or -errno. */
int attach_listen(const char *rundir);
void attach_unlink(const char *rundir);

/* Takes a connection of our own user or root. Returns the fd, or -errno. */
int attach_accept(int listen_fd);

/* Reads the request. fds gets the store and the table when the request has them, else {-1, -1};
 * they are the caller's. Returns 0; -EAGAIN when it has not come yet; -ECONNRESET when the other
 * side has gone; -EPROTO or -EPROTONOSUPPORT when it does not hold. */
int attach_read_request(int fd, struct attach_request *request, int fds[ATTACH_STORE_FDS]);

/* Sends the reply with count descriptors. Returns 0 or -errno. */
int attach_write_reply(int fd, const struct attach_reply *reply, const int *fds, unsigned count);

#endif
