/* SPDX-License-Identifier: BSD-3-Clause */
/* What the store has no room for goes to files and comes back; nothing that is in memory is lost.
 */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { HERE, THERE, NODES, FIT = 6 };

#define STORE (UINT64_C(4) << 20)
#define SIZE  UINT64_C(600000)
#define WHEN  (20 * WORLD_SECOND)

static struct world *two(uint64_t spill_max)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	w->config.spill_max = spill_max;
	world_keep_all(w);
	return w;
}

static const char *name_of(uint32_t i)
{
	static char name[2][16];
	static uint32_t turn;

	turn ^= 1;
	snprintf(name[turn], sizeof(name[turn]), "n%u", i);
	return name[turn];
}

static int put(struct world *w, uint32_t i)
{
	int r = world_put(w, HERE, 0, name_of(i), SIZE, i);

	world_unpin(w, HERE, 0);
	return r;
}

static int get(struct world *w, uint32_t node, uint32_t i)
{
	int r = world_get(w, node, 0, name_of(i), SIZE, i, WHEN);

	world_unpin(w, node, 0);
	return r;
}

static const struct spills *spills(struct world *w)
{
	return &w->node[HERE].core->store->spills;
}

/* [G8.1] */
static void more_than_the_store_is_put_and_got(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < 3 * FIT; i++)
		assert_int_equal(put(w, i), 0);
	assert_int_equal(spills(w)->objects, 2 * FIT);
	assert_int_equal(disk_files(&w->node[HERE].disk), 2 * FIT);
	assert_true(spills(w)->files_bytes == 2 * FIT * SIZE);
	for (uint32_t i = 0; i < 3 * FIT; i++)
		assert_int_equal(get(w, HERE, i), 0);
	for (uint32_t i = 0; i < 3 * FIT; i++)
		assert_int_equal(get(w, THERE, i), 0); /* which never knows */
	assert_int_equal(w->node[HERE].core->counters.spill_errors, 0);
	assert_int_equal(disk_files(&w->node[HERE].disk), spills(w)->objects);
	for (uint32_t i = 0; i < 3 * FIT; i++) {
		struct session_request r = world_request(SESSION_DELETE, name_of(i));

		assert_int_equal(world_call(w, HERE, 0, &r, WHEN)->reply.status, 0);
	}
	assert_int_equal(disk_files(&w->node[HERE].disk), 0);
	assert_true(spills(w)->files_bytes == 0);
	world_end(w);
}

static void files_have_a_bound(void **state)
{
	struct world *w = two(2 * SIZE);
	uint32_t kept = 0;

	while (put(w, kept) == 0)
		kept++;
	assert_int_equal(kept, FIT + 2);
	assert_int_equal(put(w, kept), -ENOSPC);
	assert_int_equal(disk_files(&w->node[HERE].disk), 2);
	world_free(w);
}

/* What a client has mapped stays where it is. */
static void what_is_pinned_stays(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(world_put(w, HERE, 0, name_of(i), SIZE, i), 0);
	world_unpin(w, HERE, 0);
	for (uint32_t i = 0; i < FIT; i++) {
		struct object_id id = world_id(name_of(i));
		uint32_t slot = slots_find(w->node[HERE].core, &id);

		w->node[HERE].pins[0][i] =
			pin_make(slot, w->node[HERE].table->slot[slot].generation);
	}
	assert_int_equal(world_put(w, HERE, 0, "more", SIZE, 1), -ENOSPC);
	assert_int_equal(disk_files(&w->node[HERE].disk), 0);
	world_unpin(w, HERE, 0);
	assert_int_equal(world_put(w, HERE, 0, "more", SIZE, 1), 0);
	world_free(w);
}

/* A reader that comes while the object is being written out: it stays. */
static void a_reader_may_be_faster(void **state)
{
	struct world *w = two(UINT64_MAX / 2);
	struct session_request r = world_request(SESSION_CREATE, "more");
	struct object_id first = world_id(name_of(0));
	uint32_t slot;

	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(put(w, i), 0);
	w->node[HERE].disk.held = true;
	r.size = SIZE;
	r.pin = 0;
	world_send(w, HERE, 0, &r);
	world_run(w, WORLD_SECOND); /* longer than without a spill under way */
	assert_null(world_reply_to(w, HERE, r.seq));
	slot = slots_find(w->node[HERE].core, &first);
	w->node[HERE].pins[0][5] = pin_make(slot, w->node[HERE].table->slot[slot].generation);
	w->node[HERE].disk.held = false;
	assert_int_equal(world_wait(w, HERE, r.seq, WHEN)->reply.status, 0); /* another one went */
	assert_int_equal(w->node[HERE].table->slot[slot].state, OBJECT_SEALED);
	assert_int_equal(disk_files(&w->node[HERE].disk), 1);
	assert_int_equal(world_get(w, HERE, 0, name_of(0), SIZE, 0, WHEN), 0);
	world_free(w);
}

