/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The language between a client and its node's control process: fixed structs over a
 * SOCK_SEQPACKET unix socket, RUNDIR/control.sock. One request, one reply with the same seq (LIST,
 * STATUS, REDUCED, WATCH: several, the last without SESSION_FLAG_MORE); replies may overtake each
 * other, so a client may have many waits under way. Both ends run on one machine: host byte order.
 *
 * Control answers a malformed request (wrong length, unknown op, unterminated name, unknown slot)
 * with -EINVAL and goes on; it never trusts a length, an index or a string from here.
 *
 * Pins: at ATTACH the client gets a page of SESSION_PINS words that only it and control map. A pin
 * word is 0 or pin_make(slot, generation); while it stands, control does not reuse the bytes of
 * that object. The client sets pins by itself for sealed objects it found in the table (see
 * object_table.h for the order) or has them set by GET and CREATE, and clears them by storing 0.
 *
 * When control was killed and started again, clients connect again. All objects of the table stay
 * in their places while any client has the table of an earlier ATTACH open or mapped. So a client
 * (1) attaches, (2) copies its pins to the new page, (3) only then unmaps the old table, (4) sends
 * RESUME for each object that it was creating, (5) repeats unanswered requests, with
 * SESSION_FLAG_RETRY.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_SESSION_H
#define SARISSA_INCLUDE_INTERNAL_SESSION_H

#include "group.h"
#include "ids.h"
#include "object_meta.h"
#include "object_ranges.h"

#define SESSION_MAGIC 0x53534553u

/* Ten years: the longest life of a lease without its session, and of an object with an end. */
#define SESSION_LEASE_NS_MAX (UINT64_C(10) * 366 * 86400 * 1000000000)

/* So long control waits for the directory's answer to a request that has no time of its own. */
#define SESSION_DIRECTORY_NS (10 * 1000000000ll)

enum {
	SESSION_VERSION = 13,
	SESSION_PINS = 1024,
	SESSION_PIN_BYTES = SESSION_PINS * 8,
	SESSION_PIN_NONE = UINT32_MAX,
	SESSION_FLAG_MORE = 1,	/* reply: another one with this seq follows */
	SESSION_FLAG_RETRY = 2, /* CREATE, SEAL, REDUCE, WATCH request: an earlier control was sent
				   it, and may have done it */
	SESSION_FLAG_BRIEF = 4, /* STAT request: the object without its holders */
	SESSION_FLAG_ALLREDUCE = 8, /* REDUCE request: all who contribute will get the result */
	SESSION_FLAG_STAGED = 16,   /* CREATE reply: the descriptor is of memory for this object
				      alone, which is copied into the store */
	SESSION_FLAG_BRING = 32,    /* ATTACH reply: the process has private staging buffers of an
				       earlier control, which RESUME must bring. Without this flag
				       no request brings a descriptor */
	SESSION_FLAG_PROGRESS = 64, /* REDUCED request: of one that goes on, the sources that are
				       there, then those that are missing */
	SESSION_OBJECT_INLINE = 1,  /* session_object: the directory keeps the value */
	SESSION_OBJECT_MISSING = 2, /* LIST, STAT: no object: the directory's part on the node of
				       holder[0] is missing in the answer */
	SESSION_OBJECT_EVENT = 16,  /* times an enum session_event, WATCH: the object has changed
				       so; no other flags */
	SESSION_OBJECT_REDUCED = 4, /* session_object: a reduce makes it; generation 0: nothing of
				       it is there yet */
	SESSION_HOLDERS = 16,	    /* in one session_object */
	SESSION_UPSTREAMS = 4,	    /* nodes that feed one copy at a time */
	SESSION_SOURCES_MAX = 1024, /* of a reduce */
	SESSION_SOURCES = 64,	    /* in one session_sources */
	SESSION_PUT_MAX = 16384,    /* bytes that come with a PUT */
	SESSION_NODES_MAX = 1024,   /* that a BROADCAST names */
	SESSION_WAITS_MAX = 16384,  /* requests of one client that wait at a time */
	SESSION_FLAG_JOINS = 128,   /* HOLD request: only if another lease holds it already */
	SESSION_FLAG_WHOLE = 256,   /* GET request: answered when the whole object is here.
				       GET_RANGES reply: the place is that of the object itself */
	SESSION_RANGES_MAX = 64,    /* of one GET_RANGES */
	SESSION_RANGES_BYTES = 4 << 20, /* of all of them together */
	SESSION_LEASE_NAME_BYTES = 64,	/* with the terminating zero */
};

