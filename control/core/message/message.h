/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What control processes say to each other, as plain structs. control/rpc turns them into bytes
 * and back; the simulator may pass them as they are.
 *
 * Every message but HELLO and REPLY-like answers carries a request number of its sender; the
 * answer repeats it. Requests are idempotent: a sender repeats one until it is answered.
 *
 * Pointers inside a message are lent for the duration of the call that passes it.
 */
#ifndef SARISSA_CONTROL_CORE_MESSAGE_MESSAGE_H
#define SARISSA_CONTROL_CORE_MESSAGE_MESSAGE_H

#include "internal/ids.h"
#include "internal/session.h"
#include "core/base/bitmap.h"
#include "core/base/lanes.h"

enum {
	MESSAGE_VERSION = 15,
	MESSAGE_TEXT_MAX = 127,	  /* bytes, without the terminating zero */
	MESSAGE_OBJECTS_MAX = 32, /* entries in one OBJECTS message */
	MESSAGE_UPSTREAMS_MAX = SESSION_UPSTREAMS,
	MESSAGE_SKIPS_MAX = CHUNK_RUNS_MAX,	    /* runs of chunks that a STREAM leaves out */
	MESSAGE_SUBSTREAMS_MAX = 2 * LANES_MAX - 1, /* of a STREAM: two nodes cut differently */
	MESSAGE_MEMBERS_MAX = 64,		    /* entries in one MEMBERS message */
	MESSAGE_SOURCES_MAX = 1024,		    /* of a reduce */
	MESSAGE_OTHERS_MAX = 31, /* of a LOCATE: what one answer adds up is bounded */
	MESSAGE_PARTS_MAX = 255, /* of an object that is combined: a contribution count is a byte */
};

enum message_kind {
	MESSAGE_NONE,
	MESSAGE_HELLO,	/* first on every connection, either way: who I am */
	MESSAGE_HAVE,	/* node -> shard: I hold this (or begin to create it) */
	MESSAGE_GET,	/* node -> shard: from whom can I have this? */
	MESSAGE_GOT,	/* shard -> node: from this one; or here it is; or wait */
	MESSAGE_DROP,	/* node -> shard: I hold it no more, or need it no more */
	MESSAGE_DELETE, /* node -> shard: remove it everywhere */
	MESSAGE_REMOVE, /* shard -> holder: give your copy up */
	MESSAGE_STREAM, /* receiver -> holder: send me these chunks */
	MESSAGE_STAT, /* node -> shard: what do you know of this id? -> OBJECTS; with a generation,
		       * node -> holder: how far is your own copy of it? */
	MESSAGE_LIST, /* node -> shard: which objects do you know? -> OBJECTS */
	MESSAGE_OBJECTS,
	MESSAGE_STATUS, /* node -> node -> NODE */
	MESSAGE_NODE,
	MESSAGE_REPLY,	  /* the answer to HAVE, DROP, DELETE, REMOVE, STREAM */
	MESSAGE_REDIRECT, /* not my id: look at the members again, then ask again */
	MESSAGE_MEMBERS,  /* what I know of other nodes */
	MESSAGE_REDUCE,	  /* node -> shard of the target: make it from these -> REPLY, once */
	MESSAGE_REDUCED,  /* node -> shard of the target: when it has ended, how? -> USED */
	MESSAGE_USED,
	MESSAGE_COMBINE,   /* shard -> node: build an object from these parts -> REPLY */
	MESSAGE_COMBINED,  /* node -> shard: how that goes -> REPLY (-ESTALE: not known) */
	MESSAGE_RELEASE,   /* shard -> node: give up what a reduce has left with you -> REPLY */
	MESSAGE_TOMBSTONE, /* shard -> shard: this was deleted, in case that you are asked -> REPLY
			    */
	MESSAGE_ANNOUNCED, /* node -> shard: you know all that I hold; forget the rest -> REPLY */
	MESSAGE_PIECES,	   /* node -> holder: which of these chunks do you have? -> HAS */
	MESSAGE_HAS,
	MESSAGE_COMMIT,	 /* shard -> who asked for the reduce: may this be its result? -> REPLY */
	MESSAGE_FINISH,	 /* -> node: what you have built is the result, let it go -> REPLY */
	MESSAGE_RECALL,	 /* who asked for a reduce -> shard: so it has ended -> REPLY */
	MESSAGE_PROPOSE, /* who asked for a reduce, and coordinates it -> shard: may this be its
			  * result? -> REPLY */
	MESSAGE_PULL,	 /* node -> node: the bytes of this range, when you have all of it ->
			    PULL_REPLY */
	MESSAGE_PULL_REPLY,
	MESSAGE_PUSH,	  /* node -> node: bytes for what you are to build; no answer */
	MESSAGE_KEEP,	  /* shard -> node: hold a copy of this small object, for me it is the only
			   * other one
			   * -> REPLY */
	MESSAGE_HOLD,	  /* node -> shard: a lease of mine holds this object; or its time ends then
			   * -> REPLY */
	MESSAGE_PREFETCH, /* node -> node: fetch this object -> REPLY when you have all of it */
	MESSAGE_WATCH, /* node -> shard: tell me of these objects -> OBJECTS, when there is news */
	MESSAGE_KINDS,
};

