/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves records between the core and the workers' rings: commands out, events in. Called by host.c
 * in each turn of the event loop. Records of messages go through rpc/mailbox.h; it must not know
 * what other records mean. */
#include <unistd.h>
#include "host.h"
#include "internal/ring.h"
#include "log.h"

enum {
	BURST = 64,
	ROUNDS_MAX = 16, /* then the clients have their turn */
};

static void pump_event(struct host *h, unsigned worker, const struct record *r, uint64_t now_ns)
{
	struct message m;

	if (r->op == EVENT_MSG || r->op == EVENT_MSG_SENT) {
		if (worker == 0 && mailbox_event(&h->mailbox, r, &m))
			control_message(h->core, r->msg.conn, &m, now_ns);
		return;
	}
	control_event(h->core, worker, r, now_ns);
}

static bool pump_events(struct host *h, unsigned worker, uint64_t now_ns)
{
	struct record burst[BURST];
	unsigned n = ring_pop(&h->attach.events[worker], burst, BURST);

	for (unsigned i = 0; i < n; i++)
		pump_event(h, worker, &burst[i], now_ns);
	return n > 0;
}

/* Free slots are of use to a worker only when a message comes, which wakes it anyway. */
static bool pump_urgent(const struct record *r, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (r[i].op != COMMAND_MSG_FREE)
			return true;
	return false;
}

/* Moves records to a worker while its ring has room: those of the plan, or messages too. Returns
 * how many; sets *urgent when it must know of one now. */
static unsigned pump_commands(struct host *h, unsigned worker, bool messages, bool *urgent)
{
	struct ring_end *ring = &h->attach.commands[worker];
	struct record burst[BURST];
	unsigned n, room, total = 0;

	do {
		room = ring_room(ring);
		room = room < BURST ? room : BURST;
		h->report.shell.commands_waited += room == 0;
		n = control_commands(h->core, worker, burst, room);
		if (n < room && messages)
			n += mailbox_commands(&h->mailbox, burst + n, room - n);
		if (n > 0)
			ring_push(ring, burst, n);
		*urgent |= pump_urgent(burst, n);
		total += n;
	} while (n > 0);
	return total;
}

/* The plans of all workers first, worker 0 and its messages last: a stream is known to the worker
 * that it comes to before a peer hears of it. */
static bool pump_send(struct host *h)
{
	bool some = false;

	for (unsigned w = h->attach.reply.workers; w-- > 0;) {
		bool urgent = false;

		if (pump_commands(h, w, w == 0, &urgent) == 0)
			continue;
		if (urgent)
			ring_wake(&h->attach.ipc->worker[w].sleeping, h->attach.worker_wake[w]);
		some = true;
	}
	return some;
}

static bool pump_round(struct host *h)
{
	uint64_t now_ns = host_now_ns();
	bool some = false;

	for (unsigned w = 0; h->attached && w < h->attach.reply.workers; w++)
		some |= pump_events(h, w, now_ns);
	if (control_next_timeout(h->core) <= now_ns)
		control_tick(h->core, now_ns);
	if (h->attached)
		some |= pump_send(h);
	return some;
}

static bool pump_rings_empty(struct host *h)
{
	for (unsigned w = 0; w < h->attach.reply.workers; w++)
		if (!ring_empty(&h->attach.events[w]))
			return false;
	return true;
}

bool host_pump(struct host *h)
{
	if (h->attached)
		ring_sleep_end(&h->attach.ipc->control_sleeping);
	for (int round = 0; round < ROUNDS_MAX; round++) {
		if (pump_round(h))
			continue;
		if (!h->attached)
			return false;
		ring_sleep_begin(&h->attach.ipc->control_sleeping);
		if (pump_rings_empty(h))
			return false;
		ring_sleep_end(&h->attach.ipc->control_sleeping);
	}
	return true;
}
