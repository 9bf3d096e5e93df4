/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages as bytes and back: nothing lost, and nothing taken that does not hold. */
#include "fixtures/control_test.h"
#include "internal/ipc.h"
#include "internal/reduce.h"
#include "rpc/mailbox.h"

static uint8_t arena[MAILBOX_ARENA_BYTES] __attribute__((aligned(64)));
static uint8_t bytes[MSG_BYTES_MAX];
static uint8_t value[OBJECT_INLINE_MAX];
static struct session_object page[MESSAGE_OBJECTS_MAX];
static struct message_member members[MESSAGE_MEMBERS_MAX];
static struct object_id sources[MESSAGE_SOURCES_MAX];
static struct message_part parts[MESSAGE_PARTS_MAX];
static const struct message_members table = {UINT64_MAX, MESSAGE_MEMBERS_TABLE, MESSAGE_MEMBERS_MAX,
					     members};

static const struct object_meta sample_meta = {OBJECT_META_BYTES, {1, 0, [127] = 255}};
static const struct message_lease sample_lease = {9, SESSION_LEASE_NS_MAX, "session 7"};

static struct message sample_lifetime(struct message m, struct object_id id)
{
	if (m.kind == MESSAGE_DELETE) {
		m.object = (struct message_object){
			.id = id, .generation = 7, .lapsed = MESSAGE_LAPSED_LEASE, .lease = 9};
		return m;
	}
	m.hold = (struct message_hold){
		.id = id, .generation = 7, .lease = sample_lease, .left_ns = UINT64_MAX};
	m.hold.known = m.hold.joins = 1;
	m.hold.epoch = 8;
	return m;
}

static struct message sample_values(struct message m, struct object_id id)
{
	const struct message_pull pull = {.id = id, .generation = 7, .first = INT64_MAX};

	m.pull = pull;
	m.pull.bytes = sizeof(value);
	m.pull.value = value;
	if (m.kind == MESSAGE_PUSH)
		m.push = (struct message_push){.into = sources[5], .bytes = m.pull};
	return m;
}

static struct message sample_group(uint32_t kind, struct object_id of)
{
	static struct group_answer answer = {.op = REDUCE_SUM,
					     .dtype = REDUCE_F32,
					     .count = UINT64_MAX / REDUCE_ELEMENT_BYTES_MAX,
					     .clock = 5,
					     .done = 4,
					     .round = 7,
					     .gone_first = 2,
					     .gone_last = 2 * GROUP_NUMBER_MAX,
					     .version = 3,
					     .histogram = {[7] = UINT64_MAX},
					     .owner = NODES_MAX - 1,
					     .page = GROUP_PAGE,
					     .switched = 6,
					     .fallen = 1,
					     .switches = GROUP_SWITCHES_MAX,
					     .switch_ip = {1, 2, 3, UINT32_MAX},
					     .job = {.round = 8,
						     .clock = 6,
						     .key = UINT64_MAX,
						     .base = 7,
						     .base_attempt = GROUP_BY_SWITCH,
						     .attempt = 1,
						     .version = UINT32_MAX,
						     .group = 77,
						     .ip = 4,
						     .member = GROUP_SWITCH_MEMBERS - 1,
						     .members = GROUP_SWITCH_MEMBERS},
					     .policy = "bsp",
					     .table = "cohort rule",
					     .member = {[15] = {.member = 1, .cohort = "fast"}}};
	struct message m = {.kind = kind, .request = UINT64_MAX};

	if (kind == MESSAGE_GROUPED) {
		m.grouped = (struct message_grouped){-ESTALE, &answer, "no such member"};
		return m;
	}
	m.group = (struct message_group){of,
					 {.step = GROUP_JOIN,
					  .flags = GROUP_REJOIN,
					  .member = UINT64_MAX,
					  .clock = 9,
					  .pending = 5,
					  .seen = 8,
					  .joined = 2,
					  .job = 3,
					  .job_attempt = 1,
					  .job_error = EIO,
					  .switches = 1,
					  .switch_ip = {UINT32_MAX},
					  .name = "sgd",
					  .cohort = "fast"}};
	return m;
}

static struct message sample_object(struct message m, struct object_id of)
{
	if (m.kind == MESSAGE_GROUP || m.kind == MESSAGE_GROUPED)
		return sample_group(m.kind, of);
	m.object = (struct message_object){
		.id = of, .upstream = 3, .cursor = UINT64_MAX, .replaced = 1, .generation = 7};
	return m;
}

static struct message sample_reduce(uint32_t kind, struct object_id id)
{
	struct message m = {.kind = kind, .request = UINT64_C(0xfedcba9876543210)};

