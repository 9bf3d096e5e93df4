/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"

enum {
	FETCH_ATTEMPTS = 5, /* times that the pause before the next GET doubles */
};

static void fetch_fire(struct control *c, struct timer *t);

void fetches_carve(struct fetches *f, struct arena *a, const struct control_config *config)
{
	pool_carve(&f->pool, a, sizeof(struct fetch), config->fetches_max);
	idmap_carve(&f->by_id, a, config->fetches_max);
}

static void fetch_timer(struct control *c, struct fetch *f, uint64_t delay_ns)
{
	timers_set(&c->timers, &f->timer, c->now_ns + delay_ns, fetch_fire);
}

static struct fetch *fetch_new(struct control *c, const struct object_id *id)
{
	struct fetch *f = pool_take(&c->transfer->fetches.pool);

	if (!f)
		return NULL;
	list_init(&f->waits);
	list_init(&f->early);
	list_append(&c->transfer->fetches.active, &f->active);
	idmap_insert(&c->transfer->fetches.by_id, &f->by_id, id);
	f->slot = TABLE_SLOT_NONE;
	f->failed = MESSAGE_NODE_NONE;
	for (int i = 0; i < FETCH_FEEDS; i++)
		upstream_init(&f->feed[i], f);
	return f;
}

struct fetch *fetch_find(struct control *c, const struct object_id *id)
{
	struct idmap_node *n = idmap_find(&c->transfer->fetches.by_id, id);

	return n ? idmap_item(n, struct fetch, by_id) : NULL;
}

uint32_t fetches_feeding(const struct control *c)
{
	return c->transfer->fetches.feeding;
}

struct fetch *fetch_get(struct control *c, const struct object_id *id, bool deferrable)
{
	struct fetch *f = fetch_find(c, id);

	if (f)
		return f;
	f = fetch_new(c, id);
	if (!f)
		return NULL;
	f->deferrable = deferrable;
	fetch_ask(c, f);
	f->deferrable = false; /* a repeated GET has lost a holder, or time */
	return f;
}

bool fetch_adopt(struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];
	uint64_t ready = atomic_load(&s->watermark);
	struct fetch *f;
	uint64_t *map;

	if (idmap_find(&c->transfer->fetches.by_id, &s->id))
		return false;
	f = fetch_new(c, &s->id);
	if (!f)
		return false;
	f->slot = slot;
	f->generation = s->generation;
	f->size = s->size;
	f->chunk_bytes = s->chunk_bytes;
	f->known = true;
	f->bitmap = buffers_bitmap(c, ranges_chunks(f));
	if (f->bitmap == 0) {
		placement_end(c, f);
		return false;
	}
	map = (uint64_t *)(void *)scratch_at(c, f->bitmap);
	bitmap_set(map, 0, (uint32_t)(ready / s->chunk_bytes));
	objects_at(c, slot)->fetch = f;
	fetch_rest(c, f);
	return true;
}

void fetch_upstreams(const struct fetch *f, struct message_have *have)
{
	have->upstream = MESSAGE_NODE_NONE;
	have->also_count = 0;
	for (int i = 0; i < FETCH_FEEDS; i++) {
		const struct node *holder = f->feed[i].holder;

		if (holder && have->upstream == MESSAGE_NODE_NONE)
			have->upstream = holder->number;
		else if (holder)
			have->also[have->also_count++] = holder->number;
	}
}

bool fetch_wanted(struct control *c, const struct fetch *f)
{
	if (!list_empty(&f->waits))
		return true;
	if (f->slot == TABLE_SLOT_NONE)
		return false;
	return !list_empty(&objects_at(c, f->slot)->waits) ||
	       serve_any(c, objects_at(c, f->slot)) || objects_pinned(c, f->slot);
}

void fetch_unwanted(struct control *c, struct fetch *f)
{
	/* A fetch that has its place continues: other nodes can use the copy. */
	if (f->slot == TABLE_SLOT_NONE && list_empty(&f->waits))
		placement_fail(c, f, -ECANCELED, "");
}

void fetch_lost_text(struct control *c, const struct fetch *f, struct text *t)
{
	*t = (struct text){.length = 0};
	text_add(t, "lost with node ");
	text_add_number(t, f->lost - 1);
	text_add(t, " (down for ");
	text_add_number(t, (c->now_ns - f->lost_ns) / UINT64_C(1000000000));
	text_add(t, " s): put it again");
}

/* Ends the waits with nowait: the object is unknown, or lost. Returns true when no wait is left. */
static bool fetch_refuse_nowait(struct control *c, struct fetch *f)
{
	struct text t;

	list_each(l, after, &f->waits)
	{
		struct await *w = list_item(l, struct await, link);

		if (w->nowait && f->lost) {
			fetch_lost_text(c, f, &t);
			wiring_wait_ended(c, w, -ENODATA, t.bytes);
		} else if (w->nowait)
			wiring_wait_absent(
				c, w, -ENOENT,
				*f->reason ? f->reason
					   : "no such object: wait for it with a timeout, or "
					     "put it");
	}
	return list_empty(&f->waits);
}

