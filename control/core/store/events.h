/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the store tells the modules above it, which make and read its objects. Defined in
 * wiring.c.
 */
#ifndef SARISSA_CONTROL_CORE_STORE_EVENTS_H
#define SARISSA_CONTROL_CORE_STORE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message_have;
struct object;
struct object_id;

/* The object is killed: its readers lose it, its fetch or participant must stop. */
void wiring_killed(struct control *c, struct object *o, const char *why);
/* Local waits for the object end with this status; nothing else ends. */
void wiring_failed(struct control *c, struct object *o, int32_t status, const char *why);
/* The table has no object of this id any more. */
void wiring_gone(struct control *c, const struct object_id *id);
/* The object is final. */
void wiring_sealed(struct control *c, struct object *o);
/* More bytes of the object can be read, or it is final. */
void wiring_progress(struct control *c, struct object *o);
/* The owner has acknowledged the complete object; has refused one that a participant
 * builds. */
void wiring_announced(struct control *c, struct object *o);
void wiring_refused(struct control *c, struct object *o, int32_t status);
/* The owner knows a coordinator of the object's reduce. */
void wiring_led(struct control *c, struct object *o);
/* Fills in the nodes that feed the object here. */
void wiring_upstreams(struct control *c, const struct object *o, struct message_have *have);
/* Continues a fetch of an earlier control process. False: it cannot. */
bool wiring_adopt(struct control *c, uint32_t slot);
/* There may be room now: nodes of pinned replicas have answered. */
void wiring_room(struct control *c);

#endif