	switch (kind) {
	case MESSAGE_REDUCE:
		m.reduce = (struct message_reduce){.target = id,
						   .op = 1,
						   .dtype = 2,
						   .num = 1000,
						   .flags = MESSAGE_REDUCE_ALLREDUCE,
						   .timeout_ns = UINT64_MAX,
						   .deadline_ns = 5000000000,
						   .min = 999,
						   .asked = 77,
						   .name = "sum",
						   .count = MESSAGE_SOURCES_MAX,
						   .sources = sources};
		break;
	case MESSAGE_REDUCED:
		m.reduce.target = id;
		m.reduce.asked = 5;
		m.reduce.timeout_ns = UINT64_MAX;
		break;
	case MESSAGE_ANNOUNCED:
		m.announced = (struct message_announced){UINT64_MAX, 5};
		break;
	case MESSAGE_USED:
	case MESSAGE_COMMIT:
	case MESSAGE_RECALL:
		m.used = (struct message_used){id, -ETIMEDOUT, 9, "too late", 5, 7, 3, sources, 0};
		break;
	case MESSAGE_COMBINE:
		m.combine = (struct message_combine){.id = id,
						     .generation = 7,
						     .target = id,
						     .reduce = UINT64_MAX,
						     .size = UINT64_C(1) << 30,
						     .chunk_bytes = 1408,
						     .op = 1,
						     .dtype = 2,
						     .scale = UINT16_MAX,
						     .need = MESSAGE_PARTS_MAX,
						     .flags = MESSAGE_COMBINE_HIDDEN,
						     .meta = sample_meta,
						     .count = MESSAGE_PARTS_MAX,
						     .parts = parts};
		break;
	case MESSAGE_COMBINED:
		m.combined = (struct message_combined){id, 7,  id, 8,	   MESSAGE_COMBINED_LOST,
						       0,  id, 9,  -ENOENT};
		break;
	case MESSAGE_RELEASE:
	case MESSAGE_FINISH:
		m.combined = (struct message_combined){.target = id, .reduce = 8};
		m.combined.part_node = MESSAGE_NODE_NONE;
		break;
	case MESSAGE_HOLD:
	case MESSAGE_DELETE:
		return sample_lifetime(m, id);
	case MESSAGE_PULL:
	case MESSAGE_PULL_REPLY:
	case MESSAGE_PUSH:
		return sample_values(m, id);
	default:
		return sample_object(m, id);
	}
	return m;
}

static const struct session_node status = {.node = 3,
					   .incarnation = 8,
					   .store_bytes = 1 << 30,
					   .control_pid = 12,
					   .arriving = 70000,
					   .sending = 80000,
					   .port = "af_xdp eth0"};

static struct message_stream sample_stream(uint32_t kind, struct object_id id)
{
	struct message_stream m = {.id = id,
				   .generation = 7,
				   .chunk_bytes = 64,
				   .first = 5,
				   .count = 6,
				   .skips = 2,
				   .skip = {{5, 2}, {10, 1}}};

	if (kind != MESSAGE_STREAM)
		return m;
	m.check = 1;
	m.lanes = LANES_MAX;
	m.substreams = m.replaced = 2;
	m.substream[0] = (struct message_substream){0x10001, 15, 5, 2};
	m.substream[1] = (struct message_substream){0x10003, 0, 10, 1};
	m.replaces[0] = 0x10002;
	m.replaces[1] = 0x10004;
	return m;
}

static const struct object_id id = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

static struct message sample_names(struct message m)
{
	if (m.kind == MESSAGE_LIST)
		m.list.cursor = 12345;
	else
		m.watch = (struct message_watch){MESSAGE_WATCH_NEXT, 5, UINT64_MAX, 6, "a"};
	return m;
}

static void fill_rails(struct message_rails *r, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		message_add_rail(r, &(struct net_addr){.ip = {1, 2, [15] = (uint8_t)i},
						       .port = (uint16_t)(65000 + i)});
}

static struct message_hello hello_sample(void)
{
	struct message_hello h = {.node = 5,
				  .version = MESSAGE_VERSION,
				  .workers = 16,
				  .announce = 2,
				  .store_incarnation = UINT64_MAX,
				  .incarnation = 7,
				  .digest = 8,
				  .assigned = 9};

	fill_rails(&h.rails, RAILS_MAX - 1);
	return h;
}

static struct message_have have_sample(void)
{
	struct message_have have = {.id = id,
				    .generation = 77,
				    .lease = sample_lease,
				    .meta = sample_meta,
				    .size = sizeof(value),
				    .chunk_bytes = 8896,
				    .state = MESSAGE_COPY_COMPLETE,
				    .upstream = MESSAGE_NODE_NONE,
				    .create = 1,
				    .pinned = 1,
				    .pin_lost = 1,
				    .appointed = 1,
				    .made = 1,
				    .epoch = UINT64_MAX,
				    .value = value,
				    .value_bytes = sizeof(value),
				    .has_value = 1};

	memset(have.name, 'n', OBJECT_NAME_MAX);
	return have;
}

static struct message sample(uint32_t kind)
{
	struct message m = {.kind = kind, .request = UINT64_C(0xfedcba9876543210)};

