/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of groups, as control reads them, and its answers. Synchronous calls and queues fill and
 * read them here. Sends nothing.
 */
#include "api/group.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "api/error.h"

_Static_assert(SAR_GROUP_NAME_MAX == GROUP_NAME_MAX && SAR_COHORT_MAX == GROUP_COHORT_MAX &&
		       SAR_POLICY_MAX == GROUP_POLICY_MAX && SAR_STALENESS == GROUP_HISTOGRAM &&
		       SAR_POLICY_TABLE_MAX == GROUP_TABLE_BYTES &&
		       SAR_GROUP_MEMBERS == GROUP_MEMBERS_MAX &&
		       (int)SAR_GROUP_TOTAL == (int)GROUP_TOTAL &&
		       SAR_SWITCHES_MAX == GROUP_SWITCHES_MAX,
	       "limits of groups have one number everywhere");
_Static_assert(sizeof(struct group_answer) != sizeof(struct session_object),
	       "op_refused tells items by their size");

/* ---- requests ---------------------------------------------------------------------------------
 */

static int group_text(char *out, size_t room, const char *text, const char *what)
{
	if (text && strlen(text) >= room)
		return error_set(-ENAMETOOLONG, "%s has at most %zu bytes, this one %zu", what,
				 room - 1, strlen(text));
	strcpy(out, text ? text : "");
	return 0;
}

int group_ask(struct group_request *r, uint32_t step, const char *name)
{
	*r = (struct group_request){.step = step};
	if (!name)
		return error_set(-EINVAL, "a group has a name: say which");
	return group_text(r->name, GROUP_NAME_MAX + 1, name, "the name of a group");
}

/* Reads ADDRESS[,ADDRESS...]. */
static int group_switches(const char *text, struct group_request *out)
{
	for (const char *at = text; at && *at; out->switches++) {
		size_t bytes = strcspn(at, ",");
		char address[INET_ADDRSTRLEN] = "";
		struct in_addr ip = {0};
		if (out->switches == GROUP_SWITCHES_MAX)
			return error_set(-EINVAL, "a group has at most %d switches",
					 GROUP_SWITCHES_MAX);
		if (bytes < sizeof(address))
			memcpy(address, at, bytes);
		if (inet_pton(AF_INET, address, &ip) != 1 || ip.s_addr == 0)
			return error_set(-EINVAL, "switch '%.*s': not the IPv4 address of a switch",
					 (int)bytes, at);
		memcpy(&out->switch_ip[out->switches], &ip, sizeof(ip));
		at += bytes;
		at += *at == ',';
	}
	return 0;
}

int group_ask_create(struct group_request *r, const char *name, const sar_group_spec *spec)
{
	if (!spec || !spec->policy)
		return error_set(-EINVAL, "sar_group_create: say what group: op, dtype, count and "
					  "policy");
	for (size_t i = 0; i < sizeof(spec->reserved) / sizeof(spec->reserved[0]); i++)
		if (spec->reserved[i])
			return error_set(-EINVAL, "sar_group_create: what is reserved in "
						  "sar_group_spec is not zero: clear it first");
	if (spec->flags & ~(uint32_t)SAR_GROUP_TOTAL)
		return error_set(-EINVAL, "sar_group_create: unknown flags: only SAR_GROUP_TOTAL");
	int error = group_ask(r, GROUP_CREATE, name);
	if (error == 0)
		error = group_text(r->policy, sizeof(r->policy), spec->policy, "a policy");
	if (error == 0)
		error = group_switches(spec->switches, r);
	if (error < 0)
		return error;
	r->op = spec->op;
	r->dtype = spec->dtype;
	r->count = spec->count;
	r->members = spec->members;
	r->flags = spec->flags;
	return 0;
}

int group_ask_policy(struct group_request *r, const char *name, const char *policy)
{
	int error = group_ask(r, GROUP_POLICY, name);
	return error < 0 ? error : group_text(r->policy, sizeof(r->policy), policy, "a policy");
}

int group_ask_explain(struct group_request *r, const char *policy)
{
	*r = (struct group_request){.step = GROUP_EXPLAIN};
	return group_text(r->policy, sizeof(r->policy), policy, "a policy");
}

int group_ask_join(struct group_request *r, const char *name, const char *cohort)
{
	int error = group_ask(r, GROUP_JOIN, name);
	if (error == 0)
		error = group_text(r->cohort, sizeof(r->cohort), cohort, "the name of a cohort");
	if (error < 0)
		return error;
	while (r->member == 0)
		if (getrandom(&r->member, sizeof(r->member), 0) < 0)
			return error_set(-errno, "no random number: %s", strerrordesc_np(errno));
	return 0;
}

