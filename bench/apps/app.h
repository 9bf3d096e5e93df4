/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications of a task-based system, as rounds between a server (rank 0) and its workers: the
 * server gives its model to some of them, each works on it for a while and brings something back,
 * the server takes what came first. What carries the bytes is a struct transport, so that every
 * system runs the same program.
 */
#ifndef SARISSA_BENCH_APPS_APP_H
#define SARISSA_BENCH_APPS_APP_H

#include <stdbool.h>
#include <stdint.h>

enum { RANKS_MAX = 64, PATIENCE_S = 300 };

struct app {
	const char *name;
	bool sum;	   /* the server wants the sum of what is brought, not each piece */
	bool half;	   /* the first half of the workers suffices for a round */
	uint32_t up_share; /* what is brought: so many times smaller than the model */
};

struct run {
	const struct app *app;
	uint32_t ranks, rank, rounds;
	uint64_t model_bytes, up_bytes; /* of f32 */
	double work_ms;			/* mean of what a worker takes for one model */
	const char *server;		/* TCP: address of rank 0 */
	uint16_t port;
};

/* The data that a worker gets with each model. */
struct ticket {
	uint32_t version;
	uint32_t stop; /* 1: there is no model, the run is over */
	uint64_t digest;
};

/* Ranks are workers' numbers; arrays have RANKS_MAX places. A failure ends the program with its
 * reason. */
struct transport {
	const char *name;
	void (*open)(const struct run *r);
	void (*close)(void);
	/* of the server */
	void (*give)(const bool *to, const struct ticket *ticket, const float *model);
	/* The sum of the first `want` pieces; used[]: whose. Valid until the next call. */
	const float *(*reduce)(uint32_t want, bool *used);
	/* One piece of every worker. Valid until the next call. */
	void (*gather)(const float **pieces);
	/* of a worker: the next model, valid until the next call; NULL with ticket->stop */
	const float *(*take)(struct ticket *ticket);
	void (*bring)(const float *piece);
};

extern const struct transport over_sarissa, over_tcp;

void app_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void app_serve(const struct run *r, const struct transport *t);
void app_work(const struct run *r, const struct transport *t);

#endif
