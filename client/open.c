/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to the node and taking leave. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "deadline.h"
#include "error.h"
#include "handle.h"

static const int64_t open_timeout_ns = 5000000000;

/* What a late answer has given us is given back. */
static void open_late(void *owner, uint16_t op, uint32_t pin, struct mux_result *result)
{
	struct sar *s = owner;
	if (op == SESSION_CREATE && result->reply.status == 0) {
		struct session_request abort_request = handle_request(SESSION_ABORT, NULL);
		abort_request.slot = result->reply.slot;
		abort_request.generation = result->reply.generation;
		mux_post(&s->mux, &abort_request);
	}
	if (pin != SESSION_PIN_NONE)
		pins_give(&s->pins, pin);
}

static int open_connect(const char *path, int *out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(-EINVAL, "socket path %.100s... is too long: use a shorter one",
				 path);
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(-errno, "cannot make a socket: %s", strerrordesc_np(errno));
	struct timeval limit = {.tv_sec = open_timeout_ns / 1000000000};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		*out = fd;
		return 0;
	}
	int error = errno;
	close(fd);
	if (error == ENOENT || error == ECONNREFUSED)
		return error_set(-ECONNREFUSED,
				 "no node answers at %s: start sarissa-control, or set "
				 "SARISSA_SOCKET to its socket",
				 path);
	if (error == EACCES)
		return error_set(-EACCES, "not allowed to use %s: ask for membership of its group",
				 path);
	if (error == EAGAIN)
		return error_set(-ETIMEDOUT,
				 "the node at %s accepts no connection: see whether "
				 "it runs with 'sarissa doctor'",
				 path);
	return error_set(-error, "cannot connect to %s: %s", path, strerrordesc_np(error));
}

static int open_guard(struct sar *s)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return error_set(-ENOMEM, "out of memory");
	s->fork_guard = page;
	*s->fork_guard = 1;
	if (madvise(page, bytes, MADV_WIPEONFORK) < 0)
		return error_set(-errno, "this kernel has no MADV_WIPEONFORK: use Linux 4.14 or "
					 "later");
	return 0;
}

static void open_unguard(struct sar *s)
{
	if (s->fork_guard)
		munmap(s->fork_guard, (size_t)sysconf(_SC_PAGESIZE));
}

static int open_attach(struct sar *s)
{
	struct session_request request = handle_request(SESSION_ATTACH, NULL);
	struct mux_result result;
	int r = mux_call(&s->mux, &request, NULL, 0, deadline_after(open_timeout_ns), &result);
	if (r < 0)
		return r;
	if (result.reply.status != 0)
		r = error_set_text(result.reply.status < 0 ? result.reply.status : -EPROTO,
				   result.reply.text, sizeof(result.reply.text));
	else if (result.fds != 3)
		r = error_set(-EPROTO, "the node sent no store: use libraries and node of one "
				       "version");
	else
		r = map_open(&s->map, result.fd, result.reply.store_bytes,
			     result.reply.table_bytes);
	mux_result_free(&result);
	if (r < 0)
		return r;
	s->pins.word = s->map.pins;
	s->control_epoch = atomic_load_explicit(&s->map.table->control_epoch, memory_order_relaxed);
	return 0;
}

int sar_open(const char *path, sar **out)
{
	if (!out)
		return error_set(-EINVAL, "sar_open: no place for the handle");
	if (!path)
		path = getenv("SARISSA_SOCKET");
	if (!path || !*path)
		path = "/run/sarissa/control.sock";
	int fd = -1;
	int r = open_connect(path, &fd);
	if (r < 0)
		return r;
	sar *s = calloc(1, sizeof(*s));
	if (!s || mux_init(&s->mux, fd, open_late, s) < 0) {
		close(fd);
		free(s);
		return error_set(-ENOMEM, "out of memory");
	}
	r = open_guard(s);
	if (r == 0)
		r = open_attach(s);
	if (r < 0) {
		sar_close(s);
		return r;
	}
	*out = s;
	return 0;
}

void sar_close(sar *s)
{
	if (!s)
		return;
	/* In a forked child pins and creations are the parent's, and the lock may be held by a
	 * thread that does not exist here: only memory and descriptor go. */
	bool ours = s->fork_guard && *s->fork_guard != 0;
	if (ours && s->pins.word)
		for (uint32_t i = 0; i < SESSION_PINS; i++)
			pins_clear(&s->pins, i);
	mux_fini(&s->mux);
	map_close(&s->map);
	open_unguard(s);
	free(s);
}
