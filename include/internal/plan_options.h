/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of `sarissa plan` and `sarissa topology`. The command checks them and shows its help
 * by them; sarissa-plan, which it becomes, reads them again. Neither knows the other's code.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PLAN_OPTIONS_H
#define SARISSA_INCLUDE_INTERNAL_PLAN_OPTIONS_H

#include "internal/program/option.h"

struct plan_options {
	uint32_t op; /* its place in the row's choices */
	const char *size, *topology, *rate, *latency, *planner, *svg, *socket;
	uint64_t nodes, mtu;
	bool why, json, dot, simulate;
};

#define PLAN_OPTIONS_DEFAULT                                                             \
	{                                                                                \
		.size = "64M", .rate = "10G", .latency = "50us", .nodes = 8, .mtu = 1500 \
	}

#define PLAN_OPTIONS(s, f)                                                                         \
	{"op", "OP", "allreduce (without: this) or reduce",                                        \
	 OPTION_CHOICE(s, f op, 0, "allreduce reduce"), .of = "plan"},                             \
		{"size", "SIZE", "bytes of one object, with K, M or G (64M)",                      \
		 OPTION_TEXT(s, f size)},                                                          \
		{"topology", "FILE", "the network: a topology file, or a shape such as bcube:3,1", \
		 OPTION_TEXT(s, f topology)},                                                      \
		{"nodes", "N", "without --topology: so many nodes on one switch (8)",              \
		 OPTION_NUMBER(s, f nodes, 2, 1024, 1)},                                           \
		{"rate", "RATE", "of each link, where no file says it (10G)",                      \
		 OPTION_TEXT(s, f rate)},                                                          \
		{"latency", "TIME", "one way, where no file says it (50us)",                       \
		 OPTION_TEXT(s, f latency)},                                                       \
		{"mtu", "BYTES", "IP bytes of a packet (1500)",                                    \
		 OPTION_NUMBER(s, f mtu, 576, 9216, 1)},                                           \
		{"planner", "NAME", "only this candidate", OPTION_TEXT(s, f planner)},             \
		{"why", NULL, "every candidate, and why it lost", OPTION_FLAG(s, f why)},          \
		{"simulate", NULL, "every piece on every port, for planners by routes",            \
		 OPTION_FLAG(s, f simulate)},                                                      \
		{"dot", NULL, "the plan as a graph for graphviz", OPTION_FLAG(s, f dot)},          \
	{                                                                                          \
		"svg", "FILE", "the plan drawn by graphviz", OPTION_TEXT(s, f svg)                 \
	}

#endif
