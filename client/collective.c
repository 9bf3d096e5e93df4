/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls about several objects or nodes at once: put_iov, and allreduce, gather and broadcast. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "run.h"

struct pieces {
	const struct iovec *iov;
	unsigned count, at;
	uint64_t from; /* byte at which iov[at] begins */
};

/* As sar_fill: in rising order, perhaps once more from the start. */
static int pieces_fill(void *arg, void *to, uint64_t at, uint64_t bytes, int last)
{
	struct pieces *p = arg;
	uint8_t *out = to;
	if (at < p->from)
		p->at = 0, p->from = 0;
	while (bytes > 0) {
		const struct iovec *piece = &p->iov[p->at];
		uint64_t within = at - p->from, left = piece->iov_len - within;
		uint64_t some = left < bytes ? left : bytes;
		if (within >= piece->iov_len) {
			p->from += piece->iov_len;
			p->at++;
			continue;
		}
		memcpy(out, (const uint8_t *)piece->iov_base + within, some);
		out += some;
		at += some;
		bytes -= some;
	}
	return 0;
}

int sar_put_iov_with(sar *s, sar_id id, const char *name, const struct iovec *iov, unsigned count,
		     const sar_put_options *options)
{
	struct pieces p = {.iov = iov, .count = count};
	uint8_t small[SESSION_PUT_MAX];
	uint64_t size = 0;
	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_base == NULL && iov[i].iov_len > 0)
			return error_set(-EINVAL, "sar_put_iov: piece %u has no data", i);
		size = size > UINT64_MAX - iov[i].iov_len ? UINT64_MAX : size + iov[i].iov_len;
	}
	if (size > SESSION_PUT_MAX)
		return sar_put_from_with(s, id, name, size, pieces_fill, &p, options);
	pieces_fill(&p, small, 0, size, 1);
	return sar_put_with(s, id, name, small, size, options);
}

int sar_put_iov(sar *s, sar_id id, const char *name, const struct iovec *iov, unsigned count)
{
	return sar_put_iov_with(s, id, name, iov, count, NULL);
}

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

int sar_broadcast(sar *s, sar_id id, const uint32_t *nodes, unsigned count, int64_t timeout_ns)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_broadcast(&run.q, id, nodes, count, timeout_ns, 0), &end);
}
