/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world for the pure part of the module group: one group, its owner, clients that are its
 * members, and a store of names with copies on nodes. Messages and tasks take random times;
 * messages are lost, doubled and reordered; the owner is killed and replaced; processes and nodes
 * die, or are cut off, the owner's among them. All from a seed, in virtual time. world_check looks
 * at the invariants of groups.h after every event; what clients get of results is judged in
 * world_judge.c.
 */
#ifndef SARISSA_TESTS_UNIT_GROUP_WORLD_H
#define SARISSA_TESTS_UNIT_GROUP_WORLD_H

#include "fixtures/control_test.h"
#include "core/group/groups.h"

enum {
	WORLD_MEMBERS = 6,
	WORLD_NODES = 4, /* node 0 has no members; the owner is there at first */
	WORLD_EVENTS = 4096,
	WORLD_NAMES = 8192,
	WORLD_ROUNDS = 4096,
	WORLD_LIMITS = 1024,
	WORLD_COUNTED = 1 << 16, /* contributions in published rounds, hashed */
	WORLD_CLOCKS = 2048,
};

#define WORLD_MS      UINT64_C(1000000)
#define WORLD_UNHEARD UINT64_MAX /* request: nobody hears its answer */

enum world_what {
	WORLD_REQUEST,
	WORLD_ANSWER,
	WORLD_TASK,
	WORLD_STEP,
	WORLD_LOOK,
	WORLD_LEFT, /* a reduce ends whose owner has died */
	WORLD_DEAD, /* the node is taken for dead */
};

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
	CLIENT_GETS, /* the result that its pull has named */
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
	uint32_t report;	    /* how it ended: a flag of the next pull */
	struct group_kept get, own; /* GETS; what it has of a round at a switch */
	uint32_t tries;
	uint64_t told;		      /* times that it was told of a loss */
	uint64_t acked[WORLD_CLOCKS]; /* clocks that were taken */
};

struct world_name {
	char name[128];
	struct object_id id;
	bool there;
	uint32_t length;
	uint32_t copies; /* nodes that have it, a bit each */
	bool sure;	 /* it is small, and survives */
	bool ghost;	 /* listed, and its bytes have died with the owner that was putting it */
	bool lasting;	 /* a ghost that the directory goes on to list */
	char bytes[16384];
};

struct world_published {
	uint64_t number;
	uint32_t attempt;
	uint32_t got; /* by these clients, which live; a bit each */
	bool gone;    /* named as lost */
};

struct world_total { /* what a result adds to */
	struct group_kept of, base;
};

struct world_node {
	bool dead, cut;
	bool known; /* taken for dead */
};

struct world_counted {
	uint64_t member, clock, round;
};

struct world {
	struct groups *groups;
	void *memory;
	struct groups_ops ops;
	uint64_t now_ns, seed, requests;
	uint32_t owner; /* incarnation */
	uint32_t home;	/* node of the owner */
	bool absent;	/* it is dead or cut off, and nobody has noticed */
	struct world_node node[WORLD_NODES];
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
	struct world_total total[2 * WORLD_ROUNDS];
	uint32_t totals;
	char left[128], left_sources[GROUP_MEMBERS_MAX + 1][128];
	uint32_t left_count;
	uint64_t gone;			 /* times that rounds were named as lost */
	uint64_t judged;		 /* contributions */
	bool rounds_only;		 /* no totals */
	bool forged;			 /* anybody puts decisions: rounds are not judged */
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
/* The node dies, with its clients and copies, and with the owner if that is its home. Others notice
 * within a second, unless it is back before. */
void world_kill_node(struct world *w, uint32_t node);
/* Nothing gets there or comes from there. */
void world_cut_node(struct world *w, uint32_t node);
/* It is back: empty, unless it was only cut off. */
void world_node_back(struct world *w, uint32_t node);
/* Whether it can be reached. */
bool world_works(const struct world *w, uint32_t node);
/* If it is dead or cut off: its members go, and another node owns the group. */
void world_taken_for_dead(struct world *w, uint32_t node);
/* An event after that time. */
struct world_event *world_add(struct world *w, uint32_t what, uint64_t after_ns);
/* Its node says that it has left after all that it has sent for the member. */
void world_forget(struct world *w, uint32_t i);
/* Time for others to notice. */
void world_notice(struct world *w);
bool world_there(struct world *w, const char *name);
/* NULL: no such name has been put. */
struct world_name *world_find(struct world *w, const char *name);
/* Puts a name that survives. */
void world_give(struct world *w, const char *name);

/* world_judge.c */
/* A client has got that result; it is dead. */
void world_judge_got(struct world *w, uint32_t client, const struct group_kept *k);
void world_judge_died(struct world *w, uint32_t client);
/* After an event that began with the group as before. */
void world_judge_published(struct world *w, const struct group *before, struct group *g);
void world_judge_gone(struct world *w, const struct group *g);
void world_limit(struct world *w, const struct group *g);
/* The result that has that name is there. */
void world_judge_made(struct world *w, const char *name);
/* Each contribution of a client that lives and was told of no loss is in a round. */
void world_judge_pushes(struct world *w);
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
