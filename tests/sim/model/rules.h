/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact loss masks: rules that pick packets by what they carry. A rule skips its first matches and
 * then strikes a given number of times.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_RULES_H
#define SARISSA_TESTS_SIM_MODEL_RULES_H

#include "network.h"

enum { RULES_MAX = 16, RULE_ANY = UINT32_MAX };

struct rule {
	uint32_t from, to; /* endpoint or RULE_ANY */
	uint32_t type;	   /* enum wire_type or RULE_ANY; WIRE_PAYLOAD also means CHUNK and ACK */
	uint32_t frame;	   /* enum wire_frame that the packet must hold, or RULE_ANY */
	uint32_t chunk;	   /* of a DATA frame, or RULE_ANY */
	uint64_t skip;	   /* matches that pass first */
	uint64_t strikes;  /* how many are struck then */
	enum network_verdict verdict;
	bool (*armed)(void *context); /* NULL: always */
	void *context;
	uint64_t matched, struck;
};

struct rules {
	struct rule rule[RULES_MAX];
	uint32_t count;
};

/* A rule that drops the first matching packet; fields of it may be changed by the caller. */
struct rule *rules_add(struct rules *r, uint32_t from, uint32_t type, uint32_t frame);

/* For network.rule, with the rules as context. */
enum network_verdict rules_apply(void *context, const struct network_packet *p);

/* The first frame of this type in a payload packet: its bytes, or NULL. Stream and chunk of a CHUNK
 * packet are found as those of a DATA frame; of a short ack, that there is one. */
const uint8_t *rules_frame(const uint8_t *packet, uint16_t length, uint32_t frame);

#endif
