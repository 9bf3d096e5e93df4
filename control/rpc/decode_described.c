/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes descriptions of nodes and objects, for STATUS, LIST, STAT and MEMBERS. */
#include <string.h>
#include "decode.h"

bool decode_node_status(const Rpc__Node *in, struct session_node *out)
{
	out->node = in->node;
	out->state = in->state;
	out->workers = in->workers;
	out->incarnation = in->incarnation;
	out->store_bytes = in->store_bytes;
	out->store_used = in->store_used;
	out->objects = in->objects;
	out->sessions = in->sessions;
	out->mtu = in->mtu;
	out->hugepages = in->hugepages != 0;
	out->busy_poll = in->busy_poll != 0;
	out->control_pid = in->control_pid;
	out->dataplane_pid = in->dataplane_pid;
	out->arriving = in->arriving;
	out->sending = in->sending;
	return in->node < NODES_MAX && in->state <= 2 && in->workers <= WORKERS_MAX &&
	       decode_text(&in->port, out->port, sizeof(out->port));
}

bool decode_plan(const Rpc__Node *in, struct decode_arena *a, const struct control_plan **out)
{
	struct control_plan *p;

	*out = NULL;
	if (in->plan_generation == 0)
		return in->n_plan_level == 0;
	p = decode_alloc(a, sizeof(*p));
	if (p == NULL || !decode_generation(in->plan_generation) || in->n_plan_level % 3 != 0 ||
	    in->n_plan_level > (size_t)3 * CONTROL_PLAN_LEVELS_MAX || in->plan_flags > 7 ||
	    in->plan_node >= NODES_MAX || in->plan_nodes > MESSAGE_SOURCES_MAX ||
	    in->plan_planner.len == 0)
		return false;
	*p = (struct control_plan){.number = 1,
				   .generation = in->plan_generation,
				   .node = in->plan_node,
				   .size = in->plan_size,
				   .predicted_ns = in->plan_predicted_ns,
				   .measured_ns = in->plan_measured_ns,
				   .nodes = in->plan_nodes,
				   .levels = (uint32_t)(in->n_plan_level / 3),
				   .everyone = in->plan_flags & 1,
				   .repaired = in->plan_flags & 2,
				   .network = in->plan_flags & 4};
	for (uint32_t l = 0; l < p->levels; l++)
		p->level[l] = (struct control_plan_level){in->plan_level[3 * l],
							  in->plan_level[3 * l + 1],
							  in->plan_level[3 * l + 2]};
	*out = p;
	return decode_text(&in->plan_planner, p->planner, sizeof(p->planner));
}

static bool decode_holder(const Rpc__Holder *in, struct session_object *out, size_t k)
{
	struct session_holder *h = &out->holder[k];

	if (in->node >= NODES_MAX || in->n_upstream > SESSION_UPSTREAMS)
		return false;
	*h = (struct session_holder){.node = in->node,
				     .complete = in->complete != 0,
				     .watermark = in->watermark,
				     .arrived = in->arrived,
				     .sending = in->sending,
				     .down_ms = in->down,
				     .upstreams = (uint32_t)in->n_upstream};
	for (uint32_t i = 0; i < h->upstreams; i++) {
		h->upstream[i] = in->upstream[i];
		if (in->upstream[i] >= NODES_MAX)
			return false;
	}
	return true;
}

bool decode_watch(const Rpc__Watch *in, struct message_watch *out)
{
	bool next = in->step == MESSAGE_WATCH_NEXT;

	*out = (struct message_watch){in->step, in->number, in->next, in->cursor, ""};
	return in->step > 0 && in->step < MESSAGE_WATCH_STEPS && in->number != 0 &&
	       next == (in->next != 0) && (next || in->cursor == 0) &&
	       decode_text(&in->prefix, out->prefix, sizeof(out->prefix));
}

/* Whether the flags are those of a state, or, of an answer to a WATCH, of an event. */
static bool decode_flags(uint32_t flags, bool event)
{
	if (event)
		return flags % SESSION_OBJECT_EVENT == 0 && flags > 0 &&
		       flags / SESSION_OBJECT_EVENT <= SESSION_EVENT_GONE;
	return (flags & ~(uint32_t)(SESSION_OBJECT_INLINE | SESSION_OBJECT_REDUCED)) == 0;
}

