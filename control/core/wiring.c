/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the modules tell the modules above, which they must not know: the functions that events.h of
 * a module declares. The order of the calls in each function matters.
 */
#include <errno.h>
#include "state.h"

/* ---- the cluster -------------------------------------------------------------------------- */

static void wiring_forget_fire(struct control *c, struct timer *t)
{
	struct node *n = list_item(t, struct node, forget);

	directory_node_forget(&c->directory->shard, n->number, !membership_live(n));
	if (membership_live(
		    n)) /* other members reach it: its objects stay in use until it is dead */
		timers_set(&c->timers, t, c->now_ns + c->config.forget_ns, wiring_forget_fire);
}

bool wiring_node_up(struct control *c, struct node *n)
{
	bool was_up = n->state == NODE_UP, known = true;

	if (!was_up)
		c->directory->up_ns = c->now_ns;
	n->state = NODE_UP;
	timers_cancel(&c->timers, &n->forget);
	if (n == c->cluster->self)
		c->directory->shard.self = n->number;
	if (ownership_is_shard(c, c->cluster->self))
		known = directory_node_up(&c->directory->shard, n->number, n->store_incarnation) &&
			(was_up || !n->unremoved);
	if (!was_up && n != c->cluster->self)
		n->unremoved = false; /* it is asked now; else control_remind does so */
	if (!was_up && ownership_is_shard(c, n) && c->table)
		placement_announce(c, n);
	fetch_node_up(c, n);
	participant_node_up(c, n);
	if (!was_up)
		reduce_node_up(c, n);
	tombstone_copies_node_up(c, n);
	return known;
}

void wiring_node_down(struct control *c, struct node *n)
{
	n->state = NODE_DOWN;
	n->beyond = false;
	reduce_node_down(c, n);
	participant_node_down(c, n);
	if (!ownership_is_shard(c, c->cluster->self))
		return;
	agent_silent(c, n, false);
	directory_node_down(&c->directory->shard, n->number);
	timers_set(&c->timers, &n->forget, c->now_ns + c->config.forget_ns, wiring_forget_fire);
}

void wiring_node_known(struct control *c, struct node *n)
{
	directory_node_known(&c->directory->shard, n->number);
}

void wiring_announce_asked(struct control *c, struct node *n)
{
	resync_asked(n);
	resync_begin(c);
}

void wiring_heard(struct control *c, struct node *n, uint64_t taken_ns)
{
	replica_heard(c, n, taken_ns);
}

void wiring_losses(struct control *c, struct node *n)
{
	replica_doubt(c, n);
}

void wiring_link_up(struct control *c, struct node *n)
{
	fetch_node_up(c, n);
	participant_node_up(c, n);
}

bool wiring_link_wanted(struct control *c, const struct link *l)
{
	return fetch_wants(c, l) || participant_wants(c, l);
}

void wiring_node_away(struct control *c, struct node *n, bool ever)
{
	directory_node_away(&c->directory->shard, n->number, ever);
}

void wiring_node_ended(struct control *c, struct node *n)
{
	tombstone_copies_node_gone(c, n);
	agent_silent(c, n, true);
}

void wiring_node_dead(struct control *c, struct node *n)
{
	directory_node_dead(&c->directory->shard, n->number, true);
	fetch_node_dead(c, n);
}

void wiring_node_back(struct control *c, struct node *n)
{
	directory_node_dead(&c->directory->shard, n->number, false);
	replica_retry(c);
}

void wiring_node_gone(struct control *c, struct node *n)
{
	references_node_lost(c, n->number);
	group_node_lost(c, n->number);
	if (n->member != MEMBER_LEFT)
		return;
	timers_cancel(&c->timers, &n->forget);
	directory_node_forget(&c->directory->shard, n->number, true);
}

void wiring_node_reborn(struct control *c, struct node *n)
{
	replica_retry(c);
	if (n != c->cluster->self && !join_is_guest(c, n)) {
		directory_node_doubt(&c->directory->shard, n->number);
		watchers_drop(&c->directory->shard, n->number);
	}
	if (n != c->cluster->self) {
		references_node_lost(c, n->number);
		group_node_reborn(c, n->number);
	}
}

void wiring_unsettled(struct control *c)
{
	directory_unsettled(&c->directory->shard);
}

static bool wiring_mine(void *arg, const struct object_id *id)
{
	struct control *c = arg;

	return ownership_shard(c, id) == c->cluster->self;
}

