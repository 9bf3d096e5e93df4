/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stage of the forgery tests: a peer and a victim that are connected and quiet, with one idle
 * edge in each direction; a stranger; and an address where nobody is.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_STAGE_H
#define SARISSA_TESTS_SIM_MODEL_STAGE_H

#include "forge.h"
#include "testkit.h"

#define RTT_NS	  (100 * WORLD_US)
#define WITHIN_NS (60 * WORLD_S)

enum { PEER = 0, VICTIM = 1, STRANGER = 2, ABSENT = 3, NODES = 4 };

struct stage {
	struct world w;
	uint64_t last_pn;      /* newest packet PEER -> VICTIM */
	struct forge captured; /* the bytes of the newest of type PAYLOAD */
	uint32_t sink, in;     /* an IN edge of the victim, nothing sent yet */
	uint32_t source, out;  /* an OUT edge of the victim, waiting for its producer */
	uint32_t peer_in;      /* where that one goes */
	uint32_t stale;	       /* a stream of an earlier generation */
};

#define EXPECT(name) (offsetof(struct counters, name) / sizeof(uint64_t))

struct node *victim(struct stage *s);
void stage_open(struct stage *s, const struct node_options *o);
/* After all that the real thing must still work. */
void stage_close(struct stage *s);
/* The check of PEER's packets to VICTIM. */
uint16_t stage_check(struct stage *s);
/* The start of a packet that PEER could send next; the same with a frame; a CHUNK packet; a HELLO.
 */
void stage_payload(struct stage *s, struct forge *f);
void stage_data(struct stage *s, struct forge *f, uint32_t stream, uint32_t chunk, uint32_t bytes);
void stage_chunk(struct stage *s, struct forge *f, uint32_t stream, uint32_t chunk, uint32_t bytes);
void stage_message(struct stage *s, struct forge *f, uint32_t id, uint32_t fragment, uint32_t total,
		   uint32_t bytes);
void stage_hello(struct stage *s, struct forge *f, uint32_t type, uint32_t to_conn);
/* A HELLO whose cookie is not one of ours. */
void stage_bad_cookie(struct stage *s, struct forge *f);
/* Between the two, only this counter has moved (and those that answers and timers move). */
void stage_expect_only(const char *name, const struct counters *before,
		       const struct counters *after, size_t counter, uint64_t times);

#endif
