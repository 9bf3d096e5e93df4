/* SPDX-License-Identifier: BSD-3-Clause */
#include "clients.h"

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
#include "host.h"
#include "identity.h"
#include "log.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum {
	QUEUE_LONG = 64,   /* packets: a LIST pauses */
	QUEUE_MAX = 1024,  /* packets: the client is not reading */
	REQUESTS_MAX = 32, /* in one go, for fairness */
	FDS_MAX = 3,
	AGAIN_MS = 100,
};

_Static_assert(sizeof(struct session_sources) <= sizeof(struct session_object) &&
		       sizeof(struct session_node) <= sizeof(struct session_object),
	       "what follows a reply fits");

struct packet {
	struct packet *next;
	uint32_t length;
	uint16_t op;		     /* whose descriptors go along; 0: none */
	_Alignas(8) uint8_t bytes[]; /* a session_reply, and what follows it */
};

struct client {
	uv_poll_t poll;
	struct clients *all;
	struct packet *first, **last; /* what the socket did not take yet */
	uint32_t queued;
	uint32_t session;
	int fd;
	int pins_fd;
	_Atomic uint64_t *pins;
	int strange_fd; /* that it has sent, or -1 */
	bool apart;	/* it must not have the store to write to */
	bool no_rights; /* it cannot send descriptors */
	bool failed;	/* to be closed as soon as the core does not run */
	bool closed;
};

/* ---- sending ------------------------------------------------------------------------------- */

/* A descriptor of the same memory that cannot write to it. */
static int clients_read_only(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Marks an open file of the table as a client's of this control. The lock belongs to the open file
 * and so lives as long as the client has it open or mapped, whatever becomes of us. */
static void clients_mark(const struct attach *a, int fd)
{
	struct flock lock = {.l_type = F_RDLCK,
			     .l_start = (off_t)atomic_load(&a->table->control_epoch),
			     .l_len = 1};

	if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) < 0)
		log_error("cannot mark a client's table (%s): its pins end when control does",
			  strerror(errno));
}

bool clients_of_before(const struct attach *a)
{
	struct flock lock = {.l_type = F_WRLCK,
			     .l_len = (off_t)atomic_load(&a->table->control_epoch)};

	return lock.l_len > 0 && fcntl(a->table_fd, F_OFD_GETLK, &lock) == 0 &&
	       lock.l_type != F_UNLCK;
}

/* What the client writes to, or -1: the object is gone, before its answer could be sent. */
static int clients_created(const struct client *k, const struct session_reply *r)
{
	const struct host *h = k->all->host;
	const struct object_table *t = h->attach.table;

	if (!(r->flags & SESSION_FLAG_APART))
		return k->apart ? -1 : h->attach.store_fd;
	return t && t->slot[r->slot].generation == r->generation ? apart_fd(&h->apart, r->slot)
								 : -1;
}

/* The descriptors that go with a reply; returns how many, or -1. Those that ATTACH opens are the
 * caller's to close. */
static int clients_fds(const struct client *k, const struct session_reply *r, uint16_t op,
		       int fds[FDS_MAX])
{
	const struct attach *a = &k->all->host->attach;

	if (op == SESSION_CREATE) {
		fds[0] = clients_created(k, r);
		return fds[0] < 0 ? -1 : 1;
	}
	if (op != SESSION_ATTACH)
		return 0;
	fds[0] = clients_read_only(a->store_fd);
	fds[1] = clients_read_only(a->table_fd);
	clients_mark(a, fds[1]);
	fds[2] = k->pins_fd;
	if (fds[0] >= 0 && fds[1] >= 0)
		return 3;
	log_error("cannot share the store with a client (%s): raise the limit of open files",
		  strerror(errno));
	return -1;
}

/* Instead of the place that a creation had. */
static struct session_reply clients_gone(const struct session_reply *r)
{
	return (struct session_reply){
		.magic = SESSION_MAGIC,
		.op = r->op,
		.seq = r->seq,
		.status = -ESTALE,
		.text = "the object was deleted while it was created: create it again"};
}

static ssize_t clients_send(const struct client *k, const void *bytes, size_t length, uint16_t op)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	struct session_reply gone;
	int fds[FDS_MAX] = {-1, -1, -1};
	int count = clients_fds(k, bytes, op, fds);
	ssize_t sent = -1;

	if (count < 0 && op == SESSION_CREATE) {
		gone = clients_gone(bytes);
		part.iov_base = &gone;
		count = 0;
	}
	if (count > 0) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)count);
	}
	if (count >= 0)
		sent = sendmsg(k->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	else
		errno = EMFILE;
	if (op == SESSION_ATTACH)
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	return sent;
}

