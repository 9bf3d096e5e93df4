/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The description of an array in the metadata of its object (include/sarissa/array.h says what it
 * means): how it is written and read. Used by the library and by control, which compares what the
 * sources of a reduce are. Pure functions; the bytes may come from anywhere.
 *
 *   byte 0      ARRAY_META_MARK
 *   byte 1      enum reduce_dtype; 0: another type, which the text names
 *   byte 2      'C' or 'F': the order of the elements
 *   byte 3      number of dimensions
 *   byte 4      length of the text
 *   bytes 5-7   0
 *   then        a length for each dimension, 8 bytes each, low byte first
 *   then        the text of the type, without a zero byte
 */
#ifndef SARISSA_INCLUDE_INTERNAL_ARRAY_META_H
#define SARISSA_INCLUDE_INTERNAL_ARRAY_META_H

#include <string.h>
#include "object_meta.h"
#include "reduce.h"

enum {
	ARRAY_META_MARK = 0xa1,
	ARRAY_META_HEAD = 8,
	ARRAY_META_DIMS = 8,
	ARRAY_META_TEXT = OBJECT_META_BYTES - ARRAY_META_HEAD,
};

struct array_meta {
	uint32_t dtype; /* enum reduce_dtype, or 0 */
	char order;
	uint32_t dims;
	uint64_t shape[ARRAY_META_DIMS];
	char text[ARRAY_META_TEXT + 1];
};

/* numpy's name of a type: the one text that means it. NULL: there is no such type. */
static inline const char *array_meta_numpy(uint32_t dtype)
{
	static const char *const names[REDUCE_DTYPE_END] = {
		[REDUCE_F16] = "<f2", [REDUCE_BF16] = "bfloat16", [REDUCE_F32] = "<f4",
		[REDUCE_F64] = "<f8", [REDUCE_I8] = "|i1",	  [REDUCE_I16] = "<i2",
		[REDUCE_I32] = "<i4", [REDUCE_I64] = "<i8",	  [REDUCE_U8] = "|u1",
		[REDUCE_U16] = "<u2", [REDUCE_U32] = "<u4",	  [REDUCE_U64] = "<u8",
	};
	return dtype < REDUCE_DTYPE_END ? names[dtype] : NULL;
}

/* Whether the dtype and the text name one type. A text that means a dtype sets it. */
static inline bool array_meta_type(struct array_meta *a)
{
	if (*a->text == '\0')
		return reduce_dtype_valid(a->dtype);
	for (uint32_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++)
		if (strcmp(a->text, array_meta_numpy(dtype)) == 0) {
			if (a->dtype == 0)
				a->dtype = dtype;
			return a->dtype == dtype;
		}
	return a->dtype == 0;
}

/* Whether the metadata says that it describes an array, rightly or not. */
static inline bool array_meta_marked(const struct object_meta *meta)
{
	return meta->bytes > 0 && meta->data[0] == ARRAY_META_MARK;
}

/* Reads a description. False: it is none. */
static inline bool array_meta_read(const struct object_meta *meta, struct array_meta *out)
{
	const uint8_t *in = meta->data;
	uint32_t at = ARRAY_META_HEAD, text;

	if (!array_meta_marked(meta) || meta->bytes > OBJECT_META_BYTES ||
	    meta->bytes < ARRAY_META_HEAD)
		return false;
	*out = (struct array_meta){.dtype = in[1], .order = (char)in[2], .dims = in[3]};
	text = in[4];
	if ((in[2] != 'C' && in[2] != 'F') || in[3] > ARRAY_META_DIMS || in[5] || in[6] || in[7] ||
	    meta->bytes != at + 8 * out->dims + text)
		return false;
	for (uint32_t i = 0; i < out->dims; i++, at += 8)
		for (uint32_t k = 0; k < 8; k++)
			out->shape[i] |= (uint64_t)in[at + k] << 8 * k;
	memcpy(out->text, in + at, text);
	return !memchr(out->text, 0, text) && array_meta_type(out);
}