static bool decode_description(const Rpc__Description *in, bool event, struct session_object *out)
{
	*out = (struct session_object){.generation = in->generation,
				       .size = in->size,
				       .local_watermark = UINT64_MAX,
				       .copies = in->copies,
				       .partial = in->partial,
				       .flags = in->flags,
				       .lost = in->lost,
				       .lost_node = in->lost_node,
				       .down_ms = in->down,
				       .leases = in->leases,
				       .lease_node = in->lease_node,
				       .lease = in->lease,
				       .lease_ms = in->lease_ms,
				       .expires_ms = in->expires_ms};
	if (in->leases ? in->lease_node >= NODES_MAX || in->lease == 0
		       : in->lease_node || in->lease || in->lease_ms || in->lease_name.len > 0)
		return false;
	if (in->n_holders > SESSION_HOLDERS || !decode_flags(in->flags, event))
		return false;
	if (in->lost ? in->lost_node >= NODES_MAX || in->down == 0 : in->lost_node || in->down)
		return false;
	out->holders = (uint32_t)in->n_holders;
	for (size_t k = 0; k < in->n_holders; k++)
		if (!decode_holder(in->holders[k], out, k))
			return false;
	return (in->generation != 0 || in->flags & SESSION_OBJECT_REDUCED) &&
	       decode_id(&in->id, &out->id) && decode_meta(&in->meta, &out->meta) &&
	       decode_text(&in->lease_name, out->lease_name, sizeof(out->lease_name)) &&
	       decode_text(&in->name, out->name, sizeof(out->name));
}

/* Room for so many that a message lists; NULL: too many. */
static void *decode_page(struct decode_arena *a, size_t count, size_t most, size_t item_bytes)
{
	return count > most ? NULL : decode_alloc(a, count * item_bytes);
}

bool decode_objects(const Rpc__Objects *in, struct decode_arena *a, struct message_objects *out)
{
	struct session_object *page =
		decode_page(a, in->n_objects, MESSAGE_OBJECTS_MAX, sizeof(*page));

	if (page == NULL || in->deleted > (in->n_objects == 0) || in->unsettled > 1 ||
	    in->watch >= MESSAGE_WATCH_STATES || (in->watch != 0) != (in->next != 0) ||
	    (in->watch > MESSAGE_WATCH_EVENTS && in->n_objects > 0))
		return false;
	for (size_t i = 0; i < in->n_objects; i++)
		if (!decode_description(in->objects[i], in->watch != 0, &page[i]))
			return false;
	out->cursor = in->cursor;
	out->count = (uint32_t)in->n_objects;
	out->objects = page;
	out->deleted = in->deleted;
	out->unsettled = in->unsettled;
	out->watch = in->watch;
	out->next = in->next;
	return true;
}

static bool decode_member(const Rpc__Member *in, struct message_member *out)
{
	*out = (struct message_member){
		.node = in->node, .state = in->state, .incarnation = in->incarnation};
	if (in->ip.len != sizeof(out->addr.ip) || in->port > UINT16_MAX - WORKERS_MAX)
		return false;
	memcpy(out->addr.ip, in->ip.data, sizeof(out->addr.ip));
	out->addr.port = (uint16_t)in->port;
	return decode_rails(&in->rails, &out->rails) && in->node < NODES_MAX &&
	       in->state != MEMBER_NONE && in->state < MEMBER_STATES;
}

bool decode_members(const Rpc__Members *in, struct decode_arena *a, struct message_members *out)
{
	struct message_member *page =
		decode_page(a, in->n_members, MESSAGE_MEMBERS_MAX, sizeof(*page));

	if (page == NULL || in->step >= MESSAGE_MEMBERS_STEPS)
		return false;
	for (size_t i = 0; i < in->n_members; i++)
		if (!decode_member(in->members[i], &page[i]))
			return false;
	out->digest = in->digest;
	out->step = in->step;
	out->count = (uint32_t)in->n_members;
	out->members = page;
	return true;
}
