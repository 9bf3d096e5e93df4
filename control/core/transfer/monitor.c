/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A periodic look at the rate of each fetch that is FED. One holder fills the link for most. One
 * more is asked for
 *   - on trial, when complete copies are idle: it stays if the rate grows by an eighth. The result
 *     holds for other fetches of this node for a while;
 *   - as a hedge, when the rate is less than half of what this node can receive, and the holder has
 *     more than it sends. A holder that has no more itself gets longer: the receiver next to the
 *     slow node is the first to avoid it.
 * A feed that brings nothing while others do is ended. Called by fetch.c.
 */
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"

#define LOOK_SECOND UINT64_C(1000000000)

enum {
	LOOK_SLOW = 2, /* looks in a row that make a fetch slow */
	LOOK_SLOW_AFTER =
		16,	  /* and with a holder that has no more than we: 0.4 s. With 8 the ends of
			   * a chain took half of its source from a node that had just come back */
	LOOK_IDLE = 4,	  /* looks without a chunk that end a feed */
	LOOK_TRIAL = 4,	  /* looks that a trial takes */
	LOOK_STEADY = 2,  /* looks that found the rate to grow no more, before a trial */
	LOOK_LEAD = 64,	  /* chunks that a holder must have more */
	LOOK_REFUSED = 6, /* the pause doubles so often */
};

/* ---- the directory ------------------------------------------------------------------------- */

