/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor's check of paths: which ones to other nodes are worse than the rest. Called by doctor.c.
 */
#include "doctor.h"

#include <stdio.h>
#include "paths.h"
#include "cli/support/text.h"

static void doctor_path(struct doctor *d, const struct path *p, const char *note)
{
	char node[32], address[TEXT_BYTES], age[TEXT_BYTES];
	snprintf(node, sizeof(node), "node %lld", (long long)p->node);
	doctor_report(
		d, DOCTOR_WARN, "paths",
		"sarissa peers --over 5, here and there; cables, ports of the switch, one MTU "
		"for all, CPU time over there",
		"%s at %s: %s (in %s)", p->node == PATHS_NO_NODE ? "somebody" : node,
		text_endpoint(address, p->addr.ip, p->addr.port), note,
		text_clock(age, p->over_ns / 1000000000));
}

void doctor_check_paths(struct doctor *d)
{
	static struct paths p;
	char note[PATHS_NOTE_BYTES];
	unsigned found = 0;
	uint64_t narrowest = UINT64_MAX; /* IP bytes */
	if (d->dataplane_error || !doctor_alive((int32_t)d->dataplane.header.pid) ||
	    paths_read(d->args->socket, &p) < 0)
		return; /* doctor_check_processes has said so */
	paths_name(&p, d->args->socket);
	paths_sort(&p);
	struct paths_note_usual usual = paths_note_usual(&p);
	for (size_t i = 0; i < p.count; i++) {
		uint64_t mtu = p.row[i].values.gauges.mtu;
		narrowest = mtu < narrowest ? mtu : narrowest;
		if (paths_note(&p.row[i], &usual, note)) {
			doctor_path(d, &p.row[i], note);
			found++;
		}
	}
	if (found == 0 && p.count > 0)
		doctor_report(d, DOCTOR_OK, "paths", NULL,
			      "none of %zu connection%s is worse than the rest; path MTU %llu",
			      p.count, p.count == 1 ? "" : "s", (unsigned long long)narrowest);
	paths_free(&p);
}
