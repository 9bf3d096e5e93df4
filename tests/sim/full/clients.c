/* SPDX-License-Identifier: BSD-3-Clause */
#include "clients.h"

#include <errno.h>
#include <stdio.h>

#include "swarm/tally.h"

#define CLIENTS_SLACK_NS WORLD_S /* an answer may be this late */

_Static_assert((int)CLIENTS_NAMES <= (int)SPLITS_NAMES &&
		       (int)CLIENTS_NODES_MAX <= (int)SPLITS_NODES_MAX,
	       "the partitions know all of them");

static uint64_t now(const struct clients *c)
{
	return world_now(c->g->w);
}

static struct full *full_node(struct clients *c, const struct client *k)
{
	return &c->g->full[k->node];
}

static uint64_t content_seed(uint32_t name, uint64_t generation)
{
	return prng_mix(generation ^ prng_mix(name + 1));
}

static uint64_t truth_seed(const struct client_truth *t)
{
	return t->put ? prng_mix(~t->put) : content_seed(t->name, t->generation);
}

static struct client_truth *truth_put(struct clients *c, uint64_t put)
{
	for (uint32_t i = c->truths; i-- > 0;)
		if (c->truth[i].put == put)
			return &c->truth[i];
	return NULL;
}

static struct client_truth *truth_find(struct clients *c, uint32_t name, uint64_t generation)
{
	for (uint32_t i = c->truths; i-- > 0;)
		if (c->truth[i].name == name && c->truth[i].generation == generation)
			return &c->truth[i];
	return NULL;
}

/* Of what the client got. The bytes tell which put it was that nobody has heard of. */
static struct client_truth *truth_got(struct clients *c, const struct client *k, uint64_t upto)
{
	struct client_truth *t = truth_find(c, k->name, k->generation);
	const uint8_t *bytes = full_node(c, k)->n->store.base + k->offset;
	for (uint32_t i = c->truths; !t && upto > 0 && i-- > 0;) {
		struct client_truth *u = &c->truth[i];
		if (u->name == k->name && u->generation == 0 && u->size == k->size &&
		    memory_check(bytes, truth_seed(u), 0, upto) == upto)
			t = u;
	}
	if (t)
		t->generation = k->generation;
	return t;
}

