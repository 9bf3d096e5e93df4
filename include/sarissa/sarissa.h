/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsarissa: put, get, reduce and delete immutable objects in the memory of a cluster's nodes.
 *
 * A process opens the node of its host (the control process behind a unix socket). It then reads
 * and writes objects in memory that it shares with that node. No bytes of objects pass through the
 * socket, except for puts of up to 16 KiB.
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
 * sarissa/queue.h, which this file includes, has the same calls without waiting for them.
 *
 * Units. Sizes and positions are bytes; times are nanoseconds. A timeout of 0 does not wait;
 * SAR_FOREVER waits without limit. If the node hangs, a wait ends at most 1 s after its timeout, or
 * 11 s after a timeout of 0. Calls without a timeout end after 30 s at the latest, sar_open after
 * 10 s.
 *
 * Threads. Any number of threads may use a handle at once. A buffer is for one thread at a time.
 * Signals do not end a wait.
 *
 * Fork. After fork() only the parent may use a handle. In the child every call but sar_close
 * returns SAR_E_INVALID, and the memory of buffers is no longer protected once the parent releases
 * them. exec() closes the descriptors. A child that runs on without exec() keeps the connection
 * open, so what the parent has in use stays in use until the child calls sar_close or ends.
 *
 * Errors. Functions return 0, or what they document, or a negative errno value. Outputs are set
 * only on success, unless a function says otherwise. sar_strerror() gives the general text of a
 * code. sar_error_detail() gives the words about the calling thread's last failure; they name the
 * object by its name, or as "id:HEX". Every call may return the codes of enum sar_error up
 * to SAR_E_MEMORY; "Errors" of a function adds the cases that need an explanation.
 *
 * Restarts. When control is killed and started again, the next call reconnects by itself, and waits
 * go on with the rest of their time. Meanwhile objects that are complete on this node are still
 * found. Buffers stay valid and in use; objects under creation can be published and sealed as
 * before. When the dataplane died at the same time, the node's store is lost. Buffers then stay
 * readable; a wait for more of their bytes returns SAR_E_RESTARTED, and a creation returns
 * SAR_E_DELETED.
 */
#ifndef SARISSA_H
#define SARISSA_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h> /* struct iovec */

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define SAR_VERSION_MAJOR  0
#define SAR_VERSION_MINOR  1
#define SAR_VERSION_PATCH  0
#define SAR_VERSION_NUMBER (SAR_VERSION_MAJOR << 16 | SAR_VERSION_MINOR << 8 | SAR_VERSION_PATCH)

#define SAR_ID_BYTES	   16
#define SAR_NAME_MAX	   255 /* bytes, without the terminating zero */
#define SAR_FOREVER	   INT64_MAX
#define SAR_UPSTREAMS_MAX  4
#define SAR_LEASE_NAME_MAX 63	/* bytes, without the terminating zero */
#define SAR_SOURCES_MAX	   1024 /* of a reduce, of a gather */
#define SAR_NODES_MAX	   1024 /* of a broadcast */
#define SAR_META_MAX	   128	/* bytes of an object's metadata */
#define SAR_DETAIL_MAX	   512	/* bytes of the words of a failure, with the terminating zero */

/* How functions fail: errno values below 0, with names that say what has happened. SAR_E_DELETED
 * and SAR_E_ENDED are one value: which of the two holds follows from the call. */
enum sar_error {
	SAR_E_INVALID = -EINVAL,       /* an argument is invalid, or the process was forked */
	SAR_E_NOT_FOUND = -ENOENT,     /* no such object, and the call does not wait */
	SAR_E_TIMED_OUT = -ETIMEDOUT,  /* the time is over, or the node does not answer */
	SAR_E_EXISTS = -EEXIST,	       /* the id is in use */
	SAR_E_FULL = -ENOSPC,	       /* the store of this node, or a table, is full */
	SAR_E_TOO_LARGE = -EFBIG,      /* the object is larger than the store */
	SAR_E_QUOTA = -EDQUOT,	       /* this user has as many bytes here as it may have */
	SAR_E_NAME = -ENAMETOOLONG,    /* the name has more than SAR_NAME_MAX bytes */
	SAR_E_TOO_MANY = -EMFILE,      /* 1,024 buffers of this handle are in use */
	SAR_E_NO_NODE = -ECONNREFUSED, /* no node runs here */
	SAR_E_NODE_GONE = -ENOTCONN,   /* control of this node died, and none came in time */
	SAR_E_DELETED = -ESTALE,       /* it was deleted or evicted, or its creator aborted it */
	SAR_E_ENDED = -ESTALE,	       /* a lease or a membership has ended */
	SAR_E_LOST = -ENODATA,	     /* all or a part of it is lost with dead nodes: put it again */
	SAR_E_RESTARTED = -ERESTART, /* another generation takes its place: get it again */
	SAR_E_BUSY = -EAGAIN,  /* a table of the node is full at the moment: try again later */
	SAR_E_CLOCK = -ERANGE, /* the clock of a node is more than an hour ahead */
	SAR_E_RANGE = -ERANGE, /* the object has no such bytes, or more than there is room for */
	SAR_E_PARTIAL = -EHOSTUNREACH, /* a node, and its part of the directory, does not answer */
	SAR_E_CLOSED = -ESHUTDOWN,     /* sar_end_waits was called */
	SAR_E_PROTOCOL = -EPROTO,      /* library and node differ in version */
	SAR_E_VERSION = -EPROTONOSUPPORT, /* library and node differ in version */
	SAR_E_MEMORY = -ENOMEM,		  /* out of memory or address space */
	SAR_E_STORAGE = -EIO,		  /* a disk of the node fails */
	SAR_E_ACCESS = -EACCES,		  /* this user may not open the node's socket */
	SAR_E_PERMISSION = -EPERM,	  /* this user may not ask for that */
	SAR_E_CANCELLED = -ECANCELED,	  /* by sar_cancel, or what was to be made was deleted */
	SAR_E_IN_USE = -EBUSY,		  /* an operation of a queue has this member */
	SAR_E_LATE = -ETIME,		  /* the round of this contribution has closed */
	SAR_E_UNREACHABLE = -ENETUNREACH, /* no switch answers at this address */
	SAR_E_UNSUPPORTED = -ENOTSUP,	  /* the switch, or this version, cannot do that */
	SAR_E_TOO_LONG = -E2BIG,	  /* it has more than this library can take */
	SAR_E_NO_DEVICE = -ENODEV,	  /* no CUDA driver, or no such GPU (sarissa/device.h) */
	SAR_E_DEVICE = -EREMOTEIO,	  /* the CUDA driver reports an error */
};

