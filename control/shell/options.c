/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/message/message.h"
#include "core/planner/planner.h"
#include "internal/arguments.h"
#include "log.h"
#include "topology/file.h"

#ifndef SARISSA_VERSION
#error "the build says which version this is"
#endif

enum {
	SESSIONS_MAX = 16384,
	RESTART_GRACE_MAX = 3600, /* seconds */
	OPTION_FIRST = 256,
	OPTION_NODE_UNSET = NODES_MAX,
};

#define OPTIONS(X)                                                                                 \
	X(RUNDIR, "rundir", "DIR", "where the sockets live (/run/sarissa)")                        \
	X(NODE, "node", "I", "this node's number, from 0; auto: a seed gives one")                 \
	X(NODES, "nodes", "LIST", "all nodes, the same everywhere: IP[:PORT],...")                 \
	X(NODES_FILE, "nodes-file", "FILE", "the same list, one per line; # begins a comment")     \
	X(SEEDS, "seeds", "LIST", "instead: some nodes' IP[:PORT],... that know the others")       \
	X(SHARDS, "shards", "LIST", "nodes that keep the directory: I,... (all that live)")        \
	X(SESSIONS, "sessions", "N", "clients at a time (1024)")                                   \
	X(RESTART_GRACE, "restart-grace", "S", "how long a restarting control is waited for (10)") \
	X(SOCKET_MODE, "socket-mode", "OCTAL", "rights of the clients' socket (0660)")             \
	X(CREATORS, "creators", "HOW", "who writes into the store: shared, auto, private (auto)")  \
	X(SPILL, "spill", "DIR", "where objects go that the store has no room for (nowhere)")      \
	X(SPILL_MAX, "spill-max", "BYTES", "of these at most (as much as the disk has)")           \
	X(QUOTA, "quota", "BYTES", "of objects that one user may put here; UID=BYTES: this one")   \
	X(TOPOLOGY, "topology", "FILE", "a topology file, the same at all nodes (none)")           \
	X(PLANNER, "planner", "NAME", "of reduces, where it fits (the best)")                      \
	X(LOG_LEVEL, "log-level", "LEVEL", "error, warning, info or debug (info)")                 \
	X(HELP, "help", NULL, "this text")                                                         \
	X(VERSION, "version", NULL, "the version")

enum {
	OPTION_BEFORE_FIRST = OPTION_FIRST - 1,
#define X(id, name, argument, help) OPTION_##id,
	OPTIONS(X)
#undef X
};

static enum options_result options_help(void)
{
	static const struct argument_help rows[] = {
#define X(id, name, argument, help) {name, argument, help},
		OPTIONS(X)
#undef X
	};

	printf("Usage: sarissa-control --node I --nodes IP:PORT,... [OPTION...]\n"
	       "       sarissa-control --seeds IP:PORT,... [OPTION...]\n"
	       "Decides for one Sarissa node which object moves where; its sarissa-dataplane "
	       "moves it.\n\n");
	argument_help_print(rows, sizeof(rows) / sizeof(*rows));
	return OPTIONS_DONE;
}

static enum options_result options_wrong(const char *name, const char *value, const char *why)
{
	log_error("--%s %s: %s: see --help", name, value, why);
	return OPTIONS_WRONG;
}

/* IP, IP:PORT, [IPv6]:PORT */
static bool options_addr(char *text, struct net_addr *out)
{
	char *port = strrchr(text, ':'), *ip = text;
	uint64_t number = UDP_PORT_DEFAULT;
	uint8_t v4[4];

	memset(out, 0, sizeof(*out));
	if (*text == '[') {
		char *close = strchr(text, ']');

		if (!close || (close[1] != '\0' && close[1] != ':'))
			return false;
		port = close[1] == ':' ? close + 1 : NULL;
		*close = '\0';
		ip = text + 1;
	} else if (port && strchr(text, ':') != port) {
		port = NULL; /* a bare IPv6 address */
	}
	if (port) {
		*port++ = '\0';
		if (!argument_number(port, 10, 1, 65535 - WORKERS_MAX, &number))
			return false;
	}
	out->port = (uint16_t)number;
	if (inet_pton(AF_INET, ip, v4) == 1) {
		out->ip[10] = out->ip[11] = 0xff;
		memcpy(out->ip + 12, v4, 4);
		return true;
	}
	return inet_pton(AF_INET6, ip, out->ip) == 1;
}