enum message_copy_state {
	MESSAGE_COPY_CREATING = 1, /* the origin, still being written */
	MESSAGE_COPY_PARTIAL,	   /* arriving from upstream */
	MESSAGE_COPY_COMPLETE,
	MESSAGE_COPY_STATES,
};

enum message_get_why {
	MESSAGE_GET_FIRST,     /* failed names no node */
	MESSAGE_GET_UNREACHED, /* the holder named before does not answer, or stopped sending */
	MESSAGE_GET_ABSENT,    /* the holder named before says that it has no such copy */
	MESSAGE_GET_MORE,      /* one feeds me, an idle one beside it would be faster */
	MESSAGE_GET_HEDGE,  /* those that feed me are slow, or failed does not answer: who else? */
	MESSAGE_GET_PIECE,  /* who is the next after failed that has a part? Answered at once */
	MESSAGE_GET_LOCATE, /* where is it, or, if it is small: what is it? Nothing is booked, and
			     * I get no copy */
	MESSAGE_GET_FORGET, /* I ask no more: generation is the number of my LOCATE */
	MESSAGE_GET_REPARENT, /* who feeds me may feed too many: whose stream would do instead? */
	MESSAGE_GET_WHYS,
};

enum message_got_what {
	MESSAGE_GOT_UNKNOWN,	/* nobody has it: an answer follows when somebody does */
	MESSAGE_GOT_WAIT,	/* it exists; an answer follows when a holder can send */
	MESSAGE_GOT_HOLDER,	/* ask this node; its sending slot is booked for you */
	MESSAGE_GOT_VALUE,	/* here it is */
	MESSAGE_GOT_FAILED,	/* status says why; no further answer (MORE, HEDGE: nobody else) */
	MESSAGE_GOT_INCOMPLETE, /* nobody who lives has all of it: see what is left (GET_PIECE) */
	MESSAGE_GOT_PIECE,	/* holder has a part; NONE: that was the last */
	MESSAGE_GOT_WHATS,
};

enum message_announce {
	MESSAGE_ANNOUNCE_NONE,
	MESSAGE_ANNOUNCE_ASK,	/* the directory here knows nothing of your objects: tell me all */
	MESSAGE_ANNOUNCE_BEGUN, /* I do */
	MESSAGE_ANNOUNCES,
};

/* The worse wins among reports of one incarnation. */
enum member_state {
	MEMBER_NONE, /* never heard of */
	MEMBER_ALIVE,
	MEMBER_SUSPECT, /* somebody cannot reach it; it may refute that */
	MEMBER_DEAD,
	MEMBER_LEFT, /* it said goodbye */
	MEMBER_STATES,
};

