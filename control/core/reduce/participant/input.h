/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One part of an object that a participant builds (participant.h): gets it, from beginning to end.
 * Called by participant.c and by the flow through wiring.c. It must not know what other parts do.
 * There are three ways:
 *
 *   part_stream  another node streams it
 *   part_local   an object of this node, which the building worker reads
 *   part_value   bytes in a message, which control adds up
 *
 *   state    meaning                       next
 *   LINK     is about to be asked for      REQUEST, LOCAL, DONE, LOST
 *   REQUEST  the other node was asked      STREAM, DONE, LINK, LOST
 *   STREAM   chunks arrive                 DONE, LINK (edge failed), LOST
 *   LOCAL    the worker reads it           DONE, LINK (stage gone), LOST
 *   DONE     all of it is in
 *   LOST     cannot be had: the coordinator is told, and repairs
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_INPUT_H
#define SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_INPUT_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/flow/state.h"
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

/* The functions of one way. */
struct part_way {
	/* In LINK: begins to get it, or calls input_later (not now) or input_lost (never). Is
	 * called again, for instance when a node has come up. */
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
	struct node *before;  /* the node that it was moved from; or NULL */
	struct list edges;    /* struct edge.of_owner */
	struct stage *mirror; /* LOCAL: of the source, ours to drop */
	struct object_id id;
	uint64_t generation;
	uint64_t size;	  /* of that object */
	uint64_t lost_ns; /* since when its node has sent nothing; 0: it sends */
	uint32_t first, count, to;
	uint32_t index;	 /* among the parts */
	uint32_t lanes;	 /* lanes of the object at its node; 0: not known */
	uint32_t stripe; /* segment whose root its node is (values) */
	struct watch watch;
	uint32_t wanted; /* chunks of the last request */
	uint32_t shown;	 /* of them, arrived since participant.flows_ns; 0: not known */
	int32_t status;	 /* LOST */
	uint16_t attempts;
	uint8_t state;
	bool acked;  /* the coordinator has acknowledged DONE or LOST */
	bool silent; /* to report: its node does not answer */
};

struct part *input_add(struct control *c, struct participant *k, const struct message_part *from);
void input_start(struct control *c, struct part *p);
/* Gets the missing chunks from another node, unless most are here and the rest arrives. */
void input_move(struct control *c, struct part *p, const struct message_part *from);
/* Frees the part; the stage that it fed goes as well. */
void input_free(struct control *c, struct part *p);
/* Restarts it with an empty stage. */
void input_restart(struct control *c, struct part *p);
/* IN_DONE of one of its edges; EDGE_FAILED or refused. */
void input_brought(struct control *c, struct part *p);
void input_edge_failed(struct control *c, struct part *p, struct edge *e);
/* Ends it: it is in, or the object is complete. Nothing is reported. */
void input_end(struct control *c, struct part *p);
/* LOCAL: its source is deleted; the worker has lost the mirror. */
void input_local_source_killed(struct control *c, struct part *p);
void input_local_mirror_lost(struct control *c, struct part *p);
/* Values: bytes of a PUSH or a PULL_REPLY. False: they are not of this part, or it is in. */
bool input_value_accept(struct control *c, struct part *p, const struct message_pull *m);

/* ---- for the ways ---------------------------------------------------------------------------- */

void input_timer(struct control *c, struct part *p, uint64_t delay_ns);
/* Retries after a pause that grows; LOST when it has taken too long. */
void input_later(struct control *c, struct part *p, int32_t status);
void input_lost(struct control *c, struct part *p, int32_t status);
/* All of it is in. */
void input_done(struct control *c, struct part *p);
/* Cancels its request to the other node, if there is one. */
void input_unask(struct control *c, struct part *p);
/* Ends its streams; the chunks that have arrived stay. */
void input_let_go(struct control *c, struct part *p);
/* Bitmap of its chunks that have arrived, counted as chunks of the built object; NULL: none. */
const uint64_t *input_map(struct control *c, const struct part *p);
uint32_t input_missing(struct control *c, const struct part *p);
/* The range of the built object that it fills, for substreams from a node with so many workers. */
struct substream_range input_range(const struct control *c, const struct part *p, uint32_t lanes,
				   uint32_t workers);

#endif
