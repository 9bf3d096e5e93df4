/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that clients and workers can do to a control core, in any order: requests that are
 * nearly right or plain bytes, clients that come and go and scribble on their pins, events of
 * workers, answers of other nodes, time; and its end in the midst of it, with another one that
 * takes over the clients and the table, in which not everything may be as it was.
 */
#include <errno.h>
#include <string.h>
#include "../table.h"
#include "control_rig.h"
#include "internal/reduce.h"
#include "session_groups.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ASKED = 5 }; /* the caller's number for a reduce, often */

enum action {
	REQUEST,
	RAW_REQUEST,
	OPEN,
	CLOSE,
	PINS,
	TIME,
	EVENT,
	ANSWER,
	HELLO,
	GROUP_ANSWER,
	RESTART,
	ACTIONS
};

/* Few ids, so that requests meet. */
static struct object_id some_id(struct rig_input *in)
{
	struct object_id id = {{0}};

	id.bytes[0] = (uint8_t)(rig_take(in, 1) % 6);
	id.bytes[5] = id.bytes[0];
	return id;
}

/* Of few ids, with a length that nearly always fits. */
static void do_reduce(struct rig *r, struct rig_input *in, uint32_t session,
		      struct session_request *q)
{
	uint8_t packet[SESSION_REQUEST_BYTES_MAX];
	uint8_t bits = (uint8_t)rig_take(in, 1), op = (uint8_t)rig_take(in, 1);
	size_t length = sizeof(*q);

	q->reduction.op = op % (REDUCE_OP_END + 1);
	q->reduction.min = op >> 6;
	q->reduction.deadline_ns = op & 0x20 ? 1000000 : 0;
	q->reduction.dtype = (uint32_t)(rig_take(in, 1) % (REDUCE_DTYPE_END + 1));
	q->reduction.count = bits & 0x80 ? SESSION_SOURCES_MAX : bits & 7;
	q->reduction.num = bits >> 3 & 3;
	q->flags &= SESSION_FLAG_RETRY;
	q->flags |= bits & 0x20 ? SESSION_FLAG_ALLREDUCE : bits & 0x40;
	for (uint32_t i = 0; i < q->reduction.count; i++, length += OBJECT_ID_BYTES) {
		struct object_id id = some_id(in);

		id.bytes[1] = in->left > 0 ? 0 : (uint8_t)i; /* many of them: none twice */
		id.bytes[2] = in->left > 0 ? 0 : (uint8_t)(i >> 8);
		memcpy(packet + length, &id, sizeof(id));
	}
	memcpy(packet, q, sizeof(*q));
	control_session_request(r->core, session, packet, length - (bits == 0x55), r->now_ns);
}

/* With so many bytes as it says, nearly always. */
static void do_put(struct rig *r, struct rig_input *in, uint32_t session, struct session_request *q)
{
	uint8_t packet[SESSION_REQUEST_BYTES_MAX] = {0};
	uint8_t bits = (uint8_t)rig_take(in, 1);

	q->size = bits & 0x80 ? SESSION_PUT_MAX : bits;
	memcpy(packet, q, sizeof(*q));
	packet[sizeof(*q)] = (uint8_t)rig_take(in, 1);
	control_session_request(r->core, session, packet, sizeof(*q) + q->size - (bits == 0x55),
				r->now_ns);
}

/* In order, nearly always. */
static void do_ranges(struct rig *r, struct rig_input *in, uint32_t session,
		      struct session_request *q)
{
	uint8_t packet[SESSION_REQUEST_BYTES_MAX] = {0};
	uint8_t bits = (uint8_t)rig_take(in, 1);
	struct object_range range = {0};

	q->generation = bits & 0x40 ? q->generation : 0;
	q->pin = bits & 0x20 ? q->pin : bits;
	q->size = (bits & 0x80 ? SESSION_RANGES_MAX : bits % 4) * sizeof(range);
	for (uint64_t at = 0; at < q->size; at += sizeof(range)) {
		uint64_t draw = in->left > 0 ? rig_take(in, 2) : 5;

		range.offset += draw & 0x8000 ? UINT64_MAX / 2 : draw % 4096;
		range.bytes = draw & 0x4000 ? SESSION_RANGES_BYTES : draw % 3000;
		memcpy(packet + sizeof(*q) + at, &range, sizeof(range));
	}
	memcpy(packet, q, sizeof(*q));
	control_session_request(r->core, session, packet, sizeof(*q) + q->size - (bits == 0x55),
				r->now_ns);
}

