/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a connection to the node and taking leave. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "error.h"
#include "queue/queue.h"
#include "link/rejoin.h"

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

static void open_free(sar *s)
{
	windows_close(&s->windows, s->fork_guard && *s->fork_guard != 0);
	if (s->fork_guard)
		munmap(s->fork_guard, (size_t)sysconf(_SC_PAGESIZE));
	while (s->lost) {
		struct handle_store *lost = s->lost;
		s->lost = lost->next;
		map_close(&lost->map);
		free(lost);
	}
	map_close(&s->map);
	kept_fini(&s->kept);
	reduces_fini(&s->reduces);
	leases_fini(&s->leases);
	free(s->path);
	free(s);
}

int sar_open(const char *path, sar **out)
{
	if (!out)
		return error_set(-EINVAL, "sar_open: no place for the handle");
	if (!path)
		path = getenv("SARISSA_SOCKET");
	if (!path || !*path)
		path = "/run/sarissa/control.sock";
	sar *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, "out of memory");
	pthread_mutex_init(&s->joining, NULL);
	pthread_mutex_init(&s->reduces.lock, NULL);
	pthread_mutex_init(&s->kept.lock, NULL);
	pthread_mutex_init(&s->queues_lock, NULL);
	pthread_mutex_init(&s->leases.lock, NULL);
	pthread_mutex_init(&s->windows.lock, NULL);
	s->path = strdup(path);
	int r = s->path ? open_guard(s) : error_set(-ENOMEM, "out of memory");
	if (r == 0)
		r = rejoin_first(s);
	if (r < 0) {
		open_free(s);
		return r;
	}
	*out = s;
	return 0;
}

void sar_end_waits(sar *s)
{
	if (*s->fork_guard != 0) /* else a thread that does not exist here may hold the lock */
		mux_end_waits(&s->mux);
}

void sar_close(sar *s)
{
	if (!s)
		return;
	/* In a forked child pins and creations are the parent's, and locks may be held, or calls
	 * waited for, by threads that do not exist here: only memory and descriptor go. */
	if (*s->fork_guard != 0) {
		joiner_stop(s);
		for (uint32_t i = 0; i < SESSION_PINS; i++)
			pins_clear(&s->pins, i);
		mux_fini(&s->mux);
	} else {
		s->map.table = NULL; /* not inherited: what lies there now is not ours */
		close(s->mux.fd);
		close(s->mux.wake_fd);
	}
	open_free(s);
}
