/* SPDX-License-Identifier: BSD-3-Clause */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "shell/host.h"
#include "shell/log.h"

enum {
	QUEUE_LONG = 64, /* packets: a LIST pauses */
	QUEUE_MAX =
		1024, /* packets: the client is not reading, unless all its waits may have ended */
	QUEUE_WAITS_MAX = QUEUE_MAX + SESSION_WAITS_MAX,
	QUEUE_ALL_MAX = 4 * SESSION_WAITS_MAX, /* of all clients: from there on QUEUE_MAX each */
	FDS_MAX = 3,
};

/* Where the locks of processes begin in the table's file; those of controls are far below. */
#define MARKS_PROCESSES ((off_t)1 << 62)

struct packet {
	struct packet *next;
	uint32_t length;
	uint16_t op;		     /* whose descriptors go along; 0: none */
	_Alignas(8) uint8_t bytes[]; /* a session_reply, and what follows it */
};

/* A descriptor of the same memory that cannot write to it. */
static int answers_read_only(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Marks an open file of the table as a client's of this control, and as that process's. The locks
 * belong to the open file and so live as long as the client has it open or mapped, whatever becomes
 * of us. They need no number of the process: it may be in another pid namespace. */
static void answers_mark(const struct attach *a, int fd, uint64_t birth)
{
	struct flock lock = {.l_type = F_RDLCK,
			     .l_start = (off_t)atomic_load(&a->table->control_epoch),
			     .l_len = 1};
	struct flock process = {
		.l_type = F_RDLCK, .l_start = MARKS_PROCESSES + (off_t)birth, .l_len = 1};

	if (fd >= 0 &&
	    (fcntl(fd, F_OFD_SETLK, &lock) < 0 || (birth && fcntl(fd, F_OFD_SETLK, &process) < 0)))
		log_error("cannot mark a client's table (%s): its pins end when control does",
			  strerror(errno));
}

bool answers_process_has(const struct attach *a, uint64_t birth)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_start = MARKS_PROCESSES + (off_t)birth, .l_len = 1};

	return birth > 0 && a->table && fcntl(a->table_fd, F_OFD_GETLK, &lock) == 0 &&
	       lock.l_type != F_UNLCK;
}

bool answers_of_before(const struct attach *a)
{
	struct flock lock = {.l_type = F_WRLCK,
			     .l_len = (off_t)atomic_load(&a->table->control_epoch)};

	return lock.l_len > 0 && fcntl(a->table_fd, F_OFD_GETLK, &lock) == 0 &&
	       lock.l_type != F_UNLCK;
}

/* The memory that the client writes to, or -1: the object is gone, before its answer could be sent.
 */
static int answers_created(const struct client *k, const struct session_reply *r)
{
	const struct host *h = k->all->host;
	const struct object_table *t = h->attach.table;

	if (!(r->flags & SESSION_FLAG_STAGED))
		return k->staged ? -1 : h->attach.store_fd;
	return t && t->slot[r->slot].generation == r->generation
		       ? staging_memory_fd(&h->staging, r->slot)
		       : -1;
}

/* The descriptors that go with a reply; returns how many, or -1. Those that ATTACH opens are the
 * caller's to close. */
static int answers_fds(const struct client *k, const struct session_reply *r, uint16_t op,
		       int fds[FDS_MAX])
{
	const struct attach *a = &k->all->host->attach;

	if (op == SESSION_CREATE) {
		fds[0] = answers_created(k, r);
		return fds[0] < 0 ? -1 : 1;
	}
	if (op != SESSION_ATTACH)
		return 0;
	fds[0] = answers_read_only(a->store_fd);
	fds[1] = answers_read_only(a->table_fd);
	answers_mark(a, fds[1], k->birth);
	fds[2] = k->pins_fd;
	if (fds[0] >= 0 && fds[1] >= 0)
		return 3;
	log_error("cannot share the store with a client (%s): raise the limit of open files",
		  strerror(errno));
	return -1;
}

/* Instead of the place that a creation had. */
static struct session_reply answers_gone(const struct session_reply *r)
{
	return (struct session_reply){
		.magic = SESSION_MAGIC,
		.op = r->op,
		.seq = r->seq,
		.status = -ESTALE,
		.text = "the object was deleted while it was created: create it again"};
}

static ssize_t answers_send(const struct client *k, const void *bytes, size_t length, uint16_t op)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	struct session_reply gone;
	int fds[FDS_MAX] = {-1, -1, -1};
	int count = answers_fds(k, bytes, op, fds);
	ssize_t sent = -1;

	if (count < 0 && op == SESSION_CREATE) {
		gone = answers_gone(bytes);
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

/* Whether one more may wait until the client reads. */
static bool answers_room(const struct client *k)
{
	return k->queued < QUEUE_MAX ||
	       (k->queued < QUEUE_WAITS_MAX && k->all->queued < QUEUE_ALL_MAX);
}

static void answers_queue(struct client *k, const void *bytes, size_t length, uint16_t op)
{
	struct packet *p = answers_room(k) ? malloc(sizeof(*p) + length) : NULL;

	if (!p) {
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
	k->all->queued++;
	if (k->queued++ == 0)
		clients_watch(k);
}

bool answers_reply(struct clients *c, uint32_t session, const struct session_reply *r,
		   const void *tail, uint32_t tail_bytes)
{
	union {
		struct session_reply reply;
		uint8_t bytes[sizeof(struct session_reply) + sizeof(union session_item)];
	} packet;
	struct client *k = session < c->table_size ? c->table[session] : NULL;
	bool fds = r->status == 0 && (r->op == SESSION_ATTACH || r->op == SESSION_CREATE);
	size_t length = sizeof(*r) + tail_bytes;

	if (!k || k->failed || length > sizeof(packet))
		return true;
	packet.reply = *r;
	if (tail_bytes > 0)
		memcpy(packet.bytes + sizeof(*r), tail, tail_bytes);
	if (k->queued == 0) {
		if (answers_send(k, &packet, length, fds ? r->op : 0) >= 0)
			return true;
		if (errno != EAGAIN && errno != EINTR) {
			clients_fail(k);
			return true;
		}
	}
	answers_queue(k, &packet, length, fds ? r->op : 0);
	return k->queued < QUEUE_LONG;
}

void answers_flush(struct client *k)
{
	while (k->first) {
		struct packet *p = k->first;

		if (answers_send(k, p->bytes, p->length, p->op) < 0) {
			if (errno != EAGAIN && errno != EINTR)
				clients_fail(k);
			return;
		}
		k->first = p->next;
		k->queued--;
		k->all->queued--;
		free(p);
	}
	k->last = &k->first;
	clients_watch(k);
	control_session_writable(k->all->host->core, k->session, host_now_ns());
}

void answers_forget(struct client *k)
{
	while (k->first) {
		struct packet *p = k->first;

		k->first = p->next;
		k->all->queued--;
		free(p);
	}
}
