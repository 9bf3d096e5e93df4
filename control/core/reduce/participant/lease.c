/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lease of what is built here: it ends when the coordinator is silent for too long, or when the
 * shard owner knows no coordinator. Called by participant.c and the store.
 */
#include <errno.h>
#include "state.h"

static const char participant_restarting[] = "its reduce restarts: get it again";

/* The time at which the object is given up if no message shows until then that it is wanted.
 * Meanwhile the shard owner is asked. */
static uint64_t participant_until_ns(const struct control *c, const struct participant *k)
{
	return k->refused_ns ? k->refused_ns + c->config.stall_ns
			     : k->heard_ns + c->config.coordinator_lost_ns;
}

bool participant_chosen(const struct participant *k)
{
	return k->done && k->withheld;
}

static void participant_lease_fire(struct control *c, struct timer *t);

void participant_wait(struct control *c, struct participant *k)
{
	uint64_t until_ns = participant_until_ns(c, k);
	uint64_t at_ns = c->now_ns + c->config.coordinator_lost_ns / 4;

	timers_set(&c->timers, &k->lease,
		   participant_chosen(k) && at_ns < until_ns ? at_ns : until_ns,
		   participant_lease_fire);
}

static void participant_lease_fire(struct control *c, struct timer *t)
{
	struct participant *k = list_item(t, struct participant, lease);

	if (c->now_ns >= participant_until_ns(c, k)) {
		participant_give_up(c, k, false,
				    "nobody coordinates its reduce any more: get it again");
		return;
	}
	if (participant_chosen(k)) {
		k->acked = false;
		participant_report(c, k);
	}
	participant_wait(c, k);
}

void participant_heard(struct control *c, struct participant *k)
{
	k->refused_ns = 0;
	k->heard_ns = c->now_ns;
	participant_wait(c, k);
}

static void participant_ask_fire(struct control *c, struct timer *t)
{
	struct participant *k = list_item(t, struct participant, ask);

	if (!k->sealed)
		announce_object(c, k->slot);
}

/* The shard owner knows of a coordinator. The requester may have agreed to the object without the
 * owner knowing it yet, or may be about to name another coordinator. */
void participant_known(struct participant *k)
{
	k->refused_ns = 0;
}

void participant_refused(struct control *c, struct participant *k, int32_t status)
{
	if (!k->done || status != -ESTALE) {
		participant_give_up(c, k, false, participant_restarting);
		return;
	}
	if (k->refused_ns == 0) {
		k->refused_ns = c->now_ns;
		participant_wait(c, k);
	}
	timers_set(&c->timers, &k->ask, c->now_ns + PARTICIPANT_ASK_NS, participant_ask_fire);
}

void participant_keep(struct control *c)
{
	list_each(l, after, &c->participant->participants.active)
	{
		struct participant *k = list_item(l, struct participant, active);

		if (k->hidden && !object_id_equal(&k->target, &k->by_id.id) &&
		    ownership_shard(c, &k->target) != k->coordinator)
			participant_give_up(c, k, false, participant_restarting);
	}
}
