/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One shard of the directory: objects, their holders, and the receivers that wait for them. Pure:
 * it acts through struct directory_out only, and must not know connections, calls or time. Called
 * by the front door with messages, and by the cluster's events. Its state is soft: nodes announce
 * their objects again when asked (directory_node_up).
 *
 * Broadcast is receiver-driven. A GET is answered with one holder, and a sending slot of that
 * holder is booked. The receiver becomes a partial holder at once, so that later receivers chain
 * behind it. A copy that is complete or gone returns the slot. A model (planner/cost.h) says how
 * many slots a copy has, and whether a small value comes with the answer instead. A receiver may
 * book several holders. Bookings never form a circle.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_DIRECTORY_H
#define SARISSA_CONTROL_CORE_DIRECTORY_DIRECTORY_H

#include "core/base/allocator.h"
#include "core/cluster/state.h"
#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "watchers.h"

struct text;

enum {
	DIRECTORY_FRESH = 64,
	DIRECTORY_SCAN = 4096,		  /* some 0.3 ms */
	DIRECTORY_TOMBSTONE_REPLICAS = 2, /* nodes that keep the tombstones of an id */
};

struct copy {
	struct list of_entry, of_node;
	struct copy *same_bucket; /* directory.by_node */
	struct entry *entry;
	struct copy_upstream { /* PARTIAL: a booked sending slot */
		struct copy *copy;
		uint64_t request; /* the GET that was answered with it; 0: from a HAVE */
	} upstream[MESSAGE_UPSTREAMS_MAX];
	struct copy *visit_next;
	uint64_t visit;
	uint64_t epoch; /* of its latest HAVE or GET */
	uint32_t upstreams;
	uint32_t node;
	uint32_t sending; /* copies that have this one as an upstream */
	uint32_t state;	  /* enum message_copy_state */
	uint32_t depth;	  /* PARTIAL: hops from a complete copy, when its booking was made */
	bool pinned;	  /* its node never evicts it */
	bool appointed;	  /* the directory has made it so; without pinned: its node may still do */
	bool fed;	  /* it has, or had, an upstream */
	bool alone;	  /* PARTIAL: its only upstream was complete, and fed no other copy */
	bool by_value;	  /* COMPLETE: the value is on the way; it cannot feed others yet */
};

struct waiter { /* a GET that waits: on entry.waiters; a LOCATE: on entry.locates */
	struct list of_entry, of_node;
	struct entry *entry;
	uint64_t request;
	uint32_t node;
	uint32_t failed;      /* holder to avoid */
	uint32_t value_max;   /* LOCATE: largest value to send, in bytes */
	struct list deferred; /* on directory.deferred: its reply "wait" is deferred */
	bool waited;	      /* it was not answered at once */
	bool ripe;	      /* deferred since before the last round of replies */
};

struct entry {
	struct idmap_node by_id;
	struct list copies, waiters, locates;
	struct list references; /* of leases that hold it (references.h) */
	struct directory *directory;
	uint64_t reserved; /* the only generation that may be announced; 0: any; UINT64_MAX: none */
	uint32_t copies_count, waiters_count;
	uint32_t arriving;   /* copies in transfer, PARTIAL or by value */
	uint64_t generation; /* 0: no node has it, there are only waiters */
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t value;	   /* range of the inline space; 0: none */
	uint32_t burst;	   /* receivers at a time, at most */
	uint32_t departed; /* copies that have gone */
	bool has_value;
	bool keeping; /* a KEEP of it is open */
	bool used;
	uint8_t watched; /* enum session_event that watchers know of it; 0: none */
	uint64_t event;	 /* number of its last one */
	char name[OBJECT_NAME_MAX + 1];
	struct object_meta meta;
};

struct tombstone { /* a deleted object: later announcements of it are refused */
	struct idmap_node by_id;
	uint32_t place;	     /* in directory.aged */
	uint64_t number;     /* of the delete: how late it was */
	uint64_t generation; /* this one, and all before; 0: none */
	uint64_t request;    /* of the DELETE, which may be repeated */
	uint32_t node;
};

struct removal { /* a DELETE: it is answered when the holders have given up their copies, and the
		  * other replicas of the tombstone have it */
	uint64_t request;
	uint64_t generation;
	uint64_t number; /* of its tombstone */
	uint32_t node;
	uint32_t left;	 /* missing answers, and 1 for the handler itself */
	uint32_t silent; /* node + 1 of a holder without a connection; 0: none */
};

