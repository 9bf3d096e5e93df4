/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include "codec.h"
#include "codec_group.h"
#include "decode.h"
#include "internal/ipc.h"
#include "internal/record.h"
#include "internal/reduce.h"

/* ---- a bounded allocator: what a message asks beyond it is refused ------------------------- */

void *decode_alloc(void *data, size_t size)
{
	struct decode_arena *a = data;
	size_t at = a->used;

	if (size > CODEC_ARENA_BYTES - at)
		return NULL;
	a->used = (at + size + 15) & ~(size_t)15;
	if (a->used > CODEC_ARENA_BYTES)
		a->used = CODEC_ARENA_BYTES;
	return a->memory + at;
}

static void decode_free(void *data, void *pointer)
{
	/* all at once, when the arena is used again */
}

/* ---- fields -------------------------------------------------------------------------------- */

bool decode_id(const ProtobufCBinaryData *in, struct object_id *out)
{
	if (in->len != OBJECT_ID_BYTES)
		return false;
	memcpy(out->bytes, in->data, OBJECT_ID_BYTES);
	return true;
}

bool decode_text(const ProtobufCBinaryData *in, char *out, size_t room)
{
	if (in->len >= room || (in->len > 0 && memchr(in->data, 0, in->len)))
		return false;
	memset(out, 0, room);
	if (in->len > 0)
		memcpy(out, in->data, in->len);
	return true;
}

bool decode_meta(const ProtobufCBinaryData *in, struct object_meta *out)
{
	if (in->len > sizeof(out->data))
		return false;
	*out = (struct object_meta){.bytes = (uint8_t)in->len};
	if (in->len > 0)
		memcpy(out->data, in->data, in->len);
	return true;
}

static bool decode_node(uint32_t in, uint32_t *out)
{
	if (in > NODES_MAX)
		return false;
	*out = in == 0 ? MESSAGE_NODE_NONE : in - 1;
	return true;
}

bool decode_chunk(uint32_t chunk_bytes, uint64_t size)
{
	return chunk_bytes >= CHUNK_BYTES_MIN && chunk_bytes <= CHUNK_BYTES_MAX &&
	       chunk_bytes % 64 == 0 && size <= INT64_MAX &&
	       chunk_count(size, chunk_bytes) < UINT32_MAX;
}

bool decode_status(int32_t status)
{
	return status <= 0 && status > -4096;
}

/* ---- bodies -------------------------------------------------------------------------------- */

bool decode_rails(const ProtobufCBinaryData *in, struct message_rails *out)
{
	if (in->len % MESSAGE_RAIL_BYTES != 0 || in->len > sizeof(out->addr))
		return false;
	out->count = (uint32_t)(in->len / MESSAGE_RAIL_BYTES);
	if (in->len > 0)
		memcpy(out->addr, in->data, in->len);
	for (uint32_t i = 1; i <= out->count; i++)
		if (message_rail(out, i).port > UINT16_MAX - WORKERS_MAX)
			return false;
	return true;
}

static bool decode_hello(const Rpc__Hello *in, struct message_hello *out)
{
	out->version = in->version;
	out->workers = in->workers;
	out->announce = in->announce;
	out->store_incarnation = in->store_incarnation;
	out->incarnation = in->incarnation;
	out->digest = in->digest;
	return decode_rails(&in->rails, &out->rails) && decode_node(in->node, &out->node) &&
	       decode_node(in->assigned, &out->assigned) && in->workers >= 1 &&
	       in->workers <= WORKERS_MAX && in->announce < MESSAGE_ANNOUNCES &&
	       in->store_incarnation != 0;
}

static bool decode_also(const uint32_t *in, size_t count, uint32_t out[MESSAGE_UPSTREAMS_MAX - 1],
			uint32_t *out_count)
{
	if (count > MESSAGE_UPSTREAMS_MAX - 1)
		return false;
	*out_count = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		out[i] = in[i];
		if (in[i] >= NODES_MAX)
			return false;
	}
	return true;
}

bool decode_generation(uint64_t generation)
{
	return generation != 0 && generation <= MESSAGE_GENERATION_MAX;
}

