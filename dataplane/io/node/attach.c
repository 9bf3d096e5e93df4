/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void attach_path(const char *rundir, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(out->sun_path, sizeof(out->sun_path), "%s/dataplane.sock", rundir);
}

void attach_unlink(const char *rundir)
{
	struct sockaddr_un address;
	attach_path(rundir, &address);
	unlink(address.sun_path);
}

int attach_listen(const char *rundir)
{
	struct sockaddr_un address;
	attach_path(rundir, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	attach_unlink(rundir); /* the lock on the folder says that nobody listens there */
	mode_t mask = umask(0077);
	int bound = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (bound < 0 || listen(fd, 4) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int attach_accept(int listen_fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	    (peer.uid == 0 || peer.uid == geteuid()))
		return fd;
	close(fd);
	return -EPERM;
}

/* Keeps the first descriptors that came along and closes any others. */
static void attach_take_fds(struct msghdr *m, int fds[ATTACH_STORE_FDS])
{
	unsigned n = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		unsigned count = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < ATTACH_STORE_FDS)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
}

static int attach_request_check(const struct attach_request *r, ssize_t length,
				const int fds[ATTACH_STORE_FDS])
{
	int count = 0;
	if (length != (ssize_t)sizeof(*r) || r->magic != ATTACH_MAGIC)
		return -EPROTO;
	if (r->version != IPC_VERSION)
		return -EPROTONOSUPPORT;
	for (int i = 0; i < ATTACH_STORE_FDS; i++)
		count += fds[i] >= 0;
	return r->has_store > 1 || count != (r->has_store ? ATTACH_STORE_FDS : 0) ? -EPROTO : 0;
}

int attach_read_request(int fd, struct attach_request *request, int fds[ATTACH_STORE_FDS])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(ATTACH_FDS_MAX * sizeof(int))];
	struct iovec io = {.iov_base = request, .iov_len = sizeof(*request)};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	for (int i = 0; i < ATTACH_STORE_FDS; i++)
		fds[i] = -1;
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	attach_take_fds(&m, fds); /* an empty packet may have some, too */
	int error = n == 0 ? -ECONNRESET
		    : (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
			    ? -EPROTO
			    : attach_request_check(request, n, fds);
	for (int i = 0; error && i < ATTACH_STORE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
	return error;
}

int attach_write_reply(int fd, const struct attach_reply *reply, const int *fds, unsigned count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(ATTACH_FDS_MAX * sizeof(int))] = {0};
	struct iovec io = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof(*reply)};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
	if (count > 0) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*reply) ? 0 : -errno;
}
