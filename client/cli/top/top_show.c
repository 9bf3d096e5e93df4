/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sample of `sarissa top` as text for a terminal and as a JSON object. top.c calls it;
 * top_sample.c made the sample. Asks no node.
 */
#include "top.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include "cli/support/json.h"
#include "cli/support/text.h"

enum {
	TOP_LINES = 10,	  /* of counters */
	TOP_COLUMNS = 28, /* of a name or policy; longer ones move the rest of their line */
};

static uint64_t top_second(const struct top_look *l, uint64_t amount)
{
	return (uint64_t)((double)amount * 1e9 / (double)l->over_ns + 0.5);
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static void top_json_changes(struct json *j, const struct top_look *l, const char *key,
			     bool control)
{
	json_object(j, key);
	for (size_t i = 0; i < l->changes; i++)
		if (l->change[i].control == control)
			json_unsigned(j, l->change[i].info->name, l->change[i].rise);
	json_close(j, '}');
}

static void top_json_group(struct json *j, const struct top_group *g, uint64_t rounds)
{
	json_object(j, NULL);
	if (*g->error) {
		json_string(j, "name", g->name);
		json_string(j, "error", g->error);
	} else {
		group_json(j, g->name, &g->info, &g->members);
		json_unsigned(j, "rounds_risen", rounds);
	}
	json_close(j, '}');
}

void top_show_json(FILE *file, const struct top_look *l)
{
	const struct top_sample *now = l->now;
	const sar_node *n = &now->self;
	struct json j;
	json_begin(&j, file);
	json_unsigned(&j, "node", n->node);
	json_unsigned(&j, "over_ns", l->over_ns);
	json_unsigned(&j, "rx_bytes_per_s", top_second(l, l->rx_bytes));
	json_unsigned(&j, "rx_pkts_per_s", top_second(l, l->rx_pkts));
	json_unsigned(&j, "tx_bytes_per_s", top_second(l, l->tx_bytes));
	json_unsigned(&j, "tx_pkts_per_s", top_second(l, l->tx_pkts));
	json_unsigned(&j, "store_bytes", n->store_bytes);
	json_unsigned(&j, "store_used", n->store_used);
	json_unsigned(&j, "objects", n->objects);
	json_unsigned(&j, "sessions", n->sessions);
	json_unsigned(&j, "arriving", n->arriving);
	json_unsigned(&j, "sending", n->sending);
	json_unsigned(&j, "nodes", now->nodes);
	json_unsigned(&j, "nodes_up", now->up);
	top_json_changes(&j, l, "counters", false);
	top_json_changes(&j, l, "control", true);
	json_array(&j, "groups");
	for (size_t i = 0; i < now->groups; i++)
		top_json_group(&j, &now->group[i], l->rounds[i]);
	json_close(&j, ']');
	json_unsigned(&j, "groups_left", now->left);
	json_bool(&j, "partial", now->partial);
	json_end(&j);
}

/* ---- text -------------------------------------------------------------------------------------
 */

static void top_head(FILE *file, const struct top_look *l)
{
	const sar_node *n = &l->now->self;
	char text[TEXT_BYTES];
	fprintf(file, "this node   %u, over %s; %u of %u nodes are up\n", n->node,
		text_duration(text, l->over_ns), l->now->up, l->now->nodes);
	fprintf(file, "in          %14s  %10" PRIu64 " packets/s\n",
		text_rate(text, l->rx_bytes, l->over_ns), top_second(l, l->rx_pkts));
	fprintf(file, "out         %14s  %10" PRIu64 " packets/s\n",
		text_rate(text, l->tx_bytes, l->over_ns), top_second(l, l->tx_pkts));
	fprintf(file, "store       %s\n", text_used(text, n->store_used, n->store_bytes));
	fprintf(file, "objects     %llu here, %llu clients\n", (unsigned long long)n->objects,
		(unsigned long long)n->sessions);
	fprintf(file, "transfers   %u arriving, %u sending\n", n->arriving, n->sending);
}

static void top_changes(FILE *file, const struct top_look *l)
{
	if (l->changes == 0)
		return;
	fprintf(file, "\n%14s  %14s  %-21s  %s\n", "RISE", "PER SECOND", "COUNTER", "MEANING");
	for (size_t i = 0; i < l->changes && i < TOP_LINES; i++) {
		const struct top_change *c = &l->change[i];
		fprintf(file, "%14" PRIu64 "  %14.1f  %-21s  %s (%s)%s\n", c->rise,
			(double)c->rise * 1e9 / (double)l->over_ns, c->info->name, c->info->help,
			c->info->unit, c->control ? ", of control" : "");
	}
}

/* Columns for the texts of all groups at this place in them. */
static int top_width(const struct top_sample *now, size_t offset, int least)
{
	for (size_t i = 0; i < now->groups; i++) {
		int length = (int)strlen((const char *)&now->group[i] + offset);
		least = length > least ? length : least;
	}
	return least < TOP_COLUMNS ? least : TOP_COLUMNS;
}

static void top_padded(FILE *file, const char *text, int width)
{
	int columns = text_safe(file, *text ? text : "-");
	fprintf(file, "%*s", columns < width ? width - columns + 2 : 2, "");
}

/* Of the member that has waited least, and of the one that has waited most. */
static void top_waited(char out[2 * TEXT_BYTES], const struct group_members *m)
{
	char least[TEXT_BYTES], most[TEXT_BYTES];
	uint64_t low = UINT64_MAX, high = 0;
	for (size_t i = 0; i < m->count; i++) {
		uint64_t one = m->item[i].waiting_ns;
		low = one < low ? one : low;
		high = one > high ? one : high;
	}
	if (m->count == 0)
		strcpy(out, "-");
	else
		snprintf(out, 2 * TEXT_BYTES, "%s to %s", text_duration(least, low),
			 text_duration(most, high));
}

static void top_staleness(FILE *file, const sar_group_info *i)
{
	bool any = false;
	for (int k = 0; k < SAR_STALENESS; k++) {
		if (i->staleness[k] == 0)
			continue;
		fprintf(file, "%s%s:%" PRIu64, any ? " " : "", group_staleness(k), i->staleness[k]);
		any = true;
	}
	fputs(any ? "\n" : "-\n", file);
}

static void top_group(FILE *file, const struct top_look *l, size_t at, int names, int policies)
{
	const struct top_group *g = &l->now->group[at];
	const sar_group_info *i = &g->info;
	char waited[2 * TEXT_BYTES];
	top_padded(file, g->name, names);
	if (*g->error) {
		text_safe(file, g->error);
		fputc('\n', file);
		return;
	}
	top_padded(file, i->policy, policies);
	top_waited(waited, &g->members);
	fprintf(file,
		"%7u  %7" PRIu64 "  %8.1f  %7" PRIu64 "  %7" PRIu64 "  %5" PRIu64 "  %7" PRIu64
		"  %-20s  ",
		i->live, i->clock, (double)l->rounds[at] * 1e9 / (double)l->over_ns, i->switched,
		i->rounds - i->switched, i->late, i->refused, waited);
	top_staleness(file, i);
}

static void top_groups(FILE *file, const struct top_look *l)
{
	const struct top_sample *now = l->now;
	int names = top_width(now, offsetof(struct top_group, name), 5);
	int policies = top_width(now, offsetof(struct top_group, info.policy), 6);
	if (now->groups > 0)
		fprintf(file, "\n%-*s  %-*s  %7s  %7s  %8s  %7s  %7s  %5s  %7s  %-20s  %s\n", names,
			"GROUP", policies, "POLICY", "MEMBERS", "CLOCK", "ROUNDS/S", "SWITCH",
			"HOSTS", "LATE", "REFUSED", "A MEMBER WAITED", "STALENESS");
	for (size_t i = 0; i < now->groups; i++)
		top_group(file, l, i, names, policies);
	if (now->left > 0)
		fprintf(file, "%zu more groups: see sarissa group ls\n", now->left);
	if (now->partial)
		fputs("a part of the directory does not answer: groups may be missing\n", file);
}

void top_show_text(FILE *file, const struct top_look *l)
{
	top_head(file, l);
	top_groups(file, l);
	top_changes(file, l);
}
