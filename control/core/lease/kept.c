/* SPDX-License-Identifier: BSD-3-Clause */
#include "kept.h"
#include "core/base/env.h"
#include "state.h"

static uint64_t kept_real(const struct control *c, uint64_t now_ns)
{
	return now_ns == UINT64_MAX ? UINT64_MAX : now_ns + c->epoch_ns;
}

void kept_lease(struct control *c, const struct lease *l)
{
	struct lease_kept_lease *k;

	if (!c->lease->leases.kept)
		return;
	k = &c->lease->leases.kept->lease[pool_index(&c->lease->leases.pool, l)];
	atomic_store(&k->used, 0);
	if (!l->live)
		return;
	k->named = l->named;
	k->number = l->number;
	k->ttl_ns = l->ttl_ns;
	k->user = l->user;
	k->process = l->process;
	k->birth = l->birth;
	memcpy(k->name, l->name, sizeof(k->name));
	atomic_store(&k->used, 1);
}

void kept_hold(struct control *c, const struct hold *h)
{
	struct lease_kept_hold *k;

	if (!c->lease->leases.kept)
		return;
	k = &c->lease->leases.kept->hold[pool_index(&c->lease->leases.holds, h)];
	atomic_store(&k->used, 0);
	if (h->state == HOLD_FREE || h->generation == 0)
		return;
	k->id = h->id;
	k->generation = h->generation;
	k->lease = h->lease ? h->lease->number : 0;
	k->due_real = kept_real(c, h->due_ns);
	atomic_store(&k->used, 1);
}

/* ---- what an earlier control has left -------------------------------------------------------- */

static bool kept_lease_sound(struct control *c, const struct lease_kept_lease *k)
{
	return atomic_load(&k->used) == 1 && k->number != 0 &&
	       k->number <= MESSAGE_GENERATION_MAX && k->ttl_ns >= LEASES_TTL_MIN_NS &&
	       k->ttl_ns <= SESSION_LEASE_NS_MAX && memchr(k->name, 0, sizeof(k->name)) &&
	       !leases_by_number(c, k->number);
}

static void kept_lease_load(struct control *c, const struct lease_kept_lease *k, struct lease *l)
{
	l->number = k->number;
	l->ttl_ns = k->ttl_ns;
	l->user = k->user;
	l->process = k->process;
	l->birth = k->birth;
	l->named = k->named != 0;
	memcpy(l->name, k->name, sizeof(l->name));
	leases_insert(c, l);
	l->found = true;
	env_generation_after(c, l->number);
}

static void kept_leases(struct control *c)
{
	struct lease_kept *k = c->lease->leases.kept;
	uint32_t last = LEASES_KEPT;

	while (last > 0 && !kept_lease_sound(c, &k->lease[last - 1]))
		atomic_store(&k->lease[--last].used, 0);
	for (uint32_t i = 0; i < last; i++) {
		struct lease *l = pool_take(&c->lease->leases.pool);

		if (kept_lease_sound(c, &k->lease[i]))
			kept_lease_load(c, &k->lease[i], l);
	}
	for (uint32_t i = 0; i < last; i++) {
		struct lease *l = pool_at(&c->lease->leases.pool, i);

		if (l->live)
			continue;
		atomic_store(&k->lease[i].used, 0);
		pool_give(&c->lease->leases.pool, l);
	}
}

static struct lease *kept_lease_of(struct control *c, const struct lease_kept_hold *k)
{
	return k->lease ? leases_by_number(c, k->lease) : NULL;
}

static bool kept_hold_sound(struct control *c, const struct lease_kept_hold *k)
{
	struct lease *l = kept_lease_of(c, k);

	return atomic_load(&k->used) == 1 && k->generation != 0 &&
	       k->generation <= MESSAGE_GENERATION_MAX && (l || k->lease == 0) &&
	       !holds_find(c, &k->id, l);
}

/* When the time to live ends; it may have ended while no control process ran. */
static uint64_t kept_due(const struct control *c, uint64_t due_real)
{
	if (due_real == UINT64_MAX)
		return UINT64_MAX;
	if (due_real <= c->now_ns + c->epoch_ns)
		return c->now_ns;
	return due_real - c->epoch_ns > c->now_ns + SESSION_LEASE_NS_MAX
		       ? c->now_ns + SESSION_LEASE_NS_MAX
		       : due_real - c->epoch_ns;
}

static void kept_holds(struct control *c)
{
	struct lease_kept *k = c->lease->leases.kept;
	uint32_t last = HOLDS_KEPT;

	while (last > 0 && !kept_hold_sound(c, &k->hold[last - 1]))
		atomic_store(&k->hold[--last].used, 0);
	for (uint32_t i = 0; i < last; i++) {
		const struct lease_kept_hold *from = &k->hold[i];
		bool sound = kept_hold_sound(c, from);
		struct lease *l = sound ? kept_lease_of(c, from) : NULL;
		/* in order: each gets the same index as before */
		struct hold *h = holds_take(c, l, &from->id, HOLD_HELD);

		h->generation = from->generation;
		if (!sound)
			h->state = HOLD_FREE;
		else if (!l)
			holds_due(c, h, kept_due(c, from->due_real));
	}
	for (uint32_t i = 0; i < last; i++) {
		struct hold *h = pool_at(&c->lease->leases.holds, i);

		if (h->state == HOLD_FREE)
			holds_free(c, h);
	}
}

void kept_load(struct control *c)
{
	struct lease_kept *k = c->lease->leases.kept;

	if (!k)
		return;
	if (atomic_load(&k->magic) == LEASES_KEPT_MAGIC) {
		kept_leases(c);
		kept_holds(c);
		return;
	}
	memset(k, 0, sizeof(*k));
	atomic_store(&k->magic, LEASES_KEPT_MAGIC);
}
