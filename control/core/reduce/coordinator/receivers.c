/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receivers of a target that is made in segments. Each segment has a root. A receiver gets a
 * COMBINE without an operation, and assembles the target from the roots while they still grow,
 * directly or through other receivers (relays.c). The directory hands out no copy of the target
 * until one is complete and no receiver is left; then the segments are released. Called by the
 * front door (GET, COMBINED), commit.c and repair.c.
 */
#include <errno.h>
#include "core/directory/state.h"
#include "state.h"

static const char receiver_nobody[] =
	"its result was lost before anybody had all of it: reduce again";

static struct reduce *receiver_find(struct control *c, const struct object_id *target)
{
	struct idmap_node *n = idmap_find(&c->coordinator->reduces.by_id, target);
	struct reduce *r = n ? idmap_item(n, struct reduce, by_id) : NULL;

	return r && reduce_gathers(r) && r->state != REDUCE_ENDED ? r : NULL;
}

static void receiver_free(struct control *c, struct reduce_receiver *g)
{
	rpc_cancel(c, g->call);
	list_remove(&g->link);
	pool_give(&c->coordinator->reduces.receivers, g);
}

/* Removes a receiver. Those that it fed get other feeders. */
static void receiver_drop(struct control *c, struct reduce_receiver *g)
{
	struct reduce *r = g->reduce;

	reduce_feed_changed(r, g);
	receiver_free(c, g);
	if (r->plan.graph.feeder)
		reduce_receivers_tell(c, r);
}

static void receiver_refuse(struct control *c, const struct reduce_receiver *g, int32_t status)
{
	struct message m = {.kind = MESSAGE_GOT, .request = g->request};

	m.got.id = g->reduce->by_id.id;
	m.got.what = MESSAGE_GOT_FAILED;
	m.got.holder = MESSAGE_NODE_NONE;
	m.got.status = status;
	strncpy(m.got.text, "the node has no room for the object: delete objects there",
		MESSAGE_TEXT_MAX);
	peers_send(c, peers_node(c, g->node), &m);
}

static bool receiver_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce_receiver *g = call->owner;
	struct reduce *r = g->reduce;
	int32_t status = answer ? answer->reply.status : -EHOSTUNREACH;

	if (status == -EAGAIN)
		return true;
	g->call = NULL;
	g->missed = g->missed && !answer;
	reduce_tell_more(c, r);
	if (status == 0 || status == -ESTALE)
		return false;
	if ((status == -ENOSPC || status == -EFBIG) && g->request)
		receiver_refuse(c, g, status);
	receiver_drop(c, g); /* it asks again */
	reduce_receivers_check(c, r);
	return false;
}

static void receiver_tell(struct control *c, struct reduce *r, struct reduce_receiver *g)
{
	struct message m = {.kind = MESSAGE_COMBINE};

	g->dirty = false;
	reduce_feed_choose(c, r, g);
	rpc_cancel(c, g->call);
	m.combine.id = m.combine.target = r->by_id.id;
	m.combine.generation = r->out.generation;
	m.combine.reduce = r->want.number;
	m.combine.size = r->from.size;
	m.combine.chunk_bytes = r->from.chunk_bytes;
	m.combine.need = graph_output_parts(&r->plan.graph);
	m.combine.flags = r->state < REDUCE_COMMITTED ? MESSAGE_COMBINE_WITHHOLD : 0;
	m.combine.flags |= r->plan.graph.values ? MESSAGE_COMBINE_VALUES : 0;
	memcpy(m.combine.name, r->want.name, sizeof(m.combine.name));
	m.combine.meta = r->from.meta;
	g->call = rpc_start(c, peers_node(c, g->node), &m, TABLE_SLOT_NONE, c->config.call_ns,
			    receiver_answered, g);
	if (!g->call) /* too many calls are open */
		g->dirty = r->plan.held = true;
}

void reduce_receivers_tell(struct control *c, struct reduce *r)
{
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (!g->dirty)
			continue;
		if (g->call || rpc_plan_fits(c, peers_node(c, g->node)))
			receiver_tell(c, r, g);
		else
			r->plan.held = true;
	}
}

static bool receiver_let_go(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce_receiver *g = call->owner;

	if (!answer || answer->reply.status != -EAGAIN)
		return receiver_answered(c, call, answer);
	g->call = NULL; /* its COMBINED says when it is done */
	return false;
}

void reduce_receivers_finish(struct control *c, struct reduce *r)
{
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (g->call || g->dirty)
			receiver_tell(c, r, g); /* it does not know all of its parts yet */
		else if (g->node != r->commit.holder)
			g->call = reduce_commit_call(c, r, g->node, receiver_let_go, g);
	}
}

static struct reduce_receiver *receiver_of(struct reduce *r, uint32_t node)
{
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (g->node == node)
			return g;
	}
	return NULL;
}

