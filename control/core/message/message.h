/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between control processes, as plain structs. control/rpc packs them into bytes; the
 * simulator passes them as they are. It must not know who sends a message, and why.
 *
 * A request carries a number of its sender, and its answer repeats it. Requests are idempotent: the
 * sender repeats one until it is answered. Pointers in a message are valid during the call that
 * passes it.
 */
#ifndef SARISSA_CONTROL_CORE_MESSAGE_MESSAGE_H
#define SARISSA_CONTROL_CORE_MESSAGE_MESSAGE_H

#include "internal/group.h"
#include "internal/ids.h"
#include "internal/object_meta.h"
#include "internal/session.h"
#include "core/base/bitmap.h"
#include "core/base/lanes.h"
#include "plan.h"

enum {
	MESSAGE_VERSION = 19,
	MESSAGE_TEXT_MAX = 255,	  /* bytes, without the terminating zero */
	MESSAGE_OBJECTS_MAX = 32, /* entries in one OBJECTS message */
	MESSAGE_UPSTREAMS_MAX = SESSION_UPSTREAMS,
	MESSAGE_SKIPS_MAX = CHUNK_RUNS_MAX,	    /* runs of chunks that a STREAM leaves out */
	MESSAGE_SUBSTREAMS_MAX = 2 * LANES_MAX - 1, /* of a STREAM: two nodes cut differently */
	MESSAGE_MEMBERS_MAX = 64,		    /* entries in one MEMBERS message */
	MESSAGE_SOURCES_MAX = 1024,		    /* of a reduce */
	MESSAGE_OTHERS_MAX = 31, /* of a LOCATE: what one answer adds up is bounded */
	MESSAGE_PARTS_MAX = 255, /* of a COMBINE: a count of parts is a byte in the dataplane */
};

enum message_kind {
	MESSAGE_NONE,
	/* sender -> receiver: meaning -> answer. "owner" is the shard owner of the id. */
	MESSAGE_HELLO,	/* node -> node: who I am; the first message of a connection */
	MESSAGE_HAVE,	/* node -> owner: I hold this object, or create it -> REPLY */
	MESSAGE_GET,	/* node -> owner: which holder can send this object? -> GOT */
	MESSAGE_GOT,	/* answer to GET: a holder, the value, or "wait" */
	MESSAGE_DROP,	/* node -> owner: I do not hold, or need, this object any more -> REPLY */
	MESSAGE_DELETE, /* node -> owner: remove this object everywhere -> REPLY */
	MESSAGE_REMOVE, /* owner -> holder: give up your copy -> REPLY */
	MESSAGE_STREAM, /* receiver -> holder: send me these chunks -> REPLY */
	MESSAGE_STAT,	/* node -> owner: describe this object -> OBJECTS; with a generation, to a
			 * holder: how far is your copy? */
	MESSAGE_LIST,	/* node -> owner: describe your objects -> OBJECTS */
	MESSAGE_OBJECTS,
	MESSAGE_STATUS, /* node -> node: describe yourself -> NODE */
	MESSAGE_NODE,
	MESSAGE_REPLY,	  /* a status */
	MESSAGE_REDIRECT, /* answer to any request: I do not own this id; ask its owner */
	MESSAGE_MEMBERS,  /* node -> node: gossip about members */
	MESSAGE_REDUCE,	  /* requester -> owner of the target: begin this reduce -> REPLY */
	MESSAGE_REDUCED,  /* node -> owner of the target: how does this reduce end? -> USED */
	MESSAGE_USED,
	MESSAGE_COMBINE,   /* coordinator -> participant: build this object -> REPLY */
	MESSAGE_COMBINED,  /* participant -> coordinator: progress, or loss -> REPLY (-ESTALE: it is
			    * not needed) */
	MESSAGE_RELEASE,   /* coordinator -> participant: give up objects of this reduce -> REPLY */
	MESSAGE_TOMBSTONE, /* owner -> next owner: this object was deleted -> REPLY */
	MESSAGE_ANNOUNCED, /* node -> owner: I have announced all of my objects -> REPLY */
	MESSAGE_PIECES,	   /* receiver -> holder: which of these chunks do you have? -> HAS */
	MESSAGE_HAS,
	MESSAGE_COMMIT, /* coordinator -> requester: may this be the result? -> REPLY */
	MESSAGE_FINISH, /* requester, coordinator -> participant: your object is the result; release
			 * its last chunk -> REPLY */
	MESSAGE_RECALL, /* requester -> owner of the target: the reduce has ended so -> REPLY */
	MESSAGE_PULL,	/* participant -> node: send this range of an object -> PULL_REPLY */
	MESSAGE_PULL_REPLY,
	MESSAGE_PUSH,	  /* participant -> participant: a part for your COMBINE; no answer */
	MESSAGE_KEEP,	  /* owner -> node: hold the second copy of this object -> REPLY */
	MESSAGE_HOLD,	  /* node -> owner: a lease of mine holds this object, or its time to live
			   * is this -> REPLY */
	MESSAGE_PREFETCH, /* node -> node: fetch this object -> REPLY when it is complete */
	MESSAGE_WATCH,	  /* node -> owner: report changes of these objects -> OBJECTS */
	MESSAGE_GROUP,	  /* node -> owner of the group: what a member of it asks -> GROUPED */
	MESSAGE_GROUPED,
	MESSAGE_KINDS,
};