	switch (kind == MESSAGE_KEEP ? MESSAGE_HAVE : kind) {
	case MESSAGE_HELLO:
		m.hello = hello_sample();
		break;
	case MESSAGE_HAVE:
		m.have = have_sample();
		break;
	case MESSAGE_GET:
		m.get = (struct message_get){.id = id,
					     .generation = 7,
					     .why = MESSAGE_GET_ABSENT,
					     .value_max = 1024,
					     .epoch = UINT64_MAX};
		break;
	case MESSAGE_GOT:
		m.got = (struct message_got){.id = id,
					     .generation = 77,
					     .size = UINT64_C(1) << 40,
					     .chunk_bytes = 1408,
					     .what = MESSAGE_GOT_HOLDER,
					     .holder = 1023,
					     .also_count = MESSAGE_UPSTREAMS_MAX - 1,
					     .also = {1023, 0, 5},
					     .departed = 9,
					     .meta = sample_meta,
					     .others = 3};
		strcpy(m.got.name, "a name");
		break;
	case MESSAGE_STREAM:
	case MESSAGE_PIECES:
	case MESSAGE_HAS:
		m.stream = sample_stream(kind, id);
		break;
	case MESSAGE_LIST:
	case MESSAGE_WATCH:
		return sample_names(m);
	case MESSAGE_OBJECTS:
		m.objects = (struct message_objects){99, MESSAGE_OBJECTS_MAX, page, 0, 0, 0, 1};
		break;
	case MESSAGE_NODE:
		m.node = status;
		break;
	case MESSAGE_REPLY:
		m.reply = (struct message_reply){-EEXIST,   3, LANES_MAX,
						 NODES_MAX, 4, "it exists: delete it"};
		break;
	case MESSAGE_REDIRECT:
	case MESSAGE_MEMBERS:
		m.members = table;
		break;
	default:
		return sample_reduce(kind, id);
	}
	return m;
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (uint8_t)(i * 7);
	for (uint32_t i = 0; i < MESSAGE_MEMBERS_MAX; i++)
		members[i] = (struct message_member){.node = i * 16,
						     .state = MEMBER_LEFT,
						     .incarnation = UINT64_MAX,
						     .addr = {{(uint8_t)i}, 65000, {0}}};
	for (uint32_t i = 0; i < MESSAGE_MEMBERS_MAX; i++)
		fill_rails(&members[i].rails, i % RAILS_MAX);
	for (uint32_t i = 0; i < MESSAGE_SOURCES_MAX; i++)
		memset(sources[i].bytes, (int)i, OBJECT_ID_BYTES);
	for (uint32_t i = 0; i < MESSAGE_PARTS_MAX; i++)
		parts[i] = (struct message_part){sources[i], i + 1,	      i, i, i + 1,
						 255 - i,    i ? 1 << 20 : 0, i};
	for (uint32_t i = 0; i < MESSAGE_OBJECTS_MAX; i++) {
		page[i] = (struct session_object){.generation = i + 1,
						  .size = i,
						  .local_watermark = UINT64_MAX,
						  .copies = 2,
						  .leases = 3,
						  .lease_node = NODES_MAX - 1,
						  .lease = i + 1,
						  .lease_ms = 5,
						  .expires_ms = UINT64_MAX,
						  .lease_name = "session 7",
						  .holders = 16};
		page[i].id.bytes[0] = (uint8_t)i;
		memset(page[i].name, 'x', OBJECT_NAME_MAX);
		page[i].meta = sample_meta;
		for (int k = 0; k < 16; k++) {
			page[i].holder[k].node = (uint32_t)k;
			page[i].holder[k].upstreams = (uint32_t)k % 5;
			if (k % 5 == 4)
				page[i].holder[k].upstream[3] = 1023;
			page[i].holder[k].watermark = UINT64_MAX;
			page[i].holder[k].arrived = (uint64_t)k << 40;
		}
	}
}

static size_t encode(const struct message *m)
{
	return codec_encode(m, arena + CODEC_ARENA_BYTES, bytes, sizeof(bytes));
}

/* Comparing means encoding again: equal bytes, equal messages. */
static void every_kind_round_trips(void **state)
{
	static uint8_t again[MSG_BYTES_MAX];

	fill();
	for (uint32_t kind = 1; kind < MESSAGE_KINDS; kind++) {
		struct message m = sample(kind), back;
		size_t length = encode(&m);

		assert_true(length > 0);
		assert_int_equal(codec_decode(bytes, length, arena, &back), 0);
		assert_int_equal(back.kind, kind);
		assert_int_equal(back.request, m.request);
		assert_int_equal(
			codec_encode(&back, arena + CODEC_ARENA_BYTES, again, sizeof(again)),
			length);
		assert_memory_equal(bytes, again, length);
	}
}

static void fields_survive(void **state)
{
	struct message m = sample(MESSAGE_HAVE), back;

	fill();
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_int_equal(back.have.upstream, MESSAGE_NODE_NONE);
	assert_int_equal(back.have.value_bytes, sizeof(value));
	assert_memory_equal(back.have.value, value, sizeof(value));
	assert_string_equal(back.have.name, m.have.name);
	assert_memory_equal(&back.have.meta, &m.have.meta, sizeof(m.have.meta));
	m = sample(MESSAGE_OBJECTS);
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_int_equal(back.objects.count, MESSAGE_OBJECTS_MAX);
	assert_memory_equal(back.objects.objects, page, sizeof(page));
	m = sample(MESSAGE_TOMBSTONE);
	m.tombstone.age = UINT32_MAX;
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_int_equal(back.tombstone.age, UINT32_MAX);
	m = sample(MESSAGE_REDUCE);
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_int_equal(back.reduce.count, MESSAGE_SOURCES_MAX);
	assert_memory_equal(back.reduce.sources, sources, sizeof(sources));
	m = sample(MESSAGE_COMBINE);
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_int_equal(back.combine.count, MESSAGE_PARTS_MAX);
	for (uint32_t i = 0; i < MESSAGE_PARTS_MAX; i++) {
		assert_memory_equal(&back.combine.parts[i].id, &parts[i].id, OBJECT_ID_BYTES);
		assert_int_equal(back.combine.parts[i].generation, parts[i].generation);
		assert_int_equal(back.combine.parts[i].node, parts[i].node);
		assert_int_equal(back.combine.parts[i].first, parts[i].first);
		assert_int_equal(back.combine.parts[i].count, parts[i].count);
		assert_int_equal(back.combine.parts[i].to, parts[i].to);
		assert_int_equal(back.combine.parts[i].size, parts[i].size);
		assert_int_equal(back.combine.parts[i].stripe, parts[i].stripe);
	}
}

