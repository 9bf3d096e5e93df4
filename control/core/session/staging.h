/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that a client writes apart from the store, in memory of its own: clients that are not
 * trusted with a descriptor of the store (control_session_client). The shell keeps that memory;
 * what the client has called final is copied into the store, some of it in each control_copy, and
 * only then do readers see it. So what it writes later, or beyond, is seen by nobody.
 *
 * A creation begins with the object's slot (OBJECT_FLAG_STAGED) and ends with its seal or its
 * death. At another control it has no memory until its client has brought that along with RESUME.
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
	uint64_t upto; /* bytes before it are final; those before the watermark are copied */
	bool seal;     /* and with the last of them the object is complete */
};

struct creations {
	struct pool pool;
	struct list copying; /* whoever is next to have some bytes copied */
};

void creation_carve(struct creations *all, struct arena *a, const struct control_config *config);
/* Of the object in slot, in memory that is made for it or (brought) came along with the request.
 * 0 or -errno and why. */
int creation_start(struct control *c, struct session *s, uint32_t slot, bool brought,
		   struct text *why);
void creation_end(struct control *c, struct object *o);
/* A PUBLISH or SEAL that holds: it is answered when the bytes before watermark are in the store. */
void creation_await(struct control *c, struct session *s, const struct session_request *r,
		    uint64_t watermark);

/* Copies some of what the clients have called final. */
void creation_copies(struct control *c);

#endif