enum message_copy_state {
	MESSAGE_COPY_CREATING = 1, /* at the origin, being written */
	MESSAGE_COPY_PARTIAL,	   /* arriving from an upstream */
	MESSAGE_COPY_COMPLETE,
	MESSAGE_COPY_STATES,
};

enum message_get_why {
	MESSAGE_GET_FIRST,     /* the first GET of a fetch; `failed` names no node */
	MESSAGE_GET_UNREACHED, /* holder `failed` does not answer, or has stopped sending */
	MESSAGE_GET_ABSENT,    /* holder `failed` says that it has no such copy */
	MESSAGE_GET_MORE,      /* one more holder, if an idle one is complete */
	MESSAGE_GET_HEDGE,  /* one more holder: the present ones are slow, or `failed` is silent */
	MESSAGE_GET_PIECE,  /* the next holder of a part, after node `failed`; answered at once */
	MESSAGE_GET_LOCATE, /* a coordinator: a holder, or a small value; books nothing */
	MESSAGE_GET_FORGET, /* ends a LOCATE: `generation` is its request number */
	MESSAGE_GET_REPARENT, /* another holder: the present one may feed too many */
	MESSAGE_GET_WHYS,
};

enum message_got_what {
	MESSAGE_GOT_UNKNOWN, /* there is no such object yet; another answer follows */
	MESSAGE_GOT_WAIT,    /* it exists; another answer follows when a holder can send */
	MESSAGE_GOT_HOLDER,  /* fetch from `holder`; a sending slot is booked */
	MESSAGE_GOT_VALUE,   /* the value */
	MESSAGE_GOT_FAILED,  /* `status` says why (MORE, HEDGE: no other holder); the last answer */
	MESSAGE_GOT_INCOMPLETE, /* no complete copy is left: take an inventory (GET_PIECE) */
	MESSAGE_GOT_PIECE,	/* `holder` has a part; NONE: there are no more */
	MESSAGE_GOT_WHATS,
};

enum message_announce {
	MESSAGE_ANNOUNCE_NONE,
	MESSAGE_ANNOUNCE_ASK,	/* I do not know your objects: announce all */
	MESSAGE_ANNOUNCE_BEGUN, /* I announce all */
	MESSAGE_ANNOUNCES,
};

