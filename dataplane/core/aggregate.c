/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "aggregate.h"

enum { SLOT_FREE, SLOT_OPEN, SLOT_DONE };

uint64_t aggregate_bytes(uint32_t groups, uint32_t window)
{
	return (uint64_t)groups * AGGREGATE_BANKS * window * sizeof(struct aggregate_slot);
}

void aggregate_init(struct aggregate_pool *p, uint32_t groups, uint32_t window, void *memory,
		    enum kernel_level level)
{
	assert(groups >= 1 && groups <= AGGREGATE_GROUPS_MAX && window <= AGGREGATE_WINDOW_MAX);
	memset(p, 0, sizeof(*p));
	p->groups = groups;
	p->window = window;
	p->slot = memory;
	p->level = level;
}

static struct aggregate_group *aggregate_group_find(struct aggregate_pool *p, uint32_t id)
{
	for (uint32_t k = 0; k < p->groups; k++) {
		struct aggregate_group *g = &p->group[(id + k) % p->groups];
		if (g->used && g->id == id)
			return g;
	}
	return NULL;
}

static struct aggregate_slot *aggregate_group_slots(struct aggregate_pool *p,
						    const struct aggregate_group *g)
{
	return p->slot + (uint64_t)(g - p->group) * AGGREGATE_BANKS * p->window;
}

/* A free place for a group, or that of one that nobody uses any more; NULL: there is none. */
static struct aggregate_group *aggregate_group_place(struct aggregate_pool *p, uint32_t id,
						     uint64_t now_ns)
{
	struct aggregate_group *idle = NULL;
	for (uint32_t k = 0; k < p->groups; k++) {
		struct aggregate_group *g = &p->group[(id + k) % p->groups];
		if (!g->used)
			return g;
		if (now_ns - g->used_ns > AGGREGATE_IDLE_NS &&
		    (!idle || g->used_ns < idle->used_ns))
			idle = g;
	}
	return idle;
}

static bool aggregate_passed_in_use(const struct aggregate_passed *e, uint64_t now_ns)
{
	return e->used_ns > 0 && now_ns - e->used_ns <= AGGREGATE_IDLE_NS;
}

/* Whether the group is one of those that the host has. */
static bool aggregate_passed_find(struct aggregate_pool *p, uint32_t id, uint64_t now_ns)
{
	for (unsigned i = 0; i < AGGREGATE_PASSED_MAX; i++) {
		struct aggregate_passed *e = &p->passed[i];
		if (e->id != id || !aggregate_passed_in_use(e, now_ns))
			continue;
		e->used_ns = now_ns;
		return true;
	}
	return false;
}

/* Its members must not meet at two places: so this is kept when there is room later. */
static void aggregate_passed_note(struct aggregate_pool *p, uint32_t id, uint64_t now_ns)
{
	struct aggregate_passed *oldest = p->passed;
	for (unsigned i = 0; i < AGGREGATE_PASSED_MAX; i++)
		if (p->passed[i].used_ns < oldest->used_ns)
			oldest = &p->passed[i];
	*oldest = (struct aggregate_passed){.id = id, .used_ns = now_ns};
}

static void aggregate_group_begin(struct aggregate_pool *p, struct aggregate_group *g,
				  const struct aggregate_header *h, uint64_t key)
{
	struct aggregate_slot *slot = aggregate_group_slots(p, g);
	*g = (struct aggregate_group){.used = true,
				      .id = h->group,
				      .members = h->members,
				      .key = key,
				      .version = h->round - 1,
				      .oldest = AGGREGATE_NONE,
				      .newest = AGGREGATE_NONE};
	for (uint32_t i = 0; i < AGGREGATE_BANKS * p->window; i++)
		slot[i].state = SLOT_FREE;
}

static void aggregate_group_touch(struct aggregate_group *g, uint64_t now_ns,
				  struct aggregate_source from)
{
	assert(g->used && from.port < AGGREGATE_PORTS_MAX);
	g->used_ns = now_ns;
	g->ports |= 1ull << from.port;
	g->origin = from.origin;
}

static enum aggregate_verdict aggregate_refuse(struct aggregate_answer *a,
					       enum aggregate_reason why)
{
	a->header.kind = AGGREGATE_REFUSED;
	a->header.flags = (uint8_t)why;
	return AGGREGATE_REFUSE;
}

/* The group of that number, made if need be; NULL: there is no room, or the host has it. */
static struct aggregate_group *aggregate_install_group(struct aggregate_pool *p, uint64_t now_ns,
						       bool host, const struct aggregate_header *h,
						       uint64_t key)
{
	struct aggregate_group *g = aggregate_group_find(p, h->group);
	if (g || (host && aggregate_passed_find(p, h->group, now_ns)))
		return g;
	g = aggregate_group_place(p, h->group, now_ns);
	if (g)
		aggregate_group_begin(p, g, h, key);
	else if (host)
		aggregate_passed_note(p, h->group, now_ns);
	return g;
}

