/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that are objects of this node: the building worker reads them through a mirror stage. */
#include <errno.h>
#include "state.h"

/* Whether each worker that builds also receives its range of the source: then it can read from the
 * source's own stage. */
static bool input_local_beside(const struct control *c, const struct part *p,
			       const struct stage *own)
{
	struct substream_range r = input_range(c, p, own->lanes, c->workers);
	struct substream t;

	for (uint32_t at = r.first; at < r.end; at = t.end) {
		t = substream_at(&r, at);
		if (t.worker != t.peer_worker)
			return false;
	}
	return true;
}

/* The stages to read the source from: its own while it arrives on the same workers, else mirrors.
 */
static struct stage *input_local_source(struct control *c, struct part *p, uint32_t slot,
					struct substream_range *r)
{
	struct stage *own = objects_at(c, slot)->stage;
	struct substream_cut here = input_range(c, p, 1, c->workers).here;
	uint32_t from = lane_of(here.chunks, here.lanes, p->to);
	uint32_t last = lane_of(here.chunks, here.lanes, p->to + p->count - 1);

	if (own && own->bitmap && own->chunk_bytes == p->participant->chunk_bytes &&
	    c->table->slot[slot].state != OBJECT_SEALED && input_local_beside(c, p, own)) {
		*r = input_range(c, p, own->lanes, c->workers);
		return own;
	}
	*r = input_range(c, p, 1, c->workers);
	p->mirror = buffers_mirror(c, slot, lane_worker(&here.id, c->workers, from),
				   last - from + 1, p->participant->chunk_bytes, p);
	return p->mirror;
}

/* The stage on that worker, among those to read from. */
static const struct stage *input_local_stage(const struct stage *s, unsigned worker)
{
	while (s->worker != worker)
		s = s->next;
	return s;
}

static bool input_local_edges(struct control *c, struct part *p, uint32_t slot)
{
	struct stage *into = participant_stage(c, p->participant), *from;
	struct substream_range r;
	struct substream t;

	if (!into)
		return false;
	from = input_local_source(c, p, slot, &r);
	for (uint32_t at = r.first; from && at < r.end; at = t.end) {
		struct edge *e;

		t = substream_at(&r, at);
		e = buffers_local(c, into, input_local_stage(from, t.worker), &t, p);
		if (!e)
			return false;
		list_append(&p->edges, &e->of_owner);
	}
	return from != NULL;
}

static void input_local_start(struct control *c, struct part *p)
{
	uint32_t slot;

	if (!c->attached)
		return; /* participant_node_up of this node starts it */
	slot = slots_find(c, &p->id);
	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, p->generation)) {
		input_later(c, p, -ENOENT);
	} else if (c->table->slot[slot].size != p->size) {
		input_lost(c, p, -EINVAL);
	} else if (c->table->slot[slot].state == OBJECT_SPILLED) {
		spill_restore(c, slot);
		input_later(c, p, -EAGAIN);
	} else if (input_local_edges(c, p, slot)) {
		p->state = PART_LOCAL;
		p->lost_ns = 0;
	} else {
		input_let_go(c, p);
		input_later(c, p, -ENOSPC);
	}
}

void input_local_source_killed(struct control *c, struct part *p)
{
	const struct stage *s = p->mirror;

	/* The source was complete: the mirror keeps its bytes until the worker has read them. */
	if (atomic_load_explicit(&c->table->slot[s->slot].watermark, memory_order_acquire) ==
	    s->size)
		return;
	input_lost(c, p, -ENOENT);
}

void input_local_mirror_lost(struct control *c, struct part *p)
{
	p->mirror = NULL; /* the end of its edges follows */
}

const struct part_way part_local = {input_local_start, input_start};
