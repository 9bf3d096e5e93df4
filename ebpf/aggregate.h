/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps that aggregate.bpf.c and its loader (dataplane/switch/xdp_shell.c) share, and their sizes.
 */
#ifndef SARISSA_EBPF_AGGREGATE_H
#define SARISSA_EBPF_AGGREGATE_H

#include <linux/bpf.h>
#include <linux/types.h>
#include "internal/aggregate.h"

enum {
	AGGREGATE_XDP_GROUPS = 16,
	AGGREGATE_XDP_WINDOW = 256, /* a power of two */
	AGGREGATE_XDP_PORTS = 32,
	AGGREGATE_XDP_WORDS = AGGREGATE_PAYLOAD_MAX / 4,
	AGGREGATE_XDP_SLOTS = AGGREGATE_XDP_GROUPS * AGGREGATE_BANKS * AGGREGATE_XDP_WINDOW,
	AGGREGATE_XDP_MEMBERS = AGGREGATE_XDP_GROUPS * AGGREGATE_MEMBERS_MAX,
};

/* A value of the HASH `groups`, whose key is the group's number. */
struct aggregate_xdp_group {
	struct bpf_spin_lock lock; /* of version, members, quorum and deadline_us */
	__u32 version, quorum, deadline_us;
	__u32 members, place;
	__u64 used_ns, key;
};

/* A value of the ARRAY `members`, at place * AGGREGATE_MEMBERS_MAX + member. */
struct aggregate_xdp_member {
	__u64 token; /* 0: nobody has the place yet */
	__u32 version, pad;
};

/* Keys of the PROG_ARRAY `stages`: the second half of the work, which the verifier sees alone. */
enum { AGGREGATE_XDP_TAKE, AGGREGATE_XDP_STAGES };

/* The per-CPU ARRAY `verdicts`: in the order of enum aggregate_verdict (core/aggregate.h). */
enum aggregate_xdp_verdict {
	AGGREGATE_XDP_BAD,
	AGGREGATE_XDP_PASS,
	AGGREGATE_XDP_FOREIGN,
	AGGREGATE_XDP_ADDED,
	AGGREGATE_XDP_DUPLICATE,
	AGGREGATE_XDP_COMPLETE,
	AGGREGATE_XDP_REPEAT,
	AGGREGATE_XDP_ANSWER,
	AGGREGATE_XDP_LATE,
	AGGREGATE_XDP_REFUSE,
	AGGREGATE_XDP_EXPIRED,
	AGGREGATE_XDP_VERDICTS,
};

#endif