static bool monitor_left(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

void monitor_leave(struct control *c, const struct fetch *f, const struct node *holder)
{
	struct message m = {.kind = MESSAGE_DROP};

	m.object.id = f->by_id.id;
	m.object.generation = f->generation;
	m.object.upstream = holder->number + 1;
	rpc_start(c, ownership_shard(c, &f->by_id.id), &m, TABLE_SLOT_NONE, c->config.call_ns,
		  monitor_left, NULL);
}

static void monitor_refused(struct control *c, struct fetch *f)
{
	f->refused += f->refused < LOOK_REFUSED;
	f->help_ns = c->now_ns + (LOOK_PAUSE_NS << f->refused);
	f->rate_one = 0;
}

static struct feed *monitor_silent(struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (f->feed[i].state != FEED_FREE && f->feed[i].silent)
			return &f->feed[i];
	return NULL;
}

/* Whether the answer is out of date: the fetch asked long ago, or because of a silent holder that
 * has answered since. */
static bool monitor_is_stale(struct control *c, struct fetch *f, const struct call *call)
{
	const struct message_get *get = &call->message.get;

	if (get->failed != MESSAGE_NODE_NONE)
		return !monitor_silent(f);
	return c->now_ns - f->more_ns > LOOK_PAUSE_NS;
}

struct node *monitor_holder_booked(struct control *c, const struct message *answer)
{
	bool booked = answer && answer->got.what == MESSAGE_GOT_HOLDER;
	struct node *holder = booked ? peers_node(c, answer->got.holder) : NULL;

	return holder == c->cluster->self ? NULL : holder;
}

void monitor_take_got(struct control *c, struct fetch *f, struct feed *d, struct node *holder)
{
	d->first = d->end = ranges_chunks(f);
	upstream_start(c, d, holder);
	ranges_divide(c, f);
}

static void monitor_take(struct control *c, struct fetch *f, struct feed *d, struct node *holder,
			 bool hedge)
{
	d->stands_in = monitor_silent(f) != NULL;
	if (hedge)
		rehome_surplus(c, d);
	monitor_take_got(c, f, d, holder);
}

static bool monitor_got(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct node *holder = monitor_holder_booked(c, answer);
	struct feed *d = ranges_feed_free(f);

	f->more = NULL;
	if (answer && answer->got.what == MESSAGE_GOT_INCOMPLETE &&
	    answer->got.generation == f->generation) {
		fetch_stop(c, f);
		salvage_fetch(c, f);
		return false;
	}
	if (!holder) {
		monitor_refused(c, f);
		return false;
	}
	f->refused = f->slow = 0;
	f->help_ns = c->now_ns + LOOK_PAUSE_NS;
	if (!d || answer->got.generation != f->generation || monitor_is_stale(c, f, call)) {
		monitor_leave(c, f, holder);
		return false;
	}
	monitor_keep_backups(f, &answer->got);
	monitor_take(c, f, d, holder, call->message.get.why == MESSAGE_GET_HEDGE);
	return false;
}

/* Asks for one more holder; silent: the holder that does not answer, or MESSAGE_NODE_NONE. */
static void monitor_ask(struct control *c, struct fetch *f, enum message_get_why why,
			uint32_t silent)
{
	f->more = fetch_question(c, f, why, silent, c->config.call_ns, monitor_got);
	f->more_ns = c->now_ns;
	if (!f->more)
		monitor_refused(c, f);
	else if (why == MESSAGE_GET_HEDGE)
		c->counters.hedges++;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static void monitor_later(struct control *c, struct fetch *f, uint64_t delay_ns);

void monitor_begin(struct control *c, struct fetch *f)
{
	if (!f->looking)
		c->transfer->fetches.feeding++;
	f->looking = true;
	f->slow = f->refused = f->steady = 0;
	f->rate_one = f->queried_ns = 0;
	rehome_begin(f);
	f->help_ns = c->now_ns;
	timers_cancel(&c->timers, &f->timer);
}

void monitor_end(struct control *c, struct fetch *f)
{
	timers_cancel(&c->timers, &f->timer);
	if (!f->looking)
		return;
	f->looking = false;
	c->transfer->fetches.feeding--;
	c->transfer->fetches.rate -= f->rate;
	f->rate = 0;
}

void monitor_fed(struct control *c, struct fetch *f, struct feed *d, uint32_t ready)
{
	uint32_t chunks = ranges_chunks(f), missing = chunks_missing(ranges_map(c, f), 0, chunks);

	d->lead = ready > chunks - missing ? ready - (chunks - missing) : 0;
	d->behind = ready < chunks - missing ? chunks - missing - ready : 0;
	for (struct feed *s = monitor_silent(f); s && s != d; s = monitor_silent(f)) {
		f->spare -= f->spare > 0; /* the silent holder is not spare */
		monitor_let_go(c, f, s);
	}
	if (f->timer.position != 0)
		return;
	f->missing = missing;
	f->looked_ns = c->now_ns;
	monitor_later(c, f, LOOK_MIN_NS);
}

/* ---- silence --------------------------------------------------------------------------------- */

/* Whether another feed brings chunks, or is about to. */
static bool monitor_has_other(const struct fetch *f, const struct feed *d, bool feeding)
{
	for (int i = 0; i < FETCH_FEEDS; i++) {
		const struct feed *o = &f->feed[i];

		if (o != d && o->state != FEED_FREE && !o->silent &&
		    (!feeding || o->state == FEED_STREAM))
			return true;
	}
	return false;
}

bool monitor_has_stand_in(const struct fetch *f, const struct feed *d)
{
	return monitor_has_other(f, d, false);
}

void monitor_note_lost(struct control *c, struct fetch *f, const struct feed *d)
{
	if (f->repair_ns != 0)
		return;
	f->repair_ns = c->now_ns;
	f->repair_moved_ns = d->watch.moved_ns;
	f->repair_of = d->holder->number;
}

void monitor_keep_backups(struct fetch *f, const struct message_got *got)
{
	f->backups = got->also_count;
	memcpy(f->backup, got->also, sizeof(f->backup));
}

/* The directory does not answer either: fetches from a node that had a complete copy, without a
 * booking. */
static void monitor_turn_to_backup(struct control *c, struct fetch *f)
{
	struct feed *d = ranges_feed_free(f);

	for (uint32_t i = 0; d && i < f->backups; i++) {
		struct node *n = peers_node(c, f->backup[i]);

		f->backup[i] = MESSAGE_NODE_NONE;
		if (!n || n == c->cluster->self || ranges_feed_of(f, n))
			continue;
		c->counters.hedges++;
		monitor_take(c, f, d, n, true);
		return;
	}
}

void monitor_say_silent(struct control *c, struct fetch *f, struct feed *d)
{
	bool first = !d->silent, asked = f->more != NULL;

	d->silent = true;
	c->counters.silences += first;
	monitor_note_lost(c, f, d);
	if (f->piece_left) {
		upstream_failed(c, d, MESSAGE_GET_UNREACHED);
		return;
	}
	if (monitor_has_other(f, d, true)) {
		monitor_let_go(c, f, d);
		return;
	}
	if (!ranges_feed_free(f) || monitor_has_other(f, d, false))
		return;
	if (first)
		f->refused = 0;
	if (!asked && (first || c->now_ns >= f->help_ns))
		monitor_ask(c, f, MESSAGE_GET_HEDGE, d->holder->number);
	if (d->holder == ownership_shard(c, &f->by_id.id) ||
	    (asked && c->now_ns - f->more_ns >= WATCH_SILENT_MIN_NS))
		monitor_turn_to_backup(c, f);
}

/* The stand-in has not answered yet, and is not needed any more. */
void monitor_speaks(struct control *c, struct fetch *f, const struct feed *d)
{
	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *o = &f->feed[i];

		if (o == d || !o->stands_in || o->state == FEED_FREE || o->state == FEED_STREAM)
			continue;
		c->counters.hedges_vain++;
		monitor_let_go(c, f, o);
	}
}

void monitor_flows(struct control *c, struct fetch *f, const struct feed *d)
{
	struct text t = {.length = 0};

	if (f->repair_ns == 0)
		return;
	text_add_object(&t, &f->by_id.id, texts_name(c, f->slot));
	text_add(&t, " goes on from node ");
	text_add_number(&t, d->holder->number);
	text_add(&t, ", ");
	text_add_number(&t, (c->now_ns - f->repair_ns) / 1000);
	text_add(&t, " us after node ");
	text_add_number(&t, f->repair_of);
	text_add(&t, " was found lost, ");
	text_add_number(&t, (c->now_ns - f->repair_moved_ns) / 1000);
	text_add(&t, " us after its last chunk");
	env_log(c, CONTROL_LOG_INFO, &t);
	f->repair_ns = 0;
}

/* ---- a look --------------------------------------------------------------------------------- */

static uint64_t monitor_rate(const struct fetch *f, uint32_t chunks, uint64_t ns)
{
	return ns == 0 ? 0 : (uint64_t)((double)chunks * f->chunk_bytes * LOOK_SECOND / (double)ns);
}

/* Time for so many chunks at this rate. */
static uint64_t monitor_time(const struct fetch *f, uint32_t chunks, uint64_t rate)
{
	double ns = (double)chunks * f->chunk_bytes * LOOK_SECOND / (double)(rate + 1);

	return ns > 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)ns;
}

