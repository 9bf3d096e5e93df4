/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups in a queue, with a fake control that answers as a script says: owners that do not know a
 * member, answers that are lost, operations that are cancelled, queues that are closed. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include "fixtures/client_test.h"
#include "api/group.h"
#include "internal/group.h"
#include "sarissa/group.h"

static const int64_t ms = 1000000;

/* The answers to come, in order; SILENT: none. After them each request is answered with 0. */
enum { SILENT = 1, HEARD_MAX = 64 };
static struct {
	int answer[16];
	unsigned answers;
	struct group_request heard[HEARD_MAX];
	_Atomic unsigned count;
	uint64_t round;
	uint32_t attempt;
	unsigned jobs; /* so many pulls are answered with this one */
	struct group_job job;
	unsigned members; /* of INFO */
	struct session_request last;
} owner;

static void owner_says(const int *answer, unsigned count)
{
	memcpy(owner.answer, answer, count * sizeof(*answer));
	owner.answers = count;
	owner.count = 0;
}

#define OWNER_SAYS(...) \
	owner_says((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static bool group_hook(struct fake *f, int conn, const struct session_request *request)
{
	struct {
		struct session_reply reply;
		struct group_answer answer;
	} packet = {0};
	unsigned i = owner.count;
	const struct group_request *r = &owner.heard[i];
	int status = i < owner.answers ? owner.answer[i] : 0;
	if (request->op == SESSION_CANCEL) {
		fake_status(f, conn, &owner.last, -ECANCELED);
		fake_status(f, conn, request, 0);
		return true;
	}
	if (request->op != SESSION_GROUP)
		return false;
	assert_int_equal(f->tail_bytes, sizeof(*r));
	assert_true(i < HEARD_MAX);
	memcpy(&owner.heard[i], f->tail, sizeof(*r));
	owner.last = *request;
	owner.count++; /* before the answer: after it the script may be another one */
	packet.reply = fake_reply(request, status);
	packet.reply.flags = SESSION_FLAG_MORE;
	packet.answer = (struct group_answer){.count = 4,
					      .dtype = SAR_I32,
					      .round = owner.round,
					      .attempt = owner.attempt,
					      .version = 7,
					      .live = owner.members,
					      .clock = r->clock};
	if (r->step == GROUP_PULL && owner.jobs > 0) {
		owner.jobs--;
		packet.answer.job = owner.job;
	}
	for (uint32_t m = r->cursor; r->step == GROUP_INFO && m < owner.members; m++) {
		if (packet.answer.page == GROUP_PAGE) {
			packet.answer.cursor = m;
			break;
		}
		packet.answer.member[packet.answer.page++].member = m + 1;
	}
	if (status == 0)
		fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	if (status != SILENT)
		fake_status(f, conn, request, status);
	return true;
}

static void expect_steps(const uint32_t *step, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(owner.heard[i].step, step[i]);
	assert_int_equal(owner.count, count);
}

#define EXPECT_STEPS(...)                             \
	expect_steps((const uint32_t[]){__VA_ARGS__}, \
		     sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static sar_queue *queue_open(struct client *c)
{
	sar_queue *q;
	c->fake.hook = group_hook;
	OWNER_SAYS(0);
	owner.round = 0;
	owner.attempt = 0;
	owner.jobs = 0;
	owner.members = 0;
	assert_int_equal(sar_queue_open(c->s, 8, &q), 0);
	return q;
}

static sar_completion one(sar_queue *q, uint32_t op, int result)
{
	sar_completion c;
	assert_int_equal(sar_poll_wait(q, &c, 1, 1, 20000 * ms), 1);
	assert_int_equal(c.op, op);
	assert_int_equal(c.result, result);
	assert_int_equal(c.user_data, 5);
	assert_true(result >= 0 || *sar_completion_detail(q, &c));
	return c;
}

static sar_member *join(sar_queue *q)
{
	sar_member *m = NULL;
	assert_int_equal(sar_submit_group_join(q, "g", "fast", &m, 5), 0);
	one(q, SAR_OP_GROUP_JOIN, 0);
	assert_string_equal(owner.heard[0].cohort, "fast");
	OWNER_SAYS(0);
	return m;
}

static void put_object(struct client *c, const char *name, const void *data, uint64_t size)
{
	assert_int_equal(sar_put(c->s, test_id(name), NULL, data, size), 0);
}

static const int32_t numbers[4] = {1, 2, 3, 4};

static void groups_are_made_changed_and_described(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_group_spec spec = {.count = 4, .dtype = SAR_I32, .policy = "bsp"};
	sar_member_info member[40];
	sar_group_info info;
	char name[SAR_GROUP_NAME_MAX + 2];
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sar_submit_group_create(q, name, &spec, 5), -ENAMETOOLONG);
	assert_int_equal(sar_submit_group_create(q, "g", NULL, 5), -EINVAL);
	assert_int_equal(sar_submit_group_create(q, "g", &spec, 5), 0);
	one(q, SAR_OP_GROUP_CREATE, 0);
	OWNER_SAYS(-EAGAIN, 0);
	assert_int_equal(sar_submit_group_policy(q, "g", "asp", 5), 0);
	one(q, SAR_OP_GROUP_POLICY, -EAGAIN); /* of the owner: it is not held back */
	assert_int_equal(sar_submit_group_policy(q, "g", "asp", 5), 0);
	assert_int_equal(one(q, SAR_OP_GROUP_POLICY, 0).value, 7);
	assert_string_equal(owner.heard[1].policy, "asp");
	owner.members = 37;
	OWNER_SAYS(0);
	assert_int_equal(sar_submit_group_info(q, "g", &info, member, 40, 5), 0);
	assert_int_equal(one(q, SAR_OP_GROUP_INFO, 0).value, 37);
	EXPECT_STEPS(GROUP_INFO, GROUP_INFO, GROUP_INFO);
	for (unsigned i = 0; i < 37; i++)
		assert_int_equal(member[i].member, i + 1);
	assert_int_equal(info.live, 37);
	OWNER_SAYS(0);
	assert_int_equal(sar_submit_group_info(q, "g", &info, member, 3, 5), 0);
	assert_int_equal(one(q, SAR_OP_GROUP_INFO, 0).value, 3);
	EXPECT_STEPS(GROUP_INFO);
	OWNER_SAYS(-ENOENT);
	assert_int_equal(sar_submit_group_remove(q, "g", 5), 0);
	one(q, SAR_OP_GROUP_REMOVE, -ENOENT);
	sar_queue_close(q);
}

static void a_member_pushes_and_pulls(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	sar_contributor who[2];
	sar_completion done;
	assert_int_equal(sar_submit_group_push(q, m, numbers, 15, 5), -EINVAL);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), -EBUSY);
	assert_int_equal(sar_group_pull(m, 0, &result), -EBUSY);
	assert_int_equal(sar_group_leave(m), -EBUSY);
	assert_int_equal(one(q, SAR_OP_GROUP_PUSH, 0).value, 1);
	assert_int_equal(sar_member_clock(m), 1);
	EXPECT_STEPS(GROUP_PUSH);
	owner.round = 3;
	put_object(c, ".group/g/r/3", numbers, 16);
	put_object(c, ".group/g/d/3", "c 1f 1 0 2\nc 20 1 4 3\n", 22);
	assert_int_equal(sar_submit_group_pull(q, m, -1, &result, 5), -EINVAL);
	assert_int_equal(sar_submit_group_pull(q, m, 20000 * ms, &result, 5), 0);
	done = one(q, SAR_OP_GROUP_PULL, 0);
	assert_int_equal(done.value, 3);
	assert_memory_equal(done.buffer.data, numbers, 16);
	assert_int_equal(result.version, 7);
	sar_release(c->s, &done.buffer);
	assert_int_equal(sar_submit_group_contributors(q, m, &result, who, 2, 5), 0);
	one(q, SAR_OP_GROUP_CONTRIBUTORS, 2);
	assert_int_equal(who[0].member, 0x1f);
	assert_int_equal(who[1].staleness, 4);
	assert_int_equal(sar_submit_group_leave(q, m, 5), 0);
	one(q, SAR_OP_GROUP_LEAVE, 0);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* Somebody has put an object under the name of a result: nobody reads beyond its end. */
static void a_result_of_another_size_is_refused(void **state)
{
	static const uint64_t sizes[] = {0, 15, 17};
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	for (unsigned i = 0; i < 3; i++) {
		const uint8_t bytes[32] = {0};
		sar_group_result result;
		char name[32];
		owner.round = 40 + i;
		owner.count = 0;
		snprintf(name, sizeof(name), ".group/g/r/%u", 40 + i);
		put_object(c, name, bytes, sizes[i]);
		assert_int_equal(sar_group_pull(m, 20000 * ms, &result), -EINVAL);
		assert_non_null(strstr(sar_error_detail(), "the group has 4 elements"));
		assert_null(result.buffer.data);
		assert_int_equal(sar_submit_group_pull(q, m, 20000 * ms, &result, 5), 0);
		sar_completion done = one(q, SAR_OP_GROUP_PULL, -EINVAL);
		assert_non_null(
			strstr(sar_completion_detail(q, &done), "the group has 4 elements"));
		assert_null(done.buffer.data);
	}
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* After the owner, or this node's control, has begun again. */
static void a_member_that_is_not_known_announces_itself(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	OWNER_SAYS(-ESTALE, 0, -EEXIST);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	assert_int_equal(one(q, SAR_OP_GROUP_PUSH, 0).value, 1); /* counted the first time */
	EXPECT_STEPS(GROUP_PUSH, GROUP_JOIN, GROUP_PUSH);
	assert_int_equal(owner.heard[1].flags, GROUP_REJOIN);
	OWNER_SAYS(-ESTALE, 0, 0);
	assert_int_equal(sar_submit_group_pull(q, m, SAR_FOREVER, &result, 5), 0);
	one(q, SAR_OP_GROUP_PULL, 0);
	EXPECT_STEPS(GROUP_PULL, GROUP_JOIN, GROUP_PULL);
	assert_int_equal(owner.heard[1].clock, 1);
	OWNER_SAYS(-ESTALE, -ESTALE);
	assert_int_equal(sar_submit_group_pull(q, m, SAR_FOREVER, &result, 5), 0);
	one(q, SAR_OP_GROUP_PULL, -ESTALE);
	OWNER_SAYS(0, SILENT);
	fake_kill(&c->fake);
	fake_restart(&c->fake, true);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	while (owner.count < 2)
		sar_poll_wait(q, NULL, 0, 0, ms);
	fake_kill(&c->fake); /* with the push in it: the next one hears it again */
	OWNER_SAYS(-EEXIST);
	fake_restart(&c->fake, true);
	assert_int_equal(one(q, SAR_OP_GROUP_PUSH, 0).value, 2);
	assert_int_equal(sar_submit_group_leave(q, m, 5), 0);
	one(q, SAR_OP_GROUP_LEAVE, 0);
	sar_queue_close(q);
}

static void what_is_refused_leaves_no_object(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	unsigned deletes = c->fake.requests[SESSION_DELETE];
	OWNER_SAYS(-ETIME, -EAGAIN, 0);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	one(q, SAR_OP_GROUP_PUSH, -ETIME);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	one(q, SAR_OP_GROUP_PUSH, -EAGAIN);
	assert_int_equal(c->fake.requests[SESSION_DELETE], deletes + 2);
	assert_int_equal(sar_member_clock(m), 0);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	assert_int_equal(one(q, SAR_OP_GROUP_PUSH, 0).value, 1);
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
}

static void what_is_cancelled_ends(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q), *other = NULL;
	sar_group_result result;
	OWNER_SAYS(SILENT, 0, 0);
	assert_int_equal(sar_submit_group_pull(q, m, SAR_FOREVER, &result, 5), 0);
	while (owner.count < 1)
		sar_poll_wait(q, NULL, 0, 0, ms);
	assert_int_equal(sar_cancel(q, 5), 1);
	one(q, SAR_OP_GROUP_PULL, -ECANCELED);
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0); /* asks how it stands */
	assert_int_equal(one(q, SAR_OP_GROUP_PUSH, 0).value, 1);
	EXPECT_STEPS(GROUP_PULL, GROUP_JOIN, GROUP_PUSH);
	OWNER_SAYS(0);
	assert_int_equal(sar_submit_group_join(q, "g", NULL, &other, 5), 0);
	assert_int_equal(sar_cancel(q, 5), 1);
	one(q, SAR_OP_GROUP_JOIN, -ECANCELED);
	assert_null(other);
	EXPECT_STEPS(GROUP_JOIN, GROUP_LEAVE); /* nobody waits for it */
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
}

