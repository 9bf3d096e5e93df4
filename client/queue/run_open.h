/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of run.h for the Python extension, which has queues of its own. */
#ifndef SARISSA_CLIENT_QUEUE_RUN_OPEN_H
#define SARISSA_CLIENT_QUEUE_RUN_OPEN_H

#include "sarissa/sarissa.h"

struct run;

/* run_begin; *q: the queue to submit the operation to. The run is freed by run_close. */
int run_open(sar *s, unsigned capacity, struct run **out, sar_queue **q);
/* run_end */
int run_close(struct run *run, int r, sar_completion *out);

#endif