void fetch_answer_nowait(struct control *c, struct fetch *f)
{
	if (f->state == FETCH_ASK && f->answered && (!f->known || f->lost) &&
	    fetch_refuse_nowait(c, f))
		fetch_unwanted(c, f);
}

/* The directory has answered "wait". */
static bool fetch_waits(struct control *c, struct fetch *f, const struct message_got *got)
{
	uint64_t down_ns = got->down_ms < c->now_ns / 1000000 ? got->down_ms * 1000000 : c->now_ns;

	f->known = got->what == MESSAGE_GOT_WAIT;
	f->lost = got->lost;
	f->lost_ns = c->now_ns - down_ns;
	if (!f->answered)
		timers_cancel(&c->timers, &f->timer);
	f->answered = true;
	memcpy(f->reason, got->text, sizeof(f->reason));
	serve_early(c, f);
	/* Asks again after a pause: the failed holder may be back, and is not excluded any more;
	 * and a receiver with a part must learn soon if no complete copy is left. */
	if (f->failed != MESSAGE_NODE_NONE || f->slot != TABLE_SLOT_NONE) {
		f->failed = MESSAGE_NODE_NONE;
		f->why = MESSAGE_GET_FIRST;
		f->attempts += f->attempts > 0 && f->attempts < FETCH_ATTEMPTS;
		fetch_timer(c, f, env_backoff(c, f->attempts));
	}
	if (f->attempts > 0 && !fetch_wanted(c, f)) {
		f->call = NULL;
		placement_fail(c, f, -ECANCELED, "nobody holds all of it any more");
		return false;
	}
	if (f->slot != TABLE_SLOT_NONE || (f->known && !f->lost))
		return true;
	if (!fetch_refuse_nowait(c, f))
		return true;
	f->call = NULL; /* ends with this answer */
	placement_fail(c, f, -ECANCELED, "");
	return false;
}

/* A booking enters this node's copy in the directory: notes it as announced, unless the epoch has
 * risen since the GET. */
static void fetch_booked(struct control *c, struct fetch *f, const struct call *call)
{
	announce_agreed(c, f->slot, call->node, call->message.get.epoch);
}

static bool fetch_got(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	const struct message_got *got = &answer->got; /* no deadline: never NULL */

	switch (got->what) {
	case MESSAGE_GOT_UNKNOWN:
	case MESSAGE_GOT_WAIT:
		return fetch_waits(c, f, got);
	case MESSAGE_GOT_HOLDER:
		f->call = NULL;
		if (placement_place(c, f, got) == 0) {
			fetch_booked(c, f, call);
			monitor_keep_backups(f, got);
			fetch_connect(c, f, peers_node(c, got->holder));
		}
		return false;
	case MESSAGE_GOT_VALUE:
		f->call = NULL;
		f->answered |= got->waited;
		placement_take_value(c, f, got);
		return false;
	case MESSAGE_GOT_INCOMPLETE:
		f->call = NULL;
		if (f->slot != TABLE_SLOT_NONE && f->generation == got->generation)
			salvage_fetch(c, f);
		else
			fetch_rest(c, f);
		return false;
	default:
		f->call = NULL;
		placement_fail(c, f, got->status, got->text);
		return false;
	}
}

struct call *fetch_question(struct control *c, struct fetch *f, uint32_t why, uint32_t failed,
			    uint64_t timeout_ns, call_end *end)
{
	struct message m = {.kind = MESSAGE_GET};

	m.get.id = f->by_id.id;
	m.get.generation = f->generation;
	m.get.failed = failed;
	m.get.why = why;
	m.get.deferrable = f->deferrable;
	return rpc_start(c, ownership_shard(c, &f->by_id.id), &m, TABLE_SLOT_NONE, timeout_ns, end,
			 f);
}

void fetch_ask(struct control *c, struct fetch *f)
{
	f->state = FETCH_ASK;
	f->room_bytes = 0;
	f->answered = false;
	f->asked_ns = c->now_ns;
	timers_cancel(&c->timers, &f->timer);
	f->call = fetch_question(c, f, f->why, f->failed, UINT64_MAX, fetch_got);
	if (!f->call) { /* too many: later */
		f->state = FETCH_REST;
		serve_early(c, f);
		fetch_timer(c, f, env_backoff(c, 1));
	}
}

void fetch_rest(struct control *c, struct fetch *f)
{
	f->state = FETCH_REST;
	serve_early(c, f);
	fetch_timer(c, f, env_backoff(c, f->attempts));
}

void fetch_rest_roomless(struct control *c, struct fetch *f, uint64_t bytes)
{
	f->state = FETCH_REST;
	f->room_bytes = bytes;
	serve_early(c, f);
	fetch_timer(c, f, FETCH_ROOM_NS);
}

