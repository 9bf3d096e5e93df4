/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned replicas: the last copy of an object must not be evicted. One copy of each object is
 * pinned (OBJECT_FLAG_PRIMARY): the one that was put, or, when its node is lost, one that the
 * directory appoints. Any other copy may be evicted only while the node of the pinned replica
 * lives. The directory names that node in its answers to HAVE; the answer stays true, as a pinned
 * replica is given up only with a word to all (losses).
 *
 * Only an appointed one is given up (OBJECT_FLAG_APPOINTED), when the owner knows another pinned
 * one that was not appointed. The owner stops to name it before its holder gives it up:
 *
 *   appointed  --a node is back: HAVE asks-->              asked
 *   asked      --"you", or none is named-->                appointed
 *   asked      --another is named-->                       yielded: pinned, and named no more
 *   yielded    --the other node lives as before-->      an ordinary copy; losses rises
 *   yielded    --it does not, or this one is spilled-->    appointed: HAVE says so
 *
 * A death is noticed late. So that node must have answered a request that was sent about two round
 * trips ago at most. Otherwise it is asked, and the request that needs room waits for the answer,
 * at most REPLICA_ROOM_NS. A node without an answer after REPLICA_ANSWER_NS counts as lost for a
 * second. Called by objects.c and announce.c; it must not know who needs the room.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_REPLICA_H
#define SARISSA_CONTROL_CORE_STORE_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

enum { REPLICA_TRIES = 10 }; /* after the last node that is back, or pin that was given back */

struct control;
struct message_have;
struct node;
struct object;
struct object_id;

enum replica_state {
	REPLICA_GONE,  /* its node is not known, or does not answer */
	REPLICA_ASKED, /* its node was asked */
	REPLICA_LIVES,
};

struct replicas {
	uint32_t asks;	 /* questions that are out */
	uint32_t doubts; /* times that a node had lost something */
	uint32_t losing; /* objects lost here, of which the owners do not know yet */
	uint32_t tries;	 /* looks to come that ask about appointed copies */
};

/* Whether the node of the object's pinned replica is known, and is another one. */
bool replica_elsewhere(struct control *c, const struct object *o);
/* Whether that node lives. Asks it if need be. */
enum replica_state replica_lives(struct control *c, const struct object *o);
/* A node has answered a request that was sent taken_ns ago. */
void replica_heard(struct control *c, struct node *n, uint64_t taken_ns);
/* Fills in what a HAVE says of the pinned replica. */
void replica_describe(struct control *c, uint32_t slot, struct message_have *have);
/* Whether that HAVE asks to give the pin back. */
bool replica_asks(const struct message_have *have);
/* The directory's answer: node + 1, or 0; to a HAVE that asks; to any other one. */
void replica_released(struct control *c, uint32_t slot, uint32_t pinned);
void replica_named(struct control *c, uint32_t slot, uint32_t pinned);
/* A node is back: pins may be given back soon. */
void replica_retry(struct control *c);
/* This node loses a pinned replica and lives on. From the first call until the owner knows
 * (replica_acked), the number that is in its messages (cluster.losses) is odd: no copy is evicted
 * for one that is pinned here. Then it is even and larger than before: others ask again. */
void replica_losing(struct control *c);
void replica_acked(struct control *c);
/* Pins it, and tells the owner. */
void replica_lost(struct control *c, const struct object_id *id, uint64_t generation);
/* That number of another node has changed: where the copies that it pinned are is asked again. */
void replica_doubt(struct control *c, struct node *n);
/* Periodic, while there are evictable copies: asks the owners for unknown pinned replicas; and
 * while there are tries: whether pins may be given back. */
void replica_watch(struct control *c);

#endif
