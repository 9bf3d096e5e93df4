/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks of `sarissa doctor`. Each reports one finding or more; a finding that is not ok says
 * what to do. Nothing is changed on the machine.
 */
#ifndef SARISSA_CLI_DOCTOR_H
#define SARISSA_CLI_DOCTOR_H

#include "cli.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor {
	const struct cli_args *args;
	bool has_node; /* the local node answered: node is set */
	bool no_node;  /* nothing answers at the socket */
	sar_node node;
	unsigned count[3]; /* findings by level */
};

/* One finding. what: one word or two; fix: what to do, NULL for none. */
void doctor_report(struct doctor *d, enum doctor_level level, const char *what, const char *fix,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* doctor_node.c: asks the node, and checks what it says of itself and of the others */
void doctor_check_node(struct doctor *d);
/* doctor_counters.c */
void doctor_check_counters(struct doctor *d);
/* doctor_host.c: this machine, with or without a node */
void doctor_check_host(struct doctor *d);

/* First line of a small file without its newline; false when there is none. */
bool doctor_read_line(const char *path, char *out, unsigned room);
/* Whether a process with this pid exists. */
bool doctor_alive(int32_t pid);

#endif
