/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/message/message.h"
#include "core/planner/planner.h"
#include "internal/program/option.h"
#include "log.h"
#include "topology/file.h"

#ifndef SARISSA_VERSION
#error "the build says which version this is"
#endif

enum {
	SESSIONS_MAX = 16384,
	RESTART_GRACE_MAX = 3600, /* seconds */
	OPTION_NODE_UNSET = NODES_MAX,
};

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
	struct net_addr *addrs;
	uint32_t max, *count;
};

/* Why it is none, or NULL. */
static const char *options_add_node(struct options_addrs *a, char *text)
{
	static char why[160];
	char given[80];

	if (*a->count == a->max)
		return "too many nodes";
	snprintf(given, sizeof(given), "%s", text);
	snprintf(why, sizeof(why), "%s is no address IP[:PORT] or [IPv6]:PORT", given);
	if (!options_addr(text, &a->addrs[*a->count]))
		return why;
	snprintf(why, sizeof(why), "the address %s stands there twice", given);
	for (uint32_t i = 0; i < *a->count; i++)
		if (net_addr_equal(&a->addrs[i], &a->addrs[*a->count]))
			return why;
	++*a->count;
	return NULL;
}

static const char *options_list(struct options_addrs *a, char *list)
{
	const char *why = NULL;
	char *save = NULL;

	for (char *t = strtok_r(list, ", \t", &save); t && !why; t = strtok_r(NULL, ", \t", &save))
		why = options_add_node(a, t);
	return why;
}

static const char *options_addresses(struct options_addrs a, const char *value)
{
	char *copy = strdup(value);
	const char *why;

	*a.count = 0;
	why = copy ? options_list(&a, copy) : "out of memory";
	free(copy);
	return why || *a.count ? why : "names no node";
}

static const char *options_nodes(const char *value, void *into)
{
	struct options *o = into;

	return options_addresses((struct options_addrs){o->addrs, NODES_MAX, &o->nodes}, value);
}

static const char *options_seeds(const char *value, void *into)
{
	struct options *o = into;

	return options_addresses((struct options_addrs){o->seeds, SEEDS_MAX, &o->seeds_count},
				 value);
}

static const char *options_nodes_file(const char *path, void *into)
{
	struct options *o = into;
	struct options_addrs a = {o->addrs, NODES_MAX, &o->nodes};
	static char unread[128];
	const char *why = NULL;
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen(path, "re");

	o->nodes = 0;
	while (f && !why && getline(&line, &room, f) >= 0) {
		line[strcspn(line, "#\r\n")] = '\0';
		why = options_list(&a, line);
	}
	if (!f || ferror(f)) { /* a folder can be opened */
		snprintf(unread, sizeof(unread),
			 "cannot be read (%s): name the file with the list of nodes",
			 strerror(errno));
		why = unread;
	}
	free(line);
	if (f)
		fclose(f);
	return why || o->nodes ? why : "names no node";
}

/* Called when the list of nodes is known. */
static enum options_result options_shards(struct options *o)
{
	uint32_t nodes = o->nodes > 0 ? o->nodes : NODES_MAX;
	char *copy = strdup(o->shard_list), *save = NULL;
	bool good = copy;
	uint64_t n;

	if (strcmp(o->shard_list, "all") != 0) {
		for (char *t = good ? strtok_r(copy, ",", &save) : NULL; t && good;
		     t = strtok_r(NULL, ",", &save)) {
			good = argument_number(t, 10, 0, nodes - 1, &n) && o->shards < nodes;
			if (good)
				o->shard_nodes[o->shards++] = (uint32_t)n;
		}
		good = good && o->shards > 0;
	}
	free(copy);
	if (!good)
		log_error("--shards %s: these are not numbers of nodes in the list: see --help",
			  o->shard_list);
	return good ? OPTIONS_RUN : OPTIONS_WRONG;
}

/* BYTES, or UID=BYTES; may be given more than once. */
static const char *options_quota(const char *value, void *into)
{
	struct options *o = into;
	const char *bytes = strchr(value, '=');
	char user[16] = "";
	uint64_t n, who = 0;

	if (bytes)
		snprintf(user, sizeof(user), "%.*s", (int)(bytes - value), value);
	if (!argument_number(bytes ? bytes + 1 : value, 10, 0, INT64_MAX, &n) ||
	    (bytes && ((size_t)(bytes - value) >= sizeof(user) ||
		       !argument_number(user, 10, 0, UINT32_MAX, &who))))
		return "not BYTES, nor UID=BYTES";
	if (!bytes)
		o->quota_bytes = n;
	else if (o->quotas_count == CONTROL_QUOTAS_MAX)
		return "more than 64 users have one of their own";
	else
		o->quotas[o->quotas_count++] = (struct control_quota){(uint32_t)who, n};
	return NULL;
}

static const char *options_rundir(const char *value, void *into)
{
	((struct options *)into)->rundir = value;
	return *value && strlen(value) < 80 ? NULL : "not a path of 1 to 79 bytes";
}

static const char *options_node(const char *value, void *into)
{
	uint64_t n = UINT32_MAX;

	if (strcmp(value, "auto") != 0 && !argument_number(value, 10, 0, NODES_MAX - 1, &n))
		return "not a number of a node, nor auto";
	((struct options *)into)->node = (uint32_t)n;
	return NULL;
}

