/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The line on a terminal's stderr that shows a transfer. It appears only when stderr is a terminal
 * and the transfer has lasted a second; it is redrawn at most ten times a second.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_PROGRESS_H
#define SARISSA_CLIENT_CLI_SUPPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on;    /* stderr is a terminal */
	bool drawn; /* something stands on the line */
	const char *verb, *name;
	uint64_t started_ns, drawn_ns;
	uint64_t since_ns;   /* of the rate on the line: what came before a new start is lost */
	uint64_t base_bytes; /* there at since_ns: not part of the rate */
};

void progress_begin(struct progress *p, const char *verb, const char *name, uint64_t base_bytes);
/* total_bytes 0: not known yet. */
void progress_show(struct progress *p, uint64_t done_bytes, uint64_t total_bytes);
/* Restarts at base_bytes; the time goes on. */
void progress_restart(struct progress *p, uint64_t base_bytes);
/* Takes the line away; after a transfer that was shown says how it went, when bytes > 0. */
void progress_end(struct progress *p, uint64_t bytes);

#endif
