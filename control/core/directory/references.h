/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * References at the shard owner: the leases that hold an object, and its time to live. The node of
 * a lease (lease/leases.h) announces it with HOLD, and ends it with DELETE (lapsed). An object that
 * a lease has held is deleted with its last reference. Called by the front door, and by the
 * directory through directory_out. It must not know sessions.
 *
 *   held    --its node is dead, has left, or has restarted-->  ending: its ttl runs
 *   ending  --HOLD, or ANNOUNCED of the HOLD's epoch-->         held
 *   ending  --the ttl is over-->                               gone, as if it had ended
 *   either  --ANNOUNCED of a later epoch than the HOLD's-->     ending
 *   either  --DELETE (lapsed); the object is replaced-->        gone
 *
 * A reference may come before its object: both are announced after a change of the members. The
 * time to live of an object is a reference without a lease, at most one.
 */
#ifndef SARISSA_CONTROL_CORE_DIRECTORY_REFERENCES_H
#define SARISSA_CONTROL_CORE_DIRECTORY_REFERENCES_H

#include "core/base/list.h"
#include "core/base/timers.h"
#include "core/message/message.h"

enum { REFERENCES_OBJECT_MAX = 1024 }; /* leases that hold one object */

/* Extra time for a node that only seems lost, to announce its leases. */

struct control_config;
struct entry;

struct reference {
	struct list of_entry, of_lease_node;
	struct timer timer; /* it is ending; or the object's time */
	struct entry *entry;
	struct message_lease lease; /* number 0: the object's time */
	uint64_t generation;	    /* of the object */
	uint64_t epoch;		    /* of the latest HOLD */
	uint32_t node;		    /* of the lease */
	bool disowned;		    /* its home has announced all that it holds, without this */
};

struct references {
	struct pool pool;
	struct list *of_lease_node; /* by node */
	uint64_t minority_ns;	    /* when this node last saw no majority; 0: never */
	bool minority;		    /* as of the latest view */
};

void references_carve(struct references *r, struct arena *a, const struct control_config *config);
void references_init(struct control *c);
/* Other members are live than before. */
void references_view(struct control *c);

/* For struct directory_out. */
bool references_create(void *arg, struct entry *e, uint32_t node, const struct message_have *have);
void references_unhold(void *arg, struct entry *e, uint64_t generation, bool tell);
void references_describe(void *arg, const struct entry *e, struct session_object *out);

/* HOLD. */
void references_hold(struct control *c, uint32_t node, const struct message *m);
/* A DELETE with lapsed. Returns whether it was answered: the object stays, or is not here. */
bool references_delete(struct control *c, uint32_t node, const struct message *m);
/* ANNOUNCED of the node: all of that epoch is here. */
void references_announced(struct control *c, uint32_t node, uint64_t epoch);
/* The node is dead, has left, or has restarted. */
void references_node_lost(struct control *c, uint32_t node);

#endif
