/* SPDX-License-Identifier: BSD-3-Clause */
/* `sarissa topology probe FILE`: probe.c. */
#ifndef SARISSA_CLIENT_CLI_DOCTOR_PROBE_H
#define SARISSA_CLIENT_CLI_DOCTOR_PROBE_H

#include "cli/cli.h"

int probe_run(const struct cli_args *args);

/* plan.c: this process becomes sarissa-plan with these words. Returns only if that fails: an exit
 * status, and said why. */
int plan_become(const struct cli_args *args);

#endif
