/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a group's tasks are in a control core: small objects that are put into the local store and
 * the directory, read from their holders, listed and deleted; and reduces of the local requester.
 */
#include <errno.h>
#include "core/base/env.h"
#include "core/cluster/state.h"
#include "core/directory/state.h"
#include "core/reduce/requester/requester.h"
#include "core/store/state.h"
#include "internal/reduce.h"
#include "state.h"

static struct group_shell *shell_of(struct control *c, const struct group *g)
{
	return &c->group->shells[pool_index(&c->group->groups.pool, g)];
}

static void shell_idle(struct control *c, struct group_shell *s)
{
	timers_cancel(&c->timers, &s->timer);
	s->work = GROUP_WORK_NONE;
	s->call = NULL;
}

/* Whether the object in that slot can be read from this node's store. */
static bool shell_here(struct control *c, uint32_t slot)
{
	const struct object_slot *o = &c->table->slot[slot];

	return o->state == OBJECT_SEALED && o->size <= GROUP_BLOB_BYTES;
}

static void shell_fire(struct control *c, struct timer *t)
{
	struct group_shell *s = list_item(t, struct group_shell, timer);
	uint32_t work = s->work, slot = s->slot;

	if (work == GROUP_WORK_READ && s->status == 0 &&
	    !(c->table && objects_is(c, slot, s->generation) && shell_here(c, slot)))
		s->status = -EAGAIN; /* it has gone since */
	shell_idle(c, s);
	c->group->groups.now_ns = c->now_ns;
	if (work == GROUP_WORK_PUT)
		groups_put(&c->group->groups, s->group, s->status, "it exists already");
	else if (work == GROUP_WORK_READ && s->status == 0)
		groups_read(&c->group->groups, s->group, 0,
			    (const char *)c->memory + c->table->slot[slot].offset,
			    (uint32_t)c->table->slot[slot].size);
	else if (work == GROUP_WORK_READ)
		groups_read(&c->group->groups, s->group, s->status, NULL, 0);
	else
		groups_list_ended(&c->group->groups, s->group, s->status);
}

/* The task ends so in a later turn. */
static bool shell_later(struct control *c, struct group_shell *s, int32_t status)
{
	s->status = status;
	timers_set(&c->timers, &s->timer, c->now_ns, shell_fire);
	return true;
}

static struct group_shell *shell_begin(struct control *c, struct group *g, uint32_t work,
				       const char *name)
{
	struct group_shell *s = shell_of(c, g);

	s->group = g;
	s->work = work;
	s->shard = s->tried = 0;
	s->cursor = 0;
	strncpy(s->name, name, sizeof(s->name) - 1);
	return s;
}

/* ---- put --------------------------------------------------------------------------------------
 */

static bool shell_put_ended(struct control *c, struct call *call, const struct message *answer)
{
	struct group_shell *s = call->owner;
	struct object *o = objects_at(c, s->slot);
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	if (!objects_is(c, s->slot, s->generation)) { /* somebody has deleted it */
		o = NULL;
		status = -EAGAIN;
	} else if (status == -EAGAIN && call->deadline_ns - c->now_ns > c->config.backoff_max_ns) {
		return true;
	}
	if (o && status == 0) {
		objects_seal(c, s->slot, true);
		announce_agreed(c, s->slot, call->node, call->cookie);
	} else if (o) {
		if (status == -ESTALE && answer->reply.generation <= env_generation_max(c))
			env_generation_after(c, answer->reply.generation);
		announce_abandon(c, s->slot, "it could not be put");
	}
	shell_idle(c, s);
	c->group->groups.now_ns = c->now_ns;
	groups_put(&c->group->groups, s->group, status == -ESTALE ? -EAGAIN : status,
		   answer ? answer->reply.text : "the directory does not answer");
	return false;
}

