/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: all that is known of one, and its life from alloc to close. struct conn is made of
 * parts; each names the file that looks after it.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_CONN_H
#define SARISSA_DATAPLANE_CORE_CONN_CONN_H

#include <stdbool.h>
#include "core/engine_state.h"
#include "core/kernel/kernel.h"
#include "core/list.h"
#include "core/wire/wire_field.h"

struct lost_item;
struct msg_in;
struct sent;

enum conn_state {
	CONN_FREE,
	CONN_OPENING,
	CONN_UP,
};

/* Values of a connection that others may read, beside its tally: peer.c. */
struct conn_report {
	uint64_t tell_ns;		  /* when it is due; NEVER: nobody reads */
	uint64_t reported_bytes;	  /* sent and received until the last report */
	uint64_t sample_ns, sample_bytes; /* of the rates: when, and what had got through then */
	uint64_t sample_waited_ns;	  /* how long packets had waited for the path until then */
	uint64_t best_bytes_per_s;
	uint64_t path_bytes_per_s, path_stamp_ns;
};

/* Received packets, and what of them is to be acknowledged: ack.c. */
struct conn_rx {
	uint64_t largest; /* highest packet number seen; valid when any */
	uint64_t largest_ns;
	uint64_t *bitmap; /* engine.rx_window bits */
	uint64_t ack_deadline_ns;
	uint64_t ack_history[4]; /* largest of the last acknowledgements sent */
	uint32_t ack_sent;	 /* acknowledgements sent */
	uint32_t ack_pending;
	uint32_t ce; /* CE marks seen */
	bool any;
	bool ack_now;
	bool ecn_changed;
	uint8_t peer_senders; /* that share our link, by our last grant; 0: not told */
};

/* Sent packets, and what has become of them: sent.c. */
struct conn_tx {
	uint64_t next_pn;
	uint64_t oldest_pn; /* no packet below is outstanding */
	uint64_t largest_acked;
	struct sent *sent;	/* ring of engine.sent_slots */
	uint64_t *outstanding;	/* bit per slot */
	uint64_t *late;		/* bit per slot: declared lost, may still be acknowledged */
	struct lost_item *lost; /* ring of engine.sent_slots: items that wait to leave again */
	uint32_t lost_head, lost_count;
	uint64_t inflight_bytes;
	uint32_t inflight_pkts;
	uint32_t ce_seen;	 /* the peer's CE count when last heard */
	uint64_t last_elicit_ns; /* when the last ack-eliciting packet left */
	uint32_t since_ask;	 /* packets since one asked for an acknowledgement at once */
	bool last_later; /* the last was a CHUNK packet: those are answered later than others */
	bool any_acked;
};

/* Round trips and losses: loss.c. */
struct conn_loss {
	uint64_t rack_time_ns; /* send time of the most recently sent packet that has arrived */
	uint64_t srtt_ns, rttvar_ns, min_rtt_ns, latest_rtt_ns;
	uint64_t rtt_from_pn; /* packets before this one have seen a pause */
	uint64_t min_rtt_stamp_ns;
	uint32_t latest_arrival_us;		    /* on the receiver's clock */
	uint32_t min_one_way_us, latest_one_way_us; /* plus the difference of the two clocks */
	uint32_t reorder_shift;	       /* widens the reorder window after spurious losses */
	uint64_t min_one_way_stamp_ns; /* 0: no sample */
	uint32_t drift_us;	       /* by so much the least may be too large, as clocks drift */
	uint32_t drift_tick;	       /* when that was reckoned, in units of LOSS_DRIFT_NS */
	uint64_t deadline_ns;	       /* reorder window of the oldest suspect, or NEVER */
	uint64_t waiting_since_ns;     /* first unanswered probe; 0: none */
	uint32_t reorder_rounds;       /* round trips since the last spurious loss */
	uint16_t pto_count;	       /* probes since the last answer, at most UINT16_MAX */
	uint16_t probes_due;
	bool rtt_doubted;
};

