/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last copy of an object must not be evicted. One copy of each object is its guard: the one
 * that was put, and when its node is lost, the copy that the directory appoints. A guard is never
 * evicted (OBJECT_FLAG_PRIMARY). Another copy may be evicted only while this node knows a guard
 * elsewhere that lives; when that one dies, the copy stays until the directory has named another,
 * or it.
 *
 * The directory names them in its answers to HAVE. What one node is told stays true without any
 * word more: a guard does not give its copy up by itself.
 *
 * A death is noticed late. So a copy leaves only if the guard's node has given a sign of life that
 * is hardly older than two round trips: the answer to any request counts, by the time when that was
 * sent. Without one the node is asked, and whoever needs the room waits for the answer, at most
 * REPLICA_ROOM_NS; a node that has not answered after REPLICA_ANSWER_NS counts as lost for a
 * second.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_REPLICA_H
#define SARISSA_CONTROL_CORE_STORE_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#define REPLICA_ANSWER_NS UINT64_C(100000000)
#define REPLICA_ROOM_NS	  UINT64_C(250000000)

struct control;
struct message_have;
struct node;
struct object;

enum replica_state {
	REPLICA_GONE,  /* not known, or it does not answer */
	REPLICA_ASKED, /* it will be known soon */
	REPLICA_LIVES,
};

struct replicas {
	uint32_t asks; /* questions that are out */
};

/* Whether another node is known to keep the object. */
bool replica_elsewhere(struct control *c, const struct object *o);
/* Whether that one lives; it is asked if need be. */
enum replica_state replica_lives(struct control *c, const struct object *o);
/* A node has answered a request that was sent so long ago. */
void replica_heard(struct control *c, struct node *n, uint64_t taken_ns);
/* Sets what a HAVE says about it. */
void replica_describe(struct control *c, uint32_t slot, struct message_have *have);
/* The directory's answer: node + 1, or 0. */
void replica_named(struct control *c, uint32_t slot, uint32_t pinned);
/* Now and then, while there are copies that might be evicted, asks for those without a guard. */
void replica_watch(struct control *c);

#endif
