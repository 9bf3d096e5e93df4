/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "path.h"
#include "sent.h"
#include "core/numbers.h"

enum { PATH_PROBES = 2 /* in a row without an answer: one may have been late */ };

void path_on_rail(struct conn *c, unsigned rail)
{
	c->path[c->rail] = NULL;
	c->rail = (uint8_t)rail;
	c->path[rail] = c;
}

bool path_join(struct conn *main, struct conn *c, unsigned rail)
{
	assert(rail < RAILS_MAX && main->main == main);
	if (main->path[rail])
		return false;
	c->path[c->rail] = NULL;
	c->rail = (uint8_t)rail;
	c->main = main;
	main->path[rail] = c;
	return true;
}

struct conn *path_to(const struct conn *c, const struct net_addr *addr)
{
	path_each(p, c)
	{
		if (net_addr_equal(&p->addr, addr))
			return p;
	}
	return NULL;
}

static bool path_usable(const struct conn *c)
{
	return c->state == CONN_UP && !c->impaired;
}

struct conn *path_carrier(struct conn *c)
{
	if (c->main->paths == 0 || path_usable(c->main))
		return c->main;
	path_each(p, c)
	{
		if (path_usable(p))
			return p;
	}
	return c->main;
}

struct conn *path_stranded(const struct conn *c)
{
	if (c->main->paths == 0)
		return NULL;
	path_each(p, c)
	{
		if (p != c && p->impaired && p->tx.lost_count > 0)
			return p;
	}
	return NULL;
}

uint64_t path_heard_ns(const struct conn *c)
{
	uint64_t heard_ns = c->main->last_rx_ns;

	if (c->main->paths == 0)
		return heard_ns;
	path_each(p, c)
	{
		if (p->state == CONN_UP)
			heard_ns = numbers_max(heard_ns, p->last_rx_ns);
	}
	return heard_ns;
}

void path_wake(struct engine *e, struct conn *c)
{
	if (c->main->paths == 0) {
		conn_wake(e, c->main);
		return;
	}
	path_each(p, c)
	{
		if (p->state == CONN_UP)
			conn_wake(e, p);
	}
}

/* Its packets under way wait for the others; it asks on. */
static void path_impair(struct engine *e, struct conn *c)
{
	assert(!c->impaired && c->main->paths > 0);
	c->impaired = true;
	e->count->paths_impaired++;
	while (c->tx.inflight_pkts > 0)
		sent_lose(e, c, c->tx.oldest_pn);
	assert(c->tx.inflight_bytes == 0);
	c->ping_due = true;
	path_wake(e, c);
}

/* Did another answer, after this one did not? [P12.1] */
static void path_judge(struct engine *e, struct conn *c)
{
	if (c->impaired || c->loss.pto_count < PATH_PROBES)
		return;
	path_each(p, c)
	{
		if (p != c && path_usable(p) && p->loss.pto_count == 0 &&
		    p->last_rx_ns > c->loss.waiting_since_ns) {
			path_impair(e, c);
			return;
		}
	}
}

void path_probed(struct engine *e, struct conn *c)
{
	if (c->main->paths == 0)
		return;
	path_judge(e, c);
	path_each(p, c)
	{
		if (p == c || !path_usable(p) || p->tx.inflight_pkts > 0 ||
		    p->last_rx_ns > c->loss.waiting_since_ns)
			continue;
		p->ping_due = true; /* its answer tells whether it is the peer that is silent */
		conn_wake(e, p);
	}
}

void path_heard(struct engine *e, struct conn *c)
{
	path_each(p, c)
	{
		if (p != c && p->state == CONN_UP)
			path_judge(e, p);
	}
}
