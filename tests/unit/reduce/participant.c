/* SPDX-License-Identifier: BSD-3-Clause */
/* What a coordinator says of an object that is built here stays as it was said first, and takes the
 * place of no original: parts are checked against the message they come with. */
#include <errno.h>
#include "fixtures/control_peers.h"
#include "internal/reduce.h"

enum { COORDINATOR = 1, CHUNK = 1408 };

/* One whose part of the directory the coordinator keeps. */
static struct object_id target_of(struct fixture *f)
{
	struct object_id id = {0};

	while (ownership_shard(f->core, &id) != peers_node(f->core, COORDINATOR))
		id.bytes[0]++;
	return id;
}

/* Two chunks, put together from values of which the first is named. */
static struct message sum_of_two(struct fixture *f, struct message_part *part)
{
	struct message m = {.kind = MESSAGE_COMBINE, .request = 9};

	*part = (struct message_part){
		.id = {{1}}, .generation = 3, .node = COORDINATOR, .count = 1};
	m.combine.id = m.combine.target = target_of(f);
	m.combine.generation = 7;
	m.combine.reduce = 5;
	m.combine.size = 2 * CHUNK;
	m.combine.chunk_bytes = CHUNK;
	m.combine.need = 2;
	m.combine.flags = MESSAGE_COMBINE_WITHHOLD | MESSAGE_COMBINE_VALUES;
	m.combine.count = 1;
	m.combine.parts = part;
	return m;
}

static int32_t answer_to(struct fixture *f, const struct message *m)
{
	f->sent_count = 0;
	control_message(f->core, conn_of(COORDINATOR), m, f->now_ns);
	for (uint32_t i = 0; i < f->sent_count; i++)
		if (f->sent[i].m.kind == MESSAGE_REPLY && f->sent[i].m.request == m->request)
			return f->sent[i].m.reply.status;
	return 1;
}

static void the_whole_stays_as_it_is(void **state)
{
	struct fixture *f = begin(false);
	struct message_part part;
	struct message m;

	meet(f, COORDINATOR);
	m = sum_of_two(f, &part);
	assert_int_equal(answer_to(f, &m), 0);
	assert_int_equal(answer_to(f, &m), 0);
	m.combine.size = 64 * CHUNK;
	part.to = 63; /* of what is there only two are */
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = sum_of_two(f, &part);
	m.combine.chunk_bytes = 64;
	part.to = 40;
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = sum_of_two(f, &part);
	m.combine.flags = MESSAGE_COMBINE_WITHHOLD;
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = sum_of_two(f, &part);
	m.combine.op = REDUCE_SUM;
	m.combine.dtype = REDUCE_F32;
	part.count = 2;
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = sum_of_two(f, &part);
	part.to = 1;
	assert_int_equal(answer_to(f, &m), 0);
	assert_int_equal(f->core->participant->participants.parts.used, 2);
	end(f);
}

/* That it was silent need not be told any more when the part is to come from another. */
static void silence_of_one_who_is_done_without_is_not_told(void **state)
{
	struct message reply = {.kind = MESSAGE_REPLY};
	struct fixture *f = begin(false);
	struct message_part part[2];
	uint32_t told = 0;
	struct message m;

	for (uint32_t n = COORDINATOR; n < NODES; n++)
		meet(f, n);
	m = sum_of_two(f, part);
	m.combine.count = 2;
	part[1] = part[0];
	part[1].to = 1;
	part[0].node = 2;
	part[1].node = 3;
	assert_int_equal(answer_to(f, &m), 0);
	f->sent_count = 0;
	run(f, 2 * PULL_KEEP_NS);
	for (uint32_t i = 0; i < f->sent_count; i++)
		if (f->sent[i].m.kind == MESSAGE_COMBINED) {
			assert_int_equal(f->sent[i].m.combined.what, MESSAGE_COMBINED_SILENT);
			told = f->sent[i].m.combined.part_node;
			reply.request = f->sent[i].m.request;
		}
	assert_int_equal(sent(f, MESSAGE_COMBINED), 1); /* one at a time */
	part[told == 2].node = 4;
	assert_int_equal(answer_to(f, &m), 0);
	control_message(f->core, conn_of(COORDINATOR), &reply, f->now_ns);
	assert_int_equal(sent(f, MESSAGE_COMBINED), 0);
	end(f);
}

