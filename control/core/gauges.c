/* SPDX-License-Identifier: BSD-3-Clause */
/* How full everything is. */
#include "state.h"

static uint64_t gauges_untold(const struct objects *os)
{
	uint64_t count = os->announcing;

	list_each(l, after, &os->dirty) count++;
	return count;
}

static void gauges_members(const struct control *c, struct control_gauges *out)
{
	uint64_t *of[MEMBER_STATES] = {[MEMBER_ALIVE] = &out->members_alive,
				       [MEMBER_SUSPECT] = &out->members_suspect,
				       [MEMBER_DEAD] = &out->members_dead,
				       [MEMBER_LEFT] = &out->members_left};

	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (of[c->peers.nodes[i].member])
			++*of[c->peers.nodes[i].member];
	out->members_changed_ms = (c->now_ns - c->members.changed_ns) / 1000000;
}

void control_gauges(struct control *c, struct control_gauges *out)
{
	const struct control_config *f = &c->config;

	*out = (struct control_gauges){
		.attached = c->attached,
		.sessions = c->sessions.open,
		.sessions_max = f->sessions_max,
		.waits = c->sessions.waits.used,
		.waits_max = f->waits_max,
		.creating = c->creations.pool.used,
		.creating_max = f->creations_max,
		.calls = c->calls.pool.used,
		.calls_max = f->calls_max,
		.fetches = c->fetches.pool.used,
		.fetches_max = f->fetches_max,
		.serves = c->serves.pool.used,
		.serves_max = f->serves_max,
		.entries = c->directory.entries.used,
		.entries_max = f->entries_max,
		.copies = c->directory.copies.used,
		.copies_max = f->copies_max,
		.links = c->peers.links.used,
		.links_max = f->links_max,
	};
	gauges_members(c, out);
	if (c->table == NULL)
		return;
	out->store_bytes = c->dataplane.store_bytes; /* as session_describe_node says it */
	out->store_used = c->objects.space.used_bytes + c->buffers.scratch.used_bytes;
	out->store_evictable = objects_evictable_bytes(c);
	out->objects = c->objects.count;
	out->untold = gauges_untold(&c->objects);
}