/* NULL: there is none. */
static bool decode_lease(const Rpc__Lease *in, struct message_lease *out)
{
	if (in == NULL)
		return true;
	out->number = in->number;
	out->ttl_ns = in->ttl_ns;
	return in->number != 0 && in->ttl_ns <= SESSION_LEASE_NS_MAX &&
	       decode_text(&in->name, out->name, sizeof(out->name));
}

static bool decode_hold(const Rpc__Hold *in, struct message_hold *out)
{
	out->generation = in->generation;
	out->left_ns = in->left_ns - 1;
	out->known = in->known != 0;
	out->joins = in->joins != 0;
	out->epoch = in->epoch;
	return (in->left_ns == 0 || out->left_ns <= SESSION_LEASE_NS_MAX) &&
	       (in->generation == 0 || decode_generation(in->generation)) &&
	       decode_id(&in->id, &out->id) && decode_lease(in->lease, &out->lease);
}

static bool decode_have(const Rpc__Have *in, struct message_have *out)
{
	out->generation = in->generation;
	out->size = in->size;
	out->chunk_bytes = in->chunk_bytes;
	out->state = in->state;
	out->create = in->create != 0;
	out->pinned = in->pinned != 0;
	out->pin_lost = in->pin_lost != 0;
	out->appointed = in->appointed != 0;
	out->made = in->made != 0;
	out->rate = in->rate;
	out->epoch = in->epoch;
	out->has_value = in->has_value != 0;
	out->value = in->value.data;
	out->value_bytes = (uint32_t)in->value.len;
	if (in->has_value ? in->value.len != in->size || in->size > OBJECT_INLINE_MAX
			  : in->value.len != 0)
		return false;
	return decode_generation(in->generation) && in->state != 0 &&
	       in->state < MESSAGE_COPY_STATES && decode_chunk(in->chunk_bytes, in->size) &&
	       decode_id(&in->id, &out->id) && decode_node(in->upstream, &out->upstream) &&
	       decode_also(in->also, in->n_also, out->also, &out->also_count) &&
	       decode_lease(in->lease, &out->lease) && decode_meta(&in->meta, &out->meta) &&
	       decode_text(&in->name, out->name, sizeof(out->name));
}

/* Ids one after the other, copied to where they may lie. */
static bool decode_ids(const ProtobufCBinaryData *in, struct decode_arena *a, uint32_t *count,
		       const struct object_id **out)
{
	struct object_id *ids;

	if (in->len % OBJECT_ID_BYTES != 0 || in->len / OBJECT_ID_BYTES > MESSAGE_SOURCES_MAX)
		return false;
	*count = (uint32_t)(in->len / OBJECT_ID_BYTES);
	ids = decode_alloc(a, in->len);
	if (ids == NULL)
		return false;
	if (in->len > 0)
		memcpy(ids, in->data, in->len);
	*out = ids;
	return true;
}

/* A LOCATE may ask for several at once. */
static bool decode_others(const Rpc__Get *in)
{
	return in->others.len == 0 || (in->why == MESSAGE_GET_LOCATE && reduce_op_valid(in->op) &&
				       reduce_dtype_valid(in->dtype));
}

static bool decode_get(const Rpc__Get *in, struct decode_arena *a, struct message_get *out)
{
	out->op = in->op;
	out->dtype = in->dtype;
	out->generation = in->generation;
	out->why = in->why;
	out->value_max = in->value_max;
	out->epoch = in->epoch;
	out->deferrable = in->deferrable;
	return in->why < MESSAGE_GET_WHYS && in->value_max <= OBJECT_INLINE_MAX &&
	       decode_id(&in->id, &out->id) && decode_node(in->failed, &out->failed) &&
	       decode_others(in) && decode_ids(&in->others, a, &out->others_count, &out->others) &&
	       out->others_count <= MESSAGE_OTHERS_MAX &&
	       ((in->why != MESSAGE_GET_UNREACHED && in->why != MESSAGE_GET_ABSENT) ||
		out->failed != MESSAGE_NODE_NONE);
}

