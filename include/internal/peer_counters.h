/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker knows of each of its connections, from one table: name, unit, help. RUNDIR/peers is
 * a struct counters_file (counters.h) with its own magic and, for each worker, one struct
 * peer_block per place of its connection table. The worker is the only writer of its blocks and
 * never waits for a reader; anybody may read, also after the process has died.
 *
 * PEER_COUNTERS only rise while a connection lives. PEER_GAUGES are as of written_ns: a
 * tenth of a second after 64 KiB have passed at the latest, else with the next keep-alive.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PEER_COUNTERS_H
#define SARISSA_INCLUDE_INTERNAL_PEER_COUNTERS_H

#include "counters.h"
#include "ids.h"
#include "sequence.h"

#define PEER_COUNTERS(X)                                                                   \
	X(tx_bytes, "bytes", "UDP payload sent to it")                                     \
	X(rx_pkts, "packets", "packets of it that were taken")                             \
	X(rx_bytes, "bytes", "their UDP payload")                                          \
	X(lost_pkts, "packets", "packets to it that were declared lost")                   \
	X(lost_spurious, "packets", "of those, acknowledged later")                        \
	X(wait_path_ns, "ns", "waits of what is for it for the pace, or acknowledgements") \
	X(wait_credit_ns, "ns", "waits of streams to it for credit")

#define PEER_GAUGES(X)                                                                           \
	X(up, "", "1: the connection is established; 0: it is being opened")                     \
	X(written_ns, "ns", "when this was written, on the clock CLOCK_MONOTONIC")               \
	X(age_ns, "ns", "since it was established, or began to be opened")                       \
	X(silent_ns, "ns", "since its last packet")                                              \
	X(tx_pkts, "packets", "packets sent to it")                                              \
	X(missing_pkts, "packets", "packets of it that have not come, by their numbers")         \
	X(waiting_ns, "ns", "since it was asked again for an answer, in vain; 0: it answers")    \
	X(rtt_ns, "ns", "round trip, smoothed")                                                  \
	X(rtt_least_ns, "ns", "the shortest round trip of late")                                 \
	X(window_bytes, "bytes", "what may be under way to it")                                  \
	X(best_bytes_per_s, "bytes/s", "the most that was sent to it in a tenth of a second")    \
	X(path_bytes_per_s, "bytes/s", "what the path took when it was the limit; 0: not known") \
	X(mtu, "bytes", "IP packets that the path carries")                                      \
	X(rail, "", "the port that it goes by")                                                  \
	X(path_of, "", "the connection that this is another path of; 0: it is a connection")     \
	X(impaired, "", "1: it brings nothing, while other paths of its connection do")

struct peer_counters {
#define X(name, unit, help) uint64_t name;
	PEER_COUNTERS(X)
#undef X
};

struct peer_gauges {
#define X(name, unit, help) uint64_t name;
	PEER_GAUGES(X)
#undef X
};

struct peer_values {
	struct peer_counters counters;
	struct peer_gauges gauges;
};

struct peer_block {
	_Alignas(64) _Atomic uint32_t sequence;
	uint32_t conn; /* handle; 0: no connection has this place */
	struct net_addr addr;
	struct peer_values values;
};
_Static_assert(sizeof(struct peer_block) == 256, "RUNDIR/peers is read by other processes");

enum {
	PEER_COUNTERS_COUNT = sizeof(struct peer_counters) / sizeof(uint64_t),
	PEER_VALUES_COUNT = sizeof(struct peer_values) / sizeof(uint64_t),
	PEER_READ_TRIES = 100,
};

#define PEERS_FILE_MAGIC 0x3152455053524153ull /* "SARSPER1" */

/* One connection as it was at some moment. False: no connection has this place, or its worker died
 * while it wrote. */
static inline bool peer_block_read(const struct peer_block *from, struct peer_block *out)
{
	for (unsigned tries = 0; tries < PEER_READ_TRIES; tries++) {
		uint32_t before = sequence_read(&from->sequence);
		memcpy(out, from, sizeof(*out));
		if (sequence_whole(&from->sequence, before))
			return out->conn != 0;
	}
	return false;
}

/* No connection has this place. For its only writer. */
static inline void peer_block_clear(struct peer_block *b)
{
	sequence_write(&b->sequence);
	b->conn = 0;
	sequence_written(&b->sequence);
}

static inline const struct counter_info *peer_values_info(void)
{
	static const struct counter_info info[] = {
#define X(name, unit, help) {#name, unit, help},
		PEER_COUNTERS(X) PEER_GAUGES(X)
#undef X
	};
	return info;
}

#endif