/* Rounds would wait for it. */
static void who_leaves_leaves(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	fake_kill(&c->fake);
	assert_int_equal(sar_submit_group_leave(q, m, 5), 0);
	sar_poll_wait(q, NULL, 0, 0, ms);
	assert_int_equal(sar_cancel(q, 5), 1);
	fake_restart(&c->fake, true);
	one(q, SAR_OP_GROUP_LEAVE, 0);
	EXPECT_STEPS(GROUP_LEAVE);
	sar_queue_close(q);
}

static void a_queue_that_is_closed_gives_members_back(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q), *never = NULL;
	sar_group_result result;
	OWNER_SAYS(SILENT, 0, 0);
	assert_int_equal(sar_submit_group_pull(q, m, SAR_FOREVER, &result, 5), 0);
	while (owner.count < 1)
		sar_poll_wait(q, NULL, 0, 0, ms);
	assert_int_equal(sar_submit_group_join(q, "g", NULL, &never, 6), 0);
	while (!never)
		sar_poll_wait(q, NULL, 0, 0, ms);
	sar_queue_close(q); /* the completion of the join was not polled: it leaves */
	EXPECT_STEPS(GROUP_PULL, GROUP_JOIN, GROUP_LEAVE);
	owner.round = 1;
	put_object(c, ".group/g/r/1", numbers, 16);
	assert_int_equal(sar_group_pull(m, 20000 * ms, &result), 0);
	sar_release(c->s, &result.buffer);
	assert_int_equal(sar_queue_open(c->s, 8, &q), 0);
	assert_int_equal(sar_submit_group_leave(q, m, 5), 0);
	sar_queue_close(q);
	assert_int_equal(owner.heard[owner.count - 1].step, GROUP_LEAVE);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void a_pull_without_a_timeout_does_not_wait(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	owner.round = 3; /* whose result nobody has */
	assert_int_equal(sar_submit_group_pull(q, m, 0, &result, 5), 0);
	one(q, SAR_OP_GROUP_PULL, -ENOENT);
	assert_int_equal(owner.count, 6); /* it has asked for a newer one, as often as it may */
	OWNER_SAYS(0);
	assert_int_equal(sar_submit_group_pull(q, m, 100 * ms, &result, 5), 0);
	one(q, SAR_OP_GROUP_PULL, -ETIMEDOUT);
	EXPECT_STEPS(GROUP_PULL);
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
}

