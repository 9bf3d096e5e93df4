/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces as clients ask for them: what they may ask, who is told, and whose death matters. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

#define STORE (UINT64_C(32) << 20)
#define LARGE UINT64_C(2000000)
#define SOON  ((int64_t)WORLD_SECOND)

static struct object_id ids[SESSION_SOURCES_MAX + 1];

static const char *source_name(unsigned i)
{
	static char name[8];

	snprintf(name, sizeof(name), "s%u", i);
	return name;
}

static struct world *some_nodes(uint32_t nodes)
{
	struct world *w = world_new(nodes, 1, STORE, true);

	w->config.calls_max = w->config.loopback_max = 4096;
	w->config.entries_max = w->config.waiters_max = 8192;
	world_keep_all(w);
	for (uint32_t i = 0; i <= SESSION_SOURCES_MAX; i++)
		ids[i] = world_id(source_name(i));
	return w;
}

static void put_sources(struct world *w, uint32_t from, uint32_t to, uint64_t size)
{
	for (uint32_t i = from; i < to; i++)
		assert_int_equal(world_put(w, i % w->nodes, 0, source_name(i), size, i + 1), 0);
}

static int sum(struct world *w, uint32_t node, const char *target, uint32_t count, int64_t timeout)
{
	return world_reduce(w, node, 0, target, ids,
			    (struct session_reduction){
				    .op = REDUCE_SUM, .dtype = REDUCE_U8, .num = 0, .count = count},
			    0, timeout);
}

/* Gets a target at a node, as the library does; 0, the error, or -EIO when it is not the sum. */
static int get_sum(struct world *w, uint32_t node, const char *target, uint64_t size,
		   uint32_t count)
{
	static uint8_t total[LARGE], one[LARGE];
	const uint8_t *bytes;
	uint64_t got;
	int status = -ERESTART;

	for (int tries = 0; tries < 8 && status == -ERESTART; tries++)
		status = world_fetch(w, node, 0, target, 20 * SOON, &bytes, &got);
	if (status)
		return status;
	memset(total, 0, sizeof(total));
	for (uint32_t i = 0; i < count; i++) {
		world_fill(one, size, i + 1);
		for (uint64_t k = 0; k < size; k++)
			total[k] = (uint8_t)(total[k] + one[k]);
	}
	return got != size || memcmp(bytes, total, size) ? -EIO : 0;
}

static uint32_t coordinator(struct world *w, uint32_t node, const char *target)
{
	struct object_id id = world_id(target);

	return ownership_shard(w->node[node].core, &id)->number;
}

/* A target of that node's part of the directory. */
static const char *target_of(struct world *w, uint32_t node)
{
	static char name[16];

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "sum%u", i);
		if (coordinator(w, 0, name) == node)
			return name;
	}
	return NULL;
}

static uint32_t requesters(struct world *w)
{
	struct control_usage u;
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->nodes; i++) {
		if (!w->node[i].core)
			continue;
		control_usage(w->node[i].core, &u);
		count += u.requesters;
	}
	return count;
}

/* ---- who is told ---------------------------------------------------------------------------- */

static void everybody_may_ask_how_it_ended(void **state)
{
	struct world *w = some_nodes(4);
	struct object_id used[4];

	put_sources(w, 0, 4, LARGE);
	assert_int_equal(sum(w, 2, "sum", 4, -1), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(world_reduced(w, i, 0, "sum", -1, used), 4);
		assert_memory_equal(used, ids, sizeof(used));
		assert_int_equal(get_sum(w, i, "sum", LARGE, 4), 0);
	}
	assert_int_equal(requesters(w), 0);
	assert_int_equal(world_reduced(w, 1, 0, "another", -1, NULL), -ENOENT);
	assert_int_equal(sum(w, 1, "sum", 4, -1), -EEXIST);
	world_free(w);
}

