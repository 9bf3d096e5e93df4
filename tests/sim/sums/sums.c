/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One reduce or allreduce of whole nodes: the real cores of control and dataplane, every packet, in
 * virtual time. What it tells (time over bound, what the links carried) is the same in each run, so
 * it may be held to a limit that a shared machine could not show.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "sums.h"

enum { SUMS_NODES_FEW = 16, SUMS_MSG_SLOTS = 512, SUM = 1, U32 = 11, PIN = 1 };

enum step { IDLE, PUTTING, SEALING, REDUCING, GETTING, WAITING, DONE };

struct client {
	struct sums *sums;
	uint32_t node, session, seq, slot;
	uint32_t what; /* its source */
	uint64_t generation, offset, arrives_ns, done_ns;
	enum step step;
	bool puts, gets, reduces;
};

struct sums {
	struct sums_options o;
	struct world w;
	struct full_group g;
	struct client client[SUMS_NODES + SUMS_RESERVE];
	uint64_t begin_ns, restarts;
	uint32_t round;
	uint64_t up[SUMS_LINKS], down[SUMS_LINKS]; /* of the links, when it began */
	uint64_t traced_up[SUMS_NODES], traced_down[SUMS_NODES];
};

/* What round k makes; before that come the sources. */
static uint32_t sums_target(const struct sums *s)
{
	return SUMS_NODES + SUMS_RESERVE + s->round;
}

static struct object_id sums_id(uint32_t what)
{
	struct object_id id = {{0}};
	uint64_t mix = prng_mix(what + 1);

	memcpy(id.bytes + 8, &mix, sizeof(mix));
	id.bytes[0] = (uint8_t)(what + 1);
	return id;
}

/* ---- what is added up ------------------------------------------------------------------------ */

static uint32_t sums_value(uint32_t node, uint64_t i)
{
	return ((uint32_t)i ^ (node + 1) * 0x9e3779b9u) * 0x85ebca6bu;
}

static void sums_fill(const struct sums *s, const struct client *k)
{
	uint32_t *to = (uint32_t *)(void *)(s->g.full[k->node].n->store.base + k->offset);

	for (uint64_t i = 0; i < s->o.size / 4; i++)
		to[i] = sums_value(k->what, i);
}

/* Sources, with those in reserve: of a network, where each node must have one, these are more. */
static uint32_t sums_sources(const struct sums *s)
{
	uint32_t spare = (uint32_t)__builtin_popcount(s->o.kill);

	return s->o.nodes + (s->o.network ? spare : 0);
}

static bool sums_killed(const struct sums *s, uint32_t node)
{
	return node < 32 && s->o.kill >> node & 1;
}

static void sums_judge(struct sums *s, const struct client *k)
{
	const uint32_t *from =
		(const uint32_t *)(const void *)(s->g.full[k->node].n->store.base + k->offset);

	for (uint64_t i = 0; i < s->o.size / 4; i++) {
		uint32_t sum = 0;

		for (uint32_t n = 0; n < sums_sources(s); n++)
			sum += sums_killed(s, n) ? 0 : sums_value(n, i);
		if (from[i] == sum)
			continue;
		world_violation(&s->w, "node %u: element %llu of the sum is wrong", k->node,
				(unsigned long long)i);
		return;
	}
}

/* ---- clients --------------------------------------------------------------------------------- */

struct packet {
	struct session_request r;
	struct object_id sources[SUMS_NODES + SUMS_RESERVE];
};

static void client_send(struct client *k, uint16_t op, enum step step, uint32_t what,
			struct packet *p)
{
	struct sums *s = k->sums;

	k->step = step;
	p->r.magic = SESSION_MAGIC;
	p->r.version = SESSION_VERSION;
	p->r.op = op;
	p->r.seq = ++k->seq;
	p->r.id = sums_id(what);
	p->r.slot = k->slot;
	p->r.generation = k->generation;
	p->r.pin = op == SESSION_CREATE ? PIN : op == SESSION_GET ? PIN + 1 : SESSION_PIN_NONE;
	if (!p->r.timeout_ns)
		p->r.timeout_ns = -1;
	full_packet(&s->g.full[k->node], k->session, p,
		    sizeof(p->r) + sizeof(*p->sources) * p->r.reduction.count);
}

