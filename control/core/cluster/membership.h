/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who belongs to the cluster. A table of all nodes that were ever heard of, each with a state and
 * an incarnation; reports about a node are ordered, so tables that have heard the same reports are
 * equal, in whatever order they came. The live ones (alive or suspected) share the directory.
 *
 * Whatever finds out who lives tells it through members_join, members_suspect and members_leave.
 * That is gossip.c here; a service outside (a lease in etcd, say) would call the same three.
 *
 *   membership.c   the table
 *   gossip.c    spreading it, and watching a few others
 *   join.c      numbers for newcomers
 *   ownership.c   what follows for the directory
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

struct member_owner { /* who keeps the directory's part with an id, in this view */
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
	uint64_t life;	 /* added to that of each node; from the incarnation on */
	uint64_t changed_ns;
	uint64_t view;	     /* digest of who lives, in which incarnation (settle.c) */
	uint32_t unheard;    /* live members that have not told all of this view */
	bool settled;	     /* all have, or the time for that is over */
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
uint64_t members_life(const struct control *c, const struct node *n);

/* ---- gossip.c ---- */

/* Whether we keep a connection with it, to watch each other and to pass news on. */
bool gossip_watches(const struct control *c, const struct node *n);
/* Whether it is next to us in the ring: those two are watched closely. */
bool gossip_is_next(const struct control *c, const struct node *n);
void gossip_connect(struct control *c);
/* It does not answer: others are asked, and unless it is heard of soon, it is suspect. */
void gossip_miss(struct control *c, struct node *n);
/* It has said something. */
void gossip_heard(struct control *c, struct node *n);
void gossip_flood(struct control *c);
void gossip_table(struct control *c, struct node *n);
void gossip_entry(struct control *c, struct node *to, const struct node *about);
/* Tells a node that claims a number in this incarnation that it is another one's: it is fenced. */
void gossip_taken(struct control *c, struct node *to, const struct node *about,
		  uint64_t incarnation);
void gossip_probe(struct control *c, struct node *n);
void gossip_take(struct control *c, struct node *n, const struct message_members *m);
void gossip_start(struct control *c);

/* ---- join.c ---- */

/* The node without a number at an address, made if need be; NULL: too many. */
struct node *join_guest(struct control *c, const struct net_addr *addr);
bool join_is_guest(const struct control *c, const struct node *n);
void join_forget(struct control *c, struct node *guest);
/* We know our address now. */
void join_attach(struct control *c);
/* Now and then: looks for seeds. */
void join_tick(struct control *c);
/* A HELLO on a connection that was not that node's until now. Returns whose it is, or NULL. */
struct node *join_hello(struct control *c, struct conn *conn, const struct message_hello *h);
/* A number was given to us. */
void join_given(struct control *c, uint32_t number);

/* ---- settle.c ---- */

/* What an entry of the table adds to members.view. */
uint64_t settle_mark(const struct node *n);
/* Other members live than before. */
void settle_begin(struct control *c);
/* The view has changed. */
void settle_look(struct control *c);
/* The node has told all that it holds, as of that view; 0: it may have done so before. */
void settle_heard(struct control *c, struct node *n, uint64_t view);

/* ---- ownership.c ---- */

/* The members have changed. */
void reshard(struct control *c);
/* HAVE, GET, DROP, DELETE, STAT, LIST of a node. */
void reshard_request(struct control *c, struct node *n, const struct message *m);
/* Whether an id has come to us and some members have not told us yet what they hold (settle.c). */
bool reshard_settling(struct control *c, const struct object_id *id);
/* Whether this node has kept it in all views since the last that had settled. */
bool reshard_kept(const struct control *c, const struct object_id *id);
/* The next node from *cursor on that keeps a part of the directory; NULL: no more. */
struct node *reshard_next(struct control *c, uint32_t *cursor);
/* The owner of an id, and who would be its owner after that one; NULL: nobody. */
void reshard_keepers(struct control *c, const struct object_id *id, struct node *keeper[2]);
/* Who would keep them next if that one did not; not ourselves; NULL: nobody is left. */
struct node *reshard_stand_in(struct control *c, const struct object_id *id,
			      const struct node *than);
/* Who holds the second copy of a small object of this shard: of the other nodes that live and
 * answer the one that would be its next owner; NULL: there are none. */
struct node *reshard_backup(struct control *c, const struct object_id *id);
/* The id that a request is about, or NULL. */
const struct object_id *reshard_id(const struct message *m);
void reshard_redirect(struct control *c, struct node *n, uint64_t request);

#endif