static void refused(struct fixture *f, uint16_t op, uint32_t id)
{
	struct record r = {.op = EVENT_REFUSED};

	r.refused.refused_op = op;
	r.refused.id = id;
	control_event(f->core, 0, &r, f->now_ns);
}

/* The worker has not taken the buffer: it is dropped, and free when that was answered as well. */
static void what_the_worker_refuses_is_given_up_once(void **state)
{
	struct fixture *f = begin(false);
	struct message_part part;
	struct record r = {0};
	struct message m;
	uint32_t buffer;

	meet(f, COORDINATOR);
	m = sum_of_two(f, &part);
	m.combine.flags = 0;
	m.combine.op = REDUCE_SUM;
	m.combine.dtype = REDUCE_F32;
	part.count = 2;
	assert_int_equal(answer_to(f, &m), 0);
	while (r.op != COMMAND_BUFFER)
		assert_int_equal(control_commands(f->core, 0, &r, 1), 1);
	buffer = r.buffer.buffer;
	refused(f, COMMAND_BUFFER, buffer);
	while (r.op != COMMAND_DROP_BUFFER)
		assert_int_equal(control_commands(f->core, 0, &r, 1), 1);
	assert_int_equal(f->core->flow->buffers.stages.used, 1);
	refused(f, COMMAND_DROP_BUFFER, buffer ^ 1u << 31); /* nobody's */
	assert_int_equal(f->core->flow->buffers.stages.used, 1);
	for (int k = 0; k < 2; k++) {
		refused(f, COMMAND_DROP_BUFFER, buffer);
		assert_int_equal(f->core->flow->buffers.stages.used, 0);
	}
	end(f);
}

#define ANSWERS(status, ...)                                \
	do {                                                \
		m = sum_of_two(f, &part);                   \
		m.combine.generation = ++generation;        \
		__VA_ARGS__;                                \
		assert_int_equal(answer_to(f, &m), status); \
	} while (0)
#define REFUSED(...) ANSWERS(-EINVAL, __VA_ARGS__)
#define SUM(type) \
	m.combine.flags = 0, m.combine.op = REDUCE_SUM, m.combine.dtype = type, part.count = 2

static void what_cannot_be_built_is_refused(void **state)
{
	struct fixture *f = begin(false);
	uint64_t generation = 10;
	struct message_part part;
	struct message m;

	meet(f, COORDINATOR);
	REFUSED(m.combine.generation = 0);
	REFUSED(m.combine.size = 0);
	REFUSED(m.combine.chunk_bytes = CHUNK_BYTES_MIN - 64);
	REFUSED(m.combine.chunk_bytes = CHUNK_BYTES_MAX + 64);
	REFUSED(m.combine.chunk_bytes = CHUNK + 1);
	REFUSED(m.combine.need = 0);
	REFUSED(m.combine.need = MESSAGE_PARTS_MAX + 1);
	REFUSED(m.combine.need = 1, m.combine.count = 2);
	REFUSED(m.combine.scale = UINT16_MAX + 1);
	REFUSED(m.combine.flags = MESSAGE_COMBINE_WITHHOLD | MESSAGE_COMBINE_HIDDEN);
	REFUSED(m.combine.flags = 1u << 31);
	REFUSED(SUM(REDUCE_F32), m.combine.op = REDUCE_OP_END);
	REFUSED(SUM(0));
	REFUSED(SUM(REDUCE_DTYPE_END));
	REFUSED(SUM(REDUCE_F32), m.combine.size -= 2);
	REFUSED(SUM(REDUCE_F32), part.count = 1);
	REFUSED(part.node = NODES_MAX);
	REFUSED(part.count = 0);
	REFUSED(part.to = 2);
	REFUSED(part.to = 1, part.count = 2);
	REFUSED(part.first = 1);		    /* as large as what is built */
	REFUSED(part.size = CHUNK, part.first = 1); /* of its own size */
	REFUSED(m.combine.size = 64 * CHUNK, part.count = OBJECT_INLINE_MAX / CHUNK + 1);
	assert_int_equal(f->core->participant->participants.pool.used, 0);
	ANSWERS(0, SUM(REDUCE_F32), m.combine.scale = UINT16_MAX);
	ANSWERS(0, SUM(REDUCE_F64), m.combine.need = MESSAGE_PARTS_MAX);
	ANSWERS(0, part.size = 2 * CHUNK, part.first = 1);
	ANSWERS(0, part.to = 1);
	ANSWERS(0, m.combine.size = 64 * CHUNK, part.count = OBJECT_INLINE_MAX / CHUNK);
	assert_int_equal(f->core->participant->participants.pool.used, 1);
	end(f);
}

