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
	r = submit_reduce_begin(&run.q, target, name, sources, count, how, timeout_ns);
	return run_end(&run, r, &end);
}

/* Copies up to room ids of the pages of those that are missing, or are not, after the count ids
 * that are there already. Returns how many there are then. */
static unsigned reduce_ids(const struct mux_result *result, bool missing, sar_id *out,
			   unsigned room, unsigned count)
{
	const struct session_sources *page = result->items;
	for (size_t i = 0; i < result->items_count; i++) {
		if ((page[i].missing != 0) != missing)
			continue;
		for (uint32_t k = 0; k < page[i].count && k < SESSION_SOURCES; k++, count++)
			if (count < room)
				memcpy(out[count].bytes, page[i].source[k].bytes, SAR_ID_BYTES);
	}
	return count;
}

static int reduce_asked(sar *s, struct session_request *request, int64_t timeout_ns,
			struct mux_result *result)
{
	sar_id target;
	int r = handle_check(s); /* in a child no lock may be waited for */
	if (r < 0)
		return r;
	r = run_request(s, request, NULL, sizeof(struct session_sources), timeout_ns, result);
	memcpy(target.bytes, request->id.bytes, SAR_ID_BYTES);
	if (r != -ETIMEDOUT && r != -EAGAIN && r != -ENOTCONN && r != -EPROTO && r != -ESHUTDOWN &&
	    !(r == 0 && request->flags & SESSION_FLAG_PROGRESS))
		reduces_forget(&s->reduces, &target); /* it has ended */
	return r;
}

int sar_reduce_sources(sar *s, sar_id target, int64_t timeout_ns, sar_id *out, unsigned room)
{
	struct session_request request = handle_request(SESSION_REDUCED, &target);
	struct mux_result result;
	if (timeout_ns < 0)
		return error_set(-EINVAL, "sar_reduce_sources: a timeout is not negative: use "
					  "SAR_FOREVER to wait without limit");
	int r = reduce_asked(s, &request, timeout_ns, &result);
	if (r < 0)
		return r;
	r = (int)reduce_ids(&result, false, out, room, 0);
	mux_result_free(&result);
	return r;
}

int sar_reduce_progress(sar *s, sar_id target, sar_id *out, unsigned room, unsigned *present)
{
	struct session_request request = handle_request(SESSION_REDUCED, &target);
	struct mux_result result;
	request.flags = SESSION_FLAG_PROGRESS;
	*present = 0;
	int r = reduce_asked(s, &request, 0, &result);
	if (r < 0)
		return r;
	*present = reduce_ids(&result, false, out, room, 0);
	r = (int)reduce_ids(&result, true, out, room, *present);
	mux_result_free(&result);
	return r;
}
