/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs of a swarm without control: which object goes from which node to which others, when they are
 * given up, and whether all have ended. swarm_run.c calls it.
 */
#include "swarm.h"

#include <stdio.h>

#define SWARM_RETRY_NS (20 * WORLD_MS)

static bool wants(const struct swarm_job *j, uint32_t node)
{
	return j->wanted >> node & 1;
}

static struct node_buffer *job_buffer(struct swarm *s, const struct swarm_job *j, uint32_t node)
{
	uint32_t b = j->buffer[node];
	return b == NODE_NONE ? NULL : &s->w.nodes[node].buffers[b];
}

void swarm_job_add(struct swarm *s)
{
	if (s->jobs_count == SWARM_JOBS_MAX)
		return;
	uint32_t n = s->w.count, origin = (uint32_t)prng_below(&s->draw, n);
	if (s->scenario->incast && origin == 0)
		origin = 1;
	struct node *from = &s->w.nodes[origin];
	uint64_t size =
		1 + prng_below(&s->draw, 1ull << (prng_chance(&s->draw, 300000)
							  ? prng_between(&s->draw, 0, 12)
							  : prng_between(&s->draw, 13, 20)));
	uint32_t largest = engine_chunk_bytes(from->config.mtu, !s->w.net.v6);
	uint32_t chunk = prng_chance(&s->draw, 600000)
				 ? largest
				 : 64 * (uint32_t)prng_between(&s->draw, 1, largest / 64);
	uint64_t wanted = prng_next(&s->draw) & ~(1ull << origin);
	uint64_t seed = prng_next(&s->draw), ready = size;
	if (prng_chance(&s->draw, 300000))
		ready = prng_below(&s->draw, size);
	if (!from->alive || !node_has_room(from) || !node_has_store(from, size) ||
	    size / chunk > 8000)
		return;
	struct swarm_job *j = &s->jobs[s->jobs_count++];
	*j = (struct swarm_job){.seed = seed,
				.size = size,
				.chunk_bytes = chunk,
				.origin = origin,
				.wanted = s->scenario->incast ? 1 : wanted};
	if (n < 64)
		j->wanted &= (1ull << n) - 1;
	for (uint32_t i = 0; i < n; i++)
		j->buffer[i] = j->parent[i] = NODE_NONE;
	j->buffer[origin] = node_source(from, size, chunk, seed, ready);
}

static void job_cut_edge(struct swarm *s, struct swarm_job *j, uint32_t node)
{
	struct node *n = &s->w.nodes[node];
	uint32_t parent = j->parent[node];
	if (parent == NODE_NONE)
		return;
	struct node *p = &s->w.nodes[parent];
	enum edge_state in = n->edges[j->in_edge[node]].state;
	if (n->alive && in != EDGE_DROPPING && in != EDGE_DROPPED)
		node_drop_edge(n, j->in_edge[node]);
	enum edge_state out = p->edges[j->out_edge[node]].state;
	if (p->alive && out != EDGE_DROPPING && out != EDGE_DROPPED)
		node_drop_edge(p, j->out_edge[node]);
	j->parent[node] = NODE_NONE;
}

void swarm_job_cancel(struct swarm *s, struct swarm_job *j)
{
	j->cancelled = true;
	for (uint32_t i = 0; i < s->w.count; i++) {
		struct node_buffer *b = job_buffer(s, j, i);
		if (b && b->live && !b->dropping)
			node_drop_buffer(&s->w.nodes[i], j->buffer[i]);
		j->parent[i] = NODE_NONE; /* its edges go with the buffer */
	}
}

/* Does node depend on ancestor through its parents? */
static bool job_below(const struct swarm_job *j, uint32_t node, uint32_t ancestor)
{
	for (uint32_t hops = 0; node != NODE_NONE && hops < SWARM_NODES_MAX; hops++) {
		if (node == ancestor)
			return true;
		node = j->parent[node];
	}
	return false;
}

static uint32_t job_choose(struct swarm *s, const struct swarm_job *j, uint32_t node)
{
	uint32_t start = (uint32_t)prng_below(&s->draw, s->w.count), found = NODE_NONE;
	for (uint32_t k = 0; k < s->w.count; k++) {
		uint32_t p = (start + k) % s->w.count;
		struct node_buffer *b = job_buffer(s, j, p);
		if (p == node || !b || !b->live || b->dropping || job_below(j, p, node))
			continue;
		if (b->kind == BUFFER_SINK && j->parent[p] == NODE_NONE && !b->done)
			continue; /* waits for a parent itself */
		if (found == NODE_NONE || (s->chain && b->kind == BUFFER_SINK))
			found = p;
	}
	return found;
}

/* Edges only between nodes that are connected; else asks for the connection. */
static bool job_connected(struct swarm *s, uint32_t a, uint32_t b)
{
	if (node_conn_to(&s->w.nodes[a], b) && node_conn_to(&s->w.nodes[b], a))
		return true;
	if (world_now(&s->w) >= s->asked_ns[a][b] + SWARM_RETRY_NS) {
		s->asked_ns[a][b] = world_now(&s->w);
		node_connect(&s->w.nodes[a], b);
	}
	return false;
}

