/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa-plan: topology files and plans, without a cluster. `sarissa topology` and `sarissa plan`
 * become this program. It parses the command line; file.c, shape.c and plan.c do the work.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal/arguments.h"
#include "internal/standard_fds.h"
#include "file.h"
#include "plan.h"
#include "show.h"
#include "units.h"

enum { MAIN_OK, MAIN_FAILED, MAIN_USAGE };

struct main_options {
	const char *op, *size, *topology, *rate, *latency, *planner, *svg;
	uint64_t nodes, mtu;
	bool why, json, dot, simulate, help;
};

static const struct option main_options[] = {{"op", required_argument, NULL, 'o'},
					     {"size", required_argument, NULL, 's'},
					     {"topology", required_argument, NULL, 't'},
					     {"nodes", required_argument, NULL, 'n'},
					     {"rate", required_argument, NULL, 'r'},
					     {"latency", required_argument, NULL, 'l'},
					     {"mtu", required_argument, NULL, 'm'},
					     {"planner", required_argument, NULL, 'p'},
					     {"svg", required_argument, NULL, 'S'},
					     {"why", no_argument, NULL, 'w'},
					     {"json", no_argument, NULL, 'j'},
					     {"dot", no_argument, NULL, 'd'},
					     {"simulate", no_argument, NULL, 'x'},
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};

static const struct argument_help main_plan_help[] = {
	{"op", "OP", "allreduce (without: this) or reduce"},
	{"size", "SIZE", "bytes of one object, with K, M or G (64M)"},
	{"topology", "FILE", "the network: a topology file, or a shape such as bcube:3,1"},
	{"nodes", "N", "without --topology: so many nodes on one switch (8)"},
	{"rate", "RATE", "of each link, where no file says it (10G)"},
	{"latency", "TIME", "one way, where no file says it (50us)"},
	{"mtu", "BYTES", "IP bytes of a packet (1500)"},
	{"planner", "NAME", "only this candidate"},
	{"why", NULL, "every candidate, and why it lost"},
	{"simulate", NULL, "every piece on every port, for planners by routes"},
	{"json", NULL, "one JSON object per candidate; times in ns"},
	{"dot", NULL, "the plan as a graph for graphviz"},
	{"svg", "FILE", "the plan drawn by graphviz"},
};

static int main_wrong(const char *command, const char *what, const char *word)
{
	fprintf(stderr, "sarissa: %s: %s%s%s%s: see 'sarissa %s --help'\n", command, what,
		word ? " '" : "", word ? word : "", word ? "'" : "", command);
	return MAIN_USAGE;
}

static int main_failed(const char *line)
{
	fprintf(stderr, "sarissa: %s\n", line);
	return MAIN_FAILED;
}

