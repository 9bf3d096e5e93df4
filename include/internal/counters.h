/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every counter of a worker, from one table: name, unit, help. The dataplane's worker is the only
 * writer of its block; anybody may read it, in the counters file of the node's run directory (see
 * counters_file), through rte_telemetry or with `sarissa status`, also after the process has died.
 *
 * port_*: what a card itself has counted since the start; the main thread writes them, once a
 * second, into the block of worker 0.
 *
 * drop_*: a packet (or frame) that was refused, by cause. Each cause that the protocol page lists
 * has its own.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_COUNTERS_H
#define SARISSA_INCLUDE_INTERNAL_COUNTERS_H

#include <stdint.h>

#define COUNTERS(X)                                                                         \
	X(rx_pkts, "packets", "packets given to the protocol")                              \
	X(rx_bytes, "bytes", "their UDP payload")                                           \
	X(rx_chunks, "chunks", "chunks taken into a buffer")                                \
	X(rx_chunk_bytes, "bytes", "their payload")                                         \
	X(rx_chunk_duplicates, "chunks", "chunks that a buffer had already")                \
	X(rx_parts, "parts", "parts of chunks taken, where a path is narrow")               \
	X(rx_msgs, "messages", "messages delivered")                                        \
	X(rx_ecn_ce, "packets", "packets marked congestion experienced")                    \
	X(tx_pkts, "packets", "packets sent")                                               \
	X(tx_bytes, "bytes", "their UDP payload")                                           \
	X(tx_chunks, "chunks", "chunks sent, re-sent ones included")                        \
	X(tx_chunk_bytes, "bytes", "their payload")                                         \
	X(tx_chunk_resends, "chunks", "chunks sent again after a loss")                     \
	X(tx_parts, "parts", "packets with parts of chunks, where a path is narrow")        \
	X(tx_msgs, "messages", "messages sent and acknowledged")                            \
	X(tx_acks, "packets", "packets that carry an acknowledgement")                      \
	X(tx_grants, "frames", "credit grants sent")                                        \
	X(wait_credit_ns, "ns", "waits of streams that had chunks to send for credit")      \
	X(wait_path_ns, "ns", "waits of connections for their pace, or acknowledgements")   \
	X(lost_pkts, "packets", "sent packets declared lost")                               \
	X(lost_spurious, "packets", "packets declared lost and acknowledged later")         \
	X(tail_probes, "packets", "probes sent because acknowledgements stopped")           \
	X(path_narrowed, "connections", "paths that no longer carry packets of a size")     \
	X(cookies_sent, "packets", "cookies sent to addresses without a connection")        \
	X(paths_impaired, "paths", "paths that brought nothing while others did")           \
	X(conns_opened, "connections", "connections established")                           \
	X(conns_closed, "connections", "connections ended")                                 \
	X(records, "records", "plan and message records executed")                          \
	X(records_refused, "records", "records that did not hold")                          \
	X(drop_truncated, "packets", "shorter than its header or its frames")               \
	X(drop_version, "packets", "another protocol version")                              \
	X(drop_type, "packets", "unknown packet type")                                      \
	X(drop_flags, "packets", "reserved flag or field set")                              \
	X(drop_checksum, "packets", "CRC32C does not match")                                \
	X(drop_unknown_conn, "packets", "no such connection")                               \
	X(drop_address, "packets", "right connection, wrong source address")                \
	X(drop_incarnation, "packets", "of an earlier life of this node or of the peer")    \
	X(drop_state, "packets", "not allowed in this state of the connection")             \
	X(drop_duplicate, "packets", "packet number seen before")                           \
	X(drop_old, "packets", "packet number below the window")                            \
	X(drop_future, "packets", "packet number beyond the window")                        \
	X(drop_frame, "packets", "unknown or malformed frame")                              \
	X(drop_unknown_stream, "frames", "no such stream")                                  \
	X(drop_stale_stream, "frames", "stream of an earlier generation")                   \
	X(drop_chunk_range, "frames", "chunk beyond the stream")                            \
	X(drop_chunk_size, "frames", "chunk of a wrong length")                             \
	X(drop_part_full, "frames", "no room for another chunk that comes in parts")        \
	X(drop_ack_unsent, "frames", "acknowledges a packet that was never sent")           \
	X(drop_grant_overflow, "frames", "grants more than the stream holds, or goes back") \
	X(drop_over_credit, "frames", "chunk beyond the credit that was granted")           \
	X(drop_msg_range, "frames", "message fragment out of bounds or out of window")      \
	X(drop_msg_full, "packets", "no free message slot")                                 \
	X(drop_cookie, "packets", "cookie missing, wrong or expired")                       \
	X(drop_hello_rate, "packets", "handshakes over the rate limit")                     \
	X(drop_conn_full, "packets", "connection table full")                               \
	X(drop_reset, "packets", "reset that does not prove knowledge of the connection")   \
	X(drop_events_full, "packets", "control does not take events fast enough")          \
	X(io_not_ours, "packets", "not UDP to one of our ports")                            \
	X(io_bad_ip, "packets", "malformed Ethernet, IP or UDP header")                     \
	X(io_arp_replies, "packets", "ARP and neighbour requests answered")                 \
	X(io_echo_replies, "packets", "ICMP echo requests answered")                        \
	X(io_no_neighbour, "packets", "sent packets whose next hop is not resolved yet")    \
	X(io_tx_full, "packets", "packets that the port did not take at once; they wait")   \
	X(io_tx_in_place, "packets", "whose payload the port read from the store")          \
	X(io_tx_copied, "packets", "copied to be sent again, the first was lost")           \
	X(io_tx_lost, "packets", "packets that the port took neither at once nor later")    \
	X(io_tx_refused, "packets", "those of them that the kernel refused: route, filter") \
	X(io_tx_filtered, "packets", "those of them that a filter of this host forbade")    \
	X(io_tx_calls, "calls", "udp: system calls that send")                              \
	X(io_tx_bursts, "bursts", "udp: packets of one connection sent as one")             \
	X(io_gso_refused, "bursts", "udp: bursts that a device does not take")              \
	X(io_gso_off, "workers", "udp: bursts are off now, a device refuses them")          \
	X(io_rx_calls, "calls", "udp: system calls that receive")                           \
	X(io_rx_bursts, "bursts", "udp: packets of one connection received as one")         \
	X(io_rx_lost, "datagrams", "udp: no room to receive, or a bad UDP checksum")        \
	X(port_rx_missed, "packets", "that a card had no descriptor for")                   \
	X(port_rx_errors, "packets", "that a card took for damaged")                        \
	X(port_rx_no_mbuf, "packets", "that a driver had no buffer for")                    \
	X(port_tx_errors, "packets", "that a card could not send")                          \
	X(io_events_waited, "turns", "turns in which the ring to control was full")         \
	X(io_handover_full, "packets", "packets for another worker that is behind")         \
	X(io_no_mbuf, "events", "no packet buffer free")                                    \
	X(io_sleeps, "events", "times the worker slept")                                    \
	X(io_loops, "loops", "turns of the worker loop")                                    \
	X(io_busy_cycles, "cycles", "cycles of turns that did something")                   \
	X(io_max_turn_cycles, "cycles", "longest turn")

struct counters {
#define X(name, unit, help) uint64_t name;
	COUNTERS(X)
#undef X
};

enum { COUNTERS_COUNT = sizeof(struct counters) / sizeof(uint64_t) };

struct counter_info {
	const char *name, *unit, *help;
};

static inline const struct counter_info *counters_info(void)
{
	static const struct counter_info info[] = {
#define X(name, unit, help) {#name, unit, help},
		COUNTERS(X)
#undef X
	};
	return info;
}

/* The file RUNDIR/counters: this header, then one struct counters per worker, 64-byte aligned. */
#define COUNTERS_FILE_MAGIC 0x31544e4353524153ull /* "SARSCNT1" */

struct counters_file {
	uint64_t magic;
	uint32_t workers;
	uint32_t counters; /* per worker: a reader of another version sees it here */
	uint64_t stride;   /* bytes from one worker's block to the next */
	uint64_t incarnation;
	int64_t pid;
	uint64_t started_ns; /* CLOCK_REALTIME */
	char version[16];    /* of the program, zero-terminated */
};
_Static_assert(sizeof(struct counters_file) == 64, "the first block starts on a cache line");

#endif
