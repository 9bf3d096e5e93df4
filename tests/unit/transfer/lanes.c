/* SPDX-License-Identifier: BSD-3-Clause */
/* Large objects over several workers: how they are cut, that every worker does its part, and what
 * nodes that cut differently, or do not, and workers that fail do to them. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

#define STORE  (UINT64_C(72) << 20)
#define SIZE   ((UINT64_C(16) << 20) + 1000)
#define BORDER (UINT64_C(8) << 20) /* a little before it the second lane begins */

static void every_chunk_is_in_one_lane(void **state)
{
	static const uint32_t chunks[] = {1024, 5958, 11916, 11917, 762601};

	for (size_t k = 0; k < sizeof(chunks) / sizeof(chunks[0]); k++)
		for (uint32_t lanes = 1; lanes <= (chunks[k] > 5958 ? LANES_MAX : 2); lanes++) {
			assert_int_equal(lane_first(chunks[k], lanes, 0), 0);
			assert_int_equal(lane_first(chunks[k], lanes, lanes), chunks[k]);
			for (uint32_t i = 0; i < lanes; i++) {
				uint32_t first = lane_first(chunks[k], lanes, i);
				uint32_t end = lane_first(chunks[k], lanes, i + 1);

				assert_true(first < end);
				assert_int_equal(first % 512, 0);
				assert_int_equal(lane_of(chunks[k], lanes, first), i);
				assert_int_equal(lane_of(chunks[k], lanes, end - 1), i);
			}
		}
}

static void each_lane_has_a_worker(void **state)
{
	const struct object_id id = world_id("any");
	struct object_id part = world_id("part");

	assert_int_equal(lane_count(SIZE, 1), 1);
	assert_int_equal(lane_count(SIZE, 2), 2);
	assert_int_equal(lane_count(SIZE, 16), 2);
	assert_int_equal(lane_count(2 * BORDER - 1, 16), 1);
	assert_int_equal(lane_count(UINT64_MAX, 16), LANES_MAX);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(lane_worker(&id, 3, i), (lane_worker(&id, 3, 0) + i) % 3);
	for (uint32_t i = 0; i < LANES_MAX; i++) {
		lane_settle(&part, &id, i);
		for (uint32_t workers = 1; workers <= WORKERS_MAX; workers *= 2)
			assert_int_equal(lane_worker(&part, workers, 0),
					 lane_worker(&id, workers, i));
	}
}

static struct world *make(uint32_t nodes)
{
	struct world *w = world_new(nodes, 2, STORE, true);

	for (uint32_t i = 0; i < nodes; i++)
		assert_int_equal(world_open(w, i), 0);
	return w;
}

/* Begins a get; returns the seq of a wait for all of it, and where it goes. */
static uint32_t begin(struct world *w, uint32_t node, const char *name, uint32_t *slot)
{
	struct session_request r = world_request(SESSION_GET, name);
	struct world_reply *got;

	r.pin = 0;
	got = world_call(w, node, 0, &r, 5 * WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, 0);
	*slot = got->reply.slot;
	r = world_wait_for(&got->reply);
	return world_send(w, node, 0, &r);
}

static void expect_whole(struct world *w, uint32_t node, uint32_t seq, const char *name)
{
	struct world_reply *r = world_wait(w, node, seq, 30 * WORLD_SECOND);

	assert_non_null(r);
	assert_int_equal(r->reply.status, 0);
	assert_int_equal(world_get(w, node, 0, name, SIZE, 7, -1), 0);
}

static uint64_t came(const struct world *w, uint32_t node, uint32_t worker)
{
	return w->node[node].counters[worker].rx_chunk_bytes;
}

/* All ask at once: each is fed in two streams by one that is being fed. */
static void both_workers_do_their_part(uint32_t loss_permille)
{
	struct world *w = make(4);
	uint32_t seq[4], slot;

	w->prng = 4711;
	w->loss_permille = loss_permille;
	assert_int_equal(world_put(w, 0, 0, "wide", SIZE, 7), 0);
	for (uint32_t i = 1; i < 4; i++)
		seq[i] = begin(w, i, "wide", &slot);
	for (uint32_t i = 1; i < 4; i++)
		expect_whole(w, i, seq[i], "wide");
	for (uint32_t i = 1; i < 4; i++)
		for (uint32_t k = 0; k < 2; k++)
			assert_in_range(came(w, i, k), SIZE / 5 * 2, SIZE / 5 * 3);
	world_end(w);
}