static bool shell_put(void *arg, struct group *g, const char *name, const char *bytes,
		      uint32_t length)
{
	struct control *c = arg;
	struct object_id id = group_id(name);
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &id);
	struct group_shell *s;
	struct message m;

	if (!c->table)
		return false;
	s = shell_begin(c, g, GROUP_WORK_PUT, name);
	if (slots_find(c, &id) != TABLE_SLOT_NONE)
		return shell_later(c, s, -EEXIST);
	if (t)
		env_generation_after(c, t->generation);
	if (objects_insert(c, &id, name, NULL, length, env_generation(c), c->dataplane.chunk_bytes,
			   OBJECT_CREATING, &s->slot) != 0)
		return false;
	s->generation = c->table->slot[s->slot].generation;
	memcpy(c->memory + c->table->slot[s->slot].offset, bytes, length);
	announce_have(c, s->slot, &m);
	m.have.create = 1;
	m.have.state = MESSAGE_COPY_COMPLETE;
	s->call = rpc_start(c, ownership_shard(c, &id), &m, s->slot, c->config.directory_ns,
			    shell_put_ended, s);
	if (!s->call) {
		objects_kill(c, s->slot, "");
		return false;
	}
	s->call->cookie = membership_epoch(c, s->call->node);
	return true;
}

/* ---- read -------------------------------------------------------------------------------------
 */

static void shell_read_end(struct control *c, struct group_shell *s, int32_t status,
			   const uint8_t *bytes, uint32_t length)
{
	shell_idle(c, s);
	c->group->groups.now_ns = c->now_ns;
	groups_read(&c->group->groups, s->group, status, (const char *)bytes, length);
}

static bool shell_pulled(struct control *c, struct call *call, const struct message *answer)
{
	struct group_shell *s = call->owner;

	if (answer && answer->pull.status == 0)
		shell_read_end(c, s, 0, answer->pull.value, answer->pull.bytes);
	else
		shell_read_end(c, s, -ETIMEDOUT, NULL, 0);
	return false;
}

/* Asks a holder of the object for its bytes. Another try takes another one. */
static void shell_pull(struct control *c, struct group_shell *s, const struct session_object *o)
{
	struct message m = {.kind = MESSAGE_PULL};
	struct node *holder = NULL;

	for (uint32_t i = 0; i < o->holders && i < SESSION_HOLDERS; i++) {
		const struct session_holder *h = &o->holder[i];

		if (h->complete && h->node < c->config.nodes &&
		    membership_live(peers_node(c, h->node)) &&
		    (!holder || i <= s->tried % SESSION_HOLDERS))
			holder = peers_node(c, h->node);
	}
	s->tried++;
	if (holder && (o->size == 0 || o->size > GROUP_BLOB_BYTES)) {
		shell_read_end(c, s, 0, (const uint8_t *)"", 0); /* no group has written it */
		return;
	}
	m.pull.id = o->id;
	m.pull.generation = o->generation;
	m.pull.bytes = (uint32_t)o->size;
	s->call = holder ? rpc_start(c, holder, &m, TABLE_SLOT_NONE, c->config.call_ns,
				     shell_pulled, s)
			 : NULL;
	if (!s->call)
		shell_read_end(c, s, holder ? -ETIMEDOUT : -ENODATA, NULL, 0);
}

static bool shell_read_found(struct control *c, struct call *call, const struct message *answer)
{
	struct group_shell *s = call->owner;

	s->call = NULL;
	if (answer && answer->objects.count > 0)
		shell_pull(c, s, answer->objects.objects);
	else
		shell_read_end(c, s, answer ? -ENOENT : -ETIMEDOUT, NULL, 0);
	return false;
}

static bool shell_read(void *arg, struct group *g, const char *name)
{
	struct control *c = arg;
	struct object_id id = group_id(name);
	struct group_shell *s = shell_begin(c, g, GROUP_WORK_READ, name);
	uint32_t slot = c->table ? slots_find(c, &id) : TABLE_SLOT_NONE;
	struct message m = {.kind = MESSAGE_STAT};

	if (slot != TABLE_SLOT_NONE && shell_here(c, slot)) {
		s->slot = slot;
		s->generation = c->table->slot[slot].generation;
		return shell_later(c, s, 0);
	}
	m.object.id = id;
	s->call = rpc_start(c, ownership_shard(c, &id), &m, TABLE_SLOT_NONE, c->config.directory_ns,
			    shell_read_found, s);
	return s->call != NULL;
}

