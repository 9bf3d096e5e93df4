/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of the cluster: a table of all known nodes, each with a state and an incarnation.
 * Reports about a node are ordered, so tables with the same reports are equal, in whatever order
 * they came. The live members (alive or suspect) share the directory (ownership.h). A failure
 * detector calls members_join, members_suspect and members_leave: gossip.c here; a service outside
 * could call the same. It must not know objects.
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
	MEMBERS_GUESTS = 65, /* addresses without a number: ourselves, and so many others */
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
	uint32_t *before; /* of the view before: what moved since has just been moved */
	uint32_t live_count, before_count;
	bool seen; /* node.seen tells of all views since one had settled: there has been one */
	uint64_t digest; /* of the entries that are known: kept, not added up for each message */
	uint64_t epoch;	 /* added to that of each node; from the incarnation on */
	uint64_t changed_ns;
	uint64_t view;	     /* digest of the live members and their incarnations (settle.c) */
	uint32_t unheard;    /* live members that have not told all of this view */
	bool settled;	     /* all have, or the time for that is over */
	bool cut_off;	     /* the last connection with another node was lost: none since */
	struct timer settle; /* then it is over */
	struct list news;    /* struct node.news: not told to the others yet */
	struct timer tick, flood;
	uint64_t flooded_ns; /* when news was passed on last; 0: never */
	bool changed;	     /* the view is to be made again */
	bool left;	     /* we said goodbye */
	bool fenced;	     /* our number belongs to somebody else now */
	bool dynamic;	     /* nodes come by seeds, not from a list */
	uint32_t seeds_count;
	struct net_addr seeds[MEMBERS_SEEDS_MAX];
	uint64_t begun_ns; /* the first attach */
	struct member_owner owner[MEMBERS_OWNERS];
	uint32_t page_count;
	struct message_member page[MESSAGE_MEMBERS_MAX];
};

struct control_config;
void members_carve(struct members *m, struct arena *a, const struct control_config *config);
void members_init(struct control *c);

/* ---- the source of news ---- */

/* It lives, in this incarnation. addr NULL: as known. */
void members_join(struct control *c, struct node *n, const struct net_addr *addr,
		  uint64_t incarnation);
/* It is suspect unless somebody hears of it soon; somebody has. */
void members_doubt(struct control *c, struct node *n);
void members_trust(struct control *c, struct node *n);
/* It cannot be reached; it is dead when nothing better is heard of it for a while. */
void members_suspect(struct control *c, struct node *n);
/* This incarnation has ended: MEMBER_DEAD or MEMBER_LEFT. */
void members_leave(struct control *c, struct node *n, uint64_t incarnation,
		   enum member_state state);

/* ---- the table ---- */

bool members_live(const struct node *n);
/* directory_out.down: for so many ms, begun ones too, it has been taken for dead; 0: it is not. */
uint64_t members_down_ms(void *arg, uint32_t node);
/* Whether we have a number. */
bool members_joined(const struct control *c);
/* What another node says of one; old news does nothing. */
void members_take(struct control *c, const struct message_member *m);
/* A node has said hello. False: of an incarnation that has ended; it is told so. */
bool members_hello(struct control *c, struct node *n, const struct message_hello *h);
/* Its connection has ended. */
void members_lost(struct control *c, struct node *n);
/* A connection with a node was lost; one begins. The first one after the last one was lost begins a
 * new incarnation: others may have taken this node for dead, and given its ids away, meanwhile. */
void members_cut_off(struct control *c);
void members_reached(struct control *c);
/* Whether something is known of it, and not only presumed from the list. */
bool members_known(const struct node *n);
void members_describe(const struct node *n, struct message_member *out);
uint64_t members_digest(const struct control *c);
/* Changes an entry of the table, and nothing else but the digest with it. */
void members_record(struct control *c, struct node *n, uint64_t incarnation,
		    enum member_state state);
/* What happened in this turn has its consequences: the view, the news. */
void members_pump(struct control *c);
/* Rises whenever this node's part of the directory may have forgotten what we hold, or not heard
 * what we hold no more. Greater than in any earlier life of ours. */
uint64_t members_epoch(const struct control *c, const struct node *n);

#endif