/* The path's rate, while that bounds the pace. */
struct rate {
	uint64_t ns_per_kib; /* 0: not known, or not what bounds */
	uint64_t bytes;	     /* acknowledged since since_us */
	uint64_t queue_ns;   /* the sum of the delays that the samples have shown */
	uint32_t samples;    /* acknowledgements since since_us */
	uint32_t since_us;   /* on the receiver's clock */
	bool open;	     /* it counts */
	bool starved;	     /* at some time there was nothing to send */
};

/* Window and pace: congestion.c. */
struct conn_cc {
	uint64_t cwnd_bytes;
	uint64_t round_end_pn;	  /* a round trip ends when this packet is acknowledged */
	uint64_t cwnd_full_bytes; /* the window after the last cut: the path carries that */
	uint64_t pace_ns;	  /* the time up to which the pacing budget is spent */
	uint64_t pace_ns_per_kib;
	uint64_t pace_from_ns; /* while pace_blocked: when it may go on */
	struct rate rate;
	uint32_t round_acked, round_ce;
	uint32_t sample_acked, sample_lost; /* since the share of losses was last taken */
	uint64_t delay_target_ns;	    /* queueing delay to aim at, learned */
	uint64_t round_delay_ns;	    /* smallest queueing delay of the round */
	uint64_t held_ns;     /* since then it has something to send and may not; 0: it may */
	uint32_t calm_rounds; /* since the last cut */
	uint32_t ce_alpha;    /* DCTCP's fraction of marked packets, in 1/1024 */
	uint8_t senders;      /* that share the peer's link, by its last grant; 0: not known */
	bool slow_start;
	bool round_blind; /* this round still shows the window before a cut */
	bool pace_blocked;
	bool saving; /* for a burst: its budget was spent, and is not yet worth one again */
	bool cwnd_limited;
};

/* The search for what the path carries, in IP bytes; conn.mtu is the result: path_mtu.c. */
struct conn_pmtu {
	uint64_t round_ns;     /* when the last of lost_rounds was counted */
	uint64_t next_ns;      /* when the next trial or search is due */
	uint32_t trial;	       /* number of the latest: earlier ones speak of other sizes */
	uint16_t target, high; /* what both links take; the least size that has failed */
	uint16_t probe;	       /* the size under test */
	uint16_t doubt;	       /* the least size that vanished, while none so large arrives; or 0 */
	uint8_t lost_rounds;   /* rounds in which such packets were lost */
	uint8_t misses;	       /* trials that the probe has failed in a row */
	uint8_t trials;	       /* doublings of the pause between trials, */
	uint8_t raises;	       /* and between searches */
	uint8_t out;	       /* which packets of the trial are under way: path_mtu.c */
	bool testing;	       /* searching, or in doubt */
	bool searching;
	bool narrow; /* a size that both links take has failed, and none so large passed since */
};

/* Opening: handshake.c. */
struct conn_hello {
	uint64_t next_ns; /* when the next HELLO is due */
	uint64_t sent_ns;
	uint64_t cookie_time;
	uint8_t cookie[WIRE_COOKIE_BYTES];
	uint16_t tries;
	bool due;
	bool have_cookie;
	uint8_t long_ones; /* HELLOs as long as the link takes that were not answered, */
	bool last_long;	   /* and whether the last one was so long */
	bool saw_other_version;
};

/* Messages: msg.c. */
struct conn_msg {
	struct list out; /* by id */
	uint32_t next_id;
	uint32_t deliver_id; /* next incoming message to hand over */
	struct msg_in *in;   /* MSG_WINDOW */
};

