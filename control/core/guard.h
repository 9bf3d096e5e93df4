/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last copy of an object must not be evicted. One copy of each object is its guard: the one
 * that was put, and when its node is lost, the copy that the directory appoints. A guard is never
 * evicted (OBJECT_FLAG_PRIMARY). Another copy may be evicted only while this node knows a guard
 * elsewhere that lives; when that one dies, the copy stays until the directory has named another,
 * or it.
 *
 * The directory names them in its answers to HAVE. What one node is told stays true without any
 * word more: a guard does not give its copy up by itself.
 */
#ifndef SARISSA_CONTROL_CORE_GUARD_H
#define SARISSA_CONTROL_CORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct control;
struct message_have;
struct object;

/* Whether another node is known to keep the object. */
bool guard_elsewhere(struct control *c, const struct object *o);
/* Sets what a HAVE says about it. */
void guard_describe(struct control *c, uint32_t slot, struct message_have *have);
/* The directory's answer: node + 1, or 0. */
void guard_told(struct control *c, uint32_t slot, uint32_t guard);
/* Now and then, while there are copies that might be evicted, asks for those without a guard. */
void guard_watch(struct control *c);

#endif
