/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of one node added up: LOCAL edges alone, without packets, beside the kernel that they
 * call. */
#include "dataplane.h"
#include "internal/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rte_cycles.h>
#include "core/engine.h"
#include "core/kernel/kernel.h"
#include "io/node/worker.h"

enum { SOURCES = 2, RUNS = 15, EVENTS = 32 };

struct local {
	struct engine *engine;
	uint64_t engine_bytes, store_bytes;
	struct counters counters;
	uint8_t *store; /* the sum, its sources, bitmaps */
	uint64_t object_bytes, chunks;
	uint16_t chunk_bytes, generation;
};

static uint64_t local_maps_offset(const struct local *l)
{
	return (SOURCES + 1) * l->object_bytes;
}

static uint64_t local_maps_bytes(const struct local *l)
{
	return chunk_counted_bytes(l->chunks) + SOURCES * chunk_bitmap_bytes(l->chunks);
}

static bool local_open(struct local *l)
{
	struct engine_config c;
	engine_config_default(&c);
	l->chunks = chunk_count(l->object_bytes, l->chunk_bytes);
	c.incarnation = 1;
	c.store_bytes = l->store_bytes = local_maps_offset(l) + local_maps_bytes(l);
	c.store = l->store = end_memory(c.store_bytes);
	c.counters = &l->counters;
	l->engine_bytes = engine_bytes(&c);
	void *memory = end_memory(l->engine_bytes);
	if (!l->store || !memory)
		return false;
	float *word = (float *)(void *)(l->store + l->object_bytes);
	for (uint64_t i = 0; i < SOURCES * l->object_bytes / 4; i++)
		word[i] = (float)(i % 1000);
	l->engine = engine_init(memory, &c, worker_now_ns());
	return l->engine != NULL;
}

static void local_buffer(struct local *l, uint32_t index, uint8_t need, uint64_t bitmap_offset)
{
	struct record r = {.op = COMMAND_BUFFER};
	r.buffer.buffer = handle_make((uint16_t)index, l->generation);
	r.buffer.table_slot = TABLE_SLOT_NONE;
	r.buffer.store_offset = index * l->object_bytes;
	r.buffer.size = l->object_bytes;
	r.buffer.ready_bytes = bitmap_offset ? 0 : l->object_bytes;
	r.buffer.chunk_bytes = l->chunk_bytes;
	r.buffer.need = need;
	r.buffer.bitmap_offset = bitmap_offset;
	r.buffer.reduce_op = bitmap_offset ? REDUCE_SUM : 0;
	r.buffer.dtype = bitmap_offset ? REDUCE_F32 : 0;
	engine_command(l->engine, &r, worker_now_ns());
}

static void local_edge(struct local *l, uint32_t source, uint64_t bitmap_offset)
{
	struct record r = {.op = COMMAND_LOCAL};
	r.local.edge = r.local.source = handle_make((uint16_t)source, l->generation);
	r.local.buffer = handle_make(0, l->generation);
	r.local.chunks = (uint32_t)l->chunks;
	r.local.bitmap_offset = bitmap_offset;
	engine_command(l->engine, &r, worker_now_ns());
}

/* Ticks until it is said; false: it is not, or a record was refused. */
static bool local_until(struct local *l, enum event_op op)
{
	struct record events[EVENTS];
	for (uint64_t turn = 0; turn < 1000 + l->chunks; turn++) {
		engine_tick(l->engine, worker_now_ns());
		unsigned n = engine_events(l->engine, events, EVENTS);
		for (unsigned i = 0; i < n; i++)
			if (events[i].op == op)
				return true;
			else if (events[i].op == EVENT_REFUSED)
				return false;
	}
	return false;
}

static bool local_sum(struct local *l, uint64_t *cycles)
{
	uint64_t maps = local_maps_offset(l);
	memset(l->store + maps, 0, local_maps_bytes(l));
	l->generation = handle_next_generation(l->generation);
	for (uint32_t k = 1; k <= SOURCES; k++)
		local_buffer(l, k, 1, 0);
	local_buffer(l, 0, SOURCES, maps);
	maps += chunk_counted_bytes(l->chunks);
	uint64_t start = rte_rdtsc();
	for (uint32_t k = 1; k <= SOURCES; k++, maps += chunk_bitmap_bytes(l->chunks))
		local_edge(l, k, maps);
	bool done = local_until(l, EVENT_BUFFER_DONE);
	*cycles = rte_rdtsc() - start;
	for (uint32_t k = 0; k <= SOURCES && done; k++) {
		struct record r = {.op = COMMAND_DROP_BUFFER};
		r.progress.buffer = handle_make((uint16_t)k, l->generation);
		engine_command(l->engine, &r, worker_now_ns());
		done = local_until(l, EVENT_DROPPED);
	}
	return done;
}

static uint64_t local_kernel(struct local *l)
{
	kernel_many_fn *many = kernel_find_many(kernel_level_best(), REDUCE_SUM, REDUCE_F32);
	uint64_t start = rte_rdtsc();
	for (uint64_t at = 0; at < l->object_bytes; at += l->chunk_bytes) {
		const void *from[SOURCES];
		uint64_t left = l->object_bytes - at;
		for (uint32_t k = 0; k < SOURCES; k++)
			from[k] = l->store + (k + 1) * l->object_bytes + at;
		many(l->store + at, from, SOURCES,
		     left < l->chunk_bytes ? (uint32_t)left : l->chunk_bytes);
	}
	return rte_rdtsc() - start;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

bool local_run(uint16_t chunk_bytes, uint64_t object_bytes, struct local_result *out)
{
	static struct local l;
	uint64_t sum[RUNS], kernel[RUNS];
	l = (struct local){.chunk_bytes = chunk_bytes, .object_bytes = object_bytes};
	if (!local_open(&l)) {
		fprintf(stderr, "bench: not enough memory for three objects\n");
		return false;
	}
	for (unsigned i = 0; i < RUNS; i++) {
		kernel[i] = local_kernel(&l);
		memset(l.store, 0, object_bytes);
		if (!local_sum(&l, &sum[i])) {
			fprintf(stderr, "bench: the local objects are not added up\n");
			return false;
		}
	}
	const float *word = (const float *)(const void *)l.store;
	for (uint64_t i = 0, n = object_bytes / 4; i < n; i++)
		if (word[i] != word[i + n] + word[i + 2 * n]) {
			fprintf(stderr, "bench: the sum of local objects is wrong\n");
			return false;
		}
	munmap(l.engine, l.engine_bytes);
	munmap(l.store, l.store_bytes);
	qsort(sum, RUNS, sizeof(*sum), by_value);
	qsort(kernel, RUNS, sizeof(*kernel), by_value);
	*out = (struct local_result){.cycles = (double)sum[RUNS / 2] / (double)l.chunks,
				     .kernel_cycles = (double)kernel[RUNS / 2] / (double)l.chunks};
	return true;
}
