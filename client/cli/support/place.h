/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a path on the command line leads: symbolic links are followed to their end, also when
 * nothing is there yet, and /dev/stdout, /dev/fd/N and /proc/self/fd/N are the caller's descriptor.
 * For get and put.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_PLACE_H
#define SARISSA_CLIENT_CLI_SUPPORT_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct place {
	int fd;		     /* a copy of the caller's descriptor; -1: it is a path */
	int number;	     /* of the caller's descriptor */
	char path[PATH_MAX]; /* not a symbolic link */
	bool exists;
	bool magic; /* a file of another process by its descriptor: it may have no other path */
	struct stat stat; /* when it exists */
};

/* 0 or -errno. -EBADF: a descriptor that the caller has closed, or never had. */
int place_find(const char *path, struct place *out);

/* A copy of the caller's descriptor. -EBADF: the caller has closed it. */
int place_descriptor(int fd);

#endif
