/* SPDX-License-Identifier: BSD-3-Clause */
#include "books.h"

#include "core/state.h"

static uint32_t length(const struct list *head)
{
	uint32_t n = 0;
	list_each(l, after, head) n++;
	return n;
}

/* ---- the directory -------------------------------------------------------------------------- */

static const char *books_copy(struct directory *d, struct entry *e, struct copy *copy)
{
	uint32_t sending = 0;
	list_each(l, after, &e->copies) sending +=
		directory_fed_by(list_item(l, struct copy, of_entry), copy);
	if (copy->entry != e || directory_copy(e, copy->node) != copy)
		return "a copy that is not found under its node";
	if (copy->sending != sending)
		return "a copy's streams that do not add up";
	if (copy->upstreams > 0 && copy->state != MESSAGE_COPY_PARTIAL)
		return "a complete copy that is being fed";
	for (uint32_t i = 0; i < copy->upstreams; i++) {
		struct copy *up = copy->upstream[i].copy;
		if (up->entry != e)
			return "a copy that is fed by another object";
		if (directory_depends(d, up, copy))
			return "copies that feed each other";
	}
	return NULL;
}

static const char *books_entry(struct directory *d, struct entry *e)
{
	uint32_t arriving = 0;
	list_each(l, after, &e->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_entry);
		const char *bad = books_copy(d, e, copy);
		if (bad)
			return bad;
		arriving += copy->state == MESSAGE_COPY_PARTIAL || copy->by_value;
	}
	if (length(&e->copies) != e->copies_count || length(&e->waiters) != e->waiters_count)
		return "an entry's copies or waiters do not add up";
	if (arriving != e->arriving)
		return "an entry's arriving copies do not add up";
	if (e->value && !e->has_value)
		return "an entry with a value that it does not have";
	if (!e->generation && (e->copies_count || e->has_value))
		return "an entry of nothing with copies";
	if (!e->copies_count && !e->has_value && !e->waiters_count && list_empty(&e->locates) &&
	    !e->reserved)
		return "an entry for nobody";
	return NULL;
}

static const char *books_directory(struct directory *d)
{
	uint32_t entries = 0, copies = 0, waiters = 0, locates = 0;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < d->entries.fresh; i++) {
		struct entry *e = pool_at(&d->entries, i);
		const char *bad = e->used ? books_entry(d, e) : NULL;
		if (bad)
			return bad;
		if (!e->used)
			continue;
		entries++;
		copies += e->copies_count;
		waiters += e->waiters_count;
		locates += length(&e->locates);
		bytes += e->value ? allocator_bytes(&d->inline_space, e->value) : 0;
	}
	if (entries != d->entries.used || copies != d->copies.used || waiters != d->waiters.used ||
	    locates != d->locates.used)
		return "the directory's tables do not add up";
	return bytes == d->inline_space.used_bytes ? NULL : "the directory's values do not add up";
}

/* ---- objects -------------------------------------------------------------------------------- */

static const char *books_object(struct control *c, uint32_t slot)
{
	const struct object *o = &c->store->objects.meta[slot];
	uint32_t makers;
	switch (c->table->slot[slot].state) {
	case OBJECT_CREATING:
		makers = (o->creator != NULL) + (o->participant != NULL) + o->unclaimed;
		if (makers > 1 || (makers == 0 && list_empty(&o->waits)))
			return "an object that nobody makes, or two";
		break;
	case OBJECT_FETCHING:
		if (!o->fetch || o->fetch->slot != slot)
			return "an object that arrives without a fetch";
		break;
	case OBJECT_SEALED:
		if (o->creator || o->participant || o->fetch || o->unclaimed)
			return "a complete object that is still being made";
		break;
	case OBJECT_ZOMBIE:
		if (o->participant || o->fetch || o->announced.call || !list_empty(&o->waits))
			return "an object that was taken away and is used";
		break;
	default:
		return o->range || o->holds || o->fetch || o->announced.call
			       ? "a free slot that is in use"
			       : NULL;
	}
	if (o->announced.call &&
	    (o->announced.call->owner != o || !o->announced.call->message.request))
		return "an announcement that has ended";
	if (o->stage && (o->stage->slot != slot || o->stage->dropping))
		return "an object whose buffer is another's, or goes";
	return NULL;
}

