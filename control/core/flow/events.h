/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the buffers tell the modules above, which own the objects under them and have made their
 * edges. Defined in wiring.c.
 */
#ifndef SARISSA_CONTROL_CORE_FLOW_EVENTS_H
#define SARISSA_CONTROL_CORE_FLOW_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct edge;
struct part;
struct stage;

/* A stage uses the memory of the object in slot; it does not any more. */
void wiring_held(struct control *c, uint32_t slot);
void wiring_released(struct control *c, uint32_t slot);
/* The stage is the object's own; it is a mirror; it must not be used any more. */
void wiring_opened(struct control *c, struct stage *head);
void wiring_mirrored(struct control *c, struct stage *head);
void wiring_closed(struct control *c, struct stage *head);
/* Whether the stage is the object's own, and the object is still arriving. */
bool wiring_arriving(struct control *c, const struct stage *head);
/* Index of the part in its sum; -1: it is not added up. */
int32_t wiring_addend(const struct part *part);
/* More bytes of the object are ready; all are. */
void wiring_ready(struct control *c, uint32_t slot);
void wiring_arrived(struct control *c, uint32_t slot);
/* A worker has lost the stage. */
void wiring_lost(struct control *c, struct stage *head);
/* All chunks of an IN edge have come; an edge has ended, done or failed. */
void wiring_brought(struct control *c, struct edge *e);
void wiring_edge_ended(struct control *c, struct edge *e);

#endif
