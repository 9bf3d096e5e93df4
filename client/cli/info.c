/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

void info_json(struct json *j, const sar_info *info)
{
	char id[TEXT_BYTES];
	json_string(j, "id", text_id(id, info->id.bytes));
	json_string(j, "name", info->name);
	json_unsigned(j, "size", info->size);
	json_unsigned(j, "generation", info->generation);
	if (info->local_ready == UINT64_MAX)
		json_null(j, "local_ready");
	else
		json_unsigned(j, "local_ready", info->local_ready);
	json_unsigned(j, "copies", info->copies);
	json_unsigned(j, "partial", info->partial);
	json_bool(j, "inline", info->is_inline);
	json_bool(j, "making", info->making);
	json_unsigned(j, "lost", info->lost);
	if (info->lost == 0) {
		json_null(j, "lost_node");
		json_null(j, "down_ms");
		return;
	}
	json_unsigned(j, "lost_node", info->lost_node);
	json_unsigned(j, "down_ms", info->down_ns / 1000000);
}

const char *info_share(char out[TEXT_BYTES], uint64_t bytes, uint64_t size)
{
	if (bytes == UINT64_MAX)
		return "no";
	if (bytes >= size)
		return "yes";
	snprintf(out, TEXT_BYTES, "%u%%", (unsigned)(100.0 * (double)bytes / (double)size));
	return out;
}
