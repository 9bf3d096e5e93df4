/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of DPDK's environment layer. Main thread only. */
#ifndef SARISSA_DATAPLANE_IO_PORTS_EAL_H
#define SARISSA_DATAPLANE_IO_PORTS_EAL_H

#include "port.h"

/* Whether this process has the rights that its ports need. Logs a line when not; o: of each. */
bool eal_has_rights(const struct options *o);

/* Starts EAL, with memory for the queues of all ports p, as many as o: in huge pages when enough
 * are free, else in ordinary ones; logs which. Threads: the caller becomes lcore 0, worker w will
 * be lcore 1 + w. Returns 0, or -errno with a line logged. */
int eal_start(const struct options *o, const struct port *p, bool *huge_pages);

#endif