static void a_disk_that_is_full_loses_nothing(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(put(w, i), 0);
	w->node[HERE].disk.write_error = -ENOSPC;
	assert_int_equal(put(w, FIT), -ENOSPC);
	assert_true(w->node[HERE].core->counters.spill_errors > 0);
	assert_true(spills(w)->files_bytes == 0);
	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(get(w, HERE, i), 0);
	w->node[HERE].disk.write_error = 0;
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(put(w, FIT), 0);
	world_free(w);
}

static void a_damaged_file_loses_that_object_only(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < FIT + 2; i++)
		assert_int_equal(put(w, i), 0);
	w->node[HERE].disk.read_error = -EMFILE;
	assert_int_equal(get(w, HERE, 0), -EIO); /* for now */
	w->node[HERE].disk.read_error = -EBADMSG;
	assert_int_equal(get(w, HERE, 0), -ENODATA);
	w->node[HERE].disk.read_error = 0;
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(put(w, 0), 0); /* the directory has forgotten it */
	for (uint32_t i = 0; i < FIT + 2; i++)
		assert_int_equal(get(w, HERE, i), 0);
	world_free(w);
}

/* Whatever the disk says: only the checksum, or a file that is not there, proves a loss. */
static void an_error_of_the_disk_keeps_the_file(void **state)
{
	const int errors[] = {-EIO, -EMFILE, -ENOMEM, -ENODEV, -ETIMEDOUT};
	struct world *w = two(UINT64_MAX / 2);
	uint32_t files;

	for (uint32_t i = 0; i < FIT + 2; i++)
		assert_int_equal(put(w, i), 0);
	files = disk_files(&w->node[HERE].disk);
	for (uint32_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		w->node[HERE].disk.read_error = errors[i];
		assert_int_equal(get(w, HERE, 0), -EIO);
		assert_true(disk_files(&w->node[HERE].disk) >= files);
	}
	w->node[HERE].disk.read_error = 0;
	assert_int_equal(get(w, HERE, 0), 0);
	assert_int_equal(get(w, THERE, 0), 0);
	world_free(w);
}

/* A new control cannot look at the files: it may later. */
static void an_error_at_the_start_keeps_the_files(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < 2 * FIT; i++)
		assert_int_equal(put(w, i), 0);
	world_kill_control(w, HERE);
	w->node[HERE].disk.find_error = -EIO;
	world_start_control(w, HERE);
	world_run(w, 3 * WORLD_SECOND);
	world_open(w, HERE);
	w->node[HERE].disk.find_error = 0;
	assert_int_equal(spills(w)->objects, FIT);
	for (uint32_t i = 0; i < 2 * FIT; i++)
		assert_int_equal(get(w, HERE, i), 0);
	world_free(w);
}

/* A new control may have fewer bytes of files than there are. */
static void a_smaller_bound_counts_at_once(void **state)
{
	struct world *w = two(UINT64_MAX / 2);
	uint64_t objects;

	for (uint32_t i = 0; i < 2 * FIT; i++)
		assert_int_equal(put(w, i), 0);
	w->config.spill_max = SIZE;
	world_kill_control(w, HERE);
	world_start_control(w, HERE);
	world_run(w, 3 * WORLD_SECOND);
	world_open(w, HERE);
	objects = spills(w)->objects;
	assert_true(objects > 1);
	assert_int_equal(put(w, 2 * FIT), -ENOSPC);
	assert_int_equal(spills(w)->objects, objects);
	world_free(w);
}