static bool decode_got(const Rpc__Got *in, struct message_got *out)
{
	bool value = in->what == MESSAGE_GOT_VALUE, holder = in->what == MESSAGE_GOT_HOLDER;

	out->generation = in->generation;
	out->size = in->size;
	out->chunk_bytes = in->chunk_bytes;
	out->what = in->what;
	out->departed = in->departed;
	out->status = in->status;
	out->value = in->value.data;
	out->value_bytes = (uint32_t)in->value.len;
	out->spare = in->spare;
	out->others = in->others;
	out->waited = in->waited;
	out->lost = in->lost;
	out->down_ms = in->down;
	if (in->lost ? in->what != MESSAGE_GOT_WAIT || in->lost > NODES_MAX || in->down == 0
		     : in->down != 0)
		return false;
	if (in->what >= MESSAGE_GOT_WHATS || !decode_status(in->status) ||
	    !decode_id(&in->id, &out->id) || !decode_node(in->holder, &out->holder) ||
	    !decode_also(in->also, in->n_also, out->also, &out->also_count) ||
	    !decode_text(&in->name, out->name, sizeof(out->name)) ||
	    !decode_meta(&in->meta, &out->meta) ||
	    !decode_text(&in->text, out->text, sizeof(out->text)))
		return false;
	if (value ? in->value.len != in->size || in->size > OBJECT_INLINE_MAX : in->value.len != 0)
		return false;
	if ((value || holder) &&
	    (!decode_generation(in->generation) || !decode_chunk(in->chunk_bytes, in->size)))
		return false;
	return (value || in->what == MESSAGE_GOT_PIECE ||
		holder == (out->holder != MESSAGE_NODE_NONE)) &&
	       (in->what == MESSAGE_GOT_FAILED) == (in->status != 0);
}

static bool decode_object(const Rpc__Object *in, struct message_object *out)
{
	out->generation = in->generation;
	out->upstream = in->upstream;
	out->cursor = in->cursor;
	out->replaced = in->mode;
	out->lapsed = in->lapsed;
	out->lease = in->lease;
	return in->upstream <= NODES_MAX && in->mode <= 1 && in->lapsed < MESSAGE_LAPSED_WHATS &&
	       (in->lapsed ? decode_generation(in->generation) : in->lease == 0) &&
	       decode_id(&in->id, &out->id);
}

static bool decode_tombstone(const Rpc__Tombstone *in, struct message_tombstone *out)
{
	out->generation = in->generation;
	out->request = in->request;
	out->node = in->node - 1;
	out->age = in->age;
	return in->node <= NODES_MAX && decode_generation(in->generation) &&
	       decode_id(&in->id, &out->id);
}

static bool decode_reply(const Rpc__Reply *in, struct message_reply *out)
{
	out->status = in->status;
	out->generation = in->generation;
	out->ready = in->ready;
	out->pinned = in->pinned;
	out->lanes = in->lanes;
	return in->pinned <= NODES_MAX && decode_status(in->status) &&
	       decode_text(&in->text, out->text, sizeof(out->text));
}

/* ---- reduce --------------------------------------------------------------------------------- */

static bool decode_reduce(const Rpc__Reduce *in, struct decode_arena *a, struct message_reduce *out)
{
	out->op = in->op;
	out->dtype = in->dtype;
	out->num = in->num;
	out->flags = in->flags;
	out->timeout_ns = in->timeout_ns;
	out->deadline_ns = in->deadline_ns;
	out->min = in->min;
	out->asked = in->asked;
	return decode_id(&in->target, &out->target) &&
	       decode_text(&in->name, out->name, sizeof(out->name)) &&
	       decode_ids(&in->sources, a, &out->count, &out->sources);
}

static bool decode_used(const Rpc__Used *in, struct decode_arena *a, struct message_used *out)
{
	out->status = in->status;
	out->generation = in->generation;
	out->asked = in->asked;
	out->present = in->present;
	return decode_status(in->status) && decode_id(&in->target, &out->target) &&
	       decode_node(in->node, &out->node) &&
	       decode_text(&in->text, out->text, sizeof(out->text)) &&
	       decode_ids(&in->sources, a, &out->count, &out->sources) &&
	       out->present <= (in->status == -EAGAIN ? out->count : 0);
}

