/* SPDX-License-Identifier: BSD-3-Clause */
#include "core_test.h"

void forge_begin(struct packet *p, uint32_t type, uint16_t check, uint32_t conn, uint64_t pn)
{
	memset(p, 0, sizeof(*p));
	p->bytes[WIRE_AT_VERSION_TYPE] = (uint8_t)(WIRE_VERSION << 4 | type);
	wire_put16(p->bytes + WIRE_AT_CHECK, check);
	wire_put32(p->bytes + WIRE_AT_CONN, conn);
	wire_put64(p->bytes + WIRE_AT_PN, pn);
	p->length = WIRE_BODY;
}

uint8_t *forge_add(struct packet *p, uint32_t bytes)
{
	uint8_t *at = p->bytes + p->length;

	assert_true(p->length + bytes <= sizeof(p->bytes));
	p->length += bytes;
	return at;
}

void forge_seal(struct packet *p)
{
	if (wire_is_short(p->bytes))
		wire_put32(p->bytes + CHUNK_AT_CRC, p->state);
	packet_seal(p->bytes, (uint16_t)p->length, NULL, 0);
}

void forge_frame(struct packet *p, uint8_t type, uint32_t bytes)
{
	forge_add(p, bytes)[0] = type;
}

void forge_data(struct packet *p, uint32_t stream, uint32_t chunk, uint32_t bytes, uint8_t fill)
{
	uint8_t *f = forge_add(p, DATA_BYTES + bytes);

	f[0] = FRAME_DATA;
	wire_put16(f + DATA_AT_LENGTH, (uint16_t)bytes);
	wire_put32(f + DATA_AT_STREAM, stream);
	wire_put32(f + DATA_AT_CHUNK, chunk);
	memset(f + DATA_BYTES, fill, bytes);
}

void forge_part(struct packet *p, uint32_t stream, uint32_t chunk, uint32_t offset, uint32_t bytes,
		uint8_t fill)
{
	uint8_t *f = forge_add(p, PART_FRAME_BYTES + bytes);

	f[0] = FRAME_PART;
	wire_put16(f + DATA_AT_LENGTH, (uint16_t)bytes);
	wire_put32(f + DATA_AT_STREAM, stream);
	wire_put32(f + DATA_AT_CHUNK, chunk);
	wire_put16(f + PART_AT_OFFSET, (uint16_t)offset);
	memset(f + PART_FRAME_BYTES, fill, bytes);
}

void forge_ack(struct packet *p, uint64_t largest, uint32_t words, const uint64_t *bitmap)
{
	uint8_t *f = forge_add(p, ACK_AT_BITMAP + 8 * words);

	f[0] = FRAME_ACK;
	f[ACK_AT_WORDS] = (uint8_t)words;
	wire_put64(f + ACK_AT_LARGEST, largest);
	for (uint32_t k = 0; k < words; k++)
		wire_put64(f + ACK_AT_BITMAP + 8 * (size_t)k, bitmap[k]);
}

void forge_grant(struct packet *p, uint32_t stream, uint32_t chunks)
{
	uint8_t *f = forge_add(p, GRANT_BYTES);

	f[0] = FRAME_GRANT;
	wire_put32(f + GRANT_AT_STREAM, stream);
	wire_put32(f + GRANT_AT_CHUNKS, chunks);
}

void forge_msg(struct packet *p, uint32_t id, uint32_t fragment, uint32_t total, uint8_t fill)
{
	uint32_t at = fragment * MSG_FRAGMENT_BYTES;
	uint32_t bytes = total > at ? (uint32_t)state_min(MSG_FRAGMENT_BYTES, total - at) : 1;
	uint8_t *f = forge_add(p, MSG_FRAME_BYTES + bytes);

	f[0] = FRAME_MSG;
	wire_put16(f + MSG_AT_LENGTH, (uint16_t)bytes);
	wire_put32(f + MSG_AT_ID, id);
	wire_put16(f + MSG_AT_FRAGMENT, (uint16_t)fragment);
	wire_put32(f + MSG_AT_TOTAL, total);
	memset(f + MSG_FRAME_BYTES, fill, bytes);
}

