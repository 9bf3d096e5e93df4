/* SPDX-License-Identifier: BSD-3-Clause */
#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_PREFIX ".sarissa-get-"

enum {
	TEMPORARY_SWEEP_MAX = 4096, /* entries of the folder that are looked at: some ms */
	TEMPORARY_TRIES = 100,
};

/* Its name, for the signal handler; empty when it has none. */
static char temporary_path[PATH_MAX];
static volatile sig_atomic_t temporary_exists;

static void temporary_signal(int signal_number)
{
	if (temporary_exists)
		unlink(temporary_path);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void temporary_catch(int signal_number)
{
	struct sigaction old, own = {.sa_handler = temporary_signal};
	sigaction(signal_number, NULL, &old);
	if (old.sa_handler != SIG_IGN) /* as under nohup */
		sigaction(signal_number, &own, NULL);
}

static void temporary_folder(const char *target, char out[PATH_MAX])
{
	const char *slash = strrchr(target, '/');
	snprintf(out, PATH_MAX, "%.*s", slash ? (int)(slash - target + 1) : 2,
		 slash ? target : "./");
}

/* --- what killed processes have left --- */

/* Whose lock can be had has no process. */
static void temporary_sweep_one(int folder, const char *name)
{
	struct stat of_fd, of_name;
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &of_fd) == 0 && S_ISREG(of_fd.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    fstatat(folder, name, &of_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	    of_fd.st_dev == of_name.st_dev && of_fd.st_ino == of_name.st_ino)
		unlinkat(folder, name, 0);
	close(fd);
}

static void temporary_sweep(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	for (int i = 0; folder && i < TEMPORARY_SWEEP_MAX && (entry = readdir(folder)); i++)
		if (strncmp(entry->d_name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) == 0)
			temporary_sweep_one(dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
}

/* --- names --- */

/* Signals are blocked: the handler must find a name that exists. */
static void temporary_block(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, before);
}

static int temporary_name(const char *folder)
{
	uint32_t number = 0;
	(void)!getrandom(&number, sizeof(number), 0);
	int n = snprintf(temporary_path, sizeof(temporary_path), "%s" TEMPORARY_PREFIX "%08x",
			 folder, number);
	return n < (int)sizeof(temporary_path) ? 0 : -ENAMETOOLONG;
}

static int temporary_create(const char *folder)
{
	struct stat st;
	for (int i = 0; i < TEMPORARY_TRIES; i++) {
		int r = temporary_name(folder);
		int fd = r < 0 ? r
			       : open(temporary_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && (r < 0 || errno != EEXIST))
			return r < 0 ? r : -errno;
		if (fd < 0)
			continue;
		flock(fd, LOCK_EX);
		temporary_exists = 1;
		if (fstat(fd, &st) == 0 && st.st_nlink > 0)
			return fd;
		temporary_exists = 0;
		close(fd); /* taken for one that was left, before it was locked */
	}
	return -EEXIST;
}

/* --- the file --- */

/* Whether a file without a name can get one later. */
static bool temporary_can_link(void)
{
	return access("/proc/self/fd", X_OK) == 0;
}

int temporary_open(const char *target, bool *unnamed)
{
	char folder[PATH_MAX];
	sigset_t before;
	temporary_folder(target, folder);
	temporary_sweep(folder);
	int fd = temporary_can_link() ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
	*unnamed = fd >= 0;
	if (fd >= 0) {
		flock(fd, LOCK_EX | LOCK_NB);
		return fd;
	}
	temporary_catch(SIGINT);
	temporary_catch(SIGTERM);
	temporary_catch(SIGHUP);
	temporary_block(&before);
	fd = temporary_create(folder);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return fd;
}

static int temporary_link(int fd, const char *to)
{
	char from[64];
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
}

/* Under its own name or a passing one, from which it takes the other's place. */
static int temporary_first_name(int fd, const char *target)
{
	char folder[PATH_MAX];
	int r = temporary_link(fd, target);
	if (r != -EEXIST)
		return r;
	temporary_folder(target, folder);
	for (int i = 0; i < TEMPORARY_TRIES && r == -EEXIST; i++) {
		r = temporary_name(folder);
		if (r == 0)
			r = temporary_link(fd, temporary_path);
	}
	temporary_exists = r == 0;
	return r;
}

int temporary_appear(int fd, bool unnamed, const char *target)
{
	sigset_t before;
	temporary_block(&before);
	int r = unnamed ? temporary_first_name(fd, target) : 0;
	if (r == 0 && temporary_exists && rename(temporary_path, target) < 0)
		r = -errno;
	if (r == 0)
		temporary_exists = 0;
	else
		temporary_remove();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

void temporary_remove(void)
{
	if (temporary_exists)
		unlink(temporary_path);
	temporary_exists = 0;
}
