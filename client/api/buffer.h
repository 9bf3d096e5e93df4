/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library keeps in sar_buffer.reserved. A buffer belongs to one thread at a time.
 */
#ifndef SARISSA_CLIENT_API_BUFFER_H
#define SARISSA_CLIENT_API_BUFFER_H

#include <string.h>
#include <sys/mman.h>
#include "internal/session.h"
#include "sarissa/sarissa.h"

enum buffer_kind {
	BUFFER_NONE = 0,
	BUFFER_READ = 0x53425244, /* not values that stray memory is likely to hold */
	BUFFER_WRITE = 0x53425752,
	BUFFER_PRIVATE = 0x53425056, /* memory of this process, no object */
};

enum { BUFFER_PRIVATE_MORE = SAR_META_MAX }; /* bytes behind the data: the metadata */

struct buffer {
	uint32_t kind; /* enum buffer_kind */
	uint16_t pin;
	uint8_t page; /* BUFFER_WRITE, BUFFER_PRIVATE: of the mapping, as a power of two; 0: there
		       * is no mapping */
	uint8_t pad;
	uint32_t slot;
	uint32_t store; /* sar.stores when it was taken */
	uint64_t generation;
};
_Static_assert(SESSION_PINS <= UINT16_MAX, "a pin fits");
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

/* Unmaps the memory that a buffer has for itself: more bytes may lie behind its data. */
static inline void buffer_unmap(const sar_buffer *b, const struct buffer *own, uint64_t more)
{
	uint64_t page = UINT64_C(1) << own->page;
	uintptr_t begin = (uintptr_t)b->data / page * page;
	uintptr_t end = ((uintptr_t)b->data + b->size + more + page - 1) / page * page;
	if (own->page)
		munmap((void *)begin, end - begin);
}

#endif
