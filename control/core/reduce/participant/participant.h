/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A participant of a reduce: builds one object from parts (input.h), as COMBINE of the coordinator
 * says, reports progress with COMBINED, and may stream the object on while it grows. Called by the
 * front door, the flow and the store through wiring.c. It must not know the tree, the set of
 * sources, nor the requester of the reduce.
 *
 * A generation is bound to its parts: other parts make another generation, built from nothing. So
 * each generation has one set of contributions, in every byte. Objects but the target are hidden:
 * only nodes that know id and generation find them. They live until RELEASE, or until the
 * coordinator has been silent for coordinator_lost_ns (lease.c). The last chunk of the target is
 * withheld from all readers until FINISH (reduce/coordinator/commit.c).
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_PARTICIPANT_H
#define SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_PARTICIPANT_H

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
	struct list pulls; /* struct pull.link: PULLs that wait for the whole object */
	struct timer lease, ask;
	struct call *call; /* COMBINED */
	struct node *coordinator;
	struct object_id target;
	struct buffer_sum sum;
	uint64_t reduce, generation;
	uint64_t size;
	uint64_t heard_ns;   /* last sign of life of the coordinator */
	uint64_t refused_ns; /* first -ESTALE of the shard owner; 0: none */
	uint64_t flows_ns;   /* first request of a part from another node; 0: none */
	uint32_t slot;	     /* of the object table */
	uint32_t chunk_bytes;
	uint32_t count; /* parts known so far */
	uint32_t need;	/* parts (of a sum of values), or chunks, in all */
	uint32_t in;	/* of `need`, so far */
	int32_t lost;	/* -errno: the object cannot be built */
	bool hidden;	/* not the target */
	bool values;	/* parts come in messages, and are added up here */
	bool pushed;	/* other nodes push their parts: one part is of this node */
	bool done;	/* all parts are in */
	bool acked;	/* the coordinator has acknowledged `done` or `lost` */
	bool withheld;	/* no reader gets the last chunk yet */
	bool asks;	/* hidden, and restarted from nothing: asks whether it is needed */
	bool sealed;	/* a target that is done and not withheld: an object like any other */
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
/* FINISH from the coordinator, or from the requester of the reduce. */
void participant_finish(struct control *c, struct node *n, const struct message *m);

/* BUFFER_DONE. */
void participant_done(struct control *c, struct participant *k);
/* The object is killed; the worker has lost its buffer. */
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
/* The store is gone, and all that was built in it. */
void participant_reset(struct control *c);
/* The object with that id that is built here, or NULL. */
struct participant *participant_of(struct control *c, const struct object_id *id);
/* The stage that adds up, made if need be; NULL when there is no room for it now. */
struct stage *participant_stage(struct control *c, struct participant *k);
uint32_t participant_chunks(const struct participant *k);
/* Gives the object up. A complete target stays, as an object like any other, unless its own
 * coordinator restarts it. */
void participant_give_up(struct control *c, struct participant *k, bool restart, const char *why);

/* lease.c */
/* Whether the object is done and withheld. Its coordinator sends no COMBINE any more, and is asked
 * now and then whether it still knows it. */
bool participant_chosen(const struct participant *k);
/* A sign of life of its coordinator. */
void participant_heard(struct control *c, struct participant *k);
/* Renews the lease. */
void participant_wait(struct control *c, struct participant *k);
/* The shard owner knows no coordinator of the object (-ESTALE), or its reduce was restarted. */
void participant_refused(struct control *c, struct participant *k, int32_t status);
/* The shard owner knows a coordinator of the object. */
void participant_known(struct participant *k);
/* The members have changed: gives hidden objects up whose reduce has a new coordinator. They would
 * compete for the link with the objects of the new one. */
void participant_keep(struct control *c);

#endif
