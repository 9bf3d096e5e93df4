/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One contribution to an object that is combined (participant.h): where it comes from, and that all
 * of it comes. There are three ways:
 *
 *   part_stream  chunks of an object of another node, which control there is asked to send
 *   part_local   an object of this node, read by the worker that builds
 *   part_value   bytes in a message, which are added up here
 *
 *   LINK     is about to be asked for                  -> REQUEST, LOCAL, DONE, or LOST
 *   REQUEST  the other node has been asked             -> STREAM, DONE, LINK, or LOST
 *   STREAM   chunks arrive                             -> DONE, LINK (edge failed), or LOST
 *   LOCAL    an object of this node contributes        -> DONE, LINK (stage gone), or LOST
 *   DONE     all of it is in
 *   LOST     it cannot be had: the coordinator is told and replaces the object
 */
#ifndef SARISSA_CONTROL_CORE_PARTICIPANT_INPUT_H
#define SARISSA_CONTROL_CORE_PARTICIPANT_INPUT_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/flow/room.h"
#include "core/base/timers.h"

struct call;
struct participant;
struct control;
struct edge;
struct node;
struct part;
struct stage;

enum part_state {
	PART_LINK,
	PART_REQUEST,
	PART_STREAM,
	PART_LOCAL,
	PART_DONE,
	PART_LOST,
};

/* What is its own of each way; all else is alike. */
struct part_way {
	/* In LINK: sets out to get it. What is not to be had now is part_later's, what never will
	 * be part_lost's. May be called again while it waits, as when a node has come up. */
	void (*start)(struct control *c, struct part *p);
	/* Its timer, in LINK, REQUEST and STREAM. */
	void (*fire)(struct control *c, struct part *p);
};

extern const struct part_way part_stream, part_local, part_value;

struct part {
	struct list of_participant;
	struct participant *participant;
	const struct part_way *way;
	struct timer timer;
	struct call *call;
	struct node *node;
	struct node *before;  /* it was to come from until it moved; or NULL */
	struct list edges;    /* struct edge.of_owner */
	struct stage *mirror; /* LOCAL: of the source, ours to drop */
	struct object_id id;
	uint64_t generation;
	uint64_t size;	  /* of that object */
	uint64_t lost_ns; /* since when nothing can be had from it; 0: something came */
	uint32_t first, count, to;
	uint32_t index;	 /* among the parts */
	uint32_t lanes;	 /* into which its node has cut it, as far as we know; 0: not known */
	uint32_t stripe; /* whose root its node is (values) */
	uint32_t missing;
	uint32_t wanted; /* chunks that its node was last asked for */
	uint32_t shown;	 /* of them, that came since combine.flows_ns; 0: not known when */
	int32_t status;	 /* LOST */
	uint16_t attempts;
	uint8_t state;
	bool acked;  /* the coordinator knows of DONE or LOST */
	bool silent; /* the coordinator is to hear that its node does not answer */
};

struct part *part_add(struct control *c, struct participant *k, const struct message_part *from);
void part_start(struct control *c, struct part *p);
/* The chunks that are not here are to come from elsewhere; unless most are, and the rest comes. */
void part_move(struct control *c, struct part *p, const struct message_part *from);
/* Lets go of everything; the stage that it fed goes as well. */
void part_free(struct control *c, struct part *p);
/* The same, to begin anew with an empty stage. */
void part_restart(struct control *c, struct part *p);
/* IN_DONE of one of its edges; EDGE_FAILED or refused. */
void part_brought(struct control *c, struct part *p);
void part_edge_failed(struct control *c, struct part *p, struct edge *e);
/* It is in, or the object is complete: nothing more is taken, and nobody has to hear of it. */
void part_end(struct control *c, struct part *p);
/* LOCAL: its source is taken away; the worker has lost the mirror. */
void part_local_source_killed(struct control *c, struct part *p);
void part_local_mirror_lost(struct control *c, struct part *p);
/* Values: those bytes are here. False when they are not those of the part, or it is in. */
bool part_value_accept(struct control *c, struct part *p, const struct message_pull *m);

/* For the ways. */
void part_timer(struct control *c, struct part *p, uint64_t delay_ns);
/* Not now: soon, then later, until it has taken too long. */
void part_later(struct control *c, struct part *p, int32_t status);
void part_lost(struct control *c, struct part *p, int32_t status);
/* All of it is in. */
void part_done(struct control *c, struct part *p);
/* Forgets its question to the other node, if one is out. */
void part_unask(struct control *c, struct part *p);
/* Lets go of its streams; what they have brought stays. */
void part_let_go(struct control *c, struct part *p);
/* Which chunks of the whole are here of it; NULL: none. */
const uint64_t *part_map(struct control *c, const struct part *p);
uint32_t part_missing(struct control *c, const struct part *p);
/* What is built, and its object on a node with so many workers. */
struct substream_range part_range(const struct control *c, const struct part *p, uint32_t lanes,
				  uint32_t workers);

#endif