typedef struct sar sar; /* a handle: a connection to the local node */

typedef struct sar_id {
	uint8_t bytes[SAR_ID_BYTES];
} sar_id;

/*
 * The mapped bytes of an object. The caller owns a buffer from the call that set it until
 * sar_release, or until sar_seal or sar_abort for an object under creation. These three set the
 * struct to zero. A handle has at most 1,024 buffers at a time. The library uses reserved.
 */
typedef struct sar_buffer {
	void *data;	     /* never NULL; writable only between sar_create and sar_seal */
	uint64_t size;	     /* bytes of the whole object */
	uint64_t ready;	     /* bytes that are readable from the start; sar_wait refreshes it */
	const void *meta;    /* the object's metadata, as long as the buffer is in use; or NULL */
	uint64_t meta_bytes; /* at most SAR_META_MAX; 0: it has none */
	uint64_t reserved[3];
} sar_buffer;

/* An object as the directory knows it. */
typedef struct sar_info {
	sar_id id;
	uint64_t size;	      /* bytes */
	uint64_t generation;  /* of this id; larger each time that it is put after a delete */
	uint64_t local_ready; /* bytes readable on this node; UINT64_MAX: no copy here */
	uint32_t copies;      /* complete copies on live nodes */
	uint32_t partial;     /* copies that are still arriving */
	uint32_t is_inline;   /* 1: small, the directory holds the value itself */
	uint32_t making;      /* 1: a reduce makes it; with size and generation 0 no byte exists */
	uint32_t lost;	      /* complete copies on dead nodes, which may come back with them */
	uint32_t lost_node;   /* the node of the lost copies that died last; 0 if lost is 0 */
	uint64_t down_ns;     /* time since the death of lost_node; 0 if lost is 0 */
	uint32_t leases;      /* leases that hold it; 0: it lives until it is deleted */
	uint32_t lease_node;  /* home of the one that has held it longest; 0 without any */
	uint64_t expires_ns;  /* time left, of sar_expire; 0: without end */
	char name[SAR_NAME_MAX + 1]; /* zero-terminated; empty if the object has none */
	uint64_t meta_bytes;	     /* of meta; 0: it has none */
	uint8_t meta[SAR_META_MAX];  /* what its creator has said of it (sar_put_options) */
	uint64_t reserved[8];
} sar_info;

/* One node's copy of an object. */
typedef struct sar_holder {
	uint32_t node;	    /* number */
	uint32_t complete;  /* 1: the copy has all bytes */
	uint64_t ready;	    /* bytes of the copy from the start without a gap */
	int32_t upstream;   /* the first node that feeds it now, or -1 */
	uint32_t sending;   /* copies on other nodes that it feeds now */
	uint64_t arrived;   /* all bytes of the copy, with gaps between them or not */
	uint32_t upstreams; /* entries of upstream_node */
	uint32_t upstream_node[SAR_UPSTREAMS_MAX]; /* all nodes that feed it now */
	uint32_t reserved32;
	uint64_t down_ns; /* time since the death of the node; 0: it lives */
	uint64_t reserved[3];
} sar_holder;

enum { SAR_NODE_NEVER_SEEN, SAR_NODE_UP, SAR_NODE_DOWN }; /* sar_node.state */

/* One node, as the local one sees it. */
typedef struct sar_node {
	uint32_t node;	      /* number */
	uint32_t self;	      /* 1: the local node */
	uint32_t state;	      /* SAR_NODE_... */
	uint32_t workers;     /* threads that move packets */
	uint64_t incarnation; /* changes at every start of its dataplane */
	uint8_t ip[16];	      /* IPv4 addresses as ::ffff:a.b.c.d */
	uint16_t port;	      /* UDP; worker w listens at port + w */
	uint16_t pad;
	uint32_t mtu;	 /* IP bytes of a packet that its port takes */
	uint64_t rtt_ns; /* round trip to it when the connection began; 0: not measured */
	/* From here on: what the node says of itself; 0 if it does not answer. */
	uint64_t store_bytes; /* size of the store */
	uint64_t store_used;  /* bytes of it */
	uint64_t objects;     /* in its store */
	uint64_t sessions;    /* clients connected */
	uint32_t hugepages;   /* 1: the store lies in huge pages */
	uint32_t busy_poll;   /* 1: its workers never sleep */
	int32_t control_pid;
	int32_t dataplane_pid; /* 0: the dataplane does not run */
	char link[64];	       /* what carries its packets: "af_xdp eth0 (native, copy)" */
	uint32_t arriving;     /* objects that come from other nodes now */
	uint32_t sending;      /* copies on other nodes that it feeds now */
	uint64_t reserved[7];
} sar_node;

