/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../table.h"
#include "history.h"

#include <errno.h>
#include <stdio.h>

#include "clients.h"
#include "peek.h"
#include "swarm/tally.h"

#define HISTORY_LATE_NS	  (3 * WORLD_S) /* a delete without an answer may take effect so late */
#define HISTORY_MET_NS	  WORLD_S	/* nodes that begin together know each other */
#define HISTORY_SETTLE_NS (3 * WORLD_S) /* after trouble, all is as it was */
#define HISTORY_PAIR_NS	  WORLD_S	/* in it a death is noticed, and another node told */
#define HISTORY_GET_NS                                                             \
	(500 * WORLD_MS) /* a small object comes in so long, when nothing is wrong \
			  */

static uint64_t now(const struct clients *c)
{
	return world_now(c->g->w);
}

static uint32_t nodes(const struct clients *c)
{
	return c->g->w->count;
}

/* ---- the state of the cluster --------------------------------------------------------------- */

static bool history_node_disturbed(const struct clients *c, const struct full *f)
{
	if (!f->core || !f->n->alive || c->g->w->net.endpoints[f->n->index].is_down ||
	    f->frozen_until_ns > now(c))
		return true;
	for (uint32_t k = 0; k < f->workers; k++)
		if (full_worker(f, k)->frozen_until_ns > now(c))
			return true;
	return false;
}

/* Whom this core takes for dead. A death that was refuted between two looks may have been
 * anybody's. */
static void history_look_deaths(struct clients *c, uint32_t observer)
{
	struct history *h = &c->history;
	const struct control *core = c->g->full[observer].core;
	uint64_t death = peek_death_ns(core);
	bool fresh = core && death != h->deaths_ns[observer];
	h->deaths_ns[observer] = death;
	h->gone[observer] = core ? 0 : UINT32_MAX;
	if (!core)
		h->owners_ns = now(c);
	for (uint32_t i = 0; i < nodes(c); i++)
		if (peek_gone(core, i)) {
			h->gap_ns[i] = h->owners_ns = now(c);
			h->gone[observer] |= 1u << i;
		}
	for (uint32_t i = 0; i < nodes(c) && fresh && death && !h->gone[observer]; i++)
		h->gap_ns[i] = h->owners_ns = now(c);
}

static bool history_reached(const struct clients *c, uint32_t node)
{
	for (uint32_t i = 0; i < nodes(c); i++)
		if (i != node && peek_reaches(c->g->full[i].core, node) &&
		    peek_reaches(c->g->full[node].core, i))
			return true;
	return false;
}

/* A node that was taken for dead hears of nothing until it reaches another one. Those that took it
 * for dead may have died since, and then do not know it any more. */
static void history_look_unreached(struct clients *c)
{
	struct history *h = &c->history;
	for (uint32_t i = 0; i < nodes(c); i++) {
		if (h->gap_ns[i] == now(c))
			h->unreached[i] = true;
		else if (h->unreached[i] && history_reached(c, i))
			h->unreached[i] = false;
		else if (h->unreached[i])
			h->gap_ns[i] = now(c);
	}
}

/* A node that was away for more deletes than are remembered gives up copies that nobody else has
 * (guarantees.md, 4). */
static void history_look_beyond(struct clients *c, uint32_t owner)
{
	struct history *h = &c->history;
	const struct control *core = c->g->full[owner].core;
	uint64_t beyond = core ? control_counters(core)->copies_beyond : 0;
	if (beyond > h->beyond[owner])
		h->beyond_ns = now(c);
	h->beyond[owner] = beyond;
}

bool history_given_up(const struct clients *c, const struct client_truth *t)
{
	return c->history.tight && c->history.beyond_ns > t->asked_ns;
}

/* Of two that do not take the same nodes for dead, one may not hear what the other knows. */
static void history_look_views(struct clients *c)
{
	struct history *h = &c->history;
	for (uint32_t i = 0; i < nodes(c); i++)
		for (uint32_t k = 0; k < nodes(c); k++)
			if (h->gone[i] != h->gone[k])
				h->differed_ns[i][k] = now(c);
}

