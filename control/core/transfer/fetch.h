/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fetch brings an object to this node. It asks the directory for a holder, makes room, has the
 * holder feed it (upstream.h), adds a second holder where that is faster (monitor.c), and goes on
 * with another one when a holder fails. It ends when the object is complete, deleted or refused, or
 * when nothing waits for it. Called by sessions and by wiring.c. It must not know requests of
 * clients or reduces.
 *
 *   state      meaning                               next
 *   ASK        a GET is out                          FED (a holder), finished (the value), ended
 *                                                    (refused), INVENTORY (no complete copy left)
 *   FED        one feed or several bring chunks      finished (BUFFER_DONE); ASK or REST when the
 *                                                    last feed fails, or has sent its part
 *   INVENTORY  holders of parts are asked for them   FED by one of them; ended: the rest is lost
 *   REST       a pause after a failure               ASK
 */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_FETCH_H
#define SARISSA_CONTROL_CORE_TRANSFER_FETCH_H

#include "core/cluster/state.h"
#include "upstream.h"
#include "core/base/idmap.h"
#include "internal/record.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/timers.h"

struct call;
struct control;
struct link;
struct node;
struct object;
struct text;

enum fetch_state {
	FETCH_ASK,
	FETCH_FED,
	FETCH_INVENTORY,
	FETCH_REST,
};

struct salvage_fetch {
	uint32_t found;	     /* scratch bitmap: chunks that exist; 0: there is no inventory */
	uint32_t node;	     /* the node that is asked */
	uint32_t at;	     /* first chunk of the next question to it */
	uint32_t extra;	     /* chunks that that node has, and this node does not */
	uint32_t best;	     /* node with the most such chunks */
	uint32_t best_extra; /* their number */
	uint32_t departed;   /* got.departed at the start */
	bool begun;
};

struct fetch {
	struct idmap_node by_id;
	struct list active;
	struct list waits;	  /* GETs, until the object has a place */
	struct list early;	  /* ASK: STREAM requests of other nodes (serve.h) */
	struct timer timer;	  /* FED: the next look */
	struct call *call;	  /* ASK: GET; INVENTORY: GET_PIECE or PIECES */
	struct call *more;	  /* FED: GET for one more holder */
	struct call *reparenting; /* FED: GET_REPARENT */
	struct feed feed[FETCH_FEEDS];
	uint64_t generation; /* 0: no place yet */
	uint64_t size;
	uint64_t fed_ns;     /* when a holder was first asked to stream */
	uint32_t fed_chunks; /* chunks that were missing then */
	uint64_t asked_ns;   /* when the present GET was sent */
	uint64_t lost_ns;    /* when the node died that had the last complete copy */
	uint32_t lost;	     /* that node + 1; 0: the object is not known to be lost */
	uint64_t room_ns; /* since when it waits for room (store/replica.h); 0: it does not wait */
	uint64_t room_bytes; /* REST: asked for when so many may be had, of readers; 0: at once */
	uint64_t repair_ns;  /* when a holder was found lost; 0: chunks have come since */
	uint64_t repair_moved_ns; /* when that holder's last chunk had come */
	uint32_t repair_of;	  /* that holder */
	uint32_t slot;		  /* TABLE_SLOT_NONE: no place yet */
	uint32_t chunk_bytes;
	uint32_t bitmap;   /* of arrived chunks, while there is no stage */
	uint32_t failed;   /* holder to avoid */
	uint32_t why;	   /* enum message_get_why */
	uint16_t attempts; /* without progress */
	uint8_t state;
	bool known;			   /* the directory knows the object */
	bool answered;			   /* the GET that is out was answered with "wait" */
	char reason[MESSAGE_TEXT_MAX + 1]; /* the directory's text, why there is no copy */
	bool deferrable;		   /* the owner may defer the answer that it has to wait */

	struct salvage_fetch inventory;
	uint32_t piece_left; /* FED by a holder of a part: chunks that it has not; else 0 */

	uint32_t backup[MESSAGE_UPSTREAMS_MAX - 1]; /* other complete holders, of the last GOT */
	uint32_t backups;

