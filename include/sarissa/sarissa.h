/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsarissa: put, get, combine and delete immutable objects that live in the memory of a
 * cluster's nodes.
 *
 * A process opens its node (the control process behind a unix socket), and then reads and writes
 * objects in memory that it shares with that node: no bytes pass through a socket.
 *
 *     sar *s;
 *     sar_buffer b;
 *     sar_open(NULL, &s);
 *     sar_put(s, sar_id_of("weights", 7), "weights", data, bytes);
 *     sar_get(s, sar_id_of("weights", 7), SAR_FOREVER, &b);     (on this node or another one)
 *     use(b.data, b.size);
 *     sar_release(s, &b);
 *     sar_close(s);
 *
 * Threads: a handle may be used by many threads at once, with many waits under way; a buffer by
 * one at a time. Signals do not end a wait. After fork() only the parent may use a handle; in the
 * child every call but sar_close answers -EINVAL, and memory of buffers is not protected there
 * once the parent gives them up. Descriptors are closed at exec(); a child that goes on without it
 * keeps what its parent has in use or is creating, when that ends, until it calls sar_close or
 * ends.
 *
 * Errors: functions return 0 (or what they document) or a negative errno value; outputs are set
 * only on success. sar_strerror() gives the text for a person, sar_error_detail() the node's own
 * words about the last failure of the calling thread; they name the object that it is about, by its
 * name or as "id:HEX". What each code means everywhere:
 *   -EINVAL    an argument does not hold                -ENOENT     no such object (and no wait)
 *   -ETIMEDOUT the time is over; nothing is lost        -EEXIST     the id is in use
 *   -ENOSPC    the store is full                        -EFBIG      larger than the store
 *   -ECONNREFUSED, -ENOTCONN  the node's control process is not there
 *   -ESTALE    the object was deleted or evicted        -EMFILE     too many buffers in one handle
 *   -ERESTART  another generation takes its place: release it and get it again
 *   -ENAMETOOLONG  name of more than SAR_NAME_MAX bytes -ENOMEM     out of memory, address space
 *   -ENODATA   it, or a part of it, is lost with nodes that died: put it again
 *   -ESHUTDOWN sar_end_waits was called
 *   -EAGAIN    the node has too many requests at hand: try again later
 *   -EHOSTUNREACH  a part of the directory does not answer: sar_error_nodes tells which
 *   -EPROTO    the node's answer makes no sense: library and node differ in version
 *
 * Timeouts are in nanoseconds: 0 does not wait, SAR_FOREVER waits without limit. A wait on a node
 * that hangs ends at most one second after its timeout, or after 11 seconds when that is 0. Calls
 * without a timeout end after 30 seconds at the latest, sar_open after 10.
 *
 * When control is killed and started again, the next call connects to it by itself, and calls that
 * wait go on there with what is left of their time; -ENOTCONN means that none came in all of it.
 * Objects that are complete here are found meanwhile as well. Buffers stay valid and go on counting
 * as in use, objects under creation can be published and sealed as before. When the node's store is
 * lost too (its dataplane died at the same time) buffers stay readable; waiting for more of them
 * ends with -ERESTART, going on with a creation with -ESTALE.
 */
#ifndef SARISSA_H
#define SARISSA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define SAR_ID_BYTES	  16
#define SAR_NAME_MAX	  255 /* bytes, without the terminating zero */
#define SAR_FOREVER	  INT64_MAX
#define SAR_UPSTREAMS_MAX 4
#define SAR_SOURCES_MAX	  1024 /* of a reduce */

typedef struct sar sar; /* a connection to the local node */

typedef struct sar_id {
	uint8_t bytes[SAR_ID_BYTES];
} sar_id;

/*
 * Bytes of an object, mapped. Owned by the caller from the call that set it until sar_release (or
 * sar_seal and sar_abort for one under creation), which sets it to zero. At most 1,024 of one
 * handle at a time. reserved is the library's.
 */
typedef struct sar_buffer {
	void *data;	/* never NULL; writable only between sar_create and sar_seal */
	uint64_t size;	/* bytes of the whole object */
	uint64_t ready; /* bytes readable from the start; refreshed by sar_wait */
	uint64_t reserved[5];
} sar_buffer;