bool reduce_receivers_knows(struct reduce *r, const struct node *n,
			    const struct message_combined *m)
{
	bool holds = r->state >= REDUCE_COMMITTING && r->commit.holder == n->number;

	return m->generation == r->out.generation && (holds || receiver_of(r, n->number));
}

static struct reduce_receiver *receiver_add(struct control *c, struct reduce *r, uint32_t node,
					    uint64_t request)
{
	struct reduce_receiver *g = receiver_of(r, node);

	if (!g) {
		g = pool_take(&c->coordinator->reduces.receivers);
		if (!g)
			return NULL; /* it asks again */
		g->reduce = r;
		g->node = node;
		g->slot = g->whole = REDUCE_NONE;
		list_append(&r->out.receivers, &g->link);
		reduce_feed_changed(r, g);
	}
	g->done = false;
	g->dirty = true;
	g->request = request;
	return g;
}

static void receiver_take(void *arg, uint32_t node, uint64_t request)
{
	struct reduce *r = arg;

	receiver_add(r->control, r, node, request);
}

void reduce_receivers_begin(struct control *c, struct reduce *r)
{
	reduce_receivers_restart(c, r);
	r->control = c;
	directory_waiters_take(&c->directory->shard, &r->by_id.id, receiver_take, r);
	/* Do not wait for their GETs: those would have to pass links that are full by then. */
	for (uint32_t i = 0; r->plan.graph.eager && i < r->plan.graph.slots; i++)
		if (!receiver_of(r, r->plan.run.slot[i].host))
			receiver_add(c, r, r->plan.run.slot[i].host, 0);
}

bool reduce_receivers_get(struct control *c, struct node *n, const struct message *m)
{
	struct reduce *r = receiver_find(c, &m->get.id);
	struct message answer = {.kind = MESSAGE_GOT, .request = m->request};
	struct reduce_receiver *g;

	if (!r || m->get.why == MESSAGE_GET_LOCATE || m->get.why == MESSAGE_GET_FORGET)
		return false;
	g = receiver_add(c, r, n->number, m->request);
	if (!g)
		return true;
	answer.got.id = m->get.id;
	answer.got.what = MESSAGE_GOT_WAIT;
	answer.got.holder = MESSAGE_NODE_NONE;
	peers_send(c, n, &answer);
	receiver_tell(c, r, g);
	if (r->plan.graph.feeder)
		reduce_receivers_tell(c, r);
	return true;
}

void reduce_receivers_restart(struct control *c, struct reduce *r)
{
	r->out.generation = reduce_generation(c, r);
	r->out.forced = 0;
	directory_reserve_for(&c->directory->shard, &r->by_id.id, r->out.generation);
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		g->slot = REDUCE_NONE;
		g->avoid = g->left = g->lost = (struct reduce_set){{0}};
		g->done = g->missed = false;
		g->leaves = 0;
		g->dirty = true;
	}
}

void reduce_receivers_free(struct control *c, struct reduce *r)
{
	list_each(l, after, &r->out.receivers)
		receiver_free(c, list_item(l, struct reduce_receiver, link));
}

static bool receiver_stripes_done(const struct reduce *r)
{
	for (uint32_t j = 0; j < r->plan.graph.segments; j++)
		if (!reduce_is(reduce_root(r, j), RUN_DONE))
			return false;
	return true;
}

/* No node has asked for the target: makes one node after the other a receiver, until one has it. */
static void receiver_force(struct control *c, struct reduce *r)
{
	while (r->out.forced <= r->plan.graph.slots) {
		uint32_t k = r->out.forced++,
			 node = k ? r->plan.run.slot[k - 1].host : r->want.caller;
		struct reduce_receiver *g =
			reduce_reachable(c, node) ? receiver_add(c, r, node, 0) : NULL;

		if (!g)
			continue;
		receiver_tell(c, r, g);
		return;
	}
	reduce_fail(c, r, -ENOSPC,
		    "no node could put the target together: delete objects, and reduce again");
}

/* The result is agreed to, and some receivers have all of it: they feed the others in place of
 * roots that do not. */
static void receiver_go_round(struct control *c, struct reduce *r)
{
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (!g->done)
			g->dirty |= reduce_feed_choose(c, r, g);
	}
	reduce_receivers_tell(c, r);
}

/* The result is agreed to. The segments are kept as long as all of them exist and a receiver needs
 * them. After that, unfinished receivers fetch from a complete one. */