static void monitor_at_feed(struct control *c, struct feed *d, const uint64_t *map)
{
	uint32_t missing = chunks_missing(map, d->first, d->end);
	uint32_t moved = d->missing > missing ? d->missing - missing : 0;
	uint64_t rate;

	if (d->state != FEED_STREAM) {
		d->idle += d->state != FEED_FREE;
		return;
	}
	rate = monitor_rate(d->fetch, moved, c->now_ns - d->looked_ns);
	d->rate = d->fresh ? rate : (d->rate + rate) / 2;
	d->looked_ns = c->now_ns;
	d->missing = missing;
	d->idle = moved == 0 && missing > 0 ? d->idle + 1 : 0;
	if (d->idle == 0)
		d->moved_ns = c->now_ns;
	d->fresh = d->fresh && moved == 0;
}

static void monitor_at_all(struct control *c, struct fetch *f, const uint64_t *map)
{
	struct fetches *fs = &c->transfer->fetches;
	uint32_t missing = chunks_missing(map, 0, ranges_chunks(f));
	uint64_t rate = monitor_rate(f, f->missing - missing, c->now_ns - f->looked_ns);
	bool room;

	fs->rate += rate - f->rate;
	fs->best -= fs->best / 128;
	if (fs->rate > fs->best)
		fs->best = fs->rate;
	room = fs->rate < fs->best / 10 * 7 || rate == 0;
	if (room && (rate == 0 || rate < fs->best / fs->feeding / 2))
		f->slow += f->slow < UINT16_MAX;
	else
		f->slow = 0;
	f->short_of = room ? f->short_of + (f->short_of < UINT16_MAX) : 0;
	if (rate > 0)
		f->attempts = 0;
	f->steady = rate > 0 && rate < f->rate / 8 * 9 ? f->steady + 1 : 0;
	f->rate = rate;
	f->missing = missing;
	f->looked_ns = c->now_ns;
	for (int i = 0; i < FETCH_FEEDS; i++)
		monitor_at_feed(c, &f->feed[i], map);
}

void monitor_let_go(struct control *c, struct fetch *f, struct feed *d)
{
	struct node *holder = d->holder;

	upstream_stop(c, d);
	monitor_leave(c, f, holder);
	ranges_divide(c, f);
}