/* The owners of ids have changed. */
static void wiring_ownership(struct control *c)
{
	if (!membership_joined(c))
		return;
	if (c->table && announcer_sweeping(c))
		c->cluster->members.epoch++; /* some owners missed announcements of the change
						before: announces all again */
	if (c->config.shards == 0) {
		reduce_keep(c);
		participant_keep(c);
		directory_keep(&c->directory->shard, wiring_mine, c);
		rpc_move(c);
		group_ownership(c, wiring_mine);
	}
	if (c->table)
		resync_begin(c);
}

void wiring_view_changed(struct control *c)
{
	wiring_ownership(c);
	session_watch_view(c);
	references_view(c);
	tombstone_copies_sweep(c);
	backup_later(c);
}

/* Whether a repeated request still is true. A DROP of an object that has come back would remove the
 * new copy from the directory: it is not sent any more, and ends at its deadline. */
static bool wiring_holds(struct control *c, const struct message *m)
{
	return m->kind != MESSAGE_DROP || m->object.upstream != 0 ||
	       (!placement_asks(c, &m->object.id) && /* else its GET says it */
		announce_disowns(c, &m->object.id, m->object.generation));
}

bool wiring_prepare(struct control *c, struct call *call)
{
	struct message *m = &call->message;

	if (!wiring_holds(c, m))
		return false;
	if (m->kind == MESSAGE_HAVE)
		announce_value(c, call->value_slot, &m->have);
	if (m->kind == MESSAGE_HOLD)
		tell_fill(c, call, &m->hold);
	if (m->kind == MESSAGE_KEEP && !backup_fill(c, &m->have))
		return false;
	if (m->kind == MESSAGE_COMBINE && !excerpt_calls(call))
		reduce_fill_message(c, call);
	if (m->request & CALLS_LOCATE && !excerpt_calls(call))
		reduce_fill_locate(c, call);
	resync_stamp(c, call->node, m);
	if (m->kind == MESSAGE_COMMIT)
		reduce_fill_commit(c, call);
	if (m->kind == MESSAGE_RECALL && call->owner)
		requester_fill_recall(c, call);
	if (m->kind == MESSAGE_REDUCE)
		requester_set_times(c, call->owner, &m->reduce);
	return true;
}

/* A late answer to a GET that has ended: tells the directory to stop looking for a holder, and that
 * there is no copy here. */
void wiring_late_answer(struct control *c, struct node *n, const struct message *m)
{
	if (m->kind != MESSAGE_GOT)
		return;
	if (m->request & CALLS_LOCATE) { /* it books no copy */
		if (m->got.what == MESSAGE_GOT_UNKNOWN || m->got.what == MESSAGE_GOT_WAIT)
			reduce_forget(c, &m->got.id, m->request);
		return;
	}
	if (!c->table || idmap_find(&c->transfer->fetches.by_id, &m->got.id) ||
	    slots_find(c, &m->got.id) != TABLE_SLOT_NONE)
		return;
	announce_disown(c, &m->got.id, m->got.generation);
}

/* ---- buffers and edges -------------------------------------------------------------------- */

void wiring_held(struct control *c, uint32_t slot)
{
	objects_at(c, slot)->holds++;
}

void wiring_released(struct control *c, uint32_t slot)
{
	objects_release(c, slot);
}

void wiring_opened(struct control *c, struct stage *head)
{
	objects_at(c, head->slot)->stage = head;
}

void wiring_mirrored(struct control *c, struct stage *head)
{
	list_append(&objects_at(c, head->slot)->mirrors, &head->mirror);
}

void wiring_closed(struct control *c, struct stage *head)
{
	struct object *o = objects_at(c, head->slot);

	if (o->stage == head)
		o->stage = NULL;
}

bool wiring_arriving(struct control *c, const struct stage *head)
{
	const struct object *o = objects_at(c, head->slot);

	return o->stage == head && (o->fetch || o->participant);
}

int32_t wiring_addend(const struct part *part)
{
	return part->participant->sum.op ? (int32_t)part->index : -1;
}

void wiring_ready(struct control *c, uint32_t slot)
{
	objects_progress(c, slot);
}

void wiring_arrived(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	if (o->fetch)
		fetch_done(c, o->fetch);
	else if (o->participant)
		participant_done(c, o->participant);
}