/* What the directory knows of an object. */
typedef struct sar_info {
	sar_id id;
	uint64_t size;	      /* bytes */
	uint64_t generation;  /* of this id: deleted and put again, it gets another */
	uint64_t local_ready; /* bytes readable on this node; UINT64_MAX: no copy here */
	uint32_t copies;      /* complete copies on nodes that live */
	uint32_t partial;     /* copies still arriving */
	uint32_t is_inline;   /* 1: small, the directory holds the value itself */
	uint32_t making;    /* 1: a reduce makes it; generation and size 0: nothing is there yet */
	uint32_t lost;	    /* complete copies on dead nodes: they may come back with these */
	uint32_t lost_node; /* the one of these nodes that died last; 0 without any */
	uint64_t down_ns;   /* so long ago; 0 without any */
	uint64_t reserved[2];
	char name[SAR_NAME_MAX + 1]; /* zero-terminated; empty when it has none */
} sar_info;

/* One node's copy of an object. */
typedef struct sar_holder {
	uint32_t node;
	uint32_t complete; /* 1: all bytes */
	uint64_t ready;	   /* bytes it has from the start */
	int32_t upstream;  /* the node that feeds it now, the first of them, or -1 */
	uint32_t sending;  /* copies that it feeds now */
	uint64_t arrived;  /* bytes it has, wherever they lie */
	uint32_t upstreams;
	uint32_t upstream_node[SAR_UPSTREAMS_MAX]; /* all nodes that feed it now */
	uint32_t reserved32;
	uint64_t down_ns; /* so long the node has been dead; 0: it lives */
	uint64_t reserved[3];
} sar_holder;

enum { SAR_NODE_NEVER_SEEN, SAR_NODE_UP, SAR_NODE_DOWN }; /* sar_node.state */

/* One node, as the local one sees it. */
typedef struct sar_node {
	uint32_t node; /* number */
	uint32_t self; /* 1: the local node */
	uint32_t state;
	uint32_t workers;     /* cores that move packets */
	uint64_t incarnation; /* changes at every start of its dataplane */
	uint8_t ip[16];	      /* IPv4 addresses as ::ffff:a.b.c.d */
	uint16_t port;	      /* UDP; worker w listens at port + w */
	uint16_t pad;
	uint32_t mtu;	 /* IP bytes of a packet; of another node as the connection to it began */
	uint64_t rtt_ns; /* round trip to it, from then, too; 0: not measured */
	/* from here on: of the local node only, 0 for others */
	uint64_t store_bytes;
	uint64_t store_used; /* bytes */
	uint64_t objects;    /* in its store */
	uint64_t sessions;   /* clients connected */
	uint32_t hugepages;  /* 1: the store lies in huge pages */
	uint32_t busy_poll;  /* 1: its workers never sleep */
	int32_t control_pid;
	int32_t dataplane_pid;
	char link[64];	   /* what carries its packets: "af_xdp eth0 (native, copy)" */
	uint32_t arriving; /* objects that come from other nodes now (others tell it as well) */
	uint32_t sending;  /* copies elsewhere that it feeds now */
	uint64_t reserved[7];
} sar_node;

/* The id of any key: XXH3-128 (seed 0), canonical (big-endian) byte order. */
sar_id sar_id_of(const void *key, size_t key_bytes);

/*
 * Connects to the node at socket path, or, when NULL, at $SARISSA_SOCKET, or else at
 * /run/sarissa/control.sock. *out is closed with sar_close, which clears all its pins (memory of
 * its buffers must not be used any more) and aborts what was being created; no other thread may be
 * in a call with it.
 * -ECONNREFUSED no node there, -EACCES, -ETIMEDOUT, -EPROTONOSUPPORT another protocol version.
 */
int sar_open(const char *path, sar **out);
void sar_close(sar *s);
/*
 * To be called before sar_close while other threads wait. Ends sar_get, sar_get_begin, sar_wait,
 * sar_reduce_sources and the waits of sar_put in all threads with -ESHUTDOWN, now and later: at
 * once, or after 10 seconds at most when control has gone and is just being connected to. What is
 * complete on this node is still found; buffers, creations and all other calls stay as they are.
 */
void sar_end_waits(sar *s);

/*
 * Makes room for an object of size bytes, named (name may be NULL: known by id only), and maps it
 * writable. Visible to readers as it is published. The bytes are not zeroed: write all of them.
 * -EEXIST, -ENOSPC, -EFBIG, -EMFILE, -ENAMETOOLONG.
 */
int sar_create(sar *s, sar_id id, const char *name, uint64_t size, sar_buffer *out);
/* Says that bytes before ready are final: readers anywhere may have them now. Only grows
 * (-EINVAL otherwise). */