static int refused(struct message *m);

static void wrong_watches_are_refused(void **state)
{
	static struct session_object events[2] = {{.generation = 7, .flags = SESSION_OBJECT_EVENT},
						  {.generation = 7, .flags = SESSION_OBJECT_EVENT}};
	struct message m = sample(MESSAGE_WATCH);

	m.watch.number = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_WATCH);
	m.watch.next = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m.watch.step = MESSAGE_WATCH_BEGIN; /* with a cursor */
	assert_int_equal(refused(&m), -EBADMSG);
	m.watch.cursor = 0;
	assert_int_equal(refused(&m), 0);
	m.watch.next = 1;
	assert_int_equal(refused(&m), -EBADMSG);
	for (uint32_t step = 0; step <= MESSAGE_WATCH_STEPS; step += MESSAGE_WATCH_STEPS) {
		m.watch = (struct message_watch){.step = step, .number = 1};
		assert_int_equal(refused(&m), -EBADMSG);
	}
	m = (struct message){.kind = MESSAGE_OBJECTS};
	events[0].id.bytes[0] = events[1].id.bytes[0] = 1;
	m.objects = (struct message_objects){0, 2, events, 0, MESSAGE_WATCH_EVENTS, 5, 0};
	assert_int_equal(refused(&m), 0);
	for (uint32_t i = 0; i < 4; i++) { /* no event, no number, no such event, not of a watch */
		events[1].flags = (const uint32_t[]){0, 16, 64, 16}[i];
		m.objects.next = i != 1 && i != 3 ? 5 : 0;
		m.objects.watch = i == 3 ? 0 : MESSAGE_WATCH_EVENTS;
		assert_int_equal(refused(&m), -EBADMSG);
	}
	events[1].flags = 17; /* and another flag */
	m.objects.next = 5;
	m.objects.watch = MESSAGE_WATCH_EVENTS;
	assert_int_equal(refused(&m), -EBADMSG);
	events[1].flags = 16;
	for (uint32_t watch = MESSAGE_WATCH_MISSED; watch <= MESSAGE_WATCH_STATES; watch++) {
		m.objects.watch = watch; /* with events; or there is none such */
		assert_int_equal(refused(&m), -EBADMSG);
	}
	m.objects.watch = MESSAGE_WATCH_MISSED;
	m.objects.count = 0;
	assert_int_equal(refused(&m), 0);
}

static int refused(struct message *m)
{
	struct message back;
	size_t length = encode(m);

	assert_true(length > 0);
	return codec_decode(bytes, length, arena, &back);
}

static void wrong_groups_are_refused(void **state)
{
	struct group_answer answer;
	struct message m = sample(MESSAGE_GROUP), back;

	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_memory_equal(&back.group, &m.group, sizeof(m.group));
	m.group.ask.step = GROUP_STEPS;
	assert_int_equal(refused(&m), -EBADMSG);
	m.group.ask.step = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_GROUP);
	m.group.ask.flags = GROUP_FLAGS + 1;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_GROUP);
	m.group.ask.member = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_GROUP);
	m.group.ask.clock = UINT64_MAX;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_GROUP);
	m.group.ask.switch_ip[0] = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_GROUPED);
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_memory_equal(back.grouped.answer, m.grouped.answer, sizeof(answer));
	m.grouped.status = 1;
	assert_int_equal(refused(&m), -EBADMSG);
	m = sample(MESSAGE_GROUPED);
	answer = *m.grouped.answer;
	m.grouped.answer = &answer;
	answer.owner = NODES_MAX;
	assert_int_equal(refused(&m), -EBADMSG);
	answer = *sample(MESSAGE_GROUPED).grouped.answer;
	answer.op = REDUCE_OP_END;
	assert_int_equal(refused(&m), -EBADMSG);
	answer = *sample(MESSAGE_GROUPED).grouped.answer;
	answer.job.member = answer.job.members;
	assert_int_equal(refused(&m), -EBADMSG);
	answer.job.members = GROUP_SWITCH_MEMBERS + 1;
	assert_int_equal(refused(&m), -EBADMSG);
	answer = *sample(MESSAGE_GROUPED).grouped.answer;
	answer.member[0].node = NODES_MAX;
	assert_int_equal(refused(&m), -EBADMSG);
	m.grouped.answer = NULL;
	assert_int_equal(refused(&m), 0);
}

