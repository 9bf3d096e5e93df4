/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets from the network into an engine that is in the middle of its work. Most of the input
 * goes past the checksum and the header, into frames whose fields lie near the valid ones.
 */
#include "rig.h"
#include "conn/ack.h"
#include "conn/sent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct draft {
	uint8_t bytes[RIG_PACKET_MAX];
	uint32_t length;
};

static uint8_t *draft_add(struct draft *d, uint32_t bytes)
{
	if (bytes > sizeof(d->bytes) - d->length)
		return NULL;
	uint8_t *at = d->bytes + d->length;
	d->length += bytes;
	memset(at, 0, bytes);
	return at;
}

static void draft_raw(struct draft *d, struct rig_input *in, uint32_t bytes)
{
	uint8_t *at = draft_add(d, bytes);
	for (uint32_t i = 0; at && i < bytes; i++)
		at[i] = rig_byte(in);
}

/* A number that is mostly near something valid: small, near a limit, or anything. */
static uint32_t pick32(struct rig_input *in, uint32_t valid)
{
	switch (rig_byte(in) & 7) {
	case 0:
		return rig_u32(in);
	case 1:
		return valid + rig_byte(in) - 128;
	case 2:
		return rig_byte(in);
	case 3:
		return UINT32_MAX - rig_byte(in);
	default:
		return valid;
	}
}

static uint64_t pick64(struct rig_input *in, uint64_t valid)
{
	switch (rig_byte(in) & 7) {
	case 0:
		return rig_u64(in);
	case 1:
		return valid + rig_byte(in) - 128;
	case 2:
		return UINT64_MAX - rig_byte(in);
	case 3:
		return rig_u16(in);
	default:
		return valid;
	}
}

static void draft_data(struct draft *d, struct rig_input *in, const struct rig *r)
{
	uint32_t length = rig_byte(in) < 8 ? 0 : pick32(in, RIG_CHUNK) & 2047;
	uint32_t chunk = rig_byte(in) % (RIG_SINK_CHUNKS + 1);
	uint8_t *f = draft_add(d, DATA_BYTES);
	if (!f)
		return;
	f[0] = FRAME_DATA;
	wire_put16(f + DATA_AT_LENGTH, (uint16_t)length);
	wire_put32(f + DATA_AT_STREAM, pick32(in, r->in));
	wire_put32(f + DATA_AT_CHUNK, pick32(in, chunk));
	uint8_t *payload = draft_add(d, length);
	if (payload)
		memset(payload, 0x11, length);
}

static void draft_part(struct draft *d, struct rig_input *in, const struct rig *r)
{
	uint8_t choice = rig_byte(in);
	uint32_t offset = (choice & 1) * PART_BYTES;
	uint32_t length = pick32(in, choice & 1 ? RIG_CHUNK - PART_BYTES : PART_BYTES) & 2047;
	uint32_t chunk = rig_byte(in) % (RIG_SINK_CHUNKS + 1);
	uint8_t *f = draft_add(d, PART_FRAME_BYTES);
	if (!f)
		return;
	f[0] = FRAME_PART;
	wire_put16(f + DATA_AT_LENGTH, (uint16_t)length);
	wire_put32(f + DATA_AT_STREAM, pick32(in, r->in));
	wire_put32(f + DATA_AT_CHUNK, pick32(in, chunk));
	wire_put16(f + PART_AT_OFFSET, (uint16_t)(choice & 2 ? pick32(in, offset) : offset));
	uint8_t *payload = draft_add(d, length);
	if (payload)
		memset(payload, 0x11, length);
}

static void draft_ack(struct draft *d, struct rig_input *in, const struct rig *r)
{
	uint32_t words = rig_byte(in) & 17;
	uint8_t *f = draft_add(d, ACK_AT_BITMAP + 8 * words);
	if (!f)
		return;
	f[0] = FRAME_ACK;
	f[ACK_AT_WORDS] = (uint8_t)words;
	wire_put16(f + ACK_AT_DELAY, rig_u16(in));
	wire_put64(f + ACK_AT_LARGEST, pick64(in, r->victim.counters.tx_pkts));
	for (uint32_t w = 0; w < words; w++)
		wire_put64(f + ACK_AT_BITMAP + 8 * w, rig_byte(in) & 1 ? rig_u64(in) : UINT64_MAX);
}

static void draft_msg(struct draft *d, struct rig_input *in)
{
	uint32_t total = pick32(in, 20000), fragment = rig_byte(in) & 63, id = rig_byte(in) & 3;
	uint32_t length = pick32(in, MSG_FRAGMENT_BYTES) & 2047;
	uint8_t *f = draft_add(d, MSG_FRAME_BYTES);
	if (!f)
		return;
	f[0] = FRAME_MSG;
	wire_put16(f + MSG_AT_LENGTH, (uint16_t)length);
	wire_put32(f + MSG_AT_ID, pick32(in, id));
	wire_put16(f + MSG_AT_FRAGMENT, (uint16_t)pick32(in, fragment));
	wire_put32(f + MSG_AT_TOTAL, total);
	draft_add(d, length);
}