int sar_publish(sar *s, sar_buffer *b, uint64_t ready);
/* Makes the whole object final and gives up the mapping; the object stays until it is deleted.
 * -EINVAL when b is not under creation. After another error b is still the caller's: sar_abort. */
int sar_seal(sar *s, sar_buffer *b);
/* Gives up an object under creation: its space returns, its readers fail with -ESTALE. The buffer
 * is gone whatever is returned. */
int sar_abort(sar *s, sar_buffer *b);
/*
 * sar_create, copy, sar_seal; readers may have the first MiBs while the rest is copied. An id that
 * is in use is no error when its object has the same bytes: then nothing changes and 0 is returned,
 * also when somebody else is just putting them (waits as long as bytes of that put come at least
 * every 30 s; -ETIMEDOUT otherwise). With another size or other bytes -EEXIST. Of several puts of
 * one id at the same moment one makes the object, the others compare with it. Comparing brings a
 * copy to this node: -ENOSPC when it has no room.
 */
int sar_put(sar *s, sar_id id, const char *name, const void *data, uint64_t size);
/* Sets bytes bytes of the object, from byte at on. Asked in rising order, perhaps once more from
 * the start; last 1: not for these again. 0, or anything else to give the put up. */
typedef int sar_fill(void *arg, void *to, uint64_t at, uint64_t bytes, int last);
/* sar_put with bytes that fill() brings, at most 1 MiB at a time; readers may have each piece while
 * the next one is made. Returns what fill() returned when that is not 0. */
int sar_put_from(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg);

/*
 * The whole object, waiting for it to exist and to arrive. Read-only until sar_release. For an
 * object that is complete on this node no system call is made.
 * -ENOENT (timeout 0), -ETIMEDOUT, -ESTALE, -ENOSPC no room for the copy, -EMFILE. -ENODATA: a part
 * of it has come, and no node that lives has the rest.
 */
int sar_get(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out);
/* The same without waiting for the bytes: returns as soon as the size is known. Read up to
 * out->ready, then sar_wait for more. */
int sar_get_begin(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out);
/* Waits until at least upto bytes are readable (upto > size means the whole); sets b->ready, also
 * after -ETIMEDOUT. Asking for what is readable already makes no system call. Before those bytes
 * came: -ESTALE: the object was deleted, or its creator gave it up; -ENODATA: no node that lives
 * has them any more; -ERESTART: it was put again, or is the result of a reduce that had to be made
 * anew, or the node has lost its store: release it and get it again. */
int sar_wait(sar *s, sar_buffer *b, uint64_t upto, int64_t timeout_ns);
/* Ends the use of a buffer from sar_get or sar_get_begin; its memory may go away at once. */
void sar_release(sar *s, sar_buffer *b);

/* What a reduce computes of the elements at the same place of all sources. */
enum sar_reduce_op {
	SAR_SUM = 1,
	SAR_PROD,
	SAR_MIN,
	SAR_MAX,
	SAR_AVG, /* the sum, divided by the number of sources in it (integers: towards zero) */
};

/* What the sources are arrays of, in the machine's byte order (little-endian). */
enum sar_dtype {
	SAR_F16 = 1, /* IEEE 754 binary16 */
	SAR_BF16,    /* bfloat16: the upper half of a binary32 */
	SAR_F32,
	SAR_F64,
	SAR_I8,
	SAR_I16,
	SAR_I32,
	SAR_I64,
	SAR_U8,
	SAR_U16,
	SAR_U32,
	SAR_U64,
};

enum { SAR_REDUCE_SPREAD = 1 }; /* sar_reduction.flags */

/* How to reduce. Zero what is not used, reserved as well. */
typedef struct sar_reduction {
	uint32_t op;	/* enum sar_reduce_op */
	uint32_t dtype; /* enum sar_dtype */
	uint32_t num;	/* so many of the sources suffice, the first to arrive; 0: all */
	uint32_t
		flags; /* SAR_REDUCE_SPREAD: every node with a source will get the result as well */
	uint64_t reserved[6];
} sar_reduction;