static void do_request(struct rig *r, struct rig_input *in)
{
	static const uint64_t sizes[] = {0, 1, 63, 64, 65536, 65537, 300000, UINT64_MAX};
	struct session_request q = {.magic = SESSION_MAGIC, .version = SESSION_VERSION};
	uint32_t session = (uint32_t)rig_take(in, 1) % (RIG_SESSIONS + 1);
	uint8_t bits;

	q.op = (uint16_t)(rig_take(in, 1) % (SESSION_OPS + 1));
	q.id = some_id(in);
	bits = (uint8_t)rig_take(in, 1);
	q.size = sizes[bits % 8];
	q.watermark = sizes[bits / 8 % 8];
	q.timeout_ns = bits & 0x40 ? -1 : bits & 0x80 ? 0 : 1000000;
	q.pin = bits & 1 ? SESSION_PIN_NONE : bits;
	q.slot = bits & 2 ? r->last.slot : (uint32_t)rig_take(in, 1);
	q.generation = r->last.generation;
	q.name[0] = (char)q.id.bytes[0];
	q.flags = bits >> 3 & (SESSION_FLAG_RETRY | SESSION_FLAG_BRIEF);
	if (q.op == SESSION_REDUCE) {
		do_reduce(r, in, session, &q);
		return;
	}
	if (q.op == SESSION_PUT && q.size <= SESSION_PUT_MAX) {
		do_put(r, in, session, &q);
		return;
	}
	if (q.op == SESSION_GET_RANGES &&
	    q.size <= SESSION_RANGES_MAX * sizeof(struct object_range)) {
		do_ranges(r, in, session, &q);
		return;
	}
	if (q.op == SESSION_GROUP) {
		groups_request_of(r, in, session, &q);
		return;
	}
	control_session_request(r->core, session, &q, sizeof(q), r->now_ns);
}

static void do_raw_request(struct rig *r, struct rig_input *in)
{
	uint8_t bytes[sizeof(struct session_request) + 4 * OBJECT_ID_BYTES] = {0};
	size_t length = rig_take(in, 2) % (sizeof(bytes) + 1);

	for (size_t i = 0; i < length && in->left > 0; i++)
		bytes[i] = (uint8_t)rig_take(in, 1);
	control_session_request(r->core, 0, bytes, length, r->now_ns);
}

static void do_event(struct rig *r, struct rig_input *in)
{
	struct record e = {.op = (uint8_t)rig_take(in, 1)};

	e.flags = (uint8_t)rig_take(in, 1);
	e.reason = (uint16_t)(rig_take(in, 1) % 32);
	e.token = rig_take(in, 1);
	if (e.flags & 0x80) { /* something that exists, perhaps */
		e.edge.edge = handle_make((uint16_t)(rig_take(in, 1) % 8), 1);
		e.edge.buffer = handle_make((uint16_t)(rig_take(in, 1) % 8), 1);
		if (e.op != EVENT_DROPPED && e.op != EVENT_REFUSED && e.op != EVENT_EDGE_FAILED &&
		    e.op != EVENT_OUT_DONE)
			e.progress.buffer = e.edge.buffer;
		if (e.op == EVENT_REFUSED)
			e.refused.refused_op = (uint32_t)(rig_take(in, 1) % COMMAND_OPS);
	} else {
		for (size_t i = 0; i < sizeof(e.bytes); i++)
			e.bytes[i] = (uint8_t)rig_take(in, 1);
	}
	/* A worker that says that something is gone which it has not been told to drop is a bug of
	 * ours; the core ignores it. */
	control_event(r->core, e.flags & 0x40 ? 1 : 0, &e, r->now_ns);
}

