/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory in which clients write apart from the store (core/session/staging.h): a memfd for each
 * object, which its client maps and we only read. One thread.
 *
 * It is made here, with its final size; or, when control was started again, taken from the client,
 * who had it from the control before. Its pages are charged to whoever touches them first: the
 * client.
 */
#ifndef SARISSA_CONTROL_APART_H
#define SARISSA_CONTROL_APART_H

#include <stdbool.h>
#include <stdint.h>
#include "closer.h"

struct apart {
	int *fds;    /* by slot of the table, less one; 0: none */
	int brought; /* memory that came along with the request that the core has now; -1: none */
	struct closer *closer;
};

/* 0 or -ENOMEM. */
int apart_init(struct apart *a, struct closer *closer, uint32_t slots);
/* No other file, whose reading or closing might take for ever. */
bool apart_is_memory(int fd);
/* -1: none. It stays ours. */
int apart_fd(const struct apart *a, uint32_t slot);
/* What the core asks for (control_ops). 0 or -errno. */
int apart_make(struct apart *a, uint32_t slot, uint64_t bytes, bool brought);
int apart_read(const struct apart *a, uint32_t slot, uint64_t at, void *to, uint64_t bytes);
void apart_drop(struct apart *a, uint32_t slot);
/* The core has had the request: what it did not take is closed. */
void apart_leave(struct apart *a);

#endif
