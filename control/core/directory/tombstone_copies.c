/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"

enum { TOMBSTONES_SENDING_MAX = 256, TOMBSTONES_NODE_MAX = 8, TOMBSTONES_STEP = 4096 };

void tombstone_copies_init(struct control *c)
{
	c->directory->tombstone_copies.sweep = c->config.tombstones;
}

void tombstone_copies_attach(struct control *c)
{
	struct object_private *p = c->table ? c->private : NULL;

	directory_keep_tombstones(&c->directory->shard, p ? object_private_tombstone(p) : NULL,
				  p ? p->tombstones : 0, p ? &p->horizon : NULL);
	tombstone_copies_sweep(c);
}

void tombstone_copies_sweep(struct control *c)
{
	c->directory->tombstone_copies.sweep = 0;
}

static bool tombstone_copies_acked(struct control *c, struct call *call,
				   const struct message *answer)
{
	struct node *n = call->node;

	c->directory->tombstone_copies.sending--;
	n->tombstones_out--;
	if (!answer)
		return false; /* it is dead by now: then all tombstones are sent again */
	n->tombstones_ns = c->now_ns;
	tombstone_copies_node_up(c, n);
	return false;
}

void tombstone_copies_node_up(struct control *c, struct node *n)
{
	if (n->tombstones_left)
		tombstone_copies_sweep(c);
	n->tombstones_left = false;
}

static bool tombstone_copies_full(const struct node *n)
{
	return n->tombstones_out >= TOMBSTONES_NODE_MAX;
}

static void tombstone_copies_fire(struct control *c, struct timer *t)
{
	/* after an answer or a timeout, tombstone_copies_pump sends the next ones */
}

/* Whether the node has open TOMBSTONE calls, and is expected to answer soon. */
static bool tombstone_copies_busy(struct control *c, const struct node *n)
{
	if (!tombstone_copies_full(n) || c->now_ns >= n->tombstones_ns + TOMBSTONES_SILENT_NS)
		return false;
	timers_set(&c->timers, &c->directory->tombstone_copies.timer,
		   n->tombstones_ns + TOMBSTONES_SILENT_NS, tombstone_copies_fire);
	return true;
}

static struct message tombstone_copies_message(const struct tombstone *t)
{
	struct message m = {.kind = MESSAGE_TOMBSTONE};

	m.tombstone.id = t->by_id.id;
	m.tombstone.generation = t->generation;
	m.tombstone.request = t->request;
	m.tombstone.node = t->node;
	return m;
}

/* The other replicas of the id's tombstones; returns how many. */
static uint32_t tombstone_copies_others(struct control *c, const struct object_id *id,
					struct node *out[DIRECTORY_TOMBSTONE_REPLICAS])
{
	struct node *owners[DIRECTORY_TOMBSTONE_REPLICAS];
	uint32_t count = 0;

	ownership_replicas(c, id, owners);
	for (int i = 0; i < DIRECTORY_TOMBSTONE_REPLICAS; i++)
		if (owners[i] && owners[i] != c->cluster->self)
			out[count++] = owners[i];
	return count;
}

/* age: of struct message_tombstone. */
static void tombstone_copies_send(struct control *c, struct node *n, const struct tombstone *t,
				  uint32_t age)
{
	struct message m = tombstone_copies_message(t);

	m.tombstone.age = age;
	if (tombstone_copies_full(n)) { /* silent: goes on with the other nodes */
		n->tombstones_left = true;
		return;
	}
	if (!rpc_start(c, n, &m, TABLE_SLOT_NONE, c->config.directory_ns, tombstone_copies_acked,
		       NULL))
		return;
	if (n->tombstones_out++ == 0)
		n->tombstones_ns = c->now_ns;
	c->directory->tombstone_copies.sending++;
}

