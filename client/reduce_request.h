/* SPDX-License-Identifier: BSD-3-Clause */
/* What queues know of reduces beyond their users. */
#ifndef SARISSA_CLIENT_REDUCE_REQUEST_H
#define SARISSA_CLIENT_REDUCE_REQUEST_H

#include "sarissa/sarissa.h"

/* What the node would not see: the rest it refuses itself. 0 or -EINVAL. */
int reduce_check(const sar_id *sources, unsigned count, const sar_reduction *how,
		 int64_t timeout_ns);

#endif