void history_look(struct clients *c)
{
	struct history *h = &c->history;
	bool split = c->splits && c->splits->split;
	for (uint32_t i = 0; i < nodes(c); i++) {
		if (split || history_node_disturbed(c, &c->g->full[i]))
			h->disturbed_ns = now(c);
		if (split || c->g->w->net.endpoints[i].is_down)
			h->cut_ns = now(c);
		history_look_deaths(c, i);
		history_look_beyond(c, i);
	}
	history_look_unreached(c);
	history_look_views(c);
}

/* Nothing has been wrong since then, nor shortly before; and the members had met. */
static bool history_calm(const struct clients *c, uint64_t since)
{
	const struct history *h = &c->history;
	if (h->trouble || since < WORLD_START_NS + HISTORY_MET_NS)
		return false;
	return !h->disturbed_ns || h->disturbed_ns + HISTORY_SETTLE_NS <= since;
}

/* No member took the node for dead since then, nor shortly before. */
static bool history_together(const struct clients *c, uint32_t node, uint64_t since)
{
	uint64_t at = c->history.gap_ns[node];
	return !at || at + HISTORY_SETTLE_NS <= since;
}

/* All nodes were of one mind: nobody was taken for dead since the one moment, or some time before
 * the other. */
static bool history_agreed(const struct clients *c, uint64_t since, uint64_t before)
{
	for (uint32_t n = 0; n < nodes(c); n++)
		if (!history_together(c, n, since) && !history_together(c, n, before))
			return false;
	return true;
}

/* What ends now, and began then, was done by nodes that all reached each other. */
static bool history_joint(const struct clients *c, uint64_t since)
{
	const struct history *h = &c->history;
	return history_agreed(c, since, since) &&
	       (!h->cut_ns || h->cut_ns + HISTORY_SETTLE_NS <= since);
}

/* The owners know all objects that were put before: each waits for what the members tell. Owners of
 * a fixed list do not (a limit of guarantees.md), but these parts stay where they were. */
static bool history_known(const struct clients *c, uint64_t since)
{
	const struct history *h = &c->history;
	return history_strict || c->g->config.shards == 0 || !h->owners_ns ||
	       h->owners_ns + HISTORY_SETTLE_NS <= since;
}

static bool history_holds(const struct clients *c, uint32_t node, uint32_t name,
			  uint64_t generation)
{
	const struct object_table *t = (const struct object_table *)c->g->full[node].n->table.base;
	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i].state == OBJECT_SEALED && t->slot[i].id.bytes[5] == name &&
		    t->slot[i].generation == generation)
			return true;
	return false;
}

uint64_t history_held(const struct clients *c, uint32_t name)
{
	uint64_t newest = 0;
	for (uint32_t n = 0; n < nodes(c); n++) {
		const struct object_table *t =
			(const struct object_table *)c->g->full[n].n->table.base;
		for (uint32_t i = 0; i < t->slots; i++)
			if (t->slot[i].state == OBJECT_SEALED && t->slot[i].id.bytes[5] == name &&
			    t->slot[i].generation > newest)
				newest = t->slot[i].generation;
	}
	return newest;
}

/* The generation up to which the node remembers a delete, or 0; also while its control is dead. */
static uint64_t history_tombstone_at(const struct clients *c, uint32_t node, uint32_t name)
{
	struct object_table *table = (struct object_table *)c->g->full[node].n->table.base;
	struct object_private *private = table_private(table);
	const struct object_tombstone *g = object_private_tombstone(private);
	uint64_t newest = 0;
	for (uint32_t i = 0; i < private->tombstones; i++)
		if (g[i].generation > newest && g[i].id.bytes[5] == name)
			newest = g[i].generation;
	return newest;
}

static bool history_remembers(const struct clients *c, uint32_t node, uint32_t name,
			      uint64_t generation)
{
	uint64_t there = history_tombstone_at(c, node, name);
	return there && there >= generation;
}

/* The creators' clocks decide between a put and a delete on two sides of a cut: the delete of a
 * later generation wins, also if it had ended before the put began (guarantees.md). That excuses a
 * put only if no node that knew of the delete had the same members in view as the creator all the
 * while. If one had, the put must be refused and take a later generation. */
static void history_overrule(const struct clients *c, struct client_truth *t)
{
	bool known = false;
	t->unaware = t->judged = true;
	for (uint32_t n = 0; n < nodes(c); n++) {
		if (!history_remembers(c, n, t->name, t->generation + 1))
			continue;
		known = true;
		if (c->history.differed_ns[t->node][n] < t->asked_ns)
			t->unaware = false;
	}
	t->overruled = known && t->unaware;
}

