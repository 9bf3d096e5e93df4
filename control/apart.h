/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory in which clients write apart from the store (core/creation.h): a memfd for each
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
#include <uv.h>

struct apart {
	int *fds;     /* by slot of the table, less one; 0: none */
	int brought;  /* came along with the request that the core has now; -1: nothing */
	bool closing; /* what was brought and is no memory is being closed */
	uv_loop_t *loop;
};

/* 0 or -ENOMEM. */
int apart_init(struct apart *a, uv_loop_t *loop, uint32_t slots);
/* -1: none. It stays ours. */
int apart_fd(const struct apart *a, uint32_t slot);
/* What the core asks for (control_ops). 0 or -errno. */
int apart_make(struct apart *a, uint32_t slot, uint64_t bytes, bool brought);
int apart_read(const struct apart *a, uint32_t slot, uint64_t at, void *to, uint64_t bytes);
void apart_drop(struct apart *a, uint32_t slot);
/* The core has had the request: what it did not take is closed. */
void apart_leave(struct apart *a);

#endif