enum message_members_step {
	MESSAGE_MEMBERS_NEWS,	/* this has changed */
	MESSAGE_MEMBERS_PROBE,	/* are you there, and do you know the same? */
	MESSAGE_MEMBERS_ANSWER, /* I am; what I know follows when it differs */
	MESSAGE_MEMBERS_TABLE,	/* all that I know, or a part of that */
	MESSAGE_MEMBERS_ASK,	/* I hear nothing of this one: do you? */
	MESSAGE_MEMBERS_HEARD,	/* I do, just now */
	MESSAGE_MEMBERS_STEPS,
};

#define MESSAGE_NODE_NONE UINT32_MAX

/* Of an object. They rise with the clock (ns), so a greater one is no generation of ours; it would
 * bury its id for ever. */
#define MESSAGE_GENERATION_MAX (UINT64_MAX / 2)

enum { MESSAGE_RAIL_BYTES = 18 }; /* an IP address and a port */

/* Where a node is reached by its rails after the first, worker 0. */
struct message_rails {
	uint32_t count;
	uint8_t addr[RAILS_MAX - 1][MESSAGE_RAIL_BYTES]; /* as they travel */
};

struct message_hello {
	uint32_t node; /* or MESSAGE_NODE_NONE: give me a number */
	uint32_t version;
	uint32_t workers;
	uint32_t announce;	    /* enum message_announce */
	uint64_t store_incarnation; /* changes when the store's contents are lost */
	uint64_t incarnation;	    /* of the member: rises with each life */
	uint64_t digest;	    /* of the members that it knows */
	uint32_t assigned;	    /* your number, or MESSAGE_NODE_NONE */
	struct message_rails rails;
};

struct message_lease {	 /* of a node, its home, that the message comes from */
	uint64_t number; /* 0: none */
	uint64_t ttl_ns; /* when its home is lost it ends so much later */
	char name[SESSION_LEASE_NAME_BYTES];
};

struct message_have {
	struct object_id id;
	uint64_t generation;
	uint64_t size; /* bytes */
	uint32_t chunk_bytes;
	uint32_t state;	   /* enum message_copy_state */
	uint32_t upstream; /* PARTIAL: the node that feeds it, or MESSAGE_NODE_NONE */
	uint32_t also_count;
	uint32_t also[MESSAGE_UPSTREAMS_MAX - 1]; /* others that feed it */
	uint32_t create;			  /* 1: fails when the id is in use */
	char name[OBJECT_NAME_MAX + 1];
	const uint8_t *value;
	uint32_t value_bytes; /* all of the object, or 0 */
	uint32_t has_value;
	uint64_t rate;	   /* COMPLETE: bytes per second at which it came; 0: not told */
	uint32_t pinned;   /* 1: this copy stays, whatever the others do (store/replica.h) */
	uint32_t pin_lost; /* 1: who guarded it lives no more: name me another, or me */
	uint32_t made;	   /* 1: it is being made by a reduce: only for whoever coordinates that */
	uint64_t epoch;	   /* as in message_announced; set when it is sent */
	struct message_lease lease; /* with create: that holds the object from now on */
};

/* Of what the sender has said with HAVE and GET, only that holds which it said in this life of
 * their acquaintance or a later one (members_epoch). */
struct message_announced {
	uint64_t epoch;
	uint64_t view; /* of the members, as the sender sees them (cluster/settle.c); 0: none */
};

struct message_get {
	struct object_id id;
	uint64_t generation; /* of what has arrived already; 0: nothing */
	uint32_t failed;     /* node, or MESSAGE_NODE_NONE */
	uint32_t why;	     /* enum message_get_why */
	uint32_t value_max;  /* LOCATE: bytes; larger ones stay where they are */
	uint64_t epoch;	     /* as in message_announced; set when it is sent */
	uint32_t deferrable; /* 1: that it has to wait need not be told at once */
	uint32_t op, dtype;  /* LOCATE of several, whose sum will do */
	uint32_t others_count;
	const struct object_id *others; /* beside id */
};

