/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "codec_group.h"
#include "decode.h"
#include "internal/record.h"
#include "internal/reduce.h"

static ProtobufCBinaryData codec_text(const char *text, size_t room)
{
	return (ProtobufCBinaryData){strnlen(text, room - 1), (uint8_t *)(uintptr_t)text};
}

void encode_group(const struct message_group *m, Rpc__Group *out)
{
	const struct group_request *r = &m->ask;

	rpc__group__init(out);
	out->id = (ProtobufCBinaryData){OBJECT_ID_BYTES, (uint8_t *)(uintptr_t)m->id.bytes};
	out->step = r->step;
	out->flags = r->flags;
	out->op = r->op;
	out->dtype = r->dtype;
	out->count = r->count;
	out->member = r->member;
	out->clock = r->clock;
	out->pending = r->pending;
	out->seen = r->seen;
	out->seen_attempt = r->seen_attempt;
	out->members = r->members;
	out->cursor = r->cursor;
	out->joined = r->joined;
	out->name = codec_text(r->name, sizeof(r->name));
	out->cohort = codec_text(r->cohort, sizeof(r->cohort));
	out->policy = codec_text(r->policy, sizeof(r->policy));
	out->job = r->job;
	out->job_attempt = r->job_attempt;
	out->job_error = r->job_error;
	out->n_switch_ip = r->switches;
	out->switch_ip = (uint32_t *)(uintptr_t)r->switch_ip;
}

static void encode_group_job(const struct group_job *j, Rpc__GroupJob *out)
{
	rpc__group_job__init(out);
	out->round = j->round;
	out->clock = j->clock;
	out->key = j->key;
	out->base_round = j->base;
	out->attempt = j->attempt;
	out->base_attempt = j->base_attempt;
	out->version = j->version;
	out->group = j->group;
	out->ip = j->ip;
	out->member = j->member;
	out->members = j->members;
}

static void encode_group_member(const struct group_member_info *m, Rpc__GroupMember *out)
{
	rpc__group_member__init(out);
	out->member = m->member;
	out->clock = m->clock;
	out->round = m->round;
	out->waiting_ns = m->waiting_ns;
	out->counted = m->counted;
	out->late = m->late;
	out->refused = m->refused;
	out->node = m->node;
	out->waits = m->waits != 0;
	out->cohort = codec_text(m->cohort, sizeof(m->cohort));
}