static const char *books_objects(struct control *c)
{
	struct objects *os = &c->store->objects;
	uint32_t count = 0, zombies = 0, announcing = 0, serves = 0;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < c->table->slots; i++) {
		const struct object *o = &os->meta[i];
		const char *bad = books_object(c, i);
		if (bad)
			return bad;
		if (c->table->slot[i].state == OBJECT_FREE)
			continue;
		count++;
		zombies += c->table->slot[i].state == OBJECT_ZOMBIE;
		announcing += o->announced.call != NULL;
		serves += length(&o->serves);
		bytes += o->range ? allocator_bytes(&os->space, o->range) : 0;
	}
	if (count != os->count || zombies != os->zombie_count || zombies != length(&os->zombies))
		return "objects do not add up";
	if (announcing != os->announcer.sending)
		return "announcements do not add up";
	if (serves != c->transfer->serves.pool.used)
		return "streams to others do not add up";
	return bytes == os->space.used_bytes ? NULL : "the store does not add up";
}

/* ---- fetches -------------------------------------------------------------------------------- */

static const char *books_feed(const struct feed *d)
{
	if (d->call && (d->call->owner != d || !d->call->message.request))
		return "a feed's request that has ended";
	if (d->state != FEED_FREE)
		return d->holder ? NULL : "a feed by nobody";
	if (d->holder || d->call || !list_empty(&d->edges) || !list_empty(&d->old_edges))
		return "a feed that has ended and holds something";
	return d->reparent || d->surplus || d->stands_in || d->silent
		       ? "a feed that has ended, and a mark"
		       : NULL;
}

static bool books_fetch_call(const struct fetch *f, const struct call *call)
{
	return !call || (call->owner == f && call->message.request);
}

static const char *books_fetch(struct control *c, const struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++) {
		const char *bad = books_feed(&f->feed[i]);
		if (bad)
			return bad;
	}
	if (!books_fetch_call(f, f->call) || !books_fetch_call(f, f->more) ||
	    !books_fetch_call(f, f->reparenting))
		return "a fetch's request that has ended";
	if (f->slot != TABLE_SLOT_NONE && c->store->objects.meta[f->slot].fetch != f)
		return "a fetch into another's place";
	if (f->state != FETCH_FED && ranges_feeds(f) > 0)
		return "a fetch that is fed and asks";
	if (f->state == FETCH_REST && f->timer.position == 0 &&
	    slots_find(c, &f->by_id.id) == TABLE_SLOT_NONE) /* being created here: hushed */
		return "a fetch that rests for ever";
	if ((f->state == FETCH_ASK || f->state == FETCH_INVENTORY) && !f->call)
		return "a fetch that waits for no answer";
	return f->inventory.found && f->state != FETCH_INVENTORY
		       ? "a chunk inventory without its fetch"
		       : NULL;
}

static const char *books_fetches(struct control *c)
{
	uint32_t feeding = 0;
	uint64_t rate = 0;
	list_each(l, after, &c->transfer->fetches.active)
	{
		const struct fetch *f = list_item(l, struct fetch, active);
		const char *bad = books_fetch(c, f);
		if (bad)
			return bad;
		feeding += f->looking;
		rate += f->rate;
	}
	if (length(&c->transfer->fetches.active) != c->transfer->fetches.pool.used)
		return "fetches do not add up";
	return feeding == c->transfer->fetches.feeding && rate == c->transfer->fetches.rate
		       ? NULL
		       : "what fetches take does not add up";
}

/* ---- the plan, calls, sessions -------------------------------------------------------------- */

