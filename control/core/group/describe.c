/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a group writes into objects, as lines of text: what was created, and decisions. Read again
 * by a later owner, so nothing in them is trusted.
 *
 *   sarissa group 1                          sarissa decision 1
 *   op O dtype D count N flags F start M     round R attempt A version V top T base R A count N
 *   policy TEXT                              c MEMBER CLOCK STALENESS NODE COHORT    (N of these)
 *                                            m MEMBER CLOCK 0 NODE COHORT       other live members
 */
#include "internal/reduce.h"
#include "groups.h"

enum { DESCRIBE_LINE_MAX = 128 }; /* bytes of a line, at most */

struct describe_out {
	char *bytes;
	size_t room, used;
};

struct describe_in {
	const char *at, *end;
	bool wrong;
};

/* ---- writing ----------------------------------------------------------------------------------
 */

static void describe_add(struct describe_out *o, const char *s)
{
	while (*s && o->used < o->room)
		o->bytes[o->used++] = *s++;
}

static void describe_number(struct describe_out *o, const char *before, uint64_t n, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	describe_add(o, before);
	describe_add(o, digits + at);
}

uint32_t group_meta_write(const struct group *g, char *out, size_t room)
{
	struct describe_out o = {out, room, 0};

	describe_add(&o, "sarissa group 1\n");
	describe_number(&o, "op ", g->op, 10);
	describe_number(&o, " dtype ", g->dtype, 10);
	describe_number(&o, " count ", g->count, 10);
	describe_number(&o, " flags ", g->flags, 10);
	describe_number(&o, " start ", g->start, 10);
	describe_add(&o, "\npolicy ");
	describe_add(&o, g->policy_text);
	describe_add(&o, "\n");
	for (uint32_t i = 0; i < g->switches; i++) {
		describe_number(&o, "switch ", g->at_switch[i].ip, 10);
		describe_add(&o, "\n");
	}
	return (uint32_t)o.used;
}

static void describe_line(struct describe_out *o, const char *kind, const struct group *g,
			  const struct group_decision_line *l)
{
	describe_number(o, kind, l->member, 16);
	describe_number(o, " ", l->clock, 10);
	describe_number(o, " ", l->staleness, 10);
	describe_number(o, " ", l->node, 10);
	describe_add(o, " ");
	describe_add(o, *l->cohort ? l->cohort : "-");
	describe_add(o, "\n");
}