static void client_put(struct client *k)
{
	struct packet p = {.r = {.size = k->sums->o.size}};

	client_send(k, SESSION_CREATE, PUTTING, k->what, &p);
}

static void client_get(struct client *k)
{
	struct packet p = {.r = {.size = 0}};

	client_send(k, SESSION_GET, GETTING, sums_target(k->sums), &p);
}

static void client_reduce(struct client *k)
{
	const struct sums_options *o = &k->sums->o;
	struct packet p = {.r = {.flags = o->all ? SESSION_FLAG_ALLREDUCE : 0,
				 .reduction = {SUM, U32, o->num, sums_sources(k->sums)}}};

	for (uint32_t i = 0; i < p.r.reduction.count; i++)
		p.sources[i] = sums_id(i);
	client_send(k, SESSION_REDUCE, REDUCING, sums_target(k->sums), &p);
}

/* The next thing that it does: its put, its call, its get. */
static void client_act(void *context, uint64_t argument)
{
	struct client *k = context;
	uint64_t now = world_now(&k->sums->w);

	if (!k->sums->g.full[k->node].core || (k->step != IDLE && k->step != DONE))
		return;
	if (k->reduces) {
		k->reduces = false;
		client_reduce(k);
	} else if (k->puts && now >= k->arrives_ns) {
		k->puts = false;
		client_put(k);
	} else if (k->puts) {
		events_add(&k->sums->w.events, k->arrives_ns, client_act, k, argument);
	} else if (k->gets) {
		k->gets = false;
		client_get(k);
	}
}

static void client_answer(struct client *k, const struct session_reply *r)
{
	struct sums *s = k->sums;
	struct packet p = {.r = {.watermark = UINT64_MAX}};

	if (r->status == -ERESTART || r->status == -ESTALE) {
		s->restarts++;
		client_get(k);
		return;
	}
	if (r->status) {
		world_violation(&s->w, "node %u: request %u: %d (%s)", k->node, r->op, r->status,
				r->text);
		return;
	}
	k->slot = r->slot;
	k->generation = r->generation;
	k->offset = r->offset;
	switch (k->step) {
	case PUTTING:
		sums_fill(s, k);
		client_send(k, SESSION_SEAL, SEALING, 0, &p);
		return;
	case GETTING:
		client_send(k, SESSION_WAIT, WAITING, 0, &p);
		return;
	case WAITING:
		k->step = DONE;
		k->done_ns = world_now(&s->w);
		return;
	default:
		k->step = IDLE;
		client_act(k, 0);
	}
}

