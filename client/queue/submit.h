/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that calls put into their queues and users of the library cannot. */
#ifndef SARISSA_CLIENT_QUEUE_SUBMIT_H
#define SARISSA_CLIENT_QUEUE_SUBMIT_H

#include "queue.h"

/* Checks the faults that the node would not see; it refuses the others itself. 0 or -EINVAL. */
int reduce_check(const sar_id *sources, unsigned count, const sar_reduction *how,
		 int64_t timeout_ns);
/* Of a reduce that goes on when the operation has ended. */
int submit_reduce_begin(sar_queue *q, sar_id target, const char *name, const sar_id *sources,
			unsigned count, const sar_reduction *how, int64_t timeout_ns,
			uint64_t user_data);
/* sar_reduce_sources, or with a timeout of 0 sar_reduce_progress: its result is how many ids there
 * are. out stays until then. */
int submit_reduce_list(sar_queue *q, sar_id target, bool progress, int64_t timeout_ns,
		       struct reduce_listed *out, uint64_t user_data);

/* sar_wait_any. */
int submit_wait_any(sar_queue *q, const sar_id *ids, unsigned count, unsigned num,
		    int64_t timeout_ns, uint8_t *there);

/* sar_put_from. */
int submit_put_from(sar_queue *q, sar_id id, const char *name, uint64_t size,
		    struct put_source *from, const sar_put_options *options);

#endif