/* The store of a node that remembers the delete of this version is about to be lost. A delete that
 * nobody else remembers may come to nothing (guarantees.md, 4): if another store that remembered it
 * was lost just before, or there is one owner. */
static void history_store_forgets(const struct clients *c, uint32_t node, struct client_truth *t)
{
	uint64_t before = t->forgot_ns;
	bool pair = before && now(c) - before <= HISTORY_PAIR_NS;
	if (!t->generation || !history_remembers(c, node, t->name, t->generation))
		return;
	t->forgot_ns = now(c);
	for (uint32_t n = 0; n < nodes(c); n++)
		if (n != node && history_remembers(c, n, t->name, t->generation))
			return;
	t->forgotten |= pair || c->g->config.shards == 1;
}

/* What the lost store was the creator's of, others may have; what nobody has any more is lost. */
void history_store_lost(struct clients *c, uint32_t node)
{
	for (uint32_t i = 0; i < c->truths; i++) {
		struct client_truth *t = &c->truth[i];
		history_store_forgets(c, node, t);
		if (!(t->holders >> node & 1))
			continue;
		t->holders = 0;
		for (uint32_t n = 0; n < nodes(c); n++)
			if (n != node && t->generation &&
			    history_holds(c, n, t->name, t->generation))
				t->holders |= 1u << n;
		t->moved = true;
		t->lost |= t->holders == 0;
	}
	c->history.disturbed_ns = c->history.lost_ns = now(c);
}

/* ---- deletes -------------------------------------------------------------------------------- */

/* The nodes with a complete copy that no owner knows of. Where tables are tight, the directory may
 * refuse to note a copy (ENOSPC); its node tries again, and learns then that it was deleted. */
static uint32_t history_unnoted(const struct clients *c, uint32_t name)
{
	uint32_t unnoted = 0;
	for (uint32_t n = 0; n < nodes(c) && c->history.tight; n++) {
		const struct object_table *t =
			(const struct object_table *)c->g->full[n].n->table.base;
		for (uint32_t i = 0; i < t->slots; i++) {
			const struct object_slot *o = &t->slot[i];
			bool noted = o->state != OBJECT_SEALED || o->id.bytes[5] != name;
			for (uint32_t k = 0; k < nodes(c) && !noted; k++)
				noted = peek_noted(c->g->full[k].core, &o->id, n);
			if (!noted)
				unnoted |= 1u << n;
		}
	}
	return unnoted;
}

uint32_t history_delete(struct clients *c, const struct client *k)
{
	struct history *h = &c->history;
	if (h->removals == HISTORY_REMOVALS)
		return HISTORY_NONE;
	h->removal[h->removals] = (struct history_removal){.name = k->name,
							   .node = k->node,
							   .asked_ns = now(c),
							   .ended_ns = UINT64_MAX,
							   .held = history_held(c, k->name),
							   .unnoted = history_unnoted(c, k->name)};
	return h->removals++;
}

/* Before a delete is answered two nodes have its tombstone (guarantees.md, 4). */
static void history_remembered(const struct clients *c, const struct history_removal *r)
{
	uint32_t remember = 0;
	if (!r->joint || !r->held || c->history.tight || c->g->config.shards ||
	    c->history.lost_ns >= r->asked_ns)
		return;
	for (uint32_t n = 0; n < nodes(c); n++)
		remember += history_remembers(c, n, r->name, r->held);
	tally(TALLY_REMEMBERED);
	if (remember < 2)
		world_violation(c->g->w,
				"node %u: the delete of object %u was answered, and %u nodes "
				"remember it, not 2",
				r->node, r->name, remember);
}

void history_rest(const struct clients *c)
{
	for (uint32_t name = 0; name < SPLITS_NAMES && !c->g->config.shards; name++) {
		uint64_t newest = 0;
		uint32_t remember = 0;
		for (uint32_t n = 0; n < nodes(c); n++) {
			uint64_t there = history_tombstone_at(c, n, name);
			remember = there > newest ? 1 : remember + (there && there == newest);
			newest = there > newest ? there : newest;
		}
		if (newest)
			tally(TALLY_TOMBSTONES);
		if (remember == 1)
			world_violation(c->g->w,
					"one node alone remembers the delete of object %u, "
					"generation %llx",
					name, (unsigned long long)newest);
	}
}