static void sums_reply(void *context, struct full *f, const struct full_reply *reply)
{
	struct sums *s = context;
	struct client *k = &s->client[f->n->index];

	for (uint32_t i = s->o.nodes; i < sums_sources(s); i++)
		if (f->n->index == 0 && s->client[i].session == reply->session)
			k = &s->client[i];
	if (reply->reply.op != SESSION_ATTACH && reply->reply.seq == k->seq)
		client_answer(k, &reply->reply);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void sums_config(struct sums *s, struct node_options *n, struct control_config *c)
{
	const struct sums_options *o = &s->o;

	*n = full_options(8 * o->size + (64 << 20));
	engine_config_default(&n->config);
	n->config.mtu = o->mtu;
	n->config.buffers_max = 512;
	n->config.edges_max = 2048;
	n->msg_slots = SUMS_MSG_SLOTS;
	n->turn_ns = o->turn_ns;
	control_config_default(c);
	c->table_slots = FULL_TABLE_SLOTS;
	c->sessions_max = FULL_SESSIONS;
	c->entries_max = c->copies_max = c->waiters_max = c->tombstones = 1024;
	c->stages_max = 512;
	c->edges_max = 2048;
	c->network = o->places.network;
	c->planner = o->planner ? places_planner(o->planner) : NULL;
	if (o->nodes <= SUMS_NODES_FEW)
		return;
	n->config.buffers_max = c->stages_max = 2048;
	n->config.edges_max = c->edges_max = 8192;
	n->table_slots = c->table_slots = 1024;
	c->entries_max = c->copies_max = c->waiters_max = c->tombstones = 16384;
}

static void sums_open(struct sums *s)
{
	const struct sums_options *o = &s->o;
	struct network_link link = {
		.rate_bps = o->rate_bps, .delay_ns = o->hop_ns, .buffer_bytes = 512 << 10};
	struct node_options n;
	struct control_config c;

	sums_config(s, &n, &c);
	world_init(&s->w, o->nodes, &link, &n, o->seed, false);
	if (o->places.rails > 1)
		network_rails_set(&s->w.net, o->places.rails, places_hop, o->places.network);
	full_open(&s->g, &s->w, &c, 0, o->latency_ns);
	s->g.on_reply = sums_reply;
	s->g.context = s;
	world_run(&s->w, 10 * WORLD_S);
	for (uint32_t i = 0; i < sums_sources(s); i++) {
		uint32_t node = i < o->nodes ? i : 0;
		int session = full_session(&s->g.full[node]);

		assert(session >= 0);
		s->client[i] = (struct client){
			.sums = s, .node = node, .what = i, .session = (uint32_t)session};
		client_send(&s->client[i], SESSION_ATTACH, IDLE, 0, &(struct packet){.r = {0}});
	}
	world_run(&s->w, WORLD_S);
}

static bool sums_idle(void *context)
{
	const struct sums *s = context;

	for (uint32_t i = 0; i < s->o.nodes; i++)
		if (s->client[i].puts || s->client[i].step == PUTTING ||
		    s->client[i].step == SEALING)
			return false;
	return true;
}

static bool sums_done(void *context)
{
	const struct sums *s = context;

	for (uint32_t i = 0; i < s->o.nodes; i++)
		if (s->g.full[i].core && (i == 0 || s->o.all) && s->client[i].step != DONE)
			return false;
	return true;
}

static void sums_arrivals(struct sums *s)
{
	uint32_t place[SUMS_NODES];
	struct prng p = prng_fork(s->o.order, 1);

	for (uint32_t i = 0; i < s->o.nodes; i++)
		place[i] = s->o.order == 1 ? s->o.nodes - 1 - i : i;
	for (uint32_t i = s->o.nodes - 1; s->o.order > 1 && i > 0; i--) {
		uint32_t k = (uint32_t)prng_below(&p, i + 1), swap = place[i];

		place[i] = place[k];
		place[k] = swap;
	}
	for (uint32_t i = 0; i < s->o.nodes; i++)
		s->client[i].arrives_ns = s->begin_ns + place[i] * s->o.stagger_ns;
}

static void sums_trace(void *context, uint64_t argument)
{
	struct sums *s = context;
	double most = (double)s->o.rate_bps / 8e9 * (double)s->o.trace_ns;

	printf("%8.3f ms ", (double)(world_now(&s->w) - s->begin_ns) / 1e6);
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		const struct network_endpoint *e = &s->w.net.endpoints[i];

		printf(" %3.0f/%3.0f", (double)(e->up.bytes - s->traced_up[i]) / most * 100,
		       (double)(e->down.bytes - s->traced_down[i]) / most * 100);
		s->traced_up[i] = e->up.bytes;
		s->traced_down[i] = e->down.bytes;
	}
	printf("\n");
	if (!sums_done(s))
		events_add(&s->w.events, world_now(&s->w) + s->o.trace_ns, sums_trace, s, 0);
}

static void sums_kill(void *context, uint64_t argument)
{
	struct sums *s = context;

	for (uint32_t i = 0; i < s->o.nodes; i++) {
		if (!sums_killed(s, i))
			continue;
		full_kill_control(&s->g.full[i]);
		full_kill_dataplane(&s->g.full[i]);
	}
}

/* In seconds: 1 or, for all, 2(p-1)/p objects through a link. */
static double sums_least(const struct sums_options *o)
{
	uint32_t rails = o->places.rails > 1 ? o->places.rails : 1;
	double alone = (double)o->size * 8 / (double)o->rate_bps / rails;

	return alone * (o->all ? 2.0 * (o->nodes - 1) / o->nodes : 1);
}

