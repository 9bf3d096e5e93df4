/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of dataplane/core share: one engine on its own memory and clock (a rig), peers
 * that exist only as the packets we forge for them, and assertions about counters and memory.
 *
 * Everything is built from wire.h alone, so that a test says what a stranger could send.
 */
#ifndef SARISSA_TESTS_CORE_TEST_H
#define SARISSA_TESTS_CORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "internal/ipc.h"
#include "ack.h"
#include "combine.h"
#include "congestion.h"
#include "cookie.h"
#include "event.h"
#include "local_edge.h"
#include "loss.h"
#include "msg.h"
#include "out_edge.h"
#include "path_mtu.h"
#include "peer.h"
#include "sent.h"
#include "transmit.h"
#include "wheel.h"

enum {
	RIG_CHUNK = 1408,
	RIG_BUFFER_BYTES = 1 << 20, /* room of one buffer in the store */
	RIG_BUFFERS = 8,
	RIG_BITMAP_BYTES = 4096,
	RIG_BITMAPS = 2 * RIG_BUFFERS + 16, /* of buffers, then of OUT edges */
	RIG_SLOTS = 16,			    /* of the object table */
	RIG_TX_BYTES = 4 * MSG_BYTES_MAX,
	RIG_RX_SLOTS = 64,
};

struct rig {
	struct engine_config config;
	struct counters counters;
	struct counters before; /* as last looked at */
	struct engine *e;
	uint8_t *memory, *frozen;
	size_t bytes;
	uint64_t now_ns;
};

struct packet {
	uint8_t bytes[9216];
	uint32_t length;
	uint32_t state; /* of the CRC of a CHUNK or ACK packet that we forge */
	uint64_t pn;	/* of one that we took */
	uint8_t ecn;
	struct net_addr to;
};

struct peer {
	struct net_addr addr;
	uint32_t id;   /* what it wants to be called by */
	uint32_t conn; /* what we want to be called by */
	uint64_t incarnation;
	uint64_t pn; /* of its next packet */
	struct conn *c;
};

/* A rig with small tables; tweak may change the configuration first. */
struct rig *rig_new(void (*tweak)(struct engine_config *f));
void rig_free(struct rig *r);

/* cmocka's: *state is a fresh default rig. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define test_rig(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

/* ---- packets ------------------------------------------------------------------------------ */

void forge_begin(struct packet *p, uint32_t type, uint16_t check, uint32_t conn, uint64_t pn);
uint8_t *forge_add(struct packet *p, uint32_t bytes); /* zeroed room at the end */
void forge_seal(struct packet *p);
void forge_frame(struct packet *p, uint8_t type, uint32_t bytes);
void forge_data(struct packet *p, uint32_t stream, uint32_t chunk, uint32_t bytes, uint8_t fill);
/* A part of a chunk: so many bytes from offset on. */
void forge_part(struct packet *p, uint32_t stream, uint32_t chunk, uint32_t offset, uint32_t bytes,
		uint8_t fill);
void forge_ack(struct packet *p, uint64_t largest, uint32_t words, const uint64_t *bitmap);
void forge_grant(struct packet *p, uint32_t stream, uint32_t chunks);
void forge_msg(struct packet *p, uint32_t id, uint32_t fragment, uint32_t total, uint8_t fill);
void forge_reset_stream(struct packet *p, uint32_t stream);
void forge_ecn(struct packet *p, uint32_t count);
/* HELLO, COOKIE or ACCEPT body; returns where it begins. */
uint8_t *forge_hello(struct packet *p, uint32_t type, const struct peer *peer, uint32_t pad_to);

/* The first frame of a type in a packet of ours, or NULL. A CHUNK packet is taken for a DATA frame:
 * stream and chunk lie where that has them. A short ack is found as such, not as an ACK frame. */
const uint8_t *packet_frame(const struct packet *p, uint8_t type);

/* ---- the engine --------------------------------------------------------------------------- */

