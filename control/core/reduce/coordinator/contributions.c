/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sources of a reduce: locating them, asking the policy when to plan, and adding up small ones,
 * whose values come with the answers of the directory. Called by coordinator.c and repair.c, and by
 * the answers to LOCATE. It must not know the graph.
 */
#include <errno.h>
#include "internal/reduce.h"
#include "internal/reduce_kernel.h"
#include "core/base/text.h"
#include "core/transfer/fetch.h"
#include "state.h"

bool reduce_reachable(struct control *c, uint32_t node)
{
	const struct node *n = node == REDUCE_NONE ? NULL : peers_node(c, node);

	return n && (n == c->cluster->self || (n->state != NODE_DOWN && membership_live(n)));
}

/* ---- several of one owner ------------------------------------------------------------------- */

/* Lets the LOCATE of source k, the last before i with the same owner, name source i too.
 * together[k]: place of k among the sources of that LOCATE. False: there is no room. */
static bool reduce_joins(struct reduce *r, uint32_t *together, uint32_t k, uint32_t i)
{
	if (k == REDUCE_NONE || together[k] == MESSAGE_OTHERS_MAX)
		return false;
	together[i] = together[k] + 1;
	r->from.source[k].next = i;
	return true;
}

/* When all sources are needed, an owner of several of them may add up their values: the LOCATE of
 * the first names the others. */
void reduce_locate_all(struct control *c, struct reduce *r)
{
	uint32_t last[NODES_MAX], together[MESSAGE_SOURCES_MAX], values = 0;

	memset(last, 0xff, sizeof(last)); /* REDUCE_NONE */
	for (uint32_t i = 0; i < r->from.count; i++) {
		struct reduce_source *s = &r->from.source[i];
		uint32_t owner = ownership_shard(c, &s->id)->number;

		together[i] = 0;
		s->with = r->want.num == r->from.count && r->want.dtype &&
			  reduce_joins(r, together, last[owner], i);
		last[owner] = i;
		values += !s->with && owner != c->cluster->self->number;
	}
	r->sum.value_max = reduce_value_max(c, r, values);
	for (uint32_t i = 0; i < r->from.count; i++)
		if (!r->from.source[i].with)
			reduce_locate(c, &r->from.source[i]);
}

void reduce_fill_locate(struct control *c, struct call *call)
{
	struct message_get *m = &call->message.get;
	const struct reduce_source *s = call->owner;
	const struct reduce *r = s->reduce;

	m->op = r->want.op;
	m->dtype = r->want.dtype;
	m->others = c->coordinator->reduces.ids;
	m->others_count = 0;
	for (uint32_t i = s->next; i != REDUCE_NONE; i = r->from.source[i].next)
		c->coordinator->reduces.ids[m->others_count++] = r->from.source[i].id;
}

/* Locates the other sources of that LOCATE one by one. */
static void reduce_part(struct control *c, struct reduce_source *s)
{
	struct reduce *r = s->reduce;

	while (s->next != REDUCE_NONE) {
		struct reduce_source *other = &r->from.source[s->next];

		s->next = other->next;
		other->next = REDUCE_NONE;
		other->with = false;
		reduce_locate(c, other);
	}
}

/* A source of another type than asked for was found. [G1.8] */
static void reduce_misfits(struct control *c, struct reduce *r)
{
	struct text why;

	reduce_types_misfit(r, &why);
	reduce_fail(c, r, -EINVAL, why.bytes);
}

/* A source is found. The first one says how large they are. Returns false when it does not fit: the
 * reduce has failed, or fails with the next answer, so that two sources are named. */
static bool reduce_takes(struct control *c, struct reduce *r, struct reduce_source *s,
			 const struct message_got *got)
{
	bool misfit = r->from.misfit.known;
	struct text why;
	bool fits = reduce_types_hold(r, s, got, &why);

	if (misfit) {
		reduce_misfits(c, r);
		return false;
	}
	if (!fits && r->from.misfit.known && !r->from.described.known && r->from.unanswered > 1 &&
	    r->state == REDUCE_LOCATING) {
		reduce_part(c, s);
		return false;
	}
	if (!fits) {
		reduce_fail(c, r, -EINVAL, why.bytes);
		return false;
	}
	if (r->from.sized)
		return true;
	r->from.sized = true;
	r->from.size = got->size;
	r->from.chunk_bytes = got->chunk_bytes;
	r->sum.small = r->from.size <= r->sum.value_max;
	return true;
}

/* Whether the answer to a LOCATE of several sources can be used: it has the sum of all of them, or
 * the value of the first alone. In the second case the others are located one by one. */
