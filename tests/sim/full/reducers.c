/* SPDX-License-Identifier: BSD-3-Clause */
#include "reducers.h"
#include "peek.h"
#include "swarm/tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SLACK_NS WORLD_S /* an answer may be this late */

static uint64_t now(const struct reducers *c)
{
	return world_now(c->g->w);
}

static struct object_id job_id(const struct reducer_job *j, uint32_t what)
{
	struct object_id id = {{0}};
	uint64_t mix = prng_mix(j->number * 256 + what + 1);
	memcpy(id.bytes + 8, &mix, sizeof(mix));
	id.bytes[0] = (uint8_t)(j->number * 37 + what);
	id.bytes[5] = (uint8_t)what;
	id.bytes[6] = (uint8_t)j->number;
	return id;
}

void reducers_open(struct reducers *c, struct full_group *g, struct prng *draw, bool wide)
{
	memset(c, 0, sizeof(*c));
	c->wide = wide;
	c->g = g;
	c->draw = draw;
}

void reducers_close(struct reducers *c)
{
	for (uint32_t i = 0; i < c->jobs; i++)
		for (uint32_t k = 0; k < c->job[i].results; k++)
			free(c->job[i].result[k].bytes);
}

/* ---- tasks: one request after the other ----------------------------------------------------- */

enum task_step { TASK_NEW, TASK_FIRST, TASK_WRITE, TASK_SEAL, TASK_WAIT, TASK_HOLD, TASK_MORE };

struct reducer_task *reducers_task(struct reducers *c, struct reducer_job *j, uint32_t node,
				   enum reducer_work work, uint32_t what)
{
	for (uint32_t i = 0; i < REDUCERS_TASKS; i++) {
		struct reducer_task *t = &c->task[i];
		if (t->job)
			continue;
		*t = (struct reducer_task){.job = j,
					   .node = node,
					   .work = (uint8_t)work,
					   .what = (uint8_t)what,
					   .pin = 1 + i,
					   .begun_ns = now(c),
					   .at_ns = now(c),
					   .limit_ns = UINT64_MAX};
		return t;
	}
	world_violation(c->g->w, "the simulation has too many tasks");
	return NULL;
}

static void task_unpin(struct reducers *c, const struct reducer_task *t)
{
	if (c->open[t->node])
		c->g->full[t->node].pins[c->session[t->node]][t->pin] = 0;
}

static void task_end(struct reducers *c, struct reducer_task *t)
{
	task_unpin(c, t);
	t->job = NULL;
}

struct packet {
	struct session_request r;
	struct object_id sources[REDUCERS_SOURCES];
};

static void task_send(struct reducers *c, struct reducer_task *t, struct packet *p, uint16_t op,
		      enum task_step step, uint64_t limit_ns)
{
	struct object_id id = job_id(t->job, t->what);
	p->r.magic = SESSION_MAGIC;
	p->r.op = op;
	p->r.version = SESSION_VERSION;
	p->r.seq = t->seq = ++c->seq[t->node];
	p->r.id = id;
	if (!p->r.pin)
		p->r.pin = SESSION_PIN_NONE;
	snprintf(p->r.name, sizeof(p->r.name), "job-%u-%u", t->job->number, t->what);
	t->step = (uint8_t)step;
	t->at_ns = UINT64_MAX;
	t->limit_ns = limit_ns == UINT64_MAX ? UINT64_MAX : now(c) + limit_ns + SLACK_NS;
	full_packet(&c->g->full[t->node], c->session[t->node], p,
		    sizeof(p->r) + sizeof(*p->sources) * p->r.reduction.count);
}

static void task_bad(struct reducers *c, const struct reducer_task *t,
		     const struct session_reply *r)
{
	world_violation(c->g->w, "node %u: request %u for object %u.%u answered with %d (%s)",
			t->node, r->op, t->job->number, t->what, r->status, r->text);
}

