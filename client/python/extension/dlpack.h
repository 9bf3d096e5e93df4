/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DLPack's structs, as its specification (1.0) lays them out: how libraries of arrays hand memory
 * to one another. For dlpack.c only.
 */
#ifndef SARISSA_CLIENT_PYTHON_EXTENSION_DLPACK_H
#define SARISSA_CLIENT_PYTHON_EXTENSION_DLPACK_H

#include <stdint.h>

enum { DLPACK_CPU = 1, DLPACK_CUDA_HOST = 3 }; /* devices whose memory we can read */
enum { DLPACK_READ_ONLY = 1 };		       /* a flag */
enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0, DLPACK_DIMENSIONS_MAX = 64 };

struct dlpack_tensor {
	void *data;
	int32_t device_type;
	int32_t device_id;
	int32_t dimensions;
	uint8_t type_code;
	uint8_t type_bits;
	uint16_t type_lanes;
	int64_t *shape;
	int64_t *strides; /* elements; NULL: C order */
	uint64_t byte_offset;
};

struct dlpack_managed {
	struct dlpack_tensor tensor;
	void *context;
	void (*deleter)(struct dlpack_managed *self);
};

struct dlpack_versioned {
	uint32_t major;
	uint32_t minor;
	void *context;
	void (*deleter)(struct dlpack_versioned *self);
	uint64_t flags;
	struct dlpack_tensor tensor;
};

#endif
