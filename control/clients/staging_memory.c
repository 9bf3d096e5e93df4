/* SPDX-License-Identifier: BSD-3-Clause */
#include "staging_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW,
	CLOSE_BYTES = 1 << 20,	       /* larger memory is closed by closer.c */
	CLOSE_BEHIND_BYTES = 64 << 20, /* unless closer.c has so many bytes to close already */
};

int staging_memory_init(struct staging_memory *a, struct closer *closer, uint32_t slots)
{
	*a = (struct staging_memory){
		.brought = -1, .closer = closer, .fds = calloc(slots, sizeof(*a->fds))};
	return a->fds ? 0 : -ENOMEM;
}

int staging_memory_fd(const struct staging_memory *a, uint32_t slot)
{
	return a->fds[slot] - 1;
}

static int staging_memory_new(uint64_t bytes)
{
	int fd = memfd_create("sarissa-creation", MFD_CLOEXEC | MFD_ALLOW_SEALING), error;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

/* Only memory knows of seals. */
bool staging_memory_valid(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* The memory that came with the request, if it has that size; sealed, so that it keeps it. */
static int staging_memory_brought(struct staging_memory *a, uint64_t bytes)
{
	int fd = a->brought;
	struct stat s;

	if (fd < 0 || (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &s) < 0 ||
	    (uint64_t)s.st_size != bytes)
		return -EINVAL;
	a->brought = -1;
	return fd;
}

int staging_memory_make(struct staging_memory *a, uint32_t slot, uint64_t bytes, bool brought)
{
	int fd = brought ? staging_memory_brought(a, bytes) : staging_memory_new(bytes);

	if (fd < 0)
		return fd;
	a->fds[slot] = fd + 1;
	return 0;
}

int staging_memory_read(const struct staging_memory *a, uint32_t slot, uint64_t at, void *to,
			uint64_t bytes)
{
	while (bytes > 0) {
		ssize_t n = pread(staging_memory_fd(a, slot), to, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		to = (uint8_t *)to + n;
		at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

/* The last close frees the pages, and may be this one. There may be pages beyond its end. */
static void staging_memory_close(struct staging_memory *a, int fd)
{
	int64_t at_once = closer_behind(a->closer) ? CLOSE_BEHIND_BYTES : CLOSE_BYTES;
	struct stat s;

	if (fstat(fd, &s) == 0 && (int64_t)s.st_blocks * 512 <= at_once)
		close(fd);
	else
		closer_take(a->closer, fd, false);
}

void staging_memory_drop(struct staging_memory *a, uint32_t slot)
{
	staging_memory_close(a, staging_memory_fd(a, slot));
	a->fds[slot] = 0;
}

void staging_memory_leave(struct staging_memory *a)
{
	if (a->brought >= 0)
		staging_memory_close(a, a->brought);
	a->brought = -1;
}
