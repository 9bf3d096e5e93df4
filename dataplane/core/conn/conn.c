/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <sodium/crypto_shorthash.h>
#include "conn.h"
#include "congestion.h"
#include "core/plan/event.h"
#include "handshake.h"
#include "core/plan/in_edge.h"
#include "loss.h"
#include "core/plan/msg.h"
#include "core/plan/out_edge.h"
#include "path.h"
#include "path_mtu.h"
#include "peer.h"
#include "core/wheel.h"

#define CONN_BUSY_ROUNDS 8 /* round trips: no keep-alive where a long path is just quiet */

struct conn *conn_find(struct engine *e, uint32_t handle)
{
	uint16_t index = handle_index(handle);

	if (handle == 0 || index >= e->config.conns_max || e->conns[index].handle != handle)
		return NULL;
	return e->conns[index].state == CONN_FREE ? NULL : &e->conns[index];
}

struct conn *conn_named(struct engine *e, uint32_t handle)
{
	struct conn *c = conn_find(e, handle);

	return c && c->main == c ? c : NULL;
}

static struct list *conn_bucket(struct engine *e, const struct net_addr *addr)
{
	uint8_t in[18], out[crypto_shorthash_BYTES];

	memcpy(in, addr->ip, 16);
	wire_put16(in + 16, addr->port);
	crypto_shorthash(out, in, sizeof(in), e->config.key);
	return &e->by_addr[wire_get32(out) & e->addr_mask];
}

struct conn *conn_by_addr(struct engine *e, const struct net_addr *addr)
{
	list_each(l, conn_bucket(e, addr))
	{
		struct conn *c = list_entry(l, struct conn, by_addr);
		if (net_addr_equal(&c->addr, addr))
			return c;
	}
	return NULL;
}

/* Clears everything but what lives as long as the engine: index, generation and the rings. */
static void conn_reset(struct engine *e, struct conn *c)
{
	struct conn kept = *c;

	memset(c, 0, sizeof(*c));
	c->index = kept.index;
	c->generation = kept.generation;
	c->rx.bitmap = kept.rx.bitmap;
	c->tx.sent = kept.tx.sent;
	c->tx.outstanding = kept.tx.outstanding;
	c->tx.late = kept.tx.late;
	c->tx.lost = kept.tx.lost;
	c->msg.in = kept.msg.in;
	memset(c->rx.bitmap, 0, e->rx_window / 8);
	memset(c->tx.outstanding, 0, e->sent_slots / 8);
	memset(c->tx.late, 0, e->sent_slots / 8);
	for (uint32_t k = 0; k < MSG_WINDOW; k++)
		c->msg.in[k] = (struct msg_in){.slot = SLOT_NONE};
	struct list *const links[] = {&c->ready,    &c->timer,	&c->by_addr, &c->out_edges,
				      &c->in_edges, &c->active, &c->grants,  &c->msg.out};
	for (size_t k = 0; k < sizeof(links) / sizeof(links[0]); k++)
		list_init(links[k]);
	c->wheel_ns = c->rx.ack_deadline_ns = c->loss.deadline_ns = c->pmtu.next_ns = NEVER;
	c->hello.next_ns = NEVER;
	peer_tell_soon(e, c);
}

struct conn *conn_alloc(struct engine *e, const struct net_addr *addr)
{
	if (list_empty(&e->free_conns))
		return NULL;
	struct conn *c = list_entry(e->free_conns.prev, struct conn, ready);
	list_remove(&c->ready);
	assert(c->state == CONN_FREE && e->conns_used < e->config.conns_max);
	conn_reset(e, c);
	c->generation = handle_next_generation(c->generation);
	c->handle = handle_make(c->index, c->generation);
	c->state = CONN_OPENING;
	c->main = c->path[0] = c;
	c->addr = *addr;
	memset(c->addr.pad, 0, sizeof(c->addr.pad));
	c->opened_ns = c->last_rx_ns = e->now_ns;
	c->mtu = MTU_BASE;
	c->window_pkts = e->config.window_pkts;
	congestion_init(e, c);
	list_append(conn_bucket(e, addr), &c->by_addr);
	e->conns_used++;
	return c;
}

static struct record *conn_event(struct engine *e, const struct conn *c, enum event_op op)
{
	struct record *r = event_push(e, op);
	r->token = c->token;
	r->peer.addr = c->addr;
	r->peer.incarnation = c->incarnation;
	r->peer.conn = c->handle;
	r->peer.mtu = c->mtu;
	r->peer.workers = c->peer_workers;
	r->peer.rtt_us = c->handshake_rtt_us;
	r->flags = c->rail;
	r->peer.of = c->main != c ? c->main->handle : 0;
	return r;
}

