/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets before and outside of connections: HELLO, COOKIE, ACCEPT, RESET, and the small answers to
 * addresses without a connection. docs/developer/protocol-connections.md, 4, has the states.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_HANDSHAKE_H
#define SARISSA_DATAPLANE_CORE_CONN_HANDSHAKE_H

#include "core/engine.h"
#include "core/wire/wire_field.h"

struct conn;
struct engine;

/* An answer to an address without a connection: stateless, small, sent once. */
struct reply {
	struct net_addr to;
	uint16_t length;
	uint16_t pad_to;
	uint8_t bytes[WIRE_BODY + HELLO_BYTES];
};

void handshake_hello(struct engine *e, const struct packet_in *p);
void handshake_cookie(struct engine *e, const struct packet_in *p);
void handshake_accept(struct engine *e, const struct packet_in *p);
void handshake_reset(struct engine *e, const struct packet_in *p);
/* Answers a packet whose connection id is not in use, or not its sender's. The answer is the same
 * for both: else a stranger could find out which ids are in use. Rate-limited. */
void handshake_send_reset(struct engine *e, const struct packet_in *p);
/* Tells an address that speaks another version which one we speak; rate-limited. */
void handshake_version(struct engine *e, const struct packet_in *p);
/* Writes one HELLO of a connection that is opening. */
void handshake_write(struct engine *e, struct conn *c, struct packet_out *out);
/* Writes the oldest answer that waits for this rail. */
bool handshake_reply(struct engine *e, unsigned rail, struct packet_out *out);
void handshake_timer(struct engine *e, struct conn *c);
/* The peer may answer now: restarts the pauses. */
void handshake_resend(struct engine *e, struct conn *c);

#endif
