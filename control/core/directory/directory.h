/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One shard of the directory: which objects exist, who holds them, who waits for them. Pure: it
 * talks through struct directory_out only and knows no connection and no time.
 *
 * Broadcast is receiver-driven: a GET is answered with one holder, whose sending slot is booked;
 * the asker becomes a partial holder at once, so that later askers chain behind it. A copy that
 * becomes complete or goes away returns the slot. How many slots a copy has, and whether a small
 * value comes with the answer instead, says a model (planner/fanout.h). A receiver may ask for more
 * holders to feed it at a time. Who feeds whom never contains a circle.
 *
 * Its state is soft: nodes announce what they hold again when asked (directory_node_up).
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_DIRECTORY_H
#define SARISSA_CONTROL_CORE_DIRECTORY_DIRECTORY_H

#include "core/base/allocator.h"
#include "core/cluster/room.h"
#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "watchers.h"

struct text;

enum {
	DIRECTORY_FRESH = 64,
	DIRECTORY_TOMBSTONE_REPLICAS = 2, /* nodes that keep the tombstones of an id */
};

struct copy {
	struct list of_entry, of_node;
	struct copy *same_bucket; /* directory.by_node */
	struct entry *entry;
	struct copy_upstream { /* PARTIAL: whose sending slots are booked */
		struct copy *copy;
		uint64_t request; /* the GET that was answered with it; 0: it told us itself */
	} upstream[MESSAGE_UPSTREAMS_MAX];
	struct copy *visit_next;
	uint64_t visit;
	uint64_t epoch; /* of its node, when that spoke of it last */
	uint32_t upstreams;
	uint32_t node;
	uint32_t sending; /* copies that have this one as an upstream */
	uint32_t state;	  /* enum message_copy_state */
	uint32_t depth;	  /* PARTIAL: hops from a complete copy, when its booking was made */
	bool pinned;	  /* its node keeps it, whatever the others do */
	bool fed;	  /* it is, or was */
	bool alone;	  /* PARTIAL: it was by one only, that had all of it and fed nobody else */
	bool by_value;	  /* COMPLETE: its answer is on the way, it can feed nobody yet */
};

struct waiter { /* of an entry's waiters; of its locates: it only wants to know where it is */
	struct list of_entry, of_node;
	struct entry *entry;
	uint64_t request;
	uint32_t node;
	uint32_t failed;      /* not this holder */
	uint32_t value_max;   /* of its locates: bytes that it wants at most */
	struct list deferred; /* on directory.untold: it does not know that it waits */
	bool waited;	      /* it was not answered at once */
	bool ripe;	      /* untold since the last time that some were told */
};

#define DIRECTORY_DELEGATED \
	(UINT64_MAX - 1) /* reserved for a reduce that another node coordinates */

struct entry {
	struct idmap_node by_id;
	struct list copies, waiters, locates;
	struct list references; /* of leases that hold it (references.h) */
	struct directory *directory;
	uint64_t reserved; /* only this generation may be announced; 0: any; UINT64_MAX: none;
			    * DIRECTORY_DELEGATED */
	uint32_t copies_count, waiters_count;
	uint32_t arriving;   /* copies that are on their way, PARTIAL or by value */
	uint64_t generation; /* 0: nobody holds it, it is only waited for */
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t value;	   /* range of the inline space; 0: none */
	uint32_t burst;	   /* receivers at a time, at most */
	uint32_t departed; /* copies that have gone */
	bool has_value;
	bool keeping; /* another node is asked to hold a copy of it */
	bool used;
	uint8_t watched; /* enum session_event that watchers know of it; 0: none */
	uint64_t event;	 /* number of its last one */
	char name[OBJECT_NAME_MAX + 1];
};

struct tombstone { /* a deleted object: nobody may bring it back */
	struct idmap_node by_id;
	struct list aged;    /* of the directory */
	uint64_t number;     /* rises with each */
	uint64_t generation; /* this one, and all before; 0: none */
	uint64_t request;    /* of the DELETE, which may be repeated */
	uint32_t node;
};