/* Addresses that an option names. */
struct options_addrs {
	const char *name;
	struct net_addr *addrs;
	uint32_t max, count;
};

static enum options_result options_add_node(struct options_addrs *a, char *text)
{
	char given[80];

	if (a->count == a->max)
		return options_wrong(a->name, text, "too many nodes");
	snprintf(given, sizeof(given), "%s", text);
	if (!options_addr(text, &a->addrs[a->count]))
		return options_wrong(a->name, given, "not an address IP[:PORT] or [IPv6]:PORT");
	for (uint32_t i = 0; i < a->count; i++)
		if (net_addr_equal(&a->addrs[i], &a->addrs[a->count]))
			return options_wrong(a->name, given, "the address stands there twice");
	a->count++;
	return OPTIONS_RUN;
}

static enum options_result options_list(struct options_addrs *a, const char *list)
{
	char *copy = strdup(list), *save = NULL;
	enum options_result result = OPTIONS_RUN;

	for (char *t = copy ? strtok_r(copy, ", ", &save) : NULL; t && result == OPTIONS_RUN;
	     t = strtok_r(NULL, ", ", &save))
		result = options_add_node(a, t);
	free(copy);
	return result;
}

static enum options_result options_file(struct options_addrs *a, const char *path)
{
	enum options_result result = OPTIONS_RUN;
	char *line = NULL, *save = NULL;
	size_t room = 0;
	FILE *f = fopen(path, "re");

	while (f && result == OPTIONS_RUN && getline(&line, &room, f) >= 0) {
		line[strcspn(line, "#\r\n")] = '\0';
		for (char *t = strtok_r(line, ", \t", &save); t && result == OPTIONS_RUN;
		     t = strtok_r(NULL, ", \t", &save))
			result = options_add_node(a, t);
	}
	if (!f || ferror(f)) { /* a folder can be opened */
		log_error("cannot read %s (%s): name the file with the list of nodes", path,
			  strerror(errno));
		result = OPTIONS_WRONG;
	}
	free(line);
	if (f)
		fclose(f);
	return result;
}

static enum options_result options_addrs(struct options *o, int id, const char *value)
{
	struct options_addrs a = {"nodes", o->addrs, NODES_MAX, 0};
	enum options_result result;

	if (id == OPTION_SEEDS)
		a = (struct options_addrs){"seeds", o->seeds, SEEDS_MAX, 0};
	if (id == OPTION_NODES_FILE)
		a.name = "nodes-file";
	result = id == OPTION_NODES_FILE ? options_file(&a, value) : options_list(&a, value);
	if (result == OPTIONS_RUN && a.count == 0)
		return options_wrong(a.name, value, "names no node");
	if (id == OPTION_SEEDS)
		o->seeds_count = a.count;
	else
		o->nodes = a.count;
	return result;
}

/* Called when the list of nodes is known. */
static enum options_result options_shards(struct options *o, const char *list)
{
	char *copy, *save = NULL;
	enum options_result result = OPTIONS_RUN;

	uint32_t nodes = o->nodes > 0 ? o->nodes : NODES_MAX;

	o->shards = 0;
	if (strcmp(list, "all") == 0)
		return OPTIONS_RUN;
	copy = strdup(list);
	for (char *t = copy ? strtok_r(copy, ",", &save) : NULL; t && result == OPTIONS_RUN;
	     t = strtok_r(NULL, ",", &save)) {
		uint64_t n;

		if (!argument_number(t, 10, 0, nodes - 1, &n) || o->shards == nodes)
			result = options_wrong("shards", list, "not numbers of nodes in the list");
		else
			o->shard_nodes[o->shards++] = (uint32_t)n;
	}
	free(copy);
	return result == OPTIONS_RUN && o->shards == 0
		       ? options_wrong("shards", list, "names no node")
		       : result;
}

