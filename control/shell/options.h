/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of sarissa-control. */
#ifndef SARISSA_CONTROL_SHELL_OPTIONS_H
#define SARISSA_CONTROL_SHELL_OPTIONS_H

#include <sys/types.h>
#include "core/control.h"

enum { SEEDS_MAX = 32 };

struct options {
	const char *rundir;
	uint32_t node;	/* UINT32_MAX: a seed gives one */
	uint32_t nodes; /* 0: they come by the seeds */
	uint32_t seeds_count;
	const char *shard_list; /* as given */
	uint32_t shards;	/* 0: all members */
	uint32_t sessions;
	uint32_t restart_grace_s;
	uint64_t quota_bytes;
	uint32_t quotas_count;
	struct control_quota quotas[CONTROL_QUOTAS_MAX];
	const char *spill;  /* folder, or NULL */
	uint64_t spill_max; /* bytes */
	mode_t socket_mode;
	enum control_creators creators;
	const char *topology_path;
	struct topology *topology;     /* or NULL; as long as the process lives */
	const struct planner *planner; /* NULL: the best one */
	enum control_log_level log_level;
	struct net_addr addrs[NODES_MAX];
	uint32_t shard_nodes[NODES_MAX];
	struct net_addr seeds[SEEDS_MAX];
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_DONE,  /* help or version was printed */
	OPTIONS_WRONG, /* and one line says why */
};

enum options_result options_parse(int argc, char **argv, struct options *out);

/* Reads the topology file once more. NULL: there is none, or one line has said what is wrong with
 * it. The caller frees. */
struct topology *options_topology_reload(const struct options *o);

#endif
