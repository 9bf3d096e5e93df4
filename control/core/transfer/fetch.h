/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object on its way to this node: asks the directory for a holder, makes room, has the holder
 * feed it (upstream.h), takes another in when that is faster, and goes on with others from what has
 * arrived when one fails.
 *
 *   ASK    a GET is out                     -> FED (holder), finished (value), ended (refused),
 *                                              SURVEY (nobody who lives has all of it)
 *   FED    one feed or several bring chunks -> finished (BUFFER_DONE), or ASK, REST when the last
 *                                              one fails or has given the part that it has
 *   SURVEY those who have parts are asked   -> FED by one of them, or ended: the rest is lost
 *   REST   a pause after a failure          -> ASK
 *
 * It ends when the object is complete, deleted, refused, or when nobody wants it any more.
 */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_FETCH_H
#define SARISSA_CONTROL_CORE_TRANSFER_FETCH_H

#include "core/cluster/room.h"
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

struct fetch_inventory {
	uint32_t found; /* scratch: what somebody has; 0: no survey */
	uint32_t node;	/* who is asked, and from which chunk on */
	uint32_t at;
	uint32_t extra;		   /* chunks that it has and we have not */
	uint32_t best, best_extra; /* who has most of those */
	uint32_t departed;	   /* as the directory said first */
	bool begun;
};

struct fetch {
	struct idmap_node by_id;
	struct list active;
	struct list waits;	  /* GETs, until the object has a place */
	struct list early;	  /* ASK: STREAM requests of others (serve.h) */
	struct timer timer;	  /* FED: the next look */
	struct call *call;	  /* ASK: GET; SURVEY: GET_PIECE or PIECES */
	struct call *more;	  /* FED: GET for one more holder */
	struct call *reparenting; /* FED: GET for a place within the tree */
	struct feed feed[FETCH_FEEDS];
	uint64_t generation; /* 0: no place yet */
	uint64_t size;
	uint64_t fed_ns; /* when a holder was first asked to stream, and how much was missing */
	uint32_t fed_chunks;
	uint64_t asked_ns;  /* the GET that is out */
	uint64_t lost_ns;   /* when the node died with which it is lost */
	uint32_t lost;	    /* that node + 1; 0: it is not known to be lost */
	uint64_t room_ns;   /* since then it waits for room (store/replica.h); 0: it does not */
	uint64_t repair_ns; /* when a holder was found lost; 0: chunks have come since */
	uint64_t repair_moved_ns; /* when its last chunk had come by */
	uint32_t repair_of;	  /* which */
	uint32_t slot;		  /* TABLE_SLOT_NONE: no place yet */
	uint32_t chunk_bytes;
	uint32_t bitmap;   /* kept while there is no stage */
	uint32_t failed;   /* the holder to avoid */
	uint32_t why;	   /* enum message_get_why */
	uint16_t attempts; /* without progress */
	uint8_t state;
	bool known;			   /* the directory knows the object */
	bool answered;			   /* the GET that is out was answered with "wait" */
	char reason[MESSAGE_TEXT_MAX + 1]; /* why nobody has it, if the directory has said so */
	bool narrow;	 /* a holder cannot send its chunks here, and no other does */
	bool deferrable; /* whether it will be need not be said at once */

	struct fetch_inventory inventory;
	uint32_t piece_left; /* FED by one who has a part: what is missing after that; else 0 */

	uint32_t backup[MESSAGE_UPSTREAMS_MAX - 1]; /* others who had all of it */
	uint32_t backups;

	/* what the looks have found (monitor.c) */
	uint64_t looked_ns;
	uint64_t rate;	   /* bytes per second */
	uint64_t rate_one; /* before a second holder was tried; 0: none is being tried */
	uint64_t help_ns;  /* when one more may be asked for */
	uint64_t more_ns;  /* when it was, last */
	uint64_t queried_ns;
	uint32_t missing;     /* chunks */
	uint32_t spare;	      /* idle complete copies elsewhere, when the holder was handed out */
	uint16_t slow;	      /* looks in a row that found it slow */
	uint16_t refused;     /* times in a row that nobody else was to be had */
	uint16_t steady;      /* looks in a row that found no higher rate */
	uint16_t trial;	      /* looks since a second holder is on trial */
	uint16_t short_of;    /* looks in a row that found it below what this node can take */
	uint16_t reparents;   /* questions for a place within the tree, up to a limit */
	uint64_t reparent_ns; /* when the next may be asked */
	bool looking;
};

struct fetches {
	struct pool pool;
	struct idmap by_id;
	struct list active;
	uint64_t best;	   /* bytes per second that this node has taken at most, forgotten slowly */
	uint64_t rate;	   /* that it takes now */
	uint64_t alone_ns; /* until then a second holder is known not to help */
	uint32_t feeding;  /* fetches that are FED */
};

struct control_config;
void fetches_carve(struct fetches *f, struct arena *a, const struct control_config *config);

/* The fetch of an id, or NULL. */
struct fetch *fetch_find(struct control *c, const struct object_id *id);
/* Those that are being fed now. */
uint32_t fetches_feeding(const struct control *c);
/* The fetch of an id, begun if need be; NULL when too many are under way. patient: nobody needs to
 * know at once whether there is such an object. */
struct fetch *fetch_get(struct control *c, const struct object_id *id, bool deferrable);
/* Goes on with an object that an earlier control was fetching into the slot, from its watermark.
 * False: it cannot. */
bool fetch_adopt(struct control *c, uint32_t slot);
/* Those that do not want to wait are told what is known, if it is. */
void fetch_answer_nowait(struct control *c, struct fetch *f);
/* Which node it is lost with, since when, what to do. */
void fetch_lost_text(struct control *c, const struct fetch *f, struct text *t);
/* A wait has left: ends the fetch when nobody wants it. */
void fetch_unwanted(struct control *c, struct fetch *f);