static void job_attach(struct swarm *s, struct swarm_job *j, uint32_t node)
{
	struct node *n = &s->w.nodes[node];
	uint32_t parent = job_choose(s, j, node);
	if (parent == NODE_NONE || !s->w.nodes[parent].alive || !node_has_room(n) ||
	    !node_has_room(&s->w.nodes[parent]) || !node_has_store(n, 0) ||
	    !node_has_store(&s->w.nodes[parent], 0) || !job_connected(s, node, parent))
		return;
	const struct node_buffer *b = job_buffer(s, j, node);
	const uint64_t *have = (const uint64_t *)(n->store.base + b->bitmap_offset);
	uint64_t copy[SWARM_JOBS_MAX * 16]; /* 8000 chunks and more */
	memcpy(copy, have, chunk_bitmap_bytes(chunk_count(b->size, b->chunk_bytes)));
	j->parent[node] = parent;
	j->parent_life[node] = s->w.nodes[parent].life;
	j->in_edge[node] = node_in(n, j->buffer[node], parent, 0, 0);
	j->out_edge[node] = node_out_resumed(&s->w.nodes[parent], j->buffer[parent], node,
					     n->edges[j->in_edge[node]].handle, copy);
}

static void job_repair(struct swarm *s, struct swarm_job *j, uint32_t node)
{
	struct node *n = &s->w.nodes[node];
	struct node_buffer *b = job_buffer(s, j, node);
	if (!n->alive)
		return;
	if (b && b->dropped) { /* its store was lost */
		j->buffer[node] = NODE_NONE;
		j->parent[node] = NODE_NONE;
		b = NULL;
	}
	if (!b && node_has_room(n) && node_has_store(n, j->size)) {
		j->buffer[node] = node_sink(n, j->size, j->chunk_bytes, j->seed);
		return;
	}
	if (!b || b->dropping || (!b->live && !node_has_room(n)))
		return;
	if (!b->live) {
		node_adopt(n, j->buffer[node]);
		j->parent[node] = NODE_NONE;
		return;
	}
	if (b->done) {
		job_cut_edge(s, j, node);
		return;
	}
	uint32_t parent = j->parent[node];
	if (parent != NODE_NONE) {
		struct node *p = &s->w.nodes[parent];
		bool broken = !p->alive || p->life != j->parent_life[node] ||
			      p->edges[j->out_edge[node]].state == EDGE_FAILED ||
			      p->edges[j->out_edge[node]].state == EDGE_DROPPED ||
			      n->edges[j->in_edge[node]].state != EDGE_OPEN;
		/* an OUT edge that is done but left chunks behind, which others were to bring */
		broken |= p->edges[j->out_edge[node]].state == EDGE_DONE;
		if (!broken)
			return;
		job_cut_edge(s, j, node);
	}
	job_attach(s, j, node);
}

static void job_produce(struct swarm *s, struct swarm_job *j)
{
	struct node *n = &s->w.nodes[j->origin];
	struct node_buffer *b = job_buffer(s, j, j->origin);
	if (!n->alive || !b || b->dropped || b->dropping || b->kind != BUFFER_SOURCE)
		return;
	if (!b->live) {
		if (node_has_room(n))
			node_adopt(n, j->buffer[j->origin]);
		return;
	}
	if (b->ready_bytes == b->size)
		return;
	uint64_t step = 1 + prng_below(&s->draw, b->size / 8 + 1);
	uint64_t to = s->healing ? b->size : b->ready_bytes + step;
	node_advance(n, j->buffer[j->origin], to < b->size ? to : b->size);
}

void swarm_plan(struct swarm *s)
{
	for (uint32_t k = 0; k < s->jobs_count; k++) {
		struct swarm_job *j = &s->jobs[k];
		if (j->cancelled)
			continue;
		job_produce(s, j);
		for (uint32_t i = 0; i < s->w.count; i++)
			if (wants(j, i) && i != j->origin)
				job_repair(s, j, i);
	}
}

void swarm_jobs_print(struct swarm *s)
{
	for (uint32_t k = 0; k < s->jobs_count; k++) {
		struct swarm_job *j = &s->jobs[k];
		for (uint32_t i = 0; i < s->w.count && !j->cancelled; i++) {
			const struct node_buffer *b = job_buffer(s, j, i);
			uint32_t p = j->parent[i];
			if (!wants(j, i) || i == j->origin || (b && b->done))
				continue;
			fprintf(stderr, "  job %u (%llu bytes from node %u) at node %u: ", k,
				(unsigned long long)j->size, j->origin, i);
			if (!b)
				fprintf(stderr, "no buffer\n");
			else if (p == NODE_NONE)
				fprintf(stderr, "no parent, live %d\n", b->live);
			else
				fprintf(stderr,
					"%llu ready, parent %u, IN state %u, OUT state %u (%s)\n",
					(unsigned long long)b->ready_bytes, p,
					s->w.nodes[i].edges[j->in_edge[i]].state,
					s->w.nodes[p].edges[j->out_edge[i]].state,
					reason_name(s->w.nodes[p].edges[j->out_edge[i]].reason));
		}
	}
}

bool swarm_jobs_done(const struct swarm *s)
{
	for (uint32_t k = 0; k < s->jobs_count; k++) {
		const struct swarm_job *j = &s->jobs[k];
		for (uint32_t i = 0; i < s->w.count && !j->cancelled; i++) {
			if (!wants(j, i) || i == j->origin)
				continue;
			uint32_t b = j->buffer[i];
			if (b == NODE_NONE || !s->w.nodes[i].buffers[b].done)
				return false;
		}
	}
	return true;
}

void swarm_jobs_give_up(struct swarm *s)
{
	for (uint32_t k = 0; k < s->jobs_count; k++) {
		struct swarm_job *j = &s->jobs[k];
		bool hope = j->cancelled;
		for (uint32_t i = 0; i < s->w.count; i++) {
			const struct node_buffer *b = job_buffer(s, j, i);
			hope |= b && !b->dropped && !b->dropping &&
				(b->kind == BUFFER_SOURCE || b->done);
		}
		for (uint32_t i = 0; i < s->w.count; i++)
			hope &= node_has_store(&s->w.nodes[i], j->size);
		if (!hope)
			swarm_job_cancel(s, j);
	}
}
