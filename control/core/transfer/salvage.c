/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunk inventory of an object without a complete copy. Each holder of a part is asked which
 * chunks it has (PIECES, HAS). A chunk that no node has is lost: the fetch fails, or restarts if it
 * has no chunk yet. Otherwise the holder with most missing chunks feeds this node, and the owner is
 * asked again after that. Called by fetch.c.
 *
 * Chunks can move while the inventory runs: from a node that is asked later, and goes away before,
 * to one that was asked already. So an inventory during which a copy has departed starts again.
 */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"

static void salvage_next(struct control *c, struct fetch *f);
static void salvage_ask(struct control *c, struct fetch *f);

static uint64_t *salvage_found(struct control *c, const struct fetch *f)
{
	return (uint64_t *)(void *)scratch_at(c, f->inventory.found);
}

void salvage_fetch_end(struct control *c, struct fetch *f)
{
	if (f->inventory.found)
		allocator_give(&c->flow->buffers.scratch, f->inventory.found);
	f->inventory = (struct salvage_fetch){.found = 0};
}

/* The inventory is inconclusive: tries again soon. */
static void salvage_retry(struct control *c, struct fetch *f)
{
	salvage_fetch_end(c, f);
	f->attempts++;
	fetch_rest(c, f);
}

static void salvage_lost(struct control *c, struct fetch *f, uint32_t missing)
{
	uint32_t chunks = ranges_chunks(f), first, end;
	struct text t = {.length = 0}, named = {.length = 0};

	first = end = bitmap_after(salvage_found(c, f), 0, chunks, 0);
	bitmap_run(salvage_found(c, f), &end, chunks);
	missing -= end - first;
	text_add(&t, "lost: chunks ");
	text_add_number(&t, first);
	text_add(&t, "-");
	text_add_number(&t, end - 1);
	if (missing) {
		text_add(&t, " and ");
		text_add_number(&t, missing);
		text_add(&t, " more");
	}
	text_add(&t, " of ");
	text_add_number(&t, chunks);
	text_add(&t, " exist nowhere: put it again");
	text_add_object(&named, &f->by_id.id, texts_name(c, f->slot));
	text_add(&named, ": ");
	text_add(&named, t.bytes);
	env_log(c, CONTROL_LOG_WARNING, &named);
	placement_fail(c, f, -ENODATA, t.bytes);
}

/* The fetch has no chunk: it restarts, like one of an object that was not put yet. */
static void salvage_restart(struct control *c, struct fetch *f)
{
	uint32_t slot = f->slot;

	placement_end(c, f);
	objects_at(c, slot)->fetch = NULL;
	announce_disown(c, &c->table->slot[slot].id, c->table->slot[slot].generation);
	objects_replace(c, slot, "nobody has it any more: get it again");
}

/* [G7.1] */
static void salvage_conclude(struct control *c, struct fetch *f)
{
	const uint64_t *map = ranges_map(c, f);
	uint32_t chunks = ranges_chunks(f), missing, extra = f->inventory.best_extra;
	struct node *best = peers_node(c, f->inventory.best);

	if (map)
		bitmap_add(salvage_found(c, f), map, chunks);
	missing = chunks_missing(salvage_found(c, f), 0, chunks);
	if (missing > 0 && map && chunks_missing(map, 0, chunks) == chunks) {
		salvage_restart(c, f);
		return;
	}
	if (missing > 0) {
		salvage_lost(c, f, missing);
		return;
	}
	if (extra == 0 || !map) { /* no chunk is missing, or they have just moved */
		salvage_retry(c, f);
		return;
	}
	missing = chunks_missing(map, 0, chunks);
	salvage_fetch_end(c, f);
	fetch_connect(c, f, best);
	f->piece_left = missing > extra ? missing - extra : 0;
}

static bool salvage_has(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct salvage_fetch *s = &f->inventory;
	const struct message_stream *m = answer ? &answer->stream : NULL;
	const uint64_t *map = ranges_map(c, f);

	f->call = NULL;
	if (!m || !map) { /* the membership decides whether the node is dead */
		salvage_retry(c, f);
		return false;
	}
	if (m->first != s->at || m->count > ranges_chunks(f) - s->at) {
		salvage_retry(c, f);
		return false;
	}
	for (uint32_t i = 0; i < m->skips; i++) {
		uint32_t first = m->skip[i].first, count = m->skip[i].count;

		bitmap_set(salvage_found(c, f), first, count);
		s->extra += chunks_missing(map, first, first + count);
	}
	s->at += m->count;
	if (s->at < ranges_chunks(f)) {
		salvage_ask(c, f);
		return false;
	}
	if (s->extra > s->best_extra) {
		s->best = s->node;
		s->best_extra = s->extra;
	}
	salvage_next(c, f);
	return false;
}

static void salvage_ask(struct control *c, struct fetch *f)
{
	struct message m = {.kind = MESSAGE_PIECES};

	m.stream.id = f->by_id.id;
	m.stream.generation = f->generation;
	m.stream.chunk_bytes = f->chunk_bytes;
	m.stream.first = f->inventory.at;
	m.stream.count = ranges_chunks(f) - f->inventory.at;
	f->call = rpc_start(c, peers_node(c, f->inventory.node), &m, TABLE_SLOT_NONE,
			    INVENTORY_ANSWER_NS, salvage_has, f);
	if (!f->call)
		salvage_retry(c, f);
}

static bool salvage_named(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct salvage_fetch *s = &f->inventory;
	const struct message_got *got = answer ? &answer->got : NULL;

	f->call = NULL;
	if (!got || got->what != MESSAGE_GOT_PIECE || got->generation != f->generation ||
	    (s->begun && got->departed != s->departed)) {
		salvage_retry(c, f);
		return false;
	}
	s->departed = got->departed;
	s->begun = true;
	if (got->holder == MESSAGE_NODE_NONE) {
		salvage_conclude(c, f);
		return false;
	}
	if (!peers_node(c, got->holder) ||
	    (s->node != MESSAGE_NODE_NONE && got->holder <= s->node)) {
		salvage_retry(c, f);
		return false;
	}
	s->node = got->holder;
	s->at = s->extra = 0;
	salvage_ask(c, f);
	return false;
}

static void salvage_next(struct control *c, struct fetch *f)
{
	f->call = fetch_question(c, f, MESSAGE_GET_PIECE, f->inventory.node, c->config.call_ns,
				 salvage_named);
	if (!f->call)
		salvage_retry(c, f);
}

void salvage_fetch(struct control *c, struct fetch *f)
{
	const uint64_t *map = ranges_map(c, f);

	timers_cancel(&c->timers, &f->timer);
	f->state = FETCH_INVENTORY;
	f->inventory = (struct salvage_fetch){.node = MESSAGE_NODE_NONE};
	if (map)
		f->inventory.found = buffers_bitmap(c, ranges_chunks(f));
	if (f->inventory.found == 0) {
		salvage_retry(c, f);
		return;
	}
	bitmap_add(salvage_found(c, f), map, ranges_chunks(f));
	salvage_next(c, f);
}
