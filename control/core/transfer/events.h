/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fetches tell the rooms above them: who waits for an object. One table, in wiring.c. */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_EVENTS_H
#define SARISSA_CONTROL_CORE_TRANSFER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct object;
struct object_id;
struct await;

struct transfer_ops {
	/* What it waits for has its place; it ends so; there is no such object, as far as is known.
	 */
	void (*wait_placed)(struct control *c, struct await *w, uint32_t slot);
	void (*wait_ended)(struct control *c, struct await *w, int32_t status, const char *text);
	void (*wait_absent)(struct control *c, struct await *w, int32_t status, const char *text);
	/* Whether what makes it, which is no fetch, has not all of it yet, or holds its last chunk.
	 */
	bool (*unfinished)(const struct object *o);
	/* An object is asked for: whether it is the target of a reduce that is coordinated here. */
	bool (*made_here)(struct control *c, const struct object_id *id);
};

#endif