struct message_got {
	struct object_id id;
	uint64_t generation;
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t what; /* enum message_got_what */
	uint32_t holder;
	int32_t status;	     /* FAILED: -errno */
	uint32_t spare;	     /* HOLDER: complete copies beside it that feed nobody */
	uint32_t also_count; /* HOLDER: others that have all of it */
	uint32_t also[MESSAGE_UPSTREAMS_MAX - 1];
	uint32_t departed; /* PIECE: copies that have gone so far, to tell whether one did meanwhile
			    */
	char name[OBJECT_NAME_MAX + 1];
	const uint8_t *value;
	uint32_t value_bytes;
	uint32_t waited;  /* VALUE: 1: it was not there when it was asked for */
	uint32_t lost;	  /* WAIT: node + 1 with which all of it is lost; 0: it is not */
	uint64_t down_ms; /* so long that node has been dead */
	uint32_t others;  /* VALUE: 0, or it is the sum with all others that the LOCATE named */
	char text[MESSAGE_TEXT_MAX + 1];
};

enum message_lapsed {
	MESSAGE_LAPSED_NOT,
	MESSAGE_LAPSED_LEASE, /* that lease lets it go: only if no other one holds it */
	MESSAGE_LAPSED_TIME,  /* only if its time is over */
	MESSAGE_LAPSED_WHATS,
};

struct message_object { /* DROP, DELETE, REMOVE, STAT, PREFETCH */
	struct object_id id;
	uint64_t generation; /* DELETE: 0 unless lapsed; STAT: 0 for the shard */
	uint32_t lapsed;     /* DELETE: enum message_lapsed */
	uint64_t lease;	     /* MESSAGE_LAPSED_LEASE: of the sender; 0: the lease's home is lost */
	uint32_t upstream;   /* DROP: node + 1 that feeds me no more; 0: I hold nothing more */
	uint64_t cursor;     /* STAT: holders that are told already */
	uint32_t replaced;   /* REMOVE: 1: another generation takes its place; PREFETCH: 1: do not
			      * wait for it to be put */
};

struct message_hold {
	struct object_id id;
	uint64_t generation;	    /* 0: whatever is there; the REPLY tells */
	struct message_lease lease; /* number 0: it is about the time of the object */
	uint64_t left_ns;	    /* of its time; UINT64_MAX: it has no end */
	uint32_t known;		    /* 1: an owner was told already */
	uint32_t joins; /* 1: only if another lease holds it; else generation 0 comes back */
	uint64_t epoch; /* as in message_announced; set when it is sent */
};

struct message_tombstone {
	struct object_id id;
	uint64_t generation; /* this one and all before */
	uint64_t request;    /* of the DELETE, and who sent it: it may be repeated elsewhere */
	uint32_t node;	     /* or MESSAGE_NODE_NONE */
};

struct message_stream { /* STREAM; PIECES, HAS: id, generation, chunk_bytes, range, what is there */
	struct object_id id;
	uint64_t generation;
	uint32_t chunk_bytes;
	uint32_t first;	     /* chunk */
	uint32_t count;	     /* chunks from first on */
	uint32_t check;	     /* 1: only say whether the substreams still are there */
	uint32_t lanes;	     /* into which the holder is taken to have cut it; 1: not */
	uint32_t substreams; /* streams that share the range, each within a lane of both */
	struct message_substream {
		uint32_t stream; /* the receiver's IN edge */
		uint32_t worker; /* of the receiver */
		uint32_t first, count;
	} substream[MESSAGE_SUBSTREAMS_MAX];
	uint32_t replaced; /* streams of before that end with the beginning of these */
	uint32_t replaces[MESSAGE_SUBSTREAMS_MAX];
	uint32_t skips;
	struct chunk_run
		skip[MESSAGE_SKIPS_MAX]; /* chunks that are here already, in rising order */
};

struct message_list {
	uint64_t cursor;		  /* 0: from the start; else what OBJECTS said */
	char prefix[OBJECT_NAME_MAX + 1]; /* of the names; empty: all */
};

enum message_watch_step {
	MESSAGE_WATCH_BEGIN = 1, /* with the objects that exist */
	MESSAGE_WATCH_JOIN,	 /* from now on */
	MESSAGE_WATCH_NEXT,
	MESSAGE_WATCH_STOP,
	MESSAGE_WATCH_STEPS,
};

