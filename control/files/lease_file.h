/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RUNDIR/leases: the leases of this node's clients, for the next control here (core/lease/kept.h).
 * Only the core writes it, through the mapping. Called by host.c.
 */
#ifndef SARISSA_CONTROL_FILES_LEASE_FILE_H
#define SARISSA_CONTROL_FILES_LEASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct lease_kept;

/* Maps the file, and makes it if need be. NULL: one line said why; leases end with control then. */
struct lease_kept *lease_file_map(const char *rundir);

#endif