/* What a group is told of leaves room for what it counts on. */
static void numbers_of_groups_have_limits(void **state)
{
	struct group_answer answer = *sample(MESSAGE_GROUPED).grouped.answer;
	const struct group_answer good = answer;
	struct message m = sample(MESSAGE_GROUPED), of = sample(MESSAGE_GROUP);
	struct group_request *ask = &of.group.ask;
	const struct group_request asked = *ask;
	uint64_t *requested[] = {&ask->clock, &ask->seen, &ask->joined};
	uint64_t *numbers[] = {&answer.clock,	       &answer.done,	   &answer.joined,
			       &answer.round,	       &answer.version,	   &answer.top,
			       &answer.gone_last,      &answer.gone_first, &answer.job.round,
			       &answer.job.clock,      &answer.job.base,   &answer.member[0].clock,
			       &answer.member[0].round};
	const struct {
		uint32_t *field, most;
	} small[] = {{&answer.attempt, 2 * GROUP_BY_SWITCH - 1},
		     {&answer.job.attempt, GROUP_BY_SWITCH - 1},
		     {&answer.job.base_attempt, 2 * GROUP_BY_SWITCH - 1},
		     {&answer.members, GROUP_MEMBERS_MAX},
		     {&answer.live, GROUP_MEMBERS_MAX},
		     {&answer.cursor, GROUP_MEMBERS_MAX}};

	for (size_t i = 0; i < sizeof(requested) / sizeof(requested[0]); i++) {
		*ask = asked;
		*requested[i] = 2 * GROUP_NUMBER_MAX;
		assert_int_equal(refused(&of), 0);
		*requested[i] += 1;
		assert_int_equal(refused(&of), -EBADMSG);
	}
	*ask = asked;
	ask->seen_attempt = 2 * GROUP_BY_SWITCH;
	assert_int_equal(refused(&of), -EBADMSG);

	m.grouped.answer = &answer;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		answer = good;
		*numbers[i] = 2 * GROUP_NUMBER_MAX;
		assert_int_equal(refused(&m), 0);
		*numbers[i] += 1;
		if (refused(&m) != -EBADMSG)
			fail_msg("number %zu", i);
	}
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
		answer = good;
		*small[i].field = small[i].most;
		assert_int_equal(refused(&m), 0);
		*small[i].field += 1;
		if (refused(&m) != -EBADMSG)
			fail_msg("small number %zu", i);
	}
	answer = good;
	answer.count++;
	assert_int_equal(refused(&m), -EBADMSG);
}

/* A plan rides on NODE, if it was asked for. */
static void a_node_may_tell_of_its_last_plan(void **state)
{
	static const struct control_plan whole = {.number = 1,
						  .generation = 99,
						  .node = 5,
						  .planner = "hips-ring",
						  .size = 1 << 20,
						  .predicted_ns = 7,
						  .measured_ns = 8,
						  .nodes = 9,
						  .levels = CONTROL_PLAN_LEVELS_MAX,
						  .everyone = true,
						  .network = true,
						  .level = {{1, 2, 3}, {4, 5, 6}}};
	struct message m = sample(MESSAGE_STATUS), back;
	struct control_plan plan = whole;

	m.status.plan = true;
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_true(back.status.plan);
	m = sample(MESSAGE_NODE);
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_null(back.plan);
	m.plan = &plan;
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_memory_equal(back.plan, &whole, sizeof(whole));
	plan.node = NODES_MAX;
	assert_int_equal(refused(&m), -EBADMSG);
	plan = whole;
	plan.nodes = MESSAGE_SOURCES_MAX + 1;
	assert_int_equal(refused(&m), -EBADMSG);
	plan = whole;
	plan.generation = MESSAGE_GENERATION_MAX + 1;
	assert_int_equal(refused(&m), -EBADMSG);
	plan = whole;
	plan.planner[0] = 0;
	assert_int_equal(refused(&m), -EBADMSG);
}

static void a_locate_may_name_several(void **state)
{
	struct message m = sample(MESSAGE_GET), back;

	fill();
	m.get.why = MESSAGE_GET_LOCATE;
	m.get.op = REDUCE_MAX;
	m.get.dtype = REDUCE_BF16;
	m.get.others = sources;
	m.get.others_count = MESSAGE_OTHERS_MAX;
	m.get.deferrable = 1;
	assert_int_equal(codec_decode(bytes, encode(&m), arena, &back), 0);
	assert_int_equal(back.get.op, REDUCE_MAX);
	assert_int_equal(back.get.dtype, REDUCE_BF16);
	assert_int_equal(back.get.others_count, MESSAGE_OTHERS_MAX);
	assert_int_equal(back.get.deferrable, 1);
	assert_memory_equal(back.get.others, sources, MESSAGE_OTHERS_MAX * OBJECT_ID_BYTES);
	m.get.others_count++;
	assert_int_equal(refused(&m), -EBADMSG);
	m.get.others_count--;
	m.get.op = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m.get.op = REDUCE_SUM;
	m.get.dtype = REDUCE_DTYPE_END;
	assert_int_equal(refused(&m), -EBADMSG);
	m.get.dtype = REDUCE_F32;
	m.get.why = MESSAGE_GET_FIRST;
	assert_int_equal(refused(&m), -EBADMSG);
}

static void truncated_bytes_are_refused(void **state)
{
	fill();
	for (uint32_t kind = 1; kind < MESSAGE_KINDS; kind++) {
		struct message m = sample(kind), back;
		size_t length = encode(&m);

		/* cut anywhere it is no message, or one without its last fields, never a crash */
		for (size_t cut = 0; cut < length; cut += 1 + length / 997)
			codec_decode(bytes, cut, arena, &back);
		assert_int_equal(codec_decode(bytes, 0, arena, &back), -EBADMSG);
		assert_int_equal(codec_decode(bytes, length - 1, arena, &back), -EBADMSG);
	}
}