/* Writes a description. False: it does not fit, or is none. */
static inline bool array_meta_write(const struct array_meta *a, struct object_meta *out)
{
	size_t text = strnlen(a->text, sizeof(a->text));
	struct array_meta typed = *a;
	uint32_t at = ARRAY_META_HEAD;

	if (text > ARRAY_META_TEXT || !array_meta_type(&typed) ||
	    (a->order != 'C' && a->order != 'F') || a->dims > ARRAY_META_DIMS ||
	    at + 8 * a->dims + text > OBJECT_META_BYTES)
		return false;
	*out = (struct object_meta){.bytes = (uint8_t)(at + 8 * a->dims + text),
				    .data = {ARRAY_META_MARK, (uint8_t)typed.dtype,
					     (uint8_t)a->order, (uint8_t)a->dims, (uint8_t)text}};
	for (uint32_t i = 0; i < a->dims; i++, at += 8)
		for (uint32_t k = 0; k < 8; k++)
			out->data[at + k] = (uint8_t)(a->shape[i] >> 8 * k);
	memcpy(out->data + at, a->text, text);
	return true;
}

/* Bytes of an element, which the dtype tells or a text such as ">f4", "<U5", "<M8[ns]"; 0: not
 * known. */
static inline uint32_t array_meta_element(const struct array_meta *a)
{
	const char *at = a->text + (*a->text != '\0' && strchr("<>|=", *a->text));
	uint32_t bytes = 0, unit = *at == 'U' ? 4 : 1;

	if (a->dtype)
		return reduce_dtype_bytes(a->dtype);
	if (*at == '\0' || !strchr("biufcmMSUV", *at))
		return 0;
	for (at++; *at >= '0' && *at <= '9' && bytes < UINT32_MAX / 100; at++)
		bytes = 10 * bytes + (uint32_t)(*at - '0');
	return *at == '\0' || *at == '[' ? unit * bytes : 0;
}

/* Bytes of the array, if an element of unknown size has one; UINT64_MAX: too many. */
static inline uint64_t array_meta_bytes(const struct array_meta *a)
{
	uint32_t element = array_meta_element(a);
	uint64_t bytes = element ? element : 1;

	for (uint32_t i = 0; i < a->dims; i++)
		if (a->shape[i] == 0)
			return 0;
	for (uint32_t i = 0; i < a->dims; i++) {
		if (a->shape[i] > (UINT64_MAX - 1) / bytes)
			return UINT64_MAX;
		bytes *= a->shape[i];
	}
	return bytes;
}

/* Whether an object of so many bytes can be the array. */
static inline bool array_meta_fits(const struct array_meta *a, uint64_t size)
{
	uint64_t bytes = array_meta_bytes(a);

	return bytes == size || (bytes < size && bytes > 0 && array_meta_element(a) == 0);
}

enum { ARRAY_META_SHOWN = ARRAY_META_TEXT + 24 * ARRAY_META_DIMS + 8 };

static inline char *array_meta_add(char *to, const char *text)
{
	while (*text) {
		*to++ = (uint8_t)*text < ' ' || *text == 0x7f ? '?' : *text;
		text++;
	}
	*to = '\0';
	return to;
}

/* For people: "f32[1000,1000]", "<M8[ns][3]"; an F after it tells the order. Returns out. */
static inline const char *array_meta_show(const struct array_meta *a, char out[ARRAY_META_SHOWN])
{
	char *to = array_meta_add(out, a->dtype ? reduce_dtype_name(a->dtype) : a->text);

	to = array_meta_add(to, "[");
	for (uint32_t i = 0; i < a->dims; i++) {
		char digits[21];
		char *at = digits + sizeof(digits) - 1;
		uint64_t left = a->shape[i];

		*at = '\0';
		do
			*--at = (char)('0' + left % 10);
		while ((left /= 10) > 0);
		to = array_meta_add(array_meta_add(to, i ? "," : ""), at);
	}
	array_meta_add(to, a->order == 'F' && a->dims > 1 ? "]F" : "]");
	return out;
}

#endif
