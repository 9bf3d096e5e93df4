/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces, for the calls that wait and for queues. */
#ifndef SARISSA_CLIENT_REDUCE_REQUEST_H
#define SARISSA_CLIENT_REDUCE_REQUEST_H

#include "sarissa/sarissa.h"

/* What the node would not see: the rest it refuses itself. 0 or -EINVAL. */
int reduce_check(const sar_id *sources, unsigned count, const sar_reduction *how,
		 int64_t timeout_ns);
/* Of a reduce that goes on when the operation has ended. */
int submit_reduce_begin(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
			unsigned count, const sar_reduction *how, int64_t timeout_ns);

#endif
