/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which slot has which object, and which are free. Control finds an object by a map of its own,
 * with a secret key; the index of the table (object_table.h) is for clients. Called by objects.c
 * and recovery.c.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_SLOTS_H
#define SARISSA_CONTROL_CORE_STORE_SLOTS_H

#include "core/base/arena.h"
#include "internal/object_table.h"

struct control;

struct slots {
	uint64_t key[2];
	uint32_t *head;	 /* slot + 1 of the first object of each chain; 0: none */
	uint32_t *chain; /* of each slot: of the next one in its chain, or of the next free one */
	uint32_t mask;	 /* of head */
	uint32_t fresh;	 /* slots from here on are free, and in no list */
	uint32_t free;	 /* slot + 1 */
	uint32_t used;
};

void slots_carve(struct slots *s, struct arena *a, uint32_t slots);
/* All slots are free, and there is no object. */
void slots_reset(struct control *c);

/* A free slot, or TABLE_SLOT_NONE. */
uint32_t slots_take(struct control *c);
void slots_give(struct control *c, uint32_t slot);

/* The object of the slot, which is in the table, can be found; can no longer be found. */
void slots_enter(struct control *c, uint32_t slot);
void slots_leave(struct control *c, uint32_t slot);

/* The table of an earlier control. First slots_keep for the objects that can be found; at last
 * slots_adopted: it sets the index right, and all other slots whose state is free can be taken. */
void slots_keep(struct control *c, uint32_t slot);
void slots_adopted(struct control *c);

#endif