/* COMMIT, PROPOSE and RECALL name a result. */
static bool decode_result(const Rpc__Used *in, struct decode_arena *a, struct message_used *out)
{
	return decode_used(in, a, out) && decode_generation(in->generation) && out->count > 0 &&
	       out->present == 0;
}

/* Or that there is none, and why; not how a question goes on. */
static bool decode_recall(const Rpc__Used *in, struct decode_arena *a, struct message_used *out)
{
	if (in->status == -EREMOTE || in->status == -EAGAIN || in->status == -ENOENT)
		return false;
	if (in->generation)
		return decode_result(in, a, out);
	return decode_used(in, a, out) && in->status < 0 && out->count == 0;
}

static bool decode_part(const Rpc__Part *in, const Rpc__Combine *of,
			const struct message_part *before, struct message_part *out)
{
	uint64_t chunks = chunk_count(of->size, of->chunk_bytes);

	*out = (struct message_part){.generation = before->generation + (uint64_t)in->generation,
				     .node = before->node + (uint32_t)in->node,
				     .first = before->first + (uint32_t)in->first,
				     .count = before->count + (uint32_t)in->count,
				     .to = before->to + (uint32_t)in->to,
				     .size = before->size + (uint64_t)in->size,
				     .stripe = before->stripe + (uint32_t)in->stripe};
	if (out->size == 0
		    ? out->first != 0
		    : !decode_chunk(of->chunk_bytes, out->size) ||
			      out->first > chunk_count(out->size, of->chunk_bytes) ||
			      out->count > chunk_count(out->size, of->chunk_bytes) - out->first)
		return false;
	return decode_id(&in->id, &out->id) && out->generation != 0 && out->node < NODES_MAX &&
	       out->count > 0 && out->to < chunks && out->count <= chunks - out->to &&
	       /* without VALUES: the slot of a source, of which there are more than parts */
	       out->stripe < (of->flags & MESSAGE_COMBINE_VALUES ? MESSAGE_PARTS_MAX
								 : MESSAGE_SOURCES_MAX);
}

static bool decode_combine(const Rpc__Combine *in, struct decode_arena *a,
			   struct message_combine *out)
{
	const struct message_part none = {.generation = 0};
	struct message_part *parts;

	out->generation = in->generation;
	out->reduce = in->reduce;
	out->size = in->size;
	out->chunk_bytes = in->chunk_bytes;
	out->op = in->op;
	out->dtype = in->dtype;
	out->scale = in->scale;
	out->need = in->need;
	out->flags = in->flags;
	out->count = (uint32_t)in->n_parts;
	if (in->n_parts > MESSAGE_PARTS_MAX || in->need == 0 || in->need > MESSAGE_PARTS_MAX ||
	    in->n_parts > in->need || in->scale > UINT16_MAX ||
	    !decode_generation(in->generation) || in->size == 0 ||
	    !decode_chunk(in->chunk_bytes, in->size))
		return false;
	parts = decode_alloc(a, sizeof(*parts) * in->n_parts);
	if (parts == NULL)
		return false;
	for (size_t i = 0; i < in->n_parts; i++)
		if (!decode_part(in->parts[i], in, i ? &parts[i - 1] : &none, &parts[i]))
			return false;
	out->parts = parts;
	return decode_id(&in->id, &out->id) && decode_id(&in->target, &out->target) &&
	       decode_meta(&in->meta, &out->meta) &&
	       decode_text(&in->name, out->name, sizeof(out->name));
}

static bool decode_combined(const Rpc__Combined *in, bool release, struct message_combined *out)
{
	out->generation = in->generation;
	out->reduce = in->reduce;
	out->what = in->what;
	out->part_generation = in->part_generation;
	out->status = in->status;
	out->part_node = MESSAGE_NODE_NONE;
	if (!decode_id(&in->target, &out->target) || !decode_status(in->status))
		return false;
	if (release)
		return true;
	return decode_id(&in->id, &out->id) && decode_id(&in->part_id, &out->part_id) &&
	       decode_node(in->part_node, &out->part_node) && in->what != 0 &&
	       in->what < MESSAGE_COMBINED_WHATS;
}