struct group_request group_of_member(const sar_member *m, uint32_t step)
{
	struct group_request r = m->join;
	r.step = step;
	r.flags = 0;
	return r;
}

struct group_request group_of_push(const sar_member *m)
{
	struct group_request r = group_of_member(m, GROUP_PUSH);
	r.clock = m->join.clock + 1;
	r.count = m->count;
	r.dtype = m->dtype;
	return r;
}

/* ---- answers ----------------------------------------------------------------------------------
 */

void group_answered(const struct mux_result *result, struct group_answer *out)
{
	memset(out, 0, sizeof(*out));
	if (result->items_count > 0)
		memcpy(out, result->items, sizeof(*out));
}

static void group_clock(struct group_request *j, uint64_t clock)
{
	uint64_t by = clock > j->clock ? clock - j->clock : 0;
	j->pending = by < GROUP_PENDING_MAX ? j->pending << by : 0;
	j->clock += by;
}

void group_learn(sar_member *m, const struct group_answer *a)
{
	struct group_request *j = &m->join;
	group_clock(j, a->clock);
	for (unsigned i = 0; i < GROUP_PENDING_MAX; i++)
		if (j->clock < i || j->clock - i <= a->done)
			j->pending &= ~(UINT64_C(1) << i);
	m->start = a->members;
	m->live = a->live;
	m->rounds = a->round;
	m->unsure = false;
}

void group_pushed(sar_member *m, uint64_t clock)
{
	group_clock(&m->join, clock);
	m->join.pending |= UINT64_C(1) << (m->join.clock - clock) % GROUP_PENDING_MAX;
}

void group_pulled(sar_member *m, const struct group_answer *a, sar_group_result *out, sar_id *id)
{
	char name[SAR_NAME_MAX + 1];
	group_learn(m, a);
	m->join.seen = a->round;
	m->join.seen_attempt = a->attempt;
	*out = (sar_group_result){.round = a->round,
				  .attempt = a->attempt % GROUP_BY_SWITCH,
				  .through = a->attempt >= GROUP_BY_SWITCH,
				  .version = a->version,
				  .clock = m->join.clock};
	*id = group_round(m, 'r', a->round, a->attempt, name);
}

void group_info(const struct group_answer *a, sar_group_info *out)
{
	*out = (sar_group_info){.op = a->op,
				.dtype = a->dtype,
				.flags = a->flags,
				.members = a->members,
				.count = a->count,
				.live = a->live,
				.owner = a->owner,
				.version = a->version,
				.round = a->round,
				.clock = a->top,
				.rounds = a->rounds,
				.counted = a->counted,
				.late = a->late,
				.refused = a->refused,
				.lost = a->lost,
				.waiting_ns = a->waiting_ns,
				.switched = a->switched,
				.fallen = a->fallen,
				.gone_first = a->gone_first,
				.gone_last = a->gone_last};
	for (uint32_t i = 0; i < a->switches && i < GROUP_SWITCHES_MAX; i++)
		memcpy(out->switches[i], &a->switch_ip[i], 4);
	memcpy(out->staleness, a->histogram, sizeof(out->staleness));
	memcpy(out->policy, a->policy, sizeof(out->policy));
	memcpy(out->table, a->table, sizeof(out->table));
}

void group_member_info(const struct group_member_info *m, sar_member_info *out)
{
	*out = (sar_member_info){.member = m->member,
				 .clock = m->clock,
				 .round = m->round,
				 .waiting_ns = m->waiting_ns,
				 .counted = m->counted,
				 .late = m->late,
				 .refused = m->refused,
				 .node = m->node,
				 .waits = m->waits};
	memcpy(out->cohort, m->cohort, sizeof(out->cohort));
}

/* ---- members ----------------------------------------------------------------------------------
 */

static uint64_t group_item_bytes(uint32_t dtype)
{
	switch (dtype) {
	case SAR_I8:
	case SAR_U8:
		return 1;
	case SAR_F16:
	case SAR_BF16:
	case SAR_I16:
	case SAR_U16:
		return 2;
	case SAR_F32:
	case SAR_I32:
	case SAR_U32:
		return 4;
	default:
		return 8;
	}
}

sar_member *group_member_new(sar *s, const struct group_request *join, const struct group_answer *a)
{
	sar_member *m = calloc(1, sizeof(*m));
	if (!m) {
		error_set(-ENOMEM, "out of memory");
		return NULL;
	}
	m->s = s;
	m->join = *join;
	m->join.flags = GROUP_REJOIN;
	m->join.joined = a->joined;
	m->join.clock = a->clock;
	m->count = a->count;
	m->op = a->op;
	m->dtype = a->dtype;
	m->start = a->members;
	m->live = a->live;
	m->rounds = a->round;
	m->item_bytes = group_item_bytes(a->dtype);
	return m;
}

