/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library keeps in sar_buffer.reserved. A buffer belongs to one thread at a time.
 */
#ifndef SARISSA_CLIENT_BUFFER_H
#define SARISSA_CLIENT_BUFFER_H

#include <string.h>
#include "sarissa/sarissa.h"

enum buffer_kind {
	BUFFER_NONE = 0,
	BUFFER_READ = 0x53425244, /* not values that stray memory is likely to hold */
	BUFFER_WRITE = 0x53425752,
	BUFFER_PRIVATE = 0x53425056, /* memory of this process, no object */
};

struct buffer {
	uint32_t kind; /* enum buffer_kind */
	uint32_t pin;
	uint32_t slot;
	uint32_t store; /* sar.stores when it was taken */
	uint64_t generation;
	void *base; /* BUFFER_WRITE, BUFFER_PRIVATE: the mapping */
	uint64_t bytes;
};
_Static_assert(sizeof(struct buffer) == sizeof(((sar_buffer *)0)->reserved),
	       "what we keep fits what the API reserves");

static inline struct buffer buffer_get(const sar_buffer *b)
{
	struct buffer own;
	memcpy(&own, b->reserved, sizeof(own));
	return own;
}

static inline void buffer_set(sar_buffer *b, const struct buffer *own)
{
	memcpy(b->reserved, own, sizeof(*own));
}

#endif