static bool reduce_fits(struct control *c, struct reduce_source *s, const struct message_got *got)
{
	const struct reduce *r = s->reduce;
	uint32_t others = 0;

	for (uint32_t i = s->next; i != REDUCE_NONE; i = r->from.source[i].next)
		others++;
	if (r->sum.small && got->others == others)
		return true;
	reduce_part(c, s);
	return got->others == 0;
}

/* The value is the sum of all sources of that LOCATE. Returns how many there are beside the first.
 */
static uint32_t reduce_sum_others(struct reduce *r, struct reduce_source *s)
{
	uint32_t others = 0;

	while (s->next != REDUCE_NONE) {
		struct reduce_source *other = &r->from.source[s->next];

		s->next = other->next;
		other->next = REDUCE_NONE;
		other->with = false;
		other->state = SOURCE_KNOWN; /* generation 0: its holder is not known */
		other->slot = 0;
		others++;
	}
	if (r->state == REDUCE_LOCATING)
		r->from.unanswered -= others;
	return others;
}

/* ---- small ones ----------------------------------------------------------------------------- */

static uint8_t *reduce_value(struct control *c, struct reduce *r)
{
	if (r->sum.value == 0)
		r->sum.value = allocator_take(&c->coordinator->reduces.space, r->from.size);
	return r->sum.value ? c->coordinator->reduces.memory +
				      allocator_offset(&c->coordinator->reduces.space, r->sum.value)
			    : NULL;
}

/* The sum becomes an object of this node, and the directory here gets its value. */
static void reduce_small_done(struct control *c, struct reduce *r)
{
	uint8_t *value = reduce_value(c, r);
	uint64_t generation = reduce_generation(c, r);
	uint32_t slot;
	struct text t;
	int error;

	if (!c->table || slots_find(c, &r->by_id.id) != TABLE_SLOT_NONE)
		error = c->table ? -EEXIST : -EAGAIN;
	else
		error = objects_insert(c, &r->by_id.id, r->want.name, &r->from.meta, r->from.size,
				       generation, r->from.chunk_bytes, OBJECT_CREATING, &slot);
	r->sum.roomless = error == -EAGAIN && c->table;
	if (r->sum.roomless)
		return; /* until reduce_roomless */
	if (error) {
		if (error == -EEXIST)
			reduce_end(c, r, error, "the target exists already: delete it first");
		else
			objects_no_room(c, error, r->from.size, &t);
		if (error != -EEXIST)
			reduce_end(c, r, error, t.bytes);
		return;
	}
	if (r->want.op == REDUCE_AVG && r->from.size > 0)
		reduce_scale(r->want.dtype, value, r->want.num, (uint32_t)r->from.size);
	if (r->from.size > 0)
		memcpy(c->memory + c->table->slot[slot].offset, value, r->from.size);
	r->out.generation = generation;
	reduce_reserve(c, r, r->out.generation);
	objects_publish(c, slot, r->from.size);
	objects_seal(c, slot, true);
	placement_superseded(c, &r->by_id.id, slot);
	announce_object(c, slot);
	reduce_end(c, r, 0, "");
}

void reduce_roomless(struct control *c)
{
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (r->sum.roomless && r->state != REDUCE_ENDED)
			reduce_small_done(c, r);
	}
}

/* The sources are not small: all must be streamed. Locates those again whose values came in sums.
 */
static void reduce_small_not(struct control *c, struct reduce *r)
{
	r->sum.small = false;
	for (uint32_t i = 0; i < r->from.count; i++) {
		struct reduce_source *s = &r->from.source[i];

		s->slot = REDUCE_NONE;
		if (s->state != SOURCE_KNOWN || s->generation != 0)
			continue;
		s->state = SOURCE_ABSENT;
		if (r->rule.args.least &&
		    r->state == REDUCE_LOCATING) { /* the policy waits for its answer */
			s->state = SOURCE_ASKED;
			r->from.unanswered++;
		}
		reduce_locate(c, s);
	}
}

/* Adds a value to the sum. Returns true when that was the last one, and the reduce has ended. */
static bool reduce_small(struct control *c, struct reduce *r, struct reduce_source *s,
			 const struct message_got *got)
{
	uint8_t *value = reduce_value(c, r);
	bool along = got->what == MESSAGE_GOT_VALUE && got->value_bytes == r->from.size;

	if (r->from.size > 0 && (!value || !along)) { /* nothing is there at once */
		reduce_small_not(c, r);
		reduce_part(c, s);
		return false;
	}
	if (r->sum.summed == r->want.num)
		return false;
	if (r->sum.summed == 0 && r->from.size > 0)
		memcpy(value, got->value, got->value_bytes);
	else if (r->from.size > 0)
		reduce_combine(r->want.op, r->want.dtype, value, got->value, got->value_bytes);
	s->slot = 0;
	r->sum.summed += 1 + reduce_sum_others(r, s);
	if (r->sum.summed < r->want.num)
		return false;
	reduce_small_done(c, r);
	return true;
}