uint32_t group_decision_write(const struct group *g, char *out, size_t room)
{
	const struct group_round *r = &g->closing;
	struct describe_out o = {out, room, 0};

	describe_number(&o, "sarissa decision 1\nround ", r->number, 10);
	describe_number(&o, " attempt ", r->attempt, 10);
	describe_number(&o, " version ", r->version, 10);
	describe_number(&o, " top ", r->top > g->top ? r->top : g->top, 10);
	describe_number(&o, " base ", r->base.number, 10);
	describe_number(&o, " ", r->base.attempt, 10);
	describe_number(&o, " count ", r->count, 10);
	describe_add(&o, "\n");
	list_each(l, after, &r->contributions)
	{
		const struct group_contribution *one =
			list_item(l, struct group_contribution, link);

		describe_line(&o, "c ", g,
			      &(struct group_decision_line){.member = one->member,
							    .clock = one->clock,
							    .staleness = one->staleness,
							    .node = one->node});
	}
	list_each(l, after, &g->members)
	{
		const struct group_member *m = list_item(l, struct group_member, of_group);
		struct group_decision_line line = {
			.member = m->number, .clock = m->decided, .node = m->node};

		if (o.room - o.used < DESCRIBE_LINE_MAX)
			break; /* contributions come first; the others join again after a failure */
		memcpy(line.cohort, g->cohort[m->cohort].name, sizeof(line.cohort));
		describe_line(&o, "m ", g, &line);
	}
	return (uint32_t)o.used;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static void describe_expect(struct describe_in *i, const char *s)
{
	size_t bytes = strlen(s);

	if (i->wrong || (size_t)(i->end - i->at) < bytes || memcmp(i->at, s, bytes) != 0)
		i->wrong = true;
	else
		i->at += bytes;
}

/* A number up to `most`. */
static uint64_t describe_take(struct describe_in *i, const char *before, unsigned base,
			      uint64_t most)
{
	uint64_t n = 0;
	bool any = false;

	describe_expect(i, before);
	for (; !i->wrong && i->at < i->end; i->at++, any = true) {
		char c = *i->at;
		unsigned digit = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							: 99;

		if (digit >= base || n > (UINT64_MAX - digit) / base)
			break;
		n = n * base + digit;
	}
	i->wrong |= !any || n > most;
	return n;
}

/* Up to the end of the line; longer ones are wrong. */
static void describe_rest(struct describe_in *i, char *out, size_t room)
{
	size_t used = 0;

	for (; !i->wrong && i->at < i->end && *i->at != '\n'; i->at++) {
		if (used + 1 >= room)
			i->wrong = true;
		else
			out[used++] = *i->at;
	}
	out[used] = '\0';
	describe_expect(i, "\n");
}

bool group_meta_read(struct group *g, const char *bytes, uint32_t length)
{
	struct describe_in i = {bytes, bytes + length, false};
	struct group_policy_error error;

	describe_expect(&i, "sarissa group 1\n");
	g->op = (uint32_t)describe_take(&i, "op ", 10, UINT32_MAX);
	g->dtype = (uint32_t)describe_take(&i, " dtype ", 10, UINT32_MAX);
	g->count = describe_take(&i, " count ", 10, UINT64_MAX / REDUCE_ELEMENT_BYTES_MAX);
	g->flags = (uint32_t)describe_take(&i, " flags ", 10, GROUP_TOTAL);
	g->start = (uint32_t)describe_take(&i, " start ", 10, GROUP_MEMBERS_MAX);
	describe_expect(&i, "\npolicy ");
	describe_rest(&i, g->policy_text, sizeof(g->policy_text));
	for (g->switches = 0; !i.wrong && i.at < i.end && g->switches < GROUP_SWITCHES_MAX;) {
		g->at_switch[g->switches++].ip =
			(uint32_t)describe_take(&i, "switch ", 10, UINT32_MAX);
		describe_expect(&i, "\n");
	}
	return !i.wrong && reduce_op_name(g->op) && reduce_dtype_name(g->dtype) && g->count > 0 &&
	       group_policy_parse(g->policy_text, &g->policy, &error) == 0;
}

static void describe_head(struct describe_in *i, struct group_decision *out)
{
	describe_expect(i, "sarissa decision 1\n");
	out->of.number = describe_take(i, "round ", 10, GROUP_NUMBER_MAX);
	out->of.attempt = (uint32_t)describe_take(i, " attempt ", 10, UINT32_MAX);
	out->version = describe_take(i, " version ", 10, GROUP_NUMBER_MAX);
	out->top = describe_take(i, " top ", 10, GROUP_NUMBER_MAX);
	out->base.number = describe_take(i, " base ", 10, GROUP_NUMBER_MAX);
	out->base.attempt = (uint32_t)describe_take(i, " ", 10, 2 * GROUP_BY_SWITCH - 1);
	out->count = (uint32_t)describe_take(i, " count ", 10, GROUP_MEMBERS_MAX);
	describe_expect(i, "\n");
}

static struct group_decision_line describe_next(struct describe_in *i)
{
	struct group_decision_line l = {.contributes = i->at < i->end && *i->at == 'c'};

	l.member = describe_take(i, l.contributes ? "c " : "m ", 16, UINT64_MAX);
	l.clock = describe_take(i, " ", 10, GROUP_NUMBER_MAX);
	l.staleness = describe_take(i, " ", 10, GROUP_NUMBER_MAX);
	l.node = (uint32_t)describe_take(i, " ", 10, UINT32_MAX);
	describe_expect(i, " ");
	describe_rest(i, l.cohort, sizeof(l.cohort));
	if (strcmp(l.cohort, "-") == 0)
		*l.cohort = '\0';
	return l;
}

static bool describe_line_valid(const struct group_decision *d, const struct group_decision_line *l)
{
	bool node = l->node < NODES_MAX || l->node == GROUP_NODE_DEAD;

	return l->member != 0 && node && (!l->contributes || (l->clock > 0 && l->clock <= d->top));
}

bool group_decision_read(const char *bytes, uint32_t length, struct group_kept of,
			 struct group_decision *out)
{
	struct describe_in i = {bytes, bytes + length, false};
	uint32_t lines = 0, contributions = 0;

	describe_head(&i, out);
	i.wrong |= out->of.number != of.number || out->of.attempt != of.attempt ||
		   out->base.number >= of.number || out->count == 0;
	for (; !i.wrong && i.at < i.end; lines++) {
		struct group_decision_line l = describe_next(&i);

		contributions += l.contributes;
		i.wrong |= !describe_line_valid(out, &l) || lines == 2 * GROUP_MEMBERS_MAX;
	}
	return !i.wrong && contributions == out->count;
}

void group_decision_lines(const char *bytes, uint32_t length,
			  void (*line)(struct groups *gs, struct group *g,
				       const struct group_decision_line *l),
			  struct groups *gs, struct group *g)
{
	struct describe_in i = {bytes, bytes + length, false};
	struct group_decision d;

	describe_head(&i, &d);
	while (!i.wrong && i.at < i.end) {
		struct group_decision_line l = describe_next(&i);

		line(gs, g, &l);
	}
}
