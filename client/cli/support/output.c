/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cli.h"
#include "place.h"
#include "temporary.h"

static mode_t output_new_mode(void)
{
	mode_t mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int output_cannot(const struct output *o, int error)
{
	if (error == EBADF)
		return cli_fail(-EIO, "%s is closed: open it, or name a file", o->name);
	if (error == EISDIR)
		return cli_fail(-EIO, "%s is a directory: name a file in it", o->name);
	return cli_fail(-EIO, "cannot write to %s: %s", o->name, strerror(error));
}

static int output_descriptor(struct output *o, int fd)
{
	if (fd < 0)
		return output_cannot(o, -fd);
	o->fd = fd;
	int flags = fcntl(fd, F_GETFL);
	if ((flags & O_ACCMODE) != O_RDONLY)
		return CLI_DONE;
	return cli_fail(-EIO, "%s is open for reading only: name a file", o->name);
}

/* Not emptied before the bytes are there. */
static int output_in_place(struct output *o, const char *path)
{
	o->in_place = true;
	o->fd = open(path, O_WRONLY | O_CLOEXEC);
	return o->fd < 0 ? output_cannot(o, errno) : CLI_DONE;
}

/* A file that stands in the way of a rename: something is mounted on it. */
static bool output_is_mounted(const char *path)
{
	struct statx st;
	return statx(AT_FDCWD, path, 0, 0, &st) == 0 &&
	       st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int output_file(struct output *o, const struct place *p)
{
	o->target = strdup(p->path);
	o->replaces = p->exists;
	o->mode = p->exists ? p->stat.st_mode & 07777 : output_new_mode();
	if (!o->target)
		return cli_fail(-ENOMEM, "out of memory");
	if (p->exists && faccessat(AT_FDCWD, p->path, W_OK, AT_EACCESS) < 0)
		return output_cannot(o, errno);
	if (p->magic || (p->exists && output_is_mounted(p->path)))
		return output_in_place(o, p->path);
	o->fd = temporary_open(p->path, &o->unnamed);
	if (o->fd >= 0)
		return CLI_DONE;
	if (p->exists && (o->fd == -EACCES || o->fd == -EPERM || o->fd == -EROFS))
		return output_in_place(o, p->path);
	return cli_fail(-EIO, "cannot write beside %s (%s): name another folder", o->name,
			strerror(-o->fd));
}

int output_open(struct output *o, const char *path)
{
	static struct place p;
	*o = (struct output){.name = path, .fd = -1};
	if (strcmp(path, "-") == 0) {
		o->name = "standard output";
		o->is_stdout = true;
		return output_descriptor(o, place_descriptor(STDOUT_FILENO));
	}
	int r = place_find(path, &p);
	if (r < 0)
		return output_cannot(o, *path ? -r : ENOENT);
	o->is_stdout = p.number == STDOUT_FILENO;
	if (p.fd >= 0)
		return output_descriptor(o, p.fd);
	if (p.exists && S_ISDIR(p.stat.st_mode))
		return output_cannot(o, EISDIR);
	if (!p.exists || S_ISREG(p.stat.st_mode))
		return output_file(o, &p);
	o->fd = open(p.path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (o->fd < 0)
		return cli_fail(-EIO, "cannot open %s: %s", path, strerror(errno));
	return CLI_DONE;
}

int output_reserve(struct output *o, uint64_t bytes)
{
	if (!o->target || bytes == 0 || fallocate(o->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0)
		return CLI_DONE;
	if (errno != ENOSPC && errno != EFBIG && errno != EDQUOT)
		return CLI_DONE; /* not every file system can */
	return cli_fail(-EIO, "no room for %llu bytes in %s: %s", (unsigned long long)bytes,
			o->name, strerror(errno));
}

int output_write(struct output *o, const void *bytes, uint64_t count)
{
	const uint8_t *at = bytes;
	while (count > 0) {
		ssize_t n = write(o->fd, at, count < INT_MAX ? count : INT_MAX);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			return cli_fail(-EIO, "the reader of %s has gone: nothing to do", o->name);
		if (n < 0)
			return cli_fail(-EIO, "cannot write to %s: %s", o->name, strerror(errno));
		at += n;
		count -= (uint64_t)n;
		o->written += (uint64_t)n;
	}
	return CLI_DONE;
}

int output_rewind(struct output *o, uint64_t written)
{
	if (written == 0)
		return CLI_DONE;
	if (!o->target || lseek(o->fd, 0, SEEK_SET) != 0 ||
	    (!o->in_place && ftruncate(o->fd, 0) < 0))
		return CLI_FAILED;
	o->written = 0;
	return CLI_DONE;
}

/* The bytes go where the target is: it cannot be replaced. An exit status; has said why. */
static int output_copy(struct output *o)
{
	static uint8_t block[1 << 16];
	struct output target = *o;
	int from = o->fd;
	if (lseek(from, 0, SEEK_SET) < 0 || output_in_place(&target, o->target) != CLI_DONE)
		return CLI_FAILED;
	int status = CLI_DONE;
	ssize_t n = 0;
	while (status == CLI_DONE && (n = read(from, block, sizeof(block))) > 0)
		status = output_write(&target, block, (uint64_t)n);
	if (status == CLI_DONE && (n < 0 || ftruncate(target.fd, (off_t)o->written) < 0))
		status = output_cannot(o, errno);
	if (close(target.fd) < 0 && status == CLI_DONE)
		status = output_cannot(o, errno);
	return status;
}

static int output_finish(struct output *o)
{
	int r = 0;
	if (o->in_place && ftruncate(o->fd, (off_t)o->written) < 0)
		return output_cannot(o, errno);
	if (o->in_place)
		return CLI_DONE;
	if (fchmod(o->fd, o->mode) < 0)
		r = -errno;
	if (r == 0)
		r = temporary_appear(o->fd, o->unnamed, o->target);
	if (o->replaces && (r == -EBUSY || r == -EXDEV || r == -EPERM || r == -EACCES))
		return output_copy(o);
	return r < 0 ? cli_fail(-EIO, "cannot make %s: %s", o->name, strerror(-r)) : CLI_DONE;
}

int output_close(struct output *o, int keep)
{
	int status = CLI_DONE;
	if (o->target && keep)
		status = output_finish(o);
	if (o->fd >= 0 && close(o->fd) < 0 && status == CLI_DONE && keep)
		status = cli_fail(-EIO, "cannot write to %s: %s", o->name, strerror(errno));
	temporary_remove();
	free(o->target);
	return status;
}
