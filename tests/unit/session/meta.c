/* SPDX-License-Identifier: BSD-3-Clause */
/* The metadata of an object: with every copy, in every answer, after every death; and who is
 * refused. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/array_meta.h"

enum { NODES = 4, PUTTER = 1, READER = 2, SMALL = 1000 };

#define STORE (UINT64_C(4) << 20)
#define LARGE UINT64_C(300000)
#define WHEN  (20 * WORLD_SECOND)

static const struct object_meta note = {5, "\x01note"};

/* A description of a vector of f32. */
static struct object_meta vector(uint64_t elements)
{
	const struct array_meta a = {
		.dtype = REDUCE_F32, .order = 'C', .dims = 1, .shape = {elements}, .text = "<f4"};
	struct object_meta meta;

	assert_true(array_meta_write(&a, &meta));
	return meta;
}

static struct world *begin(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	world_keep_all(w);
	world_run(w, WORLD_SECOND);
	return w;
}

static bool same(const struct object_meta *a, const struct object_meta *b)
{
	return a->bytes == b->bytes && memcmp(a->data, b->data, b->bytes) == 0;
}

static uint32_t create_send(struct world *w, uint32_t node, const char *name, uint64_t size,
			    struct object_meta meta)
{
	struct session_request r = world_request(SESSION_CREATE, name);

	r.size = size;
	r.meta = meta;
	r.pin = 7;
	return world_send(w, node, 0, &r);
}

/* When it has its place: fills and seals it. */
static void create_end(struct world *w, uint32_t node, uint32_t seq)
{
	struct session_request seal = world_request(SESSION_SEAL, NULL);
	struct world_reply *a = world_wait(w, node, seq, WHEN);

	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	world_fill(w->node[node].store + a->reply.offset, a->reply.size, 3);
	seal.slot = a->reply.slot;
	seal.generation = a->reply.generation;
	assert_int_equal(world_call(w, node, 0, &seal, WHEN)->reply.status, 0);
}

/* On PUTTER. */
static void create(struct world *w, const char *name, struct object_meta meta)
{
	create_end(w, PUTTER, create_send(w, PUTTER, name, LARGE, meta));
}

static int put(struct world *w, const char *name, struct object_meta meta)
{
	static struct {
		struct session_request r;
		uint8_t bytes[SMALL];
	} packet;
	struct world_reply *a;

	packet.r = world_request(SESSION_PUT, name);
	packet.r.size = SMALL;
	packet.r.meta = meta;
	packet.r.magic = SESSION_MAGIC;
	packet.r.version = SESSION_VERSION;
	packet.r.seq = ++w->node[PUTTER].seq;
	world_fill(packet.bytes, SMALL, 3);
	control_session_request(w->node[PUTTER].core, 0, &packet, sizeof(packet.r) + SMALL,
				w->now_ns);
	a = world_wait(w, PUTTER, packet.r.seq, WHEN);
	assert_non_null(a);
	return a->reply.status;
}

static void check_get(struct world *w, uint32_t node, const char *name,
		      const struct object_meta *meta)
{
	struct session_request r = world_request(SESSION_GET, name);
	struct object_meta told;
	struct world_reply *a;

	r.timeout_ns = (int64_t)WHEN;
	a = world_call(w, node, 0, &r, WHEN);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	told = world_meta(w, node, a->reply.slot);
	assert_true(same(&told, meta));
}

static void check_told(struct world *w, uint32_t node, uint16_t op, const char *name,
		       const struct object_meta *meta)
{
	struct session_request r = world_request(op, name);
	struct world_reply *a = world_call(w, node, 0, &r, WHEN);

	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(a->tail_bytes, sizeof(a->object));
	assert_true(same(&a->object.meta, meta));
}

static void check_everywhere(struct world *w, const char *name, const struct object_meta *meta)
{
	for (uint32_t i = 0; i < NODES; i++) {
		if (!w->node[i].core)
			continue;
		check_get(w, i, name, meta);
		check_told(w, i, SESSION_STAT, name, meta);
		check_told(w, i, SESSION_LIST, name, meta);
	}
}

