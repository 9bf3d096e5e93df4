/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/env.h"
#include "core/base/text.h"
#include "room.h"

enum { GRAVES_SENDING_MAX = 256, GRAVES_NODE_MAX = 8, GRAVES_STEP = 4096 };

#define GRAVES_SILENT_NS UINT64_C(50000000)
#define GRAVES_STAND_NS	 UINT64_C(250000000)

void graves_init(struct control *c)
{
	c->directory->graves.sweep = c->config.tombstones;
}

void graves_attach(struct control *c)
{
	struct object_table *t = c->table;

	directory_keep_graves(&c->directory->shard, t ? object_table_graves(t) : NULL,
			      t ? t->slots : 0, t ? &t->horizon : NULL);
	graves_sweep(c);
}

void graves_sweep(struct control *c)
{
	c->directory->graves.sweep = 0;
}

static bool graves_told(struct control *c, struct call *call, const struct message *answer)
{
	struct node *n = call->node;

	c->directory->graves.sending--;
	n->graves--;
	if (answer == NULL)
		return false; /* it is dead by now: then all are told again */
	n->graves_ns = c->now_ns;
	graves_node_up(c, n);
	return false;
}

void graves_node_up(struct control *c, struct node *n)
{
	if (n->graves_left)
		graves_sweep(c);
	n->graves_left = false;
}

static bool graves_full(const struct node *n)
{
	return n->graves >= GRAVES_NODE_MAX;
}

static void graves_fire(struct control *c, struct timer *t)
{
	/* whatever happens, all that waits is looked at afterwards */
}

/* It will answer soon: what is to be told it can wait for that. */
static bool graves_busy(struct control *c, const struct node *n)
{
	if (!graves_full(n) || c->now_ns >= n->graves_ns + GRAVES_SILENT_NS)
		return false;
	timers_set(&c->timers, &c->directory->graves.timer, n->graves_ns + GRAVES_SILENT_NS,
		   graves_fire);
	return true;
}

static struct message graves_message(const struct tombstone *t)
{
	struct message m = {.kind = MESSAGE_BURY};

	m.bury.id = t->by_id.id;
	m.bury.generation = t->generation;
	m.bury.request = t->request;
	m.bury.node = t->node;
	return m;
}

/* Who else keeps the id; returns how many. */
static uint32_t graves_others(struct control *c, const struct object_id *id,
			      struct node *out[DIRECTORY_KEEPERS])
{
	struct node *keeper[DIRECTORY_KEEPERS];
	uint32_t count = 0;

	reshard_keepers(c, id, keeper);
	for (int i = 0; i < DIRECTORY_KEEPERS; i++)
		if (keeper[i] && keeper[i] != c->cluster->self)
			out[count++] = keeper[i];
	return count;
}

static void graves_tell(struct control *c, struct node *n, const struct tombstone *t)
{
	struct message m = graves_message(t);

	if (graves_full(n)) { /* silent: the others do not wait for it */
		n->graves_left = true;
		return;
	}
	if (calls_start(c, n, &m, TABLE_SLOT_NONE, c->config.directory_ns, graves_told, NULL) ==
	    NULL)
		return;
	if (n->graves++ == 0)
		n->graves_ns = c->now_ns;
	c->directory->graves.sending++;
}

/* Returns false when it must wait. */
static bool graves_tell_others(struct control *c, const struct tombstone *t)
{
	struct node *other[DIRECTORY_KEEPERS];
	uint32_t others = graves_others(c, &t->by_id.id, other);

	if (c->directory->graves.sending + others > GRAVES_SENDING_MAX)
		return false;
	for (uint32_t i = 0; i < others; i++)
		if (graves_busy(c, other[i]))
			return false;
	for (uint32_t i = 0; i < others; i++)
		graves_tell(c, other[i], t);
	return true;
}

void graves_pump(struct control *c)
{
	struct directory *d = &c->directory->shard;
	uint32_t end = c->directory->graves.sweep + GRAVES_STEP;

	if (!members_joined(c))
		return;
	while (d->fresh_count > 0 &&
	       graves_tell_others(c, &d->tombstones[d->fresh[d->fresh_count - 1]]))
		d->fresh_count--;
	if (d->fresh_lost) { /* more at a time than are noted */
		d->fresh_lost = false;
		graves_sweep(c);
	}
	if (end > c->config.tombstones || d->buried == 0)
		end = c->config.tombstones;
	if (d->buried == 0)
		c->directory->graves.sweep = end;
	for (; c->directory->graves.sweep < end; c->directory->graves.sweep++) {
		const struct tombstone *t = &d->tombstones[c->directory->graves.sweep];

		if (t->generation != 0 && !graves_tell_others(c, t))
			return;
	}
}

/* ---- for a DELETE ---------------------------------------------------------------------------- */

static bool graves_buried(struct control *c, struct call *call, const struct message *answer);

static bool graves_ask(struct control *c, struct node *n, const struct message *m,
		       struct removal *removal)
{
	bool last = reshard_stand_in(c, &m->bury.id, n) == NULL;

	return calls_start(c, n, m, TABLE_SLOT_NONE,
			   last ? c->config.directory_ns : GRAVES_STAND_NS, graves_buried,
			   removal) != NULL;
}

/* Another one keeps it as well; when nobody is left, those who have it must do. */
static void graves_pass_on(struct control *c, const struct call *call)
{
	struct node *n = reshard_stand_in(c, &call->message.bury.id, call->node);

	if (n == NULL || !graves_ask(c, n, &call->message, call->owner))
		directory_removed(&c->directory->shard, call->owner);
}

static bool graves_buried(struct control *c, struct call *call, const struct message *answer)
{
	const struct tombstone *t =
		directory_tombstone(&c->directory->shard, &call->message.bury.id);

	if (answer) {
		directory_removed(&c->directory->shard, call->owner);
		return false;
	}
	if (t) /* it is to have it all the same, when it answers */
		graves_tell(c, call->node, t);
	graves_pass_on(c, call);
	return false;
}

uint32_t graves_bury(struct control *c, const struct tombstone *t, struct removal *removal)
{
	const struct message m = graves_message(t);
	struct node *other[DIRECTORY_KEEPERS];
	uint32_t others = graves_others(c, &t->by_id.id, other), count = 0;

	for (uint32_t i = 0; i < others; i++) {
		struct node *n = other[i];

		if (members_live(n))
			count += graves_ask(c, n, &m, removal);
		else /* of a fixed list */
			n->graves_left = true;
	}
	return count;
}

void graves_node_gone(struct control *c, struct node *n)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);

		if (call->end != graves_buried)
			continue;
		graves_pass_on(c, call);
		calls_cancel(c, call);
	}
}

void graves_beyond(void *arg, uint32_t node)
{
	struct control *c = arg;
	struct node *n = peers_node(c, node);
	struct text t = {.length = 0};

	c->counters.copies_beyond++;
	if (n->beyond)
		return;
	n->beyond = true;
	text_add(&t, "node ");
	text_add_number(&t, node);
	text_add(&t,
		 " was away for more deletes than are remembered: it gives up copies that nobody "
		 "else has told of, as they may have been deleted");
	control_log(c, CONTROL_LOG_WARNING, &t);
}
