/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places between two writes to memory that outlives the process: the object table, the tombstones
 * behind it, the bitmaps and counts of chunks. The simulator compiles the files that write them a
 * second time with SARISSA_CRASH_POINTS, and lets a process die at one of these places
 * (tests/sim/model/crash.c). Elsewhere they are nothing.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_CRASH_POINT_H
#define SARISSA_INCLUDE_INTERNAL_CRASH_POINT_H

#ifdef SARISSA_CRASH_POINTS
void crash_point(void);
#else
static inline void crash_point(void)
{
}
#endif

#endif
