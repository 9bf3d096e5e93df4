/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa local: real nodes on loopback addresses, started and ended by an ordinary user. Node I
 * speaks from 127.0.0.(I + 1) through kernel UDP sockets, and from 127.0.R.(I + 1) on rail R.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "internal/program/arguments.h"
#include "internal/object_table.h"
#include "cli/support/json.h"
#include "local.h"
#include "cli/support/text.h"

static int local_node_number(const struct local_cluster *cluster, const char *text, uint32_t *out)
{
	uint64_t number;
	if (!argument_number(text, 10, 0, cluster->nodes - 1, &number)) {
		fprintf(stderr, "sarissa: local: node '%s': cluster '%s' has nodes 0 to %u\n", text,
			cluster->name, cluster->nodes - 1);
		return CLI_USAGE;
	}
	*out = (uint32_t)number;
	return CLI_DONE;
}

static int local_start_node(const struct local_cluster *cluster, uint32_t node)
{
	int status = local_start(cluster, node, LOCAL_DATAPLANE);
	return status == CLI_DONE ? local_start(cluster, node, LOCAL_CONTROL) : status;
}

/* --- the verbs --- */

static int local_up(struct local_cluster *cluster, const struct cli_args *args, char **words,
		    int count)
{
	uint64_t nodes, begin = cli_now_ns();
	if (count != 1 || !argument_number(words[0], 10, 1, LOCAL_NODES_MAX, &nodes))
		return cli_wrong("local", "up takes a number of nodes, 1 to 64");
	cluster->nodes = (uint32_t)nodes;
	cluster->workers = (uint32_t)args->local.workers;
	cluster->rails = (uint32_t)args->local.rails;
	cluster->store_mib = args->local.store_mib;
	cluster->objects = (uint32_t)args->local.objects;
	cluster->udp_port = local_free_port(cluster);
	if (cluster->udp_port == 0)
		return cli_fail(-EADDRINUSE,
				"no UDP port is free on 127.0.0.1 to 127.0.0.%u: end "
				"what uses them",
				cluster->nodes);
	int status = local_create(cluster);
	if (status != CLI_DONE)
		return status;
	local_catch_signals();
	for (uint32_t i = 0; i < cluster->nodes && status == CLI_DONE; i++)
		status = local_start_node(cluster, i);
	if (status != CLI_DONE) {
		local_end(cluster, LOCAL_ALL, SIGKILL);
		local_remove(cluster);
		return status;
	}
	printf("local: '%s', %u node%s on 127.0.0.1%s%.0u, UDP port %u; up in %.1f s\n",
	       cluster->name, cluster->nodes, cluster->nodes > 1 ? "s" : "",
	       cluster->nodes > 1 ? " to 127.0.0." : "", cluster->nodes > 1 ? cluster->nodes : 0,
	       cluster->udp_port, (double)(cli_now_ns() - begin) / 1e9);
	return cli_flush();
}

/* The package of a build directory; false: it is installed, or was not built. */
static bool local_python(char out[4096])
{
	char file[4200];
	if (snprintf(file, sizeof(file), "%s/../python", local_own_folder()) >= 4096 ||
	    !realpath(file, out))
		return false;
	snprintf(file, sizeof(file), "%s/sarissa/__init__.py", out);
	return access(file, R_OK) == 0;
}

/* In front of what the variable has; the reader is a shell. */
static void local_print_path(const char *variable, const char *path)
{
	printf(" %s='", variable);
	for (; *path; path++)
		if (*path == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*path);
	printf("'${%s:+:$%s}", variable, variable);
}