void forge_reset_stream(struct packet *p, uint32_t stream)
{
	uint8_t *f = forge_add(p, RESET_STREAM_BYTES);

	f[0] = FRAME_RESET_STREAM;
	wire_put32(f + RESET_STREAM_AT_STREAM, stream);
}

void forge_ecn(struct packet *p, uint32_t count)
{
	uint8_t *f = forge_add(p, ECN_BYTES);

	f[0] = FRAME_ECN;
	wire_put32(f + ECN_AT_COUNT, count);
}

uint8_t *forge_hello(struct packet *p, uint32_t type, const struct peer *peer, uint32_t pad_to)
{
	forge_begin(p, type, 0, 0, 0);
	uint8_t *body = forge_add(p, HELLO_BYTES);

	wire_put32(body + HELLO_AT_CONN, peer->id);
	wire_put16(body + HELLO_AT_MTU, 1500);
	wire_put16(body + HELLO_AT_WORKERS, 1);
	wire_put64(body + HELLO_AT_INCARNATION, peer->incarnation);
	wire_put32(body + HELLO_AT_WINDOW, 64);
	if (p->length < pad_to)
		p->length = pad_to;
	return body;
}

/* Reserved bytes of our own frames are zero. */
static void packet_frame_clean(const uint8_t *f)
{
	if (f[0] == FRAME_DATA || f[0] == FRAME_MSG || f[0] == FRAME_PART)
		assert_int_equal(f[FRAME_AT_FLAGS] & ~FRAME_FLAG_ASK, 0);
	else if (f[0] != FRAME_ACK)
		for (uint32_t k = f[0] == FRAME_GRANT ? 2 : 1; k < 4; k++)
			assert_int_equal(f[k], 0);
}

static uint32_t packet_frame_bytes(const uint8_t *f)
{
	static const uint8_t fixed[] = {
		[FRAME_GRANT] = GRANT_BYTES,
		[FRAME_PING] = PING_BYTES,
		[FRAME_RESET_STREAM] = RESET_STREAM_BYTES,
		[FRAME_CLOSE] = CLOSE_BYTES,
		[FRAME_ECN] = ECN_BYTES,
	};

	if (f[0] == FRAME_DATA)
		return DATA_BYTES + (uint32_t)wire_get16(f + DATA_AT_LENGTH);
	if (f[0] == FRAME_PART)
		return PART_FRAME_BYTES + (uint32_t)wire_get16(f + DATA_AT_LENGTH);
	if (f[0] == FRAME_MSG)
		return MSG_FRAME_BYTES + (uint32_t)wire_get16(f + MSG_AT_LENGTH);
	if (f[0] == FRAME_ACK)
		return ACK_AT_BITMAP + 8u * f[ACK_AT_WORDS];
	assert_true(f[0] < sizeof(fixed));
	return fixed[f[0]];
}

const uint8_t *packet_frame(const struct packet *p, uint8_t type)
{
	uint32_t at = WIRE_BODY;

	if (wire_is_chunk(p->bytes)) {
		assert_int_equal(p->bytes[WIRE_AT_FLAGS] & ~CHUNK_FLAG_ACK, 0);
		if (type == FRAME_ACK && p->bytes[WIRE_AT_FLAGS] != 0)
			return p->bytes + CHUNK_BODY;
		return type == FRAME_DATA ? p->bytes : NULL;
	}
	if (wire_is_short(p->bytes)) {
		assert_int_equal(p->bytes[WIRE_AT_FLAGS], 0);
		assert_int_equal(p->length, WIRE_ACK_BYTES);
		return type == FRAME_ACK ? p->bytes + WIRE_ACK_AT_SHORT : NULL;
	}
	assert_int_equal(p->bytes[0], WIRE_VERSION << 4 | WIRE_PAYLOAD);
	const uint8_t *found = NULL;

	while (at < p->length && p->bytes[at] != FRAME_PADDING) {
		if (p->bytes[at] == type && found == NULL)
			found = p->bytes + at;
		packet_frame_clean(p->bytes + at);
		at += packet_frame_bytes(p->bytes + at);
		assert_true(at <= p->length);
	}
	for (; at < p->length; at++) /* nothing of an earlier packet leaks */
		assert_int_equal(p->bytes[at], 0);
	return found;
}