void history_delete_ended(struct clients *c, uint32_t removal, bool answered, int32_t status)
{
	if (removal == HISTORY_NONE)
		return;
	struct history_removal *r = &c->history.removal[removal];
	history_look(c); /* somebody may have been taken for dead since the last step */
	r->ended_ns = now(c);
	r->deleted = answered && status == 0;
	r->joint = r->deleted && history_joint(c, r->asked_ns) && history_known(c, r->asked_ns);
	r->uncertain = !answered || (status != 0 && status != -ENOENT);
	history_remembered(c, r);
}

/* Until when a delete may still remove something. One that failed goes on until the holder that did
 * not answer does: some time after all is well. */
static uint64_t history_over_ns(const struct history *h, const struct history_removal *r)
{
	if (!r->uncertain || r->ended_ns == UINT64_MAX)
		return r->ended_ns;
	return (r->ended_ns > h->disturbed_ns ? r->ended_ns : h->disturbed_ns) + HISTORY_LATE_NS;
}

bool history_deleted(const struct clients *c, uint32_t name, uint64_t from, uint64_t to)
{
	const struct history *h = &c->history;
	if (h->removals == HISTORY_REMOVALS)
		return true;
	for (uint32_t i = 0; i < h->removals; i++) {
		const struct history_removal *r = &h->removal[i];
		if (r->name == name && r->asked_ns <= to && history_over_ns(h, r) >= from)
			return true;
	}
	return false;
}

/* A delete that had all of this version before it and had ended at that time, or NULL. One while
 * all nodes reached each other is preferred. */
static const struct history_removal *history_tombstone(const struct clients *c,
						       const struct client_truth *t, uint64_t at)
{
	const struct history *h = &c->history;
	const struct history_removal *found = NULL;
	for (uint32_t i = 0; i < h->removals; i++) {
		const struct history_removal *r = &h->removal[i];
		if (r->deleted && r->name == t->name && t->sealed_ns &&
		    t->sealed_ns < r->asked_ns && r->ended_ns < at)
			found = r;
		if (found && found->joint)
			break;
	}
	return found;
}

/* ---- versions ------------------------------------------------------------------------------- */

/* Put, and not deleted or lost as far as anybody could know: at each moment since then it was
 * there. */
static const struct client_truth *history_surely(const struct clients *c, uint32_t name,
						 uint64_t since)
{
	for (uint32_t i = c->truths; i-- > 0;) {
		const struct client_truth *t = &c->truth[i];
		if (t->name == name && t->sealed_ns && t->sealed_ns < since && !t->lost &&
		    !t->gone && !t->overruled && !history_given_up(c, t) &&
		    !history_deleted(c, name, t->asked_ns, now(c)))
			return t;
	}
	return NULL;
}

/* Whether another client has tried to put something of this name since then. */
static bool history_putting(const struct clients *c, const struct client *k, uint64_t since)
{
	if (c->history.refused_ns[k->name] >= since)
		return true;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct client *o = &c->client[i];
		if (o != k && o->name == k->name && o->state != CLIENT_GONE &&
		    o->state > CLIENT_IDLE && o->state <= CLIENT_SEALING)
			return true;
	}
	return false;
}

/* Whether anything of this name, but for the client's own put, may have been there since then. */
static bool history_perhaps(const struct clients *c, const struct client *k, uint64_t since)
{
	if (history_putting(c, k, since))
		return true;
	for (uint32_t i = 0; i < c->truths; i++) {
		const struct client_truth *t = &c->truth[i];
		if (t->name == k->name && !(t->put && t->put == k->put) &&
		    !history_tombstone(c, t, since))
			return true;
	}
	return false;
}

/* Whether the members took every node that has it for dead since it was made. */
static bool history_dead(const struct clients *c, const struct client_truth *t)
{
	for (uint32_t n = 0; n < nodes(c); n++)
		if (t->holders >> n & 1 && history_together(c, n, t->asked_ns))
			return false;
	return true;
}

/* Whether another version was put before this one, had not been deleted by then, and has the higher
 * generation, because its creator's clock is ahead. The creator of this one could not see it. When
 * both sides meet again, the version with the higher generation stays (guarantees.md). */
