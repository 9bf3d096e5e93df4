/* SPDX-License-Identifier: BSD-3-Clause */
#include "away.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "io/observe/log.h"
#include "node.h"

#define AWAY_TRY_NS	250000000ull   /* from one look for the device to the next */
#define AWAY_TRY_MAX_NS 16000000000ull /* after failures, each of which doubles it */

enum {
	AWAY_ANSWER_PAUSE_NS = 100000,
	AWAY_ANSWER_TRIES = 100000, /* 10 s or more for what takes a worker one turn */
};

/* A worker that never answers may be inside the driver of the device that has gone: its buffers
 * cannot be taken away. Tries are counted, not time: a machine that stood still takes none. */
static void away_wait(const struct options *o, const struct worker *w, uint32_t bit, bool away)
{
	struct timespec pause = {.tv_nsec = AWAY_ANSWER_PAUSE_NS};
	for (unsigned tries = 0;
	     ((atomic_load_explicit(&w->away, memory_order_acquire) & bit) != 0) != away; tries++) {
		if (tries == AWAY_ANSWER_TRIES) {
			log_error(
				"port %s: worker %u has not answered for 10 s, so the port cannot "
				"be %s: ending, start the node again",
				o->port.text, w->index, away ? "closed" : "used");
			_exit(1);
		}
		nanosleep(&pause, NULL);
	}
}

/* Every worker lets port k alone, or takes it up again. */
static void away_switch(struct node *n, unsigned k, bool away)
{
	uint32_t bit = 1u << k;
	for (struct worker *w = n->worker; w < n->worker + n->options->workers; w++) {
		if (away)
			atomic_fetch_or_explicit(&w->wanted_away, bit, memory_order_release);
		else
			atomic_fetch_and_explicit(&w->wanted_away, ~bit, memory_order_release);
		eventfd_write(w->wake_fd, 1);
	}
	for (struct worker *w = n->worker; w < n->worker + n->options->workers; w++)
		away_wait(&n->options[k], w, bit, away);
}

/* Packets that one worker has for another lie in buffers that are about to go. */
static void away_drain(struct node *n, unsigned k)
{
	void *m;
	for (struct worker *w = n->worker; w < n->worker + n->options->workers; w++)
		while (rte_ring_sc_dequeue(w->rail[k].handover, &m) == 0)
			rte_pktmbuf_free(m);
}

static void away_begin(struct node *n, unsigned k, uint64_t now_ns)
{
	struct port *p = &n->port[k];
	log_warning("port %s: its device has gone: nothing goes by this port until it is back",
		    n->options[k].port.text);
	n->away[k] =
		(struct away){.is = true, .try_ns = now_ns + AWAY_TRY_NS, .pause_ns = AWAY_TRY_NS};
	away_switch(n, k, true);
	away_drain(n, k);
	node_close_netlink(n, k);
	capture_unhook(p);
	port_drop(p);
}

/* The port, opened again; it must be what peers and engines know. Returns 0, or -errno with a line
 * logged. */
static int away_open(const struct options *o, const struct port *before, struct port *out)
{
	int error = port_plan(o, out);
	if (error)
		return error;
	if (memcmp(out->addr.ip, before->addr.ip, sizeof(out->addr.ip)) != 0 ||
	    out->mtu < before->mtu) {
		log_error(
			"port %s: it is back with another address or a smaller MTU: give it those "
			"that it had, or restart the node",
			o->port.text);
		return -EADDRNOTAVAIL;
	}
	memcpy(out->held, before->held, sizeof(out->held));
	error = port_open(o, out);
	out->mtu = before->mtu;
	if (error)
		port_drop(out);
	return error;
}

static int away_end(struct node *n, unsigned k)
{
	const struct options *o = &n->options[k];
	struct port fresh;
	int error = away_open(o, &n->port[k], &fresh);
	if (error)
		return error;
	n->port[k] = fresh;
	link_begin(&n->port[k].link, worker_now_ns());
	for (struct worker *w = n->worker; w < n->worker + n->options->workers; w++)
		node_rail_queues(n, w, k);
	error = node_open_netlink(n, k);
	if (!error && n->capture)
		error = capture_hook(n->capture, &n->port[k]);
	if (error) {
		log_error("port %s: it is back and cannot be used (%s)", o->port.text,
			  strerror(-error));
		node_close_netlink(n, k); /* it knows the port's table of neighbours */
		capture_unhook(&n->port[k]);
		port_drop(&n->port[k]);
		return error;
	}
	if (n->store.base)
		session_map_store(n, k);
	n->away[k].is = false;
	away_switch(n, k, false);
	log_info("port %s: it is back", o->port.text);
	return 0;
}

static bool away_has_gone(const struct node *n, unsigned k)
{
	return (n->netlink[k] && n->netlink[k]->gone) || device_was_removed(k);
}

/* A node whose last card has gone ends as one with one card does: a service manager starts it
 * again. An interface is waited for. */
static void away_check_rest(const struct node *n)
{
	bool any = false, card = false;
	for (unsigned k = 0; k < n->rails; k++) {
		any |= !n->away[k].is;
		card |= n->port[k].type->chosen;
	}
	if (any || !card)
		return;
	log_error("no port is left: ending");
	kill(getpid(), SIGTERM);
}

void away_step(struct node *n, uint64_t now_ns)
{
	for (unsigned k = 0; k < n->rails; k++) {
		struct away *a = &n->away[k];
		const struct options *o = &n->options[k];
		if (!a->is && away_has_gone(n, k)) {
			away_begin(n, k, now_ns);
			away_check_rest(n);
		}
		if (!a->is || now_ns < a->try_ns)
			continue;
		if (!o->port.type->is_back || !o->port.type->is_back(o))
			a->pause_ns = AWAY_TRY_NS;
		else if (away_end(n, k) != 0 && a->pause_ns < AWAY_TRY_MAX_NS)
			a->pause_ns *= 2;
		a->try_ns = worker_now_ns() + a->pause_ns;
	}
}

int away_wait_ms(const struct node *n, uint64_t now_ns)
{
	int wait_ms = -1;
	for (unsigned k = 0; k < n->rails; k++) {
		const struct away *a = &n->away[k];
		int ms = a->try_ns <= now_ns ? 0 : (int)((a->try_ns - now_ns) / 1000000) + 1;
		if (a->is && (wait_ms < 0 || ms < wait_ms))
			wait_ms = ms;
	}
	return wait_ms;
}
