/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether anybody coordinates what is built here: nothing stays that nobody waits for. */
#include <errno.h>
#include "room.h"

#define COMBINE_ASK_NS	   UINT64_C(50000000)
#define COMBINE_ASK_MAX_NS UINT64_C(400000000)

static const char combine_anew[] = "its reduce begins again: get it again";

/* Until when it stays though nobody says that it is wanted; the directory is asked meanwhile. */
static uint64_t combine_until_ns(const struct control *c, const struct combine *k)
{
	return k->refused_ns && !k->lent ? k->refused_ns + c->config.stall_ns
					 : k->heard_ns + c->config.orphan_ns;
}

bool combine_chosen(const struct combine *k)
{
	return k->done && k->held;
}

static void combine_orphan_fire(struct control *c, struct timer *t);

void combine_wait(struct control *c, struct combine *k)
{
	uint64_t until_ns = combine_until_ns(c, k);
	uint64_t at_ns = c->now_ns + c->config.orphan_ns / 4;

	timers_set(&c->timers, &k->orphan, combine_chosen(k) && at_ns < until_ns ? at_ns : until_ns,
		   combine_orphan_fire);
}

static void combine_orphan_fire(struct control *c, struct timer *t)
{
	struct combine *k = list_item(t, struct combine, orphan);

	if (c->now_ns >= combine_until_ns(c, k)) {
		combine_give_up(c, k, false,
				"nobody coordinates its reduce any more: get it again");
		return;
	}
	if (combine_chosen(k)) {
		k->told = false;
		combine_report(c, k);
	}
	combine_wait(c, k);
}

void combine_heard(struct control *c, struct combine *k)
{
	if (!k->lent)
		k->refused_ns = 0;
	k->heard_ns = c->now_ns;
	combine_wait(c, k);
}

static void combine_ask_fire(struct control *c, struct timer *t)
{
	struct combine *k = list_item(t, struct combine, ask);

	if (!k->sealed)
		objects_announce(c, k->slot);
}

/* By one who is not the directory's, and lives. */
static bool combine_led(const struct combine *k)
{
	return k->lent && members_live(k->coordinator);
}

/* Perhaps the one who asked for it has agreed to it, and is about to say so; or asks another one to
 * coordinate, who will know then; or coordinates it itself, and is about to say that. */
void combine_known(struct combine *k)
{
	k->refused_ns = 0;
}

void combine_refused(struct control *c, struct combine *k, int32_t status)
{
	uint64_t pause_ns;

	if (!(k->done || combine_led(k)) || status != -ESTALE) {
		combine_give_up(c, k, false, combine_anew);
		return;
	}
	if (k->refused_ns == 0) {
		k->refused_ns = c->now_ns;
		combine_wait(c, k);
	}
	pause_ns = k->lent ? (c->now_ns - k->refused_ns) / 2 : 0;
	if (pause_ns < COMBINE_ASK_NS)
		pause_ns = COMBINE_ASK_NS;
	if (pause_ns > COMBINE_ASK_MAX_NS)
		pause_ns = COMBINE_ASK_MAX_NS;
	timers_set(&c->timers, &k->ask, c->now_ns + pause_ns, combine_ask_fire);
}

void combine_keep(struct control *c)
{
	list_each(l, after, &c->participant->combines.active)
	{
		struct combine *k = list_item(l, struct combine, active);

		if (k->hidden && !combine_led(k) &&
		    (k->lent || control_shard(c, &k->target) != k->coordinator))
			combine_give_up(c, k, false, combine_anew);
	}
}