/* Did the second holder help? */
static void monitor_at_trial(struct control *c, struct fetch *f)
{
	struct feed *last = NULL;

	if (f->rate_one == 0 || f->more)
		return;
	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *d = &f->feed[i];

		if (d->state != FEED_FREE && (!last || d->began_ns > last->began_ns))
			last = d;
	}
	if (ranges_feeds(f) > 1) {
		if (last->state != FEED_STREAM || ++f->trial < LOOK_TRIAL)
			return;
		if (f->rate < f->rate_one / 8 * 9) {
			c->transfer->fetches.alone_ns = c->now_ns + LOOK_ALONE_NS;
			monitor_let_go(c, f, last);
		}
	}
	f->rate_one = 0;
}

static void monitor_for_idle(struct control *c, struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS && f->rate > 0 && ranges_feeds(f) > 1; i++)
		if (f->feed[i].idle >= LOOK_IDLE && c->now_ns - f->feed[i].moved_ns > LOOK_PAUSE_NS)
			monitor_let_go(c, f, &f->feed[i]);
}

/* Whether the holders are slow, and not their upstreams. Asks the holders periodically. */
static bool monitor_blames(struct control *c, struct fetch *f)
{
	bool late = f->queried_ns != 0 && c->now_ns - f->queried_ns > LOOK_PAUSE_NS;
	bool blame = f->slow >= LOOK_SLOW_AFTER;

	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *d = &f->feed[i];

		if (d->state != FEED_STREAM)
			continue;
		blame |= f->queried_ns != 0 && !d->call && d->lead >= LOOK_LEAD;
		blame |= late && d->call; /* it does not even answer */
		upstream_query(c, d);
	}
	if (f->queried_ns == 0)
		f->queried_ns = c->now_ns;
	return blame;
}

static void monitor_for_help(struct control *c, struct fetch *f)
{
	if (f->slow == 0)
		f->queried_ns = 0;
	if (f->more || !ranges_feed_free(f) || c->now_ns < f->help_ns || f->missing == 0 ||
	    f->piece_left)
		return;
	if (f->slow >= LOOK_SLOW) {
		if (monitor_blames(c, f))
			monitor_ask(c, f, MESSAGE_GET_HEDGE, MESSAGE_NODE_NONE);
		return;
	}
	if (ranges_feeds(f) == 1 && f->spare > 0 && f->steady >= LOOK_STEADY &&
	    c->now_ns >= c->transfer->fetches.alone_ns &&
	    monitor_time(f, f->missing, f->rate) > LOOK_TRIAL_NS) {
		f->spare--;
		f->rate_one = f->rate;
		f->trial = 0;
		monitor_ask(c, f, MESSAGE_GET_MORE, MESSAGE_NODE_NONE);
	}
}

/* Sets the time of the next look: when the first feed will have brought its range, within bounds.
 */
static void monitor_next(struct control *c, struct fetch *f)
{
	uint64_t left = monitor_time(f, f->missing, f->rate), delay = left / 16;
	bool redivide = false;

	delay = delay < LOOK_MIN_NS ? LOOK_MIN_NS : delay > LOOK_MAX_NS ? LOOK_MAX_NS : delay;
	for (int i = 0; i < FETCH_FEEDS && ranges_feeds(f) > 1; i++) {
		const struct feed *d = &f->feed[i];

		if (d->state != FEED_STREAM)
			continue;
		left = monitor_time(f, d->missing, d->rate);
		delay = left < delay ? left : delay;
		redivide |= d->missing == 0;
	}
	if (redivide && f->missing > 0)
		ranges_divide(c, f);
	monitor_later(c, f, delay < LOOK_SOON_NS ? LOOK_SOON_NS : delay);
}

static void monitor_fire(struct control *c, struct timer *t)
{
	struct fetch *f = list_item(t, struct fetch, timer);
	const uint64_t *map = ranges_map(c, f);

	if (map && f->piece_left && chunks_missing(map, 0, ranges_chunks(f)) <= f->piece_left) {
		fetch_stop(c, f);
		f->attempts = 1;
		fetch_ask(c, f);
		return;
	}
	if (map) {
		monitor_at_all(c, f, map);
		monitor_at_trial(c, f);
		monitor_for_idle(c, f);
		rehome_fetch(c, f);
		monitor_for_help(c, f);
	}
	monitor_next(c, f);
}

static void monitor_later(struct control *c, struct fetch *f, uint64_t delay_ns)
{
	timers_set(&c->timers, &f->timer, c->now_ns + delay_ns, monitor_fire);
}