static void very_many_sources(void **state)
{
	struct world *w = some_nodes(1);
	static struct object_id used[SESSION_SOURCES_MAX];

	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(world_put(w, 0, 0, source_name(i), 8, i + 1), 0);
	assert_int_equal(world_reduce(w, 0, 0, "sum", ids,
				      (struct session_reduction){.op = REDUCE_SUM,
								 .dtype = REDUCE_U8,
								 .num = 100,
								 .count = SESSION_SOURCES_MAX},
				      0, -1),
			 0);
	assert_int_equal(world_reduced(w, 0, 0, "sum", -1, used), 100);
	assert_memory_equal(used, ids, 100 * sizeof(*ids));
	assert_int_equal(get_sum(w, 0, "sum", 8, 100), 0);
	world_free(w);
}

static void it_goes_on_without_its_client(void **state)
{
	struct world *w = some_nodes(3);

	put_sources(w, 0, 1, LARGE);
	assert_int_equal(sum(w, 1, "sum", 3, -1), 0);
	control_session_close(w->node[1].core, 0, w->now_ns);
	assert_int_equal(requesters(w), 1);
	assert_int_equal(world_open(w, 1), 0);
	put_sources(w, 1, 3, LARGE);
	assert_int_equal(get_sum(w, 0, "sum", LARGE, 3), 0);
	assert_int_equal(world_reduced(w, 0, 0, "sum", -1, NULL), 3);
	assert_int_equal(requesters(w), 0);
	world_free(w);
}

/* The requester, and another node. */
static void time_is_over(void **state)
{
	struct world *w = some_nodes(3);
	uint64_t begun_ns;

	put_sources(w, 0, 2, LARGE);
	begun_ns = w->now_ns;
	assert_int_equal(sum(w, 1, "sum", 3, 3 * SOON), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_reduced(w, i, 0, "sum", 0, NULL), -ETIMEDOUT);
		assert_int_equal(world_reduced(w, i, 0, "sum", SOON / 10, NULL), -ETIMEDOUT);
	}
	assert_int_equal(requesters(w), 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_reduced(w, i, 0, "sum", -1, NULL), -ETIMEDOUT);
	assert_in_range(w->now_ns - begun_ns, 3 * WORLD_SECOND, 5 * WORLD_SECOND);
	assert_int_equal(requesters(w), 0);
	put_sources(w, 2, 3, LARGE);
	assert_int_equal(sum(w, 2, "sum", 3, -1), 0);
	assert_int_equal(get_sum(w, 0, "sum", LARGE, 3), 0);
	world_free(w);
}

/* Who deletes the target ends the reduce, whether the result is there or not. */
static void deleted_target(void **state)
{
	for (uint32_t by = 0; by < 3; by++) {
		struct world *w = some_nodes(3);
		struct session_request r = world_request(SESSION_DELETE, "sum");

		put_sources(w, 0, 3, LARGE);
		assert_int_equal(sum(w, 1, "sum", 3, -1), 0);
		assert_int_equal(get_sum(w, 0, "sum", LARGE, 3), 0);
		assert_int_equal(world_call(w, by, 0, &r, 20 * WORLD_SECOND)->reply.status, 0);
		world_run(w, 3 * WORLD_SECOND);
		assert_int_equal(requesters(w), 0);
		r = world_request(SESSION_STAT, "sum");
		assert_int_equal(world_call(w, by, 0, &r, 20 * WORLD_SECOND)->reply.status,
				 -ENOENT);
		world_free(w);
	}
}

/* ---- who dies ------------------------------------------------------------------------------- */

/* At any moment; the sources are on the other nodes. */
static void another_coordinator_begins_again(void **state)
{
	uint32_t late = 0;

	for (uint32_t k = 0; k < 24; k++) {
		struct world *w = some_nodes(5);
		const char *target = target_of(w, 4);
		uint32_t count = 4;

		w->delay_ns = WORLD_MS;
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(world_put(w, i, 0, source_name(i), LARGE, i + 1), 0);
		assert_int_equal(sum(w, 1, target, count, 60 * SOON), 0);
		world_run(w, k * 10 * WORLD_MS);
		late += requesters(w) == 0; /* then the requester remembers */
		world_kill_node(w, 4);
		assert_int_equal(world_reduced(w, 1, 0, target, 30 * SOON, NULL), count);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(get_sum(w, i, target, LARGE, count), 0);
		world_run(w, 20 * WORLD_SECOND);
		assert_int_equal(requesters(w), 0);
		world_free(w);
	}
	assert_in_range(late, 4, 20);
}

