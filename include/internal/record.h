/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fixed-size records on the rings between control and dataplane: commands (control ->
 * dataplane), among them the plan language, and events (dataplane -> control).
 *
 * A node's part in any collective is a set of buffers and edges:
 *   BUFFER b     a range of the store, cut into chunks; a chunk is ready when it has as many
 *                contributions as the readiness rule asks (1 for a copy, the fan-in for a reduce)
 *   IN e -> b    chunks that arrive on stream e are stored into b, or reduced into b
 *   LOCAL x -> b chunks of another buffer x here contribute to b as they become ready there
 *   OUT b -> e   chunks of b leave on a peer's stream e as soon as they are ready
 *
 * A buffer with a reduce_op is *counted*: contributions are combined by its op, each IN or LOCAL
 * edge contributes each chunk at most once (the edge's taken bitmap), and a chunk is ready when
 * `need` contributions are in it. Ending an edge leaves what it has contributed in place.
 *
 * A buffer may withhold its last chunk: no reader, here or elsewhere, gets it before FINISH.
 *
 * Offsets are relative to the start of the store or of the object table, never pointers; bytes are
 * bytes, counts are chunks. The receiver of a record validates every field before it uses any: a
 * bad record is answered by EVENT_REFUSED and changes nothing.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_RECORD_H
#define SARISSA_INCLUDE_INTERNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include "ids.h"

enum {
	RECORD_BYTES = 64,
	CHUNK_BYTES_MIN = 64,
	CHUNK_BYTES_MAX = 8896, /* 139 * 64: the largest that fits a 9,000-byte MTU */
	BUFFERS_MAX = 4096,	/* per worker */
	EDGES_MAX = 8192,	/* per worker and direction */
	TABLE_SLOT_NONE = UINT32_MAX,
};

enum command_op {
	COMMAND_NONE,
	COMMAND_PEER_OPEN, /* connect to an address; answered by PEER_UP or PEER_DOWN with the token
			    */
	COMMAND_PEER_CLOSE, /* forget a connection; its edges fail, its messages are dropped */
	COMMAND_MSG_SEND,   /* send a message; the slot comes back with EVENT_MSG_SENT */
	COMMAND_MSG_FREE, /* a received message has been read: its slot is the dataplane's again */
	COMMAND_BUFFER,
	COMMAND_IN,
	COMMAND_OUT,
	COMMAND_ADVANCE,     /* a local producer has written up to here */
	COMMAND_DROP_EDGE,   /* direction in flags; answered by EVENT_DROPPED */
	COMMAND_DROP_BUFFER, /* and all edges on it; answered by EVENT_DROPPED when no byte of it
				will be touched any more */
	COMMAND_LOCAL,	     /* ended by DROP_EDGE with RECORD_FLAG_IN */
	COMMAND_FINISH,	     /* the last chunk of a buffer that holds it may be given */
	COMMAND_PEER_WATCH,  /* tell with PEER_SILENT when nothing is heard for so long */
	COMMAND_OPS,
};

enum event_op {
	EVENT_NONE,
	EVENT_PEER_UP,
	EVENT_PEER_DOWN,
	EVENT_MSG,	   /* a whole message has arrived, in order per connection */
	EVENT_MSG_SENT,	   /* every byte is acknowledged (or the connection died: reason) */
	EVENT_PROGRESS,	   /* contiguous ready bytes of a buffer passed another block */
	EVENT_BUFFER_DONE, /* every chunk of a buffer is ready */
	EVENT_OUT_DONE,	   /* every chunk of an OUT edge is acknowledged */
	EVENT_EDGE_FAILED,
	EVENT_DROPPED,
	EVENT_REFUSED, /* a command record did not hold: op, id and reason say which and why */
	EVENT_IN_DONE, /* every chunk of an IN or LOCAL edge's range has been taken: once per life
			  of the edge; not for an IN edge over the whole of a copy buffer, which
			  BUFFER_DONE tells */
	EVENT_PEER_SILENT, /* a watched peer does not answer; once until it is heard again. The
			      connection goes on */
	EVENT_OPS,
};

/* Why an edge, a connection or a record came to an end. Names: reason_name(). */
#define REASONS(X)                                                       \
	X(NONE, "none")                                                  \
	X(CLOSED, "closed by this side")                                 \
	X(PEER_CLOSED, "closed by the peer")                             \
	X(PEER_TIMEOUT, "the peer does not answer")                      \
	X(PEER_RESTARTED, "the peer has restarted")                      \
	X(PEER_VERSION, "the peer speaks another protocol version")      \
	X(STREAM_RESET, "the peer knows no such stream")                 \
	X(BAD_OP, "unknown operation")                                   \
	X(BAD_ID, "id out of range or not in use")                       \
	X(BUSY_ID, "id is in use")                                       \
	X(BAD_RANGE, "range outside the store, the table or the buffer") \
	X(BAD_CHUNK, "chunk size out of bounds")                         \
	X(BAD_CONN, "no such connection")                                \
	X(BAD_MESSAGE, "message slot or length out of bounds")           \
	X(STALE_EPOCH, "record of an older epoch")                       \
	X(FULL, "table full")                                            \
	X(UNSUPPORTED, "not supported by this build")                    \
	X(TORN_CHUNK, "a contribution to a chunk was cut short: restart")

enum reason {
#define X(name, text) REASON_##name,
	REASONS(X)
#undef X
		REASON_COUNT
};

/* EDGE direction, in record.flags of DROP_EDGE, EDGE_FAILED and DROPPED. */
enum {
	RECORD_FLAG_IN = 1,
	RECORD_FLAG_OUT = 2,
	RECORD_FLAG_BUFFER = 4,
};

struct record {
	uint8_t op; /* enum command_op or enum event_op */
	uint8_t flags;
	uint16_t reason; /* enum reason; events only */
	uint32_t epoch;	 /* of the plan; echoed in events */
	uint64_t token;	 /* the caller's own; echoed in every event about this thing */
	union {
		struct { /* PEER_OPEN: addr, of. PEER_UP, PEER_SILENT: all. PEER_DOWN: conn, addr,
			    of, reason. flags: the rail, where of is not 0 */
			struct net_addr addr;
			uint64_t incarnation;
			uint32_t conn;
			uint16_t mtu; /* IP bytes the path carries */
			uint16_t workers;
			uint32_t rtt_us; /* of the handshake; 0: not known, its HELLO went twice */
			uint32_t of; /* another path of this connection, on a rail of its own; 0:
					it is a connection */
		} peer;
		struct { /* PEER_WATCH */
			uint32_t conn;
			uint32_t pad;
			uint64_t silence_ns; /* 0: no more */
		} watch;
		struct { /* MSG_SEND, MSG_FREE, MSG, MSG_SENT. offset is into the message area */
			uint32_t conn;
			uint32_t length; /* bytes */
			uint64_t offset;
		} msg;
		struct { /* BUFFER */
			uint32_t buffer;
			uint32_t table_slot;	/* whose watermark follows, or TABLE_SLOT_NONE */
			uint64_t store_offset;	/* bytes */
			uint64_t size;		/* bytes */
			uint64_t bitmap_offset; /* in the store, 8-byte aligned: one bit per chunk,
						   zeroed by control for a fresh buffer, kept to
						   resume; 0: a local producer writes the bytes.
						   Counted: one byte per chunk follows, see
						   chunk_counted_bytes() */
			uint64_t ready_bytes;	/* what that producer has written already */
			uint16_t chunk_bytes;	/* multiple of 64 */
			uint8_t need;	   /* contributions that make a chunk ready; 1 for a copy */
			uint8_t reduce_op; /* 0: copy, else the buffer is counted */
			uint8_t dtype;	   /* of the elements, when counted */
			uint8_t withhold;  /* 1: the last chunk is given to nobody before FINISH,
					  though  BUFFER_DONE tells when it is in as well; 0 for a
					  local  producer's */
			uint16_t scale;	   /* counted: a chunk is divided by this before it is
					      ready; 0 or 1: it is not */
		} buffer;
		struct { /* IN, OUT, DROP_EDGE; EVENT IN_DONE, OUT_DONE, EDGE_FAILED, DROPPED */
			uint32_t edge; /* ours; for IN it is the stream id that the peer names */
			uint32_t buffer;
			uint32_t conn;
			uint32_t stream; /* OUT: the receiver's IN edge id */
			uint32_t first_chunk;
			uint32_t chunks;	/* count, from first_chunk on */
			uint64_t bitmap_offset; /* OUT: sent bitmap in the store (one bit per chunk
						   of the buffer), zeroed by control: set bits are
						   never sent. IN into a counted buffer: taken
						   bitmap, zeroed for a fresh edge, kept to resume.
						   IN into a copy: not read (it uses the buffer's
						   own)
						 */
			uint32_t peer_first;	/* IN: the sender's number of the chunk that goes to
						   first_chunk */
			uint32_t pad;
		} edge;
		struct { /* LOCAL; its events and DROP_EDGE are those of an IN edge (conn 0) */
			uint32_t edge;	 /* of the IN id space */
			uint32_t buffer; /* destination */
			uint32_t source; /* another buffer of this worker, chunks as large */
			uint32_t pad;
			uint32_t first_chunk;	/* of the destination */
			uint32_t chunks;	/* count, from first_chunk on */
			uint64_t bitmap_offset; /* taken bitmap over the destination's chunks */
			uint32_t peer_first;	/* the source's chunk that goes to first_chunk */
			uint32_t pad2;
		} local;
		struct { /* ADVANCE, FINISH, DROP_BUFFER; EVENT PROGRESS, BUFFER_DONE, DROPPED */
			uint32_t buffer;
			uint32_t pad;
			uint64_t ready_bytes; /* contiguous from 0 */
		} progress;
		struct {	     /* EVENT_REFUSED */
			uint32_t id; /* buffer, edge or connection that the record named */
			uint32_t refused_op;
		} refused;
		uint8_t bytes[48];
	};
};
_Static_assert(sizeof(struct record) == RECORD_BYTES, "a record is one cache line");
_Static_assert(offsetof(struct record, local.chunks) == offsetof(struct record, edge.chunks) &&
		       offsetof(struct record, local.peer_first) ==
			       offsetof(struct record, edge.peer_first),
	       "a LOCAL edge is read as an IN edge that has a source for its connection");

/* Whether control may put it into a ring: a known operation, and none of the fields of events. */
static inline bool command_valid(const struct record *r)
{
	return r->op > COMMAND_NONE && r->op < COMMAND_OPS && r->reason == REASON_NONE;
}

/* Whether a worker may put it into a ring: a known event, a known reason, and one kind of thing. */
static inline bool event_valid(const struct record *r)
{
	bool kinds = r->op == EVENT_DROPPED || r->op == EVENT_EDGE_FAILED ||
		     r->op == EVENT_OUT_DONE || r->op == EVENT_IN_DONE;

	return r->op > EVENT_NONE && r->op < EVENT_OPS && r->reason < REASON_COUNT &&
	       (!kinds || r->flags == RECORD_FLAG_IN || r->flags == RECORD_FLAG_OUT ||
		(r->flags == RECORD_FLAG_BUFFER && r->op == EVENT_DROPPED));
}

/* Chunks of an object of size bytes. */
static inline uint64_t chunk_count(uint64_t size, uint32_t chunk_bytes)
{
	return (size + chunk_bytes - 1) / chunk_bytes;
}

/* Bytes of a bitmap with one bit per chunk, in whole 64-bit words. */
static inline uint64_t chunk_bitmap_bytes(uint64_t chunks)
{
	return (chunks + 63) / 64 * 8;
}

/* The word's missing chunks within [first, end), as bits. */
static inline uint64_t chunks_holes(const uint64_t *map, uint32_t word, uint32_t first,
				    uint32_t end)
{
	uint64_t holes = ~__atomic_load_n(&map[word], __ATOMIC_RELAXED);

	if (word == first / 64)
		holes &= UINT64_MAX << (first % 64);
	if (word == end / 64)
		holes &= (UINT64_C(1) << (end % 64)) - 1;
	return holes;
}

/* Chunks of [first, end) that are missing. Another process may be setting bits. */
static inline uint32_t chunks_missing(const uint64_t *map, uint32_t first, uint32_t end)
{
	uint32_t count = 0;

	for (uint32_t w = first / 64; first < end && w <= (end - 1) / 64; w++)
		count += (uint32_t)__builtin_popcountll(chunks_holes(map, w, first, end));
	return count;
}

/* Bytes of the bitmap of a counted buffer with what follows it: one byte per chunk, the number of
 * contributions so far, in whole 64-bit words. All zero for a fresh buffer. */
static inline uint64_t chunk_counted_bytes(uint64_t chunks)
{
	return chunk_bitmap_bytes(chunks) + (chunks + 7) / 8 * 8;
}

/* The text of a reason for a message to a person; never NULL. */
static inline const char *reason_name(unsigned reason)
{
	static const char *const names[] = {
#define X(name, text) text,
		REASONS(X)
#undef X
	};
	return reason < REASON_COUNT ? names[reason] : "unknown reason";
}

#endif
