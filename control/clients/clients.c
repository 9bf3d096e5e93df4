/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "answers.h"
#include "shell/host.h"
#include "identity.h"
#include "internal/node_group.h"
#include "shell/log.h"
#include "requests.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { RETRY_MS = 100 };

/* ---- what happens to one ------------------------------------------------------------------- */

void clients_fail(struct client *k)
{
	k->failed = true;
	k->all->failed = true;
}

static void clients_ready(uv_poll_t *poll, int status, int events)
{
	struct client *k = poll->data;

	if (status < 0)
		clients_fail(k);
	if (!k->failed && (events & UV_WRITABLE))
		answers_flush(k);
	if (!k->failed && (events & UV_READABLE))
		requests_read(k);
	if (events & UV_DISCONNECT)
		clients_fail(k);
	clients_settle(k->all);
}

void clients_watch(struct client *k)
{
	int events = (k->waits ? UV_DISCONNECT : UV_READABLE) | (k->queued > 0 ? UV_WRITABLE : 0);

	uv_poll_start(&k->poll, events, clients_ready);
}

/* ---- coming and going ---------------------------------------------------------------------- */

static void clients_free(uv_handle_t *handle)
{
	struct client *k = handle->data;

	answers_forget(k);
	free(k);
}

/* Messages that were sent and not read may hold descriptors, unless they could not. */
void clients_hang_up(struct clients *c, int fd, bool no_rights)
{
	shutdown(fd, SHUT_RDWR);
	closer_take(&c->closer, fd, !no_rights);
}

static void clients_pins_end(struct client *k)
{
	if (k->pins)
		munmap((void *)(uintptr_t)k->pins, SESSION_PIN_BYTES);
	if (k->pins_fd >= 0)
		close(k->pins_fd);
}

static void clients_close(struct client *k)
{
	struct clients *c = k->all;

	if (k->closed)
		return;
	k->closed = true;
	c->table[k->session] = NULL;
	control_session_close(c->host->core, k->session, host_now_ns());
	clients_pins_end(k);
	uv_poll_stop(&k->poll);
	uv_close((uv_handle_t *)&k->poll, clients_free);
	clients_hang_up(c, k->fd, k->no_rights);
}

void clients_settle(struct clients *c)
{
	if (!c->failed)
		return;
	c->failed = false;
	for (uint32_t i = 0; i < c->table_size; i++)
		if (c->table[i] && c->table[i]->failed)
			clients_close(c->table[i]);
}

void clients_close_all(struct clients *c)
{
	for (uint32_t i = 0; i < c->table_size; i++)
		if (c->table[i])
			clients_close(c->table[i]);
}

