/* SPDX-License-Identifier: BSD-3-Clause */
/* One shard of the directory by itself, and what it says, for the tests of it. */
#ifndef SARISSA_TESTS_UNIT_CONTROL_SHARD_H
#define SARISSA_TESTS_UNIT_CONTROL_SHARD_H

#include "control_test.h"
#include "core/control.h"
#include "core/directory/directory.h"

enum { NODES = 48, OUT_MAX = 64 };

struct fixture {
	struct directory d;
	struct linkstats links;
	void *memory;
	struct {
		uint32_t node;
		struct message m;
	} out[OUT_MAX];
	struct {
		uint32_t node;
		uint64_t generation;
		bool again;
		struct removal *removal;
	} removed[OUT_MAX];
	struct tombstone tombstone; /* for a DELETE, last */
	struct removal *burial;
	uint32_t replicas; /* beside this one */
	uint32_t out_count, removed_count, suspects, redirects;
	uint64_t request;
	uint32_t kept, alone, beyond, crowded;
	struct message kept_answer;
	bool unsettled, blocked, keeps;
	struct { /* the cached copy that is to leave */
		struct message_object object;
		uint32_t node, pinned;
	} evicted;
};

static inline bool on_answer(void *arg, uint32_t node, const struct message *m)
{
	struct fixture *f = arg;

	assert_true(f->out_count < OUT_MAX);
	f->out[f->out_count].node = node;
	f->out[f->out_count++].m = *m;
	return !f->blocked;
}

static inline bool on_remove(void *arg, uint32_t node, const struct object_id *id,
			     uint64_t generation, bool again, struct removal *removal)
{
	struct fixture *f = arg;

	f->removed[f->removed_count].node = node;
	f->removed[f->removed_count].again = again;
	f->removed[f->removed_count].removal = removal;
	f->removed[f->removed_count++].generation = generation;
	return true;
}

static inline uint32_t on_tombstone(void *arg, const struct tombstone *t, struct removal *removal)
{
	struct fixture *f = arg;

	f->tombstone = *t;
	f->burial = removal;
	return f->replicas;
}

static inline void on_suspect(void *arg, uint32_t node)
{
	((struct fixture *)arg)->suspects++;
}

static inline uint32_t on_removals(void *arg)
{
	return 100;
}

static inline bool on_settled(void *arg, const struct object_id *id)
{
	return !((struct fixture *)arg)->unsettled;
}

static inline void on_redirect(void *arg, uint32_t node, uint64_t request)
{
	((struct fixture *)arg)->redirects++;
}

static inline bool on_keep(void *arg, struct entry *e, uint32_t node, const struct message *answer)
{
	struct fixture *f = arg;

	f->kept++;
	f->kept_answer = answer ? *answer : (struct message){0};
	return f->keeps;
}

static inline void on_alone(void *arg)
{
	((struct fixture *)arg)->alone++;
}

static inline uint64_t on_down(void *arg, uint32_t node)
{
	struct fixture *f = arg;

	return f->d.nodes[node].dead ? 1000 : 0;
}

static inline void on_beyond(void *arg, uint32_t node)
{
	((struct fixture *)arg)->beyond++;
}

static inline void on_crowded(void *arg)
{
	((struct fixture *)arg)->crowded++;
}

static inline bool on_evict(void *arg, const struct copy *copy, uint32_t pinned)
{
	struct fixture *f = arg;

	f->evicted.object = (struct message_object){.id = copy->entry->by_id.id,
						    .generation = copy->entry->generation};
	f->evicted.node = copy->node;
	f->evicted.pinned = pinned;
	return true;
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct directory_out out = {
		f,	    on_answer,	 on_remove, on_tombstone, on_suspect, on_removals,
		on_settled, on_redirect, on_keep,   on_alone,	  on_down,    on_beyond,
		on_evict,   NULL,	 NULL,	    NULL,	  NULL,	      on_crowded};
	struct control_config config;
	struct arena arena = {.memory = NULL};

	control_config_default(&config);
	config.nodes = NODES;
	config.entries_max = config.waiters_max = 16;
	config.copies_max = NODES;
	config.calls_max = 16;
	config.tombstones = 16;
	config.inline_bytes = 1 << 18;
	directory_carve(&f->d, &arena, &config);
	linkstats_carve(&f->links, &arena, &config);
	f->memory = arena.memory = calloc(1, arena.bytes + 64);
	arena.memory += 64 - ((uintptr_t)arena.memory & 63);
	arena.bytes = 0;
	directory_carve(&f->d, &arena, &config);
	linkstats_carve(&f->links, &arena, &config);
	linkstats_init(&f->links, NODES);
	directory_init(&f->d, &config, &f->links, &out);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_false(directory_node_up(&f->d, i, 100 + i));
		directory_node_known(&f->d, i);
	}
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->memory);
	free(f);
	return 0;
}

