/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy.h"

#include <errno.h>
#include <string.h>

/* ---- words ------------------------------------------------------------------------------------
 */

static bool policy_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static void policy_word(struct group_policy_text *t)
{
	t->at += t->bytes;
	while (policy_blank(t->all[t->at]))
		t->at++;
	t->bytes = 0;
	if (t->all[t->at] == ',' || t->all[t->at] == ':') {
		t->bytes = 1;
		return;
	}
	for (char c;
	     (c = t->all[t->at + t->bytes]) != '\0' && c != ',' && c != ':' && !policy_blank(c);)
		t->bytes++;
}

static bool policy_is(const struct group_policy_text *t, const char *word)
{
	return t->bytes == strlen(word) && memcmp(t->all + t->at, word, t->bytes) == 0;
}

int policy_wrong(struct group_policy_text *t, const char *why)
{
	struct group_policy_error *e = t->error;
	struct text out = {.length = 0};
	char word[24] = "";

	e->position = t->at;
	for (uint32_t i = 0; i < t->bytes && i + 1 < sizeof(word); i++) {
		char c = t->all[t->at + i];

		word[i] = (char)(c < ' ' || c > '~' ? '?' : c);
	}
	text_add(&out, "policy, position ");
	text_add_number(&out, t->at);
	text_add(&out, t->bytes ? ", '" : " (its end)");
	text_add(&out, word);
	text_add(&out, t->bytes ? "': " : ": ");
	text_add(&out, why);
	memcpy(e->text, out.bytes, sizeof(e->text) - 1);
	e->text[sizeof(e->text) - 1] = '\0';
	return -EINVAL;
}

/* The leading digits of the present word. Returns how many; 0: none, or too large. */
static uint32_t policy_digits(const struct group_policy_text *t, uint64_t *out)
{
	uint32_t i = 0;

	for (*out = 0; i < t->bytes; i++) {
		char c = t->all[t->at + i];

		if (c < '0' || c > '9')
			break;
		*out = *out * 10 + (uint64_t)(c - '0');
		if (*out > UINT64_C(1000000000000))
			return 0;
	}
	return i;
}

int policy_number(struct group_policy_text *t, uint64_t min, uint64_t max, const char *why,
		  uint32_t *out)
{
	uint64_t n;

	if (t->bytes == 0 || policy_digits(t, &n) != t->bytes || n < min || n > max)
		return policy_wrong(t, why);
	*out = (uint32_t)n;
	policy_word(t);
	return 0;
}

static int policy_time(struct group_policy_text *t, uint64_t *out)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	static const char why[] = "a deadline is a time up to one day, such as 50ms or 2s";
	uint64_t n;
	uint32_t digits = policy_digits(t, &n);

	for (size_t i = 0; digits && i < sizeof(units) / sizeof(units[0]); i++) {
		if (t->bytes - digits != strlen(units[i].unit) ||
		    memcmp(t->all + t->at + digits, units[i].unit, t->bytes - digits) != 0)
			continue;
		if (n == 0 || n > POLICY_DEADLINE_MAX_NS / units[i].ns)
			break;
		*out = n * units[i].ns;
		policy_word(t);
		return 0;
	}
	return policy_wrong(t, why);
}

/* ---- rows -------------------------------------------------------------------------------------
 */

/* The policy that the present word names; NULL: none, or that of a cohort. */
static const struct policy_ops *policy_find(const struct group_policy_text *t)
{
	uint32_t i = 0;

	while (policies_table[i] && !policy_is(t, policies_table[i]->word))
		i++;
	return policies_table[i];
}

#define POLICY_FORM(identifier, word, argument, says) " '" word argument "'"

static int policy_rule(struct group_policy_text *t, struct group_policy_row *row)
{
	const struct policy_ops *rule = policy_find(t);

	if (!rule || rule->rows)
		return policy_wrong(t, "write one of" POLICIES(POLICY_FORM));
	*row = rule->row;
	row->rule = rule;
	policy_word(t);
	return rule->argument ? rule->argument(t, row) : 0;
}

static int policy_option(struct group_policy_text *t, struct group_policy_row *row)
{
	if (row->quorum == 0)
		return policy_wrong(t, "this rule takes no options: write a comma before the next "
				       "row");
	if (policy_is(t, "deadline")) {
		policy_word(t);
		row->slack = POLICY_UNLIMITED; /* rounds go on without the slowest */
		return policy_time(t, &row->deadline_ns);
	}
	if (!policy_is(t, "late"))
		return policy_wrong(t, "an option is 'deadline TIME', 'late carry' or "
				       "'late refuse'");
	policy_word(t);
	if (!policy_is(t, "carry") && !policy_is(t, "refuse"))
		return policy_wrong(t, "a late contribution is 'carry' or 'refuse'");
	row->refuse = policy_is(t, "refuse");
	policy_word(t);
	return 0;
}

