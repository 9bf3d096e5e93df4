/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa ls: every object of the cluster, by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "info.h"

enum {
	LS_NODES = 256, /* as many as the library tells */
	LS_OWNER = 20,	/* columns */
};

struct ls_one {
	sar_info info;
	sar_lease_info lease;
};

struct ls {
	struct ls_one *one;
	size_t count;
};

static int ls_take(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	struct ls *ls = arg;
	struct ls_one *grown = cli_grown(ls->one, ls->count, sizeof(*grown));
	if (!grown)
		return 1;
	ls->one = grown;
	grown[ls->count].info = *info;
	if (lease)
		grown[ls->count].lease = *lease;
	ls->count++;
	return 0;
}

static int ls_order(const void *a, const void *b)
{
	const sar_info *x = &((const struct ls_one *)a)->info;
	const sar_info *y = &((const struct ls_one *)b)->info;
	int names = strcmp(x->name, y->name);
	return names ? names : memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

static const sar_lease_info *ls_lease(const struct ls_one *one)
{
	return one->info.leases ? &one->lease : NULL;
}

static void ls_json(const struct ls_one *one)
{
	struct json j;
	json_begin(&j, stdout);
	info_json(&j, &one->info, ls_lease(one));
	json_end(&j);
}

/* Only where some object has one or the other: whose it is, and when it goes. */
static void ls_lifetime(const struct ls_one *one)
{
	char owner[2 * TEXT_BYTES], expiry[TEXT_BYTES];
	int columns =
		text_safe(stdout, info_owner(owner, sizeof(owner), &one->info, ls_lease(one)));
	printf("%*s  %8s  ", columns < LS_OWNER ? LS_OWNER - columns : 0, "",
	       info_expiry(expiry, &one->info));
}

static void ls_line(const struct ls_one *one, bool lives)
{
	const sar_info *info = &one->info;
	char size[TEXT_BYTES], here[TEXT_BYTES], copies[TEXT_BYTES], id[TEXT_BYTES];
	char meta[INFO_META_BYTES];
	snprintf(copies, sizeof(copies), info->partial ? "%u+%u" : "%u", info->copies,
		 info->partial);
	printf("%10s  %4s  %6s  ", text_size(size, info->size),
	       info_share(here, info->local_ready, info->size), copies);
	if (lives)
		ls_lifetime(one);
	if (*info->name)
		text_safe(stdout, info->name);
	else
		printf("id:%s", text_id(id, info->id.bytes));
	if (info->meta_bytes > 0) {
		fputs("  ", stdout);
		text_safe(stdout, info_meta(meta, info));
	}
	if (info->making)
		printf("  (a reduce makes it)");
	if (info->lost && info->copies == 0 && !info->is_inline)
		printf(" (lost with node %u, down %llu s)", info->lost_node,
		       (unsigned long long)(info->down_ns / 1000000000));
	putchar('\n');
}

/* A last line says that there may be more, and whose part of the directory is missing. */
static void ls_json_missing(const uint32_t *node, int nodes)
{
	struct json j;
	json_begin(&j, stdout);
	json_bool(&j, "partial", true);
	json_array(&j, "missing");
	for (int i = 0; i < nodes; i++)
		json_unsigned(&j, NULL, node[i]);
	json_close(&j, ']');
	json_end(&j);
}

static void ls_print(const struct cli_args *args, struct ls *ls)
{
	if (ls->count == 0)
		return;
	qsort(ls->one, ls->count, sizeof(*ls->one), ls_order);
	bool lives = false;
	for (size_t i = 0; i < ls->count; i++)
		lives |= ls->one[i].info.leases || ls->one[i].info.expires_ns;
	if (!args->json) {
		printf("%10s  %4s  %6s  ", "SIZE", "HERE", "COPIES");
		if (lives)
			printf("%-*s  %8s  ", LS_OWNER, "OWNER", "EXPIRES");
		printf("NAME\n");
	}
	for (size_t i = 0; i < ls->count; i++)
		if (args->json)
			ls_json(&ls->one[i]);
		else
			ls_line(&ls->one[i], lives);
}

int ls_run(const struct cli_args *args)
{
	sar *s;
	struct ls ls = {0};
	uint32_t node[LS_NODES];
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = sar_list_prefix(s, args->count ? args->names[0] : NULL, ls_take, &ls);
	int missing = sar_error_nodes(node, LS_NODES);
	bool partial = r == -EHOSTUNREACH;
	if (r == 0 || partial)
		ls_print(args, &ls);
	if (partial && args->json)
		ls_json_missing(node, missing < LS_NODES ? missing : LS_NODES);
	if (r < 0)
		status = cli_fail_detail(r, NULL);
	else if (r > 0)
		status = cli_fail(-ENOMEM, "out of memory");
	free(ls.one);
	return cli_close(s, status);
}