static int local_env(struct local_cluster *cluster, char **words, int count)
{
	char socket[LOCAL_FILE_BYTES], python[4096];
	uint32_t node;
	if (count != 1)
		return cli_wrong("local", "env takes a node");
	int status = local_node_number(cluster, words[0], &node);
	if (status != CLI_DONE)
		return status;
	int running = local_running(cluster, node, LOCAL_CONTROL, NULL);
	if (running < 0)
		return cli_fail(-ECONNREFUSED, "node %u is down: sarissa local start %u --name %s",
				node, node, cluster->name);
	close(running);
	local_path(cluster, node, "control.sock", socket);
	printf("export SARISSA_SOCKET='%s' SARISSA_NODE=%u", socket, node);
	local_print_path("PATH", local_own_folder());
	if (local_python(python))
		local_print_path("PYTHONPATH", python);
	putchar('\n');
	return cli_flush();
}

static int local_exec(struct local_cluster *cluster, char **words, int count)
{
	char socket[LOCAL_FILE_BYTES];
	static char path[8192];
	uint32_t node;
	int skip = count > 1 && strcmp(words[1], "--") == 0 ? 2 : 1;
	char **command = words + skip;
	if (count <= skip)
		return cli_wrong(
			"local",
			"exec takes a node and a command: sarissa local exec I -- COMMAND");
	int status = local_node_number(cluster, words[0], &node);
	if (status != CLI_DONE)
		return status;
	local_path(cluster, node, "control.sock", socket);
	const char *old = getenv("PATH");
	snprintf(path, sizeof(path), "%s:%s", local_own_folder(), old ? old : "/usr/bin:/bin");
	setenv("PATH", path, 1);
	setenv("SARISSA_SOCKET", socket, 1);
	setenv("SARISSA_NODE", words[0], 1);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(command[0], command);
	int error = errno;
	cli_fail(-error, "cannot run %s: %s", command[0], strerror(error));
	return error == ENOENT ? 127 : 126;
}

static int local_kill(struct local_cluster *cluster, char **words, int count)
{
	uint32_t node;
	if (count != 1)
		return cli_wrong("local", "kill takes a node");
	int status = local_node_number(cluster, words[0], &node);
	if (status == CLI_DONE)
		local_end(cluster, node, SIGKILL);
	return status;
}

static int local_restart(struct local_cluster *cluster, char **words, int count)
{
	uint32_t node;
	if (count != 1)
		return cli_wrong("local", "start takes a node");
	int status = local_node_number(cluster, words[0], &node);
	local_catch_signals();
	for (int kind = 0; kind < LOCAL_KINDS && status == CLI_DONE; kind++) {
		int running = local_running(cluster, node, kind, NULL);
		if (running >= 0)
			close(running);
		else
			status = local_start(cluster, node, kind);
	}
	return status;
}

struct local_row {
	pid_t pid[LOCAL_KINDS]; /* 0: it does not run */
	bool answers;
	sar_node self;
};

static int local_take_self(const sar_node *n, void *arg)
{
	struct local_row *row = arg;
	if (n->self) {
		row->self = *n;
		row->answers = true;
	}
	return 0;
}

static void local_look(const struct local_cluster *cluster, uint32_t node, struct local_row *row)
{
	char socket[LOCAL_FILE_BYTES];
	sar *s;
	*row = (struct local_row){.answers = false};
	for (int kind = 0; kind < LOCAL_KINDS; kind++) {
		int fd = local_running(cluster, node, kind, &row->pid[kind]);
		if (fd >= 0)
			close(fd);
		else
			row->pid[kind] = 0;
	}
	local_path(cluster, node, "control.sock", socket);
	if (row->pid[LOCAL_CONTROL] && sar_open(socket, &s) == 0) {
		sar_nodes(s, local_take_self, row);
		sar_close(s);
	}
}

static void local_row_json(const struct local_cluster *cluster, uint32_t node,
			   const struct local_row *row)
{
	char socket[LOCAL_FILE_BYTES], address[32];
	struct json j;
	local_path(cluster, node, "control.sock", socket);
	snprintf(address, sizeof(address), "127.0.0.%u:%u", node + 1, cluster->udp_port);
	json_begin(&j, stdout);
	json_string(&j, "cluster", cluster->name);
	json_unsigned(&j, "node", node);
	json_bool(&j, "answers", row->answers);
	json_string(&j, "address", address);
	json_string(&j, "socket", socket);
	json_signed(&j, "control_pid", row->pid[LOCAL_CONTROL]);
	json_signed(&j, "dataplane_pid", row->pid[LOCAL_DATAPLANE]);
	json_unsigned(&j, "store_bytes", row->self.store_bytes);
	json_unsigned(&j, "store_used", row->self.store_used);
	json_unsigned(&j, "objects", row->self.objects);
	json_end(&j);
}

