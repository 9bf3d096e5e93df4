/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The leases that clients of this node have opened, and the objects that each holds. This node
 * announces them to the shard owners (tell.c), also to new ones, and keeps the tables for the next
 * control here (kept.h). Called by the module session, the store's resync and the front door. It
 * must not know sessions or copies.
 *
 *   open    --its last session has ended-->   grace: its ttl runs
 *   grace   --a session opens it-->            open
 *   grace   --the ttl is over-->               ended
 *   either  --LEASE_END-->                     ended: each hold is dropped; gone with the last
 *
 * A hold is one object of one lease; or, without a lease, the time to live of an object:
 *
 *   creating  --the directory has agreed to the object-->  held
 *   asked     --the directory has agreed-->                held
 *   held      --the lease ends, or RELEASE; the time-->    dropping: DELETE with lapsed is out
 *   any       --the object is gone; answered-->            free
 */
#ifndef SARISSA_CONTROL_CORE_LEASE_LEASES_H
#define SARISSA_CONTROL_CORE_LEASE_LEASES_H

#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/base/timers.h"
#include "core/control.h"
#include "core/cluster/state.h"
#include "core/message/message.h"

struct call;
struct node;
struct text;

struct lease {
	struct idmap_node by_number;
	struct list uses; /* struct lease_use.of_lease */
	struct list holds;
	struct timer timer; /* grace */
	uint64_t number, ttl_ns;
	uint32_t user;
	uint32_t process; /* that has opened it last */
	uint64_t birth;
	bool named, ended;
	bool found; /* of an earlier control process, and not opened since */
	bool live;  /* this item of the pool is in use */
	char name[SESSION_LEASE_NAME_BYTES];
};

struct lease_use { /* a session that has it open */
	struct list of_lease, of_session;
	struct lease *lease;
};

enum hold_state { HOLD_FREE, HOLD_CREATING, HOLD_ASKED, HOLD_HELD, HOLD_DROPPING };

struct hold {
	struct list of_lease;
	struct announced announced; /* to its owner */
	struct hold *same_bucket;
	struct lease *lease; /* NULL: the object's time */
	struct timer timer;  /* of that */
	struct object_id id;
	uint64_t generation; /* 0: not known yet */
	uint64_t due_ns;     /* end of the object's time to live; UINT64_MAX: none */
	uint32_t state;	     /* enum hold_state */
	bool joins;	     /* asked: only if another lease holds it */
	void *waiter;	     /* wiring_lease_answer; NULL: no client waits */
	uint64_t waiter_number;
};

/* For the modules above: defined in wiring.c. */
/* A hold must be announced, to a new owner or again: ANNOUNCED must wait for it. */
void wiring_announce_more(struct control *c);
/* The end of what a client waits for: hold.waiter, and its number. */
void wiring_lease_answer(struct control *c, void *waiter, uint64_t number, int32_t status,
			 uint64_t generation, const char *text);

struct lease_kept;

struct leases {
	struct pool pool, uses, holds;
	struct idmap by_number;
	struct hold **bucket; /* holds by id */
	uint32_t bucket_mask;
	uint64_t bucket_key[2]; /* of its hash */
	struct announcer announcer;
	struct lease_kept *kept; /* or NULL */
};

void leases_carve(struct leases *l, struct arena *a, const struct control_config *config);
/* Takes over the leases of an earlier control process. */
void leases_init(struct control *c);

/* leases.c */
/* The open lease of that number and user, or NULL. */
struct lease *leases_find(struct control *c, uint64_t number, uint32_t user);
/* The lease of that name, or a new one; name empty: a new one of that client. NULL: no room. */
struct lease *leases_open(struct control *c, const struct control_client *who, const char *name,
			  uint64_t ttl_ns);
/* The lease of that number, ended or not, of any user; or NULL. */
struct lease *leases_by_number(struct control *c, uint64_t number);
/* Enters an item of the pool, whose number is set, into the map. */
void leases_insert(struct control *c, struct lease *lease);
/* Frees the lease if it has ended and holds no object. */
void leases_settle(struct control *c, struct lease *lease);
/* A session (the list of its uses) opens the lease. False: no room to note that. */
bool leases_use(struct control *c, struct lease *lease, struct list *of_session);
/* The session has ended. */
void leases_leave(struct control *c, struct list *of_session);
void leases_end(struct control *c, struct lease *lease);

/* holds.c */
/* The hold of the object by the lease, or NULL. lease NULL: the object's time to live. */
struct hold *holds_find(struct control *c, const struct object_id *id, const struct lease *lease);
struct hold *holds_take(struct control *c, struct lease *lease, const struct object_id *id,
			enum hold_state state);
void holds_free(struct control *c, struct hold *h);
/* The hold has changed: announces it once it has no open call. */
void holds_dirty(struct control *c, struct hold *h);
void holds_drop(struct control *c, struct hold *h);
/* Sets the end of the object's time to live. */
void holds_due(struct control *c, struct hold *h, uint64_t due_ns);
void holds_answer(struct control *c, struct hold *h, int32_t status, uint64_t generation,
		  const char *text);
/* The object is deleted everywhere: frees its holds. */
void holds_gone(struct control *c, const struct object_id *id, uint64_t generation);

/* For an object that a lease holds from its creation on. begin: fills in the HAVE; false: no room,
 * or no such lease. made: the directory has admitted the create; not: it has refused it; unsure: it
 * may have admitted it. */
bool holds_create_begin(struct control *c, uint64_t lease, const struct object_id *id,
			uint64_t generation, struct message_lease *out);
void holds_create_made(struct control *c, uint64_t lease, const struct object_id *id,
		       uint64_t generation, const struct node *owner, uint64_t epoch);
void holds_create_not(struct control *c, uint64_t lease, const struct object_id *id, bool unsure);

/* Describes a lease for messages. */
void holds_describe(const struct lease *l, struct message_lease *out);

/* tell.c */
void tell_init(struct control *c);
/* Whether no hold that was looked at waits for its HOLD. */
bool tell_acked(const struct control *c);
/* Fills in a HOLD, when it is sent. */
void tell_fill(struct control *c, const struct call *call, struct message_hold *m);

#endif
