/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "log.h"

/* The process whose number is in the file; 0: none. */
static int lock_owner(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
}

static void lock_note(int fd)
{
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0)
		log_debug("lock: %s", strerror(errno));
}

/* Its first thread has ended and another one cannot: control's own ends with the process. */
static bool lock_is_dying(int process)
{
	char path[32], text[512] = "";
	const char *name_end;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	name_end = strrchr(text, ')');
	return name_end && strncmp(name_end, ") Z", 3) == 0;
}

static void lock_is_held(int fd, const char *rundir)
{
	int process = lock_owner(fd);

	if (process > 0 && lock_is_dying(process))
		log_error(
			"process %d was killed and has not ended: if it does not soon, a file of a "
			"client's own file system (FUSE) is not closed: end the server of that, "
			"or write 1 to its abort in /sys/fs/fuse/connections",
			process);
	else
		log_error("another sarissa-control runs in %s: stop it, or name another --rundir",
			  rundir);
}

int lock_take(const char *rundir)
{
	char path[128];
	int fd;

	if (mkdir(rundir, 0755) < 0 && errno != EEXIST) {
		log_error("cannot make %s (%s): name another --rundir", rundir, strerror(errno));
		return -1;
	}
	snprintf(path, sizeof(path), "%s/control.lock", rundir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		log_error("cannot write in %s (%s): check its rights", rundir, strerror(errno));
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		lock_note(fd);
		return fd;
	}
	lock_is_held(fd, rundir);
	close(fd);
	return -1;
}
