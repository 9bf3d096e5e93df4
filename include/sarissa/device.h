/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects into and out of the memory of a GPU, by the CUDA driver (libcuda.so.1), which is loaded
 * by the first of these calls. No other call looks for it.
 *
 *     sar_device_get(s, id, (uint64_t)pointer, bytes, stream, SAR_FOREVER, NULL);
 *     sar_device_put(s, id, "weights", (uint64_t)pointer, bytes, stream, NULL);
 *
 * An object is copied to the device while it still arrives on this node. The node's store is
 * registered with the driver, in windows of 64 MiB when a copy first needs one, so the device reads
 * it at the speed of its bus. Where the driver registers no such memory, the copies go through the
 * driver's own buffers: slower, and otherwise the same. sar_close undoes the registration.
 *
 * `memory` is an address that cuMemAlloc, or the runtime's cudaMalloc, has given in this process,
 * or one inside of such memory. `stream` is a CUstream or cudaStream_t of the same device; NULL:
 * the default stream. Copies take their place in the stream, behind what is in it already.
 */
#ifndef SARISSA_DEVICE_H
#define SARISSA_DEVICE_H

#include "sarissa.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Waits as sar_get does, and copies the object's bytes into the memory of a device. They are there
 * when the call returns. The object is not in use then.
 *
 * Shapes: the object has at most `bytes` bytes. timeout_ns is for the object's arrival; copies that
 * have begun are waited for. *size, unless it is NULL, is how many bytes the object has.
 * Ownership: memory and stream stay the caller's. After an error the memory may have been written.
 * Errors: those of sar_get. SAR_E_NO_DEVICE. SAR_E_DEVICE. SAR_E_INVALID `memory` is no memory of a
 * device. SAR_E_RANGE the object has more bytes.
 */
int sar_device_get(sar *s, sar_id id, uint64_t memory, uint64_t bytes, void *stream,
		   int64_t timeout_ns, uint64_t *size);

/*
 * Makes an object of bytes in the memory of a device. Readers on any node may have the first bytes
 * while the rest is copied.
 *
 * Shapes: bytes at memory, which may be 0 for 0 bytes; name and options as of sar_create_with.
 * Ownership: memory and stream stay the caller's. The object is aborted after an error.
 * Errors: those of sar_create_with. SAR_E_NO_DEVICE. SAR_E_DEVICE. SAR_E_INVALID `memory` is no
 * memory of a device.
 */
int sar_device_put(sar *s, sar_id id, const char *name, uint64_t memory, uint64_t bytes,
		   void *stream, const sar_put_options *options);

/*
 * Registers all of the node's store with the driver now, so that no copy has to do it: some tenths
 * of a second per GiB. Says why where the driver does not.
 *
 * Shapes: device is a number as the driver has it, from 0 on.
 * Errors: SAR_E_NO_DEVICE no CUDA driver, or no device of that number. SAR_E_DEVICE the driver
 * does not register the store; sar_device_get works without.
 */
int sar_device_register(sar *s, int device);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