/* Gives a packet that is sealed already, from this address. */
void rig_receive(struct rig *r, const struct packet *p, const struct net_addr *from);
/* The next packet that leaves now, in one piece and sealed, or false. */
bool rig_take(struct rig *r, struct packet *p);
/* Throws away what leaves now; how many packets. */
uint32_t rig_drain(struct rig *r);
/* Lets time pass, ticking at every timeout on the way. */
void rig_pass(struct rig *r, uint64_t ns);
void rig_command(struct rig *r, const struct record *command); /* asserts that it is taken */
/* Gives a record that must be refused for this reason and change nothing. */
void rig_refuse(struct rig *r, const struct record *command, enum reason why);
/* The same, of `bad`: of `good` with this changed. */
#define REFUSE_RECORD(why, ...)             \
	do {                                \
		bad = good;                 \
		__VA_ARGS__;                \
		rig_refuse(r, &bad, (why)); \
	} while (0)
bool rig_event(struct rig *r, struct record *event);
/* The next event must be this one. */
struct record rig_expect(struct rig *r, enum event_op op);
void rig_silent(struct rig *r); /* asserts that there is no event; */

/* Exactly these drop counters moved since the last look: name, by how much; NULL ends. */
void rig_drops(struct rig *r, const char *name, ...);

/* Remembers the engine's memory; rig_same asserts that nothing but the time has changed. */
void rig_freeze(struct rig *r);
void rig_same(struct rig *r);
/* Each flipped bit of the packet makes its checksum wrong, and it changes nothing. */
void rig_sees_flips(struct rig *r, struct packet *p, const struct net_addr *from);

/* ---- peers -------------------------------------------------------------------------------- */

struct peer peer_new(uint32_t n);
/* A whole handshake that the peer begins; leaves no packets or events behind. */
struct peer rig_connect(struct rig *r, uint32_t n);
/* A packet of the peer: begin, add frames, send (sealed here). */
void peer_begin(struct rig *r, struct peer *peer, struct packet *p);
void peer_send(struct rig *r, const struct peer *peer, struct packet *p);
/* A CHUNK packet of the peer, to be sent as it is. */
void peer_chunk(struct rig *r, struct peer *peer, struct packet *p, uint32_t stream, uint32_t chunk,
		uint32_t bytes, uint8_t fill);
/* The same with a short ack between, and an ACK packet. */
void peer_chunk_ack(struct rig *r, struct peer *peer, struct packet *p, uint32_t stream,
		    uint32_t chunk, uint32_t bytes, uint64_t largest, uint64_t bitmap);
void peer_short(struct rig *r, struct peer *peer, struct packet *p, uint64_t largest,
		uint64_t bitmap);
/* One packet that acknowledges exactly this packet number of ours. */
void peer_ack(struct rig *r, struct peer *peer, uint64_t pn);

/* ---- records ------------------------------------------------------------------------------ */

/* A buffer of this many bytes at place index, to be filled by IN edges. */
struct record record_buffer(uint32_t index, uint64_t size);
/* The same, complete and written by a local producer up to ready_bytes. */
struct record record_source(uint32_t index, uint64_t size, uint64_t ready_bytes);
struct record record_edge(enum command_op op, uint32_t index, uint32_t buffer,
			  const struct peer *peer, uint32_t first, uint32_t chunks);
/* A buffer 0 of so many chunks, which the peer's IN edge 0 fills. */
void rig_sink(struct rig *r, const struct peer *peer, uint32_t chunks);
struct record record_drop(uint8_t flags, uint32_t id);
struct record record_advance(uint32_t buffer, uint64_t ready_bytes);
struct record record_msg(const struct peer *peer, uint64_t offset, uint32_t length);
uint64_t *rig_bitmap(struct rig *r, uint32_t index);
uint8_t *rig_data(struct rig *r, uint32_t index);

static inline uint32_t record_handle(uint32_t index)
{
	return handle_make((uint16_t)index, 7);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): seeded, the same on every run. */
static inline uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t draw_below(uint64_t *state, uint64_t bound)
{
	return draw(state) % bound;
}

#endif
