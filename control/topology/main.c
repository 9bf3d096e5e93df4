/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa-plan: topology files and plans, without a cluster. `sarissa topology` and `sarissa plan`
 * become this program. It parses the command line; file.c, shape.c and plan.c do the work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal/plan_options.h"
#include "internal/program/standard_fds.h"
#include "file.h"
#include "plan.h"
#include "show.h"
#include "units.h"

enum { MAIN_OK, MAIN_FAILED, MAIN_USAGE };

/* --socket is for what the command does itself. */
static const struct option_row main_options[] = {
	PLAN_OPTIONS(struct plan_options, ),
	{"json", NULL, "one JSON object per line", OPTION_FLAG(struct plan_options, json)},
	{"socket", "PATH", "not used here", OPTION_TEXT(struct plan_options, socket)},
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

/* An exit status. */
static int main_read(int argc, char **argv, struct plan_options *o)
{
	struct option_reader reader = {.row = main_options,
				       .rows = sizeof(main_options) / sizeof(*main_options),
				       .argc = argc,
				       .argv = argv,
				       .form = ":"};

	*o = (struct plan_options)PLAN_OPTIONS_DEFAULT;
	option_read(&reader, o);
	return *reader.wrong ? main_wrong(argv[0], reader.wrong, NULL) : MAIN_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* The network that is asked about: of a file, of a shape, or flat. Returns an exit status. */
static int main_network(const struct plan_options *o, struct network *w, uint32_t *node,
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
	struct plan_options o;
	struct plan_asked asked = {.options = &o};
	uint32_t node[NETWORK_NODES_MAX];
	struct topology *file = NULL;
	struct network w;
	int status;

	status = main_read(argc, argv, &o);
	if (status != MAIN_OK)
		return status;
	if (optind < argc)
		return main_wrong("plan", "takes no word like", argv[optind]);
	if (!units_size(o.size, &asked.size) || asked.size == 0 || asked.size > UINT64_C(1) << 40)
		return main_wrong("plan", "--size takes 1 byte to 1T, not", o.size);
	if (o.simulate && o.op != PLAN_ALLREDUCE)
		return main_wrong("plan", "--simulate knows allreduce, not", "reduce");
	status = main_network(&o, &w, node, &file);
	if (status != MAIN_OK)
		return status;
	asked.chunk_bytes = (uint32_t)((o.mtu - 60) / 64 * 64);
	asked.network = &w;
	asked.node = node;
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
	struct plan_options o;
	struct shape shape;
	uint64_t unused;
	int status;

	status = main_read(argc, argv, &o);
	if (status != MAIN_OK)
		return status;
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
