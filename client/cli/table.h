/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of sarissa: a row each. Its help, its completion, the reader of its options and the
 * declarations of its functions come from these rows and from the options in table.c. A test
 * compares them with the manual page.
 */
#ifndef SARISSA_CLIENT_CLI_TABLE_H
#define SARISSA_CLIENT_CLI_TABLE_H

#include "internal/program/option.h"

struct cli_args;

enum table_group { TABLE_OBJECTS, TABLE_REDUCES, TABLE_GROUPS, TABLE_CLUSTER, TABLE_PLANS };

/* The manual pages beside that of the command. */
#define TABLE_PAGES                                                                      \
	"|sarissa.3|sarissa-control|sarissa-dataplane|sarissa-switch|sar_array_describe" \
	"|sar_create|sar_device_get|sar_gather|sar_get|sar_group_create|sar_lease"       \
	"|sar_list|sar_open|sar_queue_open|sar_reduce|sar_strerror|sar_submit_get"       \
	"|sar_submit_group_push|sar_switch_join"

/*
 * X(name, function, group, usage, words, least, most, options, help)
 * group: the heading of --help under which it stands, without TABLE_.
 * words: of each place, what completes it: NAME of an object, FILE, COMMAND, or words with |
 * between them, which in the first place are verbs; "..." holds for all places behind it.
 * "-" stands for what nothing completes.
 * least, most: the count of words that are no options; most < 0: no bound.
 * options: names in table.c, beside those of every command.
 */
#define TABLE_COMMANDS(X)                                                                          \
	X(put, put_run, OBJECTS, "NAME FILE|- [OPTIONS]", "- FILE", 2, 2,                          \
	  "ttl lease lease-ttl dtype shape",                                                       \
	  "store a file, or standard input, as the object NAME")                                   \
	X(get, get_run, OBJECTS, "NAME FILE|- [OPTIONS]", "NAME FILE", 2, 2, "timeout range",      \
	  "write the object NAME to a file or standard output")                                    \
	X(prefetch, prefetch_run, OBJECTS, "NAME [NODE...] [--timeout S]", "NAME", 1,              \
	  1 + SAR_NODES_MAX, "timeout",                                                            \
	  "bring complete copies of NAME to these nodes, or to all that are up")                   \
	X(rm, rm_run, OBJECTS, "NAME...|--prefix P", "NAME...", 0, -1, "prefix",                   \
	  "remove objects from the whole cluster")                                                 \
	X(ls, ls_run, OBJECTS, "[PREFIX]", "", 0, 1, "",                                           \
	  "list the objects of the cluster, or those whose names begin so")                        \
	X(watch, watch_run, OBJECTS, "[PREFIX]", "", 0, 1, "",                                     \
	  "say when objects appear, are complete or go away")                                      \
	X(stat, stat_run, OBJECTS, "NAME", "NAME", 1, 1, "",                                       \
	  "show what is known of an object, and who holds it")                                     \
	X(reduce, reduce_run, REDUCES, "TARGET SOURCE... [OPTIONS]", "- NAME...", 2,               \
	  1 + SAR_SOURCES_MAX, "op dtype num deadline min spread wait switch member timeout",      \
	  "combine objects, element by element, into a new one")                                   \
	X(group, group_run, GROUPS, "create NAME --count N [OPTIONS]|ls|show NAME|rm NAME",        \
	  "create|ls|show|rm", 0, -1, "count dtype op policy members total switch",                \
	  "synchronisation groups: make, list, show and remove them")                              \
	X(policy, group_policy_run, GROUPS, "show TEXT|set GROUP TEXT", "show|set", 0, -1, "",     \
	  "what a policy of groups says; change that of one that runs")                            \
	X(status, status_run, CLUSTER, "[--counters]", "", 0, 0, "counters",                       \
	  "show the nodes, and the counters of this one")                                          \
	X(peers, peers_run, CLUSTER, "[--over S]", "", 0, 0, "over",                               \
	  "show the connections to other nodes, how fast and how good they are")                   \
	X(top, top_run, CLUSTER, "[--interval S] [--once]", "", 0, 0, "interval once",             \
	  "show again and again what this node and the groups do meanwhile")                       \
	X(doctor, doctor_run, CLUSTER, "", "", 0, 0, "",                                           \
	  "check this machine and its node, and say what to do")                                   \
	X(leave, status_leave_run, CLUSTER, "", "", 0, 0, "",                                      \
	  "let this node leave its cluster for good; a restart needs none")                        \
	X(local, local_run, CLUSTER, "up N|exec I -- COMMAND...|env I|kill I|start I|status|down", \
	  "up|exec|env|kill|start|status|down", 0, -1, "name store objects workers rails",         \
	  "a cluster of nodes on this machine, without root")                                      \
	X(plan, plan_run, PLANS, "[OPTIONS]|--last", "", 0, 0,                                     \
	  "op size topology nodes rate latency mtu planner why simulate dot svg last",             \
	  "which plan an operation gets over a network, and why")                                  \
	X(topology, plan_topology_run, PLANS, "SHAPE|check FILE|show FILE|probe FILE",             \
	  "check|show|probe|flat:|bcube:|torus:|fattree: FILE", 1, 2, "rate latency",              \
	  "the topology file of a regular network; checks one, or measures its links")             \
	X(help, main_help_run, CLUSTER, "[TOPIC]", "COMMAND" TABLE_PAGES, 0, 1, "",                \
	  "the help of a command, the manual of a function or of a daemon")

struct table_command {
	const char *name;
	int (*run)(const struct cli_args *args);
	enum table_group group;
	const char *usage, *words;
	int least, most;
	const char *options, *help;
};

/* NULL: there is none of that name. */
const struct table_command *table_find(const char *name);
/* The name that is most like a word, or NULL: none is. */
const char *table_like(const char *word);

/* The options of every command, and those of this one, if it is not NULL. Returns their count. */
size_t table_options(const struct table_command *command, struct option_row out[OPTION_ROWS_MAX]);

/* The help of a command; NULL: of all. */
void table_help(const struct table_command *command);

/* Prints all that may stand in place of the last of these words behind `sarissa`, for the
 * completion of a shell: a line each, which begins with w (a word), n (the name of an object, which
 * must be quoted) or is f alone (files). An exit status. */
int table_complete(int count, char **words, const char *socket);

#endif
