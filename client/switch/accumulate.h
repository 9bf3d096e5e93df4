/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Combines two arrays in this process: for member 0 of a round at a switch, which adds the total
 * before to its own contribution (group_switch.c). The same rules as the dataplane's kernels
 * (docs/developer/kernels.md); no instruction set. Pure.
 */
#ifndef SARISSA_CLIENT_SWITCH_ACCUMULATE_H
#define SARISSA_CLIENT_SWITCH_ACCUMULATE_H

#include <stdint.h>

/* to[i] = to[i] op from[i]; count elements, to and from at multiples of their size. SAR_AVG, or
 * what is no operation or type, leaves them. */
void accumulate(uint32_t op, uint32_t dtype, void *to, const void *from, uint64_t count);

#endif