/*
 * The id of a key: its XXH3-128 hash with seed 0, in canonical (big-endian) byte order.
 *
 * Shapes: any key_bytes bytes; key may be NULL for 0 bytes.
 * Errors: none.
 */
sar_id sar_id_of(const void *key, size_t key_bytes);

/*
 * Connects to the node at the unix socket path. NULL: the socket at $SARISSA_SOCKET, or if that is
 * not set, at /run/sarissa/control.sock.
 *
 * Ownership: *out is the caller's until sar_close.
 * Errors: SAR_E_NO_NODE no node there. SAR_E_ACCESS the caller may not write to the socket.
 * SAR_E_TIMED_OUT. SAR_E_INVALID path is too long for a socket. SAR_E_VERSION.
 */
int sar_open(const char *path, sar **out);

/*
 * Ends the connection and frees the handle. NULL does nothing. Objects under creation are aborted.
 *
 * Ownership: all buffers of the handle are gone; their memory must not be touched. No other thread
 * may be in a call with the handle.
 */
void sar_close(sar *s);

/*
 * Ends the waits of all threads, now and later, with SAR_E_CLOSED: sar_get, sar_get_begin,
 * sar_wait, sar_reduce_sources and the waits of sar_put. Call it before sar_close when other
 * threads wait. They return at once, or after at most 10 s if they are just connecting to a new
 * control. Objects that are complete on this node are still found. Buffers, creations and all other
 * calls are not affected.
 */
void sar_end_waits(sar *s);

/*
 * Makes a new object and maps it writable. Readers that wait for it learn its size at once. The
 * bytes are not zeroed: write all of them, then seal the object.
 *
 * Shapes: size bytes; 0 is allowed. name is a string of at most SAR_NAME_MAX bytes, or NULL. It is
 * shown to people and does not decide the id: use sar_id_of(name, strlen(name)) for both to agree.
 * Ownership: *out is the caller's until sar_seal, sar_abort or sar_close. The object is aborted if
 * the process ends before sar_seal.
 * Errors: SAR_E_EXISTS the id is in use somewhere in the cluster. SAR_E_BUSY a node that has the
 * object does not answer: try again. SAR_E_QUOTA this user has as many bytes on this node as it may
 * have. SAR_E_FULL, SAR_E_TOO_LARGE, SAR_E_TOO_MANY, SAR_E_NAME, SAR_E_CLOCK, SAR_E_ENDED the lease
 * has ended.
 */
int sar_create(sar *s, sar_id id, const char *name, uint64_t size, sar_buffer *out);

/*
 * What a put or create may say beside the bytes. Zero what is not used. A library takes the shorter
 * struct of an older program, and a longer one whose new members are zero.
 *
 * The metadata belong to the object from its first moment; get, info and list return them on all
 * nodes. sarissa/array.h describes arrays in them. Those that do not begin with the byte 0xA1 are
 * the caller's own. With a ttl_ns, the object is deleted everywhere so long after it was made, as
 * by sar_expire; so is one that was there before a put of the same bytes. If that alone fails, the
 * call does, and what a put has made stays.
 */
typedef struct sar_put_options {
	size_t size;	    /* sizeof(sar_put_options) */
	const void *meta;   /* metadata, copied during the call */
	size_t meta_bytes;  /* at most SAR_META_MAX; 0: none */
	int64_t timeout_ns; /* for the whole call; 0: as without options */
	int64_t ttl_ns;	    /* at most ten years; 0: until it is deleted */
	uint64_t lease;	    /* that holds it from its first moment; 0: that of sar_set_lease */
	uint32_t copies;    /* 0; other numbers are for a later version */
	uint32_t flags;	    /* 0 */
} sar_put_options;

/*
 * sar_create with options; NULL: none.
 *
 * Errors: those of sar_create, and of sar_expire with a ttl_ns. SAR_E_INVALID size of the options;
 * a time is out of range; too many metadata, or they begin with 0xA1 and describe no array of that
 * size. SAR_E_TOO_LONG the options have members that this library does not know. SAR_E_UNSUPPORTED
 * copies or flags. SAR_E_TIMED_OUT.
 */
int sar_create_with(sar *s, sar_id id, const char *name, uint64_t size,
		    const sar_put_options *options, sar_buffer *out);

/*
 * Says that the bytes before ready are final. Readers on any node may have them now.
 *
 * Shapes: ready is at least b->ready and at most b->size. On success b->ready becomes ready.
 * Ownership: b stays the caller's. Published bytes must not be written again.
 * Errors: SAR_E_INVALID b is not under creation, or ready is out of range. SAR_E_DELETED.
 */
int sar_publish(sar *s, sar_buffer *b, uint64_t ready);

