/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of objects that each user has put on this node, for --quota: of present objects, also in
 * files, and also of an earlier control (struct object_creator). An object counts as OWNED_LEAST at
 * least. Targets of reduces and fetched copies count for no user.
 */
#ifndef SARISSA_CONTROL_CORE_SESSION_OWNED_H
#define SARISSA_CONTROL_CORE_SESSION_OWNED_H

#include "core/base/idmap.h"

enum {
	OWNERS_MAX = 4096,  /* users that have objects */
	OWNED_LEAST = 4096, /* what an object counts at least: also an empty one takes a place */
};

struct control;
struct control_config;
struct object;
struct text;

struct owner {
	struct idmap_node by_number; /* as the kernel knows it */
	uint64_t bytes;
	uint32_t objects;
};

struct owners {
	struct pool pool;
	struct idmap by_number;
};

void owned_carve(struct owners *o, struct arena *a);
/* Whether the user may put so many more bytes: 0, or -EDQUOT and the text. */
int owned_may(struct control *c, uint32_t user, uint64_t bytes, struct text *why);
/* Counts the object in slot for the user. */
void owned_charge(struct control *c, uint32_t slot, uint32_t user);
/* The object ends: counts it no more. */
void owned_discharge(struct control *c, struct object *o);
/* Counts the objects of the table, from zero. */
void owned_attach(struct control *c);

#endif
