/* SPDX-License-Identifier: BSD-3-Clause */
/* DELETE of a client: asks the shard owner, then ends the object and its reduce on this node. */
#include <errno.h>
#include "core/reduce/requester/requester.h"
#include "state.h"

static bool session_deleted(struct control *c, struct call *call, const struct message *answer)
{
	struct wait *w = call->owner;
	uint32_t slot;

	if (answer && answer->reply.status == -EAGAIN && session_may_wait(c, call))
		return true;
	w->call = NULL;
	if (!answer) {
		session_unanswered(c, w, call->node);
		return false;
	}
	if (answer->reply.status == -EAGAIN) {
		waits_end(c, w, -ETIMEDOUT, answer->reply.text);
		return false;
	}
	slot = slots_find(c, &w->id);
	if (answer->reply.status == 0 ||
	    answer->reply.status == -ENOENT) /* it may have no bytes yet */
		requester_deleted(c, &w->id);
	if (answer->reply.status == 0 && slot != TABLE_SLOT_NONE &&
	    objects_is(c, slot, answer->reply.generation))
		objects_kill(c, slot, "the object was deleted");
	if (answer->reply.status == -ENOENT)
		session_absent(c, w, -ENOENT, answer->reply.text);
	else
		waits_end(c, w, answer->reply.status, answer->reply.text);
	return false;
}

void session_delete(struct control *c, struct session *s, const struct session_request *r)
{
	struct wait *w = waits_start(c, s, r);
	struct message m = {.kind = MESSAGE_DELETE};

	if (!w)
		return;
	m.object.id = r->id;
	w->call = rpc_start(c, ownership_shard(c, &r->id), &m, TABLE_SLOT_NONE,
			    c->config.directory_ns, session_deleted, w);
	if (!w->call)
		waits_no_call(c, w);
}
