/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an engine: connections, buffers, edges, messages. Everything is carved out of the
 * caller's memory at init; nothing is allocated later. Only files of dataplane/core include this.
 */
#ifndef SARISSA_DATAPLANE_CORE_STATE_H
#define SARISSA_DATAPLANE_CORE_STATE_H

#include "engine.h"
#include "internal/ipc.h"
#include "kernel.h"
#include "list.h"
#include "wire.h"

enum {
	UNSCHEDULED_CHUNKS = 32, /* a stream's credit before the first grant */
	MSG_WINDOW = 32,	 /* messages in flight per connection and direction */
	RESETS_MAX = 16,	 /* streams to reset, waiting, per connection */
	REPLIES_MAX = 64,	 /* answers without a connection, waiting */
	MTU_BASE = 1280,	 /* IP bytes every path carries (RFC 8200, 5) */
	ACK_EVERY = 24,		 /* packets */
	ACK_CHUNK_DELAYS = 2,	 /* so many times as long as others a chunk waits for its own */
	ACK_LATER_SENDERS = 8,	 /* to one node, above which it does not, */
	ACK_FEW_DELAYS = 4,	 /* and so many times from */
	FEW_SENDERS = 4,	 /* on down, who may aim at more queue, too */
	GRANTS = 4,		 /* in a stream's window, */
	GRANTS_LATER = 2,	 /* where at most ACK_LATER_SENDERS send, */
	GRANT_CHUNKS = 48,	 /* and a quarter of it is less than that */
	WHEEL_SLOTS = 4096,
	WHEEL_SLOT_NS = 16384,
};

#define NEVER	   UINT64_MAX
#define CHUNKS_MAX (UINT32_C(1) << 31) /* of a buffer: stepping by words of 64 never wraps */

struct conn;

/* ---- buffers and edges ------------------------------------------------------------------- */

struct buffer {
	uint32_t handle; /* 0: free */
	uint32_t epoch;
	uint64_t token;
	uint8_t *data;
	uint64_t size;
	uint64_t *bitmap;	     /* NULL: a local source, ready up to ready_low */
	uint8_t *counts;	     /* contributions to each chunk so far; NULL: a copy */
	_Atomic uint64_t *watermark; /* in the object table, or NULL */
	uint32_t chunks;
	uint32_t chunk_bytes;
	uint32_t ready_low;  /* chunks ready without a gap from the start */
	uint32_t ready_high; /* no chunk at or beyond is ready */
	uint32_t ready_count;
	uint32_t progress_low; /* ready_low when progress was last reported */
	bool progress_queued;
	bool done_reported;
	bool hold;	/* the last chunk is given to nobody yet, be it in or not */
	uint8_t need;	/* contributions that make a chunk ready */
	uint16_t scale; /* by which a chunk is divided then, when divide is there */
	kernel_fn *apply;
	kernel_many_fn *many;
	kernel_scale_fn *divide;
	struct list out_edges, in_edges;
	struct list locals; /* LOCAL edges into it */
	struct list takers; /* LOCAL edges out of it */
};

struct out_edge {
	uint32_t handle; /* 0: free */
	uint32_t epoch;
	uint64_t token;
	struct buffer *buffer;
	struct conn *conn; /* NULL: the connection died or the edge failed */
	uint64_t *sent;	   /* bit per chunk of the buffer */
	uint32_t stream;
	uint32_t first, end; /* chunks */
	uint32_t cursor;     /* no unsent ready chunk lies below */
	uint32_t total;	     /* chunks to send in all */
	uint32_t sent_count; /* first transmissions */
	uint32_t acked_count;
	uint32_t credit;   /* first transmissions allowed */
	uint64_t since_ns; /* it has chunks to send and no credit; 0: it has */
	struct list on_buffer, on_conn;
	struct list active; /* on conn->active while it may have a chunk to send */
};

/* IN and LOCAL edges: what contributes to a buffer. With neither conn nor source it has failed. */
struct in_edge {
	uint32_t handle; /* 0: free */
	uint32_t epoch;
	uint64_t token;
	struct buffer *buffer;
	struct conn *conn;     /* IN */
	struct buffer *source; /* LOCAL */
	uint64_t *took;	       /* bit per chunk of the buffer: given already. A copy's own bitmap */
	uint32_t first, end;   /* chunks */
	uint32_t origin_first; /* the sender's or source's number of the first */
	uint32_t missing;      /* chunks of the range not given yet */
	bool tells;	       /* IN_DONE is due when none is missing */
	uint32_t cursor;       /* LOCAL: the sweep looks from here on */
	uint32_t taken;	       /* chunks that were new to the buffer */
	uint32_t received;     /* and those that were not: what the credit follows */
	uint32_t granted;      /* first transmissions allowed */
	bool active;	       /* in engine.in_active */
	struct list on_buffer;
	struct list on_origin; /* of the connection, or of the source */
	struct list due; /* IN: on conn->grants while a grant waits; LOCAL: on engine.sweeps */
};

