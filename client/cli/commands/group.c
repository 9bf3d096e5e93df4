/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa group, sarissa policy: synchronisation groups, and what their policies say. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "group.h"
#include "internal/reduce.h"
#include "cli/support/text.h"

static const char group_prefix[] = ".group/";

/* ---- what a group is --------------------------------------------------------------------------
 */

static int group_take(const sar_member_info *member, void *arg)
{
	struct group_members *m = arg;
	sar_member_info *more = cli_grown(m->item, m->count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	m->item = more;
	more[m->count++] = *member;
	return 0;
}

int group_read(sar *s, const char *name, sar_group_info *info, struct group_members *out)
{
	return sar_group_info_get(s, name, info, group_take, out);
}

const char *group_staleness(int k)
{
	static const char *const bucket[SAR_STALENESS] = {"0",	 "1",	 "2",	  "3",
							  "4-7", "8-15", "16-31", "more"};
	return bucket[k];
}

static void group_json_member(struct json *j, const sar_member_info *m)
{
	char number[24];
	snprintf(number, sizeof(number), "%016" PRIx64, m->member);
	json_object(j, NULL);
	json_string(j, "member", number);
	json_unsigned(j, "node", m->node);
	json_string(j, "cohort", m->cohort);
	json_unsigned(j, "clock", m->clock);
	json_unsigned(j, "round", m->round);
	json_unsigned(j, "counted", m->counted);
	json_unsigned(j, "late", m->late);
	json_unsigned(j, "refused", m->refused);
	json_unsigned(j, "waiting_ns", m->waiting_ns);
	json_bool(j, "waits", m->waits);
	json_close(j, '}');
}

void group_json(struct json *j, const char *name, const sar_group_info *i,
		const struct group_members *m)
{
	char address[INET_ADDRSTRLEN];
	json_string(j, "name", name);
	json_string(j, "op", reduce_op_name(i->op));
	json_string(j, "dtype", reduce_dtype_name(i->dtype));
	json_unsigned(j, "count", i->count);
	json_bool(j, "total", i->flags & SAR_GROUP_TOTAL);
	json_string(j, "policy", i->policy);
	json_unsigned(j, "version", i->version);
	json_unsigned(j, "owner", i->owner);
	json_unsigned(j, "members", i->live);
	json_unsigned(j, "round", i->round);
	json_unsigned(j, "clock", i->clock);
	json_unsigned(j, "rounds", i->rounds);
	json_array(j, "switches");
	for (int k = 0; k < SAR_SWITCHES_MAX && i->switches[k][0]; k++)
		json_string(j, NULL, inet_ntop(AF_INET, i->switches[k], address, sizeof(address)));
	json_close(j, ']');
	json_unsigned(j, "switched", i->switched);
	json_unsigned(j, "fallen", i->fallen);
	json_unsigned(j, "counted", i->counted);
	json_unsigned(j, "late", i->late);
	json_unsigned(j, "refused", i->refused);
	json_unsigned(j, "lost", i->lost);
	json_unsigned(j, "gone_first", i->gone_first);
	json_unsigned(j, "gone_last", i->gone_last);
	json_unsigned(j, "waiting_ns", i->waiting_ns);
	json_array(j, "staleness");
	for (int k = 0; k < SAR_STALENESS; k++)
		json_unsigned(j, NULL, i->staleness[k]);
	json_close(j, ']');
	json_array(j, "member");
	for (size_t k = 0; k < m->count; k++)
		group_json_member(j, &m->item[k]);
	json_close(j, ']');
}

/* Which aggregator made how many rounds. */
static void group_switches(const sar_group_info *i)
{
	char address[INET_ADDRSTRLEN];
	for (int k = 0; k < SAR_SWITCHES_MAX && i->switches[k][0]; k++)
		printf("%s%s", k ? ", " : "switch ",
		       inet_ntop(AF_INET, i->switches[k], address, sizeof(address)));
	if (i->switches[0][0])
		printf(": %" PRIu64 " rounds by a switch, %" PRIu64 " by hosts, of these %" PRIu64
		       " after a switch had failed\n",
		       i->switched, i->rounds - i->switched, i->fallen);
}

static void group_text(const char *name, const sar_group_info *i, const struct group_members *m)
{
	char waited[TEXT_BYTES];
	printf("group %s: %s of %" PRIu64 " x %s%s, owner node %u\n", name, reduce_op_name(i->op),
	       i->count, reduce_dtype_name(i->dtype),
	       i->flags & SAR_GROUP_TOTAL ? ", total of all rounds" : "", i->owner);
	group_switches(i);
	printf("policy %s (version %" PRIu64 ")\n%s", i->policy, i->version, i->table);
	printf("round %" PRIu64 ", clock %" PRIu64 "; %" PRIu64 " rounds, %" PRIu64
	       " contributions, %" PRIu64 " late, %" PRIu64 " refused, %" PRIu64
	       " lost, waited %s\n",
	       i->round, i->clock, i->rounds, i->counted, i->late, i->refused, i->lost,
	       text_duration(waited, i->waiting_ns));
	if (i->gone_last)
		printf("rounds %" PRIu64 " to %" PRIu64 " are lost with the nodes that had their "
		       "results\n",
		       i->gone_first, i->gone_last);
	printf("staleness");
	for (int k = 0; k < SAR_STALENESS; k++)
		printf("  %s: %" PRIu64, group_staleness(k), i->staleness[k]);
	printf("\n%-16s  %4s  %-8s  %8s  %8s  %8s  %6s  %7s  %s\n", "member", "node", "cohort",
	       "clock", "round", "counted", "late", "refused", "waited");
	for (size_t k = 0; k < m->count; k++) {
		const sar_member_info *one = &m->item[k];
		printf("%016" PRIx64 "  %4u  %-8s  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64
		       "  %6" PRIu64 "  %7" PRIu64 "  %s%s\n",
		       one->member, one->node, *one->cohort ? one->cohort : "-", one->clock,
		       one->round, one->counted, one->late, one->refused,
		       text_duration(waited, one->waiting_ns), one->waits ? ", waits" : "");
	}
}

static int group_show(sar *s, const char *name, bool json)
{
	struct group_members m = {0};
	sar_group_info info;
	struct json j;
	int r = group_read(s, name, &info, &m);
	if (r < 0) {
		r = cli_fail_detail(r, name);
	} else if (json) {
		json_begin(&j, stdout);
		group_json(&j, name, &info, &m);
		json_end(&j);
	} else {
		group_text(name, &info, &m);
	}
	free(m.item);
	return r;
}

/* ---- the list ---------------------------------------------------------------------------------
 */

static int group_found(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	struct group_list *l = arg;
	const char *name = info->name + strlen(group_prefix);
	if (strchr(name, '/') || strlen(name) > SAR_GROUP_NAME_MAX)
		return 0;
	void *more = cli_grown(l->name, l->count, sizeof(*l->name));
	if (!more)
		return 1;
	l->name = more;
	strcpy(l->name[l->count++], name);
	return 0;
}

int group_names(sar *s, struct group_list *out)
{
	return sar_list_prefix(s, group_prefix, group_found, out);
}

static int group_ls(sar *s, bool json)
{
	struct group_list l = {0};
	int r = group_names(s, &l);
	int status = r < 0 ? cli_fail_detail(r, NULL) : CLI_DONE;
	if (!json && l.count > 0)
		printf("%8s  %8s  %-24s  %s\n", "MEMBERS", "ROUND", "POLICY", "GROUP");
	for (size_t i = 0; i < l.count; i++) {
		sar_group_info info;
		if (json) {
			int one = group_show(s, l.name[i], true);
			status = status == CLI_DONE ? one : status;
		} else if (sar_group_info_get(s, l.name[i], &info, NULL, NULL) == 0) {
			printf("%8u  %8" PRIu64 "  %-24s  ", info.live, info.round, info.policy);
			text_safe(stdout, l.name[i]);
			putchar('\n');
		}
	}
	free(l.name);
	return status;
}

int group_run(const struct cli_args *args)
{
	char **words = args->names;
	const char *verb = args->count ? words[0] : "";
	bool create = strcmp(verb, "create") == 0, show = strcmp(verb, "show") == 0;
	bool list = strcmp(verb, "ls") == 0, rm = strcmp(verb, "rm") == 0;
	sar *s;
	if (!create && !show && !list && !rm)
		return cli_wrong("group", "say what: create, ls, show or rm, not '%s'", verb);
	if (args->count != (list ? 1 : 2))
		return cli_wrong("group", list ? "ls takes no name" : "it takes one name");
	if (create && args->group.count == 0)
		return cli_wrong("group", "create needs --count");
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = 0;
	if (create)
		r = sar_group_create(s, words[1], &args->group);
	else if (rm)
		r = sar_group_remove(s, words[1]);
	else
		status = list ? group_ls(s, args->json) : group_show(s, words[1], args->json);
	if (r < 0)
		status = cli_fail_detail(r, words[1]);
	return cli_close(s, status);
}

int group_policy_run(const struct cli_args *args)
{
	char table[SAR_POLICY_TABLE_MAX];
	char **words = args->names;
	bool show = args->count == 2 && strcmp(words[0], "show") == 0;
	uint64_t version;
	sar *s;
	if (!show && (args->count != 3 || strcmp(words[0], "set") != 0))
		return cli_wrong("policy", "say 'show TEXT' or 'set GROUP TEXT'");
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = show ? sar_policy_explain(s, words[1], table)
		     : sar_group_policy(s, words[1], words[2], &version);
	if (r < 0)
		status = cli_fail_detail(r, show ? NULL : words[1]);
	else if (show)
		fputs(table, stdout);
	else
		printf("version %" PRIu64 "\n", version);
	return cli_close(s, status);
}