#define STATUS_IS(status, ...)                        \
	status_is(status, (const int[]){__VA_ARGS__}, \
		  sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
static bool status_is(int32_t status, const int *allowed, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (status == -allowed[i])
			return true;
	return false;
}

/* In a cluster in which nothing is wrong only what applications did to each other is an answer. */
#define STATUS_CALM(c, t, r, ...) status_calm(c, t, r, STATUS_IS((r)->status, __VA_ARGS__))
static void status_calm(struct reducers *c, const struct reducer_task *t,
			const struct session_reply *r, bool allowed)
{
	if (!c->calm || t->begun_ns < WORLD_START_NS + REDUCERS_MET_NS)
		return;
	tally(TALLY_REDUCES_CALM);
	if (r->status && !allowed)
		task_bad(c, t, r);
}

/* ---- put ------------------------------------------------------------------------------------ */

static void put_begin(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.size = t->job->size, .pin = t->pin, .timeout_ns = -1}};
	task_send(c, t, &p, SESSION_CREATE, TASK_FIRST, 3 * c->g->config.call_ns);
}

static void put_created(struct reducers *c, struct reducer_task *t, const struct session_reply *r)
{
	struct reducer_source *s = &t->job->source[t->what];
	STATUS_CALM(c, t, r, EEXIST, ESTALE);
	if (r->status || s->versions == REDUCERS_VERSIONS) {
		if (r->status &&
		    !STATUS_IS(r->status, EEXIST, ENOSPC, ETIMEDOUT, EHOSTUNREACH, EAGAIN, ESTALE))
			task_bad(c, t, r);
		if (t->final && r->status != -EEXIST)
			world_violation(c->g->w, "final put of %u.%u: %d (%s)", t->job->number,
					t->what, r->status, r->text);
		task_end(c, t);
		return;
	}
	t->slot = r->slot;
	t->generation = r->generation;
	t->offset = r->offset;
	t->size = t->job->size;
	t->written = 0;
	s->version[s->versions++] =
		(struct reducer_version){.generation = r->generation, .node = t->node};
	memory_poison(c->g->full[t->node].n->store.base + t->offset, t->size);
	t->step = TASK_WRITE;
	t->at_ns = now(c);
	t->limit_ns = UINT64_MAX;
}

static void put_write(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.slot = t->slot, .generation = t->generation, .timeout_ns = -1}};
	uint64_t to = t->written + 1 + prng_below(c->draw, t->size / 2 + 1);
	to = to < t->size ? to : t->size;
	memory_fill(c->g->full[t->node].n->store.base + t->offset,
		    reducers_seed(t->job, t->what, t->generation), t->written, to);
	t->written = to;
	p.r.watermark = to;
	task_send(c, t, &p, to == t->size ? SESSION_SEAL : SESSION_PUBLISH, TASK_SEAL,
		  c->g->config.call_ns);
}

static void put_sealed(struct reducers *c, struct reducer_task *t, const struct session_reply *r)
{
	struct reducer_source *s = &t->job->source[t->what];
	STATUS_CALM(c, t, r, ESTALE);
	if (r->status) {
		if (!STATUS_IS(r->status, ESTALE, EINVAL, ENOENT))
			task_bad(c, t, r);
		task_end(c, t);
	} else if (r->op == SESSION_PUBLISH) {
		t->step = TASK_WRITE;
		t->limit_ns = UINT64_MAX;
		t->at_ns = now(c) + prng_below(c->draw, 20 * WORLD_MS);
	} else {
		for (uint32_t i = 0; i < s->versions; i++)
			if (s->version[i].generation == t->generation)
				s->version[i].sealed = true;
		c->puts++;
		task_end(c, t);
	}
}

/* ---- get ------------------------------------------------------------------------------------ */

static void get_begin(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.pin = t->pin}};
	p.r.timeout_ns = t->final ? (int64_t)(20 * WORLD_S) : (int64_t)(6 * WORLD_S);
	task_unpin(c, t);
	task_send(c, t, &p, SESSION_GET, TASK_FIRST, (uint64_t)p.r.timeout_ns);
}

