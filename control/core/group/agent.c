/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/cluster/state.h"
#include "state.h"

void agents_carve(struct agents *as, struct arena *a, const struct control_config *config)
{
	pool_carve(&as->pool, a, sizeof(struct agent_member), config->group_members_max);
	idmap_carve(&as->by_number, a, config->group_members_max);
}

/* The key of a member: drawn at random, so the group's id only tells twins apart. */
static struct object_id agents_key(const struct object_id *group, uint64_t member)
{
	struct object_id id = *group;

	memcpy(id.bytes, &member, sizeof(member));
	return id;
}

static struct agent_member *agents_find(struct control *c, const struct object_id *group,
					uint64_t member)
{
	struct object_id id = agents_key(group, member);
	struct idmap_node *found = idmap_find(&c->group->agents.by_number, &id);

	return found ? idmap_item(found, struct agent_member, by_number) : NULL;
}

static void agents_free(struct control *c, struct agent_member *m)
{
	announcer_forget(c, &c->group->agents.announcer, &m->announced);
	list_remove(&m->of_session);
	idmap_remove(&c->group->agents.by_number, &m->by_number);
	pool_give(&c->group->agents.pool, m);
}

bool agents_room(const struct control *c)
{
	const struct agents *as = &c->group->agents;

	return as->pool.used < as->pool.capacity;
}

static struct agent_member *agents_make(struct control *c, struct list *members,
					const struct object_id *group,
					const struct group_request *r)
{
	struct agent_member *m = pool_take(&c->group->agents.pool);
	struct object_id id = agents_key(group, r->member);

	if (!m)
		return NULL;
	m->group = *group;
	m->join = *r;
	idmap_insert(&c->group->agents.by_number, &m->by_number, &id);
	list_append(members, &m->of_session);
	return m;
}

/* Contributions that have had their round are not announced any more. */
static void agents_done(struct group_request *j, const struct group_answer *a)
{
	for (uint32_t i = 0; i < GROUP_PENDING_MAX; i++)
		if (j->clock < i || j->clock - i <= a->done)
			j->pending &= ~(UINT64_C(1) << i);
}

static void agents_clock(struct group_request *j, uint64_t clock)
{
	uint64_t by = clock > j->clock ? clock - j->clock : 0;

	j->pending = by < GROUP_PENDING_MAX ? j->pending << by : 0;
	j->clock += by;
}

bool agents_saw(struct control *c, struct list *members, const struct object_id *group,
		const struct group_request *r, const struct group_answer *a)
{
	struct agent_member *m = agents_find(c, group, r->member);

	if (r->step == GROUP_LEAVE && m)
		agents_free(c, m);
	if (r->step < GROUP_JOIN || r->step > GROUP_PULL || r->step == GROUP_LEAVE || !a)
		return true;
	if (r->step == GROUP_JOIN) {
		if (!m)
			m = agents_make(c, members, group, r);
		if (!m)
			return false;
		m->join = *r;
		m->join.flags |= GROUP_REJOIN;
		if (!(r->flags & GROUP_REJOIN))
			m->join.clock = m->join.pending = m->join.seen = 0;
		m->join.joined = a->joined;
	}
	if (!m)
		return true;
	agents_clock(&m->join, a->clock);
	if (r->step == GROUP_PUSH) {
		m->join.pending |= 1;
		m->round = a->switches ? 0 : a->joined;
	}
	if (r->step == GROUP_PULL && a->round > m->join.seen) {
		m->join.seen = a->round;
		m->join.seen_attempt = a->attempt;
	}
	agents_done(&m->join, a);
	return true;
}

bool agents_awaited(struct control *c, const struct object_id *group, const struct group_request *r,
		    struct object_id *out)
{
	const struct agent_member *m = agents_find(c, group, r->member);
	struct text name;

	if (!m || m->round <= m->join.seen)
		return false;
	group_name(&name, r->name, "r", m->round, 0);
	*out = group_id(name.bytes);
	return true;
}

/* ---- the owner --------------------------------------------------------------------------------
 */

static void agents_look(struct control *c, uint32_t index)
{
	struct agent_member *m = pool_at(&c->group->agents.pool, index);

	if (list_linked(&m->of_session))
		announcer_check(c, &c->group->agents.announcer, &m->announced, &m->group);
}

static bool agents_announced(struct control *c, struct call *call, const struct message *answer)
{
	struct agent_member *m = call->owner;

	announcer_heard(&c->group->agents.announcer, &m->announced);
	/* if it is refused, its next request says so */
	announcer_acked(&m->announced, call->node, call->cookie);
	announcer_check(c, &c->group->agents.announcer, &m->announced, &m->group);
	return false;
}

void agents_doubt(struct control *c)
{
	for (uint32_t i = 0; i < c->group->agents.pool.fresh; i++)
		((struct agent_member *)pool_at(&c->group->agents.pool, i))->announced.owner = 0;
}

static struct call *agents_say(struct control *c, struct announced *a)
{
	struct agent_member *m = list_item(a, struct agent_member, announced);
	struct message message = {.kind = MESSAGE_GROUP, .group = {.id = m->group, .ask = m->join}};

	return rpc_start(c, ownership_shard(c, &m->group), &message, TABLE_SLOT_NONE,
			 c->config.directory_ns, agents_announced, m);
}

void agents_init(struct control *c)
{
	announcer_init(c, &c->group->agents.announcer, &c->group->agents.pool.fresh, 64,
		       agents_look, agents_say);
}

static bool agents_gone(struct control *c, struct call *call, const struct message *answer)
{
	return false; /* an owner that has not heard it loses the member when this node is dead */
}

void agents_leave(struct control *c, struct list *members)
{
	list_each(l, after, members)
	{
		struct agent_member *m = list_item(l, struct agent_member, of_session);
		struct message message = {.kind = MESSAGE_GROUP};

		message.group.id = m->group;
		message.group.ask = m->join;
		message.group.ask.step = GROUP_LEAVE;
		message.group.ask.flags = GROUP_LOST;
		rpc_start(c, ownership_shard(c, &m->group), &message, TABLE_SLOT_NONE,
			  c->config.directory_ns, agents_gone, NULL);
		agents_free(c, m);
	}
}
