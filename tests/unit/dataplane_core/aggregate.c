/* SPDX-License-Identifier: BSD-3-Clause */
/* The aggregator's pool against members' jobs, over a network that loses, doubles and reorders. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>
#include "aggregate.h"
#include "switch/aggregate_job.h"

enum { WINDOW = 16, MEMBERS = 5, ELEMENTS = 20000, FLYING_MAX = 8192, PAYLOAD = 480 };

#define MS    1000000ull
#define KEY   UINT64_C(0x123456789abcdef0)
#define TOKEN UINT64_C(0xfedcba9876543210) /* of member 0; the next one has the next */

struct flying { /* a packet on its way to the switch, or to a member */
	uint64_t due_ns;
	unsigned to; /* member, or MEMBERS: the switch */
	unsigned from;
	uint32_t bytes;
	uint8_t packet[AGGREGATE_PACKET_MAX];
};

struct world {
	uint64_t now_ns, random;
	unsigned loss, duplicates; /* per mille */
	bool dead;		   /* the switch */
	struct aggregate_pool pool;
	struct aggregate_job job[MEMBERS];
	unsigned silent; /* members that do not take part, as bits */
	unsigned count;
	struct flying flying[FLYING_MAX];
	uint8_t source[MEMBERS][ELEMENTS * 8], target[MEMBERS][ELEMENTS * 8];
};

