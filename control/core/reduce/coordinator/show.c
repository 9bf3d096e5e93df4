/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What users see of a reduce: progress, why its target is missing, and cancellation by delete.
 * Called by the front door and by the directory's answers.
 */
#include <errno.h>
#include "core/base/text.h"
#include "core/directory/state.h"
#include "state.h"

/* For so long readers that have lost a partial target ask again. */

static const char show_cancelled[] = "the reduce was cancelled by rm: reduce again";

/* How many sources suffice at the deadline. */
static void show_least(struct text *t, const struct reduce *r, const char *before,
		       const char *after)
{
	text_add(t, before);
	text_add_number(t, r->rule.args.least);
	text_add(t, " of ");
	text_add_number(t, r->from.count);
	text_add(t, after);
}

void reduce_say_late(const struct control *c, const struct reduce *r, struct text *t)
{
	uint32_t missing = 0, first = 0;

	for (uint32_t i = r->from.count; i-- > 0;) {
		if (r->from.source[i].state == SOURCE_KNOWN)
			continue;
		first = i;
		missing++;
	}
	if (r->from.count - missing >= r->want.num)
		missing = 0; /* those are not needed */
	if (missing == 0) {
		text_add(t, r->want.num == r->from.count ? "all" : "enough");
		text_add(t, " sources came, their sum did not");
	} else {
		text_add(t, r->from.source[first].refused ? "no room in the directory for source "
							  : "source ");
		text_add_object(t, &r->from.source[first].id, "");
		text_add(t, missing > 1 ? " and " : "");
		if (missing > 1)
			text_add_number(t, missing - 1);
		text_add(t, missing > 1 ? " more" : "");
		text_add(t, r->from.source[first].refused ? "" : " never came");
	}
	text_add(t, " within ");
	text_add_number(t, (c->now_ns - r->begun_ns + 500000000) / 1000000000);
	text_add(t, " s");
	if (missing && r->rule.args.least && r->state == REDUCE_LOCATING)
		show_least(t, r, ", and ", " must be there");
	text_add(t, missing ? ": put them" : ": allow more time");
}

static void show_failed(struct text *t, const struct reduce *r)
{
	text_add(t, r->status == -ECANCELED ? "" : "the reduce into it failed: ");
	text_add(t, r->text);
}

void reduce_explain(struct control *c, struct message_got *got)
{
	const struct reduce *r = reduce_find(c, &got->id);
	struct text t = {.length = 0};

	if (!r || (r->state == REDUCE_ENDED && r->status == 0))
		return;
	if (r->state == REDUCE_ENDED) {
		show_failed(&t, r);
	} else {
		text_add(&t, "the reduce that makes it has not ended (node ");
		text_add_number(&t, c->cluster->self->number);
		text_add(&t, " coordinates it): wait longer");
	}
	memcpy(got->text, t.bytes, strnlen(t.bytes, MESSAGE_TEXT_MAX));
}

/* Lists all sources: first those that are known. */
static void show_sources(struct control *c, const struct reduce *r, struct message_used *m)
{
	m->count = 0;
	m->sources = c->coordinator->reduces.ids;
	for (int missing = 0; missing < 2; missing++) {
		for (uint32_t i = 0; i < r->from.count; i++)
			if ((r->from.source[i].state != SOURCE_KNOWN) == missing)
				c->coordinator->reduces.ids[m->count++] = r->from.source[i].id;
		if (!missing)
			m->present = m->count;
	}
}

static void show_deadline(const struct control *c, const struct reduce *r, struct text *t)
{
	uint64_t at_ns = reduce_deadline(r);

	text_add(t, ", ");
	text_add_number(t, r->rule.args.least);
	text_add(t, " suffice");
	if (at_ns <= c->now_ns)
		return;
	text_add(t, " in ");
	text_add_number(t, (at_ns - c->now_ns + 999999999) / 1000000000);
	text_add(t, " s");
}