/* BYTES, or UID=BYTES; may be given more than once. */
static enum options_result options_quota(struct options *o, const char *value)
{
	const char *bytes = strchr(value, '=');
	char user[16] = "";
	uint64_t n, who = 0;

	if (bytes)
		snprintf(user, sizeof(user), "%.*s", (int)(bytes - value), value);
	if (!argument_number(bytes ? bytes + 1 : value, 10, 0, INT64_MAX, &n) ||
	    (bytes && ((size_t)(bytes - value) >= sizeof(user) ||
		       !argument_number(user, 10, 0, UINT32_MAX, &who))))
		return options_wrong("quota", value, "not BYTES, nor UID=BYTES");
	if (!bytes)
		o->quota_bytes = n;
	else if (o->quotas_count == CONTROL_QUOTAS_MAX)
		return options_wrong("quota", value, "more than 64 users have one of their own");
	else
		o->quotas[o->quotas_count++] = (struct control_quota){(uint32_t)who, n};
	return OPTIONS_RUN;
}

static enum options_result options_creators(struct options *o, const char *value)
{
	static const char *const names[] = {[CONTROL_CREATORS_SHARED] = "shared",
					    [CONTROL_CREATORS_AUTO] = "auto",
					    [CONTROL_CREATORS_PRIVATE] = "private"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(value, names[i]) == 0) {
			o->creators = (enum control_creators)i;
			return OPTIONS_RUN;
		}
	}
	return options_wrong("creators", value, "not shared, auto or private");
}

static enum options_result options_topology(struct options *o, const char *path)
{
	char error[TOPOLOGY_ERROR_BYTES];

	topology_free(o->topology);
	o->topology_path = path;
	o->topology = topology_read(path, error);
	if (o->topology)
		return OPTIONS_RUN;
	log_error("--topology: %s", error);
	return OPTIONS_WRONG;
}

static enum options_result options_take(struct options *o, int id, const char *value,
					const char **shards)
{
	uint64_t n;

	switch (id) {
	case OPTION_RUNDIR:
		o->rundir = value;
		if (*value == '\0' || strlen(value) > 79)
			return options_wrong("rundir", value, "not a path of 1 to 79 bytes");
		return OPTIONS_RUN;
	case OPTION_NODE:
		if (strcmp(value, "auto") == 0)
			n = UINT32_MAX;
		else if (!argument_number(value, 10, 0, NODES_MAX - 1, &n))
			return options_wrong("node", value, "not a number of a node, nor auto");
		o->node = (uint32_t)n;
		return OPTIONS_RUN;
	case OPTION_NODES:
	case OPTION_NODES_FILE:
	case OPTION_SEEDS:
		return options_addrs(o, id, value);
	case OPTION_SHARDS:
		*shards = value;
		return OPTIONS_RUN;
	case OPTION_SESSIONS:
		if (!argument_number(value, 10, 1, SESSIONS_MAX, &n))
			return options_wrong("sessions", value, "not 1 to 16384");
		o->sessions = (uint32_t)n;
		return OPTIONS_RUN;
	case OPTION_RESTART_GRACE:
		if (!argument_number(value, 10, 0, RESTART_GRACE_MAX, &n))
			return options_wrong("restart-grace", value, "not 0 to 3600 seconds");
		o->restart_grace_s = (uint32_t)n;
		return OPTIONS_RUN;
	case OPTION_SOCKET_MODE:
		if (!argument_number(value, 8, 0, 0777, &n))
			return options_wrong("socket-mode", value, "not octal rights such as 0660");
		o->socket_mode = (mode_t)n;
		return OPTIONS_RUN;
	case OPTION_CREATORS:
		return options_creators(o, value);
	case OPTION_QUOTA:
		return options_quota(o, value);
	case OPTION_SPILL:
		o->spill = value;
		return OPTIONS_RUN;
	case OPTION_SPILL_MAX:
		if (!argument_number(value, 10, 1, INT64_MAX, &o->spill_max))
			return options_wrong("spill-max", value, "not a number of bytes");
		return OPTIONS_RUN;
	case OPTION_TOPOLOGY:
		return options_topology(o, value);
	case OPTION_PLANNER:
		o->planner = planner_named(value);
		if (!o->planner)
			return options_wrong("planner", value,
					     "no planner: 'sarissa plan --why' prints all");
		return OPTIONS_RUN;
	case OPTION_LOG_LEVEL:
		if (!log_parse_level(value, &o->log_level))
			return options_wrong("log-level", value, "not a level");
		return OPTIONS_RUN;
	case OPTION_HELP:
		return options_help();
	case OPTION_VERSION:
		printf("sarissa-control %s, protocol %u\n", SARISSA_VERSION, MESSAGE_VERSION);
		return OPTIONS_DONE;
	default:
		return OPTIONS_WRONG;
	}
}