/* It has begun, but its answer is lost with it; its next life finds the target of the one before.
 */
static void the_same_coordinator_begins_again(void **state)
{
	struct world *w = some_nodes(5);
	const char *target = target_of(w, 4);
	struct session_request r = world_request(SESSION_STAT, target);
	struct object_id own[3];
	struct world_reply *begun;
	uint32_t seq;

	w->delay_ns = 5 * WORLD_MS;
	for (uint32_t k = 0, count = 0; count < 3; k++) {
		if (coordinator(w, 0, source_name(k)) == 1)
			continue; /* who is cut off */
		own[count] = ids[k];
		count++;
		assert_int_equal(
			world_put(w, count == 1 ? 0 : count, 0, source_name(k), LARGE, count), 0);
	}
	seq = world_reduce_send(w, 1, 0, target, own,
				(struct session_reduction){
					.op = REDUCE_SUM, .dtype = REDUCE_U8, .num = 0, .count = 3},
				0, -1);
	world_run(w, 7 * WORLD_MS); /* the request is there, no answer here */
	w->cut[1] = true;
	world_run(w, 300 * WORLD_MS);
	assert_null(world_reply_to(w, 1, seq));
	begun = world_call(w, 0, 0, &r, WORLD_SECOND);
	assert_int_equal(begun->reply.status, 0); /* the target is on its way */
	world_kill_control(w, 4);
	w->cut[1] = false;
	world_start_control(w, 4);
	begun = world_wait(w, 1, seq, 20 * WORLD_SECOND);
	assert_non_null(begun);
	assert_int_equal(begun->reply.status, 0);
	assert_int_equal(get_sum(w, 0, target, LARGE, 3), 0);
	world_free(w);
}

/* The control of the node that has asked. */
static void its_own_node_begins_again(void **state)
{
	struct world *w = some_nodes(4);

	put_sources(w, 0, 2, LARGE);
	assert_int_equal(sum(w, 1, target_of(w, 2), 4, -1), 0);
	world_kill_control(w, 1);
	world_run(w, WORLD_SECOND);
	world_start_control(w, 1);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(world_open(w, 1), 0);
	put_sources(w, 2, 4, LARGE);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(get_sum(w, i, target_of(w, 2), LARGE, 4), 0);
		assert_int_equal(world_reduced(w, i, 0, target_of(w, 2), SOON, NULL), 4);
	}
	world_free(w);
}

/* The only node that has it. */
static uint32_t holder_of(struct world *w, const char *target)
{
	struct object_id id = world_id(target);

	for (uint32_t i = 0;; i++)
		if (slots_find(w->node[i].core, &id) != TABLE_SLOT_NONE)
			return i;
}

/* The coordinator has forgotten it, and hears of it while another reduce into the same target waits
 * for a source. */
static void it_is_told_beside_another_one(void **state)
{
	enum { CALLER = 3, COORDINATOR = 4 };
	struct world *w = some_nodes(5);
	const char *target = target_of(w, COORDINATOR);
	uint32_t holder, other;

	w->delay_ns = WORLD_MS;
	put_sources(w, 0, 3, LARGE);
	assert_int_equal(sum(w, CALLER, target, 3, -1), 0);
	assert_int_equal(world_reduced(w, CALLER, 0, target, 5 * SOON, NULL), 3);
	holder = holder_of(w, target);
	other = (holder + 1) % 3;
	w->cut[holder] = true;
	world_run(w, 2 * WORLD_SECOND);
	world_kill_control(w, COORDINATOR);
	w->cut[CALLER] = true;
	world_start_control(w, COORDINATOR);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(sum(w, other, target, 3, -1), 0);
	w->cut[CALLER] = false;
	world_run(w, 12 * WORLD_SECOND); /* longer than any single question waits */
	w->cut[holder] = false;
	assert_int_equal(world_reduced(w, other, 0, target, 20 * SOON, NULL), -EEXIST);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(world_open(w, COORDINATOR), 0);
	for (uint32_t i = 0; i < 5; i++) /* every node hears of the one that stays */
		assert_int_equal(world_reduced(w, i, 0, target, SOON, NULL), 3);
	world_free(w);
}

