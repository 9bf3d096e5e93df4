/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The history of all operations of the simulated clients, and what must be true of it whatever
 * strikes the cluster:
 *
 * - Two puts of one id never both succeed unless, between them, the object was deleted, its copies
 * were lost with their stores, or the members took every node that held one, or the one that puts,
 * for dead.
 * - A get never returns a generation that a delete or a newer put had ended before the get began,
 * unless the members took the reader or the other node for dead meanwhile and it has not been
 * back for some time, or both nodes that remembered the delete have lost their stores within a
 * second.
 * - At rest, an object of which some store has a complete copy is found at every node. So is the
 * last one that was put and that nobody has deleted or lost, unless a later generation had been
 * deleted on another side by then.
 * - While nothing is wrong in the cluster, every refusal follows from the history: no EAGAIN, no
 * ENODATA, no request without an answer, "no such object" and "exists already" only where that was
 * true at some moment of the call.
 *
 * clients.c tells what it asks and hears; the versions themselves are its struct client_truth.
 */
#ifndef SARISSA_TESTS_SIM_FULL_HISTORY_H
#define SARISSA_TESTS_SIM_FULL_HISTORY_H

#include "splits.h"

struct client;
struct client_truth;
struct clients;

enum { HISTORY_REMOVALS = 4096, HISTORY_NONE = UINT32_MAX };

/* One DELETE. Without a definite answer it may take effect some time after its end. */
struct history_removal {
	uint32_t name, node;
	uint64_t asked_ns, ended_ns; /* ended UINT64_MAX: under way */
	uint64_t held;		     /* newest complete generation when it was asked; 0: none */
	bool deleted, uncertain;
	bool joint;	  /* all nodes reached each other */
	uint32_t unnoted; /* bit per node: the directory had no room to note its copy */
};

struct history {
	struct history_removal removal[HISTORY_REMOVALS];
	uint32_t removals;
	bool trouble;	       /* packets may be lost: never calm */
	bool tight;	       /* tables that are often full: any refusal is right */
	uint64_t disturbed_ns; /* a process or cable was last missing; 0: never */
	uint64_t cut_ns;       /* a cable or partition last kept nodes apart; 0: never */
	uint64_t lost_ns;      /* a store was last lost; 0: never */
	uint64_t beyond_ns;    /* copies were last given up for forgotten deletes; 0: never */
	uint64_t owners_ns;    /* a part of the directory last had another owner; 0: never */
	uint64_t gap_ns[SPLITS_NODES_MAX];    /* a member last took this node for dead */
	bool unreached[SPLITS_NODES_MAX];     /* and no other node has reached it since */
	uint64_t deaths_ns[SPLITS_NODES_MAX]; /* by core: the newest death that it knows */
	uint32_t gone[SPLITS_NODES_MAX];      /* by core: whom it takes for dead; no core: all */
	/* by two nodes: when these last were not the same for both */
	uint64_t differed_ns[SPLITS_NODES_MAX][SPLITS_NODES_MAX];
	uint64_t beyond[SPLITS_NODES_MAX]; /* by core: how many it has refused so */
	uint64_t refused_ns[SPLITS_NAMES]; /* a put failed that may have kept others away */
};

/* Also judges what happens while an owner of a fixed list has begun again and has not heard of all
 * objects yet. */
extern bool history_strict;

/* Looks at the cluster. Called after every step, and whenever something was done to it. */
void history_look(struct clients *c);
/* The store of a node is about to be wiped. */
void history_store_lost(struct clients *c, uint32_t node);

/* A client asks for a delete; its index. It has the answer, or (status 0, no answer) no session any
 * more. */
uint32_t history_delete(struct clients *c, const struct client *k);
void history_delete_ended(struct clients *c, uint32_t removal, bool answered, int32_t status);
/* The cluster has been healthy for long: two nodes remember each delete. */
void history_rest(const struct clients *c);
/* A put or create of this version was answered with success. */
void history_created(struct clients *c, struct client_truth *t);
/* A client was told that this version is complete. */
void history_sealed(struct clients *c, struct client_truth *t);
/* A get has brought all of its object. */
void history_got(struct clients *c, const struct client *k);
/* Any request was answered with an error. */
void history_refused(struct clients *c, const struct client *k, const char *what, int32_t status,
		     const char *text);

/* Whether a delete of the name may have taken effect in that time. */
bool history_deleted(const struct clients *c, uint32_t name, uint64_t from, uint64_t to);
/* Whether holders of this version may have given it up for deletes that are forgotten. */
bool history_given_up(const struct clients *c, const struct client_truth *t);
/* The newest generation of which some store has a complete copy, or 0. */
uint64_t history_held(const struct clients *c, uint32_t name);

/* All of it on stderr. */
void history_print(const struct clients *c);

#endif
