/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "agent.h"
#include "core/base/text.h"
#include "state.h"

void references_carve(struct references *r, struct arena *a, const struct control_config *config)
{
	pool_carve(&r->pool, a, sizeof(struct reference), config->references_max);
	r->of_lease_node = arena_carve(a, sizeof(*r->of_lease_node) * config->nodes);
}

void references_init(struct control *c)
{
	for (uint32_t i = 0; i < c->config.nodes; i++)
		list_init(&c->directory->references.of_lease_node[i]);
}

static void references_free(struct control *c, struct reference *r)
{
	timers_cancel(&c->timers, &r->timer);
	list_remove(&r->of_entry);
	list_remove(&r->of_lease_node);
	pool_give(&c->directory->references.pool, r);
}

/* Lease 0: the object's time to live, which any node may have set. */
static struct reference *references_find(const struct entry *e, uint32_t node, uint64_t lease)
{
	list_each(l, after, &e->references)
	{
		struct reference *r = list_item(l, struct reference, of_entry);

		if (r->lease.number == lease && (lease == 0 || r->node == node))
			return r;
	}
	return NULL;
}

/* The number of leases that hold this generation, or a later one. */
static uint32_t references_count(const struct entry *e, uint64_t generation)
{
	uint32_t count = 0;

	list_each(l, after, &e->references)
	{
		const struct reference *r = list_item(l, struct reference, of_entry);

		count += r->lease.number != 0 && r->generation >= generation;
	}
	return count;
}

/* ---- the end of one -------------------------------------------------------------------------- */

/* The call moves along if the object gets another shard owner meanwhile. */
static bool references_deleted(struct control *c, struct call *call, const struct message *answer)
{
	return answer && (answer->reply.status == -EAGAIN || answer->reply.status == -EHOSTUNREACH);
}

/* Sends a DELETE (lapsed), which is refused if another reference holds the object. False: not now.
 */
static bool references_lapse(struct control *c, const struct reference *r)
{
	struct message m = {.kind = MESSAGE_DELETE};

	m.object.id = r->entry->by_id.id;
	m.object.generation = r->generation;
	m.object.lapsed = r->lease.number ? MESSAGE_LAPSED_LEASE : MESSAGE_LAPSED_TIME;
	return rpc_start(c, ownership_shard(c, &m.object.id), &m, TABLE_SLOT_NONE, UINT64_MAX,
			 references_deleted, NULL) != NULL;
}

void references_view(struct control *c)
{
	struct references *all = &c->directory->references;
	bool minority = membership_minority(c);

	if (minority || all->minority)
		all->minority_ns = c->now_ns;
	all->minority = minority;
}

/* How long a home has to say what it holds. */
static uint64_t references_patience(const struct reference *r)
{
	return r->lease.number ? r->lease.ttl_ns + REFERENCES_GRACE_NS : REFERENCES_RETRY_NS;
}

/* Whether others may know better that it ends: a majority without this node, the home itself, which
 * lives and is about to say what it holds, or members that have not announced yet. A node that was
 * cut off hears them one after the other. */
static bool references_doubtful(struct control *c, const struct reference *r)
{
	const struct references *all = &c->directory->references;

	return all->minority ||
	       (all->minority_ns && c->now_ns < all->minority_ns + references_patience(r)) ||
	       ownership_settling(c, &r->entry->by_id.id) ||
	       (r->lease.number != 0 && !r->disowned && membership_live(peers_node(c, r->node)));
}

static void references_fire(struct control *c, struct timer *t)
{
	struct reference *r = list_item(t, struct reference, timer);
	struct entry *e = r->entry;

	if (references_doubtful(c, r)) { /* begins to wait once more */
		timers_set(&c->timers, t, c->now_ns + references_patience(r), references_fire);
		return;
	}
	if (!references_lapse(c, r)) {
		timers_set(&c->timers, t, c->now_ns + REFERENCES_RETRY_NS, references_fire);
		return;
	}
	if (r->lease.number == 0)
		return; /* the DELETE ends the reference: its time is over */
	c->counters.leases_lost++;
	references_free(c, r);
	directory_settle(&c->directory->shard, e);
}

static void references_end_later(struct control *c, struct reference *r)
{
	if (r->lease.number != 0 && r->timer.position == 0)
		timers_set(&c->timers, &r->timer, c->now_ns + references_patience(r),
			   references_fire);
}

