/* SPDX-License-Identifier: BSD-3-Clause */
#include "mux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "queue/deadline.h"
#include "api/error.h"
#include "internal/program/standard_fds.h"
#include "interrupt.h"

enum {
	MUX_BUCKETS = 64,  /* at first */
	MUX_EVENTS = 1024, /* of one WATCH that nobody has taken: then they are dropped */
};

/* One packet from the peer, with room to see that a longer one was cut. */
struct mux_packet {
	struct session_reply reply;
	union session_item item;
	size_t bytes;
	int fd[MUX_FDS_MAX];
	unsigned fds;
};

union mux_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * (MUX_FDS_MAX + 1))];
};

int mux_init(struct mux *m, int fd,
	     void (*late)(void *owner, uint16_t op, uint32_t pin, struct mux_result *result),
	     void *owner)
{
	int wake_fd = standard_fds_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (wake_fd < 0)
		return -errno;
	*m = (struct mux){.fd = fd,
			  .wake_fd = wake_fd,
			  .bucket = calloc(MUX_BUCKETS, sizeof(*m->bucket)),
			  .buckets = MUX_BUCKETS,
			  .late = late,
			  .owner = owner};
	if (!m->bucket) {
		close(wake_fd);
		return -ENOMEM;
	}
	pthread_mutex_init(&m->lock, NULL);
	return 0;
}

static void mux_close_fds(int *fd, unsigned *fds)
{
	while (*fds > 0)
		close(fd[--*fds]);
}

void mux_result_free(struct mux_result *result)
{
	mux_close_fds(result->fd, &result->fds);
	free(result->items);
	result->items = NULL;
}

static struct mux_call **mux_bucket(const struct mux *m, uint32_t seq)
{
	return &m->bucket[seq & (m->buckets - 1)];
}

/* Under lock. Twice as many buckets; without memory they stay as they are. */
static void mux_grow(struct mux *m)
{
	struct mux_call **before = m->bucket;
	uint32_t count = m->buckets;
	struct mux_call **bucket = calloc(2 * (size_t)count, sizeof(*bucket));
	if (!bucket)
		return;
	m->bucket = bucket;
	m->buckets = 2 * count;
	for (uint32_t i = 0; i < count; i++) {
		for (struct mux_call *call = before[i], *next; call; call = next) {
			struct mux_call **at = mux_bucket(m, call->seq);
			next = call->next;
			call->next = *at;
			*at = call;
		}
	}
	free(before);
}

/* Under lock: gives it a number, by which its answer finds it. */
static void mux_link(struct mux *m, struct mux_call *call)
{
	if (++m->last_seq == 0) /* 0 is for mux_post */
		++m->last_seq;
	call->seq = m->last_seq;
	call->epoch = atomic_load(&m->epoch);
	if (m->calls++ >= m->buckets && m->buckets <= UINT32_MAX / 2)
		mux_grow(m);
	struct mux_call **at = mux_bucket(m, call->seq);
	call->next = *at;
	*at = call;
}

/* Under lock. Does nothing when it is not linked. */
static void mux_unlink(struct mux *m, struct mux_call *call)
{
	for (struct mux_call **at = mux_bucket(m, call->seq); *at; at = &(*at)->next) {
		if (*at != call)
			continue;
		*at = call->next;
		m->calls--;
		return;
	}
}

void mux_fini(struct mux *m)
{
	close(m->fd);
	close(m->wake_fd);
	for (uint32_t i = 0; i < m->buckets; i++) {
		while (m->bucket[i]) {
			struct mux_call *call = m->bucket[i];
			m->bucket[i] = call->next;
			mux_result_free(&call->result);
			free(call);
		}
	}
	free(m->bucket);
	pthread_mutex_destroy(&m->lock);
}

/* Whether it is not to wait any more. */
static bool mux_waiter_ended(const struct mux *m, const struct mux_waiter *w)
{
	return w->waits && atomic_load_explicit(&m->ended, memory_order_relaxed);
}

/* Under lock. */
static void mux_wake(struct mux_waiter *w)
{
	w->woken = true;
	pthread_cond_signal(&w->wake);
}