void wiring_lost(struct control *c, struct stage *s)
{
	struct object *o = objects_at(c, s->slot);

	serve_end_stage(c, o, s);
	if (s->part)
		input_local_mirror_lost(c, s->part);
	if (o->stage != s)
		return;
	if (o->participant)
		participant_stage_lost(c, o->participant);
	if (o->fetch)
		placement_stage_lost(c, o->fetch);
	o->stage = NULL;
}

void wiring_brought(struct control *c, struct edge *e)
{
	if (e->part)
		input_brought(c, e->part);
}

void wiring_edge_ended(struct control *c, struct edge *e)
{
	if (e->out) {
		if (e->serve)
			serve_ended(c, e->serve);
	} else if (e->feed) {
		upstream_failed(c, e->feed, MESSAGE_GET_UNREACHED);
	} else if (e->part) {
		input_edge_failed(c, e->part, e);
	}
}

/* ---- the store ---------------------------------------------------------------------------- */

void wiring_killed(struct control *c, struct object *o, const char *why)
{
	owned_discharge(c, o);
	waits_fail_object(c, o, -ESTALE, why);
	serve_end_all(c, o);
	if (o->fetch)
		placement_killed(c, o->fetch);
	o->fetch = NULL;
	if (o->participant)
		participant_killed(c, o->participant);
	if (o->creation)
		staging_end(c, o);
	list_each(l, next, &o->mirrors)
	{
		input_local_source_killed(c, list_item(l, struct stage, mirror)->part);
	}
}

void wiring_failed(struct control *c, struct object *o, int32_t status, const char *why)
{
	waits_fail_object(c, o, status, why);
}

void wiring_gone(struct control *c, const struct object_id *id)
{
	placement_wake(c, id);
}

void wiring_progress(struct control *c, struct object *o)
{
	waits_check_object(c, o);
}

void wiring_announced(struct control *c, struct object *o)
{
	seal_acked(c, o);
}

bool wiring_adopt(struct control *c, uint32_t slot)
{
	return fetch_adopt(c, slot);
}

void wiring_sealed(struct control *c, struct object *o)
{
	if (o->creation)
		staging_end(c, o);
}

void wiring_refused(struct control *c, struct object *o, int32_t status)
{
	participant_refused(c, o->participant, status);
}

void wiring_led(struct control *c, struct object *o)
{
	participant_known(o->participant);
}

void wiring_upstreams(struct control *c, const struct object *o, struct message_have *have)
{
	fetch_upstreams(o->fetch, have);
}

void wiring_room(struct control *c)
{
	if (c->table)
		spill_pump(c);
	create_wait_retry(c);
	placement_room(c);
	if (c->table)
		reduce_roomless(c);
}

/* ---- fetches and reduces ------------------------------------------------------------------ */

static struct wait *wiring_wait(struct await *w)
{
	return list_item(w, struct wait, await);
}

void wiring_wait_placed(struct control *c, struct await *w, uint32_t slot)
{
	if (!waits_ahead(wiring_wait(w)))
		waits_place(c, wiring_wait(w), slot);
}

void wiring_wait_ended(struct control *c, struct await *w, int32_t status, const char *text)
{
	if (!waits_ahead(wiring_wait(w)))
		waits_end(c, wiring_wait(w), status, text);
}

void wiring_wait_absent(struct control *c, struct await *w, int32_t status, const char *text)
{
	session_absent(c, wiring_wait(w), status, text);
}

bool wiring_unfinished(const struct object *o)
{
	return !o->participant->done || o->participant->withheld;
}

void wiring_reduce_ended(struct control *c, struct await *w, const struct message_used *used)
{
	if (w->group)
		group_reduce_ended(c, w, used);
	else
		session_reduce_ended(c, wiring_wait(w), used);
}

/* A coordinator has accepted the reduce: a REDUCE is answered, a REDUCED waits on. */
void wiring_reduce_accepted(struct control *c, struct await *w)
{
	if (!w->group && wiring_wait(w)->op == SESSION_REDUCE)
		waits_end(c, wiring_wait(w), 0, "");
}

/* ---- leases ------------------------------------------------------------------------------- */

void wiring_announce_more(struct control *c)
{
	resync_more(c);
}

void wiring_lease_answer(struct control *c, void *waiter, uint64_t number, int32_t status,
			 uint64_t generation, const char *text)
{
	session_lease_answer(c, waiter, number, status, generation, text);
}
