/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

void link_begin(struct link_watch *l, uint64_t now_ns)
{
	*l = (struct link_watch){.started_ns = now_ns, .look_ns = now_ns};
}

enum link_news link_look(struct link_watch *l, bool up, uint64_t now_ns)
{
	enum link_news now = up ? LINK_UP : LINK_DOWN;
	l->look_ns = now_ns + LINK_LOOK_NS;
	bool settles = l->said == LINK_NOTHING && now_ns - l->started_ns < LINK_SETTLE_NS;
	if (now == l->said || (!up && settles))
		return LINK_NOTHING;
	l->said = now;
	return now;
}
