/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this node cannot know of the directory. A node that is cut off takes the others for dead and
 * becomes the owner of all ids; what it does not know may exist all the same. LIST names the owners
 * that are missing; STAT, DELETE and GET do not claim that an object does not exist.
 */
#include <errno.h>
#include "core/base/text.h"
#include "state.h"

bool session_lacks(struct control *c, const struct node *n)
{
	if (n->member != MEMBER_DEAD || c->config.shards > 0)
		return false;
	return c->now_ns < n->dead_ns + c->config.settle_ns || membership_minority(c);
}

void session_missing_item(const struct node *n, struct session_object *out)
{
	*out = (struct session_object){.flags = SESSION_OBJECT_MISSING, .holders = 1};
	out->holder[0].node = n->number;
}

static bool session_missing_tell(struct control *c, const struct wait *w, const struct node *n)
{
	struct session_object o;

	session_missing_item(n, &o);
	return w->op != SESSION_STAT || reply_item(c, w, &o, sizeof(o));
}

void session_unanswered(struct control *c, struct wait *w, const struct node *owner)
{
	struct text t = {.length = 0};

	if (!c->attached) {
		waits_no_directory(c, w);
		return;
	}
	text_add(&t, "the directory's part for it on node ");
	text_add_number(&t, owner->number);
	text_add(&t, " does not answer: see 'sarissa status', or try again later");
	session_missing_tell(c, w, owner);
	waits_end(c, w, -EHOSTUNREACH, t.bytes);
}

/* [G5.1] */
void session_absent(struct control *c, struct wait *w, int32_t status, const char *text)
{
	struct text t = {.length = 0};
	const struct node *n;
	uint32_t count = 0;

	for (uint32_t i = 0; (n = peers_node(c, i)) != NULL; i++) {
		if (n->member != MEMBER_DEAD || !membership_minority(c) || c->config.shards > 0)
			continue;
		text_add(&t, count == 0 ? "not known here, but node " : "");
		if (count++ == 0)
			text_add_number(&t, i);
		session_missing_tell(c, w, n);
	}
	if (count == 0) {
		waits_end(c, w, status, text);
		return;
	}
	if (count > 1) {
		text_add(&t, " and ");
		text_add_number(&t, count - 1);
		text_add(&t, " more");
	}
	text_add(&t, ", out of reach, may know it: mend the network, or start them");
	waits_end(c, w, -EHOSTUNREACH, t.bytes);
}
