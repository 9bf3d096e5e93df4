/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One sample of `sarissa top`: nodes, groups and counters at one moment, and what changed since the
 * sample before. top.c calls it once a second; top_show.c prints it.
 */
#include "top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Owners that do not answer take 30 s each: then the others wait for the next sample. */
static const uint64_t top_groups_ns = 5000000000;

void top_sample_free(struct top_sample *t)
{
	for (size_t i = 0; i < t->groups; i++)
		free(t->group[i].members.item);
	t->groups = 0;
}

static int top_node(const sar_node *n, void *arg)
{
	struct top_sample *t = arg;
	if (n->self)
		t->self = *n;
	t->nodes++;
	t->up += n->state == SAR_NODE_UP;
	return 0;
}

static void top_group_read(sar *s, const char *name, struct top_sample *t)
{
	struct top_group *g = &t->group[t->groups];
	*g = (struct top_group){.error = ""};
	strcpy(g->name, name);
	int r = group_read(s, name, &g->info, &g->members);
	if (r == -ENOENT) { /* it was removed after it was listed */
		free(g->members.item);
		return;
	}
	if (r < 0) {
		const char *why = cli_detail(name);
		snprintf(g->error, sizeof(g->error), "%s", *why ? why : sar_strerror(r));
	}
	t->groups++;
}

static int top_groups(sar *s, struct top_sample *t)
{
	struct group_list list = {0};
	uint64_t until_ns = cli_now_ns() + top_groups_ns;
	size_t i = 0;
	int r = group_names(s, &list);
	t->partial = r == -EHOSTUNREACH;
	for (; i < list.count && t->groups < TOP_GROUPS && cli_now_ns() < until_ns; i++)
		top_group_read(s, list.name[i], t);
	t->left = list.count - i;
	free(list.name);
	return r < 0 && !t->partial ? cli_fail_detail(r, NULL) : CLI_DONE;
}

int top_sample_read(const struct cli_args *args, sar *s, struct top_sample *out)
{
	top_sample_free(out);
	out->nodes = out->up = 0;
	int r = counters_file_read(args->socket, &out->dataplane);
	if (r < 0)
		return cli_fail_counters(r, out->dataplane.path);
	out->at_ns = cli_now_ns();
	r = counters_file_control_read(args->socket, &out->control);
	if (r == -EPROTO)
		return cli_fail_counters(r, out->control.path);
	out->has_control = r == 0;
	r = sar_nodes(s, top_node, out);
	return r < 0 ? cli_fail_detail(r, NULL) : top_groups(s, out);
}

/* A process that was started again counts from 0. */
static bool top_same(const struct counters_file *a, const struct counters_file *b)
{
	return a->pid == b->pid && a->started_ns == b->started_ns;
}

/* Counters that tell of the processor's speed, not of the work. */
static bool top_is_of_cpu(const struct counter_info *info)
{
	return strcmp(info->unit, "cycles") == 0 || strcmp(info->unit, "loops") == 0 ||
	       strcmp(info->name, "io_sleeps") == 0;
}

static uint64_t top_rise(uint64_t *before, uint64_t now)
{
	if (now < *before)
		*before = 0;
	return now - *before;
}

static void top_changed(struct top_look *l, const struct counter_info *info, bool control,
			uint64_t before, uint64_t now)
{
	uint64_t rise = top_rise(&before, now);
	if (rise > 0 && !top_is_of_cpu(info))
		l->change[l->changes++] = (struct top_change){info, control, rise, before};
}

/* By how much of what it was a counter has risen: a drop that is new comes before busy traffic. */
static int top_compare(const void *a, const void *b)
{
	const struct top_change *l = a, *r = b;
	double left = (double)l->rise / ((double)l->before + 1);
	double right = (double)r->rise / ((double)r->before + 1);
	if (left != right)
		return left < right ? 1 : -1;
	return (l->rise < r->rise) - (l->rise > r->rise);
}

static void top_since_dataplane(const struct counters_file_view *before,
				const struct counters_file_view *now, struct top_look *l)
{
	const bool same = top_same(&before->header, &now->header);
	uint64_t old[COUNTERS_COUNT] = {0}, new[COUNTERS_COUNT];
	struct counters was, is;
	for (unsigned i = 0; i < COUNTERS_COUNT; i++) {
		new[i] = counters_file_total(now, i);
		if (same)
			old[i] = counters_file_total(before, i);
		top_changed(l, &counters_info()[i], false, old[i], new[i]);
	}
	memcpy(&was, old, sizeof(was));
	memcpy(&is, new, sizeof(is));
	l->rx_bytes = top_rise(&was.rx_bytes, is.rx_bytes);
	l->rx_pkts = top_rise(&was.rx_pkts, is.rx_pkts);
	l->tx_bytes = top_rise(&was.tx_bytes, is.tx_bytes);
	l->tx_pkts = top_rise(&was.tx_pkts, is.tx_pkts);
}

static void top_since_control(const struct control_file_view *before,
			      const struct control_file_view *now, struct top_look *l)
{
	uint64_t old[CONTROL_COUNTERS_COUNT] = {0}, new[CONTROL_COUNTERS_COUNT];
	memcpy(new, &now->block.counters, sizeof(new));
	if (top_same(&before->header, &now->header))
		memcpy(old, &before->block.counters, sizeof(old));
	for (unsigned i = 0; i < CONTROL_COUNTERS_COUNT; i++)
		top_changed(l, &counters_file_control_info()[i], true, old[i], new[i]);
}

/* Rounds of a group between two samples; 0 when the earlier one does not have it. A new owner
 * counts from 0. */
static uint64_t top_rounds(const struct top_sample *before, const struct top_group *now)
{
	for (size_t i = 0; i < before->groups; i++) {
		uint64_t old = before->group[i].info.rounds;
		if (strcmp(before->group[i].name, now->name) == 0 && !*before->group[i].error)
			return top_rise(&old, now->info.rounds);
	}
	return 0;
}

void top_look_since(const struct top_sample *before, const struct top_sample *now,
		    struct top_look *out)
{
	*out = (struct top_look){.now = now, .over_ns = now->at_ns - before->at_ns};
	top_since_dataplane(&before->dataplane, &now->dataplane, out);
	if (before->has_control && now->has_control)
		top_since_control(&before->control, &now->control, out);
	qsort(out->change, out->changes, sizeof(*out->change), top_compare);
	for (size_t i = 0; i < now->groups; i++)
		out->rounds[i] = top_rounds(before, &now->group[i]);
}