static uint32_t some_node(uint8_t bits)
{
	return bits % (RIG_NODES + 1) == RIG_NODES ? MESSAGE_NODE_NONE : bits % (RIG_NODES + 1);
}

/* A reduce of up to six sources that are likely to be known, and how it ended. */
static void make_reduce(struct message *m, struct rig_input *in, uint8_t bits,
			struct object_id sources[8])
{
	uint32_t more, num;

	for (int i = 0; i < 8; i++)
		sources[i] = some_id(in);
	if (m->kind == MESSAGE_USED) {
		m->used.target = some_id(in);
		m->used.status = bits & 1 ? -(int32_t)(bits / 2) : 0;
		m->used.generation = 1 + bits / 16 % 4;
		m->used.count = bits / 2 % 8;
		m->used.sources = sources;
		return;
	}
	more = (uint32_t)rig_take(in, 1);
	m->reduce.target = some_id(in);
	m->reduce.op = bits % REDUCE_OP_END;
	m->reduce.dtype = more % 16 % REDUCE_DTYPE_END;
	m->reduce.asked = more & 0x10 ? ASKED : 0;
	m->reduce.count = bits / 16 % 8;
	num = (uint32_t)rig_take(in, 1);
	m->reduce.num = num % 8;
	m->reduce.flags = bits & MESSAGE_REDUCE_ALLREDUCE;
	m->reduce.flags |= more & 0x40 ? MESSAGE_REDUCE_RESTART : 0;
	m->reduce.timeout_ns = bits & 0x80 ? UINT64_MAX : 1000000000;
	if (num & 0x80) {
		m->reduce.flags |= MESSAGE_REDUCE_DEADLINE;
		m->reduce.num = num & 0x40 ? m->reduce.count : m->reduce.num;
		m->reduce.min = num >> 3 & 3;
		m->reduce.deadline_ns = num & 0x20 ? 1000000 : 0;
	}
	m->reduce.sources = sources;
}

/* The sources that a coordinator has chosen, and what the requester reports of them later. */
static void make_result(struct message *m, struct rig_input *in, uint8_t bits,
			struct object_id sources[8])
{
	m->used = (struct message_used){.target = some_id(in),
					.generation = 1 + bits / 64,
					.asked = bits & 8 ? ASKED : m->request,
					.node = some_node(bits / 16),
					.count = 1 + bits % 4,
					.sources = sources};
	for (uint32_t i = 0; i < m->used.count; i++)
		sources[i] = some_id(in);
	if (m->kind == MESSAGE_RECALL && bits & 4) { /* it has failed */
		m->used.status = -ETIMEDOUT;
		m->used.generation = m->used.count = 0;
	}
}

/* What a coordinator asks a node to build, how that goes, and its end. */
static void make_combine(struct message *m, struct rig_input *in, uint8_t bits,
			 struct message_part parts[4])
{
	uint32_t more;

	if (m->kind != MESSAGE_COMBINE) {
		m->combined.id = some_id(in);
		m->combined.target = some_id(in);
		m->combined.part_id = some_id(in);
		m->combined.generation = m->combined.part_generation = 1 + bits / 64;
		m->combined.reduce = bits % 4;
		m->combined.what = bits / 4 % MESSAGE_COMBINED_WHATS;
		m->combined.part_node = some_node(bits / 16);
		m->combined.status = -(int32_t)(bits / 8);
		return;
	}
	m->combine.id = some_id(in);
	m->combine.target = some_id(in);
	m->combine.generation = 1 + bits / 64;
	m->combine.reduce = bits % 4;
	m->combine.size = bits & 1 ? 100000 : bits & 2 ? 0 : 64;
	m->combine.chunk_bytes = bits & 0x20 ? 64 : 1408;
	more = (uint32_t)rig_take(in, 1);
	m->combine.op = more % 16 % REDUCE_OP_END;
	m->combine.dtype = (uint32_t)rig_take(in, 1) % REDUCE_DTYPE_END;
	m->combine.flags = bits / 4 & (MESSAGE_COMBINE_HIDDEN | MESSAGE_COMBINE_WITHHOLD);
	m->combine.flags |= bits & 0x40 ? MESSAGE_COMBINE_VALUES : 0;
	m->combine.count = bits / 8 % 5;
	m->combine.need = m->combine.count + bits / 128;
	m->combine.parts = parts;
	for (uint32_t i = 0; i < m->combine.count; i++) {
		uint8_t b = (uint8_t)rig_take(in, 1);

		parts[i].id = some_id(in);
		parts[i].generation = 1 + b / 64;
		parts[i].node = some_node(b);
		parts[i].count = b & 8 ? 72 : b & 16 ? 1 : b;
		parts[i].to = m->combine.op ? 0 : b / 4;
		parts[i].size = b % 7 == 0 ? 200000 : 0;
		parts[i].first = b % 7 == 0 ? b % 80 : b % 11 == 0;
	}
}

