/* SPDX-License-Identifier: BSD-3-Clause */
#include "kept.h"

#include <fcntl.h>
#include <unistd.h>

/* Returns what was there. */
static int kept_set(struct kept *k, uint32_t pin, int fd)
{
	pthread_mutex_lock(&k->lock);
	int before = k->fd[pin] - 1;
	k->fd[pin] = fd + 1;
	pthread_mutex_unlock(&k->lock);
	return before;
}

void kept_add(struct kept *k, uint32_t pin, int fd)
{
	kept_set(k, pin, fd);
}

bool kept_has(struct kept *k, uint32_t pin)
{
	pthread_mutex_lock(&k->lock);
	bool has = k->fd[pin] > 0;
	pthread_mutex_unlock(&k->lock);
	return has;
}

void kept_close(struct kept *k, uint32_t pin)
{
	int fd = kept_set(k, pin, -1);
	if (fd >= 0)
		close(fd);
}

int kept_copy(struct kept *k, uint32_t pin)
{
	pthread_mutex_lock(&k->lock);
	int fd = k->fd[pin] - 1;
	if (fd >= 0)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&k->lock);
	return fd;
}

void kept_fini(struct kept *k)
{
	for (uint32_t i = 0; i < SESSION_PINS; i++)
		if (k->fd[i] > 0)
			close(k->fd[i] - 1);
}
