/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the subcommands of `sarissa` share: arguments, errors, exit statuses. One thread.
 */
#ifndef SARISSA_CLIENT_CLI_CLI_H
#define SARISSA_CLIENT_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include "table.h"
#include "internal/plan_options.h"
#include "sarissa/group.h"
#include "sarissa/sarissa.h"

enum cli_exit {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_TIMED_OUT = 3,
	CLI_NOT_FOUND = 4, /* no such object, or group */
	CLI_PARTIAL = 5,   /* a part of the directory does not answer */
	CLI_NO_NODE = 6,   /* no node here, or a part of it does not run */
};

/* Set by the rows of table.c. */
struct cli_args {
	const char *socket; /* never NULL */
	bool json, counters, once, wait, last;
	int64_t timeout_ns;	    /* SAR_FOREVER without --timeout */
	int64_t over_ns;	    /* 0 without --over */
	int64_t interval_ns;	    /* 2 s without --interval */
	sar_reduction reduction;    /* dtype: of put as well */
	const char *shape;	    /* of put; NULL: one dimension */
	int64_t deadline_ns;	    /* -1 without --deadline */
	const char *switch_address; /* NULL without --switch */
	uint32_t member;
	int64_t ttl_ns;	      /* of the object; 0 without --ttl */
	int64_t lease_ttl_ns; /* an hour without --lease-ttl */
	const char *lease;    /* NULL without --lease */
	const char *prefix;   /* NULL without --prefix */
	const char *range;    /* NULL without --range */
	sar_group_spec group;
	struct {
		const char *name;
		uint64_t store_mib, objects, workers, rails;
	} local;
	struct plan_options plan;
	char **names; /* what is not an option */
	int count;    /* of names */
	char **words; /* all of the command line from the command on, for a program that it becomes
		       */
	int words_count;
};

/* The functions of all commands: their exit statuses. */
#define X(name, run, ...) int run(const struct cli_args *args);
TABLE_COMMANDS(X)
#undef X

/* Prints "sarissa: ..." as one line on stderr and returns the exit status that goes with error
 * (negative errno). */
int cli_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like cli_fail(), with the library's words for its last failure; subject may be NULL. */
int cli_fail_detail(int error, const char *subject);
/* Like cli_fail(), with the words of a queue's completion. */
int cli_fail_with(int error, const char *detail, const char *subject);

/* Like cli_fail(), of a file of counters beside the socket; -EPROTO: it is of another version. */
int cli_fail_counters(int error, const char *path);

/* The library's words about its last failure, without the object's name at their front. */
const char *cli_detail(const char *subject);

/* One line about the words of a command, which stands in front of it; NULL: of none. CLI_USAGE. */
int cli_wrong(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens the node. CLI_DONE, or prints why not and returns the exit status. */
int cli_open(const struct cli_args *args, sar **out);

/* The id that a name on the command line stands for: "id:" and 32 hexadecimal digits, or any other
 * name. */
sar_id cli_id(const char *name);

/* The object's future name, or NULL when that is an id. */
const char *cli_called(const char *name);

/* CLI_DONE, or CLI_USAGE and a line, when a name has no place in an object. */
int cli_check_name(const char *name);

/* CLOCK_MONOTONIC */
uint64_t cli_now_ns(void);

/* Items with room for one more than count, of which it makes room for twice as many when it has to;
 * NULL: there is no memory, and the items are as they were. */
void *cli_grown(void *items, size_t count, size_t item_bytes);

/* Ends what was printed: CLI_DONE, or CLI_FAILED and a line when stdout could not take it. */
int cli_flush(void);

/* Closes the node and ends what was printed. The exit status: the command's own if it failed. */
int cli_close(sar *s, int status);

#endif