/* Of two reports of one incarnation the later state in this list wins. */
enum member_state {
	MEMBER_NONE, /* never heard of */
	MEMBER_ALIVE,
	MEMBER_SUSPECT, /* a member cannot reach it; it may refute that */
	MEMBER_RESTING, /* its control restarts: it counts as live for the grace of a restart */
	MEMBER_DEAD,
	MEMBER_LEFT, /* it has said goodbye */
	MEMBER_STATES,
};

enum message_members_step {
	MESSAGE_MEMBERS_NEWS,	/* these members have changed */
	MESSAGE_MEMBERS_PROBE,	/* do you live, and is your digest the same? */
	MESSAGE_MEMBERS_ANSWER, /* I live; TABLE follows if the digests differ */
	MESSAGE_MEMBERS_TABLE,	/* all members that I know, or some of them */
	MESSAGE_MEMBERS_ASK,	/* I miss this member: do you hear from it? */
	MESSAGE_MEMBERS_HEARD,	/* answer to ASK: I have just heard from it */
	MESSAGE_MEMBERS_STEPS,
};

#define MESSAGE_NODE_NONE UINT32_MAX

/* The highest valid generation. Generations come from clocks (ns), so a higher one is an error; a
 * tombstone with it would block the id for ever. */
#define MESSAGE_GENERATION_MAX (UINT64_MAX / 2)

enum { MESSAGE_RAIL_BYTES = 18 }; /* an IP address and a port */

/* Where a node is reached by its rails after the first, worker 0. */
struct message_rails {
	uint32_t count;
	uint8_t addr[RAILS_MAX - 1][MESSAGE_RAIL_BYTES]; /* as they travel */
};

struct message_hello {
	uint32_t node; /* or MESSAGE_NODE_NONE: assign me a number */
	uint32_t version;
	uint32_t workers;
	uint32_t announce;	    /* enum message_announce */
	uint64_t store_incarnation; /* changes when the store's contents are lost */
	uint64_t incarnation;	    /* of the member */
	uint64_t digest;	    /* of the members that the sender knows */
	uint32_t assigned;	    /* number for the receiver, or MESSAGE_NODE_NONE */
	struct message_rails rails;
};

struct message_lease {	 /* a lease of the sender */
	uint64_t number; /* 0: none */
	uint64_t ttl_ns; /* how long it outlives its node */
	char name[SESSION_LEASE_NAME_BYTES];
};

struct message_have {
	struct object_id id;
	uint64_t generation;
	uint64_t size; /* bytes */
	uint32_t chunk_bytes;
	uint32_t state;	   /* enum message_copy_state */
	uint32_t upstream; /* PARTIAL: node that feeds it, or MESSAGE_NODE_NONE */
	uint32_t also_count;
	uint32_t also[MESSAGE_UPSTREAMS_MAX - 1]; /* other nodes that feed it */
	uint32_t create;			  /* 1: fails if the id is in use */
	char name[OBJECT_NAME_MAX + 1];
	struct object_meta meta;
	const uint8_t *value;
	uint32_t value_bytes; /* size of the object, or 0 */
	uint32_t has_value;
	uint64_t rate;	    /* COMPLETE: receive rate, bytes per second; 0: unknown */
	uint32_t pinned;    /* 1: the pinned replica (store/replica.h) */
	uint32_t appointed; /* 1: the directory has appointed it; not pinned: it is, and asks
			     * whether it may give its pin back */
	uint32_t pin_lost;  /* 1: the pinned replica is lost: name another node, or this */
	uint32_t made;	    /* 1: a reduce is making it: for its coordinator only */
	uint64_t epoch;	    /* membership_epoch; set when the message is sent */
	struct message_lease lease; /* create: the lease that holds the object */
};

/* All objects are announced. Entries of the sender that were announced before `epoch` are stale. */
struct message_announced {
	uint64_t epoch;
	uint64_t view; /* the sender's view of the members (cluster/settle.c); 0: none */
};