/* What is put before the start. */
static void sums_prepare(struct sums *s)
{
	struct sums_options *o = &s->o;
	uint32_t spare = (uint32_t)__builtin_popcount(o->kill);

	o->num = sums_sources(s) - spare;
	for (uint32_t i = 0; i < o->nodes; i++)
		s->client[i].puts = true;
	s->begin_ns = world_now(&s->w);
	sums_arrivals(s);
	for (uint32_t i = 0; i < o->nodes && !o->stagger_ns; i++) /* before the start */
		if (i < o->num)
			client_act(&s->client[i], 0);
	if (!o->stagger_ns) {
		for (uint32_t i = o->num; i < sums_sources(s); i++)
			s->client[i].puts = false;
		world_until(&s->w, WORLD_S, sums_idle, s);
		world_run(&s->w, 100 * WORLD_MS);
	}
}

/* A whole node, but for what asks it. */
static void sums_stall(void *context, uint64_t argument)
{
	struct full *f = context;

	full_still(f, world_now(f->n->world) + argument);
}

/* Within what the sum takes at least. */
static void sums_stalls(struct sums *s)
{
	const struct sums_options *o = &s->o;
	struct prng p = prng_fork(o->seed, 2);
	uint64_t within = (uint64_t)(sums_least(o) * 1e9);

	for (uint32_t i = 0; i < o->stalls; i++) {
		struct full *f = &s->g.full[prng_below(&p, o->nodes)];
		uint64_t at = s->begin_ns + prng_below(&p, within);

		events_add(&s->w.events, at, sums_stall, f,
			   o->stall_ns / 2 + prng_below(&p, o->stall_ns / 2 + 1));
	}
}

/* Those but the first ask for the sum some time after it. */
static void sums_ask(struct sums *s)
{
	struct prng p = prng_fork(s->o.seed, 3);

	for (uint32_t i = s->o.nodes; i < sums_sources(s); i++)
		client_act(&s->client[i], 0);
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		uint64_t late = prng_below(&p, s->o.late_ns + 1);

		if (i > 0 && late > 0)
			events_add(&s->w.events, s->begin_ns + late, client_act, &s->client[i], 0);
		else
			client_act(&s->client[i], 0);
	}
}

static void sums_begin(struct sums *s)
{
	const struct sums_options *o = &s->o;

	s->begin_ns = world_now(&s->w);
	sums_arrivals(s);
	for (uint32_t i = 0; i < sums_sources(s); i++) {
		struct client *k = &s->client[i];

		k->reduces = i == 0;
		k->gets = i == 0 || (o->all && i < o->nodes);
		if (i >= o->num) {
			k->puts = true;
			k->arrives_ns = s->begin_ns + 20 * WORLD_MS;
		}
	}
	for (uint32_t i = 0; i < o->nodes; i++) {
		s->traced_up[i] = s->w.net.endpoints[i].up.bytes;
		s->traced_down[i] = s->w.net.endpoints[i].down.bytes;
	}
	for (uint32_t i = 0; i < o->nodes * s->w.net.rails; i++) {
		s->up[i] = s->w.net.endpoints[i].up.bytes;
		s->down[i] = s->w.net.endpoints[i].down.bytes;
	}
	sums_ask(s);
	sums_stalls(s);
	if (o->kill)
		events_add(&s->w.events, s->begin_ns + o->kill_at_ns, sums_kill, s, 0);
	if (o->trace_ns)
		events_add(&s->w.events, s->begin_ns + o->trace_ns, sums_trace, s, 0);
}

