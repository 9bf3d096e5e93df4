/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of put and get. */
#ifndef SARISSA_CLIENT_CLI_COMMANDS_TRANSFER_H
#define SARISSA_CLIENT_CLI_COMMANDS_TRANSFER_H

#include <stdio.h>
#include "cli/cli.h"

/* Bytes moved between two looks at the progress; also the grain of publishing, so a reader
 * elsewhere starts one block after the writer. */
enum { TRANSFER_BLOCK_BYTES = 1 << 20 };

/* The --json line of a finished transfer. */
void transfer_report(FILE *file, const char *name, uint64_t bytes, uint64_t started_ns);

#endif