uint64_t sar_member_number(const sar_member *m)
{
	return m->join.member;
}

uint64_t sar_member_clock(const sar_member *m)
{
	return m->join.clock;
}

int group_member_free(const sar_member *m)
{
	return !m->busy ? 0
			: error_set(-EBUSY,
				    "an operation of this member of group %s is under way: wait "
				    "for its completion",
				    m->join.name);
}

int group_push_check(const sar_member *m, uint64_t bytes)
{
	if (bytes == m->count * m->item_bytes)
		return group_member_free(m);
	return error_set(-EINVAL,
			 "a contribution of %" PRIu64 " bytes: group %s has %" PRIu64
			 " elements, which are %" PRIu64 " bytes",
			 bytes, m->join.name, m->count, m->count * m->item_bytes);
}

int64_t group_get_ns(const sar_member *m)
{
	uint64_t bytes = m->count * m->item_bytes;
	return GROUP_GET_NS + (int64_t)(bytes < INT64_MAX / 2000 ? bytes * 1000 : INT64_MAX / 2);
}

bool group_pull_retries(int error)
{
	return error == -ENOENT || error == -ESTALE || error == -ENODATA;
}

int group_result_check(const sar_member *m, const sar_buffer *result)
{
	if (result->size == m->count * m->item_bytes)
		return 0;
	return error_set(-EINVAL,
			 "an object of %" PRIu64 " bytes has the name of a result of group %s: the "
			 "group has %" PRIu64 " elements, which are %" PRIu64 " bytes",
			 result->size, m->join.name, m->count, m->count * m->item_bytes);
}

int group_pull_late(const sar_member *m, int error)
{
	if (error != -ETIMEDOUT || m->rounds > 0 || m->live >= m->start)
		return error;
	return error_set(error,
			 "%" PRIu32 " of %" PRIu32 " members had joined group %s when the owner "
			 "answered last: its rounds begin with the last of them",
			 m->live, m->start, m->join.name);
}

bool group_unsure(int error)
{
	return error == -ETIMEDOUT || error == -ENOTCONN || error == -ESHUTDOWN ||
	       error == -ECANCELED;
}

/* ---- objects of a group -----------------------------------------------------------------------
 */

sar_id group_contribution(const sar_member *m, uint64_t clock, char name[SAR_NAME_MAX + 1])
{
	int n = snprintf(name, SAR_NAME_MAX + 1, GROUP_PREFIX "%s/%" PRIu64 "/%016" PRIx64,
			 m->join.name, clock, m->join.member);
	return sar_id_of(name, (size_t)n);
}

sar_id group_round(const sar_member *m, char kind, uint64_t round, uint32_t attempt,
		   char name[SAR_NAME_MAX + 1])
{
	int n = snprintf(name, SAR_NAME_MAX + 1, GROUP_PREFIX "%s/%c/%" PRIu64, m->join.name, kind,
			 round);
	if (attempt)
		n += snprintf(name + n, SAR_NAME_MAX + 1 - (size_t)n, ".%" PRIu32, attempt);
	return sar_id_of(name, (size_t)n);
}

/* The next word of a line as a number; NULL: there is none. */
static const char *group_number(const char *at, const char *end, int base, uint64_t *out)
{
	char *after;
	if (!at || at >= end)
		return NULL;
	*out = strtoull(at, &after, base);
	return after == at || after >= end ? NULL : after + 1;
}

int group_contributors(const sar_buffer *decision, sar_contributor *out, unsigned room)
{
	unsigned count = 0;
	char *text = malloc(decision->size + 1);
	if (!text)
		return error_set(-ENOMEM, "out of memory");
	memcpy(text, decision->data, decision->size);
	text[decision->size] = '\0';
	const char *end = text + decision->size;
	for (const char *line = text; line && line < end; line = strchr(line, '\n')) {
		uint64_t number, clock, staleness, node;
		line += *line == '\n';
		if (strncmp(line, "c ", 2) != 0)
			continue;
		const char *at = group_number(line + 2, end, 16, &number);
		at = group_number(at, end, 10, &clock);
		at = group_number(at, end, 10, &staleness);
		if (!group_number(at, end, 10, &node))
			continue;
		if (count < room)
			out[count] = (sar_contributor){.member = number,
						       .clock = clock,
						       .staleness = staleness,
						       .node = (uint32_t)node};
		count++;
	}
	free(text);
	return (int)count;
}

int group_decision_gone(const sar_member *m, const sar_group_result *result)
{
	return error_set(-ENOENT,
			 "the decision of round %" PRIu64 " of group %s is gone: look at newer "
			 "ones",
			 result->round, m->join.name);
}