/* Under lock: ends a call, and wakes who waits for it. */
static void mux_end(struct mux *m, struct mux_call *call)
{
	mux_unlink(m, call);
	call->done = true;
	if (call->waiter)
		mux_wake(call->waiter);
	if (call->ended) {
		call->ended(call);
	} else if (call->abandoned) {
		m->late(m->owner, call->op, call->pin, &call->result);
		mux_result_free(&call->result);
		free(call);
	}
}

/* Under lock. */
static void mux_watch_set(struct mux *m, struct mux_watch *watch, bool inside)
{
	struct epoll_event event = {.events = EPOLLIN | (watch->writable ? EPOLLOUT : 0)};
	int op = !inside ? EPOLL_CTL_DEL : watch->inside ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (inside || watch->inside)
		epoll_ctl(watch->epoll_fd, op, m->fd, &event);
	watch->inside = inside;
}

/* Under lock: the connection is over, everybody learns it. */
static void mux_fail(struct mux *m, int error)
{
	int none = 0;
	atomic_compare_exchange_strong(&m->error, &none, error);
	for (uint32_t i = 0; i < m->buckets; i++) {
		while (m->bucket[i]) {
			struct mux_call *call = m->bucket[i];
			call->error = error;
			call->result.reply.status = error;
			mux_end(m, call);
		}
	}
	for (struct mux_watch *watch = m->watches; watch; watch = watch->next) {
		mux_watch_set(m, watch, false); /* else it would be readable for ever */
		watch->changed(watch);
	}
}

void mux_break(struct mux *m, int error)
{
	pthread_mutex_lock(&m->lock);
	mux_fail(m, error);
	shutdown(m->fd, SHUT_RDWR); /* wakes the reading thread */
	pthread_mutex_unlock(&m->lock);
}

void mux_end_waits(struct mux *m)
{
	pthread_mutex_lock(&m->lock);
	atomic_store(&m->ended, true);
	eventfd_write(m->wake_fd, 1); /* wakes polling threads */
	for (struct mux_waiter *w = m->sleepers; w; w = w->after)
		pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&m->lock);
}

/* The descriptor keeps its number: a reader that is still on its way out finds the new socket
 * there, and reads nothing but answers. */
int mux_reopen(struct mux *m, int fd)
{
	pthread_mutex_lock(&m->lock);
	int r = dup3(fd, m->fd, O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0) {
		atomic_fetch_add(&m->epoch, 1);
		atomic_store(&m->error, 0);
	}
	for (struct mux_watch *watch = m->watches; r == 0 && watch; watch = watch->next) {
		mux_watch_set(m, watch, true);
		watch->changed(watch);
	}
	pthread_mutex_unlock(&m->lock);
	close(fd);
	return r;
}

/* Under lock: a sleeping thread may become the reader. */
static void mux_hand_over(struct mux *m)
{
	for (struct mux_waiter *w = m->sleepers; w; w = w->after) {
		if (!w->woken) {
			pthread_cond_signal(&w->wake);
			return;
		}
	}
}

static void mux_take_fds(struct msghdr *message, struct mux_packet *packet)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (packet->fds < MUX_FDS_MAX)
				packet->fd[packet->fds++] = fd;
			else
				close(fd);
		}
	}
}