#define REFUSED(KIND, FIELD, VALUE)                      \
	do {                                             \
		struct message m = sample(KIND);         \
		m.FIELD = VALUE;                         \
		assert_int_equal(refused(&m), -EBADMSG); \
	} while (0)

static void what_is_to_be_kept_is_whole(void **state)
{
	fill();
	REFUSED(MESSAGE_KEEP, have.state, MESSAGE_COPY_PARTIAL);
	REFUSED(MESSAGE_HOLD, hold.left_ns, SESSION_LEASE_NS_MAX + 1);
	REFUSED(MESSAGE_HOLD, hold.lease.ttl_ns, SESSION_LEASE_NS_MAX + 1);
	REFUSED(MESSAGE_HOLD, hold.generation, MESSAGE_GENERATION_MAX + 1);
	REFUSED(MESSAGE_HAVE, have.lease.ttl_ns, SESSION_LEASE_NS_MAX + 1);
	REFUSED(MESSAGE_DELETE, object.lapsed, MESSAGE_LAPSED_WHATS);
	REFUSED(MESSAGE_DELETE, object.lapsed, MESSAGE_LAPSED_NOT);
	REFUSED(MESSAGE_DELETE, object.generation, 0);
}

static void metadata_have_at_most_128_bytes(void **state)
{
	struct message list = sample(MESSAGE_OBJECTS);

	fill();
	REFUSED(MESSAGE_HAVE, have.meta.bytes, OBJECT_META_BYTES + 1);
	REFUSED(MESSAGE_KEEP, have.meta.bytes, OBJECT_META_BYTES + 1);
	REFUSED(MESSAGE_GOT, got.meta.bytes, OBJECT_META_BYTES + 1);
	REFUSED(MESSAGE_COMBINE, combine.meta.bytes, OBJECT_META_BYTES + 1);
	page[3].meta.bytes = OBJECT_META_BYTES + 1;
	assert_int_equal(refused(&list), -EBADMSG);
	page[3].meta.bytes = OBJECT_META_BYTES;
	assert_int_equal(refused(&list), 0);
}

static void fields_out_of_bounds_are_refused(void **state)
{
	fill();
	REFUSED(MESSAGE_HELLO, hello.node, NODES_MAX);
	REFUSED(MESSAGE_HELLO, hello.assigned, NODES_MAX);
	REFUSED(MESSAGE_MEMBERS, members.step, MESSAGE_MEMBERS_STEPS);
	REFUSED(MESSAGE_HELLO, hello.workers, 0);
	REFUSED(MESSAGE_HELLO, hello.workers, WORKERS_MAX + 1);
	REFUSED(MESSAGE_HELLO, hello.announce, MESSAGE_ANNOUNCES);
	REFUSED(MESSAGE_HELLO, hello.store_incarnation, 0);
	REFUSED(MESSAGE_HAVE, have.generation, 0);
	REFUSED(MESSAGE_HAVE, have.generation, MESSAGE_GENERATION_MAX + 1);
	REFUSED(MESSAGE_TOMBSTONE, tombstone.generation, 0);
	REFUSED(MESSAGE_TOMBSTONE, tombstone.generation, MESSAGE_GENERATION_MAX + 1);
	REFUSED(MESSAGE_HAVE, have.chunk_bytes, 0);
	REFUSED(MESSAGE_HAVE, have.chunk_bytes, 65);
	REFUSED(MESSAGE_HAVE, have.chunk_bytes, CHUNK_BYTES_MAX + 64);
	REFUSED(MESSAGE_HAVE, have.state, 0);
	REFUSED(MESSAGE_HAVE, have.state, MESSAGE_COPY_STATES);
	REFUSED(MESSAGE_HAVE, have.upstream, NODES_MAX);
	REFUSED(MESSAGE_HAVE, have.value_bytes, 10);
	REFUSED(MESSAGE_HAVE, have.size, UINT64_MAX);
	REFUSED(MESSAGE_GET, get.why, MESSAGE_GET_WHYS);
	REFUSED(MESSAGE_GET, get.failed, MESSAGE_NODE_NONE);
	REFUSED(MESSAGE_GET, get.value_max, OBJECT_INLINE_MAX + 1);
	REFUSED(MESSAGE_GOT, got.what, MESSAGE_GOT_WHATS);
	REFUSED(MESSAGE_GOT, got.what, MESSAGE_GOT_VALUE);
	REFUSED(MESSAGE_GOT, got.what, MESSAGE_GOT_UNKNOWN);
	REFUSED(MESSAGE_GOT, got.what, MESSAGE_GOT_FAILED);
	REFUSED(MESSAGE_GOT, got.status, 5);
	REFUSED(MESSAGE_GOT, got.also[2], NODES_MAX);
	REFUSED(MESSAGE_GOT, got.holder, MESSAGE_NODE_NONE);
	REFUSED(MESSAGE_STREAM, stream.lanes, 0);
	REFUSED(MESSAGE_STREAM, stream.lanes, LANES_MAX + 1);
	REFUSED(MESSAGE_STREAM, stream.substreams, 0);
	REFUSED(MESSAGE_STREAM, stream.substream[0].stream, 0);
	REFUSED(MESSAGE_STREAM, stream.substream[0].worker, WORKERS_MAX);
	REFUSED(MESSAGE_STREAM, stream.substream[0].first, 4); /* before the range */
	REFUSED(MESSAGE_STREAM, stream.substream[1].count, 0);
	REFUSED(MESSAGE_STREAM, stream.substream[1].count, 2); /* beyond its end */
	REFUSED(MESSAGE_PIECES, stream.count, 0);
	REFUSED(MESSAGE_HAS, stream.skip[1].first, 6); /* within the run before */
	REFUSED(MESSAGE_STREAM, stream.count, 0);
	REFUSED(MESSAGE_STREAM, stream.first, UINT32_MAX);
	REFUSED(MESSAGE_NODE, node.state, 3);
	REFUSED(MESSAGE_USED, used.status, 1);
	REFUSED(MESSAGE_USED, used.node, NODES_MAX);
	REFUSED(MESSAGE_COMMIT, used.generation, 0);
	REFUSED(MESSAGE_COMMIT, used.count, 0);
	REFUSED(MESSAGE_RECALL, used.generation, MESSAGE_GENERATION_MAX + 1);
	REFUSED(MESSAGE_RECALL, used.count, 0);
	REFUSED(MESSAGE_RECALL, used.generation, 0);
	REFUSED(MESSAGE_COMBINE, combine.generation, 0);
	REFUSED(MESSAGE_COMBINE, combine.size, 0);
	REFUSED(MESSAGE_COMBINE, combine.size, 1408);
	REFUSED(MESSAGE_COMBINE, combine.chunk_bytes, 100);
	REFUSED(MESSAGE_COMBINE, combine.need, 0);
	REFUSED(MESSAGE_COMBINE, combine.need, MESSAGE_PARTS_MAX + 1);
	REFUSED(MESSAGE_COMBINE, combine.need, MESSAGE_PARTS_MAX - 1);
	REFUSED(MESSAGE_COMBINE, combine.scale, UINT16_MAX + 1);
	REFUSED(MESSAGE_COMBINED, combined.what, 0);
	REFUSED(MESSAGE_COMBINED, combined.what, MESSAGE_COMBINED_WHATS);
	REFUSED(MESSAGE_COMBINED, combined.part_node, NODES_MAX);
	REFUSED(MESSAGE_REPLY, reply.status, 1);
	REFUSED(MESSAGE_REPLY, reply.status, -100000);
}