/* ---- the policy ----------------------------------------------------------------------------- */

void reduce_set_policy(struct control *c, struct reduce *r, const struct message_reduce *m)
{
	r->rule.args = (struct policy_args){0};
	if (m->flags & MESSAGE_REDUCE_DEADLINE)
		r->rule.args = (struct policy_args){m->deadline_ns, m->min, c->config.status_ns};
	r->rule.located_ns = c->now_ns;
}

uint64_t reduce_deadline(const struct reduce *r)
{
	if (r->rule.args.least == 0 || r->rule.args.wait_ns > UINT64_MAX - r->rule.located_ns)
		return UINT64_MAX;
	return r->rule.located_ns + r->rule.args.wait_ns;
}

/* The number of sources that a plan would find, or whose values are in the sum. */
static uint32_t reduce_present(struct control *c, const struct reduce *r)
{
	uint32_t present = 0;

	if (r->sum.small)
		return r->sum.summed;
	for (uint32_t i = 0; i < r->from.count; i++)
		present += r->from.source[i].state == SOURCE_KNOWN &&
			   reduce_reachable(c, r->from.source[i].node);
	return present;
}

void reduce_view(struct control *c, const struct reduce *r, struct policy_view *v)
{
	*v = (struct policy_view){.now_ns = c->now_ns,
				  .opened_ns = r->rule.located_ns,
				  .total = r->from.count,
				  .answered = r->from.count - r->from.unanswered,
				  .needed = r->want.num,
				  .speculative = r->plan.speculative,
				  .sized = r->from.sized};
	if (r->rule.args.least)
		v->present = reduce_present(c, r);
}

/* Whether the plan must wait for more answers. */
static bool reduce_waits(struct control *c, const struct reduce *r)
{
	struct policy_view v;
	uint64_t retry_ns;

	reduce_view(c, r, &v);
	return policy_turn(&r->rule.args, &v, &retry_ns) == POLICY_WAIT && r->from.unanswered > 0;
}

static void reduce_turn_fire(struct control *c, struct timer *t)
{
	reduce_turn(c, list_item(t, struct reduce, turn));
}

/* The policy says to wait. Once all sources have a first answer nothing can refuse the REDUCE any
 * more: it is accepted. */
static void reduce_wait(struct control *c, struct reduce *r, uint64_t retry_ns)
{
	if (r->from.unanswered == 0)
		reduce_accept(c, r);
	if (retry_ns != UINT64_MAX)
		timers_set(&c->timers, &r->turn, retry_ns, reduce_turn_fire);
	else
		timers_cancel(&c->timers, &r->turn);
}

void reduce_turn(struct control *c, struct reduce *r)
{
	struct policy_view v;
	enum policy_turn turn;
	uint64_t retry_ns;

	if (r->rule.args.least == 0 || r->state != REDUCE_LOCATING)
		return;
	reduce_view(c, r, &v);
	turn = policy_turn(&r->rule.args, &v, &retry_ns);
	if (turn == POLICY_WAIT) {
		reduce_wait(c, r, retry_ns);
		return;
	}
	timers_cancel(&c->timers, &r->turn);
	if (turn == POLICY_FREEZE)
		r->want.num = v.present;
	if (!r->sum.small) {
		reduce_plan(c, r);
		return;
	}
	r->state = REDUCE_RUNNING;
	reduce_accept(c, r);
	reduce_small_done(c, r);
}

/* ---- LOCATE --------------------------------------------------------------------------------- */

static void reduce_answered(struct control *c, struct reduce *r, bool first)
{
	if (r->state == REDUCE_LOCATING) {
		r->from.unanswered -= first;
		if (r->rule.args.least) {
			reduce_turn(c, r);
			return;
		}
		if (reduce_waits(c, r))
			return;
	}
	if (r->sum.small) {
		r->state = REDUCE_RUNNING;
		reduce_accept(c, r);
	} else if (r->state == REDUCE_LOCATING || r->plan.graph.vertices == 0) {
		reduce_plan(c, r);
	} else {
		reduce_fill(c, r);
	}
}

static void reduce_known(struct control *c, struct reduce_source *s, const struct message_got *got)
{
	struct reduce *r = s->reduce;
	bool first = s->state == SOURCE_ASKED;
	struct reduce *superseded = r->superseded;

	s->state = SOURCE_KNOWN;
	s->generation = got->generation;
	s->node = got->holder;
	s->arrival = ++r->from.arrivals;
	if (r->sum.small) {
		/* Small results have no commit. An earlier one may have been read, and be about to
		 * be announced. */
		if (ownership_settling(c, &r->by_id.id)) {
			r->superseded = NULL;
			reduce_drop(c, r);
			reduce_reinstate(c, superseded);
			return;
		}
		if (reduce_small(c, r, s, got))
			return;
	}
	if (first || r->rule.args.least || r->state == REDUCE_RUNNING)
		reduce_answered(c, r, first);
}

