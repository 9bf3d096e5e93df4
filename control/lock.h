/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One control for each run directory: whoever has RUNDIR/control.lock locked, whose number stands
 * in there. The kernel lets go of it with the process, but not before its last thread has ended.
 */
#ifndef SARISSA_CONTROL_LOCK_H
#define SARISSA_CONTROL_LOCK_H

/* Makes the directory if there is none. Returns the descriptor that is the lock, or -1: it has said
 * why. */
int lock_take(const char *rundir);

#endif
