/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a COMBINE holds: it comes from another node. */
#include <errno.h>
#include "internal/reduce.h"
#include "core/state.h"

/* Whether the part is a range of its object, and of what is built. */
static bool combine_check_part(struct control *c, const struct message_combine *m,
			       const struct message_part *p)
{
	uint64_t chunks = chunk_count(m->size, m->chunk_bytes);

	if (peers_node(c, p->node) == NULL || p->count == 0 || p->to >= chunks ||
	    p->count > chunks - p->to || (m->op && p->count != chunks) ||
	    (m->flags & MESSAGE_COMBINE_VALUES && p->count > OBJECT_INLINE_MAX / m->chunk_bytes))
		return false;
	if (p->size == 0)
		return p->first == 0;
	return (uint64_t)p->first + p->count <= chunk_count(p->size, m->chunk_bytes);
}

int combine_check(struct control *c, const struct message_combine *m)
{
	uint32_t element = m->op ? reduce_dtype_bytes(m->dtype) : 1;
	uint32_t both = MESSAGE_COMBINE_HIDDEN | MESSAGE_COMBINE_HOLD;

	if ((m->op && !reduce_op_valid(m->op)) || element == 0 || m->size % element)
		return -EINVAL;
	if (m->flags & ~(uint32_t)(both | MESSAGE_COMBINE_VALUES | MESSAGE_COMBINE_LENT) ||
	    (m->flags & both) == both)
		return -EINVAL;
	if (m->generation == 0 || m->size == 0 || m->chunk_bytes < CHUNK_BYTES_MIN ||
	    m->chunk_bytes > CHUNK_BYTES_MAX || m->chunk_bytes % 64 || m->need == 0 ||
	    m->need > MESSAGE_PARTS_MAX || m->count > m->need || m->scale > UINT16_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < m->count; i++)
		if (!combine_check_part(c, m, &m->parts[i]))
			return -EINVAL;
	return 0;
}