/* Copies that may be evicted and objects that may go to files make room together. */
static void cache_and_files_make_room_together(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < FIT / 2; i++)
		assert_int_equal(world_put(w, THERE, 0, name_of(i), SIZE, i), 0);
	world_unpin(w, THERE, 0);
	for (uint32_t i = 0; i < FIT / 2; i++)
		assert_int_equal(get(w, HERE, i), 0);
	for (uint32_t i = FIT / 2; i < FIT; i++)
		assert_int_equal(put(w, i), 0);
	assert_int_equal(world_put(w, HERE, 0, "large", (FIT - 1) * SIZE, 9), 0);
	world_unpin(w, HERE, 0);
	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(get(w, THERE, i), 0);
	world_run(w, WORLD_SECOND); /* what feeds THERE has ended */
	assert_int_equal(world_get(w, HERE, 0, "large", (FIT - 1) * SIZE, 9, WHEN), 0);
	world_free(w);
}

/* THERE has a cached copy of the first object, whose file HERE is damaged. */
static struct world *one_copy_is_left(bool restart)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < FIT + 2; i++)
		assert_int_equal(put(w, i), 0);
	assert_int_equal(get(w, THERE, 0), 0);
	for (uint32_t i = FIT + 2; i < 2 * FIT + 4; i++) /* it goes to a file again */
		assert_int_equal(put(w, i), 0);
	world_run(w, 100 * WORLD_MS);
	if (restart) {
		world_kill_control(w, HERE);
		w->node[HERE].disk.find_error = -EBADMSG;
		world_start_control(w, HERE);
		world_run(w, WORLD_SECOND);
		w->node[HERE].disk.find_error = 0;
		world_open(w, HERE);
	} else {
		w->node[HERE].disk.read_error = -EBADMSG;
		assert_int_equal(get(w, HERE, 0), -ENODATA);
		w->node[HERE].disk.read_error = 0;
	}
	return w;
}

static void the_last_copy_stays_when_a_file_is_lost(void **state)
{
	const uint64_t after[] = {20 * WORLD_MS, WORLD_SECOND, 15 * WORLD_SECOND};

	for (uint32_t i = 0; i < 6; i++) {
		struct world *w = one_copy_is_left(i % 2);

		world_run(w, after[i / 2]);
		for (uint32_t k = 0; k < FIT; k++)
			assert_int_equal(world_put(w, THERE, 0, name_of(100 + k), SIZE, 100 + k),
					 0);
		world_unpin(w, THERE, 0);
		world_run(w, 2 * WORLD_SECOND);
		assert_int_equal(get(w, HERE, 0), 0);
		assert_int_equal(get(w, THERE, 0), 0);
		world_free(w);
	}
}

static void another_control_finds_them(void **state)
{
	struct world *w = two(UINT64_MAX / 2);
	uint32_t files;

	for (uint32_t i = 0; i < 2 * FIT; i++)
		assert_int_equal(put(w, i), 0);
	files = disk_files(&w->node[HERE].disk);
	assert_int_equal(files, FIT);
	world_kill_control(w, HERE);
	disk_remove(&w->node[HERE].disk, &w->node[HERE].disk.file[0].is); /* this one is lost */
	world_start_control(w, HERE);
	world_run(w, 3 * WORLD_SECOND);
	world_open(w, HERE);
	assert_int_equal(spills(w)->objects, files - 1);
	for (uint32_t i = 1; i < 2 * FIT; i++)
		assert_int_equal(get(w, i % 2, i), 0);
	world_free(w);
}

/* Those of a store that is gone. */
static void another_store_knows_none(void **state)
{
	struct world *w = two(UINT64_MAX / 2);

	for (uint32_t i = 0; i < 2 * FIT; i++)
		assert_int_equal(put(w, i), 0);
	world_kill_control(w, HERE);
	world_kill_engine(w, HERE);
	world_lose_store(w, HERE);
	world_start_engine(w, HERE);
	world_start_control(w, HERE);
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(spills(w)->objects, 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_the_store_is_put_and_got),
		cmocka_unit_test(files_have_a_bound),
		cmocka_unit_test(what_is_pinned_stays),
		cmocka_unit_test(a_reader_may_be_faster),
		cmocka_unit_test(a_disk_that_is_full_loses_nothing),
		cmocka_unit_test(a_damaged_file_loses_that_object_only),
		cmocka_unit_test(an_error_of_the_disk_keeps_the_file),
		cmocka_unit_test(an_error_at_the_start_keeps_the_files),
		cmocka_unit_test(a_smaller_bound_counts_at_once),
		cmocka_unit_test(cache_and_files_make_room_together),
		cmocka_unit_test(the_last_copy_stays_when_a_file_is_lost),
		cmocka_unit_test(another_control_finds_them),
		cmocka_unit_test(another_store_knows_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
