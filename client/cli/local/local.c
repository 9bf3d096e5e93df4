/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa local: real nodes on loopback addresses, started and ended by an ordinary user. Node I
 * speaks from 127.0.0.(I + 1) through kernel UDP sockets, and from 127.0.R.(I + 1) on rail R.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "internal/arguments.h"
#include "internal/object_table.h"
#include "cli/support/json.h"
#include "local.h"
#include "cli/support/text.h"

enum { STORE_MIB_DEFAULT = 256, STORE_MIB_MAX = 1 << 22 };

static const char local_usage[] =
	"usage: sarissa local up N [--store MIB] [--objects N] [--workers W] [--rails R]\n"
	"       sarissa local exec I -- COMMAND...\n"
	"       sarissa local env I\n"
	"       sarissa local kill I | start I\n"
	"       sarissa local status [--json]\n"
	"       sarissa local down\n\n"
	"A cluster of N real nodes on this machine's loopback addresses: no root, no DPDK device.\n\n"
	"  up N         starts nodes 0 to N - 1 and waits until they serve; N is 1 to 64\n"
	"  exec I       runs COMMAND as a task of node I; its exit status is COMMAND's\n"
	"  env I        prints what makes a shell's programs tasks of node I:\n"
	"               eval \"$(sarissa local env 0)\"\n"
	"  kill I       kills both processes of node I at once, as a power cut would\n"
	"  start I      starts node I again; what its store held is gone\n"
	"  status       shows the nodes; exit status 1 when one of them does not run\n"
	"  down         ends all nodes and removes their files\n"
	"  --name NAME  of several clusters side by side (default: main)\n"
	"  --store MIB  of each node's store (default: 256); memory is taken when it is used\n"
	"  --objects N  that each store holds at most, 1024 to 1048576 (default: 65536)\n"
	"  --workers W  packet threads of each node (default: 1)\n"
	"  --rails R    ports of each node: 127.0.0.I, 127.0.1.I ... (default: 1)\n";

struct local_options {
	const char *name;
	uint64_t store_mib, objects, workers, rails;
	bool json;
};