/*
 * Says that all bytes are final. The object then stays until it is deleted.
 *
 * Ownership: on success b is zero, and its mapping is gone. On failure b is still the caller's, for
 * sar_abort.
 * Errors: SAR_E_INVALID b is not under creation. SAR_E_DELETED.
 */
int sar_seal(sar *s, sar_buffer *b);

/*
 * Gives up an object under creation. Its space returns to the store. Its readers fail with
 * SAR_E_DELETED.
 *
 * Ownership: b is zero afterwards, whatever is returned.
 * Errors: SAR_E_INVALID b is not under creation.
 */
int sar_abort(sar *s, sar_buffer *b);

/*
 * Makes an object from the caller's bytes: sar_create, copy, sar_seal. Readers may have the first
 * MiBs while the rest is copied.
 *
 * An id that is in use is no error if its object has the same bytes and the same metadata: nothing
 * changes, and the put returns 0. The comparison brings a copy to this node, and waits for a put
 * that is under way. Of several puts of one id at the same moment one makes the object, and the
 * others compare with it.
 *
 * Shapes: size bytes at data, which may be NULL for 0 bytes; name as of sar_create.
 * Ownership: data stays the caller's and is not used after the call.
 * Errors: those of sar_create. SAR_E_EXISTS the object with this id has another size, other bytes
 * or other metadata; the words say which. SAR_E_TIMED_OUT no byte of the other put has come for
 * 30 s. SAR_E_FULL the store has no room for the copy to compare with.
 */
int sar_put(sar *s, sar_id id, const char *name, const void *data, uint64_t size);

/*
 * A caller's function that brings bytes for sar_put_from: it writes the bytes bytes of the object
 * that begin at byte at to the address to. It is called in rising order of at, and perhaps once
 * more from the start. last is 1 when these bytes will not be asked for again. Returns 0, or any
 * other value to give the put up.
 */
typedef int sar_fill(void *arg, void *to, uint64_t at, uint64_t bytes, int last);

/*
 * sar_put with bytes that fill brings. Readers may have each piece while the next one is made.
 *
 * Shapes: fill is called for at most 1 MiB at a time, by the calling thread only.
 * Ownership: fill may use to only during its call.
 * Errors: those of sar_put, or what fill returned if that is not 0.
 */
int sar_put_from(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg);

/*
 * sar_put of bytes that lie in pieces: the object is the count pieces of iov, one after the other.
 *
 * Ownership, errors: those of sar_put.
 */
int sar_put_iov(sar *s, sar_id id, const char *name, const struct iovec *iov, unsigned count);

/* The puts above with options; NULL: none. Errors: also those of sar_create_with. */
int sar_put_with(sar *s, sar_id id, const char *name, const void *data, uint64_t size,
		 const sar_put_options *options);
int sar_put_from_with(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg,
		      const sar_put_options *options);
int sar_put_iov_with(sar *s, sar_id id, const char *name, const struct iovec *iov, unsigned count,
		     const sar_put_options *options);

/*
 * Waits until the object exists and all of its bytes are on this node. Makes no system call if the
 * object is complete on this node already.
 *
 * Shapes: timeout_ns is for the whole call. On success out->ready is out->size.
 * Ownership: *out is the caller's until sar_release. The memory is read-only. It stays as it is
 * even if the object is deleted.
 * Errors: SAR_E_NOT_FOUND timeout_ns is 0 and no node has the object. SAR_E_TIMED_OUT the words say
 * whether the object was ever put. SAR_E_LOST a part of it has come, and no live node has the rest;
 * or only dead nodes have the object, timeout_ns is 0 or has passed, and they died less than 30 s
 * ago. SAR_E_PARTIAL timeout_ns is 0, and this node sees no more than half of the nodes, so it
 * cannot tell. SAR_E_DELETED. SAR_E_FULL no room for the copy. SAR_E_TOO_MANY.
 */
int sar_get(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out);

/*
 * sar_get that does not wait for the bytes: returns as soon as the object's size is known and there
 * is room for it. Read up to out->ready, then call sar_wait for more.
 *
 * Shapes, ownership: as of sar_get, but out->ready may be less than out->size.
 * Errors: those of sar_get.
 */
int sar_get_begin(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out);

/*
 * Waits until the first upto bytes are readable. Makes no system call if they are already.
 *
 * Shapes: upto beyond the size means the whole object. b->ready is refreshed also after an error.
 * Ownership: b stays the caller's, also after an error.
 * Errors: SAR_E_TIMED_OUT. Before those bytes came: SAR_E_DELETED the object was deleted or its
 * creator aborted it; SAR_E_LOST no live node has them any more; SAR_E_RESTARTED the object was put
 * again, or the reduce that makes it has restarted, or the node has lost its store: release b and
 * get the object again. SAR_E_INVALID b is not from sar_get or sar_get_begin.
 */
int sar_wait(sar *s, sar_buffer *b, uint64_t upto, int64_t timeout_ns);

/*
 * Waits as sar_get does, and copies the object's bytes into the caller's memory. The copy on this
 * node stays as after sar_get, and is not in use when the call returns.
 *
 * Shapes: bytes is the room at memory, which may be NULL for 0. *size becomes the object's size,
 * also with SAR_E_RANGE; size may be NULL. Ownership: memory is the caller's. Errors: those of
 * sar_get. SAR_E_RANGE the object has more bytes.
 */