struct removal { /* a DELETE that is answered when the holders have given their copies up, and when
		  * who keeps the id's tombstones as well has this one */
	uint64_t request;
	uint64_t generation;
	uint32_t node;
	uint32_t left;	 /* of those; and one for the handler itself */
	uint32_t silent; /* node + 1 of a holder that had no connection when it was asked, or since
			  */
};

struct directory_node {
	struct list copies, waiters, locates;
	uint64_t store_incarnation;
	uint64_t epoch; /* the latest that it said anything in */
	bool up;
	bool dead;   /* the members agree that it is: its copies are no hope */
	bool known;  /* it has announced its objects, and they are not forgotten */
	bool silent; /* reported as out of reach, and has not answered since */
	bool away;   /* dead or out of reach, and has not told since what it holds */
	bool behind; /* of the objects deleted since then some are forgotten */
	uint64_t pad[7];
};
_Static_assert(sizeof(struct directory_node) == 128, "to find one of them is a shift");

struct directory_out {
	void *arg;
	/* Answers, and later answers to a GET that had to wait. False: it cannot be sent now. It
	 * may be lost as well when the node goes down. */
	bool (*answer)(void *arg, uint32_t node, const struct message *m);
	/* A holder must give its copy up; again: for another generation, which is being made. When
	 * it has, or has become unreachable, the removal (if not NULL) hears of it through
	 * directory_removed. Returns false when that cannot be arranged: the removal will hear
	 * nothing. */
	bool (*remove)(void *arg, uint32_t node, const struct object_id *id, uint64_t generation,
		       bool replaced, struct removal *removal);
	/* The others who keep its tombstone must have it. Returns how many there are, of each of
	 * which the removal hears through directory_removed. */
	uint32_t (*replicate)(void *arg, const struct tombstone *t, struct removal *removal);
	/* A holder was reported as out of reach: is it? */
	void (*suspect)(void *arg, uint32_t node);
	/* How many removals may be under way at a time beside those that are: a DELETE that needs
	 * more is put off. */
	uint32_t (*removals)(void *arg);
	/* Whether all who hold a copy of it have had the time to say so. */
	bool (*settled)(void *arg, const struct object_id *id);
	/* Whoever waits with this GET must ask elsewhere. */
	void (*redirect)(void *arg, uint32_t node, uint64_t request);
	/* Another node must hold a copy of this value (directory_alone). Returns whether the answer
	 * to that node is sent when it does, or cannot. */
	bool (*keep)(void *arg, struct entry *e, uint32_t node, const struct message *answer);
	/* There are entries of which that may be so, unless their holders are about to say more. */
	void (*alone)(void *arg);
	/* How many ms ago a node was taken for dead; 0: it was not. */
	uint64_t (*down)(void *arg, uint32_t node);
	/* A copy of a node that is behind was refused: it may have been deleted. */
	void (*beyond)(void *arg, uint32_t node);
	/* The holder of this cached copy is to give it up, if that node, which has the pinned one,
	 * gives a sign of life. Clears directory.evicting when it is done. False: not now. */
	bool (*evict)(void *arg, const struct copy *copy, uint32_t pinned);
	/* A lease of that node holds what it creates. False: no room to note that. */
	bool (*hold)(void *arg, struct entry *e, uint32_t node, const struct message_have *have);
	/* Generations up to this one of the object are gone, and what holds them; tell: the homes
	 * of the leases hear so. Only called when there are references. */
	void (*unhold)(void *arg, struct entry *e, uint64_t generation, bool tell);
	/* Sets what holds it, and until when. Only called when there are references. */
	void (*held)(void *arg, const struct entry *e, struct session_object *out);
};

enum { DIRECTORY_SIZES = 32 }; /* one per factor of 4 */

