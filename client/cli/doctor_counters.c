/* SPDX-License-Identifier: BSD-3-Clause */
/* What was dropped, and why that happens. */
#include "doctor.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "counters_file.h"

/* normal: some of it belongs to a network that loses or repeats packets. */
struct doctor_cause {
	const char *counter;
	bool normal;
	const char *fix;
};

static const struct doctor_cause doctor_causes[] = {
	{"drop_truncated", false, "something else sends to our UDP port, or a device cuts packets"},
	{"drop_version", false, "run one version on all nodes"},
	{"drop_type", false, "something else sends to our UDP port, or versions differ"},
	{"drop_flags", false, "something else sends to our UDP port, or versions differ"},
	{"drop_checksum", false,
	 "bytes change on the way: check cables, switches and NIC error counters (ethtool -S)"},
	{"drop_unknown_conn", true,
	 "packets of connections that ended; many: a flood, or a peer "
	 "that restarts again and again"},
	{"drop_address", false,
	 "an address translator changes sources, or they are forged: give "
	 "nodes direct paths"},
	{"drop_incarnation", true,
	 "late packets of a node's earlier life; many: two nodes use one "
	 "address"},
	{"drop_state", true, "late packets around a handshake; many: a flood"},
	{"drop_duplicate", true, "the network repeats packets; many: look for a loop in it"},
	{"drop_old", true, "the network holds packets back for long; many: look at its queues"},
	{"drop_future", false, "packet numbers that cannot be: forged packets"},
	{"drop_frame", false, "versions differ, or forged packets"},
	{"drop_unknown_stream", true, "late chunks of transfers that ended"},
	{"drop_stale_stream", true, "late chunks of transfers that ended"},
	{"drop_chunk_range", false, "versions differ, or forged packets"},
	{"drop_chunk_size", false, "versions differ, or forged packets"},
	{"drop_ack_unsent", false, "versions differ, or forged packets"},
	{"drop_grant_overflow", false, "versions differ, or forged packets"},
	{"drop_over_credit", false, "versions differ, or forged packets"},
	{"drop_msg_range", false, "versions differ, or forged packets"},
	{"drop_msg_full", true, "more messages than control reads: give it CPU time"},
	{"drop_cookie", true,
	 "handshakes that waited too long; many: a flood with forged addresses"},
	{"drop_hello_rate", false, "a flood of handshakes: filter its source"},
	{"drop_conn_full", false, "more peers than the connection table holds, or a flood"},
	{"drop_reset", false, "forged resets: filter their source"},
	{"drop_events_full", false, "control does not keep up: give it CPU time, or see its log"},
	{"io_bad_ip", false, "malformed packets: look for their source with a capture"},
	{"io_no_neighbour", true,
	 "peers whose link address was not known yet; many: they do not "
	 "answer ARP or neighbour requests"},
	{"io_tx_full", true,
	 "the port takes packets slower than we make them; many: raise its ring "
	 "size (ethtool -G)"},
	{"io_no_mbuf", false, "packet buffers ran out: start the dataplane with more"},
};

static const struct doctor_cause *doctor_find_cause(const char *counter)
{
	for (size_t i = 0; i < sizeof(doctor_causes) / sizeof(doctor_causes[0]); i++)
		if (strcmp(doctor_causes[i].counter, counter) == 0)
			return &doctor_causes[i];
	return NULL;
}

static void doctor_drops(struct doctor *d, const struct counters_file_view *view)
{
	const struct counter_info *info = counters_info();
	uint64_t received =
		counters_file_total(view, offsetof(struct counters, rx_pkts) / sizeof(uint64_t));
	unsigned found = 0;
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		uint64_t total = counters_file_total(view, i);
		const struct doctor_cause *cause = doctor_find_cause(info[i].name);
		bool drop = strncmp(info[i].name, "drop_", 5) == 0;
		if (total == 0 || (!drop && !cause))
			continue;
		found++;
		bool normal = cause && cause->normal && total <= received / 100;
		doctor_report(d, normal ? DOCTOR_OK : DOCTOR_WARN, "drops",
			      cause ? cause->fix : "see docs/protocol.md", "%s %llu: %s (%s)",
			      info[i].name, (unsigned long long)total, info[i].help, info[i].unit);
	}
	if (found == 0)
		doctor_report(d, DOCTOR_OK, "drops", NULL, "no packet was refused");
}

void doctor_check_counters(struct doctor *d)
{
	static struct counters_file_view view;
	int r = counters_file_read(d->args->socket, &view);
	if (r == -EPROTO) {
		doctor_report(d, DOCTOR_FAIL, "counters",
			      "use command and dataplane of one version",
			      "%s is of another version", view.path);
		return;
	}
	if (r < 0) {
		doctor_report(d, d->has_node ? DOCTOR_WARN : DOCTOR_FAIL, "counters",
			      r == -EACCES ? "run as a user that may read it"
					   : "start sarissa-dataplane in that run directory",
			      "cannot read %s: %s", view.path, strerror(-r));
		return;
	}
	bool alive = doctor_alive((int32_t)view.header.pid);
	doctor_report(d, alive ? DOCTOR_OK : DOCTOR_WARN, "counters",
		      alive ? NULL : "start sarissa-dataplane again; its log says why it ended",
		      alive ? "%s, written by pid %lld"
			    : "%s was left by a dataplane that has ended, pid %lld",
		      view.path, (long long)view.header.pid);
	doctor_drops(d, &view);
}