static double sums_print(const struct sums *s, uint64_t took_ns)
{
	const struct sums_options *o = &s->o;
	double late = (double)((o->nodes - 1) * o->stagger_ns) / 1e9;
	double bound = late + sums_least(o), seconds = (double)took_ns / 1e9;
	uint64_t wire = 0, chunks = 0, again = 0, acks = 0, grants = 0, lost = 0, most = 0;
	const char *planner = "none";
	uint64_t planned = 0;
	double predicted = 0;
	uint64_t sent_least = UINT64_MAX, sent_most = 0;

	for (uint32_t i = 0; i < o->nodes; i++) {
		const struct counters *c = &s->w.nodes[i].counters;

		chunks += c->tx_chunks;
		again += c->tx_chunk_resends;
		acks += c->tx_acks;
		grants += c->tx_grants;
		lost += c->lost_pkts;
	}
	for (uint32_t i = 0; i < o->nodes * s->w.net.rails; i++) {
		uint64_t up = s->w.net.endpoints[i].up.bytes - s->up[i];
		uint64_t down = s->w.net.endpoints[i].down.bytes - s->down[i];

		wire += up;
		sent_least = up < sent_least ? up : sent_least;
		sent_most = up > sent_most ? up : sent_most;
		most = up > most ? up : most;
		most = down > most ? down : most;
	}
	for (uint32_t i = 0; i < o->nodes; i++) {
		const struct control_plan *p =
			s->g.full[i].core ? control_last_plan(s->g.full[i].core) : NULL;

		if (p && p->number > planned) { /* nobody else has planned */
			planned = p->number;
			planner = p->planner;
			predicted = (double)p->predicted_ns / 1e9;
		}
	}
	printf("{\"op\": \"%s\", \"nodes\": %u, \"bytes\": %llu, \"seconds\": %.6f, "
	       "\"planner\": \"%s\", \"predicted_seconds\": %.6f, "
	       "\"bound_seconds\": %.6f, \"ratio\": %.4f, \"wire_bytes\": %llu, "
	       "\"busiest_link_share\": %.4f, \"sent\": [%.3f, %.3f], \"chunks\": %llu, \"resent\": %llu, \"acks\": %llu, "
	       "\"grants\": %llu, \"lost\": %llu, \"restarts\": %llu}\n",
	       o->all ? "allreduce" : "reduce", o->nodes, (unsigned long long)o->size, seconds,
	       planner, predicted, bound, seconds / bound, (unsigned long long)wire,
	       (double)most * 8 / (double)o->rate_bps / seconds,
	       (double)sent_least / (double)o->size, (double)sent_most / (double)o->size,
	       (unsigned long long)chunks, (unsigned long long)again, (unsigned long long)acks,
	       (unsigned long long)grants, (unsigned long long)lost,
	       (unsigned long long)s->restarts);
	return seconds / bound;
}

static double sums_round(struct sums *s)
{
	uint64_t end = 0;

	sums_begin(s);
	world_until(&s->w, 120 * WORLD_S, sums_done, s);
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		const struct client *k = &s->client[i];

		if (!s->g.full[i].core || (i > 0 && !s->o.all))
			continue;
		if (k->step != DONE)
			world_violation(&s->w, "node %u does not get the sum", i);
		else
			sums_judge(s, k);
		end = k->done_ns > end ? k->done_ns : end;
	}
	return s->w.violations ? 0 : sums_print(s, end - s->begin_ns);
}

static double sums_run(struct sums *s)
{
	double ratio = 0;

	sums_open(s);
	sums_prepare(s);
	for (s->round = 0; s->round < s->o.rounds && !s->w.violations; s->round++)
		ratio = sums_round(s);
	return ratio;
}

int main(int argc, char **argv)
{
	static struct sums s = {.o = {.nodes = 8,
				      .size = 32 << 20,
				      .rate_bps = 200000000,
				      .hop_ns = 100 * WORLD_US,
				      .latency_ns = 20 * WORLD_US,
				      .mtu = 1500,
				      .rounds = 1,
				      .stall_ns = 200 * WORLD_MS,
				      .seed = 1}};
	double ratio;

	if (!sums_options_parse(&s.o, argc, argv))
		return 2;
	ratio = sums_run(&s);
	if (s.w.violations)
		return 1;
	if (s.o.ratio_max > 0 && ratio > s.o.ratio_max) {
		fprintf(stderr, "sums: time / bound %.4f is above %.4f\n", ratio, s.o.ratio_max);
		return 1;
	}
	return 0;
}
