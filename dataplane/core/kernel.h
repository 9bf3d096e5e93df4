/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels: how the bytes of an arriving chunk go into a buffer. An IN edge holds one; a reduce
 * adds kernels here and changes nothing else.
 */
#ifndef SARISSA_DATAPLANE_CORE_KERNEL_H
#define SARISSA_DATAPLANE_CORE_KERNEL_H

#include <stdint.h>
#include <string.h>

/* Applies length bytes of payload (any alignment) to the chunk at to. */
typedef void kernel_fn(uint8_t *to, const uint8_t *payload, uint32_t length);

static inline void kernel_copy(uint8_t *to, const uint8_t *payload, uint32_t length)
{
	memcpy(to, payload, length);
}

#endif
