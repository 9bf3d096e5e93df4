/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa reduce: begins one; with --wait says what it has become. */
#include <errno.h>
#include <string.h>
#include "cli/cli.h"
#include "internal/reduce.h"
#include "cli/support/json.h"
#include "cli/support/patience.h"
#include "reduce_switch.h"
#include "sarissa/array.h"
#include "cli/support/text.h"

struct reduce {
	const struct cli_args *args;
	sar_reduction how;
	sar *s;
	sar_id target;
	sar_id source[SAR_SOURCES_MAX], used[SAR_SOURCES_MAX];
	unsigned count;
	int used_count; /* < 0: not waited for */
	uint64_t bytes;
	uint64_t started_ns, ended_ns;
};

/* The caller's name for it. */
static const char *reduce_name(const struct reduce *r, const sar_id *id)
{
	for (unsigned i = 0; i < r->count; i++)
		if (memcmp(&r->source[i], id, sizeof(*id)) == 0)
			return r->args->names[1 + i];
	return "?";
}

static void reduce_json(const struct reduce *r)
{
	const sar_reduction *how = &r->how;
	struct json j;
	char id[TEXT_BYTES];
	json_begin(&j, stdout);
	json_string(&j, "name", r->args->names[0]);
	json_string(&j, "id", text_id(id, r->target.bytes));
	json_string(&j, "op", reduce_op_name(how->op));
	if (how->dtype)
		json_string(&j, "dtype", reduce_dtype_name(how->dtype));
	else
		json_null(&j, "dtype");
	json_unsigned(&j, "sources", r->count);
	json_bool(&j, "done", r->used_count >= 0);
	if (r->used_count >= 0) {
		json_array(&j, "used");
		for (int i = 0; i < r->used_count; i++)
			json_string(&j, NULL, reduce_name(r, &r->used[i]));
		json_close(&j, ']');
		json_unsigned(&j, "size", r->bytes);
	}
	json_unsigned(&j, "duration_ns", r->ended_ns - r->started_ns);
	json_end(&j);
}

static void reduce_print(const struct reduce *r)
{
	char size[TEXT_BYTES], time[TEXT_BYTES];
	if (r->used_count < 0)
		return;
	text_safe(stdout, r->args->names[0]);
	printf(": %s (%llu bytes) from %d of %u sources in %s\n", text_size(size, r->bytes),
	       (unsigned long long)r->bytes, r->used_count, r->count,
	       text_duration(time, r->ended_ns - r->started_ns));
	for (int i = 0; i < r->used_count; i++) {
		fputs("  ", stdout);
		text_safe(stdout, reduce_name(r, &r->used[i]));
		putchar('\n');
	}
}

/* A result that was laid out for everybody lies in pieces until the first one gets it. */
static int reduce_fetch(struct reduce *r)
{
	sar_buffer b;
	int n = sar_get(r->s, r->target, SAR_FOREVER, &b);
	if (n < 0)
		return cli_fail_detail(n, r->args->names[0]);
	r->ended_ns = cli_now_ns();
	r->bytes = b.size;
	sar_release(r->s, &b);
	return CLI_DONE;
}

/* The end of it; the node keeps the reduce's own time, and has the word when that is over. */
static int reduce_wait(struct reduce *r)
{
	sar_info info;
	int n = sar_reduce_sources(r->s, r->target, SAR_FOREVER, r->used, SAR_SOURCES_MAX);
	if (n < 0)
		return cli_fail_detail(n, r->args->names[0]);
	r->ended_ns = cli_now_ns();
	r->used_count = n < SAR_SOURCES_MAX ? n : SAR_SOURCES_MAX;
	n = sar_info_get(r->s, r->target, &info);
	if (n == -ENOENT && r->args->reduction.flags & SAR_REDUCE_SPREAD)
		return reduce_fetch(r);
	if (n < 0)
		return cli_fail_detail(n, r->args->names[0]);
	r->bytes = info.size;
	return CLI_DONE;
}

/* Without --dtype: 0, as the sources are, if one of them is an array or none is there; f32 for
 * bytes, which do not say what they are. A switch takes no 0: *array is what the first array is of.
 */
static uint32_t reduce_dtype(const struct reduce *r, uint32_t *array)
{
	uint32_t dtype = 0;
	sar_array one;
	sar_info info;
	*array = SAR_F32;
	for (unsigned i = 0; i < r->count; i++) {
		if (sar_info_get(r->s, r->source[i], &info) < 0)
			continue;
		if (sar_array_parse(info.meta, info.meta_bytes, &one) == 0) {
			*array = one.dtype;
			return 0;
		}
		dtype = SAR_F32;
	}
	return dtype;
}

static int reduce_do(struct reduce *r)
{
	const struct cli_args *args = r->args;
	if (args->deadline_ns >= 0) {
		r->how.deadline_ns = args->deadline_ns;
		r->how.min += r->how.min == 0;
	}
	int e = sar_reduce(r->s, r->target, cli_called(args->names[0]), r->source, r->count,
			   &r->how, args->timeout_ns);
	if (e < 0)
		return cli_fail_detail(e, args->names[0]);
	r->ended_ns = cli_now_ns();
	return args->wait ? reduce_wait(r) : CLI_DONE;
}

int reduce_run(const struct cli_args *args)
{
	static struct reduce r;
	struct patience patience;
	uint32_t array = 0;
	int status = CLI_DONE;
	r = (struct reduce){.args = args,
			    .how = args->reduction,
			    .count = (unsigned)args->count - 1,
			    .used_count = -1};
	if (args->timeout_ns == 0) {
		cli_fail(-EINVAL, "--timeout 0 leaves a reduce no time: give it some, or no "
				  "--timeout");
		return CLI_USAGE;
	}
	if (args->reduction.min && args->deadline_ns < 0) {
		cli_fail(-EINVAL, "--min says how many sources suffice at the deadline: give a "
				  "--deadline, or use --num");
		return CLI_USAGE;
	}
	for (int i = 0; i < args->count && status == CLI_DONE; i++)
		status = cli_check_name(args->names[i]);
	if (status != CLI_DONE)
		return status;
	r.target = cli_id(args->names[0]);
	for (unsigned i = 0; i < r.count; i++)
		r.source[i] = cli_id(args->names[1 + i]);
	status = cli_open(args, &r.s);
	if (status != CLI_DONE)
		return status;
	if (r.how.dtype == 0)
		r.how.dtype = reduce_dtype(&r, &array);
	if (args->switch_address) {
		struct cli_args typed = *args;
		typed.reduction = r.how;
		typed.reduction.dtype = r.how.dtype ? r.how.dtype : array;
		patience_begin(&patience, r.s, args->names[0], args->timeout_ns != SAR_FOREVER);
		status = reduce_switch_run(&typed, r.s, r.target, r.source, r.count);
		patience_end(&patience);
		return cli_close(r.s, status);
	}
	r.started_ns = cli_now_ns();
	patience_begin(&patience, r.s, args->names[0], args->timeout_ns != SAR_FOREVER);
	status = reduce_do(&r);
	patience_end(&patience);
	sar_close(r.s);
	if (status != CLI_DONE)
		return status;
	if (args->json)
		reduce_json(&r);
	else
		reduce_print(&r);
	return cli_flush();
}
