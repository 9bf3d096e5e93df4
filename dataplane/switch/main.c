/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa-switch: see docs/man/sarissa-switch.8. */
#include "switch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "internal/program/notify.h"
#include "internal/program/option.h"
#include "internal/program/standard_fds.h"
#include "io/observe/log.h"

static volatile sig_atomic_t stop;

static void switch_end(int signal_number)
{
	stop = 1;
}

static const char *switch_port(const char *value, void *into)
{
	struct switch_options *o = into;
	struct in_addr ip;
	bool xdp = strncmp(value, "xdp:", 4) == 0;
	const char *name = value + (xdp ? 4 : 7);
	if (strncmp(value, "udp:", 4) == 0) {
		o->host = value + 4;
		return inet_pton(AF_INET, o->host, &ip) == 1 ? NULL
							     : "not udp: and an IPv4 address";
	}
	if ((!xdp && strncmp(value, "af_xdp:", 7) != 0) || *name == '\0' || strchr(name, ','))
		return "a port is af_xdp:IFACE, xdp:IFACE or udp:ADDR";
	if (o->ports > 0 && o->xdp != xdp)
		return "ports are all of one kind";
	o->xdp = xdp;
	if (o->ports == SWITCH_PORTS_MAX)
		return "a switch has at most 32 ports";
	for (unsigned i = 0; i < o->ports; i++)
		if (strcmp(o->interface[i], name) == 0)
			return "given twice";
	o->interface[o->ports++] = name;
	return NULL;
}

static const char *switch_address(const char *value, void *into)
{
	struct switch_options *o = into;
	o->has_address = true;
	return inet_pton(AF_INET, value, o->address) == 1 ? NULL : "not an IPv4 address";
}

static const char *switch_window(const char *value, void *into)
{
	uint64_t n;
	if (!argument_number(value, 10, 8, AGGREGATE_WINDOW_MAX, &n) || (n & (n - 1)))
		return "a window is a power of two, 8 to 4096";
	((struct switch_options *)into)->window = (unsigned)n;
	return NULL;
}

static const struct option_row switch_rows[] = {
	{"port", "SPEC", "af_xdp:IFACE or xdp:IFACE, repeated; or once udp:ADDR",
	 OPTION_TAKE(switch_port)},
	{"addr", "IP", "answer ARP for this address of the switch", OPTION_TAKE(switch_address)},
	{"groups", "N", "groups at a time, 1 to 64 (16)",
	 OPTION_NUMBER(struct switch_options, groups, 1, AGGREGATE_GROUPS_MAX, 1)},
	{"window", "N", "slots of a version: a power of two, 8 to 4096 (256)",
	 OPTION_TAKE(switch_window)},
	{"role", "ROLE", "switch, as sarissa-dataplane passes it on",
	 OPTION_CHOICE(struct switch_options, role, 0, "switch")},
	{"log-level", "LEVEL", "error, warning, info or debug (info)",
	 OPTION_CHOICE(struct switch_options, log_level, LOG_ERROR, "error warning info debug")},
	{"help", NULL, "this text", OPTION_STOP},
	{"version", NULL, "the version", OPTION_STOP},
};

/* 0: run; 1: done; 2: wrong. */
static int switch_parse(int argc, char **argv, struct switch_options *o)
{
	struct option_reader reader = {.row = switch_rows,
				       .rows = sizeof(switch_rows) / sizeof(*switch_rows),
				       .argc = argc,
				       .argv = argv,
				       .form = ":"};
	const struct option_row *row = option_read(&reader, o);
	if (row && strcmp(row->name, "version") == 0) {
		printf("sarissa-switch %s\n", SARISSA_VERSION);
		return 1;
	}
	if (row) {
		printf("Usage: sarissa-dataplane --role switch --port SPEC [OPTION...]\n"
		       "A switch that adds up contributions on the way.\n\n");
		option_help(switch_rows, reader.rows);
		return 1;
	}
	if (*reader.wrong)
		log_error("%s: see --help", reader.wrong);
	else if (optind < argc)
		log_error("unexpected argument %s: see --help", argv[optind]);
	else if (!o->host == (o->ports == 0))
		log_error("--port: name interfaces as af_xdp:IFACE, or one udp:ADDR: see --help");
	else
		return 0;
	return 2;
}

/* One line of JSON on standard output, for who started us. */
static void switch_report(const struct switch_state *w)
{
	static const char *const names[AGGREGATE_VERDICTS] = {
		"bad",	  "pass",   "foreign", "added",	 "duplicate", "complete",
		"repeat", "answer", "late",    "refuse", "expired"};
	printf("{\"received\": %llu, \"forwarded\": %llu, \"flooded\": %llu, \"sent\": %llu, "
	       "\"dropped\": %llu",
	       (unsigned long long)w->count.received, (unsigned long long)w->count.forwarded,
	       (unsigned long long)w->count.flooded, (unsigned long long)w->count.sent,
	       (unsigned long long)w->count.dropped);
	for (unsigned i = 0; i < AGGREGATE_VERDICTS; i++)
		printf(", \"%s\": %llu", names[i], (unsigned long long)w->pool.count[i]);
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct switch_options o = {.groups = 16, .window = 256, .log_level = LOG_INFO};
	static struct switch_state w;
	standard_fds_hold();
	log_set_name("sarissa-switch");
	int r = switch_parse(argc, argv, &o);
	if (r)
		return r == 2 ? 2 : 0;
	log_set_level(o.log_level);
	uint64_t bytes = aggregate_bytes(o.groups, o.window);
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		log_error("no memory for %u groups of %u slots: use fewer", o.groups, o.window);
		return 1;
	}
	struct sigaction on_end = {.sa_handler = switch_end}; /* a wait ends, too */
	sigaction(SIGTERM, &on_end, NULL);
	sigaction(SIGINT, &on_end, NULL);
	w.options = &o;
	aggregate_init(&w.pool, o.groups, o.window, memory, kernel_level_best());
	r = o.host ? host_run(&w, &stop) : o.xdp ? xdp_shell_run(&w, &stop) : ports_run(&w, &stop);
	if (r)
		return 1;
	switch_report(&w);
	return 0;
}
