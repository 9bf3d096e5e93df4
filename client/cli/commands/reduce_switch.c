/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa reduce --switch: one member's part in an allreduce through a switch. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "cli/cli.h"
#include "internal/reduce.h"
#include "cli/support/json.h"
#include "reduce_switch.h"
#include "cli/support/text.h"

enum { LOOK_MS = 5 };

/*
 * A number that all members agree on, and that these sources have not had before: over the target
 * and the generation of each source, which is another one whenever it is put again. Waits for all.
 */
static int reduce_switch_agree(sar *s, sar_id target, const sar_id *source, unsigned count,
			       int64_t timeout_ns, uint32_t *group)
{
	struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	uint8_t key[sizeof(sar_id) + SAR_SOURCES_MAX * sizeof(uint64_t)];
	uint64_t begin = cli_now_ns();
	sar_info info;
	memcpy(key, &target, sizeof(target));
	for (unsigned i = 0; i < count;) {
		int r = sar_info_get(s, source[i], &info);
		if (r == -ENOENT && cli_now_ns() - begin < (uint64_t)timeout_ns) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (r < 0)
			return r;
		memcpy(key + sizeof(target) + i * sizeof(uint64_t), &info.generation,
		       sizeof(info.generation));
		i++;
	}
	sar_id hash = sar_id_of(key, sizeof(target) + count * sizeof(uint64_t));
	memcpy(group, &hash, sizeof(*group));
	return 0;
}

static void reduce_switch_show(const struct cli_args *args, uint64_t size, unsigned count,
			       const sar_switch_result *result, const char *why)
{
	char bytes[TEXT_BYTES], time[TEXT_BYTES];
	struct json j;
	if (args->json) {
		json_begin(&j, stdout);
		json_string(&j, "name", args->names[0]);
		json_string(&j, "op", reduce_op_name(args->reduction.op));
		json_string(&j, "dtype", reduce_dtype_name(args->reduction.dtype));
		json_unsigned(&j, "sources", count);
		json_unsigned(&j, "size", size);
		json_bool(&j, "switch", result->through);
		if (why)
			json_string(&j, "why", why);
		json_unsigned(&j, "polls", result->polls);
		json_unsigned(&j, "duration_ns", (uint64_t)result->duration_ns);
		json_end(&j);
		return;
	}
	text_safe(stdout, args->names[0]);
	printf(": %s (%llu bytes) from %u sources in %s, %s\n", text_size(bytes, size),
	       (unsigned long long)size, count, text_duration(time, (uint64_t)result->duration_ns),
	       result->through ? "by the switch" : "by the nodes");
	if (why)
		printf("  %s\n", why);
}

/* Without a switch the nodes do it: why is told. */
static int reduce_switch_sum(const struct cli_args *args, sar *s, sar_id target,
			     const sar_id *source, unsigned count)
{
	sar_switch_options join = {
		.address = args->switch_address, .member = args->member, .members = count};
	sar_switch *w = NULL;
	sar_switch_result result = {0};
	sar_buffer b;
	char why[SAR_DETAIL_MAX] = "";
	uint64_t begin = cli_now_ns();
	int r = reduce_switch_agree(s, target, source, count, args->timeout_ns, &join.group);
	if (r < 0)
		return cli_fail_detail(r, args->names[0]);
	r = sar_switch_join(&join, &w);
	if (r == -EINVAL)
		return cli_fail_detail(r, args->names[0]);
	if (r < 0) {
		snprintf(why, sizeof(why), "%s", sar_error_detail());
		r = sar_allreduce(s, target, cli_called(args->names[0]), source, count,
				  &args->reduction, args->timeout_ns, &b);
		result.duration_ns = (int64_t)(cli_now_ns() - begin);
	} else {
		r = sar_switch_reduce(s, w, target, cli_called(args->names[0]), source, count,
				      &args->reduction, args->timeout_ns, &b, &result);
		if (r == 0 && !result.through)
			snprintf(why, sizeof(why), "%s", sar_error_detail());
	}
	if (r < 0)
		r = cli_fail_detail(r, args->names[0]);
	else
		reduce_switch_show(args, b.size, count, &result, *why ? why : NULL);
	if (r == 0)
		sar_release(s, &b);
	sar_switch_leave(w);
	return r;
}

int reduce_switch_run(const struct cli_args *args, sar *s, sar_id target, const sar_id *source,
		      unsigned count)
{
	const sar_reduction *how = &args->reduction;
	if (args->member >= count || count > 64 || how->num || args->deadline_ns >= 0) {
		cli_fail(-EINVAL, "--switch takes up to 64 sources and --member 0 to their number "
				  "less one, and neither --num nor --deadline");
		return CLI_USAGE;
	}
	return reduce_switch_sum(args, s, target, source, count);
}