/* Bytes that nobody has asked for, or that somebody has. */
static void make_values(struct message *m, struct rig_input *in, uint8_t bits, uint8_t value[64])
{
	struct message_pull *t = m->kind == MESSAGE_PUSH ? &m->push.bytes : &m->pull;

	if (m->kind == MESSAGE_PUSH)
		m->push.into = some_id(in);
	t->id = some_id(in);
	t->generation = 1 + bits / 64;
	t->first = bits & 8 ? 1408 : bits & 16 ? UINT32_MAX : 0;
	t->bytes = bits & 32 ? 64 : 1 + bits % 64;
	t->value = value;
	if (m->kind == MESSAGE_PULL_REPLY && bits & 4) {
		t->bytes = 0;
		t->status = bits & 1 ? -EAGAIN : -ENOENT;
	}
}

/* News of nodes of which some are there, with addresses that are theirs or not. */
static void make_members(struct message *m, struct rig_input *in, uint8_t bits,
			 struct message_member members[4])
{
	m->members.digest = bits;
	m->members.step = bits % MESSAGE_MEMBERS_STEPS;
	m->members.count = bits / 16 % 5;
	m->members.members = members;
	for (uint32_t i = 0; i < m->members.count; i++) {
		uint8_t b = (uint8_t)rig_take(in, 1);

		members[i].node = b % (2 * RIG_NODES);
		members[i].state = 1 + b / 8 % (MEMBER_STATES - 1);
		members[i].incarnation = b & 0x40 ? UINT64_MAX - b : 200U + b % 8;
		members[i].addr.port = UDP_PORT_DEFAULT;
		members[i].addr.ip[15] =
			(uint8_t)(1 + (b & 0x80 ? b / 2 % 8 : b) % (2 * RIG_NODES));
	}
}

static void make_watch(struct message_watch *m, uint32_t bits)
{
	m->step = 1 + bits % (MESSAGE_WATCH_STEPS - 1);
	m->number = 1 + bits / 4 % 4;
	m->next = m->step == MESSAGE_WATCH_NEXT ? 1 + bits / 16 : 0;
	m->cursor = m->next ? bits / 128 : 0;
}

static void make_objects(struct message_objects *m, uint8_t bits, struct session_object *object)
{
	*m = (struct message_objects){bits / 64, bits & 1, object, !(bits & 3), 0, 0, 0};
	if (!(bits & 0x20))
		return;
	m->watch = 1 + bits / 2 % (MESSAGE_WATCH_STATES - 1);
	m->next = 1 + bits / 8;
	m->count = m->watch == MESSAGE_WATCH_EVENTS;
	m->deleted = 0;
	object->flags = SESSION_OBJECT_EVENT;
}

enum {
	VALUES_FROM = 240,
	WATCH_FROM = 252,
	GROUPS_FROM = 254
}; /* of the bytes that choose a kind */

