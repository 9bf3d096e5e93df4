/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "handshake.h"
#include "core/wire/cookie.h"
#include "core/plan/event.h"
#include "loss.h"
#include "path.h"
#include "path_mtu.h"

/*
 * opener                                   acceptor
 *   HELLO(conn, incarnation)         --->    no state: a cookie over the source address
 *                                    <---  COOKIE(cookie)
 *   HELLO(..., cookie)               --->    cookie holds: connection
 *                                    <---  ACCEPT(conn, incarnation)
 * There is one connection per pair of addresses: when both open at once, each takes the other's
 * HELLO into the connection that it is opening itself.
 */

#define HANDSHAKE_PATH_TRIES	  16 /* then the pauses of another path are as long */
#define HANDSHAKE_FULL_SIZE_TRIES 2  /* then the HELLO shrinks: the path may be narrower */

static void handshake_body(const struct engine *e, uint8_t *p, uint32_t conn)
{
	memset(p, 0, HELLO_BYTES);
	wire_put32(p + HELLO_AT_CONN, conn);
	wire_put16(p + HELLO_AT_MTU, e->config.mtu);
	wire_put16(p + HELLO_AT_WORKERS, e->config.workers);
	wire_put64(p + HELLO_AT_INCARNATION, e->config.incarnation);
	wire_put32(p + HELLO_AT_WINDOW, e->config.window_pkts);
}

/* [P4] */
void handshake_write(struct engine *e, struct conn *c, struct packet_out *out)
{
	uint16_t length = WIRE_HELLO_MIN;

	assert(c->state == CONN_OPENING && c->hello.due);
	c->hello.last_long = c->hello.long_ones < HANDSHAKE_FULL_SIZE_TRIES;
	if (c->hello.last_long) {
		length = (uint16_t)(e->config.mtu - conn_overhead(c));
		c->hello.long_ones++;
	}
	wire_header(out->head, WIRE_HELLO, 0, 0, 0);
	handshake_body(e, out->head + WIRE_BODY, c->handle);
	wire_put32(out->head + WIRE_BODY + HELLO_AT_PATH, c->path_of);
	if (c->hello.have_cookie) {
		wire_put64(out->head + WIRE_BODY + HELLO_AT_TIME, c->hello.cookie_time);
		memcpy(out->head + WIRE_BODY + HELLO_AT_COOKIE, c->hello.cookie, WIRE_COOKIE_BYTES);
	}
	memset(out->head + WIRE_BODY + HELLO_BYTES, 0, length - WIRE_BODY - HELLO_BYTES);
	out->head_length = length;
	c->hello.due = false;
	c->hello.sent_ns = e->now_ns;
	uint64_t wait = HANDSHAKE_FIRST_RETRY_NS << numbers_min(c->hello.tries, 8);
	bool far = c->hello.have_cookie || c->hello.tries > HANDSHAKE_PATH_TRIES;
	c->hello.tries += c->hello.tries < UINT16_MAX;
	c->hello.next_ns =
		e->now_ns + numbers_min(wait, far ? HANDSHAKE_FAR_MAX_NS : HANDSHAKE_RETRY_MAX_NS);
}

/* [P4.2] */
void handshake_timer(struct engine *e, struct conn *c)
{
	if (c->main == c && e->now_ns - c->opened_ns > e->config.idle_timeout_ns) {
		conn_close(e, c,
			   c->hello.saw_other_version ? REASON_PEER_VERSION : REASON_PEER_TIMEOUT);
		return;
	}
	c->hello.have_cookie = false; /* it may have expired: ask for another */
	c->hello.due = true;
	c->hello.next_ns = NEVER;
	conn_wake(e, c);
}

void handshake_resend(struct engine *e, struct conn *c)
{
	if (c->hello.have_cookie)
		return; /* it has just been heard */
	c->hello.tries = 0;
	c->hello.due = true;
	c->hello.next_ns = NEVER;
	conn_wake(e, c);
}

/* Room for one more answer; the oldest are never pushed out, floods just get none. */
static struct reply *handshake_reply_slot(struct engine *e, const struct net_addr *to,
					  unsigned rail)
{
	struct engine_replies *q = &e->replies[rail];

	assert(q->count <= REPLIES_MAX && q->head < REPLIES_MAX);
	if (q->count == REPLIES_MAX)
		return NULL;
	struct reply *r = &q->slot[(q->head + q->count++) % REPLIES_MAX];
	memset(r, 0, sizeof(*r));
	r->to = *to;
	return r;
}

