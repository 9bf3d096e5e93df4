/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One control per run directory: it holds the lock of RUNDIR/control.lock, which has its process
 * number. The kernel releases the lock when the last thread of the process has ended. Called by
 * host.c.
 */
#ifndef SARISSA_CONTROL_SHELL_LOCK_H
#define SARISSA_CONTROL_SHELL_LOCK_H

/* Makes the directory if there is none. Returns the descriptor that is the lock, or -1: it has said
 * why. */
int lock_take(const char *rundir);

#endif