static void do_group_answer(struct rig *r, struct rig_input *in)
{
	static const uint8_t kinds[] = {MESSAGE_REDUCE,	 MESSAGE_REDUCED,   MESSAGE_USED,
					MESSAGE_COMBINE, MESSAGE_COMBINED,  MESSAGE_RELEASE,
					MESSAGE_MEMBERS, MESSAGE_TOMBSTONE, MESSAGE_REDIRECT,
					MESSAGE_COMMIT,	 MESSAGE_RECALL,    MESSAGE_FINISH};
	uint32_t kind = (uint32_t)rig_take(in, 1);
	struct message m = {.kind = kind < VALUES_FROM	? kinds[kind % sizeof(kinds)]
				    : kind < WATCH_FROM ? MESSAGE_PULL + kind % 3
							: MESSAGE_WATCH};
	uint8_t value[64] = {7};
	struct object_id sources[8];
	struct message_part parts[4] = {0};
	struct message_member members[4] = {0};
	uint8_t bits = (uint8_t)rig_take(in, 1);

	if (kind >= GROUPS_FROM) {
		groups_say(r, in, kind % 2, bits);
		return;
	}
	m.request = r->sent[bits % 16];
	if (m.kind == MESSAGE_COMMIT || m.kind == MESSAGE_RECALL)
		make_result(&m, in, bits, sources);
	else if (m.kind == MESSAGE_REDUCE || m.kind == MESSAGE_REDUCED || m.kind == MESSAGE_USED)
		make_reduce(&m, in, bits, sources);
	else if (m.kind == MESSAGE_MEMBERS || m.kind == MESSAGE_REDIRECT)
		make_members(&m, in, bits, members);
	else if (m.kind == MESSAGE_WATCH)
		make_watch(&m.watch, bits);
	else if (kind >= VALUES_FROM)
		make_values(&m, in, bits, value);
	else if (m.kind == MESSAGE_TOMBSTONE)
		m.tombstone =
			(struct message_tombstone){some_id(in), bits & 1 ? UINT64_MAX : bits % 4,
						   bits / 8, some_node(bits / 16), bits / 32 % 4};
	else
		make_combine(&m, in, bits, parts);
	rig_say(r, 1 + bits / 8 % 2, &m);
}

/* What the other nodes may say, with fields that fit the core's state more often than not. */
static void do_answer(struct rig *r, struct rig_input *in)
{
	struct message m = {.kind = 1 + (uint32_t)rig_take(in, 1) % MESSAGE_RECALL};
	uint8_t value[64] = {7};
	uint8_t bits = (uint8_t)rig_take(in, 1);
	struct session_object object = {.generation = 3, .id = some_id(in)};
	struct object_id sources[8];

	m.request = r->sent[bits % 16];
	if (m.kind == MESSAGE_GOT) {
		m.got.id = some_id(in);
		m.got.generation = 1 + bits / 16 % 4;
		m.got.what = bits / 64;
		m.got.size = bits & 1 ? 100000 : bits & 2 ? 0 : sizeof(value);
		m.got.chunk_bytes = 1408;
		m.got.holder = bits / 4 % RIG_NODES;
		m.got.value = value;
		m.got.value_bytes = m.got.what == MESSAGE_GOT_VALUE ? (uint32_t)m.got.size : 0;
		if (m.got.value_bytes > sizeof(value))
			return;
	} else if (m.kind == MESSAGE_REPLY) {
		m.reply.status = bits & 0x10 ? 0 : -(int32_t)(rig_take(in, 1) + 1);
		m.reply.generation = r->last.generation;
	} else if (m.kind == MESSAGE_OBJECTS) {
		make_objects(&m.objects, bits, &object);
	} else if (m.kind == MESSAGE_STREAM || m.kind == MESSAGE_PIECES || m.kind == MESSAGE_HAS) {
		m.stream.id = some_id(in);
		m.stream.generation = r->last.generation;
		m.stream.chunk_bytes = bits & 1 ? 1408 : 64;
		m.stream.count = 1 + (uint32_t)rig_take(in, 1);
		m.stream.lanes = 1 + bits / 4 % LANES_MAX;
		m.stream.substreams = 1;
		m.stream.substream[0] = (struct message_substream){
			.stream = 1 + bits, .worker = bits / 4 % 2, .count = m.stream.count};
		m.stream.check = bits / 2 & 1;
	} else if (m.kind == MESSAGE_HAVE) {
		m.have.id = some_id(in);
		m.have.generation = 1 + bits % 4;
		m.have.size = 100000;
		m.have.chunk_bytes = 1408;
		m.have.state = 1 + bits / 4 % 3;
		m.have.upstream = bits / 16 % RIG_NODES;
		m.have.create = bits / 64 & 1;
		m.have.made = bits / 128;
	} else if (m.kind == MESSAGE_GET) {
		m.get.id = some_id(in);
		m.get.generation = bits % 4;
		m.get.failed = bits / 4 % RIG_NODES;
		m.get.why = bits / 16 % MESSAGE_GET_WHYS;
	} else if (m.kind == MESSAGE_LIST) {
		m.list.cursor = bits;
	} else if (m.kind == MESSAGE_STATUS) {
		m.status.plan = bits & 1;
	} else if (m.kind == MESSAGE_REDUCE || m.kind == MESSAGE_REDUCED ||
		   m.kind == MESSAGE_USED) {
		make_reduce(&m, in, bits, sources);
	} else if (m.kind == MESSAGE_COMBINE || m.kind == MESSAGE_COMBINED ||
		   m.kind == MESSAGE_COMMIT || m.kind == MESSAGE_RECALL) {
		return; /* only what the codec lets through may come in: fuzz_message has those */
	} else if (m.kind != MESSAGE_HELLO && m.kind != MESSAGE_NODE) {
		m.object.id = some_id(in);
		m.object.generation = bits & 0x80 ? r->last.generation : bits % 4;
	} else {
		return;
	}
	if (m.kind == MESSAGE_PIECES || m.kind == MESSAGE_HAS) /* echoed: they must hold */
		rig_say(r, 1 + bits / 8 % 2, &m);
	else
		control_message(r->core, rig_conn(1 + bits / 8 % 2), &m, r->now_ns);
}

