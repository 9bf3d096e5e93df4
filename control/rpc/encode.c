/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "codec.h"
#include "codec_group.h"
#include "control.pb-c.h"

static ProtobufCBinaryData encode_bytes(const void *data, size_t bytes)
{
	return (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
}

static ProtobufCBinaryData encode_text(const char *text, size_t room)
{
	return encode_bytes(text, strnlen(text, room - 1));
}

static ProtobufCBinaryData encode_meta(const struct object_meta *meta)
{
	return encode_bytes(meta->data, meta->bytes);
}

static uint32_t encode_node(uint32_t node)
{
	return node == MESSAGE_NODE_NONE ? 0 : node + 1;
}

static Rpc__Lease *encode_lease(const struct message_lease *m, Rpc__Lease *out)
{
	if (m->number == 0)
		return NULL;
	rpc__lease__init(out);
	out->number = m->number;
	out->ttl_ns = m->ttl_ns;
	out->name = encode_text(m->name, sizeof(m->name));
	return out;
}

static void encode_hold(const struct message_hold *m, Rpc__Lease *lease, Rpc__Hold *out)
{
	rpc__hold__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->lease = encode_lease(&m->lease, lease);
	out->left_ns = m->left_ns + 1;
	out->known = m->known != 0;
	out->joins = m->joins != 0;
	out->epoch = m->epoch;
}

static void encode_have(const struct message_have *m, Rpc__Lease *lease, Rpc__Have *out)
{
	rpc__have__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->size = m->size;
	out->chunk_bytes = m->chunk_bytes;
	out->state = m->state;
	out->upstream = encode_node(m->upstream);
	out->create = m->create != 0;
	out->pinned = m->pinned != 0;
	out->pin_lost = m->pin_lost != 0;
	out->appointed = m->appointed != 0;
	out->made = m->made != 0;
	out->name = encode_text(m->name, sizeof(m->name));
	out->meta = encode_meta(&m->meta);
	out->has_value = m->has_value != 0;
	out->value = encode_bytes(m->value, m->has_value ? m->value_bytes : 0);
	out->n_also = m->also_count;
	out->also = (uint32_t *)(uintptr_t)m->also;
	out->rate = m->rate;
	out->epoch = m->epoch;
	out->lease = encode_lease(&m->lease, lease);
}

static void encode_get(const struct message_get *m, Rpc__Get *out)
{
	rpc__get__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->failed = encode_node(m->failed);
	out->why = m->why;
	out->value_max = m->value_max;
	out->epoch = m->epoch;
	out->op = m->op;
	out->dtype = m->dtype;
	out->others = encode_bytes(m->others, (size_t)m->others_count * OBJECT_ID_BYTES);
	out->deferrable = m->deferrable;
}

static void encode_got(const struct message_got *m, Rpc__Got *out)
{
	rpc__got__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->size = m->size;
	out->chunk_bytes = m->chunk_bytes;
	out->what = m->what;
	out->holder = encode_node(m->holder);
	out->departed = m->departed;
	out->n_also = m->also_count;
	out->also = (uint32_t *)(uintptr_t)m->also;
	out->name = encode_text(m->name, sizeof(m->name));
	out->meta = encode_meta(&m->meta);
	out->value = encode_bytes(m->value, m->value_bytes);
	out->status = m->status;
	out->text = encode_text(m->text, sizeof(m->text));
	out->spare = m->spare;
	out->others = m->others;
	out->waited = m->waited;
	out->lost = m->lost;
	out->down = m->down_ms;
}

static void encode_tombstone(const struct message_tombstone *m, Rpc__Tombstone *out)
{
	rpc__tombstone__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->request = m->request;
	out->node = m->node + 1;
	out->age = m->age;
}

static void encode_object(const struct message_object *m, Rpc__Object *out)
{
	rpc__object__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->upstream = m->upstream;
	out->cursor = m->cursor;
	out->mode = m->replaced;
	out->lapsed = m->lapsed;
	out->lease = m->lease;
}

static void encode_stream(const struct message_stream *m, Rpc__Stream *out)
{
	rpc__stream__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->chunk_bytes = m->chunk_bytes;
	out->first = m->first;
	out->count = m->count;
	out->check = m->check != 0;
	out->lanes = m->lanes;
	out->n_substream = 4 * (size_t)m->substreams;
	out->substream = (uint32_t *)(uintptr_t)m->substream; /* four words each */
	out->n_replaces = m->replaced;
	out->replaces = (uint32_t *)(uintptr_t)m->replaces;
	out->n_skip = 2 * (size_t)m->skips;
	out->skip = (uint32_t *)(uintptr_t)m->skip; /* pairs of words */
}

static ProtobufCBinaryData encode_rails(const struct message_rails *m)
{
	return encode_bytes(m->addr, (size_t)m->count * MESSAGE_RAIL_BYTES);
}

static void encode_hello(const struct message_hello *m, Rpc__Hello *out)
{
	rpc__hello__init(out);
	out->node = encode_node(m->node);
	out->assigned = encode_node(m->assigned);
	out->version = m->version;
	out->workers = m->workers;
	out->announce = m->announce;
	out->store_incarnation = m->store_incarnation;
	out->incarnation = m->incarnation;
	out->digest = m->digest;
	out->rails = encode_rails(&m->rails);
}

_Static_assert(sizeof(struct control_plan_level) == 3 * sizeof(uint64_t), "three numbers each");

static void encode_plan(const struct control_plan *p, Rpc__Node *out)
{
	out->plan_generation = p->generation;
	out->plan_node = p->node;
	out->plan_planner = encode_text(p->planner, sizeof(p->planner));
	out->plan_size = p->size;
	out->plan_predicted_ns = p->predicted_ns;
	out->plan_measured_ns = p->measured_ns;
	out->plan_nodes = p->nodes;
	out->plan_flags = (p->everyone ? 1 : 0) | (p->repaired ? 2 : 0) | (p->network ? 4 : 0);
	out->n_plan_level = (size_t)3 * p->levels;
	out->plan_level = (uint64_t *)(uintptr_t)p->level;
}

static void encode_node_status(const struct session_node *m, Rpc__Node *out)
{
	rpc__node__init(out);
	out->node = m->node;
	out->state = m->state;
	out->workers = m->workers;
	out->incarnation = m->incarnation;
	out->store_bytes = m->store_bytes;
	out->store_used = m->store_used;
	out->objects = m->objects;
	out->sessions = m->sessions;
	out->mtu = m->mtu;
	out->hugepages = m->hugepages != 0;
	out->busy_poll = m->busy_poll != 0;
	out->control_pid = m->control_pid;
	out->dataplane_pid = m->dataplane_pid;
	out->port = encode_text(m->port, sizeof(m->port));
	out->arriving = m->arriving;
	out->sending = m->sending;
}

static void encode_reply(const struct message_reply *m, Rpc__Reply *out)
{
	rpc__reply__init(out);
	out->status = m->status;
	out->generation = m->generation;
	out->text = encode_text(m->text, sizeof(m->text));
	out->ready = m->ready;
	out->pinned = m->pinned;
	out->lanes = m->lanes;
}

/* ---- OBJECTS: the one with parts of its own ----------------------------------------------- */

struct encode_page {
	Rpc__Description description[MESSAGE_OBJECTS_MAX];
	Rpc__Description *descriptions[MESSAGE_OBJECTS_MAX];
	Rpc__Holder holder[MESSAGE_OBJECTS_MAX][SESSION_HOLDERS];
	Rpc__Holder *holders[MESSAGE_OBJECTS_MAX][SESSION_HOLDERS];
};
_Static_assert(sizeof(struct encode_page) <= CODEC_SCRATCH_BYTES, "a page fits the scratch memory");

static void encode_description(const struct session_object *o, struct encode_page *p, uint32_t i)
{
	Rpc__Description *d = &p->description[i];

	rpc__description__init(d);
	p->descriptions[i] = d;
	d->id = encode_bytes(o->id.bytes, OBJECT_ID_BYTES);
	d->generation = o->generation;
	d->size = o->size;
	d->copies = o->copies;
	d->partial = o->partial;
	d->flags = o->flags;
	d->lost = o->lost;
	d->lost_node = o->lost_node;
	d->down = o->down_ms;
	d->leases = o->leases;
	d->lease_node = o->lease_node;
	d->lease = o->lease;
	d->lease_ms = o->lease_ms;
	d->expires_ms = o->expires_ms;
	d->lease_name = encode_text(o->lease_name, sizeof(o->lease_name));
	d->name = encode_text(o->name, sizeof(o->name));
	d->meta = encode_meta(&o->meta);
	d->n_holders = o->holders < SESSION_HOLDERS ? o->holders : SESSION_HOLDERS;
	d->holders = p->holders[i];
	for (uint32_t k = 0; k < d->n_holders; k++) {
		Rpc__Holder *h = &p->holder[i][k];

		rpc__holder__init(h);
		p->holders[i][k] = h;
		h->node = o->holder[k].node;
		h->complete = o->holder[k].complete != 0;
		h->watermark = o->holder[k].watermark;
		h->arrived = o->holder[k].arrived;
		h->n_upstream = o->holder[k].upstreams;
		h->upstream = (uint32_t *)(uintptr_t)o->holder[k].upstream;
		h->sending = o->holder[k].sending;
		h->down = o->holder[k].down_ms;
	}
}

static void encode_objects(const struct message_objects *m, struct encode_page *p,
			   Rpc__Objects *out)
{
	rpc__objects__init(out);
	out->cursor = m->cursor;
	out->n_objects = m->count < MESSAGE_OBJECTS_MAX ? m->count : MESSAGE_OBJECTS_MAX;
	out->objects = p->descriptions;
	out->deleted = m->deleted;
	out->unsettled = m->unsettled;
	out->watch = m->watch;
	out->next = m->next;
	for (uint32_t i = 0; i < out->n_objects; i++)
		encode_description(&m->objects[i], p, i);
}

static void encode_watch(const struct message_watch *m, Rpc__Watch *out)
{
	rpc__watch__init(out);
	out->step = m->step;
	out->number = m->number;
	out->next = m->next;
	out->cursor = m->cursor;
	out->prefix = encode_text(m->prefix, sizeof(m->prefix));
}

struct encode_members {
	Rpc__Member member[MESSAGE_MEMBERS_MAX];
	Rpc__Member *members[MESSAGE_MEMBERS_MAX];
};
_Static_assert(sizeof(struct encode_members) <= CODEC_SCRATCH_BYTES, "members fit as well");

static void encode_members(const struct message_members *m, struct encode_members *p,
			   Rpc__Members *out)
{
	rpc__members__init(out);
	out->digest = m->digest;
	out->step = m->step;
	out->n_members = m->count < MESSAGE_MEMBERS_MAX ? m->count : MESSAGE_MEMBERS_MAX;
	out->members = p->members;
	for (uint32_t i = 0; i < out->n_members; i++) {
		Rpc__Member *d = &p->member[i];

		rpc__member__init(d);
		p->members[i] = d;
		d->node = m->members[i].node;
		d->state = m->members[i].state;
		d->incarnation = m->members[i].incarnation;
		d->ip = encode_bytes(m->members[i].addr.ip, sizeof(m->members[i].addr.ip));
		d->port = m->members[i].addr.port;
		d->rails = encode_rails(&m->members[i].rails);
	}
}

/* ---- reduce ------------------------------------------------------------------------------- */

static void encode_reduce(const struct message_reduce *m, Rpc__Reduce *out)
{
	rpc__reduce__init(out);
	out->target = encode_bytes(m->target.bytes, OBJECT_ID_BYTES);
	out->op = m->op;
	out->dtype = m->dtype;
	out->num = m->num;
	out->flags = m->flags;
	out->timeout_ns = m->timeout_ns;
	out->deadline_ns = m->deadline_ns;
	out->min = m->min;
	out->asked = m->asked;
	out->name = encode_text(m->name, sizeof(m->name));
	out->sources = encode_bytes(m->sources, (size_t)m->count * OBJECT_ID_BYTES);
}

static void encode_used(const struct message_used *m, Rpc__Used *out)
{
	rpc__used__init(out);
	out->target = encode_bytes(m->target.bytes, OBJECT_ID_BYTES);
	out->status = m->status;
	out->generation = m->generation;
	out->text = encode_text(m->text, sizeof(m->text));
	out->asked = m->asked;
	out->node = encode_node(m->node);
	out->sources = encode_bytes(m->sources, (size_t)m->count * OBJECT_ID_BYTES);
	out->present = m->present;
}

struct encode_parts {
	Rpc__Part part[MESSAGE_PARTS_MAX];
	Rpc__Part *parts[MESSAGE_PARTS_MAX];
};
_Static_assert(sizeof(struct encode_parts) <= CODEC_SCRATCH_BYTES, "and parts");

static void encode_part(const struct message_part *m, const struct message_part *before,
			Rpc__Part *out)
{
	rpc__part__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = (int64_t)(m->generation - before->generation);
	out->node = (int32_t)(m->node - before->node);
	out->first = (int32_t)(m->first - before->first);
	out->count = (int32_t)(m->count - before->count);
	out->to = (int32_t)(m->to - before->to);
	out->size = (int64_t)(m->size - before->size);
	out->stripe = (int32_t)(m->stripe - before->stripe);
}

static void encode_combine(const struct message_combine *m, struct encode_parts *p,
			   Rpc__Combine *out)
{
	const struct message_part none = {.generation = 0};

	rpc__combine__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->target = encode_bytes(m->target.bytes, OBJECT_ID_BYTES);
	out->reduce = m->reduce;
	out->size = m->size;
	out->chunk_bytes = m->chunk_bytes;
	out->op = m->op;
	out->dtype = m->dtype;
	out->scale = m->scale;
	out->need = m->need;
	out->flags = m->flags;
	out->name = encode_text(m->name, sizeof(m->name));
	out->meta = encode_meta(&m->meta);
	out->n_parts = m->count < MESSAGE_PARTS_MAX ? m->count : MESSAGE_PARTS_MAX;
	out->parts = p->parts;
	for (uint32_t i = 0; i < out->n_parts; i++) {
		p->parts[i] = &p->part[i];
		encode_part(&m->parts[i], i ? &m->parts[i - 1] : &none, &p->part[i]);
	}
}

static void encode_combined(const struct message_combined *m, Rpc__Combined *out)
{
	rpc__combined__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->target = encode_bytes(m->target.bytes, OBJECT_ID_BYTES);
	out->reduce = m->reduce;
	out->what = m->what;
	out->part_node = encode_node(m->part_node);
	out->part_id = encode_bytes(m->part_id.bytes, OBJECT_ID_BYTES);
	out->part_generation = m->part_generation;
	out->status = m->status;
}

static void encode_pull(const struct message_pull *m, Rpc__Pull *out)
{
	rpc__pull__init(out);
	out->id = encode_bytes(m->id.bytes, OBJECT_ID_BYTES);
	out->generation = m->generation;
	out->first = m->first;
	out->bytes = m->bytes;
}

static void encode_pull_reply(const struct message_pull *m, Rpc__PullReply *out)
{
	rpc__pull_reply__init(out);
	out->status = m->status;
	out->value = encode_bytes(m->value, m->bytes);
}

static void encode_push(const struct message_push *m, Rpc__Push *out)
{
	rpc__push__init(out);
	out->into = encode_bytes(m->into.bytes, OBJECT_ID_BYTES);
	out->id = encode_bytes(m->bytes.id.bytes, OBJECT_ID_BYTES);
	out->generation = m->bytes.generation;
	out->first = m->bytes.first;
	out->value = encode_bytes(m->bytes.value, m->bytes.bytes);
}

/* ---- the envelope ------------------------------------------------------------------------- */

struct encode_leased { /* with a message of its own inside */
	union {
		Rpc__Have have;
		Rpc__Hold hold;
	};
	Rpc__Lease lease;
};

union encode_body {
	Rpc__Hello hello;
	struct encode_leased leased;
	Rpc__Get get;
	Rpc__Got got;
	Rpc__Object object;
	Rpc__Tombstone tombstone;
	Rpc__Announced announced;
	Rpc__Stream stream;
	Rpc__List list;
	Rpc__Watch watch;
	Rpc__Objects objects;
	Rpc__Status status;
	Rpc__Node node;
	Rpc__Reply reply;
	Rpc__Redirect redirect;
	Rpc__Members members;
	Rpc__Reduce reduce;
	Rpc__Used used;
	Rpc__Combine combine;
	Rpc__Combined combined;
	Rpc__Pull pull;
	Rpc__PullReply pull_reply;
	Rpc__Push push;
	Rpc__Group group;
	Rpc__Grouped grouped;
};

static const Rpc__Envelope__BodyCase encode_cases[MESSAGE_KINDS] = {
	[MESSAGE_HELLO] = RPC__ENVELOPE__BODY_HELLO,
	[MESSAGE_HAVE] = RPC__ENVELOPE__BODY_HAVE,
	[MESSAGE_KEEP] = RPC__ENVELOPE__BODY_KEEP,
	[MESSAGE_HOLD] = RPC__ENVELOPE__BODY_HOLD,
	[MESSAGE_GET] = RPC__ENVELOPE__BODY_GET,
	[MESSAGE_GOT] = RPC__ENVELOPE__BODY_GOT,
	[MESSAGE_DROP] = RPC__ENVELOPE__BODY_DROP,
	[MESSAGE_DELETE] = RPC__ENVELOPE__BODY_DELETE,
	[MESSAGE_REMOVE] = RPC__ENVELOPE__BODY_REMOVE,
	[MESSAGE_PREFETCH] = RPC__ENVELOPE__BODY_PREFETCH,
	[MESSAGE_TOMBSTONE] = RPC__ENVELOPE__BODY_TOMBSTONE,
	[MESSAGE_ANNOUNCED] = RPC__ENVELOPE__BODY_ANNOUNCED,
	[MESSAGE_STREAM] = RPC__ENVELOPE__BODY_STREAM,
	[MESSAGE_PIECES] = RPC__ENVELOPE__BODY_PIECES,
	[MESSAGE_HAS] = RPC__ENVELOPE__BODY_HAS,
	[MESSAGE_STAT] = RPC__ENVELOPE__BODY_STAT,
	[MESSAGE_LIST] = RPC__ENVELOPE__BODY_LIST,
	[MESSAGE_WATCH] = RPC__ENVELOPE__BODY_WATCH,
	[MESSAGE_OBJECTS] = RPC__ENVELOPE__BODY_OBJECTS,
	[MESSAGE_STATUS] = RPC__ENVELOPE__BODY_STATUS,
	[MESSAGE_NODE] = RPC__ENVELOPE__BODY_NODE,
	[MESSAGE_REPLY] = RPC__ENVELOPE__BODY_REPLY,
	[MESSAGE_REDIRECT] = RPC__ENVELOPE__BODY_REDIRECT,
	[MESSAGE_MEMBERS] = RPC__ENVELOPE__BODY_MEMBERS,
	[MESSAGE_REDUCE] = RPC__ENVELOPE__BODY_REDUCE,
	[MESSAGE_REDUCED] = RPC__ENVELOPE__BODY_REDUCED,
	[MESSAGE_USED] = RPC__ENVELOPE__BODY_USED,
	[MESSAGE_COMBINE] = RPC__ENVELOPE__BODY_COMBINE,
	[MESSAGE_COMBINED] = RPC__ENVELOPE__BODY_COMBINED,
	[MESSAGE_RELEASE] = RPC__ENVELOPE__BODY_RELEASE,
	[MESSAGE_COMMIT] = RPC__ENVELOPE__BODY_COMMIT,
	[MESSAGE_FINISH] = RPC__ENVELOPE__BODY_FINISH,
	[MESSAGE_RECALL] = RPC__ENVELOPE__BODY_RECALL,
	[MESSAGE_PROPOSE] = RPC__ENVELOPE__BODY_PROPOSE,
	[MESSAGE_PULL] = RPC__ENVELOPE__BODY_PULL,
	[MESSAGE_PULL_REPLY] = RPC__ENVELOPE__BODY_PULL_REPLY,
	[MESSAGE_PUSH] = RPC__ENVELOPE__BODY_PUSH,
	[MESSAGE_GROUP] = RPC__ENVELOPE__BODY_GROUP,
	[MESSAGE_GROUPED] = RPC__ENVELOPE__BODY_GROUPED,
};

static void encode_reduce_body(const struct message *m, uint8_t *scratch, union encode_body *b)
{
	switch (m->kind) {
	case MESSAGE_REDUCE:
		encode_reduce(&m->reduce, &b->reduce);
		break;
	case MESSAGE_REDUCED:
		rpc__object__init(&b->object);
		b->object.id = encode_bytes(m->reduce.target.bytes, OBJECT_ID_BYTES);
		b->object.mode = m->reduce.timeout_ns == 0		      ? 1
				 : m->reduce.flags & MESSAGE_REDUCE_DELEGATED ? 2
									      : 0;
		b->object.generation = m->reduce.asked;
		break;
	case MESSAGE_USED:
	case MESSAGE_COMMIT:
	case MESSAGE_RECALL:
	case MESSAGE_PROPOSE:
		encode_used(&m->used, &b->used);
		break;
	case MESSAGE_COMBINE:
		encode_combine(&m->combine, (struct encode_parts *)(void *)scratch, &b->combine);
		break;
	case MESSAGE_COMBINED:
	case MESSAGE_RELEASE:
	case MESSAGE_FINISH:
		encode_combined(&m->combined, &b->combined);
		break;
	case MESSAGE_TOMBSTONE:
		encode_tombstone(&m->tombstone, &b->tombstone);
		break;
	case MESSAGE_PULL:
		encode_pull(&m->pull, &b->pull);
		break;
	case MESSAGE_PULL_REPLY:
		encode_pull_reply(&m->pull, &b->pull_reply);
		break;
	case MESSAGE_PUSH:
		encode_push(&m->push, &b->push);
		break;
	case MESSAGE_GROUP:
		encode_group(&m->group, &b->group);
		break;
	case MESSAGE_GROUPED:
		encode_grouped(&m->grouped, (struct encode_grouped *)(void *)scratch, &b->grouped);
		break;
	default:
		encode_object(&m->object, &b->object);
		break;
	}
}

/* Sets the body of m and points the envelope to it: all members of the oneof are pointers. */
static void encode_body(const struct message *m, uint8_t *scratch, union encode_body *b,
			Rpc__Envelope *e)
{
	e->body_case = encode_cases[m->kind];
	e->hello = (Rpc__Hello *)b;
	switch (m->kind) {
	case MESSAGE_HELLO:
		encode_hello(&m->hello, &b->hello);
		break;
	case MESSAGE_HAVE:
	case MESSAGE_KEEP:
		encode_have(&m->have, &b->leased.lease, &b->leased.have);
		break;
	case MESSAGE_HOLD:
		encode_hold(&m->hold, &b->leased.lease, &b->leased.hold);
		break;
	case MESSAGE_GET:
		encode_get(&m->get, &b->get);
		break;
	case MESSAGE_GOT:
		encode_got(&m->got, &b->got);
		break;
	case MESSAGE_STREAM:
	case MESSAGE_PIECES:
	case MESSAGE_HAS:
		encode_stream(&m->stream, &b->stream);
		break;
	case MESSAGE_LIST:
		rpc__list__init(&b->list);
		b->list.cursor = m->list.cursor;
		b->list.prefix = encode_text(m->list.prefix, sizeof(m->list.prefix));
		break;
	case MESSAGE_WATCH:
		encode_watch(&m->watch, &b->watch);
		break;
	case MESSAGE_OBJECTS:
		encode_objects(&m->objects, (struct encode_page *)(void *)scratch, &b->objects);
		break;
	case MESSAGE_ANNOUNCED:
		rpc__announced__init(&b->announced);
		b->announced.epoch = m->announced.epoch;
		b->announced.view = m->announced.view;
		break;
	case MESSAGE_STATUS:
		rpc__status__init(&b->status);
		b->status.plan = m->status.plan;
		break;
	case MESSAGE_NODE:
		encode_node_status(&m->node, &b->node);
		if (m->plan)
			encode_plan(m->plan, &b->node);
		break;
	case MESSAGE_REPLY:
		encode_reply(&m->reply, &b->reply);
		break;
	case MESSAGE_REDIRECT:
		rpc__redirect__init(&b->redirect);
		b->redirect.digest = m->members.digest;
		break;
	case MESSAGE_MEMBERS:
		encode_members(&m->members, (struct encode_members *)(void *)scratch, &b->members);
		break;
	default:
		encode_reduce_body(m, scratch, b);
		break;
	}
}

size_t codec_encode(const struct message *m, uint8_t *scratch, uint8_t *out, size_t room)
{
	Rpc__Envelope e = RPC__ENVELOPE__INIT;
	union encode_body body;

	if (m->kind == MESSAGE_NONE || m->kind >= MESSAGE_KINDS)
		return 0;
	e.request = m->request;
	e.losses = m->losses;
	encode_body(m, scratch, &body, &e);
	if (rpc__envelope__get_packed_size(&e) > room)
		return 0;
	return rpc__envelope__pack(&e, out);
}