static void draft_small(struct draft *d, struct rig_input *in, const struct rig *r, uint8_t type)
{
	uint8_t *f = draft_add(d, GRANT_BYTES);
	if (!f)
		return;
	f[0] = type;
	f[1] = rig_byte(in);
	wire_put32(f + GRANT_AT_STREAM, pick32(in, r->out));
	if (type != FRAME_GRANT)
		d->length -= 4; /* RESET_STREAM and ECN are that much shorter */
	else
		wire_put32(f + GRANT_AT_CHUNKS, pick32(in, RIG_SOURCE_CHUNKS));
	if (type == FRAME_PING || type == FRAME_CLOSE)
		d->length -= 4;
}

static void draft_frames(struct draft *d, struct rig_input *in, const struct rig *r)
{
	for (unsigned count = 1 + rig_byte(in) % 4; count > 0; count--) {
		uint8_t type = rig_byte(in) % 11;
		if (type == FRAME_DATA)
			draft_data(d, in, r);
		else if (type == FRAME_ACK)
			draft_ack(d, in, r);
		else if (type == FRAME_MSG)
			draft_msg(d, in);
		else if (type == FRAME_PART)
			draft_part(d, in, r);
		else if (type >= FRAME_GRANT && type <= FRAME_ECN)
			draft_small(d, in, r, type);
		else
			draft_raw(d, in, rig_byte(in));
	}
}

static void draft_header(struct draft *d, struct rig_input *in, struct rig *r)
{
	uint16_t check = wire_check_conn(r->peer.config.incarnation, r->peer.conn,
					 r->victim.config.incarnation);
	d->length = WIRE_BODY;
	wire_header(d->bytes, WIRE_PAYLOAD, check, r->victim.conn, pick64(in, r->peer.next_pn));
	if (wire_get64(d->bytes + WIRE_AT_PN) == r->peer.next_pn)
		r->peer.next_pn++;
}

static void draft_chunk(struct draft *d, struct rig_input *in, struct rig *r)
{
	uint32_t length = rig_byte(in) < 64 ? rig_u16(in) & 2047 : RIG_CHUNK;
	uint64_t pn = pick64(in, r->peer.next_pn);
	uint32_t stream = pick32(in, r->in);
	d->length = CHUNK_BODY;
	wire_chunk(d->bytes, pn, stream, pick32(in, rig_byte(in) % (RIG_SINK_CHUNKS + 1)), 0);
	r->peer.next_pn += pn == r->peer.next_pn;
	uint8_t *payload = draft_add(d, length);
	if (payload)
		memset(payload, 0x11, length);
}

/* A short ack, with a chunk or alone. */
static void draft_short(struct draft *d, struct rig_input *in, struct rig *r)
{
	uint8_t brief[SHORT_BYTES], choice = rig_byte(in);
	wire_put16(brief + SHORT_AT_LARGEST,
		   (uint16_t)pick64(in, r->victim.counters.tx_pkts - (choice & 15)));
	wire_put16(brief + SHORT_AT_DELAY, choice);
	wire_put32(brief + SHORT_AT_ARRIVAL, (uint32_t)(r->now_ns / 1000));
	wire_put64(brief + SHORT_AT_BITMAP,
		   choice & 16 ? rig_u64(in) : UINT64_MAX << (choice >> 4));
	if (choice & 1) {
		draft_chunk(d, in, r);
		uint32_t payload = d->length - CHUNK_BODY;
		if (!draft_add(d, SHORT_BYTES))
			return;
		memmove(d->bytes + CHUNK_BODY + SHORT_BYTES, d->bytes + CHUNK_BODY, payload);
		memcpy(d->bytes + CHUNK_BODY, brief, SHORT_BYTES);
		d->bytes[WIRE_AT_FLAGS] = CHUNK_FLAG_ACK;
		return;
	}
	uint64_t pn = pick64(in, r->peer.next_pn);
	r->peer.next_pn += pn == r->peer.next_pn;
	d->length = WIRE_ACK_BYTES;
	wire_ack(d->bytes, pn, brief, 0);
}

