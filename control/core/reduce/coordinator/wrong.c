/* SPDX-License-Identifier: BSD-3-Clause */
#include "internal/reduce.h"
#include "sources.h"
#include "wrong.h"

static const char *reduce_wrong_deadline(const struct message_reduce *m)
{
	if (!(m->flags & MESSAGE_REDUCE_DEADLINE))
		return m->min || m->deadline_ns ? "a deadline without its flag: use nodes of one "
						  "version"
						: NULL;
	if (m->min == 0 || m->min > m->count)
		return "min is not between 1 and the number of sources: name more, or ask for fewer";
	if (m->num != m->count)
		return "num and a deadline exclude each other: leave one of them out";
	if (m->deadline_ns > m->timeout_ns)
		return "the deadline is beyond the reduce's timeout: name an earlier one";
	return NULL;
}

const char *reduce_wrong(const struct message_reduce *m)
{
	struct sources_sorted sorted;

	if (!reduce_op_valid(m->op))
		return "unknown operation: use sum, prod, min, max or avg";
	if (m->dtype != 0 && !reduce_dtype_valid(m->dtype))
		return "unknown element type: use f16, bf16, f32, f64, i8 to i64 or u8 to u64";
	if (m->count == 0)
		return "no sources: name at least one";
	if (m->num == 0 || m->num > m->count)
		return "num is not between 1 and the number of sources: name more, or ask for fewer";
	if (m->flags & ~(uint32_t)(MESSAGE_REDUCE_ALLREDUCE | MESSAGE_REDUCE_RESTART |
				   MESSAGE_REDUCE_DEADLINE))
		return "unknown flags: use nodes of one version";
	for (uint32_t i = 0; i < m->count; i++)
		if (object_id_equal(&m->sources[i], &m->target))
			return "the target is among the sources: name another target";
	if (!sources_sort(&sorted, m))
		return "a source is listed twice: name each once";
	return reduce_wrong_deadline(m);
}
