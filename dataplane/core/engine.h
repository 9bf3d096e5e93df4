/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport and plan executor of one endpoint (one worker), without I/O: packets, records and
 * the time go in; packets, records and the next timeout come out. No clock, socket, allocation
 * after init, log or global state inside.
 *
 * Who may call: one thread at a time; on a node the worker that owns the endpoint. The shell
 * (dataplane/io, tests/sim) does, in each turn:
 *
 *     engine_command()  for each record from control
 *     engine_receive()  for each packet that arrived
 *     engine_tick()     when now >= engine_next_timeout()
 *     engine_transmit() until it returns fewer packets than asked; of each rail
 *     engine_events()   and hands the records to control
 *
 * Memory: the caller gives engine_bytes() of zeroed memory, aligned to 64, and keeps the store,
 * the table and the message areas mapped for the engine's life. The engine reads payload of
 * transmitted packets in place: the shell copies or pins it before the next engine_command.
 */
#ifndef SARISSA_DATAPLANE_CORE_ENGINE_H
#define SARISSA_DATAPLANE_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include "internal/counters.h"
#include "internal/object_table.h"
#include "internal/peer_counters.h"
#include "internal/record.h"
#include "core/wire/wire.h"

struct engine;

enum {
	ENGINE_ECN_NOT = 0, /* RFC 3168 codepoints, as in the two low bits of the traffic class */
	ENGINE_ECN_ECT1 = 1,
	ENGINE_ECN_ECT0 = 2,
	ENGINE_ECN_CE = 3,
};

struct engine_config {
	uint64_t incarnation; /* boot number of this endpoint's process: never used before, not 0 */
	struct net_addr addr; /* ours, as peers see it */
	uint8_t key[16];      /* random; signs cookies, seeds connection ids */
	uint16_t mtu;	      /* IP bytes the link takes, 1280..ENGINE_HEAD_MAX */
	uint16_t workers;     /* of this node, told to peers */
	uint8_t rails;	      /* ports: numbers below it may come and go with packets */
	uint16_t conns_max;   /* connection table, <= ENGINE_CONNS_MAX */
	uint16_t window_pkts; /* power of two: packets in flight per connection, 64..16384 */
	uint32_t buffers_max; /* <= BUFFERS_MAX */
	uint32_t edges_max;   /* per direction, <= EDGES_MAX */
	uint32_t msgs_max;    /* unacknowledged outgoing messages over all connections */
	uint64_t
		credit_bytes; /* bound on granted and not yet arrived bytes, all streams together */
	uint64_t rate_bps[RAILS_MAX]; /* pacing never goes above on that rail; 0: no bound */
	/* Bytes that the shell sends in one piece at the price of one packet, by rail. A connection
	 * that has more chunks to send than its pace allows saves up for so many bytes, as long as
	 * that takes no more than burst_ns. 0: each packet leaves as soon as it may. At most
	 * 65,536. */
	uint32_t burst_bytes[RAILS_MAX];
	uint64_t burst_ns[RAILS_MAX];
	uint64_t delay_target_ns;  /* queueing delay the congestion control aims at */
	uint64_t ack_delay_ns;	   /* an acknowledgement waits at most so long */
	uint64_t idle_timeout_ns;  /* a peer that is silent so long while we wait for it is dead */
	uint64_t block_bytes;	   /* EVENT_PROGRESS at most every so many bytes */
	uint64_t handshakes_per_s; /* new connections accepted, and cookies sent: bound */

	uint8_t *store;
	uint64_t store_bytes;
	struct object_table *table; /* NULL: no watermarks are kept */
	uint8_t *msg_tx;	    /* transmit message area, msg_tx_bytes long */
	uint64_t msg_tx_bytes;
	uint8_t *msg_rx; /* receive message area: msg_rx_slots slots of MSG_SLOT_BYTES */
	uint32_t msg_rx_slots;
	struct counters *counters; /* where to count; never NULL */
	struct peer_block *peers;  /* conns_max of them, where connections are told; or NULL */

	uint64_t (*cycles)(void); /* for stage accounting in benchmarks; NULL: no accounting */
};

struct packet_in {
	const uint8_t *data; /* UDP payload */
	uint16_t length;     /* bytes */
	uint8_t ecn;
	struct net_addr from;
	uint8_t rail; /* that it came by */
};

/* Where the engine remembers the CRC of a chunk's bytes: chunk_crc.h. */
struct packet_crc {
	struct chunk_crc *place; /* NULL: nowhere */
	uint32_t buffer, chunk, carry;
};

