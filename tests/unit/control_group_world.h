/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world for the pure part of the group room: one group, its owner, clients that are its members,
 * and a store of names. Messages and tasks take random times; messages are lost, doubled and
 * reordered; the owner is killed and replaced; processes and nodes of members die. All from a seed,
 * in virtual time. world_check looks at the invariants of groups.h after every event.
 */
#ifndef SARISSA_TESTS_UNIT_CONTROL_GROUP_WORLD_H
#define SARISSA_TESTS_UNIT_CONTROL_GROUP_WORLD_H

#include "control_test.h"
#include "core/group/groups.h"

enum {
	WORLD_MEMBERS = 6,
	WORLD_NODES = 4, /* node 0 is the owner's */
	WORLD_EVENTS = 4096,
	WORLD_NAMES = 8192,
	WORLD_ROUNDS = 4096,
	WORLD_LIMITS = 1024,
	WORLD_COUNTED = 1 << 16, /* contributions in published rounds, hashed */
};

#define WORLD_MS      UINT64_C(1000000)
#define WORLD_UNHEARD UINT64_MAX /* request: nobody hears its answer */

enum world_what { WORLD_REQUEST, WORLD_ANSWER, WORLD_TASK, WORLD_STEP };

struct world_event {
	uint64_t at_ns;
	uint32_t what; /* enum world_what */
	uint32_t who;  /* client */
	uint32_t node;
	uint64_t request;
	uint32_t owner; /* incarnation: tasks of an earlier one end unheard */
	int32_t status;
	char text[128];
	struct group_request ask;
	struct group_answer answer;
};

enum world_client_state {
	CLIENT_JOINS,
	CLIENT_WORKS,
	CLIENT_PUSHES,
	CLIENT_PULLS,
	CLIENT_ADDS, /* has its part of a round at a switch */
	CLIENT_DEAD,
};

enum { WORLD_SWITCHES = 1 << 16 }; /* flag of world_new: the group has two */

struct world_client {
	struct group_request join;
	uint32_t state;
	uint32_t node;
	bool rejoins; /* a JOIN is out before the request of its state is repeated */
	bool unsure;
	uint64_t request;   /* number of the one that is out */
	uint64_t repeat_ns; /* it is sent again then */
	uint64_t pace_ns;   /* of its work */
	uint64_t pushed;    /* contributions that were taken */
	uint64_t refused, deaths;
	uint64_t clock; /* of the push that is out */
	struct group_job job;
	uint32_t report; /* how it ended: a flag of the next pull */
};

struct world_name {
	char name[128];
	struct object_id id;
	bool there;
	uint32_t length;
	uint32_t node; /* where it is; 0: it survives */
	bool ghost;    /* listed, and its bytes have died with the owner that was putting it */
	bool lasting;  /* a ghost that the directory goes on to list */
	char bytes[16384];
};

struct world_published {
	uint64_t number;
	uint32_t attempt;
};

struct world_counted {
	uint64_t member, clock, round;
};

struct world {
	struct groups *groups;
	void *memory;
	struct groups_ops ops;
	uint64_t now_ns, seed, requests;
	uint32_t owner;		/* incarnation */
	uint32_t loss, doubles; /* percent */
	bool pulls_end;		/* some time out at their nodes */
	struct world_event event[WORLD_EVENTS];
	uint32_t events;
	struct world_client client[WORLD_MEMBERS];
	uint32_t clients;
	struct world_name *name;
	uint32_t names;
	/* what runs for the group */
	uint32_t task; /* 0 none, 1 put, 2 read, 3 list, 4 reduce */
	struct group *group;
	char target[128];
	char sources[GROUP_MEMBERS_MAX + 1][128];
	uint32_t source_count;
	struct world_published published[WORLD_ROUNDS];
	uint64_t versions[WORLD_ROUNDS]; /* that the rounds opened under */
	uint64_t opened, open_version;
	/* what policies allow: limit[i] for contributions of clocks from limit[i].from on */
	struct world_limit {
		uint64_t version, from, slack;
	} limit[WORLD_LIMITS];
	uint32_t limits;	  /* 0: staleness is not judged */
	struct world_event heard; /* the answer to world_ask */
	struct world_counted *counted;
	uint64_t results, stalest, bounded, switched;
	uint64_t turned_away; /* members that were refused when they announced themselves */
};

struct world *world_new(uint64_t seed, uint32_t clients, const char *policy, uint32_t flags);
void world_free(struct world *w);
uint32_t world_random(struct world *w, uint32_t below);
/* Runs for so long. */
void world_run(struct world *w, uint64_t ns);
/* A request that the world only passes on; the status of its answer, which must come. */
int32_t world_ask(struct world *w, const struct group_request *r, struct group_answer *out,
		  char text[128]);
/* Puts the object of a contribution. */
void world_contribution(struct world *w, uint64_t member, uint64_t clock, uint32_t node);
/* The directory lists the name, and nobody has its bytes. */
void world_ghost(struct world *w, const char *name);
/* The group, when it is served; else NULL. */
struct group *world_group(struct world *w);
void world_kill_owner(struct world *w);
void world_kill_client(struct world *w, uint32_t i, bool node);
/* Starts a client that joins. */
void world_start_client(struct world *w, uint32_t i);
void world_policy(struct world *w, const char *policy);
/* Prints the group and its members. */
void world_show(const struct world *w);
/* Contributions of live clients so far. */
uint64_t world_pushed(const struct world *w);
/* From now on no contribution may be staler than policies of one row allow. */
void world_judge_staleness(struct world *w);

#endif