static bool history_outdone(const struct clients *c, const struct client_truth *t)
{
	for (uint32_t i = 0; i < c->truths; i++) {
		const struct client_truth *o = &c->truth[i];
		if (o->name == t->name && o->sealed_ns && o->asked_ns < t->asked_ns &&
		    o->generation > t->generation && !history_tombstone(c, o, t->asked_ns))
			return true;
	}
	return false;
}

void history_sealed(struct clients *c, struct client_truth *t)
{
	t->sealed = true;
	t->sealed_ns = now(c);
	t->joint = history_joint(c, t->asked_ns) && history_known(c, t->asked_ns);
}

void history_created(struct clients *c, struct client_truth *t)
{
	history_look(c); /* somebody may have been taken for dead since the last step */
	history_overrule(c, t);
	for (uint32_t i = 0; i < c->truths; i++) {
		struct client_truth *old = &c->truth[i];
		if (old == t || old->name != t->name || !old->sealed_ns ||
		    old->sealed_ns >= t->asked_ns || old->gone)
			continue;
		old->gone = true;
		if (history_deleted(c, t->name, old->asked_ns, now(c)))
			continue;
		tally(TALLY_REPLACED);
		/* of two puts on two sides of a cut the newer one stays */
		if (!old->lost && !history_given_up(c, old) && !history_dead(c, old) &&
		    !history_outdone(c, old) && history_together(c, t->node, old->asked_ns) &&
		    history_known(c, old->asked_ns))
			world_violation(
				c->g->w,
				"node %u put object %u generation %llx over generation %llx of node %u, "
				"which nobody deleted",
				t->node, t->name, (unsigned long long)t->generation,
				(unsigned long long)old->generation, old->node);
	}
}

/* What the client has got, or NULL. */
static struct client_truth *history_version(struct clients *c, const struct client *k)
{
	for (uint32_t i = 0; i < c->truths; i++)
		if (c->truth[i].name == k->name && c->truth[i].generation == k->generation)
			return &c->truth[i];
	return NULL;
}

/* Whether a delete of the name had begun by then, and is still under way when the get begins: it
 * has not reached all holders yet, whatever was put and deleted since. Nor has one reached the
 * client's node, ended or not, if the directory had no room to note the copy there. */
static bool history_deleting(struct clients *c, const struct client *k, uint64_t begun_ns)
{
	const struct history *h = &c->history;
	const struct client_truth *got = history_version(c, k);
	if (h->removals == HISTORY_REMOVALS)
		return true;
	for (uint32_t i = 0; i < h->removals; i++) {
		const struct history_removal *r = &h->removal[i];
		if (r->name == k->name && r->asked_ns <= begun_ns &&
		    (history_over_ns(h, r) >= k->asked_ns ||
		     (r->unnoted >> k->node & 1 && got && got->asked_ns <= r->asked_ns)))
			return true;
	}
	return false;
}

/* Whether the version that the client has got was put after that one was complete, with a lower
 * generation of a clock that is behind: where all that remembered the delete of that one were cut
 * off, had lost their stores, or had forgotten it for later ones. It is the newer of the two. A put
 * may be read before its answer has come. */
static bool history_later(struct clients *c, const struct client *k, const struct client_truth *t)
{
	struct client_truth *got = history_version(c, k);
	if (got && !got->judged)
		history_overrule(c, got);
	return got && got->unaware && got->asked_ns > t->sealed_ns;
}

static void history_stale(const struct clients *c, const struct client *k, uint32_t by,
			  const char *what)
{
	world_violation(c->g->w,
			"node %u: got object %u generation %llx, which node %u had %s before",
			k->node, k->name, (unsigned long long)k->generation, by, what);
}