struct conn {
	/* identity */
	_Alignas(64) uint8_t state; /* in whole cache lines, the seldom used ones last */
	bool silent;		    /* control knows of its silence */
	uint8_t rail;		    /* that its packets go by */
	bool impaired;		    /* a path that brings nothing, beside others that do (path.h) */
	uint16_t check_rx, check_tx;
	uint16_t mtu;		 /* IP bytes that the path carries */
	uint32_t crc_rx, crc_tx; /* wire_crc_conn() */
	uint32_t handle;	 /* our connection id */
	uint32_t remote;	 /* the peer's */
	struct net_addr addr;
	uint64_t incarnation; /* the peer's */
	uint64_t token;
	uint16_t index;
	uint16_t generation;
	uint16_t peer_workers;
	uint16_t peer_mtu;
	uint16_t window_pkts; /* in flight: the smaller of both ends' windows */
	bool ping_due;
	bool close_due;
	uint32_t handshake_rtt_us; /* the first round trip; 0: the HELLO went twice */
	uint64_t opened_ns;
	struct list ready;   /* on engine.ready: may have something to send; or on free_conns */
	struct list timer;   /* on a slot of the wheel */
	struct list by_addr; /* on a bucket of engine.by_addr */
	struct conn *main;   /* whose path this is (path.h); itself: a connection */
	uint32_t paths;	     /* of main: those that are UP, beside itself */
	uint64_t wheel_ns;   /* when the wheel will wake it */

	/* silence */
	uint64_t last_rx_ns;
	uint64_t watch_ns;	/* a silence so long is told; 0: none is */
	uint64_t watch_from_ns; /* it counts from here */

	struct peer_counters tally;
	struct conn_pmtu pmtu;
	struct conn_rx rx;
	struct conn_tx tx;
	struct conn_loss loss;
	struct conn_cc cc;

	/* work on streams */
	struct list out_edges, in_edges; /* all on this connection */
	struct list active;		 /* OUT edges that may have a chunk to send */
	struct list grants;		 /* IN edges with a grant to send */
	uint32_t in_active;		 /* of engine.in_active, those of this connection */
	uint16_t resets_count;
	uint32_t resets[RESETS_MAX];

	struct conn_msg msg;
	struct conn_hello hello;
	struct conn_report report;
	struct conn *path[RAILS_MAX]; /* of main, by rail: itself, and those that are there */
	uint32_t path_of;	      /* opening: the peer's id of main */
};
_Static_assert(sizeof(struct conn) == 1088, "a connection is as long as 17 cache lines");

struct conn *conn_find(struct engine *e, uint32_t handle);
struct conn *conn_by_addr(struct engine *e, const struct net_addr *addr);
/* The connection that control names by that handle: not another path of one. */
struct conn *conn_named(struct engine *e, uint32_t handle);
/* A connection on rail 0 in state OPENING, nothing sent yet; NULL when the table is full. */
struct conn *conn_alloc(struct engine *e, const struct net_addr *addr);
void conn_established(struct engine *e, struct conn *c);
/* Ends a connection with all its paths: its edges fail, its messages come back, control hears
 * PEER_DOWN of each. */
void conn_close(struct engine *e, struct conn *c, enum reason why);
enum reason conn_open_record(struct engine *e, const struct record *r);
enum reason conn_close_record(struct engine *e, const struct record *r);
enum reason conn_watch_record(struct engine *e, const struct record *r);
/* IP and UDP header bytes towards this peer. */
static inline uint16_t conn_overhead(const struct conn *c)
{
	return net_addr_is_v4(&c->addr) ? ENGINE_OVERHEAD_V4 : ENGINE_OVERHEAD_V6;
}

/* Bytes of UDP payload that the path carries. */
static inline uint16_t conn_room(const struct conn *c)
{
	return (uint16_t)(c->mtu - conn_overhead(c));
}
/* Runs this connection's timers; may close it. */
void conn_timers(struct engine *e, struct conn *c);
/* Sets the wheel to the earliest of its timers. */
void conn_arm(struct engine *e, struct conn *c);

/* Puts a connection on the list of those that may have something to send. */
static inline void conn_wake(struct engine *e, struct conn *c)
{
	list_want(&e->ready[c->rail], &c->ready);
}

#endif
