/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptions of arrays, for users. What they look like is internal/array_meta.h's. */
#include "sarissa/array.h"

#include <errno.h>
#include <string.h>
#include "error.h"
#include "internal/array_meta.h"

_Static_assert(SAR_ARRAY_DIMS_MAX == (int)ARRAY_META_DIMS &&
		       SAR_ARRAY_TYPE_MAX == (int)ARRAY_META_TEXT,
	       "what fits is the same here and there");

int sar_array_describe(const sar_array *array, void *meta)
{
	struct array_meta a = {.dtype = array->dtype, .order = array->order, .dims = array->dims};
	struct object_meta out;
	const char *type = array->type;
	size_t length;
	if (*type == '\0' && reduce_dtype_valid(a.dtype))
		type = array_meta_numpy(a.dtype);
	if ((a.dtype != 0 && !reduce_dtype_valid(a.dtype)) || *type == '\0')
		return error_set(-EINVAL,
				 "sar_array_describe: type %u: use one of enum sar_dtype, or 0 "
				 "and say in type which it is",
				 array->dtype);
	length = strnlen(type, sizeof(array->type));
	if (length < sizeof(a.text))
		memcpy(a.text, type, length);
	if (length < sizeof(a.text) && !array_meta_type(&a))
		return error_set(-EINVAL,
				 "sar_array_describe: type \"%s\" is not %s, which is \"%s\": "
				 "leave type empty, or set dtype to 0",
				 a.text, reduce_dtype_name(a.dtype), array_meta_numpy(a.dtype));
	if ((a.order != 'C' && a.order != 'F') || a.dims > SAR_ARRAY_DIMS_MAX)
		return error_set(-EINVAL,
				 "sar_array_describe: %u dimensions in order %d: use at most %d, "
				 "and order 'C' or 'F'",
				 a.dims, a.order, SAR_ARRAY_DIMS_MAX);
	memcpy(a.shape, array->shape, sizeof(a.shape));
	if (length == sizeof(a.text) || !array_meta_write(&a, &out))
		return error_set(-E2BIG,
				 "sar_array_describe: the type and %u dimensions do not fit %d "
				 "bytes: use a shorter type or fewer dimensions",
				 a.dims, SAR_META_MAX);
	memcpy(meta, out.data, out.bytes);
	return out.bytes;
}

int sar_array_parse(const void *meta, size_t meta_bytes, sar_array *out)
{
	struct object_meta in = {.bytes = (uint8_t)meta_bytes};
	struct array_meta a;
	if (meta_bytes > sizeof(in.data))
		in.bytes = 0;
	if (in.bytes > 0)
		memcpy(in.data, meta, in.bytes);
	if (!array_meta_read(&in, &a))
		return error_set(-ENOENT, "the metadata of the object describe no array: its "
					  "creator has put bytes");
	*out = (sar_array){.dtype = a.dtype, .order = a.order, .dims = a.dims};
	memcpy(out->shape, a.shape, sizeof(out->shape));
	memcpy(out->type, a.text, sizeof(out->type));
	return 0;
}