static int clients_pins(struct client *k)
{
	void *p;

	k->pins_fd = memfd_create("sarissa-pins", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (k->pins_fd < 0)
		return errno == EMFILE ? -ENFILE : -errno; /* -EMFILE: no session */
	/* sealed, so that a client cannot shrink it and make us fault */
	if (ftruncate(k->pins_fd, SESSION_PIN_BYTES) < 0 ||
	    fcntl(k->pins_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	p = mmap(NULL, SESSION_PIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, k->pins_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	k->pins = p;
	return 0;
}

/* Whether descriptors that clients send are refused (Linux 6.16) where they are sent. */
static bool clients_set_rights(int fd, int allowed)
{
	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &allowed, sizeof(allowed)) == 0;
}

/* Who it was when it connected. */
static int clients_know(struct client *k)
{
	const struct host *h = k->all->host;
	const struct control_client who = identity_of(k->fd, h->options->creators);
	int error = control_session_client(h->core, k->session, &who);

	k->birth = who.birth;
	k->staged = who.staged;
	log_debug("client: process %u of user %u", who.process, who.user);
	k->no_rights = k->all->no_rights;
	if (k->no_rights && control_session_brings(h->core, k->session))
		k->no_rights = !clients_set_rights(k->fd, 1);
	return error;
}

static int clients_begin(struct client *k)
{
	struct clients *c = k->all;
	struct control *core = c->host->core;
	int error = clients_pins(k), session;

	if (error)
		return error;
	session = control_session_open(core, k->pins, host_now_ns());
	if (session < 0)
		return session;
	k->session = (uint32_t)session;
	error = clients_know(k);
	if (error == 0 && uv_poll_init(&c->host->loop, &k->poll, k->fd) < 0)
		error = -ENOMEM;
	if (error)
		control_session_close(core, k->session, host_now_ns());
	return error;
}

static int clients_add(struct clients *c, int fd)
{
	struct client *k = calloc(1, sizeof(*k));
	int error;

	if (!k)
		return -ENOMEM;
	k->all = c;
	k->fd = fd;
	k->pins_fd = -1;
	k->last = &k->first;
	error = clients_begin(k);
	if (error) {
		clients_pins_end(k);
		free(k);
		return error;
	}
	c->turned_away = false;
	k->poll.data = k;
	c->table[k->session] = k;
	clients_watch(k);
	return 0;
}

static void clients_say_turned_away(struct clients *c)
{
	if (!c->turned_away)
		log_warning("no descriptors for another client: raise the limit of open files");
	c->turned_away = true;
}

/* Nobody is taken in until what is being closed has been. */
static void clients_pause(struct clients *c)
{
	uv_poll_stop(&c->listening);
	c->paused = true;
}

static void clients_retry(uv_timer_t *timer);

/* Out of descriptors: with the one that is kept for this the client is taken and let go, so that
 * the loop does not find it waiting again and again. */
static void clients_turn_away(struct clients *c)
{
	int fd;

	clients_say_turned_away(c);
	close(c->spare_fd);
	fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	c->spare_fd = -1;
	clients_pause(c);
	if (fd >= 0) {
		c->host->report.shell.clients_refused++;
		clients_hang_up(c, fd, c->no_rights);
	} else { /* somebody else has taken it */
		uv_timer_start(&c->retry, clients_retry, RETRY_MS, 0);
	}
}

static void clients_accept(uv_poll_t *poll, int status, int events)
{
	struct clients *c = poll->data;
	int fd, error;

	if (closer_behind(&c->closer)) {
		clients_pause(c);
		return;
	}
	fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			clients_turn_away(c);
		return;
	}
	error = clients_add(c, fd);
	if (error == 0)
		return;
	if (error == -ENFILE)
		clients_say_turned_away(c);
	c->host->report.shell.clients_refused++;
	refusals_add(&c->refusals, fd, error);
}

static void clients_resume(struct clients *c)
{
	if (!c->paused || closer_behind(&c->closer))
		return;
	if (c->spare_fd < 0)
		c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c->paused = c->spare_fd < 0;
	if (c->paused) /* others have it, and may give it back without that thread */
		uv_timer_start(&c->retry, clients_retry, RETRY_MS, 0);
	else
		uv_poll_start(&c->listening, UV_READABLE, clients_accept);
}

static void clients_retry(uv_timer_t *timer)
{
	clients_resume(timer->data);
}

/* A descriptor is closed: accepts clients that waited for it. */
static void clients_closed(uv_async_t *done)
{
	struct clients *c = done->data;

	clients_resume(c);
	for (uint32_t i = 0; c->wait && i < c->table_size; i++) {
		struct client *k = c->table[i];

		if (k && k->waits) {
			k->waits = false;
			clients_watch(k);
		}
	}
	c->wait = false;
}

int clients_init(struct clients *c, struct host *host)
{
	c->host = host;
	c->listen_fd = -1;
	c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c->table_size = host->options->sessions;
	c->table = calloc(c->table_size, sizeof(*c->table));
	c->refusals = (struct refusals){.clients = c};
	uv_timer_init(&host->loop, &c->retry);
	c->retry.data = c;
	if (closer_start(&c->closer, &host->loop, &host->report, clients_closed, c) == 0)
		return 0;
	log_error("cannot start a thread: raise the limit of processes (TasksMax=)");
	return 1;
}

static void clients_address(const struct clients *c, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(out->sun_path, sizeof(out->sun_path), "%s/control.sock", c->host->options->rundir);
}

/* The group first: with the rights, and root's group, others might get in for a moment. */
static int clients_give(const struct sockaddr_un *address, mode_t mode)
{
	node_group_give(address->sun_path);
	return chmod(address->sun_path, mode);
}

int clients_listen(struct clients *c)
{
	struct sockaddr_un address;

	if (c->listen_fd >= 0)
		return 0;
	clients_address(c, &address);
	c->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	c->no_rights = c->listen_fd >= 0 && clients_set_rights(c->listen_fd, 0);
	unlink(address.sun_path); /* the lock says that nobody listens there */
	if (!c->table || c->listen_fd < 0 ||
	    bind(c->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    clients_give(&address, c->host->options->socket_mode) < 0 ||
	    listen(c->listen_fd, 64) < 0 ||
	    uv_poll_init(&c->host->loop, &c->listening, c->listen_fd) < 0) {
		log_error("cannot listen at %s (%s): check the rights of --rundir",
			  address.sun_path, strerror(errno));
		return 1;
	}
	c->listening.data = c;
	return uv_poll_start(&c->listening, UV_READABLE, clients_accept) < 0;
}

void clients_leave(struct clients *c)
{
	struct sockaddr_un address;
	int fd;

	if (c->listen_fd < 0)
		return;
	clients_address(c, &address);
	unlink(address.sun_path);
	shutdown(c->listen_fd, SHUT_RDWR); /* no client joins the backlog */
	for (uint32_t i = 0; i < c->table_size; i++)
		if (c->table[i])
			shutdown(c->table[i]->fd, SHUT_RDWR);
	refusals_leave(&c->refusals);
	close(c->spare_fd);
	c->spare_fd = -1;
	while ((fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		shutdown(fd, SHUT_RDWR); /* its close may be long */
}
