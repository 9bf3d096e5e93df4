/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "scale_run.h"

struct arguments {
	struct scale_options o;
	bool full;
	double ratio_max, copies_max, ms_max; /* 0: not asserted */
};

static void usage(FILE *out)
{
	fprintf(out,
		"usage: scale [OPTION]...\n"
		"\n"
		"One broadcast among many simulated nodes: the real control core of each, a model\n"
		"of the dataplane. Node 0 puts an object, all others get it. Prints one JSON line.\n"
		"\n"
		"  --nodes N          nodes (1000)\n"
		"  --size BYTES       of the object (1073741824)\n"
		"  --rate-gbit G      of each link, each way (100)\n"
		"  --hop-us U         from one node to another (10)\n"
		"  --mtu BYTES        (9000)\n"
		"  --stagger-ms MS    the gets begin at random times in so long (0: all at once)\n"
		"  --die K            K nodes fall silent when half of the bound is over (0)\n"
		"  --warm             all nodes have talked to the directory's node before\n"
		"  --turn-ns NS       of control for one message, event or request (2000)\n"
		"  --wake-ns NS       until a control that slept begins (5000)\n"
		"  --forward-ns NS    of a worker for a chunk that it passes on (2000)\n"
		"  --step-ns NS       of the model of the streams (1000)\n"
		"  --dead-ms MS       until the transport gives a silent peer up (3000)\n"
		"  --accepts N        newcomers that a node takes in a second (1000)\n"
		"  --burst N          and at once (1024: its table of connections)\n"
		"  --limit-s S        virtual seconds for the gets (60)\n"
		"  --seed N           (1)\n"
		"  --full             every packet through the real dataplane core (few nodes)\n"
		"  --max-ratio R      exit 1 when time / bound is above\n"
		"  --max-ms MS        exit 1 when the last get ends later\n"
		"  --max-copies C     exit 1 when the source sends more copies\n"
		"  --verbose          what the nodes log\n");
}

enum option_key {
	OPTION_NODES = 256,
	OPTION_SIZE,
	OPTION_RATE,
	OPTION_HOP,
	OPTION_MTU,
	OPTION_STAGGER,
	OPTION_DIE,
	OPTION_WARM,
	OPTION_TURN,
	OPTION_WAKE,
	OPTION_FORWARD,
	OPTION_STEP,
	OPTION_DEAD,
	OPTION_ACCEPTS,
	OPTION_BURST,
	OPTION_LIMIT,
	OPTION_SEED,
	OPTION_RATIO,
	OPTION_COPIES,
	OPTION_MS,
	OPTION_VERBOSE,
	OPTION_FULL,
	OPTION_HELP,
};

static const struct option options[] = {
	{"nodes", required_argument, NULL, OPTION_NODES},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"rate-gbit", required_argument, NULL, OPTION_RATE},
	{"hop-us", required_argument, NULL, OPTION_HOP},
	{"mtu", required_argument, NULL, OPTION_MTU},
	{"stagger-ms", required_argument, NULL, OPTION_STAGGER},
	{"die", required_argument, NULL, OPTION_DIE},
	{"warm", no_argument, NULL, OPTION_WARM},
	{"turn-ns", required_argument, NULL, OPTION_TURN},
	{"wake-ns", required_argument, NULL, OPTION_WAKE},
	{"forward-ns", required_argument, NULL, OPTION_FORWARD},
	{"step-ns", required_argument, NULL, OPTION_STEP},
	{"dead-ms", required_argument, NULL, OPTION_DEAD},
	{"accepts", required_argument, NULL, OPTION_ACCEPTS},
	{"burst", required_argument, NULL, OPTION_BURST},
	{"limit-s", required_argument, NULL, OPTION_LIMIT},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"max-ratio", required_argument, NULL, OPTION_RATIO},
	{"max-copies", required_argument, NULL, OPTION_COPIES},
	{"max-ms", required_argument, NULL, OPTION_MS},
	{"full", no_argument, NULL, OPTION_FULL},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

/* The numbers; returns false when the key has none. */
static bool arguments_number(struct scale_options *o, int key, double v)
{
	uint64_t n = (uint64_t)v;
	switch (key) {
	case OPTION_NODES:
		o->nodes = (uint32_t)n;
		return true;
	case OPTION_SIZE:
		o->size = n;
		return true;
	case OPTION_RATE:
		o->rate_gbit = v;
		return true;
	case OPTION_HOP:
		o->hop_ns = (uint64_t)(v * 1e3);
		return true;
	case OPTION_MTU:
		o->mtu = (uint16_t)n;
		return true;
	case OPTION_STAGGER:
		o->stagger_ns = (uint64_t)(v * 1e6);
		return true;
	case OPTION_DIE:
		o->die = (uint32_t)n;
		return true;
	case OPTION_TURN:
		o->turn_ns = n;
		return true;
	case OPTION_WAKE:
		o->wake_ns = n;
		return true;
	case OPTION_FORWARD:
		o->forward_ns = n;
		return true;
	case OPTION_STEP:
		o->step_ns = n;
		return true;
	case OPTION_DEAD:
		o->dead_ns = (uint64_t)(v * 1e6);
		return true;
	case OPTION_ACCEPTS:
		o->accepts_per_s = (uint32_t)n;
		return true;
	case OPTION_BURST:
		o->accepts_burst = (uint32_t)n;
		return true;
	case OPTION_LIMIT:
		o->limit_ns = (uint64_t)(v * 1e9);
		return true;
	case OPTION_SEED:
		o->seed = n;
		return true;
	default:
		return false;
	}
}

static bool arguments_valid(const struct scale_options *o)
{
	return o->nodes >= 2 && o->nodes <= NODES_MAX && o->rate_gbit > 0 && o->mtu >= 1280 &&
	       o->mtu <= 9000 && o->step_ns > 0 && o->accepts_per_s > 0 && o->size > 0 &&
	       o->die < o->nodes / 2;
}