/* Of an allreduce: ids differ, all else is alike, or goes on from one part to the next. */
static void parts_take_little_more_than_their_ids(void **state)
{
	enum { PARTS = 16, MORE = 14, HEAD = 128 };
	struct message m = sample(MESSAGE_COMBINE);

	fill();
	m.combine.meta.bytes = 0;
	m.combine.need = m.combine.count = PARTS;
	for (uint32_t i = 0; i < PARTS; i++) {
		parts[i].generation = UINT64_C(1795244349039017984) + i * 1000000;
		parts[i].first = 45;
		parts[i].count = 3;
		parts[i].to = 0;
		parts[i].size = 65536;
	}
	assert_in_range(encode(&m), 1, HEAD + PARTS * (OBJECT_ID_BYTES + MORE));
}

static void a_source_may_have_a_late_slot(void **state)
{
	struct message back, sum = sample(MESSAGE_COMBINE);

	fill();
	parts[0].stripe = MESSAGE_SOURCES_MAX - 1;
	sum.combine.flags = MESSAGE_COMBINE_HIDDEN;
	assert_int_equal(codec_decode(bytes, encode(&sum), arena, &back), 0);
	assert_int_equal(back.combine.parts[0].stripe, MESSAGE_SOURCES_MAX - 1);
	REFUSED(MESSAGE_COMBINE, combine.flags, MESSAGE_COMBINE_VALUES);
	parts[0].stripe++;
	REFUSED(MESSAGE_COMBINE, combine.flags, MESSAGE_COMBINE_HIDDEN);
}

static void parts_lie_within_their_objects(void **state)
{
	struct message whole;

	fill();
	parts[0].first = 1; /* of an object that has no more than this */
	REFUSED(MESSAGE_COMBINE, combine.scale, 0);
	parts[0].first = 0;
	parts[1].size = 2 * 1408; /* its last chunk is beyond the end */
	REFUSED(MESSAGE_COMBINE, combine.scale, 0);
	parts[1].size = UINT64_MAX;
	REFUSED(MESSAGE_COMBINE, combine.scale, 0);
	parts[1].size = 3 * 1408;
	whole = sample(MESSAGE_COMBINE);
	assert_int_equal(refused(&whole), 0);
}

static void values_out_of_bounds_are_refused(void **state)
{
	fill();
	REFUSED(MESSAGE_PULL, pull.generation, 0);
	REFUSED(MESSAGE_PULL, pull.bytes, 0);
	REFUSED(MESSAGE_PULL, pull.bytes, OBJECT_INLINE_MAX + 1);
	REFUSED(MESSAGE_PULL, pull.first, UINT64_MAX);
	REFUSED(MESSAGE_PULL_REPLY, pull.status, 1);
	REFUSED(MESSAGE_PULL_REPLY, pull.status, -ENOENT); /* and bytes */
	REFUSED(MESSAGE_PULL_REPLY, pull.bytes, 0);	   /* and no error */
	REFUSED(MESSAGE_PUSH, push.bytes.bytes, 0);
	REFUSED(MESSAGE_PUSH, push.bytes.generation, MESSAGE_GENERATION_MAX + 1);
	REFUSED(MESSAGE_PUSH, push.bytes.first, UINT64_MAX);
}

