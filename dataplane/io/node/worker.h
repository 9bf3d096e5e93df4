/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one thread, one endpoint, one queue pair of each port. It owns its engine, its queues
 * and its counters; nobody else touches them while it runs. The main thread speaks to it through
 * `wanted` (the session it should serve) and `stop`, other workers through its hand-over ring.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_WORKER_H
#define SARISSA_DATAPLANE_IO_NODE_WORKER_H

#include <stdatomic.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "core/engine.h"
#include "internal/ring.h"
#include "io/ports/port.h"
#include "prefault.h"

enum {
	WORKER_BURST = 32,
	WORKER_HANDOVER = 1024, /* packets that wait for another worker */
	WORKER_TX_ROUNDS = 4,	/* bursts sent in one turn, so that receiving is not starved */
	/* And at most so many bytes: what they are copied from and to is to stay in a cache. */
	WORKER_TX_BYTES = 512 * 1024,
	WORKER_RX_ROUNDS = WORKER_TX_ROUNDS, /* bursts received from a queue in one turn */
};

/* A worker's part of serving one control process: built by the main thread, read by the worker. */
struct session {
	struct engine *engine;
	struct ring_end *commands, *events; /* the worker's ends */
	_Atomic uint32_t *sleeping;	    /* this worker's flag in the ipc area */
	_Atomic uint32_t *control_sleeping;
	int control_wake;
	const uint8_t *store; /* for payload that a card reads in place */
	uint64_t store_bytes;
};

/* Cycles by stage of our own work around the engine, for benchmarks. */
enum io_stage {
	IO_RX, /* all of rx_burst, with the engine's share */
	IO_TX, /* all of tx_burst, with the engine's share */
	IO_RX_DRIVER,
	IO_TX_DRIVER,
	IO_COPY, /* payload into the packet */
	IO_SEAL,
	IO_AHEAD, /* fetching what the next packets need */
	IO_STAGES,
};

/* One port, as a worker uses it. */
struct rail {
	/* set before the thread starts */
	uint8_t index;
	const struct port *port;
	const struct port_queue *out;		      /* where we send */
	const struct port_queue *in[PORT_QUEUES_MAX]; /* where we receive */
	unsigned ins;
	struct udp *udp; /* instead, on a port of sockets */
	struct rte_ring *handover;

	/* the worker's own */
	bool away; /* all that leaves is lost, and nothing else of the port is touched */
	struct rte_mbuf *head[WORKER_BURST]; /* empty packets, ready to be written */
	unsigned heads;
	struct rte_mbuf *held[WORKER_BURST]; /* packets that the port had no room for */
	unsigned held_count;
	uint64_t held_ns; /* when the port last took some */
	bool wants_room;  /* the descriptor we receive on tells when there is room again */
};

struct worker {
	/* set before the thread starts */
	unsigned index, workers;
	struct worker *all; /* of this process, by index */
	unsigned rails;
	int wake_fd; /* eventfd: control, main thread or another worker has something */
	/* eventfd of the main thread, to look up neighbours where the kernel owns our address; -1:
	 * it does nowhere */
	int resolver_fd;
	bool busy_poll;
	struct prefault *prefault; /* NULL: none */
	struct counters *counters;
	uint64_t *stages; /* cycles[IO_STAGES]; NULL: no accounting */

	/* main thread -> worker */
	_Alignas(64) _Atomic(const struct session *) wanted;
	_Atomic uint32_t wanted_away; /* a bit for each port that is to be let alone */
	_Atomic bool stop;
	/* worker -> main thread and other workers */
	_Alignas(64) _Atomic(const struct session *) serving;
	_Atomic uint32_t sleeping;
	_Atomic uint32_t away; /* a bit for each port that is let alone */

	/* the worker's own */
	_Alignas(64) const struct session *session; /* NULL: no control yet */
	struct record pending;			    /* a command the engine could not take yet */
	bool has_pending;
	struct record event[WORKER_BURST]; /* events that the ring had no room for */
	unsigned event_first, event_count;
	uint64_t last_work_ns;
	uint64_t gap_ns; /* usual time without work, learned */
	uint32_t idle_turns;
	bool armed;	  /* the port will interrupt at the next packet */
	bool overslept;	  /* armed, and woken by time alone */
	bool heard;	  /* an interrupt has come */
	bool deaf;	  /* interrupts do not come, whatever the driver says: naps, as without */
	unsigned unheard; /* sleeps after which packets were there, less those that they ended */
	uint64_t nap_ns;  /* without a descriptor to sleep on: the next nap's length */
	struct rte_mbuf_ext_shared_info pinned; /* segments that still point into the store */
	uint8_t *scratch;			/* one frame that came in pieces, made whole */
	struct rail rail[RAILS_MAX];
};

/* Runs until stop. An lcore function: arg is the struct worker. */
int worker_run(void *arg);

/* rx.c: takes and answers what arrived; returns how many packets. */
unsigned rx_burst(struct worker *w, struct rail *r, uint64_t now_ns);

/* tx.c: sends what the port did not take last time, then what the engine has; returns how many
 * packets. While the port takes nothing the engine is not asked for more. */
unsigned tx_burst(struct worker *w, struct rail *r, uint64_t now_ns);
/* Forgets what the port did not take. */
void tx_drop_held(struct worker *w, struct rail *r);
/* The worker ends: gives its buffers back. */
void tx_stop(struct worker *w, struct rail *r);
/* Sends one packet of our own making (ARP, echo); takes the buffer. */
void tx_send_one(struct worker *w, struct rail *r, struct rte_mbuf *m);

/* idle.c: called after a turn without work; spins, pauses or sleeps until something may be there.
 */
/* Ends an idle time: a turn has found work. */
void idle_end(struct worker *w, uint64_t now_ns);
void idle_wait(struct worker *w, uint64_t now_ns);
/* After a sleep that ended by time alone (overslept): so many packets were there. */
void idle_found(struct worker *w, unsigned packets);
/* Makes a sleeping worker look at its rings; from any thread. */
void idle_wake(struct worker *w);

uint64_t worker_now_ns(void);

static inline uint64_t worker_stage_begin(const struct worker *w)
{
	return w->stages ? rte_rdtsc() : 0;
}

static inline void worker_stage_end(struct worker *w, enum io_stage stage, uint64_t begin)
{
	if (w->stages)
		w->stages[stage] += rte_rdtsc() - begin;
}

#endif
