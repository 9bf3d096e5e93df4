/* SPDX-License-Identifier: BSD-3-Clause */
/* The entries of the module group. */
#include <errno.h>
#include "core/cluster/state.h"
#include "state.h"

void group_carve(struct group_state *r, struct arena *a, const struct control_config *config)
{
	const struct groups_limits limits = {config->groups_max, config->group_members_max,
					     GROUP_CONTRIBUTIONS * config->group_members_max};

	groups_carve(&r->groups, a, &limits);
	r->shells = arena_carve(a, sizeof(*r->shells) * config->groups_max);
	agents_carve(&r->agents, a, config);
}

void group_start(struct control *c)
{
	shell_init(c);
	agents_init(c);
}

static struct groups *group_now(struct control *c)
{
	c->group->groups.now_ns = c->now_ns;
	c->group->groups.node = c->cluster->self->number;
	return &c->group->groups;
}

void group_message(struct control *c, struct node *n, const struct message *m)
{
	const struct group_request *r = &m->group.ask;
	struct message answer = {.kind = MESSAGE_GROUPED, .request = m->request};
	const char *wrong = group_request_wrong(r);

	if (!wrong && r->step != GROUP_EXPLAIN)
		wrong = group_name_wrong(r->name);
	if (wrong) {
		answer.grouped.status = -EINVAL;
		strncpy(answer.grouped.text, wrong, MESSAGE_TEXT_MAX);
		peers_send(c, n, &answer);
	} else if (!groups_request(group_now(c), n->number, m->request, r)) {
		ownership_redirect(c, n, m->request);
	}
}

void group_node_lost(struct control *c, uint32_t node)
{
	groups_node_lost(group_now(c), node);
}

void group_node_reborn(struct control *c, uint32_t node)
{
	groups_node_reborn(group_now(c), node);
}

void group_ownership(struct control *c, bool (*mine)(void *arg, const struct object_id *id))
{
	groups_keep(group_now(c), mine, c);
	agents_doubt(c);
}

static void group_fire(struct control *c, struct timer *t)
{
	groups_tick(group_now(c));
}

void group_turn(struct control *c)
{
	const struct groups *gs = &c->group->groups;
	uint64_t next = groups_next(gs);

	c->counters.group_rounds_switch = gs->switched;
	c->counters.group_rounds_hosts = gs->hosted;
	c->counters.group_rounds_fallen = gs->fallen;

	if (next == UINT64_MAX)
		timers_cancel(&c->timers, &c->group->timer);
	else if (c->group->timer.position == 0 || c->group->timer.at_ns != next)
		timers_set(&c->timers, &c->group->timer, next, group_fire);
}
