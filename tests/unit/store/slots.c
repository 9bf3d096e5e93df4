/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of the object table: all of them can be used, copies give way, and names and metadata
 * stay with their objects, whenever control is killed. */
#include <sys/mman.h>
#include "../../sim/model/crash.h"
#include "fixtures/control_peers.h"

enum { CHUNK = 1408, MANY = 3000, FEW = 12, KEPT = 5 };

/* A node of its own with a table of so many slots. */
struct node_of_one {
	struct control *core;
	void *memory;
	size_t bytes;
	uint8_t *store;
	uint64_t store_bytes;
	struct object_table *table;
	uint32_t slots;
	uint64_t seed;
};

static bool lone_send(void *arg, uint32_t conn, const struct message *m)
{
	return true;
}

static void lone_log(void *arg, enum control_log_level level, const char *text)
{
}

/* A new control process: the memory of the one before it is gone. */
static void lone_start(struct node_of_one *n)
{
	const struct control_ops ops = {.send = lone_send, .reply = on_reply, .log = lone_log};
	struct net_addr addr = addr_of(0);
	struct control_config config;
	struct control_attach a = {
		.store = n->store, .table = n->table, .private = table_private(n->table)};

	control_config_default(&config);
	control_config_slots(&config, n->slots);
	config.nodes = 1;
	config.addrs = &addr;
	config.incarnation = 100;
	config.seed = config.hash_key[0] = ++n->seed;
	if (n->memory)
		munmap(n->memory, n->bytes);
	n->bytes = control_bytes(&config);
	n->memory = mmap(NULL, n->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(n->memory, MAP_FAILED);
	n->core = control_init(n->memory, &config, &ops, SECOND);
	a.reply.workers = 1;
	a.reply.store_bytes = n->store_bytes;
	a.reply.incarnation = 5;
	a.reply.addr = addr;
	a.reply.mtu = 1500;
	a.reply.chunk_bytes = CHUNK;
	assert_int_equal(control_attach(n->core, &a, SECOND), 0);
}

static struct node_of_one *lone_begin(uint32_t slots, uint64_t seed)
{
	struct node_of_one *n = calloc(1, sizeof(*n));
	const uint64_t key[2] = {seed * 0x9e3779b97f4a7c15ull, seed * 0xc2b2ae3d27d4eb4full};

	n->slots = slots;
	n->seed = seed;
	n->store_bytes = 4096ull * slots * 2 + (1 << 20);
	n->store = calloc(1, n->store_bytes);
	n->table = calloc(1, table_bytes(slots));
	object_table_begin(n->table, slots, n->store_bytes, 77, key);
	object_private_begin(table_private(n->table), n->table);
	lone_start(n);
	return n;
}

static void lone_end(struct node_of_one *n)
{
	munmap(n->memory, n->bytes);
	free(n->store);
	free(n->table);
	free(n);
}

/* ---- what an object is, by its number ---------------------------------------------------------
 */

static struct object_id id_of(uint32_t k)
{
	struct object_id id = {{0}};

	memcpy(id.bytes, &k, sizeof(k)); /* as a user may choose them */
	return id;
}

static void name_of(uint32_t k, char name[OBJECT_NAME_BYTES])
{
	memset(name, 0, OBJECT_NAME_BYTES);
	memset(name, 'a' + (int)(k % 26), k * 7 % OBJECT_NAME_BYTES);
}

static struct object_meta meta_of(uint32_t k)
{
	struct object_meta m = {.bytes = (uint8_t)(k * 11 % (OBJECT_META_BYTES + 1))};

	memset(m.data, (int)(k % 251 + 1), m.bytes);
	return m;
}

static uint64_t size_of(uint32_t k)
{
	return k % 3 ? k % 100 : 0;
}

static int insert(struct control *c, uint32_t k, uint32_t *slot)
{
	struct object_id id = id_of(k);
	struct object_meta meta = meta_of(k);
	char name[OBJECT_NAME_BYTES];
	int error;

	name_of(k, name);
	error = objects_insert(c, &id, name, &meta, size_of(k), 1000 + k, CHUNK, OBJECT_CREATING,
			       slot);
	if (error == 0)
		objects_seal(c, *slot, true);
	return error;
}

/* The object is here as it was put, for control and for clients. */
static void check_object(struct node_of_one *n, uint32_t k)
{
	struct object_id id = id_of(k);
	struct object_meta meta = meta_of(k);
	uint32_t slot = slots_find(n->core, &id);
	struct object_slot image;
	char name[OBJECT_NAME_BYTES];

	name_of(k, name);
	assert_int_not_equal(slot, TABLE_SLOT_NONE);
	assert_string_equal(texts_name(n->core, slot), name);
	assert_int_equal(texts_meta(n->core, slot)->bytes, meta.bytes);
	assert_memory_equal(texts_meta(n->core, slot)->data, meta.data, meta.bytes);
	assert_int_equal(object_table_find(n->table, &id, &image), slot);
	assert_int_equal(image.meta_bytes, meta.bytes);
	assert_memory_equal(n->store + image.offset + image.size, meta.data, meta.bytes);
}

/* ---- all slots --------------------------------------------------------------------------------
 */

/* [G8.4] */
static void all_slots_can_be_used(void **state)
{
	static const uint32_t counts[] = {64, 1000, MANY, 4096};

	for (uint64_t round = 0; round < 12; round++) {
		uint32_t count = counts[round % 4], slot;
		struct node_of_one *n = lone_begin(count, round + 1);
		struct text why;

		for (uint32_t k = 0; k < count; k++)
			assert_int_equal(insert(n->core, k, &slot), 0);
		for (uint32_t k = 0; k < count; k++)
			check_object(n, k);
		assert_int_equal(insert(n->core, count, &slot), -ENOSPC);
		objects_no_room(n->core, -ENOSPC, 10, &why);
		assert_non_null(strstr(why.bytes, "table full ("));
		assert_non_null(strstr(why.bytes, "--objects"));
		struct object_id first = id_of(0);
		objects_kill(n->core, slots_find(n->core, &first), "");
		assert_int_equal(insert(n->core, count, &slot), 0);
		check_object(n, count);
		lone_end(n);
	}
}

/* The words are of bytes when these are what is missing. */
static void a_full_store_is_no_full_table(void **state)
{
	struct node_of_one *n = lone_begin(FEW, 1);
	struct object_id id = id_of(1);
	struct text why;
	uint32_t slot;

	assert_int_equal(objects_insert(n->core, &id, "", NULL, n->store_bytes - (1 << 18), 5,
					CHUNK, OBJECT_CREATING, &slot),
			 0);
	id = id_of(2);
	assert_int_equal(objects_insert(n->core, &id, "", NULL, n->store_bytes / 2, 5, CHUNK,
					OBJECT_CREATING, &slot),
			 -ENOSPC);
	objects_no_room(n->core, -ENOSPC, n->store_bytes / 2, &why);
	assert_non_null(strstr(why.bytes, "store full ("));
	lone_end(n);
}

/* Metadata take room behind the bytes, also where these fill their pages. */
static void metadata_take_room(void **state)
{
	struct node_of_one *n = lone_begin(FEW, 1);
	struct object_meta meta = {.bytes = 100};
	struct object_id a = id_of(1), b = id_of(2);
	uint32_t one, other;

	memset(meta.data, 7, sizeof(meta.data));
	assert_int_equal(
		objects_insert(n->core, &a, "", &meta, 4096, 5, CHUNK, OBJECT_CREATING, &one), 0);
	assert_int_equal(n->core->store->objects.space.used_bytes, 8192);
	assert_int_equal(
		objects_insert(n->core, &b, "", NULL, 4096, 5, CHUNK, OBJECT_CREATING, &other), 0);
	memset(n->store + n->table->slot[other].offset, 0xff, 4096);
	assert_memory_equal(n->store + n->table->slot[one].offset + 4096, meta.data, 100);
	lone_end(n);
}

/* ---- copies -----------------------------------------------------------------------------------
 */

static void cached_copies_give_way(void **state)
{
	struct fixture *f = begin(false);
	struct node *peer = peers_node(f->core, 1);
	uint32_t slot;

	meet(f, 1);
	peer->fresh_ns = UINT64_MAX;
	for (uint32_t k = 0; k < SLOTS; k++) {
		struct object_id id = id_of(k);
		assert_int_equal(objects_insert(f->core, &id, "", NULL, 10, 1000 + k, CHUNK,
						OBJECT_FETCHING, &slot),
				 0);
		objects_seal(f->core, slot, k < KEPT);
		if (k >= KEPT)
			replica_named(f->core, slot, 2);
	}
	for (uint32_t k = SLOTS; k < 2 * SLOTS - KEPT; k++) {
		struct object_id id = id_of(k), oldest = id_of(k - SLOTS + KEPT);
		assert_int_equal(insert(f->core, k, &slot), 0);
		assert_int_equal(slots_find(f->core, &oldest), TABLE_SLOT_NONE);
		assert_int_equal(slots_find(f->core, &id), slot);
	}
	assert_int_equal(f->core->counters.evictions, SLOTS - KEPT);
	assert_int_equal(insert(f->core, 2 * SLOTS, &slot), -ENOSPC); /* none is a cache */
	for (uint32_t k = 0; k < KEPT; k++) {
		struct object_id id = id_of(k);
		assert_int_not_equal(slots_find(f->core, &id), TABLE_SLOT_NONE);
	}
	end(f);
}

/* ---- other controls ---------------------------------------------------------------------------
 */

static void names_and_metadata_stay(void **state)
{
	struct node_of_one *n = lone_begin(MANY, 3);
	uint32_t slot;

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t k = round * MANY / 2; k < (round + 2) * MANY / 2; k++) {
			struct object_id id = id_of(k);
			if (slots_find(n->core, &id) == TABLE_SLOT_NONE)
				assert_int_equal(insert(n->core, k, &slot), 0);
		}
		for (uint32_t i = 0; round == 1 && i < n->table->buckets; i++)
			for (uint32_t j = 0; j < OBJECT_BUCKET_PLACES; j++)
				if ((i + j) % 3 == 0) /* somebody has written into it */
					object_table_bucket(n->table, i)->place[j] = i * 12345 + j;
		lone_start(n);
		assert_int_equal(n->core->store->objects.count, MANY);
		for (uint32_t k = round * MANY / 2; k < (round + 2) * MANY / 2; k++)
			check_object(n, k);
		for (uint32_t k = round * MANY / 2; k < (round + 1) * MANY / 2; k++) {
			struct object_id id = id_of(k);
			objects_kill(n->core, slots_find(n->core, &id), "");
		}
	}
	lone_end(n);
}