/* Those that wait for room ask again, as there may be some now. */
void fetch_room(struct control *c);
/* A pause, then it asks again. */
void fetch_rest(struct control *c, struct fetch *f);

void fetch_done(struct control *c, struct fetch *f);
/* The worker has lost the buffer. */
void fetch_stage_lost(struct control *c, struct fetch *f);
/* The object was taken away. */
void fetch_killed(struct control *c, struct fetch *f);
/* A node has become reachable, or a connection to it has come up. */
void fetch_node_up(struct control *c, struct node *n);
/* Whether some fetch waits for this link. */
bool fetch_wants(struct control *c, const struct link *l);
/* The nodes that feed it. */
void fetch_upstreams(const struct fetch *f, struct message_have *have);
/* Whether anybody on this node, or beyond it, still has an interest. */
bool fetch_wanted(struct control *c, const struct fetch *f);
/* The store is gone: all begin anew. */
void fetch_restart_all(struct control *c);
/* Those of a shard's objects are announced to it again. */
void fetch_announce(struct control *c, const struct node *shard);

/* A holder feeds it, and has so many chunks. */
void fetch_fed(struct control *c, struct fetch *f, struct feed *d, uint32_t ready);
/* A holder feeds it no more (why: enum message_get_why). */
void fetch_feed_failed(struct control *c, struct fetch *f, struct node *holder, uint32_t why);
/* Whom to turn to when neither the holder nor the directory answers. */
void fetch_keep_backups(struct fetch *f, const struct message_got *got);
/* A holder is lost: from here on counts how long it takes until chunks come again. */
void fetch_note_lost(struct control *c, struct fetch *f, const struct feed *d);
/* A holder does not answer; it does again; it sends. */
void fetch_silent(struct control *c, struct fetch *f, struct feed *d);
void fetch_speaks(struct control *c, struct fetch *f, const struct feed *d);
/* Whether another than this one feeds the fetch, or is about to, and is not silent. */
bool fetch_has_stand_in(const struct fetch *f, const struct feed *d);
void fetch_flows(struct control *c, struct fetch *f, const struct feed *d);
/* The members agree that a node is dead: nobody waits for it. */
void fetch_node_dead(struct control *c, const struct node *n);
/* Lets go of all holders. */
void fetch_stop(struct control *c, struct fetch *f);

/* ranges.c: who brings what */
void fetch_divide(struct control *c, struct fetch *f);
struct feed *fetch_feed_free(struct fetch *f);
struct feed *fetch_feed_of(struct fetch *f, const struct node *holder);
uint32_t fetch_feeds(const struct fetch *f);
/* What has arrived, one bit per chunk. */
const uint64_t *fetch_map(struct control *c, const struct fetch *f);
uint32_t fetch_chunks(const struct fetch *f);

/* monitor.c: whether it goes as fast as it could */
/* Begins to look, or ends: a fetch that is FED. */
void fetch_look_begin(struct control *c, struct fetch *f);
void fetch_look_end(struct control *c, struct fetch *f);
/* Tells the directory that a node feeds it no more. */
void fetch_leave(struct control *c, const struct fetch *f, const struct node *holder);

/* Lets go of a holder, and tells the directory. */
void fetch_let_go(struct control *c, struct fetch *f, struct feed *d);
/* Whom the directory has booked for us; NULL: nobody. */
struct node *fetch_holder_booked(struct control *c, const struct message *answer);
/* One more holder feeds it; marks of the feed are set before, for it may fail at once. */
void fetch_take(struct control *c, struct fetch *f, struct feed *d, struct node *holder);

/* rehome.c: back from a holder that feeds too many */
void fetch_reparent_begin(struct fetch *f);
/* Its holder may do so. */
void fetch_surplus(struct control *c, struct feed *d);
/* At each look. */
void fetch_reparent(struct control *c, struct fetch *f);

/* salvage.c: what is left when nobody has all of it */
void fetch_inventory(struct control *c, struct fetch *f);
void fetch_inventory_end(struct control *c, struct fetch *f);

/* A GET to the directory; failed: a node, or MESSAGE_NODE_NONE. */
struct call *fetch_question(struct control *c, struct fetch *f, uint32_t why, uint32_t failed,
			    uint64_t timeout_ns, call_end *end);
/* Asks the directory for a holder. */
void fetch_ask(struct control *c, struct fetch *f);
/* This node knows a holder by itself. Who gets an earlier generation goes there at once; again: so
 * does who has waited for the directory's answer for a while. */
void fetch_found(struct control *c, const struct message_got *got, bool retry);
/* Is fed by this node, all that is missing. */
void fetch_connect(struct control *c, struct fetch *f, struct node *holder);

/* placement.c: where the bytes go */
int fetch_place(struct control *c, struct fetch *f, const struct message_got *got);
void fetch_take_value(struct control *c, struct fetch *f, const struct message_got *got);
/* The stage of the fetch, made if need be; NULL when there is no room for it now. */
struct stage *fetch_stage(struct control *c, struct fetch *f);
void fetch_end(struct control *c, struct fetch *f);
void fetch_fail(struct control *c, struct fetch *f, int32_t status, const char *text);

/* A fetch of this id that waits for somebody to put it, or NULL. */
struct fetch *fetch_unplaced(struct control *c, const struct object_id *id);
/* Whether a question about that object is out. */
bool fetch_asks(struct control *c, const struct object_id *id);
/* An object of this id is made here: such a fetch ends. */
void fetch_superseded(struct control *c, const struct object_id *id, uint32_t slot);
/* An object of this id is gone from the table: such a fetch asks again if it waited for its create.
 */
void fetch_wake(struct control *c, const struct object_id *id);

#endif
