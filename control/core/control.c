/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <xxhash.h>
#include "state.h"

_Static_assert(sizeof(struct session_object) * MESSAGE_OBJECTS_MAX <= OBJECT_INLINE_MAX,
	       "a page of objects fits a queued message");

#define CONTROL_TELL_NS	  UINT64_C(200000000)
#define TICK_LATE_NS	  UINT64_C(100000000)
#define CONTROL_UNTOLD_NS UINT64_C(5000000)

/* ---- small services ---------------------------------------------------------------------- */

uint64_t control_random(struct control *c)
{
	c->random++;
	return XXH3_64bits_withSeed(&c->random, sizeof(c->random), c->config.seed);
}

uint64_t control_generation(struct control *c)
{
	uint64_t clock = (c->epoch_ns + c->now_ns) / NODES_MAX * NODES_MAX;

	c->generation += NODES_MAX;
	if (c->generation < clock)
		c->generation = clock;
	return c->generation | (c->self->number % NODES_MAX);
}

void control_generation_after(struct control *c, uint64_t generation)
{
	generation = generation / NODES_MAX * NODES_MAX;
	if (generation > c->generation && generation <= control_generation_max(c))
		c->generation = generation;
}

uint64_t control_backoff(struct control *c, uint32_t attempts)
{
	uint64_t pause = c->config.backoff_min_ns;

	while (attempts-- > 1 && pause < c->config.backoff_max_ns)
		pause *= 2;
	if (pause > c->config.backoff_max_ns)
		pause = c->config.backoff_max_ns;
	return pause / 2 + control_random(c) % (pause / 2 + 1);
}

void control_log(struct control *c, enum control_log_level level, const struct text *t)
{
	if (c->ops.log)
		c->ops.log(c->ops.arg, level, t->bytes);
}

void control_log_refused(struct control *c, unsigned worker, const struct record *r)
{
	struct text t = {.length = 0};

	text_add(&t, "worker ");
	text_add_number(&t, worker);
	text_add(&t, " refused record ");
	text_add_number(&t, r->refused.refused_op);
	text_add(&t, ": ");
	text_add(&t, reason_name(r->reason));
	control_log(c, CONTROL_LOG_DEBUG, &t);
}

const struct control_counters *control_counters(const struct control *c)
{
	return &c->counters;
}

/* ---- the directory's ways out ------------------------------------------------------------- */

static bool control_answer(void *arg, uint32_t node, const struct message *m)
{
	struct message later;
	struct control *c = arg;

	if (m->kind == MESSAGE_GOT && m->got.what == MESSAGE_GOT_UNKNOWN &&
	    reshard_settling(c, &m->got.id)) { /* perhaps its holder is about to tell us */
		later = *m;
		later.got.what = MESSAGE_GOT_WAIT;
		*later.got.text = '\0';
		m = &later;
	} else if (m->kind == MESSAGE_OBJECTS) {
		reduce_name_targets(c, c->directory.page, m->objects.count);
	} else if (m->kind == MESSAGE_GOT && m->got.what == MESSAGE_GOT_UNKNOWN) {
		later = *m;
		reduce_explain(c, &later.got);
		m = &later;
	}
	return peers_send(c, peers_node(c, node), m);
}

static void control_tell_fire(struct control *c, struct timer *t)
{
	directory_tell_untold(&c->directory);
}

void control_tell_later(struct control *c)
{
	if (c->untold.position == 0 && !list_empty(&c->directory.untold))
		timers_set(&c->timers, &c->untold, c->now_ns + CONTROL_UNTOLD_NS,
			   control_tell_fire);
}

static void control_redirect(void *arg, uint32_t node, uint64_t request)
{
	struct control *c = arg;

	reshard_redirect(c, peers_node(c, node), request);
}

static bool control_removed(struct control *c, struct call *call, const struct message *answer)
{
	if (call->owner)
		directory_removed(&c->directory, call->owner);
	return false;
}

static bool control_remove(void *arg, uint32_t node, const struct object_id *id,
			   uint64_t generation, bool again, struct removal *removal)
{
	struct control *c = arg;
	struct node *n = peers_node(c, node);
	struct message m = {.kind = MESSAGE_REMOVE};

	m.object.id = *id;
	m.object.generation = generation;
	m.object.again = again;
	/* Until the node is forgotten: then it announces what it has, and is told. */
	if (calls_start(c, n, &m, TABLE_SLOT_NONE, 2 * (c->config.forget_ns + c->config.retry_ns),
			control_removed, removal))
		return true;
	c->unremoved = n->unremoved = true;
	return false;
}

static uint32_t control_bury(void *arg, const struct tombstone *t, struct removal *removal)
{
	return graves_bury(arg, t, removal);
}

