/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies that are rows, and the table of all: internal/policies.h says what each means, and
 * policy.h what its columns are. The parser of policies calls it; it must not know groups.
 */
#include "policy.h"

static uint32_t policies_all(const struct group_policy_row *row, uint32_t members)
{
	return members;
}

const struct policy_ops policies_bsp = {
	.word = "bsp", .row = {.quorum = POLICY_ALL}, .quorum = policies_all};

static int policies_slack(struct group_policy_text *t, struct group_policy_row *row)
{
	return policy_number(t, 0, GROUP_SLACK_MAX,
			     "ssp takes a slack of 0 to 62 clocks, such as 'ssp 4'", &row->slack);
}

const struct policy_ops policies_ssp = {.word = "ssp", .argument = policies_slack};

const struct policy_ops policies_asp = {.word = "asp", .row = {.slack = POLICY_UNLIMITED}};

static int policies_k(struct group_policy_text *t, struct group_policy_row *row)
{
	return policy_number(t, 1, GROUP_MEMBERS_MAX,
			     "k-of-n takes a number of members, 1 to 1023, such as 'k-of-n 6'",
			     &row->quorum);
}

static uint32_t policies_number(const struct group_policy_row *row, uint32_t members)
{
	return row->quorum;
}

const struct policy_ops policies_k_of_n = {.word = "k-of-n",
					   .row = {.slack = POLICY_UNLIMITED},
					   .argument = policies_k,
					   .quorum = policies_number};

static int policies_percent(struct group_policy_text *t, struct group_policy_row *row)
{
	return policy_number(
		t, 1, 100, "share takes a percentage of the members, 1 to 100, such as 'share 75'",
		&row->quorum);
}

/* Rounded up. */
static uint32_t policies_percent_of(const struct group_policy_row *row, uint32_t members)
{
	return (members * row->quorum + 99) / 100;
}

const struct policy_ops policies_share = {.word = "share",
					  .row = {.slack = POLICY_UNLIMITED},
					  .argument = policies_percent,
					  .quorum = policies_percent_of,
					  .unit = "%"};

#define POLICIES_POINTER(identifier, word, argument, says) &policies_##identifier,
const struct policy_ops *const policies_table[] = {POLICIES(POLICIES_POINTER) NULL};