/* ---- the envelope --------------------------------------------------------------------------- */

static bool decode_rarer_body(const Rpc__Envelope *e, struct decode_arena *a, struct message *m)
{
	switch (e->body_case) {
	case RPC__ENVELOPE__BODY_REDUCE:
		m->kind = MESSAGE_REDUCE;
		return decode_reduce(e->reduce, a, &m->reduce);
	case RPC__ENVELOPE__BODY_REDUCED:
		m->kind = MESSAGE_REDUCED;
		m->reduce.timeout_ns = e->reduced->mode == 1 ? 0 : UINT64_MAX;
		m->reduce.flags = e->reduced->mode == 2 ? MESSAGE_REDUCE_DELEGATED : 0;
		m->reduce.asked = e->reduced->generation;
		return e->reduced->mode <= 2 && decode_id(&e->reduced->id, &m->reduce.target);
	case RPC__ENVELOPE__BODY_USED:
		m->kind = MESSAGE_USED;
		return decode_used(e->used, a, &m->used);
	case RPC__ENVELOPE__BODY_COMBINE:
		m->kind = MESSAGE_COMBINE;
		return decode_combine(e->combine, a, &m->combine);
	case RPC__ENVELOPE__BODY_COMBINED:
		m->kind = MESSAGE_COMBINED;
		return decode_combined(e->combined, false, &m->combined);
	case RPC__ENVELOPE__BODY_RELEASE:
		m->kind = MESSAGE_RELEASE;
		return decode_combined(e->release, true, &m->combined);
	case RPC__ENVELOPE__BODY_COMMIT:
		m->kind = MESSAGE_COMMIT;
		return decode_result(e->commit, a, &m->used);
	case RPC__ENVELOPE__BODY_PROPOSE:
		m->kind = MESSAGE_PROPOSE;
		return decode_result(e->propose, a, &m->used);
	case RPC__ENVELOPE__BODY_FINISH:
		m->kind = MESSAGE_FINISH;
		return decode_combined(e->finish, true, &m->combined);
	case RPC__ENVELOPE__BODY_RECALL:
		m->kind = MESSAGE_RECALL;
		return decode_recall(e->recall, a, &m->used);
	case RPC__ENVELOPE__BODY_TOMBSTONE:
		m->kind = MESSAGE_TOMBSTONE;
		return decode_tombstone(e->tombstone, &m->tombstone);
	case RPC__ENVELOPE__BODY_PULL:
		m->kind = MESSAGE_PULL;
		return decode_pull(e->pull, &m->pull);
	case RPC__ENVELOPE__BODY_PULL_REPLY:
		m->kind = MESSAGE_PULL_REPLY;
		return decode_pull_reply(e->pull_reply, &m->pull);
	case RPC__ENVELOPE__BODY_PUSH:
		m->kind = MESSAGE_PUSH;
		return decode_push(e->push, &m->push);
	case RPC__ENVELOPE__BODY_HOLD:
		m->kind = MESSAGE_HOLD;
		return decode_hold(e->hold, &m->hold);
	case RPC__ENVELOPE__BODY_GROUP:
		m->kind = MESSAGE_GROUP;
		return decode_group(e->group, &m->group);
	case RPC__ENVELOPE__BODY_GROUPED:
		m->kind = MESSAGE_GROUPED;
		return decode_grouped(e->grouped, a, &m->grouped);
	default:
		return false;
	}
}

/* The body of a message that is about one object and little else; NULL: it is another one. */
static const Rpc__Object *decode_which(const Rpc__Envelope *e, uint32_t *kind)
{
	switch (e->body_case) {
	case RPC__ENVELOPE__BODY_DROP:
		*kind = MESSAGE_DROP;
		return e->drop;
	case RPC__ENVELOPE__BODY_DELETE:
		*kind = MESSAGE_DELETE;
		return e->delete_;
	case RPC__ENVELOPE__BODY_REMOVE:
		*kind = MESSAGE_REMOVE;
		return e->remove;
	case RPC__ENVELOPE__BODY_PREFETCH:
		*kind = MESSAGE_PREFETCH;
		return e->prefetch;
	case RPC__ENVELOPE__BODY_STAT:
		*kind = MESSAGE_STAT;
		return e->stat;
	default:
		return NULL;
	}
}