static void chain_over_two_workers(void **state)
{
	both_workers_do_their_part(0);
}

static void chain_with_loss(void **state)
{
	both_workers_do_their_part(20);
}

/* From two workers to one, and back. */
static void nodes_may_cut_differently(void **state)
{
	struct world *w = make(3);
	uint64_t before[2];

	world_change_workers(w, 1, 1);
	assert_int_equal(world_put(w, 0, 0, "there", SIZE, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "there", SIZE, 1, -1), 0);
	assert_true(came(w, 1, 0) >= SIZE);
	assert_int_equal(world_put(w, 1, 0, "back", SIZE, 2), 0);
	for (uint32_t k = 0; k < 2; k++)
		before[k] = came(w, 0, k);
	assert_int_equal(world_get(w, 0, 0, "back", SIZE, 2, -1), 0);
	for (uint32_t k = 0; k < 2; k++)
		assert_in_range(came(w, 0, k) - before[k], SIZE / 5 * 2, SIZE / 5 * 3);
	world_end(w);
}

static bool has_asked(struct world *w, void *arg)
{
	struct list *first = list_first(&w->node[1].core->transfer->fetches.active);
	struct fetch *f = first ? list_item(first, struct fetch, active) : NULL;

	return f && f->feed[0].state == FEED_REQUEST;
}

/* The receiver hears late of the holder's workers: it asks again, the same one. */
static void a_wrong_cut_is_no_failure(void **state)
{
	struct world *w = make(2);
	struct node *holder = peers_node(w->node[1].core, 0);
	uint32_t seq, slot;

	w->delay_ns = 5 * WORLD_MS;
	assert_int_equal(world_put(w, 0, 0, "cut", SIZE, 7), 0);
	holder->workers = 1;
	seq = begin(w, 1, "cut", &slot);
	assert_true(world_until(w, has_asked, NULL, WORLD_SECOND));
	holder->workers = 2;
	expect_whole(w, 1, seq, "cut");
	assert_int_equal(control_counters(w->node[1].core)->failovers, 0);
	world_end(w);
}

struct prefix {
	uint32_t slot;
	uint64_t bytes;
};

static bool arrived(struct world *w, void *arg)
{
	const struct prefix *p = arg;

	return w->node[1].table->slot[p->slot].watermark >= p->bytes;
}

/* A producer publishes across the border of the lanes: a reader elsewhere follows. */
static void published_bytes_arrive_early(void **state)
{
	struct world *w = make(2);
	struct session_request r = world_request(SESSION_CREATE, "live");
	struct prefix p = {0, 0};
	struct world_reply *created;
	uint32_t seq;

	r.size = SIZE;
	created = world_call(w, 0, 0, &r, WORLD_SECOND);
	assert_int_equal(created->reply.status, 0);
	world_fill(w->node[0].store + created->reply.offset, SIZE, 7);
	seq = begin(w, 1, "live", &p.slot);
	for (uint32_t i = 1; i <= 4; i++) {
		r = world_request(SESSION_PUBLISH, NULL);
		r.slot = created->reply.slot;
		r.generation = created->reply.generation;
		r.watermark = i * (SIZE / 5);
		assert_int_equal(world_call(w, 0, 0, &r, 0)->reply.status, 0);
		p.bytes = r.watermark - (1 << 17); /* whole blocks are reported */
		assert_true(world_until(w, arrived, &p, WORLD_SECOND));
		assert_true(w->node[1].table->slot[p.slot].watermark <= r.watermark);
		assert_true(world_holds(w->node[1].store + w->node[1].table->slot[p.slot].offset,
					p.bytes, 7));
	}
	r.op = SESSION_SEAL;
	assert_int_equal(world_call(w, 0, 0, &r, 0)->reply.status, 0);
	expect_whole(w, 1, seq, "live");
	world_end(w);
}

