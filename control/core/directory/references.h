/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * At the shard owner: which leases hold an object, and when its time is over. A lease lives at its
 * home (lease/leases.h), which says HOLD, and DELETE with lapsed when it lets go. An object that a
 * lease has held is deleted with the last reference. Called by the front door, and by the directory
 * through directory_out.
 *
 *   held     --its home is dead, has left, or has begun anew-->      ending: its ttl runs
 *   ending   --HOLD, or ANNOUNCED of the life that it was said in-->      held
 *   ending   --the time is over-->                                   gone, as if it was let go
 *   either   --ANNOUNCED of a later life, without a HOLD in that one-->   ending
 *   either   --lets go; the object is deleted, or put again-->       gone
 *
 * A reference may be here before its object is: both are told again after a change of the members.
 * The time of an object is a reference without a lease, at most one.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_REFERENCES_H
#define SARISSA_CONTROL_CORE_DIRECTORY_REFERENCES_H

#include "core/base/list.h"
#include "core/base/timers.h"
#include "core/message/message.h"

enum { REFERENCES_OBJECT_MAX = 1024 }; /* leases that hold one object */

/* A node that only seems to be lost has so much time more to say what holds. */
#define REFERENCES_GRACE_NS UINT64_C(1000000000)

struct control_config;
struct entry;

struct reference {
	struct list of_entry, of_lease_node;
	struct timer timer; /* it is ending; or the object's time */
	struct entry *entry;
	struct message_lease lease; /* number 0: the object's time */
	uint64_t generation;	    /* of the object */
	uint64_t epoch;		    /* of the home, when it said HOLD last */
	uint32_t node;
};

struct references {
	struct pool pool;
	struct list *of_lease_node; /* by node */
};

void references_carve(struct references *r, struct arena *a, const struct control_config *config);
void references_init(struct control *c);

/* For struct directory_out. */
bool references_create(void *arg, struct entry *e, uint32_t node, const struct message_have *have);
void references_unhold(void *arg, struct entry *e, uint64_t generation, bool tell);
void references_describe(void *arg, const struct entry *e, struct session_object *out);

/* HOLD. */
void references_hold(struct control *c, uint32_t node, const struct message *m);
/* A DELETE with lapsed. Returns whether it was answered: the object stays, or is not here. */
bool references_delete(struct control *c, uint32_t node, const struct message *m);
/* The node has told all that it holds in that life. */
void references_announced(struct control *c, uint32_t node, uint64_t epoch);
/* It is dead, has left, or has begun anew. */
void references_node_lost(struct control *c, uint32_t node);

#endif
