/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of an object that this node does not have (GET_RANGES). Each request has a hidden scratch
 * object of the chunks that its ranges touch, which a participant of this node builds. Called by
 * waits.c, the front door and wiring.c. It must not know how chunks travel.
 *
 *   state    meaning                                       next
 *   LOCATE   the directory is asked for a holder           BUILD, ROOM, ended
 *   BUILD    the participant is told the holder (COMBINE)  READY; LOCATE (the holder is lost, or
 *            and brings the chunks                         another object has its id); ROOM
 *   ROOM     a pause: the store is full                    LOCATE
 *   READY    all chunks are here                           the client gets them, pinned
 */
#ifndef SARISSA_CONTROL_CORE_SESSION_EXCERPT_H
#define SARISSA_CONTROL_CORE_SESSION_EXCERPT_H

#include "core/base/arena.h"
#include "core/base/timers.h"
#include "core/message/message.h"

struct call;
struct control;
struct node;
struct text;
struct wait;

enum { EXCERPTS_MAX = 256 }; /* requests that wait for ranges of objects of other nodes */

enum excerpt_state {
	EXCERPT_LOCATE,
	EXCERPT_BUILD,
	EXCERPT_ROOM,
	EXCERPT_READY,
};

struct excerpt {
	struct wait *wait; /* NULL: it is free */
	struct timer timer;
	struct call *call; /* LOCATE, COMBINE */
	struct object_id scratch;
	uint64_t wanted;     /* the client has ranges of this generation; 0: of none */
	uint64_t generation; /* of the object that the scratch object is of; 0: there is none yet */
	uint64_t size;	     /* of that object */
	uint64_t bytes;	     /* of the scratch object */
	uint64_t room_ns;    /* since when there is no room; 0: there is */
	uint32_t chunk_bytes;
	uint32_t ranges, parts;
	uint8_t state;
	bool absent;   /* LOCATE: the directory does not know the object */
	bool gone;     /* its holder does not know it any more */
	uint32_t lost; /* LOCATE: dead node + 1 with the last complete copy; 0: it is not lost */
	struct object_range range[SESSION_RANGES_MAX];
	struct message_part part[SESSION_RANGES_MAX];
};

void excerpts_carve(struct pool *p, struct arena *a);
/* The wait ends: so does what is under way for it. */
void excerpt_end(struct control *c, struct wait *w);
/* Its time is over: the status, and the text. */
int32_t excerpt_late(struct control *c, const struct wait *w, struct text *why);
/* COMBINED. False: no excerpt is built under that id. */
bool excerpt_combined(struct control *c, struct node *n, const struct message *m);
/* Whether the call is an excerpt's, and no reduce's. */
bool excerpt_calls(const struct call *call);

#endif