/* Writes over slots that are likely to be in use, or their names. */
static void spoil_table(struct rig *r, struct rig_input *in)
{
	for (unsigned left = 1 + (unsigned)rig_take(in, 1) % 8; left > 0; left--) {
		unsigned slot = (unsigned)rig_take(in, 1), at = (unsigned)rig_take(in, 1);
		uint64_t v = rig_take(in, slot & 0x40 ? 8 : 1);
		uint8_t *start = (uint8_t *)&r->table->slot[slot % 8];
		size_t room = sizeof(struct object_slot);

		if (slot & 0x80) {
			start = (uint8_t *)&table_private(r->table)->note[slot % 8];
			room = sizeof(struct object_note);
		}
		memcpy(start + at % (room - sizeof(v) + 1), &v, sizeof(v));
	}
}

static void step(struct rig *r, struct rig_input *in)
{
	uint8_t b;

	switch (rig_take(in, 1) % ACTIONS) {
	case REQUEST:
		do_request(r, in);
		break;
	case RAW_REQUEST:
		do_raw_request(r, in);
		break;
	case OPEN:
		rig_open(r, (uint32_t)rig_take(in, 1) % RIG_SESSIONS);
		break;
	case CLOSE:
		rig_close(r, (uint32_t)rig_take(in, 1) % RIG_SESSIONS);
		break;
	case PINS:
		b = (uint8_t)rig_take(in, 1);
		r->pins[b % RIG_SESSIONS][b] = rig_take(in, 8);
		break;
	case TIME:
		rig_turn(r, rig_take(in, 1) * 20000000);
		break;
	case EVENT:
		do_event(r, in);
		break;
	case ANSWER:
		do_answer(r, in);
		break;
	case GROUP_ANSWER:
		do_group_answer(r, in);
		break;
	case RESTART:
		b = (uint8_t)rig_take(in, 1);
		if (b % 4 == 0) {
			r->old_clients = false;
			break;
		}
		if (b & 0x80)
			spoil_table(r, in);
		rig_restart(r);
		break;
	default:
		rig_hello(r, 1 + (uint32_t)rig_take(in, 1) % 2);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig_input in = {data, size};
	struct rig *r = rig_begin();

	rig_open(r, 0);
	for (int i = 0; i < 200 && in.left > 0; i++) {
		step(r, &in);
		rig_turn(r, 1000);
	}
	rig_end(r);
	return 0;
}
