/* SPDX-License-Identifier: BSD-3-Clause */
#include "refusals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "shell/host.h"
#include "shell/log.h"

struct refused {
	uv_poll_t poll;
	struct refusals *all;
	int fd, error;
};

static void refusals_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void refusals_end(struct refused *r)
{
	for (unsigned i = 0; i < REFUSALS_MAX; i++)
		if (r->all->waiting[i] == r)
			r->all->waiting[i] = NULL;
	uv_poll_stop(&r->poll);
	uv_close((uv_handle_t *)&r->poll, refusals_free);
	clients_hang_up(r->all->clients, r->fd, r->all->clients->no_rights);
}

/* Reads its request, if there is one without a descriptor, which requests.c would have to close. */
static bool refusals_read(const struct refused *r, struct session_request *request)
{
	struct iovec part = {request, sizeof(*request)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	return recvmsg(r->fd, &m, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(*request) &&
	       !(m.msg_flags & MSG_CTRUNC) && recv(r->fd, request, 0, MSG_DONTWAIT) >= 0;
}

static void refusals_ready(uv_poll_t *poll, int status, int events)
{
	struct refused *refused = poll->data;
	struct session_request request;
	struct session_reply r = {.magic = SESSION_MAGIC};
	int error = refused->error;

	if (status == 0 && refusals_read(refused, &request)) {
		r.op = request.op;
		r.seq = request.seq;
		r.status = error == -EDQUOT ? -EMFILE : error;
		snprintf(r.text, sizeof(r.text),
			 error == -EMFILE
				 ? "this node has no room for another client: raise --sessions"
			 : error == -EDQUOT
				 ? "this user has as many clients at this node as one user may "
				   "have: end some, or raise --sessions"
			 : error == -ENFILE
				 ? "this node has no descriptors for another client: raise its "
				   "limit of open files"
				 : "this node cannot take a client (%s)",
			 strerror(-error));
		if (send(refused->fd, &r, sizeof(r), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			log_debug("refusal: %s", strerror(errno));
	}
	refusals_end(refused);
}

void refusals_add(struct refusals *all, int fd, int error)
{
	struct refused *r = calloc(1, sizeof(*r)), **place = &all->waiting[all->next];

	if (!r || uv_poll_init(&all->clients->host->loop, &r->poll, fd) < 0) {
		free(r);
		clients_hang_up(all->clients, fd, all->clients->no_rights);
		return;
	}
	if (*place)
		refusals_end(*place);
	all->next = (all->next + 1) % REFUSALS_MAX;
	r->all = all;
	r->fd = fd;
	r->error = error;
	r->poll.data = r;
	*place = r;
	uv_poll_start(&r->poll, UV_READABLE, refusals_ready);
}

void refusals_leave(const struct refusals *all)
{
	for (unsigned i = 0; i < REFUSALS_MAX; i++)
		if (all->waiting[i])
			shutdown(all->waiting[i]->fd, SHUT_RDWR);
}