bool handshake_reply(struct engine *e, unsigned rail, struct packet_out *out)
{
	struct engine_replies *q = &e->replies[rail];

	if (q->count == 0)
		return false;
	const struct reply *r = &q->slot[q->head];
	q->head = (q->head + 1) % REPLIES_MAX;
	q->count--;
	out->to = r->to;
	assert(r->length >= WIRE_BODY && r->length <= sizeof(r->bytes));
	memcpy(out->head, r->bytes, r->length);
	out->head_length = r->length;
	if (r->pad_to > r->length && r->pad_to <= out->head_room) {
		memset(out->head + r->length, 0, (size_t)(r->pad_to - r->length));
		out->head_length = r->pad_to;
	}
	return true;
}

static void handshake_send_cookie(struct engine *e, const struct packet_in *p)
{
	const uint8_t *hello = p->data + WIRE_BODY;
	uint32_t conn = wire_get32(hello + HELLO_AT_CONN);
	uint64_t incarnation = wire_get64(hello + HELLO_AT_INCARNATION);
	struct reply *r;

	if (!cookie_budget(e, BUDGET_COOKIE) || !(r = handshake_reply_slot(e, &p->from, p->rail))) {
		e->count->drop_hello_rate++;
		return;
	}
	wire_header(r->bytes, WIRE_COOKIE, 0, conn, 0);
	wire_put64(r->bytes + WIRE_BODY + HELLO_AT_INCARNATION, incarnation);
	wire_put64(r->bytes + WIRE_BODY + HELLO_AT_TIME, e->now_ns);
	cookie_make(e, &p->from, hello, e->now_ns, r->bytes + WIRE_BODY + HELLO_AT_COOKIE);
	r->length = WIRE_BODY + HELLO_BYTES;
	e->count->cookies_sent++;
}

/* The full-sized answer shows the opener that the path carries that much towards it. */
static void handshake_send_accept(struct engine *e, struct conn *c, uint16_t length)
{
	struct reply *r = handshake_reply_slot(e, &c->addr, c->rail);

	if (!r)
		return; /* the opener asks again */
	wire_header(r->bytes, WIRE_ACCEPT, wire_check(e->config.incarnation, c->incarnation),
		    c->remote, 0);
	handshake_body(e, r->bytes + WIRE_BODY, c->handle);
	wire_put64(r->bytes + WIRE_BODY + HELLO_AT_PEER, c->incarnation);
	r->length = WIRE_BODY + HELLO_BYTES;
	r->pad_to = (uint16_t)numbers_min(length, (uint64_t)e->config.mtu - conn_overhead(c));
}

/* The peer's words about itself. */
static void handshake_learn(struct conn *c, const uint8_t *hello)
{
	assert(c->state == CONN_OPENING);
	c->remote = wire_get32(hello + HELLO_AT_CONN);
	c->incarnation = wire_get64(hello + HELLO_AT_INCARNATION);
	c->peer_mtu = wire_get16(hello + HELLO_AT_MTU);
	c->peer_workers = wire_get16(hello + HELLO_AT_WORKERS);
	c->window_pkts = (uint16_t)numbers_min(wire_get32(hello + HELLO_AT_WINDOW), c->window_pkts);
}

/* [P2.4] */
static bool handshake_hello_valid(struct engine *e, const struct packet_in *p)
{
	const uint8_t *hello = p->data + WIRE_BODY;

	if (p->length < WIRE_BODY + HELLO_BYTES) {
		e->count->drop_truncated++;
		return false;
	}
	bool accept = (p->data[WIRE_AT_VERSION_TYPE] & 15) == WIRE_ACCEPT;
	bool no_path = accept || e->config.rails == 1;
	if ((no_path && wire_get32(hello + HELLO_AT_PATH) != 0) ||
	    wire_get32(hello + HELLO_AT_CONN) == 0 ||
	    wire_get64(hello + HELLO_AT_INCARNATION) == 0 ||
	    wire_get16(hello + HELLO_AT_MTU) < MTU_BASE ||
	    wire_get32(hello + HELLO_AT_WINDOW) < ENGINE_WINDOW_MIN) {
		e->count->drop_flags++;
		return false;
	}
	return true;
}

/* The connection that it is to be a path of is there, of the same peer, and control has opened a
 * path from there to this address: both ends open their rails, and nobody else is a path. */
static bool handshake_path_fits(struct engine *e, const struct packet_in *p, struct conn *main)
{
	if (!main || main->state != CONN_UP || main->rail == p->rail ||
	    main->incarnation != wire_get64(p->data + WIRE_BODY + HELLO_AT_INCARNATION))
		return false;
	struct conn *there = main->path[p->rail];
	return there && net_addr_equal(&there->addr, &p->from);
}