enum session_op {
	SESSION_ATTACH = 1, /* -> fds {store read-only, table read-only, pins}; generation: the
			       table's control_epoch */
	SESSION_CREATE,	 /* id, name, meta, size, pin, generation (lease, or 0) -> slot, generation,
			    offset; fd {store read-write},     or SESSION_FLAG_STAGED and fd {memory
			    of     that size} */
	SESSION_PUBLISH, /* slot, generation, watermark: bytes before it are final -> when readers
			    have them */
	SESSION_SEAL,	 /* slot, generation: the whole object is final -> when readers have it */
	SESSION_ABORT,	 /* slot, generation: give the space back */
	SESSION_GET,	/* id, timeout, pin -> slot, generation, offset, size, as soon as the object
			   has a place here (being fetched, or complete), with SESSION_FLAG_WHOLE
			   when all of it is readable; -ERESTART then: another generation takes its
			   place, get it again */
	SESSION_WAIT,	/* slot, generation, watermark, timeout -> when so many bytes are readable;
			   -ERESTART: another generation takes its place, get it again */
	SESSION_DELETE, /* id: every copy everywhere; -> 0 when no reachable node gives it any more
			 */
	SESSION_STAT, /* id -> session_object, cluster-wide; several, each with other holders, when
			 they are many */
	SESSION_LIST, /* name (prefix of the names) -> one session_object each, cluster-wide */
	SESSION_STATUS, /* -> one session_node each, this node first */
	SESSION_REDUCE, /* id (of the result), name, reduction, flags, timeout (of all of it); count
			   ids follow in the same packet -> when all that is known of them holds */
	SESSION_REDUCED, /* id, timeout -> when the reduce has ended: session_sources of what is in
			    the result */
	SESSION_RESUME,	 /* pin: the object under creation that its word names is this client's; fd
			    {its memory} when that is apart -> slot, generation, offset, size,
			    watermark; -ESTALE: it is gone */
	SESSION_PUT, /* id, name, meta, size, generation (lease, or 0); so many bytes follow in the
			same packet -> slot, generation: it is complete; -ERESTART: CREATE it */
	SESSION_CANCEL,	   /* generation: seq of a request of this client that waits (GET, WAIT,
			      REDUCED, BROADCAST, WATCH): it ends without an answer, GET_RANGES with
			      one -> 0, -ENOENT: it does not wait */
	SESSION_BROADCAST, /* id, timeout; size / 4 node numbers follow in the same packet, none:
			      all nodes that are up -> when each of them has a complete copy */
	SESSION_LEASE, /* name (empty: of this session), timeout (its ttl), generation (0; or the
			  number of one of this session at an earlier control) -> generation: its
			  number; -ESTALE: that one has ended */
	SESSION_LEASE_END, /* generation (lease): it holds nothing any more */
	SESSION_HOLD,	   /* id, generation (lease) -> when the directory knows; generation (of the
			      object; 0: not held, with SESSION_FLAG_JOINS) */
	SESSION_RELEASE, /* id, generation (lease) -> when it is let go, and deleted if nobody else
			    holds it */
	SESSION_EXPIRE,	 /* id, timeout (0: none): it is deleted then -> when the directory knows */
	SESSION_WATCH, /* name (prefix of the names), flags -> one session_object each time that one
			  of those changes, without an end but CANCEL. Those that exist come first;
			  with SESSION_FLAG_RETRY they do not, but a SESSION_EVENT_MISSED */
	SESSION_GROUP, /* size: of a group_request, which follows in the same packet; timeout (of a
			  pull) -> a group_answer, if there is one */
	SESSION_LEAVE, /* this node leaves its cluster, and control ends -> 0; of the daemons' user
			*/
	SESSION_GET_RANGES, /* id, timeout, pin, generation (0; or that of earlier ranges); size: of
			       the object_ranges that follow in the same packet, by rising offset ->
			       slot, generation, offset, size of a pinned place that has their bytes
			       (object_ranges_add), or of the object itself (SESSION_FLAG_WHOLE);
			       chunk_bytes; watermark: size of the object, object: its generation.
			       -ERESTART: it has another generation */
	SESSION_OPS,
};

enum session_event {
	SESSION_EVENT_APPEARED = 1, /* somebody holds a part of it, or is creating it */
	SESSION_EVENT_COMPLETE,	    /* somebody has all of it */
	SESSION_EVENT_GONE,
	SESSION_EVENT_MISSED, /* no object: LIST shows what is */
};

