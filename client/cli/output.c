/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli.h"

/* The temporary file, for the signal handler; empty when there is none. */
static char output_temporary[PATH_MAX];
static volatile sig_atomic_t output_exists;

static void output_signal(int signal_number)
{
	if (output_exists)
		unlink(output_temporary);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void output_catch(int signal_number)
{
	struct sigaction old, own = {.sa_handler = output_signal};
	sigaction(signal_number, NULL, &old);
	if (old.sa_handler != SIG_IGN) /* as under nohup */
		sigaction(signal_number, &own, NULL);
}

/* Where the bytes shall end up: what a symbolic link points to, not the link. */
static char *output_resolve(const char *path)
{
	char *real = realpath(path, NULL);
	return real ? real : strdup(path);
}

static mode_t output_mode(const char *target)
{
	struct stat st;
	if (stat(target, &st) == 0)
		return st.st_mode & 07777;
	mode_t mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int output_make(struct output *o)
{
	const char *slash = strrchr(o->target, '/');
	int directory = slash ? (int)(slash - o->target + 1) : 0;
	int n = snprintf(output_temporary, sizeof(output_temporary), "%.*s.sarissa-XXXXXX",
			 directory, o->target);
	if (n >= (int)sizeof(output_temporary))
		return cli_fail(-EIO, "the path %.60s... is too long: use a shorter one",
				o->target);
	output_catch(SIGINT);
	output_catch(SIGTERM);
	output_catch(SIGHUP);
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	o->fd = mkostemp(output_temporary, O_CLOEXEC);
	int error = errno;
	output_exists = o->fd >= 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (o->fd < 0)
		return cli_fail(-EIO, "cannot write beside %s (%s): name another folder", o->name,
				strerror(error));
	return CLI_DONE;
}

int output_open(struct output *o, const char *path)
{
	struct stat st;
	*o = (struct output){.name = path, .fd = STDOUT_FILENO};
	if (strcmp(path, "-") == 0) {
		o->name = "standard output";
		return CLI_DONE;
	}
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_fail(-EIO, "%s is a directory: name a file in it", path);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		o->fd = open(path, O_WRONLY | O_CLOEXEC);
		if (o->fd < 0)
			return cli_fail(-EIO, "cannot open %s: %s", path, strerror(errno));
		return CLI_DONE;
	}
	o->target = output_resolve(path);
	if (!o->target)
		return cli_fail(-ENOMEM, "out of memory");
	return output_make(o);
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
	}
	return CLI_DONE;
}

int output_rewind(struct output *o, uint64_t written)
{
	if (written == 0)
		return CLI_DONE;
	if (!o->target || lseek(o->fd, 0, SEEK_SET) != 0 || ftruncate(o->fd, 0) < 0)
		return CLI_FAILED;
	return CLI_DONE;
}

static int output_finish(struct output *o)
{
	if (fchmod(o->fd, output_mode(o->target)) < 0 || rename(output_temporary, o->target) < 0)
		return cli_fail(-EIO, "cannot make %s: %s", o->name, strerror(errno));
	output_exists = 0;
	return CLI_DONE;
}

int output_close(struct output *o, int keep)
{
	int status = CLI_DONE;
	if (o->target && keep)
		status = output_finish(o);
	if (o->fd >= 0 && close(o->fd) < 0 && status == CLI_DONE && keep)
		status = cli_fail(-EIO, "cannot write to %s: %s", o->name, strerror(errno));
	if (output_exists)
		unlink(output_temporary);
	output_exists = 0;
	free(o->target);
	return status;
}