/* HELLO, COOKIE, ACCEPT, RESET with a body of choices. */
static void draft_handshake(struct draft *d, struct rig_input *in, const struct rig *r)
{
	uint8_t type = rig_byte(in) % WIRE_CHUNK;
	d->length = WIRE_BODY;
	wire_header(d->bytes, (enum wire_type)type, rig_u16(in), pick32(in, r->victim.conn), 0);
	uint8_t *body = draft_add(d, HELLO_BYTES);
	if (type == WIRE_RESET) {
		wire_put32(body + RESET_AT_CONN, pick32(in, r->peer.conn));
		wire_put16(body + RESET_AT_CHECK, rig_u16(in));
		wire_put64(body + RESET_AT_PN, pick64(in, 3));
		return;
	}
	wire_put32(body + HELLO_AT_CONN, pick32(in, r->peer.conn));
	wire_put16(body + HELLO_AT_MTU, (uint16_t)pick32(in, 1500));
	wire_put16(body + HELLO_AT_WORKERS, rig_byte(in));
	wire_put64(body + HELLO_AT_INCARNATION, pick64(in, r->peer.config.incarnation));
	wire_put64(body + HELLO_AT_PEER, pick64(in, r->victim.config.incarnation));
	wire_put64(body + HELLO_AT_TIME, pick64(in, r->now_ns));
	if (rig_byte(in) & 1)
		memset(body + HELLO_AT_COOKIE, rig_byte(in), WIRE_COOKIE_BYTES);
	draft_add(d, rig_byte(in) & 1 ? WIRE_HELLO_MIN - d->length : rig_byte(in));
}

static void draft_replay(struct draft *d, struct rig_input *in, const struct rig *r)
{
	const struct rig_packet *p = &r->last[rig_byte(in) % 16];
	memcpy(d->bytes, p->bytes, p->length);
	d->length = p->length;
	for (unsigned changes = rig_byte(in) & 3; changes && d->length; changes--)
		d->bytes[rig_u16(in) % d->length] = rig_byte(in);
	if (rig_byte(in) & 1)
		d->length = rig_u16(in) % (d->length + 1);
}

/* Makes the checksum right, of a CHUNK or ACK packet for the numbers that the victim takes it for.
 */
static void draft_seal(struct draft *d, const struct rig *r)
{
	const struct engine *e = r->victim.engine;
	const struct conn *c = &e->conns[handle_index(r->victim.conn)];
	bool chunk = wire_is_chunk(d->bytes);
	if (wire_is_short(d->bytes)) {
		const uint8_t *largest = d->bytes + (chunk ? CHUNK_BODY : WIRE_ACK_AT_SHORT);
		uint64_t pn = ack_number(c, wire_get16(d->bytes + CHUNK_AT_PN));
		uint32_t state = wire_crc_number(c->crc_rx, pn);
		if (!chunk || (d->bytes[WIRE_AT_FLAGS] & CHUNK_FLAG_ACK))
			state = wire_crc_number(state, sent_number(c, wire_get16(largest)));
		wire_put32(d->bytes + CHUNK_AT_CRC, state);
	}
	packet_seal(d->bytes, (uint16_t)d->length, NULL, 0);
}

static void packet(struct rig *r, struct rig_input *in, uint8_t kind)
{
	struct draft d = {.length = 0};
	uint8_t how = rig_byte(in);
	switch (kind) {
	case 0:
		draft_raw(&d, in, rig_u16(in) % RIG_PACKET_MAX);
		break;
	case 1:
		draft_header(&d, in, r);
		draft_raw(&d, in, rig_u16(in) % (RIG_PACKET_MAX - WIRE_BODY));
		break;
	case 2:
		draft_handshake(&d, in, r);
		break;
	case 3:
		draft_replay(&d, in, r);
		break;
	case 4:
		draft_chunk(&d, in, r);
		break;
	case 9:
		draft_short(&d, in, r);
		break;
	default:
		draft_header(&d, in, r);
		draft_frames(&d, in, r);
	}
	if ((how & 15) != 1 && d.length >= CHUNK_BODY)
		draft_seal(&d, r);
	struct net_addr from = r->peer.config.addr;
	if ((how & 0x70) == 0x70)
		from.ip[15] = 9;
	rig_receive(r, d.bytes, (uint16_t)d.length, &from, how >> 7 ? ENGINE_ECN_CE : 0);
}

static void command(struct rig *r, struct rig_input *in)
{
	struct record open = {.op = COMMAND_PEER_OPEN};
	open.peer.addr = r->peer.config.addr;
	open.peer.addr.ip[15] = (uint8_t)(2 + (rig_byte(in) & 3));
	engine_command(r->victim.engine, &open, r->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig_input in = {data, size};
	struct rig *r = rig_get();
	rig_restore(r);
	while (in.left) {
		uint8_t op = rig_byte(&in) & 15;
		if (op < 10)
			packet(r, &in, op);
		else if (op == 10)
			rig_advance(r, (uint64_t)rig_u16(&in) << (rig_byte(&in) & 15));
		else if (op == 11)
			rig_transmit(r, &r->victim, rig_byte(&in) & 1);
		else if (op == 12)
			rig_events(r, &r->victim, rig_byte(&in) & 1);
		else if (op == 13)
			rig_transmit(r, &r->peer, true);
		else if (op == 14)
			command(r, &in);
		else
			rig_advance(r, 100000);
	}
	rig_transmit(r, &r->victim, false);
	rig_events(r, &r->victim, true);
	rig_judge(r, true);
	return 0;
}