void control_removals_silent(struct control *c, struct node *n, bool gone)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);
		struct removal *removal = call->owner;

		if (call->end != control_removed || removal == NULL)
			continue;
		removal->silent = n->number + 1;
		call->owner = gone ? NULL : removal;
		if (gone)
			directory_removed(&c->directory, removal);
	}
}

static bool control_probed(struct control *c, struct call *call, const struct message *answer)
{
	call->node->probing = false;
	directory_node_silent(&c->directory, call->node->number, false);
	return false;
}

/* Any message will do: when it is not acknowledged, the connection ends. */
static void control_suspect(void *arg, uint32_t node)
{
	struct control *c = arg;
	struct node *n = peers_node(c, node);
	struct message m = {.kind = MESSAGE_STATUS};

	if (n == c->self || n->probing)
		return;
	n->probing = calls_start(c, n, &m, TABLE_SLOT_NONE, c->config.call_ns, control_probed,
				 NULL) != NULL;
	directory_node_silent(&c->directory, node, n->probing);
}

/* A node that has just come (back) is about to tell what it holds; one whose dataplane was started
 * again comes back hardly later than it is taken for dead; one that sees nobody else cannot tell
 * who is dead. */
static bool control_settled(void *arg, const struct object_id *id)
{
	struct control *c = arg;

	return c->members.live_count > 1 && c->now_ns >= c->up_ns + CONTROL_TELL_NS &&
	       (c->dead_ns == 0 || c->now_ns >= c->dead_ns + c->config.settle_ns) &&
	       c->now_ns >= c->members.begun_ns + c->config.settle_ns && !reshard_settling(c, id);
}

static uint32_t control_removals(void *arg)
{
	struct control *c = arg;
	uint32_t reserve = c->config.calls_max / 4;
	uint32_t free = c->calls.pool.capacity - c->calls.pool.used;

	return free > reserve ? free - reserve : 0;
}

void control_remind(struct control *c)
{
	if (c->calls.pool.used > c->calls.pool.capacity / 2)
		return;
	c->unremoved = false;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = peers_node(c, i);

		if (!n->unremoved || n->state != NODE_UP) /* control_node_up */
			continue;
		n->unremoved = false;
		if (n != c->self) {
			peers_hello(c, n->main->conn, MESSAGE_ANNOUNCE_ASK);
			continue;
		}
		n->life++;
		objects_announce_all(c);
	}
}

void control_start(struct control *c)
{
	const struct directory_out out = {c,
					  control_answer,
					  control_remove,
					  control_bury,
					  control_suspect,
					  control_removals,
					  control_settled,
					  control_redirect,
					  backup_keep,
					  backup_later,
					  members_down_ms,
					  graves_beyond};

	for (uint32_t i = 0; i < c->config.shards; i++)
		c->shard_nodes[i] = c->config.shard_nodes[i];
	peers_init(c);
	members_init(c);
	buffers_init(c);
	directory_init(&c->directory, &c->config, &out);
	list_init(&c->fetches.active);
	list_init(&c->combines.active);
	list_init(&c->takes.early);
	list_init(&c->offers.early);
	reduces_init(c);
	reductions_init(c);
	list_init(&c->loopback_queue);
	list_init(&c->sessions.polled);
	list_init(&c->creations.copying);
	list_init(&c->objects.lru);
	list_init(&c->objects.zombies);
	list_init(&c->objects.dirty);
	list_init(&c->objects.late);
	c->objects.sweep = TABLE_SLOT_NONE;
	c->calls.count = control_random(c) >> (CALLS_INDEX_BITS + 2);
	c->epoch_ns = c->config.incarnation - c->now_ns;
	graves_init(c);
	guard_init(c);
	backup_init(c);
	/* the configuration's own pointers are the caller's */
	c->config.addrs = NULL;
	c->config.seeds = NULL;
	c->config.shard_nodes = c->shard_nodes;
}

/* ---- the dataplane comes and goes --------------------------------------------------------- */

int control_attach(struct control *c, const struct control_attach *a, uint64_t now_ns)
{
	bool same = c->table != NULL && a->reply.adopted;
	int error = 0;

	assert(!c->attached);
	c->now_ns = now_ns;
	if (a->reply.workers == 0 || a->reply.workers > WORKERS_MAX)
		return -EPROTO;
	if (c->table && !same) {
		fetch_restart_all(c);
		combine_reset(c);
	}
	c->store = a->store;
	c->table = a->table;
	if (!same)
		error = objects_attach(c);
	if (error)
		c->table = NULL;
	if (!same)
		graves_attach(c);
	if (error)
		return error;
	c->dataplane = a->reply;
	c->workers = a->reply.workers;
	c->attached = true;
	c->buffers.epoch = (uint32_t)c->table->control_epoch;
	c->self->workers = c->workers;
	c->self->store_incarnation = c->table->incarnation;
	c->self->incarnation = a->reply.incarnation;
	if (c->members.begun_ns == 0)
		c->members.begun_ns = now_ns;
	if (members_joined(c)) {
		control_node_up(c, c->self);
		directory_node_known(&c->directory, c->self->number);
	}
	peers_attach(c);
	gossip_start(c);
	loopback_run(c);
	return 0;
}