/* The coordinator does not know of it yet, or is about to have it removed. */
static void an_original_is_the_directory_s_to_end(void **state)
{
	struct fixture *f = begin(false);
	struct message remove = {.kind = MESSAGE_REMOVE, .request = 8};
	struct message_part part;
	struct message m;
	uint32_t slot;

	meet(f, COORDINATOR);
	m = sum_of_two(f, &part);
	assert_int_equal(objects_insert(f->core, &m.combine.id, "", NULL, 2 * CHUNK, 3, CHUNK,
					OBJECT_CREATING, &slot),
			 0);
	objects_seal(f->core, slot, true);
	assert_int_equal(answer_to(f, &m), -EAGAIN);
	assert_true(objects_is(f->core, slot, 3));
	remove.object.id = m.combine.id;
	remove.object.generation = 3;
	assert_int_equal(answer_to(f, &remove), 0);
	assert_int_equal(answer_to(f, &m), 0);
	end(f);
}

enum { SUM_CHUNKS = 64, EARLY = 1, LATE = 2 };

/* A sum of what those two have, as far as it was said until now. */
static struct message sum_of(struct fixture *f, struct message_part *part, uint32_t from)
{
	struct message m = sum_of_two(f, part);

	m.combine.size = SUM_CHUNKS * CHUNK;
	m.combine.op = REDUCE_SUM;
	m.combine.dtype = REDUCE_F32;
	m.combine.flags = 0;
	part->node = from;
	part->id.bytes[0] = (uint8_t)from;
	part->count = SUM_CHUNKS;
	return m;
}

static struct part *part_from(struct fixture *f, const struct participant *k, uint32_t from)
{
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_participant);

		if (p->node == peers_node(f->core, from))
			return p;
	}
	return NULL;
}

/* All of it has been taken in. */
static void part_comes(struct fixture *f, const struct participant *k, uint32_t from)
{
	struct part *p = part_from(f, k, from);
	struct stage *s = objects_at(f->core, k->slot)->stage;
	struct record r = {.op = EVENT_IN_DONE};

	memset(f->store + ((const uint8_t *)buffers_given(f->core, s, p) - f->store), 0xff,
	       SUM_CHUNKS / 8);
	r.edge.edge = list_item(list_first(&p->edges), struct edge, of_owner)->handle;
	control_event(f->core, 0, &r, f->now_ns);
}

/* Its node says that it sends. */
static void part_is_answered(struct fixture *f, const struct participant *k, uint32_t from)
{
	struct message m = {.kind = MESSAGE_REPLY};

	for (uint32_t i = 0; i < f->sent_count; i++)
		if (f->sent[i].m.kind == MESSAGE_STREAM && f->sent[i].conn == conn_of(from))
			m.request = f->sent[i].m.request;
	control_message(f->core, conn_of(from), &m, f->now_ns);
	assert_int_equal(part_from(f, k, from)->state, PART_STREAM);
}

static void sum_is_done(struct fixture *f, const struct participant *k)
{
	struct record r = {.op = EVENT_BUFFER_DONE};

	r.progress.buffer = objects_at(f->core, k->slot)->stage->handle;
	r.progress.ready_bytes = k->size;
	control_event(f->core, 0, &r, f->now_ns);
	assert_true(k->done);
}

/* A part that is all in before its node has said that it comes may have come at any time before the
 * others were asked for: the link has not carried it along with them. */
