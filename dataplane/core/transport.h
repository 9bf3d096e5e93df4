/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport: connections, packet numbers, acknowledgements, loss, congestion, path MTU. Called
 * by engine.c; calls the executor for what packets carry.
 *
 * Sources: loss detection after RACK-TLP (RFC 8985) on QUIC-style packet numbers (RFC 9002);
 * delay target after Swift (SIGCOMM 2020); ECN fraction after DCTCP (RFC 8257); path MTU after
 * RFC 8899; source address cookies after DTLS and QUIC Retry (RFC 9000, 8.1).
 */
#ifndef SARISSA_DATAPLANE_CORE_TRANSPORT_H
#define SARISSA_DATAPLANE_CORE_TRANSPORT_H

#include "state.h"

/* conn.c */
struct conn *conn_find(struct engine *e, uint32_t handle);
struct conn *conn_by_addr(struct engine *e, const struct net_addr *addr);
/* A connection in state OPENING, nothing sent yet; NULL when the table is full. */
struct conn *conn_alloc(struct engine *e, const struct net_addr *addr);
void conn_established(struct engine *e, struct conn *c);
/* Ends a connection: its edges fail, its messages come back, control hears PEER_DOWN. */
void conn_close(struct engine *e, struct conn *c, enum reason why);
enum reason conn_open_record(struct engine *e, const struct record *r);
enum reason conn_close_record(struct engine *e, const struct record *r);
enum reason conn_watch_record(struct engine *e, const struct record *r);
/* Bytes of UDP payload that the path carries. */
static inline uint16_t conn_room(const struct conn *c)
{
	return (uint16_t)(c->mtu - conn_overhead(c));
}
/* Runs this connection's timers; may close it. */
void conn_timers(struct engine *e, struct conn *c);
/* Sets the wheel to the earliest of its timers. */
void conn_arm(struct engine *e, struct conn *c);

/* handshake.c: packets before and outside of connections */
void handshake_hello(struct engine *e, const struct packet_in *p);
void handshake_cookie(struct engine *e, const struct packet_in *p);
void handshake_accept(struct engine *e, const struct packet_in *p);
void handshake_reset(struct engine *e, const struct packet_in *p);
/* Answers a packet for a connection that is not there; rate-limited. */
void handshake_unknown(struct engine *e, const struct packet_in *p);
/* Tells an address that speaks another version which one we speak; rate-limited. */
void handshake_version(struct engine *e, const struct packet_in *p);
/* Writes one HELLO of a connection that is opening. */
void handshake_write(struct engine *e, struct conn *c, struct packet_out *out);
/* Writes the oldest waiting answer. */
bool handshake_reply(struct engine *e, struct packet_out *out);
void handshake_timer(struct engine *e, struct conn *c);
/* There is reason to think that the peer answers now: the pauses begin anew. */
void handshake_again(struct engine *e, struct conn *c);

/* cookie.c */
void cookie_make(const struct engine *e, const struct net_addr *addr, uint32_t conn,
		 uint64_t incarnation, uint64_t time, uint8_t cookie[WIRE_COOKIE_BYTES]);
bool cookie_holds(const struct engine *e, const struct net_addr *addr, uint32_t conn,
		  uint64_t incarnation, uint64_t time, const uint8_t cookie[WIRE_COOKIE_BYTES]);
/* One answer's worth of its rate; false when it is spent. */
bool cookie_budget(struct engine *e, enum budget what);
uint64_t cookie_random(const struct engine *e, uint64_t what);

/* ack.c: which packets arrived */
enum ack_verdict { ACK_NEW, ACK_DUPLICATE, ACK_OLD, ACK_FUTURE };
/* The number nearest to the largest one seen that ends in these bits. */
static inline uint64_t ack_number(const struct conn *c, uint16_t low)
{
	return c->rx_largest + (uint64_t)(int16_t)(low - (uint16_t)c->rx_largest);
}
enum ack_verdict ack_look(const struct engine *e, const struct conn *c, uint64_t pn);
/* What a packet wishes: none, one soon, or one a little later, with those of more chunks: whoever
 * sends chunk after chunk asks when it waits for one. */