struct message_get {
	struct object_id id;
	uint64_t generation; /* of the chunks that have arrived; 0: none */
	uint32_t failed;     /* node, or MESSAGE_NODE_NONE */
	uint32_t why;	     /* enum message_get_why */
	uint32_t value_max;  /* LOCATE: largest value to send, in bytes */
	uint64_t epoch;	     /* membership_epoch; set when the message is sent */
	uint32_t deferrable; /* 1: the answer "wait" may be deferred */
	uint32_t op, dtype;  /* LOCATE of several sources, whose sum may be the answer */
	uint32_t others_count;
	const struct object_id *others; /* sources beside id */
};

struct message_got {
	struct object_id id;
	uint64_t generation;
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t what; /* enum message_got_what */
	uint32_t holder;
	int32_t status;	     /* FAILED: -errno */
	uint32_t spare;	     /* HOLDER: other complete copies that are idle */
	uint32_t also_count; /* HOLDER: other complete holders */
	uint32_t also[MESSAGE_UPSTREAMS_MAX - 1];
	uint32_t departed; /* PIECE: copies that have gone so far */
	char name[OBJECT_NAME_MAX + 1];
	struct object_meta meta;
	const uint8_t *value;
	uint32_t value_bytes;
	uint32_t waited;  /* VALUE: 1: the GET had to wait for it */
	uint32_t lost;	  /* WAIT: dead node + 1 with the last complete copy; 0: it is not lost */
	uint64_t down_ms; /* how long that node has been dead */
	uint32_t others;  /* VALUE: others_count of the LOCATE, if it is their sum; else 0 */
	char text[MESSAGE_TEXT_MAX + 1];
};

enum message_lapsed {
	MESSAGE_LAPSED_NOT,
	MESSAGE_LAPSED_LEASE, /* the lease drops it: delete it if no other lease holds it */
	MESSAGE_LAPSED_TIME,  /* delete it if its time to live is over */
	MESSAGE_LAPSED_WHATS,
};

struct message_object { /* DROP, DELETE, REMOVE, STAT, PREFETCH */
	struct object_id id;
	uint64_t generation; /* DELETE: 0 unless lapsed; STAT: 0 to the owner */
	uint32_t lapsed;     /* DELETE: enum message_lapsed */
	uint64_t lease;	     /* MESSAGE_LAPSED_LEASE: of the sender; 0: its node is lost */
	uint32_t upstream; /* DROP: node + 1 that does not feed the sender any more; 0: the copy */
	uint64_t cursor;   /* STAT: holders that earlier pages have described */
	uint32_t replaced; /* REMOVE: 1: another generation takes its place; PREFETCH: 1: fail if
			    * it was not put yet */
};

struct message_hold {
	struct object_id id;
	uint64_t generation;	    /* 0: the present one, which the REPLY names */
	struct message_lease lease; /* number 0: it sets the object's time to live */
	uint64_t left_ns;	    /* time to live; UINT64_MAX: no end */
	uint32_t known;		    /* 1: an owner has acknowledged it before */
	uint32_t joins; /* 1: only if another lease holds the object; else REPLY generation 0 */
	uint64_t epoch; /* membership_epoch; set when the message is sent */
};

struct message_tombstone {
	struct object_id id;
	uint64_t generation; /* this one and all earlier ones are deleted */
	uint64_t request;    /* of the DELETE, which may be repeated at another owner */
	uint32_t node;	     /* sender of the DELETE, or MESSAGE_NODE_NONE */
	uint32_t age; /* 0: a new delete; else handed over: 1 + deletes that the sender has heard
		       * of since */
};

