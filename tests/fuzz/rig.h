/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What both engine fuzzers stand on: two engines that are connected, with edges running and
 * messages under way in both directions. One of them is the victim of the input. The state behind
 * the set-up is kept, and every input starts from it.
 *
 * Inputs are read as a stream of small choices (bytes); when it ends, choices are zero.
 */
#ifndef SARISSA_TESTS_FUZZ_RIG_H
#define SARISSA_TESTS_FUZZ_RIG_H

#include "engine.h"
#include "internal/ipc.h"
#include "model/memory.h"
#include "wire/wire_field.h"

enum { RIG_CHUNK = 1408, RIG_SINK_CHUNKS = 70, RIG_SOURCE_CHUNKS = 66, RIG_PACKET_MAX = 1472 };

struct rig_input {
	const uint8_t *data;
	size_t left;
};

/* One engine with its memory. */
struct rig_side {
	struct engine_config config;
	struct engine *engine;
	struct counters counters;
	struct memory engine_memory, store, table, msg_tx, msg_rx;
	uint8_t *kept[3]; /* copies of the first three */
	struct counters kept_counters;
	uint64_t next_pn; /* highest packet number seen from this side, + 1 */
	uint32_t conn;
};

struct rig_packet {
	uint8_t bytes[RIG_PACKET_MAX];
	uint16_t length;
};

struct rig {
	struct rig_side victim, peer;
	uint64_t now_ns, kept_ns;
	struct rig_packet last[16]; /* newest packets of the peer, for replays */
	uint32_t last_count;
	uint64_t sink_offset, sink_bitmap, source_offset; /* in the victim's store */
	uint32_t in, out, sink, source;			  /* the victim's handles */
};

/* Builds it once; the same object every time. */
struct rig *rig_get(void);
/* Back to the state behind the set-up. */
void rig_restore(struct rig *r);

uint8_t rig_byte(struct rig_input *in);
uint16_t rig_u16(struct rig_input *in);
uint32_t rig_u32(struct rig_input *in);
uint64_t rig_u64(struct rig_input *in);

/* Gives the victim a packet in memory of exactly its size. */
void rig_receive(struct rig *r, const uint8_t *bytes, uint16_t length, const struct net_addr *from,
		 uint8_t ecn);
/* Takes all packets that a side wants to send and checks what they point to; deliver: they reach
 * the other side. */
void rig_transmit(struct rig *r, struct rig_side *from, bool deliver);
/* Takes all events of a side; messages are given back when free_messages is set. */
void rig_events(struct rig *r, struct rig_side *side, bool free_messages);
/* Time passes. */
void rig_advance(struct rig *r, uint64_t ns);

/* Everything that must hold at the end of an input; ends the process when it does not. */
void rig_judge(struct rig *r, bool own_books);

#endif