void control_detach(struct control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (!c->attached)
		return;
	c->attached = false;
	c->counters.restarts++;
	buffers_detach(c);
	peers_detach(c);
	loopback_run(c);
}

static void control_forget_fire(struct control *c, struct timer *t)
{
	struct node *n = list_item(t, struct node, forget);

	directory_node_forget(&c->directory, n->number, !members_live(n));
	if (members_live(n)) /* others reach it: what it has stays taken until it is dead */
		timers_set(&c->timers, t, c->now_ns + c->config.forget_ns, control_forget_fire);
}

bool control_node_up(struct control *c, struct node *n)
{
	bool was_up = n->state == NODE_UP, known = true;

	if (!was_up)
		c->up_ns = c->now_ns;
	n->state = NODE_UP;
	timers_cancel(&c->timers, &n->forget);
	if (n == c->self)
		c->directory.self = n->number;
	if (control_is_shard(c, c->self))
		known = directory_node_up(&c->directory, n->number, n->store_incarnation) &&
			!n->unremoved;
	n->unremoved = n->unremoved && n == c->self;
	if (!was_up && control_is_shard(c, n) && c->table)
		fetch_announce(c, n);
	fetch_node_up(c, n);
	combine_node_up(c, n);
	if (!was_up)
		reduce_node_up(c, n);
	graves_node_up(c, n);
	return known;
}

void control_node_down(struct control *c, struct node *n)
{
	n->state = NODE_DOWN;
	n->beyond = false;
	reduce_node_down(c, n);
	combine_node_down(c, n);
	if (!control_is_shard(c, c->self))
		return;
	control_removals_silent(c, n, false);
	directory_node_down(&c->directory, n->number);
	timers_set(&c->timers, &n->forget, c->now_ns + c->config.forget_ns, control_forget_fire);
}

/* ---- what comes in ------------------------------------------------------------------------ */

static void control_take_remove(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	uint32_t slot = c->table ? objects_find(c, &m->object.id) : TABLE_SLOT_NONE;

	if (slot != TABLE_SLOT_NONE && !objects_is(c, slot, m->object.generation))
		slot = TABLE_SLOT_NONE;
	if (slot != TABLE_SLOT_NONE && m->object.again &&
	    c->table->slot[slot].state == OBJECT_SEALED) {
		objects_announce(c, slot); /* nobody has all of it unless it was agreed to */
		slot = TABLE_SLOT_NONE;
	}
	if (slot != TABLE_SLOT_NONE && m->object.again)
		objects_replace(c, slot, "the object is made anew: get it again");
	else if (slot != TABLE_SLOT_NONE)
		objects_kill(c, slot, "the object was deleted");
	if (slot != TABLE_SLOT_NONE && control_shard(c, &m->object.id) != n)
		objects_disown(c, &m->object.id, m->object.generation); /* it is another's by now */
	answer.reply.generation = m->object.generation;
	peers_send(c, n, &answer);
}

static void control_take_status(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_NODE, .request = m->request};

	session_describe_node(c, &answer.node);
	peers_send(c, n, &answer);
}

/* Between those who take part in a reduce. */
static void control_dispatch_reduce(struct control *c, struct node *n, const struct message *m)
{
	switch (m->kind) {
	case MESSAGE_COMBINED:
		reduce_combined(c, n, m);
		break;
	case MESSAGE_COMMIT:
		reduction_commit(c, n, m);
		break;
	case MESSAGE_FINISH:
		combine_finish(c, n, m);
		break;
	case MESSAGE_COMBINE:
		combine_request(c, n, m);
		break;
	case MESSAGE_RELEASE:
		combine_release(c, n, m);
		break;
	case MESSAGE_TAKE:
		take_request(c, n, m);
		break;
	case MESSAGE_OFFER:
		offer_take(c, n, m);
		break;
	default:
		c->counters.messages_unexpected++;
		break;
	}
}