static void get_wait(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.slot = t->slot, .generation = t->generation}};
	p.r.timeout_ns = (int64_t)((t->final ? 20 : 4) * WORLD_S);
	p.r.watermark = UINT64_MAX;
	if (t->partial && t->size)
		p.r.watermark = prng_below(c->draw, t->size);
	task_send(c, t, &p, SESSION_WAIT, TASK_WAIT, (uint64_t)p.r.timeout_ns);
}

static void get_saw(struct reducers *c, struct reducer_task *t, uint64_t watermark)
{
	uint64_t upto = watermark < t->size ? watermark : t->size;
	reducers_saw(c, t->job, t->node, t->generation,
		     c->g->full[t->node].n->store.base + t->offset, upto, t->final ? t->used : 0);
}

static void get_failed(struct reducers *c, struct reducer_task *t, const struct session_reply *r)
{
	STATUS_CALM(c, t, r, ERESTART, ESTALE, ECANCELED, ETIMEDOUT);
	if (STATUS_IS(r->status, ERESTART, ESTALE) && t->tries++ < 20) {
		c->restarts++;
		task_unpin(c, t);
		t->step = TASK_NEW;
		t->at_ns = now(c) + 10 * WORLD_MS;
		t->limit_ns = UINT64_MAX;
		return;
	}
	if (t->final)
		world_violation(c->g->w,
				"node %u: the result of job %u must be there, but: %d (%s)",
				t->node, t->job->number, r->status, r->text);
	if (!STATUS_IS(r->status, ETIMEDOUT, EHOSTUNREACH, ECANCELED, ESTALE, ERESTART, ENOSPC,
		       EAGAIN, ENODATA))
		task_bad(c, t, r);
	c->failures++;
	task_end(c, t);
}

static void get_answered(struct reducers *c, struct reducer_task *t, const struct session_reply *r)
{
	if (r->status) {
		get_failed(c, t, r);
		return;
	}
	t->slot = r->slot;
	t->generation = r->generation;
	t->offset = r->offset;
	t->size = r->size;
	if (r->size != t->job->size || r->offset + r->size > c->g->full[t->node].n->store.bytes) {
		world_violation(c->g->w, "node %u: result of job %u has %llu bytes, not %u",
				t->node, t->job->number, (unsigned long long)r->size, t->job->size);
		task_end(c, t);
		return;
	}
	get_saw(c, t, r->watermark);
	if (t->step == TASK_FIRST || t->partial) {
		t->partial &= t->step == TASK_FIRST;
		get_wait(c, t);
		return;
	}
	c->gets++;
	c->bytes += t->size;
	t->step = TASK_HOLD;
	t->limit_ns = UINT64_MAX;
	t->at_ns = now(c) + prng_below(c->draw, 30 * WORLD_MS);
}

/* ---- reduce --------------------------------------------------------------------------------- */

static void reduce_begin(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.flags = t->job->flags, .timeout_ns = t->job->timeout_ns}};
	p.r.reduction.op = 1;	  /* sum */
	p.r.reduction.dtype = 11; /* u32 */
	p.r.reduction.num = t->job->min ? 0 : t->job->num;
	p.r.reduction.min = t->job->min;
	p.r.reduction.deadline_ns = t->job->deadline_ns;
	p.r.reduction.count = t->job->count;
	for (uint32_t i = 0; i < t->job->count; i++)
		p.sources[i] = job_id(t->job, i);
	t->job->asked++;
	task_send(c, t, &p, SESSION_REDUCE, TASK_FIRST, c->g->config.directory_ns);
}

static void ask_begin(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.timeout_ns = t->final ? (int64_t)REDUCERS_FINISH_NS : -1}};
	t->used = 0;
	task_send(c, t, &p, SESSION_REDUCED, TASK_FIRST,
		  t->final ? REDUCERS_FINISH_NS : UINT64_MAX);
}