int sar_get_into(sar *s, sar_id id, void *memory, uint64_t bytes, int64_t timeout_ns,
		 uint64_t *size);

enum { SAR_RANGES_MAX = 65536 }; /* of one call */

typedef struct sar_range {
	uint64_t offset; /* first byte, in the object */
	uint64_t bytes;
	void *where; /* memory for them */
} sar_range;

/*
 * Copies ranges of one object into the caller's memory, without the whole object on this node. Only
 * the chunks that the ranges touch travel, and no copy stays here. So the object may be larger than
 * this node's store. Bytes of a large list come in parts, of at most 4 MiB or an eighth of the
 * store. If the object is complete on this node the bytes are copied from there, without a system
 * call.
 *
 * It waits until some node has the ranges: a node that has all of the object, or makes it. All
 * bytes are of one generation of the object.
 *
 * Shapes: count ranges, in any order; they may overlap, and may have no bytes. With count 0 nothing
 * happens. The ranges lie in the object.
 * Ownership: ranges and their memory are the caller's. After an error some of the bytes may be
 * there. Errors: those of sar_get. SAR_E_RANGE a range ends behind the object's last byte.
 * SAR_E_DELETED the object was deleted meanwhile. SAR_E_QUOTA the bytes of one part are more than
 * this user may have on this node. SAR_E_INVALID too many ranges, or no memory.
 */
int sar_get_ranges(sar *s, sar_id id, const sar_range *ranges, unsigned count, int64_t timeout_ns);

/*
 * What a call about the object waits for now, in one line that does not begin with its name: the
 * node has gone; it is lost with a node; nobody has put it; a reduce lacks sources. For a program
 * that tells its user why nothing happens, from another thread, or between waits with a limit of
 * time. It returns within 8 s, and never waits for a node that has gone. sar_error_detail stays.
 *
 * Shapes: id NULL: of the node alone; then the words are empty while it is there. room: bytes at
 * out, of which SAR_DETAIL_MAX suffice.
 * Errors: SAR_E_NODE_GONE the node has gone, which the words say, too. SAR_E_INVALID no room.
 */
int sar_waits_for(sar *s, const sar_id *id, char *out, size_t room);

/*
 * Ends the use of a buffer from sar_get or sar_get_begin. Does nothing to a buffer that is zero or
 * under creation.
 *
 * Ownership: b is zero afterwards. Its memory may belong to another object at once.
 */
void sar_release(sar *s, sar_buffer *b);

/* The operation of a reduce on the elements at one position of all sources. */
enum sar_reduce_op {
	SAR_SUM = 1,
	SAR_PROD,
	SAR_MIN,
	SAR_MAX,
	SAR_AVG, /* the sum divided by the number of sources in it (integers: towards zero) */
};

/* The type of the elements of all sources, in the machine's byte order (little-endian). */
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

/* sar_reduction.flags */
enum {
	SAR_REDUCE_SPREAD = 1,
	SAR_REDUCE_BLOCK = 2, /* of a switch: f32 as integers with an exponent per chunk */
};

/* How to reduce. Zero what is not used, also reserved. */
typedef struct sar_reduction {
	uint32_t op;	     /* enum sar_reduce_op */
	uint32_t dtype;	     /* enum sar_dtype; 0: what the sources are arrays of */
	uint32_t num;	     /* how many of the sources suffice, the first to arrive; 0: all */
	uint32_t flags;	     /* SAR_REDUCE_SPREAD: every node with a source gets the result, too */
	int64_t deadline_ns; /* with min: when the sources that exist suffice, since the call */
	uint32_t min;	     /* how many sources suffice at the deadline; 0: there is none */
	uint32_t reserved32;
	uint64_t reserved[4];
} sar_reduction;

/*
 * Makes the object target from count sources, element by element, as the sources come into being.
 * Sources may be put before or after this call, on any nodes, and are used while they are written.
 * The call returns when nothing that is known speaks against the reduce. The reduce then goes on by
 * itself, also when the caller exits. Get the target, on any node, to wait for the result.
 *
 * With min, the result holds all sources if they come within deadline_ns, else those that exist
 * then. If they are fewer than min, it holds the first min to arrive. sar_reduce_sources tells
 * which.
 *
 * With num or min, sources beyond those needed are a reserve. When a node dies, its contribution
 * comes from another copy or from the reserve; if there is neither, the reduce waits until the
 * source is put again. Partial sums that include the lost contribution are recomputed, so all bytes
 * of a result hold the same set of sources. A reader of the target begins again: sar_get by itself,
 * sar_wait with SAR_E_RESTARTED.
 *
 * Floating-point sums depend on the order of arrival: two reduces of the same sources may differ in
 * their last bits. All copies of one result are equal. f16 and bf16 are added in f32 and rounded to
 * nearest even at each of up to n - 1 steps. A minimum or maximum with a NaN is NaN. Integers wrap.
 *
 * Shapes: 1 to SAR_SOURCES_MAX sources, all of one size, a multiple of the element's. Those that
 * are described as arrays (sarissa/array.h) have one shape, order and type, which is dtype if that
 * is not 0; the result has their description. how->num and how->min are at most count, and one of
 * them is 0. deadline_ns is less than timeout_ns; without min it is 0. timeout_ns is above 0 and is
 * for the whole reduce: when it has passed, the reduce ends without a result.
 * Ownership: sources, how and name are not used after the call.
 * Errors: SAR_E_INVALID op, dtype, flags, count, num, min or deadline_ns is unknown or out of
 * range; a source is listed twice or is the target; sizes, types, shapes or orders do not fit.
 * SAR_E_EXISTS the target exists, or another reduce makes it. SAR_E_BUSY too many reduces at a
 * time. SAR_E_TIMED_OUT no answer; the reduce may begin all the same: sar_reduce_sources tells.
 */
