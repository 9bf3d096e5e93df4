/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa stat: one object, its holders, and which of them feed others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "info.h"

enum { STAT_HOLDERS = 4096, STAT_DEPTH = 30, STAT_SOURCES = 8 };

struct stat_source {
	char name[SAR_NAME_MAX + 1]; /* empty: not known */
	sar_id id;
};

/* Of the reduce that makes the object. */
struct stat_reduce {
	char words[256]; /* how far it is; or empty */
	int count;	 /* of sources; first the present ones */
	int present;
	struct stat_source source[SAR_SOURCES_MAX];
};

struct stat_tree {
	const sar_info *info;
	const sar_lease_info *lease; /* or NULL */
	const sar_holder *holder;
	const struct stat_reduce *reduce;
	int holders;
	bool *shown;
};

static void stat_json_holder(struct json *j, const sar_holder *h)
{
	json_object(j, NULL);
	json_unsigned(j, "node", h->node);
	json_bool(j, "complete", h->complete);
	json_unsigned(j, "ready", h->ready);
	json_unsigned(j, "arrived", h->arrived);
	if (h->upstream < 0)
		json_null(j, "upstream");
	else
		json_signed(j, "upstream", h->upstream);
	json_array(j, "upstreams");
	for (uint32_t i = 0; i < h->upstreams; i++)
		json_unsigned(j, NULL, h->upstream_node[i]);
	json_close(j, ']');
	json_unsigned(j, "sending", h->sending);
	json_unsigned(j, "down_ns", h->down_ns);
	json_close(j, '}');
}

