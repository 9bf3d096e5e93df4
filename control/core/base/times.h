/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All times of the control core, by module: what starts a timer, what stops it, what it does when
 * it fires, and its length. base/timers.h keeps them. The whole core includes this; it knows no
 * module. Those named TIMES_ are what config.c gives to a core; tests give others.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_TIMES_H
#define SARISSA_CONTROL_CORE_BASE_TIMES_H

#include <stdint.h>

#define TIMES_MS UINT64_C(1000000)
#define TIMES_S	 (1000 * TIMES_MS)

/*
 * Requests between nodes (cluster/rpc.c). A request starts two timers, which its answer stops:
 * each RETRY it is sent again, and at its deadline it fails with -ETIMEDOUT. The deadline is
 * CALL, DIRECTORY (include/internal/session.h) for what a client wants of a shard owner, STATUS
 * for what a user looks at. A node that has not answered for STATUS is shown as down. An attempt
 * to connect, or to find a holder, that fails starts a pause of BACKOFF_MIN, doubled up to
 * BACKOFF_MAX; success ends that. A link that is up says who it is after PEERS_GREET, unless a
 * message has said so. A turn of the core that is TICK_LATE behind the first timer is counted.
 */
#define TIMES_RETRY_NS	     (1 * TIMES_S)
#define TIMES_CALL_NS	     (5 * TIMES_S)
#define TIMES_STATUS_NS	     (1 * TIMES_S)
#define TIMES_BACKOFF_MIN_NS (20 * TIMES_MS)
#define TIMES_BACKOFF_MAX_NS (1 * TIMES_S)
#define PEERS_GREET_NS	     (2 * TIMES_MS)
#define TICK_LATE_NS	     (100 * TIMES_MS)

/*
 * Members (cluster/gossip.c, membership.c). Each GOSSIP a node probes one of those that it
 * watches. The node is missed after SILENCE without an answer, after PROBE without a connection,
 * and, a neighbour in the ring, when its dataplane was silent for WATCH. That starts CONFIRM, in
 * which others may reach it; then it is suspect, which starts SUSPECT; then it is dead. Any word
 * from it stops all of these. A control that is started again has REST to come back before it is
 * dead. For JOIN after its start a seed assigns no numbers. News within GATHER of other news is
 * passed on at the end of that time. A suspicion that fires MEMBERS_LATE after its time begins
 * again: this node stood still. A generation more than CLOCK_AHEAD beyond the clock is refused.
 */
#define TIMES_GOSSIP_NS	 (1 * TIMES_S)
#define TIMES_SILENCE_NS (3 * TIMES_S)
#define TIMES_PROBE_NS	 (500 * TIMES_MS)
#define TIMES_WATCH_NS	 (300 * TIMES_MS)
#define TIMES_CONFIRM_NS (200 * TIMES_MS)
#define TIMES_SUSPECT_NS (350 * TIMES_MS)
#define TIMES_REST_NS	 (10 * TIMES_S)
#define TIMES_JOIN_NS	 (2 * TIMES_S)
#define GOSSIP_GATHER_NS (5 * TIMES_MS)
#define MEMBERS_LATE_NS	 (100 * TIMES_MS)
#define CLOCK_AHEAD_NS	 (3600 * TIMES_S)

/*
 * Streams that stall (cluster/stall.c), of transfers and reduces. A chunk that arrives starts
 * QUIET again. When it fires, the sender is asked; without an answer within four times the usual
 * answer time, at least SILENT_MIN and at most SILENT_MAX, it is silent, and another takes its
 * place. An answer starts RETRY, doubled by each. Looks are LOOK_MIN apart at least.
 */
#define WATCH_QUIET_NS	    (10 * TIMES_MS)
#define WATCH_SILENT_MIN_NS (20 * TIMES_MS)
#define WATCH_SILENT_MAX_NS (250 * TIMES_MS)
#define WATCH_RETRY_NS	    (50 * TIMES_MS)
#define WATCH_LOOK_MIN_NS   (1 * TIMES_MS)

/*
 * Directory. A death, a lost directory or its own start makes an owner unsettled
 * (cluster/settle.c), until all have announced; where nobody can tell, for SETTLE; never for
 * longer than SETTLE_MAX. A node that goes down starts FORGET, after which its copies are
 * forgotten; its return stops that. The answer "wait" is kept back for DEFERRED, since most
 * objects come within it. From TELL on after it is up an owner says of objects that they are
 * lost. A node whose TOMBSTONE calls are all open (tombstone_copies.c) is waited for until it has
 * been silent for SILENT; a third node stands in for one that has not taken a tombstone within
 * STAND. A put waits BACKUP_ANSWER for the second copy of a small object, and a node that gave no
 * answer is asked for none during BACKUP_SILENT. A full table asks the node of a pinned replica,
 * and waits EVICT_ANSWER, in which no other HAVE can make room.
 */
