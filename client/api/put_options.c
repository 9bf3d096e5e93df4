/* SPDX-License-Identifier: BSD-3-Clause */
#include "put_options.h"

#include <errno.h>
#include <string.h>
#include "error.h"
#include "internal/array_meta.h"

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

int put_options_read(const sar_put_options *options, struct object_meta *out)
{
	struct array_meta array;
	out->bytes = 0;
	if (!options)
		return 0;
	if (options->size < sizeof(*options))
		return error_set(-EINVAL,
				 "the options have size %zu: set it to "
				 "sizeof(sar_put_options)",
				 options->size);
	if (put_options_newer(options))
		return error_set(-EINVAL, "the options say what this library does not know: use a "
					  "library of that version");
	if (options->meta_bytes > SAR_META_MAX || (options->meta_bytes > 0 && !options->meta))
		return error_set(-EINVAL,
				 "%zu bytes of metadata: give at most %d, and put the "
				 "rest into the object",
				 options->meta_bytes, SAR_META_MAX);
	out->bytes = (uint8_t)options->meta_bytes;
	if (out->bytes > 0)
		memcpy(out->data, options->meta, out->bytes);
	if (array_meta_marked(out) && !array_meta_read(out, &array))
		return error_set(-EINVAL, "metadata that begin with 0xa1 describe an array, and "
					  "these do not: write them with sar_array_describe");
	return 0;
}
