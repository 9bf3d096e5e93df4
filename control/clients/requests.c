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
	if (!(m.msg_flags & MSG_CTRUNC))
		return true;
	requests_strange(k);
	return false;
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

		if (!k->all->no_rights && !requests_look(k))
			return;
		n = recv(k->fd, &packet, sizeof(packet), MSG_DONTWAIT);
		nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
		if (n > 0)
			control_session_request(h->core, k->session, &packet, (size_t)n,
						host_now_ns());
		else if (!nothing)
			clients_fail(k);
		if (nothing)
			return;
	}
}
