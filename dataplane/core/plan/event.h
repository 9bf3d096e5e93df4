/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine has to tell control: a ring that never overflows, as each thing has at most its
 * own few events in it.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_EVENT_H
#define SARISSA_DATAPLANE_CORE_PLAN_EVENT_H

#include "core/engine.h"

struct record *event_push(struct engine *e, enum event_op op);
/* Is there room for so many, beside what everything that exists now may have to say? */
bool event_spare(const struct engine *e, uint32_t records);

#endif