int sar_reduce(sar *s, sar_id target, const char *name, const sar_id *sources, unsigned count,
	       const sar_reduction *how, int64_t timeout_ns);

/*
 * Waits until the reduce into target has ended. Any client of any node may ask. The end of a reduce
 * is known until its target is deleted, or very many other reduces have ended since, or its
 * coordinator's node and the shard owner of the target are both lost.
 *
 * Shapes: sets up to room ids at out, the sources that the result holds, in the order in which
 * sar_reduce named them. Returns how many there are, which may be more than room.
 * Errors: SAR_E_TIMED_OUT the reduce goes on, or its own time is over; the words say which.
 * SAR_E_NOT_FOUND no such reduce is known. SAR_E_INVALID a source that came later does not fit.
 * SAR_E_EXISTS an older object with the target's id has come back. SAR_E_FULL a node has no room
 * for its part. SAR_E_CANCELLED the target was deleted. SAR_E_LOST the result exists, but nobody
 * knows any more what is in it. SAR_E_DELETED the nodes that had just made the result are lost with
 * it: reduce again.
 */
int sar_reduce_sources(sar *s, sar_id target, int64_t timeout_ns, sar_id *out, unsigned room);

/*
 * How far the reduce into target is, without waiting. Any client of any node may ask.
 *
 * Shapes: sets up to room ids at out and returns how many sources there are. First come the
 * *present sources that exist, then the missing ones, each in the order in which sar_reduce named
 * them. After the end of a reduce: the sources that its result holds, all present.
 * Errors: SAR_E_TIMED_OUT its coordinator does not answer, or its own time is over. Otherwise those
 * of sar_reduce_sources. *present is 0 after an error.
 */
int sar_reduce_progress(sar *s, sar_id target, sar_id *out, unsigned room, unsigned *present);

/*
 * sar_reduce whose result all participants get. Each participant calls it with the same target,
 * sources and how. The first call begins the reduce; every node with a source gets the result while
 * it is made. Returns when the whole result is on this node.
 *
 * Shapes: those of sar_reduce; timeout_ns is for all of it.
 * Ownership: *out is the caller's until sar_release. Nothing else is used after the call.
 * Errors: those of sar_reduce, sar_reduce_sources and sar_get. SAR_E_EXISTS the target exists and
 * is not the result of these sources.
 */
int sar_allreduce(sar *s, sar_id target, const char *name, const sar_id *sources, unsigned count,
		  const sar_reduction *how, int64_t timeout_ns, sar_buffer *out);

/*
 * A member's place in a group whose sums a switch makes on the way (docs/user/aggregation.md).
 */
typedef struct sar_switch sar_switch;

typedef struct sar_switch_options {
	const char *address; /* IPv4, of the switch or of the host that stands in for it */
	uint32_t group;	     /* a number that this set of members has not used before */
	uint32_t member;     /* 0 to members - 1, another one for each */
	uint32_t members;    /* 1 to 64 */
	uint32_t quorum;     /* so many suffice at the deadline; 0: all */
	int64_t deadline_ns; /* after the first contribution to a chunk; 0: at once */
	uint64_t key;	     /* that the members share; the switch drops packets of others; or 0 */
	uint64_t reserved[3];
} sar_switch_options;

/* How an allreduce through a switch went. */
typedef struct sar_switch_result {
	uint64_t in_all;  /* bit i: member i is in every chunk */
	uint32_t fewest;  /* members that are in a chunk */
	uint32_t through; /* 1: the switch made it; 0: the nodes did, the switch had failed */
	uint64_t packets; /* that this member sent */
	uint64_t polls;	  /* of these, questions about results that were late */
	uint64_t resent;  /* of these, chunks that were lost before */
	int64_t duration_ns;
	uint64_t reserved[4];
} sar_switch_result;

/*
 * Joins a group at a switch. The first member to come makes the group there, with its policy and
 * key. A place belongs to the process that joins first: the switch drops what others send for it.
 *
 * Ownership: how is not used after the call. *out is the caller's until sar_switch_leave.
 * Errors: SAR_E_UNREACHABLE nothing answered there for 0.2 s, or the group has another key.
 * SAR_E_FULL the switch has no room for a group. SAR_E_EXISTS the group has another number of
 * members, or another process is this member. SAR_E_PROTOCOL the switch is of another version.
 * SAR_E_ENDED the group has a later policy. SAR_E_INVALID.
 */
int sar_switch_join(const sar_switch_options *how, sar_switch **out);

/* Ends the membership and frees it. NULL does nothing. */
void sar_switch_leave(sar_switch *w);