struct message_stream { /* STREAM; PIECES, HAS: id, generation, chunk_bytes, range, skip */
	struct object_id id;
	uint64_t generation;
	uint32_t chunk_bytes;
	uint32_t first;	     /* chunk */
	uint32_t count;	     /* chunks from first on */
	uint32_t check;	     /* 1: only asks whether the substreams still exist */
	uint32_t lanes;	     /* number of lanes that the receiver assumes at the holder */
	uint32_t substreams; /* substreams of the range, each within a lane of both nodes */
	struct message_substream {
		uint32_t stream; /* the receiver's IN edge */
		uint32_t worker; /* of the receiver */
		uint32_t first, count;
	} substream[MESSAGE_SUBSTREAMS_MAX];
	uint32_t replaced; /* earlier streams that end when these begin */
	uint32_t replaces[MESSAGE_SUBSTREAMS_MAX];
	uint32_t skips;
	struct chunk_run skip[MESSAGE_SKIPS_MAX]; /* STREAM: chunks that are here already; HAS:
						   * chunks that exist; in rising order */
};

struct message_list {
	uint64_t cursor;		  /* 0: from the start; else of the last OBJECTS */
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
	MESSAGE_WATCH_MISSED,	  /* events are lost; these are the next ones */
	MESSAGE_WATCH_FULL,	  /* the owner has no room for one more watch */
	MESSAGE_WATCH_STATES,
};

struct message_watch {
	uint32_t step;	 /* enum message_watch_step */
	uint64_t number; /* of the watch, at its node */
	uint64_t next;	 /* NEXT: events before this number have come; else 0 */
	uint64_t cursor; /* NEXT: next page of the present objects; 0: all have come */
	char prefix[OBJECT_NAME_MAX + 1];
};

struct message_group {
	struct object_id id; /* of the group */
	struct group_request ask;
};

struct message_grouped {
	int32_t status;			   /* 0 or -errno */
	const struct group_answer *answer; /* NULL: only a status */
	char text[MESSAGE_TEXT_MAX + 1];
};

struct message_objects {
	uint64_t cursor; /* of the next page; 0: this was the last */
	uint32_t count;
	const struct session_object *objects;
	uint32_t deleted;   /* STAT, count 0: 1: it was deleted; else 0 */
	uint32_t watch;	    /* WATCH: enum message_watch_state; else 0 */
	uint64_t next;	    /* WATCH: number of the first event after these; else 0 */
	uint32_t unsettled; /* 1: nodes may hold what they have not announced yet; else 0 */
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
       MESSAGE_REDUCE_ALLREDUCE = 1, /* all contributors get the result */
       MESSAGE_REDUCE_RESTART = 2,   /* another coordinator had it; no result is agreed to */
       MESSAGE_REDUCE_DEADLINE = 4,  /* deadline_ns and min are set */
};

/* REDUCE. REDUCED: target; timeout_ns, 0 (answer at once) or UINT64_MAX; asked, 0 if the sender is
 * not the requester. */
struct message_reduce {
	struct object_id target;
	uint32_t op, dtype; /* enum reduce_op, enum reduce_dtype */
	uint32_t num;	    /* sources that suffice: the first to arrive */
	uint32_t flags;
	uint64_t timeout_ns;  /* UINT64_MAX: none */
	uint64_t deadline_ns; /* DEADLINE: from now until the present sources suffice */
	uint32_t min;	      /* DEADLINE: least number of them, 1 to count; num is count */
	uint64_t asked;	      /* number of the reduce at the requester */
	char name[OBJECT_NAME_MAX + 1];
	uint32_t count;
	const struct object_id *sources;
};

struct message_used { /* USED; COMMIT, RECALL */
	struct object_id target;
	int32_t status; /* 0, or -errno: it has failed */
	uint64_t generation;
	char text[MESSAGE_TEXT_MAX + 1];
	uint64_t asked; /* as in message_reduce */
	uint32_t node;	/* COMMIT: its builder, or MESSAGE_NODE_NONE */
	uint32_t count;
	const struct object_id *sources;
	uint32_t present; /* USED, -EAGAIN: sources that are there, first in the list */
};

/* One part: count chunks of an object, from `first` on, go to chunks `to`, to + 1, ... */
struct message_part {
	struct object_id id;
	uint64_t generation;
	uint32_t node;
	uint32_t first, count, to;
	uint64_t size;	 /* bytes of that object; 0: these chunks are all of it */
	uint32_t stripe; /* VALUES, of a sum: segment whose root the node is */
};