/* The same, and it had directed the reduce as well: nobody knows it any more, until the client says
 * it again. */
static void the_client_says_it_again(void **state)
{
	for (uint32_t director = 0; director < 3; director++) {
		struct world *w = some_nodes(3);
		const char *target = target_of(w, director);
		const struct session_reduction how = {
			.op = REDUCE_SUM, .dtype = REDUCE_U8, .num = 0, .count = 4};

		put_sources(w, 1, 3, LARGE);
		assert_int_equal(world_reduce(w, 0, 0, target, ids, how, 0, -1), 0);
		world_run(w, WORLD_SECOND);
		world_kill_control(w, 0);
		world_start_control(w, 0);
		world_run(w, WORLD_SECOND);
		assert_int_equal(world_open(w, 0), 0);
		for (int twice = 0; twice < 2; twice++) {
			assert_int_equal(
				world_reduce(w, 0, 0, target, ids, how, SESSION_FLAG_RETRY, -1), 0);
			assert_int_equal(requesters(w), 1);
		}
		put_sources(w, 3, 4, LARGE);
		assert_int_equal(world_put(w, 1, 0, source_name(0), LARGE, 1), 0);
		assert_int_equal(world_reduced(w, 0, 0, target, SOON, NULL), 4);
		assert_int_equal(get_sum(w, 2, target, LARGE, 4), 0);
		assert_int_equal(world_reduce(w, 0, 0, target, ids, how, SESSION_FLAG_RETRY, -1),
				 0);
		assert_int_equal(world_reduced(w, 0, 0, target, SOON, NULL), 4);
		assert_int_equal(requesters(w), 0);
		world_free(w);
	}
}

/* ---- what is refused ------------------------------------------------------------------------ */

static int refused(struct world *w, uint32_t op, uint32_t dtype, uint32_t num, uint32_t count)
{
	return world_reduce(
		w, 0, 0, "sum", ids,
		(struct session_reduction){.op = op, .dtype = dtype, .num = num, .count = count}, 0,
		SOON);
}

/* The words of a refusal; "": it began. */
static const char *refused_deadline(struct world *w, struct session_reduction how,
				    int64_t timeout_ns)
{
	struct world_reply *a;

	how.op = REDUCE_SUM;
	how.dtype = REDUCE_F32;
	how.count = 3;
	a = world_wait(w, 0, world_reduce_send(w, 0, 0, "sum", ids, how, 0, timeout_ns), SOON);
	assert_non_null(a);
	assert_true(a->reply.status == -EINVAL || a->reply.status == 0);
	return a->reply.status ? a->reply.text : "";
}

static void what_no_deadline_can_be(void **state)
{
	struct world *w = some_nodes(2);
	struct session_reduction how = {.min = 4, .deadline_ns = SOON};

	assert_non_null(strstr(refused_deadline(w, how, 2 * SOON), "min is not between"));
	how.min = 0;
	assert_non_null(strstr(refused_deadline(w, how, 2 * SOON), "min is 0"));
	how.min = 3;
	how.num = 3;
	assert_non_null(strstr(refused_deadline(w, how, 2 * SOON), "num and a deadline exclude"));
	how.num = 0;
	assert_non_null(strstr(refused_deadline(w, how, SOON), "not before the reduce's timeout"));
	how.deadline_ns = -1;
	assert_non_null(strstr(refused_deadline(w, how, -1), "negative"));
	how.deadline_ns = 0;
	how.reserved = 1;
	assert_non_null(strstr(refused_deadline(w, how, -1), "reserved"));
	assert_int_equal(requesters(w), 0);
	how.reserved = 0;
	assert_string_equal(refused_deadline(w, how, -1), "");
	world_free(w);
}

