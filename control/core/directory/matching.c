/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET at the shard owner: which receiver gets an object from which holder, and which one waits.
 * directory_get takes a request; directory_serve gives free sending slots of an entry to those that
 * wait. Called by the other files of this folder, whenever a copy, a slot or a request comes. It
 * must not know connections or time: answers go out by struct directory_out.
 */
#include <errno.h>
#include "directory.h"
#include "core/base/text.h"
#include "core/planner/network.h"

enum choice {
	CHOICE_FOUND,
	CHOICE_BUSY,	 /* no copy has a free slot: later waiters need not try */
	CHOICE_EXCLUDED, /* there is a free slot, but not for this requester */
};

enum { DIRECTORY_SPARE_MAX = 8, DIRECTORY_FAR_MAX = 255 };

/* How far apart two nodes are in a network that is known. */
static uint32_t directory_far(const struct directory *d, uint32_t a, uint32_t b)
{
	uint32_t far = d->network ? network_distance(d->network, a, b) : 0;

	return far < DIRECTORY_FAR_MAX ? far : DIRECTORY_FAR_MAX;
}

/* Whether a receiver is near enough to a copy for a place beyond its slots. */
static bool directory_near(const struct directory *d, const struct copy *copy, uint32_t slots,
			   uint32_t receiver)
{
	return copy->sending <
	       slots + network_nearer(d->network, directory_far(d, copy->node, receiver));
}

/* The rank of a holder for a receiver; smaller is better. In this order: not reported as silent;
 * with a free slot, as one stream too many halves the rate of all receivers behind it; near the
 * receiver in the network, so that what its rack has crosses no link to the rack again; origins and
 * complete copies; near a complete copy; few streams. So a tree fills level by level. */
static uint64_t directory_rank(const struct directory *d, const struct copy *copy, uint32_t node,
			       bool full)
{
	uint64_t silent = d->nodes[copy->node].silent;
	uint64_t depth = copy->state == MESSAGE_COPY_PARTIAL ? copy->depth + 1 : 0;
	uint64_t rank = silent << 63 | (uint64_t)full << 62 | depth << 32 | copy->sending;

	return d->network ? rank | (uint64_t)directory_far(d, copy->node, node) << 48 : rank;
}

bool directory_can_send(const struct directory *d, const struct copy *copy)
{
	return d->nodes[copy->node].up && !copy->by_value;
}

static enum choice directory_choose(struct directory *d, struct entry *e, const struct waiter *w,
				    struct copy **out)
{
	uint32_t slots = directory_slots(d, e);
	const struct copy *own = directory_copy(e, w->node);
	struct copy *best = NULL;
	uint64_t best_rank = UINT64_MAX, rank;
	bool free = false, narrow = d->network && d->network->narrow;

	list_each(l, after, &e->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_entry);

		if (!directory_can_send(d, copy) ||
		    (copy->sending >= slots &&
		     !(narrow && directory_near(d, copy, slots, w->node))))
			continue;
		if (e->size == 0 && copy->state != MESSAGE_COPY_COMPLETE)
			continue; /* an empty object has no chunk whose arrival would show the seal
				   */
		free = true;
		if (copy->node == w->failed || directory_depends(d, copy, own))
			continue;
		rank = directory_rank(d, copy, w->node, false);
		if (rank < best_rank)
			best = copy, best_rank = rank;
	}
	*out = best;
	return best ? CHOICE_FOUND : free ? CHOICE_EXCLUDED : CHOICE_BUSY;
}

/* Whether a copy is further from the requester than all that feed it now. */
static bool directory_further(const struct directory *d, const struct copy *copy,
			      const struct copy *own)
{
	uint32_t far = directory_far(d, copy->node, own->node);

	for (uint32_t i = 0; i < own->upstreams; i++)
		if (directory_far(d, own->upstream[i].copy->node, own->node) >= far)
			return false;
	return own->upstreams > 0;
}

/* Another upstream for a copy that is fed. On trial: an idle complete copy that is as near, while
 * no waiter needs it. As a hedge: a copy with a free slot, or a complete one with one stream too
 * many; but none that is fed by the requester's upstream. */