static void a_streamed_object_has_them_on_all_nodes(void **state)
{
	struct world *w = begin();
	struct object_meta array = vector(LARGE / 4);

	create(w, "x", note);
	check_everywhere(w, "x", &note);
	create(w, "array", array);
	check_everywhere(w, "array", &array);
	world_end(w);
}

/* [G2.1] */
static void a_reader_has_them_before_the_bytes(void **state)
{
	struct world *w = begin();
	struct session_request r = world_request(SESSION_CREATE, "x");

	r.size = LARGE;
	r.meta = note;
	r.pin = 7;
	assert_int_equal(world_call(w, PUTTER, 0, &r, WHEN)->reply.status, 0);
	check_get(w, READER, "x", &note);
	check_told(w, READER, SESSION_STAT, "x", &note);
	world_free(w);
}

/* What stands behind them in the table is another object's. */
static void nothing_but_them_is_announced(void **state)
{
	static const uint8_t zero[OBJECT_META_BYTES];
	struct world *w = begin();
	struct control *c = w->node[PUTTER].core;
	struct object_id id = world_id("x");
	struct message m;

	assert_int_equal(world_put(w, PUTTER, 0, "x", 100, 1), 0);
	assert_int_equal(world_put(w, PUTTER, 0, "y", 100, 1), 0);
	announce_have(c, slots_find(c, &id), &m);
	assert_int_equal(m.have.meta.bytes, 0);
	assert_memory_equal(m.have.meta.data, zero, sizeof(zero));
	world_free(w);
}

/* A copy has to go first, which another node is asked about. */
static void a_create_that_waits_for_room_keeps_them(void **state)
{
	const uint64_t size = STORE * 2 / 5;
	struct world *w = begin();
	uint32_t seq;

	assert_int_equal(world_put(w, PUTTER, 0, "a", size, 1), 0);
	assert_int_equal(world_get(w, READER, 0, "a", size, 1, -1), 0);
	world_unpin(w, READER, 0);
	assert_int_equal(world_put(w, READER, 0, "b", size, 2), 0);
	world_run(w, WORLD_SECOND);
	seq = create_send(w, READER, "x", size, note);
	assert_false(list_empty(&w->node[READER].core->session->sessions.creates));
	create_end(w, READER, seq);
	check_get(w, PUTTER, "x", &note);
	check_told(w, PUTTER, SESSION_STAT, "x", &note);
	world_end(w);
}

/* The owner of the id has a tombstone that the creator has not heard of. */
static void a_create_with_a_later_generation_keeps_them(void **state)
{
	struct world *w = begin();
	struct control *c = w->node[PUTTER].core;
	const struct message_tombstone b = {.id = world_id("later"),
					    .generation = env_generation(c) + 10 * WORLD_SECOND,
					    .node = MESSAGE_NODE_NONE};
	uint32_t owner = ownership_shard(c, &b.id)->number;

	assert_int_not_equal(owner, PUTTER);
	directory_take_tombstone(&w->node[owner].core->directory->shard, &b);
	create(w, "later", note);
	assert_true(c->table->slot[slots_find(c, &b.id)].generation > b.generation);
	check_everywhere(w, "later", &note);
	world_end(w);
}

static void a_small_object_has_them_with_its_value(void **state)
{
	struct world *w = begin();

	assert_int_equal(put(w, "x", note), 0);
	check_everywhere(w, "x", &note);
	assert_int_equal(put(w, "plain", (struct object_meta){0}), 0);
	check_told(w, READER, SESSION_STAT, "plain", &(struct object_meta){0});
	world_end(w);
}

static bool owner_is_dead(struct world *w, void *arg)
{
	const uint32_t *owner = arg;

	return w->node[(*owner + 1) % NODES].core->cluster->peers.nodes[*owner].member ==
	       MEMBER_DEAD;
}

/* The shard owner dies, and another node owns the id: holders announce, second copies stay. */
static void the_next_owner_knows_them(void **state)
{
	for (uint32_t i = 0; i < 12; i++) {
		struct world *w = begin();
		char name[8];
		struct object_id id;
		uint32_t owner;

		snprintf(name, sizeof(name), "x%u", i);
		id = world_id(name);
		if (i % 2)
			create(w, name, note);
		else
			assert_int_equal(put(w, name, note), 0);
		world_run(w, WORLD_SECOND);
		owner = ownership_shard(w->node[0].core, &id)->number;
		if (owner == PUTTER && i % 2) { /* the only copy */
			world_free(w);
			continue;
		}
		world_kill_node(w, owner);
		assert_true(world_until(w, owner_is_dead, &owner, WHEN));
		world_run(w, 12 * WORLD_SECOND);
		check_everywhere(w, name, &note);
		world_free(w);
	}
}