struct directory_node {
	struct list copies, waiters, locates;
	uint64_t store_incarnation;
	uint64_t epoch; /* of its latest message */
	bool up;
	bool dead;   /* a dead member: its copies do not count */
	bool known;  /* its announced objects are in the directory */
	bool silent; /* reported as silent, and has not answered since */
	bool away;   /* dead or without a connection, and no ANNOUNCED since */
	uint64_t pad[7];
};
_Static_assert(sizeof(struct directory_node) == 128, "to find one of them is a shift");

struct directory_out {
	void *arg;
	/* Sends an answer, also later ones to a waiting GET. False: not now. It may be lost when
	 * the node goes down. */
	bool (*answer)(void *arg, uint32_t node, const struct message *m);
	/* Makes a holder give up its copy; replaced: another generation follows. Calls
	 * directory_removed for the removal (if not NULL) when the copy is gone, or the holder
	 * unreachable. False: not now, and directory_removed is not called. */
	bool (*remove)(void *arg, uint32_t node, const struct object_id *id, uint64_t generation,
		       bool replaced, struct removal *removal);
	/* Sends the tombstone to its other replicas. Returns how many there are; for each of them
	 * directory_removed is called. */
	uint32_t (*replicate)(void *arg, const struct tombstone *t, struct removal *removal);
	/* A receiver reports that a holder does not answer: probes it. */
	void (*suspect)(void *arg, uint32_t node);
	/* How many more REMOVEs may be sent now. A DELETE that needs more is put off. */
	uint32_t (*removals)(void *arg);
	/* Whether all holders of the object have had time to announce it. */
	bool (*settled)(void *arg, const struct object_id *id);
	/* Tells the node to send this GET to the new owner. */
	void (*redirect)(void *arg, uint32_t node, uint64_t request);
	/* Makes the second copy of a value (directory_alone). Returns whether it sends the answer
	 * to that node, when the copy is made or cannot be. */
	bool (*keep)(void *arg, struct entry *e, uint32_t node, const struct message *answer);
	/* Some entries may be without a second copy. */
	void (*alone)(void *arg);
	/* Milliseconds since a node was taken for dead; 0: it was not. */
	uint64_t (*down)(void *arg, uint32_t node);
	/* A copy of a node that is behind was refused, as it may have been deleted. */
	void (*beyond)(void *arg, uint32_t node);
	/* Makes the holder of a cached copy give it up, if node `pinned`, which has the pinned
	 * replica, lives. Clears directory.evicting in the end. False: not now. */
	bool (*evict)(void *arg, const struct copy *copy, uint32_t pinned);
	/* Adds a reference: a lease of that node holds the object that it creates. False: no room.
	 */
	bool (*hold)(void *arg, struct entry *e, uint32_t node, const struct message_have *have);
	/* Generations of the object up to this one are gone: ends their references; tell: informs
	 * the nodes of the leases. Only called when there are references. */
	void (*unhold)(void *arg, struct entry *e, uint64_t generation, bool tell);
	/* Fills in the leases that hold it, and its time. Only called when there are references. */
	void (*held)(void *arg, const struct entry *e, struct session_object *out);
	/* Whether nodes may hold the object, or any if NULL, and have not announced it. NULL: no.
	 */
	bool (*unheard)(void *arg, const struct object_id *id);
	/* There is no room for the value of a small object: it gets no second copy. */
	void (*crowded)(void *arg);
};

enum { DIRECTORY_SIZES = 32 }; /* one per factor of 4 */