/* Objects come and go. */
static void work(void *arg)
{
	struct node_of_one *n = arg;
	uint32_t slot;

	for (uint32_t k = 0; k < 3; k++) {
		struct object_id id = id_of(100 + k);
		assert_int_equal(insert(n->core, 100 + k, &slot), 0);
		if (k == 1)
			objects_kill(n->core, slots_find(n->core, &id), "");
	}
}

static void adopt(void *arg)
{
	lone_start(arg);
}

/* Whichever write was the last: what was there is there, what is found is whole, and no slot and no
 * room for a name is lost. The new control dies as well. */
static void killed_between_any_two_writes(void **state)
{
	bool done = false;

	for (uint32_t at = 1; !done; at++) {
		struct node_of_one *n = lone_begin(FEW, at);
		uint32_t left = at, slot, found = 0;

		for (uint32_t k = 0; k < KEPT; k++)
			assert_int_equal(insert(n->core, k, &slot), 0);
		done = crash_run(&left, work, n);
		left = 1 + at % 7;
		crash_run(&left, adopt, n);
		lone_start(n);
		for (uint32_t k = 0; k < KEPT; k++)
			check_object(n, k);
		for (uint32_t k = 100; k < 103; k++) {
			struct object_id id = id_of(k);
			if (slots_find(n->core, &id) == TABLE_SLOT_NONE)
				continue;
			check_object(n, k);
			found++;
		}
		assert_int_equal(n->core->store->objects.count, KEPT + found);
		for (uint32_t k = 0; k < FEW - KEPT - found; k++)
			assert_int_equal(insert(n->core, 200 + 36 * k, &slot), 0);
		assert_int_equal(insert(n->core, 999, &slot), -ENOSPC);
		for (uint32_t k = 0; k < FEW - KEPT - found; k++)
			check_object(n, 200 + 36 * k);
		lone_end(n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_slots_can_be_used),
		cmocka_unit_test(a_full_store_is_no_full_table),
		cmocka_unit_test(metadata_take_room),
		cmocka_unit_test(cached_copies_give_way),
		cmocka_unit_test(names_and_metadata_stay),
		cmocka_unit_test(killed_between_any_two_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