/* Whether the file has all nodes of the list. */
static bool options_places(const struct options *o, const struct topology *t)
{
	for (uint32_t node = 0; t && node < o->nodes; node++) {
		uint32_t i = 0;

		while (i < t->nodes && t->node[i].number != node)
			i++;
		if (i < t->nodes)
			continue;
		log_error("--topology: %s: node %u of the list of nodes is not in the file: add it",
			  o->topology_path, node);
		return false;
	}
	return true;
}

struct topology *options_topology_reload(const struct options *o)
{
	char error[TOPOLOGY_ERROR_BYTES];
	struct topology *t;

	if (!o->topology_path)
		return NULL;
	t = topology_read(o->topology_path, error);
	if (!t)
		log_error("--topology: %s: the earlier one stays", error);
	if (t && options_places(o, t))
		return t;
	topology_free(t);
	return NULL;
}

static enum options_result options_finish(struct options *o, const char *shards)
{
	if ((o->nodes > 0) == (o->seeds_count > 0)) {
		log_error(
			"give either the list of nodes (--nodes IP:PORT,... or --nodes-file FILE) "
			"or --seeds IP:PORT,...: see --help");
		return OPTIONS_WRONG;
	}
	if (o->nodes > 0 && o->node == OPTION_NODE_UNSET)
		o->node = 0;
	if (o->seeds_count > 0 && o->node == OPTION_NODE_UNSET)
		o->node = UINT32_MAX;
	if (o->nodes > 0 && o->node == UINT32_MAX) {
		log_error("--node auto: only seeds give numbers: give --node I, or --seeds");
		return OPTIONS_WRONG;
	}
	if (o->nodes > 0 && o->node >= o->nodes) {
		log_error("--node %u: the list has the nodes 0 to %u: see --help", o->node,
			  o->nodes - 1);
		return OPTIONS_WRONG;
	}
	if (!options_places(o, o->topology))
		return OPTIONS_WRONG;
	return options_shards(o, shards);
}

enum options_result options_parse(int argc, char **argv, struct options *out)
{
	static const struct option table[] = {
#define X(id, name, argument, help) {name, (argument) != NULL, NULL, OPTION_##id},
		OPTIONS(X)
#undef X
			{NULL, 0, NULL, 0}};
	const char *shards = "all";
	int id;

	*out = (struct options){.rundir = "/run/sarissa",
				.node = OPTION_NODE_UNSET,
				.sessions = 1024,
				.restart_grace_s = 10,
				.spill_max = INT64_MAX,
				.quota_bytes = UINT64_MAX,
				.socket_mode = 0660,
				.creators = CONTROL_CREATORS_AUTO,
				.log_level = CONTROL_LOG_INFO};
	opterr = 0;
	while ((id = getopt_long(argc, argv, "", table, NULL)) != -1) {
		enum options_result result = options_take(out, id, optarg, &shards);

		if (id == '?')
			log_error("%s is no option, or its value is missing: see --help",
				  argument_refused(argc, argv));
		if (result != OPTIONS_RUN)
			return result;
	}
	if (optind < argc) {
		log_error("unexpected argument %s: see --help", argv[optind]);
		return OPTIONS_WRONG;
	}
	return options_finish(out, shards);
}
