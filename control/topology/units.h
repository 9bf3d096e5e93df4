/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates, times and sizes as people write them: 100M, 25G (bits per second), 20us, 64M (bytes). */
#ifndef SARISSA_CONTROL_TOPOLOGY_UNITS_H
#define SARISSA_CONTROL_TOPOLOGY_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Bits per second with K, M, G or T (powers of 1,000) into bytes per second, 1 at least. False: it
 * is none, and out as it was. */
bool units_rate(const char *text, uint64_t *bytes_per_s);
/* ns, us, ms or s. */
bool units_time(const char *text, uint64_t *ns);
/* Bytes with K, M, G or T (powers of 1,024). */
bool units_size(const char *text, uint64_t *bytes);

#endif
