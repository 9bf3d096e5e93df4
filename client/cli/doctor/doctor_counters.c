/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor's checks of drops: how many of each kind, and why they happen. Called by doctor.c. */
#include "doctor.h"

#include <stddef.h>
#include <string.h>
#include "cli/support/text.h"

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
	{"drop_part_full", true,
	 "many narrow paths that lose packets: sarissa peers names them; mend their MTU"},
	{"drop_cookie", true,
	 "handshakes that waited too long; many: a flood with forged addresses"},
	{"drop_hello_rate", false, "a flood of handshakes: filter its source"},
	{"drop_conn_full", false, "more peers than the connection table holds, or a flood"},
	{"drop_reset", false, "forged resets: filter their source"},
	{"drop_events_full", false, "control does not keep up: give it CPU time, or see its log"},
	{"path_narrowed", false,
	 "packets of a size that used to pass vanish: look for a smaller MTU on the way; sarissa peers "
	 "names the path"},
	{"io_events_waited", true,
	 "control does not take events as fast as they come: give it CPU time"},
	{"io_handover_full", true, "a worker lacks CPU time, or --cores puts two on one core"},
	{"io_bad_ip", false, "malformed packets: look for their source with a capture"},
	{"io_no_neighbour", true,
	 "peers whose link address was not known yet; many: they do not "
	 "answer ARP or neighbour requests"},
	{"io_tx_full", true,
	 "the port takes packets slower than we make them, they leave later; many: raise its ring "
	 "size (ethtool -G)"},
	{"io_tx_lost", false,
	 "the port took nothing for 20 ms: look at the link, at qdiscs and at packet filters"},
	{"io_tx_refused", false,
	 "the kernel refused packets: look at routes (ip route get), packet filters and the MTU"},
	{"io_tx_filtered", false,
	 "a filter of this host forbids us to send (EPERM): IPAddressDeny= of the service "
	 "(systemctl show -p IPAddressDeny sarissa-dataplane), or nft list ruleset, output"},
	{"io_gso_refused", false,
	 "the device takes no bursts: switch its transmit checksums on (ethtool -K DEV tx on)"},
	{"io_rx_lost", false,
	 "the receive buffer was too small: raise net.core.rmem_max, or give the node CPU time; or UDP "
	 "checksums were wrong (nstat UdpInCsumErrors)"},
	{"port_rx_missed", true,
	 "the card had no descriptor free: give the worker a core of its own, or raise --descriptors"},
	{"port_rx_errors", false,
	 "damaged on the way, or too long for the card: check cable, optics and the MTU of the sender"},
	{"port_rx_no_mbuf", false,
	 "packet buffers ran out: report it, with sarissa status --counters"},
	{"port_tx_errors", false, "the card cannot send: look at its link, see --log-level debug"},
	{"io_no_mbuf", false, "packet buffers ran out: start the dataplane with more"},
};

static const struct doctor_cause *doctor_find_cause(const char *counter)
{
	for (size_t i = 0; i < sizeof(doctor_causes) / sizeof(doctor_causes[0]); i++)
		if (strcmp(doctor_causes[i].counter, counter) == 0)
			return &doctor_causes[i];
	return NULL;
}

static void doctor_drops(struct doctor *d)
{
	const struct counter_info *info = counters_info();
	uint64_t received = d->now.dataplane[offsetof(struct counters, rx_pkts) / sizeof(uint64_t)];
	unsigned found = 0;
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		uint64_t total = d->now.dataplane[i];
		const struct doctor_cause *cause = doctor_find_cause(info[i].name);
		bool drop = strncmp(info[i].name, "drop_", 5) == 0;
		char since[DOCTOR_SINCE_BYTES];
		if (total == 0 || (!drop && !cause))
			continue;
		bool normal = cause && cause->normal && total <= received / 100;
		bool rose = doctor_since(d, DOCTOR_DATAPLANE, i, total, since);
		bool warn = rose && !normal;
		found++;
		doctor_report(d, warn ? DOCTOR_WARN : DOCTOR_OK, "drops",
			      cause ? cause->fix : "see docs/operator/operations.md, 5",
			      "%s %llu: %s (%s)%s", info[i].name, (unsigned long long)total,
			      info[i].help, info[i].unit, since);
	}
	if (found == 0)
		doctor_report(d, DOCTOR_OK, "drops", NULL, "no packet was refused");
}

static uint64_t doctor_count(const struct doctor *d, size_t at)
{
	return d->now.dataplane[at / sizeof(uint64_t)];
}

/* Of the chunks that were sent. */
static void doctor_losses(struct doctor *d)
{
	uint64_t sent = doctor_count(d, offsetof(struct counters, tx_chunks));
	uint64_t resent = doctor_count(d, offsetof(struct counters, tx_chunk_resends));
	uint64_t early = doctor_count(d, offsetof(struct counters, lost_spurious));
	bool many = sent >= 1000 && resent > sent / 100;
	if (sent == 0)
		return;
	doctor_report(d, many ? DOCTOR_WARN : DOCTOR_OK, "losses",
		      many ? "look at the path: NIC and switch counters, another MTU on the way, a "
			     "receiver without CPU time"
			   : NULL,
		      "%llu of %llu chunks were sent again (%.1f %%); %llu packets came late and "
		      "had been given up",
		      (unsigned long long)resent, (unsigned long long)sent,
		      100.0 * (double)resent / (double)sent, (unsigned long long)early);
}

/* Time that rose since the last look, or in all. */
static uint64_t doctor_rise(const struct doctor *d, size_t at)
{
	uint64_t total = doctor_count(d, at), before = d->before.dataplane[at / sizeof(uint64_t)];
	bool resent = d->looked && before <= total &&
		      d->before.dataplane_started_ns == d->now.dataplane_started_ns;
	return resent ? total - before : total;
}

/* Causes that slow down this node's sending; several streams wait at a time. */
static void doctor_waits(struct doctor *d)
{
	uint64_t path = doctor_rise(d, offsetof(struct counters, wait_path_ns));
	uint64_t credit = doctor_rise(d, offsetof(struct counters, wait_credit_ns));
	char path_text[TEXT_BYTES], credit_text[TEXT_BYTES];
	if (path + credit < 1000000000)
		return;
	doctor_report(d, DOCTOR_OK, "waits", NULL,
		      "what leaves here waited %s for the path and %s for receivers%s",
		      text_duration(path_text, path), text_duration(credit_text, credit),
		      d->looked ? ", since the last look" : "");
}

void doctor_check_counters(struct doctor *d)
{
	if (d->dataplane_error) /* doctor_check_processes has said so */
		return;
	bool alive = doctor_alive((int32_t)d->dataplane.header.pid);
	doctor_report(d, alive ? DOCTOR_OK : DOCTOR_WARN, "counters",
		      alive ? NULL : "start sarissa-dataplane again; its log says why it ended",
		      alive ? "%s, written by pid %lld"
			    : "%s was left by a dataplane that has ended, pid %lld",
		      d->dataplane.path, (long long)d->dataplane.header.pid);
	doctor_drops(d);
	doctor_losses(d);
	doctor_waits(d);
}