void clients_open(struct clients *c, struct full_group *g, struct prng *draw, bool wide)
{
	*c = (struct clients){.g = g, .draw = draw};
	for (uint32_t i = 0; i < g->w->count; i++)
		for (uint32_t k = 0; k < CLIENTS_PER_NODE; k++)
			c->client[c->count++] =
				(struct client){.node = i, .pin = 3 + k, .wide = wide};
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct object_id client_id(const struct client *k)
{
	return (struct object_id){.bytes = {[0] = (uint8_t)(k->name * 37 + 1),
					    [5] = (uint8_t)k->name,
					    [8] = k->wide ? (uint8_t)(k->name * 7 + 3) : 0}};
}

static struct session_request request_new(struct client *k, uint16_t op)
{
	struct session_request r = {.magic = SESSION_MAGIC,
				    .op = op,
				    .version = SESSION_VERSION,
				    .seq = ++k->seq,
				    .id = client_id(k),
				    .timeout_ns = -1,
				    .pin = SESSION_PIN_NONE};
	snprintf(r.name, sizeof(r.name), "object-%u", k->name);
	return r;
}

static void client_limit(struct clients *c, struct client *k, uint64_t ns)
{
	k->limit_ns = ns == UINT64_MAX ? ns : now(c) + ns + CLIENTS_SLACK_NS;
}

static void client_rest(struct clients *c, struct client *k)
{
	k->state = CLIENT_IDLE;
	k->limit_ns = UINT64_MAX;
	k->at_ns = now(c) + prng_below(c->draw, 50 * WORLD_MS);
	k->final = false;
}

static uint64_t client_size(struct clients *c, const struct client *k)
{
	if (k->wide && k->name < CLIENTS_WIDE)
		return prng_between(c->draw, CLIENTS_WIDE_MIN, CLIENTS_WIDE_MAX);
	return prng_below(c->draw, 1ull << prng_between(c->draw, 0, 20));
}

static void client_put(struct clients *c, struct client *k)
{
	struct {
		struct session_request r;
		uint8_t bytes[SESSION_PUT_MAX];
	} packet = {.r = request_new(k, SESSION_PUT)};
	struct client_truth t = {.name = k->name,
				 .node = k->node,
				 .size = k->size,
				 .put = ++c->put_count,
				 .holders = 1u << k->node,
				 .asked_ns = now(c)};
	c->truth[c->truths++] = t;
	k->put = t.put;
	k->state = CLIENT_PUTTING;
	packet.r.size = k->size;
	memory_fill(packet.bytes, truth_seed(&t), 0, k->size);
	client_limit(c, k, 3 * c->g->config.call_ns);
	full_packet(full_node(c, k), k->session, &packet, sizeof(packet.r) + k->size);
}

static void client_create(struct clients *c, struct client *k)
{
	struct session_request r = request_new(k, SESSION_CREATE);
	r.size = client_size(c, k);
	r.pin = k->pin;
	k->asked_ns = k->begun_ns = now(c);
	k->put = 0;
	k->size = r.size;
	if (k->size <= SESSION_PUT_MAX && k->size % 3 != 0 && c->truths < CLIENTS_GENERATIONS) {
		client_put(c, k);
		return;
	}
	k->written = 0;
	k->state = CLIENT_CREATING;
	client_limit(c, k, 3 * c->g->config.call_ns);
	full_request(full_node(c, k), k->session, &r);
}

static void client_get(struct clients *c, struct client *k, int64_t timeout_ns)
{
	struct session_request r = request_new(k, SESSION_GET);
	r.timeout_ns = k->timeout_ns = timeout_ns;
	r.pin = k->pin;
	k->state = CLIENT_GETTING;
	k->asked_ns = k->begun_ns = now(c);
	client_limit(c, k, timeout_ns ? (uint64_t)timeout_ns : 3 * c->g->config.call_ns);
	full_request(full_node(c, k), k->session, &r);
}

static void client_wait(struct clients *c, struct client *k, uint64_t watermark)
{
	struct session_request r = request_new(k, SESSION_WAIT);
	r.slot = k->slot;
	r.generation = k->generation;
	r.watermark = watermark;
	r.timeout_ns = k->timeout_ns ? k->timeout_ns : (int64_t)WORLD_S;
	k->state = CLIENT_WAITING;
	client_limit(c, k, (uint64_t)r.timeout_ns);
	full_request(full_node(c, k), k->session, &r);
}

static void client_delete(struct clients *c, struct client *k)
{
	struct session_request r = request_new(k, SESSION_DELETE);
	k->state = CLIENT_DELETING;
	k->asked_ns = k->begun_ns = now(c);
	k->removal = history_delete(c, k);
	client_limit(c, k, 3 * c->g->config.call_ns);
	full_request(full_node(c, k), k->session, &r);
}

/* The next step of a producer: some bytes more, at last the seal. */
static void client_write(struct clients *c, struct client *k)
{
	struct session_request r = request_new(k, SESSION_PUBLISH);
	uint8_t *p = full_node(c, k)->n->store.base + k->offset;
	uint64_t to = k->written + 1 + prng_below(c->draw, k->size / 3 + 1);
	to = to < k->size ? to : k->size;
	memory_fill(p, content_seed(k->name, k->generation), k->written, to);
	k->written = to;
	r.slot = k->slot;
	r.generation = k->generation;
	r.watermark = to;
	k->state = CLIENT_SEALING;
	if (to == k->size)
		r.op = SESSION_SEAL;
	client_limit(c, k, c->g->config.call_ns);
	full_request(full_node(c, k), k->session, &r);
}

/* ---- answers ------------------------------------------------------------------------------ */

static void client_judge_bytes(struct clients *c, const struct client *k, uint64_t upto)
{
	const struct full *f = full_node(c, k);
	const struct client_truth *t = truth_find(c, k->name, k->generation);
	uint64_t bad =
		memory_check(f->n->store.base + k->offset,
			     t ? truth_seed(t) : content_seed(k->name, k->generation), 0, upto);
	if (upto)
		tally(TALLY_BYTES);
	if (bad != upto)
		world_violation(c->g->w,
				"node %u: byte %llu of %llu of object %u generation %llx is wrong",
				k->node, (unsigned long long)bad, (unsigned long long)k->size,
				k->name, (unsigned long long)k->generation);
}

static bool status_is(int32_t status, const int *allowed, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (status == -allowed[i])
			return true;
	return false;
}
#define STATUS_IS(status, ...)                        \
	status_is(status, (const int[]){__VA_ARGS__}, \
		  sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void client_bad_status(struct clients *c, const struct client *k,
			      const struct session_reply *r)
{
	world_violation(c->g->w, "node %u: request %u for object %u answered with %d (%s)", k->node,
			r->op, k->name, r->status, r->text);
}

static void client_placed(struct client *k, const struct session_reply *r)
{
	k->slot = r->slot;
	k->generation = r->generation;
	k->offset = r->offset;
}

static void client_created(struct clients *c, struct client *k, const struct session_reply *r)
{
	if (r->status) {
		if (!STATUS_IS(r->status, EEXIST, ENOSPC, ETIMEDOUT, EHOSTUNREACH, EAGAIN, ESTALE))
			client_bad_status(c, k, r);
		history_refused(c, k, "create", r->status, r->text);
		c->failures++;
		client_rest(c, k);
		return;
	}
	client_placed(k, r);
	if (r->size != k->size || r->offset + r->size > full_node(c, k)->n->store.bytes)
		world_violation(c->g->w, "node %u: a place outside the store", k->node);
	else if (truth_find(c, k->name, k->generation))
		world_violation(c->g->w, "object %u: generation used twice", k->name);
	else if (c->truths < CLIENTS_GENERATIONS) {
		c->truth[c->truths++] = (struct client_truth){.name = k->name,
							      .node = k->node,
							      .generation = k->generation,
							      .size = k->size,
							      .holders = 1u << k->node,
							      .asked_ns = k->asked_ns};
		history_created(c, &c->truth[c->truths - 1]);
	}
	memory_poison(full_node(c, k)->n->store.base + k->offset, k->size);
	k->state = CLIENT_WRITING;
	k->limit_ns = UINT64_MAX;
	k->at_ns = now(c);
}

/* When it is refused there is no such object; after other errors there may be one. */
static void client_put_ended(struct clients *c, struct client *k, const struct session_reply *r)
{
	struct client_truth *t = truth_put(c, k->put),
			    *other = truth_find(c, k->name, r->generation);
	bool refused = STATUS_IS(r->status, EEXIST, ENOSPC, ERESTART);
	if (r->status && !refused && !STATUS_IS(r->status, ETIMEDOUT, EHOSTUNREACH, EAGAIN, ESTALE))
		client_bad_status(c, k, r);
	/* while one side is deaf, a request that was refused may be repeated and succeed before the
	 * refusal arrives; then it is taken back */
	if (refused && t->generation && !c->splits)
		world_violation(c->g->w, "node %u: object %u was refused with %d, and it is there",
				k->node, k->name, r->status);
	if (r->status)
		history_refused(c, k, "put", r->status, r->text);
	if (refused)
		memmove(t, t + 1, (size_t)(&c->truth[--c->truths] - t) * sizeof(*t));
	if (r->status == 0) {
		if (other && other != t)
			world_violation(c->g->w, "object %u: generation used twice", k->name);
		t->generation = r->generation;
		history_sealed(c, t);
		history_created(c, t);
	}
	c->puts += r->status == 0;
	c->failures += r->status != 0;
	client_rest(c, k);
}

static void client_sealed(struct clients *c, struct client *k, const struct session_reply *r)
{
	struct client_truth *t = truth_find(c, k->name, k->generation);
	if (r->status) {
		if (!STATUS_IS(r->status, ESTALE, EINVAL, ENOENT))
			client_bad_status(c, k, r);
		history_refused(c, k, "seal", r->status == -ENOENT ? -ESTALE : r->status, r->text);
		if (t)
			t->lost = true;
		client_rest(c, k);
		return;
	}
	if (r->op == SESSION_PUBLISH) {
		k->state = CLIENT_WRITING;
		k->limit_ns = UINT64_MAX;
		k->at_ns = now(c) + prng_below(c->draw, 5 * WORLD_MS);
		return;
	}
	if (t)
		history_sealed(c, t);
	c->puts++;
	full_node(c, k)->pins[k->session][k->pin] = 0;
	client_rest(c, k);
}

static void client_lost_final(struct clients *c, const struct client *k, const char *what,
			      const struct session_reply *r)
{
	/* the directory is full; or the store has no hole that is large enough */
	bool full = r->status == -ENOSPC && (c->history.tight || k->wide);
	if (k->final && !full)
		world_violation(c->g->w, "node %u: object %u must exist, but %s says %d (%s)",
				k->node, k->name, what, r->status, r->text);
}

/* A put at this node that no owner has accepted yet: it has no bytes to read. A creator whose clock
 * is behind may try a generation that it gave to a deleted version in an earlier life; it is to be
 * refused. */
static bool client_provisional(const struct clients *c, const struct client *k, uint64_t watermark)
{
	for (uint32_t i = 0; i < c->count && watermark == 0; i++) {
		const struct client *o = &c->client[i];
		if (o->node == k->node && o->name == k->name &&
		    (o->state == CLIENT_CREATING || o->state == CLIENT_PUTTING))
			return true;
	}
	return false;
}

static void client_got(struct clients *c, struct client *k, const struct session_reply *r)
{
	const struct client_truth *t;
	if (r->status) {
		client_lost_final(c, k, "get", r);
		if (!STATUS_IS(r->status, ENOENT, ETIMEDOUT, EHOSTUNREACH, ESTALE, ERESTART, ENOSPC,
			       EAGAIN, ENODATA) ||
		    (r->status == -ENOENT && k->timeout_ns))
			client_bad_status(c, k, r);
		history_refused(c, k, "get", r->status, r->text);
		c->failures++;
		client_rest(c, k);
		return;
	}
	client_placed(k, r);
	k->size = r->size;
	t = truth_got(c, k, r->watermark < k->size ? r->watermark : k->size);
	/* its creator may not have heard of it yet; then there cannot be any bytes */
	if ((t ? t->size != r->size && !client_provisional(c, k, r->watermark)
	       : r->watermark > 0) ||
	    r->offset + r->size > full_node(c, k)->n->store.bytes) {
		world_violation(c->g->w, "node %u: object %u as it never was (generation %llx)",
				k->node, k->name, (unsigned long long)k->generation);
		client_rest(c, k);
		return;
	}
	client_judge_bytes(c, k, r->watermark < k->size ? r->watermark : k->size);
	if (c->splits)
		splits_got(c->splits, k->node, k->name, k->generation, k->asked_ns);
	client_wait(c, k,
		    !k->final && prng_chance(c->draw, 300000) ? prng_below(c->draw, k->size + 1)
							      : UINT64_MAX);
}

static void client_waited(struct clients *c, struct client *k, const struct session_reply *r)
{
	if (r->status) {
		client_lost_final(c, k, "wait", r);
		if (!STATUS_IS(r->status, ETIMEDOUT, EHOSTUNREACH, ESTALE, ERESTART, ENOSPC, EAGAIN,
			       ENODATA))
			client_bad_status(c, k, r);
		history_refused(c, k, "wait", r->status, r->text);
		c->failures++;
		full_node(c, k)->pins[k->session][k->pin] = 0;
		client_rest(c, k);
		return;
	}
	if (r->watermark && !truth_got(c, k, r->watermark < k->size ? r->watermark : k->size))
		world_violation(c->g->w, "node %u: bytes of object %u that nobody created", k->node,
				k->name);
	client_judge_bytes(c, k, r->watermark < k->size ? r->watermark : k->size);
	if (r->watermark == k->size && k->size)
		history_got(c, k);
	k->written = r->watermark;
	c->gets++;
	c->bytes += k->size;
	k->state = CLIENT_HOLDING;
	k->limit_ns = UINT64_MAX;
	k->at_ns = now(c) + (k->final ? 0 : prng_below(c->draw, 30 * WORLD_MS));
}

static void client_deleted(struct clients *c, struct client *k, const struct session_reply *r)
{
	if (r->status && !STATUS_IS(r->status, ENOENT, ETIMEDOUT, EHOSTUNREACH, EAGAIN))
		client_bad_status(c, k, r);
	if (r->status)
		history_refused(c, k, "delete", r->status, r->text);
	history_delete_ended(c, k->removal, true, r->status);
	c->deletes += !r->status;
	if (c->splits && !r->status) {
		struct object_id id = client_id(k);
		splits_deleted(c->splits, k->node, k->name, &id, k->asked_ns);
	}
	client_rest(c, k);
}

static void clients_reply(void *context, struct full *f, const struct full_reply *reply)
{
	struct clients *c = context;
	const struct session_reply *r = &reply->reply;
	struct client *k = NULL;
	for (uint32_t i = 0; i < c->count && !k; i++)
		if (&c->g->full[c->client[i].node] == f && c->client[i].state != CLIENT_GONE &&
		    c->client[i].session == reply->session)
			k = &c->client[i];
	if (!k || r->seq != k->seq)
		return; /* of a session that has ended */
	if (k->state == CLIENT_CREATING)
		client_created(c, k, r);
	else if (k->state == CLIENT_PUTTING)
		client_put_ended(c, k, r);
	else if (k->state == CLIENT_SEALING)
		client_sealed(c, k, r);
	else if (k->state == CLIENT_GETTING)
		client_got(c, k, r);
	else if (k->state == CLIENT_WAITING)
		client_waited(c, k, r);
	else if (k->state == CLIENT_DELETING)
		client_deleted(c, k, r);
	else if (r->op != SESSION_ATTACH)
		world_violation(c->g->w, "node %u: an answer that nobody waits for", k->node);
}

/* ---- what is due -------------------------------------------------------------------------- */

static void client_attach(struct clients *c, struct client *k)
{
	struct full *f = full_node(c, k);
	if (!f->core || !f->attached)
		return;
	int s = full_session(f);
	if (s < 0)
		return;
	k->session = (uint32_t)s;
	k->life = f->life;
	k->name = 0;
	client_rest(c, k);
	struct session_request r = request_new(k, SESSION_ATTACH);
	full_request(f, k->session, &r);
}

static void client_work(struct clients *c, struct client *k)
{
	uint64_t dice = prng_below(c->draw, 100);
	k->name = (uint32_t)prng_below(c->draw, CLIENTS_NAMES);
	if (c->quiet)
		return;
	if (k->crowd) {
		k->crowd = false;
		k->name = c->crowd_name;
		dice = prng_chance(c->draw, 950000) ? 60 : 95;
	}
	if (dice < 30)
		client_create(c, k);
	else if (dice < 90)
		client_get(c, k, dice < 50 ? 0 : (int64_t)prng_below(c->draw, WORLD_S));
	else
		client_delete(c, k);
}

static void client_release(struct clients *c, struct client *k)
{
	client_judge_bytes(c, k, k->written < k->size ? k->written : k->size);
	full_node(c, k)->pins[k->session][k->pin] = 0;
	client_rest(c, k);
}

void clients_step(struct clients *c)
{
	c->g->on_reply = clients_reply;
	c->g->context = c;
	history_look(c);
	for (uint32_t i = 0; i < c->count; i++) {
		struct client *k = &c->client[i];
		struct full *f = full_node(c, k);
		if (k->state != CLIENT_GONE && (!f->core || f->life != k->life)) {
			if (k->state == CLIENT_DELETING)
				history_delete_ended(c, k->removal, false, 0);
			k->state = CLIENT_GONE; /* its node's control is another one */
		}
		if (k->state == CLIENT_GONE)
			client_attach(c, k);
		if (now(c) > k->limit_ns && k->state != CLIENT_GONE) {
			world_violation(c->g->w, "node %u: no answer in state %u for object %u",
					k->node, k->state, k->name);
			k->limit_ns = UINT64_MAX;
		}
		if (now(c) < k->at_ns)
			continue;
		if (k->state == CLIENT_IDLE)
			client_work(c, k);
		else if (k->state == CLIENT_WRITING)
			client_write(c, k);
		else if (k->state == CLIENT_HOLDING)
			client_release(c, k);
	}
}

void clients_crowd(struct clients *c)
{
	uint64_t gap = prng_chance(c->draw, 500000) ? 0 : prng_below(c->draw, 10 * WORLD_MS);
	uint64_t at = now(c);
	c->crowd_name = (uint32_t)prng_below(c->draw, c->client[0].wide ? (uint32_t)CLIENTS_WIDE
									: CLIENTS_NAMES);
	for (uint32_t i = 0; i < c->count; i++) {
		struct client *k = &c->client[i];
		if (k->state != CLIENT_IDLE)
			continue;
		k->crowd = true;
		k->at_ns = at;
		at += gap;
	}
}

const struct client_truth *clients_must_exist(const struct clients *c, uint32_t name)
{
	for (uint32_t i = c->truths; i-- > 0;) {
		const struct client_truth *t = &c->truth[i];
		if (t->name != name)
			continue;
		/* only the newest counts: an older one may have been taken for lost */
		return t->sealed && !t->lost && !t->overruled && !history_given_up(c, t) &&
				       !history_deleted(c, name, t->asked_ns, now(c))
			       ? t
			       : NULL;
	}
	return NULL;
}

void clients_leave(struct clients *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct client *k = &c->client[i];
		struct full *f = full_node(c, k);
		if (k->state != CLIENT_GONE && f->core && f->life == k->life)
			control_session_close(f->core, k->session, full_now(f));
		k->state = CLIENT_GONE;
		full_wake(f, now(c));
	}
}

void clients_ask(struct clients *c, uint32_t node, uint32_t name, bool remove)
{
	struct client *k = &c->client[node * CLIENTS_PER_NODE];
	k->name = name;
	k->final = !remove;
	if (remove)
		client_delete(c, k);
	else
		client_get(c, k, 20 * (int64_t)WORLD_S);
}

bool clients_idle(const struct clients *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (c->client[i].state != CLIENT_IDLE)
			return false;
	return true;
}
