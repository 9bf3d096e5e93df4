/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of fetches for the modules above, which have waits for objects. Defined in wiring.c. */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_EVENTS_H
#define SARISSA_CONTROL_CORE_TRANSFER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct object;
struct object_id;
struct await;

/* The object of the wait has its place in the store; the wait ends; there is no such
 * object, as far as is known. */
void wiring_wait_placed(struct control *c, struct await *w, uint32_t slot);
void wiring_wait_ended(struct control *c, struct await *w, int32_t status, const char *text);
void wiring_wait_absent(struct control *c, struct await *w, int32_t status, const char *text);
/* Whether a participant or a creation of this node has not completed the object, or
 * withholds its last chunk. */
bool wiring_unfinished(const struct object *o);

#endif