void references_announced(struct control *c, uint32_t node, uint64_t epoch)
{
	list_each(l, after, &c->directory->references.of_lease_node[node])
	{
		struct reference *r = list_item(l, struct reference, of_lease_node);

		if (r->lease.number == 0)
			continue;
		r->disowned = r->epoch < epoch;
		if (r->disowned)
			references_end_later(c, r);
		else
			timers_cancel(&c->timers, &r->timer);
	}
}

void references_node_lost(struct control *c, uint32_t node)
{
	list_each(l, after, &c->directory->references.of_lease_node[node])
	{
		references_end_later(c, list_item(l, struct reference, of_lease_node));
	}
}

/* ---- a new one ------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct reference *references_take(struct control *c, struct entry *e, uint32_t node,
					 const struct message_lease *lease)
{
	struct reference *r = references_find(e, node, lease->number);

	if (!r) {
		r = references_count(e, 0) < REFERENCES_OBJECT_MAX
			    ? pool_take(&c->directory->references.pool)
			    : NULL;
		if (!r)
			return NULL;
		r->entry = e;
		list_append(&e->references, &r->of_entry);
	}
	list_remove(&r->of_lease_node);
	list_append(&c->directory->references.of_lease_node[node], &r->of_lease_node);
	r->node = node;
	r->lease = *lease;
	r->disowned = false;
	r->epoch = c->directory->shard.nodes[node].epoch;
	return r;
}

bool references_create(void *arg, struct entry *e, uint32_t node, const struct message_have *have)
{
	struct control *c = arg;
	struct reference *r = references_take(c, e, node, &have->lease);

	if (!r)
		return false;
	timers_cancel(&c->timers, &r->timer);
	r->generation = have->generation;
	return true;
}

/* Sets the time to live. If nodes announce different times after a change of owner, the longer one
 * counts. [G4.5] */
static void references_set_time(struct control *c, struct reference *r, uint64_t left_ns,
				bool known)
{
	uint64_t at_ns = left_ns == UINT64_MAX ? UINT64_MAX : c->now_ns + left_ns;

	if (known && r->timer.position != 0 && r->timer.at_ns > at_ns)
		return;
	timers_set(&c->timers, &r->timer, at_ns, references_fire);
}

/* Why the object cannot be held, or NULL. */
static const char *references_absent(struct control *c, const struct entry *e,
				     const struct message_hold *h)
{
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &h->id);

	if (h->generation != 0 && t && t->generation >= h->generation)
		return "no such object: it was deleted";
	if (h->generation != 0)
		return e && e->generation > h->generation ? "the object was put again" : NULL;
	if (e && e->reserved)
		return "a reduce still makes it: hold it when it is there";
	if (e && e->generation != 0)
		return NULL;
	return directory_was_deleted(&c->directory->shard, &h->id)
		       ? "no such object: it was deleted: put it again"
		       : "no such object: put it first";
}

void references_hold(struct control *c, uint32_t node, const struct message *m)
{
	const struct message_hold *h = &m->hold;
	struct directory *d = &c->directory->shard;
	struct entry *e = directory_find(d, &h->id);
	const char *absent = references_absent(c, e, h);
	uint64_t generation = h->generation;
	struct reference *r = NULL;

	if (absent) {
		directory_reply(d, node, m->request, -ENOENT, 0, absent);
		return;
	}
	if (h->joins && references_count(e, e->generation) == 0) {
		directory_reply(d, node, m->request, 0, 0, "");
		return;
	}
	if (generation == 0)
		generation = e->generation;
	if (h->epoch > d->nodes[node].epoch)
		d->nodes[node].epoch = h->epoch;
	e = directory_make(d, &h->id);
	if (e)
		r = references_take(c, e, node, &h->lease);
	if (!r) {
		directory_reply(d, node, m->request, -ENOSPC, 0,
				"the directory has no room to note what leases hold: end some, or "
				"let objects go");
		if (e)
			directory_settle(d, e);
		return;
	}
	r->generation = generation;
	if (h->lease.number == 0)
		references_set_time(c, r, h->left_ns, h->known);
	else
		timers_cancel(&c->timers, &r->timer);
	directory_reply(d, node, m->request, 0, generation, "");
}

