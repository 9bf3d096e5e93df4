/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void world_deliver(void *context, struct network_packet *p)
{
	struct world *w = context;
	node_deliver(&w->nodes[p->to + p->to_port * w->count], p);
}

struct node_options world_options(void)
{
	struct node_options o = {
		.store_bytes = 16 << 20, .msg_slots = 16, .table_slots = 64, .turn_ns = 0};
	engine_config_default(&o.config);
	o.config.mtu = 1500;
	o.config.workers = 1;
	o.config.conns_max = 64;
	o.config.buffers_max = 64;
	o.config.edges_max = 128;
	o.config.msgs_max = 64;
	return o;
}

void world_init(struct world *w, uint32_t count, const struct network_link *link,
		const struct node_options *o, uint64_t seed, bool v6)
{
	*w = (struct world){.count = count,
			    .engines = count * o->config.workers,
			    .seed = seed,
			    .print_violations = true};
	events_init(&w->events, WORLD_START_NS);
	network_init(&w->net, &w->events, count, link, seed, v6);
	w->net.ports = o->config.workers;
	w->net.deliver = world_deliver;
	w->net.deliver_context = w;
	w->nodes = calloc(w->engines, sizeof(*w->nodes));
	assert(w->nodes);
	for (uint32_t i = 0; i < w->engines; i++)
		node_init(&w->nodes[i], w, i, o);
}

void world_free(struct world *w)
{
	for (uint32_t i = w->engines; i-- > 0;) { /* the first workers own the memory */
		node_check(&w->nodes[i]);
		node_free(&w->nodes[i]);
	}
	network_free(&w->net);
	events_free(&w->events);
	free(w->nodes);
}

uint64_t world_now(const struct world *w)
{
	return w->events.now_ns;
}

void world_run(struct world *w, uint64_t for_ns)
{
	uint64_t until = world_now(w) + for_ns;
	while (events_step(&w->events, until))
		;
}

uint64_t world_until(struct world *w, uint64_t for_ns, bool (*done)(void *context), void *context)
{
	uint64_t start = world_now(w), until = start + for_ns;
	while (!done(context))
		if (!events_step(&w->events, until))
			return UINT64_MAX;
	return world_now(w) - start;
}

struct world_pair {
	struct world *w;
	uint32_t a, b;
};

static bool world_connected(void *context)
{
	struct world_pair *p = context;
	return node_conn_to(&p->w->nodes[p->a], p->b) && node_conn_to(&p->w->nodes[p->b], p->a);
}

uint64_t world_connect(struct world *w, uint32_t a, uint32_t b, uint64_t for_ns)
{
	struct world_pair p = {w, a, b};
	node_connect(&w->nodes[a], b);
	return world_until(w, for_ns, world_connected, &p);
}

uint32_t world_edge(struct world *w, uint32_t from, uint32_t from_buffer, uint32_t to,
		    uint32_t to_buffer)
{
	uint32_t in = node_in(&w->nodes[to], to_buffer, from, 0, 0);
	return node_out(&w->nodes[from], from_buffer, to, w->nodes[to].edges[in].handle, 0, 0);
}

static bool world_is_done(void *context)
{
	struct world_pair *p = context;
	return p->w->nodes[p->a].buffers[p->b].done;
}

uint64_t world_buffer_done(struct world *w, uint32_t node, uint32_t buffer, uint64_t for_ns)
{
	struct world_pair p = {w, node, buffer};
	return world_until(w, for_ns, world_is_done, &p);
}

static bool world_is_ended(void *context)
{
	struct world_pair *p = context;
	return p->w->nodes[p->a].edges[p->b].state != EDGE_OPEN;
}

uint64_t world_edge_ended(struct world *w, uint32_t node, uint32_t edge, uint64_t for_ns)
{
	struct world_pair p = {w, node, edge};
	return world_until(w, for_ns, world_is_ended, &p);
}

void world_violation(struct world *w, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!w->violations++)
		snprintf(w->first, sizeof(w->first), "%s", text);
	if (w->print_violations && w->violations <= 10)
		fprintf(stderr, "violation at %.6f ms (seed %llu): %s\n",
			(double)(world_now(w) - WORLD_START_NS) / 1e6, (unsigned long long)w->seed,
			text);
}