enum message_watch_state {
	MESSAGE_WATCH_EVENTS = 1, /* the objects are events, in order */
	MESSAGE_WATCH_MISSED,	  /* some are lost; these are the next ones */
	MESSAGE_WATCH_FULL,	  /* the shard has no room for one who watches more */
	MESSAGE_WATCH_STATES,
};

struct message_watch {
	uint32_t step;	 /* enum message_watch_step */
	uint64_t number; /* of the watch, at its node */
	uint64_t next;	 /* NEXT: those before have come; else 0 */
	uint64_t cursor; /* NEXT: more of the objects that existed; 0: they have come */
	char prefix[OBJECT_NAME_MAX + 1];
};

struct message_objects {
	uint64_t cursor; /* of the next page; 0: this was the last */
	uint32_t count;
	const struct session_object *objects;
	uint32_t deleted; /* STAT, count 0: 1: somebody has deleted it; else 0 */
	uint32_t watch;	  /* WATCH: enum message_watch_state; else 0 */
	uint64_t next;	  /* WATCH: number of the first event after these; else 0 */
};

struct message_member {
	uint32_t node;
	uint32_t state; /* enum member_state */
	uint64_t incarnation;
	struct net_addr addr; /* of worker 0 */
	struct message_rails rails;
};

struct message_members { /* REDIRECT: digest only */
	uint64_t digest; /* of all members that the sender knows */
	uint32_t step;	 /* enum message_members_step */
	uint32_t count;
	const struct message_member *members;
};

enum {				     /* flags */
       MESSAGE_REDUCE_ALLREDUCE = 1, /* all contributors will get the result */
       MESSAGE_REDUCE_RESTART = 2,   /* another coordinator had it, and no result is agreed to */
       MESSAGE_REDUCE_DELEGATED = 4, /* the asker coordinates it already (REDUCED, too) */
       MESSAGE_REDUCE_DEADLINE =
	       8, /* deadline_ns and min hold; nodes that know no deadlines refuse the flag */
};

/* REDUCE; REDUCED: target, timeout_ns, 0 or UINT64_MAX, and asked, 0: it is not the asker's own */
struct message_reduce {
	struct object_id target;
	uint32_t op, dtype; /* enum reduce_op, enum reduce_dtype */
	uint32_t num;	    /* so many of the sources suffice; the first to arrive */
	uint32_t flags;
	uint64_t timeout_ns;  /* UINT64_MAX: none */
	uint64_t deadline_ns; /* from now, DEADLINE: then the sources that are there suffice */
	uint32_t min;	      /* DEADLINE: if they are so many, 1 to count; num is count */
	uint64_t asked;	      /* the asker's number for it, in all that it sends of it */
	char name[OBJECT_NAME_MAX + 1];
	uint32_t count;
	const struct object_id *sources;
};

struct message_used { /* USED; COMMIT, PROPOSE, RECALL (of a failure: no generation, no sources) */
	struct object_id target;
	int32_t status; /* 0, or -errno: it has failed */
	uint64_t generation;
	char text[MESSAGE_TEXT_MAX + 1];
	uint64_t asked; /* COMMIT, RECALL: of the REDUCE */
	uint32_t node;	/* COMMIT: who has built it, or MESSAGE_NODE_NONE */
	uint32_t count;
	const struct object_id *sources;
	uint32_t present; /* USED, -EAGAIN: the first so many of the sources are there */
};

/* One contribution: count chunks of that object from first on go to chunks to, to + 1, ... */
struct message_part {
	struct object_id id;
	uint64_t generation;
	uint32_t node;
	uint32_t first, count, to;
	uint64_t size;	 /* bytes of that object; 0: these chunks are all of it */
	uint32_t stripe; /* VALUES, of a sum: that the node puts together */
};

enum {				     /* flags */
       MESSAGE_COMBINE_HIDDEN = 1,   /* nobody but the named streams knows of the object */
       MESSAGE_COMBINE_WITHHOLD = 2, /* its last chunk is given to nobody before FINISH, or a
				      * COMBINE without this flag */
       MESSAGE_COMBINE_VALUES = 4,   /* the parts come in messages (PULL) instead of streams */
       MESSAGE_COMBINE_DELEGATED =
	       8, /* from the node that has asked for the reduce (reduce/coordinator/delegate.c) */
};