static void what_cannot_be(void **state)
{
	struct world *w = some_nodes(2);

	assert_int_equal(refused(w, 0, REDUCE_F32, 0, 2), -EINVAL);
	assert_int_equal(refused(w, REDUCE_OP_END, REDUCE_F32, 0, 2), -EINVAL);
	assert_int_equal(refused(w, UINT32_MAX, REDUCE_F32, 0, 2), -EINVAL);
	assert_int_equal(refused(w, REDUCE_SUM, REDUCE_DTYPE_END, 0, 2), -EINVAL);
	assert_int_equal(refused(w, REDUCE_SUM, REDUCE_F32, 3, 2), -EINVAL);
	assert_int_equal(refused(w, REDUCE_SUM, REDUCE_F32, 0, 0), -EINVAL);
	assert_int_equal(refused(w, REDUCE_SUM, REDUCE_F32, 0, SESSION_SOURCES_MAX + 1), -EINVAL);
	ids[5] = ids[2];
	assert_int_equal(refused(w, REDUCE_SUM, REDUCE_F32, 0, 6), -EINVAL);
	ids[5] = world_id("sum");
	assert_int_equal(refused(w, REDUCE_SUM, REDUCE_F32, 0, 6), -EINVAL);
	assert_int_equal(requesters(w), 0);
	world_free(w);
}

static void lengths_that_lie(void **state)
{
	static uint8_t packet[SESSION_REQUEST_BYTES_MAX + OBJECT_ID_BYTES];
	struct world *w = some_nodes(2);
	struct control *c = w->node[0].core;
	struct session_request r = world_request(SESSION_REDUCE, "sum");
	uint64_t bad = control_counters(c)->requests_bad, tries = 0;

	memcpy(packet + sizeof(r), ids, sizeof(ids));
	r.reduction = (struct session_reduction){
		.op = REDUCE_SUM, .dtype = REDUCE_F32, .num = 0, .count = 4};
	for (size_t length = 0; length < sizeof(r) + 5 * OBJECT_ID_BYTES; length++) {
		if (length == sizeof(r) + 4 * OBJECT_ID_BYTES)
			continue;
		memcpy(packet, &r, sizeof(r));
		control_session_request(c, 0, packet, length, w->now_ns);
		tries++;
	}
	for (uint32_t k = 0; k < 4; k++) {
		static const uint32_t counts[] = {1025, 1u << 28, UINT32_MAX, 1u << 31};

		r.reduction.count = counts[k];
		memcpy(packet, &r, sizeof(r));
		control_session_request(c, 0, packet, sizeof(packet), w->now_ns);
		control_session_request(c, 0, packet, sizeof(r), w->now_ns);
		tries += 2;
	}
	for (uint16_t op = SESSION_ATTACH; op < SESSION_OPS; op++) {
		if (op == SESSION_REDUCE)
			continue;
		r = world_request(op, "sum");
		r.reduction.count = 1; /* no other request has sources */
		memcpy(packet, &r, sizeof(r));
		control_session_request(c, 0, packet, sizeof(r), w->now_ns);
		control_session_request(c, 0, packet, sizeof(r) + OBJECT_ID_BYTES, w->now_ns);
		tries += 2;
	}
	assert_int_equal(control_counters(c)->requests_bad - bad, tries);
	assert_int_equal(requesters(w), 0);
	world_free(w);
}

static void too_many_at_a_time(void **state)
{
	struct world *w = some_nodes(1);
	int status = 0;
	uint32_t count = 0;

	while (count < 5000) {
		char target[16];

		snprintf(target, sizeof(target), "t%u", count);
		w->node[0].replies_count = 0;
		status = sum(w, 0, target, 1, 20 * SOON);
		if (status)
			break;
		count++;
	}
	assert_int_equal(status, -EAGAIN);
	assert_in_range(count, 900, 4999);
	assert_int_equal(requesters(w), count);
	world_run(w, 25 * WORLD_SECOND);
	assert_int_equal(requesters(w), 0);
	world_free(w);
}

