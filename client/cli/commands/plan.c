/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa plan` and `sarissa topology`: this process becomes sarissa-plan, which has the planners
 * and reads topology files. It needs no node. `plan --last` has control ask the other nodes for
 * their last plans, and shows the latest, which control writes to a file; `topology probe`
 * (probe.c) measures.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/doctor/counters_file.h"
#include "internal/plan_file.h"
#include "cli/support/json.h"
#include "cli/local/local.h"
#include "cli/doctor/probe.h"
#include "cli/support/text.h"

/* Installed, it lies in PREFIX/libexec/sarissa or beside this command; in a build directory in a
 * folder of its own. */
int plan_become(const struct cli_args *args)
{
	static char name[] = "sarissa-plan", json[] = "--json";
	static const char *const places[] = {"", "/../libexec/sarissa", "/../../control/topology"};
	char **words = calloc((size_t)args->words_count + 3, sizeof(*words)), path[4200];

	if (!words)
		return cli_fail(-ENOMEM, "%s: out of memory", args->words[0]);
	words[0] = name;
	memcpy(words + 1, args->words, (size_t)args->words_count * sizeof(*words));
	if (args->json) /* it may have stood in front of the command */
		words[args->words_count + 1] = json;
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s%s/%s", local_own_folder(), places[i], name);
		execv(path, words);
	}
	free(words);
	return cli_fail(-EIO,
			"%s: the program sarissa-plan is not installed: install Sarissa whole",
			args->words[0]);
}

/* ---- --last ---------------------------------------------------------------------------------- */

static int plan_last_read(const struct cli_args *args, struct plan_file *out)
{
	char path[4096];
	int fd = counters_file_open(args->socket, "plan.last", path);
	ssize_t n;

	sar *s;

	if (fd == -ENOENT) {
		int status = cli_open(args, &s);

		if (status != CLI_DONE)
			return status;
		sar_close(s);
		return cli_fail(fd, "plan: no node that answers has coordinated a reduce with a "
				    "plan since it started");
	}
	if (fd < 0)
		return cli_fail(fd, "plan: cannot read %s: %s", path, strerror(-fd));
	n = read(fd, out, sizeof(*out));
	close(fd);
	if (n != (ssize_t)sizeof(*out) || out->magic != PLAN_FILE_MAGIC ||
	    out->levels > PLAN_FILE_LEVELS_MAX || !memchr(out->planner, 0, sizeof(out->planner)))
		return cli_fail(
			-EPROTO,
			"plan: %s is of another version: use command and node of one version",
			path);
	return CLI_DONE;
}

static void plan_last_json(const struct plan_file *p)
{
	struct json j;

	json_begin(&j, stdout);
	json_string(&j, "op", p->everyone ? "allreduce" : "reduce");
	json_string(&j, "planner", p->planner);
	json_unsigned(&j, "bytes", p->size);
	json_unsigned(&j, "nodes", p->nodes);
	json_unsigned(&j, "coordinator", p->node);
	json_unsigned(&j, "time_ns", p->time_ns);
	json_bool(&j, "repaired", p->repaired);
	json_unsigned(&j, "predicted_ns", p->predicted_ns);
	json_unsigned(&j, "measured_ns", p->measured_ns);
	json_array(&j, "levels");
	for (uint32_t l = 0; l < p->levels; l++) {
		json_object(&j, NULL);
		json_unsigned(&j, "bytes", p->level[l].bytes);
		json_unsigned(&j, "predicted_ns", p->level[l].predicted_ns);
		json_unsigned(&j, "measured_ns", p->level[l].measured_ns);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_end(&j);
}

static void plan_last_row(const char *name, const char *bytes, uint64_t predicted_ns,
			  uint64_t measured_ns)
{
	char predicted[TEXT_BYTES], measured[TEXT_BYTES] = "-";

	if (measured_ns)
		text_duration(measured, measured_ns);
	printf("%-10s %12s %12s %12s", name, bytes, text_duration(predicted, predicted_ns),
	       measured);
	if (measured_ns && predicted_ns)
		printf(" %6.2f x", (double)measured_ns / (double)predicted_ns);
	putchar('\n');
}

/* The whole, then each level that something goes over: its bytes over its link, and when the last
 * sum over it was complete. */
static void plan_last_text(const struct plan_file *p)
{
	char size[TEXT_BYTES], name[16];

	printf("%s of %s by %u nodes, planner %s, coordinated by node %u%s\n%-10s %12s %12s %12s\n",
	       p->everyone ? "allreduce" : "reduce", text_size(size, p->size), p->nodes, p->planner,
	       p->node, p->repaired ? ", parts of it began again" : "", "", "bytes", "predicted",
	       "measured");
	plan_last_row("all", "", p->predicted_ns, p->measured_ns);
	for (uint32_t l = 0; l < p->levels; l++) {
		if (p->level[l].bytes == 0)
			continue;
		if (p->network && l + 1 < p->levels)
			snprintf(name, sizeof(name), "level %u", l);
		else
			snprintf(name, sizeof(name), p->network ? "several" : "links");
		plan_last_row(name, text_size(size, p->level[l].bytes), p->level[l].predicted_ns,
			      p->level[l].measured_ns);
	}
	if (p->measured_ns == 0)
		printf("Not measured: some contributions came after the plan.\n");
}

static int plan_last_node(const sar_node *node, void *arg)
{
	return 0;
}

/* Has control of this node ask the others for their last plans. Without it the file is what was
 * known last. */
static void plan_last_ask(const struct cli_args *args)
{
	sar *s;

	if (sar_open(args->socket, &s) < 0)
		return;
	sar_nodes(s, plan_last_node, NULL);
	sar_close(s);
	/* control takes another client only when the file is written */
	if (sar_open(args->socket, &s) == 0)
		sar_close(s);
}

static int plan_last(const struct cli_args *args)
{
	static const char *const others[] = {"--last", "--json", "--socket"};
	struct plan_file p;
	int status;

	for (int i = 1, k; i < args->words_count; i++) {
		for (k = 0; k < 3 && strncmp(args->words[i], others[k], strlen(others[k])); k++)
			continue;
		if (k == 3 && strncmp(args->words[i], "--", 2) == 0)
			return cli_wrong("plan", "--last is of a plan that was, and takes no %s",
					 args->words[i]);
	}
	plan_last_ask(args);
	status = plan_last_read(args, &p);
	if (status != CLI_DONE)
		return status;
	if (args->json)
		plan_last_json(&p);
	else
		plan_last_text(&p);
	return cli_flush();
}

int plan_run(const struct cli_args *args)
{
	return args->last ? plan_last(args) : plan_become(args);
}

int plan_topology_run(const struct cli_args *args)
{
	return strcmp(args->names[0], "probe") == 0 ? probe_run(args) : plan_become(args);
}
