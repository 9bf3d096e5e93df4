/* SPDX-License-Identifier: BSD-3-Clause */
/* An object table and its private part in one piece of memory, for the tests that have a core. */
#ifndef SARISSA_TESTS_TABLE_H
#define SARISSA_TESTS_TABLE_H

#include "internal/object_private.h"

/* Random enough, and the same in each run. */
static const uint64_t table_seed[2] = {0x243f6a8885a308d3ull, 0x13198a2e03707344ull};

static inline size_t table_bytes(uint32_t slots)
{
	return object_table_bytes(slots) + object_private_bytes(slots);
}

static inline struct object_private *table_private(struct object_table *t)
{
	return (struct object_private *)(void *)((uint8_t *)t + object_table_bytes(t->slots));
}

/* In zeroed memory of table_bytes(slots). */
static inline void table_begin(struct object_table *t, uint32_t slots, uint64_t store_bytes,
			       uint64_t incarnation)
{
	object_table_begin(t, slots, store_bytes, incarnation, table_seed);
	object_private_begin(table_private(t), t);
}

#endif
