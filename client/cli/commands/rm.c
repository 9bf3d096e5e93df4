/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa rm: deletes by a queue, so that thousands do not wait for each other. It goes on after an
 * error; the exit status is that of the first one by the order of the names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/cli.h"
#include "cli/support/json.h"
#include "cli/support/text.h"

enum { RM_AT_ONCE = 256, RM_POLL = 32 };

struct rm {
	sar *s;
	bool json;
	int first;	     /* exit status */
	uint64_t first_item; /* whose it is */
	sar_info *found;
	size_t count;
};

struct rm_item {
	const char *name;
	sar_id id;
};

typedef struct rm_item rm_item_at(const struct rm *rm, const struct cli_args *args, uint64_t item);

static void rm_failed(struct rm *rm, uint64_t item, int status)
{
	if (rm->first == CLI_DONE || item < rm->first_item) {
		rm->first = status;
		rm->first_item = item;
	}
}

static void rm_report(const char *name, sar_id which)
{
	struct json j;
	char id[TEXT_BYTES];
	json_begin(&j, stdout);
	json_string(&j, "name", name);
	json_string(&j, "id", text_id(id, which.bytes));
	json_bool(&j, "removed", true);
	json_end(&j);
}

static struct rm_item rm_named(const struct rm *rm, const struct cli_args *args, uint64_t item)
{
	return (struct rm_item){args->names[item], cli_id(args->names[item])};
}

static struct rm_item rm_found(const struct rm *rm, const struct cli_args *args, uint64_t item)
{
	return (struct rm_item){rm->found[item].name, rm->found[item].id};
}

static void rm_ended(struct rm *rm, sar_queue *q, const sar_completion *c, struct rm_item what,
		     bool may_be_gone)
{
	if (c->result == 0 && rm->json)
		rm_report(what.name, what.id);
	else if (c->result != 0 && !(c->result == -ENOENT && may_be_gone))
		rm_failed(rm, c->user_data,
			  cli_fail_with(c->result, sar_completion_detail(q, c), what.name));
}

/* Deletes count objects, RM_AT_ONCE of them at a time. */
static void rm_all(struct rm *rm, const struct cli_args *args, uint64_t count, rm_item_at *at,
		   bool may_be_gone)
{
	static sar_completion ended[RM_POLL];
	sar_queue *q;
	int r = sar_queue_open(rm->s, RM_AT_ONCE, &q);
	if (r != 0) {
		rm->first = cli_fail_detail(r, NULL);
		return;
	}
	for (uint64_t next = 0, done = 0; next < count || done < next;) {
		while (next < count && (r = sar_submit_delete(q, at(rm, args, next).id, next)) == 0)
			next++;
		if (r != 0 && r != -EAGAIN) {
			rm_failed(rm, next, cli_fail_detail(r, at(rm, args, next).name));
			count = next; /* the rest stays */
			r = 0;
		}
		int n = sar_poll_wait(q, ended, RM_POLL, done < next, SAR_FOREVER);
		for (int k = 0; k < n; k++, done++)
			rm_ended(rm, q, &ended[k], at(rm, args, ended[k].user_data), may_be_gone);
	}
	sar_queue_close(q);
}

static int rm_take(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	struct rm *rm = arg;
	sar_info *grown = cli_grown(rm->found, rm->count, sizeof(*grown));
	if (!grown)
		return 1;
	rm->found = grown;
	grown[rm->count++] = *info;
	return 0;
}

/* Known objects are removed also when a part of the directory is missing. */
static void rm_prefix(struct rm *rm, const char *prefix)
{
	int r = sar_list_prefix(rm->s, prefix, rm_take, rm);
	if (r < 0)
		rm->first = cli_fail_detail(r, NULL);
	else if (r > 0)
		rm->first = cli_fail(-ENOMEM, "out of memory");
	if (r <= 0)
		rm_all(rm, NULL, rm->count, rm_found, true);
	free(rm->found);
}

int rm_run(const struct cli_args *args)
{
	struct rm rm = {.json = args->json};
	if (args->prefix ? args->count > 0 || !*args->prefix : args->count == 0) {
		fprintf(stderr, "sarissa: rm takes names, or --prefix and a text that is not "
				"empty: sarissa rm NAME...|--prefix P\n");
		return CLI_USAGE;
	}
	rm.first = cli_open(args, &rm.s);
	if (rm.first != CLI_DONE)
		return rm.first;
	if (args->prefix)
		rm_prefix(&rm, args->prefix);
	else
		rm_all(&rm, args, (uint64_t)args->count, rm_named, false);
	return cli_close(rm.s, rm.first);
}