/* The cookie holds: which connection does this HELLO belong to? NULL: refused and counted.
 * [P4.1] [P4.3] */
static struct conn *handshake_conn(struct engine *e, const struct packet_in *p)
{
	const uint8_t *hello = p->data + WIRE_BODY;
	uint64_t incarnation = wire_get64(hello + HELLO_AT_INCARNATION);
	struct conn *c = conn_by_addr(e, &p->from), *main = NULL;
	uint32_t of = wire_get32(hello + HELLO_AT_PATH);
	bool is_path = of != 0;

	if (is_path && !handshake_path_fits(e, p, main = conn_named(e, of))) {
		e->count->drop_state++;
		return NULL;
	}
	if (c && c->incarnation == incarnation &&
	    (is_path ? c->main != main || c == main : c->main != c)) {
		e->count->drop_state++;
		return NULL;
	}

	if (c && c->state == CONN_UP) {
		if (incarnation < c->incarnation) {
			e->count->drop_incarnation++;
			return NULL;
		}
		if (incarnation == c->incarnation && c->remote == wire_get32(hello + HELLO_AT_CONN))
			return c; /* our ACCEPT was lost */
		if (is_path) { /* a path lives as long as its connection: no peer opens another */
			e->count->drop_state++;
			return NULL;
		}
		if (wire_get64(hello + HELLO_AT_TIME) < c->opened_ns) {
			e->count->drop_cookie++; /* a late copy of what opened an earlier one */
			return NULL;
		}
		conn_close(e, c,
			   incarnation == c->incarnation ? REASON_PEER_CLOSED
							 : REASON_PEER_RESTARTED);
		c = NULL;
	}
	if (!event_spare(e, 64)) {
		e->count->drop_events_full++;
		return NULL;
	}
	if (c && (is_path ? c->main == main : c->main == c))
		return c; /* we are opening it, too */
	if (c) {
		e->count->drop_state++;
		return NULL;
	}
	if (!cookie_budget(e, BUDGET_ACCEPT)) {
		e->count->drop_hello_rate++;
		return NULL;
	}
	c = conn_alloc(e, &p->from);
	if (!c)
		e->count->drop_conn_full++;
	else
		path_on_rail(c, p->rail);
	return c;
}

void handshake_hello(struct engine *e, const struct packet_in *p)
{
	const uint8_t *hello = p->data + WIRE_BODY;
	static const uint8_t none[WIRE_COOKIE_BYTES];

	if (!handshake_hello_valid(e, p))
		return;
	if (p->length < WIRE_HELLO_MIN) { /* an answer must never be larger than its question */
		e->count->drop_truncated++;
		return;
	}
	if (memcmp(hello + HELLO_AT_COOKIE, none, WIRE_COOKIE_BYTES) == 0) {
		handshake_send_cookie(e, p);
		return;
	}
	if (!cookie_holds(e, &p->from, hello)) {
		e->count->drop_cookie++;
		return;
	}
	struct conn *c = handshake_conn(e, p);
	if (!c)
		return;
	if (c->state != CONN_UP) {
		handshake_learn(c, hello);
		/* a cookie is sent back at once, and only once */
		loss_rtt(e, c, e->now_ns - wire_get64(hello + HELLO_AT_TIME));
		conn_established(e, c);
	}
	handshake_send_accept(e, c, p->length);
	conn_wake(e, c);
}

/* The connection whose HELLO this answers, from where that went; NULL: counted. */
static struct conn *handshake_answered(struct engine *e, const struct packet_in *p)
{
	struct conn *c = conn_find(e, wire_get32(p->data + WIRE_AT_CONN));

	if (!c) {
		e->count->drop_unknown_conn++;
		return NULL;
	}
	if (!net_addr_equal(&c->addr, &p->from)) {
		e->count->drop_address++;
		return NULL;
	}
	return c;
}

void handshake_cookie(struct engine *e, const struct packet_in *p)
{
	const uint8_t *body = p->data + WIRE_BODY;

	if (p->length < WIRE_BODY + HELLO_BYTES) {
		e->count->drop_truncated++;
		return;
	}
	struct conn *c = handshake_answered(e, p);
	if (!c)
		return;
	if (wire_get64(body + HELLO_AT_INCARNATION) != e->config.incarnation) {
		e->count->drop_incarnation++;
		return;
	}
	if (c->state != CONN_OPENING || c->hello.have_cookie) {
		e->count->drop_state++;
		return;
	}
	c->hello.cookie_time = wire_get64(body + HELLO_AT_TIME);
	memcpy(c->hello.cookie, body + HELLO_AT_COOKIE, WIRE_COOKIE_BYTES);
	c->hello.have_cookie = true;
	c->hello.due = true;
	c->hello.tries = c->hello.tries > 0 ? (uint16_t)(c->hello.tries - 1) : 0;
	c->hello.long_ones -= c->hello.last_long; /* it got there */
	c->hello.last_long = false;
	conn_wake(e, c);
}