struct directory {
	struct directory_out out;
	struct pool entries, copies, waiters, locates, removals;
	struct list deferred; /* waiters whose reply is deferred, in order of arrival */
	struct idmap by_id;
	struct copy **by_node; /* copies by entry and node */
	uint32_t by_node_mask;
	struct directory_node *nodes;
	uint64_t *away_since; /* by node, if away: number of the last delete that it knows */
	struct tombstone *tombstones;
	struct idmap by_tombstone;
	uint32_t *aged; /* heap of the tombstones in use, the oldest first */
	uint32_t aged_count;
	uint32_t tombstones_used; /* all before this one are in use */
	uint32_t tombstones_count;
	struct object_tombstone
		*kept; /* shared memory for the first tombstones, for the next control process */
	uint32_t kept_count;
	_Atomic uint64_t *kept_horizon; /* the same for the horizon, or NULL */
	uint64_t horizon;		/* highest generation of a forgotten tombstone */
	uint64_t forgotten;		/* highest number of a forgotten tombstone; 0: none */
	uint64_t tombstones_made;	/* number of the last delete */
	uint64_t unsettled; /* number of the last delete when the shard became unsettled */
	uint32_t fresh[DIRECTORY_FRESH]; /* tombstones to replicate */
	uint32_t fresh_count;
	bool fresh_lost; /* there were more */
	bool evicting;	 /* a cached copy leaves the table of copies (evict.h) */
	uint32_t hand;	 /* clock hand of the eviction */
	struct allocator inline_space;
	uint8_t *inline_memory;
	uint32_t nodes_count;
	uint32_t self;		 /* number of the node that owns this shard, or MESSAGE_NODE_NONE */
	struct linkstats *links; /* gets measurements from answers */
	const struct network *network;	    /* between the nodes; NULL: not known */
	uint32_t expected[DIRECTORY_SIZES]; /* receivers at a time, by size */
	uint64_t inline_bytes;
	uint64_t visits; /* walks over upstreams so far */
	struct watchers watchers;
	struct session_object page[MESSAGE_OBJECTS_MAX];
	uint32_t scan_max;		/* entries that one page of a LIST or WATCH looks at */
	uint8_t sum[OBJECT_INLINE_MAX]; /* for one answer at a time */
};

struct control_config;
void directory_carve(struct directory *d, struct arena *a, const struct control_config *config);
void directory_init(struct directory *d, const struct control_config *config,
		    struct linkstats *links, const struct directory_out *out);

/* HAVE, GET, DROP, DELETE, STAT, LIST, WATCH, ANNOUNCED from a node. */
void directory_message(struct directory *d, uint32_t node, const struct message *m);

/* One answer that the removal waits for has come. */
void directory_removed(struct directory *d, struct removal *removal);

/* Reserves the id for a coordinator, until directory_unreserve. No generation may be announced yet.
 * Copies on dead nodes stay. *before: the last generation, or 0. Returns 0, -EEXIST (there is such
 * an object), -EAGAIN (directory_taken), -ENOSPC. */
int directory_reserve(struct directory *d, const struct object_id *id, uint64_t *before);
/* Only that generation may be announced under a reserved id; ends any other. */
void directory_reserve_for(struct directory *d, const struct object_id *id, uint64_t generation);
/* No generation may be announced any more. */
void directory_reserve_reset(struct directory *d, const struct object_id *id);
/* Hands the waiters of the object to take(), and forgets them. */
void directory_waiters_take(struct directory *d, const struct object_id *id,
			    void (*take)(void *arg, uint32_t node, uint64_t request), void *arg);
/* Ends the GETs of its waiters; answers them again that there is no copy. */
void directory_waiters_end(struct directory *d, const struct object_id *id, int32_t status,
			   const char *text);
void directory_waiters_tell(struct directory *d, const struct object_id *id);
/* Whether there is no room for another object, or for another copy. */
bool directory_full(const struct directory *d);
/* Whether a live member has a complete copy. */
bool directory_has_complete(const struct directory *d, const struct object_id *id);
void directory_unreserve(struct directory *d, const struct object_id *id);

/* A node's HELLO. Copies in an earlier store of the node are gone. False: its objects are not known
 * here, and it must announce them. */
bool directory_node_up(struct directory *d, uint32_t node, uint64_t store_incarnation);
/* It has begun to announce. */
void directory_node_known(struct directory *d, uint32_t node);
/* DROPs of the node may have been lost. */
void directory_node_doubt(struct directory *d, uint32_t node);
/* The node has no connection: it is not handed out as a holder, and its bookings end. */
void directory_node_down(struct directory *d, uint32_t node);
/* The members agree that the node is dead, or alive. Receivers of objects without a complete copy
 * get GOT_INCOMPLETE. */
void directory_node_dead(struct directory *d, uint32_t node, bool dead);
/* Whether the node is being probed: other holders are preferred. */
void directory_node_silent(struct directory *d, uint32_t node, bool silent);
/* The node has been down for long: forgets its partial copies; gone: it is no member any more, so
 * forgets all of its copies. */
void directory_node_forget(struct directory *d, uint32_t node, bool gone);

/* A tombstone of another owner. */
void directory_take_tombstone(struct directory *d, const struct message_tombstone *b);

/* Takes over the tombstones and the horizon that an earlier control process left in that memory,
 * and writes them there from now on. */
void directory_keep_tombstones(struct directory *d, struct object_tombstone *kept, uint32_t count,
			       _Atomic uint64_t *horizon);