/* A later version of the policy holds for the slots that are opened from then on. It may have other
 * members, who take their places again. */
static bool aggregate_install_policy(struct aggregate_group *g, const struct aggregate_header *h,
				     const struct aggregate_policy *policy)
{
	if ((int32_t)(h->round - g->version) > 0) {
		g->version = h->round;
		g->members = h->members;
		g->quorum = policy->quorum;
		g->deadline_us = policy->deadline_us;
	}
	return g->members == h->members;
}

/* False: another process has the place, with this version or a later one. */
static bool aggregate_install_place(struct aggregate_group *g, const struct aggregate_header *h,
				    uint64_t token)
{
	uint64_t *has = &g->place[h->member].token;
	uint32_t *version = &g->place[h->member].version;
	bool later = (int32_t)(h->round - *version) > 0;
	if (*has != 0 && !later)
		return *has == token; /* the holder's own is an old packet, or a repeated one */
	*has = token;
	*version = h->round;
	return true;
}

/* The first INSTALL makes the group. */
static enum aggregate_verdict aggregate_take_install(struct aggregate_pool *p, uint64_t now_ns,
						     struct aggregate_source from,
						     const struct aggregate_header *h,
						     const uint8_t *payload,
						     struct aggregate_answer *a)
{
	struct aggregate_policy policy;
	struct aggregate_place place;
	bool host = from.origin != p->own;
	memcpy(&policy, &h->bitmap, sizeof(policy));
	memcpy(&place, payload, sizeof(place));
	if (policy.quorum == 0 || policy.quorum > h->members || place.token == 0)
		return AGGREGATE_BAD;
	struct aggregate_group *g = aggregate_install_group(p, now_ns, host, h, place.key);
	if (!g)
		return host ? AGGREGATE_PASS : aggregate_refuse(a, AGGREGATE_NO_ROOM);
	if (g->key != place.key)
		return AGGREGATE_FOREIGN;
	if (!aggregate_install_policy(g, h, &policy))
		return aggregate_refuse(a, AGGREGATE_OTHER_GROUP);
	if (!aggregate_install_place(g, h, place.token))
		return aggregate_refuse(a, AGGREGATE_OTHER_MEMBER);
	aggregate_group_touch(g, now_ns, from);
	policy = (struct aggregate_policy){
		.quorum = g->quorum, .window = (uint16_t)p->window, .deadline_us = g->deadline_us};
	a->header.kind = AGGREGATE_INSTALLED;
	a->header.round = g->version;
	memcpy(&a->header.bitmap, &policy, sizeof(policy));
	return AGGREGATE_ANSWER;
}

static void aggregate_wait_add(struct aggregate_pool *p, struct aggregate_group *g,
			       struct aggregate_slot *s)
{
	uint32_t at = (uint32_t)(s - p->slot);
	s->next = AGGREGATE_NONE;
	s->previous = g->newest;
	if (g->newest == AGGREGATE_NONE)
		g->oldest = at;
	else
		p->slot[g->newest].next = at;
	g->newest = at;
}

static void aggregate_wait_remove(struct aggregate_pool *p, struct aggregate_group *g,
				  struct aggregate_slot *s)
{
	if (s->previous == AGGREGATE_NONE)
		g->oldest = s->next;
	else
		p->slot[s->previous].next = s->next;
	if (s->next == AGGREGATE_NONE)
		g->newest = s->previous;
	else
		p->slot[s->next].previous = s->previous;
}

/* An open slot that is in the list of its group. */
static bool aggregate_slot_waits(const struct aggregate_slot *s)
{
	return s->state == SLOT_OPEN && s->deadline_us > 0 && !s->overdue;
}

static uint8_t aggregate_slot_count(const struct aggregate_slot *s)
{
	return (uint8_t)__builtin_popcountll(s->seen);
}

static uint64_t aggregate_slot_due_ns(const struct aggregate_slot *s)
{
	return s->opened_ns + s->deadline_us * 1000ull;
}

static void aggregate_slot_answer(const struct aggregate_slot *s, const struct aggregate_group *g,
				  uint8_t kind, struct aggregate_answer *a)
{
	a->header.kind = kind;
	a->header.member = aggregate_slot_count(s);
	a->header.members = g->members;
	a->header.bitmap = s->seen;
	a->header.exponent = s->exponent;
	a->payload = s->payload;
	a->bytes = kind == AGGREGATE_RESULT ? s->bytes : 0;
}

static uint32_t aggregate_kernel_type(uint8_t operation)
{
	return operation >> 4 == AGGREGATE_BLOCK ? (uint32_t)REDUCE_I32 : operation >> 4;
}