/*
 * Makes the object target from count others (1 to SAR_SOURCES_MAX, all of one size), wherever they
 * are, as they come into being: they may be put before or after this call, on any nodes. Returns as
 * soon as nothing that is known speaks against it; get the target, here or elsewhere, to wait for
 * the result (it can be read as it grows), or ask sar_reduce_sources. It goes on when the caller
 * exits. timeout_ns (not 0) is for all of it: when it has passed the reduce ends without a result.
 *
 * With num, sources beyond the first num to arrive are a reserve. When a node is lost, what it had
 * is taken from another copy, from the reserve, or waited for; then everything that held it is made
 * anew: no byte of the result ever holds another set of sources than the rest. A reader of the
 * target that has begun by then begins again (sar_get by itself, sar_wait says -ERESTART).
 *
 * The order of the additions follows from the arrivals: sums of floating-point numbers may differ
 * in their last bits from run to run, not from node to node. f16 and bf16 are added in f32 and
 * rounded at each step (to nearest, ties to even), so n sources cost up to n - 1 roundings. A
 * minimum or maximum with a NaN is NaN. Integers wrap around.
 *
 * -EINVAL: unknown op, type or flags; count or num out of bounds; a source listed twice; the target
 * among the sources; sources of different sizes or of a size that is no multiple of the element.
 * -EEXIST: target exists, or another reduce makes it. -ENAMETOOLONG. -EAGAIN: too many at a time.
 * -ETIMEDOUT: nobody has answered; it may begin all the same: sar_reduce_sources tells.
 */
int sar_reduce(sar *s, sar_id target, const char *name, const sar_id *sources, unsigned count,
	       const sar_reduction *how, int64_t timeout_ns);
/*
 * Waits until the reduce into target has ended. Sets up to room ids of the sources that the result
 * holds, in the order in which they were named, and returns how many there are; any node may ask.
 * What became of it is known until the target is deleted, very many others have ended since, or the
 * node that directed it (which keeps the directory's part of the target) is lost.
 * -ETIMEDOUT: it goes on (timeout 0: asks only), or its own time was over (the words tell which).
 * -ENOENT: no such reduce. -EINVAL: sources that came later do not fit. -ECANCELED: the target was
 * deleted. -ENODATA: the result is there, but who knew what is in it is lost. -ESTALE: the nodes
 * that had just made the result are lost, and it with them: reduce again.
 */
int sar_reduce_sources(sar *s, sar_id target, int64_t timeout_ns, sar_id *out, unsigned room);
/*
 * How far the reduce into target is, without waiting; any node may ask. Sets up to room ids of its
 * sources and returns how many sources there are. First come the *present sources that exist, then
 * the sources that are missing, each in the order in which they were named. Of a reduce that has
 * ended: the sources that its result holds, all present.
 * -ETIMEDOUT: its coordinator does not answer now, or its own time was over. Else the errors of
 * sar_reduce_sources.
 */
int sar_reduce_progress(sar *s, sar_id target, sar_id *out, unsigned room, unsigned *present);

/* Removes every copy in the cluster. Buffers in use stay readable until released. -ENOENT;
 * -EHOSTUNREACH when nothing was removed because this node may be cut off from those that know the
 * object; 0 when control died before it had answered and there is none now. */
int sar_delete(sar *s, sar_id id);
/* What the directory knows. -ENOENT when it knows nothing; -EHOSTUNREACH when the node that would
 * know does not answer, or this node may be cut off from those that know. */
int sar_info_get(sar *s, sar_id id, sar_info *out);
/* Who holds the object, how far each has come, and who feeds whom: fills up to room entries,
 * returns how many there are. -ENOENT. */
int sar_holders(sar *s, sar_id id, sar_holder *out, unsigned room);
/*
 * Calls fn for each object of the cluster until it returns non-zero, which is then returned. fn
 * may use the handle. -EHOSTUNREACH when fn was called for all objects that are known, but a part
 * of the directory does not answer, so there may be more: sar_error_nodes tells whose part.
 */
int sar_list(sar *s, int (*fn)(const sar_info *info, void *arg), void *arg);
/* Calls fn for each node, the local one first, until it returns non-zero, which is then returned.
 */
int sar_nodes(sar *s, int (*fn)(const sar_node *node, void *arg), void *arg);

/* The text of an error code, negative or positive; never NULL, not to be freed. */
const char *sar_strerror(int error);
/* "what is wrong: what to do" of the calling thread's last failure; valid until its next one. */
const char *sar_error_detail(void);
/* The nodes that the calling thread's last failure with -EHOSTUNREACH is about: fills up to room
 * numbers, returns how many there are (256 at most). 0 after any other failure. */
int sar_error_nodes(uint32_t *out, unsigned room);
/* Of the library that is loaded: "0.1.0". */
const char *sar_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
