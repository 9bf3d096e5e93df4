/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa topology show`: a checked topology as JSON, for programs that do not read YAML, such as
 * scripts/cluster. docs/topology.md describes the object.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_SHOW_H
#define SARISSA_CONTROL_TOPOLOGY_SHOW_H

#include "file.h"

/* One line with one object, to out. Rates are bits per second, latencies ns. */
void show_topology(const struct topology *t, FILE *out);

#endif