static void garbage_is_refused(void **state)
{
	uint64_t prng = 4711;
	struct message back;

	for (int round = 0; round < 20000; round++) {
		size_t length = 1 + prng % 300;

		for (size_t i = 0; i < length; i++) {
			prng ^= prng << 13;
			prng ^= prng >> 7;
			prng ^= prng << 17;
			bytes[i] = (uint8_t)prng;
		}
		codec_decode(bytes, length, arena, &back);
	}
	/* a body that says it is long, and very many small parts */
	for (size_t i = 0; i + 2 <= sizeof(bytes); i += 2) {
		bytes[i] = 0x62; /* objects */
		bytes[i + 1] = 0;
	}
	codec_decode(bytes, sizeof(bytes), arena, &back);
}

/* ---- the mailbox --------------------------------------------------------------------------- */

enum { SLOTS = 4 };

static uint8_t tx[SLOTS * MSG_SLOT_BYTES], rx[SLOTS * MSG_SLOT_BYTES];

static void slots_come_back(void **state)
{
	void *memory = aligned_alloc(64, mailbox_bytes(SLOTS, SLOTS));
	struct message m = sample(MESSAGE_STAT), back;
	struct mailbox b;
	struct record r[16];

	mailbox_init(&b, memory, arena, tx, SLOTS, rx, SLOTS);
	for (int i = 0; i < SLOTS; i++)
		assert_true(mailbox_send(&b, 9, &m));
	assert_false(mailbox_send(&b, 9, &m));
	assert_int_equal(mailbox_commands(&b, r, 16), SLOTS);
	assert_int_equal(r[0].op, COMMAND_MSG_SEND);
	assert_int_equal(r[0].msg.conn, 9);
	r[0].op = EVENT_MSG_SENT;
	assert_false(mailbox_event(&b, &r[0], &back));
	assert_false(mailbox_event(&b, &r[0], &back)); /* twice: it counts once */
	assert_true(mailbox_send(&b, 9, &m));
	assert_false(mailbox_send(&b, 9, &m));
	r[1].op = EVENT_MSG_SENT;
	r[1].token = SLOTS; /* no such slot */
	assert_false(mailbox_event(&b, &r[1], &back));
	free(memory);
}

static void received_slots_go_back(void **state)
{
	void *memory = aligned_alloc(64, mailbox_bytes(SLOTS, SLOTS));
	struct message m = sample(MESSAGE_STAT), back;
	struct record event = {.op = EVENT_MSG}, r[4];
	struct mailbox b;

	mailbox_init(&b, memory, arena, tx, SLOTS, rx, SLOTS);
	event.msg.conn = 3;
	event.msg.offset = 2 * MSG_SLOT_BYTES;
	event.msg.length = (uint32_t)encode(&m);
	memcpy(rx + event.msg.offset, bytes, event.msg.length);
	assert_true(mailbox_event(&b, &event, &back));
	assert_int_equal(back.kind, MESSAGE_STAT);
	assert_int_equal(mailbox_commands(&b, r, 4), 1);
	assert_int_equal(r[0].op, COMMAND_MSG_FREE);
	assert_int_equal(r[0].msg.offset, event.msg.offset);
	event.msg.length = 3; /* does not decode: the slot goes back all the same */
	assert_false(mailbox_event(&b, &event, &back));
	assert_int_equal(mailbox_commands(&b, r, 4), 1);
	assert_int_equal(b.bad, 1);
	event.msg.offset = 5; /* no slot */
	assert_false(mailbox_event(&b, &event, &back));
	event.msg.offset = (uint64_t)SLOTS * MSG_SLOT_BYTES;
	assert_false(mailbox_event(&b, &event, &back));
	event.msg.offset = 0;
	event.msg.length = MSG_SLOT_BYTES + 1;
	assert_false(mailbox_event(&b, &event, &back));
	assert_int_equal(mailbox_commands(&b, r, 4), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_round_trips),
		cmocka_unit_test(fields_survive),
		cmocka_unit_test(wrong_watches_are_refused),
		cmocka_unit_test(wrong_groups_are_refused),
		cmocka_unit_test(numbers_of_groups_have_limits),
		cmocka_unit_test(a_node_may_tell_of_its_last_plan),
		cmocka_unit_test(a_locate_may_name_several),
		cmocka_unit_test(truncated_bytes_are_refused),
		cmocka_unit_test(what_is_to_be_kept_is_whole),
		cmocka_unit_test(fields_out_of_bounds_are_refused),
		cmocka_unit_test(metadata_have_at_most_128_bytes),
		cmocka_unit_test(parts_take_little_more_than_their_ids),
		cmocka_unit_test(a_source_may_have_a_late_slot),
		cmocka_unit_test(parts_lie_within_their_objects),
		cmocka_unit_test(values_out_of_bounds_are_refused),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(slots_come_back),
		cmocka_unit_test(received_slots_go_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