/* The members have changed: the shard has new ids, whose holders are not known yet. */
void directory_unsettled(struct directory *d);

/* The node is dead or unreachable from now on; ever: since an unknown time. */
void directory_node_away(struct directory *d, uint32_t node, bool ever);

/* Forgets all ids that this shard does not own any more; redirects their waiters. */
void directory_keep(struct directory *d, bool (*mine)(void *arg, const struct object_id *id),
		    void *arg);

/* ---- entries.c; from here on for the files of the directory only ----------------------------- */

struct entry *directory_find(const struct directory *d, const struct object_id *id);
struct entry *directory_make(struct directory *d, const struct object_id *id);
/* The entry has changed: tells its watchers. */
static inline void directory_noted(struct directory *d, struct entry *e)
{
	if (d->watchers.pool.used > 0)
		watchers_look(d, e);
}
/* Frees an entry without copies, waiters and reservation. */
void directory_settle(struct directory *d, struct entry *e);
struct copy *directory_copy(const struct entry *e, uint32_t node);
struct copy *directory_copy_add(struct directory *d, struct entry *e, uint32_t node,
				uint32_t state);
void directory_copy_remove(struct directory *d, struct copy *copy);
/* Sets the state of a copy, and the counts of its entry. */
void directory_copy_state(struct copy *copy, uint32_t state, bool by_value);
bool directory_value_set(struct directory *d, struct entry *e, const uint8_t *value);
const uint8_t *directory_value(const struct directory *d, const struct entry *e); /* or NULL */
/* Whether the value may be lost with this node: no other node certainly has it. */
bool directory_alone(const struct directory *d, const struct entry *e);
void directory_value_clear(struct directory *d, struct entry *e);
/* ---- tombstones.c ---------------------------------------------------------------------------- */

void directory_tombstones_carve(struct directory *d, struct arena *a, uint32_t count);
void directory_tombstones_init(struct directory *d, uint32_t count);
/* The node has a connection again; it has announced all of its objects. */
void directory_node_returns(struct directory *d, uint32_t node);
void directory_node_in_step(struct directory *d, uint32_t node);
/* Whether the announced object may have been deleted by a tombstone that is forgotten. */
bool directory_beyond(const struct directory *d, uint32_t node, const struct message_have *have);
/* Whether one more tombstone would displace one that a holder may not know. */
bool directory_tombstones_full(struct directory *d);
/* Returns whether it was new. One that is older than all is forgotten at once. */
bool directory_add_tombstone(struct directory *d, const struct message_tombstone *b);
/* For struct message_tombstone. */
uint32_t directory_tombstone_age(const struct directory *d, const struct tombstone *t);
const struct tombstone *directory_tombstone(const struct directory *d, const struct object_id *id);
/* Whether an object of this id was deleted, as far as this shard knows. Call it if there is none.
 */
bool directory_was_deleted(const struct directory *d, const struct object_id *id);
/* A complete copy, or one under creation, on a connected node, or (second argument) on any member;
 * or NULL. */
const struct copy *directory_standing(const struct directory *d, const struct entry *e,
				      bool connected);
/* Whether a member, connected or not, has a complete copy or creates one: then the object cannot be
 * replaced. */
bool directory_stands(const struct directory *d, const struct entry *e);
/* Whether the id is in use: 0: no; -EEXIST; -EAGAIN: only a member without a connection has it. */
int directory_taken(const struct directory *d, const struct entry *e);
/* The text for -EAGAIN: which member it is, and what to do. */
void directory_unreachable(const struct directory *d, const struct entry *e, struct text *t);

/* ---- directory.c ----------------------------------------------------------------------------- */

/* Ends the generation: removes all copies but that of one node, and forgets them. Waiters stay. */
void directory_end(struct directory *d, struct entry *e, uint32_t except, struct removal *removal);
/* Replicates a new tombstone. The removal (or NULL) waits for that. */
void directory_fresh(struct directory *d, const struct tombstone *t, struct removal *removal);
void directory_reply(struct directory *d, uint32_t node, uint64_t request, int32_t status,
		     uint64_t generation, const char *text);

/* The node of the copy has given it up. */
void directory_gone(struct directory *d, struct copy *copy);

/* ---- delete.c -------------------------------------------------------------------------------- */

void directory_delete(struct directory *d, uint32_t node, const struct message *m);

/* ---- evict.c --------------------------------------------------------------------------------- */