struct directory {
	struct directory_out out;
	struct pool entries, copies, waiters, locates, removals;
	struct list deferred; /* waiters that are patient, in the order in which they came */
	struct idmap by_id;
	struct copy **by_node; /* copies by entry and node */
	uint32_t by_node_mask;
	struct directory_node *nodes;
	uint64_t *away_since; /* of each node that is away: number of the last tombstone then */
	struct tombstone *tombstones;
	struct idmap by_tombstone;
	struct list aged;	  /* tombstones in use, the oldest first */
	uint32_t tombstones_used; /* all before this one are in use */
	uint32_t tombstones_count;
	struct object_tombstone *kept; /* of the first ones, for the next control here */
	uint32_t kept_count;
	_Atomic uint64_t *kept_horizon;	 /* the same of the horizon, or NULL */
	uint64_t horizon;		 /* highest generation of a forgotten tombstone */
	uint64_t forgotten;		 /* number of the last of those; 0: none */
	uint64_t tombstones_made;	 /* tombstones so far: the latest number */
	uint64_t unsettled;		 /* number of the last one when holders began to tell */
	uint32_t fresh[DIRECTORY_FRESH]; /* tombstones that others are to be told of */
	uint32_t fresh_count;
	bool fresh_lost; /* there were more */
	bool evicting;	 /* a cached copy leaves the table of copies (evict.h) */
	uint32_t hand;	 /* next copy to look at for that */
	struct allocator inline_space;
	uint8_t *inline_memory;
	uint32_t nodes_count;
	uint32_t self; /* number of the node that keeps this shard, or MESSAGE_NODE_NONE */
	struct linkstats *links; /* what its answers show of the ways to the nodes goes there */
	uint32_t expected[DIRECTORY_SIZES]; /* receivers at a time, by size */
	uint64_t inline_bytes;
	uint64_t visits; /* walks over upstreams so far */
	struct watchers watchers;
	struct session_object page[MESSAGE_OBJECTS_MAX];
	uint8_t sum[OBJECT_INLINE_MAX]; /* for one answer at a time */
};

struct control_config;
void directory_carve(struct directory *d, struct arena *a, const struct control_config *config);
void directory_init(struct directory *d, const struct control_config *config,
		    struct linkstats *links, const struct directory_out *out);

/* HAVE, GET, DROP, DELETE, STAT, LIST, WATCH, ANNOUNCED from a node. */
void directory_message(struct directory *d, uint32_t node, const struct message *m);

/* One of those that a removal waits for is done. */
void directory_removed(struct directory *d, struct removal *removal);

/* The id is kept for one who makes an object of it, until it is given free: for none of its
 * generations yet. Of what was there dead nodes keep what they have; before: its generation, 0:
 * nothing was. 0, -EEXIST (there is such an object), -EAGAIN (directory_taken), -ENOSPC. */
int directory_reserve(struct directory *d, const struct object_id *id, uint64_t *before);
/* The same for whatever another node makes of it: the latest that is announced. What there is of it
 * stays. An id that is kept already stays so. */
int directory_reserve_delegated(struct directory *d, const struct object_id *id, uint64_t *before);
/* The kept id is for that generation alone; what another one of them left is ended. */
void directory_reserve_for(struct directory *d, const struct object_id *id, uint64_t generation);
/* The same for none, again. */
void directory_reserve_reset(struct directory *d, const struct object_id *id);
/* Takes those who wait for the object off the directory's hands. */
void directory_waiters_take(struct directory *d, const struct object_id *id,
			    void (*take)(void *arg, uint32_t node, uint64_t request), void *arg);
/* Ends their GETs so; tells them again that nobody has it. */
void directory_waiters_end(struct directory *d, const struct object_id *id, int32_t status,
			   const char *text);
void directory_waiters_tell(struct directory *d, const struct object_id *id);
/* Whether there is no room for another object, or for another copy. */
bool directory_full(const struct directory *d);
/* Whether somebody who lives has all of it. */
bool directory_has_complete(const struct directory *d, const struct object_id *id);
void directory_unreserve(struct directory *d, const struct object_id *id);

/* A node has said hello. Copies of an earlier store of it are gone. Returns false when its objects
 * are not known here and it must announce them. */
bool directory_node_up(struct directory *d, uint32_t node, uint64_t store_incarnation);
/* It has begun to announce. */
void directory_node_known(struct directory *d, uint32_t node);
/* What it says now and then to keep its copies here right may not have come. */
void directory_node_doubt(struct directory *d, uint32_t node);
/* No connection: it is not handed out as a holder, and what it is fed with is booked no more. */
void directory_node_down(struct directory *d, uint32_t node);
/* The members agree that it is dead, or that it lives. Of an object of which only parts are left on
 * nodes that live, those who have one are told. */
