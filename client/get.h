/* SPDX-License-Identifier: BSD-3-Clause */
/* What queues know of reads beyond their users. No system call in any of these. Any thread. */
#ifndef SARISSA_CLIENT_GET_H
#define SARISSA_CLIENT_GET_H

#include "buffer.h"
#include "handle.h"

/* The object, pinned, when it is complete on this node: 1. 0: control has to be asked, perhaps
 * another one than ours by now. -EMFILE, -EPROTO. Never connects. */
int get_here(struct sar *s, const sar_id *id, sar_buffer *out);

/* An object that is pinned and checked. */
struct get_place {
	uint32_t pin, slot;
	uint64_t generation, offset, size, ready;
	const struct object_meta *meta;
};

/* Takes its pages into the caller's buffer. */
void get_fill(struct sar *s, const struct get_place *place, sar_buffer *out);

/* Remembers the metadata in the answer to a GET. False: the answer makes no sense. */
bool get_described(struct sar *s, const struct object_id *id, const struct session_reply *reply);

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
