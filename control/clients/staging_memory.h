/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of private staging buffers (core/session/staging.h): one memfd per object. The client
 * maps it; control only reads. It is made here, with its final size; or, after a restart of
 * control, brought by the client, which has it from the earlier control. Its pages are charged to
 * the client, which touches them first. Called by the core (control_ops) and requests.c. One
 * thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_STAGING_MEMORY_H
#define SARISSA_CONTROL_CLIENTS_STAGING_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include "closer.h"

struct staging_memory {
	int *fds;    /* by slot of the table, less one; 0: none */
	int brought; /* memory that came along with the request that the core has now; -1: none */
	struct closer *closer;
};

/* 0 or -ENOMEM. */
int staging_memory_init(struct staging_memory *a, struct closer *closer, uint32_t slots);
/* Whether it is a memfd. Reading or closing a file of another kind might take for ever. */
bool staging_memory_valid(int fd);
/* -1: none. It stays ours. */
int staging_memory_fd(const struct staging_memory *a, uint32_t slot);
/* Functions for the core (control_ops). 0 or -errno. */
int staging_memory_make(struct staging_memory *a, uint32_t slot, uint64_t bytes, bool brought);
int staging_memory_read(const struct staging_memory *a, uint32_t slot, uint64_t at, void *to,
			uint64_t bytes);
void staging_memory_drop(struct staging_memory *a, uint32_t slot);
/* The core has had the request: what it did not take is closed. */
void staging_memory_leave(struct staging_memory *a);

#endif
