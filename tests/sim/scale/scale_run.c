/* SPDX-License-Identifier: BSD-3-Clause */
#include "scale_run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define RUN_MEET_NS (4 * SCALE_S)  /* the members connect */
#define RUN_REST_NS (10 * SCALE_S) /* gossip is measured */
#define RUN_WARM_NS (3 * SCALE_S)  /* all ask the directory's node once */
#define RUN_PUT_NS  SCALE_S

struct run_totals {
	uint64_t messages, bytes, gossip_messages, gossip_bytes, cpu_ns, lost;
	uint64_t failovers, hedges;
};

static void run_totals(const struct scale *s, struct run_totals *t)
{
	*t = (struct run_totals){0};
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		const struct scale_node *n = &s->nodes[i];
		const struct control_counters *c = control_counters(n->core);
		for (int k = 0; k < SCALE_KINDS; k++) {
			t->messages += n->messages[k];
			t->bytes += n->message_bytes[k];
		}
		t->gossip_messages += n->messages[MESSAGE_MEMBERS];
		t->gossip_bytes += n->message_bytes[MESSAGE_MEMBERS];
		t->cpu_ns += n->cpu_ns;
		t->lost += n->messages_refused;
		t->failovers += c->failovers;
		t->hedges += c->hedges;
	}
}

static void run_for(struct scale *s, uint64_t ns)
{
	uint64_t until = scale_now(s) + ns;
	while (events_step(&s->events, until))
		;
}

/* ---- before ------------------------------------------------------------------------------- */

static void run_rest(struct scale *s, struct scale_result *out)
{
	struct run_totals before, after;
	double per = 1.0 / ((double)RUN_REST_NS / SCALE_S) / s->o.nodes;
	run_for(s, RUN_MEET_NS);
	run_totals(s, &before);
	run_for(s, RUN_REST_NS);
	run_totals(s, &after);
	out->gossip_messages = (double)(after.gossip_messages - before.gossip_messages) * per;
	out->gossip_bytes = (double)(after.gossip_bytes - before.gossip_bytes) * per;
	out->gossip_cpu_ns = (double)(after.cpu_ns - before.cpu_ns) * per;
}

static void run_put(struct scale *s)
{
	struct control_usage u;
	scale_create(&s->nodes[0], s->o.size);
	run_for(s, RUN_PUT_NS);
	assert(s->nodes[0].done_ns && s->nodes[0].status == 0);
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		control_usage(s->nodes[i].core, &u);
		if (u.entries)
			s->shard = i;
	}
	s->ended = 0;
}

static void run_look(void *context, uint64_t index)
{
	struct scale *s = context;
	scale_stat(&s->nodes[index]);
}

static void run_warm(struct scale *s)
{
	for (uint32_t i = 0; i < s->o.nodes; i++)
		events_add(&s->events, scale_now(s) + prng_below(&s->draw, RUN_WARM_NS / 2),
			   run_look, s, i);
	run_for(s, RUN_WARM_NS);
}

/* ---- the scenario ------------------------------------------------------------------------- */

static void run_get(void *context, uint64_t index)
{
	struct scale *s = context;
	if (!s->nodes[index].dead)
		scale_get(&s->nodes[index]);
}

static void run_death(void *context, uint64_t count)
{
	struct scale *s = context;
	while (count > 0) {
		struct scale_node *n = &s->nodes[prng_below(&s->draw, s->o.nodes)];
		if (n->index == 0 || n->index == s->shard || n->dead || n->done_ns)
			continue;
		scale_die(n);
		s->gone++;
		count--;
	}
}

static void run_gets(struct scale *s, const struct scale_result *out)
{
	uint64_t begin = scale_now(s);
	for (int i = 0; i < SCALE_KINDS; i++)
		s->cost[i].count = 0, s->cost[i].sum_ns = s->cost[i].all = 0;
	s->cost_codec.count = 0, s->cost_codec.sum_ns = s->cost_codec.all = 0;
	for (uint32_t i = 1; i < s->o.nodes; i++)
		events_add(&s->events, begin + prng_below(&s->draw, s->o.stagger_ns + 1), run_get,
			   s, i);
	if (s->o.die)
		events_add(&s->events, begin + out->bound_ns / 2, run_death, s, s->o.die);
	while (s->ended + s->gone < s->o.nodes - 1 &&
	       events_step(&s->events, begin + s->o.limit_ns))
		;
}