static struct copy *directory_choose_more(struct directory *d, struct entry *e,
					  const struct copy *own, const struct message_get *get)
{
	const struct copy *silent =
		get->failed < d->nodes_count ? directory_copy(e, get->failed) : NULL;
	bool hedge = get->why == MESSAGE_GET_HEDGE;
	uint32_t slots = directory_slots(d, e);
	struct copy *best = NULL;
	uint64_t best_rank = UINT64_MAX, rank;

	if (own->upstreams == MESSAGE_UPSTREAMS_MAX || (!hedge && !list_empty(&e->waiters)))
		return NULL;
	list_each(l, after, &e->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_entry);
		bool partial = copy->state == MESSAGE_COPY_PARTIAL, shared = false;
		uint32_t sending = copy->sending;

		if (silent && directory_fed_by(silent, copy))
			sending--; /* the requester takes its place */
		if (!directory_can_send(d, copy) || directory_fed_by(own, copy))
			continue;
		if (hedge ? sending >= slots + !partial
			  : partial || sending > 0 || directory_further(d, copy, own))
			continue;
		for (uint32_t i = 0; partial && i < own->upstreams; i++)
			shared |= directory_depends(d, copy, own->upstream[i].copy);
		if (shared || directory_depends(d, copy, own))
			continue;
		rank = directory_rank(d, copy, own->node, sending >= slots);
		if (rank < best_rank)
			best = copy, best_rank = rank;
	}
	return best;
}

/* Names other complete copies in a GOT: the number of idle ones, up to a limit; and a few to fetch
 * from if neither the holder nor this owner answers. */
static void directory_others(const struct directory *d, const struct entry *e, uint32_t holder,
			     struct message_got *got)
{
	uint32_t left = e->copies_count - e->arriving;

	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (left == 0 || got->spare == DIRECTORY_SPARE_MAX)
			break;
		left -= copy->state != MESSAGE_COPY_PARTIAL && !copy->by_value;
		if (copy->state == MESSAGE_COPY_PARTIAL || !directory_can_send(d, copy))
			continue;
		got->spare += copy->state == MESSAGE_COPY_COMPLETE && copy->sending == 0;
		if (copy->node != holder && got->also_count < MESSAGE_UPSTREAMS_MAX - 1)
			got->also[got->also_count++] = copy->node;
	}
}

void directory_got(const struct entry *e, uint64_t request, uint32_t what, struct message *m)
{
	*m = (struct message){.kind = MESSAGE_GOT, .request = request};
	m->got.id = e->by_id.id;
	m->got.generation = e->generation;
	m->got.size = e->size;
	m->got.chunk_bytes = e->chunk_bytes;
	m->got.what = what;
	m->got.holder = MESSAGE_NODE_NONE;
	memcpy(m->got.name, e->name, sizeof(e->name));
	m->got.meta = e->meta;
}

void directory_waiter_remove(struct directory *d, struct waiter *w)
{
	w->entry->waiters_count--;
	list_remove(&w->of_entry);
	list_remove(&w->of_node);
	list_remove(&w->deferred);
	pool_give(&d->waiters, w);
}

static bool directory_answer_value(struct directory *d, struct entry *e, struct waiter *w)
{
	struct copy *copy = directory_copy_add(d, e, w->node, MESSAGE_COPY_COMPLETE);
	struct message m;

	if (!copy)
		return false;
	directory_copy_state(copy, MESSAGE_COPY_COMPLETE, true);
	directory_got(e, w->request, MESSAGE_GOT_VALUE, &m);
	m.got.value_bytes = (uint32_t)e->size;
	m.got.value = directory_value(d, e);
	m.got.waited = w->waited;
	d->out.answer(d->out.arg, w->node, &m);
	return true;
}

static void directory_answer_holder(struct directory *d, const struct copy *copy, uint32_t holder,
				    uint64_t request)
{
	const struct entry *e = copy->entry;
	struct message m;

	directory_got(e, request, MESSAGE_GOT_HOLDER, &m);
	m.got.holder = holder;
	directory_others(d, e, holder, &m.got);
	d->out.answer(d->out.arg, copy->node, &m);
}

