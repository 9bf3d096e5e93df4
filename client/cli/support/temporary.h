/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that holds what get has written until it is whole. It has no name where the file system
 * can do that. Else, and for the moment in which it takes the place of another file, it is called
 * .sarissa-get-XXXXXXXX, and is locked (flock) as long as its process lives: the next get in the
 * folder removes those of processes that were killed. One per process.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_TEMPORARY_H
#define SARISSA_CLIENT_CLI_SUPPORT_TEMPORARY_H

#include <stdbool.h>

/* A descriptor for reading and writing, in the folder of target; -errno. */
int temporary_open(const char *target, bool *unnamed);
/* The file is called target from now on, and what was called so before is gone. 0 or -errno. */
int temporary_appear(int fd, bool unnamed, const char *target);
/* Removes a name that it still has. */
void temporary_remove(void);

#endif
