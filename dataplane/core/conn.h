/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: all that is known of one, by concern, and its life from alloc to close. Each part of
 * struct conn is changed by the file that it names.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_H
#define SARISSA_DATAPLANE_CORE_CONN_H

#include <stdbool.h>
#include "engine_state.h"
#include "kernel.h"
#include "list.h"
#include "wire.h"

struct lost_item;
struct msg_in;
struct sent;

enum { RESETS_MAX = 16 }; /* streams to reset, waiting, per connection */

/* What the path of a connection takes, while that bounds it. */
struct rate {
	uint64_t ns_per_kib; /* 0: not known, or not what bounds */
	uint64_t bytes;	     /* acknowledged since since_us */
	uint64_t queue_ns;   /* the sum of the delays that so many */
	uint32_t samples;    /* acknowledgements have shown */
	uint32_t since_us;   /* on the receiver's clock */
	bool open;	     /* it counts */
	bool starved;	     /* at some time there was nothing to send */
};

enum conn_state {
	CONN_FREE,
	CONN_OPENING,
	CONN_UP,
};

struct conn {
	/* identity */
	uint8_t state;
	bool saw_other_version;
	uint16_t check_rx, check_tx;
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
	struct list ready;    /* on engine.ready: may have something to send; or on free_conns */
	struct list timer;    /* on a slot of the wheel */
	struct list by_addr;  /* on a bucket of engine.by_addr */
	uint64_t wheel_ns;    /* when the wheel will wake it */

	/* for others to read: peer.c */
	struct peer_counters tally;
	uint64_t tell_ns;		  /* when it is due to be told; NEVER: nobody reads */
	uint64_t told_bytes;		  /* sent and received until it was told last */
	uint64_t sample_ns, sample_bytes; /* of the rates: when, what had got through, */
	uint64_t sample_waited_ns;	  /* and for how long it had waited for the path */
	uint64_t best_bytes_per_s;
	uint64_t path_bytes_per_s, path_stamp_ns;

	/* receiving packets */
	uint64_t rx_largest; /* highest packet number seen; valid when rx_any */
	uint64_t rx_largest_ns;
	uint64_t *rx_bitmap; /* engine.rx_window bits */
	uint64_t ack_deadline_ns;
	uint64_t ack_history[4]; /* largest of the last acknowledgements sent */
	uint32_t ack_sent;	 /* acknowledgements sent */
	uint32_t ack_pending;
	bool rx_any;
	bool ack_now;
	bool ecn_changed;
	uint32_t rx_ce; /* CE marks seen */
	uint64_t last_rx_ns;
	uint64_t watch_ns;	/* a silence so long is told; 0: none is */
	uint64_t watch_from_ns; /* it counts from here */
	bool silent;		/* it was told */

	/* sending packets */
	uint64_t next_pn;
	uint64_t oldest_pn; /* no packet below is outstanding */
	uint64_t largest_acked;
	bool any_acked;
	struct sent *sent;	/* ring of engine.sent_slots */
	uint64_t *outstanding;	/* bit per slot */
	uint64_t *late;		/* bit per slot: declared lost, may still be acknowledged */
	struct lost_item *lost; /* ring of engine.sent_slots: items that wait to leave again */
	uint32_t lost_head, lost_count;
	uint32_t inflight_pkts;
	uint64_t inflight_bytes;
	uint64_t last_elicit_ns; /* when the last ack-eliciting packet left; */
	bool last_later;	 /* it was a CHUNK packet, which is answered later than others */
	uint32_t tx_ce_seen;	 /* the peer's CE count when last heard */