void reduce_progress(struct control *c, const struct reduce *r, struct message_used *m)
{
	struct text t = {.length = 0};

	m->target = r->by_id.id;
	m->status = -EAGAIN;
	show_sources(c, r, m);
	if (r->state >= REDUCE_COMMITTING) {
		text_add(&t, "commits its result; ");
	} else {
		text_add_number(&t, m->present);
		text_add(&t, " of ");
		text_add_number(&t, r->want.num);
		text_add(&t, " sources are there");
		if (m->present < r->want.num) {
			text_add(&t, ", missing ");
			text_add_object(&t, &m->sources[m->present], "");
		}
		if (r->rule.args.least && r->state == REDUCE_LOCATING)
			show_deadline(c, r, &t);
		text_add(&t, "; ");
	}
	text_add(&t, "node ");
	text_add_number(&t, c->cluster->self->number);
	text_add(&t, " coordinates it, for ");
	text_add_number(&t, (c->now_ns - r->begun_ns) / 1000000000);
	text_add(&t, " s");
	memcpy(m->text, t.bytes, strnlen(t.bytes, MESSAGE_TEXT_MAX));
}

void reduce_name_targets(struct control *c, struct session_object *objects, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct reduce *r = objects[i].flags & SESSION_OBJECT_REDUCED
						 ? reduce_find(c, &objects[i].id)
						 : NULL;

		if (r && objects[i].generation == 0)
			memcpy(objects[i].name, r->want.name, sizeof(r->want.name));
	}
}

bool reduce_refuses(struct control *c, const struct node *n, const struct message *m)
{
	const struct reduce *r = m->have.create ? reduce_find(c, &m->have.id) : NULL;
	struct text t = {.length = 0};

	if (!r || r->state == REDUCE_ENDED)
		return false;
	text_add(&t, "a reduce makes an object of this id, node ");
	text_add_number(&t, c->cluster->self->number);
	text_add(&t, " coordinates it: use another id, or cancel it with rm");
	reduce_reply(c, n->number, m->request, -EEXIST, t.bytes);
	return true;
}

bool reduce_refuses_get(struct control *c, const struct node *n, const struct message *m)
{
	const struct reduce *r = reduce_find(c, &m->get.id);
	const struct entry *e = directory_find(&c->directory->shard, &m->get.id);
	struct message answer = {.kind = MESSAGE_GOT, .request = m->request};
	struct text t = {.length = 0};

	if (!r || r->state != REDUCE_ENDED || r->status != -EINVAL ||
	    c->now_ns > r->ended_ns + SHOW_FAILED_NS || (e && e->generation != 0) ||
	    m->get.why == MESSAGE_GET_LOCATE || m->get.why == MESSAGE_GET_FORGET)
		return false;
	show_failed(&t, r);
	answer.got.id = m->get.id;
	answer.got.what = MESSAGE_GOT_FAILED;
	answer.got.holder = MESSAGE_NODE_NONE;
	answer.got.status = r->status;
	memcpy(answer.got.text, t.bytes, strnlen(t.bytes, MESSAGE_TEXT_MAX));
	peers_send(c, peers_node(c, n->number), &answer);
	return true;
}

void reduce_tell_waiters(struct control *c, const struct reduce *r)
{
	struct text t = {.length = 0};

	show_failed(&t, r);
	if (r->status == -ECANCELED || (r->status == -EINVAL && r->answered))
		directory_waiters_end(&c->directory->shard, &r->by_id.id, r->status, t.bytes);
	else if (r->status)
		directory_waiters_tell(&c->directory->shard, &r->by_id.id);
}

bool reduce_cancel(struct control *c, const struct node *n, const struct message *m)
{
	const struct object_id *id = &m->object.id;
	struct reduce *r = reduce_find(c, id);
	const struct entry *e;

	if (r && r->state == REDUCE_ENDED && r->status == -ECANCELED &&
	    r->cancelled == m->request && r->cancelled_by == n->number) {
		reduce_reply(c, n->number, m->request, 0, "");
		return true; /* the answer was lost */
	}
	if (r && r->state != REDUCE_ENDED) {
		r->cancelled = m->request;
		r->cancelled_by = n->number;
	}
	if (!reduce_deleted(c, id, show_cancelled))
		return false;
	e = directory_find(&c->directory->shard, id);
	if (e && e->generation != 0)
		return false; /* partial objects remain: they are deleted like any object */
	reduce_reply(c, n->number, m->request, 0, "");
	return true;
}