void handshake_accept(struct engine *e, const struct packet_in *p)
{
	const uint8_t *body = p->data + WIRE_BODY;

	if (!handshake_hello_valid(e, p))
		return;
	struct conn *c = handshake_answered(e, p);
	if (!c)
		return;
	if ((c->main != c && c->main->incarnation != wire_get64(body + HELLO_AT_INCARNATION)) ||
	    wire_get64(body + HELLO_AT_PEER) != e->config.incarnation ||
	    wire_get16(p->data + WIRE_AT_CHECK) !=
		    wire_check(wire_get64(body + HELLO_AT_INCARNATION), e->config.incarnation)) {
		e->count->drop_incarnation++;
		return;
	}
	if (c->state != CONN_OPENING || !c->hello.have_cookie) {
		if (c->state != CONN_UP || wire_get32(body + HELLO_AT_CONN) != c->remote)
			e->count->drop_state++;
		return;
	}
	handshake_learn(c, body);
	/* A HELLO of full size got through: that many bytes reach the peer. */
	if (c->hello.tries <= HANDSHAKE_FULL_SIZE_TRIES &&
	    p->length >= e->config.mtu - conn_overhead(c) && c->peer_mtu >= e->config.mtu)
		c->mtu = e->config.mtu;
	if (c->hello.tries == 1) /* it answers the only HELLO with a cookie */
		loss_rtt(e, c, e->now_ns - c->hello.sent_ns);
	conn_established(e, c);
}

/* [P2.5] */
void handshake_send_reset(struct engine *e, const struct packet_in *p)
{
	struct reply *r;

	if (p->length < WIRE_BODY + RESET_BYTES)
		return; /* an answer must never be larger than its question */
	if (!cookie_budget(e, BUDGET_RESET) || !(r = handshake_reply_slot(e, &p->from, p->rail)))
		return;
	wire_header(r->bytes, WIRE_RESET, 0, 0, 0);
	wire_put32(r->bytes + WIRE_BODY + RESET_AT_CONN, wire_get32(p->data + WIRE_AT_CONN));
	wire_put16(r->bytes + WIRE_BODY + RESET_AT_CHECK, wire_get16(p->data + WIRE_AT_CHECK));
	wire_put64(r->bytes + WIRE_BODY + RESET_AT_PN, wire_get64(p->data + WIRE_AT_PN));
	r->length = WIRE_BODY + RESET_BYTES;
}

/* [P4.6] */
void handshake_version(struct engine *e, const struct packet_in *p)
{
	struct reply *r;
	struct conn *c = conn_by_addr(e, &p->from);

	e->count->drop_version++;
	if (c && c->state == CONN_OPENING)
		c->hello.saw_other_version = true;
	/* Only a HELLO is answered, and only by something smaller that is none itself. */
	if ((p->data[WIRE_AT_VERSION_TYPE] & 15) != WIRE_HELLO || p->length < WIRE_HELLO_MIN)
		return;
	if (!cookie_budget(e, BUDGET_RESET) || !(r = handshake_reply_slot(e, &p->from, p->rail)))
		return;
	wire_header(r->bytes, WIRE_RESET, 0, 0, 0);
	r->length = WIRE_BODY + RESET_BYTES;
}

/* [P4.4] [P4.5] */
void handshake_reset(struct engine *e, const struct packet_in *p)
{
	const uint8_t *body = p->data + WIRE_BODY;
	struct conn *c = conn_by_addr(e, &p->from);

	if (p->length < WIRE_BODY + RESET_BYTES) {
		e->count->drop_truncated++;
		return;
	}
	uint64_t pn = wire_get64(body + RESET_AT_PN);
	if (!c || c->state != CONN_UP || wire_get32(body + RESET_AT_CONN) != c->remote ||
	    wire_get16(body + RESET_AT_CHECK) != c->check_tx || pn >= c->tx.next_pn ||
	    c->tx.next_pn - pn > e->sent_slots) {
		e->count->drop_reset++;
		return;
	}
	conn_close(e, c, REASON_PEER_RESTARTED);
}
