/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers through rte_telemetry: /sarissa/counters and /sarissa/workers. */
#ifndef SARISSA_DATAPLANE_IO_OBSERVE_TELEMETRY_H
#define SARISSA_DATAPLANE_IO_OBSERVE_TELEMETRY_H

#include "io/node/node.h"

/* Registers the commands. The node must outlive them. Main thread, once. */
void telemetry_register(const struct node *n);

#endif
