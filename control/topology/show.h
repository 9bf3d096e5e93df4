/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa topology show`: a checked topology as JSON, for programs that do not read YAML, such as
 * scripts/cluster. docs/user/topology.md describes the object.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_SHOW_H
#define SARISSA_CONTROL_TOPOLOGY_SHOW_H

#include "file.h"

/* One line with one object, to out. Rates are bits per second, latencies ns. */
void show_topology(const struct topology *t, FILE *out);

/* The links of a node, one per line: the number of the node at the other end, bits per second,
 * nanoseconds one way. Nodes of one switch have a link to each other, and those of two switches
 * that are linked. */
void show_links(const struct topology *t, uint32_t number, FILE *out);

#endif