/* ---- peers -------------------------------------------------------------------------------- */

struct peer peer_new(uint32_t n)
{
	return (struct peer){
		.addr = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)n}, .port = 7400},
		.id = 0x10000 + n,
		.incarnation = 500 + n,
	};
}

struct peer rig_connect(struct rig *r, uint32_t n)
{
	struct peer peer = peer_new(n);
	struct packet p, answer;
	uint8_t *body;

	forge_hello(&p, WIRE_HELLO, &peer, WIRE_HELLO_MIN);
	forge_seal(&p);
	rig_receive(r, &p, &peer.addr);
	assert_true(rig_take(r, &answer));
	assert_int_equal(answer.bytes[0], WIRE_VERSION << 4 | WIRE_COOKIE);
	body = forge_hello(&p, WIRE_HELLO, &peer, WIRE_HELLO_MIN);
	memcpy(body + HELLO_AT_TIME, answer.bytes + WIRE_BODY + HELLO_AT_TIME,
	       8 + WIRE_COOKIE_BYTES);
	forge_seal(&p);
	rig_receive(r, &p, &peer.addr);
	assert_true(rig_take(r, &answer));
	assert_int_equal(answer.bytes[0], WIRE_VERSION << 4 | WIRE_ACCEPT);
	peer.conn = wire_get32(answer.bytes + WIRE_BODY + HELLO_AT_CONN);
	peer.c = conn_find(r->e, peer.conn);
	assert_non_null(peer.c);
	assert_int_equal(rig_expect(r, EVENT_PEER_UP).peer.conn, peer.conn);
	/* the search for the path MTU begins at once: the first probe finds all of it */
	while (rig_take(r, &answer))
		if (packet_frame(&answer, FRAME_PING) != NULL)
			peer_ack(r, &peer, answer.pn);
	assert_int_equal(peer.c->mtu, r->config.mtu < 1500 ? r->config.mtu : 1500);
	assert_int_equal(peer.c->tx.inflight_pkts, 0);
	r->before = r->counters;
	return peer;
}

void peer_begin(struct rig *r, struct peer *peer, struct packet *p)
{
	forge_begin(p, WIRE_PAYLOAD,
		    wire_check_conn(peer->incarnation, peer->id, r->config.incarnation), peer->conn,
		    peer->pn++);
}

void peer_chunk(struct rig *r, struct peer *peer, struct packet *p, uint32_t stream, uint32_t chunk,
		uint32_t bytes, uint8_t fill)
{
	uint32_t known =
		wire_crc_conn(peer->incarnation, peer->id, r->config.incarnation, peer->conn);

	memset(p, 0, sizeof(*p));
	p->state = wire_crc_number(known, peer->pn);
	wire_chunk(p->bytes, peer->pn++, stream, chunk, p->state);
	p->length = CHUNK_BODY;
	memset(forge_add(p, bytes), fill, bytes);
}

void peer_chunk_ack(struct rig *r, struct peer *peer, struct packet *p, uint32_t stream,
		    uint32_t chunk, uint32_t bytes, uint64_t largest, uint64_t bitmap)
{
	peer_chunk(r, peer, p, stream, chunk, SHORT_BYTES + bytes, 7);
	uint8_t *brief = p->bytes + CHUNK_BODY;
	memset(brief, 0, SHORT_BYTES);
	p->bytes[WIRE_AT_FLAGS] = CHUNK_FLAG_ACK;
	wire_put16(brief + SHORT_AT_LARGEST, (uint16_t)largest);
	wire_put64(brief + SHORT_AT_BITMAP, bitmap);
	p->state = wire_crc_number(p->state, largest);
}

void peer_short(struct rig *r, struct peer *peer, struct packet *p, uint64_t largest,
		uint64_t bitmap)
{
	uint8_t brief[SHORT_BYTES] = {0};

	peer_chunk(r, peer, p, 0, 0, WIRE_ACK_BYTES - CHUNK_BODY, 0);
	wire_put16(brief + SHORT_AT_LARGEST, (uint16_t)largest);
	wire_put64(brief + SHORT_AT_BITMAP, bitmap);
	p->state = wire_crc_number(p->state, largest);
	wire_ack(p->bytes, peer->pn - 1, brief, p->state);
}

