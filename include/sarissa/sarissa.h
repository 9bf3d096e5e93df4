/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsarissa: put, get and delete immutable objects that live in the memory of a cluster's nodes.
 *
 * A process opens its node (the control process behind a unix socket), and then reads and writes
 * objects in memory that it shares with that node: no bytes pass through a socket. A handle may be
 * used by many threads at once; a buffer by one at a time.
 *
 * Errors: functions return 0 (or what they document) or a negative errno value; outputs are set
 * only on success. sar_strerror() gives the text for a person, sar_error_detail() the node's own
 * words about the last failure of the calling thread. What each code means everywhere:
 *   -EINVAL    an argument does not hold                -ENOENT     no such object (and no wait)
 *   -ETIMEDOUT the time is over; nothing is lost        -EEXIST     the id is in use
 *   -ENOSPC    the store is full                        -EFBIG      larger than the store
 *   -ECONNREFUSED, -ENOTCONN  the node's control process is not there
 *   -ESTALE    the object was deleted or evicted        -EMFILE     too many buffers in one handle
 *
 * Timeouts are in nanoseconds: 0 does not wait, SAR_FOREVER waits without limit.
 */
#ifndef SARISSA_H
#define SARISSA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SAR_ID_BYTES 16
#define SAR_NAME_MAX 255
#define SAR_FOREVER  INT64_MAX

typedef struct sar sar; /* a connection to the local node */

typedef struct sar_id {
	uint8_t bytes[SAR_ID_BYTES];
} sar_id;

/* Bytes of an object, mapped. Owned by the caller from the call that set it until sar_release (or
 * sar_seal and sar_abort for one under creation). reserved is the library's. */
typedef struct sar_buffer {
	void *data;	/* writable only between sar_create and sar_seal */
	uint64_t size;	/* bytes of the whole object */
	uint64_t ready; /* bytes readable from the start; refreshed by sar_wait */
	uint64_t reserved[5];
} sar_buffer;

typedef struct sar_info {
	sar_id id;
	uint64_t size; /* bytes */
	uint64_t generation;
	uint64_t local_ready; /* bytes readable on this node, UINT64_MAX when there is no copy here
			       */
	uint32_t copies;      /* complete copies in the cluster */
	uint32_t partial;     /* copies still arriving */
	char name[SAR_NAME_MAX + 1];
} sar_info;

/* The id of any key: XXH3-128, canonical (big-endian) byte order. */
sar_id sar_id_of(const void *key, size_t key_bytes);

/* Connects to the node at socket path, or, when NULL, at $SARISSA_SOCKET, or else at
 * /run/sarissa/control.sock. *out is closed with sar_close, which clears all its pins and aborts
 * what was being created. */
int sar_open(const char *path, sar **out);
void sar_close(sar *s);

/* Makes room for an object of size bytes, named (name may be NULL: known by id only), and maps it
 * writable. Visible to readers as it is published. */
int sar_create(sar *s, sar_id id, const char *name, uint64_t size, sar_buffer *out);
/* Says that bytes before ready are final: readers anywhere may have them now. Only grows. */
int sar_publish(sar *s, sar_buffer *b, uint64_t ready);
/* Makes the whole object final and gives up the mapping; the object stays. */
int sar_seal(sar *s, sar_buffer *b);
/* Gives up an object under creation: its space returns, its readers fail with -ESTALE. */
int sar_abort(sar *s, sar_buffer *b);
/* sar_create, copy, sar_seal. */
int sar_put(sar *s, sar_id id, const char *name, const void *data, uint64_t size);

/* The whole object, waiting for it to exist and to arrive. Read-only until sar_release. For an
 * object that is complete on this node no system call is made. */
int sar_get(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out);
/* The same without waiting for the bytes: returns as soon as the size is known. Read up to
 * out->ready, then sar_wait for more. */
int sar_get_begin(sar *s, sar_id id, int64_t timeout_ns, sar_buffer *out);
/* Waits until at least upto bytes are readable (upto > size means the whole); sets b->ready. */
int sar_wait(sar *s, sar_buffer *b, uint64_t upto, int64_t timeout_ns);
/* Ends the use of a buffer from sar_get or sar_get_begin; its memory may go away at once. */
void sar_release(sar *s, sar_buffer *b);

/* Removes every copy in the cluster. Buffers in use stay readable until released. */
int sar_delete(sar *s, sar_id id);
/* What the directory knows. -ENOENT when it knows nothing. */
int sar_info_get(sar *s, sar_id id, sar_info *out);
/* Calls fn for each object of the cluster until it returns non-zero, which is then returned. */
int sar_list(sar *s, int (*fn)(const sar_info *info, void *arg), void *arg);

const char *sar_strerror(int error);
const char *sar_error_detail(void);

#ifdef __cplusplus
}
#endif
#endif