/* ---- a DELETE of what has lapsed ------------------------------------------------------------- */

static bool references_time_left(const struct control *c, const struct entry *e)
{
	const struct reference *r = references_find(e, 0, 0);

	return r && r->timer.at_ns > c->now_ns && r->timer.position != 0;
}

/* Whether the object stays. */
static bool references_keep(const struct control *c, const struct entry *e,
			    const struct message_object *o)
{
	if (e->reserved || (e->generation != 0 && e->generation != o->generation))
		return true;
	return o->lapsed == MESSAGE_LAPSED_LEASE ? references_count(e, o->generation) > 0
						 : references_time_left(c, e);
}

/* Whether leases of nodes that are out of reach may hold the object without this owner's knowledge.
 */
static bool references_unknown(const struct control *c, const struct message_object *o)
{
	if (c->directory->references.minority)
		return true;
	/* the owner of before is out of reach, and may be the home of a lease itself */
	for (uint32_t i = 0; i < c->config.nodes && o->lapsed == MESSAGE_LAPSED_LEASE; i++) {
		const struct node *n = &c->cluster->peers.nodes[i];

		if (n->member == MEMBER_DEAD && c->now_ns < n->dead_ns + REFERENCES_DEATH_NS &&
		    ownership_before(c, n, &o->id))
			return true;
	}
	return false;
}

bool references_delete(struct control *c, uint32_t node, const struct message *m)
{
	const struct message_object *o = &m->object;
	const struct message_tombstone tombstone = {
		.id = o->id, .generation = o->generation, .request = m->request, .node = node};
	struct directory *d = &c->directory->shard;
	struct entry *e = directory_find(d, &o->id);
	struct reference *r = e && o->lease ? references_find(e, node, o->lease) : NULL;

	if (o->lapsed == MESSAGE_LAPSED_NOT)
		return false;
	if (references_unknown(c, o)) {
		directory_reply(d, node, m->request, -EHOSTUNREACH, 0,
				"leases of nodes that are out of reach may hold it");
		return true;
	}
	if (r)
		references_free(c, r);
	if (e && e->generation == o->generation && !references_keep(c, e, o))
		return false;
	if (!e || !references_keep(c, e, o)) {
		const struct tombstone *t = directory_tombstone(d, &o->id);

		if (t && t->generation >= o->generation)
			return false; /* it is gone, or being deleted */
		/* no live member has it, but a node may come back with a copy, which must go */
		directory_take_tombstone(d, &tombstone);
		directory_fresh(d, directory_tombstone(d, &o->id), NULL);
		e = directory_find(d, &o->id);
		if (e && !list_empty(&e->references))
			references_unhold(c, e, o->generation, true);
	}
	directory_reply(d, node, m->request, 0, o->generation, "");
	if (e)
		directory_settle(d, e);
	return true;
}

/* ---- for the directory ----------------------------------------------------------------------- */

void references_unhold(void *arg, struct entry *e, uint64_t generation, bool tell)
{
	struct control *c = arg;

	list_each(l, after, &e->references)
	{
		struct reference *r = list_item(l, struct reference, of_entry);

		if (r->generation > generation)
			continue;
		/* holders are informed by the REMOVE */
		if (tell && !directory_copy(e, r->node))
			agent_remove(c, r->node, &e->by_id.id, r->generation, false, NULL);
		references_free(c, r);
	}
}

static uint64_t references_left_ms(const struct control *c, const struct reference *r)
{
	if (r->timer.position == 0 || r->timer.at_ns == UINT64_MAX)
		return 0;
	return r->timer.at_ns > c->now_ns ? (r->timer.at_ns - c->now_ns) / 1000000 + 1 : 1;
}

void references_describe(void *arg, const struct entry *e, struct session_object *out)
{
	const struct control *c = arg;

	list_each(l, after, &e->references)
	{
		const struct reference *r = list_item(l, struct reference, of_entry);

		if (r->generation != e->generation)
			continue;
		if (r->lease.number == 0) {
			out->expires_ms = references_left_ms(c, r);
			continue;
		}
		if (out->leases++ > 0)
			continue;
		out->lease_node = r->node;
		out->lease = r->lease.number;
		out->lease_ms = references_left_ms(c, r);
		memcpy(out->lease_name, r->lease.name, sizeof(out->lease_name));
	}
}