static void what_came_before_is_not_what_the_link_carries(void **state)
{
	struct fixture *f = begin(false);
	const struct fanout_link *link = &f->core->cluster->links.all;
	uint64_t bytes = (uint64_t)SUM_CHUNKS * CHUNK;
	struct message_part part;
	struct participant *k;
	struct message m;

	meet(f, EARLY);
	meet(f, LATE);
	m = sum_of(f, &part, EARLY);
	assert_int_equal(answer_to(f, &m), 0);
	k = participant_of(f->core, &m.combine.id);
	f->now_ns += MS;
	part_comes(f, k, EARLY);
	assert_int_equal(part_from(f, k, EARLY)->state, PART_DONE);
	f->now_ns += 20 * MS;
	m = sum_of(f, &part, LATE);
	assert_int_equal(answer_to(f, &m), 0);
	f->now_ns += MS;
	part_is_answered(f, k, LATE);
	f->now_ns += 9 * MS;
	part_comes(f, k, LATE);
	sum_is_done(f, k);
	assert_true(link->rate_seen);
	assert_in_range(link->bytes_per_s, bytes * 100, bytes * 100 * 5 / 4); /* of 10 ms */
	end(f);
}

/* What has left last of that kind. */
static struct message last(struct fixture *f, uint32_t kind)
{
	struct message m = {.kind = MESSAGE_NONE};

	for (uint32_t i = 0; i < f->sent_count; i++)
		if (f->sent[i].m.kind == kind)
			m = f->sent[i].m;
	assert_int_equal(m.kind, kind);
	return m;
}

static void answer_have(struct fixture *f, struct message have, int32_t status)
{
	struct message m = {.kind = MESSAGE_REPLY, .request = have.request};

	m.reply.status = status;
	m.reply.generation = have.have.generation;
	f->sent_count = 0;
	control_message(f->core, conn_of(COORDINATOR), &m, f->now_ns);
}

/* A sum to be held, of two parts; the directory has agreed to it. */
static struct message held_sum(struct fixture *f, struct message_part *part)
{
	struct message m;

	meet(f, EARLY);
	meet(f, LATE);
	for (uint32_t from = EARLY; from <= LATE; from++) {
		m = sum_of(f, part, from);
		m.combine.flags = MESSAGE_COMBINE_WITHHOLD;
		assert_int_equal(answer_to(f, &m), 0);
		if (from == EARLY)
			answer_have(f, last(f, MESSAGE_HAVE), 0);
	}
	return m;
}

static uint32_t told_within(struct fixture *f, uint64_t for_ns)
{
	uint32_t count = 0;

	for (uint64_t at_ns = 0; at_ns < for_ns; at_ns += MS)
		run(f, MS);
	for (uint32_t i = 0; i < f->sent_count; i++)
		count += f->sent[i].m.kind == MESSAGE_ANNOUNCED &&
			 f->sent[i].conn == conn_of(COORDINATOR);
	return count;
}

/* The directory, which has asked for all, hears that a sum is built whose reduce has ended by then,
 * and refuses that. It must hear that the sum is complete before it hears that this was all: or it
 * would end it for all who have it. */
static void a_result_that_is_refused_is_told_again_first(void **state)
{
	struct message finish = {.kind = MESSAGE_FINISH, .request = 8};
	struct fixture *f = begin(false);
	struct message_part part;
	struct message m, have;

	m = held_sum(f, &part);
	peers_node(f->core, COORDINATOR)->epoch++;
	resync_begin(f->core);
	run(f, MS);
	have = last(f, MESSAGE_HAVE);
	assert_true(have.have.made);
	sum_is_done(f, participant_of(f->core, &m.combine.id));
	finish.combined.target = m.combine.id;
	finish.combined.generation = m.combine.generation;
	assert_int_equal(answer_to(f, &finish), 0);
	assert_int_equal(told_within(f, 100 * MS), 0);
	answer_have(f, have, -ESTALE);
	have = last(f, MESSAGE_HAVE);
	assert_int_equal(have.have.state, MESSAGE_COPY_COMPLETE);
	assert_false(have.have.made);
	assert_int_equal(told_within(f, 100 * MS), 0);
	answer_have(f, have, 0);
	assert_int_equal(told_within(f, 100 * MS), 1);
	end(f);
}