bool fetch_waits_for_room(const struct fetch *f)
{
	return f->state == FETCH_REST && f->room_bytes != 0;
}

void fetch_stop(struct control *c, struct fetch *f)
{
	rpc_cancel(c, f->call);
	rpc_cancel(c, f->more);
	rpc_cancel(c, f->reparenting);
	f->call = f->more = f->reparenting = NULL;
	for (int i = 0; i < FETCH_FEEDS; i++)
		upstream_stop(c, &f->feed[i]);
	monitor_end(c, f);
	salvage_fetch_end(c, f);
	f->piece_left = 0;
}

/* A feed has failed. The other feeds continue. Without any the fetch asks for another holder: at
 * once the first time, then after growing pauses. */
void fetch_feed_failed(struct control *c, struct fetch *f, struct node *holder, uint32_t why)
{
	c->counters.failovers++;
	if (ranges_feeds(f) > 0) {
		monitor_leave(c, f, holder);
		ranges_divide(c, f);
		return;
	}
	fetch_stop(c, f);
	f->failed = why == MESSAGE_GET_FIRST ? MESSAGE_NODE_NONE : holder->number;
	f->why = why;
	if (f->attempts++ == 0) {
		fetch_ask(c, f);
		return;
	}
	fetch_rest(c, f);
}

/* ---- FED --------------------------------------------------------------------------------- */

void fetch_connect(struct control *c, struct fetch *f, struct node *holder)
{
	struct feed *d = ranges_feed_free(f);

	f->state = FETCH_FED;
	monitor_begin(c, f);
	d->first = 0;
	d->end = ranges_chunks(f);
	upstream_start(c, d, holder);
}

bool fetch_wants(struct control *c, const struct link *l)
{
	list_each(i, after, &c->transfer->fetches.active)
	{
		const struct fetch *f = list_item(i, struct fetch, active);

		for (int k = 0; k < FETCH_FEEDS; k++)
			if (f->feed[k].state == FEED_LINK && f->feed[k].holder == l->node)
				return true;
	}
	return false;
}

void fetch_node_up(struct control *c, struct node *n)
{
	list_each(i, after, &c->transfer->fetches.active)
	{
		struct fetch *f = list_item(i, struct fetch, active);

		for (int k = 0; k < FETCH_FEEDS; k++)
			if (f->feed[k].holder == n)
				upstream_linked(c, &f->feed[k]);
	}
}

void fetch_node_dead(struct control *c, const struct node *n)
{
	list_each(i, after, &c->transfer->fetches.active)
	{
		struct fetch *f = list_item(i, struct fetch, active);

		for (int k = 0; k < FETCH_FEEDS; k++)
			if (f->feed[k].holder == n)
				upstream_failed(c, &f->feed[k], MESSAGE_GET_UNREACHED);
	}
}

static void fetch_fire(struct control *c, struct timer *t)
{
	struct fetch *f = list_item(t, struct fetch, timer);

	switch (f->state) {
	case FETCH_REST:
		if (f->room_bytes != 0 && placement_still_roomless(c, f))
			break;
		if (membership_joined(c))
			fetch_ask(c, f);
		else /* adopted from an earlier control process: there is no connection yet */
			fetch_rest(c, f);
		break;
	case FETCH_ASK:
		rpc_cancel(c, f->call);
		fetch_ask(c, f);
		break;
	default:
		break;
	}
}

static bool fetch_shard_is_here(struct control *c, const struct fetch *f)
{
	return ownership_shard(c, &f->by_id.id) == c->cluster->self;
}

/* The rate at which the object arrived, for the directory's model; 0: too few bytes to show the
 * link's rate. The time of the request does not count: the model has it separately. */
static uint64_t fetch_rate(struct control *c, const struct fetch *f)
{
	bool streamed = f->fed_ns != 0;
	uint64_t bytes = streamed ? (uint64_t)f->fed_chunks * f->chunk_bytes : f->size;
	uint64_t taken = c->now_ns - (streamed ? f->fed_ns : f->asked_ns);

	if (!streamed && (f->answered || fetch_shard_is_here(c, f)))
		return 0;
	return fanout_rate(&c->cluster->links.all, bytes, taken);
}

void fetch_done(struct control *c, struct fetch *f)
{
	uint32_t slot = f->slot;
	struct stage *s = objects_at(c, slot)->stage;
	uint64_t rate = fetch_rate(c, f);
	bool by_value = f->fed_ns == 0;

	if (rate > 0)
		linkstats_saw_rate(&c->cluster->links, c->cluster->self->number, MESSAGE_NODE_NONE,
				   rate, 0);
	objects_at(c, slot)->rate = rate;
	placement_end(c, f);
	objects_at(c, slot)->fetch = NULL;
	objects_seal(c, slot, false);
	if (by_value)
		announce_later(c, slot);
	else
		announce_object(c, slot);
	if (s)
		buffers_settle_stage(c, s);
}
