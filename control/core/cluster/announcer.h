/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells the owners of ids what this node has of them: objects (store/announce.c), holds
 * (lease/tell.c), results of reduces (requester/ledger.c), members of groups (group/agent.c). By
 * state, not by a log: an item that changes is marked, and its present state is sent in its turn,
 * one call an item. So memory is bounded however long an owner is away. A sweep marks the items
 * that their owners have not acknowledged. It must not know what the items are.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_ANNOUNCER_H
#define SARISSA_CONTROL_CORE_CLUSTER_ANNOUNCER_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/list.h"

struct announced;
struct announcer;
struct call;
struct control;
struct node;
struct object_id;

/* Marks the item of that index if it is to be said, and its owner has not acknowledged it. */
typedef void announcer_look(struct control *c, uint32_t index);
/* Starts a call about the item's present state. NULL: none is free. */
typedef struct call *announcer_say(struct control *c, struct announced *a);

struct announcer {
	announcer_look *look;
	announcer_say *say;
	const uint32_t *items;
	uint32_t sending_max; /* calls at a time */
	struct announcer *next;
	struct list dirty; /* struct announced.dirty */
	uint32_t sweep;	   /* index of the next item to look at; UINT32_MAX: none */
	uint32_t sending;  /* calls under way that are not parked */
};

struct announced { /* in each item */
	struct list dirty;
	struct call *call;
	uint64_t epoch; /* membership_epoch of the owner's acknowledgement */
	uint32_t owner; /* number + 1 of the owner that has acknowledged it; 0: none */
	bool parked;	/* its call may take long: others are sent meanwhile */
};

/* In the order in which their items are sent. items: how many there are. */
void announcer_init(struct control *c, struct announcer *as, const uint32_t *items,
		    uint32_t sending_max, announcer_look *look, announcer_say *say);
/* Says the item in its turn. It has no call under way. */
void announcer_mark(struct announcer *as, struct announced *a);
/* The owners may have changed, or have restarted: sweeps the items of all announcers. */
void announcer_sweep_all(struct control *c);
/* Whether some items are not looked at yet. */
bool announcer_sweeping(const struct control *c);
/* Whether the present owner of the id has not acknowledged the item. */
bool announcer_unacked(struct control *c, const struct announced *a, const struct object_id *id);
/* Marks the item, if that owner has not, and it has no call under way. */
void announcer_check(struct control *c, struct announcer *as, struct announced *a,
		     const struct object_id *id);
void announcer_acked(struct announced *a, const struct node *owner, uint64_t epoch);
void announcer_park(struct announcer *as, struct announced *a);
/* The item's call ends. */
void announcer_heard(struct announcer *as, struct announced *a);
/* The item goes: it is not said any more. */
void announcer_forget(struct control *c, struct announcer *as, struct announced *a);
/* Sends what is marked of all announcers, as much as may be open at a time. */
void announcer_pump(struct control *c);

#endif
