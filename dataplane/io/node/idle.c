/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker does when a turn found nothing: it spins for a moment, because the next packet of a
 * busy stream is near, and then sleeps in the kernel until something arrives or a timer is due.
 * Many nodes can so share a few cores; --busy-poll never comes here.
 *
 * How long a moment is, the worker learns from the gaps it has met: while they are shorter than a
 * sleep costs, it spins through them (a few times the usual one); where they are longer, as on a
 * slow link, it sleeps almost at once and leaves the core to others.
 */
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_pause.h>
#include "internal/ring.h"
#include "io/observe/log.h"

enum {
	IDLE_SPIN_TURNS = 16, /* turns at full speed */
	IDLE_SPIN_NS = 3000,  /* and then with pauses, until this long after the last work */
	IDLE_GAP_NS = 30000,  /* usual gaps up to here are worth spinning through */
	IDLE_GAP_TIMES = 3,
	IDLE_NAP_MIN_NS = 20000,
	IDLE_NAP_MAX_NS = 1000000,
	IDLE_DOUBT_NS = 100000000, /* the longest sleep before the first interrupt has come */
	IDLE_DEAF = 32, /* sleeps through a packet until no interrupt is expected any more */
};

void idle_wake(struct worker *w)
{
	ring_wake(&w->sleeping, w->wake_fd);
}

/* The last look before sleeping: nothing may have come between the turn and the raised flag. */
static bool idle_something_waits(struct worker *w)
{
	for (unsigned i = 0; w->workers > 1 && i < w->rails; i++)
		if (w->rail[i].handover && !rte_ring_empty(w->rail[i].handover))
			return true;
	return atomic_load_explicit(&w->stop, memory_order_relaxed) ||
	       atomic_load_explicit(&w->wanted, memory_order_relaxed) != w->session ||
	       atomic_load_explicit(&w->wanted_away, memory_order_relaxed) !=
		       atomic_load_explicit(&w->away, memory_order_relaxed) ||
	       (w->session && (w->event_count > 0 || !ring_empty(w->session->commands)));
}

static bool idle_interrupts(const struct rail *r)
{
	return !r->away && r->port->rx_interrupt;
}

/* Some drivers say that they interrupt, and do not; some lines are shared, and turned off. */
void idle_found(struct worker *w, unsigned packets)
{
	w->overslept = false;
	if (packets == 0 || ++w->unheard < IDLE_DEAF)
		return;
	w->deaf = true;
	for (const struct rail *r = w->rail; r < w->rail + w->rails; r++)
		if (idle_interrupts(r))
			log_warning("port %s: packets come without an interrupt: idle workers "
				    "nap, see --busy-poll",
				    r->port->text);
}

/* Whether some port interrupts. */
static bool idle_hears(const struct worker *w)
{
	for (unsigned i = 0; i < w->rails; i++)
		if (idle_interrupts(&w->rail[i]))
			return !w->deaf;
	return false;
}

/* A bit for each port that takes nothing. */
static uint32_t idle_full(const struct worker *w)
{
	uint32_t full = 0;
	for (unsigned i = 0; i < w->rails; i++)
		full |= (uint32_t)(w->rail[i].held_count > 0) << i;
	return full;
}

static bool idle_has_descriptors(const struct worker *w)
{
	for (unsigned i = 0; i < w->rails; i++)
		if (!w->rail[i].away && w->rail[i].out->rx_fd < 0)
			return false;
	return !w->deaf;
}

/* How long to sleep; 0: not at all. */
static uint64_t idle_timeout(struct worker *w, uint64_t now_ns)
{
	uint32_t full = idle_full(w);
	uint64_t due =
		w->session ? engine_next_timeout_without(w->session->engine, full) : UINT64_MAX;
	uint64_t wait = due <= now_ns ? 0 : due - now_ns;
	bool all_full = full == (1u << w->rails) - 1; /* nothing leaves, whatever is due */
	if (all_full || (full != 0 && wait > IDLE_NAP_MAX_NS))
		wait = IDLE_NAP_MAX_NS;
	/* events that control does not take have no wake-up of their own */
	if (w->event_count > 0 && wait > IDLE_NAP_MAX_NS)
		wait = IDLE_NAP_MAX_NS;
	if (idle_hears(w) && !w->heard && wait > IDLE_DOUBT_NS)
		wait = IDLE_DOUBT_NS;
	if (idle_has_descriptors(w) && full == 0)
		return wait;
	w->nap_ns = w->nap_ns * 2 > IDLE_NAP_MAX_NS ? IDLE_NAP_MAX_NS : w->nap_ns * 2;
	if (w->nap_ns < IDLE_NAP_MIN_NS)
		w->nap_ns = IDLE_NAP_MIN_NS;
	return wait < w->nap_ns ? wait : w->nap_ns;
}

