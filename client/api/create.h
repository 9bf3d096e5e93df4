/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of sar_create's buffers that puts and queues use and users of the library do not see. */
#ifndef SARISSA_CLIENT_API_CREATE_H
#define SARISSA_CLIENT_API_CREATE_H

#include <stdbool.h>
#include "buffer.h"
#include "link/handle.h"

/* Whether it is written in a private staging buffer, from which control copies. */
bool create_is_staged(sar *s, const sar_buffer *b);
/* Creations whose pins are marked go along to another control. */
void create_mark(struct sar *s, uint32_t pin);
void create_unmark(struct sar *s, uint32_t pin);
/* Maps what CREATE gave, and frees the result. The place in the reply is in use, whatever is
 * returned. */
int create_map(struct sar *s, uint64_t size, uint32_t pin, struct mux_result *result,
	       sar_buffer *out);
/* Unmaps it; the buffer is zeroed. */
void create_leave(sar_buffer *b, const struct buffer *own);
/* How long control may take until readers have so many bytes more: a second for each GB when it
 * copies them, and many others' meanwhile. */
int64_t create_patience(uint64_t bytes);

#endif
