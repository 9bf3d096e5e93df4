/* SPDX-License-Identifier: BSD-3-Clause */
#include "requests.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "shell/host.h"
#include "shell/log.h"

enum { REQUESTS_MAX = 32 }; /* in one go, for fairness */

/* It sends what it was not asked for. */
static void requests_strange(struct client *k)
{
	if (k->all->host->report.shell.clients_strange++ == 0)
		log_warning("disconnected a client that sent descriptors: others are only counted");
	clients_fail(k);
}

/*
 * The next packet has descriptors. With one of memory control may be brought what this client was
 * writing at an earlier one, and only to see whether it is memory it is taken: whatever else it is,
 * its close may never end, and that is the last that its sender has brought. Returns whether the
 * packet can be read.
 */
static bool requests_look_along(struct client *k)
{
	struct host *h = k->all->host;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_control = &control,
			   .msg_controllen = CMSG_LEN(sizeof(int))}; /* more, and two would fit */
	const struct cmsghdr *c;
	int fd = -1;

	if (!control_session_brings(h->core, k->session)) {
		requests_strange(k);
		return false;
	}
	if (!closer_ready(&k->all->closer)) {
		k->waits = k->all->wait = true;
		clients_watch(k);
		return false;
	}
	if (recvmsg(k->fd, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	if (!(m.msg_flags & MSG_CTRUNC) && fd >= 0 && staging_memory_valid(fd)) {
		h->staging.brought = fd;
		return true;
	}
	if (fd < 0) { /* we have no room for one: it comes again */
		clients_fail(k);
		return false;
	}
	closer_take(&k->all->closer, fd, true);
	control_session_forfeit(h->core, k->session, host_now_ns());
	requests_strange(k);
	return false;
}

/*
 * Looks for descriptors at the next packet, which is left where it is: their last close, which may
 * take as long as its owner likes, is then not ours. They are not taken either, as closing them
 * again may take as long; with them the client is let go, and its socket, which holds them, to the
 * closer. Returns whether there is a packet to be read: what comes after the look is for the next.
 */
static bool requests_look(struct client *k)
{
	struct msghdr m = {0};

	if (recvmsg(k->fd, &m, MSG_PEEK | MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			clients_fail(k);
		return false;
	}
	return !(m.msg_flags & MSG_CTRUNC) || requests_look_along(k);
}

void requests_read(struct client *k)
{
	struct host *h = k->all->host;

	for (int i = 0; i < REQUESTS_MAX && !k->failed; i++) {
		union {
			struct session_request request;
			uint8_t bytes[SESSION_REQUEST_BYTES_MAX + 1];
		} packet;
		bool nothing;
		ssize_t n;

		if (!k->no_rights && !requests_look(k))
			return;
		n = recv(k->fd, &packet, sizeof(packet), MSG_DONTWAIT);
		nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
		if (n > 0)
			control_session_request(h->core, k->session, &packet, (size_t)n,
						host_now_ns());
		else if (!nothing)
			clients_fail(k);
		staging_memory_leave(&h->staging);
		if (nothing)
			return;
	}
}