enum ack_wish { ACK_NOT, ACK_SOON, ACK_LATER };
void ack_mark(struct engine *e, struct conn *c, uint64_t pn, enum ack_wish wish);
/* How long a chunk's waits at a node to which so many send, and whose sender was told so or not. */
uint64_t ack_chunk_wait_ns(const struct engine *e, uint32_t senders, bool told);
bool ack_due(const struct engine *e, const struct conn *c);
/* The length of the ACK frame that is next. */
uint16_t ack_bytes(const struct engine *e, const struct conn *c);
/* Writes an ACK frame (and an ECN frame) of at most room bytes; returns its length or 0. */
uint16_t ack_write(struct engine *e, struct conn *c, uint8_t *to, uint16_t room);

/* Does the short form say all that is to be said now? False also when that is nothing. */
bool ack_short(const struct conn *c);
/* Writes it then: SHORT_BYTES. */
void ack_write_short(struct engine *e, struct conn *c, uint8_t *to);

/* sent.c: what left, and what became of it */
/* May another ack-eliciting packet leave, as far as packet numbers go? */
bool sent_room(const struct engine *e, const struct conn *c);
/* And one with a new item? One that leaves again has its place in the window already. */
bool sent_window(const struct engine *e, const struct conn *c);
uint64_t sent_record(struct engine *e, struct conn *c, enum sent_kind kind, uint32_t a, uint32_t b,
		     uint16_t bytes);
/* Takes an ACK frame; false (and counted) when it lies. */
bool sent_ack(struct engine *e, struct conn *c, const uint8_t *frame);
/* The same with a short one, given in its two parts, of which the whole largest number is known. */
bool sent_ack_short(struct engine *e, struct conn *c, uint64_t largest, const uint8_t *brief,
		    const uint8_t *bitmap);
/* The last number sent that ends in these bits. */
static inline uint64_t sent_number(const struct conn *c, uint16_t low)
{
	return c->next_pn - 1 - (uint16_t)(c->next_pn - 1 - low);
}
/* Declares one outstanding packet lost: what it carried waits to leave again. */
void sent_lose(struct engine *e, struct conn *c, uint64_t pn);
/* The next item that waits to leave again and is still wanted; false when there is none. */
bool sent_again(struct engine *e, struct conn *c, struct lost_item *item);
/* Puts an item back that could not leave after all. */
void sent_defer(struct engine *e, struct conn *c, const struct lost_item *item);
static inline struct sent *sent_slot(const struct engine *e, const struct conn *c, uint64_t pn)
{
	return &c->sent[pn & (e->sent_slots - 1)];
}
static inline bool sent_outstanding(const struct engine *e, const struct conn *c, uint64_t pn)
{
	uint64_t slot = pn & (e->sent_slots - 1);
	return c->outstanding[slot / 64] >> (slot % 64) & 1;
}

/* loss.c */
#define LOSS_SILENCE_NS \
	UINT64_C(10000000) /* longer than a sender of a stream that flows is quiet */
/* One of the two ends stood still, or the path is another: what leaves from now on will show. */
bool loss_is_pause(struct conn *c, uint64_t pn, uint64_t sample_ns);
void loss_rtt(struct engine *e, struct conn *c, uint64_t sample_ns);
/* The peer's clock when a packet arrived that was sent at sent_ns of ours. */
void loss_one_way(struct engine *e, struct conn *c, uint32_t arrival_us, uint64_t sent_ns);
/* How long the latest packet stood in queues on its way there. */
uint64_t loss_queue_ns(const struct conn *c);
/* What was taken for the path itself was a queue as well: half of it, as nobody knows how much. It
 * is measured anew a second later: perhaps the path is so long. */
void loss_base_halve(const struct engine *e, struct conn *c);
/* After new acknowledgements, or when the reorder deadline is due. */
void loss_detect(struct engine *e, struct conn *c);
/* When the tail probe is due; NEVER when nothing is outstanding. */
uint64_t loss_probe_ns(const struct engine *e, const struct conn *c);
void loss_probe(struct engine *e, struct conn *c);
/* Its probes need no answer any more. */
void loss_answered(struct engine *e, struct conn *c);
/* Whose silence has ended with a packet. It was of all only if one of them owed an answer: else an
 * answer after a long round trip would have us ask the others, and theirs the next, without end. */