static void aggregate_slot_finish(struct aggregate_pool *p, struct aggregate_group *g,
				  struct aggregate_slot *s, struct aggregate_answer *a)
{
	if (aggregate_slot_waits(s))
		aggregate_wait_remove(p, g, s);
	s->state = SLOT_DONE;
	if ((s->operation & 15) == REDUCE_AVG)
		kernel_find_scale(p->level, aggregate_kernel_type(s->operation))(
			s->payload, aggregate_slot_count(s), s->bytes);
	aggregate_slot_answer(s, g, AGGREGATE_RESULT, a);
	a->ports = g->ports;
	a->origin = g->origin;
}

static void aggregate_slot_open(struct aggregate_pool *p, struct aggregate_group *g,
				struct aggregate_slot *s, const struct aggregate_header *h,
				uint32_t bytes, uint64_t now_ns)
{
	if (aggregate_slot_waits(s))
		aggregate_wait_remove(p, g, s);
	s->seen = 0;
	s->opened_ns = now_ns;
	s->round = h->round;
	s->chunk = h->chunk;
	s->bytes = (uint16_t)bytes;
	s->operation = h->operation;
	s->end = h->flags;
	s->differs = false;
	s->quorum = g->quorum;
	s->members = g->members;
	s->deadline_us = g->deadline_us;
	s->overdue = 0;
	s->exponent = h->exponent;
	s->state = SLOT_OPEN;
	if (s->deadline_us > 0)
		aggregate_wait_add(p, g, s);
}

/* All are in, or so many as the policy asks for and the deadline has passed: the policy with which
 * the slot was opened, whatever the group's is now. */
static bool aggregate_slot_whole(const struct aggregate_slot *s, uint64_t now_ns)
{
	uint8_t in = aggregate_slot_count(s);
	return in == s->members ||
	       (in >= s->quorum && (s->deadline_us == 0 || now_ns >= aggregate_slot_due_ns(s)));
}

static enum aggregate_verdict
aggregate_take_chunk(struct aggregate_pool *p, struct aggregate_group *g, struct aggregate_slot *s,
		     const struct aggregate_header *h, const uint8_t *payload, uint32_t bytes,
		     uint64_t now_ns, struct aggregate_answer *a)
{
	kernel_fn *kernel =
		kernel_find(p->level, h->operation & 15, aggregate_kernel_type(h->operation));
	if (!kernel)
		return aggregate_refuse(a, AGGREGATE_NO_KERNEL);
	bool opens = s->state == SLOT_FREE ||
		     aggregate_later(h->round, h->chunk, s->round, s->chunk) > 0;
	if (opens)
		aggregate_slot_open(p, g, s, h, bytes, now_ns);
	if (s->bytes != bytes || s->operation != h->operation || s->end != h->flags) {
		if (aggregate_slot_waits(s))
			aggregate_wait_remove(p, g, s);
		s->overdue = 1;
		s->differs = true;
		return aggregate_refuse(a, AGGREGATE_OTHER_SHAPE);
	}
	if (opens)
		memcpy(s->payload, payload, bytes);
	else
		kernel(s->payload, s->payload, payload, bytes);
	if (h->exponent > s->exponent)
		s->exponent = h->exponent;
	s->seen |= 1ull << h->member;
	if (!aggregate_slot_whole(s, now_ns))
		return AGGREGATE_ADDED;
	aggregate_slot_finish(p, g, s, a);
	return AGGREGATE_COMPLETE;
}

/* A chunk, or a question about one. */
static enum aggregate_verdict aggregate_take_member(struct aggregate_pool *p,
						    struct aggregate_group *g,
						    const struct aggregate_header *h,
						    const uint8_t *payload, uint32_t bytes,
						    uint64_t now_ns, struct aggregate_answer *a)
{
	struct aggregate_slot *s =
		aggregate_group_slots(p, g) + aggregate_slot(h->round, h->chunk, p->window);
	int later =
		s->state == SLOT_FREE ? 1 : aggregate_later(h->round, h->chunk, s->round, s->chunk);
	bool seen = later == 0 && s->seen >> h->member & 1;
	if (later < 0) {
		a->header.kind = AGGREGATE_GONE;
		return AGGREGATE_LATE;
	}
	if (later == 0 && s->state == SLOT_DONE) {
		aggregate_slot_answer(s, g, AGGREGATE_RESULT, a);
		return seen ? AGGREGATE_REPEAT : AGGREGATE_LATE;
	}
	if (later == 0 && s->differs)
		return aggregate_refuse(a, AGGREGATE_OTHER_SHAPE);
	if (h->kind == AGGREGATE_CONTRIBUTION && !seen)
		return aggregate_take_chunk(p, g, s, h, payload, bytes, now_ns, a);
	if (h->kind == AGGREGATE_CONTRIBUTION)
		return AGGREGATE_DUPLICATE;
	static const struct aggregate_slot nothing;
	aggregate_slot_answer(later ? &nothing : s, g, AGGREGATE_WAIT, a);
	return AGGREGATE_ANSWER;
}