#define TIMES_SETTLE_NS	     (1 * TIMES_S)
#define TIMES_SETTLE_MAX_NS  (30 * TIMES_S)
#define TIMES_FORGET_NS	     (30 * TIMES_S)
#define AGENT_DEFERRED_NS    (5 * TIMES_MS)
#define AGENT_TELL_NS	     (200 * TIMES_MS)
#define TOMBSTONES_SILENT_NS (50 * TIMES_MS)
#define TOMBSTONES_STAND_NS  (250 * TIMES_MS)
#define BACKUP_ANSWER_NS     (250 * TIMES_MS)
#define BACKUP_SILENT_NS     (1 * TIMES_S)
#define EVICT_ANSWER_NS	     (100 * TIMES_MS)

/*
 * Leases (lease/leases.c, directory/references.c). The end of the last session starts the ttl of
 * a lease, at least TTL_MIN; a session that opens it stops that. The owner adds GRACE for a node
 * that only seems lost. An object that no lease holds is deleted, and again after RETRY where
 * that fails; within DEATH of the death of any node nothing is deleted for want of a lease, as
 * the dead node may be a home that comes back.
 */
#define LEASES_TTL_MIN_NS   (100 * TIMES_MS)
#define REFERENCES_GRACE_NS (1 * TIMES_S)
#define REFERENCES_RETRY_NS (100 * TIMES_MS)
#define REFERENCES_DEATH_NS (11 * TIMES_S)

/*
 * Store. Each PINS the pins of objects that were deleted while in use are looked at, until there
 * is none. Each REPLICA the sweep of replica.c announces copies without a known pinned replica, a
 * part of the table each STEP. Changes gather for ANNOUNCE_LATER before other nodes are told.
 * RECONCILE after the dataplane has attached what differs is mended. A node of a pinned replica
 * that has answered is trusted for two round trips and SLACK; without an answer within
 * REPLICA_ANSWER it counts as lost for a put, which waits REPLICA_ROOM at most, and is not asked
 * during MUTE. A disk that fails is not written to during SPILL_MUTE. Sums over all objects are
 * believed for PRIMARY and TIGHT.
 */
#define TIMES_PINS_NS	   (50 * TIMES_MS)
#define TIMES_REPLICA_NS   (1 * TIMES_S)
#define REPLICA_STEP_NS	   (1 * TIMES_MS)
#define ANNOUNCE_LATER_NS  (5 * TIMES_MS)
#define RECONCILE_NS	   (20 * TIMES_MS)
#define REPLICA_SLACK_NS   (1 * TIMES_MS)
#define REPLICA_ANSWER_NS  (100 * TIMES_MS)
#define REPLICA_ROOM_NS	   (250 * TIMES_MS)
#define REPLICA_MUTE_NS	   (1 * TIMES_S)
#define SPILL_MUTE_NS	   (1 * TIMES_S)
#define OBJECTS_PRIMARY_NS (100 * TIMES_MS)
#define OBJECTS_TIGHT_NS   (10 * TIMES_MS)

/*
 * Transfers. The choice of a holder starts LINK, which its connection stops; then another is
 * chosen. A chunk starts STALL again; when it fires, the holder is asked whether it has the
 * object. A holder that was not ready is asked again after FEED_SOON, doubled; for FEED_REPAIR
 * after a loss looks are FEED_NEXT apart. A fetch looks for a better way (monitor.c) each
 * LOOK_MIN to LOOK_MAX, and LOOK_SOON after news; help is not asked for within LOOK_PAUSE of the
 * last change. A trial of one holder alone needs LOOK_TRIAL of work left, and is not repeated
 * within LOOK_ALONE of one in vain. A new holder may lag by REPARENT_AHEAD; the next question
 * comes REPARENT_PAUSE later, doubled. A fetch without room looks again after FETCH_ROOM, since
 * nobody tells of a released pin. The directory is asked again when FETCH_ANSWER is over, a
 * holder that lists its chunks (salvage.c) is left after INVENTORY_ANSWER.
 */
