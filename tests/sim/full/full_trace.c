/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What --verbose prints of a run with control: messages, records, deaths, log lines, with the
 * virtual time. full.c calls it.
 */
#include "full.h"

#include <stdio.h>
#include <stdlib.h>

static void trace_object(const struct object_id *id, uint64_t generation)
{
	fprintf(stderr, " object %u.%u generation %llx", id->bytes[6], id->bytes[5],
		(unsigned long long)generation);
}

static void trace_hello(const struct message_hello *h)
{
	fprintf(stderr, " node %d incarnation %llu announce %u given %d", (int)h->node,
		(unsigned long long)h->incarnation, h->announce, (int)h->assigned);
}

static void trace_members(const struct message_members *m)
{
	fprintf(stderr, " step %u:", m->step);
	for (uint32_t i = 0; i < m->count; i++)
		fprintf(stderr, " %u=%u/%llu", m->members[i].node, m->members[i].state,
			(unsigned long long)m->members[i].incarnation);
}

static void trace_told(const struct message_announced *m)
{
	fprintf(stderr, " life %llx view %llx", (unsigned long long)m->epoch,
		(unsigned long long)m->view);
}

static void trace_combine(const struct message_combine *m)
{
	trace_object(&m->id, m->generation);
	fprintf(stderr, " of %u reduce %llx need %u parts", m->target.bytes[6],
		(unsigned long long)m->reduce, m->need);
	for (uint32_t i = 0; i < m->count; i++) {
		fprintf(stderr, " [node %u", m->parts[i].node);
		trace_object(&m->parts[i].id, m->parts[i].generation);
		fprintf(stderr, "]");
	}
}

static void trace_value(const struct message *m)
{
	const struct message_pull *t = m->kind == MESSAGE_PUSH ? &m->push.bytes : &m->pull;

	if (m->kind != MESSAGE_PULL && m->kind != MESSAGE_PULL_REPLY && m->kind != MESSAGE_PUSH)
		return;
	trace_object(&t->id, t->generation);
	fprintf(stderr, " bytes %u from %llu on, status %d", t->bytes, (unsigned long long)t->first,
		t->status);
}

static void trace_combined(const struct message_combined *m)
{
	trace_object(&m->id, m->generation);
	fprintf(stderr, " of %u reduce %llx what %u node %d part", m->target.bytes[6],
		(unsigned long long)m->reduce, m->what, (int)m->part_node);
	trace_object(&m->part_id, m->part_generation);
	fprintf(stderr, " status %d", m->status);
}

static void trace_body(const struct message *m)
{
	switch (m->kind) {
	case MESSAGE_HELLO:
		trace_hello(&m->hello);
		break;
	case MESSAGE_HAVE:
		trace_object(&m->have.id, m->have.generation);
		fprintf(stderr, " state %u create %u value %u", m->have.state, m->have.create,
			m->have.has_value);
		break;
	case MESSAGE_GET:
		trace_object(&m->get.id, m->get.generation);
		fprintf(stderr, " failed %d why %u", (int)m->get.failed, m->get.why);
		break;
	case MESSAGE_GOT:
		trace_object(&m->got.id, m->got.generation);
		fprintf(stderr, " what %u holder %d", m->got.what, (int)m->got.holder);
		break;
	case MESSAGE_DROP:
	case MESSAGE_DELETE:
	case MESSAGE_REMOVE:
	case MESSAGE_PREFETCH:
	case MESSAGE_STAT:
		trace_object(&m->object.id, m->object.generation);
		break;
	case MESSAGE_TOMBSTONE:
		trace_object(&m->tombstone.id, m->tombstone.generation);
		break;
	case MESSAGE_ANNOUNCED:
		trace_told(&m->announced);
		break;
	case MESSAGE_STREAM:
	case MESSAGE_PIECES:
	case MESSAGE_HAS:
		trace_object(&m->stream.id, m->stream.generation);
		break;
	case MESSAGE_MEMBERS:
		trace_members(&m->members);
		break;
	case MESSAGE_REDUCE:
	case MESSAGE_REDUCED:
		trace_object(&m->reduce.target, 0);
		fprintf(stderr, " %u of %u", m->reduce.num, m->reduce.count);
		break;
	case MESSAGE_USED:
	case MESSAGE_COMMIT:
	case MESSAGE_RECALL:
		trace_object(&m->used.target, m->used.generation);
		fprintf(stderr, " status %d %s", m->used.status, m->used.text);
		break;
	case MESSAGE_COMBINE:
		trace_combine(&m->combine);
		break;
	case MESSAGE_COMBINED:
	case MESSAGE_RELEASE:
	case MESSAGE_FINISH:
		trace_combined(&m->combined);
		break;
	case MESSAGE_REPLY:
		fprintf(stderr, " status %d generation %llx %s", m->reply.status,
			(unsigned long long)m->reply.generation, m->reply.text);
		break;
	default:
		trace_value(m);
		break;
	}
}

void full_trace(const struct full *f, const char *way, uint32_t conn, const struct message *m)
{
	if (!f->group->trace)
		return;
	fprintf(stderr, "%10.3f node %u %s %x: %s %llx", (double)world_now(f->n->world) / 1e6,
		f->n->index, way, conn, codec_name(m->kind), (unsigned long long)m->request);
	trace_body(m);
	fprintf(stderr, "\n");
}

void full_trace_event(const struct full *f, const struct record *r)
{
	if (f->group->trace && (r->op == EVENT_PEER_UP || r->op == EVENT_PEER_DOWN))
		fprintf(stderr, "%10.3f node %u: connection %x with %u %s (%s)\n",
			(double)world_now(f->n->world) / 1e6, f->n->index, r->peer.conn,
			r->peer.addr.ip[15], r->op == EVENT_PEER_UP ? "up" : "down",
			reason_name(r->reason));
}

void full_trace_life(const struct full *f, const char *what)
{
	if (f->group->trace)
		fprintf(stderr, "%10.3f node %u: %s\n", (double)world_now(f->n->world) / 1e6,
			f->n->index, what);
}

void full_trace_log(void *arg, enum control_log_level level, const char *text)
{
	const struct full *f = arg;
	if (f->group->on_log)
		f->group->on_log(f, text);
	if (f->group->trace)
		fprintf(stderr, "%10.3f node %u: %s\n", (double)world_now(f->n->world) / 1e6,
			f->n->index, text);
}
