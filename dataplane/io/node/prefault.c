/* SPDX-License-Identifier: BSD-3-Clause */
#include "prefault.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <rte_errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { WANTED_MAX = 256 };
enum { PREFAULT_READ = 1, PREFAULT_WRITE = 2 }; /* of a step: mapped so far */

int prefault_open(struct prefault *p)
{
	*p = (struct prefault){.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (p->wake_fd < 0)
		return -errno;
	p->wanted = rte_ring_create_elem("prefault", sizeof(struct prefault_range), WANTED_MAX,
					 SOCKET_ID_ANY, RING_F_SC_DEQ);
	return p->wanted ? 0 : -rte_errno;
}

void prefault_want(struct prefault *p, uint64_t offset, uint64_t bytes, bool write)
{
	struct prefault_range r = {.offset = offset, .end = offset + bytes, .write = write};
	if (bytes < PREFAULT_STEP / 4) /* not worth the main thread's waking */
		return;
	if (rte_ring_mp_enqueue_elem(p->wanted, &r, sizeof(r)) == 0)
		eventfd_write(p->wake_fd, 1);
}

void prefault_store(struct prefault *p, uint8_t *base, uint64_t bytes)
{
	free(p->mapped);
	p->mapped = calloc((bytes + PREFAULT_STEP - 1) / PREFAULT_STEP, 1);
	p->base = base;
	p->bytes = p->mapped ? bytes : 0;
	p->now = (struct prefault_range){0};
}

/* Takes the next range that lies in the store. */
static bool prefault_next(struct prefault *p)
{
	eventfd_t count;
	struct prefault_range *r = &p->now;
	while (rte_ring_sc_dequeue_elem(p->wanted, r, sizeof(*r)) == 0) {
		r->offset = r->offset / PREFAULT_STEP * PREFAULT_STEP;
		if (r->offset < r->end && r->end <= p->bytes)
			return true;
	}
	r->offset = r->end = 0;
	eventfd_read(p->wake_fd, &count);
	return !rte_ring_empty(p->wanted);
}

/* Pages that were mapped before need no system call. */
static void prefault_skip(struct prefault *p)
{
	struct prefault_range *r = &p->now;
	while (r->offset < r->end &&
	       p->mapped[r->offset / PREFAULT_STEP] >= (r->write ? PREFAULT_WRITE : PREFAULT_READ))
		r->offset += PREFAULT_STEP;
}

static uint64_t prefault_clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void prefault_map(struct prefault *p)
{
	struct prefault_range *r = &p->now;
	uint64_t left = p->bytes - r->offset;
	int how = r->write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	/* no memory, or an old kernel: what is missing is faulted in, or refused, when it is used
	 */
	if (madvise(p->base + r->offset, left < PREFAULT_STEP ? left : PREFAULT_STEP, how) == 0)
		p->mapped[r->offset / PREFAULT_STEP] = r->write ? PREFAULT_WRITE : PREFAULT_READ;
	else
		r->end = r->offset;
}

void prefault_step(struct prefault *p)
{
	prefault_skip(p);
	p->more = p->now.offset < p->now.end;
	if (!p->more) {
		p->more = prefault_next(p);
		return;
	}
	uint64_t begin_ns = prefault_clock_ns(CLOCK_MONOTONIC);
	uint64_t ran_ns = prefault_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	prefault_map(p);
	ran_ns = prefault_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran_ns;
	uint64_t end_ns = prefault_clock_ns(CLOCK_MONOTONIC), took_ns = end_ns - begin_ns;
	p->rest_until_ns = took_ns > ran_ns + ran_ns / 4 ? end_ns + 3 * took_ns : 0;
}

int prefault_wait_ms(const struct prefault *p, uint64_t now_ns)
{
	if (!p->more)
		return -1;
	return now_ns < p->rest_until_ns ? (int)((p->rest_until_ns - now_ns) / 1000000) + 1 : 0;
}
