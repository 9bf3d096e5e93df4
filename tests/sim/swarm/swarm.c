/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the swarm: draws runs from seeds, says which seed failed and how to replay.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "internal/program/arguments.h"
#include "full/history.h"
#include "swarm.h"
#include "tally.h"

bool history_strict, swarm_one_clock, swarm_inside_writes;

static char replay[256]; /* what repeats the present run, for a crash in it */

static void usage(FILE *to)
{
	fprintf(to,
		"usage: swarm --seed N|random --runs K [--nodes N] [--scenario NAME] [--kind KIND] [--strict]\n"
		"             [--tally] [--fired] [--one-clock]\n"
		"             [--inside-writes] [--verbose]\n"
		"kinds: transport, objects, wide, reduces, deadlines (without any: every scenario in "
		"turn)\n"
		"--strict: judges also what an owner of a fixed list does just after its restart\n"
		"--one-clock: the clocks of all nodes agree (else, in half of the runs, none do)\n"
		"--inside-writes: processes die between two writes to shared memory, too\n"
		"--tally: how often each check had something to judge\n"
		"--fired: fails when a check of these scenarios never had\n"
		"scenarios:\n");
	for (const struct swarm_scenario *c = swarm_scenarios; c->name; c++)
		fprintf(to, "  %-10s %s\n", c->name, c->help);
}

static void crashed(int signal)
{
	static const char text[] = "swarm: crashed; replay with: ";
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDERR_FILENO, replay, strlen(replay)) < 0)
		_exit(2);
	raise(signal); /* SA_RESETHAND: now for real */
}

static void catch_crashes(void)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
	struct sigaction a = {.sa_handler = crashed, .sa_flags = SA_RESETHAND | SA_NODEFER};
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &a, NULL);
}

static const struct swarm_scenario *scenario_find(const char *name)
{
	const struct swarm_scenario *c = swarm_scenarios;
	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

static const char *scenario_kind(const struct swarm_scenario *c)
{
	if (c->deadlines)
		return "deadlines";
	return c->wide ? "wide" : c->reduces ? "reduces" : c->full ? "objects" : "transport";
}

enum { SCENARIOS_MAX = 32 };

struct arguments {
	uint64_t seed, runs;
	uint32_t nodes;
	const struct swarm_scenario *only; /* NULL: each in turn */
	const char *kind;		   /* NULL: all */
	bool verbose, tally, fired;
};

/* A number, or "random": below 2^32, so that it is easily typed. */
static uint64_t seed_parse(const char *text)
{
	uint32_t drawn;
	if (strcmp(text, "random") != 0)
		return argument_need("--seed", text, 0, UINT64_MAX);
	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn)) {
		fprintf(stderr, "swarm: the kernel has no random number\n");
		exit(1);
	}
	return drawn;
}

static bool arguments_parse(struct arguments *a, int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"runs", required_argument, NULL, 'r'},
		{"nodes", required_argument, NULL, 'n'},
		{"scenario", required_argument, NULL, 'c'},
		{"kind", required_argument, NULL, 'k'},
		{"verbose", no_argument, NULL, 'v'},
		{"strict", no_argument, NULL, 'S'},
		{"tally", no_argument, NULL, 'T'},
		{"one-clock", no_argument, NULL, 'C'},
		{"fired", no_argument, NULL, 'F'},
		{"inside-writes", no_argument, NULL, 'W'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;
	while ((c = getopt_long(argc, argv, "s:r:n:c:k:vh", options, NULL)) != -1) {
		switch (c) {
		case 's':
			a->seed = seed_parse(optarg);
			break;
		case 'r':
			a->runs = argument_need("--runs", optarg, 1, UINT64_MAX);
			break;
		case 'n':
			a->nodes = (uint32_t)argument_need("--nodes", optarg, 2, SWARM_NODES_MAX);
			break;
		case 'c':
			a->only = scenario_find(optarg);
			if (!a->only)
				return false;
			break;
		case 'k':
			a->kind = optarg;
			break;
		case 'v':
			a->verbose = true;
			break;
		case 'S':
			history_strict = true;
			break;
		case 'C':
			swarm_one_clock = true;
			break;
		case 'W':
			swarm_inside_writes = true;
			break;
		case 'T':
			a->tally = true;
			break;
		case 'F':
			a->fired = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			return false;
		}
	}
	if (a->kind && strcmp(a->kind, "transport") != 0 && strcmp(a->kind, "objects") != 0 &&
	    strcmp(a->kind, "wide") != 0 && strcmp(a->kind, "reduces") != 0 &&
	    strcmp(a->kind, "deadlines") != 0)
		return false;
	return optind == argc;
}

static void replay_set(const struct arguments *a, const char *program, uint64_t seed,
		       const char *scenario)
{
	int used = snprintf(replay, sizeof(replay), "%s --seed %llu --runs 1 --scenario %s",
			    program, (unsigned long long)seed, scenario);
	if (a->nodes)
		used += snprintf(replay + used, sizeof(replay) - (size_t)used, " --nodes %u",
				 a->nodes);
	snprintf(replay + used, sizeof(replay) - (size_t)used, "%s%s%s --verbose\n",
		 history_strict ? " --strict" : "", swarm_one_clock ? " --one-clock" : "",
		 swarm_inside_writes ? " --inside-writes" : "");
}

int main(int argc, char **argv)
{
	struct arguments a = {.seed = 1, .runs = 100};
	uint64_t failed = 0;
	const struct swarm_scenario *scenarios[SCENARIOS_MAX];
	uint32_t count = 0;
	bool objects = false, reduces = false;
	if (!arguments_parse(&a, argc, argv)) {
		usage(stderr);
		return 2;
	}
	for (const struct swarm_scenario *c = swarm_scenarios; c->name; c++)
		if (!a.kind || strcmp(a.kind, scenario_kind(c)) == 0)
			scenarios[count++] = c;
	if (!count) {
		fprintf(stderr, "swarm: no such scenarios: build control/core with it\n");
		return 1;
	}
	catch_crashes();
	printf("swarm: seeds %llu to %llu\n", (unsigned long long)a.seed,
	       (unsigned long long)(a.seed + a.runs - 1));
	fflush(stdout);
	for (uint64_t k = 0; k < a.runs; k++) {
		uint64_t seed = a.seed + k;
		const struct swarm_scenario *c = a.only ? a.only : scenarios[seed % count];
		reduces |= c->reduces;
		objects |= c->full && !c->reduces;
		replay_set(&a, argv[0], seed, c->name);
		if (!swarm_run(c, seed, a.nodes, a.verbose)) {
			failed++;
			fprintf(stderr, "swarm: replay with: %s", replay);
		}
	}
	if (a.tally)
		tally_print();
	if (a.fired)
		failed += tally_missing(objects, reduces, swarm_inside_writes);
	printf("swarm: %llu runs, %llu failed\n", (unsigned long long)a.runs,
	       (unsigned long long)failed);
	return failed ? 1 : 0;
}
