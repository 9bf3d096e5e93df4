/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arrays in objects: an object whose bytes are the elements of an array, and whose metadata
 * (sar_put_options) say which type, shape and order they have. Python's put writes such objects,
 * and its get reads them. A reduce compares the descriptions of its sources, and gives its result
 * their description.
 *
 *     sar_array a = {.dtype = SAR_F32, .order = 'C', .dims = 2, .shape = {1000, 1000}};
 *     uint8_t meta[SAR_META_MAX];
 *     int n = sar_array_describe(&a, meta);
 *     sar_put_options options = {.size = sizeof(options), .meta = meta, .meta_bytes = (size_t)n};
 *     sar_put_with(s, id, "weights", data, 4000000, &options);
 *
 * The description, in at most SAR_META_MAX bytes: 0xA1; the type as enum sar_dtype, or 0 for
 * another type; 'C' or 'F'; the number of dimensions; the length T of the text of the type; three
 * bytes 0; for each dimension its length in 8 bytes, low byte first; T bytes of the text. Metadata
 * that do not begin with 0xA1 are the caller's own, and no description.
 */
#ifndef SARISSA_ARRAY_H
#define SARISSA_ARRAY_H

#include "sarissa.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define SAR_ARRAY_DIMS_MAX 8
#define SAR_ARRAY_TYPE_MAX 120 /* bytes, without the terminating zero */

typedef struct sar_array {
	uint32_t dtype; /* enum sar_dtype; 0: another type, which `type` names */
	char order;	/* of the elements: 'C' the last index varies fastest, 'F' the first */
	uint32_t dims;	/* dimensions; 0: one element */
	uint64_t shape[SAR_ARRAY_DIMS_MAX];
	char type[SAR_ARRAY_TYPE_MAX + 1]; /* as numpy writes it: "<f4", ">i8", "|b1", "<M8[ns]",
					    * "bfloat16", or a list of fields */
	uint64_t reserved[4];		   /* zero */
} sar_array;

/*
 * Writes the description of an array. With a dtype, `type` may be empty: numpy's text is written.
 * With dtype 0, a text that means one of enum sar_dtype ("<f4") sets it.
 *
 * Shapes: meta has room for SAR_META_MAX bytes. Returns how many are set.
 * Ownership: nothing is used after the call.
 * Errors: SAR_E_INVALID dtype, order or dims is out of range, dtype is 0 and type empty, or type
 * means another type than dtype. SAR_E_TOO_LONG the description does not fit: type is too long.
 */
int sar_array_describe(const sar_array *array, void *meta);

/*
 * Reads the description of an array, from sar_buffer or sar_info.
 *
 * Shapes: any meta_bytes bytes; meta may be NULL for 0 bytes.
 * Errors: SAR_E_NOT_FOUND these metadata describe no array.
 */
int sar_array_parse(const void *meta, size_t meta_bytes, sar_array *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