static void stat_json_sources(struct json *j, const char *key, const struct stat_source *source,
			      int count)
{
	char id[TEXT_BYTES];
	json_array(j, key);
	for (int i = 0; i < count; i++) {
		json_object(j, NULL);
		json_string(j, "id", text_id(id, source[i].id.bytes));
		if (*source[i].name)
			json_string(j, "name", source[i].name);
		else
			json_null(j, "name");
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void stat_json_reduce(struct json *j, const struct stat_reduce *r)
{
	if (*r->words)
		json_string(j, "reduce", r->words);
	if (r->count == 0)
		return;
	json_object(j, "sources");
	stat_json_sources(j, "present", r->source, r->present);
	stat_json_sources(j, "missing", r->source + r->present, r->count - r->present);
	json_close(j, '}');
}

static void stat_json(const struct stat_tree *t)
{
	struct json j;
	json_begin(&j, stdout);
	info_json(&j, t->info, t->lease);
	stat_json_reduce(&j, t->reduce);
	json_array(&j, "holders");
	for (int i = 0; i < t->holders; i++)
		stat_json_holder(&j, &t->holder[i]);
	json_close(&j, ']');
	json_end(&j);
}

static void stat_line(const struct stat_tree *t, const sar_holder *h, int depth)
{
	char size[TEXT_BYTES], share[TEXT_BYTES];
	printf("%8s  %10s  %7u  %*s%u",
	       h->down_ns    ? "lost"
	       : h->complete ? "complete"
			     : info_share(share, h->arrived, t->info->size),
	       text_size(size, h->arrived), h->sending,
	       2 * (depth < STAT_DEPTH ? depth : STAT_DEPTH), "", h->node);
	for (uint32_t i = 1; i < h->upstreams; i++)
		printf("%s%u", i == 1 ? " (also fed by " : ", ", h->upstream_node[i]);
	if (h->down_ns)
		printf(" (down %llu s)", (unsigned long long)(h->down_ns / 1000000000));
	puts(h->upstreams > 1 ? ")" : "");
}

/* A holder, and below it those whose first feeder it is. */
static void stat_branch(struct stat_tree *t, int at, int depth)
{
	t->shown[at] = true;
	stat_line(t, &t->holder[at], depth);
	for (int i = 0; i < t->holders; i++)
		if (!t->shown[i] && t->holder[i].upstream == (int64_t)t->holder[at].node)
			stat_branch(t, i, depth + 1);
}

static bool stat_is_root(const struct stat_tree *t, int at)
{
	for (int i = 0; i < t->holders; i++)
		if (t->holder[at].upstream == (int64_t)t->holder[i].node)
			return false;
	return true;
}

static void stat_print_sources(const char *title, const struct stat_source *source, int count)
{
	char id[TEXT_BYTES];
	if (count == 0)
		return;
	printf("%-12s", title);
	for (int i = 0; i < count && i < STAT_SOURCES; i++) {
		if (i > 0)
			fputs(", ", stdout);
		if (*source[i].name)
			text_safe(stdout, source[i].name);
		else
			printf("id:%s", text_id(id, source[i].id.bytes));
	}
	if (count > STAT_SOURCES)
		printf(" and %d more", count - STAT_SOURCES);
	putchar('\n');
}

static void stat_print_reduce(const struct stat_reduce *r)
{
	if (*r->words)
		printf("reduce      %s\n", r->words);
	stat_print_sources("present", r->source, r->present);
	stat_print_sources("missing", r->source + r->present, r->count - r->present);
}

/* Who holds it, and when it goes by itself. */
static void stat_print_lifetime(const struct stat_tree *t)
{
	char owner[2 * TEXT_BYTES], text[TEXT_BYTES];
	if (t->lease) {
		printf("owner       ");
		text_safe(stdout, info_owner(owner, sizeof(owner), t->info, t->lease));
		if (t->lease->ending)
			printf(" (its node is lost: ends in %llu s)",
			       (unsigned long long)(t->lease->left_ns / 1000000000));
		putchar('\n');
	}
	if (t->info->expires_ns)
		printf("expires     in %s\n", info_expiry(text, t->info));
}

static void stat_print(struct stat_tree *t)
{
	const sar_info *info = t->info;
	char text[TEXT_BYTES], meta[INFO_META_BYTES];
	printf("name        ");
	text_safe(stdout, *info->name ? info->name : "-");
	printf("\nid          %s\n", text_id(text, info->id.bytes));
	printf("size        %s (%llu bytes)\n", text_size(text, info->size),
	       (unsigned long long)info->size);
	if (info->meta_bytes > 0) {
		printf("metadata    ");
		text_safe(stdout, info_meta(meta, info));
		putchar('\n');
	}
	printf("generation  %llu\n", (unsigned long long)info->generation);
	printf("here        %s\n", info_share(text, info->local_ready, info->size));
	stat_print_lifetime(t);
	stat_print_reduce(t->reduce);
	printf("copies      %u complete, %u arriving%s", info->copies, info->partial,
	       info->is_inline ? ", and the value in the directory" : "");
	if (info->lost)
		printf(", %u lost with node %u, down %llu s", info->lost, info->lost_node,
		       (unsigned long long)(info->down_ns / 1000000000));
	putchar('\n');
	if (t->holders > 0)
		printf("\n%8s  %10s  %7s  %s\n", "PROGRESS", "BYTES", "SENDING",
		       "NODE, and below it those that it feeds");
	for (int i = 0; i < t->holders; i++)
		if (!t->shown[i] && stat_is_root(t, i))
			stat_branch(t, i, 0);
	for (int i = 0; i < t->holders; i++) /* told at different moments, a circle can appear */
		if (!t->shown[i])
			stat_branch(t, i, 0);
}

static int stat_show(const struct cli_args *args, struct stat_tree t)
{
	t.shown = calloc((size_t)t.holders + 1, sizeof(bool));
	if (!t.shown)
		return cli_fail(-ENOMEM, "out of memory");
	if (args->json)
		stat_json(&t);
	else
		stat_print(&t);
	free(t.shown);
	return cli_flush();
}

/* Nothing is known of the object, because these nodes do not answer. */
static void stat_json_missing(const char *name, sar_id id)
{
	static uint32_t node[STAT_HOLDERS];
	int nodes = sar_error_nodes(node, STAT_HOLDERS);
	struct json j;
	char text[TEXT_BYTES];
	json_begin(&j, stdout);
	json_string(&j, "name", name);
	json_string(&j, "id", text_id(text, id.bytes));
	json_bool(&j, "partial", true);
	json_array(&j, "missing");
	for (int i = 0; i < nodes && i < STAT_HOLDERS; i++)
		json_unsigned(&j, NULL, node[i]);
	json_close(&j, ']');
	json_end(&j);
}

/* The names of those that are shown, as far as the directory knows them; of none more when a part
 * of it does not answer. */
static void stat_names(sar *s, struct stat_source *source, int count, bool all)
{
	sar_info info;
	int r = 0;
	for (int i = 0; i < count && (all || i < STAT_SOURCES) && (r == 0 || r == -ENOENT); i++) {
		r = sar_info_get(s, source[i].id, &info);
		if (r == 0)
			memcpy(source[i].name, info.name, sizeof(info.name));
	}
}

static void stat_reduce(sar *s, const struct cli_args *args, sar_id id, struct stat_reduce *out)
{
	static sar_id source[SAR_SOURCES_MAX];
	unsigned present;
	if (sar_reduce_sources(s, id, 0, NULL, 0) >= 0)
		return; /* it has ended meanwhile */
	snprintf(out->words, sizeof(out->words), "%s", cli_detail(args->names[0]));
	int count = sar_reduce_progress(s, id, source, SAR_SOURCES_MAX, &present);
	if (count < 0 || count > SAR_SOURCES_MAX)
		return;
	out->count = count;
	out->present = (int)present;
	for (int i = 0; i < count; i++)
		out->source[i].id = source[i];
	stat_names(s, out->source, out->present, args->json);
	stat_names(s, out->source + out->present, count - out->present, args->json);
}

int stat_run(const struct cli_args *args)
{
	sar *s;
	sar_info info;
	sar_lease_info lease;
	static sar_holder holder[STAT_HOLDERS];
	static struct stat_reduce reduce;
	sar_id id = cli_id(args->names[0]);
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = sar_info_get(s, id, &info);
	int holders = r < 0 ? r : sar_holders(s, id, holder, STAT_HOLDERS);
	if (holders == -EHOSTUNREACH && args->json)
		stat_json_missing(args->names[0], id);
	if (holders < 0)
		status = cli_fail_detail(holders, args->names[0]);
	bool held = status == CLI_DONE && info.leases && sar_lease_get(s, id, &lease) == 0;
	if (status == CLI_DONE && info.making)
		stat_reduce(s, args, id, &reduce);
	sar_close(s);
	if (status != CLI_DONE)
		return status;
	return stat_show(args, (struct stat_tree){
				       .info = &info,
				       .lease = held ? &lease : NULL,
				       .holder = holder,
				       .reduce = &reduce,
				       .holders = holders < STAT_HOLDERS ? holders : STAT_HOLDERS,
			       });
}
