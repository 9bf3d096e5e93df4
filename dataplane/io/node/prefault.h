/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory before it is needed: a worker that learns of a buffer asks the main thread to map its
 * pages, so that chunks do not stop at a page fault each. Only an optimisation: requests that
 * find no room are dropped, and pages that come too late are faulted in as ever. It remembers what
 * it has mapped: a place that is used again costs nothing, where many small pages are a load that
 * is in the way of workers that share their cores with others.
 *
 * prefault_want is the workers'; the rest is the main thread's.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_PREFAULT_H
#define SARISSA_DATAPLANE_IO_NODE_PREFAULT_H

#include <stdbool.h>
#include <stdint.h>

struct rte_ring;

struct prefault_range {
	uint64_t offset, end; /* bytes of the store; not checked yet */
	uint64_t write;	      /* 1: it will be written, 0: only read */
};

struct prefault {
	struct rte_ring *wanted;
	int wake_fd;		   /* readable when something is wanted */
	struct prefault_range now; /* under way: offset grows to end */
	uint8_t *base;		   /* of the store */
	uint64_t bytes;
	uint8_t *mapped; /* for each PREFAULT_STEP of it: to be read, or to be written */
	bool more;
	uint64_t rest_until_ns; /* with more: nothing is mapped before */
};

/* Returns 0 or -errno. */
int prefault_open(struct prefault *p);

/* Never waits. */
void prefault_want(struct prefault *p, uint64_t offset, uint64_t bytes, bool write);

/* Another store from now on. */
void prefault_store(struct prefault *p, uint8_t *base, uint64_t bytes);

/* Maps another PREFAULT_STEP bytes of the store. If the thread does not get its core at once, it
 * shares the core with workers, of this node or of others, and leaves it to them for a while. */
void prefault_step(struct prefault *p);

/* When the next step is due, in ms; -1: when wake_fd says so. */
int prefault_wait_ms(const struct prefault *p, uint64_t now_ns);
#define PREFAULT_STEP (1ull << 20)

#endif