/* Each of two nodes gets the other's source while one of them streams that very object into a sum:
 * two streams of one object to one node, and neither ends the other. */
static void a_get_beside_a_sum_of_the_same(void **state)
{
	struct world *w = some_nodes(2);
	struct session_request r;
	uint32_t seq[2];

	w->delay_ns = WORLD_MS; /* so that both are under way for long */
	put_sources(w, 0, 2, LARGE);
	for (uint32_t i = 0; i < 2; i++) {
		r = world_request(SESSION_GET, source_name(1 - i));
		r.pin = 0;
		seq[i] = world_send(w, i, 0, &r);
	}
	assert_int_equal(sum(w, 0, "sum", 2, -1), 0);
	assert_int_equal(get_sum(w, 0, "sum", LARGE, 2), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_non_null(world_wait(w, i, seq[i], 10 * WORLD_SECOND));
		assert_int_equal(world_get(w, i, 0, source_name(1 - i), LARGE, 2 - i, -1), 0);
		assert_int_equal(control_counters(w->node[i].core)->failovers, 0);
		assert_int_equal(w->node[i].counters[0].tx_chunk_resends, 0);
	}
	world_free(w);
}

/* A name of that node's part of the directory, after the one before. */
static struct object_id next_of(struct world *w, uint32_t node, unsigned *after)
{
	while (coordinator(w, 0, source_name(*after)) != node)
		++*after;
	return world_id(source_name((*after)++));
}

/* Its directory does not answer: it is asked for two at once. A third one is there. */
static void a_beat_asks_for_what_nobody_is_asked_for(void **state)
{
	struct world *w = some_nodes(3);
	const char *target = target_of(w, 0);
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U8, .num = 0, .count = 3};
	struct object_id id = world_id(target), from[3];
	struct control *c = w->node[0].core;
	struct reduce *r;
	struct call *call;
	unsigned at = 0;

	from[0] = next_of(w, 2, &at);
	from[1] = next_of(w, 2, &at);
	from[2] = next_of(w, 1, &at);
	assert_int_equal(world_put(w, 1, 0, source_name(at - 1), LARGE, 1), 0);
	w->cut[2] = true;
	world_reduce_send(w, 0, 0, target, from, how, 0, -1);
	world_run(w, 20 * WORLD_MS);
	r = reduce_find(c, &id);
	assert_non_null(r);
	call = r->from.source[0].call;
	for (int lost = 0; lost < 2; lost++) {
		if (lost) { /* as if there had been too many calls */
			rpc_cancel(c, call);
			r->from.source[0].call = NULL;
		}
		reduce_beat(c, r);
		assert_non_null(r->from.source[0].call);
		assert_true(lost || r->from.source[0].call == call);
		assert_true(r->from.source[1].with && !r->from.source[1].call);
		assert_true(r->from.source[2].state == SOURCE_KNOWN && !r->from.source[2].call);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_may_ask_how_it_ended),
		cmocka_unit_test(very_many_sources),
		cmocka_unit_test(it_goes_on_without_its_client),
		cmocka_unit_test(time_is_over),
		cmocka_unit_test(deleted_target),
		cmocka_unit_test(another_coordinator_begins_again),
		cmocka_unit_test(the_same_coordinator_begins_again),
		cmocka_unit_test(its_own_node_begins_again),
		cmocka_unit_test(it_is_told_beside_another_one),
		cmocka_unit_test(the_client_says_it_again),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(what_no_deadline_can_be),
		cmocka_unit_test(lengths_that_lie),
		cmocka_unit_test(too_many_at_a_time),
		cmocka_unit_test(a_get_beside_a_sum_of_the_same),
		cmocka_unit_test(a_beat_asks_for_what_nobody_is_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