static const struct option local_long_options[] = {
	{"name", required_argument, NULL, 'n'},	   {"store", required_argument, NULL, 's'},
	{"objects", required_argument, NULL, 'o'}, {"workers", required_argument, NULL, 'w'},
	{"rails", required_argument, NULL, 'r'},   {"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},	   {NULL, 0, NULL, 0},
};

static int local_wrong(const char *what, const char *which)
{
	fprintf(stderr, "sarissa: local: %s%s: see 'sarissa local --help'\n", what, which);
	return CLI_USAGE;
}

/* -1: taken. Else the exit status to end with. */
static int local_option(int option, int argc, char **argv, struct local_options *o)
{
	switch (option) {
	case 'n':
		o->name = optarg;
		return -1;
	case 's':
		return argument_number(optarg, 10, 8, STORE_MIB_MAX, &o->store_mib)
			       ? -1
			       : local_wrong("--store takes MiB, 8 at least, not ", optarg);
	case 'o':
		return argument_number(optarg, 10, OBJECT_TABLE_SLOTS_MIN, OBJECT_TABLE_SLOTS_MAX,
				       &o->objects)
			       ? -1
			       : local_wrong("--objects takes 1024 to 1048576, not ", optarg);
	case 'w':
		return argument_number(optarg, 10, 1, LOCAL_WORKERS_MAX, &o->workers)
			       ? -1
			       : local_wrong("--workers takes 1 to 16, not ", optarg);
	case 'r':
		return argument_number(optarg, 10, 1, LOCAL_RAILS_MAX, &o->rails)
			       ? -1
			       : local_wrong("--rails takes 1 to 8, not ", optarg);
	case 'j':
		o->json = true;
		return -1;
	case 'h':
		fputs(local_usage, stdout);
		return cli_flush();
	default:
		return local_wrong(option == ':' ? "a value is missing after " : "unknown option ",
				   argument_refused(argc, argv));
	}
}

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

static int local_up(struct local_cluster *cluster, const struct local_options *o, char **words,
		    int count)
{
	uint64_t nodes, begin = cli_now_ns();
	if (count != 1 || !argument_number(words[0], 10, 1, LOCAL_NODES_MAX, &nodes))
		return local_wrong("up takes a number of nodes, 1 to 64", "");
	cluster->nodes = (uint32_t)nodes;
	cluster->workers = (uint32_t)o->workers;
	cluster->rails = (uint32_t)o->rails;
	cluster->store_mib = o->store_mib;
	cluster->objects = (uint32_t)o->objects;
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
		return local_wrong("env takes a node", "");
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
		return local_wrong(
			"exec takes a node and a command: sarissa local exec I -- COMMAND", "");
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
		return local_wrong("kill takes a node", "");
	int status = local_node_number(cluster, words[0], &node);
	if (status == CLI_DONE)
		local_end(cluster, node, SIGKILL);
	return status;
}

static int local_restart(struct local_cluster *cluster, char **words, int count)
{
	uint32_t node;
	if (count != 1)
		return local_wrong("start takes a node", "");
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

static int local_status(struct local_cluster *cluster, const struct local_options *o, int count)
{
	int status = CLI_DONE;
	if (count != 0)
		return local_wrong("status takes no more words", "");
	if (!o->json)
		printf("%5s  %-6s  %-16s  %8s  %9s  %s\n", "NODE", "STATE", "ADDRESS", "CONTROL",
		       "DATAPLANE", "STORE");
	for (uint32_t i = 0; i < cluster->nodes; i++) {
		struct local_row row;
		local_look(cluster, i, &row);
		(o->json ? local_row_json : local_row_print)(cluster, i, &row);
		if (!row.answers)
			status = CLI_FAILED;
	}
	int flushed = cli_flush();
	return status != CLI_DONE ? status : flushed;
}

static int local_down(struct local_cluster *cluster, int count)
{
	if (count != 0)
		return local_wrong("down takes no more words", "");
	local_end(cluster, LOCAL_ALL, SIGTERM);
	local_remove(cluster);
	return CLI_DONE;
}

static int local_verb(struct local_cluster *cluster, const struct local_options *o,
		      const char *verb, char **words, int count)
{
	bool looks = strcmp(verb, "exec") == 0 || strcmp(verb, "env") == 0 ||
		     strcmp(verb, "status") == 0;
	int status = looks ? CLI_DONE : local_lock(cluster);
	if (status != CLI_DONE)
		return status;
	if (strcmp(verb, "up") == 0)
		return local_up(cluster, o, words, count);
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
		return local_status(cluster, o, count);
	return local_down(cluster, count);
}

static bool local_known(const char *verb)
{
	static const char *const verbs[] = {"up", "exec", "env", "kill", "start", "status", "down"};
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verb, verbs[i]) == 0)
			return true;
	return false;
}

/* Options before a verb, or behind it. -1, or the exit status to end with. */
static int local_parse(int argc, char **argv, const char *form, struct local_options *o)
{
	int option;
	optind = 0;
	while ((option = getopt_long(argc, argv, form, local_long_options, NULL)) != -1) {
		int status = local_option(option, argc, argv, o);
		if (status >= 0)
			return status;
	}
	return -1;
}

/* args->names are the words from "local" on, options among them. Those behind `exec I` belong to
 * the command that is run. */
int local_run(const struct cli_args *args)
{
	struct local_options o = {"main", STORE_MIB_DEFAULT, OBJECT_TABLE_SLOTS_DEFAULT, 1,
				  1,	  args->json};
	struct local_cluster cluster = {.nodes = 0};
	int count = args->count;
	char **words = args->names;
	int status = local_parse(count, words, "+:", &o);
	if (status >= 0)
		return status;
	words += optind;
	count -= optind;
	if (count == 0)
		return local_wrong("a verb is missing: up, exec, env, kill, start, status or down",
				   "");
	const char *verb = words[0];
	if (!local_known(verb))
		return local_wrong("unknown verb ", verb);
	status = local_parse(count, words, strcmp(verb, "exec") == 0 ? "+:" : ":", &o);
	if (status >= 0)
		return status;
	status = local_locate(&cluster, o.name);
	return status == CLI_DONE ? local_verb(&cluster, &o, verb, words + optind, count - optind)
				  : status;
}
