/* SPDX-License-Identifier: BSD-3-Clause */
#include "rejoin.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "queue/deadline.h"
#include "api/error.h"
#include "internal/program/standard_fds.h"
#include "interrupt.h"
#include "local_hint.h"

static const int64_t rejoin_attach_ns = 5000000000, rejoin_least_ns = 1000000000;
static const int64_t rejoin_pause_ns = 10000000, rejoin_pause_max_ns = 100000000;

/* ---- one control ---------------------------------------------------------------------------- */

/* Who may use the node, and what root does about it. */
static int rejoin_no_access(const char *path)
{
	char names[1024];
	struct stat s;
	struct group entry, *group = NULL;

	if (stat(path, &s) == 0 && (s.st_mode & S_IWGRP) && s.st_gid != 0)
		getgrgid_r(s.st_gid, &entry, names, sizeof(names), &group);
	if (group)
		return error_set(-EACCES,
				 "not allowed to use %s: root adds you to its group with 'adduser "
				 "USER %s', then log in again",
				 path, group->gr_name);
	return error_set(-EACCES,
			 "not allowed to use %s: its owner starts sarissa-control as a user with a "
			 "group of yours, or with --socket-mode 0666",
			 path);
}

static int rejoin_refused(const char *path, int error)
{
	char hint[256] = "";
	if (error == ENOENT || error == ECONNREFUSED)
		local_hint(path, hint, sizeof(hint));
	if (*hint)
		return error_set(-ECONNREFUSED, "no node answers at %s: %s", path, hint);
	if (error == ENOENT || error == ECONNREFUSED)
		return error_set(-ECONNREFUSED,
				 "no node answers at %s: start sarissa-control, or set "
				 "SARISSA_SOCKET to its socket",
				 path);
	if (error == EACCES)
		return rejoin_no_access(path);
	if (error == EAGAIN)
		return error_set(-ETIMEDOUT,
				 "the node at %s accepts no connection: see whether "
				 "it runs with 'sarissa doctor'",
				 path);
	return error_set(-error, "cannot connect to %s: %s", path, strerrordesc_np(error));
}