/*
 * Combines the arrays of all members into the target of each. All members call it with the same
 * shape, and the same number of times.
 *
 * Shapes: bytes bytes at source and at target, which may be the same. how has op, dtype, and in
 * flags SAR_REDUCE_BLOCK or 0; the rest is 0. out may be NULL.
 * Ownership: nothing is used after the call. The target is undefined after an error.
 * Errors: SAR_E_UNREACHABLE the switch was silent for 0.2 s. SAR_E_TIMED_OUT other members did not
 * send theirs. SAR_E_ENDED a quorum went on without this member. SAR_E_UNSUPPORTED the switch
 * cannot compute that. SAR_E_TOO_LARGE more than 1440 * 2^31 bytes. SAR_E_INVALID the arguments, or
 * other members have another shape. After an error leave, and join a group of another number.
 */
int sar_switch_allreduce(sar_switch *w, const void *source, void *target, uint64_t bytes,
			 const sar_reduction *how, int64_t timeout_ns, sar_switch_result *out);

/*
 * sar_allreduce through a switch. Member i has sources[i]. If the switch fails, this is an ordinary
 * sar_allreduce: out->through tells. Member 0 makes the object target, which others can get;
 * *buffer has the result on every member.
 *
 * Shapes: those of sar_allreduce; count is the number of members; num, min and SPREAD are not used.
 * Ownership: *buffer is the caller's until sar_release.
 * Errors: those of sar_allreduce.
 */
int sar_switch_reduce(sar *s, sar_switch *w, sar_id target, const char *name, const sar_id *sources,
		      unsigned count, const sar_reduction *how, int64_t timeout_ns,
		      sar_buffer *buffer, sar_switch_result *out);

/*
 * sar_get of count objects, which arrive side by side. All or nothing: when one fails, the call
 * fails with its error, which names it, and the others are released.
 *
 * Shapes: 1 to SAR_SOURCES_MAX ids; out[i] is set to the object ids[i]. timeout_ns is for the whole
 * call.
 * Ownership: each buffer is the caller's until sar_release.
 * Errors: those of sar_get.
 */
int sar_gather(sar *s, const sar_id *ids, unsigned count, int64_t timeout_ns, sar_buffer *out);

/*
 * Waits until num of count objects are complete on this node, to which it brings them. An object
 * whose get ends with an error meanwhile (SAR_E_LOST of a part, SAR_E_DELETED) counts as there: its
 * get says why. An object that only dead nodes have is waited for, since they may come back
 * with it; it counts as there when the time is over.
 *
 * Shapes: 1 to SAR_SOURCES_MAX ids; num is 1 to count. Sets there[i] to 1 if ids[i] is there, else
 * to 0. Returns how many are: num, or fewer when the time is over.
 * Ownership: ids and there are not used after the call. What has come may be evicted.
 * Errors: those of sar_get but SAR_E_NOT_FOUND and SAR_E_TIMED_OUT.
 */
int sar_wait_any(sar *s, const sar_id *ids, unsigned count, unsigned num, int64_t timeout_ns,
		 uint8_t *there);

/*
 * Brings a complete copy of the object to nodes before anybody there asks for it. Returns when each
 * of them has one. The object may be put after this call. The copies are evicted like those that a
 * get has brought.
 *
 * Shapes: the numbers of up to SAR_NODES_MAX nodes; count 0 means all nodes that are up.
 * Ownership: nodes is not used after the call.
 * Errors: SAR_E_INVALID no such node. SAR_E_PARTIAL one of them is down, or went down meanwhile.
 * SAR_E_FULL one of them has no room. SAR_E_NOT_FOUND, SAR_E_TIMED_OUT as of sar_get. The words
 * name the node. Other nodes may have got the object all the same, and keep it.
 */
int sar_broadcast(sar *s, sar_id id, const uint32_t *nodes, unsigned count, int64_t timeout_ns);

/*
 * Removes the object from the directory and every copy of it, and cancels a reduce that makes it.
 * Returns when every node with a copy has removed it or is dead as a member.
 *
 * Ownership: buffers in use stay readable until they are released.
 * Errors: SAR_E_NOT_FOUND. SAR_E_TIMED_OUT a node did not answer for 9 s, and the words name it:
 * the object is gone from the directory, and that node removes its copy when it answers again; or
 * too many deletes are under way, and nothing was removed. SAR_E_PARTIAL nothing was removed, since
 * the nodes that know the object may be out of reach. 0 is also returned when control died before
 * it answered and none is there now.
 */
int sar_delete(sar *s, sar_id id);

/*
 * What the directory knows of an object, at one moment.
 *
 * Errors: SAR_E_NOT_FOUND nothing is known. SAR_E_PARTIAL the node that would know does not answer,
 * or this node may be cut off from it.
 */
int sar_info_get(sar *s, sar_id id, sar_info *out);

/*
 * Which nodes hold the object, how far each copy has come, and which node feeds which. Copies that
 * still arrive are asked; one that does not answer within 1 s counts with 0 bytes.
 *
 * Shapes: fills up to room entries at out. Returns how many there are, which may be more than room.
 * Errors: those of sar_info_get.
 */
int sar_holders(sar *s, sar_id id, sar_holder *out, unsigned room);

/*
 * Calls fn for each object of the cluster until it returns non-zero. That value is returned.
 *
 * Ownership: info is valid only during the call of fn. fn may use the handle.
 * Errors: SAR_E_PARTIAL a part of the directory does not answer: fn was called for all objects that
 * the rest knows, and sar_error_nodes tells which nodes are missing.
 */
