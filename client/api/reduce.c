/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects made from others: reduce, reduce_sources, reduce_progress. */
#include <errno.h>
#include "internal/reduce.h"
#include "queue/run.h"
#include "queue/submit.h"

_Static_assert((int)SAR_SUM == REDUCE_SUM && (int)SAR_PROD == REDUCE_PROD &&
		       (int)SAR_MIN == REDUCE_MIN && (int)SAR_MAX == REDUCE_MAX &&
		       (int)SAR_AVG == REDUCE_AVG && SAR_AVG + 1 == (int)REDUCE_OP_END,
	       "operations have one number everywhere");
_Static_assert((int)SAR_F16 == REDUCE_F16 && (int)SAR_BF16 == REDUCE_BF16 &&
		       (int)SAR_F32 == REDUCE_F32 && (int)SAR_F64 == REDUCE_F64 &&
		       (int)SAR_I8 == REDUCE_I8 && (int)SAR_I16 == REDUCE_I16 &&
		       (int)SAR_I32 == REDUCE_I32 && (int)SAR_I64 == REDUCE_I64 &&
		       (int)SAR_U8 == REDUCE_U8 && (int)SAR_U16 == REDUCE_U16 &&
		       (int)SAR_U32 == REDUCE_U32 && (int)SAR_U64 == REDUCE_U64 &&
		       SAR_U64 + 1 == (int)REDUCE_DTYPE_END,
	       "types have one number everywhere");
_Static_assert(SAR_SOURCES_MAX == SESSION_SOURCES_MAX && sizeof(sar_id) == OBJECT_ID_BYTES,
	       "the sources go as they are");

int reduce_check(const sar_id *sources, unsigned count, const sar_reduction *how,
		 int64_t timeout_ns)
{
	if (!sources || !how || count == 0 || count > SAR_SOURCES_MAX)
		return error_set(-EINVAL, "sar_reduce: %u sources: name 1 to %d, and say how",
				 count, SAR_SOURCES_MAX);
	if (timeout_ns <= 0)
		return error_set(-EINVAL, "sar_reduce: the time for a reduce is positive: use "
					  "SAR_FOREVER for no limit");
	if (how->flags & ~(uint32_t)SAR_REDUCE_SPREAD)
		return error_set(-EINVAL, "sar_reduce: unknown flags: only SAR_REDUCE_SPREAD");
	if (how->min > count)
		return error_set(-EINVAL,
				 "sar_reduce: min is %u of %u sources: name more, or ask for "
				 "fewer",
				 how->min, count);
	if (how->min == 0 && how->deadline_ns != 0)
		return error_set(-EINVAL,
				 "sar_reduce: min is 0: say how many sources suffice at the "
				 "deadline");
	if (how->min != 0 && how->num != 0)
		return error_set(-EINVAL,
				 "sar_reduce: num and a deadline exclude each other: leave "
				 "one of them out");
	if (how->deadline_ns < 0 || how->deadline_ns >= timeout_ns)
		return error_set(-EINVAL, "sar_reduce: the deadline is negative, or not before the "
					  "timeout: name an earlier one");
	for (unsigned i = 0; i < sizeof(how->reserved) / sizeof(how->reserved[0]); i++)
		if (how->reserved[i] != 0 || how->reserved32 != 0)
			return error_set(-EINVAL, "sar_reduce: what is reserved in sar_reduction "
						  "is not zero: clear it first");
	return 0;
}

int sar_reduce(sar *s, sar_id target, const char *name, const sar_id *sources, unsigned count,
	       const sar_reduction *how, int64_t timeout_ns)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = submit_reduce_begin(&run.q, target, name, sources, count, how, timeout_ns, 0);
	return run_end(&run, r, &end);
}

static int reduce_listed(sar *s, sar_id target, bool progress, int64_t timeout_ns,
			 struct reduce_listed *out)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = submit_reduce_list(&run.q, target, progress, timeout_ns, out, 0);
	return run_end(&run, r, &end);
}

int sar_reduce_sources(sar *s, sar_id target, int64_t timeout_ns, sar_id *out, unsigned room)
{
	struct reduce_listed listed = {out, room, 0};
	return reduce_listed(s, target, false, timeout_ns, &listed);
}

int sar_reduce_progress(sar *s, sar_id target, sar_id *out, unsigned room, unsigned *present)
{
	struct reduce_listed listed = {out, room, 0};
	int r = reduce_listed(s, target, true, 0, &listed);
	*present = listed.present;
	return r;
}