static const char *books_stage(struct control *c, const struct stage *head)
{
	uint32_t lanes = 0;
	for (const struct stage *s = head; s; s = s->next) {
		lanes++;
		if (s->head != head || s->slot != head->slot)
			return "a lane of another buffer";
	}
	if (lanes != head->lanes)
		return "a buffer's lanes do not add up";
	return c->store->objects.meta[head->slot].holds ? NULL : "a buffer over what is free";
}

static const char *books_plan(struct control *c)
{
	const struct buffers *p = &c->flow->buffers;
	uint32_t ins = 0, outs = 0, holds = 0, held = 0;
	for (uint32_t i = 0; i < p->stages.fresh; i++) {
		const struct stage *s = pool_at(&p->stages, i);
		const char *bad = s->handle && s->head == s ? books_stage(c, s) : NULL;
		if (bad)
			return bad;
		if (!s->handle)
			continue;
		holds += s->head == s;
		ins += length(&s->ins);
		outs += length(&s->outs);
	}
	for (uint32_t i = 0; i < c->table->slots; i++)
		held += c->store->objects.meta[i].holds;
	if (ins != p->ins.used || outs != p->outs.used)
		return "edges do not add up";
	return holds == held ? NULL : "what buffers hold does not add up";
}

static const char *books_calls(struct control *c)
{
	uint32_t calls = 0, tombstones = 0;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		const struct node *n = peers_node(c, i);
		list_each(l, after, &n->calls)
		{
			const struct call *call = list_item(l, struct call, of_node);
			calls++;
			if (call->node != n || !call->message.request)
				return "a call at another node";
			if (call->timer.position == 0)
				return "a call that is neither repeated nor ends";
		}
		tombstones += n->tombstones_out;
	}
	if (calls != c->cluster->calls.pool.used)
		return "calls do not add up";
	return tombstones == c->directory->tombstone_copies.sending
		       ? NULL
		       : "tombstones on their way do not add up";
}

static const char *books_sessions(struct control *c)
{
	uint32_t waits = 0;
	for (uint32_t i = 0; i < c->session->sessions.pool.fresh; i++) {
		const struct session *s = pool_at(&c->session->sessions.pool, i);
		waits += s->pins ? length(&s->waits) : 0;
	}
	return waits == c->session->sessions.waits.used ? NULL : "waits do not add up";
}

const char *books_check(struct control *c)
{
	const char *bad = c ? books_directory(&c->directory->shard) : NULL;
	if (!c || bad)
		return bad;
	if ((bad = books_calls(c)) || (bad = books_sessions(c)) || !c->table)
		return bad;
	if ((bad = books_objects(c)) || (bad = books_fetches(c)))
		return bad;
	return books_plan(c);
}

/* ---- at rest -------------------------------------------------------------------------------- */

const char *books_check_idle(struct control *c)
{
	const struct {
		const char *what;
		uint32_t used;
	} left[] = {
		{"copies in the directory", c->directory->shard.copies.used},
		{"waiters in the directory", c->directory->shard.waiters.used},
		{"LOCATEs in the directory", c->directory->shard.locates.used},
		{"deletes under way", c->directory->shard.removals.used},
		{"values in the directory", c->directory->shard.inline_space.used_bytes > 0},
		{"tombstones that are to be told", c->directory->shard.fresh_count},
		{"tombstones on their way", c->directory->tombstone_copies.sending},
		{"followers of reduces", c->coordinator->reduces.followers.used},
		{"receivers of targets", c->coordinator->reduces.receivers.used},
		{"early STREAMs", c->transfer->serves.early.used},
		{"receivers of streams", c->transfer->serves.fed},
		{"pages of STAT", c->session->sessions.pages.used},
		{"sessions", c->session->sessions.pool.used},
		{"messages to itself", c->cluster->loopback.used},
		{"announcements", c->store->objects.announcer.sending},
		{"objects to be announced",
		 length(&c->store->objects.announcer.dirty) + length(&c->store->objects.late)},
		{"RECALLs", c->requester->requesters.announcer.sending},
	};
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		if (left[i].used)
			return left[i].what;
	return NULL;
}
