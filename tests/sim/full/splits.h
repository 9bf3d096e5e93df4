/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitions of whole nodes, two against the others: nobody crosses, or only what goes one way
 * does. What must hold all the while: who deleted an object and was answered has deleted it for all
 * on his side, and a while after the end for all others; and then all nodes see each other again.
 */
#ifndef SARISSA_TESTS_SIM_FULL_SPLITS_H
#define SARISSA_TESTS_SIM_FULL_SPLITS_H

#include "full.h"

/* After a partition begins or ends, all is settled in so long. */
#define SPLITS_SETTLE_NS (3 * WORLD_S)

enum { SPLITS_NODES = 5, SPLITS_NODES_MAX = 16, SPLITS_NAMES = 8 };

struct splits {
	struct full_group *g;
	uint64_t changed_ns, until_ns;
	bool split;
	uint32_t count;
	struct splits_tombstone { /* by who has deleted it: the last time */
		uint64_t generation, asked_ns, answered_ns;
	} tombstone[SPLITS_NAMES][SPLITS_NODES_MAX];
};

void splits_open(struct splits *s, struct full_group *g);
/* Begins one that lasts that long. */
void splits_begin(struct splits *s, struct prng *draw, uint64_t for_ns);
void splits_heal(struct splits *s);
/* A client of the node was told that the object is deleted. */
void splits_deleted(struct splits *s, uint32_t node, uint32_t name, const struct object_id *id,
		    uint64_t asked_ns);
/* A client of the node has got that generation. */
void splits_got(const struct splits *s, uint32_t node, uint32_t name, uint64_t generation,
		uint64_t asked_ns);
/* Called every so often: what is seen, and what the stores hold. */
void splits_judge(const struct splits *s);

#endif
