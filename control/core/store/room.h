/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of the store, for itself and for the rooms above it. */
#ifndef SARISSA_CONTROL_CORE_STORE_ROOM_H
#define SARISSA_CONTROL_CORE_STORE_ROOM_H

#include "core/flow/room.h"
#include "await.h"
#include "objects.h"
#include "primary.h"
#include "resync.h"

struct store_ops;

/* What is known of another node, by its number. */
struct store_peer {
	uint64_t told_life; /* it has confirmed that it knows all as of then; 0: none of ours is
			       there */
	uint64_t told_view; /* members.view as of which it knows so; 0: it does not */
	uint64_t fresh_ns;  /* until then its last sign of life is young enough (primary.h) */
	uint64_t mute_ns;   /* it has not answered whether it lives: not asked until then */
	bool asking;	    /* that question is out */
};

struct room_store {
	struct store_peer *peers;
	const struct store_ops *ops;
	struct objects objects;
	struct guards guards;
	struct reconcile reconcile;
};

static inline struct store_peer *store_peer(struct control *c, const struct node *n)
{
	return &c->store->peers[n->number];
}

#endif