static bool main_parse(int argc, char **argv, struct main_options *o)
{
	int c;

	*o = (struct main_options){.op = "allreduce",
				   .size = "64M",
				   .rate = "10G",
				   .latency = "50us",
				   .nodes = 8,
				   .mtu = 1500};
	opterr = 0;
	while ((c = getopt_long(argc, argv, "", main_options, NULL)) != -1) {
		switch (c) {
		case 'o':
			o->op = optarg;
			break;
		case 's':
			o->size = optarg;
			break;
		case 't':
			o->topology = optarg;
			break;
		case 'r':
			o->rate = optarg;
			break;
		case 'l':
			o->latency = optarg;
			break;
		case 'p':
			o->planner = optarg;
			break;
		case 'S':
			o->svg = optarg;
			break;
		case 'n':
			o->nodes = argument_need("sarissa: plan: --nodes", optarg, 2, 1024);
			break;
		case 'm':
			o->mtu = argument_need("sarissa: plan: --mtu", optarg, 576, 9216);
			break;
		case 'w':
			o->why = true;
			break;
		case 'j':
			o->json = true;
			break;
		case 'x':
			o->simulate = true;
			break;
		case 'd':
			o->dot = true;
			break;
		case 'h':
			o->help = true;
			break;
		default:
			return false;
		}
	}
	return true;
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* The network that is asked about: of a file, of a shape, or flat. Returns an exit status. */
static int main_network(const struct main_options *o, struct network *w, uint32_t *node,
			struct topology **file)
{
	uint64_t bytes_per_s, latency_ns;
	char error[TOPOLOGY_ERROR_BYTES], flat[32];
	const char *name = o->topology;
	struct shape shape;
	const char *wrong;

	if (!units_rate(o->rate, &bytes_per_s))
		return main_wrong("plan", "--rate takes bits per second above 0, not", o->rate);
	if (!units_time(o->latency, &latency_ns))
		return main_wrong("plan", "--latency takes a time such as 20us, not", o->latency);
	snprintf(flat, sizeof(flat), "flat:%llu", (unsigned long long)o->nodes);
	name = name ? name : flat;
	wrong = shape_parse(name, &shape);
	if (!wrong) {
		topology_of_shape(&shape, bytes_per_s, latency_ns, w);
		for (uint32_t i = 0; i < w->places; i++)
			node[i] = i;
		return MAIN_OK;
	}
	if (strchr(name, ':') && access(name, F_OK) < 0)
		return main_wrong("plan", wrong, name);
	*file = topology_read(name, error);
	if (!*file)
		return main_failed(error);
	*w = (*file)->network;
	for (uint32_t i = 0; i < (*file)->nodes; i++)
		node[i] = (*file)->node[i].number;
	for (uint32_t l = 0; l < w->levels; l++)
		if (w->level[l].latency_ns == 0)
			w->level[l].latency_ns = latency_ns;
	return MAIN_OK;
}

static int main_plan(int argc, char **argv)
{
	struct plan_asked asked = {0};
	uint32_t node[NETWORK_NODES_MAX];
	struct topology *file = NULL;
	struct main_options o;
	struct network w;
	int status;

	if (!main_parse(argc, argv, &o))
		return main_wrong("plan", "unknown or incomplete option",
				  argument_refused(argc, argv));
	if (o.help) {
		printf("usage: sarissa plan [OPTIONS]\n\nWhich plan an operation gets over a network, "
		       "and why. Needs no cluster.\n\n");
		argument_help_print(main_plan_help,
				    sizeof(main_plan_help) / sizeof(*main_plan_help));
		return MAIN_OK;
	}
	if (optind < argc)
		return main_wrong("plan", "takes no word like", argv[optind]);
	if (strcmp(o.op, "allreduce") != 0 && strcmp(o.op, "reduce") != 0)
		return main_wrong("plan", "--op takes allreduce or reduce, not", o.op);
	if (!units_size(o.size, &asked.size) || asked.size == 0 || asked.size > UINT64_C(1) << 40)
		return main_wrong("plan", "--size takes 1 byte to 1T, not", o.size);
	if (o.simulate && strcmp(o.op, "allreduce") != 0)
		return main_wrong("plan", "--simulate knows allreduce, not", o.op);
	status = main_network(&o, &w, node, &file);
	if (status != MAIN_OK)
		return status;
	asked.op = strcmp(o.op, "reduce") == 0 ? PLAN_REDUCE : PLAN_ALLREDUCE;
	asked.chunk_bytes = (uint32_t)((o.mtu - 60) / 64 * 64);
	asked.network = &w;
	asked.node = node;
	asked.planner = o.planner;
	asked.why = o.why;
	asked.json = o.json;
	asked.simulate = o.simulate;
	asked.dot = o.dot;
	asked.svg = o.svg;
	status = plan_run(&asked);
	topology_free(file);
	return status;
}

/* ---- topology -------------------------------------------------------------------------------- */

static int main_check(const char *path, bool json)
{
	char error[TOPOLOGY_ERROR_BYTES], unlike[TOPOLOGY_WHY_BYTES];
	struct topology *t = topology_read(path, error);
	bool alike;

	if (!t)
		return main_failed(error);
	alike = !topology_unlike(t, unlike);
	if (json)
		printf("{\"nodes\": %u, \"switches\": %u, \"links\": %u, \"levels\": %u, \"rails\": %u, "
		       "\"narrow\": %s, \"rails_alike\": %s}\n",
		       t->nodes, t->switches, t->trunks, t->network.levels,
		       network_rails(&t->network), t->network.narrow ? "true" : "false",
		       alike ? "true" : "false");
	else
		printf("%s: %u nodes with %u rail%s, %u switches, %u links between them, %u level%s\n",
		       path, t->nodes, network_rails(&t->network),
		       network_rails(&t->network) == 1 ? "" : "s", t->switches, t->trunks,
		       t->network.levels, t->network.levels == 1 ? "" : "s");
	if (!alike && !json)
		printf("%s: %s\n", path, unlike);
	topology_free(t);
	return MAIN_OK;
}

static int main_show(const char *path)
{
	char error[TOPOLOGY_ERROR_BYTES];
	struct topology *t = topology_read(path, error);

	if (!t)
		return main_failed(error);
	show_topology(t, stdout);
	topology_free(t);
	return fflush(stdout) == 0 ? MAIN_OK : main_failed("topology: cannot write the answer");
}

/* For `sarissa topology probe`. */
static int main_links(const char *path, const char *node)
{
	char error[TOPOLOGY_ERROR_BYTES];
	uint64_t number = argument_need("sarissa: topology: links", node, 0, NETWORK_NODES_MAX - 1);
	struct topology *t = topology_read(path, error);

	if (!t)
		return main_failed(error);
	show_links(t, (uint32_t)number, stdout);
	topology_free(t);
	return fflush(stdout) == 0 ? MAIN_OK : main_failed("topology: cannot write the answer");
}

static int main_topology(int argc, char **argv)
{
	const char *wrong;
	struct main_options o;
	struct shape shape;
	uint64_t unused;

	if (!main_parse(argc, argv, &o))
		return main_wrong("topology", "unknown or incomplete option",
				  argument_refused(argc, argv));
	if (o.help) {
		printf("usage: sarissa topology SHAPE [--rate RATE] [--latency TIME]\n"
		       "       sarissa topology check FILE [--json]\n"
		       "       sarissa topology show FILE --json\n"
		       "       sarissa topology probe FILE [--json]\n\n"
		       "Prints the topology file of a regular network, checks a file, shows all that is "
		       "in it,\nor measures the links of this node.\n\n"
		       "SHAPE: flat:N, bcube:N,K, torus:AxBxC or fattree:K\n");
		return MAIN_OK;
	}
	if (optind + 2 == argc && strcmp(argv[optind], "check") == 0)
		return main_check(argv[optind + 1], o.json);
	if (optind + 2 == argc && strcmp(argv[optind], "show") == 0)
		return o.json ? main_show(argv[optind + 1])
			      : main_wrong("topology", "show prints JSON: add --json", NULL);
	if (optind + 3 == argc && strcmp(argv[optind], "links") == 0)
		return main_links(argv[optind + 1], argv[optind + 2]);
	if (optind + 1 != argc)
		return main_wrong("topology", "takes a shape, or 'check' or 'show' and a file",
				  NULL);
	wrong = shape_parse(argv[optind], &shape);
	if (wrong)
		return main_wrong("topology", wrong, NULL);
	if (!units_rate(o.rate, &unused))
		return main_wrong("topology", "--rate takes bits per second above 0, not", o.rate);
	if (!units_time(o.latency, &unused))
		return main_wrong("topology", "--latency takes a time such as 20us, not",
				  o.latency);
	shape_write(argv[optind], &shape, o.rate, o.latency, stdout);
	return fflush(stdout) == 0 ? MAIN_OK : main_failed("topology: cannot write the file");
}

int main(int argc, char **argv)
{
	standard_fds_hold();
	if (argc >= 2 && strcmp(argv[1], "plan") == 0)
		return main_plan(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "topology") == 0)
		return main_topology(argc - 1, argv + 1);
	fprintf(stderr, "usage: sarissa-plan plan|topology ...: see 'sarissa plan --help'\n");
	return MAIN_USAGE;
}