static void reduce_answered(struct reducers *c, struct reducer_task *t,
			    const struct session_reply *r)
{
	struct reducer_job *j = t->job;
	uint32_t node = t->node;
	STATUS_CALM(c, t, r, EEXIST, ECANCELED);
	task_end(c, t);
	if (r->status == 0) {
		j->accepted++;
		reducers_task(c, j, node, REDUCER_ASK, REDUCERS_TARGET);
		return;
	}
	if (!STATUS_IS(r->status, EEXIST, ETIMEDOUT, EHOSTUNREACH, EAGAIN, ENOSPC, ECANCELED,
		       ENODATA))
		world_violation(c->g->w, "node %u: reduce of job %u refused with %d (%s)", node,
				j->number, r->status, r->text);
	if (j->asked < 4 && STATUS_IS(r->status, EAGAIN, ETIMEDOUT))
		reducers_task(c, j, node, REDUCER_ASK, REDUCERS_TARGET); /* it may go on */
}

static void ask_done(struct reducers *c, struct reducer_task *t, int32_t status, const char *text)
{
	struct reducer_job *j = t->job;
	if (!(status == -ESTALE && strstr(text, "was lost")) && /* with the node that had made it */
	    !STATUS_IS(status, 0, ETIMEDOUT, EHOSTUNREACH, ECANCELED, ENODATA, ENOENT, ENOSPC,
		       EEXIST, EAGAIN))
		world_violation(c->g->w, "job %u ended with %d (%s)", j->number, status, text);
	if (t->final && status == -ETIMEDOUT && strstr(text, "has not ended yet"))
		world_violation(c->g->w, "job %u has not ended, and all of it is healthy",
				j->number);
	if (t->final && status == -ENOENT && j->accepted && !j->caller_died && !j->deleted &&
	    !j->ended)
		world_violation(c->g->w, "job %u: nobody knows of it any more", j->number);
	if (status == -ETIMEDOUT && j->timeout_ns < 0 && !t->final)
		world_violation(c->g->w, "job %u had no timeout: %s", j->number, text);
	c->errors[status < 0 && status > -128 ? -status : 0]++;
	if (status == 0 && !reducers_enough(j, (uint32_t)__builtin_popcount(t->used)))
		world_violation(c->g->w, "job %u: %x are not %u sources", j->number, t->used,
				j->min ? j->min : j->num);
	if (status == 0 && j->ended && j->status == 0 && j->asked == 1 && !c->splits &&
	    !j->parted && j->used != t->used)
		world_violation(c->g->w, "job %u: used %x and %x", j->number, j->used, t->used);
	if (status != -ENOENT && status != -EAGAIN) {
		if (!j->ended || j->status)
			j->status = status;
		if (status == 0)
			j->used = t->used;
		c->reduced += !j->ended && status == 0;
		j->ended = true;
	}
	task_end(c, t);
}

static void ask_answered(struct reducers *c, struct reducer_task *t, const struct full_reply *reply)
{
	for (uint32_t i = 0; i < reply->sources; i++)
		t->used |= 1u << reply->source[i].bytes[5];
	if (reply->reply.flags & SESSION_FLAG_MORE)
		return;
	STATUS_CALM(c, t, &reply->reply, ETIMEDOUT, ECANCELED, ENOENT);
	ask_done(c, t, reply->reply.status, reply->reply.text);
}

/* ---- delete --------------------------------------------------------------------------------- */

static void delete_begin(struct reducers *c, struct reducer_task *t)
{
	struct packet p = {.r = {.timeout_ns = -1}};
	t->job->deleted |= t->what == REDUCERS_TARGET;
	task_send(c, t, &p, SESSION_DELETE, TASK_FIRST, 3 * c->g->config.call_ns);
}

