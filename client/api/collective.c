/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls about several objects or nodes at once: allreduce, gather, wait_any and broadcast. */
#include "queue/run.h"
#include "queue/submit.h"

int sar_allreduce(sar *s, sar_id target, const char *name, const sar_id *sources, unsigned count,
		  const sar_reduction *how, int64_t timeout_ns, sar_buffer *out)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 3);
	if (r < 0)
		return r;
	r = run_end(&run,
		    sar_submit_allreduce(&run.q, target, name, sources, count, how, timeout_ns, 0),
		    &end);
	if (r == 0)
		*out = end.buffer;
	return r;
}

int sar_gather(sar *s, const sar_id *ids, unsigned count, int64_t timeout_ns, sar_buffer *out)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, count < SAR_SOURCES_MAX ? count + 1 : SAR_SOURCES_MAX + 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_gather(&run.q, ids, count, timeout_ns, out, 0), &end);
}

int sar_wait_any(sar *s, const sar_id *ids, unsigned count, unsigned num, int64_t timeout_ns,
		 uint8_t *there)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, count < SAR_SOURCES_MAX ? count + 1 : SAR_SOURCES_MAX + 1);
	if (r < 0)
		return r;
	return run_end(&run, submit_wait_any(&run.q, ids, count, num, timeout_ns, there), &end);
}

int sar_broadcast(sar *s, sar_id id, const uint32_t *nodes, unsigned count, int64_t timeout_ns)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_broadcast(&run.q, id, nodes, count, timeout_ns, 0), &end);
}
