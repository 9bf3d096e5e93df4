/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The boxes of the private part of the table in which names and metadata lie (object_private.h).
 * Called by objects.c and recovery.c.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_TEXTS_H
#define SARISSA_CONTROL_CORE_STORE_TEXTS_H

#include "core/base/arena.h"
#include "internal/object_private.h"

struct control;

/* The boxes of one size. A box's number is its place + 1. */
struct text_size {
	uint32_t *next; /* of each box: the next free one; or it is taken */
	uint32_t fresh; /* boxes behind it were never used */
	uint32_t free;	/* first of a list; 0: none */
};

struct texts {
	struct text_size size[OBJECT_TEXT_SIZES];
};

void texts_carve(struct texts *t, struct arena *a, uint32_t slots);
/* All boxes are free, as in a new table. */
void texts_reset(struct control *c);
/* Writes a text into a free box. Returns what a note says of it (0: there is nothing to write). */
uint32_t texts_write(struct control *c, const char *name, const struct object_meta *meta);
/* No note names it any more. */
void texts_give(struct control *c, uint32_t text);
/* After texts_reset: what a note of an earlier control says. False: it cannot be. */
bool texts_adopt(struct control *c, uint32_t text, uint32_t meta_bytes);
/* After the last texts_adopt: the other boxes are free. */
void texts_adopted(struct control *c);

#endif
