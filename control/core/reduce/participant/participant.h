/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's part in a reduce: building objects from parts. A part is a range of an object of this
 * node or another one; all parts of an object that is reduced cover the whole of it. The object is
 * built chunk by chunk as the parts arrive, and may be streamed on meanwhile.
 *
 * This side knows no tree: the coordinator (reduce/coordinator/coordinator.h), the directory's node
 * for the target or the one that has asked for it, says what to build from what, hears when parts
 * and objects are complete or cannot be had, and decides. An object's generation is bound to its
 * parts once and for all; with other parts it is another generation, built from nothing. So whoever
 * reads a generation reads one set of contributions, in every byte.
 *
 * Hidden objects (all but the target) are found by those alone who know their id and generation;
 * they stay until the coordinator releases them or is not heard of for coordinator_lost_ns.
 *
 * The target's last chunk is held: when all of it is in the coordinator hears DONE, but nobody can
 * read it to its end before FINISH says that this generation is the result
 * (reduce/coordinator/commit.c).
 */
#ifndef SARISSA_CONTROL_CORE_PARTICIPANT_PARTICIPANT_H
#define SARISSA_CONTROL_CORE_PARTICIPANT_PARTICIPANT_H

#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "input.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

struct call;
struct control;
struct link;
struct node;
struct stage;

struct participant {
	struct idmap_node by_id;
	struct list active;
	struct list parts;
	struct list pulls; /* struct pull.link: who waits for all of it */
	struct timer lease, ask;
	struct call *call; /* COMBINED */
	struct node *coordinator;
	struct object_id target;
	struct buffer_sum sum;
	uint64_t reduce, generation;
	uint64_t size;
	uint64_t heard_ns;   /* when the coordinator asked for it last, or knew of it */
	uint64_t refused_ns; /* when the directory knew nobody first; 0: it does */
	uint64_t flows_ns;   /* when the first part that shows the link was asked for; 0: none */
	uint32_t slot;
	uint32_t chunk_bytes;
	uint32_t count;	   /* parts so far */
	uint32_t need, in; /* values: of a sum parts, else chunks; so far */
	int32_t lost;	   /* -errno: the object itself cannot be built */
	bool hidden;
	bool delegated;	  /* the coordinator is the node that has asked for the reduce */
	bool values;	  /* the parts come in messages, and are added up here */
	bool pushed;	  /* unasked: a part is from this node, so the others' know of it */
	bool done, acked; /* all of it is in; the coordinator knows of that, or of lost */
	bool withheld;	  /* its last chunk is for nobody yet */
	bool asks;   /* hidden, and begun with nothing again: whether anybody needs it is asked */
	bool sealed; /* a target that is done and not held: an object as any other */
};

struct participants {
	struct pool pool, parts;
	struct idmap by_id;
	struct list active;
};

struct control_config;
void participants_carve(struct participants *cs, struct arena *a,
			const struct control_config *config);

/* COMBINE and RELEASE from a coordinator. */
void participant_request(struct control *c, struct node *n, const struct message *m);
void participant_release(struct control *c, struct node *n, const struct message *m);
/* FINISH from the coordinator, or from the node that has asked for the reduce. */
void participant_finish(struct control *c, struct node *n, const struct message *m);

/* BUFFER_DONE. */
void participant_done(struct control *c, struct participant *k);
/* The object is taken away; the worker has lost its buffer. */
void participant_killed(struct control *c, struct participant *k);
void participant_stage_lost(struct control *c, struct participant *k);
/* A node has become reachable, or a connection to it has come up. */
void participant_node_up(struct control *c, struct node *n);
/* No message reaches the node any more. */
void participant_node_down(struct control *c, const struct node *n);
/* Whether some part waits for this link. */
bool participant_wants(struct control *c, const struct link *l);
/* Tells the coordinator what it does not know yet. */
void participant_report(struct control *c, struct participant *k);
/* The store is gone, and what was built in it. */
void participant_reset(struct control *c);
/* What is built here under that id, or NULL. */
struct participant *participant_of(struct control *c, const struct object_id *id);
/* The stage that adds up, made if need be; NULL when there is no room for it now. */
struct stage *participant_stage(struct control *c, struct participant *k);
uint32_t participant_chunks(const struct participant *k);
/* Gives up what is built; a target that is complete is an object as any other by now, unless its
 * own coordinator says otherwise (anew). */
void participant_give_up(struct control *c, struct participant *k, bool restart, const char *why);

/* lease.c */
/* Whether the coordinator waits for the choice, and repairs nothing: then it is not named any more,
 * but is asked now and then whether it still knows of it. */
bool participant_chosen(const struct participant *k);
/* Its coordinator wants it. */
void participant_heard(struct control *c, struct participant *k);
/* It stays for a while, or as long as its coordinator answers. */
void participant_wait(struct control *c, struct participant *k);
/* Nobody coordinates it whom the directory knows (-ESTALE); or its reduce has begun again. */
void participant_refused(struct control *c, struct participant *k, int32_t status);
/* Somebody coordinates it whom the directory knows. */
void participant_known(struct participant *k);
/* The members have changed: hidden objects of reduces that are another's to make are given up, so
 * that they do not take from its link what those need that are made for it. */
void participant_keep(struct control *c);

#endif