static int rejoin_connect(const char *path, int *out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(-EINVAL, "socket path %.100s... is too long: use a shorter one",
				 path);
	strcpy(address.sun_path, path);
	int fd = standard_fds_above(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return error_set(-errno, "cannot make a socket: %s", strerrordesc_np(errno));
	struct timeval limit = {.tv_sec = rejoin_attach_ns / 1000000000};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	int error;
	do
		error = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
	while (error == EINTR && !interrupt_wanted());
	if (error == 0) {
		*out = fd;
		return 0;
	}
	close(fd);
	return rejoin_refused(path, error);
}

/* A node's offer: its socket, its memory, and the epoch of its control. */
struct rejoin {
	struct mux mux;
	struct map map;
	uint64_t epoch;
	bool brings; /* it waits for the memory of what we were creating */
};

static void rejoin_late(void *owner, uint16_t op, uint32_t pin, struct mux_result *result)
{
}

/* Takes fd over, whatever becomes of it. */
static int rejoin_mux(struct mux *m, int fd,
		      void (*late)(void *owner, uint16_t op, uint32_t pin,
				   struct mux_result *result),
		      void *owner)
{
	int r = mux_init(m, fd, late, owner);
	if (r == 0)
		return 0;
	close(fd);
	return error_set(r, "cannot make an event descriptor: %s", strerrordesc_np(-r));
}

static void rejoin_end(struct rejoin *j)
{
	mux_fini(&j->mux);
	map_close(&j->map);
}

static int rejoin_map(struct rejoin *j, const struct mux_result *result)
{
	const struct session_reply *reply = &result->reply;
	if (reply->status != 0)
		return error_set_text(reply->status < 0 ? reply->status : -EPROTO, reply->text,
				      sizeof(reply->text));
	if (result->fds != 3)
		return error_set(-EPROTO, "the node sent no store: use libraries and node of one "
					  "version");
	j->epoch = reply->generation;
	j->brings = reply->flags & SESSION_FLAG_BRING;
	return map_open(&j->map, result->fd, reply->store_bytes, reply->table_bytes);
}

static int rejoin_attach(const char *path, int64_t deadline_ns, struct rejoin *j)
{
	int fd = -1;
	int r = rejoin_connect(path, &fd);
	*j = (struct rejoin){0};
	if (r < 0)
		return r;
	r = rejoin_mux(&j->mux, fd, rejoin_late, NULL);
	if (r < 0)
		return r;
	struct session_request request = handle_request(SESSION_ATTACH, NULL);
	struct mux_result result;
	r = mux_call(&j->mux, &request, NULL, 0, deadline_ns, &result);
	if (r == 0)
		r = rejoin_map(j, &result);
	mux_result_free(&result);
	if (r < 0)
		rejoin_end(j);
	return r;
}

/* The socket, out of the mux that the attach went through. */
static int rejoin_take_socket(struct rejoin *j)
{
	int fd = j->mux.fd;
	j->mux.fd = -1;
	return fd;
}

/* Gives back the pins and buffers of a late answer. */
static void rejoin_give_back(void *owner, uint16_t op, uint32_t pin, struct mux_result *result)
{
	struct sar *s = owner;
	if (op == SESSION_CREATE && result->reply.status == 0) {
		struct session_request abort_request = handle_request(SESSION_ABORT, NULL);
		abort_request.slot = result->reply.slot;
		abort_request.generation = result->reply.generation;
		mux_post(&s->mux, &abort_request);
	}
	if (pin != SESSION_PIN_NONE)
		handle_give_pin(s, pin);
}

int rejoin_first(struct sar *s)
{
	struct rejoin j;
	int r = rejoin_attach(s->path, deadline_after(rejoin_attach_ns), &j);
	if (r < 0)
		return r;
	int fd = rejoin_take_socket(&j);
	s->map = j.map;
	j.map = (struct map){.pins = NULL};
	rejoin_end(&j);
	s->pins.word = s->map.pins;
	s->control_epoch = j.epoch;
	return rejoin_mux(&s->mux, fd, rejoin_give_back, s);
}

/* ---- another control ------------------------------------------------------------------------ */

struct rejoin_change {
	struct sar *s;
	struct rejoin *j;
	struct handle_store *lost; /* NULL: it is the same store */
	int error;
};

/* Nobody looks at table, store and epoch but to look again: the turn is odd. */
static void rejoin_change(void *arg)
{
	struct rejoin_change *c = arg;
	struct sar *s = c->s;
	c->error = map_replace_table(&s->map, &c->j->map);
	if (c->error < 0)
		return;
	atomic_store(&s->control_epoch, c->j->epoch);
	if (!c->lost)
		return;
	c->lost->map = (struct map){.store = s->map.store,
				    .store_bytes = s->map.store_bytes,
				    .align = s->map.align,
				    .fd = s->map.fd};
	s->map.store = c->j->map.store;
	s->map.store_bytes = c->j->map.store_bytes;
	s->map.align = c->j->map.align;
	s->map.fd = c->j->map.fd;
	s->map.device = c->j->map.device;
	s->map.inode = c->j->map.inode;
	c->j->map.store = NULL;
	c->lost->next = s->lost;
	s->lost = c->lost;
	atomic_fetch_add(&s->stores, 1);
}

static int rejoin_swap(struct sar *s, struct rejoin *j)
{
	struct rejoin_change c = {.s = s, .j = j};
	bool same = map_same(&s->map, &j->map);
	if (!same && !(c.lost = calloc(1, sizeof(*c.lost))))
		return -ENOMEM;
	int r = pins_replace(&s->pins, j->map.pins, same, rejoin_change, &c);
	if (r == 0) {
		j->map.pins = NULL;
		r = c.error;
	}
	if (r < 0)
		free(c.lost);
	return r;
}

/* The next call about an object that the node refuses finds it lost. */
static int rejoin_resume(struct sar *s, struct rejoin *j)
{
	struct mux *m = &j->mux;
	for (uint32_t i = 0; i < SESSION_PINS; i++) {
		struct session_request request = handle_request(SESSION_RESUME, NULL);
		struct mux_result result;
		if (!(atomic_load(&s->writing[i / 64]) >> i % 64 & 1))
			continue;
		request.pin = i;
		struct mux_tail tail = {.fd = j->brings ? kept_copy(&s->kept, i) : -1};
		int r = mux_call(m, &request, &tail, 0, deadline_after(rejoin_attach_ns), &result);
		mux_result_free(&result);
		if (tail.fd >= 0)
			close(tail.fd);
		if (r < 0)
			return r;
	}
	int r = leases_resume(&s->leases, m, deadline_after(rejoin_attach_ns));
	return r < 0 ? r : reduces_resume(&s->reduces, m, deadline_after(rejoin_attach_ns));
}

/* Under joining. */
static int rejoin_once(struct sar *s, int64_t until_ns)
{
	int64_t least_ns = deadline_after(rejoin_least_ns);
	int64_t most_ns = deadline_after(rejoin_attach_ns);
	struct rejoin j;
	mux_break(&s->mux, -ENOTCONN);
	s->tried_ns = deadline_now();
	if (until_ns < least_ns)
		until_ns = least_ns;
	int r = rejoin_attach(s->path, until_ns < most_ns ? until_ns : most_ns, &j);
	if (r < 0)
		return r;
	r = rejoin_swap(s, &j);
	if (r < 0)
		error_set(r, "cannot take over the node's memory: %s", strerrordesc_np(-r));
	else
		r = rejoin_resume(s, &j);
	if (r == 0)
		r = mux_reopen(&s->mux, rejoin_take_socket(&j));
	rejoin_end(&j);
	return r;
}

/* Whether another try may go better. */
static bool rejoin_may_pass(int error)
{
	return error != -EPROTO && error != -EPROTONOSUPPORT && error != -EINVAL && error != -EINTR;
}

static int rejoin_nobody(void)
{
	return error_set(-ENOTCONN, "no control on this node: %s", sar_error_detail());
}

/* One try in turn with other threads. */
static int rejoin_try(struct sar *s, int64_t until_ns)
{
	int64_t slice_ns = interrupt_until(until_ns);
	struct timespec until = {slice_ns / 1000000000, slice_ns % 1000000000};
	if (pthread_mutex_trylock(&s->joining) != 0 &&
	    pthread_mutex_clocklock(&s->joining, CLOCK_MONOTONIC, &until) != 0)
		return error_set(-ETIMEDOUT, "another thread still tries to reach it: wait longer");
	int r = handle_lost(s) ? rejoin_once(s, until_ns) : 0;
	pthread_mutex_unlock(&s->joining);
	return r;
}

int rejoin(struct sar *s, uint16_t op, int64_t until_ns)
{
	int64_t pause_ns = rejoin_pause_ns;
	for (;;) {
		int r = handle_check(s);
		if (r < 0)
			return r;
		if (mux_ended(&s->mux, op))
			return error_set(-ESHUTDOWN, MUX_ENDED_TEXT);
		if (!handle_lost(s))
			return 0;
		if (mux_error(&s->mux) == -EPROTO)
			return error_set(-EPROTO, "the node's control process has sent answers "
						  "that make no sense: use libraries and node of "
						  "one version");
		r = rejoin_try(s, until_ns);
		if (r == 0)
			continue;
		if (!rejoin_may_pass(r))
			return r;
		if (interrupt_wanted())
			return error_set(-EINTR, INTERRUPT_TEXT);
		int64_t left_ns = deadline_left(until_ns);
		if (left_ns == 0)
			return rejoin_nobody();
		if (pause_ns > left_ns)
			pause_ns = left_ns;
		nanosleep(&(struct timespec){0, pause_ns}, NULL);
		if (pause_ns < rejoin_pause_max_ns)
			pause_ns *= 2;
	}
}

void rejoin_nudge(struct sar *s)
{
	if (mux_error(&s->mux) == -EPROTO || pthread_mutex_trylock(&s->joining) != 0)
		return;
	if (handle_replaced(s) ||
	    (handle_lost(s) && deadline_now() - s->tried_ns > rejoin_pause_ns))
		rejoin_once(s, 0);
	pthread_mutex_unlock(&s->joining);
}