/* Together with its metadata it would be counted as a few bytes, and those put in front of its
 * place. */
static void a_size_near_the_end_of_numbers_is_refused(void **state)
{
	struct world *w = begin();
	struct session_request r = world_request(SESSION_CREATE, "huge");
	struct world_reply *a;
	uint8_t before[LARGE];

	create(w, "x", note);
	memcpy(before, w->node[PUTTER].store, sizeof(before));
	r.meta = note;
	r.pin = 8;
	for (uint64_t less = 0; less < OBJECT_META_BYTES; less++) {
		r.size = UINT64_MAX - less;
		a = world_call(w, PUTTER, 0, &r, WHEN);
		assert_non_null(a);
		assert_int_equal(a->reply.status, -EFBIG);
	}
	assert_memory_equal(before, w->node[PUTTER].store, sizeof(before));
	world_end(w);
}

static int refused(struct world *w, uint16_t op, struct object_meta meta, uint64_t size)
{
	struct session_request r = world_request(op, "new");
	struct world_reply *a;

	r.size = size;
	r.meta = meta;
	r.timeout_ns = 0;
	a = world_call(w, PUTTER, 0, &r, WHEN);
	assert_non_null(a);
	if (a->reply.status)
		assert_true(strlen(a->reply.text) > 0);
	return a->reply.status;
}

static void what_is_no_metadata_is_refused(void **state)
{
	struct world *w = begin();
	struct object_meta bad = vector(10);

	assert_int_equal(refused(w, SESSION_CREATE, (struct object_meta){.bytes = 129}, 40),
			 -EINVAL);
	assert_int_equal(refused(w, SESSION_GET, note, 0), -EINVAL);
	assert_int_equal(refused(w, SESSION_STAT, note, 0), -EINVAL);
	assert_int_equal(refused(w, SESSION_CREATE, vector(10), 44), -EINVAL);
	assert_int_equal(refused(w, SESSION_CREATE, vector(UINT64_MAX / 2), 40), -EINVAL);
	bad.bytes--;
	assert_int_equal(refused(w, SESSION_CREATE, bad, 40), -EINVAL);
	bad = vector(10);
	bad.data[3] = 9;
	assert_int_equal(refused(w, SESSION_CREATE, bad, 40), -EINVAL);
	assert_int_equal(refused(w, SESSION_CREATE, vector(10), 40), 0);
	world_free(w);
}

static struct object_meta row(uint32_t dtype, const char *text, uint64_t length)
{
	struct object_meta out = {(uint8_t)(16 + strlen(text)),
				  {ARRAY_META_MARK, (uint8_t)dtype, 'C', 1, (uint8_t)strlen(text)}};

	for (uint32_t k = 0; k < 8; k++)
		out.data[8 + k] = (uint8_t)(length >> 8 * k);
	memcpy(out.data + 16, text, strlen(text));
	return out;
}

static void the_type_and_its_text_are_one(void **state)
{
	const char *const others[] = {">f4", "<i4", "<f8", "|V4", "bfloat16"};
	struct object_meta meta;
	struct array_meta a;

	for (uint32_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		meta = row(REDUCE_F32, others[i], 10);
		assert_false(array_meta_read(&meta, &a));
		a = (struct array_meta){.dtype = REDUCE_F32, .order = 'C'};
		strcpy(a.text, others[i]);
		assert_false(array_meta_write(&a, &meta));
	}
	for (uint32_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++) {
		meta = row(0, array_meta_numpy(dtype), 10);
		assert_true(array_meta_read(&meta, &a));
		assert_int_equal(a.dtype, dtype);
		a.dtype = 0;
		assert_true(array_meta_write(&a, &meta));
		assert_int_equal(meta.data[1], dtype);
	}
	meta = row(REDUCE_F32, "", 10);
	assert_true(array_meta_read(&meta, &a));
	meta = row(REDUCE_DTYPE_END, "", 10);
	assert_false(array_meta_read(&meta, &a));
}

