/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole objects from bytes of the caller. How they are put is in queue/put.c. */
#include <stdlib.h>
#include "queue/run.h"
#include "queue/submit.h"

int sar_put_with(sar *s, sar_id id, const char *name, const void *data, uint64_t size,
		 const sar_put_options *options)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_put_with(&run.q, id, name, data, size, options, 0), &end);
}

int sar_put(sar *s, sar_id id, const char *name, const void *data, uint64_t size)
{
	return sar_put_with(s, id, name, data, size, NULL);
}

int sar_put_iov_with(sar *s, sar_id id, const char *name, const struct iovec *iov, unsigned count,
		     const sar_put_options *options)
{
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	return run_end(&run, sar_submit_put_iov_with(&run.q, id, name, iov, count, options, 0),
		       &end);
}

int sar_put_iov(sar *s, sar_id id, const char *name, const struct iovec *iov, unsigned count)
{
	return sar_put_iov_with(s, id, name, iov, count, NULL);
}

int sar_put_from_with(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg,
		      const sar_put_options *options)
{
	struct put_source from = {.fill = fill, .arg = arg};
	struct run run;
	sar_completion end;
	int r = run_begin(&run, s, 1);
	if (r < 0)
		return r;
	r = run_end(&run, submit_put_from(&run.q, id, name, size, &from, options), &end);
	free(from.block);
	return from.given_up ? from.given_up : r;
}

int sar_put_from(sar *s, sar_id id, const char *name, uint64_t size, sar_fill *fill, void *arg)
{
	return sar_put_from_with(s, id, name, size, fill, arg, NULL);
}