static inline struct object_id id_of(uint8_t n)
{
	return (struct object_id){{n, n, n, n, n, 1, 2, 3}};
}

/* Sends a message of a node; returns the first answer to it, NULL when there is none. */
static inline const struct message *send(struct fixture *f, uint32_t node, struct message *m)
{
	f->out_count = 0;
	m->request = ++f->request;
	directory_message(&f->d, node, m);
	for (uint32_t i = 0; i < f->out_count; i++)
		if (f->out[i].node == node && f->out[i].m.request == m->request)
			return &f->out[i].m;
	return NULL;
}

static inline int say_have(struct fixture *f, uint32_t node, struct message_have have)
{
	struct message m = {.kind = MESSAGE_HAVE};
	const struct message *a;

	m.have = have;
	m.have.chunk_bytes = 1408;
	a = send(f, node, &m);
	assert_non_null(a);
	assert_int_equal(a->kind, MESSAGE_REPLY);
	return a->reply.status;
}

static inline int have(struct fixture *f, uint32_t node, uint8_t id, uint64_t generation,
		       uint64_t size, uint32_t state, bool create)
{
	return say_have(f, node,
			(struct message_have){.id = id_of(id),
					      .generation = generation,
					      .size = size,
					      .state = state,
					      .upstream = MESSAGE_NODE_NONE,
					      .create = create});
}

/* Complete, and kept by the directory as well: bytes of 5. */
static inline void have_value(struct fixture *f, uint32_t node, uint8_t id, uint32_t bytes)
{
	static uint8_t value[65536];
	struct message m = {.kind = MESSAGE_HAVE};

	memset(value, 5, sizeof(value));
	m.have = (struct message_have){.id = id_of(id),
				       .generation = 7,
				       .size = bytes,
				       .chunk_bytes = 1408,
				       .state = MESSAGE_COPY_COMPLETE,
				       .upstream = MESSAGE_NODE_NONE,
				       .value = value,
				       .value_bytes = bytes,
				       .has_value = 1};
	assert_int_equal(send(f, node, &m)->reply.status, 0);
}

static inline const struct message *get(struct fixture *f, uint32_t node, uint8_t id,
					uint64_t generation, uint32_t failed, uint32_t why)
{
	struct message m = {.kind = MESSAGE_GET};
	const struct message *a;

	m.get = (struct message_get){
		.id = id_of(id), .generation = generation, .failed = failed, .why = why};
	a = send(f, node, &m);
	assert_non_null(a);
	assert_int_equal(a->kind, MESSAGE_GOT);
	return a;
}

static inline const struct message *get_first(struct fixture *f, uint32_t node, uint8_t id)
{
	return get(f, node, id, 0, MESSAGE_NODE_NONE, MESSAGE_GET_FIRST);
}

/* The holder that node was sent to, in what was answered last. */
static inline uint32_t sent_to(const struct fixture *f, uint32_t node)
{
	for (uint32_t i = 0; i < f->out_count; i++)
		if (f->out[i].node == node && f->out[i].m.kind == MESSAGE_GOT &&
		    f->out[i].m.got.what == MESSAGE_GOT_HOLDER)
			return f->out[i].m.got.holder;
	return MESSAGE_NODE_NONE;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BIG	   (UINT64_C(4) << 20)

#endif
