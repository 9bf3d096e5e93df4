/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard streams that the caller has closed. Without these, the next socket or memory that a
 * program opens gets the number 0, 1 or 2, and what is written to standard output goes there. The
 * command and the daemons call standard_fds_hold() first of all; the library keeps its own
 * descriptors away from these numbers. Knows nothing of what the descriptors are for.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PROGRAM_STANDARD_FDS_H
#define SARISSA_INCLUDE_INTERNAL_PROGRAM_STANDARD_FDS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* Occupies each of 0, 1 and 2 that is closed. What does so can be neither read nor written (EBADF),
 * and a program that is executed finds the stream closed, as the caller has left it. */
static inline void standard_fds_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/", O_PATH | O_CLOEXEC);
}

/* Whether the caller has handed the descriptor over: all of our own end with an exec. */
static inline bool standard_fds_handed(int fd)
{
	int flags = fcntl(fd, F_GETFD);
	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* The descriptor by a number above 2, or fd (-1, too) as it is. */
static inline int standard_fds_above(int fd)
{
	if (fd < STDIN_FILENO || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (above < 0)
		return fd;
	close(fd);
	return above;
}

#endif
