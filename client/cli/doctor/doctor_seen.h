/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of this node at doctor's last look, so that it can report what has changed since.
 * One small file per node in $XDG_STATE_HOME/sarissa (~/.local/state/sarissa). Without such a
 * folder every look is the first.
 */
#ifndef SARISSA_CLIENT_CLI_DOCTOR_DOCTOR_SEEN_H
#define SARISSA_CLIENT_CLI_DOCTOR_DOCTOR_SEEN_H

#include <stdbool.h>
#include "counters_file.h"

struct doctor_seen {
	uint64_t magic;
	uint64_t at_ns; /* CLOCK_REALTIME */
	uint64_t dataplane_started_ns, control_started_ns;
	uint64_t dataplane[COUNTERS_COUNT];
	uint64_t control[CONTROL_COUNTERS_COUNT];
};

/* False: it has not looked yet, or that cannot be read. */
bool doctor_seen_load(const char *socket, struct doctor_seen *out);
/* As well as may be. */
void doctor_seen_save(const char *socket, struct doctor_seen *seen);

#endif