/* Reads one packet. 0; -EAGAIN when there is none; -ENOTCONN; -EPROTO when it is not a reply. */
static int mux_receive(struct mux *m, struct mux_packet *packet)
{
	union mux_control control;
	struct iovec parts[2] = {{&packet->reply, sizeof(packet->reply)},
				 {&packet->item, sizeof(packet->item)}};
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = 2,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	packet->fds = 0;
	ssize_t n = recvmsg(m->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -ENOTCONN;
	mux_take_fds(&message, packet);
	packet->bytes = (size_t)n;
	if (n == 0) { /* an empty packet may have some, too */
		mux_close_fds(packet->fd, &packet->fds);
		return -ENOTCONN;
	}
	if ((size_t)n < sizeof(packet->reply) || packet->reply.magic != SESSION_MAGIC ||
	    (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		mux_close_fds(packet->fd, &packet->fds);
		return -EPROTO;
	}
	return 0;
}

/* Nobody has taken the events of a WATCH for long: that some are missing stands in their place. */
static void mux_drop_events(struct mux_result *result)
{
	struct session_object missed = {.flags = SESSION_EVENT_MISSED * SESSION_OBJECT_EVENT};
	memcpy(result->items, &missed, sizeof(missed));
	result->items_count = 1;
}

static int mux_add_item(struct mux_result *result, const struct mux_packet *packet)
{
	if (result->items_count == result->items_room) {
		size_t room = result->items_room ? result->items_room * 2 : 4;
		void *items = realloc(result->items, room * result->item_bytes);
		if (!items)
			return -ENOMEM;
		result->items = items;
		result->items_room = room;
	}
	memcpy((uint8_t *)result->items + result->items_count++ * result->item_bytes, &packet->item,
	       result->item_bytes);
	return 0;
}

/* Under lock. 0, or -EPROTO when the packet cannot be the answer to this call. */
static int mux_answer(struct mux_call *call, struct mux_packet *packet)
{
	struct mux_result *result = &call->result;
	size_t extra = packet->bytes - sizeof(packet->reply);
	if (packet->reply.op != call->op || (extra != 0 && extra != result->item_bytes))
		return -EPROTO;
	result->reply = packet->reply;
	if (call->more && result->items_count >= MUX_EVENTS)
		mux_drop_events(result);
	if (extra != 0 && call->error == 0)
		call->error = mux_add_item(result, packet);
	mux_close_fds(result->fd, &result->fds);
	memcpy(result->fd, packet->fd, sizeof(packet->fd));
	result->fds = packet->fds;
	packet->fds = 0;
	return 0;
}

/* Under lock. A sequence number that nobody waits for belongs to mux_post or is ignored. */
static void mux_dispatch(struct mux *m, struct mux_packet *packet)
{
	struct mux_call *call = *mux_bucket(m, packet->reply.seq);
	while (call && call->seq != packet->reply.seq)
		call = call->next;
	int r = call ? mux_answer(call, packet) : 0;
	mux_close_fds(packet->fd, &packet->fds);
	if (r < 0)
		mux_fail(m, -EPROTO);
	else if (call && !(packet->reply.flags & SESSION_FLAG_MORE))
		mux_end(m, call);
	else if (call && call->more)
		call->more(call);
}

/* Until the socket is ready, the time is over, or nobody is to wait any more. */
static void mux_poll(struct mux *m, const struct mux_waiter *w, short events, int64_t deadline_ns)
{
	struct pollfd on[2] = {{.fd = m->fd, .events = events},
			       {.fd = m->wake_fd, .events = POLLIN}};
	poll(on, w->waits ? 2 : 1, deadline_poll_ms(interrupt_until(deadline_ns)));
}

/* Under lock, which is given up while it reads: waits for a packet, takes all that are there. */
static void mux_read(struct mux *m, const struct mux_waiter *own, int64_t deadline_ns)
{
	struct mux_packet packet;
	uint32_t epoch = atomic_load(&m->epoch);
	m->reading = true;
	pthread_mutex_unlock(&m->lock);
	mux_poll(m, own, POLLIN, deadline_ns);
	int r = mux_receive(m, &packet);
	pthread_mutex_lock(&m->lock);
	while (r == 0) {
		mux_dispatch(m, &packet);
		if (own->woken)
			break;
		r = mux_receive(m, &packet);
	}
	if (r < 0 && r != -EAGAIN && epoch == atomic_load(&m->epoch))
		mux_fail(m, r);
	m->reading = false;
}

/* Under lock. */
static void mux_sleep(struct mux *m, struct mux_waiter *w, int64_t deadline_ns)
{
	if (mux_waiter_ended(m, w)) /* woken already, or never */
		return;
	w->before = NULL;
	w->after = m->sleepers;
	if (m->sleepers)
		m->sleepers->before = w;
	m->sleepers = w;
	deadline_ns = interrupt_until(deadline_ns);
	if (deadline_ns == DEADLINE_NEVER) {
		pthread_cond_wait(&w->wake, &m->lock);
	} else {
		struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
		pthread_cond_timedwait(&w->wake, &m->lock, &until);
	}
	if (w->before)
		w->before->after = w->after;
	else
		m->sleepers = w->after;
	if (w->after)
		w->after->before = w->before;
}

static void mux_add_fd(struct msghdr *message, union mux_control *control, int fd)
{
	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(sizeof(fd));
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

/* One try. 0; -EAGAIN: the socket is full; -ENOTCONN. */
static int mux_send(const struct mux *m, struct session_request *request,
		    const struct mux_tail *tail)
{
	struct iovec parts[2] = {{request, sizeof(*request)}, {0}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	union mux_control control = {0};
	if (tail)
		parts[1] = tail->bytes;
	if (tail && tail->fd >= 0)
		mux_add_fd(&message, &control, tail->fd);
	ssize_t n = sendmsg(m->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EPERM && message.msg_controllen > 0) {
		message.msg_controllen = 0; /* control expects no memory any more */
		n = sendmsg(m->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (n == (ssize_t)(parts[0].iov_len + parts[1].iov_len))
		return 0;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : -ENOTCONN;
}

/* Under lock, which is given up while it asks. Another thread reads meanwhile. */
static bool mux_interrupted(struct mux *m)
{
	if (!interrupt_due())
		return interrupt_seen();
	if (!m->reading)
		mux_hand_over(m);
	pthread_mutex_unlock(&m->lock);
	bool wanted = interrupt_wanted();
	pthread_mutex_lock(&m->lock);
	return wanted;
}

void mux_waiter_init(struct mux_waiter *w)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void mux_waiter_fini(struct mux *m, struct mux_waiter *w)
{
	pthread_mutex_lock(&m->lock); /* who ends its last call may still be in mux_end */
	pthread_mutex_unlock(&m->lock);
	pthread_cond_destroy(&w->wake);
}

bool mux_wait(struct mux *m, struct mux_waiter *w, int64_t deadline_ns)
{
	pthread_mutex_lock(&m->lock);
	while (!w->woken) { /* what is there is read even when it is found late */
		if (m->reading)
			mux_sleep(m, w, deadline_ns);
		else
			mux_read(m, w, deadline_ns);
		if (!w->woken && (mux_waiter_ended(m, w) || deadline_left(deadline_ns) == 0 ||
				  mux_interrupted(m)))
			break;
	}
	bool woken = w->woken;
	w->woken = false;
	if (!m->reading)
		mux_hand_over(m);
	pthread_mutex_unlock(&m->lock);
	return woken;
}

void mux_wait_room(struct mux *m, const struct mux_waiter *w, int64_t deadline_ns)
{
	mux_poll(m, w, POLLOUT, deadline_ns);
}

static int mux_words(int error)
{
	switch (error) {
	case -ENOTCONN:
		return error_set(error, "no control on this node: start sarissa-control");
	case -EPROTO:
		return error_set(error, "the node's control process sent an answer that makes no "
					"sense: use libraries and node of one version");
	case -ETIMEDOUT:
		return error_set(error, "the node's control process does not answer in time: see "
					"whether it runs with 'sarissa doctor'");
	case -EINTR:
		return error_set(error, INTERRUPT_TEXT);
	case -ENOMEM:
		return error_set(error, "out of memory");
	default:
		return error;
	}
}

int mux_call(struct mux *m, struct session_request *request, const struct mux_tail *tail,
	     size_t item_bytes, int64_t deadline_ns, struct mux_result *out)
{
	struct mux_waiter w = {.waits = false};
	struct mux_call call = {.waiter = &w};
	int r;
	mux_waiter_init(&w);
	while ((r = mux_submit(m, &call, request, tail, item_bytes)) == -EAGAIN &&
	       deadline_left(deadline_ns) > 0 && !interrupt_wanted())
		mux_wait_room(m, &w, deadline_ns);
	if (r == 0 && !mux_wait(m, &w, deadline_ns) && mux_drop(m, &call))
		r = -EAGAIN;
	if (r == -EAGAIN)
		r = interrupt_seen() ? -EINTR : -ETIMEDOUT;
	if (r == 0)
		r = call.error;
	if (r < 0)
		mux_result_free(&call.result);
	*out = r < 0 ? (struct mux_result){0} : call.result;
	mux_waiter_fini(m, &w);
	return mux_words(r);
}

int mux_post(struct mux *m, struct session_request *request)
{
	request->magic = SESSION_MAGIC;
	request->version = SESSION_VERSION;
	request->seq = 0;
	ssize_t n = send(m->fd, request, sizeof(*request), MSG_DONTWAIT | MSG_NOSIGNAL);
	return n == (ssize_t)sizeof(*request) ? 0 : -errno;
}

int mux_submit(struct mux *m, struct mux_call *call, struct session_request *request,
	       const struct mux_tail *tail, size_t item_bytes)
{
	request->magic = SESSION_MAGIC;
	request->version = SESSION_VERSION;
	call->op = request->op;
	call->pin = request->pin;
	call->result.item_bytes = item_bytes;
	pthread_mutex_lock(&m->lock);
	int r = mux_error(m) ? -ENOTCONN : 0;
	if (r == 0) {
		mux_link(m, call);
		request->seq = call->seq;
		r = mux_send(m, request, tail);
		if (r < 0)
			mux_unlink(m, call);
		if (r == -ENOTCONN)
			mux_fail(m, r);
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* Under lock: in the place of one whose sender has left. Without memory its pin is lost. */
static void mux_stand_in(struct mux *m, const struct mux_call *call)
{
	struct mux_call *late = calloc(1, sizeof(*late));
	if (!late)
		return;
	struct mux_call **at = mux_bucket(m, call->seq);
	*late = (struct mux_call){.next = *at,
				  .op = call->op,
				  .pin = call->pin,
				  .seq = call->seq,
				  .epoch = call->epoch,
				  .abandoned = true};
	*at = late;
	m->calls++;
}

bool mux_drop(struct mux *m, struct mux_call *call)
{
	pthread_mutex_lock(&m->lock);
	bool open = !call->done;
	if (open) {
		mux_unlink(m, call);
		call->done = true;
		if (call->op == SESSION_CREATE || call->op == SESSION_GET_RANGES)
			mux_stand_in(m, call);
	}
	pthread_mutex_unlock(&m->lock);
	return open;
}

size_t mux_items(struct mux *m, struct mux_call *call, void **items)
{
	pthread_mutex_lock(&m->lock);
	size_t count = call->result.items_count;
	*items = call->result.items;
	call->result.items = NULL;
	call->result.items_count = call->result.items_room = 0;
	pthread_mutex_unlock(&m->lock);
	return count;
}

void mux_pump(struct mux *m, unsigned packets)
{
	struct mux_packet packet;
	int r = 0;
	pthread_mutex_lock(&m->lock);
	if (!m->reading && mux_error(m) == 0) {
		for (unsigned i = 0; r == 0 && i < packets && mux_error(m) == 0; i++) {
			r = mux_receive(m, &packet);
			if (r == 0)
				mux_dispatch(m, &packet);
		}
		if (r < 0 && r != -EAGAIN)
			mux_fail(m, r);
	}
	pthread_mutex_unlock(&m->lock);
}

void mux_watch(struct mux *m, struct mux_watch *watch)
{
	pthread_mutex_lock(&m->lock);
	watch->next = m->watches;
	m->watches = watch;
	if (mux_error(m) == 0)
		mux_watch_set(m, watch, true);
	pthread_mutex_unlock(&m->lock);
}

void mux_unwatch(struct mux *m, struct mux_watch *watch)
{
	pthread_mutex_lock(&m->lock);
	for (struct mux_watch **at = &m->watches; *at; at = &(*at)->next) {
		if (*at == watch) {
			*at = watch->next;
			break;
		}
	}
	mux_watch_set(m, watch, false);
	pthread_mutex_unlock(&m->lock);
}

void mux_watch_writable(struct mux *m, struct mux_watch *watch, bool writable)
{
	pthread_mutex_lock(&m->lock);
	if (watch->writable != writable) {
		watch->writable = writable;
		if (watch->inside)
			mux_watch_set(m, watch, true);
	}
	pthread_mutex_unlock(&m->lock);
}