/* A descriptor that woke us is read, where reading quiets it. */
static void idle_drain(struct worker *w, const struct pollfd *fds)
{
	eventfd_t count;
	struct rte_epoll_event event;
	if (fds++->revents)
		eventfd_read(w->wake_fd, &count);
	for (const struct rail *r = w->rail; r < w->rail + w->rails;
	     fds += r->away ? 0 : r->ins, r++)
		for (unsigned i = 0; idle_interrupts(r) && i < r->ins; i++)
			if (fds[i].revents) {
				rte_epoll_wait(fds[i].fd, &event, 1, 0);
				w->unheard -= w->unheard > 0;
				w->heard = true;
			}
}

static void idle_poll(struct worker *w, uint64_t wait_ns)
{
	struct pollfd fds[1 + RAILS_MAX * PORT_QUEUES_MAX] = {{.fd = w->wake_fd, .events = POLLIN}};
	unsigned count = 1;
	struct timespec t = {.tv_sec = (time_t)(wait_ns / 1000000000u),
			     .tv_nsec = (long)(wait_ns % 1000000000u)};
	for (const struct rail *r = w->rail; r < w->rail + w->rails; r++)
		for (unsigned i = 0; !r->away && i < r->ins; i++)
			fds[count++] = (struct pollfd){
				.fd = w->deaf && r->port->rx_interrupt ? -1 : r->in[i]->rx_fd,
				.events = (short)(POLLIN | (r->wants_room ? POLLOUT : 0))};
	w->counters->io_sleeps++;
	int woken = ppoll(fds, count, wait_ns == UINT64_MAX ? NULL : &t, NULL);
	/* in less a card may still be holding its interrupt back, to make one of several */
	w->overslept = woken == 0 && idle_hears(w) && wait_ns >= IDLE_NAP_MAX_NS;
	if (woken > 0)
		idle_drain(w, fds);
}

static void idle_arm(struct worker *w)
{
	for (const struct rail *r = w->rail; r < w->rail + w->rails; r++)
		for (unsigned i = 0; idle_interrupts(r) && i < r->ins; i++)
			rte_eth_dev_rx_intr_enable(r->in[i]->device, r->in[i]->queue);
	w->armed = true;
}

static void idle_disarm(struct worker *w)
{
	if (!w->armed)
		return;
	for (const struct rail *r = w->rail; r < w->rail + w->rails; r++)
		for (unsigned i = 0; idle_interrupts(r) && i < r->ins; i++)
			rte_eth_dev_rx_intr_disable(r->in[i]->device, r->in[i]->queue);
	w->armed = false;
}

/* Each look at a port of sockets is a system call. */
static bool idle_looking_costs(const struct worker *w)
{
	bool costs = false;
	for (unsigned i = 0; i < w->rails; i++)
		costs |= !w->rail[i].away && w->rail[i].port->asking_costs;
	return costs;
}

static void idle_sleep(struct worker *w, uint64_t wait_ns)
{
	_Atomic uint32_t *shared = w->session ? w->session->sleeping : &w->sleeping;
	if (idle_hears(w) && !w->armed) { /* what came before is found by one more turn */
		idle_arm(w);
		return;
	}
	atomic_store_explicit(&w->sleeping, 1, memory_order_relaxed);
	ring_sleep_begin(shared);
	if (!idle_something_waits(w))
		idle_poll(w, wait_ns);
	idle_disarm(w);
	ring_sleep_end(shared);
	atomic_store_explicit(&w->sleeping, 0, memory_order_relaxed);
}

void idle_end(struct worker *w, uint64_t now_ns)
{
	uint64_t gap = now_ns - w->last_work_ns;
	if (w->idle_turns > 0) /* a long gap counts for no more than makes it sleep soon */
		w->gap_ns = (7 * w->gap_ns + (gap < 8 * IDLE_GAP_NS ? gap : 8 * IDLE_GAP_NS)) / 8;
	w->idle_turns = 0;
	w->nap_ns = 0;
	idle_disarm(w);
	w->last_work_ns = now_ns;
}

static uint64_t idle_spin_ns(const struct worker *w)
{
	return w->gap_ns < IDLE_GAP_NS ? IDLE_SPIN_NS + IDLE_GAP_TIMES * w->gap_ns : IDLE_SPIN_NS;
}

void idle_wait(struct worker *w, uint64_t now_ns)
{
	if (!idle_looking_costs(w)) {
		if (w->idle_turns++ < IDLE_SPIN_TURNS)
			return;
		if (now_ns < w->last_work_ns + idle_spin_ns(w)) {
			rte_pause();
			return;
		}
	}
	uint64_t wait = idle_timeout(w, now_ns);
	if (wait > 0)
		idle_sleep(w, wait);
}
