/* SPDX-License-Identifier: BSD-3-Clause */
/* The gauges of a control core: how full its tables are. */
#include "state.h"

static uint64_t gauges_unacked(const struct objects *os)
{
	uint64_t count = os->announcer.sending;

	list_each(l, after, &os->announcer.dirty) count++;
	return count;
}

static void gauges_members(const struct control *c, struct control_gauges *out)
{
	uint64_t *of[MEMBER_STATES] = {[MEMBER_ALIVE] = &out->members_alive,
				       [MEMBER_SUSPECT] = &out->members_suspect,
				       [MEMBER_RESTING] = &out->members_alive,
				       [MEMBER_DEAD] = &out->members_dead,
				       [MEMBER_LEFT] = &out->members_left};

	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (of[c->cluster->peers.nodes[i].member])
			++*of[c->cluster->peers.nodes[i].member];
	out->members_changed_ms = (c->now_ns - c->cluster->members.changed_ns) / 1000000;
}

void control_gauges(struct control *c, struct control_gauges *out)
{
	const struct control_config *f = &c->config;

	*out = (struct control_gauges){
		.attached = c->attached,
		.sessions = c->session->sessions.open,
		.sessions_max = f->sessions_max,
		.waits = c->session->sessions.waits.used,
		.waits_max = f->waits_max,
		.creating = c->session->creations.pool.used,
		.creating_max = f->creations_max,
		.calls = c->cluster->calls.pool.used,
		.calls_max = f->calls_max,
		.fetches = c->transfer->fetches.pool.used,
		.fetches_max = f->fetches_max,
		.serves = c->transfer->serves.pool.used,
		.serves_max = f->serves_max,
		.entries = c->directory->shard.entries.used,
		.entries_max = f->entries_max,
		.copies = c->directory->shard.copies.used,
		.copies_max = f->copies_max,
		.values = c->directory->shard.inline_space.used_bytes,
		.values_max = f->inline_bytes,
		.leases = c->lease->leases.pool.used,
		.leases_max = f->leases_max,
		.holds = c->lease->leases.holds.used,
		.holds_max = f->holds_max,
		.references = c->directory->references.pool.used,
		.references_max = f->references_max,
		.links = c->cluster->peers.links.used,
		.links_max = f->links_max,
	};
	gauges_members(c, out);
	if (!c->table)
		return;
	out->store_bytes = c->dataplane.store_bytes; /* as session_describe_node says it */
	out->store_used = c->store->objects.space.used_bytes + c->flow->buffers.scratch.used_bytes;
	out->store_evictable = objects_evictable_bytes(c);
	out->spill_objects = c->store->spills.objects;
	out->spill_used = c->store->spills.files_bytes;
	out->spill_max = c->config.spill_max;
	out->objects = c->store->objects.count;
	out->unacked = gauges_unacked(&c->store->objects);
}