#define TIMES_LINK_NS	    (3 * TIMES_S)
#define TIMES_STALL_NS	    (1 * TIMES_S)
#define FEED_SOON_NS	    UINT64_C(500000)
#define FEED_REPAIR_NS	    (100 * TIMES_MS)
#define FEED_NEXT_NS	    (1 * TIMES_MS)
#define LOOK_MIN_NS	    (4 * TIMES_MS)
#define LOOK_MAX_NS	    (25 * TIMES_MS)
#define LOOK_SOON_NS	    (1 * TIMES_MS)
#define LOOK_PAUSE_NS	    (50 * TIMES_MS)
#define LOOK_TRIAL_NS	    (20 * TIMES_MS)
#define LOOK_ALONE_NS	    (10 * TIMES_S)
#define REPARENT_PAUSE_NS   (100 * TIMES_MS)
#define REPARENT_AHEAD_NS   (500 * TIMES_MS)
#define FETCH_ROOM_NS	    (50 * TIMES_MS)
#define FETCH_ANSWER_NS	    (10 * TIMES_MS)
#define INVENTORY_ANSWER_NS (250 * TIMES_MS)

/*
 * Reduces. A coordinator beats each quarter of COORDINATOR_LOST; one that is silent for all of it
 * is lost, and its participants ask the owner each ASK. The inputs of a part: one whose node is
 * down has DOWN; a stream that stalls is reported PART_STALLED after it was asked about at the
 * soonest, as a wrong verdict may cost a new plan; a value is reported after PART_SILENT; an
 * absent object is asked for again after PART_SOON, doubled; a feeder that sends nothing is
 * reported after PART_FED. A question for bytes (PULL), or bytes before their COMBINE (PUSH),
 * wait for KEEP; then they are answered without. The coordinator's watchdog looks each WATCH
 * while anything is late. A leaf that has left a feeder may come back to it FEED_BACK later,
 * doubled. Readers of a target that failed may ask again for SHOW_FAILED.
 */
#define TIMES_COORDINATOR_LOST_NS (10 * TIMES_S)
#define TIMES_DOWN_NS		  (250 * TIMES_MS)
#define PARTICIPANT_ASK_NS	  (50 * TIMES_MS)
#define PULL_KEEP_NS		  (50 * TIMES_MS)
#define PUSH_KEEP_NS		  (50 * TIMES_MS)
#define PART_STALLED_NS		  (50 * TIMES_MS)
#define PART_SILENT_NS		  (2 * PULL_KEEP_NS)
#define PART_SOON_NS		  UINT64_C(200000)
#define PART_FED_NS		  (100 * TIMES_MS)
#define WATCH_NS		  (50 * TIMES_MS)
#define FEED_BACK_NS		  (100 * TIMES_MS)
#define SHOW_FAILED_NS		  (2 * TIMES_S)

/*
 * Groups. The start of an owner starts GRACE, in which members announce themselves or count as
 * gone. A task that failed is tried again after RETRY. RESULTS_PAUSE after a result is published
 * its copies are counted, doubled each time. The sources of a round have SHELL_REDUCE to be
 * found. A switch waits GATHER for the pulls of a decided round, and not at all for MISS after
 * members that did not pull. LIMIT, and a second for each MB, ends its job. It rests for REST
 * after a failure, ODD if it cannot compute the sums, SLOW if members were late.
 */
#define GROUP_GRACE_NS	    (5 * TIMES_S)
#define GROUP_RETRY_NS	    (200 * TIMES_MS)
#define RESULTS_PAUSE_NS    (20 * TIMES_MS)
#define SHELL_REDUCE_NS	    (10 * TIMES_S)
#define SWITCHING_GATHER_NS (30 * TIMES_MS)
#define SWITCHING_MISS_NS   (1 * TIMES_S)
#define SWITCHING_LIMIT_NS  (10 * TIMES_S)
#define SWITCHING_REST_NS   (5 * TIMES_S)
#define SWITCHING_ODD_NS    (60 * TIMES_S)
#define SWITCHING_SLOW_NS   (1 * TIMES_S)

/*
 * Clients. A wait for a part of an object looks each POLL, until it is there. A seal waits SEAL
 * for the second copy. A get with less than GET_DEFERRABLE left does not let the owner keep
 * "wait" back.
 */
#define TIMES_POLL_NS	  (2 * TIMES_MS)
#define SEAL_NS		  (500 * TIMES_MS)
#define GET_DEFERRABLE_NS (int64_t)(20 * TIMES_MS)

#endif
