/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks of `sarissa doctor`. Each reports one finding or more; a finding that is not ok says
 * what to do. Nothing is changed on the machine.
 */
#ifndef SARISSA_CLIENT_CLI_DOCTOR_DOCTOR_H
#define SARISSA_CLIENT_CLI_DOCTOR_DOCTOR_H

#include "cli/cli.h"
#include "counters_file.h"
#include "doctor_seen.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };
enum doctor_process_kind { DOCTOR_DATAPLANE, DOCTOR_CONTROL };
enum { DOCTOR_SINCE_BYTES = 128 };

struct doctor {
	const struct cli_args *args;
	bool has_node; /* the local node answered: node is set */
	bool no_node;  /* nothing answers at the socket */
	sar_node node;
	/* what the processes write, alive or dead; 0 or -errno */
	int dataplane_error, control_error;
	struct counters_file_view dataplane;
	struct control_file_view control;
	bool looked; /* there was an earlier look: before is set */
	struct doctor_seen before, now;
	unsigned count[3]; /* findings by level */
};

/* One finding. what: one word or two; fix: what to do, NULL for none. */
void doctor_report(struct doctor *d, enum doctor_level level, const char *what, const char *fix,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* How much a counter of a process has risen since the last look. Returns whether it is to be
 * spoken of: it rose, or there is nothing to compare with. text: ", 5 of them since the last look
 * 3:20 ago", ", none since ...", or nothing. */
bool doctor_since(const struct doctor *d, enum doctor_process_kind kind, size_t i, uint64_t total,
		  char text[DOCTOR_SINCE_BYTES]);

/* doctor_node.c: asks the node, and checks what it says of itself and of the others */
void doctor_check_node(struct doctor *d);
/* doctor_process.c */
void doctor_check_processes(struct doctor *d);
/* doctor_counters.c: of the dataplane */
void doctor_check_counters(struct doctor *d);
/* doctor_card.c */
void doctor_check_card(struct doctor *d);
/* doctor_paths.c */
void doctor_check_paths(struct doctor *d);
/* doctor_control.c */
void doctor_check_control(struct doctor *d);
/* doctor_host.c: this machine, with or without a node */
void doctor_check_host(struct doctor *d);

/* The node's port is kernel sockets: it needs neither AF_XDP nor memory for packets. */
bool doctor_on_sockets(const struct doctor *d);

/* First line of a small file without its newline; false when there is none. */
bool doctor_read_line(const char *path, char *out, unsigned room);
/* Whether a process with this pid exists. */
bool doctor_alive(int32_t pid);

#endif
