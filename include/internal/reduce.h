/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a reduce computes: operations and element types, as numbers that stand in records and
 * messages and as names that users write. The numbers are part of those formats and never change;
 * zero is no operation and no type. Pure functions, callable by anyone with any value: what is
 * unknown gives 0 or NULL.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_REDUCE_H
#define SARISSA_INCLUDE_INTERNAL_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum reduce_op {
	REDUCE_SUM = 1,
	REDUCE_PROD,
	REDUCE_MIN,
	REDUCE_MAX,
	REDUCE_AVG, /* a sum on the way; its root divides by the number of sources */
	REDUCE_OP_END,
};

enum reduce_dtype {
	REDUCE_F16 = 1, /* IEEE 754 binary16 */
	REDUCE_BF16,	/* the upper half of a binary32 */
	REDUCE_F32,
	REDUCE_F64,
	REDUCE_I8,
	REDUCE_I16,
	REDUCE_I32,
	REDUCE_I64,
	REDUCE_U8,
	REDUCE_U16,
	REDUCE_U32,
	REDUCE_U64,
	REDUCE_DTYPE_END,
};

enum { REDUCE_ELEMENT_BYTES_MAX = 8 };

/* The names in the order of the numbers, for options. */
#define REDUCE_OP_WORDS	   "sum prod min max avg"
#define REDUCE_DTYPE_WORDS "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"

static inline const char *reduce_op_name(uint32_t op)
{
	static const char *const names[REDUCE_OP_END] = {
		[REDUCE_SUM] = "sum", [REDUCE_PROD] = "prod", [REDUCE_MIN] = "min",
		[REDUCE_MAX] = "max", [REDUCE_AVG] = "avg",
	};
	return op < REDUCE_OP_END ? names[op] : NULL;
}

static inline const char *reduce_dtype_name(uint32_t dtype)
{
	static const char *const names[REDUCE_DTYPE_END] = {
		[REDUCE_F16] = "f16", [REDUCE_BF16] = "bf16", [REDUCE_F32] = "f32",
		[REDUCE_F64] = "f64", [REDUCE_I8] = "i8",     [REDUCE_I16] = "i16",
		[REDUCE_I32] = "i32", [REDUCE_I64] = "i64",   [REDUCE_U8] = "u8",
		[REDUCE_U16] = "u16", [REDUCE_U32] = "u32",   [REDUCE_U64] = "u64",
	};
	return dtype < REDUCE_DTYPE_END ? names[dtype] : NULL;
}

/* Bytes of an element, a power of two; 0: no such type. */
static inline uint32_t reduce_dtype_bytes(uint32_t dtype)
{
	static const uint8_t bytes[REDUCE_DTYPE_END] = {
		[REDUCE_F16] = 2, [REDUCE_BF16] = 2, [REDUCE_F32] = 4, [REDUCE_F64] = 8,
		[REDUCE_I8] = 1,  [REDUCE_I16] = 2,  [REDUCE_I32] = 4, [REDUCE_I64] = 8,
		[REDUCE_U8] = 1,  [REDUCE_U16] = 2,  [REDUCE_U32] = 4, [REDUCE_U64] = 8,
	};
	return dtype < REDUCE_DTYPE_END ? bytes[dtype] : 0;
}

static inline bool reduce_op_valid(uint32_t op)
{
	return reduce_op_name(op) != NULL;
}

static inline bool reduce_dtype_valid(uint32_t dtype)
{
	return reduce_dtype_name(dtype) != NULL;
}

/* The number of a name, exactly as written above; 0: none, or name is NULL. */
static inline uint32_t reduce_op_find(const char *name)
{
	for (uint32_t op = 1; name && op < REDUCE_OP_END; op++)
		if (strcmp(name, reduce_op_name(op)) == 0)
			return op;
	return 0;
}

#endif
