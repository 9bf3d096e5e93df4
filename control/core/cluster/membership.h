/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of the cluster: a table of all known nodes, each with a state and an incarnation.
 * Reports about a node are ordered, so tables with the same reports are equal, in whatever order
 * they came. The live members (alive or suspect) share the directory (ownership.h). A failure
 * detector calls membership_join, membership_suspect and membership_leave: gossip.c here; a service
 * outside could call the same. It must not know objects.
 *
 * A. Das, I. Gupta, A. Motivala, SWIM, DSN 2002: suspicion, incarnations, refutation.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_MEMBERSHIP_H
#define SARISSA_CONTROL_CORE_CLUSTER_MEMBERSHIP_H

#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"
#include "core/base/list.h"

enum {
	MEMBERS_SEEDS_MAX = 32,
	MEMBERS_OWNERS = 256,
	MEMBERS_GUESTS = 65, /* addresses without a number: this node's, and so many others */
};

struct conn;
struct node;

struct member_owner { /* the shard owner of an id, in this view */
	struct object_id id;
	uint32_t node;
	bool known;
};

struct members {
	uint32_t *live;	  /* numbers, rising */
	uint32_t *before; /* live members of the view before: shows which ids have moved */
	uint32_t live_count, before_count;
	bool seen;	 /* a view has settled: node.seen is valid */
	uint64_t digest; /* of all known entries; updated with each */
	uint64_t epoch;	 /* added to node.epoch; starts at the incarnation */
	uint64_t changed_ns;
	uint64_t view;	     /* digest of the live members and their incarnations (settle.c) */
	uint32_t unheard;    /* live members whose ANNOUNCED of this view is missing */
	bool settled;	     /* none is missing, or settle_max_ns are over */
	bool cut_off;	     /* no connection with any other node */
	struct timer settle; /* settle_max_ns */
	struct list news;    /* struct node.news: not passed on yet */
	struct timer tick, flood;
	uint64_t flooded_ns; /* when news was passed on last; 0: never */
	bool changed;	     /* the view must be made again */
	bool left;	     /* we said goodbye */
	bool fenced;	     /* our number belongs to another node now */
	bool dynamic;	     /* nodes come by seeds, not from a list */
	uint32_t seeds_count;
	struct net_addr seeds[MEMBERS_SEEDS_MAX];
	uint64_t begun_ns; /* the first attach */
	struct member_owner owner[MEMBERS_OWNERS];
	uint32_t page_count;
	struct message_member page[MESSAGE_MEMBERS_MAX];
};

struct control_config;
void membership_carve(struct members *m, struct arena *a, const struct control_config *config);
void membership_init(struct control *c);

/* ---- the source of news ---- */

/* The node is alive in this incarnation. addr NULL: as known. */
void membership_join(struct control *c, struct node *n, const struct net_addr *addr,
		     uint64_t incarnation);
/* The node will be suspect unless a member hears from it soon; one has. */
void membership_doubt(struct control *c, struct node *n);
void membership_trust(struct control *c, struct node *n);
/* The node is suspect: dead after suspect_ns, unless it refutes that. */
void membership_suspect(struct control *c, struct node *n);
/* The node's incarnation has ended: MEMBER_DEAD or MEMBER_LEFT. */
void membership_leave(struct control *c, struct node *n, uint64_t incarnation,
		      enum member_state state);

/* ---- the table ---- */

bool membership_live(const struct node *n);
/* Whether this node sees at most half of the members that have not left: it may be cut off from the
 * rest, which may decide otherwise. */
bool membership_minority(const struct control *c);
/* directory_out.down: milliseconds, rounded up, since the node is considered dead; 0: it is not. */
uint64_t membership_down_ms(void *arg, uint32_t node);
/* Whether we have a number. */
bool membership_joined(const struct control *c);
/* A report about a member. Old ones have no effect. */
void membership_take(struct control *c, const struct message_member *m);
/* A node's HELLO. False: its incarnation has ended; the node is told so. */
bool membership_hello(struct control *c, struct node *n, const struct message_hello *h);
/* Its connection has ended. */
void membership_lost(struct control *c, struct node *n);
/* Tells the other members that this control ends: MEMBER_LEFT or MEMBER_RESTING. */
void membership_say_end(struct control *c, enum member_state state);
/* The last connection with another node was lost; the first one is up again. Then this node begins
 * a new incarnation: the others may have considered it dead, and given its ids away. */
void membership_cut_off(struct control *c);
void membership_reached(struct control *c);
/* Whether a report of the node has come; otherwise it is only in the configured list. */
bool membership_known(const struct node *n);
void membership_describe(const struct node *n, struct message_member *out);
uint64_t membership_digest(const struct control *c);
/* Changes an entry of the table, and the digest, without further effects. */
void membership_record(struct control *c, struct node *n, uint64_t incarnation,
		       enum member_state state);
/* Once per turn: makes the view, and passes news on. */
void membership_pump(struct control *c);
/* The epoch of announcements to a node. It rises whenever that node may have lost announcements of
 * this one. Greater than all of earlier incarnations. */
uint64_t membership_epoch(const struct control *c, const struct node *n);

#endif
