/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of `sarissa top` share: samples of this node and of the groups (top_sample.c), and
 * what has happened between two of them (top_show.c shows it). top.c knows the terminal and time.
 */
#ifndef SARISSA_CLIENT_CLI_TOP_TOP_H
#define SARISSA_CLIENT_CLI_TOP_TOP_H

#include <stdio.h>
#include "cli/cli.h"
#include "cli/doctor/counters_file.h"
#include "cli/commands/group.h"

enum { TOP_GROUPS = 64, TOP_CHANGES_MAX = COUNTERS_COUNT + CONTROL_COUNTERS_COUNT };

struct top_group {
	char name[SAR_GROUP_NAME_MAX + 1];
	char error[256]; /* why info and members are not known; or empty */
	sar_group_info info;
	struct group_members members;
};

struct top_sample {
	uint64_t at_ns; /* CLOCK_MONOTONIC, of the counters */
	struct counters_file_view dataplane;
	struct control_file_view control;
	bool has_control; /* its counters could be read */
	sar_node self;
	uint32_t nodes, up;
	struct top_group group[TOP_GROUPS];
	size_t groups;
	size_t left;  /* groups of which nothing was asked */
	bool partial; /* a part of the directory did not answer */
};

/* One counter that has risen. */
struct top_change {
	const struct counter_info *info;
	bool control; /* of control, not of the dataplane */
	uint64_t rise, before;
};

struct top_look {
	const struct top_sample *now;
	uint64_t over_ns;
	uint64_t rx_bytes, rx_pkts, tx_bytes, tx_pkts; /* in that time */
	uint64_t rounds[TOP_GROUPS];		       /* the same, of each group */
	struct top_change change[TOP_CHANGES_MAX];     /* what rose most beside before first */
	size_t changes;
};

/* Replaces what out has. CLI_DONE, or an exit status, and has said why. */
int top_sample_read(const struct cli_args *args, sar *s, struct top_sample *out);
void top_sample_free(struct top_sample *t);

/* The changes since an earlier sample. now must outlive out. */
void top_look_since(const struct top_sample *before, const struct top_sample *now,
		    struct top_look *out);

void top_show_json(FILE *file, const struct top_look *l);
void top_show_text(FILE *file, const struct top_look *l);

#endif