enum loss_silence { SILENCE_OF_NOBODY, SILENCE_OF_ONE, SILENCE_OF_ALL };
static inline enum loss_silence loss_heard(struct engine *e, struct conn *c)
{
	bool one = e->now_ns - c->last_rx_ns >= LOSS_SILENCE_NS;
	bool all = e->unanswered > 0 && e->now_ns - e->heard_ns >= LOSS_SILENCE_NS;

	c->last_rx_ns = e->heard_ns = e->now_ns;
	return !one ? SILENCE_OF_NOBODY : all ? SILENCE_OF_ALL : SILENCE_OF_ONE;
}
/* When all that is in the packet has been looked at. */
void loss_silence_ended(struct engine *e, struct conn *c, enum loss_silence of);
void loss_spurious(struct conn *c);
/* A round trip has passed. */
void loss_round(struct conn *c);

/* congestion.c */
void congestion_init(struct engine *e, struct conn *c);
void congestion_acked(struct engine *e, struct conn *c, uint64_t bytes, uint32_t packets,
		      uint64_t largest_pn);
void congestion_lost(struct conn *c);
void congestion_marked(struct conn *c, uint32_t marks);
/* May bytes leave now? Sets pace_blocked or cwnd_limited when not. What is patient waits for a
 * burst.
 */
bool congestion_allows(struct engine *e, struct conn *c, uint32_t bytes, bool patient);
void congestion_sent(struct engine *e, struct conn *c, uint32_t bytes);
/* The connection has found silence after probes: starts over carefully. */
void congestion_collapse(struct engine *e, struct conn *c);

/* path_mtu.c */
void path_mtu_start(struct engine *e, struct conn *c);
bool path_mtu_due(const struct conn *c, uint64_t now_ns);
void path_mtu_acked(struct engine *e, struct conn *c, uint32_t bytes);
void path_mtu_lost(struct engine *e, struct conn *c, uint32_t bytes);
/* Packets other than probes were acknowledged, or one was lost: when large ones vanish for several
 * rounds while small ones pass, goes back to the base and searches again. */
void path_mtu_passed(struct conn *c, bool large, bool small);
void path_mtu_vanished(struct engine *e, struct conn *c, const struct sent *s);
static inline bool path_mtu_large(const struct conn *c, uint16_t bytes)
{
	return bytes > MTU_BASE - conn_overhead(c);
}

/* frame.c: the body of a PAYLOAD packet, and CHUNK and ACK packets, of which it must be known whose
 * they are (NULL: nobody's, counted) before their CRC can be looked at; largest: of the short ack.
 */
void frame_packet(struct engine *e, const struct packet_in *p);
struct conn *frame_chunk_conn(struct engine *e, const struct packet_in *p);
void frame_chunk(struct engine *e, struct conn *c, const struct packet_in *p, uint64_t pn);
struct conn *frame_addr_conn(struct engine *e, const struct packet_in *p);
void frame_short(struct engine *e, struct conn *c, const struct packet_in *p, uint64_t pn,
		 uint64_t largest);

/* peer.c: what others may read of a connection, where config.peers has room for that */
/* Writes all of it. */
void peer_tell(struct engine *e, struct conn *c);
/* When that is due; small news can wait for the next occasion. */
static inline uint64_t peer_tell_due_ns(const struct conn *c)
{
	return c->tally.tx_bytes + c->tally.rx_bytes - c->told_bytes > 65536 ? c->tell_ns : NEVER;
}
/* It has ended. */
void peer_forget(const struct engine *e, const struct conn *c);

/* transmit.c */
unsigned transmit_conn(struct engine *e, struct conn *c, struct packet_out *out, unsigned count);

/* wheel.c: one timer per connection */
void wheel_init(struct wheel *w, uint64_t now_ns);
void wheel_arm(struct engine *e, struct conn *c, uint64_t when_ns);
void wheel_disarm(struct engine *e, struct conn *c);
void wheel_run(struct engine *e);
uint64_t wheel_next_ns(const struct wheel *w);

#endif