void conn_established(struct engine *e, struct conn *c)
{
	assert(c->state == CONN_OPENING && c->remote != 0 && c->incarnation != 0);
	c->state = CONN_UP;
	c->main->paths += c->main != c;
	c->check_tx = wire_check_conn(e->config.incarnation, c->handle, c->incarnation);
	c->check_rx = wire_check_conn(c->incarnation, c->remote, e->config.incarnation);
	c->crc_tx = wire_crc_conn(e->config.incarnation, c->handle, c->incarnation, c->remote);
	c->crc_rx = wire_crc_conn(c->incarnation, c->remote, e->config.incarnation, c->handle);
	c->handshake_rtt_us = (uint32_t)(c->loss.srtt_ns / 1000);
	c->hello.next_ns = NEVER;
	c->hello.due = false;
	c->opened_ns = c->last_rx_ns = e->now_ns;
	peer_tell_soon(e, c);
	path_mtu_start(e, c);
	e->count->conns_opened++;
	conn_event(e, c, EVENT_PEER_UP);
	path_wake(e, c);
	conn_wake(e, c);
}

/* [P5] */
static void conn_end(struct engine *e, struct conn *c, enum reason why)
{
	assert(c->state != CONN_FREE && e->conns_used > 0);
	list_each(o, &c->out_edges) out_edge_fail(e, list_entry(o, struct out_edge, on_conn), why);
	list_each(i, &c->in_edges) in_edge_fail(e, list_entry(i, struct in_edge, on_origin), why);
	msg_abandon(e, c, why);
	conn_event(e, c, EVENT_PEER_DOWN)->reason = (uint16_t)why;
	if (c->state == CONN_UP)
		e->count->conns_closed++;
	loss_answered(e, c);
	wheel_disarm(e, c);
	list_remove(&c->by_addr);
	list_remove(&c->ready);
	list_append(&e->free_conns, &c->ready);
	peer_forget(e, c);
	assert(list_empty(&c->out_edges) && list_empty(&c->in_edges) && c->in_active == 0);
	assert(list_empty(&c->msg.out) && list_empty(&c->timer));
	c->state = CONN_FREE;
	c->handle = 0;
	e->conns_used--;
}

void conn_close(struct engine *e, struct conn *c, enum reason why)
{
	c = c->main;
	assert(c->main == c);
	path_each(p, c)
	{
		if (p != c)
			conn_end(e, p, why);
	}
	conn_end(e, c, why);
}

/* Nobody has heard of it yet. */
static void conn_forget(struct engine *e, struct conn *c)
{
	list_remove(&c->by_addr);
	list_append(&e->free_conns, &c->ready);
	c->state = CONN_FREE;
	c->handle = 0;
	e->conns_used--;
}

static bool conn_addr_valid(const struct net_addr *a)
{
	static const uint8_t zero[16];

	return a->port != 0 && memcmp(a->ip, zero, 16) != 0;
}

/* Where it is to go, and beside which connection; *main stays NULL for one of its own. */
static enum reason conn_open_check(struct engine *e, const struct record *r, struct conn **main)
{
	if (!conn_addr_valid(&r->peer.addr) || net_addr_equal(&r->peer.addr, &e->config.addr) ||
	    r->flags >= e->config.rails)
		return REASON_BAD_RANGE;
	if (r->peer.of == 0)
		return REASON_NONE;
	*main = conn_named(e, r->peer.of);
	return !*main || (*main)->state != CONN_UP ? REASON_BAD_CONN : REASON_NONE;
}

enum reason conn_open_record(struct engine *e, const struct record *r)
{
	struct conn *c, *main = NULL;
	enum reason bad = conn_open_check(e, r, &main);

	if (bad != REASON_NONE)
		return bad;
	c = conn_by_addr(e, &r->peer.addr);
	if (c) {
		if (c->main != (main ? main : c) || c == main)
			return REASON_BUSY_ID;
		c->token = r->token;
		if (c->state == CONN_UP)
			conn_event(e, c, EVENT_PEER_UP);
		else
			handshake_resend(e, c);
		return REASON_NONE;
	}
	c = conn_alloc(e, &r->peer.addr);
	if (!c)
		return REASON_FULL;
	if (!main) {
		path_on_rail(c, r->flags);
	} else if (!path_join(main, c, r->flags)) {
		conn_forget(e, c);
		return REASON_BUSY_ID;
	} else {
		c->path_of = main->remote;
	}
	c->token = r->token;
	c->hello.due = true;
	conn_wake(e, c);
	return REASON_NONE;
}

enum reason conn_close_record(struct engine *e, const struct record *r)
{
	struct conn *c = conn_named(e, r->peer.conn);

	if (!c)
		return REASON_BAD_CONN;
	if (c->state == CONN_OPENING) {
		conn_close(e, c, REASON_CLOSED);
		return REASON_NONE;
	}
	c = path_carrier(c);
	c->close_due = true; /* transmit says it to the peer, then closes */
	conn_wake(e, c);
	return REASON_NONE;
}