static const char *options_socket_mode(const char *value, void *into)
{
	uint64_t n;

	if (!argument_number(value, 8, 0, 0777, &n))
		return "not octal rights such as 0660";
	((struct options *)into)->socket_mode = (mode_t)n;
	return NULL;
}

static const char *options_planner(const char *value, void *into)
{
	const struct planner *planner = planner_named(value);

	((struct options *)into)->planner = planner;
	return planner ? NULL : "no planner: 'sarissa plan --why' prints all";
}

static const struct option_row options_rows[] = {
	{"rundir", "DIR", "where the sockets live (/run/sarissa)", OPTION_TAKE(options_rundir)},
	{"node", "I", "this node's number, from 0; auto: a seed gives one",
	 OPTION_TAKE(options_node)},
	{"nodes", "LIST", "all nodes, the same everywhere: IP[:PORT],...",
	 OPTION_TAKE(options_nodes)},
	{"nodes-file", "FILE", "the same list, one per line; # begins a comment",
	 OPTION_TAKE(options_nodes_file)},
	{"seeds", "LIST", "instead: some nodes' IP[:PORT],... that know the others",
	 OPTION_TAKE(options_seeds)},
	{"shards", "LIST", "nodes that keep the directory: I,... (all that live)",
	 OPTION_TEXT(struct options, shard_list)},
	{"sessions", "N", "clients at a time (1024)",
	 OPTION_NUMBER(struct options, sessions, 1, SESSIONS_MAX, 1)},
	{"restart-grace", "S", "how long a restarting control is waited for (10)",
	 OPTION_NUMBER(struct options, restart_grace_s, 0, RESTART_GRACE_MAX, 1)},
	{"socket-mode", "OCTAL", "rights of the clients' socket (0660)",
	 OPTION_TAKE(options_socket_mode)},
	{"creators", "HOW", "who writes into the store: shared, auto, private (auto)",
	 OPTION_CHOICE(struct options, creators, CONTROL_CREATORS_SHARED, "shared auto private")},
	{"spill", "DIR", "where objects go that the store has no room for (nowhere)",
	 OPTION_TEXT(struct options, spill)},
	{"spill-max", "BYTES", "of these at most (as much as the disk has)",
	 OPTION_NUMBER(struct options, spill_max, 1, INT64_MAX, 1)},
	{"quota", "BYTES", "of objects that one user may put here; UID=BYTES: this one",
	 OPTION_TAKE(options_quota)},
	{"topology", "FILE", "a topology file, the same at all nodes (none)",
	 OPTION_TEXT(struct options, topology_path)},
	{"planner", "NAME", "of reduces, where it fits (the best)", OPTION_TAKE(options_planner)},
	{"log-level", "LEVEL", "error, warning, info or debug (info)",
	 OPTION_CHOICE(struct options, log_level, CONTROL_LOG_ERROR, "error warning info debug")},
	{"help", NULL, "this text", OPTION_STOP},
	{"version", NULL, "the version", OPTION_STOP},
};

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

static enum options_result options_finish(struct options *o)
{
	char error[TOPOLOGY_ERROR_BYTES];

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
	o->topology = o->topology_path ? topology_read(o->topology_path, error) : NULL;
	if (o->topology_path && !o->topology) {
		log_error("--topology: %s", error);
		return OPTIONS_WRONG;
	}
	return options_places(o, o->topology) ? options_shards(o) : OPTIONS_WRONG;
}

static enum options_result options_show(const struct option_row *row)
{
	if (strcmp(row->name, "version") == 0) {
		printf("sarissa-control %s, protocol %u\n", SARISSA_VERSION, MESSAGE_VERSION);
		return OPTIONS_DONE;
	}
	printf("Usage: sarissa-control --node I --nodes IP:PORT,... [OPTION...]\n"
	       "       sarissa-control --seeds IP:PORT,... [OPTION...]\n"
	       "Decides for one Sarissa node which object moves where; its sarissa-dataplane "
	       "moves it.\n\n");
	option_help(options_rows, sizeof(options_rows) / sizeof(*options_rows));
	return OPTIONS_DONE;
}

enum options_result options_parse(int argc, char **argv, struct options *out)
{
	struct option_reader reader = {.row = options_rows,
				       .rows = sizeof(options_rows) / sizeof(*options_rows),
				       .argc = argc,
				       .argv = argv,
				       .form = ":"};
	const struct option_row *stop;

	*out = (struct options){.rundir = "/run/sarissa",
				.node = OPTION_NODE_UNSET,
				.shard_list = "all",
				.sessions = 1024,
				.restart_grace_s = 10,
				.spill_max = INT64_MAX,
				.quota_bytes = UINT64_MAX,
				.socket_mode = 0660,
				.creators = CONTROL_CREATORS_AUTO,
				.log_level = CONTROL_LOG_INFO};
	stop = option_read(&reader, out);
	if (stop)
		return options_show(stop);
	if (!*reader.wrong && optind < argc)
		snprintf(reader.wrong, sizeof(reader.wrong), "unexpected argument %.200s",
			 argv[optind]);
	if (!*reader.wrong)
		return options_finish(out);
	log_error("%s: see --help", reader.wrong);
	return OPTIONS_WRONG;
}