/* ---- list -------------------------------------------------------------------------------------
 */

static bool shell_list_ask(struct control *c, struct group_shell *s);

/* Complete copies of a contribution or result on live nodes, the value in the directory among them.
 * An object of another size is none. */
static uint32_t shell_copies(const struct group *g, const struct session_object *o)
{
	uint32_t copies = o->copies + ((o->flags & SESSION_OBJECT_INLINE) != 0);

	return o->size == g->count * reduce_dtype_bytes(g->dtype) ? copies : 0;
}

static bool shell_listed(struct control *c, struct call *call, const struct message *answer)
{
	struct group_shell *s = call->owner;

	s->call = NULL;
	if (!answer || answer->objects.unsettled) { /* what is there may not be listed */
		shell_later(c, s, -ETIMEDOUT);
		return false;
	}
	c->group->groups.now_ns = c->now_ns;
	for (uint32_t i = 0; i < answer->objects.count; i++)
		groups_listed(&c->group->groups, s->group, answer->objects.objects[i].name,
			      shell_copies(s->group, &answer->objects.objects[i]) > 0);
	s->cursor = answer->objects.cursor;
	if (s->cursor == 0)
		s->shard++;
	if (!shell_list_ask(c, s))
		shell_later(c, s, -EAGAIN);
	return false;
}

static bool shell_list_ask(struct control *c, struct group_shell *s)
{
	struct message m = {.kind = MESSAGE_LIST};
	struct node *owner = ownership_next(c, &s->shard);

	if (!owner)
		return shell_later(c, s, 0);
	m.list.cursor = s->cursor;
	memcpy(m.list.prefix, s->name, sizeof(m.list.prefix));
	s->call = rpc_start(c, owner, &m, TABLE_SLOT_NONE, c->config.call_ns, shell_listed, s);
	return s->call != NULL;
}

static bool shell_list(void *arg, struct group *g, const char *prefix)
{
	struct control *c = arg;

	return shell_list_ask(c, shell_begin(c, g, GROUP_WORK_LIST, prefix));
}

/* ---- look -------------------------------------------------------------------------------------
 */

static bool shell_looked(struct control *c, struct call *call, const struct message *answer)
{
	struct group_shell *s = call->owner;
	const struct session_object *o =
		answer && answer->objects.count > 0 ? answer->objects.objects : NULL;
	uint32_t copies = o ? shell_copies(s->group, o) : 0;
	bool known = answer && (copies > 0 || !answer->objects.unsettled);

	s->look = NULL;
	c->group->groups.now_ns = c->now_ns;
	groups_looked(&c->group->groups, s->group, known ? 0 : -ETIMEDOUT, copies);
	return false;
}

static bool shell_look(void *arg, struct group *g, const char *name)
{
	struct control *c = arg;
	struct group_shell *s = shell_of(c, g);
	struct message m = {.kind = MESSAGE_STAT};

	m.object.id = group_id(name);
	s->group = g;
	s->look = rpc_start(c, ownership_shard(c, &m.object.id), &m, TABLE_SLOT_NONE,
			    c->config.directory_ns, shell_looked, s);
	return s->look != NULL;
}

static void shell_log(void *arg, const char *text)
{
	struct text t = {.length = 0};

	text_add(&t, text);
	env_log(arg, CONTROL_LOG_WARNING, &t);
}

/* ---- reduce, delete ---------------------------------------------------------------------------
 */

/* Whether all contributors of a round pull its result: so does who waits for a quorum. */
static bool shell_everyone(const struct group *g)
{
	for (uint32_t i = 0; i < g->policy.rows; i++)
		if (g->policy.row[i].quorum == 0)
			return false;
	return true;
}