/*
 * One packet to send: head, then payload (may be absent). The shell sets head and head_room before
 * the call; the engine writes the head there and points payload into the store or the message
 * area. The shell calls packet_out_seal() before its next call of the engine.
 */
struct packet_out {
	uint8_t *head;
	uint16_t head_room; /* at least mtu - IP - UDP */
	uint16_t head_length;
	uint16_t payload_length;
	uint8_t ecn;
	bool resend; /* it was lost before: perhaps the card cannot send it from where it lies */
	const uint8_t *payload;
	struct net_addr to;
	struct packet_crc crc;
};

/* Cycles by stage, when config.cycles is given. receive and transmit contain no I/O. */
struct engine_stages {
	uint64_t check;	   /* integrity of received packets */
	uint64_t receive;  /* header, connection, frames; without check and copy */
	uint64_t copy;	   /* payload into the store */
	uint64_t ack;	   /* sending side: work on received acknowledgements */
	uint64_t transmit; /* choosing and writing packets; without seal */
	uint64_t packets_in, packets_out;
};

/* Bytes of memory for this configuration; 0 when a field is out of its bounds. */
size_t engine_bytes(const struct engine_config *config);

/* Builds an engine in memory (zeroed, 64-aligned, engine_bytes() long). Returns it, or NULL when a
 * field is out of its bounds. There is nothing to free. */
struct engine *engine_init(void *memory, const struct engine_config *config, uint64_t now_ns);

/* Takes one record from control. Invalid ones become EVENT_REFUSED. Returns false, and takes
 * nothing, while the event queue is too full for the answers: try again after engine_events(). */
bool engine_command(struct engine *e, const struct record *command, uint64_t now_ns);

/* A hint, some packets ahead of engine_receive: begins to fetch the memory that this packet will
 * change. Looks at the packet without trusting it; may be left out. */
void engine_prefetch(const struct engine *e, const struct packet_in *packet);

/* Takes one packet. Anything wrong with it is counted and dropped. The bytes are free on return. */
void engine_receive(struct engine *e, const struct packet_in *packet, uint64_t now_ns);

/* Writes up to count packets that may leave by the rail now. Returns how many; fewer than count
 * means that nothing more may leave there before the next receive, command or timeout. */
unsigned engine_transmit_rail(struct engine *e, unsigned rail, struct packet_out *out,
			      unsigned count, uint64_t now_ns);
/* Like engine_transmit_rail(), where there is one rail. */
static inline unsigned engine_transmit(struct engine *e, struct packet_out *out, unsigned count,
				       uint64_t now_ns)
{
	return engine_transmit_rail(e, 0, out, count, now_ns);
}

/* Fills the integrity field of a packet that engine_transmit_rail() has made. A payload whose CRC
 * is known is not read. */
void packet_out_seal(const struct packet_out *out);
/* Like packet_out_seal(), where the payload is to be sent from behind the head: copies it there. */
void packet_out_seal_copy(const struct packet_out *out);
/* A hint: the payload will not be read by packet_out_seal(). */
bool packet_out_known(const struct packet_out *out);

/* Fills the integrity field of any packet, whose head and payload lie at these addresses. */
void packet_seal(uint8_t *head, uint16_t head_length, const uint8_t *payload,
		 uint16_t payload_length);

/* Runs timers that are due, and a bounded share of the contributions of LOCAL edges that came late:
 * while there are more, engine_next_timeout() says now. */
void engine_tick(struct engine *e, uint64_t now_ns);

/* When engine_tick or engine_transmit next has something to do; UINT64_MAX: never by itself. */
uint64_t engine_next_timeout(const struct engine *e);
/* The next timeout while the ports of these rails (a bit each) take nothing. */
uint64_t engine_next_timeout_without(const struct engine *e, uint32_t rails);

/* Moves up to count events out. */
unsigned engine_events(struct engine *e, struct record *out, unsigned count);

/* Connections that are established or opening now. */
unsigned engine_connections(const struct engine *e);

/* The stage account so far (all zero without config.cycles). */
const struct engine_stages *engine_stages(const struct engine *e);

/* The largest chunk (multiple of 64) that a link MTU carries for this address family. */
uint16_t engine_chunk_bytes(uint16_t mtu, bool v4);

/* Sensible values for every limit of a node; addresses, memory and key stay zero. */
void engine_config_default(struct engine_config *config);

#endif
