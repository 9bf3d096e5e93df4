/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "internal/ring.h"

union attach_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * ATTACH_FDS_MAX)];
};

static void attach_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void attach_init(struct attach *a)
{
	*a = (struct attach){.socket = -1,
			     .store_fd = -1,
			     .table_fd = -1,
			     .private_fd = -1,
			     .ipc_fd = -1,
			     .control_wake = -1};
	for (unsigned w = 0; w < WORKERS_MAX; w++)
		a->worker_wake[w] = -1;
}

static int attach_send_request(const struct attach *a)
{
	struct attach_request request = {.magic = ATTACH_MAGIC,
					 .version = IPC_VERSION,
					 .pid = getpid(),
					 .has_store = a->store_fd >= 0};
	int fds[ATTACH_STORE_FDS] = {a->store_fd, a->table_fd, a->private_fd};
	union attach_control control = {0};
	struct iovec part = {&request, sizeof(request)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (request.has_store) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(fds));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
	}
	return sendmsg(a->socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int attach_begin(struct attach *a, const char *rundir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int error = 0;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/dataplane.sock", rundir);
	a->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->socket < 0)
		return -errno;
	if (connect(a->socket, (struct sockaddr *)&address, sizeof(address)) < 0)
		error = -errno;
	else
		error = attach_send_request(a);
	if (error)
		attach_close(&a->socket);
	return error;
}

/* ---- the reply ----------------------------------------------------------------------------- */

/* Collects the descriptors; returns how many. */
static unsigned attach_take_fds(struct msghdr *m, int fds[ATTACH_FDS_MAX])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < ATTACH_FDS_MAX)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

static void *attach_map(int fd, uint64_t *bytes)
{
	struct stat s;
	void *p;

	if (fstat(fd, &s) < 0 || s.st_size <= 0)
		return NULL;
	p = mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, (size_t)s.st_size, MADV_DONTDUMP); /* a core file has the size of the store */
	*bytes = (uint64_t)s.st_size;
	return p;
}

static bool attach_inside(uint64_t offset, uint64_t size, uint64_t whole)
{
	return offset % 128 == 0 && offset <= whole && size <= whole - offset;
}

static bool attach_ipc_valid(const struct attach *a)
{
	const struct ipc_header *h = a->ipc;
	uint64_t ring = sizeof(struct ring);
	uint64_t messages = (uint64_t)MSG_SLOTS * MSG_SLOT_BYTES;

	if (a->ipc_bytes < sizeof(*h) || h->magic != IPC_MAGIC || h->version != IPC_VERSION ||
	    h->workers != a->reply.workers)
		return false;
	for (unsigned w = 0; w < h->workers; w++)
		if (!attach_inside(h->command_ring_offset[w], ring, a->ipc_bytes) ||
		    !attach_inside(h->event_ring_offset[w], ring, a->ipc_bytes))
			return false;
	return attach_inside(h->msg_tx_offset, messages, a->ipc_bytes) &&
	       attach_inside(h->msg_rx_offset, messages, a->ipc_bytes);
}

static bool attach_table_valid(const struct attach *a)
{
	return object_table_valid(a->table, a->table_bytes, a->store_bytes) &&
	       object_private_valid(a->private, a->private_bytes, a->table);
}

void attach_forget_old(struct attach *a)
{
	if (a->old_store)
		munmap(a->old_store, a->old_store_bytes);
	if (a->old_table)
		munmap(a->old_table, a->old_table_bytes);
	if (a->old_private)
		munmap(a->old_private, a->old_private_bytes);
	a->old_store = NULL;
	a->old_table = NULL;
	a->old_private = NULL;
}

/* Puts store, table and private part aside. */
static void attach_leave_store(struct attach *a)
{
	attach_forget_old(a);
	a->old_store = a->store;
	a->old_store_bytes = a->store_bytes;
	a->old_table = a->table;
	a->old_table_bytes = a->table_bytes;
	a->old_private = a->private;
	a->old_private_bytes = a->private_bytes;
	a->store = NULL;
	a->table = NULL;
	a->private = NULL;
	attach_close(&a->store_fd);
	attach_close(&a->table_fd);
	attach_close(&a->private_fd);
}

/* Takes the descriptors over, all of them, and maps what is new. */
static int attach_take(struct attach *a, const int *fds)
{
	a->kept = a->store && a->reply.adopted;
	if (a->kept) { /* the same memory: our own mapping stays */
		for (unsigned i = 0; i < ATTACH_STORE_FDS; i++)
			close(fds[i]);
	} else {
		attach_leave_store(a);
		a->store_fd = fds[0];
		a->table_fd = fds[1];
		a->private_fd = fds[2];
		a->store = attach_map(a->store_fd, &a->store_bytes);
		a->table = attach_map(a->table_fd, &a->table_bytes);
		a->private = attach_map(a->private_fd, &a->private_bytes);
	}
	a->ipc_fd = fds[3];
	a->control_wake = fds[4];
	for (unsigned w = 0; w < a->reply.workers; w++)
		a->worker_wake[w] = fds[ATTACH_OWN_FDS + w];
	a->ipc = attach_map(a->ipc_fd, &a->ipc_bytes);
	if (!a->store || !a->table || !a->private || !a->ipc)
		return -ENOMEM;
	if (!attach_ipc_valid(a) || !attach_table_valid(a)) {
		attach_leave_store(a);
		return -EPROTO;
	}
	for (unsigned w = 0; w < a->reply.workers; w++) {
		a->commands[w] = ring_end((uint8_t *)a->ipc + a->ipc->command_ring_offset[w]);
		a->events[w] = ring_end((uint8_t *)a->ipc + a->ipc->event_ring_offset[w]);
	}
	return 0;
}

static int attach_check(const struct attach_reply *r, ssize_t length, unsigned fds)
{
	if (length != (ssize_t)sizeof(*r) || r->magic != ATTACH_MAGIC)
		return -EPROTO;
	if (r->version != IPC_VERSION)
		return -EPROTONOSUPPORT;
	if (r->error)
		return r->error < 0 ? r->error : -r->error;
	if (r->workers == 0 || r->workers > WORKERS_MAX || fds != ATTACH_OWN_FDS + r->workers ||
	    r->rails == 0 || r->rails > RAILS_MAX)
		return -EPROTO;
	return 0;
}

int attach_finish(struct attach *a)
{
	union attach_control control = {0};
	struct iovec part = {&a->reply, sizeof(a->reply)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fds[ATTACH_FDS_MAX], error;
	ssize_t n = recvmsg(a->socket, &m, MSG_CMSG_CLOEXEC);
	unsigned count;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	count = n < 0 ? 0 : attach_take_fds(&m, fds); /* an empty packet may have some, too */
	error = n <= 0 ? -ECONNRESET : attach_check(&a->reply, n, count);
	if (error == 0)
		error = attach_take(a, fds);
	else
		while (count > 0)
			close(fds[--count]);
	if (error) {
		attach_end(a);
		return error;
	}
	for (unsigned k = 0; k < RAILS_MAX; k++)
		a->reply.rail[k].port[sizeof(a->reply.rail[k].port) - 1] = '\0';
	return 1;
}

void attach_end(struct attach *a)
{
	if (a->ipc)
		munmap(a->ipc, a->ipc_bytes);
	a->ipc = NULL;
	attach_close(&a->socket);
	attach_close(&a->ipc_fd);
	attach_close(&a->control_wake);
	for (unsigned w = 0; w < WORKERS_MAX; w++)
		attach_close(&a->worker_wake[w]);
}
