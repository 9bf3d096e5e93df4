/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of control to the engine: one function per kind of record, which checks the record in
 * full before anything changes. A refused record is answered by an event. Called by the worker loop
 * and the simulator through engine_command.
 */
#include "core/conn/conn.h"
#include "event.h"
#include "in_edge.h"
#include "local_edge.h"
#include "msg.h"
#include "out_edge.h"

/* One record: REASON_NONE, or why not (nothing has changed then). */
static enum reason plan_apply(struct engine *e, const struct record *r)
{
	switch (r->op) {
	case COMMAND_PEER_OPEN:
		return conn_open_record(e, r);
	case COMMAND_PEER_CLOSE:
		return conn_close_record(e, r);
	case COMMAND_PEER_WATCH:
		return conn_watch_record(e, r);
	case COMMAND_MSG_SEND:
		return msg_send(e, r);
	case COMMAND_MSG_FREE:
		return msg_free(e, r);
	case COMMAND_BUFFER:
		return buffer_open(e, r);
	case COMMAND_IN:
		return in_edge_open(e, r);
	case COMMAND_LOCAL:
		return local_edge_open(e, r);
	case COMMAND_OUT:
		return out_edge_open(e, r);
	case COMMAND_ADVANCE:
		return buffer_advance(e, r);
	case COMMAND_FINISH:
		return buffer_finish(e, r);
	case COMMAND_DROP_BUFFER:
		return buffer_drop(e, r);
	case COMMAND_DROP_EDGE:
		if (r->flags == RECORD_FLAG_IN)
			return in_edge_drop(e, r);
		return r->flags == RECORD_FLAG_OUT ? out_edge_drop(e, r) : REASON_BAD_OP;
	default:
		return REASON_BAD_OP;
	}
}

/* Which field names the thing, for the answer to a record that did not hold. */
static uint32_t plan_subject(const struct record *r)
{
	switch (r->op) {
	case COMMAND_PEER_OPEN:
	case COMMAND_PEER_CLOSE:
		return r->peer.conn;
	case COMMAND_PEER_WATCH:
		return r->watch.conn;
	case COMMAND_MSG_SEND:
	case COMMAND_MSG_FREE:
		return r->msg.conn;
	case COMMAND_IN:
	case COMMAND_LOCAL:
	case COMMAND_OUT:
	case COMMAND_DROP_EDGE:
		return r->edge.edge;
	default:
		return r->buffer.buffer;
	}
}

bool engine_command(struct engine *e, const struct record *command, uint64_t now_ns)
{
	struct record copy = *command; /* the ring may change under us: look once */

	e->now_ns = now_ns;
	if (!event_spare(e, 64))
		return false;
	e->count->records++;
	enum reason why = plan_apply(e, &copy);
	if (why == REASON_NONE)
		return true;
	e->count->records_refused++;
	/* A slot of a refused record goes back by the usual event. */
	enum event_op op = copy.op == COMMAND_MSG_SEND	  ? EVENT_MSG_SENT
			   : copy.op == COMMAND_PEER_OPEN ? EVENT_PEER_DOWN
							  : EVENT_REFUSED;
	struct record *event = event_push(e, op);
	event->reason = (uint16_t)why;
	event->epoch = copy.epoch;
	event->token = copy.token;
	if (op == EVENT_MSG_SENT) {
		event->msg = copy.msg;
	} else if (op == EVENT_PEER_DOWN) {
		event->peer.addr = copy.peer.addr;
		event->peer.of = copy.peer.of;
		event->flags = copy.flags;
	} else {
		event->flags = copy.flags;
		event->refused.id = plan_subject(&copy);
		event->refused.refused_op = copy.op;
	}
	return true;
}
