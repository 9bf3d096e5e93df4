/* SPDX-License-Identifier: BSD-3-Clause */
#include "put_options.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "error.h"
#include "internal/array_meta.h"
#include "internal/session.h"

/* The first version of the struct. */
#define PUT_OPTIONS_BYTES_MIN (offsetof(sar_put_options, meta_bytes) + sizeof(size_t))

_Static_assert(SAR_META_MAX == OBJECT_META_BYTES, "as many bytes here and there");

/* Whether a later version of the struct says something that this library does not know. */
static bool put_options_newer(const sar_put_options *options)
{
	const uint8_t *bytes = (const uint8_t *)options;
	for (size_t i = sizeof(*options); i < options->size; i++)
		if (bytes[i] != 0)
			return true;
	return false;
}

static int put_options_meta(const sar_put_options *options)
{
	struct object_meta meta = {0};
	struct array_meta array;
	if (options->meta_bytes > SAR_META_MAX || (options->meta_bytes > 0 && !options->meta))
		return error_set(-EINVAL,
				 "%zu bytes of metadata: give at most %d, and put the "
				 "rest into the object",
				 options->meta_bytes, SAR_META_MAX);
	if (options->meta_bytes == 0)
		return 0;
	meta.bytes = (uint8_t)options->meta_bytes;
	memcpy(meta.data, options->meta, meta.bytes);
	if (array_meta_marked(&meta) && !array_meta_read(&meta, &array))
		return error_set(-EINVAL, "metadata that begin with 0xa1 describe an array, and "
					  "these do not: write them with sar_array_describe");
	return 0;
}

int put_options_read(const sar_put_options *options, sar_put_options *out)
{
	*out = (sar_put_options){0};
	if (!options)
		return 0;
	if (options->size < PUT_OPTIONS_BYTES_MIN)
		return error_set(-EINVAL,
				 "the options have size %zu: set it to "
				 "sizeof(sar_put_options)",
				 options->size);
	if (put_options_newer(options))
		return error_set(-E2BIG, "the options say what this library does not know: use a "
					 "library of that version");
	memcpy(out, options, options->size < sizeof(*out) ? options->size : sizeof(*out));
	if (out->copies || out->flags)
		return error_set(-ENOTSUP, "copies and flags of the options are for a later "
					   "version: leave them 0");
	if (out->timeout_ns < 0 || out->ttl_ns < 0 || (uint64_t)out->ttl_ns > SESSION_LEASE_NS_MAX)
		return error_set(-EINVAL, "a time of the options is out of range: timeout_ns is "
					  "not negative, and ttl_ns at most ten years");
	return put_options_meta(out);
}
