/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated clients of whole nodes: each does one thing after the other (put, in steps or whole,
 * get, hold, delete), drawn from the run's generator, and judges what it gets. What an object's
 * bytes must be follows from its name and generation, so any reader can tell; of one that is put
 * whole from a number of the put, whose generation a reader may be the first to hear of.
 */
#ifndef SARISSA_TESTS_SIM_FULL_CLIENTS_H
#define SARISSA_TESTS_SIM_FULL_CLIENTS_H

#include "history.h"
#include "splits.h"

enum {
	CLIENTS_NAMES = 6,
	CLIENTS_WIDE = 2, /* of them, where there are any */
	CLIENTS_PER_NODE = 2,
	CLIENTS_GENERATIONS = 512,
	CLIENTS_NODES_MAX = 16,
	CLIENTS_WIDE_MIN = 15 << 20, /* bytes: two stripes from 16 MiB on, three from 24 */
	CLIENTS_WIDE_MAX = 31 << 20,
};

enum client_state {
	CLIENT_GONE, /* no session */
	CLIENT_IDLE,
	CLIENT_CREATING,
	CLIENT_PUTTING,
	CLIENT_WRITING,
	CLIENT_SEALING,
	CLIENT_GETTING,
	CLIENT_WAITING,
	CLIENT_HOLDING,
	CLIENT_DELETING,
};

struct client {
	uint32_t node, session, seq, name;
	enum client_state state;
	uint64_t at_ns;	   /* when it does the next thing by itself */
	uint64_t limit_ns; /* an answer must have come; UINT64_MAX: whenever */
	uint64_t asked_ns; /* the last request but PUBLISH, SEAL and WAIT */
	uint64_t begun_ns; /* that one, or the CREATE before a SEAL */
	uint32_t removal;  /* DELETING: of the history */
	uint64_t generation, size, offset, written;
	uint64_t put; /* PUTTING: of client_truth */
	uint32_t slot, pin;
	uint32_t life; /* of the control that it talks to */
	int64_t timeout_ns;
	bool crowd; /* at at_ns: gets crowd_name */
	bool final; /* in the end: this get must succeed */
	bool wide;  /* the first names are large objects, and each is at home at another worker */
};

/* What is known of one generation of a name. */
struct client_truth {
	uint32_t name, node;
	uint64_t generation, size; /* 0: nobody has heard it */
	uint64_t put;		   /* number of the PUT; 0: written in steps */
	uint64_t asked_ns;	   /* when its PUT or CREATE was sent */
	uint64_t sealed_ns;	   /* when somebody was told that it is complete; 0: nobody was */
	uint32_t holders;   /* bit per node: its creator; or, its store lost, who had a copy */
	uint64_t forgot_ns; /* when a store that remembered its delete was last lost; 0: never */
	bool forgotten;	    /* all of them were, one just after the other */
	bool sealed, lost;
	bool moved;	/* the store of its creator was lost */
	bool joint;	/* complete while all nodes reached each other */
	bool gone;	/* another one has taken its place */
	bool judged;	/* the next two are known */
	bool unaware;	/* when it was put, its side knew of no delete of a later generation */
	bool overruled; /* a delete on another side, of a later generation, may take it away */
};

struct clients {
	struct full_group *g;
	struct prng *draw;
	struct splits *splits; /* NULL: there are none */
	struct client client[CLIENTS_NODES_MAX * CLIENTS_PER_NODE];
	uint32_t count;
	struct client_truth truth[CLIENTS_GENERATIONS];
	uint32_t truths;
	struct history history;
	uint32_t crowd_name;
	bool quiet; /* no new work */
	uint64_t put_count;
	uint64_t puts, gets, bytes, deletes, failures;
};

void clients_open(struct clients *c, struct full_group *g, struct prng *draw, bool wide);

/* Everybody does what is due. Called every so often. */
void clients_step(struct clients *c);

/* All who are idle get one name, at once or one after the other; one may delete it meanwhile. */
void clients_crowd(struct clients *c);

/* The newest generation of a name that must exist somewhere, or NULL. */
const struct client_truth *clients_must_exist(const struct clients *c, uint32_t name);

/* All sessions end now. */
void clients_leave(struct clients *c);

/* One get (or delete) by the first client of a node that must have this name (or gone). */
void clients_ask(struct clients *c, uint32_t node, uint32_t name, bool remove);
/* Is nobody in the middle of something? */
bool clients_idle(const struct clients *c);

#endif
