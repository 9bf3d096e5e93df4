/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private staging buffers: memory in which a client writes an object, if it must not write to the
 * store (control_session_client). The shell owns the memory. Bytes that the client has published
 * are copied into the store, some in each control_copy; only then do readers see them, and later
 * writes change nothing. Called by put.c and control.c.
 *
 * A creation begins with the object's slot (OBJECT_FLAG_STAGED), and ends with its seal or its
 * death. At another control it has no memory until the client brings it with RESUME.
 */
#ifndef SARISSA_CONTROL_CORE_SESSION_STAGING_H
#define SARISSA_CONTROL_CORE_SESSION_STAGING_H

#include "core/base/list.h"
#include "core/base/arena.h"

struct control;
struct control_config;
struct object;
struct session;
struct session_request;
struct text;

struct creation {
	struct list link; /* on creations.copying */
	struct session *session;
	struct object *object;
	uint64_t upto; /* bytes before it are final; bytes before the watermark are copied */
	bool seal;     /* the object is complete when all of them are copied */
};

struct creations {
	struct pool pool;
	struct list copying; /* creations with bytes to copy, the next one first */
};

void staging_carve(struct creations *all, struct arena *a, const struct control_config *config);
/* Begins the creation of the object in slot, in new memory or (brought) in memory that came with
 * the request. 0, or -errno and the text. */
int staging_start(struct control *c, struct session *s, uint32_t slot, bool brought,
		  struct text *why);
void staging_end(struct control *c, struct object *o);
/* A valid PUBLISH or SEAL: it is answered when the bytes before watermark are in the store. */
void staging_await(struct control *c, struct session *s, const struct session_request *r,
		   uint64_t watermark);

/* Copies some of the published bytes. */
void staging_copies(struct control *c);

#endif
