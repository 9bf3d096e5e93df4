/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker.h"

#include <sys/prctl.h>
#include <time.h>
#include <rte_cycles.h>
#include "internal/ring.h"

uint64_t worker_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A buffer's pages are wanted before its first chunk: read here where a local producer has written
 * them, else written by what arrives. */
static void worker_look_ahead(struct worker *w, const struct record *r)
{
	if (r->op != COMMAND_BUFFER || !w->prefault)
		return;
	bool arrives = r->buffer.ready_bytes < r->buffer.size;
	prefault_want(w->prefault, r->buffer.store_offset, r->buffer.size, arrives);
}

/* Gives the engine what control has ordered. The engine stops taking while its events are not
 * taken: the order of the records is kept by holding the refused one back. */
static unsigned worker_take_commands(struct worker *w, uint64_t now_ns)
{
	unsigned taken = 0;
	for (; taken < WORKER_BURST; taken++) {
		if (!w->has_pending) {
			if (ring_pop(w->session->commands, &w->pending, 1) == 0)
				break;
			worker_look_ahead(w, &w->pending);
		}
		w->has_pending = !engine_command(w->session->engine, &w->pending, now_ns);
		if (w->has_pending)
			break;
	}
	return taken;
}

/* That messages were acknowledged only frees slots: control looks when it next is awake, or when
 * many have come together. */
static bool worker_must_wake(const struct worker *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (w->event[w->event_first + i].op != EVENT_MSG_SENT)
			return true;
	return ring_held(w->session->events) >= MSG_SLOTS / 4;
}

static unsigned worker_give_events(struct worker *w)
{
	const struct session *s = w->session;
	unsigned given = 0, n;
	bool wake = false;
	do {
		if (w->event_count == 0) {
			w->event_first = 0;
			w->event_count = engine_events(s->engine, w->event, WORKER_BURST);
		}
		n = ring_push(s->events, w->event + w->event_first, w->event_count);
		wake |= n > 0 && worker_must_wake(w, n);
		w->event_first += n;
		w->event_count -= n;
		given += n;
	} while (n > 0 && w->event_count == 0);
	w->counters->io_events_waited += w->event_count > 0;
	if (wake)
		ring_wake(s->control_sleeping, s->control_wake);
	return given;
}

/* Changes to the session that the main thread wants; what the old one left is dropped with it. */
static void worker_change_session(struct worker *w)
{
	const struct session *s = atomic_load_explicit(&w->wanted, memory_order_acquire);
	w->session = s;
	for (struct rail *r = w->rail; r < w->rail + w->rails; r++)
		if (!r->away)
			r->port->ops->drop_held(w, r); /* it points into the store */
	w->has_pending = false;
	w->event_count = 0;
	atomic_store_explicit(&w->serving, s, memory_order_release);
}

/* Lets ports alone whose devices have gone, and takes those up again that are back. */
static void worker_change_away(struct worker *w)
{
	uint32_t away = atomic_load_explicit(&w->wanted_away, memory_order_acquire);
	for (struct rail *r = w->rail; r < w->rail + w->rails; r++) {
		bool now = away >> r->index & 1;
		if (now && !r->away)
			r->port->ops->stop(w, r);
		r->away = now;
	}
	atomic_store_explicit(&w->away, away, memory_order_release);
}

/* As a pulled cable would: the engine goes on, and notices. */
static unsigned worker_lose(struct worker *w, struct rail *r, uint64_t now_ns)
{
	struct packet_out out = {.head = w->scratch, .head_room = ENGINE_HEAD_MAX};
	unsigned lost = 0;
	while (lost < WORKER_BURST &&
	       engine_transmit_rail(w->session->engine, r->index, &out, 1, now_ns) == 1)
		lost++;
	w->counters->io_tx_lost += lost;
	return lost;
}

static unsigned worker_receive(struct worker *w, uint64_t now_ns)
{
	unsigned came = 0;
	for (struct rail *r = w->rail; r < w->rail + w->rails; r++)
		if (!r->away)
			came += r->port->ops->receive(w, r, now_ns);
	return came;
}

static unsigned worker_transmit(struct worker *w, uint64_t now_ns)
{
	unsigned sent = 0;
	for (struct rail *r = w->rail; r < w->rail + w->rails; r++)
		sent += r->away ? worker_lose(w, r, now_ns) : r->port->ops->transmit(w, r, now_ns);
	return sent;
}

static unsigned worker_turn(struct worker *w, uint64_t now_ns)
{
	if (atomic_load_explicit(&w->wanted, memory_order_relaxed) != w->session)
		worker_change_session(w);
	if (atomic_load_explicit(&w->wanted_away, memory_order_relaxed) !=
	    atomic_load_explicit(&w->away, memory_order_relaxed))
		worker_change_away(w);
	if (!w->session)
		return worker_receive(w, now_ns);
	unsigned work = worker_take_commands(w, now_ns), came = worker_receive(w, now_ns);
	work += came;
	if (w->overslept)
		idle_found(w, came);
	if (now_ns >= engine_next_timeout(w->session->engine))
		engine_tick(w->session->engine, now_ns);
	if (w->busy_poll) /* control works while we send */
		work += worker_give_events(w);
	work += worker_transmit(w, now_ns);
	work += worker_give_events(w);
	return work;
}

static void worker_account(struct worker *w, uint64_t cycles, unsigned work)
{
	w->counters->io_loops++;
	if (work == 0)
		return;
	w->counters->io_busy_cycles += cycles;
	if (cycles > w->counters->io_max_turn_cycles)
		w->counters->io_max_turn_cycles = cycles;
}

int worker_run(void *arg)
{
	struct worker *w = arg;
	prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		uint64_t now_ns = worker_now_ns(), start = rte_rdtsc();
		unsigned work = worker_turn(w, now_ns);
		worker_account(w, rte_rdtsc() - start, work);
		if (work > 0) {
			idle_end(w, now_ns);
		} else if (!w->busy_poll) {
			idle_wait(w, now_ns);
		}
	}
	for (struct rail *r = w->rail; r < w->rail + w->rails; r++)
		if (!r->away)
			r->port->ops->stop(w, r);
	return 0;
}