/* The source is not there. Returns whether its LOCATE stays open: the reduce may have ended. */
static bool reduce_absent(struct control *c, struct reduce_source *s, struct call *call)
{
	struct reduce *r = s->reduce;

	/* a holder that failed may have recovered: a repeated LOCATE excludes no node */
	s->failed = call->message.get.failed = MESSAGE_NODE_NONE;
	if (s->state != SOURCE_ASKED)
		return true;
	s->state = SOURCE_ABSENT;
	s->call = NULL;
	reduce_answered(c, r, true);
	if (r->state == REDUCE_ENDED) {
		reduce_forget(c, &call->message.get.id, call->message.request);
		return false;
	}
	s->call = call;
	return true;
}

/* Only the directory has the source's value, and it must be streamed: makes it an object of this
 * node. */
static bool reduce_adopt(struct control *c, struct message_got *got)
{
	uint32_t slot;

	if (!c->table || got->what != MESSAGE_GOT_VALUE || got->value_bytes != got->size ||
	    got->size == 0 || slots_find(c, &got->id) != TABLE_SLOT_NONE ||
	    objects_insert(c, &got->id, got->name, &got->meta, got->size, got->generation,
			   got->chunk_bytes, OBJECT_FETCHING, &slot))
		return false;
	memcpy(c->memory + c->table->slot[slot].offset, got->value, got->size);
	objects_publish(c, slot, got->size);
	objects_seal(c, slot, false);
	placement_superseded(c, &got->id, slot);
	announce_object(c, slot);
	got->holder = c->cluster->self->number;
	return true;
}

static bool reduce_located(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce_source *s = call->owner;
	struct reduce *r = s->reduce;
	const struct message_got *got = &answer->got; /* no deadline: never NULL */
	struct message_got own;

	s->refused = got->what == MESSAGE_GOT_FAILED;
	switch (got->what) {
	case MESSAGE_GOT_UNKNOWN:
	case MESSAGE_GOT_WAIT:
		if (r->from.misfit.known) {
			s->call = NULL;
			reduce_misfits(c, r);
			reduce_forget(c, &call->message.get.id, call->message.request);
			return false;
		}
		reduce_part(c, s);
		return reduce_absent(c, s, call);
	case MESSAGE_GOT_HOLDER:
	case MESSAGE_GOT_VALUE:
		s->call = NULL;
		if (!reduce_takes(c, r, s, got))
			return false;
		if (!reduce_fits(c, s, got)) {
			reduce_locate(c, s);
			return false;
		}
		own = *got;
		if (got->holder != MESSAGE_NODE_NONE || r->sum.small || reduce_adopt(c, &own)) {
			reduce_known(c, s, &own);
			return false;
		}
		s->call = call;
		return reduce_absent(c, s, call);
	default: /* the directory is full: the call repeats; the reduce goes on without this source
		  */
		reduce_part(c, s);
		return reduce_absent(c, s, call);
	}
}

void reduce_locate(struct control *c, struct reduce_source *s)
{
	struct message m = {.kind = MESSAGE_GET};

	m.get.id = s->id;
	m.get.failed = s->failed;
	m.get.generation = s->generation;
	m.get.why = MESSAGE_GET_LOCATE;
	m.get.value_max = s->reduce->sum.small ? s->reduce->sum.value_max : 0;
	s->call = rpc_start(c, ownership_shard(c, &s->id), &m, TABLE_SLOT_NONE, UINT64_MAX,
			    reduce_located, s);
	/* too many calls: the beat tries again */
}

static bool reduce_forgotten(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

void reduce_forget(struct control *c, const struct object_id *id, uint64_t request)
{
	struct message m = {.kind = MESSAGE_GET};

	m.get.id = *id;
	m.get.failed = MESSAGE_NODE_NONE;
	m.get.why = MESSAGE_GET_FORGET;
	m.get.generation = request;
	rpc_start(c, ownership_shard(c, id), &m, TABLE_SLOT_NONE, c->config.coordinator_lost_ns,
		  reduce_forgotten, NULL);
}

void reduce_unlocate(struct control *c, struct reduce_source *s)
{
	uint64_t request;

	if (!s->call)
		return;
	request = s->call->message.request;
	rpc_cancel(c, s->call);
	s->call = NULL;
	reduce_forget(c, &s->id, request);
}
