/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allreduce at a switch in steps, for a source that grows and a target that others read
 * meanwhile. One thread at a time. Called by aggregate_object.c and group_switch.c.
 */
#ifndef SARISSA_CLIENT_SWITCH_AGGREGATE_H
#define SARISSA_CLIENT_SWITCH_AGGREGATE_H

#include "aggregate_job.h"
#include "sarissa/sarissa.h"

/* The request of a member to a switch. */
struct aggregate_join {
	uint8_t member, members, quorum;
	uint32_t deadline_us;
	uint32_t version; /* a later one may change the members */
	uint32_t round;	  /* number of the first allreduce: later than all that the group has had */
	uint64_t key;
};

/* The way to a group at a switch; freed by sar_switch_leave. Errors: as of sar_switch_join. */
int aggregate_open(const char *address, uint32_t group, sar_switch **out);
/* Takes a place there, for the allreduces that begin from now on. -ESTALE: a later version is in
 * force. */
int aggregate_install(sar_switch *w, const struct aggregate_join *how);

/* Checks the arguments of sar_switch_allreduce and begins. Source and target stay until the end. */
int aggregate_begin(sar_switch *w, const void *source, void *target, uint64_t bytes,
		    const sar_reduction *how);
/* Goes on until until_ns of aggregate_now_ns: 0; 1: the target is whole; < 0: it has failed. */
int aggregate_step(sar_switch *w, uint64_t source_ready, uint64_t until_ns);
/* Bytes of the target that are final. */
uint64_t aggregate_ready(const sar_switch *w);
void aggregate_place(const sar_switch *w, unsigned *member, unsigned *members);
void aggregate_result(const sar_switch *w, uint64_t begin_ns, sar_switch_result *out);
/* The number of the next allreduce: members that have failed in one stay in step. */
uint32_t aggregate_round(const sar_switch *w);
void aggregate_round_set(sar_switch *w, uint32_t round);
uint64_t aggregate_now_ns(void);
/* Memory of this process as a buffer, freed by sar_release. */
int aggregate_memory(uint64_t size, const sar_buffer *like, sar_buffer *out);

#endif