void control_dispatch(struct control *c, struct node *n, uint32_t conn, const struct message *m)
{
	if (clock_refuses(c, n, m))
		return;
	switch (m->kind) {
	case MESSAGE_HAVE:
	case MESSAGE_GET:
	case MESSAGE_DROP:
	case MESSAGE_DELETE:
	case MESSAGE_LIST:
	case MESSAGE_TOLD:
	case MESSAGE_REDUCE:
	case MESSAGE_REDUCED:
	case MESSAGE_RECALL:
	case MESSAGE_PROPOSE:
		reshard_request(c, n, m);
		break;
	case MESSAGE_STAT:
		if (m->object.generation)
			session_tell(c, n, m);
		else
			reshard_request(c, n, m);
		break;
	case MESSAGE_REDIRECT:
		calls_redirected(c, n, m);
		break;
	case MESSAGE_MEMBERS:
		gossip_take(c, n, &m->members);
		break;
	case MESSAGE_GOT:
	case MESSAGE_OBJECTS:
	case MESSAGE_NODE:
	case MESSAGE_REPLY:
	case MESSAGE_USED:
	case MESSAGE_HAS:
	case MESSAGE_GIVEN:
		calls_answer(c, n, m);
		break;
	case MESSAGE_REMOVE:
		control_take_remove(c, n, m);
		break;
	case MESSAGE_BURY:
		graves_take(c, n, m);
		break;
	case MESSAGE_KEEP:
		backup_take(c, n, m);
		break;
	case MESSAGE_STREAM:
		serve_request(c, n, conn, m);
		break;
	case MESSAGE_PIECES:
		serve_pieces(c, n, m);
		break;
	case MESSAGE_STATUS:
		control_take_status(c, n, m);
		break;
	default:
		control_dispatch_reduce(c, n, m);
		break;
	}
}

void control_message(struct control *c, uint32_t conn, const struct message *m, uint64_t now_ns)
{
	struct node *n;

	c->now_ns = now_ns;
	c->counters.messages_in++;
	n = peers_message(c, conn, m);
	if (n)
		control_dispatch(c, n, conn, m);
	loopback_run(c);
}

void control_event(struct control *c, unsigned worker, const struct record *event, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (!c->attached || worker >= c->workers)
		return;
	if (event->op == EVENT_PEER_UP || event->op == EVENT_PEER_DOWN ||
	    event->op == EVENT_PEER_SILENT)
		peers_event(c, worker, event);
	else
		buffers_event(c, worker, event);
	loopback_run(c);
}

unsigned control_commands(struct control *c, unsigned worker, struct record *out, unsigned count)
{
	return c->attached && worker < c->workers ? buffers_commands(c, worker, out, count) : 0;
}

void control_tick(struct control *c, uint64_t now_ns)
{
	uint64_t due_ns = timers_next(&c->timers);

	c->now_ns = now_ns;
	c->counters.ticks_late += due_ns < now_ns && now_ns - due_ns > TICK_LATE_NS;
	timers_run(&c->timers, c, now_ns);
	loopback_run(c);
}

uint64_t control_next_timeout(const struct control *c)
{
	return timers_next(&c->timers);
}

/* ---- coming and going ---------------------------------------------------------------------- */

enum control_membership control_membership(const struct control *c)
{
	if (c->members.fenced)
		return CONTROL_FENCED;
	return members_joined(c) ? CONTROL_MEMBER : CONTROL_JOINING;
}

uint32_t control_number(const struct control *c)
{
	return members_joined(c) ? c->self->number : UINT32_MAX;
}

uint32_t control_members(const struct control *c)
{
	return c->members.live_count;
}

void control_leave(struct control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	c->members.left = true;
	if (!members_joined(c))
		return;
	members_record(c, c->self, c->self->member_incarnation, MEMBER_LEFT);
	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (peers_node(c, i)->state == NODE_UP)
			gossip_entry(c, peers_node(c, i), c->self);
}

void control_usage(const struct control *c, struct control_usage *out)
{
	*out = (struct control_usage){
		.store_bytes = c->objects.space.used_bytes,
		.scratch_bytes = c->objects.scratch.used_bytes,
		.objects = c->objects.count,
		.zombies = c->objects.zombie_count,
		.fetches = c->fetches.pool.used,
		.serves = c->serves.pool.used,
		.combines = c->combines.pool.used,
		.parts = c->combines.parts.used,
		.takes = c->takes.pool.used,
		.offers = c->offers.pool.used,
		.stages = c->buffers.stages.used,
		.edges = c->buffers.ins.used + c->buffers.outs.used,
		.calls = c->calls.pool.used,
		.waits = c->sessions.waits.used,
		.entries = c->directory.entries.used,
	};
	list_each(l, after, &c->reduces.active) out->reduces++;
	list_each(l, after, &c->reductions.active) out->reductions++;
	for (uint32_t i = 0; i < c->config.nodes; i++)
		out->nodes_up += peers_node((struct control *)c, i)->state == NODE_UP;
	for (uint32_t i = 0; i < c->peers.links.fresh; i++) {
		const struct link *l = pool_at(&c->peers.links, i);

		out->links_up += l->state == LINK_UP;
	}
}