/* Where the text tells the bytes of an element; elsewhere an element has one or more. */
static void other_types_have_their_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t length, size;
		int result;
	} cases[] = {
		{"<c16", 10, 160, 0},
		{"<c16", 10, 152, -EINVAL},
		{"<c16", 1ull << 60, 0, -EINVAL},
		{"<U5", 3, 60, 0},
		{"<U5", 3, 15, -EINVAL},
		{"<M8[ns]", 3, 24, 0},
		{"<M8[ns]", 3, 25, -EINVAL},
		{"|b1", 0, 0, 0},
		{"|b1", 0, 1, -EINVAL},
		{"float8_e5m2", 6, 6, 0},
		{"float8_e5m2", 6, 5, -EINVAL},
		{"[('a', '<i4')]", 6, 24, 0},
		{"[('a', '<i4')]", 6, 0, -EINVAL},
		{"[('a', '<i4')]", 0, 4, -EINVAL},
		{"<S4294967297", 6, 6, 0}, /* no size that fits: not known */
	};
	struct world *w = begin();

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct session_request r = world_request(SESSION_CREATE, cases[i].text);

		r.size = cases[i].size;
		r.pin = 3;
		r.meta = row(0, cases[i].text, cases[i].length);
		if (world_call(w, PUTTER, 0, &r, WHEN)->reply.status != cases[i].result)
			fail_msg("%s of %llu bytes", cases[i].text,
				 (unsigned long long)cases[i].size);
	}
	world_end(w);
}

/* All that is written is read again, and nothing else is. */
static void descriptions_are_read_as_they_were_written(void **state)
{
	struct array_meta a = {.order = 'F', .dims = 8, .text = "<M8[ns]"}, back;
	char shown[ARRAY_META_SHOWN];
	struct object_meta meta;

	for (uint32_t i = 0; i < 8; i++)
		a.shape[i] = UINT64_MAX - i;
	assert_true(array_meta_write(&a, &meta));
	assert_true(array_meta_read(&meta, &back));
	assert_memory_equal(&a, &back, sizeof(a));
	assert_int_equal(array_meta_bytes(&back), UINT64_MAX);
	memset(a.text, 'x', 56);
	assert_true(array_meta_write(&a, &meta));
	assert_int_equal(meta.bytes, OBJECT_META_BYTES);
	assert_int_equal(strlen(array_meta_show(&a, shown)), 56 + 8 * 21 + 2);
	memset(a.text, 'x', 57);
	assert_false(array_meta_write(&a, &meta));
	a = (struct array_meta){.dtype = REDUCE_I64, .order = 'F', .dims = 2, .shape = {2, 30}};
	assert_string_equal(array_meta_show(&a, shown), "i64[2,30]F");
	assert_int_equal(array_meta_bytes(&a), 480);
	a = (struct array_meta){.order = 'C', .text = ">f4"};
	assert_string_equal(array_meta_show(&a, shown), ">f4[]");
	for (uint32_t i = 0; i < 2000000 % 4096; i++) { /* whatever the bytes are */
		meta.bytes = (uint8_t)(i % 129);
		for (uint32_t k = 0; k < 128; k++)
			meta.data[k] = (uint8_t)(k == 0 ? 0xa1 : i * 2654435761u >> k % 24);
		if (array_meta_read(&meta, &back))
			array_meta_show(&back, shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_streamed_object_has_them_on_all_nodes),
		cmocka_unit_test(a_reader_has_them_before_the_bytes),
		cmocka_unit_test(nothing_but_them_is_announced),
		cmocka_unit_test(a_create_that_waits_for_room_keeps_them),
		cmocka_unit_test(a_create_with_a_later_generation_keeps_them),
		cmocka_unit_test(a_size_near_the_end_of_numbers_is_refused),
		cmocka_unit_test(a_small_object_has_them_with_its_value),
		cmocka_unit_test(the_next_owner_knows_them),
		cmocka_unit_test(what_is_no_metadata_is_refused),
		cmocka_unit_test(the_type_and_its_text_are_one),
		cmocka_unit_test(other_types_have_their_size),
		cmocka_unit_test(descriptions_are_read_as_they_were_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