/* Begins to make room for another copy. Returns whether there will be some. */
bool directory_evict(struct directory *d);
/* Whether the copy of the node may still be evicted; it has been. */
bool directory_evicts(const struct directory *d, const struct message_object *o, uint32_t node);
void directory_evicted(struct directory *d, const struct message_object *o, uint32_t node);

/* ---- locate.c -------------------------------------------------------------------------------- */

void directory_locate(struct directory *d, uint32_t node, const struct message *m);
void directory_locate_forget(struct directory *d, uint32_t node, const struct message *m);
/* Answers the LOCATEs that can be answered now. */
void directory_locate_serve(struct directory *d, struct entry *e);
void directory_locate_remove(struct directory *d, struct waiter *w);

/* ---- matching.c ------------------------------------------------------------------------------ */

void directory_got(const struct entry *e, uint64_t request, uint32_t what, struct message *m);
/* Whether receivers may fetch from this copy. */
bool directory_can_send(const struct directory *d, const struct copy *copy);
/* The GOT that ends a GET without an object. */
void directory_get_failed(struct directory *d, uint32_t node, uint64_t request,
			  const struct object_id *id, int32_t status, const char *text);
void directory_get_full(struct directory *d, uint32_t node, uint64_t request,
			const struct object_id *id);
void directory_get(struct directory *d, uint32_t node, const struct message *m);
/* Sends the reply "wait" to waiters that have been deferred since the call before. */
void directory_notify_deferred(struct directory *d);
/* Sends the reply "wait". False: not now. */
bool directory_tell(struct directory *d, const struct waiter *w);

/* ---- lost.c ---------------------------------------------------------------------------------- */

struct directory_loss {
	uint32_t copies,
		node;	  /* complete copies on dead nodes; the one of these nodes that died last */
	uint64_t down_ms; /* since that death; 0: no copy is lost */
};
void directory_losses(const struct directory *d, const struct entry *e, struct directory_loss *out);
/* Whether all complete copies are on dead nodes, and all other holders have had time to announce
 * theirs. */
bool directory_lost(const struct directory *d, const struct entry *e, struct directory_loss *out);
/* If the object is lost, tells its waiters. */
void directory_tell_lost(struct directory *d, struct entry *e);

/* ---- salvage.c ------------------------------------------------------------------------------- */

/* Whether no live member has or creates a complete copy: then receivers take an inventory of the
 * remaining chunks. */
bool directory_incomplete(const struct directory *d, const struct entry *e);
void directory_get_piece(struct directory *d, uint32_t node, const struct message *m);
/* Answers the waiters that can be answered now. */
void directory_serve(struct directory *d, struct entry *e);
void directory_waiter_remove(struct directory *d, struct waiter *w);

/* ---- upstreams.c ----------------------------------------------------------------------------- */

/* Books one upstream more; NULL: all bookings end. */
void directory_feed(struct copy *copy, struct copy *upstream);
void directory_feed_end(struct copy *copy, const struct copy *upstream);
bool directory_fed_by(const struct copy *copy, const struct copy *upstream);
/* Whether copy a is fed, over any number of hops, by the requester's copy (NULL: it is not). */
bool directory_depends(struct directory *d, struct copy *a, const struct copy *requester);

/* ---- width.c --------------------------------------------------------------------------------- */

/* Sending slots of each copy of this object. */
uint32_t directory_slots(struct directory *d, struct entry *e);
/* Whether this waiter gets the value in its answer. */
bool directory_inline(struct directory *d, struct entry *e, const struct waiter *w);
/* The object ends: its number of receivers is the estimate for the next of its size. */
void directory_learn(struct directory *d, struct entry *e);

/* ---- pins.c ---------------------------------------------------------------------------------- */

/* The answer to a HAVE: node + 1 of the pinned replica, or 0. If the requester says that it is
 * lost, and there is no other, the requester's copy becomes the pinned replica. The owner decides,
 * so of several requesters one gets it. */
uint32_t directory_pinned(const struct directory *d, struct entry *e, uint32_t requester,
			  const struct message_have *have);

/* ---- query.c --------------------------------------------------------------------------------- */

void directory_stat(struct directory *d, uint32_t node, const struct message *m);
/* A page may be empty and not the last one: it ends where it has looked at scan_max entries. */
void directory_list(struct directory *d, uint32_t node, const struct message *m);
/* Where a page that begins at that entry ends at the latest. */
uint64_t directory_scan_end(const struct directory *d, uint64_t at);

#endif