static void receiver_settle(struct control *c, struct reduce *r,
			    const struct reduce_receiver *ready, bool wanted)
{
	if (!r->out.finished && directory_has_complete(&c->directory->shard, &r->by_id.id)) {
		r->out.finished = true;
		reduce_answer_all(c, r);
	}
	if (!r->out.finished && r->commit.holder == REDUCE_NONE && ready)
		reduce_commit_finish(c, r, ready->node);
	else if (r->out.finished &&
		 (!wanted || (r->out.broken && (!ready || r->plan.graph.values))))
		reduce_end(c, r, 0, "");
	else if (r->out.finished)
		receiver_go_round(c, r);
	else if (reduce_commit_hopeless(c, r) && (!wanted || r->out.broken))
		reduce_end(c, r, -ESTALE, receiver_nobody);
}

void reduce_receivers_check(struct control *c, struct reduce *r)
{
	const struct reduce_receiver *ready = NULL;
	bool wanted = false;

	if (!receiver_stripes_done(r))
		return;
	list_each(l, after, &r->out.receivers)
	{
		const struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (!g->done)
			wanted = true;
		else if (!ready || !reduce_reachable(c, ready->node))
			ready = g;
	}
	if (r->state == REDUCE_COMMITTED)
		receiver_settle(c, r, ready, wanted);
	else if (ready)
		reduce_commit(c, r, ready->node);
	else if (!wanted && r->state == REDUCE_RUNNING)
		receiver_force(c, r);
}

/* The root of the segment that the message names; NULL: of an earlier plan. */
static struct reduce_vertex *receiver_part(struct reduce *r, const struct message_combined *m)
{
	for (uint32_t j = 0; j < r->plan.graph.segments; j++) {
		struct reduce_vertex *root = reduce_root(r, j);

		if (reduce_is(root, RUN_STARTED) && root->generation == m->part_generation &&
		    object_id_equal(&root->id, &m->part_id))
			return root;
	}
	return NULL;
}

/* A receiver cannot get a segment. Before the commit the segment is rebuilt; after it, only a
 * complete copy of the target helps. */
static void receiver_lost(struct control *c, struct reduce *r, struct reduce_receiver *g,
			  const struct message_combined *m)
{
	struct message_combined lost = {.part_node = MESSAGE_NODE_NONE, .status = m->status};
	struct reduce_vertex *root = receiver_part(r, m);
	bool link = root && m->status == -EHOSTUNREACH && reduce_reachable(c, reduce_host(root));

	if (!root || (link && !r->out.finished))
		return; /* it goes on trying */
	if (r->state == REDUCE_RUNNING) {
		reduce_lost(c, r, reduce_number(root), &lost);
	} else {
		r->out.broken |= !link;
		reduce_feed_avoid(g, m->part_node);
		reduce_receivers_check(c, r);
	}
}

void reduce_receivers_combined(struct control *c, struct reduce *r, struct node *n,
			       const struct message_combined *m)
{
	struct reduce_receiver *g = receiver_of(r, n->number);
	const struct reduce_vertex *root;

	if (!g || m->generation != r->out.generation)
		return;
	if (m->part_node != MESSAGE_NODE_NONE && object_id_equal(&m->part_id, &r->by_id.id)) {
		g->dirty = true;
		reduce_feed_leave(c, g, m->part_node, m->what == MESSAGE_COMBINED_SILENT);
		reduce_feed_avoid(g, m->part_node);
		reduce_receivers_tell(c, r);
		return;
	}
	if (m->what == MESSAGE_COMBINED_DONE) {
		g->done = true;
		for (uint32_t j = 0; j < r->plan.graph.segments; j++) /* else it could not be */
			r->plan.run.vertex[r->plan.graph.segment[j].root] |= RUN_DONE;
		if (r->plan.shown) /* this one is later than those before */
			reduce_measured_show(c, r);
		reduce_receivers_check(c, r);
	} else if (m->what == MESSAGE_COMBINED_SILENT) {
		root = receiver_part(r, m);
		if (root)
			reduce_feed_avoid(g, m->part_node);
		if (root && r->out.finished)
			reduce_receivers_tell(c, r);
		else if (root)
			reduce_silent(c, r, reduce_number(root));
	} else if (m->what == MESSAGE_COMBINED_LOST && m->part_node != MESSAGE_NODE_NONE) {
		receiver_lost(c, r, g, m);
	} else if (m->what == MESSAGE_COMBINED_LOST) { /* its dataplane has restarted */
		receiver_drop(c, g);
		reduce_receivers_check(c, r);
	}
}

void reduce_receivers_node_down(struct control *c, struct reduce *r, uint32_t node)
{
	struct reduce_receiver *g = receiver_of(r, node);

	if (g)
		receiver_drop(c, g);
	for (uint32_t i = 0; r->state >= REDUCE_COMMITTING && i < r->plan.graph.vertices; i++) {
		if (reduce_host(&r->plan.vertex[i]) != node)
			continue;
		r->plan.run.vertex[i] &=
			(uint8_t)~RUN_STARTED; /* it must not be rebuilt while receivers read it */
		r->out.broken = true;
	}
	if (g || r->out.broken)
		reduce_receivers_check(c, r);
}