static bool arguments_parse(struct arguments *a, int argc, char **argv)
{
	int key;
	while ((key = getopt_long(argc, argv, "", options, NULL)) != -1) {
		char *end = NULL;
		double v = optarg ? strtod(optarg, &end) : 0;
		if (optarg && (end == optarg || *end || v < 0))
			return false;
		if (key == OPTION_HELP) {
			usage(stdout);
			exit(0);
		} else if (key == OPTION_WARM) {
			a->o.warm = true;
		} else if (key == OPTION_VERBOSE) {
			a->o.verbose = true;
		} else if (key == OPTION_RATIO) {
			a->ratio_max = v;
		} else if (key == OPTION_FULL) {
			a->full = true;
		} else if (key == OPTION_MS) {
			a->ms_max = v;
		} else if (key == OPTION_COPIES) {
			a->copies_max = v;
		} else if (!arguments_number(&a->o, key, v)) {
			return false;
		}
	}
	return optind == argc && arguments_valid(&a->o);
}

static void print_cost(const char *name, const struct scale_cost *c)
{
	printf(", \"%s_count\": %llu, \"%s_mean_ns\": %llu, \"%s_median_ns\": %llu, "
	       "\"%s_p99_ns\": %llu",
	       name, (unsigned long long)c->count, name, (unsigned long long)c->mean_ns, name,
	       (unsigned long long)c->median_ns, name, (unsigned long long)c->p99_ns);
}

static double print_result(const struct scale_options *o, const struct scale_result *r)
{
	double end = (double)(r->bound_ns + o->stagger_ns), ratio = (double)r->ns / end;
	printf("{\"nodes\": %u, \"size\": %llu, \"rate_gbit\": %g, \"hop_us\": %g, \"mtu\": %u, "
	       "\"stagger_ms\": %g, \"died\": %u, \"warm\": %s, \"seed\": %llu",
	       o->nodes, (unsigned long long)o->size, o->rate_gbit, (double)o->hop_ns / 1e3, o->mtu,
	       (double)o->stagger_ns / 1e6, o->die, o->warm ? "true" : "false",
	       (unsigned long long)o->seed);
	printf(", \"gets\": %u, \"failed\": %u, \"unfinished\": %u, \"ms\": %.3f, "
	       "\"bound_ms\": %.3f, \"ratio\": %.4f, \"get_median_ms\": %.3f, \"get_most_ms\": "
	       "%.3f",
	       r->gets, r->failed, r->unfinished, (double)r->ns / 1e6, end / 1e6, ratio,
	       (double)r->median_ns / 1e6, (double)r->most_ns / 1e6);
	printf(", \"source_copies\": %.3f, \"most_copies\": %.3f, \"depth\": %u, "
	       "\"messages_per_get\": %.2f, \"message_bytes_per_get\": %.0f, \"lost\": %llu, "
	       "\"hellos_refused\": %llu, \"failovers\": %llu, \"hedges\": %llu",
	       r->source_copies, r->most_copies, r->depth, r->messages_per_get, r->bytes_per_get,
	       (unsigned long long)r->lost, (unsigned long long)r->hellos_refused,
	       (unsigned long long)r->failovers, (unsigned long long)r->hedges);
	printf(", \"shard_messages\": %llu, \"shard_cpu_ms\": %.3f",
	       (unsigned long long)r->shard_messages, (double)r->shard_cpu_ns / 1e6);
	print_cost("get", &r->get);
	print_cost("have", &r->have);
	print_cost("drop", &r->drop);
	print_cost("decode", &r->codec);
	printf(", \"gossip_messages_per_s\": %.2f, \"gossip_bytes_per_s\": %.0f, "
	       "\"gossip_cpu_us_per_s\": %.1f, \"memory_kib\": %llu, \"memory_shard_kib\": "
	       "%llu}\n",
	       r->gossip_messages, r->gossip_bytes, r->gossip_cpu_ns / 1e3,
	       (unsigned long long)r->memory_bytes / 1024,
	       (unsigned long long)r->memory_shard_bytes / 1024);
	return ratio;
}

int main(int argc, char **argv)
{
	struct arguments a = {.o = {.nodes = 1000,
				    .rate_gbit = 100,
				    .hop_ns = 10 * SCALE_US,
				    .mtu = 9000,
				    .size = 1ull << 30,
				    .turn_ns = 2000,
				    .wake_ns = 5000,
				    .forward_ns = 2000,
				    .step_ns = 1000,
				    .dead_ns = 3 * SCALE_S,
				    .limit_ns = 60 * SCALE_S,
				    .accepts_per_s = 1000,
				    .accepts_burst = 1024,
				    .seed = 1}};
	struct scale_result r;
	double ratio;
	if (!arguments_parse(&a, argc, argv)) {
		usage(stderr);
		return 2;
	}
	if (a.full)
		scale_full(&a.o, &r);
	else
		scale_run(&a.o, &r);
	ratio = print_result(&a.o, &r);
	if (r.failed || r.unfinished) {
		fprintf(stderr, "scale: %u gets failed, %u did not end\n", r.failed, r.unfinished);
		return 1;
	}
	if ((a.ratio_max > 0 && ratio > a.ratio_max) ||
	    (a.ms_max > 0 && (double)r.ns / 1e6 > a.ms_max) ||
	    (a.copies_max > 0 && r.source_copies > a.copies_max)) {
		fprintf(stderr,
			"scale: above a limit: %.3f ms, time / bound %.4f, source's copies %.3f\n",
			(double)r.ns / 1e6, ratio, r.source_copies);
		return 1;
	}
	return 0;
}