static void directory_book(struct directory *d, struct copy *copy, struct copy *holder,
			   uint64_t request)
{
	directory_feed(copy, holder);
	copy->upstream[copy->upstreams - 1].request = request;
	directory_answer_holder(d, copy, holder->node, request);
}

static bool directory_answer_booked(struct directory *d, struct entry *e, const struct waiter *w,
				    struct copy *holder)
{
	struct copy *copy = directory_copy_add(d, e, w->node, MESSAGE_COPY_PARTIAL);

	if (!copy)
		return false;
	directory_feed(copy, NULL);
	directory_book(d, copy, holder, w->request);
	return true;
}

void directory_get_failed(struct directory *d, uint32_t node, uint64_t request,
			  const struct object_id *id, int32_t status, const char *text)
{
	struct message answer = {.kind = MESSAGE_GOT, .request = request};

	answer.got.id = *id;
	answer.got.what = MESSAGE_GOT_FAILED;
	answer.got.holder = MESSAGE_NODE_NONE;
	answer.got.status = status;
	strncpy(answer.got.text, text, MESSAGE_TEXT_MAX);
	d->out.answer(d->out.arg, node, &answer);
}

void directory_get_full(struct directory *d, uint32_t node, uint64_t request,
			const struct object_id *id)
{
	directory_get_failed(d, node, request, id, -ENOSPC,
			     "the directory is full: delete objects or get fewer at a time");
}

static void directory_answer_incomplete(struct directory *d, const struct entry *e, uint32_t node,
					uint64_t request)
{
	struct message m;

	directory_got(e, request, MESSAGE_GOT_INCOMPLETE, &m);
	d->out.answer(d->out.arg, node, &m);
}

/* No complete copy is left. Receivers with a part get GOT_INCOMPLETE. Receivers without one wait:
 * if they were fed, new holders of parts would appear all the time, and no chunk inventory would
 * end. */
static void directory_serve_incomplete(struct directory *d, const struct entry *e, struct waiter *w)
{
	const struct copy *own = directory_copy(e, w->node);

	if (!own || own->state != MESSAGE_COPY_PARTIAL)
		return;
	directory_answer_incomplete(d, e, w->node, w->request);
	directory_waiter_remove(d, w);
}

void directory_serve(struct directory *d, struct entry *e)
{
	bool incomplete = !list_empty(&e->waiters) && directory_incomplete(d, e);

	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);
		enum choice choice = CHOICE_FOUND;
		struct copy *holder = NULL;
		bool room;

		if (incomplete) {
			directory_serve_incomplete(d, e, w);
			continue;
		}
		if (!directory_inline(d, e, w))
			choice = directory_choose(d, e, w, &holder);
		if (choice == CHOICE_BUSY && !e->has_value)
			break;
		if (choice == CHOICE_EXCLUDED && !e->has_value)
			continue;
		room = holder ? directory_answer_booked(d, e, w, holder)
			      : directory_answer_value(d, e, w);
		if (!room)
			directory_get_full(d, w->node, w->request, &e->by_id.id);
		directory_waiter_remove(d, w);
	}
	directory_locate_serve(d, e);
}

static struct waiter *directory_waiter_find(const struct directory *d, const struct entry *e,
					    uint32_t node)
{
	list_each(l, after, &d->nodes[node].waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_node);

		if (w->entry == e)
			return w;
	}
	return NULL;
}

static struct waiter *directory_waiter(struct directory *d, struct entry *e, uint32_t node)
{
	struct waiter *w = directory_waiter_find(d, e, node);

	if (w)
		return w;
	w = pool_take(&d->waiters);
	if (!w)
		return NULL;
	w->entry = e;
	w->node = node;
	list_append(&e->waiters, &w->of_entry);
	e->waiters_count++;
	list_append(&d->nodes[node].waiters, &w->of_node);
	return w;
}

