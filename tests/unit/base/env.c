/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pages of the core's memory an id is the first to touch that nobody has named before. */
#include "fixtures/control_peers.h"

enum { IDS = 128, PAGE = 4096, TABLES = 16 };

static struct {
	const uint8_t *at[TABLES];
	size_t bytes[TABLES];
	uint32_t count;
} tables;

static void take_table(void *memory, size_t bytes)
{
	assert_true(tables.count < TABLES);
	tables.at[tables.count] = memory;
	tables.bytes[tables.count++] = bytes;
}

static bool in_tables(const uint8_t *page)
{
	for (uint32_t i = 0; i < tables.count; i++)
		if (page + PAGE > tables.at[i] && page < tables.at[i] + tables.bytes[i])
			return true;
	return false;
}

static struct object_id any_id(struct fixture *f, uint64_t *draw)
{
	struct object_id id = {{0}};

	do {
		*draw = *draw * UINT64_C(6364136223846793005) + 1442695040888963407;
		memcpy(id.bytes, draw, sizeof(*draw));
	} while (ownership_shard(f->core, &id) != f->core->cluster->self);
	return id;
}

/* One puts it, another asks for it. */
static void put_and_get(struct fixture *f, struct object_id id, uint64_t request)
{
	struct message m = {.kind = MESSAGE_HAVE, .request = request};

	m.have = (struct message_have){.id = id,
				       .generation = 9,
				       .size = 1 << 20,
				       .chunk_bytes = 1408,
				       .state = MESSAGE_COPY_COMPLETE,
				       .upstream = MESSAGE_NODE_NONE};
	control_message(f->core, conn_of(1), &m, f->now_ns);
	m = (struct message){.kind = MESSAGE_GET, .request = request};
	m.get.id = id;
	m.get.failed = MESSAGE_NODE_NONE;
	control_message(f->core, conn_of(2), &m, f->now_ns);
	f->sent_count = 0;
}

/* Of what control_tables() names each id touches pages of its own; of all else, a few come one
 * after the other. */
static void new_ids_touch_pages_of_the_tables_alone(void **state)
{
	struct fixture *f = begin(false);
	struct control_config config = f->core->config;
	struct net_addr addr = addr_of(0);
	uint64_t draw = 1;
	uint8_t *memory = f->memory, *before;
	uint32_t inside = 0, outside = 0;
	size_t bytes;

	config.addrs = &addr; /* those that it began with are gone */
	bytes = control_bytes(&config);
	before = malloc(bytes);
	assert_true(bytes > 0 && before);
	meet(f, 1);
	meet(f, 2);
	put_and_get(f, any_id(f, &draw), 1);
	control_tables(f->core, take_table);
	memcpy(before, memory, bytes);
	for (uint64_t i = 2; i < IDS + 2; i++)
		put_and_get(f, any_id(f, &draw), i);
	for (size_t at = 0; at + PAGE <= bytes; at += PAGE)
		if (memcmp(before + at, memory + at, PAGE) != 0)
			*(in_tables(memory + at) ? &inside : &outside) += 1;
	assert_true(inside > IDS);
	assert_true(outside < IDS / 3); /* an entry has a name and metadata */
	free(before);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ids_touch_pages_of_the_tables_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