static void clients_fail(struct client *k)
{
	k->failed = true;
	k->all->failed = true;
}

static void clients_ready(uv_poll_t *poll, int status, int events);

static void clients_queue(struct client *k, const void *bytes, size_t length, uint16_t op)
{
	struct packet *p = k->queued < QUEUE_MAX ? malloc(sizeof(*p) + length) : NULL;

	if (p == NULL) {
		log_warning("disconnected a client that does not read its answers");
		k->all->host->report.shell.clients_slow++;
		clients_fail(k);
		return;
	}
	p->next = NULL;
	p->length = (uint32_t)length;
	p->op = op;
	memcpy(p->bytes, bytes, length);
	*k->last = p;
	k->last = &p->next;
	if (k->queued++ == 0)
		uv_poll_start(&k->poll, UV_READABLE | UV_WRITABLE, clients_ready);
}

bool clients_reply(struct clients *c, uint32_t session, const struct session_reply *r,
		   const void *tail, uint32_t tail_bytes)
{
	union {
		struct session_reply reply;
		uint8_t bytes[sizeof(struct session_reply) + sizeof(struct session_object)];
	} packet;
	struct client *k = session < c->table_size ? c->table[session] : NULL;
	bool fds = r->status == 0 && (r->op == SESSION_ATTACH || r->op == SESSION_CREATE);
	size_t length = sizeof(*r) + tail_bytes;

	if (k == NULL || k->failed || length > sizeof(packet))
		return true;
	packet.reply = *r;
	if (tail_bytes > 0)
		memcpy(packet.bytes + sizeof(*r), tail, tail_bytes);
	if (k->queued == 0) {
		if (clients_send(k, &packet, length, fds ? r->op : 0) >= 0)
			return true;
		if (errno != EAGAIN && errno != EINTR) {
			clients_fail(k);
			return true;
		}
	}
	clients_queue(k, &packet, length, fds ? r->op : 0);
	return k->queued < QUEUE_LONG;
}

static void clients_flush(struct client *k)
{
	while (k->first) {
		struct packet *p = k->first;

		if (clients_send(k, p->bytes, p->length, p->op) < 0) {
			if (errno != EAGAIN && errno != EINTR)
				clients_fail(k);
			return;
		}
		k->first = p->next;
		k->queued--;
		free(p);
	}
	k->last = &k->first;
	uv_poll_start(&k->poll, UV_READABLE, clients_ready);
	control_session_writable(k->all->host->core, k->session, host_now_ns());
}

/* ---- receiving ----------------------------------------------------------------------------- */

/* It sends what it was not asked for. */
static void clients_fail_strange(struct client *k)
{
	if (k->all->host->report.shell.clients_strange++ == 0)
		log_warning("disconnected a client that sent descriptors: others are only counted");
	clients_fail(k);
}

/*
 * Looks for descriptors at the next packet, which is left where it is: their last close, which may
 * take as long as its owner likes, is then not ours. One of memory may be what control was to be
 * brought; with anything else the client is let go, and its socket, which holds them, to the
 * closer. Returns whether there is one to be read: what comes after the look is for the next one.
 */
static bool clients_look(struct client *k)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_control = &control,
			   .msg_controllen = CMSG_LEN(sizeof(int))}; /* more, and two would fit */
	const struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(k->fd, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			clients_fail(k);
		return false;
	}
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	if (!(m.msg_flags & MSG_CTRUNC) &&
	    (fd < 0 || (apart_is_memory(fd) && !closer_behind(&k->all->closer)))) {
		k->all->host->apart.brought = fd;
		return true;
	}
	k->strange_fd = fd;
	clients_fail_strange(k);
	return false;
}

static void clients_read(struct client *k)
{
	struct host *h = k->all->host;

	for (int i = 0; i < REQUESTS_MAX && !k->failed; i++) {
		union {
			struct session_request request;
			uint8_t bytes[SESSION_REQUEST_BYTES_MAX + 1];
		} packet;
		bool nothing;
		ssize_t n;

		if (!k->no_rights && !clients_look(k))
			return;
		n = recv(k->fd, &packet, sizeof(packet), MSG_DONTWAIT);
		nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
		if (n > 0)
			control_session_request(h->core, k->session, &packet, (size_t)n,
						host_now_ns());
		else if (!nothing)
			clients_fail(k);
		apart_leave(&h->apart);
		if (nothing)
			return;
	}
}

static void clients_ready(uv_poll_t *poll, int status, int events)
{
	struct client *k = poll->data;

	if (status < 0)
		clients_fail(k);
	if (!k->failed && (events & UV_WRITABLE))
		clients_flush(k);
	if (!k->failed && (events & UV_READABLE))
		clients_read(k);
	clients_settle(k->all);
}

