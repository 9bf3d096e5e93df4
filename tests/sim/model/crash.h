/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets a process of a simulated node die between two of its writes to shared memory. The cores call
 * crash_point() there (internal/crash_point.h); the nodes call the cores through crash_run().
 */
#ifndef SARISSA_TESTS_SIM_MODEL_CRASH_H
#define SARISSA_TESTS_SIM_MODEL_CRASH_H

#include <stdbool.h>
#include <stdint.h>

/* Calls run(arg), which passes crash points. *left is the number of points until the process dies;
 * 0 means that it lives. Returns false when the process died: run() has not come to its end, and
 * the memory of that process says nothing any more. */
bool crash_run(uint32_t *left, void (*run)(void *arg), void *arg);

#endif