static enum aggregate_verdict aggregate_take_known(struct aggregate_pool *p, uint64_t now_ns,
						   struct aggregate_source from,
						   const struct aggregate_header *h,
						   const uint8_t *payload, uint32_t bytes,
						   struct aggregate_answer *a)
{
	if (h->members == 0 || h->members > AGGREGATE_MEMBERS_MAX || h->member >= h->members)
		return AGGREGATE_BAD;
	if (h->kind == AGGREGATE_INSTALL)
		return bytes == sizeof(struct aggregate_place)
			       ? aggregate_take_install(p, now_ns, from, h, payload, a)
			       : AGGREGATE_BAD;
	if (h->kind != AGGREGATE_CONTRIBUTION && (h->kind != AGGREGATE_POLL || bytes != 0))
		return AGGREGATE_BAD;
	struct aggregate_group *g = aggregate_group_find(p, h->group);
	if (!g) {
		aggregate_passed_find(p, h->group, now_ns);
		return AGGREGATE_PASS;
	}
	if (g->place[h->member].token != h->bitmap || h->bitmap == 0)
		return AGGREGATE_FOREIGN;
	if (g->members != h->members)
		return aggregate_refuse(a, AGGREGATE_OTHER_GROUP);
	if (h->slot != h->chunk % p->window)
		return AGGREGATE_BAD;
	aggregate_group_touch(g, now_ns, from);
	return aggregate_take_member(p, g, h, payload, bytes, now_ns, a);
}

enum aggregate_verdict aggregate_take(struct aggregate_pool *p, uint64_t now_ns,
				      struct aggregate_source from, const void *packet,
				      uint32_t bytes, struct aggregate_answer *a)
{
	struct aggregate_header h;
	enum aggregate_verdict verdict = AGGREGATE_BAD;
	if (aggregate_intact(packet, bytes)) {
		memcpy(&h, packet, sizeof(h));
		*a = (struct aggregate_answer){
			.header = h, .ports = 1ull << from.port, .origin = from.origin};
		a->header.flags = 0;
		a->header.bitmap = 0;
		verdict = aggregate_take_known(p, now_ns, from, &h,
					       (const uint8_t *)packet + sizeof(h),
					       bytes - AGGREGATE_HEADER, a);
	}
	p->count[verdict]++;
	return verdict;
}

/* The header of a result that no packet asks for. */
static void aggregate_expired_answer(const struct aggregate_pool *p,
				     const struct aggregate_group *g,
				     const struct aggregate_slot *s, struct aggregate_answer *a)
{
	*a = (struct aggregate_answer){.header = {.group = g->id,
						  .round = s->round,
						  .chunk = s->chunk,
						  .slot = (uint16_t)(s->chunk % p->window),
						  .operation = s->operation}};
}

bool aggregate_expire(struct aggregate_pool *p, uint64_t now_ns, struct aggregate_answer *a)
{
	for (uint32_t i = 0; i < p->groups; i++) {
		struct aggregate_group *g = &p->group[i];
		while (g->used && g->oldest != AGGREGATE_NONE) {
			struct aggregate_slot *s = &p->slot[g->oldest];
			if (aggregate_slot_due_ns(s) > now_ns)
				break;
			aggregate_wait_remove(p, g, s);
			s->overdue = 1; /* from now on the quorum alone decides */
			if (aggregate_slot_count(s) < s->quorum)
				continue;
			aggregate_expired_answer(p, g, s, a);
			aggregate_slot_finish(p, g, s, a);
			p->count[AGGREGATE_EXPIRED]++;
			return true;
		}
	}
	return false;
}

uint64_t aggregate_timeout(const struct aggregate_pool *p)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < p->groups; i++) {
		const struct aggregate_group *g = &p->group[i];
		if (!g->used || g->oldest == AGGREGATE_NONE)
			continue;
		uint64_t due = aggregate_slot_due_ns(&p->slot[g->oldest]);
		first = due < first ? due : first;
	}
	return first;
}

uint32_t aggregate_write(const struct aggregate_answer *a, void *out)
{
	memcpy(out, &a->header, AGGREGATE_HEADER);
	if (a->bytes > 0)
		memcpy((uint8_t *)out + AGGREGATE_HEADER, a->payload, a->bytes);
	aggregate_seal(out, AGGREGATE_HEADER + a->bytes);
	return AGGREGATE_HEADER + a->bytes;
}
