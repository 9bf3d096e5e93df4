/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metadata that buffers point to. The object table that clients map does not show metadata:
 * control tells them with its answer to a GET. Those of recent objects are remembered, so that the
 * next get of an object that is here asks nobody. Any thread.
 */
#ifndef SARISSA_CLIENT_DESCRIBED_H
#define SARISSA_CLIENT_DESCRIBED_H

#include <pthread.h>
#include "internal/session.h"
#include "sarissa/sarissa.h"

enum { DESCRIBED_RECENT = 1024 }; /* a power of two */

struct described {
	pthread_mutex_t lock;
	struct described_one {
		struct object_id id;
		uint64_t generation; /* 0: none */
		struct object_meta meta;
	} recent[DESCRIBED_RECENT];		 /* by id */
	struct object_meta of_pin[SESSION_PINS]; /* of the buffer that has the pin */
};

/* Notes the metadata of an object. */
void described_add(struct described *d, const struct object_id *id, uint64_t generation,
		   const struct object_meta *meta);
/* The metadata of an object, if they are remembered. */
bool described_find(struct described *d, const struct object_id *id, uint64_t generation,
		    struct object_meta *out);
/* Gives the buffer that has the pin these metadata. */
void described_set(struct described *d, uint32_t pin, const struct object_meta *meta,
		   sar_buffer *out);
/* What the options of a put or create say; NULL: none. 0, or -EINVAL. */
int described_options(const sar_put_options *options, struct object_meta *out);

#endif