static bool decode_body(const Rpc__Envelope *e, struct decode_arena *a, struct message *m)
{
	const Rpc__Object *object = decode_which(e, &m->kind);

	if (object)
		return decode_object(object, &m->object);
	switch (e->body_case) {
	case RPC__ENVELOPE__BODY_HELLO:
		m->kind = MESSAGE_HELLO;
		return decode_hello(e->hello, &m->hello);
	case RPC__ENVELOPE__BODY_HAVE:
		m->kind = MESSAGE_HAVE;
		return decode_have(e->have, &m->have);
	case RPC__ENVELOPE__BODY_KEEP:
		m->kind = MESSAGE_KEEP;
		return decode_have(e->keep, &m->have) && m->have.has_value &&
		       m->have.state == MESSAGE_COPY_COMPLETE;
	case RPC__ENVELOPE__BODY_GET:
		m->kind = MESSAGE_GET;
		return decode_get(e->get, a, &m->get);
	case RPC__ENVELOPE__BODY_GOT:
		m->kind = MESSAGE_GOT;
		return decode_got(e->got, &m->got);
	case RPC__ENVELOPE__BODY_STREAM:
		m->kind = MESSAGE_STREAM;
		return decode_stream(e->stream, &m->stream);
	case RPC__ENVELOPE__BODY_PIECES:
		m->kind = MESSAGE_PIECES;
		return decode_range(e->pieces, &m->stream);
	case RPC__ENVELOPE__BODY_HAS:
		m->kind = MESSAGE_HAS;
		return decode_range(e->has, &m->stream);
	case RPC__ENVELOPE__BODY_LIST:
		m->kind = MESSAGE_LIST;
		m->list.cursor = e->list->cursor;
		return decode_text(&e->list->prefix, m->list.prefix, sizeof(m->list.prefix));
	case RPC__ENVELOPE__BODY_WATCH:
		m->kind = MESSAGE_WATCH;
		return decode_watch(e->watch, &m->watch);
	case RPC__ENVELOPE__BODY_ANNOUNCED:
		m->kind = MESSAGE_ANNOUNCED;
		m->announced.epoch = e->announced->epoch;
		m->announced.view = e->announced->view;
		return true;
	case RPC__ENVELOPE__BODY_OBJECTS:
		m->kind = MESSAGE_OBJECTS;
		return decode_objects(e->objects, a, &m->objects);
	case RPC__ENVELOPE__BODY_STATUS:
		m->kind = MESSAGE_STATUS;
		m->status.plan = e->status->plan != 0;
		return true;
	case RPC__ENVELOPE__BODY_NODE:
		m->kind = MESSAGE_NODE;
		return decode_node_status(e->node, &m->node) && decode_plan(e->node, a, &m->plan);
	case RPC__ENVELOPE__BODY_REPLY:
		m->kind = MESSAGE_REPLY;
		return decode_reply(e->reply, &m->reply);
	case RPC__ENVELOPE__BODY_REDIRECT:
		m->kind = MESSAGE_REDIRECT;
		m->members.digest = e->redirect->digest;
		return true;
	case RPC__ENVELOPE__BODY_MEMBERS:
		m->kind = MESSAGE_MEMBERS;
		return decode_members(e->members, a, &m->members);
	default:
		return decode_rarer_body(e, a, m);
	}
}

int codec_decode(const uint8_t *bytes, size_t length, uint8_t *arena, struct message *m)
{
	struct decode_arena a = {arena, 0};
	ProtobufCAllocator allocator = {decode_alloc, decode_free, &a};
	const Rpc__Envelope *e;

	if (length == 0 || length > MSG_BYTES_MAX)
		return -EBADMSG;
	e = rpc__envelope__unpack(&allocator, length, bytes);
	*m = (struct message){.kind = MESSAGE_NONE};
	if (e == NULL || !decode_body(e, &a, m))
		return -EBADMSG;
	m->request = e->request;
	m->losses = e->losses;
	return 0;
}