/* The requester asks again: its partial copy and its bookings end. */
static void directory_get_reset(struct directory *d, struct entry *e, uint32_t node,
				const struct message_get *get)
{
	struct copy *own = directory_copy(e, node), *failed;

	if (get->why == MESSAGE_GET_ABSENT && get->failed != node) {
		failed = directory_copy(e, get->failed);
		/* a copy that was entered after the booking is another one, and exists */
		if (failed && own && directory_fed_by(own, failed))
			directory_copy_remove(d, failed);
	}
	if (get->why == MESSAGE_GET_UNREACHED && get->failed < d->nodes_count)
		d->out.suspect(d->out.arg, get->failed);
	if (!own)
		return;
	if (own->state == MESSAGE_COPY_PARTIAL && get->generation == e->generation)
		directory_feed(own, NULL); /* the part stays: it may feed others */
	else
		directory_gone(d, own);
}

/* Repeats the answer of a GET that has been booked. Returns whether it was. */
static bool directory_get_retry(struct directory *d, const struct entry *e, uint32_t node,
				const struct message *m)
{
	const struct copy *own = directory_copy(e, node);

	for (uint32_t i = 0; own && i < own->upstreams; i++) {
		if (own->upstream[i].request != m->request)
			continue;
		directory_answer_holder(d, own, own->upstream[i].copy->node, m->request);
		return true;
	}
	return false;
}

/* Whether the GET comes from the node that creates the object: there a client waits for it while
 * another one creates it, and the GET left before the node knew that the create was accepted. It
 * needs no answer: the wait is served locally. If the creation fails the node repeats the GET. */
static bool directory_get_making(const struct directory *d, const struct entry *e, uint32_t node)
{
	const struct copy *own = directory_copy(e, node);

	return own && own->state == MESSAGE_COPY_CREATING && own->epoch == d->nodes[node].epoch;
}

/* GET_MORE, GET_HEDGE: a receiver that is fed asks for one more holder. Answered at once. If only
 * parts of the object are left, the answer says so: otherwise each receiver of a chain would find
 * that out only after the one before it. */
static void directory_get_more(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_find(d, &m->get.id);
	struct copy *own = e ? directory_copy(e, node) : NULL, *holder = NULL;
	bool part = own && own->state == MESSAGE_COPY_PARTIAL && e->generation == m->get.generation;

	if (own && directory_get_retry(d, e, node, m))
		return;
	if (m->get.failed < d->nodes_count)
		d->out.suspect(d->out.arg, m->get.failed);
	if (part && directory_incomplete(d, e)) {
		directory_feed(own, NULL);
		directory_answer_incomplete(d, e, node, m->request);
		return;
	}
	if (part)
		holder = directory_choose_more(d, e, own, &m->get);
	if (holder) {
		directory_book(d, own, holder, m->request);
		return;
	}
	directory_get_failed(d, node, m->request, &m->get.id, -EAGAIN, "");
}

/* Looks at the upstreams of a copy. Sets *surplus if one of them feeds too many. Returns one that
 * does not, or NULL. */
static struct copy *directory_reparent(struct directory *d, struct copy *own, bool *surplus)
{
	uint32_t slots = directory_slots(d, own->entry);
	struct copy *parent = NULL;

	*surplus = false;
	for (uint32_t i = 0; i < own->upstreams; i++) {
		struct copy *up = own->upstream[i].copy;

		if (up->sending > slots)
			*surplus = true;
		else if (directory_can_send(d, up))
			parent = up;
	}
	return parent;
}

/* GET_REPARENT of a copy that is fed, perhaps by a holder that feeds too many. Answered at once. */
static void directory_get_reparent(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_find(d, &m->get.id);
	struct copy *own = e ? directory_copy(e, node) : NULL, *parent = NULL;
	struct waiter requester = {.node = node, .failed = MESSAGE_NODE_NONE};
	bool surplus = false;

	if (own && own->state == MESSAGE_COPY_PARTIAL && e->generation == m->get.generation)
		parent = directory_reparent(d, own, &surplus);
	if (surplus && parent) {
		directory_answer_holder(d, own, parent->node, m->request);
		return;
	}
	if (surplus && own->upstreams < MESSAGE_UPSTREAMS_MAX)
		directory_choose(d, e, &requester, &parent);
	if (surplus && parent)
		directory_book(d, own, parent, m->request);
	else
		directory_get_failed(d, node, m->request, &m->get.id, surplus ? -EAGAIN : -EALREADY,
				     "");
}