void history_got(struct clients *c, const struct client *k)
{
	history_look(c);
	for (uint32_t i = 0; i < c->truths; i++) {
		const struct client_truth *t = &c->truth[i];
		if (t->name != k->name || !t->sealed_ns || t->sealed_ns >= k->asked_ns)
			continue;
		const struct history_removal *r = history_tombstone(c, t, k->asked_ns);
		/* another delete, of the generation before, may not have reached all holders yet */
		if (r && r->joint && history_agreed(c, r->asked_ns, k->asked_ns) &&
		    !history_deleting(c, k, r->ended_ns)) {
			tally(TALLY_STALE_DELETED);
			if (t->generation == k->generation && !t->forgotten)
				history_stale(c, k, r->node, "deleted");
		}
		/* one that was lost with its stores hides nothing: the delete before it does. Nor
		 * does one whose delete was lost so. */
		if (!t->joint || t->lost || t->forgotten ||
		    !history_agreed(c, t->asked_ns, k->asked_ns) ||
		    history_deleting(c, k, t->sealed_ns))
			continue;
		tally(TALLY_STALE_REPLACED);
		if (t->generation > k->generation && !history_later(c, k, t))
			history_stale(c, k, t->node, "put a newer one of");
	}
}

/* ---- refusals ------------------------------------------------------------------------------- */

static bool history_status_right(struct clients *c, const struct client *k, int32_t status)
{
	const struct client_truth *t = history_surely(c, k->name, k->asked_ns);
	switch (-status) {
	case ENOSPC:
		return true;
	case EEXIST:
		tally(TALLY_EXISTS_CALM);
		return history_perhaps(c, k, k->asked_ns);
	case ENOENT:
		tally(TALLY_MISSING_CALM);
		return !t;
	case ETIMEDOUT:
		return (k->state == CLIENT_GETTING || k->state == CLIENT_WAITING) &&
		       k->timeout_ns > 0 &&
		       (!t || t->size > OBJECT_INLINE_MAX ||
			k->timeout_ns < (int64_t)HISTORY_GET_NS);
	case ESTALE:   /* or a put beside it that got a place and was refused */
	case ERESTART: /* of a PUT: it is to be created, with a later generation */
		return (k->state == CLIENT_PUTTING && status == -ERESTART) ||
		       history_putting(c, k, k->begun_ns) ||
		       history_deleted(c, k->name, k->begun_ns, now(c));
	default:
		return false;
	}
}

void history_refused(struct clients *c, const struct client *k, const char *what, int32_t status,
		     const char *text)
{
	struct history *h = &c->history;
	bool put = k->state == CLIENT_PUTTING || k->state == CLIENT_CREATING;
	if (put && !history_calm(c, k->asked_ns) && history_surely(c, k->name, k->asked_ns))
		tally(TALLY_REFUSED);
	if (!h->tight && history_calm(c, k->begun_ns)) {
		tally(TALLY_STATUS_CALM);
		if (!history_status_right(c, k, status))
			world_violation(
				c->g->w,
				"node %u: %s of object %u answered with %d (%s), and nothing was wrong",
				k->node, what, k->name, status, text);
	}
	if (put)
		h->refused_ns[k->name] = now(c);
}

/* ---- to replay a failure -------------------------------------------------------------------- */

static double history_ms(uint64_t at_ns)
{
	return at_ns == 0 || at_ns == UINT64_MAX ? 0 : (double)(at_ns - WORLD_START_NS) / 1e6;
}

void history_print(const struct clients *c)
{
	const struct history *h = &c->history;
	for (uint32_t i = 0; i < c->truths; i++) {
		const struct client_truth *t = &c->truth[i];
		fprintf(stderr,
			"  object %u generation %llx, %llu bytes, node %u: put at %.3f, complete at %.3f ms%s%s\n",
			t->name, (unsigned long long)t->generation, (unsigned long long)t->size,
			t->node, history_ms(t->asked_ns), history_ms(t->sealed_ns),
			t->lost ? ", lost" : "",
			t->overruled ? ", deleted on another side"
			: t->gone    ? ", replaced"
				     : "");
	}
	for (uint32_t i = 0; i < h->removals; i++) {
		const struct history_removal *r = &h->removal[i];
		fprintf(stderr, "  object %u: delete at node %u at %.3f, %s at %.3f ms\n", r->name,
			r->node, history_ms(r->asked_ns),
			r->deleted     ? "deleted"
			: r->uncertain ? "failed"
				       : "found nothing",
			history_ms(r->ended_ns));
	}
	for (uint32_t i = 0; i < nodes(c); i++)
		if (h->gap_ns[i])
			fprintf(stderr, "  node %u was taken for dead until %.3f ms\n", i,
				history_ms(h->gap_ns[i]));
}