void directory_node_dead(struct directory *d, uint32_t node, bool dead);
/* Whether it is asked if it lives: others are handed out rather. */
void directory_node_silent(struct directory *d, uint32_t node, bool silent);
/* It has been down for long: parts of objects there no longer count; gone: it is no member either,
 * nothing there does. */
void directory_node_forget(struct directory *d, uint32_t node, bool gone);

/* Another shard tells what was deleted there. */
void directory_take_tombstone(struct directory *d, const struct message_tombstone *b);

/* From now on tombstones and the horizon are kept there as well, and those that are there already
 * count: an earlier control here has left them. */
void directory_keep_tombstones(struct directory *d, struct object_tombstone *kept, uint32_t count,
			       _Atomic uint64_t *horizon);

/* The members have changed: ids have come whose holders are not known yet (directory_out.settled).
 */
void directory_unsettled(struct directory *d);

/* It is dead or out of reach from now on; ever: nobody knows since when. */
void directory_node_away(struct directory *d, uint32_t node, bool ever);

/* Forgets all that is not (any more) for this shard; who waits for it is sent away. */
void directory_keep(struct directory *d, bool (*mine)(void *arg, const struct object_id *id),
		    void *arg);

/* entries.c, for the files of the directory only */
struct entry *directory_find(const struct directory *d, const struct object_id *id);
struct entry *directory_make(struct directory *d, const struct object_id *id);
/* The entry has changed: those who watch it hear of that. */
static inline void directory_noted(struct directory *d, struct entry *e)
{
	if (d->watchers.pool.used > 0)
		watchers_look(d, e);
}
/* Frees an entry that nobody holds and nobody waits for. */
void directory_settle(struct directory *d, struct entry *e);
struct copy *directory_copy(const struct entry *e, uint32_t node);
struct copy *directory_copy_add(struct directory *d, struct entry *e, uint32_t node,
				uint32_t state);
void directory_copy_remove(struct directory *d, struct copy *copy);
/* Its state has changed: the entry counts anew. */
void directory_copy_state(struct copy *copy, uint32_t state, bool by_value);
bool directory_value_set(struct directory *d, struct entry *e, const uint8_t *value);
const uint8_t *directory_value(const struct directory *d, const struct entry *e); /* or NULL */
/* Whether its value is on no other machine for certain: this node is lost, and it is as well. */
bool directory_alone(const struct directory *d, const struct entry *e);
void directory_value_clear(struct directory *d, struct entry *e);
/* tombstones.c */
void directory_tombstones_carve(struct directory *d, struct arena *a, uint32_t count);
void directory_tombstones_init(struct directory *d, uint32_t count);
/* It has a connection again; it has told what it holds. */
void directory_node_returns(struct directory *d, uint32_t node);
void directory_node_in_step(struct directory *d, uint32_t node);
/* Whether what it announces may have been deleted, and that was forgotten. */
bool directory_beyond(const struct directory *d, uint32_t node, const struct message_have *have);
/* Whether one more delete would make it forget one that a holder may not have heard of. */
bool directory_tombstones_full(struct directory *d);
/* Returns whether that was news. */
bool directory_add_tombstone(struct directory *d, const struct message_tombstone *b);
const struct tombstone *directory_tombstone(const struct directory *d, const struct object_id *id);
/* Whether somebody has deleted the object of this id, as far as is known here. To be asked only
 * when there is none. */
bool directory_was_deleted(const struct directory *d, const struct object_id *id);
/* A copy with all of it, or the one being made: on a connected node, or on any member. Or NULL. */
const struct copy *directory_standing(const struct directory *d, const struct entry *e,
				      bool connected);
/* Whether a member, connected or not, has or makes all of it: nothing may take its place. */
bool directory_stands(const struct directory *d, const struct entry *e);
/* 0: the id is free; -EEXIST; -EAGAIN: only a member that does not answer has it. */
int directory_taken(const struct directory *d, const struct entry *e);
/* What to say of -EAGAIN: which member that is, and what to do. */
void directory_unreachable(const struct directory *d, const struct entry *e, struct text *t);

