/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of reads that queues use and users of the library do not see. None of these functions
 * makes a system call. Any thread. */
#ifndef SARISSA_CLIENT_API_GET_H
#define SARISSA_CLIENT_API_GET_H

#include "buffer.h"
#include "link/handle.h"

/* The object, pinned, when it is complete on this node: 1. 0: control has to be asked, perhaps
 * another one than ours by now. -EMFILE, -EPROTO. Never connects. */
int get_here(struct sar *s, const sar_id *id, sar_buffer *out);

/* An object that is pinned. */
struct get_place {
	uint32_t pin, slot;
	uint64_t generation, offset, size, ready;
};

/* Lets the caller's buffer point to its bytes and metadata. False: they are not in the store. */
bool get_fill(struct sar *s, const struct get_place *place, sar_buffer *out);

/* Looks into the table how far the object has come. Returns 0, or when nothing more will come
 * -ESTALE (it was taken away), -ENODATA (the rest is lost) or -ERESTART (another generation, or
 * another store, takes its place). */
int get_refresh(struct sar *s, sar_buffer *b, const struct buffer *own);

/* Maps the bytes of a complete object again, writable for this process alone (map_private). b must
 * not be released before the caller has unmapped out->base. 0; -ENOTSUP, -EINVAL, or those of mmap:
 * copy the bytes. */
int get_private(struct sar *s, const sar_buffer *b, struct map_range *out);

/* sar_release that never connects. */
void get_give_back(struct sar *s, sar_buffer *b);

#endif
