/* SPDX-License-Identifier: BSD-3-Clause */
#include "lease_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/lease/kept.h"
#include "shell/log.h"

static void *lease_file_try(int fd)
{
	struct stat s;
	void *p;

	if (fstat(fd, &s) < 0)
		return MAP_FAILED;
	if ((uint64_t)s.st_size != sizeof(struct lease_kept) && ftruncate(fd, 0) < 0)
		return MAP_FAILED;
	/* a full disk fails here, not at a write through the mapping */
	errno = posix_fallocate(fd, 0, sizeof(struct lease_kept));
	if (errno != 0)
		return MAP_FAILED;
	p = mmap(NULL, sizeof(struct lease_kept), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p;
}

struct lease_kept *lease_file_map(const char *rundir)
{
	char path[128];
	void *p = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/leases", rundir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		p = lease_file_try(fd);
	if (p == MAP_FAILED)
		log_warning("cannot use %s (%s): leases end when this process does", path,
			    strerror(errno));
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}