enum {				     /* flags */
       MESSAGE_COMBINE_HIDDEN = 1,   /* not the target: it is not announced. With the target's id:
				      * of no reduce, for a client of the same node */
       MESSAGE_COMBINE_WITHHOLD = 2, /* no reader gets its last chunk before FINISH, or before a
				      * COMBINE without this flag */
       MESSAGE_COMBINE_VALUES = 4,   /* parts come in messages (PUSH, PULL), not in streams */
};

struct message_combine {
	struct object_id id;
	uint64_t generation;
	struct object_id target; /* of the reduce */
	uint64_t reduce;	 /* its number at the coordinator; rises for one target */
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t op, dtype; /* op 0: concatenates the parts */
	uint32_t scale;	    /* divisor of the sum; 0, 1: none */
	uint32_t need;	    /* parts in all; some may be named by a later COMBINE */
	uint32_t flags;
	char name[OBJECT_NAME_MAX + 1];
	struct object_meta meta; /* of the target */
	uint32_t count;
	const struct message_part *parts;
};

enum message_combined_what {
	MESSAGE_COMBINED_PART = 1,  /* all of the part is in */
	MESSAGE_COMBINED_DONE,	    /* the object is complete */
	MESSAGE_COMBINED_LOST,	    /* the part is lost; part_node NONE: the object is */
	MESSAGE_COMBINED_SILENT,    /* the part's node does not answer */
	MESSAGE_COMBINED_RESTARTED, /* the dataplane has restarted: is the object still needed? */
	MESSAGE_COMBINED_WHATS,
};

/* COMBINED. RELEASE, FINISH: target, reduce, and the generation of the result, or 0. RELEASE: what
 * = 1: it is not certain that this is the result; status -ECANCELED: the reduce was cancelled. */
struct message_combined {
	struct object_id id;
	uint64_t generation;
	struct object_id target;
	uint64_t reduce;
	uint32_t what;	    /* enum message_combined_what */
	uint32_t part_node; /* PART, LOST, SILENT: node of the part; or MESSAGE_NODE_NONE */
	struct object_id part_id;
	uint64_t part_generation;
	int32_t status; /* LOST: why, -errno */
};

struct message_pull {
	struct object_id id;
	uint64_t generation;
	uint64_t first; /* byte */
	uint32_t bytes; /* PULL_REPLY: of the value; 0 with an error */
	int32_t status; /* PULL_REPLY: 0 or -errno */
	const uint8_t *value;
};

struct message_push {
	struct object_id into;
	struct message_pull bytes; /* the source, and its bytes */
};

struct message_reply {
	int32_t status;	     /* 0 or -errno */
	uint32_t ready;	     /* STREAM: chunks that the holder has */
	uint32_t lanes;	     /* STREAM, -EXDEV: number of lanes at the holder */
	uint32_t pinned;     /* HAVE: node + 1 of the pinned replica; 0: none is known */
	uint64_t generation; /* REDUCE: of a present result that holds all sources; or 0 */
	char text[MESSAGE_TEXT_MAX + 1];
};

struct message_status {
	bool plan; /* asks for the node's last plan, too */
};

struct message {
	uint32_t kind; /* enum message_kind */
	uint64_t request;
	uint64_t losses; /* of the sender (store/replica.h); peers_send fills it in */
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
		struct message_group group;
		struct message_grouped grouped;
		struct message_status status;
		struct {
			struct session_node node;
			const struct control_plan *plan; /* its last one; NULL: not asked for */
		};
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
/* The kind of message that answers a request of that kind. */
uint32_t message_answer_kind(uint32_t request_kind);
/* Copies a message, and what it points to into data (OBJECT_INLINE_MAX bytes). */
void message_copy(struct message *out, const struct message *m, uint8_t *data);

#endif
