/* SPDX-License-Identifier: BSD-3-Clause */
/* LEASE, LEASE_END, HOLD, RELEASE, EXPIRE of clients: calls of the module lease, and their answers.
 */
#include <errno.h>
#include "core/base/text.h"
#include "core/lease/state.h"
#include "state.h"

static const char lease_ended[] = "the lease has ended, or never was: open another one";
static const char lease_busy[] = "another call about this object is under way: try again";

static void lease_reply(struct control *c, struct session *s, const struct session_request *r,
			uint64_t generation)
{
	struct session_reply reply;

	reply_make(r, &reply);
	reply.generation = generation;
	reply_send(c, s, &reply);
}

/* NULL: the client is answered. */
static struct lease *lease_of(struct control *c, struct session *s, const struct session_request *r)
{
	struct lease *l = leases_find(c, r->generation, s->client.user);

	if (!l)
		reply_error(c, s, r->op, r->seq, -ESTALE, lease_ended);
	return l;
}

static const char *lease_wrong(const struct session_request *r)
{
	if (r->timeout_ns < (int64_t)LEASES_TTL_MIN_NS ||
	    r->timeout_ns > (int64_t)SESSION_LEASE_NS_MAX)
		return "the time of a lease is 100 ms to 10 years: choose another one";
	return NULL;
}

/* The lease that the request names; NULL: the client is answered. */
static struct lease *lease_open(struct control *c, struct session *s,
				const struct session_request *r)
{
	struct lease *l;

	if (r->generation != 0)
		return lease_of(c, s, r);
	l = leases_open(c, &s->client, r->name, (uint64_t)r->timeout_ns);
	if (!l)
		reply_error(c, s, r->op, r->seq, -ENOSPC,
			    "this node has as many leases as it may: end some");
	return l;
}

void session_lease(struct control *c, struct session *s, const struct session_request *r)
{
	const char *wrong = lease_wrong(r);
	struct lease *l;

	if (strlen(r->name) >= SESSION_LEASE_NAME_BYTES || wrong) {
		reply_error(c, s, r->op, r->seq, wrong ? -EINVAL : -ENAMETOOLONG,
			    wrong ? wrong : "the name of a lease has at most 63 bytes");
		return;
	}
	l = lease_open(c, s, r);
	if (!l)
		return;
	if (leases_use(c, l, &s->leases))
		lease_reply(c, s, r, l->number);
	else
		reply_error(c, s, r->op, r->seq, -ENOSPC,
			    "too many sessions of this node have leases open: close some");
}

void session_lease_end(struct control *c, struct session *s, const struct session_request *r)
{
	struct lease *l = lease_of(c, s, r);

	if (!l)
		return;
	leases_end(c, l);
	lease_reply(c, s, r, 0);
}

/* ---- holds ----------------------------------------------------------------------------------- */

void session_lease_answer(struct control *c, void *waiter, uint64_t number, int32_t status,
			  uint64_t generation, const char *text)
{
	struct wait *w = waits_of(c, waiter, number);
	struct session_reply r = {.generation = generation, .status = status};
	struct session *s;

	if (!w)
		return;
	s = w->session;
	r.op = w->op;
	r.seq = w->seq;
	strncpy(r.text, text, sizeof(r.text) - 1);
	waits_free(c, w);
	reply_send(c, s, &r);
}

static void lease_full(struct control *c, struct session *s, const struct session_request *r)
{
	struct text t = {.length = 0};

	text_add(&t, "the leases of this node hold ");
	text_add_number(&t, c->config.holds_max);
	text_add(&t, " objects, which is the most: let some go");
	reply_error(c, s, r->op, r->seq, -ENOSPC, t.bytes);
}

bool session_lease_may(struct control *c, struct session *s, const struct session_request *r)
{
	struct lease *l = r->generation ? lease_of(c, s, r) : NULL;

	if (!l)
		return r->generation == 0;
	if (c->lease->leases.holds.used < c->lease->leases.holds.capacity ||
	    holds_find(c, &r->id, l))
		return true;
	lease_full(c, s, r);
	return false;
}

/* Answers the client after the directory's answer. */
static void lease_await(struct control *c, struct wait *w, struct hold *h)
{
	h->waiter = w;
	h->waiter_number = w->number;
	waits_timeout(c, w, (int64_t)c->config.directory_ns);
}

void session_hold(struct control *c, struct session *s, const struct session_request *r)
{
	struct lease *l = lease_of(c, s, r);
	struct hold *h = l ? holds_find(c, &r->id, l) : NULL;
	struct wait *w;

	if (!l)
		return;
	if (h && h->state == HOLD_HELD) {
		lease_reply(c, s, r, h->generation);
		return;
	}
	if (h) {
		reply_error(c, s, r->op, r->seq, -EAGAIN, lease_busy);
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	h = holds_take(c, l, &r->id, HOLD_ASKED);
	if (!h) {
		waits_free(c, w);
		lease_full(c, s, r);
		return;
	}
	h->joins = r->flags & SESSION_FLAG_JOINS;
	lease_await(c, w, h);
	holds_dirty(c, h);
}

void session_release(struct control *c, struct session *s, const struct session_request *r)
{
	struct lease *l = lease_of(c, s, r);
	struct hold *h = l ? holds_find(c, &r->id, l) : NULL;
	struct wait *w;

	if (!l)
		return;
	if (!h) {
		reply_error(c, s, r->op, r->seq, -ENOENT, "the lease does not hold this object");
		return;
	}
	if (h->state != HOLD_HELD) {
		reply_error(c, s, r->op, r->seq, -EAGAIN, lease_busy);
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	lease_await(c, w, h);
	holds_drop(c, h);
}

void session_expire(struct control *c, struct session *s, const struct session_request *r)
{
	struct hold *h = holds_find(c, &r->id, NULL);
	struct wait *w;

	if (r->timeout_ns < 0 || r->timeout_ns > (int64_t)SESSION_LEASE_NS_MAX) {
		reply_error(c, s, r->op, r->seq, -EINVAL,
			    "the time of an object is at most 10 years: choose another one");
		return;
	}
	if (h && (h->state != HOLD_HELD || h->announced.call)) {
		reply_error(c, s, r->op, r->seq, -EAGAIN, lease_busy);
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	if (!h)
		h = holds_take(c, NULL, &r->id, HOLD_ASKED);
	if (!h) {
		waits_free(c, w);
		lease_full(c, s, r);
		return;
	}
	h->state = HOLD_ASKED;
	holds_due(c, h, r->timeout_ns ? c->now_ns + (uint64_t)r->timeout_ns : UINT64_MAX);
	lease_await(c, w, h);
	holds_dirty(c, h);
}