/* directory.c: ends this generation; tells all holders but one node, forgets it. Waiters stay. */
void directory_end(struct directory *d, struct entry *e, uint32_t except, struct removal *removal);
/* There is a new tombstone: a DELETE waits until others have it. */
void directory_fresh(struct directory *d, const struct tombstone *t, struct removal *removal);
void directory_reply(struct directory *d, uint32_t node, uint64_t request, int32_t status,
		     uint64_t generation, const char *text);

/* Its node holds this copy no more. */
void directory_gone(struct directory *d, struct copy *copy);

/* delete.c */
void directory_delete(struct directory *d, uint32_t node, const struct message *m);

/* evict.c */
/* Begins to make room for another copy. Returns whether there will be some. */
bool directory_evict(struct directory *d);
/* Whether that copy of that node may leave still; it has. */
bool directory_evicts(const struct directory *d, const struct message_object *o, uint32_t node);
void directory_evicted(struct directory *d, const struct message_object *o, uint32_t node);

/* locate.c */
void directory_locate(struct directory *d, uint32_t node, const struct message *m);
void directory_locate_forget(struct directory *d, uint32_t node, const struct message *m);
/* Answers those that can be. */
void directory_locate_serve(struct directory *d, struct entry *e);
void directory_locate_remove(struct directory *d, struct waiter *w);

/* matching.c */
void directory_got(const struct entry *e, uint64_t request, uint32_t what, struct message *m);
/* Whether others may get it from this copy. */
bool directory_can_send(const struct directory *d, const struct copy *copy);
/* The GOT that ends a GET without an object. */
void directory_get_failed(struct directory *d, uint32_t node, uint64_t request,
			  const struct object_id *id, int32_t status, const char *text);
void directory_get_full(struct directory *d, uint32_t node, uint64_t request,
			const struct object_id *id);
void directory_get(struct directory *d, uint32_t node, const struct message *m);
/* Those who are patient and still wait since the call before are told so. */
void directory_notify_deferred(struct directory *d);
/* That it waits. False: that cannot be sent now. */
bool directory_tell(struct directory *d, const struct waiter *w);

/* lost.c */
struct directory_loss {
	uint32_t copies, node; /* complete ones on dead nodes; the node that died last */
	uint64_t down_ms;      /* so long ago; 0: no copy is lost */
};
void directory_losses(const struct directory *d, const struct entry *e, struct directory_loss *out);
/* Whether all of it is on dead nodes only, and those who live have had the time to say otherwise.
 */
bool directory_lost(const struct directory *d, const struct entry *e, struct directory_loss *out);
/* Tells those who wait for it, if it is lost. */
void directory_tell_lost(struct directory *d, struct entry *e);

/* salvage.c */
/* Whether nobody who lives has all of it, nor makes it, so that those who have a part must see
 * what is left. */
bool directory_incomplete(const struct directory *d, const struct entry *e);
void directory_get_piece(struct directory *d, uint32_t node, const struct message *m);
/* Answers as many waiters as can be. */
void directory_serve(struct directory *d, struct entry *e);
void directory_waiter_remove(struct directory *d, struct waiter *w);

/* upstreams.c */
/* Books one upstream more; NULL: all bookings end. */
void directory_feed(struct copy *copy, struct copy *upstream);
void directory_feed_end(struct copy *copy, const struct copy *upstream);
bool directory_fed_by(const struct copy *copy, const struct copy *upstream);
/* Whether some of a's bytes come, over any number of hops, from the asker's copy (NULL: none). */
bool directory_depends(struct directory *d, struct copy *a, const struct copy *requester);

/* width.c */
/* Streams that a copy of this object feeds at a time. */
uint32_t directory_slots(struct directory *d, struct entry *e);
/* Whether this one is answered with the value. */
bool directory_inline(struct directory *d, struct entry *e, const struct waiter *w);
/* The object ends: what is expected of the next ones follows it. */
void directory_learn(struct directory *d, struct entry *e);

/* query.c */
void directory_stat(struct directory *d, uint32_t node, const struct message *m);
void directory_list(struct directory *d, uint32_t node, const struct message *m);

#endif