/* What was out when all was asked for is of an earlier life, and so is its answer: it is told
 * again, and that this was all only then. */
static void what_was_out_is_told_again_first(void **state)
{
	struct fixture *f = begin(false);
	struct message_part part;
	struct message m, have, again;

	meet(f, EARLY);
	m = sum_of(f, &part, EARLY);
	assert_int_equal(answer_to(f, &m), 0);
	have = last(f, MESSAGE_HAVE);
	peers_node(f->core, COORDINATOR)->epoch++;
	resync_begin(f->core);
	assert_int_equal(told_within(f, 100 * MS), 0);
	answer_have(f, have, 0);
	run(f, MS);
	again = last(f, MESSAGE_HAVE);
	assert_int_equal(again.have.epoch, have.have.epoch + 1);
	assert_int_equal(told_within(f, 100 * MS), 0);
	answer_have(f, again, 0);
	assert_int_equal(told_within(f, 100 * MS), 1);
	end(f);
}

/* Answers what it has told its coordinator. */
static void answer_combined(struct fixture *f, int32_t status)
{
	uint32_t count = f->sent_count;

	for (uint32_t i = 0; i < count; i++) {
		struct message m = {.kind = MESSAGE_REPLY, .request = f->sent[i].m.request};

		m.reply.status = status;
		if (f->sent[i].m.kind == MESSAGE_COMBINED)
			control_message(f->core, conn_of(COORDINATOR), &m, f->now_ns);
	}
	f->sent_count = 0;
}

/* All of it is there but what is held, and nobody says anything but that it is known, or not. */
static void what_is_held_stays_as_long_as_its_coordinator_knows_of_it(void **state)
{
	struct fixture *f = begin(false);
	const uint64_t coordinator_lost_ns = 100 * MS;
	struct message_part part;
	struct message m;

	f->core->config.coordinator_lost_ns = coordinator_lost_ns;
	m = held_sum(f, &part);
	sum_is_done(f, participant_of(f->core, &m.combine.id));
	for (uint64_t at_ns = 0; at_ns < 3 * coordinator_lost_ns; at_ns += 10 * MS) {
		answer_combined(f, 0);
		run(f, 10 * MS);
	}
	assert_non_null(participant_of(f->core, &m.combine.id));
	for (uint64_t at_ns = 0; at_ns < 3 * coordinator_lost_ns; at_ns += 10 * MS) {
		answer_combined(f, -ESTALE);
		run(f, 10 * MS);
		assert_true(at_ns >= coordinator_lost_ns / 2 ||
			    participant_of(f->core, &m.combine.id));
	}
	assert_null(participant_of(f->core, &m.combine.id));
	end(f);
}

/* Who is told of a target that it knows nothing of says so. */
static void a_coordinator_says_what_it_does_not_know_of(void **state)
{
	struct message m = {.kind = MESSAGE_COMBINED, .request = 9};
	struct fixture *f = begin(false);

	meet(f, COORDINATOR);
	m.combined.id = m.combined.target = id_for(f, 0);
	m.combined.generation = 7;
	m.combined.reduce = 5;
	m.combined.what = MESSAGE_COMBINED_DONE;
	m.combined.part_node = MESSAGE_NODE_NONE;
	assert_int_equal(answer_to(f, &m), -ESTALE);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_came_before_is_not_what_the_link_carries),
		cmocka_unit_test(the_whole_stays_as_it_is),
		cmocka_unit_test(what_cannot_be_built_is_refused),
		cmocka_unit_test(silence_of_one_who_is_done_without_is_not_told),
		cmocka_unit_test(what_the_worker_refuses_is_given_up_once),
		cmocka_unit_test(an_original_is_the_directory_s_to_end),
		cmocka_unit_test(a_result_that_is_refused_is_told_again_first),
		cmocka_unit_test(what_was_out_is_told_again_first),
		cmocka_unit_test(what_is_held_stays_as_long_as_its_coordinator_knows_of_it),
		cmocka_unit_test(a_coordinator_says_what_it_does_not_know_of),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
