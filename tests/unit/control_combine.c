/* SPDX-License-Identifier: BSD-3-Clause */
/* What a coordinator says of an object that is built here stays as it was said first, and takes the
 * place of no original: parts are checked against the message they come with. */
#include <errno.h>
#include "control_peers.h"
#include "internal/reduce.h"

enum { COORDINATOR = 1, CHUNK = 1408 };

/* One whose part of the directory the coordinator keeps. */
static struct object_id target_of(struct fixture *f)
{
	struct object_id id = {0};

	while (control_shard(f->core, &id) != peers_node(f->core, COORDINATOR))
		id.bytes[0]++;
	return id;
}

/* Two chunks, put together from values of which the first is named. */
static struct message combine_of_two(struct fixture *f, struct message_part *part)
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
	m.combine.flags = MESSAGE_COMBINE_HOLD | MESSAGE_COMBINE_VALUES;
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
	m = combine_of_two(f, &part);
	assert_int_equal(answer_to(f, &m), 0);
	assert_int_equal(answer_to(f, &m), 0);
	m.combine.size = 64 * CHUNK;
	part.to = 63; /* of what is there only two are */
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = combine_of_two(f, &part);
	m.combine.chunk_bytes = 64;
	part.to = 40;
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = combine_of_two(f, &part);
	m.combine.flags = MESSAGE_COMBINE_HOLD;
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = combine_of_two(f, &part);
	m.combine.op = REDUCE_SUM;
	m.combine.dtype = REDUCE_F32;
	part.count = 2;
	assert_int_equal(answer_to(f, &m), -EPROTO);
	m = combine_of_two(f, &part);
	part.to = 1;
	assert_int_equal(answer_to(f, &m), 0);
	assert_int_equal(f->core->combines.parts.used, 2);
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
	m = combine_of_two(f, &part);
	assert_int_equal(objects_insert(f->core, &m.combine.id, "", 2 * CHUNK, 3, CHUNK,
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_stays_as_it_is),
		cmocka_unit_test(an_original_is_the_directory_s_to_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
