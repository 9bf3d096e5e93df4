/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metadata of an object: up to OBJECT_META_BYTES bytes that its creator chooses. The store does
 * not read them; what they say of arrays is in include/sarissa/array.h.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_OBJECT_META_H
#define SARISSA_INCLUDE_INTERNAL_OBJECT_META_H

#include <stdint.h>

enum { OBJECT_META_BYTES = 128 };

struct object_meta {
	uint8_t bytes; /* at most OBJECT_META_BYTES; 0: none */
	uint8_t data[OBJECT_META_BYTES];
};

#endif
