/* SPDX-License-Identifier: BSD-3-Clause */
/* GROUP: passes what a member asks on to the owner of its group, and the answer back. */
#include <errno.h>
#include "core/cluster/state.h"
#include "core/group/state.h"
#include "core/transfer/fetch.h"
#include "state.h"

static bool session_group_gone(struct control *c, struct call *call, const struct message *answer)
{
	return false; /* nothing hangs on it */
}

/* A pull: the result streams to this node while it is made. The owner's answer decides what the
 * client gets. */
static void session_group_ahead(struct control *c, struct wait *w, const struct message_group *m)
{
	if (m->ask.step != GROUP_PULL || m->ask.flags & (GROUP_NOW | GROUP_WITHDRAWN) ||
	    !agents_awaited(c, &m->id, &m->ask, &w->id) || slots_find(c, &w->id) != TABLE_SLOT_NONE)
		return;
	w->fetch = fetch_get(c, &w->id, true);
	if (w->fetch)
		list_append(&w->fetch->waits, &w->await.link);
}

static bool session_group_answered(struct control *c, struct call *call,
				   const struct message *answer)
{
	struct wait *w = call->owner;
	struct session *s = w->session;
	const struct message_grouped *g = &answer->grouped;
	const struct message_group *asked = &call->message.group;
	struct fetch *ahead = w->fetch;

	w->call = NULL;
	if (!answer) {
		waits_no_directory(c, w);
	} else if (g->status == 0 &&
		   !agents_saw(c, &s->members, &asked->id, &asked->ask, g->answer)) {
		waits_end(c, w, -ENOSPC, "this node has as many members of groups as it may");
	} else {
		if (g->answer)
			reply_item(c, w, g->answer, sizeof(*g->answer));
		waits_end(c, w, g->status, g->text);
	}
	if (ahead)
		fetch_unwanted(c, ahead);
	return false;
}

void session_group_left(struct control *c, const struct wait *w)
{
	const struct message_group *asked = &w->call->message.group;
	struct message m = {.kind = MESSAGE_GROUP};

	m.group = *asked;
	if (asked->ask.step == GROUP_JOIN) {
		m.group.ask.step = GROUP_LEAVE;
		m.group.ask.flags = GROUP_LOST;
	} else if (asked->ask.step == GROUP_PULL && !(asked->ask.flags & GROUP_NOW)) {
		m.group.ask.flags = GROUP_WITHDRAWN;
		m.group.ask.job = w->call->message.request;
	} else {
		return;
	}
	rpc_start(c, w->call->node, &m, TABLE_SLOT_NONE, c->config.directory_ns, session_group_gone,
		  NULL);
}

/* Copies the request: every text of it ends. */
static const char *session_group_read(const struct session_request *r, const uint8_t *bytes,
				      struct group_request *out)
{
	const char *wrong;

	if (r->size != sizeof(*out))
		return "malformed request of a group: use a library and a node of one version";
	memcpy(out, bytes, sizeof(*out));
	if (!memchr(out->name, 0, sizeof(out->name)) ||
	    !memchr(out->cohort, 0, sizeof(out->cohort)) ||
	    !memchr(out->policy, 0, sizeof(out->policy)))
		return "a text is not terminated";
	wrong = group_request_wrong(out);
	if (!wrong && out->step != GROUP_EXPLAIN)
		wrong = group_name_wrong(out->name);
	return wrong;
}

void session_group(struct control *c, struct session *s, const struct session_request *r,
		   const uint8_t *bytes)
{
	struct message m = {.kind = MESSAGE_GROUP};
	const char *wrong = session_group_read(r, bytes, &m.group.ask);
	struct node *owner = c->cluster->self;
	struct text name;
	struct wait *w;

	if (wrong) {
		reply_error(c, s, r->op, r->seq, -EINVAL, wrong);
		return;
	}
	if (m.group.ask.step == GROUP_JOIN && !agents_room(c)) {
		reply_error(c, s, r->op, r->seq, -ENOSPC,
			    "this node has as many members of groups as it may");
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	if (m.group.ask.step != GROUP_EXPLAIN) {
		group_name(&name, m.group.ask.name, NULL, 0, 0);
		m.group.id = group_id(name.bytes);
		owner = ownership_shard(c, &m.group.id);
	}
	waits_timeout(c, w, r->timeout_ns);
	w->call = rpc_start(c, owner, &m, TABLE_SLOT_NONE, UINT64_MAX, session_group_answered, w);
	if (w->call)
		session_group_ahead(c, w, &m.group);
	else
		waits_no_call(c, w);
}