enum reason conn_watch_record(struct engine *e, const struct record *r)
{
	struct conn *c = conn_named(e, r->watch.conn);

	if (!c || c->state != CONN_UP)
		return REASON_BAD_CONN;
	if (r->watch.silence_ns != 0 && (r->watch.silence_ns < CONN_WATCH_MIN_NS ||
					 r->watch.silence_ns > e->config.idle_timeout_ns))
		return REASON_BAD_RANGE;
	c->watch_ns = r->watch.silence_ns;
	c->watch_from_ns = e->now_ns;
	path_wake(e, c);
	return REASON_NONE;
}

/* How long silence is normal: short while streams run, so that a dead sender is noticed. */
static uint64_t conn_keep_alive_ns(const struct engine *e, const struct conn *c)
{
	uint64_t idle = e->config.idle_timeout_ns / 3;
	const struct conn *m = c->main;

	if (m->watch_ns != 0)
		idle = numbers_min(idle, m->watch_ns / 2);
	if (list_empty(&m->in_edges) && list_empty(&m->out_edges))
		return idle;
	return numbers_min(idle, numbers_max(CONN_BUSY_MIN_NS, CONN_BUSY_ROUNDS * c->loss.srtt_ns));
}

static uint64_t conn_keep_alive_due_ns(const struct engine *e, const struct conn *c)
{
	if (c->tx.inflight_pkts > 0 || c->ping_due)
		return NEVER; /* the tail probe watches */
	return numbers_max(c->last_rx_ns, c->tx.last_elicit_ns) + conn_keep_alive_ns(e, c);
}

/* Only what should be answered can be missed. */
static uint64_t conn_silence_due_ns(const struct conn *c)
{
	if (c->watch_ns == 0 || c->silent || c->tx.inflight_pkts == 0)
		return NEVER;
	return numbers_max(path_heard_ns(c), c->watch_from_ns) + c->watch_ns;
}

/* A worker that did not run for long has received nothing: restarts the time of silence. */
static void conn_missed(struct engine *e, struct conn *c)
{
	bool late = e->now_ns - conn_silence_due_ns(c) > c->watch_ns / 2;

	c->watch_from_ns = e->now_ns;
	if (late || !event_spare(e, 1))
		return;
	c->silent = true;
	conn_event(e, c, EVENT_PEER_SILENT);
}

void conn_arm(struct engine *e, struct conn *c)
{
	uint64_t next = NEVER;

	if (c->state == CONN_OPENING) {
		next = c->hello.next_ns;
	} else {
		if (c->rx.ack_pending > 0)
			next = c->rx.ack_deadline_ns;
		next = numbers_min(next, c->loss.deadline_ns);
		next = numbers_min(next, loss_probe_ns(e, c));
		next = numbers_min(next, c->pmtu.next_ns);
		next = numbers_min(next, conn_keep_alive_due_ns(e, c));
		next = numbers_min(next, conn_silence_due_ns(c));
		if (c->cc.pace_blocked)
			next = numbers_min(next,
					   numbers_max(c->cc.pace_from_ns, e->pace_ns[c->rail]));
	}
	if (next - c->wheel_ns < NEVER / 2 && next - c->wheel_ns > CONN_EARLY_MAX_NS)
		wheel_disarm(e, c); /* far too early: not worth the turn */
	if (e->now_ns >= c->report.tell_ns)
		peer_tell(e, c);
	wheel_arm(e, c, numbers_min(next, peer_tell_due_ns(c)));
}

/* [P12] */
void conn_timers(struct engine *e, struct conn *c)
{
	if (c->state == CONN_OPENING) {
		if (e->now_ns >= c->hello.next_ns)
			handshake_timer(e, c);
		if (c->state == CONN_OPENING)
			conn_arm(e, c);
		return;
	}
	if (e->now_ns >= c->loss.deadline_ns)
		loss_detect(e, c);
	if (e->now_ns >= loss_probe_ns(e, c)) {
		uint64_t heard = numbers_max(path_heard_ns(c), c->loss.waiting_since_ns);
		if (c->loss.waiting_since_ns != 0 &&
		    e->now_ns - heard > e->config.idle_timeout_ns) {
			conn_close(e, c, REASON_PEER_TIMEOUT);
			return;
		}
		loss_probe(e, c);
	}
	if (e->now_ns >= conn_silence_due_ns(c))
		conn_missed(e, c);
	if (e->now_ns >= conn_keep_alive_due_ns(e, c))
		c->ping_due = true;
	c->cc.pace_blocked = false;
	conn_wake(e, c); /* whatever is due leaves with the next transmit, which arms again */
}