/* ---- rounds at a switch -----------------------------------------------------------------------
 */

/* A part that waits for a second, for a contribution that is not there. */
static const struct group_job waiting = {
	.round = 1, .clock = 9, .attempt = 2, .member = 1, .members = 2};

static void until_at_work(struct client *c, sar_queue *q, unsigned parts)
{
	while (fake_waiting(&c->fake) < parts)
		sar_poll_wait(q, NULL, 0, 0, ms);
}

static void expect_report(unsigned i, uint32_t flags, int error)
{
	assert_int_equal(owner.heard[i].step, GROUP_PULL);
	assert_int_equal(owner.heard[i].flags, GROUP_SWITCHABLE | flags);
	assert_int_equal(owner.heard[i].job, flags ? owner.job.round : 0);
	assert_int_equal(owner.heard[i].job_attempt, flags ? owner.job.attempt : 0);
	assert_int_equal(owner.heard[i].job_error, error);
}

static unsigned threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned count = 0;
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* It is deleted without waiting for that. */
static void until_deleted(struct client *c, sar_id id)
{
	sar_buffer b;
	int r;
	while ((r = sar_get(c->s, id, 0, &b)) == 0)
		sar_release(c->s, &b);
	assert_int_equal(r, -ENOENT);
}

static void a_pull_tells_that_the_switch_is_silent(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	unsigned before = threads();
	assert_int_equal(sar_submit_group_push(q, m, numbers, 16, 5), 0);
	one(q, SAR_OP_GROUP_PUSH, 0);
	OWNER_SAYS(0, 0);
	owner.job = (struct group_job){.round = 1, .clock = 1, .members = 2, .ip = 0x0100007f};
	owner.jobs = 1;
	owner.round = 1;
	put_object(c, ".group/g/r/1", numbers, 16);
	/* the report goes out though the time is over by then */
	assert_int_equal(sar_submit_group_pull(q, m, 100 * ms, &result, 5), 0);
	while (owner.count < 2)
		sar_poll_wait(q, NULL, 0, 0, ms);
	expect_report(0, 0, 0);
	expect_report(1, GROUP_UNSWITCHED, ENETUNREACH);
	sar_completion done;
	assert_int_equal(sar_poll_wait(q, &done, 1, 1, SAR_FOREVER), 1);
	sar_release(c->s, &done.buffer);
	assert_int_equal(threads(), before);
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* Parts wait for each other, also those of one queue. One that is cancelled is given up. */
static void each_pull_at_a_switch_has_a_thread(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *first = join(q), *second = join(q);
	sar_group_result result[2];
	sar_completion done[2];
	owner.job = waiting;
	owner.jobs = 2;
	assert_int_equal(sar_submit_group_pull(q, first, SAR_FOREVER, &result[0], 6), 0);
	until_at_work(c, q, 1);
	assert_int_equal(sar_submit_group_pull(q, second, SAR_FOREVER, &result[1], 5), 0);
	until_at_work(c, q, 2);
	assert_int_equal(sar_cancel(q, 5), 1);
	assert_int_equal(sar_poll_wait(q, done, 2, 2, SAR_FOREVER), 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(done[i].result, done[i].user_data == 5 ? -ECANCELED : 0);
	for (unsigned i = 2; i < 4; i++)
		expect_report(i, GROUP_UNSWITCHED,
			      owner.heard[i].member == sar_member_number(second) ? 0 : ETIMEDOUT);
	assert_int_equal(owner.count, 4);
	assert_int_equal(sar_group_leave(first), 0);
	assert_int_equal(sar_group_leave(second), 0);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void a_queue_that_is_closed_ends_its_parts(void **state)
{
	struct client *c = *state;
	unsigned before = threads();
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	owner.job = waiting;
	owner.jobs = 1;
	assert_int_equal(sar_submit_group_pull(q, m, SAR_FOREVER, &result, 5), 0);
	until_at_work(c, q, 1);
	sar_queue_close(q);
	assert_int_equal(threads(), before);
	assert_int_equal(sar_group_pull(m, SAR_FOREVER, &result), 0);
	expect_report(1, 0, 0); /* without one the owner lets the nodes make the round */
	assert_int_equal(sar_group_leave(m), 0);
	assert_int_equal(fake_pins(&c->fake), 0);
}

static void a_pull_at_a_switch_goes_on_at_the_next_control(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	OWNER_SAYS(0, -ESTALE, 0, 0);
	owner.job = waiting;
	owner.jobs = 1;
	assert_int_equal(sar_submit_group_pull(q, m, SAR_FOREVER, &result, 5), 0);
	until_at_work(c, q, 1);
	fake_kill(&c->fake);
	fake_restart(&c->fake, true);
	one(q, SAR_OP_GROUP_PULL, 0);
	EXPECT_STEPS(GROUP_PULL, GROUP_PULL, GROUP_JOIN, GROUP_PULL);
	expect_report(3, GROUP_UNSWITCHED, ETIMEDOUT);
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
}

/* The member has the result of its part, when that is the one of the round. */
static void a_result_of_a_part_is_not_got_again(void **state)
{
	struct client *c = *state;
	sar_queue *q = queue_open(c);
	sar_member *m = join(q);
	sar_group_result result;
	sar_completion done;
	owner.round = 3;
	for (unsigned i = 0; i < 2; i++) {
		put_object(c, ".group/g/r/3.256", numbers, 16);
		m->at_switch = (struct group_switch){.round = 3,
						     .attempt = GROUP_BY_SWITCH,
						     .put = true,
						     .id = test_id(".group/g/r/3.256")};
		assert_int_equal(sar_get(c->s, m->at_switch.id, 0, &m->at_switch.result), 0);
		const void *own = m->at_switch.result.data;
		owner.attempt = i == 0 ? GROUP_BY_SWITCH : 0;
		if (i == 1) /* the nodes have made it, and the other one goes */
			put_object(c, ".group/g/r/3", numbers, 16);
		assert_int_equal(sar_submit_group_pull(q, m, 20000 * ms, &result, 5), 0);
		done = one(q, SAR_OP_GROUP_PULL, 0);
		assert_memory_equal(done.buffer.data, numbers, 16);
		assert_int_equal(result.through, i == 0);
		assert_int_equal(done.buffer.data == own, i == 0);
		sar_release(c->s, &done.buffer);
		if (i == 0)
			assert_int_equal(sar_delete(c->s, test_id(".group/g/r/3.256")), 0);
	}
	until_deleted(c, test_id(".group/g/r/3.256"));
	assert_int_equal(sar_group_leave(m), 0);
	sar_queue_close(q);
	assert_int_equal(fake_pins(&c->fake), 0);
}

/* The next job comes before a pull was answered with the last one's result: it may be published. */
static void a_job_of_another_size_leaves_an_earlier_result(void **state)
{
	struct client *c = *state;
	const struct group_part part = {
		.group = "g", .member = 7, .count = 4, .op = SAR_SUM, .dtype = SAR_I32};
	struct group_job job = {.round = 3, .clock = 2, .attempt = 1, .members = 2};
	struct group_switch w = {.round = 2, .attempt = GROUP_BY_SWITCH, .put = true};
	sar_buffer b;
	w.id = test_id(".group/g/r/2.256");
	put_object(c, ".group/g/r/2.256", numbers, 16);
	put_object(c, ".group/g/2/0000000000000007", numbers, 12);
	assert_int_equal(sar_get(c->s, w.id, 0, &w.result), 0);
	job.base = 2, job.base_attempt = GROUP_BY_SWITCH;
	/* somebody has put its contribution again, with three elements */
	assert_int_equal(group_switch_run(c->s, &w, &part, &job), -EINVAL);
	job.member = 1;
	assert_int_equal(group_switch_run(c->s, &w, &part, &job), -EINVAL);
	assert_int_equal(sar_get(c->s, w.id, 0, &b), 0);
	w.round = 3; /* an attempt of this round has failed */
	w.result = b;
	assert_int_equal(group_switch_run(c->s, &w, &part, &job), -EINVAL);
	until_deleted(c, w.id);
	assert_int_equal(fake_pins(&c->fake), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_client(groups_are_made_changed_and_described),
		test_client(a_member_pushes_and_pulls),
		test_client(a_result_of_another_size_is_refused),
		test_client(a_member_that_is_not_known_announces_itself),
		test_client(what_is_refused_leaves_no_object),
		test_client(what_is_cancelled_ends),
		test_client(who_leaves_leaves),
		test_client(a_queue_that_is_closed_gives_members_back),
		test_client(a_pull_without_a_timeout_does_not_wait),
		test_client(a_pull_tells_that_the_switch_is_silent),
		test_client(each_pull_at_a_switch_has_a_thread),
		test_client(a_queue_that_is_closed_ends_its_parts),
		test_client(a_pull_at_a_switch_goes_on_at_the_next_control),
		test_client(a_result_of_a_part_is_not_got_again),
		test_client(a_job_of_another_size_leaves_an_earlier_result),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