static bool shell_reduce(void *arg, struct group *g, const char *target,
			 const struct object_id *sources, uint32_t count, bool resume)
{
	struct control *c = arg;
	struct group_shell *s = shell_of(c, g);
	struct message_reduce m = {.target = group_id(target),
				   .op = g->op,
				   .dtype = g->dtype,
				   .num = count,
				   .count = count,
				   .sources = sources,
				   .flags = shell_everyone(g) ? MESSAGE_REDUCE_ALLREDUCE : 0,
				   .timeout_ns = SHELL_REDUCE_NS};
	struct requester *r = requester_find(c, &m.target);

	strncpy(m.name, target, sizeof(m.name) - 1);
	if (!r)
		r = resume ? requester_resume(c, &m) : requester_start(c, &m);
	if (!r)
		return false;
	s->group = g;
	s->await.group = true;
	list_remove(&s->await.link);
	list_append(&r->waits, &s->await.link);
	return true;
}

void group_reduce_ended(struct control *c, struct await *w, const struct message_used *used)
{
	struct group_shell *s = list_item(&w->link, struct group_shell, await.link);

	list_remove(&w->link);
	c->group->groups.now_ns = c->now_ns;
	groups_reduced(&c->group->groups, s->group, used->status, used->text);
}

static bool shell_deleted(struct control *c, struct call *call, const struct message *answer)
{
	const struct object_id *id = &call->message.object.id;
	uint32_t slot;

	if (answer && answer->reply.status == -EAGAIN)
		return true;
	slot = c->table ? slots_find(c, id) : TABLE_SLOT_NONE;
	if (answer && answer->reply.status == 0 && slot != TABLE_SLOT_NONE &&
	    objects_is(c, slot, answer->reply.generation))
		objects_kill(c, slot, "the object was deleted");
	return false;
}

static void shell_delete(struct control *c, const struct object_id *id)
{
	struct message m = {.kind = MESSAGE_DELETE};

	m.object.id = *id;
	rpc_start(c, ownership_shard(c, id), &m, TABLE_SLOT_NONE, 2 * c->config.directory_ns,
		  shell_deleted, NULL);
}

static void shell_remove(void *arg, const char *name)
{
	struct object_id id = group_id(name);

	shell_delete(arg, &id);
}

static void shell_cancel(void *arg, struct group *g, const char *target)
{
	struct control *c = arg;
	struct object_id id = group_id(target);

	shell_delete(c, &id);
	requester_deleted(c, &id);
}

static void shell_abandon(void *arg, struct group *g)
{
	struct control *c = arg;
	struct group_shell *s = shell_of(c, g);

	rpc_cancel(c, s->look);
	s->look = NULL;
	rpc_cancel(c, s->call);
	if (s->work == GROUP_WORK_PUT && s->call && objects_is(c, s->slot, s->generation))
		announce_abandon(c, s->slot, "its group has gone");
	list_remove(&s->await.link);
	shell_idle(c, s);
}

static bool shell_exists(void *arg, const struct object_id *id)
{
	struct control *c = arg;

	return directory_has_complete(&c->directory->shard, id);
}

static bool shell_alive(void *arg, uint32_t node)
{
	struct control *c = arg;

	return node < c->config.nodes &&
	       (node == c->cluster->self->number || membership_live(peers_node(c, node)));
}

static uint64_t shell_random(void *arg)
{
	return env_random(arg);
}

static void shell_answer(void *arg, uint32_t node, uint64_t request, int32_t status,
			 const char *text, const struct group_answer *answer)
{
	struct message m = {.kind = MESSAGE_GROUPED, .request = request};
	struct control *c = arg;

	m.grouped.status = status;
	m.grouped.answer = answer;
	strncpy(m.grouped.text, text, MESSAGE_TEXT_MAX);
	peers_send(c, peers_node(c, node), &m);
}

void shell_init(struct control *c)
{
	c->group->ops = (struct groups_ops){
		c,	     shell_answer, shell_put,	 shell_read,	shell_list,   shell_reduce,
		shell_look,  shell_log,	   shell_cancel, shell_abandon, shell_remove, shell_exists,
		shell_alive, shell_random,
	};
	groups_init(&c->group->groups, &c->group->ops, c->config.node);
}