static void local_row_print(const struct local_cluster *cluster, uint32_t node,
			    const struct local_row *row)
{
	char used[TEXT_BYTES], all[TEXT_BYTES], address[32];
	const char *state = row->answers ? "up" : row->pid[LOCAL_CONTROL] ? "silent" : "down";
	snprintf(address, sizeof(address), "127.0.0.%u:%u", node + 1, cluster->udp_port);
	printf("%5u  %-6s  %-16s  %8d  %9d  ", node, state, address, (int)row->pid[LOCAL_CONTROL],
	       (int)row->pid[LOCAL_DATAPLANE]);
	if (row->answers)
		printf("%llu objects, %s of %s used", (unsigned long long)row->self.objects,
		       text_size(used, row->self.store_used),
		       text_size(all, row->self.store_bytes));
	putchar('\n');
}

static int local_status(struct local_cluster *cluster, const struct cli_args *args, int count)
{
	int status = CLI_DONE;
	if (count != 0)
		return cli_wrong("local", "status takes no more words");
	if (!args->json)
		printf("%5s  %-6s  %-16s  %8s  %9s  %s\n", "NODE", "STATE", "ADDRESS", "CONTROL",
		       "DATAPLANE", "STORE");
	for (uint32_t i = 0; i < cluster->nodes; i++) {
		struct local_row row;
		local_look(cluster, i, &row);
		(args->json ? local_row_json : local_row_print)(cluster, i, &row);
		if (!row.answers)
			status = CLI_FAILED;
	}
	int flushed = cli_flush();
	return status != CLI_DONE ? status : flushed;
}

static int local_down(struct local_cluster *cluster, int count)
{
	if (count != 0)
		return cli_wrong("local", "down takes no more words");
	local_end(cluster, LOCAL_ALL, SIGTERM);
	local_remove(cluster);
	return CLI_DONE;
}

static int local_verb(struct local_cluster *cluster, const struct cli_args *args)
{
	const char *verb = args->names[0];
	char **words = args->names + 1;
	int count = args->count - 1;
	bool looks = strcmp(verb, "exec") == 0 || strcmp(verb, "env") == 0 ||
		     strcmp(verb, "status") == 0;
	int status = looks ? CLI_DONE : local_lock(cluster);
	if (status != CLI_DONE)
		return status;
	if (strcmp(verb, "up") == 0)
		return local_up(cluster, args, words, count);
	status = local_load(cluster);
	if (status != CLI_DONE)
		return status;
	if (strcmp(verb, "env") == 0)
		return local_env(cluster, words, count);
	if (strcmp(verb, "exec") == 0)
		return local_exec(cluster, words, count);
	if (strcmp(verb, "kill") == 0)
		return local_kill(cluster, words, count);
	if (strcmp(verb, "start") == 0)
		return local_restart(cluster, words, count);
	if (strcmp(verb, "status") == 0)
		return local_status(cluster, args, count);
	return local_down(cluster, count);
}

int local_run(const struct cli_args *args)
{
	static const char verbs[] = "up exec env kill start status down";
	struct local_cluster cluster = {.nodes = 0};
	if (args->count == 0)
		return cli_wrong("local",
				 "a verb is missing: up, exec, env, kill, start, status or down");
	if (option_place(verbs, args->names[0]) < 0)
		return cli_wrong("local", "unknown verb %s", args->names[0]);
	int status = local_locate(&cluster, args->local.name);
	return status == CLI_DONE ? local_verb(&cluster, args) : status;
}