	/* what the looks have found (monitor.c) */
	uint64_t looked_ns;
	uint64_t rate;	   /* bytes per second */
	uint64_t rate_one; /* rate before the trial of a second holder; 0: there is no trial */
	uint64_t help_ns;  /* earliest time to ask for one more holder */
	uint64_t more_ns;  /* when one was asked for last */
	uint64_t queried_ns;
	uint32_t missing;     /* chunks */
	uint32_t spare;	      /* idle complete copies, as of the last GOT */
	uint16_t slow;	      /* looks in a row that found it slow */
	uint16_t refused;     /* GETs for one more holder in a row that found none */
	uint16_t steady;      /* looks in a row without a higher rate */
	uint16_t trial;	      /* looks since the trial of a second holder began */
	uint16_t short_of;    /* looks in a row below the rate that this node can receive */
	uint16_t reparents;   /* GET_REPARENTs so far, up to a limit */
	uint64_t reparent_ns; /* earliest time of the next one */
	bool looking;
};

struct fetches {
	struct pool pool;
	struct idmap by_id;
	struct list active;
	uint64_t best;	   /* highest receive rate of this node, bytes per second; decays slowly */
	uint64_t rate;	   /* present receive rate */
	uint64_t alone_ns; /* until then a second holder does not help, as a trial has shown */
	uint32_t feeding;  /* fetches that are FED */
};

struct control_config;
void fetches_carve(struct fetches *f, struct arena *a, const struct control_config *config);

/* The fetch of an id, or NULL. */
struct fetch *fetch_find(struct control *c, const struct object_id *id);
/* The number of fetches that are FED. */
uint32_t fetches_feeding(const struct control *c);
/* The fetch of an id, begun if need be; NULL: too many. deferrable: the owner may defer the answer
 * that there is no such object yet. */
struct fetch *fetch_get(struct control *c, const struct object_id *id, bool deferrable);
/* Continues a fetch of an earlier control process, which has the slot, from its watermark. False:
 * it cannot. */
bool fetch_adopt(struct control *c, uint32_t slot);
/* Ends the waits with nowait, if the directory has answered. */
void fetch_answer_nowait(struct control *c, struct fetch *f);
/* The text of a lost object: with which node, since when, what to do. */
/* Whether it waits until readers of this node give room back. */
bool fetch_waits_for_room(const struct fetch *f);
void fetch_lost_text(struct control *c, const struct fetch *f, struct text *t);
/* A wait has left: ends the fetch if it was the last. */
void fetch_unwanted(struct control *c, struct fetch *f);

/* There may be room: fetches that wait for it ask again. */
void placement_room(struct control *c);
/* A pause, then it asks again. */
void fetch_rest(struct control *c, struct fetch *f);
/* Without a booking, until so many bytes may be had. */
void fetch_rest_roomless(struct control *c, struct fetch *f, uint64_t bytes);
/* True: it goes on waiting for room, or has failed. */
bool placement_still_roomless(struct control *c, struct fetch *f);

void fetch_done(struct control *c, struct fetch *f);
/* The worker has lost the buffer. */
void placement_stage_lost(struct control *c, struct fetch *f);
/* The object was taken away. */
void placement_killed(struct control *c, struct fetch *f);
/* A node has become reachable, or a connection to it has come up. */
void fetch_node_up(struct control *c, struct node *n);
/* Whether some fetch waits for this link. */
bool fetch_wants(struct control *c, const struct link *l);
/* Fills in the nodes that feed it. */
void fetch_upstreams(const struct fetch *f, struct message_have *have);
/* Whether a wait here, or a receiver of this copy, needs it. */
bool fetch_wanted(struct control *c, const struct fetch *f);
/* The store is gone: restarts all fetches. */
void placement_restart_all(struct control *c);
/* Announces fetched objects to their owner `shard` again. */
void placement_announce(struct control *c, const struct node *shard);

