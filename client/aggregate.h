/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allreduce at a switch in steps, for a source that grows and a target that others read
 * meanwhile. One thread at a time. Called by aggregate_object.c.
 */
#ifndef SARISSA_CLIENT_AGGREGATE_H
#define SARISSA_CLIENT_AGGREGATE_H

#include "aggregate_job.h"
#include "sarissa/sarissa.h"

/* Checks the arguments of sar_switch_allreduce and begins. Source and target stay until the end. */
int aggregate_begin(sar_switch *w, const void *source, void *target, uint64_t bytes,
		    const sar_reduction *how);
/* Goes on until until_ns of aggregate_now_ns: 0; 1: the target is whole; < 0: it has failed. */
int aggregate_step(sar_switch *w, uint64_t source_ready, uint64_t until_ns);
/* Bytes of the target that are final. */
uint64_t aggregate_ready(const sar_switch *w);
void aggregate_place(const sar_switch *w, unsigned *member, unsigned *members);
void aggregate_result(const sar_switch *w, uint64_t begin_ns, sar_switch_result *out);
uint64_t aggregate_now_ns(void);

#endif