void encode_grouped(const struct message_grouped *m, struct encode_grouped *scratch,
		    Rpc__Grouped *out)
{
	const struct group_answer *a = m->answer;
	Rpc__GroupAnswer *to = &scratch->answer;

	rpc__grouped__init(out);
	out->status = m->status;
	out->text = codec_text(m->text, sizeof(m->text));
	if (a == NULL)
		return;
	out->answer = to;
	rpc__group_answer__init(to);
	to->flags = a->flags;
	to->op = a->op;
	to->dtype = a->dtype;
	to->count = a->count;
	to->clock = a->clock;
	to->done = a->done;
	to->joined = a->joined;
	to->round = a->round;
	to->version = a->version;
	to->rounds = a->rounds;
	to->counted = a->counted;
	to->late = a->late;
	to->refused = a->refused;
	to->lost = a->lost;
	to->gone_first = a->gone_first;
	to->gone_last = a->gone_last;
	to->top = a->top;
	to->waiting_ns = a->waiting_ns;
	to->attempt = a->attempt;
	to->members = a->members;
	to->live = a->live;
	to->owner = a->owner;
	to->cursor = a->cursor;
	to->n_histogram = GROUP_HISTOGRAM;
	to->histogram = (uint64_t *)(uintptr_t)a->histogram;
	to->policy = codec_text(a->policy, sizeof(a->policy));
	to->table = codec_text(a->table, sizeof(a->table));
	to->switched = a->switched;
	to->fallen = a->fallen;
	to->n_switch_ip = a->switches;
	to->switch_ip = (uint32_t *)(uintptr_t)a->switch_ip;
	if (a->job.round) {
		to->job = &scratch->job;
		encode_group_job(&a->job, to->job);
	}
	to->n_member = a->page < GROUP_PAGE ? a->page : GROUP_PAGE;
	to->member = scratch->members;
	for (size_t i = 0; i < to->n_member; i++) {
		scratch->members[i] = &scratch->member[i];
		encode_group_member(&a->member[i], &scratch->member[i]);
	}
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static bool decode_switches(size_t count, const uint32_t *ip, uint32_t *switches, uint32_t *out)
{
	if (count > GROUP_SWITCHES_MAX)
		return false;
	*switches = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		out[i] = ip[i];
	return true;
}

/* A clock, round or version of an owner. */
static bool decode_group_number(uint64_t n)
{
	return n <= 2 * GROUP_NUMBER_MAX;
}

static bool decode_group_attempt(uint32_t attempt)
{
	return attempt < 2 * GROUP_BY_SWITCH;
}

static bool decode_group_job(const Rpc__GroupJob *in, struct group_job *out)
{
	out->round = in->round;
	out->clock = in->clock;
	out->key = in->key;
	out->base = in->base_round;
	out->attempt = in->attempt;
	out->base_attempt = in->base_attempt;
	out->version = in->version;
	out->group = in->group;
	out->ip = in->ip;
	out->member = in->member;
	out->members = in->members;
	return in->round > 0 && decode_group_number(in->round) && decode_group_number(in->clock) &&
	       decode_group_number(in->base_round) && in->attempt < GROUP_BY_SWITCH &&
	       decode_group_attempt(in->base_attempt) && in->members <= GROUP_SWITCH_MEMBERS &&
	       in->member < in->members;
}

bool decode_group(const Rpc__Group *in, struct message_group *out)
{
	struct group_request *r = &out->ask;

	r->step = in->step;
	r->flags = in->flags;
	r->op = in->op;
	r->dtype = in->dtype;
	r->count = in->count;
	r->member = in->member;
	r->clock = in->clock;
	r->pending = in->pending;
	r->seen = in->seen;
	r->seen_attempt = in->seen_attempt;
	r->members = in->members;
	r->cursor = in->cursor;
	r->joined = in->joined;
	r->job = in->job;
	r->job_attempt = in->job_attempt;
	r->job_error = in->job_error;
	return decode_switches(in->n_switch_ip, in->switch_ip, &r->switches, r->switch_ip) &&
	       decode_id(&in->id, &out->id) && group_request_wrong(r) == NULL &&
	       decode_text(&in->name, r->name, GROUP_NAME_MAX + 1) &&
	       decode_text(&in->cohort, r->cohort, sizeof(r->cohort)) &&
	       decode_text(&in->policy, r->policy, sizeof(r->policy));
}

static bool decode_group_member(const Rpc__GroupMember *in, struct group_member_info *out)
{
	out->member = in->member;
	out->clock = in->clock;
	out->round = in->round;
	out->waiting_ns = in->waiting_ns;
	out->counted = in->counted;
	out->late = in->late;
	out->refused = in->refused;
	out->node = in->node;
	out->waits = in->waits != 0;
	return in->node < NODES_MAX && decode_group_number(in->clock) &&
	       decode_group_number(in->round) &&
	       decode_text(&in->cohort, out->cohort, sizeof(out->cohort));
}

static bool decode_group_range(const Rpc__GroupAnswer *in)
{
	return in->count <= UINT64_MAX / REDUCE_ELEMENT_BYTES_MAX &&
	       decode_group_number(in->clock) && decode_group_number(in->done) &&
	       decode_group_number(in->joined) && decode_group_number(in->round) &&
	       decode_group_number(in->version) && decode_group_number(in->top) &&
	       decode_group_number(in->gone_first) && decode_group_number(in->gone_last) &&
	       decode_group_attempt(in->attempt) && in->members <= GROUP_MEMBERS_MAX &&
	       in->live <= GROUP_MEMBERS_MAX && in->cursor <= GROUP_MEMBERS_MAX;
}

static bool decode_group_answer(const Rpc__GroupAnswer *in, struct group_answer *out)
{
	if (in->n_histogram != GROUP_HISTOGRAM || in->n_member > GROUP_PAGE ||
	    (in->op && reduce_op_name(in->op) == NULL) ||
	    (in->dtype && reduce_dtype_name(in->dtype) == NULL) || in->owner >= NODES_MAX ||
	    !decode_group_range(in))
		return false;
	out->flags = in->flags;
	out->op = in->op;
	out->dtype = in->dtype;
	out->count = in->count;
	out->clock = in->clock;
	out->done = in->done;
	out->joined = in->joined;
	out->round = in->round;
	out->version = in->version;
	out->rounds = in->rounds;
	out->counted = in->counted;
	out->late = in->late;
	out->refused = in->refused;
	out->lost = in->lost;
	out->gone_first = in->gone_first;
	out->gone_last = in->gone_last;
	out->top = in->top;
	out->waiting_ns = in->waiting_ns;
	out->attempt = in->attempt;
	out->members = in->members;
	out->live = in->live;
	out->owner = in->owner;
	out->cursor = in->cursor;
	memcpy(out->histogram, in->histogram, sizeof(out->histogram));
	out->page = (uint32_t)in->n_member;
	for (size_t i = 0; i < in->n_member; i++)
		if (!decode_group_member(in->member[i], &out->member[i]))
			return false;
	out->switched = in->switched;
	out->fallen = in->fallen;
	if (in->job && !decode_group_job(in->job, &out->job))
		return false;
	return decode_switches(in->n_switch_ip, in->switch_ip, &out->switches, out->switch_ip) &&
	       decode_text(&in->policy, out->policy, sizeof(out->policy)) &&
	       decode_text(&in->table, out->table, sizeof(out->table));
}

bool decode_grouped(const Rpc__Grouped *in, struct decode_arena *a, struct message_grouped *out)
{
	struct group_answer *answer = in->answer ? decode_alloc(a, sizeof(*answer)) : NULL;

	if (in->answer) {
		if (answer == NULL)
			return false;
		memset(answer, 0, sizeof(*answer));
		if (!decode_group_answer(in->answer, answer))
			return false;
	}
	out->status = in->status;
	out->answer = answer;
	return decode_status(in->status) && decode_text(&in->text, out->text, sizeof(out->text));
}