/* What has arrived in either lane stays when the receiver's dataplane begins again, even with
 * another number of workers. */
static void receiver_goes_on_from_its_bitmap(void **state)
{
	struct world *w = make(2);
	struct prefix p = {0, BORDER / 2};
	uint64_t all;
	uint32_t seq;

	for (uint32_t workers = 1; workers <= 2; workers++) {
		const char *name = workers == 1 ? "one" : "two";

		assert_int_equal(world_put(w, 0, 0, name, SIZE, 7), 0);
		all = came(w, 1, 0) + came(w, 1, 1);
		seq = begin(w, 1, name, &p.slot);
		assert_true(world_until(w, arrived, &p, 5 * WORLD_SECOND));
		world_change_workers(w, 1, workers);
		expect_whole(w, 1, seq, name);
		all = came(w, 1, 0) + came(w, 1, 1) - all;
		assert_in_range(all, SIZE, SIZE + SIZE / 50);
		world_change_workers(w, 1, 2);
	}
	world_end(w);
}

/* The connection of one worker ends, that of the other stands: the get goes on when it is back,
 * from what both have brought. */
static void one_worker_is_cut_off(void **state)
{
	struct world *w = make(2);
	struct prefix p = {0, BORDER / 4};
	uint32_t seq, other;

	assert_int_equal(world_put(w, 0, 0, "lame", SIZE, 7), 0);
	seq = begin(w, 1, "lame", &p.slot);
	assert_true(world_until(w, arrived, &p, 5 * WORLD_SECOND));
	w->cut_worker[1] = true;
	assert_null(world_wait(w, 1, seq, 8 * WORLD_SECOND));
	other = (uint32_t)came(w, 1, 1);
	w->cut_worker[1] = false;
	expect_whole(w, 1, seq, "lame");
	assert_true(came(w, 1, 1) > other);
	assert_true(came(w, 1, 0) + came(w, 1, 1) < SIZE + SIZE / 50);
	world_end(w);
}

/* Whatever happens on the way, all of it is everywhere in the end, and nothing is left over. */
static void storm(void **state)
{
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct world *w = make(4);
		uint64_t draw = seed * UINT64_C(0x9e3779b97f4a7c15);
		char name[16];

		w->prng = seed;
		w->delay_ns = WORLD_MS;
		w->old_clients = true;
		for (uint32_t i = 0; i < 2; i++) {
			snprintf(name, sizeof(name), "storm%u", i);
			assert_int_equal(world_put(w, i, 0, name, SIZE, 7 + i), 0);
			for (uint32_t k = 0; k < 4; k++) {
				struct session_request r = world_request(SESSION_GET, name);

				r.pin = i;
				world_send(w, k, 0, &r);
			}
		}
		for (uint32_t i = 0; i < 30; i++) {
			draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407;
			world_run(w, draw >> 40 & 0x7fffff);
			world_trouble(w, 0, draw >> 32);
		}
		world_heal(w);
		world_run(w, 5 * WORLD_SECOND);
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t session = world_open(w, k);

			for (uint32_t i = 0; i < 2; i++) {
				snprintf(name, sizeof(name), "storm%u", i);
				assert_int_equal(world_get(w, k, session, name, SIZE, 7 + i,
							   30 * (int64_t)WORLD_SECOND),
						 0);
			}
			world_unpin(w, k, session);
		}
		world_end(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_chunk_is_in_one_lane),
		cmocka_unit_test(each_lane_has_a_worker),
		cmocka_unit_test(chain_over_two_workers),
		cmocka_unit_test(chain_with_loss),
		cmocka_unit_test(nodes_may_cut_differently),
		cmocka_unit_test(a_wrong_cut_is_no_failure),
		cmocka_unit_test(published_bytes_arrive_early),
		cmocka_unit_test(receiver_goes_on_from_its_bitmap),
		cmocka_unit_test(one_worker_is_cut_off),
		cmocka_unit_test(storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
