/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All times of the transport, by mechanism: what starts a timer, what stops it, what it does when
 * it fires, and its length. conn.c runs the timers of a connection, wheel.c wakes it for the
 * earliest. Half and double of each, and what they do: docs/study/tried.md. It knows no state.
 */
#ifndef SARISSA_DATAPLANE_CORE_TIMES_H
#define SARISSA_DATAPLANE_CORE_TIMES_H

#include <stdint.h>

#define TIMES_MS UINT64_C(1000000)
#define TIMES_S	 (1000 * TIMES_MS)

/*
 * The wheel (wheel.h). A timer fires up to SLOT late. It is left to fire early by EARLY_MAX
 * rather than be moved; a connection that wakes early arms it again.
 */
#define WHEEL_SLOT_NS	  16384 /* a power of two, for the division */
#define CONN_EARLY_MAX_NS (10 * TIMES_MS)

/*
 * Opening (handshake.c). The first HELLO starts FIRST_RETRY, doubled with each HELLO up to
 * RETRY_MAX, or FAR_MAX once a cookie has come or another path has tried often; an ACCEPT stops
 * it. When it fires the HELLO goes again, without the cookie, which may have expired: it holds
 * for COOKIE_LIFETIME. A connection that is not up within IDLE (idle_timeout_ns) after it began
 * is given up; another path is not.
 */
#define HANDSHAKE_FIRST_RETRY_NS (25 * TIMES_MS)
#define HANDSHAKE_RETRY_MAX_NS	 (250 * TIMES_MS)
#define HANDSHAKE_FAR_MAX_NS	 TIMES_S
#define COOKIE_LIFETIME_NS	 (10 * TIMES_S)
#define COOKIE_BURST_NS		 (50 * TIMES_MS) /* so much of a rate may be spent at once */

/*
 * Acknowledgement (ack.c). The first packet that asks for one starts ACK_DELAY (ack_delay_ns), a
 * chunk some times that (ACK_CHUNK_DELAYS and its neighbours, ack.h). An ACK that leaves stops
 * it; when it fires an ACK leaves.
 */
#define TIMES_ACK_DELAY_NS TIMES_MS

/*
 * Loss (loss.c). An ACK that brings news starts the reorder timer, at the first moment in which a
 * packet below the largest acknowledged counts as lost: a part of the shortest round trip after
 * its time, REORDER_MIN at least. A packet that asks for an ACK starts the probe timer again (the
 * RTO of others): srtt, four times its variation, at least PROBE_MIN, and what the peer may wait;
 * doubled with each probe, up to PROBE_MAX or two round trips. Before any sample srtt is
 * FIRST_RTT. An ACK with news stops it; when it fires the oldest packet counts as lost, and two
 * packets leave. The shortest round trip and way are replaced when they are MIN_RTT_LIFETIME old,
 * HALVED_LIFETIME if they were guessed. The clocks of two nodes drift by a us in each DRIFT.
 */
#define LOSS_FIRST_RTT_NS	 (10 * TIMES_MS)
#define LOSS_REORDER_MIN_NS	 UINT64_C(50000) /* hosts wake late */
#define LOSS_PROBE_MIN_NS	 TIMES_MS
#define LOSS_PROBE_MAX_NS	 (200 * TIMES_MS)
#define LOSS_MIN_RTT_LIFETIME_NS (60 * TIMES_S)
#define LOSS_HALVED_LIFETIME_NS	 TIMES_S
#define LOSS_DRIFT_NS		 (10 * TIMES_MS) /* 100 ppm, of poor crystals */

/*
 * Pace (congestion.c). A packet that leaves moves the time up to which the budget is spent; while
 * that lies ahead nothing leaves, and the wheel wakes the connection then. It may lie BURST
 * behind, as a host that sleeps wakes so late, and for the whole endpoint NODE_BURST. The delay
 * aimed at is at most DELAY_TARGET (delay_target_ns). No queueing delay below FLOOR counts, and a
 * rise of RISE ends slow start (HyStart, RFC 9406). A rate is taken over RATE at least of the
 * receiver's clock, as acknowledgements come in heaps.
 */
#define TIMES_DELAY_TARGET_NS	 TIMES_MS
#define CONGESTION_BURST_NS	 UINT64_C(250000)
#define CONGESTION_NODE_BURST_NS UINT64_C(250000)
#define CONGESTION_FLOOR_NS	 UINT64_C(10000)
#define CONGESTION_RISE_NS	 UINT64_C(25000)
#define CONGESTION_RATE_US	 1000

/*
 * Keep-alive, silence and death (conn.c, loss.c). Anything heard or sent starts the keep-alive
 * again, while nothing is under way: a third of IDLE, with streams BUSY_MIN or some round trips;
 * when it fires a PING leaves, and its probes watch from there. A watch of control (at least
 * WATCH_MIN) fires when something is unanswered and nothing was heard for so long; control hears
 * of the silence, once. A probe of a peer that was silent for IDLE, with all paths, ends the
 * connection. A packet after SILENCE without any makes a connection that waits for an answer
 * probe at once.
 */
#define TIMES_IDLE_NS	  (3 * TIMES_S)
#define CONN_BUSY_MIN_NS  (20 * TIMES_MS) /* a sender that died is noticed within some of these */
#define CONN_WATCH_MIN_NS (10 * TIMES_MS)
#define LOSS_SILENCE_NS	  (10 * TIMES_MS) /* longer than a sender of a stream that flows is quiet */

/*
 * Path MTU (path_mtu.c). A trial starts GAP, doubled for each trial of a size up to GAP_MAX: 160
 * ms for 8 trials, 290 for 12. When it fires the next trial leaves; a verdict stops it. A search
 * that ends below the target starts RAISE, doubled for each in vain up to RAISE_MAX, then the
 * next begins: a narrow path is a fault that is mended.
 */
#define PATH_MTU_GAP_NS	      (4 * TIMES_MS)
#define PATH_MTU_GAP_MAX_NS   (32 * TIMES_MS)
#define PATH_MTU_RAISE_NS     (500 * TIMES_MS)
#define PATH_MTU_RAISE_MAX_NS (32 * TIMES_S)

/*
 * Counters of peers (peer.c) are told each TELL while there is traffic. The best rate of a path
 * is kept for PATH_LIFETIME. In a switch (aggregate.c) a group that nobody has sent to for
 * AGGREGATE_IDLE gives way to a new one.
 */
#define PEER_TELL_NS	      (100 * TIMES_MS)
#define PEER_PATH_LIFETIME_NS (60 * TIMES_S)
#define AGGREGATE_IDLE_NS     (10 * TIMES_S)

#endif
