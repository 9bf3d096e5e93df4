/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "internal/program/standard_fds.h"

enum { PLACE_LINKS_MAX = 40 };

int place_descriptor(int fd)
{
	if (!standard_fds_handed(fd))
		return -EBADF;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return own < 0 ? -errno : own;
}

static const char *place_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void place_folder(const char *path, char out[PATH_MAX])
{
	size_t length = (size_t)(place_base(path) - path);
	snprintf(out, PATH_MAX, "%.*s", length ? (int)length : 1, length ? path : ".");
}

static bool place_same_folder(const char *a, const char *b)
{
	char real[2][PATH_MAX];
	return realpath(a, real[0]) && realpath(b, real[1]) && strcmp(real[0], real[1]) == 0;
}

/* The number of our own descriptor that the path names, or -1. */
static int place_number(const char *path, const char *folder)
{
	const char *base = place_base(path);
	if (*base == '\0' || strlen(base) > 9 || strspn(base, "0123456789") != strlen(base))
		return -1;
	return place_same_folder(folder, "/proc/self/fd") ||
			       place_same_folder(folder, "/proc/thread-self/fd")
		       ? atoi(base)
		       : -1;
}

static bool place_is_proc(const char *folder)
{
	struct statfs fs;
	return statfs(folder, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* One link further. 0 or -errno. */
static int place_follow(struct place *p, const char *folder)
{
	char link[PATH_MAX], next[2 * PATH_MAX];
	ssize_t length = readlink(p->path, link, sizeof(link) - 1);
	if (length < 0)
		return -errno;
	link[length] = '\0';
	int n = snprintf(next, sizeof(next), "%s%s%s", *link == '/' ? "" : folder,
			 *link == '/' || folder[strlen(folder) - 1] == '/' ? "" : "/", link);
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(p->path, next, (size_t)n + 1);
	return 0;
}

int place_find(const char *path, struct place *out)
{
	char folder[PATH_MAX];
	*out = (struct place){.fd = -1};
	if (strlen(path) >= sizeof(out->path))
		return -ENAMETOOLONG;
	strcpy(out->path, path);
	for (int i = 0; i < PLACE_LINKS_MAX; i++) {
		place_folder(out->path, folder);
		out->number = place_number(out->path, folder);
		if (out->number >= 0) {
			out->fd = place_descriptor(out->number);
			return out->fd < 0 ? out->fd : 0;
		}
		if (lstat(out->path, &out->stat) < 0)
			return errno == ENOENT && *place_base(out->path) != '\0' ? 0 : -errno;
		out->exists = true;
		if (!S_ISLNK(out->stat.st_mode))
			return 0;
		if (place_is_proc(folder) && place_base(folder)[0] == '\0' &&
		    strstr(folder, "/fd/")) {
			out->magic = true;
			return stat(out->path, &out->stat) < 0 ? -errno : 0;
		}
		out->exists = false;
		int r = place_follow(out, folder);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}
