/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire, and every limit that two endpoints share or that bounds what a peer can make of one:
 * the only definition in code of what docs/developer/protocol.md draws. Pure layout, for every file
 * of the core and its tests; wire_field.h reads and writes these bytes.
 *
 * All integers are little-endian and lie at any alignment. A packet is a header, an integrity field
 * (a CRC32C, in whose place a 16-byte AEAD tag can stand) and a body.
 */
#ifndef SARISSA_DATAPLANE_CORE_WIRE_WIRE_H
#define SARISSA_DATAPLANE_CORE_WIRE_WIRE_H

#include <stddef.h>
#include "internal/record.h"

typedef uint16_t le16;
typedef uint32_t le32;
typedef uint64_t le64;
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "le16 to le64 are host order");

#define WIRE_STRUCT struct __attribute__((packed))
#define WIRE_LAYOUT(type, bytes, field, at)                                                    \
	_Static_assert(sizeof(struct type) == (bytes) && offsetof(struct type, field) == (at), \
		       "the wire has " #type " so")

enum {
	WIRE_VERSION = 4,
	WIRE_FLAG_SECURE = 1, /* reserved for the AEAD form; refused in clear mode */
	CHUNK_FLAG_ACK = 2,   /* of a CHUNK packet: a wire_short lies before the payload */
	FRAME_FLAG_ASK = 1,   /* of DATA, PART, MSG: acknowledge at once, the sender waits */
};

enum wire_type {
	WIRE_HELLO = 1, /* conn 0; body wire_hello, padded */
	WIRE_COOKIE,	/* conn of the opener; body wire_hello with the cookie */
	WIRE_ACCEPT,	/* conn of the opener; body wire_hello, padded like the HELLO it answers */
	WIRE_PAYLOAD,	/* frames */
	WIRE_RESET,	/* conn 0; body wire_reset: no connection behind a packet of yours */
	WIRE_CHUNK, /* one chunk of a stream that asks for nothing, with a short ack or without */
	WIRE_ACK,   /* a short ack and nothing else */
};

enum wire_frame {
	FRAME_PADDING = 0, /* ends the frames: what follows is filling */
	FRAME_DATA,	   /* one chunk of a stream */
	FRAME_ACK,
	FRAME_GRANT,
	FRAME_MSG, /* a fragment of a message */
	FRAME_PING,
	FRAME_RESET_STREAM, /* the receiver knows no such stream */
	FRAME_CLOSE,
	FRAME_ECN,  /* CE marks seen so far */
	FRAME_PART, /* a part of a chunk, where the path does not carry all of it at once */
};

/* clang-format off */
/* The head of every packet but CHUNK and ACK. `first`: version in the high 4 bits, type below. */
WIRE_STRUCT wire_header { uint8_t first, flags; le16 check; le32 conn; le64 pn; le32 crc; };
WIRE_LAYOUT(wire_header, 20, crc, 16);

/* Body of HELLO, COOKIE and ACCEPT. conn: by which the sender wants to be called. mtu: IP bytes of
 * its link. incarnation: the sender's; COOKIE: the opener's. peer: ACCEPT: the opener's. time: when
 * the cookie was made. window: packets in flight. path: protocol.md, 2.4. */
WIRE_STRUCT wire_hello { le32 conn; le16 mtu, workers; le64 incarnation, peer, time;
			 uint8_t cookie[16]; le32 window, path; };
WIRE_LAYOUT(wire_hello, 56, path, 52);

/* Body of RESET: what the offending packet said. */
WIRE_STRUCT wire_reset { le32 conn; le16 check, zero; le64 pn; };
WIRE_LAYOUT(wire_reset, 16, pn, 8);

/* A packet of type CHUNK, before its payload; stream and chunk lie where a DATA frame has them.
 * pn: the low bits. The CRC covers what the header leaves out, too. */
WIRE_STRUCT wire_chunk { uint8_t first, flags; le16 pn; le32 stream, chunk, crc; };
WIRE_LAYOUT(wire_chunk, 16, crc, 12);

/* A short ack: bit 63 of bitmap is largest, bit 63 - k is largest - k. */
WIRE_STRUCT wire_short { le16 largest, delay; le32 arrival; le64 bitmap; };
WIRE_LAYOUT(wire_short, 16, bitmap, 8);

/* A packet of type ACK: a short ack around the CRC. */
WIRE_STRUCT wire_ack { uint8_t first, flags; le16 pn, largest, delay; le32 arrival, crc;
		       le64 bitmap; };
WIRE_LAYOUT(wire_ack, 24, bitmap, 16);

/* Frames; `type` is enum wire_frame. A payload of `length` bytes follows DATA, PART and MSG. */
WIRE_STRUCT frame_data { uint8_t type, flags; le16 length; le32 stream, chunk; };
WIRE_LAYOUT(frame_data, 12, chunk, 8);
WIRE_STRUCT frame_part { uint8_t type, flags; le16 length; le32 stream, chunk;
			 le16 offset, zero; };
WIRE_LAYOUT(frame_part, 16, offset, 12);
/* le64 bitmap[words] follows, ascending; the last covers largest | 63. delay: since largest came, in
 * ACK_DELAY_UNIT_NS. arrival: when it came, us of a clock of the receiver's own. */
WIRE_STRUCT frame_ack { uint8_t type, words; le16 delay; le64 largest; le32 arrival; };
WIRE_LAYOUT(frame_ack, 16, arrival, 12);
/* senders: nodes that stream to this one; 0: not said. stream: the receiver's id of it. chunks:
 * first transmissions allowed in all. */
WIRE_STRUCT frame_grant { uint8_t type, senders; le16 zero; le32 stream, chunks; };
WIRE_LAYOUT(frame_grant, 12, chunks, 8);
/* id: counts up from 0 per connection and direction. total: bytes of the message. */
WIRE_STRUCT frame_msg { uint8_t type, flags; le16 length; le32 id;
			le16 fragment, zero; le32 total; };
WIRE_LAYOUT(frame_msg, 16, total, 12);
/* PING and CLOSE (zero[0]: a reason) are the first of these alone; ECN has a count that wraps. */
WIRE_STRUCT frame_bare { uint8_t type, zero[3]; };
WIRE_STRUCT frame_reset_stream { uint8_t type, zero[3]; le32 stream; };
WIRE_STRUCT frame_ecn { uint8_t type, zero[3]; le32 count; };
WIRE_LAYOUT(frame_ecn, 8, count, 4);

/* clang-format on */

/* Limits, each with its reason; docs/developer/protocol-connections.md, 14, has them in words. */
enum {
	WIRE_HELLO_MIN = 1200,	 /* UDP payload of a HELLO: no reply is ever larger */
	MTU_BASE = 1280,	 /* IP bytes every path carries (RFC 8200, 5) */
	ENGINE_HEAD_MAX = 9000,	 /* bytes of a packet: jumbo frames */
	ENGINE_OVERHEAD_V4 = 28, /* IP and UDP headers */
	ENGINE_OVERHEAD_V6 = 48,
	ENGINE_DATA_OVERHEAD = 44, /* largest header before a chunk: secure mode */
	ENGINE_CONNS_MAX = 4096,   /* all memory is carved at the start */
	ENGINE_WINDOW_MIN = 64, /* packets in flight that every endpoint allows: one bitmap word */
	ENGINE_WINDOW_MAX = 16384, /* twice that may lie between two numbers of 16 bits */
	CHUNK_PN_REACH =
		1 << 15,	/* half of what 16 bits tell apart: the nearest is the right one */
	ACK_JUMP_MAX = 1 << 20, /* packet numbers: no honest peer leaves such a gap */
	ACK_WORDS_MAX = 16,	/* 1,024 numbers: fits the smallest packet */
	ACK_DELAY_UNIT_NS = 4000, /* 16 bits reach as far as 262 ms */
	FRAMES_MAX = 16,	  /* in a packet: a stream may take long to find */
	PART_BYTES = 1152,	  /* fits every path; a frame brings some of them, in one piece */
	PARTS_MAX = 8,		  /* of the longest chunk */
	PART_SLOTS = 64, /* chunks in parts at a time: more than two of a peer come of losses */
	PART_SLOTS_KEPT = 16,	   /* of these, for connections that have none */
	MSG_FRAGMENT_BYTES = 1152, /* fits every path */
	MSG_FRAGMENTS_MAX = 64,	   /* one bit of a word each */
	MSG_WINDOW = 32,  /* messages in flight per connection and direction: both ends count */
	RESETS_MAX = 16,  /* waiting per connection; the next packet is not acknowledged */
	REPLIES_MAX = 64, /* answers without a connection that wait: a flood grows nothing */
	UNSCHEDULED_CHUNKS = 32, /* of a stream before its first grant: 10 Gbit/s for 36 us, */
	UNSCHEDULED_BYTES = UNSCHEDULED_CHUNKS * 1408, /* at MTU 1500 */
};
#define CHUNKS_MAX (UINT32_C(1) << 31) /* of a buffer: stepping by words of 64 never wraps */
_Static_assert(ENGINE_DATA_OVERHEAD == 16 + 16 + sizeof(struct frame_data),
	       "header, AEAD tag, frame");
_Static_assert(CHUNK_BYTES_MAX <= PARTS_MAX * PART_BYTES && PART_SLOTS <= 64, "a bit for each");
_Static_assert(2 * ENGINE_WINDOW_MAX <= CHUNK_PN_REACH,
	       "a number in flight is told by its low bits");
_Static_assert((WIRE_CHUNK & 1) == 0 && WIRE_ACK == WIRE_CHUNK + 1, "told by one bit");

#endif
