/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of private staging buffers (core/session/staging.h): one memfd per object. The client
 * maps it; control only reads. It has its final size from the start. Its pages are charged to the
 * client, which touches them first. Called by the core (control_ops). One thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_STAGING_MEMORY_H
#define SARISSA_CONTROL_CLIENTS_STAGING_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include "closer.h"

struct staging_memory {
	int *fds; /* by slot of the table, less one; 0: none */
	struct closer *closer;
};

/* 0 or -ENOMEM. */
int staging_memory_init(struct staging_memory *a, struct closer *closer, uint32_t slots);
/* -1: none. It stays ours. */
int staging_memory_fd(const struct staging_memory *a, uint32_t slot);
/* Functions for the core (control_ops). 0 or -errno. */
int staging_memory_make(struct staging_memory *a, uint32_t slot, uint64_t bytes);
int staging_memory_read(const struct staging_memory *a, uint32_t slot, uint64_t at, void *to,
			uint64_t bytes);
void staging_memory_drop(struct staging_memory *a, uint32_t slot);

#endif
