/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of sums: their text, and their check. sums.c calls it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "sums.h"

static const char usage[] =
	"usage: sums [OPTION]...\n"
	"\n"
	"One reduce among simulated nodes, every packet and both real cores; node 0 asks for it.\n"
	"Prints one JSON line.\n"
	"\n"
	"  --all              allreduce: all nodes get the sum\n"
	"  --nodes N          nodes, 2 to 512 (8)\n"
	"  --network SHAPE    bcube:N,K, torus:AxBxC or flat:N, a node at each place; links of --rate-mbit\n"
	"  --planner NAME     of allreduces that it fits (the coordinator chooses)\n"
	"  --size BYTES       of each array (33554432)\n"
	"  --rate-mbit M      of each link, each way (200)\n"
	"  --hop-us U         from one node to another (100)\n"
	"  --turn-us U        a worker looks at what has come so often (0: at once)\n"
	"  --event-us U       from the dataplane to control (20)\n"
	"  --mtu BYTES        (1500)\n"
	"  --stagger-ms MS    the nodes put one after the other (0: all before the start)\n"
	"  --order K          0 rising, 1 falling, else the seed of a random order (0)\n"
	"  --kill I           node I dies; as many as die are in reserve, on the last nodes\n"
	"  --at-ms MS         so long after the start\n"
	"  --late-ms MS       all but node 0 ask for it up to so much later (0)\n"
	"  --stalls K         a node stands still, K times, at random moments (0)\n"
	"  --stall-ms MS      for so long at most, half of it at least (200)\n"
	"  --trace-ms MS      use of each link up/down, in percent, so often\n"
	"  --max-ratio R      exit 1 when time / bound is above\n"
	"  --rounds R         so many, one after the other; the limit is the last one's (1)\n"
	"  --seed N           (1)\n";

static bool sums_options_number(struct sums_options *o, int key, double v)
{
	switch (key) {
	case 'n':
		o->nodes = (uint32_t)v;
		return v >= 2 && v <= SUMS_NODES;
	case 's':
		o->size = (uint64_t)v;
		return v >= 4 && o->size % 4 == 0;
	case 'r':
		o->rate_bps = (uint64_t)(v * 1e6);
		return v > 0;
	case 'h':
		o->hop_ns = (uint64_t)(v * 1e3);
		return true;
	case 't':
		o->turn_ns = (uint64_t)(v * 1e3);
		return true;
	case 'e':
		o->latency_ns = (uint64_t)(v * 1e3);
		return true;
	case 'm':
		o->mtu = (uint16_t)v;
		return v >= 1280 && v <= 9000;
	case 'g':
		o->stagger_ns = (uint64_t)(v * 1e6);
		return true;
	case 'o':
		o->order = (uint64_t)v;
		return true;
	case 'k':
		o->kill |= v > 0 && v < 32 ? 1u << (uint32_t)v : 0;
		return v > 0 && v < 32;
	case 'a':
		o->kill_at_ns = (uint64_t)(v * 1e6);
		return true;
	case 'l':
		o->late_ns = (uint64_t)(v * 1e6);
		return true;
	case 'S':
		o->stalls = (uint32_t)v;
		return true;
	case 'M':
		o->stall_ns = (uint64_t)(v * 1e6);
		return true;
	case 'i':
		o->trace_ns = (uint64_t)(v * 1e6);
		return true;
	case 'x':
		o->ratio_max = v;
		return true;
	case 'w':
		o->rounds = (uint32_t)v;
		return v >= 1 && v <= SUMS_ROUNDS;
	default:
		o->seed = (uint64_t)v;
		return key == 'd';
	}
}

static bool sums_options_read(struct sums_options *o, int argc, char **argv)
{
	static const struct option rows[] = {
		{"all", no_argument, NULL, 'A'},
		{"nodes", required_argument, NULL, 'n'},
		{"size", required_argument, NULL, 's'},
		{"rate-mbit", required_argument, NULL, 'r'},
		{"hop-us", required_argument, NULL, 'h'},
		{"turn-us", required_argument, NULL, 't'},
		{"event-us", required_argument, NULL, 'e'},
		{"mtu", required_argument, NULL, 'm'},
		{"stagger-ms", required_argument, NULL, 'g'},
		{"order", required_argument, NULL, 'o'},
		{"kill", required_argument, NULL, 'k'},
		{"at-ms", required_argument, NULL, 'a'},
		{"late-ms", required_argument, NULL, 'l'},
		{"stalls", required_argument, NULL, 'S'},
		{"stall-ms", required_argument, NULL, 'M'},
		{"trace-ms", required_argument, NULL, 'i'},
		{"max-ratio", required_argument, NULL, 'x'},
		{"rounds", required_argument, NULL, 'w'},
		{"seed", required_argument, NULL, 'd'},
		{"network", required_argument, NULL, 'N'},
		{"planner", required_argument, NULL, 'P'},
		{"help", no_argument, NULL, 'H'},
		{NULL, 0, NULL, 0},
	};
	int key;

	while ((key = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		char *end = NULL;
		double v = optarg ? strtod(optarg, &end) : 0;

		if (key == 'N' || key == 'P') {
			*(key == 'N' ? &o->network : &o->planner) = optarg;
			continue;
		}
		if (key == 'H') {
			printf("%s", usage);
			exit(0);
		}
		if (key == 'A')
			o->all = true;
		else if (!optarg || end == optarg || *end || v < 0 ||
			 !sums_options_number(o, key, v))
			return false;
	}
	if (o->network) {
		if (!places_parse(o->network, o->rate_bps, o->hop_ns, &o->places) ||
		    o->places.nodes > SUMS_NODES ||
		    o->places.nodes * o->places.rails > SUMS_LINKS ||
		    __builtin_popcount(o->kill) > SUMS_RESERVE)
			return false;
		o->nodes = o->places.nodes;
	}
	return optind == argc && (o->rounds == 1 || !(o->kill || o->stagger_ns)) &&
	       (o->nodes >= 32 ||
		o->kill < 1u << (o->nodes - (uint32_t)__builtin_popcount(o->kill)));
}

bool sums_options_parse(struct sums_options *o, int argc, char **argv)
{
	bool right = sums_options_read(o, argc, argv);

	if (!right)
		fprintf(stderr, "%s", usage);
	return right;
}