/* A holder feeds it, and has `ready` chunks. */
void monitor_fed(struct control *c, struct fetch *f, struct feed *d, uint32_t ready);
/* A holder does not feed it any more (why: enum message_get_why). */
void fetch_feed_failed(struct control *c, struct fetch *f, struct node *holder, uint32_t why);
/* Notes holders to use when neither the present one nor the owner answers. */
void monitor_keep_backups(struct fetch *f, const struct message_got *got);
/* A holder is lost: starts the clock of the repair. */
void monitor_note_lost(struct control *c, struct fetch *f, const struct feed *d);
/* A holder is silent; it answers again. */
void monitor_say_silent(struct control *c, struct fetch *f, struct feed *d);
void monitor_speaks(struct control *c, struct fetch *f, const struct feed *d);
/* Whether another feed than d brings chunks, or is about to, and is not silent. */
bool monitor_has_stand_in(const struct fetch *f, const struct feed *d);
void monitor_flows(struct control *c, struct fetch *f, const struct feed *d);
/* The members agree that a node is dead: fetches do not wait for it. */
void fetch_node_dead(struct control *c, const struct node *n);
/* Ends all feeds. */
void fetch_stop(struct control *c, struct fetch *f);

/* ---- ranges.c: which holder brings which chunks ---------------------------------------------- */

void ranges_divide(struct control *c, struct fetch *f);
struct feed *ranges_feed_free(struct fetch *f);
struct feed *ranges_feed_of(struct fetch *f, const struct node *holder);
uint32_t ranges_feeds(const struct fetch *f);
/* Bitmap of the chunks that have arrived. */
const uint64_t *ranges_map(struct control *c, const struct fetch *f);
uint32_t ranges_chunks(const struct fetch *f);

/* ---- monitor.c: whether it is as fast as it could be ----------------------------------------- */

/* Starts and ends the periodic look at a fetch that is FED. */
void monitor_begin(struct control *c, struct fetch *f);
void monitor_end(struct control *c, struct fetch *f);
/* Tells the owner that a node does not feed it any more. */
void monitor_leave(struct control *c, const struct fetch *f, const struct node *holder);

/* Ends a feed, and tells the owner. */
void monitor_let_go(struct control *c, struct fetch *f, struct feed *d);
/* The holder that the owner has booked; NULL: none. */
struct node *monitor_holder_booked(struct control *c, const struct message *answer);
/* Adds a feed by one more holder. The feed's flags must be set before, as it may fail at once. */
void monitor_take_got(struct control *c, struct fetch *f, struct feed *d, struct node *holder);

/* ---- rehome.c: back from a holder that feeds too many ---------------------------------------- */

void rehome_begin(struct fetch *f);
/* The holder of this feed may have more streams than it should. */
void rehome_surplus(struct control *c, struct feed *d);
/* Called at each look. */
void rehome_fetch(struct control *c, struct fetch *f);

/* ---- salvage.c: the inventory of an object without a complete copy --------------------------- */

void salvage_fetch(struct control *c, struct fetch *f);
void salvage_fetch_end(struct control *c, struct fetch *f);

/* Sends a GET to the owner; failed: a holder to avoid, or MESSAGE_NODE_NONE. */
struct call *fetch_question(struct control *c, struct fetch *f, uint32_t why, uint32_t failed,
			    uint64_t timeout_ns, call_end *end);
/* Asks the directory for a holder. */
void fetch_ask(struct control *c, struct fetch *f);
/* Has that node feed all missing chunks. */
void fetch_connect(struct control *c, struct fetch *f, struct node *holder);

/* ---- placement.c: where the bytes go --------------------------------------------------------- */

int placement_place(struct control *c, struct fetch *f, const struct message_got *got);
void placement_take_value(struct control *c, struct fetch *f, const struct message_got *got);
/* The stage of the fetch, made if need be; NULL when there is no room for it now. */
struct stage *placement_stage(struct control *c, struct fetch *f);
void placement_end(struct control *c, struct fetch *f);
void placement_fail(struct control *c, struct fetch *f, int32_t status, const char *text);

/* A fetch of this id that waits for an object to be put, or NULL. */
struct fetch *placement_unplaced(struct control *c, const struct object_id *id);
/* Whether a GET of that object is open. */
bool placement_asks(struct control *c, const struct object_id *id);
/* An object of this id is created here: ends a fetch that waits for it. */
void placement_superseded(struct control *c, const struct object_id *id, uint32_t slot);
/* An object of this id is gone from the table: a fetch that waited for its create asks again. */
void placement_wake(struct control *c, const struct object_id *id);

#endif