static void delete_answered(struct reducers *c, struct reducer_task *t,
			    const struct session_reply *r)
{
	STATUS_CALM(c, t, r, ENOENT);
	if (r->status && !STATUS_IS(r->status, ENOENT, ETIMEDOUT, EHOSTUNREACH, EAGAIN))
		task_bad(c, t, r);
	task_end(c, t);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void task_step(struct reducers *c, struct reducer_task *t)
{
	t->life = c->life[t->node];
	if (t->step == TASK_WRITE)
		put_write(c, t);
	else if (t->step == TASK_HOLD)
		task_end(c, t);
	else if (t->work == REDUCER_PUT)
		put_begin(c, t);
	else if (t->work == REDUCER_REDUCE)
		reduce_begin(c, t);
	else if (t->work == REDUCER_ASK)
		ask_begin(c, t);
	else if (t->work == REDUCER_GET)
		get_begin(c, t);
	else
		delete_begin(c, t);
}

static void reducers_reply(void *context, struct full *f, const struct full_reply *reply)
{
	struct reducers *c = context;
	const struct session_reply *r = &reply->reply;
	struct reducer_task *t = NULL;
	uint32_t node = f->n->index;
	if (!c->open[node] || reply->session != c->session[node])
		return;
	for (uint32_t i = 0; i < REDUCERS_TASKS && !t; i++)
		if (c->task[i].job && c->task[i].node == node && c->task[i].seq == r->seq &&
		    c->task[i].at_ns == UINT64_MAX)
			t = &c->task[i];
	if (!t)
		return;
	if (t->work == REDUCER_PUT && t->step == TASK_FIRST)
		put_created(c, t, r);
	else if (t->work == REDUCER_PUT)
		put_sealed(c, t, r);
	else if (t->work == REDUCER_GET)
		get_answered(c, t, r);
	else if (t->work == REDUCER_REDUCE)
		reduce_answered(c, t, r);
	else if (t->work == REDUCER_ASK)
		ask_answered(c, t, reply);
	else
		delete_answered(c, t, r);
}

/* The node's control is another one: what was asked of the one before is lost. */
static void reducers_session(struct reducers *c, uint32_t node)
{
	struct full *f = &c->g->full[node];
	struct session_request r = {.magic = SESSION_MAGIC,
				    .op = SESSION_ATTACH,
				    .version = SESSION_VERSION,
				    .seq = ++c->seq[node],
				    .timeout_ns = -1,
				    .pin = SESSION_PIN_NONE};
	int s;
	if (c->open[node] && (!f->core || f->life != c->life[node])) {
		c->open[node] = false;
		for (uint32_t i = 0; i < REDUCERS_TASKS; i++) {
			struct reducer_task *t = &c->task[i];
			if (!t->job || t->node != node)
				continue;
			if (t->work == REDUCER_ASK ||
			    (t->work == REDUCER_REDUCE && t->step != TASK_NEW))
				t->job->caller_died = true;
			if (t->step != TASK_NEW)
				t->job = NULL;
		}
	}
	if (c->open[node] || !f->core || !f->attached)
		return;
	s = full_session(f);
	if (s < 0)
		return;
	c->open[node] = true;
	c->session[node] = (uint32_t)s;
	c->life[node] = f->life;
	full_request(f, c->session[node], &r);
}

static void reducers_look(struct reducers *c, struct reducer_job *j)
{
	for (uint32_t i = 0; i < c->g->w->count; i++)
		j->parted |= !j->caller_died && c->g->full[j->caller].core &&
			     peek_gone(c->g->full[i].core, j->caller);
}

void reducers_step(struct reducers *c)
{
	c->g->on_reply = reducers_reply;
	c->g->context = c;
	for (uint32_t i = 0; i < c->g->w->count; i++)
		reducers_session(c, i);
	for (uint32_t i = 0; i < c->jobs; i++)
		if (c->job[i].active)
			reducers_look(c, &c->job[i]);
	reducers_jobs(c);
	for (uint32_t i = 0; i < REDUCERS_TASKS; i++) {
		struct reducer_task *t = &c->task[i];
		if (!t->job || !c->open[t->node])
			continue;
		if (now(c) > t->limit_ns) {
			world_violation(c->g->w, "node %u: no answer to work %u step %u for %u.%u",
					t->node, t->work, t->step, t->job->number, t->what);
			t->limit_ns = UINT64_MAX;
		}
		if (now(c) >= t->at_ns)
			task_step(c, t);
	}
}