struct message_combine {
	struct object_id id;
	uint64_t generation;
	struct object_id target; /* of the reduce that this belongs to */
	uint64_t reduce;	 /* its number: a later one of the same target has a greater */
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t op, dtype; /* op 0: the parts are put side by side */
	uint32_t scale;	    /* the sum is divided by it at the end; 0, 1: not */
	uint32_t need;	    /* parts in all, of which some may become known later */
	uint32_t flags;
	char name[OBJECT_NAME_MAX + 1];
	uint32_t count;
	const struct message_part *parts;
};

enum message_combined_what {
	MESSAGE_COMBINED_PART = 1,  /* all of the part is in */
	MESSAGE_COMBINED_DONE,	    /* the object is complete */
	MESSAGE_COMBINED_LOST,	    /* the part (part_node NONE: the object itself) cannot be had */
	MESSAGE_COMBINED_SILENT,    /* the part's node answers nothing, but is not given up yet */
	MESSAGE_COMBINED_RESTARTED, /* it begins with nothing, its dataplane has: is it wanted? */
	MESSAGE_COMBINED_WHATS,
};

/* RELEASE, FINISH: target, reduce, and the result's generation, or 0. RELEASE: with what = 1 it is
 * not known whether that is the result; with status -ECANCELED the reduce was cancelled by rm. */
struct message_combined {
	struct object_id id;
	uint64_t generation;
	struct object_id target;
	uint64_t reduce;
	uint32_t what;	    /* enum message_combined_what */
	uint32_t part_node; /* PART, LOST, SILENT: which; or MESSAGE_NODE_NONE */
	struct object_id part_id;
	uint64_t part_generation;
	int32_t status; /* LOST: why, -errno */
};

struct message_pull {
	struct object_id id;
	uint64_t generation;
	uint64_t first; /* byte */
	uint32_t bytes; /* PULL_REPLY: of the value, 0 with an error */
	int32_t status; /* PULL_REPLY: 0 or -errno */
	const uint8_t *value;
};

struct message_push {
	struct object_id into;
	struct message_pull bytes; /* of which object; with the value */
};

struct message_reply {
	int32_t status;	     /* 0 or -errno */
	uint32_t ready;	     /* STREAM: chunks that the holder has */
	uint32_t lanes;	     /* STREAM, -EXDEV: it is cut into so many */
	uint32_t pinned;     /* HAVE: node + 1 whose copy stays; 0: none that is known */
	uint64_t generation; /* REDUCE: of a result that is there and has all sources in it; or 0 */
	char text[MESSAGE_TEXT_MAX + 1];
};

struct message {
	uint32_t kind; /* enum message_kind */
	uint64_t request;
	union {
		struct message_hello hello;
		struct message_have have;
		struct message_get get;
		struct message_got got;
		struct message_object object;
		struct message_tombstone tombstone;
		struct message_announced announced;
		struct message_hold hold;
		struct message_stream stream;
		struct message_list list;
		struct message_watch watch;
		struct message_objects objects;
		struct session_node node;
		struct message_members members;
		struct message_reply reply;
		struct message_reduce reduce;
		struct message_used used;
		struct message_combine combine;
		struct message_combined combined;
		struct message_pull pull;
		struct message_push push;
	};
};

/* One more; the i-th rail, from 1 to count. */
void message_add_rail(struct message_rails *r, const struct net_addr *addr);
struct net_addr message_rail(const struct message_rails *r, uint32_t i);

/* The id that a request to a shard owner is about, or NULL. */
const struct object_id *message_id(const struct message *m);
/* What kind of message answers a request of that kind. */
uint32_t message_answer_kind(uint32_t request_kind);
/* Copies a message, and to data (OBJECT_INLINE_MAX bytes) what it points to. */
void message_copy(struct message *out, const struct message *m, uint8_t *data);

#endif