int sar_list(sar *s, int (*fn)(const sar_info *info, void *arg), void *arg);

/* A lease, as the directory knows it of an object that it holds. */
typedef struct sar_lease_info {
	uint64_t lease;	  /* its number */
	uint32_t node;	  /* its home: where it was opened */
	uint32_t ending;  /* 1: its home is lost; it ends in left_ns unless the home comes back */
	uint64_t left_ns; /* 0 unless it is ending */
	uint64_t reserved[4];
	char name[SAR_LEASE_NAME_MAX + 1]; /* of a session's: "session PID" */
} sar_lease_info;

/*
 * sar_list of the objects whose names begin with prefix, with the lease that has held each longest.
 *
 * Shapes: prefix is a string of at most SAR_NAME_MAX bytes; NULL or empty: all objects. lease is
 * NULL for an object that no lease holds.
 * Errors: as sar_list. SAR_E_NAME.
 */
int sar_list_prefix(sar *s, const char *prefix,
		    int (*fn)(const sar_info *info, const sar_lease_info *lease, void *arg),
		    void *arg);

/*
 * Opens a lease. Objects that a lease holds are deleted everywhere when the last of their leases
 * lets them go or ends. Without a name the lease is this session's: it ends ttl_ns after the
 * session, so a handle that connects again keeps it. With a name it continues the lease of that
 * name of this user on this node, if there is one, and ends ttl_ns after the last session that has
 * it open.
 *
 * Shapes: name is a string of 1 to SAR_LEASE_NAME_MAX bytes, or NULL. ttl_ns is 100 ms to ten
 * years; it replaces that of a lease that continues.
 * Ownership: *lease is a number, valid on all handles of this node and user until the lease ends.
 * Errors: SAR_E_INVALID. SAR_E_NAME. SAR_E_FULL this node has 4,096 leases, which is the most.
 */
int sar_lease(sar *s, const char *name, int64_t ttl_ns, uint64_t *lease);

/*
 * Ends a lease now. It holds nothing any more; what no other lease holds is being deleted.
 *
 * Errors: SAR_E_ENDED the lease has ended already.
 */
int sar_lease_end(sar *s, uint64_t lease);

/*
 * The lease holds what the creates and puts of this handle, and of its queues, make from now on,
 * each object from its first moment. 0: no lease does. A put of bytes that exist already holds
 * their object only if another lease does.
 *
 * Errors: none here; the calls that make objects fail with SAR_E_ENDED when the lease has ended.
 */
int sar_set_lease(sar *s, uint64_t lease);

/*
 * The lease holds an object that exists. Holding it twice is holding it once.
 *
 * Errors: SAR_E_NOT_FOUND no such object. SAR_E_ENDED the lease has ended. SAR_E_FULL the leases
 * of this node hold 65,536 objects, or 1,024 leases hold this one, or its shard owner has no room.
 * SAR_E_TIMED_OUT.
 */
int sar_hold(sar *s, uint64_t lease, sar_id id);

/*
 * The lease lets an object go. If no other lease holds it, it is deleted when the call returns.
 *
 * Errors: SAR_E_NOT_FOUND the lease does not hold it. SAR_E_ENDED the lease has ended.
 * SAR_E_TIMED_OUT.
 */
int sar_drop(sar *s, uint64_t lease, sar_id id);

/*
 * Has an object deleted everywhere ttl_ns from now, held or not. 0: takes its time away.
 *
 * Shapes: ttl_ns is at most ten years.
 * Errors: SAR_E_INVALID. SAR_E_NOT_FOUND no such object. SAR_E_FULL as of sar_hold.
 * SAR_E_TIMED_OUT.
 */
int sar_expire(sar *s, sar_id id, int64_t ttl_ns);

/*
 * The lease that has held the object longest.
 *
 * Errors: SAR_E_NOT_FOUND no lease holds it, or no such object. Else as sar_info_get.
 */
int sar_lease_get(sar *s, sar_id id, sar_lease_info *out);

/*
 * Calls fn for each node, the local one first, until it returns non-zero. That value is returned.
 *
 * Ownership: node is valid only during the call of fn. fn may use the handle.
 */
int sar_nodes(sar *s, int (*fn)(const sar_node *node, void *arg), void *arg);

/*
 * Lets the local node leave its cluster for good, and ends its control process. The others do not
 * count its copies any more, and what only it had may be put again. A restart of control needs none
 * of this.
 *
 * Errors: SAR_E_PERMISSION only root and the user of the daemons may. SAR_E_TIMED_OUT.
 */
int sar_leave(sar *s);

/* The general text of an error code, negative or positive. Never NULL; not to be freed. */
const char *sar_strerror(int error);

/*
 * "what is wrong: what to do", of the calling thread's last failure; "" before the first one.
 *
 * Ownership: the library's; valid until the thread's next failure.
 */
const char *sar_error_detail(void);

/*
 * The nodes that the calling thread's last failure is about, if that was SAR_E_PARTIAL.
 *
 * Shapes: fills up to room numbers at out. Returns how many there are: 256 at most, 0 after any
 * other failure.
 */
int sar_error_nodes(uint32_t *out, unsigned room);

/* The version of the library that is loaded, as SAR_VERSION_MAJOR and the others are those of the
 * headers: "0.1.0". Not to be freed. */
const char *sar_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#include <sarissa/queue.h>

#endif
