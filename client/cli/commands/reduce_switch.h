/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa reduce with --switch and --member. Called by reduce.c. */
#ifndef SARISSA_CLIENT_CLI_COMMANDS_REDUCE_SWITCH_H
#define SARISSA_CLIENT_CLI_COMMANDS_REDUCE_SWITCH_H

#include "cli/cli.h"

/* Returns the exit status, with a line printed. */
int reduce_switch_run(const struct cli_args *args, sar *s, sar_id target, const sar_id *source,
		      unsigned count);

#endif