bool directory_tell(struct directory *d, const struct waiter *w)
{
	const struct entry *e = w->entry;
	struct directory_loss loss;
	struct message answer;

	directory_got(e, w->request, e->generation ? MESSAGE_GOT_WAIT : MESSAGE_GOT_UNKNOWN,
		      &answer);
	if (directory_lost(d, e, &loss)) {
		answer.got.lost = loss.node + 1;
		answer.got.down_ms = loss.down_ms;
	}
	if (e->generation == 0 && directory_was_deleted(d, &e->by_id.id))
		strcpy(answer.got.text, "it was deleted: put it again");
	return d->out.answer(d->out.arg, w->node, &answer);
}

/* Sends the reply "wait". If that fails, removes the waiter: its node repeats the GET. */
static void directory_tell_waiter(struct directory *d, struct waiter *w)
{
	struct entry *e = w->entry;

	list_remove(&w->deferred);
	if (directory_tell(d, w))
		return;
	directory_waiter_remove(d, w); /* as in directory_locate */
	directory_settle(d, e);
}

void directory_waiters_end(struct directory *d, const struct object_id *id, int32_t status,
			   const char *text)
{
	struct entry *e = directory_find(d, id);

	if (!e)
		return;
	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		directory_get_failed(d, w->node, w->request, id, status, text);
		directory_waiter_remove(d, w);
	}
	directory_settle(d, e);
}

void directory_waiters_tell(struct directory *d, const struct object_id *id)
{
	struct entry *e = directory_find(d, id);

	if (!e)
		return;
	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		list_remove(&w->deferred);
		directory_tell(d, w); /* best effort */
	}
}

void directory_notify_deferred(struct directory *d)
{
	list_each(l, after, &d->deferred)
	{
		struct waiter *w = list_item(l, struct waiter, deferred);

		if (!w->ripe)
			w->ripe = true;
		else if (directory_tell(d, w)) /* else tried again in the next round */
			list_remove(l);
	}
}

void directory_get(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e;
	struct waiter *w;

	if (m->get.why == MESSAGE_GET_FORGET) {
		directory_locate_forget(d, node, m);
		return;
	}
	if (m->get.why == MESSAGE_GET_LOCATE) {
		directory_locate(d, node, m);
		return;
	}
	if (m->get.why == MESSAGE_GET_MORE || m->get.why == MESSAGE_GET_HEDGE) {
		directory_get_more(d, node, m);
		return;
	}
	if (m->get.why == MESSAGE_GET_REPARENT) {
		directory_get_reparent(d, node, m);
		return;
	}
	if (m->get.why == MESSAGE_GET_PIECE) {
		directory_get_piece(d, node, m);
		return;
	}
	e = directory_make(d, &m->get.id);
	if (!e) {
		directory_get_full(d, node, m->request, &m->get.id);
		return;
	}
	if (directory_get_retry(d, e, node, m) || directory_get_making(d, e, node))
		return;
	directory_get_reset(d, e, node, &m->get);
	if (list_empty(&e->copies) && !e->has_value)
		e->generation = 0;
	w = directory_waiter(d, e, node);
	if (!w) {
		directory_get_full(d, node, m->request, &m->get.id);
		directory_settle(d, e);
		return;
	}
	w->request = m->request;
	w->failed = m->get.failed;
	directory_serve(d, e);
	w = directory_waiter_find(d, e, node);
	if (!w)
		return;
	w->waited = true;
	if (!m->get.deferrable) {
		directory_tell_waiter(d, w);
	} else if (!list_linked(&w->deferred)) {
		w->ripe = false;
		list_append(&d->deferred, &w->deferred);
	}
}
