/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nobody who lives has all of an object, but others have parts of it as we do. Each of them is
 * asked which chunks it has. What nobody has is lost, and the fetch ends by saying so (or begins
 * anew, when nothing has come yet); else the one who has most of what is missing feeds us, and the
 * directory is asked again when that has come.
 *
 * A chunk can wander while we ask: from one that we ask later, and that goes before, to one that we
 * have asked. So a survey during which a copy went away proves nothing, and begins again.
 */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "room.h"

#define SURVEY_ANSWER_NS UINT64_C(250000000)

static void survey_next(struct control *c, struct fetch *f);
static void survey_ask(struct control *c, struct fetch *f);

static uint64_t *survey_found(struct control *c, const struct fetch *f)
{
	return (uint64_t *)(void *)scratch_at(c, f->survey.found);
}

void fetch_survey_end(struct control *c, struct fetch *f)
{
	if (f->survey.found)
		allocator_give(&c->flow->buffers.scratch, f->survey.found);
	f->survey = (struct fetch_survey){.found = 0};
}

/* Nothing is certain: soon again. */
static void survey_again(struct control *c, struct fetch *f)
{
	fetch_survey_end(c, f);
	f->attempts++;
	fetch_rest(c, f);
}

static void survey_lost(struct control *c, struct fetch *f, uint32_t missing)
{
	uint32_t chunks = fetch_chunks(f), first, end;
	struct text t = {.length = 0}, named = {.length = 0};

	first = end = chunks_after(survey_found(c, f), 0, chunks, 0);
	chunks_run(survey_found(c, f), &end, chunks);
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
	text_add_object(&named, &f->by_id.id, objects_name(c, f->slot));
	text_add(&named, ": ");
	text_add(&named, t.bytes);
	control_log(c, CONTROL_LOG_WARNING, &named);
	fetch_fail(c, f, -ENODATA, t.bytes);
}

/* To whom nothing has come it is an object that nobody has put yet. */
static void survey_begin_anew(struct control *c, struct fetch *f)
{
	uint32_t slot = f->slot;

	fetch_end(c, f);
	objects_at(c, slot)->fetch = NULL;
	objects_disown(c, &c->table->slot[slot].id, c->table->slot[slot].generation);
	objects_replace(c, slot, "nobody has it any more: get it again");
}

static void survey_conclude(struct control *c, struct fetch *f)
{
	const uint64_t *map = fetch_map(c, f);
	uint32_t chunks = fetch_chunks(f), missing, offer = f->survey.best_offer;
	struct node *best = peers_node(c, f->survey.best);

	if (map)
		chunks_add(survey_found(c, f), map, chunks);
	missing = chunks_missing(survey_found(c, f), 0, chunks);
	if (missing > 0 && map && chunks_missing(map, 0, chunks) == chunks) {
		survey_begin_anew(c, f);
		return;
	}
	if (missing > 0) {
		survey_lost(c, f, missing);
		return;
	}
	if (offer == 0 || map == NULL) { /* all of it is here, or was there a moment ago */
		survey_again(c, f);
		return;
	}
	missing = chunks_missing(map, 0, chunks);
	fetch_survey_end(c, f);
	fetch_connect(c, f, best);
	f->piece_left = missing > offer ? missing - offer : 0;
}

static bool survey_has(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct fetch_survey *s = &f->survey;
	const struct message_stream *m = answer ? &answer->stream : NULL;
	const uint64_t *map = fetch_map(c, f);

	f->call = NULL;
	if (m == NULL || map == NULL) { /* the members will agree on what has become of it */
		survey_again(c, f);
		return false;
	}
	if (m->first != s->at || m->count > fetch_chunks(f) - s->at) {
		survey_again(c, f);
		return false;
	}
	for (uint32_t i = 0; i < m->skips; i++) {
		uint32_t first = m->skip[i].first, count = m->skip[i].count;

		chunks_set(survey_found(c, f), first, count);
		s->offer += chunks_missing(map, first, first + count);
	}
	s->at += m->count;
	if (s->at < fetch_chunks(f)) {
		survey_ask(c, f);
		return false;
	}
	if (s->offer > s->best_offer) {
		s->best = s->node;
		s->best_offer = s->offer;
	}
	survey_next(c, f);
	return false;
}

static void survey_ask(struct control *c, struct fetch *f)
{
	struct message m = {.kind = MESSAGE_PIECES};

	m.stream.id = f->by_id.id;
	m.stream.generation = f->generation;
	m.stream.chunk_bytes = f->chunk_bytes;
	m.stream.first = f->survey.at;
	m.stream.count = fetch_chunks(f) - f->survey.at;
	f->call = calls_start(c, peers_node(c, f->survey.node), &m, TABLE_SLOT_NONE,
			      SURVEY_ANSWER_NS, survey_has, f);
	if (f->call == NULL)
		survey_again(c, f);
}

static bool survey_named(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct fetch_survey *s = &f->survey;
	const struct message_got *got = answer ? &answer->got : NULL;

	f->call = NULL;
	if (got == NULL || got->what != MESSAGE_GOT_PIECE || got->generation != f->generation ||
	    (s->begun && got->departed != s->departed)) {
		survey_again(c, f);
		return false;
	}
	s->departed = got->departed;
	s->begun = true;
	if (got->holder == MESSAGE_NODE_NONE) {
		survey_conclude(c, f);
		return false;
	}
	if (peers_node(c, got->holder) == NULL ||
	    (s->node != MESSAGE_NODE_NONE && got->holder <= s->node)) {
		survey_again(c, f);
		return false;
	}
	s->node = got->holder;
	s->at = s->offer = 0;
	survey_ask(c, f);
	return false;
}

static void survey_next(struct control *c, struct fetch *f)
{
	f->call = fetch_question(c, f, MESSAGE_GET_PIECE, f->survey.node, c->config.call_ns,
				 survey_named);
	if (f->call == NULL)
		survey_again(c, f);
}

void fetch_survey(struct control *c, struct fetch *f)
{
	const uint64_t *map = fetch_map(c, f);

	timers_cancel(&c->timers, &f->timer);
	f->state = FETCH_SURVEY;
	f->survey = (struct fetch_survey){.node = MESSAGE_NODE_NONE};
	if (map)
		f->survey.found = buffers_bitmap(c, fetch_chunks(f));
	if (f->survey.found == 0) {
		survey_again(c, f);
		return;
	}
	chunks_add(survey_found(c, f), map, fetch_chunks(f));
	survey_next(c, f);
}
