/* SPDX-License-Identifier: BSD-3-Clause */
/* What a control coordinates and builds, to replay a failure. Without the headers of the
 * simulation: both sides have their own struct node. */
#include "work_trace.h"

#include <stdio.h>

#include "core/state.h"

static void trace_reduce(uint32_t node, const struct reduce *r)
{
	fprintf(stderr,
		"  node %u directs job %u: generation %llx, state %u small %u sized %u, %u of %u, "
		"%u slots, %u segments, %u summed\n",
		node, r->by_id.id.bytes[6], (unsigned long long)r->out.generation, r->state,
		r->sum.small, r->from.sized, r->want.num, r->from.count, r->plan.graph.slots,
		r->plan.graph.segments, r->sum.summed);
	for (uint32_t i = 0; i < r->from.count; i++)
		fprintf(stderr, "    source %u: state %u node %d slot %d asked %u failed %d\n", i,
			r->from.source[i].state, (int)r->from.source[i].node,
			(int)r->from.source[i].slot, r->from.source[i].call != NULL,
			(int)r->from.source[i].failed);
	for (uint32_t i = 0; i < r->plan.graph.vertices; i++) {
		const struct reduce_vertex *p = &r->plan.vertex[i];

		fprintf(stderr,
			"    vertex %u: host %d wants %u has %u combines %u started %u delivered %u "
			"done %u\n",
			i, (int)reduce_host(p), graph_wants(&r->plan.graph, i),
			r->plan.run.slot[reduce_slot(p)].has,
			r->plan.graph.vertex[i].op == GRAPH_SUM, reduce_is(p, RUN_STARTED),
			reduce_is(p, RUN_DELIVERED), reduce_is(p, RUN_DONE));
	}
	list_each(l, after, &r->out.receivers)
	{
		const struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		fprintf(stderr, "    receiver %u: asked %u, done %u\n", g->node, g->call != NULL,
			g->done);
	}
}

void work_trace(const struct control *c)
{
	uint32_t node = c->cluster->self->number;
	list_each(l, after, &c->coordinator->reduces.active)
		trace_reduce(node, list_item(l, struct reduce, active));
	for (uint32_t i = 0; i < c->directory->shard.entries.fresh; i++) {
		const struct entry *e = pool_at(&c->directory->shard.entries, i);
		if (e->used)
			fprintf(stderr,
				"  node %u knows %u.%u: generation %llx reserved %llx, %u copies, %u "
				"waiters, locates %u\n",
				node, e->by_id.id.bytes[6], e->by_id.id.bytes[5],
				(unsigned long long)e->generation, (unsigned long long)e->reserved,
				e->copies_count, e->waiters_count, !list_empty(&e->locates));
	}
	list_each(l, after, &c->transfer->fetches.active)
	{
		const struct fetch *f = list_item(l, struct fetch, active);
		const struct object *o =
			f->slot == TABLE_SLOT_NONE ? NULL : &c->store->objects.meta[f->slot];
		fprintf(stderr,
			"  node %u fetches %u.%u: generation %llx state %u attempts %u known %u, "
			"waits %u serves %u\n",
			node, f->by_id.id.bytes[6], f->by_id.id.bytes[5],
			(unsigned long long)f->generation, f->state, f->attempts, f->known,
			!list_empty(o ? &o->waits : &f->waits), o && !list_empty(&o->serves));
	}
	list_each(l, after, &c->participant->participants.active)
	{
		const struct participant *k = list_item(l, struct participant, active);
		fprintf(stderr, "  node %u builds %u.%u of job %u: done %u\n", node,
			k->by_id.id.bytes[6], k->by_id.id.bytes[5], k->target.bytes[6], k->done);
		list_each(j, next, &k->parts)
		{
			const struct part *p = list_item(j, struct part, of_participant);
			fprintf(stderr, "    part %u.%u of node %u: state %u\n", p->id.bytes[6],
				p->id.bytes[5], p->node->number, p->state);
		}
	}
}