void peer_send(struct rig *r, const struct peer *peer, struct packet *p)
{
	forge_seal(p);
	rig_receive(r, p, &peer->addr);
}

void peer_ack(struct rig *r, struct peer *peer, uint64_t pn)
{
	uint64_t word = UINT64_C(1) << (pn % 64);
	struct packet p;

	peer_begin(r, peer, &p);
	forge_ack(&p, pn, 1, &word);
	peer_send(r, peer, &p);
}

/* ---- records ------------------------------------------------------------------------------ */

uint8_t *rig_data(struct rig *r, uint32_t index)
{
	return r->config.store + (uint64_t)index * RIG_BUFFER_BYTES;
}

static uint64_t record_bitmap_offset(uint32_t index)
{
	assert_true(index < RIG_BITMAPS);
	return (uint64_t)RIG_BUFFERS * RIG_BUFFER_BYTES + (uint64_t)index * RIG_BITMAP_BYTES;
}

uint64_t *rig_bitmap(struct rig *r, uint32_t index)
{
	return (uint64_t *)(void *)(r->config.store + record_bitmap_offset(index));
}

struct record record_buffer(uint32_t index, uint64_t size)
{
	struct record r = {.op = COMMAND_BUFFER, .epoch = 1, .token = 100 + index};

	r.buffer.buffer = record_handle(index);
	r.buffer.table_slot = index;
	r.buffer.store_offset = (uint64_t)index * RIG_BUFFER_BYTES;
	r.buffer.size = size;
	r.buffer.bitmap_offset = record_bitmap_offset(index);
	r.buffer.chunk_bytes = RIG_CHUNK;
	r.buffer.need = 1;
	return r;
}

struct record record_source(uint32_t index, uint64_t size, uint64_t ready_bytes)
{
	struct record r = record_buffer(index, size);

	r.buffer.bitmap_offset = 0;
	r.buffer.ready_bytes = ready_bytes;
	return r;
}

/* OUT: to the peer's stream of the same index, with the sent bitmap RIG_BUFFERS + index. */
struct record record_edge(enum command_op op, uint32_t index, uint32_t buffer,
			  const struct peer *peer, uint32_t first, uint32_t chunks)
{
	struct record r = {.op = (uint8_t)op, .epoch = 1, .token = 200 + index};

	r.edge.edge = record_handle(index);
	r.edge.buffer = record_handle(buffer);
	r.edge.conn = peer->conn;
	r.edge.first_chunk = r.edge.peer_first = first;
	r.edge.chunks = chunks;
	if (op == COMMAND_OUT) {
		r.edge.stream = 0x70000 + index;
		r.edge.bitmap_offset = record_bitmap_offset(RIG_BUFFERS + index);
	}
	return r;
}

void rig_sink(struct rig *r, const struct peer *peer, uint32_t chunks)
{
	struct record buffer = record_buffer(0, (uint64_t)chunks * RIG_CHUNK);
	struct record in = record_edge(COMMAND_IN, 0, 0, peer, 0, chunks);

	rig_command(r, &buffer);
	rig_command(r, &in);
}

struct record record_drop(uint8_t flags, uint32_t id)
{
	struct record r = {.op = COMMAND_DROP_EDGE, .flags = flags, .epoch = 1};

	if (flags == RECORD_FLAG_BUFFER) {
		r.op = COMMAND_DROP_BUFFER;
		r.progress.buffer = id;
	} else {
		r.edge.edge = id;
	}
	return r;
}

struct record record_advance(uint32_t buffer, uint64_t ready_bytes)
{
	struct record r = {.op = COMMAND_ADVANCE, .epoch = 1};

	r.progress.buffer = buffer;
	r.progress.ready_bytes = ready_bytes;
	return r;
}

struct record record_msg(const struct peer *peer, uint64_t offset, uint32_t length)
{
	struct record r = {.op = COMMAND_MSG_SEND, .token = 300};

	r.msg.conn = peer->conn;
	r.msg.offset = offset;
	r.msg.length = length;
	return r;
}
