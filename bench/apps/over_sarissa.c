/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications over libsarissa. Names: model-V; ticket-I-N and up-I-N, the N-th of worker I; sum-V.
 * The server removes what nobody will ask for again; at the end, what was not answered stays.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "sarissa/sarissa.h"

enum { NAME_BYTES = 48, UNUSED_MAX = 4 * RANKS_MAX };

struct got {
	pthread_t thread;
	sar_buffer buffer;
	uint32_t rank;
	bool held;
};

/* The one connection of this process, and what the server knows of its workers. */
static struct link {
	const struct run *run;
	sar *s;
	uint32_t given[RANKS_MAX];   /* tickets: pieces are numbered like them */
	uint32_t version[RANKS_MAX]; /* the model that a worker was given last */
	uint32_t *readers;	     /* by version: workers that have not answered to it */
	uint32_t latest;
	sar_id unused[UNUSED_MAX]; /* objects to be removed while the workers work */
	uint32_t unused_count;
	struct got got[RANKS_MAX];
	sar_buffer held; /* server: the sum; worker: the model */
	bool is_held;
	uint32_t taken, brought; /* of a worker */
} sarissa;

static sar_id id_of(const char *kind, uint32_t a, uint32_t b)
{
	char name[NAME_BYTES];
	int length = snprintf(name, sizeof(name), "app-%s-%u-%u", kind, a, b);
	return sar_id_of(name, (size_t)length);
}

static void must(int result, const char *what)
{
	if (result < 0)
		app_fail("%s: %s (%s)", what, sar_strerror(result), sar_error_detail());
}

static void sarissa_open(const struct run *r)
{
	sarissa.run = r;
	sarissa.readers = calloc(r->rounds + 1, sizeof(*sarissa.readers));
	if (!sarissa.readers)
		app_fail("no memory");
	must(sar_open(NULL, &sarissa.s), "open");
}

static void release(struct got *g)
{
	if (g->held)
		sar_release(sarissa.s, &g->buffer);
	g->held = false;
}

static void release_held(void)
{
	if (sarissa.is_held)
		sar_release(sarissa.s, &sarissa.held);
	sarissa.is_held = false;
}

static void remove_later(const char *kind, uint32_t a, uint32_t b)
{
	sarissa.unused[sarissa.unused_count++] = id_of(kind, a, b);
}

static void remove_unused(void)
{
	while (sarissa.unused_count > 0)
		must(sar_delete(sarissa.s, sarissa.unused[--sarissa.unused_count]), "remove");
}

/* Worker i has answered: what it was given is of no use to it any more. */
static void answered(uint32_t i)
{
	remove_later("ticket", i, sarissa.given[i] - 1);
	remove_later("up", i, sarissa.given[i] - 1);
	if (--sarissa.readers[sarissa.version[i]] == 0)
		remove_later("model", sarissa.version[i], 0);
}

static void sarissa_close(void)
{
	release_held();
	for (uint32_t i = 0; i < RANKS_MAX; i++)
		release(&sarissa.got[i]);
	free(sarissa.readers);
	sar_close(sarissa.s);
}

static void sarissa_give(const bool *to, const struct ticket *ticket, const float *model)
{
	sarissa.latest = ticket->version;
	for (uint32_t i = 1; i < sarissa.run->ranks; i++) {
		if (!to[i])
			continue;
		must(sar_put(sarissa.s, id_of("ticket", i, sarissa.given[i]++), NULL, ticket,
			     sizeof(*ticket)),
		     "ticket");
		sarissa.version[i] = ticket->version;
		sarissa.readers[ticket->version]++;
	}
	if (model)
		must(sar_put(sarissa.s, id_of("model", ticket->version, 0), NULL, model,
			     sarissa.run->model_bytes),
		     "model");
	remove_unused();
}

static const float *sarissa_reduce(uint32_t want, bool *used)
{
	uint32_t workers = sarissa.run->ranks - 1;
	sar_id sources[RANKS_MAX], in[RANKS_MAX], target = id_of("sum", sarissa.latest, 0);
	const sar_reduction how = {.op = SAR_SUM, .dtype = SAR_F32, .num = want};
	for (uint32_t i = 0; i < workers; i++)
		sources[i] = id_of("up", i + 1, sarissa.given[i + 1] - 1);
	release_held();
	must(sar_reduce(sarissa.s, target, NULL, sources, workers, &how, PATIENCE_S * 1000000000ll),
	     "reduce");
	must(sar_get(sarissa.s, target, PATIENCE_S * 1000000000ll, &sarissa.held), "sum");
	sarissa.is_held = true;
	int count = sar_reduce_sources(sarissa.s, target, PATIENCE_S * 1000000000ll, in, RANKS_MAX);
	must(count, "sources");
	for (uint32_t i = 0; i < workers; i++)
		for (int k = 0; k < count; k++)
			used[i + 1] |= memcmp(&in[k], &sources[i], sizeof(in[k])) == 0;
	for (uint32_t i = 1; i <= workers; i++)
		if (used[i])
			answered(i);
	remove_later("sum", sarissa.latest, 0);
	return sarissa.held.data;
}

static void *gather_one(void *arg)
{
	struct got *g = arg;
	must(sar_get(sarissa.s, id_of("up", g->rank, sarissa.given[g->rank] - 1),
		     PATIENCE_S * 1000000000ll, &g->buffer),
	     "piece");
	g->held = true;
	return NULL;
}

static void sarissa_gather(const float **pieces)
{
	for (uint32_t i = 1; i < sarissa.run->ranks; i++) {
		struct got *g = &sarissa.got[i];
		release(g);
		g->rank = i;
		if (pthread_create(&g->thread, NULL, gather_one, g))
			app_fail("no thread");
	}
	for (uint32_t i = 1; i < sarissa.run->ranks; i++) {
		pthread_join(sarissa.got[i].thread, NULL);
		pieces[i] = sarissa.got[i].buffer.data;
		answered(i);
	}
}

static const float *sarissa_take(struct ticket *ticket)
{
	sar_buffer b;
	release_held();
	must(sar_get(sarissa.s, id_of("ticket", sarissa.run->rank, sarissa.taken++),
		     PATIENCE_S * 1000000000ll, &b),
	     "ticket");
	memcpy(ticket, b.data, sizeof(*ticket));
	sar_release(sarissa.s, &b);
	if (ticket->stop)
		return NULL;
	must(sar_get(sarissa.s, id_of("model", ticket->version, 0), PATIENCE_S * 1000000000ll,
		     &sarissa.held),
	     "model");
	sarissa.is_held = true;
	return sarissa.held.data;
}

static void sarissa_bring(const float *piece)
{
	must(sar_put(sarissa.s, id_of("up", sarissa.run->rank, sarissa.brought++), NULL, piece,
		     sarissa.run->up_bytes),
	     "piece");
}

const struct transport over_sarissa = {
	"sarissa",	sarissa_open,	sarissa_close, sarissa_give,
	sarissa_reduce, sarissa_gather, sarissa_take,  sarissa_bring,
};