static bool policy_named(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

static int policy_cohort(struct group_policy_text *t, char cohort[GROUP_COHORT_MAX + 1])
{
	if (t->bytes > GROUP_COHORT_MAX)
		return policy_wrong(t, "the name of a cohort has at most 31 bytes");
	for (uint32_t i = 0; i < t->bytes; i++)
		if (!policy_named(t->all[t->at + i]))
			return policy_wrong(t, "the name of a cohort has letters, digits, '-', "
					       "'_' and '.' only");
	memcpy(cohort, t->all + t->at, t->bytes);
	cohort[t->bytes] = '\0';
	return 0;
}

/* Whether a colon follows the present word. */
static bool policy_colon(const struct group_policy_text *t)
{
	uint32_t at = t->at + t->bytes;

	while (policy_blank(t->all[at]))
		at++;
	return t->bytes > 0 && t->all[at] == ':';
}

static int policy_row(struct group_policy_text *t, struct group_policy *p)
{
	char cohort[GROUP_COHORT_MAX + 1] = "";
	struct group_policy_row *row = &p->row[p->rows];
	int error = 0;

	if (p->rows == GROUP_COHORTS_MAX)
		return policy_wrong(t, "a policy has at most 8 rows");
	if (policy_colon(t)) {
		error = policy_cohort(t, cohort);
		if (error)
			return error;
	}
	for (uint32_t i = 0; i < p->rows; i++)
		if (strcmp(p->row[i].cohort, cohort) == 0)
			return policy_wrong(t, *cohort ? "this cohort has a row already"
						       : "one row has no cohort already");
	if (*cohort) {
		policy_word(t);
		policy_word(t);
	}
	error = policy_rule(t, row);
	while (error == 0 && t->bytes > 0 && !policy_is(t, ","))
		error = policy_option(t, row);
	memcpy(row->cohort, cohort, sizeof(cohort));
	p->rows++;
	return error;
}

int group_policy_parse(const char *text, struct group_policy *out, struct group_policy_error *error)
{
	struct group_policy_text t = {.all = text, .error = error};
	struct group_policy p = {0};
	const struct policy_ops *first;
	int r = 0;

	if (strnlen(text, GROUP_POLICY_MAX + 1) > GROUP_POLICY_MAX) {
		t.at = GROUP_POLICY_MAX;
		return policy_wrong(&t, "a policy has at most 255 bytes");
	}
	policy_word(&t);
	first = policy_colon(&t) ? NULL : policy_find(&t);
	if (first && first->rows) {
		p.alone = first;
		policy_word(&t);
		r = first->rows(&t, &p);
		if (r == 0 && t.bytes > 0)
			r = policy_wrong(&t, "this policy stands alone: it makes its own rows");
	} else {
		do {
			if (p.rows > 0)
				policy_word(&t);
			r = policy_row(&t, &p);
		} while (r == 0 && policy_is(&t, ","));
	}
	if (r == 0)
		*out = p;
	return r;
}

const char *group_policy_cohort(const struct group_policy *p, const char *name)
{
	return p->alone ? p->alone->cohort(name) : name;
}

uint32_t group_policy_match(const struct group_policy *p, const char *cohort)
{
	uint32_t others = POLICY_NO_ROW;

	cohort = group_policy_cohort(p, cohort);
	for (uint32_t i = 0; i < p->rows; i++) {
		if (strcmp(p->row[i].cohort, cohort) == 0)
			return i;
		if (*p->row[i].cohort == '\0')
			others = i;
	}
	return others;
}

uint32_t group_policy_slack(const struct group_policy *p, uint32_t a, uint32_t b)
{
	uint32_t one = p->row[a].slack, other = p->row[b].slack;

	return a == b || one > other ? one : other;
}

uint32_t group_policy_quorum(const struct group_policy_row *row, uint32_t members)
{
	return row->rule->quorum ? row->rule->quorum(row, members) : 0;
}

uint32_t group_policy_excess(const struct group_policy *p, uint32_t members)
{
	for (uint32_t i = 0; i < p->rows; i++)
		if (group_policy_quorum(&p->row[i], members) > members)
			return group_policy_quorum(&p->row[i], members);
	return 0;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static void policy_column(struct text *t, uint32_t width)
{
	while (t->length < width)
		text_add(t, " ");
}

static void policy_amount(struct text *t, uint32_t n, uint32_t special, const char *word)
{
	if (n == special)
		text_add(t, word);
	else
		text_add_number(t, n);
}

static void policy_show_row(const struct group_policy_row *row, struct text *t)
{
	bool us = row->deadline_ns % 1000000 != 0;

	text_add(t, *row->cohort ? row->cohort : "*");
	policy_column(t, 12);
	text_add(t, row->rule->word);
	policy_column(t, 21);
	policy_amount(t, row->slack, POLICY_UNLIMITED, "unlimited");
	policy_column(t, 32);
	if (row->quorum == 0)
		text_add(t, "any");
	else
		policy_amount(t, row->quorum, POLICY_ALL, "all");
	if (row->rule->unit)
		text_add(t, row->rule->unit);
	policy_column(t, 40);
	if (row->deadline_ns == 0) {
		text_add(t, "none");
	} else {
		text_add_number(t, row->deadline_ns / (us ? 1000 : 1000000));
		text_add(t, us ? "us" : "ms");
	}
	policy_column(t, 50);
	text_add(t, row->refuse ? "refuse\n" : "carry\n");
}

/* Appends to a zero-terminated text of so many bytes. */
static void policy_append(char *out, size_t room, const char *s)
{
	size_t used = strlen(out), bytes = strnlen(s, room - used - 1);

	memcpy(out + used, s, bytes);
	out[used + bytes] = '\0';
}

void group_policy_show(const struct group_policy *p, char *out, size_t room)
{
	struct text t = {.length = 0};

	*out = '\0';
	policy_append(out, room, "cohort      rule     slack      quorum  deadline  late\n");
	for (uint32_t i = 0; i < p->rows; i++) {
		t.length = 0;
		policy_show_row(&p->row[i], &t);
		policy_append(out, room, t.bytes);
	}
	t.length = 0;
	if (p->alone) {
		p->alone->show(p, &t);
		policy_append(out, room, t.bytes);
	}
}