/* ---- messages ---------------------------------------------------------------------------- */

struct msg_out {
	struct list link; /* conn->msgs, or engine.free_msgs */
	const uint8_t *data;
	uint64_t offset; /* in the message area, for the event */
	uint64_t token;
	uint64_t acked; /* bit per fragment */
	uint32_t length;
	uint32_t id;
	uint16_t fragments;
	uint16_t next_fragment; /* first transmissions so far */
};

struct msg_in {
	uint64_t have; /* bit per fragment */
	uint32_t total;
	uint32_t slot; /* MSG_SLOTS-relative; SLOT_NONE while nothing has arrived */
};

/* ---- connections ------------------------------------------------------------------------- */

enum sent_kind {
	SENT_NOTHING, /* not ack-eliciting */
	SENT_CHUNK,   /* a: OUT edge handle, b: chunk */
	SENT_MSG,     /* a: message id, b: fragment */
	SENT_GRANT,   /* a: IN edge handle */
	SENT_RESET,   /* a: stream */
	SENT_PING,
	SENT_PROBE, /* path MTU probe; b: IP bytes */
};

enum sent_state {
	SENT_FREE,
	SENT_OUTSTANDING,
	SENT_LOST,   /* its item waits in the lost queue */
	SENT_RESENT, /* its item has left again in another packet, or is no longer wanted */
	SENT_ACKED,
};

struct sent {
	union {
		uint64_t time_ns;
		uint32_t lost_at; /* state SENT_LOST: where in the lost queue */
	};
	uint32_t a, b;
	uint32_t pn_low;
	uint16_t bytes; /* UDP payload */
	uint8_t kind;
	uint8_t state;
};
_Static_assert(sizeof(struct sent) == 24, "the sent ring is the largest part of a connection");

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

struct lost_item {
	uint32_t a, b;
	uint32_t pn_low;
	uint32_t kind; /* SENT_NOTHING: no longer wanted */
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

/* What strangers can make us do, each at a bounded rate of its own. */
enum budget {
	BUDGET_COOKIE,
	BUDGET_ACCEPT,
	BUDGET_RESET,
	BUDGETS,
};

/* An answer to an address without a connection: stateless, small, sent once. */
struct reply {
	struct net_addr to;
	uint16_t length;
	uint16_t pad_to;
	uint8_t bytes[WIRE_BODY + HELLO_BYTES];
};

struct wheel {
	uint64_t now_slot; /* slots before it have been run */
	uint64_t occupied[WHEEL_SLOTS / 64];
	struct list slot[WHEEL_SLOTS];
};

struct engine {
	struct engine_config config;
	struct counters *count; /* config.counters */
	struct engine_stages stages;
	uint64_t now_ns;
	unsigned quantum; /* packets of one connection in its turn */

	struct conn *conns;
	struct buffer *buffers;
	struct out_edge *out_edges;
	struct in_edge *in_edges;
	struct msg_out *msgs;
	struct list free_msgs;
	struct list free_conns; /* by ready; the one freed last is at the end, its memory is warm */
	struct list ready;
	struct list *by_addr; /* hash buckets: conns_max rounded up to a power of two */
	uint32_t addr_mask;
	uint32_t conns_used;
	uint32_t sent_slots; /* power of two: 2 * window_pkts */
	uint32_t rx_window;  /* bits, power of two */
	uint32_t in_active;  /* IN edges that still expect chunks, */
	uint32_t in_senders; /* and the connections that they are on */
	uint32_t unanswered; /* connections whose probes nobody has answered yet */
	uint64_t heard_ns;   /* when a connection brought something last */
	struct list sweeps;  /* LOCAL edges whose source may have something for them */
	enum kernel_level kernels;

	uint32_t *rx_free; /* stack of free receive slots */
	uint32_t rx_free_count;
	uint64_t *rx_lent; /* bit per slot: with control */

	struct record *events; /* ring */
	uint32_t events_mask;
	uint32_t events_reserved; /* for what may happen to everything that exists */
	uint32_t events_head, events_tail;

	struct reply replies[REPLIES_MAX];
	uint32_t replies_head, replies_count;
	uint64_t budget_spent_ns[BUDGETS]; /* token buckets: time up to which each is spent */
	uint64_t pace_ns;		   /* the same for config.rate_bps */

	struct wheel wheel;
};

static inline uint64_t state_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t state_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* IP and UDP header bytes towards this peer. */
static inline uint16_t conn_overhead(const struct conn *c)
{
	return net_addr_is_v4(&c->addr) ? ENGINE_OVERHEAD_V4 : ENGINE_OVERHEAD_V6;
}

/* Puts a connection on the list of those that may have something to send. */
static inline void conn_wake(struct engine *e, struct conn *c)
{
	list_want(&e->ready, &c->ready);
}

#endif