/* ---- coming and going ---------------------------------------------------------------------- */

static void clients_free(uv_handle_t *handle)
{
	struct client *k = handle->data;

	while (k->first) {
		struct packet *p = k->first;

		k->first = p->next;
		free(p);
	}
	free(k);
}

/* What was sent and not read may hold descriptors. */
void clients_hang_up(struct clients *c, int fd, int strange_fd)
{
	shutdown(fd, SHUT_RDWR);
	closer_take(&c->closer, strange_fd, fd);
}

static void clients_close(struct client *k)
{
	struct clients *c = k->all;

	if (k->closed)
		return;
	k->closed = true;
	c->table[k->session] = NULL;
	control_session_close(c->host->core, k->session, host_now_ns());
	munmap((void *)(uintptr_t)k->pins, SESSION_PIN_BYTES);
	close(k->pins_fd);
	uv_poll_stop(&k->poll);
	uv_close((uv_handle_t *)&k->poll, clients_free);
	clients_hang_up(c, k->fd, k->strange_fd);
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
static void clients_know(struct client *k)
{
	const struct host *h = k->all->host;
	const struct control_client who = identity_of(k->fd, h->options->creators);

	k->apart = who.apart;
	log_debug("client: process %u of user %u", who.process, who.user);
	control_session_client(h->core, k->session, &who);
	k->no_rights = k->all->no_rights;
	if (k->no_rights && control_session_brings(h->core, k->session))
		k->no_rights = !clients_set_rights(k->fd, 1);
}

static int clients_add(struct clients *c, int fd)
{
	struct client *k = calloc(1, sizeof(*k));
	int session = -ENOMEM, error;

	if (k == NULL)
		return -ENOMEM;
	k->all = c;
	k->fd = fd;
	k->pins_fd = k->strange_fd = -1;
	k->last = &k->first;
	error = clients_pins(k);
	if (error == 0)
		session = control_session_open(c->host->core, k->pins, host_now_ns());
	if (error == 0 && session < 0)
		error = session;
	if (error == 0 && uv_poll_init(&c->host->loop, &k->poll, fd) < 0)
		error = -ENOMEM;
	if (error) {
		if (session >= 0)
			control_session_close(c->host->core, (uint32_t)session, host_now_ns());
		if (k->pins)
			munmap((void *)(uintptr_t)k->pins, SESSION_PIN_BYTES);
		if (k->pins_fd >= 0)
			close(k->pins_fd);
		free(k);
		return error;
	}
	c->turned_away = false;
	k->session = (uint32_t)session;
	k->poll.data = k;
	c->table[session] = k;
	clients_know(k);
	uv_poll_start(&k->poll, UV_READABLE, clients_ready);
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

/* Out of descriptors: with the one that is kept for this the client is taken and let go, so that
 * the loop does not find it waiting again and again. */
static void clients_turn_away(struct clients *c)
{
	int fd;

	clients_say_turned_away(c);
	c->host->report.shell.clients_refused++;
	close(c->spare_fd);
	fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	c->spare_fd = -1;
	clients_pause(c);
	clients_hang_up(c, fd, -1);
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

static void clients_again(uv_timer_t *timer);

static void clients_resume(struct clients *c)
{
	if (!c->paused || closer_behind(&c->closer))
		return;
	if (c->spare_fd < 0)
		c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c->paused = c->spare_fd < 0;
	if (c->paused) /* others have it, and may give it back without that thread */
		uv_timer_start(&c->again, clients_again, AGAIN_MS, 0);
	else
		uv_poll_start(&c->listening, UV_READABLE, clients_accept);
}

static void clients_again(uv_timer_t *timer)
{
	clients_resume(timer->data);
}

static void clients_closed(uv_async_t *done)
{
	clients_resume(done->data);
}

int clients_init(struct clients *c, struct host *host)
{
	c->host = host;
	c->listen_fd = -1;
	c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c->table_size = host->options->sessions;
	c->table = calloc(c->table_size, sizeof(*c->table));
	c->refusals = (struct refusals){.clients = c};
	uv_timer_init(&host->loop, &c->again);
	c->again.data = c;
	if (closer_start(&c->closer, &host->loop, clients_closed, c) == 0)
		return 0;
	log_error("cannot start a thread: raise the limit of processes (TasksMax=)");
	return 1;
}

static void clients_address(const struct clients *c, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(out->sun_path, sizeof(out->sun_path), "%s/control.sock", c->host->options->rundir);
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
	if (c->table == NULL || c->listen_fd < 0 ||
	    bind(c->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(address.sun_path, c->host->options->socket_mode) < 0 ||
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

	if (c->listen_fd < 0)
		return;
	clients_address(c, &address);
	unlink(address.sun_path);
}