/* Returns false when it must wait. */
static bool tombstone_copies_send_all(struct control *c, const struct tombstone *t, uint32_t age)
{
	struct node *other[DIRECTORY_TOMBSTONE_REPLICAS];
	uint32_t others = tombstone_copies_others(c, &t->by_id.id, other);

	if (c->directory->tombstone_copies.sending + others > TOMBSTONES_SENDING_MAX)
		return false;
	for (uint32_t i = 0; i < others; i++)
		if (tombstone_copies_busy(c, other[i]))
			return false;
	for (uint32_t i = 0; i < others; i++)
		tombstone_copies_send(c, other[i], t, age);
	return true;
}

void tombstone_copies_pump(struct control *c)
{
	struct directory *d = &c->directory->shard;
	uint32_t end = c->directory->tombstone_copies.sweep + TOMBSTONES_STEP;

	if (!membership_joined(c))
		return;
	while (d->fresh_count > 0 &&
	       tombstone_copies_send_all(c, &d->tombstones[d->fresh[d->fresh_count - 1]], 0))
		d->fresh_count--;
	if (d->fresh_lost) { /* more than were noted: all are sent again */
		d->fresh_lost = false;
		tombstone_copies_sweep(c);
	}
	if (end > c->config.tombstones || d->aged_count == 0)
		end = c->config.tombstones;
	if (d->aged_count == 0)
		c->directory->tombstone_copies.sweep = end;
	for (; c->directory->tombstone_copies.sweep < end; c->directory->tombstone_copies.sweep++) {
		const struct tombstone *t = &d->tombstones[c->directory->tombstone_copies.sweep];

		if (t->generation != 0 &&
		    !tombstone_copies_send_all(c, t, directory_tombstone_age(d, t)))
			return;
	}
}

/* ---- for a DELETE ---------------------------------------------------------------------------- */

static bool tombstone_copies_replicated(struct control *c, struct call *call,
					const struct message *answer);

static bool tombstone_copies_ask(struct control *c, struct node *n, const struct message *m,
				 struct removal *removal)
{
	bool last = !ownership_stand_in(c, &m->tombstone.id, n);

	return rpc_start(c, n, m, TABLE_SLOT_NONE,
			 last ? c->config.directory_ns : TOMBSTONES_STAND_NS,
			 tombstone_copies_replicated, removal) != NULL;
}

/* Sends the tombstone to the next node in the order of owners. If there is none, the present
 * replicas suffice. */
static void tombstone_copies_pass_on(struct control *c, const struct call *call)
{
	struct node *n = ownership_stand_in(c, &call->message.tombstone.id, call->node);

	if (!n || !tombstone_copies_ask(c, n, &call->message, call->owner))
		directory_removed(&c->directory->shard, call->owner);
}

static bool tombstone_copies_replicated(struct control *c, struct call *call,
					const struct message *answer)
{
	const struct directory *d = &c->directory->shard;
	const struct tombstone *t = directory_tombstone(d, &call->message.tombstone.id);

	if (answer) {
		directory_removed(&c->directory->shard, call->owner);
		return false;
	}
	if (t) /* sent again, for when it answers */
		tombstone_copies_send(c, call->node, t, directory_tombstone_age(d, t));
	tombstone_copies_pass_on(c, call);
	return false;
}

/* [G4.2] */
uint32_t tombstone_copies_replicate(struct control *c, const struct tombstone *t,
				    struct removal *removal)
{
	const struct message m = tombstone_copies_message(t);
	struct node *other[DIRECTORY_TOMBSTONE_REPLICAS];
	uint32_t others = tombstone_copies_others(c, &t->by_id.id, other), count = 0;

	for (uint32_t i = 0; i < others; i++) {
		struct node *n = other[i];

		if (membership_live(n))
			count += tombstone_copies_ask(c, n, &m, removal);
		else /* of a fixed list */
			n->tombstones_left = true;
	}
	return count;
}

void tombstone_copies_node_gone(struct control *c, struct node *n)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);

		if (call->end != tombstone_copies_replicated)
			continue;
		tombstone_copies_pass_on(c, call);
		rpc_cancel(c, call);
	}
}

void tombstone_copies_beyond(void *arg, uint32_t node)
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
	env_log(c, CONTROL_LOG_WARNING, &t);
}
