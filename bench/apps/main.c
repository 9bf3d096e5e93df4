/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of an application; `scripts/bench apps` starts one per node. Rank 0 prints {"warm"}
 * after the first round and {"seconds": [of each other round]} at the end; a worker {"pieces": how
 * many it has brought}.
 */
#include "app.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../payload.h"
#include "internal/program/arguments.h"

/* The rounds of the applications of Hoplite's evaluation (SIGCOMM 2021, section 5). */
static const struct app apps[] = {
	{.name = "sgd", .sum = true, .half = true, .up_share = 1}, /* with a parameter server */
	{.name = "policy", .up_share = 16}, /* IMPALA: policy out, trajectories back */
	{.name = "a3c", .sum = true, .up_share = 1},
	{.name = "serving", .up_share = 4096}, /* an ensemble: query out, votes back */
};

static uint32_t this_rank;

void app_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "app: rank %u: ", this_rank);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static void usage(void)
{
	fprintf(stderr,
		"usage: app --app sgd|policy|a3c|serving --transport sarissa|tcp --ranks N --rank I\n"
		"           --bytes N --rounds R [--work-ms T] [--server IP --port P]\n");
	exit(2);
}

static const struct app *find_app(const char *name)
{
	for (size_t i = 0; i < sizeof(apps) / sizeof(apps[0]); i++)
		if (strcmp(apps[i].name, name) == 0)
			return &apps[i];
	return NULL;
}

static const struct transport *find_transport(const char *name)
{
	const struct transport *const all[] = {&over_sarissa, &over_tcp};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

static const struct transport *parse(int argc, char **argv, struct run *r)
{
	static const struct option known[] = {
		{"app", 1, NULL, 'a'},	   {"transport", 1, NULL, 't'}, {"ranks", 1, NULL, 'n'},
		{"rank", 1, NULL, 'i'},	   {"bytes", 1, NULL, 'b'},	{"rounds", 1, NULL, 'r'},
		{"work-ms", 1, NULL, 'w'}, {"server", 1, NULL, 's'},	{"port", 1, NULL, 'p'},
		{NULL, 0, NULL, 0}};
	const struct transport *t = NULL;
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (c) {
		case 'a':
			r->app = find_app(optarg);
			break;
		case 't':
			t = find_transport(optarg);
			break;
		case 'n':
			r->ranks = (uint32_t)argument_need("--ranks", optarg, 2, RANKS_MAX);
			break;
		case 'i':
			r->rank = (uint32_t)argument_need("--rank", optarg, 0, RANKS_MAX - 1);
			break;
		case 'b':
			r->model_bytes =
				argument_need("--bytes", optarg, sizeof(float), INT64_MAX) /
				sizeof(float) * sizeof(float);
			break;
		case 'r':
			r->rounds = (uint32_t)argument_need("--rounds", optarg, 1, UINT32_MAX);
			break;
		case 'w':
			r->work_ms = argument_need_real("--work-ms", optarg, 1e6);
			break;
		case 's':
			r->server = optarg;
			break;
		case 'p':
			r->port = (uint16_t)argument_need("--port", optarg, 1, UINT16_MAX);
			break;
		default:
			usage();
		}
	}
	if (!r->app || !t || r->rank >= r->ranks || r->rounds == 0 || optind != argc)
		usage();
	return t;
}

int main(int argc, char **argv)
{
	struct run r = {.server = "127.0.0.1", .port = 5400};
	const struct transport *t = parse(argc, argv, &r);
	this_rank = r.rank;
	r.up_bytes = r.model_bytes / r.app->up_share / sizeof(float) * sizeof(float);
	if (r.up_bytes == 0 || r.model_bytes / sizeof(float) < r.ranks)
		app_fail("--bytes is too small for this application: at least %u",
			 (r.app->up_share > r.ranks ? r.app->up_share : r.ranks) * 4);
	payload_precise_timers();
	t->open(&r);
	(r.rank == 0 ? app_serve : app_work)(&r, t);
	t->close();
	return 0;
}
