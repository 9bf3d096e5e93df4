/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds of an application, whatever carries the bytes. Every model is checked whole, of
 * everything that is brought some elements of each packet. */
#include "app.h"

#include <stdio.h>
#include <stdlib.h>

#include "../gradient.h"
#include "../payload.h"

enum { SAMPLE_EVERY = 61 }; /* elements; a chunk has some hundred */

/* The seed of piece number `piece` of worker `rank`. */
static uint32_t app_seed(uint32_t rank, uint32_t piece)
{
	return rank * 100000 + piece;
}

/* Checks the sum of the pieces of these workers, one or several. */
static void app_check(const struct run *r, const float *got, const bool *used,
		      const uint32_t *pieces)
{
	for (uint64_t i = 0; i < r->up_bytes / sizeof(float); i += SAMPLE_EVERY) {
		int64_t expected = 0;
		for (uint32_t rank = 1; rank < r->ranks; rank++)
			if (used[rank])
				expected += gradient_at(i, app_seed(rank, pieces[rank]));
		if ((int64_t)got[i] != expected)
			app_fail("element %llu is %g, not %lld", (unsigned long long)i, got[i],
				 (long long)expected);
	}
}

/* The pieces of a round; changes the model. Sets used[]: the workers that get the next one. */
static void app_collect(const struct run *r, const struct transport *t, const uint32_t *pieces,
			float *model, bool *used)
{
	uint32_t workers = r->ranks - 1;
	if (r->app->sum) {
		const float *sum = t->reduce(r->app->half ? (workers + 1) / 2 : workers, used);
		app_check(r, sum, used, pieces);
		for (uint64_t i = 0; i < r->up_bytes / sizeof(float); i++)
			model[i] += sum[i];
		return;
	}
	const float *each[RANKS_MAX];
	t->gather(each);
	for (uint32_t rank = 1; rank < r->ranks; rank++) {
		bool alone[RANKS_MAX] = {false};
		alone[rank] = true;
		app_check(r, each[rank], alone, pieces);
		used[rank] = true;
		model[rank] += 1;
	}
}

/* The time of each round but the first, after which a line says that the measurement begins. */
static int64_t app_report(const struct run *r, uint32_t round, int64_t begin_ns)
{
	int64_t now_ns = payload_now_ns();
	if (round == 0)
		printf("{\"warm\": true}\n{\"seconds\": [");
	else
		printf("%s%.6f", round > 1 ? ", " : "", (double)(now_ns - begin_ns) / 1e9);
	if (round + 1 == r->rounds)
		printf("]}\n");
	fflush(stdout);
	return now_ns;
}

void app_serve(const struct run *r, const struct transport *t)
{
	uint32_t pieces[RANKS_MAX] = {0};
	bool to[RANKS_MAX];
	float *model = calloc(1, r->model_bytes);
	if (!model)
		app_fail("no memory for the model");
	memset(to, true, sizeof(to));
	int64_t begin = 0;
	for (uint32_t round = 0; round < r->rounds; round++) {
		struct ticket ticket = {.version = round,
					.digest = payload_digest(model, r->model_bytes)};
		t->give(to, &ticket, model);
		memset(to, false, sizeof(to));
		app_collect(r, t, pieces, model, to);
		for (uint32_t rank = 1; rank < r->ranks; rank++)
			pieces[rank] += to[rank];
		begin = app_report(r, round, begin);
	}
	memset(to, true, sizeof(to));
	t->give(to, &(struct ticket){.version = r->rounds, .stop = 1}, NULL);
	free(model);
}

/* Half to one and a half of the mean, without using the CPU, as if a device of its own worked. */
static void app_compute(const struct run *r, uint32_t piece)
{
	double share = 0.5 + (gradient_at(piece, r->rank) + 512) / 1024.0;
	payload_sleep_until(payload_now_ns() + (int64_t)(share * r->work_ms * 1e6));
}

void app_work(const struct run *r, const struct transport *t)
{
	uint64_t count = r->up_bytes / sizeof(float);
	float *piece = malloc(r->up_bytes);
	struct ticket ticket;
	const float *model;
	uint32_t number = 0;
	if (!piece)
		app_fail("no memory for what is brought");
	while ((model = t->take(&ticket))) {
		if (payload_digest(model, r->model_bytes) != ticket.digest)
			app_fail("model %u is not what was sent", ticket.version);
		gradient_fill(piece, count, app_seed(r->rank, number));
		app_compute(r, number++);
		t->bring(piece);
	}
	printf("{\"pieces\": %u}\n", number);
	free(piece);
}