struct session_request {
	uint32_t magic;
	uint16_t op;
	uint16_t version;
	uint32_t seq;
	uint32_t slot;
	struct object_id id;
	uint64_t generation;
	uint64_t size;
	uint64_t watermark;
	int64_t timeout_ns; /* < 0: no limit of its own; 0: do not wait */
	uint32_t pin;	    /* index of the pin word to use */
	uint32_t flags;
	char name[OBJECT_NAME_MAX + 1]; /* zero-terminated; may be empty */
	struct session_reduction {	/* REDUCE; else zero */
		uint32_t op, dtype;	/* enum reduce_op, enum reduce_dtype */
		uint32_t num;		/* so many sources suffice; 0: all */
		uint32_t count;		/* sources that follow, <= SESSION_SOURCES_MAX */
		uint32_t min;		/* so many of all suffice at the deadline; 0: it has none */
		uint32_t reserved;	/* zero */
		int64_t deadline_ns;	/* with min: since the request; less than the timeout */
	} reduction;
	struct object_meta meta; /* CREATE, PUT; else zero */
};

_Static_assert(SESSION_PUT_MAX <= SESSION_SOURCES_MAX * OBJECT_ID_BYTES,
	       "a PUT is no longer than the longest REDUCE");

/* Of a REDUCE with all its sources: no packet of a client is longer. */
#define SESSION_REQUEST_BYTES_MAX \
	(sizeof(struct session_request) + (size_t)SESSION_SOURCES_MAX * OBJECT_ID_BYTES)

struct session_reply {
	uint32_t magic;
	uint16_t op;
	uint16_t flags;
	uint32_t seq;
	int32_t status; /* 0 or -errno */
	uint32_t slot;
	uint32_t chunk_bytes;
	uint64_t generation;
	uint64_t offset;
	uint64_t size;
	uint64_t watermark;
	union {
		uint64_t store_bytes; /* ATTACH */
		uint64_t object;      /* GET_RANGES */
	};
	uint64_t table_bytes; /* ATTACH */
	char text[256];	      /* why, when status is not 0: what is wrong: what to do */
};

struct session_holder {
	uint32_t node;
	uint32_t complete;
	uint64_t watermark; /* bytes it has from the start */
	uint64_t arrived;   /* bytes it has, wherever they lie */
	uint32_t sending;   /* transfers it feeds now */
	uint32_t upstreams;
	uint32_t upstream[SESSION_UPSTREAMS]; /* the nodes that feed it */
	uint64_t down_ms; /* so long the node has been taken for dead; 0: it is a member */
};

struct session_object { /* follows a session_reply in the same packet */
	struct object_id id;
	uint64_t generation;
	uint64_t size;
	uint64_t local_watermark; /* readable bytes on this node; UINT64_MAX: none here */
	uint32_t copies;	  /* complete ones on members, cluster-wide */
	uint32_t partial;
	uint32_t holders;    /* entries used in holder[]; LIST: none */
	uint32_t flags;	     /* SESSION_OBJECT_ */
	uint32_t lost;	     /* complete copies on dead nodes; the next two are 0 without any */
	uint32_t lost_node;  /* the one of these that died last */
	uint64_t down_ms;    /* so long ago */
	uint32_t leases;     /* that hold it */
	uint32_t lease_node; /* home of the one that has held it longest; all 0 without any */
	uint64_t lease;	     /* its number */
	uint64_t lease_ms;   /* it ends then, because its home is lost; 0: it does not */
	uint64_t expires_ms; /* the object is deleted then; 0: not by itself */
	char lease_name[SESSION_LEASE_NAME_BYTES];
	struct session_holder holder[SESSION_HOLDERS];
	char name[OBJECT_NAME_MAX + 1];
	struct object_meta meta;
};

struct session_node { /* follows a session_reply in the same packet */
	uint32_t node;
	uint32_t self;	/* 1: this node */
	uint32_t state; /* 0 never seen, 1 up, 2 down */
	uint32_t workers;
	uint64_t incarnation;
	struct net_addr addr;
	uint64_t store_bytes, store_used; /* this node only */
	uint64_t objects;		  /* this node only */
	uint64_t sessions;		  /* this node only */
	uint32_t arriving, sending;	  /* objects that come, copies that it feeds */
	uint32_t mtu, rtt_us;
	uint32_t hugepages, busy_poll;
	int32_t control_pid, dataplane_pid;
	char port[64];
};

struct session_sources { /* follows a session_reply in the same packet */
	uint32_t count;
	uint32_t missing; /* 1: these are not there yet (SESSION_FLAG_PROGRESS) */
	struct object_id source[SESSION_SOURCES];
};

union session_item { /* what may follow a session_reply */
	struct session_object object;
	struct session_node node;
	struct session_sources sources;
	struct group_answer group;
};

static inline uint64_t pin_make(uint32_t slot, uint64_t generation)
{
	return (generation & 0xffffffffu) << 32 | (uint64_t)(slot + 1);
}

#endif
