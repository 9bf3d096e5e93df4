/* SPDX-License-Identifier: BSD-3-Clause */
/* The leases: the sessions that have them open, and their ends (leases.h). */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "kept.h"

void leases_carve(struct leases *l, struct arena *a, const struct control_config *config)
{
	pool_carve(&l->pool, a, sizeof(struct lease), config->leases_max);
	pool_carve(&l->uses, a, sizeof(struct lease_use), 2 * config->leases_max);
	pool_carve(&l->holds, a, sizeof(struct hold), config->holds_max);
	idmap_carve(&l->by_number, a, config->leases_max);
	idmap_key(a, l->bucket_key);
	l->bucket_mask = 15;
	while (l->bucket_mask + 1 < config->holds_max)
		l->bucket_mask = 2 * l->bucket_mask + 1;
	l->bucket = arena_carve(a, sizeof(*l->bucket) * ((size_t)l->bucket_mask + 1));
}

static void leases_fire(struct control *c, struct timer *t);

void leases_init(struct control *c)
{
	struct leases *ls = &c->lease->leases;

	tell_init(c);
	ls->kept = c->config.leases;
	kept_load(c);
	for (uint32_t i = 0; i < ls->pool.fresh; i++) {
		struct lease *l = pool_at(&ls->pool, i);

		if (l->live)
			timers_set(&c->timers, &l->timer, c->now_ns + l->ttl_ns, leases_fire);
	}
}

static struct object_id leases_id(uint64_t number)
{
	struct object_id id = {{0}};

	memcpy(id.bytes, &number, sizeof(number));
	return id;
}

struct lease *leases_by_number(struct control *c, uint64_t number)
{
	struct object_id id = leases_id(number);
	struct idmap_node *n = idmap_find(&c->lease->leases.by_number, &id);

	return n ? idmap_item(n, struct lease, by_number) : NULL;
}

void leases_insert(struct control *c, struct lease *l)
{
	struct object_id id = leases_id(l->number);

	l->live = true;
	list_init(&l->uses);
	list_init(&l->holds);
	idmap_insert(&c->lease->leases.by_number, &l->by_number, &id);
}

struct lease *leases_find(struct control *c, uint64_t number, uint32_t user)
{
	struct lease *l = leases_by_number(c, number);

	return l && !l->ended && l->user == user ? l : NULL;
}

static struct lease *leases_named(struct control *c, uint32_t user, const char *name)
{
	for (uint32_t i = 0; i < c->lease->leases.pool.fresh; i++) {
		struct lease *l = pool_at(&c->lease->leases.pool, i);

		if (l->live && l->named && !l->ended && l->user == user &&
		    strcmp(l->name, name) == 0)
			return l;
	}
	return NULL;
}

/* Gives the lease a name that people can read: what its client called it, or the process. */
static void leases_call(struct lease *l, const struct control_client *who, const char *name)
{
	struct text t = {.length = 0};

	l->named = *name != '\0';
	if (l->named) {
		text_add(&t, name);
	} else {
		text_add(&t, "session ");
		if (who->process == CONTROL_PROCESS_ELSEWHERE)
			text_add(&t, "in a container");
		else
			text_add_number(&t, who->process);
	}
	memcpy(l->name, t.bytes, strnlen(t.bytes, sizeof(l->name) - 1));
}

static struct lease *leases_make(struct control *c, const struct control_client *who,
				 const char *name)
{
	struct lease *l = pool_take(&c->lease->leases.pool);

	if (!l)
		return NULL;
	l->number = env_generation(c);
	l->user = who->user;
	leases_call(l, who, name);
	leases_insert(c, l);
	return l;
}

struct lease *leases_open(struct control *c, const struct control_client *who, const char *name,
			  uint64_t ttl_ns)
{
	struct lease *l = *name ? leases_named(c, who->user, name) : NULL;

	if (!l)
		l = leases_make(c, who, name);
	if (!l)
		return NULL;
	l->ttl_ns = ttl_ns;
	l->process = who->process;
	l->birth = who->birth;
	kept_lease(c, l);
	return l;
}

bool leases_use(struct control *c, struct lease *l, struct list *of_session)
{
	struct lease_use *u;

	list_each(i, after, of_session)
	{
		if (list_item(i, struct lease_use, of_session)->lease == l)
			return true;
	}
	u = pool_take(&c->lease->leases.uses);
	if (!u)
		return false;
	u->lease = l;
	list_append(&l->uses, &u->of_lease);
	list_append(of_session, &u->of_session);
	l->found = false;
	timers_cancel(&c->timers, &l->timer);
	return true;
}

static void leases_free(struct control *c, struct lease *l)
{
	timers_cancel(&c->timers, &l->timer);
	list_each(i, after, &l->uses)
	{
		struct lease_use *u = list_item(i, struct lease_use, of_lease);

		list_remove(&u->of_lease);
		list_remove(&u->of_session);
		pool_give(&c->lease->leases.uses, u);
	}
	idmap_remove(&c->lease->leases.by_number, &l->by_number);
	l->live = false;
	kept_lease(c, l);
	pool_give(&c->lease->leases.pool, l);
}

/* [G4.4] */
void leases_end(struct control *c, struct lease *l)
{
	timers_cancel(&c->timers, &l->timer);
	list_each(i, after, &l->holds)
	{
		holds_drop(c, list_item(i, struct hold, of_lease));
	}
	l->ended = true;
	leases_settle(c, l);
}

void leases_settle(struct control *c, struct lease *l)
{
	if (l->ended && list_empty(&l->holds))
		leases_free(c, l);
}

static void leases_fire(struct control *c, struct timer *t)
{
	struct lease *l = list_item(t, struct lease, timer);

	/* A process without a request since this control process began had no reason to reconnect.
	 */
	if (l->found && !l->named && l->process != 0 && c->ops.lives &&
	    c->ops.lives(c->ops.arg, l->process, l->birth)) {
		timers_set(&c->timers, t, c->now_ns + l->ttl_ns, leases_fire);
		return;
	}
	c->counters.leases_ended++;
	leases_end(c, l);
}

void leases_leave(struct control *c, struct list *of_session)
{
	list_each(i, after, of_session)
	{
		struct lease_use *u = list_item(i, struct lease_use, of_session);
		struct lease *l = u->lease;

		list_remove(&u->of_lease);
		list_remove(&u->of_session);
		pool_give(&c->lease->leases.uses, u);
		if (list_empty(&l->uses) && !l->ended)
			timers_set(&c->timers, &l->timer, c->now_ns + l->ttl_ns, leases_fire);
	}
}