	/* loss */
	uint64_t rack_time_ns; /* send time of the most recently sent packet that has arrived */
	uint64_t srtt_ns, rttvar_ns, min_rtt_ns, latest_rtt_ns;
	uint32_t handshake_rtt_us; /* the first of them; 0: the HELLO went twice */
	uint64_t rtt_from_pn;	   /* what was sent earlier saw a pause */
	bool rtt_doubted;
	uint64_t min_rtt_stamp_ns;
	uint32_t latest_arrival_us;		    /* on the receiver's clock */
	uint32_t min_one_way_us, latest_one_way_us; /* plus the difference of the two clocks */
	uint64_t min_one_way_stamp_ns;		    /* 0: no sample */
	uint64_t loss_deadline_ns; /* reorder window of the oldest suspect, or NEVER */
	uint64_t waiting_since_ns; /* first unanswered probe; 0: none */
	uint32_t reorder_shift;	   /* widens the reorder window after spurious losses */
	uint32_t reorder_rounds;   /* round trips since the last of them */
	uint16_t pto_count;
	uint16_t probes_due;

	/* congestion, pacing */
	uint64_t cwnd_bytes;
	uint64_t round_end_pn;	  /* a round trip ends when this packet is acknowledged */
	uint64_t cwnd_full_bytes; /* the window after the last cut: what the path is known to carry
				   */
	uint32_t calm_rounds;	  /* since then */
	bool round_blind;	  /* this round still shows the window before a cut */
	uint64_t pace_ns;	  /* the time up to which the pacing budget is spent */
	uint64_t pace_ns_per_kib;
	uint64_t pace_from_ns; /* while pace_blocked: when it may go on */
	struct rate rate;
	uint32_t round_acked, round_ce;
	uint32_t sample_acked, sample_lost; /* since the share of losses was last taken */
	uint64_t delay_target_ns;	    /* queueing delay to aim at, learned */
	uint32_t since_ask;	 /* packets since one asked for an acknowledgement at once */
	uint32_t ce_alpha;	 /* DCTCP's fraction of marked packets, in 1/1024 */
	uint64_t round_delay_ns; /* smallest queueing delay of the round */
	uint8_t senders;	 /* that share the peer's link, by its last grant; 0: not known */
	uint8_t told_senders;	 /* that share ours, by our last grant; 0: not told */
	bool slow_start;
	bool pace_blocked;
	bool saving;	  /* for a burst: its budget was spent, and is not yet worth one again */
	uint64_t held_ns; /* since then it has something to send and may not; 0: it may */
	bool cwnd_limited;

	/* path MTU, IP bytes */
	uint16_t mtu;
	uint16_t mtu_target, mtu_low, mtu_high, mtu_probe;
	uint8_t mtu_tries;
	bool mtu_searching, mtu_probe_out;
	bool mtu_small_passes;	 /* a small packet arrived since large ones began to vanish */
	uint8_t mtu_lost_rounds; /* large packets lost in so many rounds, none arrived since */
	uint64_t mtu_round_ns;	 /* when the last of those rounds was counted */
	uint64_t mtu_next_ns;

	/* handshake */
	uint64_t hello_ns; /* when the next HELLO is due */
	uint64_t hello_sent_ns;
	uint64_t opened_ns;
	uint64_t cookie_time;
	uint8_t cookie[WIRE_COOKIE_BYTES];
	uint16_t hello_tries;
	bool hello_due;
	bool have_cookie;
	bool ping_due;
	bool close_due;

	/* work */
	struct list out_edges, in_edges; /* all on this connection */
	struct list active;		 /* OUT edges that may have a chunk to send */
	struct list grants;		 /* IN edges with a grant to send */
	uint32_t in_active;		 /* of engine.in_active, those of this connection */
	struct list msgs;		 /* outgoing, by id */
	uint32_t next_msg_id;
	uint32_t deliver_id;   /* next incoming message to hand over */
	struct msg_in *msg_in; /* MSG_WINDOW */
	uint32_t resets[RESETS_MAX];
	uint16_t resets_count;
};

struct conn *conn_find(struct engine *e, uint32_t handle);
struct conn *conn_by_addr(struct engine *e, const struct net_addr *addr);
/* A connection in state OPENING, nothing sent yet; NULL when the table is full. */
struct conn *conn_alloc(struct engine *e, const struct net_addr *addr);
void conn_established(struct engine *e, struct conn *c);
/* Ends a connection: its edges fail, its messages come back, control hears PEER_DOWN. */
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
	list_want(&e->ready, &c->ready);
}

#endif