static uint64_t draw(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static void send_one(struct world *w, unsigned from, unsigned to, const void *packet,
		     uint32_t bytes)
{
	if (draw(w) % 1000 < w->loss || w->count == FLYING_MAX)
		return;
	struct flying *f = &w->flying[w->count++];
	*f = (struct flying){.due_ns = w->now_ns + 10000 + draw(w) % 200000,
			     .to = to,
			     .from = from,
			     .bytes = bytes};
	memcpy(f->packet, packet, bytes);
}

static void send_packet(struct world *w, unsigned from, unsigned to, const void *packet,
			uint32_t bytes)
{
	send_one(w, from, to, packet, bytes);
	if (draw(w) % 1000 < w->duplicates)
		send_one(w, from, to, packet, bytes);
}

static void send_answer(struct world *w, const struct aggregate_answer *a)
{
	uint8_t out[AGGREGATE_PACKET_MAX];
	uint32_t bytes = aggregate_write(a, out);
	for (unsigned m = 0; m < MEMBERS; m++)
		if (a->ports >> m & 1)
			send_packet(w, MEMBERS, m, out, bytes);
}

static enum aggregate_verdict take(struct world *w, uint64_t now_ns, unsigned port,
				   const void *packet, uint32_t bytes, struct aggregate_answer *a)
{
	struct aggregate_source from = {.port = port, .origin = 1000 + port};
	enum aggregate_verdict v = aggregate_take(&w->pool, now_ns, from, packet, bytes, a);
	if (v >= AGGREGATE_COMPLETE)
		assert_int_equal(a->origin, 1000 + port);
	return v;
}

static void arrive(struct world *w, const struct flying *f)
{
	struct aggregate_answer a;
	if (f->to < MEMBERS) {
		assert_true(aggregate_intact(f->packet, f->bytes));
		aggregate_job_take(&w->job[f->to], w->now_ns, f->packet, f->bytes);
		return;
	}
	if (w->dead)
		return;
	enum aggregate_verdict v = take(w, w->now_ns, f->from, f->packet, f->bytes, &a);
	if (v >= AGGREGATE_COMPLETE)
		send_answer(w, &a);
}

static void step(struct world *w)
{
	struct aggregate_answer a;
	uint8_t out[AGGREGATE_PACKET_MAX];
	w->now_ns += 20000;
	for (unsigned i = 0; i < w->count; i++) {
		if (w->flying[i].due_ns > w->now_ns)
			continue;
		struct flying f = w->flying[i];
		w->flying[i--] = w->flying[--w->count];
		arrive(w, &f);
	}
	while (aggregate_expire(&w->pool, w->now_ns, &a))
		send_answer(w, &a);
	for (unsigned m = 0; m < MEMBERS; m++) {
		uint32_t bytes;
		if (w->silent >> m & 1)
			continue;
		while ((bytes = aggregate_job_next(&w->job[m], w->now_ns, out)) > 0)
			send_packet(w, m, MEMBERS, out, bytes);
	}
}

static struct world *begin(uint64_t seed, uint32_t groups)
{
	struct world *w = calloc(1, sizeof(*w));
	w->random = seed * 0x9e3779b97f4a7c15ull + 1;
	w->now_ns = 1000 * MS;
	void *memory = aligned_alloc(64, aggregate_bytes(groups, WINDOW));
	memset(memory, 0, aggregate_bytes(groups, WINDOW));
	aggregate_init(&w->pool, groups, WINDOW, memory, kernel_level_best());
	return w;
}

static void end(struct world *w)
{
	free(w->pool.slot);
	free(w);
}

/* One member asks for a group. */
static enum aggregate_verdict install_one(struct world *w, const struct aggregate_header *what,
					  uint8_t quorum, uint32_t deadline_us, uint64_t key,
					  uint64_t token, struct aggregate_answer *a)
{
	struct {
		struct aggregate_header h;
		struct aggregate_place place;
	} p = {.h = *what, .place = {.key = key, .token = token}};
	struct aggregate_policy policy = {.quorum = quorum, .deadline_us = deadline_us};
	p.h.kind = AGGREGATE_INSTALL;
	memcpy(&p.h.bitmap, &policy, sizeof(policy));
	aggregate_seal(&p, sizeof(p));
	return take(w, w->now_ns, 0, &p, sizeof(p), a);
}

/* All of them do, until one is refused. */
static enum aggregate_verdict install(struct world *w, uint32_t group, uint32_t version,
				      uint8_t quorum, uint32_t deadline_us,
				      struct aggregate_answer *a)
{
	enum aggregate_verdict v = AGGREGATE_ANSWER;
	for (uint8_t m = 0; m < MEMBERS && v == AGGREGATE_ANSWER; m++) {
		struct aggregate_header h = {
			.member = m, .members = MEMBERS, .group = group, .round = version};
		v = install_one(w, &h, quorum, deadline_us, KEY, TOKEN + m, a);
	}
	return v;
}

static unsigned answered_quorum(const struct aggregate_answer *a)
{
	struct aggregate_policy policy;
	memcpy(&policy, &a->header.bitmap, sizeof(policy));
	return policy.quorum;
}

static void start(struct world *w, uint32_t round, uint8_t op, uint8_t dtype, uint64_t bytes)
{
	for (unsigned m = 0; m < MEMBERS; m++) {
		struct aggregate_job_spec spec = {.source = w->source[m],
						  .target = w->target[m],
						  .bytes = bytes,
						  .group = 7,
						  .round = round,
						  .window = WINDOW,
						  .payload = PAYLOAD,
						  .member = (uint8_t)m,
						  .members = MEMBERS,
						  .token = TOKEN + m,
						  .op = op,
						  .dtype = dtype};
		aggregate_job_init(&w->job[m], &spec, w->now_ns);
	}
}

/* Until each member that takes part has ended; returns how many have all. */
static unsigned run(struct world *w)
{
	for (unsigned steps = 0;; steps++) {
		unsigned ended = 0, whole = 0;
		step(w);
		for (unsigned m = 0; m < MEMBERS; m++) {
			int status = aggregate_job_status(&w->job[m], w->now_ns);
			ended += status != 0 || w->silent >> m & 1;
			whole += status == 1;
		}
		if (ended == MEMBERS)
			return whole;
		assert_true(steps < 1000000);
	}
}

static void fill(struct world *w, uint32_t bytes, unsigned step_of)
{
	for (unsigned m = 0; m < MEMBERS; m++)
		for (uint32_t i = 0; i < bytes; i++)
			w->source[m][i] = (uint8_t)(i * step_of + m * 3 + (i >> 7));
}

static void check_all(struct world *w, uint8_t op, uint8_t dtype, uint32_t bytes)
{
	static uint8_t expect[ELEMENTS * 8];
	memcpy(expect, w->source[0], bytes);
	for (unsigned m = 1; m < MEMBERS; m++)
		kernel_find(KERNEL_C, op, dtype)(expect, expect, w->source[m], bytes);
	if (op == REDUCE_AVG)
		kernel_find_scale(KERNEL_C, dtype)(expect, MEMBERS, bytes);
	for (unsigned m = 0; m < MEMBERS; m++)
		assert_memory_equal(w->target[m], expect, bytes);
}

/* One is longer by chunks, by a part of one, or only by what the others pad: nobody has a sum of
 * the beginning, also not when a quorum would do. */
static void unlike_lengths_are_refused_to_all(void **state)
{
	static const uint32_t more[] = {4, 8, PAYLOAD - 8, PAYLOAD, 3 * PAYLOAD, 30 * PAYLOAD};
	struct aggregate_answer a;
	for (unsigned i = 0; i < sizeof(more) / sizeof(*more); i++)
		for (unsigned block = 0; block < 2; block++)
			for (unsigned quorum = MEMBERS - 1; quorum <= MEMBERS; quorum++) {
				struct world *w = begin(i, 1);
				uint8_t dtype = block ? AGGREGATE_BLOCK : REDUCE_I32;
				install(w, 7, 1, (uint8_t)quorum, 5000, &a);
				fill(w, sizeof(w->source[0]), 0);
				start(w, 0, REDUCE_SUM, dtype, 2 * PAYLOAD);
				w->job[1].spec.bytes += more[i];
				struct aggregate_job_spec longer = w->job[1].spec;
				aggregate_job_init(&w->job[1], &longer, w->now_ns);
				assert_int_equal(run(w), 0);
				for (unsigned m = 0; m < MEMBERS; m++)
					assert_int_equal(
						aggregate_job_status(&w->job[m], w->now_ns),
						-EINVAL);
				end(w);
			}
}

/* Each type of integer, where no order can show: rounds follow one another in one group. */
static void every_operation_on_integers_is_exact(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(1, 2);
	w->loss = 20, w->duplicates = 20;
	assert_int_equal(install(w, 7, 1, MEMBERS, 0, &a), AGGREGATE_ANSWER);
	uint32_t round = 0;
	for (uint8_t dtype = REDUCE_I8; dtype < REDUCE_DTYPE_END; dtype++)
		for (uint8_t op = 1; op < REDUCE_OP_END; op++) {
			uint32_t bytes = (uint32_t)(1 + draw(w) % 2000) * 8;
			fill(w, bytes, op);
			start(w, round++, op, dtype, bytes);
			assert_int_equal(run(w), MEMBERS);
			check_all(w, op, dtype, bytes);
		}
	end(w);
}

static void floats_of_every_type_meet_in_any_order(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(2, 1);
	w->loss = 100, w->duplicates = 100;
	install(w, 7, 1, MEMBERS, 0, &a);
	static const uint8_t types[] = {REDUCE_F16, REDUCE_BF16, REDUCE_F32, REDUCE_F64};
	for (unsigned t = 0; t < 4; t++) { /* few values, whose sums are exact in all types */
		for (unsigned m = 0; m < MEMBERS; m++)
			for (uint32_t i = 0; i < 2400; i++) {
				static const uint8_t one[4][8] = {{0, 0x3c},
								  {0x80, 0x3f},
								  {0, 0, 0x80, 0x3f},
								  {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}};
				uint32_t size = reduce_dtype_bytes(types[t]);
				memset(w->source[m] + i * size, 0, size);
				if ((i + m) % 3)
					memcpy(w->source[m] + i * size, one[t], size);
			}
		uint32_t bytes = 2400 * reduce_dtype_bytes(types[t]);
		start(w, t, REDUCE_SUM, types[t], bytes);
		assert_int_equal(run(w), MEMBERS);
		check_all(w, REDUCE_SUM, types[t], bytes);
	}
	end(w);
}

/* Sizes around a chunk, a window and none of them; heavy loss. All members get the same bits. */
static void any_loss_gives_the_same_bytes_to_all(void **state)
{
	static const uint32_t sizes[] = {1,   7,	8,	  479,		480,
					 481, 15 * 480, 16 * 480, 17 * 480 + 3, 90000};
	struct aggregate_answer a;
	for (unsigned seed = 0; seed < 30; seed++) {
		struct world *w = begin(100 + seed, 1);
		w->loss = seed * 4, w->duplicates = 50;
		install(w, 7, 1, MEMBERS, 0, &a);
		for (uint32_t round = 0; round < 4; round++) {
			uint32_t bytes = sizes[draw(w) % 10];
			fill(w, ELEMENTS, round + 1);
			start(w, round, REDUCE_SUM, REDUCE_U8, bytes);
			assert_int_equal(run(w), MEMBERS);
			check_all(w, REDUCE_SUM, REDUCE_U8, bytes);
			for (unsigned m = 0; m < MEMBERS; m++) {
				assert_int_equal(aggregate_job_ready(&w->job[m]), bytes);
				assert_int_equal(w->job[m].in_all & 31, 31);
			}
		}
		end(w);
	}
}

static void blocks_agree_on_exponents(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(3, 1);
	w->loss = 50;
	install(w, 7, 1, MEMBERS, 0, &a);
	static const uint32_t counts[] = {1, 119, 120, 121, 16 * 120 + 5, ELEMENTS};
	for (uint32_t c = 0; c < 6; c++) {
		float *x[MEMBERS], *y = (float *)w->target[0];
		for (unsigned m = 0; m < MEMBERS; m++) {
			x[m] = (float *)w->source[m];
			for (uint32_t i = 0; i < counts[c]; i++)
				x[m][i] = ldexpf((float)(int64_t)(draw(w) % 2000001) - 1e6f,
						 (int)(i / 120 % 40) - 20);
		}
		start(w, c, REDUCE_SUM, AGGREGATE_BLOCK, counts[c] * 4);
		assert_int_equal(run(w), MEMBERS);
		for (uint32_t i = 0; i < counts[c]; i++) {
			double sum = 0;
			for (unsigned m = 0; m < MEMBERS; m++)
				sum += x[m][i];
			/* half a step of 2^-27 of the block's largest value, per member */
			double most = ldexp(2e6, (int)(i / 120 % 40) - 20);
			assert_true(fabs(y[i] - sum) <= MEMBERS * most * ldexp(1, -27));
		}
		for (unsigned m = 1; m < MEMBERS; m++)
			assert_memory_equal(w->target[m], y, counts[c] * 4);
	}
	((float *)w->source[2])[130] = NAN;
	start(w, 6, REDUCE_SUM, AGGREGATE_BLOCK, 480 * 3);
	assert_int_equal(run(w), MEMBERS);
	assert_true(isnan(((float *)w->target[1])[130]) && !isnan(((float *)w->target[1])[119]) &&
		    !isnan(((float *)w->target[1])[240]));
	end(w);
}

static void a_quorum_completes_without_a_silent_member(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(4, 1);
	w->loss = 30;
	w->silent = 4;
	install(w, 7, 1, MEMBERS - 1, 2000, &a);
	fill(w, 9000, 1);
	start(w, 0, REDUCE_SUM, REDUCE_U8, 9000);
	assert_int_equal(run(w), MEMBERS - 1);
	for (uint32_t i = 0; i < 9000; i++) {
		uint8_t sum = 0;
		for (unsigned m = 0; m < MEMBERS; m++)
			sum = (uint8_t)(sum + (m == 2 ? 0 : w->source[m][i]));
		assert_int_equal(w->target[0][i], sum);
	}
	for (unsigned m = 0; m < MEMBERS; m++)
		if (m != 2) {
			assert_int_equal(w->job[m].in_all & 31, 31 & ~4);
			assert_int_equal(w->job[m].fewest, MEMBERS - 1);
		}
	assert_int_equal(aggregate_timeout(&w->pool), UINT64_MAX);
	/* the late one is told: the first chunk's slot serves a later one, the last has a result */
	uint8_t out[AGGREGATE_PACKET_MAX];
	uint32_t bytes = aggregate_job_next(&w->job[2], w->now_ns, out);
	assert_int_equal(take(w, w->now_ns, 2, out, bytes, &a), AGGREGATE_LATE);
	assert_int_equal(a.header.kind, AGGREGATE_RESULT);
	assert_int_equal(a.header.bitmap >> 2 & 1, 0);
	end(w);
}

/* A change of the policy holds for the slots that are opened from then on. */
static void a_later_version_swaps_the_policy(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(5, 1);
	uint8_t out[AGGREGATE_PACKET_MAX];
	install(w, 7, 2, MEMBERS, 0, &a);
	start(w, 0, REDUCE_SUM, REDUCE_U8, 2 * PAYLOAD);
	uint32_t bytes = aggregate_job_next(&w->job[0], 1, out);
	assert_int_equal(take(w, 1, 0, out, bytes, &a), AGGREGATE_ADDED);
	assert_int_equal(install(w, 7, 1, 1, 0, &a), AGGREGATE_ANSWER); /* an earlier one */
	assert_int_equal(answered_quorum(&a), MEMBERS);
	install(w, 7, 3, 2, 0, &a);
	assert_int_equal(answered_quorum(&a), 2);
	bytes = aggregate_job_next(&w->job[1], 1, out);
	assert_int_equal(take(w, 1, 1, out, bytes, &a), AGGREGATE_ADDED);
	bytes = aggregate_job_next(&w->job[1], 1, out);
	assert_int_equal(take(w, 1, 1, out, bytes, &a), AGGREGATE_ADDED);
	bytes = aggregate_job_next(&w->job[0], 1, out);
	assert_int_equal(take(w, 1, 0, out, bytes, &a), AGGREGATE_COMPLETE);
	end(w);
}

static enum aggregate_verdict contribute(struct world *w, uint8_t member, uint8_t members)
{
	struct aggregate_answer a;
	struct {
		struct aggregate_header h;
		uint8_t payload[AGGREGATE_STEP];
	} p = {.h = {.kind = AGGREGATE_CONTRIBUTION,
		     .member = member,
		     .members = members,
		     .group = 7,
		     .operation = REDUCE_SUM | REDUCE_U8 << 4,
		     .bitmap = TOKEN + member}};
	aggregate_seal(&p, sizeof(p));
	return take(w, w->now_ns, 0, &p, sizeof(p), &a);
}

/* And the members with which a slot was opened are those that it waits for. */
static void a_later_version_with_more_members(void **state)
{
	enum { FEW = MEMBERS - 1 };
	struct aggregate_answer a;
	struct world *w = begin(6, 1);
	for (uint8_t m = 0; m < FEW; m++) {
		struct aggregate_header h = {.member = m, .members = FEW, .group = 7, .round = 1};
		assert_int_equal(install_one(w, &h, FEW, 1000000, KEY, TOKEN + m, &a),
				 AGGREGATE_ANSWER);
	}
	for (uint8_t m = 0; m + 1 < FEW; m++)
		assert_int_equal(contribute(w, m, FEW), AGGREGATE_ADDED);
	assert_int_equal(install(w, 7, 2, MEMBERS, 0, &a), AGGREGATE_ANSWER);
	assert_int_equal(contribute(w, FEW - 1, MEMBERS), AGGREGATE_COMPLETE);
	end(w);
}

static void a_dead_switch_is_noticed(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(6, 1);
	install(w, 7, 1, MEMBERS, 0, &a);
	start(w, 0, REDUCE_SUM, REDUCE_U8, 100000);
	for (unsigned i = 0; i < 100; i++)
		step(w);
	assert_int_equal(aggregate_job_status(&w->job[0], w->now_ns), 0);
	w->dead = true;
	uint64_t died_ns = w->now_ns;
	assert_int_equal(run(w), 0);
	assert_int_equal(aggregate_job_status(&w->job[0], w->now_ns), -ENETUNREACH);
	assert_in_range(w->now_ns - died_ns, 200 * MS, 300 * MS);
	end(w);
}

/* Members that wait for another one are not told that the switch is gone, and send little. */
static void a_straggler_costs_polls_only(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(7, 1);
	install(w, 7, 1, MEMBERS, 0, &a);
	fill(w, 50000, 3);
	start(w, 0, REDUCE_SUM, REDUCE_U8, 50000);
	w->job[3].source_ready = 4000;
	for (unsigned i = 0; i < 100000; i++) /* 2 s */
		step(w);
	for (unsigned m = 0; m < MEMBERS; m++)
		assert_int_equal(aggregate_job_status(&w->job[m], w->now_ns), 0);
	assert_int_equal(aggregate_job_ready(&w->job[0]), 4000 / PAYLOAD * PAYLOAD);
	assert_in_range(w->job[0].polls, 10, 2 * 40 * WINDOW);
	assert_int_equal(w->job[0].resent, 0);
	w->job[3].source_ready = 50000;
	assert_int_equal(run(w), MEMBERS);
	check_all(w, REDUCE_SUM, REDUCE_U8, 50000);
	end(w);
}

static void what_does_not_fit_is_refused_or_passed_on(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(8, 2);
	uint8_t out[AGGREGATE_PACKET_MAX], other[AGGREGATE_PACKET_MAX];
	start(w, 0, REDUCE_SUM, REDUCE_U8, 10 * PAYLOAD);
	uint32_t bytes = aggregate_job_next(&w->job[0], 1, out);
	assert_int_equal(take(w, 1, 0, out, bytes, &a), AGGREGATE_PASS);
	assert_int_equal(install(w, 7, 1, MEMBERS + 1, 0, &a), AGGREGATE_BAD);
	install(w, 7, 1, MEMBERS, 0, &a);
	install(w, 8, 1, MEMBERS, 0, &a);
	w->pool.own = 1000; /* nobody else would take it */
	assert_int_equal(install(w, 9, 1, MEMBERS, 0, &a), AGGREGATE_REFUSE);
	assert_int_equal(a.header.flags, AGGREGATE_NO_ROOM);
	w->pool.own = 0; /* a host is there, which keeps what it has when there is room again */
	assert_int_equal(install(w, 10, 1, MEMBERS, 0, &a), AGGREGATE_PASS);
	w->pool.group[0].used = w->pool.group[1].used = false;
	assert_int_equal(install(w, 10, 1, MEMBERS, 0, &a), AGGREGATE_PASS);
	w->pool.group[0].used = w->pool.group[1].used = true;
	assert_int_equal(take(w, w->now_ns, 0, out, bytes, &a), AGGREGATE_ADDED);
	assert_int_equal(take(w, w->now_ns, 0, out, bytes, &a), AGGREGATE_DUPLICATE);

	struct aggregate_header *h = (struct aggregate_header *)other;
	memcpy(other, out, bytes);
	h->member = 1;
	assert_int_equal(take(w, w->now_ns, 0, other, bytes, &a), AGGREGATE_BAD);
	h->operation = 0;
	h->bitmap = TOKEN + 1;
	aggregate_seal(other, bytes);
	assert_int_equal(take(w, w->now_ns, 0, other, bytes, &a), AGGREGATE_REFUSE);
	assert_int_equal(a.header.flags, AGGREGATE_NO_KERNEL);
	h->operation = aggregate_operation(REDUCE_SUM, REDUCE_I8);
	aggregate_seal(other, bytes);
	assert_int_equal(take(w, w->now_ns, 0, other, bytes, &a), AGGREGATE_REFUSE);
	assert_int_equal(a.header.flags, AGGREGATE_OTHER_SHAPE);
	h->member = MEMBERS;
	aggregate_seal(other, bytes);
	assert_int_equal(take(w, w->now_ns, 0, other, bytes, &a), AGGREGATE_BAD);
	for (uint32_t cut = 0; cut < bytes; cut++)
		assert_int_equal(take(w, w->now_ns, 0, out, cut, &a), AGGREGATE_BAD);

	/* an idle group gives way; the other one, in use, does not */
	w->now_ns += AGGREGATE_IDLE_NS + 1;
	install(w, 8, 1, MEMBERS, 0, &a);
	assert_int_equal(install(w, 9, 1, MEMBERS, 0, &a), AGGREGATE_ANSWER);
	assert_int_equal(take(w, w->now_ns, 0, out, bytes, &a), AGGREGATE_PASS);
	end(w);
}

/* Who does not know the key, or does not have the place, adds nothing and hears nothing. */
static void only_members_contribute(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(10, 1);
	uint8_t out[AGGREGATE_PACKET_MAX], other[AGGREGATE_PACKET_MAX];
	struct aggregate_header what = {.member = 1, .members = MEMBERS, .group = 7, .round = 1};
	struct aggregate_header *h = (struct aggregate_header *)other;
	install_one(w, &(struct aggregate_header){.members = MEMBERS, .group = 7, .round = 1},
		    MEMBERS, 0, KEY, TOKEN, &a);
	start(w, 0, REDUCE_SUM, REDUCE_U8, 10 * PAYLOAD);
	uint32_t bytes = aggregate_job_next(&w->job[1], 1, out);
	assert_int_equal(take(w, 1, 0, out, bytes, &a), AGGREGATE_FOREIGN); /* not installed */
	assert_int_equal(install_one(w, &what, MEMBERS, 0, KEY, 0, &a), AGGREGATE_BAD);
	assert_int_equal(install_one(w, &what, MEMBERS, 0, KEY + 1, TOKEN + 1, &a),
			 AGGREGATE_FOREIGN);
	assert_int_equal(install_one(w, &what, MEMBERS, 0, KEY, TOKEN + 1, &a), AGGREGATE_ANSWER);
	assert_int_equal(install_one(w, &what, MEMBERS, 0, KEY, TOKEN + 2, &a), AGGREGATE_REFUSE);
	assert_int_equal(a.header.flags, AGGREGATE_OTHER_MEMBER);
	memcpy(other, out, bytes);
	h->bitmap = TOKEN; /* of another member */
	aggregate_seal(other, bytes);
	assert_int_equal(take(w, 1, 0, other, bytes, &a), AGGREGATE_FOREIGN);
	assert_int_equal(take(w, 1, 0, out, bytes, &a), AGGREGATE_ADDED);

	/* a later version has two members; this place is another process's, and the old one is out
	 */
	what.round = 2;
	what.members = 2;
	assert_int_equal(install_one(w, &what, 2, 0, KEY, TOKEN + 2, &a), AGGREGATE_ANSWER);
	assert_int_equal(take(w, 1, 0, out, bytes, &a), AGGREGATE_FOREIGN);
	what.round = 1; /* what is repeated late opens the place to nobody */
	assert_int_equal(install_one(w, &what, 2, 0, KEY, TOKEN + 2, &a), AGGREGATE_ANSWER);
	what.round = 2;
	assert_int_equal(install_one(w, &what, 2, 0, KEY, TOKEN + 1, &a), AGGREGATE_REFUSE);
	assert_int_equal(a.header.flags, AGGREGATE_OTHER_MEMBER);
	what.round = 1;
	what.members = MEMBERS;
	assert_int_equal(install_one(w, &what, MEMBERS, 0, KEY, TOKEN + 1, &a), AGGREGATE_REFUSE);
	memcpy(other, out, bytes);
	h->bitmap = TOKEN + 2;
	h->members = 2;
	h->round = 2;
	aggregate_seal(other, bytes);
	assert_int_equal(take(w, 1, 0, other, bytes, &a), AGGREGATE_ADDED);
	assert_int_equal(w->pool.count[AGGREGATE_FOREIGN], 4);
	end(w);
}

/* Any bytes with a right check: nothing is read or written outside, and nothing asserts. */
static void hostile_headers_do_no_harm(void **state)
{
	struct aggregate_answer a;
	struct world *w = begin(9, 2);
	uint8_t out[AGGREGATE_PACKET_MAX];
	install(w, 7, 1, MEMBERS, 500, &a);
	start(w, 0, REDUCE_SUM, REDUCE_U8, 10 * PAYLOAD);
	for (unsigned i = 0; i < 300000; i++) {
		struct aggregate_header h = {.kind = (uint8_t)(AGGREGATE_INSTALL + draw(w) % 10),
					     .member = (uint8_t)(draw(w) % 8),
					     .members = draw(w) % 8 ? MEMBERS : (uint8_t)draw(w),
					     .bitmap = draw(w) >> (draw(w) & 63),
					     .group = draw(w) % 16 ? 7 : (uint32_t)draw(w) % 10,
					     .round = (uint32_t)draw(w) >> (draw(w) & 31),
					     .chunk = (uint32_t)draw(w) >> (draw(w) & 31),
					     .operation = (uint8_t)draw(w),
					     .exponent = (signed char)draw(w)};
		uint32_t bytes = AGGREGATE_HEADER + (uint32_t)(draw(w) % 181) * 8;
		if (h.kind == AGGREGATE_INSTALL && draw(w) % 2) /* mostly as it must be */
			bytes = AGGREGATE_HEADER + sizeof(struct aggregate_place);
		else if (h.kind != AGGREGATE_INSTALL && draw(w) % 8)
			h.bitmap = TOKEN + h.member;
		h.slot = (uint16_t)(h.chunk % WINDOW + (draw(w) % 16 == 0));
		memset(out, (int)i, sizeof(out));
		memcpy(out, &h, sizeof(h));
		aggregate_seal(out, bytes);
		w->now_ns += draw(w) % 1000000;
		if (take(w, w->now_ns, i % 64, out, bytes, &a) >= AGGREGATE_COMPLETE)
			assert_in_range(aggregate_write(&a, out), AGGREGATE_HEADER,
					AGGREGATE_PACKET_MAX);
		while (aggregate_expire(&w->pool, w->now_ns, &a))
			assert_in_range(aggregate_write(&a, out), AGGREGATE_HEADER,
					AGGREGATE_PACKET_MAX);
		aggregate_job_take(&w->job[0], w->now_ns, out, bytes);
		aggregate_job_next(&w->job[0], w->now_ns, out);
	}
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unlike_lengths_are_refused_to_all),
		cmocka_unit_test(every_operation_on_integers_is_exact),
		cmocka_unit_test(floats_of_every_type_meet_in_any_order),
		cmocka_unit_test(any_loss_gives_the_same_bytes_to_all),
		cmocka_unit_test(blocks_agree_on_exponents),
		cmocka_unit_test(a_quorum_completes_without_a_silent_member),
		cmocka_unit_test(a_later_version_swaps_the_policy),
		cmocka_unit_test(a_later_version_with_more_members),
		cmocka_unit_test(a_dead_switch_is_noticed),
		cmocka_unit_test(a_straggler_costs_polls_only),
		cmocka_unit_test(what_does_not_fit_is_refused_or_passed_on),
		cmocka_unit_test(only_members_contribute),
		cmocka_unit_test(hostile_headers_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
