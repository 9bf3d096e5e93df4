/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

static void info_json_lease(struct json *j, const sar_info *info, const sar_lease_info *lease)
{
	json_unsigned(j, "leases", info->leases);
	if (lease) {
		json_string(j, "lease", lease->name);
		json_unsigned(j, "lease_node", lease->node);
	} else {
		json_null(j, "lease");
		json_null(j, "lease_node");
	}
	if (lease && lease->ending)
		json_unsigned(j, "lease_left_ns", lease->left_ns);
	else
		json_null(j, "lease_left_ns");
	if (info->expires_ns)
		json_unsigned(j, "expires_ns", info->expires_ns);
	else
		json_null(j, "expires_ns");
}

const char *info_owner(char *out, size_t room, const sar_info *info, const sar_lease_info *lease)
{
	if (!lease)
		return "-";
	int used = snprintf(out, room, "%s@%u", lease->name, lease->node);
	if (info->leases > 1 && used > 0 && (size_t)used < room)
		snprintf(out + used, room - (size_t)used, " +%u", info->leases - 1);
	return out;
}

const char *info_expiry(char out[TEXT_BYTES], const sar_info *info)
{
	if (info->expires_ns == 0)
		return "-";
	snprintf(out, TEXT_BYTES, "%llu s",
		 (unsigned long long)((info->expires_ns + 999999999) / 1000000000));
	return out;
}

static bool info_array(const sar_info *info, struct array_meta *out)
{
	struct object_meta meta = {.bytes = (uint8_t)info->meta_bytes};
	memcpy(meta.data, info->meta, info->meta_bytes);
	return array_meta_read(&meta, out);
}

const char *info_meta(char out[INFO_META_BYTES], const sar_info *info)
{
	struct array_meta array;
	if (info->meta_bytes == 0)
		return "-";
	if (info_array(info, &array))
		return array_meta_show(&array, out);
	snprintf(out, INFO_META_BYTES, "%u bytes", (unsigned)info->meta_bytes);
	return out;
}

/* The bytes, and what they say of an array. */
static void info_json_meta(struct json *j, const sar_info *info)
{
	struct array_meta array;
	char hex[2 * SAR_META_MAX + 1] = "";
	for (uint64_t i = 0; i < info->meta_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", info->meta[i]);
	json_string(j, "meta", hex);
	if (!info_array(info, &array)) {
		json_null(j, "array");
		return;
	}
	json_object(j, "array");
	if (array.dtype)
		json_string(j, "dtype", reduce_dtype_name(array.dtype));
	else
		json_null(j, "dtype");
	json_string(j, "type", array.text);
	json_array(j, "shape");
	for (uint32_t i = 0; i < array.dims; i++)
		json_unsigned(j, NULL, array.shape[i]);
	json_close(j, ']');
	json_string(j, "order", array.order == 'F' ? "F" : "C");
	json_close(j, '}');
}

void info_json(struct json *j, const sar_info *info, const sar_lease_info *lease)
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
	info_json_meta(j, info);
	info_json_lease(j, info, lease);
	json_unsigned(j, "lost", info->lost);
	if (info->lost == 0) {
		json_null(j, "lost_node");
		json_null(j, "down_ns");
		return;
	}
	json_unsigned(j, "lost_node", info->lost_node);
	json_unsigned(j, "down_ns", info->down_ns);
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