/* ---- after -------------------------------------------------------------------------------- */

static int run_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static int run_order32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static struct scale_cost run_cost(struct scale_samples *p)
{
	struct scale_cost c = {.count = p->all};
	if (p->count == 0)
		return c;
	qsort(p->ns, p->count, sizeof(*p->ns), run_order32);
	c.mean_ns = p->sum_ns / p->all;
	c.median_ns = p->ns[p->count / 2];
	c.p99_ns = p->ns[(uint64_t)p->count * 99 / 100];
	return c;
}

static void run_times(const struct scale *s, struct scale_result *out)
{
	uint64_t *took = calloc(s->o.nodes, sizeof(*took)), first = UINT64_MAX, last = 0;
	assert(took);
	for (uint32_t i = 1; i < s->o.nodes; i++) {
		const struct scale_node *n = &s->nodes[i];
		first = n->asked_ns && n->asked_ns < first ? n->asked_ns : first;
		if (n->dead)
			continue;
		if (n->done_ns == 0) {
			out->unfinished++;
			continue;
		}
		out->failed += n->status != 0;
		last = n->done_ns > last ? n->done_ns : last;
		out->depth = n->depth > out->depth ? n->depth : out->depth;
		took[out->gets++] = n->done_ns - n->asked_ns;
	}
	qsort(took, out->gets, sizeof(*took), run_order);
	out->ns = last > first ? last - first : 0;
	out->median_ns = out->gets ? took[out->gets / 2] : 0;
	out->most_ns = out->gets ? took[out->gets - 1] : 0;
	free(took);
}

static void run_copies(const struct scale *s, struct scale_result *out)
{
	double whole = (double)chunk_count(s->o.size, s->chunk_bytes) * s->chunk_bytes;
	out->source_copies = (double)s->nodes[0].sent_bytes / whole;
	for (uint32_t i = 0; i < s->o.nodes; i++)
		if ((double)s->nodes[i].sent_bytes / whole > out->most_copies)
			out->most_copies = (double)s->nodes[i].sent_bytes / whole;
}

static void run_memory(const struct scale *s, struct scale_result *out)
{
	uint32_t some = s->o.nodes < 32 ? s->o.nodes : 32;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < some; i++)
		sum += scale_resident(&s->nodes[i * (s->o.nodes / some)]);
	out->memory_bytes = sum / some;
	out->memory_shard_bytes = scale_resident(&s->nodes[s->shard]);
}

void scale_run(const struct scale_options *o, struct scale_result *out)
{
	struct run_totals before, after;
	struct scale s;
	uint64_t shard_in, shard_cpu;
	*out = (struct scale_result){.bound_ns = (uint64_t)((double)o->size * 8 / o->rate_gbit)};
	scale_open(&s, o);
	run_rest(&s, out);
	run_put(&s);
	if (o->warm)
		run_warm(&s);
	run_totals(&s, &before);
	shard_in = s.nodes[s.shard].messages_in;
	shard_cpu = s.nodes[s.shard].cpu_ns;
	s.hellos_refused = 0;
	run_gets(&s, out);
	run_totals(&s, &after);
	run_times(&s, out);
	run_copies(&s, out);
	run_memory(&s, out);
	out->messages_per_get = (double)(after.messages - before.messages -
					 (after.gossip_messages - before.gossip_messages)) /
				(out->gets ? out->gets : 1);
	out->bytes_per_get =
		(double)(after.bytes - before.bytes - (after.gossip_bytes - before.gossip_bytes)) /
		(out->gets ? out->gets : 1);
	out->lost = after.lost - before.lost;
	out->hellos_refused = s.hellos_refused;
	out->shard_messages = s.nodes[s.shard].messages_in - shard_in;
	out->shard_cpu_ns = s.nodes[s.shard].cpu_ns - shard_cpu;
	out->get = run_cost(&s.cost[MESSAGE_GET]);
	out->have = run_cost(&s.cost[MESSAGE_HAVE]);
	out->drop = run_cost(&s.cost[MESSAGE_DROP]);
	out->codec = run_cost(&s.cost_codec);
	out->failovers = after.failovers - before.failovers;
	out->hedges = after.hedges - before.hedges;
	scale_close(&s);
}
