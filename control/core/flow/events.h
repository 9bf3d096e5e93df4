/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the buffers tell the rooms above them: whose object it is that they lie over, and who has
 * made their edges. One table, in wiring.c.
 */
#ifndef SARISSA_CONTROL_CORE_FLOW_EVENTS_H
#define SARISSA_CONTROL_CORE_FLOW_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct edge;
struct part;
struct stage;

struct flow_ops {
	/* A stage touches the object in slot from now on; does so no more. */
	void (*held)(struct control *c, uint32_t slot);
	void (*released)(struct control *c, uint32_t slot);
	/* It is the object's own, or one beside that; it may not be used any more. */
	void (*opened)(struct control *c, struct stage *head);
	void (*mirrored)(struct control *c, struct stage *head);
	void (*closed)(struct control *c, struct stage *head);
	/* Whether it is the object's own, and that is still arriving. */
	bool (*arriving)(struct control *c, const struct stage *head);
	/* Which of the parts of a sum it is; -1: what it feeds is not added up. */
	int32_t (*addend)(const struct part *part);
	/* More bytes are there; all are. */
	void (*progress)(struct control *c, uint32_t slot);
	void (*arrived)(struct control *c, uint32_t slot);
	/* It has ended by itself. */
	void (*lost)(struct control *c, struct stage *head);
	/* All of an IN edge has come; an edge has ended, done or failed; its path cannot carry a
	 * chunk. */
	void (*brought)(struct control *c, struct edge *e);
	void (*edge_ended)(struct control *c, struct edge *e);
	void (*narrow)(struct control *c, struct edge *e, unsigned worker);
};

#endif
