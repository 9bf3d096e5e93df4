/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which parts of the mapped stores of a handle are registered with the CUDA driver. A store is
 * divided into windows; a window is registered when a copy first needs it, and stays so until the
 * handle is closed. The mapping is read-only, so it is registered as memory that a device reads.
 *
 * get.c asks for places, open.c closes. It knows no object. Any thread.
 */
#ifndef SARISSA_CLIENT_DEVICE_WINDOWS_H
#define SARISSA_CLIENT_DEVICE_WINDOWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct cuda_scope;
struct sar;
struct windows_store;

struct windows {
	pthread_mutex_t lock;
	struct windows_store *first; /* under lock; also of stores that the node has lost */
};

/* How many of the bytes at data lie in one window, at least 1; *registered: whether a device can
 * read it by itself. Memory outside of the store is not registered. */
uint64_t windows_reach(struct sar *s, const struct cuda_scope *scope, const uint8_t *data,
		       uint64_t bytes, bool *registered);

/* Registers all of the store that the node has. 0, or the driver's first failure, with words. */
int windows_all(struct sar *s, const struct cuda_scope *scope);

/* Before the stores are unmapped. registered: false in a forked child, where the driver does not
 * work. */
void windows_close(struct windows *w, bool registered);

#endif
