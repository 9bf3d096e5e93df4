/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables. A row names its field once, or twice if the names differ: macros find both
 * offsets.
 */
#include "rows.h"
#include "check.h"
#include "internal/reduce.h"

/* clang-format off */

/* W, H: the struct of protobuf-c, the struct here. w, h: a field there, and here. */
#define ROW_SIZE(S, f) sizeof(((S *)NULL)->f)
#define ROW_IS(S, f, n) (ROW_SIZE(S, f) == (n))
#define ROW_AT(W, H, w, h) .wire = offsetof(W, w), .at = offsetof(H, h)
#define ROW_COUNTED(W, H, w, h, c, max) \
	ROW_AT(W, H, w, h), .n = offsetof(W, n_##w), .count = offsetof(H, c), .most = (max)
/* An array of -1 where the two are not numbers of one size, or a narrow one here. */
#define ROW_OP(W, H, w, h) \
	(ROW_IS(H, h, 8) ? ROW_64 : ROW_IS(H, h, 4) ? ROW_32 : ROW_IS(H, h, 2) ? ROW_16 : ROW_8) + \
	0 * sizeof(char[ROW_IS(W, w, ROW_IS(H, h, 8) ? 8 : 4) ? 1 : -1])
#define ROW_NUMBER(W, H, w, h, more, min, max) \
	{.op = ROW_OP(W, H, w, h), ROW_AT(W, H, w, h), .add = (more), \
	 .low = (uint64_t)(min), .span = (uint64_t)(max) - (uint64_t)(min)}
#define ROW_DIFFERENCE(W, H, w, h) \
	{.op = ROW_IS(H, h, 8) ? ROW_DELTA_64 : ROW_DELTA_32, ROW_AT(W, H, w, h)}
#define ROW_PLAIN(kind, W, H, w, h, max) \
	{.op = (kind), ROW_AT(W, H, w, h), .size = ROW_SIZE(H, h), .most = (max)}
#define ROW_OF_16(W, H, w, h) \
	{.op = ROW_SIXTEEN, ROW_AT(W, H, w, h), .size = sizeof(char[ROW_IS(H, h, 16) ? 16 : -1])}
#define ROW_LETTERS(W, H, w, h) ROW_PLAIN(ROW_TEXT, W, H, w, h, ROW_SIZE(H, h) - 1)
#define ROW_POINTER(W, H, w, h, c, max, item) \
	{.op = ROW_BYTES, ROW_AT(W, H, w, h), .count = offsetof(H, c), .most = (max), .size = (item)}
#define ROW_NUMBERS(kind, W, H, w, h, c, max, per_item, bytes, last) \
	{.op = (kind), ROW_COUNTED(W, H, w, h, c, max), .words = (per_item), .size = (bytes), \
	 .span = (last)}
#define ROW_STRUCT(kind, W, H, w, h, table) \
	{.op = (kind), ROW_AT(W, H, w, h), .of = &rows_##table}
#define ROW_STRUCTS(kind, W, H, w, h, c, max, table) \
	{.op = (kind), ROW_COUNTED(W, H, w, h, c, max), .of = &rows_##table}

/* T: W and H. The name of a field is the same there and here, or w there and h here. */
#define NUMBER_AS(T, w, h, min, max) ROW_NUMBER(T, w, h, 0, min, max)
#define NUMBER(T, name, min, max) ROW_NUMBER(T, name, name, 0, min, max)
#define ANY_AS(T, w, h) ROW_NUMBER(T, w, h, 0, 0, UINT64_MAX)
#define ANY(T, name) ROW_NUMBER(T, name, name, 0, 0, UINT64_MAX)
#define STATUS(T) ROW_NUMBER(T, status, status, 0, -4095, 0)
#define GENERATION_AS(T, w, h) ROW_NUMBER(T, w, h, 0, 1, MESSAGE_GENERATION_MAX)
#define GENERATION(T) ROW_NUMBER(T, generation, generation, 0, 1, MESSAGE_GENERATION_MAX)
#define NODE(T, name) ROW_NUMBER(T, name, name, 0, 0, NODES_MAX - 1)
#define ONE_MORE(T, name, max) ROW_NUMBER(T, name, name, 1, 0, max) /* on the wire */
#define NODE_OR_NONE(T, name) ROW_NUMBER(T, name, name, 1, 0, NODES_MAX) /* NONE + 1 is 0 */
#define DELTA(T, name) ROW_DIFFERENCE(T, name, name)
#define SIXTEEN(T, w, h) ROW_OF_16(T, w, h)
#define ID(T, name) ROW_OF_16(T, name, name)
#define TEXT_UPTO(T, w, h, max) ROW_PLAIN(ROW_TEXT, T, w, h, max)
#define TEXT_AS(T, w, h) ROW_LETTERS(T, w, h)
#define TEXT(T, name) ROW_LETTERS(T, name, name)
#define META(T) ROW_PLAIN(ROW_META, T, meta, meta, 0)
#define RAILS(T) ROW_PLAIN(ROW_RAILS, T, rails, rails, 0)
#define VALUE(T, h, count) ROW_POINTER(T, value, h, count, OBJECT_INLINE_MAX, 1)
#define IDS(T, name, count, max) ROW_POINTER(T, name, name, count, max, OBJECT_ID_BYTES)
#define WORDS(T, w, h, count, max, per_item) \
	ROW_NUMBERS(ROW_ARRAY, T, w, h, count, max, per_item, 4, UINT32_MAX)
#define NODES(T, w, h, count, max) \
	ROW_NUMBERS(ROW_ARRAY, T, w, h, count, max, 1, 4, NODES_MAX - 1)
#define LONGS(kind, T, w, h, count, max, per_item) \
	ROW_NUMBERS(kind, T, w, h, count, max, per_item, 8, UINT64_MAX)
/* A clock, round or version of a group; an attempt of a result. */
#define CLOCK(T, name) ROW_NUMBER(T, name, name, 0, 0, 2 * GROUP_NUMBER_MAX)
#define ATTEMPT(T, name) ROW_NUMBER(T, name, name, 0, 0, 2 * GROUP_BY_SWITCH - 1)
#define PART(T, name, table) ROW_STRUCT(ROW_PART, T, name, name, table)
#define LINKED(T, name, table) ROW_STRUCT(ROW_LINKED, T, name, name, table)
#define LIST(T, w, h, count, max, table) ROW_STRUCTS(ROW_LIST, T, w, h, count, max, table)
#define PAGE(T, name, max, table) ROW_STRUCTS(ROW_PAGE, T, name, name, count, max, table)

/* The first `used` of the rows of `of`. */
#define ROWS_OF(name, body, T, of, used) \
	static const struct rows rows_##name = {&rpc__##body##__descriptor, rows_of_##of, used, \
						sizeof(struct T)}
#define ROWS(name, body, T) \
	ROWS_OF(name, body, T, name, sizeof(rows_of_##name) / sizeof(struct row))

#define HELLO Rpc__Hello, struct message_hello
static const struct row rows_of_hello[] = {
	NODE_OR_NONE(HELLO, node),
	ANY(HELLO, version),
	NUMBER(HELLO, workers, 1, WORKERS_MAX),
	NUMBER(HELLO, announce, 0, MESSAGE_ANNOUNCES - 1),
	NUMBER(HELLO, store_incarnation, 1, UINT64_MAX),
	NODE_OR_NONE(HELLO, assigned),
	ANY(HELLO, incarnation), ANY(HELLO, digest),
	RAILS(HELLO),
};
ROWS(hello, hello, message_hello);

#define LEASE Rpc__Lease, struct message_lease
static const struct row rows_of_lease[] = {
	NUMBER(LEASE, number, 1, UINT64_MAX),
	NUMBER(LEASE, ttl_ns, 0, SESSION_LEASE_NS_MAX),
	TEXT(LEASE, name),
};
ROWS(lease, lease, message_lease);

#define HAVE Rpc__Have, struct message_have
static const struct row rows_of_have[] = {
	ID(HAVE, id),
	GENERATION(HAVE),
	ANY(HAVE, size), ANY(HAVE, chunk_bytes),
	NUMBER(HAVE, state, 1, MESSAGE_COPY_STATES - 1),
	NODE_OR_NONE(HAVE, upstream),
	ANY(HAVE, create),
	TEXT(HAVE, name),
	ANY(HAVE, has_value),
	VALUE(HAVE, value, value_bytes),
	NODES(HAVE, also, also, also_count, MESSAGE_UPSTREAMS_MAX - 1),
	ANY(HAVE, rate), ANY(HAVE, pinned), ANY(HAVE, pin_lost), ANY(HAVE, epoch), ANY(HAVE, made),
	PART(HAVE, lease, lease),
	META(HAVE),
	ANY(HAVE, appointed),
};
ROWS(have, have, message_have);

#define HOLD Rpc__Hold, struct message_hold
static const struct row rows_of_hold[] = {
	ID(HOLD, id),
	NUMBER(HOLD, generation, 0, MESSAGE_GENERATION_MAX),
	PART(HOLD, lease, lease),
	ONE_MORE(HOLD, left_ns, SESSION_LEASE_NS_MAX + 1),
	ANY(HOLD, known), ANY(HOLD, joins), ANY(HOLD, epoch),
};
ROWS(hold, hold, message_hold);

#define ANNOUNCED Rpc__Announced, struct message_announced
static const struct row rows_of_announced[] = {ANY(ANNOUNCED, epoch), ANY(ANNOUNCED, view)};
ROWS(announced, announced, message_announced);

#define TOMBSTONE Rpc__Tombstone, struct message_tombstone
static const struct row rows_of_tombstone[] = {
	ID(TOMBSTONE, id),
	GENERATION(TOMBSTONE),
	ANY(TOMBSTONE, request),
	NODE_OR_NONE(TOMBSTONE, node),
	ANY(TOMBSTONE, age),
};
ROWS(tombstone, tombstone, message_tombstone);

#define GET Rpc__Get, struct message_get
static const struct row rows_of_get[] = {
	ID(GET, id),
	ANY(GET, generation),
	NODE_OR_NONE(GET, failed),
	NUMBER(GET, why, 0, MESSAGE_GET_WHYS - 1),
	ANY(GET, epoch),
	NUMBER(GET, value_max, 0, OBJECT_INLINE_MAX),
	ANY(GET, op), ANY(GET, dtype),
	IDS(GET, others, others_count, MESSAGE_OTHERS_MAX),
	ANY(GET, deferrable),
};
ROWS(get, get, message_get);

#define GOT Rpc__Got, struct message_got
static const struct row rows_of_got[] = {
	ID(GOT, id),
	ANY(GOT, generation), ANY(GOT, size), ANY(GOT, chunk_bytes),
	NUMBER(GOT, what, 0, MESSAGE_GOT_WHATS - 1),
	NODE_OR_NONE(GOT, holder),
	TEXT(GOT, name),
	VALUE(GOT, value, value_bytes),
	STATUS(GOT),
	TEXT(GOT, text),
	ANY(GOT, spare), ANY(GOT, departed),
	NODES(GOT, also, also, also_count, MESSAGE_UPSTREAMS_MAX - 1),
	ANY(GOT, others), ANY(GOT, waited),
	NUMBER(GOT, lost, 0, NODES_MAX),
	ANY_AS(GOT, down, down_ms),
	META(GOT),
};
ROWS(got, got, message_got);

#define OBJECT Rpc__Object, struct message_object
static const struct row rows_of_object[] = {
	ID(OBJECT, id),
	ANY(OBJECT, generation),
	NUMBER(OBJECT, upstream, 0, NODES_MAX),
	ANY(OBJECT, cursor),
	NUMBER_AS(OBJECT, mode, replaced, 0, 1),
	NUMBER(OBJECT, lapsed, 0, MESSAGE_LAPSED_WHATS - 1),
	ANY(OBJECT, lease),
};
ROWS(object, object, message_object);

#define REDUCED Rpc__Object, struct message_reduce
static const struct row rows_of_reduced[] = { /* and mode: check_reduced */
	SIXTEEN(REDUCED, id, target),
	ANY_AS(REDUCED, generation, asked),
};
ROWS(reduced, object, message_reduce);

#define STREAM Rpc__Stream, struct message_stream
enum { ROWS_RANGE = 6 }; /* rows of PIECES and HAS */
static const struct row rows_of_stream[] = {
	ID(STREAM, id),
	NUMBER(STREAM, generation, 1, UINT64_MAX),
	ANY(STREAM, chunk_bytes), ANY(STREAM, first),
	NUMBER(STREAM, count, 1, UINT32_MAX),
	WORDS(STREAM, skip, skip, skips, MESSAGE_SKIPS_MAX, 2),
	ANY(STREAM, check),
	WORDS(STREAM, substream, substream, substreams, MESSAGE_SUBSTREAMS_MAX, 4),
	NUMBER(STREAM, lanes, 1, LANES_MAX),
	WORDS(STREAM, replaces, replaces, replaced, MESSAGE_SUBSTREAMS_MAX, 1),
};
ROWS(stream, stream, message_stream);
ROWS_OF(range, stream, message_stream, stream, ROWS_RANGE);

#define NAMES Rpc__List, struct message_list
static const struct row rows_of_list[] = {ANY(NAMES, cursor), TEXT(NAMES, prefix)};
ROWS(list, list, message_list);

#define WATCH Rpc__Watch, struct message_watch
static const struct row rows_of_watch[] = {
	NUMBER(WATCH, step, 1, MESSAGE_WATCH_STEPS - 1),
	NUMBER(WATCH, number, 1, UINT64_MAX),
	ANY(WATCH, next), ANY(WATCH, cursor),
	TEXT(WATCH, prefix),
};
ROWS(watch, watch, message_watch);

#define HOLDER Rpc__Holder, struct session_holder
static const struct row rows_of_holder[] = {
	NODE(HOLDER, node),
	ANY(HOLDER, complete), ANY(HOLDER, watermark),
	NODES(HOLDER, upstream, upstream, upstreams, SESSION_UPSTREAMS),
	ANY(HOLDER, sending), ANY(HOLDER, arrived), ANY_AS(HOLDER, down, down_ms),
};
ROWS(holder, holder, session_holder);

#define DESCRIPTION Rpc__Description, struct session_object
static const struct row rows_of_description[] = {
	ID(DESCRIPTION, id),
	ANY(DESCRIPTION, generation), ANY(DESCRIPTION, size), ANY(DESCRIPTION, copies),
	ANY(DESCRIPTION, partial), ANY(DESCRIPTION, flags),
	TEXT(DESCRIPTION, name),
	LIST(DESCRIPTION, holders, holder, holders, SESSION_HOLDERS, holder),
	ANY(DESCRIPTION, lost),
	NODE(DESCRIPTION, lost_node),
	ANY_AS(DESCRIPTION, down, down_ms), ANY(DESCRIPTION, leases),
	NODE(DESCRIPTION, lease_node),
	ANY(DESCRIPTION, lease), ANY(DESCRIPTION, lease_ms), ANY(DESCRIPTION, expires_ms),
	TEXT(DESCRIPTION, lease_name),
	META(DESCRIPTION),
};
ROWS(description, description, session_object);

#define OBJECTS Rpc__Objects, struct message_objects
static const struct row rows_of_objects[] = {
	ANY(OBJECTS, cursor),
	PAGE(OBJECTS, objects, MESSAGE_OBJECTS_MAX, description),
	NUMBER(OBJECTS, deleted, 0, 1),
	NUMBER(OBJECTS, watch, 0, MESSAGE_WATCH_STATES - 1),
	ANY(OBJECTS, next),
	NUMBER(OBJECTS, unsettled, 0, 1),
};
ROWS(objects, objects, message_objects);

#define ASK Rpc__Group, struct message_group
static const struct row rows_of_group[] = {
	ID(ASK, id),
	ANY_AS(ASK, step, ask.step), ANY_AS(ASK, flags, ask.flags), ANY_AS(ASK, op, ask.op),
	ANY_AS(ASK, dtype, ask.dtype), ANY_AS(ASK, count, ask.count),
	ANY_AS(ASK, member, ask.member), ANY_AS(ASK, clock, ask.clock),
	ANY_AS(ASK, pending, ask.pending), ANY_AS(ASK, seen, ask.seen),
	ANY_AS(ASK, seen_attempt, ask.seen_attempt), ANY_AS(ASK, members, ask.members),
	ANY_AS(ASK, cursor, ask.cursor), ANY_AS(ASK, joined, ask.joined),
	TEXT_UPTO(ASK, name, ask.name, GROUP_NAME_MAX),
	TEXT_AS(ASK, cohort, ask.cohort),
	TEXT_AS(ASK, policy, ask.policy),
	ANY_AS(ASK, job, ask.job), ANY_AS(ASK, job_attempt, ask.job_attempt),
	ANY_AS(ASK, job_error, ask.job_error),
	WORDS(ASK, switch_ip, ask.switch_ip, ask.switches, GROUP_SWITCHES_MAX, 1),
};
ROWS(group, group, message_group);

#define MEMBER_INFO Rpc__GroupMember, struct group_member_info
static const struct row rows_of_group_member[] = {
	ANY(MEMBER_INFO, member), CLOCK(MEMBER_INFO, clock), CLOCK(MEMBER_INFO, round),
	ANY(MEMBER_INFO, waiting_ns), ANY(MEMBER_INFO, counted), ANY(MEMBER_INFO, late),
	ANY(MEMBER_INFO, refused),
	NODE(MEMBER_INFO, node),
	ANY(MEMBER_INFO, waits),
	TEXT(MEMBER_INFO, cohort),
};
ROWS(group_member, group_member, group_member_info);

#define JOB Rpc__GroupJob, struct group_job
static const struct row rows_of_group_job[] = {
	NUMBER(JOB, round, 1, 2 * GROUP_NUMBER_MAX),
	CLOCK(JOB, clock),
	ANY(JOB, key),
	NUMBER_AS(JOB, base_round, base, 0, 2 * GROUP_NUMBER_MAX),
	NUMBER(JOB, attempt, 0, GROUP_BY_SWITCH - 1),
	ATTEMPT(JOB, base_attempt),
	ANY(JOB, version), ANY(JOB, group), ANY(JOB, ip), ANY(JOB, member),
	NUMBER(JOB, members, 1, GROUP_SWITCH_MEMBERS),
};
ROWS(group_job, group_job, group_job);

#define ANSWER Rpc__GroupAnswer, struct group_answer
static const struct row rows_of_group_answer[] = {
	ANY(ANSWER, flags), ANY(ANSWER, op), ANY(ANSWER, dtype),
	NUMBER(ANSWER, count, 0, UINT64_MAX / REDUCE_ELEMENT_BYTES_MAX),
	CLOCK(ANSWER, clock), CLOCK(ANSWER, done), CLOCK(ANSWER, joined), CLOCK(ANSWER, round),
	CLOCK(ANSWER, version), ANY(ANSWER, rounds), ANY(ANSWER, counted), ANY(ANSWER, late),
	ANY(ANSWER, refused), ANY(ANSWER, lost), CLOCK(ANSWER, top), ANY(ANSWER, waiting_ns),
	LONGS(ROW_WHOLE, ANSWER, histogram, histogram, histogram, GROUP_HISTOGRAM, 1),
	ATTEMPT(ANSWER, attempt),
	NUMBER(ANSWER, members, 0, GROUP_MEMBERS_MAX),
	NUMBER(ANSWER, live, 0, GROUP_MEMBERS_MAX),
	NODE(ANSWER, owner),
	NUMBER(ANSWER, cursor, 0, GROUP_MEMBERS_MAX),
	TEXT(ANSWER, policy),
	TEXT(ANSWER, table),
	LIST(ANSWER, member, member, page, GROUP_PAGE, group_member),
	ANY(ANSWER, switched), ANY(ANSWER, fallen),
	WORDS(ANSWER, switch_ip, switch_ip, switches, GROUP_SWITCHES_MAX, 1),
	PART(ANSWER, job, group_job),
	CLOCK(ANSWER, gone_first), CLOCK(ANSWER, gone_last),
};
ROWS(group_answer, group_answer, group_answer);

#define GROUPED Rpc__Grouped, struct message_grouped
static const struct row rows_of_grouped[] = {
	STATUS(GROUPED),
	TEXT(GROUPED, text),
	LINKED(GROUPED, answer, group_answer),
};
ROWS(grouped, grouped, message_grouped);

#define ASKED Rpc__Status, struct message_status
static const struct row rows_of_status[] = {ANY(ASKED, plan)};
ROWS(status, status, message_status);

#define DESCRIBED Rpc__Node, struct session_node
static const struct row rows_of_node[] = { /* and its plan: check_node */
	NODE(DESCRIBED, node),
	NUMBER(DESCRIBED, state, 0, 2),
	NUMBER(DESCRIBED, workers, 0, WORKERS_MAX),
	ANY(DESCRIBED, incarnation), ANY(DESCRIBED, store_bytes), ANY(DESCRIBED, store_used),
	ANY(DESCRIBED, objects), ANY(DESCRIBED, sessions), ANY(DESCRIBED, mtu),
	ANY(DESCRIBED, hugepages), ANY(DESCRIBED, busy_poll), ANY(DESCRIBED, control_pid),
	ANY(DESCRIBED, dataplane_pid),
	TEXT(DESCRIBED, port),
	ANY(DESCRIBED, arriving), ANY(DESCRIBED, sending),
};
ROWS(node, node, session_node);

_Static_assert(sizeof(struct control_plan_level) == 3 * sizeof(uint64_t), "three numbers each");

#define PLAN Rpc__Node, struct control_plan
static const struct row rows_of_plan[] = { /* and plan_flags */
	GENERATION_AS(PLAN, plan_generation, generation),
	NUMBER_AS(PLAN, plan_node, node, 0, NODES_MAX - 1),
	TEXT_AS(PLAN, plan_planner, planner),
	ANY_AS(PLAN, plan_size, size), ANY_AS(PLAN, plan_predicted_ns, predicted_ns),
	ANY_AS(PLAN, plan_measured_ns, measured_ns),
	NUMBER_AS(PLAN, plan_nodes, nodes, 0, MESSAGE_SOURCES_MAX),
	LONGS(ROW_ARRAY, PLAN, plan_level, level, levels, CONTROL_PLAN_LEVELS_MAX, 3),
};
const struct rows rows_plan = {&rpc__node__descriptor, rows_of_plan,
			       sizeof(rows_of_plan) / sizeof(struct row),
			       sizeof(struct control_plan)};

#define REDIRECT Rpc__Redirect, struct message_members
static const struct row rows_of_redirect[] = {ANY(REDIRECT, digest)};
ROWS(redirect, redirect, message_members);

#define MEMBER Rpc__Member, struct message_member
static const struct row rows_of_member[] = {
	NODE(MEMBER, node),
	NUMBER(MEMBER, state, MEMBER_NONE + 1, MEMBER_STATES - 1),
	ANY(MEMBER, incarnation),
	SIXTEEN(MEMBER, ip, addr.ip),
	NUMBER_AS(MEMBER, port, addr.port, 0, UINT16_MAX - WORKERS_MAX),
	RAILS(MEMBER),
};
ROWS(member, member, message_member);

#define MEMBERS Rpc__Members, struct message_members
static const struct row rows_of_members[] = {
	ANY(MEMBERS, digest),
	NUMBER(MEMBERS, step, 0, MESSAGE_MEMBERS_STEPS - 1),
	PAGE(MEMBERS, members, MESSAGE_MEMBERS_MAX, member),
};
ROWS(members, members, message_members);

#define REPLY Rpc__Reply, struct message_reply
static const struct row rows_of_reply[] = {
	STATUS(REPLY),
	ANY(REPLY, generation),
	TEXT(REPLY, text),
	ANY(REPLY, ready),
	NUMBER(REPLY, pinned, 0, NODES_MAX),
	ANY(REPLY, lanes),
};
ROWS(reply, reply, message_reply);

#define REDUCE Rpc__Reduce, struct message_reduce
static const struct row rows_of_reduce[] = {
	ID(REDUCE, target),
	ANY(REDUCE, op), ANY(REDUCE, dtype), ANY(REDUCE, num), ANY(REDUCE, flags),
	ANY(REDUCE, timeout_ns),
	TEXT(REDUCE, name),
	IDS(REDUCE, sources, count, MESSAGE_SOURCES_MAX),
	ANY(REDUCE, asked), ANY(REDUCE, deadline_ns), ANY(REDUCE, min),
};
ROWS(reduce, reduce, message_reduce);

#define USED Rpc__Used, struct message_used
static const struct row rows_of_used[] = {
	ID(USED, target),
	STATUS(USED),
	ANY(USED, generation),
	TEXT(USED, text),
	IDS(USED, sources, count, MESSAGE_SOURCES_MAX),
	ANY(USED, asked),
	NODE_OR_NONE(USED, node),
	ANY(USED, present),
};
ROWS(used, used, message_used);

#define SUMMAND Rpc__Part, struct message_part
static const struct row rows_of_part[] = {
	ID(SUMMAND, id),
	DELTA(SUMMAND, generation), DELTA(SUMMAND, node), DELTA(SUMMAND, first),
	DELTA(SUMMAND, count), DELTA(SUMMAND, to), DELTA(SUMMAND, size), DELTA(SUMMAND, stripe),
};
ROWS(part, part, message_part);

#define COMBINE Rpc__Combine, struct message_combine
static const struct row rows_of_combine[] = {
	ID(COMBINE, id),
	GENERATION(COMBINE),
	ID(COMBINE, target),
	ANY(COMBINE, reduce),
	NUMBER(COMBINE, size, 1, UINT64_MAX),
	ANY(COMBINE, chunk_bytes), ANY(COMBINE, op), ANY(COMBINE, dtype),
	NUMBER(COMBINE, scale, 0, UINT16_MAX),
	NUMBER(COMBINE, need, 1, MESSAGE_PARTS_MAX),
	ANY(COMBINE, flags),
	TEXT(COMBINE, name),
	PAGE(COMBINE, parts, MESSAGE_PARTS_MAX, part),
	META(COMBINE),
};
ROWS(combine, combine, message_combine);

#define COMBINED Rpc__Combined, struct message_combined
static const struct row rows_of_combined[] = {
	ID(COMBINED, id),
	ANY(COMBINED, generation),
	ID(COMBINED, target),
	ANY(COMBINED, reduce), ANY(COMBINED, what),
	NODE_OR_NONE(COMBINED, part_node),
	ID(COMBINED, part_id),
	ANY(COMBINED, part_generation),
	STATUS(COMBINED),
};
ROWS(combined, combined, message_combined);

#define PULL Rpc__Pull, struct message_pull
static const struct row rows_of_pull[] = {
	ID(PULL, id),
	GENERATION(PULL),
	NUMBER(PULL, first, 0, INT64_MAX),
	NUMBER(PULL, bytes, 1, OBJECT_INLINE_MAX),
};
ROWS(pull, pull, message_pull);

#define PULL_REPLY Rpc__PullReply, struct message_pull
static const struct row rows_of_pull_reply[] = {
	STATUS(PULL_REPLY),
	VALUE(PULL_REPLY, value, bytes),
};
ROWS(pull_reply, pull_reply, message_pull);

#define PUSH Rpc__Push, struct message_push
static const struct row rows_of_push[] = {
	ID(PUSH, into),
	SIXTEEN(PUSH, id, bytes.id),
	GENERATION_AS(PUSH, generation, bytes.generation),
	NUMBER_AS(PUSH, first, bytes.first, 0, INT64_MAX),
	VALUE(PUSH, bytes.value, bytes.bytes),
};
ROWS(push, push, message_push);

/* X(kind, rows, field of struct message, packs the rest, checks the rest) */
#define ROWS_KINDS(X) \
	X(HELLO, hello, hello, NULL, NULL) \
	X(HAVE, have, have, NULL, check_have) \
	X(KEEP, have, have, NULL, check_keep) \
	X(HOLD, hold, hold, NULL, NULL) \
	X(GET, get, get, NULL, check_get) \
	X(GOT, got, got, NULL, check_got) \
	X(DROP, object, object, NULL, check_object) \
	X(DELETE, object, object, NULL, check_object) \
	X(REMOVE, object, object, NULL, check_object) \
	X(PREFETCH, object, object, NULL, check_object) \
	X(STAT, object, object, NULL, check_object) \
	X(TOMBSTONE, tombstone, tombstone, NULL, NULL) \
	X(ANNOUNCED, announced, announced, NULL, NULL) \
	X(STREAM, stream, stream, NULL, check_stream) \
	X(PIECES, range, stream, NULL, check_range) \
	X(HAS, range, stream, NULL, check_range) \
	X(LIST, list, list, NULL, NULL) \
	X(WATCH, watch, watch, NULL, check_watch) \
	X(OBJECTS, objects, objects, NULL, check_objects) \
	X(STATUS, status, status, NULL, NULL) \
	X(NODE, node, node, pack_plan, check_node) \
	X(REPLY, reply, reply, NULL, NULL) \
	X(REDIRECT, redirect, members, NULL, NULL) \
	X(MEMBERS, members, members, NULL, NULL) \
	X(REDUCE, reduce, reduce, NULL, NULL) \
	X(REDUCED, reduced, reduce, pack_reduced, check_reduced) \
	X(USED, used, used, NULL, check_used) \
	X(COMMIT, used, used, NULL, check_result) \
	X(RECALL, used, used, NULL, check_result) \
	X(COMBINE, combine, combine, NULL, check_combine) \
	X(COMBINED, combined, combined, NULL, check_combined) \
	X(RELEASE, combined, combined, NULL, check_release) \
	X(FINISH, combined, combined, NULL, check_release) \
	X(PULL, pull, pull, NULL, NULL) \
	X(PULL_REPLY, pull_reply, pull, NULL, check_pull_reply) \
	X(PUSH, push, push, NULL, check_push) \
	X(GROUP, group, group, NULL, check_group) \
	X(GROUPED, grouped, grouped, NULL, check_grouped)

#define ROWS_KIND(name, table, field, packs, checks) \
	[RPC__ENVELOPE__BODY_##name] = {MESSAGE_##name, offsetof(struct message, field), \
					&rows_##table, packs, checks},
const struct rows_kind rows_kinds[ROWS_CASES] = {ROWS_KINDS(ROWS_KIND)};

#define ROWS_CASE(name, ...) [MESSAGE_##name] = RPC__ENVELOPE__BODY_##name,
const uint8_t rows_cases[MESSAGE_KINDS] = {ROWS_KINDS(ROWS_CASE)};

#define ROWS_NAME(name, ...) [MESSAGE_##name] = #name,
const char *const rows_names[MESSAGE_KINDS] = {ROWS_KINDS(ROWS_NAME)};

/* clang-format on */

void *rows_alloc(void *data, size_t size)
{
	struct rows_arena *a = data;
	size_t at = a->used;

	if (size > a->bytes - at)
		return NULL;
	a->used = (at + size + 15) & ~(size_t)15;
	if (a->used > a->bytes)
		a->used = a->bytes;
	return a->memory + at;
}
