/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's own forwarder on the same kind of device: what pointers through a ring cost, and no more.
 */
#include "dataplane.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cores for its main thread and its forwarding thread; one for both when there is no other. */
static void testpmd_cores(int *first, int *second)
{
	cpu_set_t set;
	*first = *second = 0;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (int c = 0, n = 0; c < CPU_SETSIZE && n < 2; c++)
		if (CPU_ISSET(c, &set))
			*(n++ == 0 ? first : second) = c;
}

double testpmd_run(uint16_t packet_bytes, unsigned seconds)
{
	char command[512], line[256];
	int main_core, work_core;
	unsigned long long best = 0, pps;
	testpmd_cores(&main_core, &work_core);
	snprintf(command, sizeof(command),
		 "timeout -k 2 %u dpdk-testpmd --lcores '0@%d,1@%d' --no-huge --no-shconf --no-pci "
		 "--no-telemetry -m 256 --vdev net_ring0 -- --forward-mode=io --tx-first "
		 "--stats-period 1 --total-num-mbufs=8192 --mbuf-size=9344 --txpkts=%u 2>/dev/null",
		 seconds + 2, main_core, work_core, packet_bytes);
	FILE *f = popen(command, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "Rx-pps:");
		if (at && sscanf(at, "Rx-pps: %llu", &pps) == 1 && pps > best)
			best = pps;
	}
	pclose(f);
	if (best == 0)
		fprintf(stderr, "bench: dpdk-testpmd does not run: install the package dpdk-dev\n");
	return (double)best;
}
